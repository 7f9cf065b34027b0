"""MCAP files with messages of ROS 2 (CDR), as Foxglove, PlotJuggler and `ros2 bag` open them.

Chunks have a bounded size, a checksum and an index. Layout: `readers.mcap`; messages: `ros_types`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.logs.clocks.clock import NS
from airworthy.logs.readers.mcap import CHANNEL, CHUNK, DATA_END, MAGIC, MESSAGE, SCHEMA
from airworthy.logs.record import Log, LogStream
from airworthy.logs.ros_types import schema_text
from airworthy.logs.writing.pairing import beside

HEADER, FOOTER, MESSAGE_INDEX, CHUNK_INDEX, STATISTICS = 1, 2, 7, 8, 11
CHUNK_BYTES = 1 << 20
"""Records of a chunk before the next one begins; what a kill while writing can lose."""
_UNKNOWN = -1.0
"""First entry of a covariance: there is no such measurement (sensor_msgs)."""


def mcap_bytes(log: Log) -> bytes:
    """Return a log as an MCAP file.

    Gyro and accelerometer become Imu, poses PoseStamped, positions alone PointStamped, velocities TwistStamped, motors
    mav_msgs/Actuators, the battery BatteryState, and the others of sensor_msgs what they are called there. What belongs
    together is told by labels (`pairing`). Kinds that ROS 2 has no message for are left out.
    """
    writer = McapWriter()
    found = [(int(stamp), topic, kind, data) for topic, kind, messages in _topics(log) for stamp, data in messages]
    for stamp, topic, kind, data in sorted(found, key=lambda item: item[0]):
        writer.message(topic, kind, stamp, data)
    return writer.closed()


@dataclass
class McapWriter:
    """Messages one after the other; `closed` gives the file, or, with a `sink`, writes its end.

    With a sink every chunk is written when it is full, so that a kill loses the open one alone.
    """

    sink: BinaryIO | None = None
    """Where the file goes as it grows; None: it is kept in memory."""
    definitions: Callable[[str], str] = schema_text
    """Text of a type's definition and those that it uses."""
    chunk_bytes: int = CHUNK_BYTES
    """Records of a chunk before the next one begins."""
    written: int = field(default=0, init=False)
    """Bytes that have gone to the sink."""
    out: bytearray = field(default_factory=bytearray, init=False)
    chunk: bytearray = field(default_factory=bytearray, init=False)
    channels: dict[tuple[str, str], int] = field(default_factory=dict, init=False)
    kinds: dict[str, int] = field(default_factory=dict, init=False)
    heads: list[bytes] = field(default_factory=list, init=False)
    """Records of schemas and channels, for the summary."""
    indices: dict[int, list[tuple[int, int]]] = field(default_factory=dict, init=False)
    counts: dict[int, int] = field(default_factory=dict, init=False)
    chunks: list[bytes] = field(default_factory=list, init=False)
    times: list[int] = field(default_factory=list, init=False)
    """Of the messages in the open chunk [ns]."""
    first: int = field(default=0, init=False)
    last: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.sink is not None and not callable(getattr(self.sink, "write", None)):
            raise AirworthyError(f"MCAP is to be written to {self.sink!r}; expected a file that is open for bytes, or None.")
        self.out += MAGIC + _record(HEADER, _text("ros2") + _text("airworthy"))
        self._hand_over()

    def message(self, topic: str, kind: str, stamp: int, data: bytes) -> None:
        """Add a message.

        Args:
            topic: "/imu".
            kind: Type that `definitions` knows.
            stamp: [ns]
            data: CDR.
        """
        channel = self._channel(topic, kind)
        self.indices.setdefault(channel, []).append((stamp, len(self.chunk)))
        number = self.counts[channel] = self.counts.get(channel, 0) + 1
        self.chunk += _record(MESSAGE, struct.pack("<HIQQ", channel, number - 1, stamp, stamp) + data)
        self.first = min(self.first, stamp) if sum(self.counts.values()) > 1 else stamp
        self.last = max(self.last, stamp)
        self.times.append(stamp)
        if len(self.chunk) >= self.chunk_bytes:
            self._close_chunk()
            self._hand_over()

    def flush(self) -> None:
        """End the open chunk and hand it to the sink: of what came before a kill loses nothing."""
        self._close_chunk()
        self._hand_over()

    def _channel(self, topic: str, kind: str) -> int:
        if (topic, kind) not in self.channels:
            if kind not in self.kinds:
                self.kinds[kind] = len(self.kinds) + 1
                text = self.definitions(kind).encode()
                body = (
                    struct.pack("<H", self.kinds[kind]) + _text(kind) + _text("ros2msg") + struct.pack("<I", len(text)) + text
                )
                self._head(_record(SCHEMA, body))
            number = self.channels[topic, kind] = len(self.channels) + 1
            body = struct.pack("<HH", number, self.kinds[kind]) + _text(topic) + _text("cdr") + struct.pack("<I", 0)
            self._head(_record(CHANNEL, body))
        return self.channels[topic, kind]

    def _head(self, record: bytes) -> None:
        self.heads.append(record)
        self.chunk += record

    def _close_chunk(self) -> None:
        if not self.chunk:
            return
        start, first, last = self._at(), min(self.times, default=0), max(self.times, default=0)
        size = len(self.chunk)
        body = struct.pack("<QQQI", first, last, size, zlib.crc32(self.chunk)) + _text("") + struct.pack("<Q", size)
        self.out += _record(CHUNK, body + bytes(self.chunk))
        length = self._at() - start
        offsets = b""
        begin = self._at()
        for channel, entries in self.indices.items():
            offsets += struct.pack("<HQ", channel, self._at())
            packed = b"".join(struct.pack("<QQ", *entry) for entry in entries)
            self.out += _record(MESSAGE_INDEX, struct.pack("<HI", channel, len(packed)) + packed)
        index = struct.pack("<QQQQ", first, last, start, length) + struct.pack("<I", len(offsets)) + offsets
        index += struct.pack("<Q", self._at() - begin) + _text("") + struct.pack("<QQ", size, size)
        self.chunks.append(_record(CHUNK_INDEX, index))
        self.chunk, self.indices, self.times = bytearray(), {}, []

    def closed(self) -> bytes:
        """Return the file with its summary; with a sink, which now has all of it, the bytes that were not there yet."""
        self._close_chunk()
        self.out += _record(DATA_END, struct.pack("<I", 0))
        start = self._at()
        counts = b"".join(struct.pack("<HQ", *item) for item in self.counts.items())
        facts = struct.pack("<QHIIII", sum(self.counts.values()), len(self.kinds), len(self.channels), 0, 0, len(self.chunks))
        facts += struct.pack("<QQ", self.first, self.last) + struct.pack("<I", len(counts)) + counts
        self.out += b"".join(self.heads) + _record(STATISTICS, facts) + b"".join(self.chunks)
        self.out += _record(FOOTER, struct.pack("<QQI", start, 0, 0)) + MAGIC
        rest = bytes(self.out)
        self._hand_over()
        return rest

    def _at(self) -> int:
        """Where the next byte of the file goes."""
        return self.written + len(self.out)

    def _hand_over(self) -> None:
        if self.sink is not None:
            self.sink.write(self.out)
            self.sink.flush()
            self.written += len(self.out)
            self.out.clear()


def _record(opcode: int, body: bytes | bytearray) -> bytes:
    return struct.pack("<BQ", opcode, len(body)) + bytes(body)


def _text(text: str) -> bytes:
    return struct.pack("<I", len(text.encode())) + text.encode()


# ---- Streams as messages -----------------------------------------------------------------------------------------------------

Messages = Iterator[tuple[int, bytes]]


def _topics(log: Log) -> Iterator[tuple[str, str, Messages]]:
    """Topic, type and messages of everything that has a message."""
    start = log.source.start_ns
    yield from _imus(log, start)
    done: set[str] = set()
    for place in log.of_kind("position"):
        turn = beside(log, place, "attitude")
        if turn is None:  # a pose would claim an orientation
            yield _topic("position", place), "geometry_msgs/msg/PointStamped", _vectors(place, start, "world", place.values)
            continue
        done.add(turn.name)
        poses = _vectors(place, start, "world", place.values, turn.values)
        yield _topic("pose", place), "geometry_msgs/msg/PoseStamped", poses
    for turn in log.of_kind("attitude"):
        if turn.name not in done:
            values = _imu_values(np.full((len(turn.time), 3), np.nan), np.full((len(turn.time), 3), np.nan), turn.values)
            yield _topic("attitude", turn), "sensor_msgs/msg/Imu", _vectors(turn, start, "base_link", values)
    for speed in log.of_kind("velocity"):
        zeros = np.zeros((len(speed.time), 3))
        yield _topic("velocity", speed), "geometry_msgs/msg/TwistStamped", _vectors(speed, start, "world", speed.values, zeros)
    for kind, topic, message in (
        ("magnetometer", "magnetic_field", "sensor_msgs/msg/MagneticField"),
        ("pressure", "pressure", "sensor_msgs/msg/FluidPressure"),
        ("temperature", "temperature", "sensor_msgs/msg/Temperature"),
    ):
        for stream in log.of_kind(kind):
            values = stream.values - (273.15 if kind == "temperature" else 0.0)
            rest = np.zeros((len(stream.time), 9 if kind == "magnetometer" else 1))
            yield _topic(topic, stream), message, _vectors(stream, start, "base_link", values, rest)
    yield from _motors(log, start)
    yield from _batteries(log, start)


def _topic(name: str, stream: LogStream) -> str:
    label = "".join(c if c.isalnum() or c == "/" else "_" for c in stream.label)
    return f"/{name}/{label}" if label else f"/{name}"


def _stamps(stream: LogStream, start: int) -> list[int]:
    # A message cannot be stamped before 1970.
    return [max(0, stamp) for stamp in (np.rint(stream.time * NS).astype(np.int64) + start).tolist()]


def _head(stamp: int, frame: str) -> bytes:
    """Header in CDR behind the four bytes that say its kind, padded to 8."""
    text = frame.encode() + b"\0"
    body = struct.pack("<iII", (stamp // NS) & 0x7FFFFFFF, stamp % NS, len(text)) + text
    return body + bytes(-len(body) % 8)


def _vectors(stream: LogStream, start: int, frame: str, *columns: Array) -> Messages:
    """Messages of a header and doubles alone."""
    values = np.ascontiguousarray(np.concatenate(columns, axis=1), "<f8")
    for stamp, row in zip(_stamps(stream, start), values, strict=True):
        yield stamp, b"\0\1\0\0" + _head(stamp, frame) + row.tobytes()


def _imu_values(rates: Array, forces: Array, turns: Array | None) -> Array:
    """Return the 37 doubles of an Imu; what is not measured has -1 first in its covariance, (n, 37)."""
    count = len(rates)
    parts = []
    for values in (np.full((count, 4), np.nan) if turns is None else turns, rates, forces):
        covariance = np.zeros((count, 9))
        covariance[:, 0] = np.where(np.isfinite(values).all(axis=1), 0.0, _UNKNOWN)
        parts += [np.nan_to_num(values), covariance]
    return np.concatenate(parts, axis=1)


def _imus(log: Log, start: int) -> Iterator[tuple[str, str, Messages]]:
    """Gyros with the accelerometer of the same device; either alone where stamps differ."""
    kind = "sensor_msgs/msg/Imu"
    forces = {force.name: force for force in log.of_kind("accelerometer")}
    for gyro in log.of_kind("gyro"):
        force = beside(log, gyro, "accelerometer")
        if force is not None:
            forces.pop(force.name, None)
        forced = force.values if force is not None else np.full_like(gyro.values, np.nan)
        yield _topic("imu", gyro), kind, _vectors(gyro, start, "base_link", _imu_values(gyro.values, forced, None))
    for force in forces.values():
        values = _imu_values(np.full_like(force.values, np.nan), force.values, None)
        yield _topic("accelerometer", force), kind, _vectors(force, start, "base_link", values)


def _motors(log: Log, start: int) -> Iterator[tuple[str, str, Messages]]:
    for kind, topic in (("motor_speed", "motor_speed"), ("motor_command", "motor_command")):
        for stream in log.of_kind(kind):
            yield _topic(topic, stream), "mav_msgs/msg/Actuators", _actuators(stream, start)


def _actuators(stream: LogStream, start: int) -> Messages:
    """Three sequences of doubles; the one that the stream is has values."""
    count = stream.values.shape[1]
    values = np.ascontiguousarray(stream.values, "<f8")
    for stamp, row in zip(_stamps(stream, start), values, strict=True):
        # angles, angular_velocities, normalized: a count of 4 bytes each, doubles on multiples of 8.
        full = struct.pack("<I", count) + row.tobytes()
        if stream.kind == "motor_speed":
            body = struct.pack("<I", 0) + full + struct.pack("<I", 0)
        else:
            body = struct.pack("<III", 0, 0, count) + bytes(4) + row.tobytes()
        yield stamp, b"\0\1\0\0" + _head(stamp, "base_link") + body


def _batteries(log: Log, start: int) -> Iterator[tuple[str, str, Messages]]:
    """Voltages with the current of the same battery; either alone, the other NaN, where stamps differ."""
    kind = "sensor_msgs/msg/BatteryState"
    currents = {current.name: current for current in log.of_kind("current")}
    for voltage in log.of_kind("voltage"):
        current = beside(log, voltage, "current")
        amperes = np.full(len(voltage.time), np.nan)
        if current is not None:
            currents.pop(current.name, None)
            amperes = -current.values[:, 0]
        yield _topic("battery", voltage), kind, _battery(voltage, voltage.values[:, 0], amperes, start)
    for current in currents.values():
        volts = np.full(len(current.time), np.nan)
        yield _topic("battery_current", current), kind, _battery(current, volts, -current.values[:, 0], start)


def _battery(stream: LogStream, voltage: Array, amperes: Array, start: int) -> Messages:
    nan = float("nan")
    for stamp, volts, ampere in zip(_stamps(stream, start), voltage.tolist(), amperes.tolist(), strict=True):
        floats = struct.pack("<7f", volts, nan, ampere, nan, nan, nan, nan)
        # Status, health and technology unknown, present; then two empty sequences, and two empty texts.
        rest = (
            bytes([0, 0, 0, 1])
            + struct.pack("<II", 0, 0)
            + struct.pack("<I", 1)
            + b"\0"
            + bytes(3)
            + struct.pack("<I", 1)
            + b"\0"
        )
        yield stamp, b"\0\1\0\0" + _head(stamp, "base_link")[: _head_size("base_link")] + floats + rest


def _head_size(frame: str) -> int:
    """Bytes of a header padded to 4: what follows are floats."""
    size = 12 + len(frame) + 1
    return size + -size % 4
