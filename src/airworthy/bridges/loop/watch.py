"""A process that takes poses in and raises /uav/abort by itself, whatever the one that makes pictures is doing.

Pictures take processor time, and Python's interpreter lock with it: a thread beside them was seen to wait for up to 90 ms. The
process that watches has an interpreter of its own, asks the system for priority, and passes on what it has taken and told:

    us         one line of JSON on its standard input (`WatchSettings`), and at the end "end"; an input that ends without it
               is that of a process that is gone, and an abort
    it         records on its standard output: kind (1 byte), length (uint32), content; little-endian
               r  it listens; its address
               x  it cannot listen, and why
               p  a pose: stamp, position, attitude x, y, z, w, when it was received; 9 doubles
               a  an abort: since, told; 2 doubles, and its cause
               m  packets so far that were no poses; uint64
               o  packets so far of other senders than the first; uint64
               l  poses so far that were not passed on, since we did not read them; uint64
               f  the source failed, and why
               e  the source has no more
"""

from __future__ import annotations

import gc
import json
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import IO, Any

import numpy as np

from airworthy.bridges.loop.guard import Abort, PoseGuard, SafetyVolume, SourceFailure
from airworthy.bridges.loop.pose_sources import PosesEnded, PoseSource, pose_source
from airworthy.bridges.loop.pose_track import PoseLimits, PoseTrack, RoomAlignment, StampedPose
from airworthy.bridges.priority import FirstInLine
from airworthy.core.errors import AirworthyError

__all__ = ["ABORT_TOPIC", "WatchSettings", "WatchedPoses", "abort_bus", "watch"]

ABORT_TOPIC = "/uav/abort"
_HEAD, _POSE, _ABORT, _COUNT = struct.Struct("<BI"), struct.Struct("<9d"), struct.Struct("<2d"), struct.Struct("<Q")
_WAITING = 1 << 20
"""Bytes that may wait to be read; poses beyond are counted and not passed on [1]."""
_OTHERS = 100
"""Packets of other senders after which their number is passed on again."""
_BYE = b"end\n"
_START, _END = 60.0, 5.0
"""Longest time that it may take to listen, and to end [s]."""


@dataclass(frozen=True)
class WatchSettings:
    """What is watched; as of `session.LoopConfig`."""

    poses: str
    publish: str = "none"
    align: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    safety: tuple[float, float, float, float, float, float] | None = None
    extrapolation: float = 0.05

    @property
    def alignment(self) -> RoomAlignment:
        """Return the room in the scene."""
        return RoomAlignment(self.align[:3], self.align[3])

    @property
    def volume(self) -> SafetyVolume | None:
        """Return where the vehicle may be."""
        return None if self.safety is None else SafetyVolume(self.safety[:3], self.safety[3:])


def abort_bus(publish: str) -> tuple[Any, Callable[[], None]]:
    """Return a bus by its word and what sends an abort there; None and nothing of "none"."""
    if publish == "none":
        return None, lambda: None
    from airworthy.bridges.ros.bus import COMMANDS
    from airworthy.bridges.ros.dds import DdsBus, domain_of_environment
    from airworthy.bridges.ros.types import ros_types
    from airworthy.bridges.ros.zenoh import ZenohBus

    bus: Any = DdsBus(domain_of_environment()) if publish == "ros2" else ZenohBus(domain_of_environment())
    topic, data = bus.publisher(ABORT_TOPIC, "std_msgs/msg/Empty", COMMANDS), ros_types().packed("std_msgs/msg/Empty", {})
    return bus, lambda: topic.send(data)


# ---- The process that makes pictures ----------------------------------------------------------------------------------------


class WatchedPoses:
    """Poses as the process that watches them passes them on; see `PoseSource`.

    Args:
        settings: Of the watch.

    Raises:
        AirworthyError: It cannot listen.
    """

    watched = True

    def __init__(self, settings: WatchSettings):
        self.malformed = self.left_out = self.others = 0
        self.first_in_line = False
        self.tell: Callable[[Abort], None] = lambda abort: None
        code = "from airworthy.bridges.loop.watch import main; raise SystemExit(main())"
        paths = os.pathsep.join(filter(None, sys.path))
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": paths},
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout
        self._closed = False
        late = threading.Timer(_START, self._process.kill)
        late.daemon = True
        late.start()
        try:
            self._in.write(json.dumps(asdict(settings)).encode() + b"\n")
            self._in.flush()
            kind, content = self._record()
        except (OSError, EOFError):
            kind, content = "x", b"the process that watches poses did not begin"
        finally:
            late.cancel()
        if kind != "r":
            self.close()
            self.reaped()
            raise AirworthyError(content.decode("utf-8", "replace"))
        self.address = content[1:].decode("utf-8", "replace")
        self.first_in_line = content[:1] == b"1"

    def receive(self, deadline: float) -> StampedPose | None:
        """Return the next pose; the deadline counts for nothing, since the other process keeps it."""
        while True:
            try:
                kind, content = self._record()
            except (OSError, EOFError):
                if self._closed:
                    raise PosesEnded from None
                raise AirworthyError("the process that watches poses is gone") from None
            if kind == "p":
                stamp, *numbers, received = _POSE.unpack(content)
                return StampedPose(stamp, np.array(numbers[:3]), np.array(numbers[3:]), received)
            if kind == "a":
                since, told = _ABORT.unpack_from(content)
                self.tell(Abort(content[_ABORT.size :].decode("utf-8", "replace"), since, told, True))
            elif kind == "m":
                (self.malformed,) = _COUNT.unpack(content)
            elif kind == "o":
                (self.others,) = _COUNT.unpack(content)
            elif kind == "l":
                (self.left_out,) = _COUNT.unpack(content)
            elif kind == "f":
                raise SourceFailure(content.decode("utf-8", "replace"))
            else:
                raise PosesEnded

    def close(self) -> None:
        """Have it end; what it has told until then can still be received. May be called again."""
        if self._closed:
            return
        self._closed = True
        with suppress(OSError):
            self._in.write(_BYE)
            self._in.close()

    def reaped(self) -> None:
        """Wait for its end."""
        try:
            self._process.wait(_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._out.close()

    def _record(self) -> tuple[str, bytes]:
        kind, length = _HEAD.unpack(self._exactly(_HEAD.size))
        return chr(kind), self._exactly(length)

    def _exactly(self, size: int) -> bytes:
        data = self._out.read(size)
        if len(data) < size:
            raise EOFError
        return data


# ---- The process that watches -----------------------------------------------------------------------------------------------


class RecordPipe:
    """Records on their way; it never waits for who reads them.

    Args:
        out: Their file, not buffered.
    """

    def __init__(self, out: IO[bytes]):
        self._out, self._held = out, bytearray()
        self.left_out = 0
        # Where it cannot be (Windows before Python 3.12) a reader that sleeps is waited for.
        with suppress(AttributeError, OSError):
            os.set_blocking(out.fileno(), False)

    def put(self, kind: str, content: bytes = b"") -> None:
        """Send a record, or keep it until there is room; poses beyond what may wait are counted alone."""
        if kind == "p" and len(self._held) > _WAITING:
            self.left_out += 1
            kind, content = "l", _COUNT.pack(self.left_out)
            if self.left_out % 1000 != 1:
                return
        self._held += _HEAD.pack(ord(kind), len(content)) + content
        self.flush()

    def flush(self) -> None:
        """Send what waits, as far as there is room; where nobody is left to read it, it is gone."""
        while self._held:
            try:
                sent = self._out.write(self._held)
            except BlockingIOError:
                sent = None
            except OSError:
                sent = len(self._held)
            if not sent:
                return
            del self._held[:sent]

    def drain(self, seconds: float) -> None:
        """Send what waits, for so long at most."""
        until = time.monotonic() + seconds
        while self._held and time.monotonic() < until:
            self.flush()
            time.sleep(0.001 if self._held else 0.0)


class PassedOn:
    """A source whose poses are passed on as they come; see `PoseSource`."""

    def __init__(self, source: PoseSource, pipe: RecordPipe):
        self._source, self._pipe = source, pipe
        self.address, self.malformed, self._others = source.address, 0, 0

    def receive(self, deadline: float) -> StampedPose | None:
        """See `PoseSource`."""
        pose = self._source.receive(deadline)
        if self._source.malformed != self.malformed:
            self.malformed = self._source.malformed
            self._pipe.put("m", _COUNT.pack(self.malformed))
        others = getattr(self._source, "others", 0)
        if others and (not self._others or others >= self._others + _OTHERS):
            self._others = others
            self._pipe.put("o", _COUNT.pack(others))
        if pose is None:
            self._pipe.flush()
        else:
            self._pipe.put("p", _POSE.pack(pose.stamp, *pose.position, *pose.attitude, pose.received))
        return pose

    def close(self) -> None:
        """See `PoseSource`."""
        self._source.close()


def watch(settings: WatchSettings, orders: IO[bytes], out: IO[bytes], first_in_line: bool = False) -> None:
    """Take poses in and tell aborts until the source ends, or nobody gives orders any more.

    Args:
        settings: Of the watch.
        orders: Whose end ends it.
        out: Where records go; not buffered.
        first_in_line: Whether the system gave this process priority.
    """
    pipe, gone = RecordPipe(out), threading.Event()
    try:
        source = pose_source(settings.poses)
        bus, send = abort_bus(settings.publish)
    except AirworthyError as error:
        pipe.put("x", str(error).encode())
        pipe.drain(_END)
        return

    def tell(abort: Abort) -> None:
        send()
        told = time.monotonic()  # behind the sending, which is what the vehicle waits for
        pipe.put("a", _ABORT.pack(abort.since, told) + abort.cause.encode())

    def listen() -> None:
        if orders.read() != _BYE:
            guard.abort("the process that shows pictures is gone", time.monotonic())
        gone.set()

    track = PoseTrack(PoseLimits(extrapolation=settings.extrapolation))
    guard = PoseGuard(PassedOn(source, pipe), settings.alignment, track, settings.volume, tell)
    pipe.put("r", (b"1" if first_in_line else b"0") + source.address.encode())
    threading.Thread(target=listen, name="orders", daemon=True).start()
    with guard:
        while not guard.ended.is_set() and not gone.wait(0.05):
            pass
    if guard.failure:
        pipe.put("f", guard.failure.encode())
    else:
        pipe.put("e")
    pipe.drain(_END)
    source.close()
    if bus is not None:
        bus.close()


def main() -> int:
    """Be the process that watches."""
    # Ctrl-C is for whoever started us, and who then lets us end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what anything prints is no record
    # It sleeps but for some tenths of a millisecond per pose.
    first = not FirstInLine(inherited=True).__enter__().refused
    # Not buffered: a thread that waits within a buffer would not let the interpreter end.
    orders = os.fdopen(os.dup(0), "rb", buffering=0)
    told = json.loads(orders.readline())
    told["align"], told["safety"] = tuple(told["align"]), None if told["safety"] is None else tuple(told["safety"])
    # What was loaded until now stays: no collection walks through it in mid-flight.
    gc.freeze()
    watch(WatchSettings(**told), orders, out, first)
    return 0
