"""A race pilot in a program of its own, in any language: here by standard library and numpy (docs/howto/race_pilots.md)."""

import json
import socketserver
import struct
import threading

import numpy as np


class Leans(socketserver.StreamRequestHandler):
    """Rises, leans forward, and goes on until something is in the way; one connection is one flight."""

    def handle(self) -> None:
        self.send({"kind": "hello", "protocol": 1, "rate": 60.0, "sensors": ["imu"], "arrays": []})
        while length := self.rfile.read(4):
            told = json.loads(self.rfile.read(struct.unpack("<I", length)[0]))
            parts = [(n, np.dtype(kind), shape) for n, kind, shape in told["arrays"]]
            data = {n: np.frombuffer(self.rfile.read(kind.itemsize * int(np.prod(s))), kind).reshape(s) for n, kind, s in parts}
            if told["kind"] == "facts":  # once: told["gates"], data["corners"] where they nominally are, the vehicle ...
                self.send({"kind": "ready", "arrays": []})
            elif told["kind"] == "record":  # what came since the last: data["imu"], data["frame_pixel"] ...
                thrust, lean = 0.0 if data["collision"][0] else 12.0, 1.0 if 1.0 < told["time"] < 1.5 else 0.0
                command = np.array([[thrust, 0.0, lean, 0.0]])  # [N], and three body rates [rad/s]
                self.send({"kind": "command", "arrays": [["command", "<f8", list(command.shape)]]}, command.tobytes())

    def send(self, header: dict, body: bytes = b"") -> None:
        self.wfile.write(struct.pack("<I", len(text := json.dumps(header).encode())) + text + body)


if __name__ == "__main__":
    import airworthy as aw

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Leans) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        word, out = f"external:{server.server_address[1]}", "runs/21_race_pilot_of_another_program"
        (row,) = aw.bench.race(word, "nominal", conditions="published", out=out).summary["flights"]
        print(f"{row['end']} with {row['part']} behind {row['path_m']:.1f} m, {row['passed']} gates")
        server.shutdown()
