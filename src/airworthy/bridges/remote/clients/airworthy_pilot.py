"""Serve a pilot to Airworthy: standard library and NumPy alone, to be copied beside a pilot's own code.

    from airworthy_pilot import serve

    class Climber:
        name, level, observes = "climber", "velocity", ["position", "sensor:depth"]

        def reset(self, task, data):          # task["task"] is "goal", "course" or "free"
            self.goal = data.get("goal")

        def command(self, data):              # data["time"] (n,), data["position"] (n, 3), data["sensor:depth/depth"] ...
            return [[0.0, 0.0, 1.0, 0.0]] * len(data["time"])

    serve(Climber)                            # then: airworthy fly --pilot external:5005

One connection is one flight, each in a thread with a pilot of its own; with `batched = True` it is a whole batch. Of a sensor a
sample comes once: its arrays stay in `data` until the next.
"""

import json
import os
import socketserver
import struct
import typing

import numpy as np

PROTOCOL = 2
Any = typing.Any


def serve(make: Any, place: Any = 5005) -> None:
    """Listen, and serve flights until somebody stops the program.

    Args:
        make: Called for each connection; returns a pilot.
        place: Port on this machine, or path of a Unix socket.
    """
    with server(make, place) as listening:
        listening.serve_forever()


def server(make: Any, place: Any = 5005) -> Any:
    """Return a server that listens, for programs that run it themselves; see `serve`."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            converse(make, self.rfile, self.wfile)

    path = isinstance(place, str)
    if path and os.path.exists(place):
        os.unlink(place)
    kind: Any = socketserver.ThreadingUnixStreamServer if path else _TcpServer
    return kind(place if path else ("127.0.0.1", place), Handler)


class _TcpServer(socketserver.ThreadingTCPServer):
    allow_reuse_address, daemon_threads = True, True


def converse(make: Any, source: Any, sink: Any) -> None:
    """Serve one connection: say hello, then answer until the other end closes it."""
    pilot: Any = make()
    seen: Any = {}
    send(sink, "hello", protocol=PROTOCOL, name=pilot.name, level=pilot.level, observes=list(pilot.observes),
         rate=float(getattr(pilot, "rate", 0.0)), batched=bool(getattr(pilot, "batched", False)))  # fmt: skip
    while (received := receive(source)) is not None:
        header, data = received
        try:
            if header["kind"] == "reset":
                seen = {}
                if hasattr(pilot, "reset"):
                    pilot.reset(header, data)
                send(sink, "ready")
            elif header["kind"] == "observation":
                seen.update(data)
                send(sink, "command", {"command": np.asarray(pilot.command(seen), "<f8")}, tick=header["tick"])
            elif header["kind"] == "close":
                return
        except Exception as error:  # its flight ends, with this as the cause
            send(sink, "failure", said=f"{type(error).__name__}: {error}")
            raise


def receive(source: Any) -> Any:
    """Return header and arrays of the next message; None at the end."""
    length = source.read(4)
    if len(length) < 4:
        return None
    header = json.loads(source.read(struct.unpack("<I", length)[0]))
    arrays = {}
    for name, kind, shape in header["arrays"]:
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(kind).itemsize
        arrays[name] = np.frombuffer(source.read(size), kind).reshape(shape)
    return header, arrays


def send(sink: Any, kind: str, arrays: Any = None, **fields: Any) -> None:
    """Send a message; arrays are of the types <f8, <f4, <i8, |b1 or |u1."""
    arrays = {name: np.ascontiguousarray(array) for name, array in (arrays or {}).items()}
    listed = [[name, array.dtype.str, list(array.shape)] for name, array in arrays.items()]
    header = json.dumps({"kind": kind, "arrays": listed, **fields}).encode()
    sink.write(struct.pack("<I", len(header)) + header + b"".join(array.tobytes() for array in arrays.values()))
    sink.flush()
