"""Messages of ROS 2 as streams, from MCAP files and from bags in SQLite.

Bodies are forward, left, up and worlds east, north, up (REP 103); px4_msgs keep PX4's FRD and NED. Stamps are those of the
headers, not of the receipt; how far the two lie apart is noted.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AssetError, unknown_name
from airworthy.core.files import harmless, shown
from airworthy.core.frames import from_wxyz, normalize, rotate
from airworthy.logs.building import Found, LogDraft
from airworthy.logs.readers.columns import bytes_allowed
from airworthy.logs.readers.mcap import BagMessage, McapChannel, McapFile
from airworthy.logs.readers.packing import is_zstd, zstd_bytes
from airworthy.logs.ros_types import DEFINITIONS, MessageLayout, Values, decoded, full_name, message_layout

_NS = 1_000_000_000
_STEPS_MAX = 400
"""Ours: calls of the watch over SQLite before a query is broken off, a million steps of its machine each."""


@dataclass(frozen=True)
class _Part:
    """One stream within messages of a type."""

    kind: str
    names: tuple[str, ...]
    frame: str = ""
    scale: float = 1.0
    shift: float = 0.0
    unknown: str = ""
    """Covariance whose first entry is -1 where there is no such measurement."""
    nan_unknown: bool = False
    """Whether NaN throughout means that there is no such measurement, as sensor_msgs has it for batteries."""


def _vector(head: str, axes: str = "xyz") -> tuple[str, ...]:
    return tuple(f"{head}.{a}" for a in axes)


_TYPES: Mapping[str, tuple[_Part, ...]] = {
    "sensor_msgs/msg/Imu": (
        _Part("gyro", _vector("angular_velocity"), unknown="angular_velocity_covariance"),
        _Part("accelerometer", _vector("linear_acceleration"), unknown="linear_acceleration_covariance"),
        _Part("attitude", _vector("orientation", "xyzw"), unknown="orientation_covariance"),
    ),
    "nav_msgs/msg/Odometry": (
        _Part("position", _vector("pose.pose.position")),
        _Part("attitude", _vector("pose.pose.orientation", "xyzw")),
        _Part("velocity", _vector("twist.twist.linear")),
    ),
    "geometry_msgs/msg/PoseStamped": (
        _Part("position", _vector("pose.position")),
        _Part("attitude", _vector("pose.orientation", "xyzw")),
    ),
    "geometry_msgs/msg/PointStamped": (_Part("position", _vector("point")),),
    "geometry_msgs/msg/PoseWithCovarianceStamped": (
        _Part("position", _vector("pose.pose.position")),
        _Part("attitude", _vector("pose.pose.orientation", "xyzw")),
    ),
    "geometry_msgs/msg/TransformStamped": (
        _Part("position", _vector("transform.translation")),
        _Part("attitude", _vector("transform.rotation", "xyzw")),
    ),
    "geometry_msgs/msg/TwistStamped": (_Part("velocity", _vector("twist.linear")),),
    # ROS counts current that flows out of a battery as negative.
    "sensor_msgs/msg/BatteryState": (
        _Part("voltage", ("voltage",), nan_unknown=True),
        _Part("current", ("current",), scale=-1.0, nan_unknown=True),
    ),
    "sensor_msgs/msg/MagneticField": (_Part("magnetometer", _vector("magnetic_field")),),
    "sensor_msgs/msg/FluidPressure": (_Part("pressure", ("fluid_pressure",)),),
    "sensor_msgs/msg/Temperature": (_Part("temperature", ("temperature",), shift=273.15),),
    "sensor_msgs/msg/Range": (_Part("range", ("range",)),),
    "mav_msgs/msg/Actuators": (_Part("motor_speed", ("angular_velocities",)), _Part("motor_command", ("normalized",))),
    "px4_msgs/msg/VehicleAngularVelocity": (_Part("gyro", ("xyz",), "frd"),),
    "px4_msgs/msg/VehicleAcceleration": (_Part("accelerometer", ("xyz",), "frd"),),
    "px4_msgs/msg/SensorCombined": (
        _Part("gyro", ("gyro_rad",), "frd"),
        _Part("accelerometer", ("accelerometer_m_s2",), "frd"),
    ),
    "px4_msgs/msg/VehicleAttitude": (_Part("attitude", ("q",), "frd->ned"),),
    "px4_msgs/msg/VehicleLocalPosition": (
        _Part("position", ("x", "y", "z"), "ned"),
        _Part("velocity", ("vx", "vy", "vz"), "ned"),
    ),
    "px4_msgs/msg/ActuatorMotors": (_Part("motor_command", ("control",)),),
    "px4_msgs/msg/BatteryStatus": (_Part("voltage", ("voltage_v",)), _Part("current", ("current_a",))),
}


@dataclass
class _Topic:
    """What has been gathered of one topic."""

    name: str
    type: str
    layout: MessageLayout
    stamps: array = field(default_factory=lambda: array("q"))
    received: array = field(default_factory=lambda: array("q"))
    values: list[array] = field(default_factory=list)
    widths: list[int] = field(default_factory=list)
    bad: int = 0

    def take(self, received: int, data: memoryview) -> None:
        """Keep one message; one that does not fit its type is counted."""
        try:
            values = decoded(self.layout, data)
            rows = [_row(part, values) for part in _TYPES[self.type]]
        except (AssetError, KeyError):
            self.bad += 1
            return
        if not self.widths:
            self.widths = [len(row) for row in rows]
            self.values = [array("d") for _ in rows]
        if [len(row) for row in rows] != self.widths:
            self.bad += 1
            return
        self.stamps.append(_stamp(values, received))
        self.received.append(received)
        for kept, row in zip(self.values, rows, strict=True):
            kept.extend(row)


def _row(part: _Part, values: Values) -> list[float]:
    row: list[float] = []
    for name in part.names:
        value = values[name]
        row += [float(v) for v in value] if isinstance(value, tuple) else [float(value)]
    covariance = values[part.unknown] if part.unknown else ()
    return [float("nan")] * len(row) if isinstance(covariance, tuple) and covariance and covariance[0] == -1.0 else row


def _stamp(values: Values, received: int) -> int:
    """Header's stamp [ns]; PX4's own [us]; else the time of receipt."""
    if "header.stamp.sec" in values:
        return int(values["header.stamp.sec"]) * _NS + int(values["header.stamp.nanosec"])  # type: ignore[arg-type]
    if "timestamp" in values:
        return min(int(values["timestamp"]), 1 << 52) * 1000  # type: ignore[arg-type]
    return received


def read_mcap(data: bytes, draft: LogDraft, topics: Mapping[str, str]) -> None:
    """Read an MCAP file with messages of ROS 2 into a draft.

    Args:
        data: The file.
        draft: Takes the streams.
        topics: Topic -> label of its streams; "-" leaves it out.

    Raises:
        AssetError: Nothing in it is a stream.
    """
    file = McapFile(data, draft)
    _gather(file.messages(), file.channels, draft, topics)


def _gather(
    messages: Iterator[BagMessage], channels: Mapping[int, McapChannel], draft: LogDraft, labels: Mapping[str, str]
) -> None:
    found: dict[int, _Topic | None] = {}
    others: dict[str, str] = {}
    unknown: dict[int, int] = {}
    passed: dict[int, int] = {}
    for message in messages:
        if message.channel not in channels:
            unknown[message.channel] = unknown.get(message.channel, 0) + 1
            continue
        if message.channel not in found:
            found[message.channel] = _topic(channels[message.channel], draft, labels, others)
        topic = found[message.channel]
        if topic is None:
            passed[message.channel] = passed.get(message.channel, 0) + 1
        else:
            topic.take(min(message.received, 1 << 62), message.data)
    if unknown:
        count = sum(unknown.values())
        draft.note(f"{count} messages are of {len(unknown)} channels that nothing describes, and were left out.")
    known = {channel.topic for channel in channels.values()}
    for name in labels:
        if name not in known:
            raise AssetError(str(unknown_name("topic", name, known, "Given with --topic.")))
    if others:
        listed = ", ".join(f"{shown(t)} ({k})" for t, k in list(others.items())[:12])
        draft.note(f"Topics that are no stream: {listed}.")
    good = [topic for topic in found.values() if topic is not None and len(topic.stamps)]
    if not good:
        raise draft.refuse(f"none of its topics holds messages that are streams{_passed_over(passed, channels)}")
    _streams(good, draft, labels)


_PICTURES = ("sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage", "sensor_msgs/msg/PointCloud2")


def _passed_over(passed: Mapping[int, int], channels: Mapping[int, McapChannel]) -> str:
    """Say what a file without a stream holds, pictures first, and what shows these."""
    if not passed:
        return ""
    kinds = {number: full_name(channels[number].type) if "/" in channels[number].type else "" for number in passed}
    order = sorted(passed, key=lambda number: (kinds[number] not in _PICTURES, -passed[number]))
    listed = ", ".join(
        f"{passed[number]:,} of {shown(channels[number].topic)} ({harmless(kinds[number])})" for number in order[:8]
    )
    more = f", and {len(order) - 8} topics more" if len(order) > 8 else ""
    look = "; Foxglove and Rerun show pictures" if any(kind in _PICTURES for kind in kinds.values()) else ""
    return f", but {listed}{more}{look}"


def _topic(channel: McapChannel, draft: LogDraft, labels: Mapping[str, str], others: dict[str, str]) -> _Topic | None:
    if labels.get(channel.topic) == "-":
        return None
    kind = full_name(channel.type) if "/" in channel.type else channel.type
    if kind not in _TYPES or channel.encoding != "cdr":
        others[channel.topic] = harmless(kind) if kind not in _TYPES else f"encoded as {harmless(channel.encoding)}"
        return None
    text = channel.schema if channel.schema_encoding == "ros2msg" else ""
    if not text and kind not in DEFINITIONS:
        others[channel.topic] = f"{kind}, without a definition that can be read"
        return None
    try:
        return _Topic(channel.topic, kind, message_layout(kind, text))
    except AssetError as error:
        draft.note(f"Topic {shown(channel.topic)} was left out: {error}")
        return None


def _streams(topics: Sequence[_Topic], draft: LogDraft, labels: Mapping[str, str]) -> None:
    counts: dict[str, int] = {}
    for topic in topics:
        for part in _TYPES[topic.type]:
            counts[part.kind] = counts.get(part.kind, 0) + 1
    for topic in topics:
        stamps = np.frombuffer(topic.stamps, np.int64).copy()
        offset = float(np.median(np.frombuffer(topic.received, np.int64) - stamps)) / _NS
        draft.note(f"Topic {shown(topic.name)}: received {offset:+.4f} s after its stamps (median of {len(stamps)}).")
        if topic.bad:
            draft.note(f"Topic {shown(topic.name)}: {topic.bad} messages do not fit their type and were left out.")
        values = {
            part.kind: np.frombuffer(kept, np.float64).reshape(-1, width)
            for part, kept, width in zip(_TYPES[topic.type], topic.values, topic.widths, strict=True)
            if width
        }
        for part in _TYPES[topic.type]:
            if part.kind not in values:
                continue
            made = _made(part, topic, values, draft)
            known = np.isfinite(made).any(axis=1)
            if not known.any() and (part.unknown or part.nan_unknown):
                continue
            label = labels.get(topic.name, topic.name.strip("/") if counts[part.kind] > 1 else "")
            kept = (stamps[known], made[known]) if part.unknown else (stamps, made)
            draft.found.append(Found(part.kind, *kept, label, part.frame, origin=topic.name))


def _made(part: _Part, topic: _Topic, values: Mapping[str, Array], draft: LogDraft) -> Array:
    own = values[part.kind] * part.scale + part.shift
    if part.kind == "attitude":
        own = from_wxyz(own) if topic.type.startswith("px4_msgs/") else own
        own = np.where(np.linalg.norm(own, axis=1, keepdims=True) > 0.0, own, np.nan)  # zeros: without an orientation
    if topic.type == "nav_msgs/msg/Odometry" and part.kind == "velocity":
        # The twist of an Odometry is in its child frame: the body.
        return rotate(normalize(values["attitude"]), own)
    if topic.type == "geometry_msgs/msg/TwistStamped":
        draft.note(f"Topic {shown(topic.name)}: its velocity is taken for one in the world; a twist does not say it.")
    if part.kind == "motor_command" and topic.type.startswith("px4_msgs/"):
        used = np.flatnonzero(np.isfinite(own).any(axis=0))
        own = own[:, : int(used[-1]) + 1 if used.size else 1]
    return own


# ---- Bags in SQLite ----------------------------------------------------------------------------------------------------------


def is_rosbag(data: bytes) -> bool:
    """Tell whether the first bytes are of an SQLite database."""
    return data[:16] == b"SQLite format 3\0"


def read_rosbag(data: bytes, draft: LogDraft, topics: Mapping[str, str]) -> None:
    """Read a ROS 2 bag in SQLite into a draft; arguments as `read_mcap`.

    Raises:
        AssetError: It is damaged, no bag, or nothing in it is a stream.
    """
    if len(data) < 100:
        raise draft.refuse(f"it ends within the head of its database, at byte {len(data)}")
    # A journal beside the file is not looked at: bytes 18 and 19 would ask for it.
    data = data[:18] + b"\1\1" + data[20:]
    steps = [0]

    def watch() -> int:
        steps[0] += 1
        return int(steps[0] > _STEPS_MAX)

    base = sqlite3.connect(":memory:")
    try:
        base.deserialize(data)
        base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max(len(data), 1 << 16))
        base.set_progress_handler(watch, 1_000_000)
        base.execute("PRAGMA trusted_schema = OFF")
        base.execute("PRAGMA query_only = ON")
        channels = _channels(base, draft)
        _gather(_rows(base, draft, 4 * bytes_allowed(len(data))), channels, draft, topics)
    except (sqlite3.Error, OverflowError, MemoryError, UnicodeDecodeError) as error:
        raise draft.refuse(f"it is not a bag that can be read: {harmless(str(error))[:120]}") from error
    finally:
        base.close()


def _channels(base: sqlite3.Connection, draft: LogDraft) -> dict[int, McapChannel]:
    tables = {name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not {"topics", "messages"} <= tables:
        raise draft.refuse("it is a database without the tables 'topics' and 'messages' of a ROS 2 bag")
    texts: dict[object, str] = {}
    if "message_definitions" in tables:
        query = "SELECT topic_type, encoding, encoded_message_definition FROM message_definitions LIMIT 10000"
        texts = {kind: str(text) for kind, encoding, text in base.execute(query) if encoding == "ros2msg"}
    found = {}
    for number, name, kind, encoding in base.execute("SELECT id, name, type, serialization_format FROM topics LIMIT 10000"):
        if isinstance(number, int):
            text = texts.get(kind, "")
            found[number] = McapChannel(harmless(str(name)), str(encoding), harmless(str(kind)), "ros2msg", text)
    return found


def _rows(base: sqlite3.Connection, draft: LogDraft, allowed: int) -> Iterator[BagMessage]:
    """Yield messages; those that the recorder packed one by one are unpacked, together to at most so many bytes."""
    damaged = 0
    try:
        for topic, stamp, data in base.execute("SELECT topic_id, timestamp, data FROM messages"):
            if not (isinstance(topic, int) and isinstance(stamp, int) and isinstance(data, bytes)):
                continue
            # CDR begins with 0 and its byte order, so that the mark of a frame is none of it.
            if is_zstd(data):
                try:
                    data = zstd_bytes(data, allowed + 1)
                except ValueError:
                    damaged += 1
                    continue
                if (allowed := allowed - len(data)) < 0:
                    raise draft.refuse("its packed messages take over 16 times the size of the file unpacked, and 256 MiB")
            yield BagMessage(topic, stamp, memoryview(data))
    except sqlite3.Error as error:
        draft.note(f"The bag is damaged ({harmless(str(error))[:80]}); what came before is read.")
    if damaged:
        draft.note(f"{damaged} packed messages are damaged and were left out.")
