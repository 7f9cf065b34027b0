"""A race pilot in a program of its own, which may be in any language: the standard library and numpy speak the protocol.

Flown by: airworthy bench race --pilot external:5005 --courses nominal   (while `serve(5005)` runs elsewhere)
"""

import json
import socketserver
import struct
import threading

import numpy as np


class Flight(socketserver.StreamRequestHandler):
    """One connection is one flight."""

    def handle(self) -> None:
        self.send("hello", protocol=1, name="leans", rate=60.0, sensors=["imu"])
        while (message := self.receive()) is not None:
            kind, fields, arrays = message
            if kind == "facts":  # told once: nominal gates, the vehicle's record, the camera
                self.gates, self.time = fields["gates"], 0.0
                self.send("ready")
            elif kind == "record":  # what came since the last command
                self.send("command", command=self.command(fields["time"], arrays))
            else:
                return

    def command(self, time: float, arrays: dict[str, np.ndarray]) -> np.ndarray:
        """Return thrust [N] and three body rates [rad/s]: rise, lean forward, and go on until something is in the way."""
        return np.array([[12.0, 0.0, 1.0 if 1.0 < time < 1.5 else 0.0, 0.0]])

    def send(self, kind: str, command: np.ndarray | None = None, **fields: object) -> None:
        arrays = [] if command is None else [["command", "<f8", list(command.shape)]]
        header = json.dumps({"kind": kind, "arrays": arrays, **fields}).encode()
        body = b"" if command is None else command.astype("<f8").tobytes()
        self.wfile.write(struct.pack("<I", len(header)) + header + body)

    def receive(self) -> tuple[str, dict, dict[str, np.ndarray]] | None:
        length = self.rfile.read(4)
        if len(length) < 4:
            return None
        fields = json.loads(self.rfile.read(struct.unpack("<I", length)[0]))
        arrays = {}
        for name, dtype, shape in fields.pop("arrays"):
            data = self.rfile.read(int(np.prod(shape)) * np.dtype(dtype).itemsize)
            arrays[name] = np.frombuffer(data, dtype).reshape(shape)
        return fields.pop("kind"), fields, arrays


def serve(port: int = 0) -> socketserver.ThreadingTCPServer:
    """Return a server on the loopback address that flies; port 0 is any free one."""
    server = socketserver.ThreadingTCPServer(("127.0.0.1", port), Flight)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


if __name__ == "__main__":
    import airworthy as aw

    with serve() as server:
        word = f"external:{server.server_address[1]}"
        result = aw.bench.race(word, "nominal", conditions="published", out="runs/21_race_pilot_of_another_program")
        (row,) = result.summary["flights"]
        print(f"{row['end']} with {row['part']} behind {row['path_m']:.1f} m, {row['passed']} gates")
        server.shutdown()
