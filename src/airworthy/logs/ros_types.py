"""Layouts of ROS 2's messages: definitions in text, parsed, and values out of bytes (CDR).

Definitions are facts of the public packages std_msgs, geometry_msgs, sensor_msgs, nav_msgs and mav_msgs, comments and
constants left out; a file's own definitions are taken where it has some. CDR (OMG, plain XCDR1): four bytes of head, whose
second tells the order of bytes; numbers are aligned to their size behind it; texts have a length with a zero byte at the end.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass

from airworthy.core.errors import AssetError
from airworthy.core.files import shown
from airworthy.logs.cursor import ByteCursor

DEFINITIONS: Mapping[str, str] = {
    "builtin_interfaces/msg/Time": "int32 sec\nuint32 nanosec",
    "std_msgs/msg/Header": "builtin_interfaces/Time stamp\nstring frame_id",
    "geometry_msgs/msg/Vector3": "float64 x\nfloat64 y\nfloat64 z",
    "geometry_msgs/msg/Point": "float64 x\nfloat64 y\nfloat64 z",
    "geometry_msgs/msg/Quaternion": "float64 x\nfloat64 y\nfloat64 z\nfloat64 w",
    "geometry_msgs/msg/Pose": "Point position\nQuaternion orientation",
    "geometry_msgs/msg/Twist": "Vector3 linear\nVector3 angular",
    "geometry_msgs/msg/Transform": "Vector3 translation\nQuaternion rotation",
    "geometry_msgs/msg/PointStamped": "std_msgs/Header header\nPoint point",
    "geometry_msgs/msg/PoseStamped": "std_msgs/Header header\nPose pose",
    "geometry_msgs/msg/TwistStamped": "std_msgs/Header header\nTwist twist",
    "geometry_msgs/msg/Vector3Stamped": "std_msgs/Header header\nVector3 vector",
    "geometry_msgs/msg/TransformStamped": "std_msgs/Header header\nstring child_frame_id\nTransform transform",
    "geometry_msgs/msg/PoseWithCovariance": "Pose pose\nfloat64[36] covariance",
    "geometry_msgs/msg/TwistWithCovariance": "Twist twist\nfloat64[36] covariance",
    "geometry_msgs/msg/PoseWithCovarianceStamped": "std_msgs/Header header\nPoseWithCovariance pose",
    "nav_msgs/msg/Odometry": (
        "std_msgs/Header header\nstring child_frame_id\n"
        "geometry_msgs/PoseWithCovariance pose\ngeometry_msgs/TwistWithCovariance twist"
    ),
    "sensor_msgs/msg/Imu": (
        "std_msgs/Header header\ngeometry_msgs/Quaternion orientation\nfloat64[9] orientation_covariance\n"
        "geometry_msgs/Vector3 angular_velocity\nfloat64[9] angular_velocity_covariance\n"
        "geometry_msgs/Vector3 linear_acceleration\nfloat64[9] linear_acceleration_covariance"
    ),
    "sensor_msgs/msg/MagneticField": (
        "std_msgs/Header header\ngeometry_msgs/Vector3 magnetic_field\nfloat64[9] magnetic_field_covariance"
    ),
    "sensor_msgs/msg/FluidPressure": "std_msgs/Header header\nfloat64 fluid_pressure\nfloat64 variance",
    "sensor_msgs/msg/Temperature": "std_msgs/Header header\nfloat64 temperature\nfloat64 variance",
    "sensor_msgs/msg/Range": (
        "std_msgs/Header header\nuint8 radiation_type\nfloat32 field_of_view\nfloat32 min_range\nfloat32 max_range\n"
        "float32 range"
    ),
    "sensor_msgs/msg/BatteryState": (
        "std_msgs/Header header\nfloat32 voltage\nfloat32 temperature\nfloat32 current\nfloat32 charge\nfloat32 capacity\n"
        "float32 design_capacity\nfloat32 percentage\nuint8 power_supply_status\nuint8 power_supply_health\n"
        "uint8 power_supply_technology\nbool present\nfloat32[] cell_voltage\nfloat32[] cell_temperature\nstring location\n"
        "string serial_number"
    ),
    "mav_msgs/msg/Actuators": ("std_msgs/Header header\nfloat64[] angles\nfloat64[] angular_velocities\nfloat64[] normalized"),
}
"""Type -> definition, as a .msg file states it."""

_PRIMITIVES = {"bool": "?", "byte": "B", "char": "B", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H"}
_PRIMITIVES |= {"int32": "i", "uint32": "I", "int64": "q", "uint64": "Q", "float32": "f", "float64": "d"}
_LINE = re.compile(r"([A-Za-z0-9_/]+)(?:<=\d+)?(\[(<=)?\d*\])? +([A-Za-z][A-Za-z0-9_]*)")
_DEPTH_MAX = 16
_FIELDS_MAX = 2048


@dataclass(frozen=True)
class _Field:
    name: str
    primitive: str
    """Letter of struct; "s" of a text; empty: a type of its own."""
    parts: tuple[_Field, ...]
    count: int
    """Items of a fixed array; 0: one value; -1: a sequence."""


@dataclass(frozen=True)
class MessageLayout:
    """How to read messages of one type."""

    name: str
    fields: tuple[_Field, ...]


def full_name(name: str) -> str:
    """Return "package/msg/Type" of a type that may be written without "msg"."""
    package, _, rest = name.partition("/")
    return name if rest.startswith("msg/") else f"{package}/msg/{rest}"


def message_layout(name: str, text: str) -> MessageLayout:
    """Return the layout of a type.

    Args:
        name: "package/msg/Type".
        text: Its definition followed by those that it uses, after lines of '=' and "MSG: package/Type"; those of `DEFINITIONS`
            need not be there.

    Raises:
        AssetError: A line is none of a definition, or a type is not defined.
    """
    known = dict(DEFINITIONS)
    first, *others = re.split(r"(?m)^=+[ \t]*\r?\n", text)
    for other in others:
        head, _, body = other.partition("\n")
        if head.startswith("MSG: "):
            known[full_name(head.removeprefix("MSG: ").strip())] = body
    if first.strip():
        known[full_name(name)] = first
    return MessageLayout(name, _fields(full_name(name), known, [0], 0))


def _fields(name: str, known: Mapping[str, str], total: list[int], depth: int) -> tuple[_Field, ...]:
    if name not in known or depth > _DEPTH_MAX:
        raise AssetError(f"Message type {shown(name)} is not defined in the file, or nested over {_DEPTH_MAX} deep.")
    found = []
    for line in known[name].splitlines():
        line = " ".join(line.partition("#")[0].split())
        if not line or "=" in re.sub(r"<=\d", "", line.partition('"')[0]):
            continue  # a constant
        match = _LINE.match(line)
        total[0] += 1
        if match is None or total[0] > _FIELDS_MAX:
            raise AssetError(f"Message type {shown(name)} has a line {shown(line)}; expected 'type name'.")
        kind, bounds, upto, label = match.groups()
        count = 0 if bounds is None else -1 if upto or bounds == "[]" else int(bounds[1:-1])
        primitive = "s" if kind == "string" else _PRIMITIVES.get(kind, "")
        parts: tuple[_Field, ...] = ()
        if not primitive:
            inner = kind if "/" in kind else f"{name.partition('/')[0]}/{kind}"
            inner = "builtin_interfaces/Time" if kind in ("time", "duration") else inner
            inner = "std_msgs/Header" if kind == "Header" else inner
            parts = _fields(full_name(inner), known, total, depth + 1)
        found.append(_Field(label, primitive, parts, count))
    return tuple(found)


def schema_text(name: str) -> str:
    """Return the definition of a type of `DEFINITIONS` with all that it uses, as MCAP files carry it."""
    needed: list[str] = []

    def walk(kind: str) -> None:
        for line in DEFINITIONS[kind].splitlines():
            part = re.sub(r"[\[<].*", "", line.partition(" ")[0])
            if part in _PRIMITIVES or part == "string":
                continue
            inner = full_name(part if "/" in part else f"{kind.partition('/')[0]}/{part}")
            if inner not in needed:
                needed.append(inner)
                walk(inner)

    walk(name)
    parts = [DEFINITIONS[name] + "\n"]
    for kind in needed:
        parts.append(f"{'=' * 80}\nMSG: {kind.replace('/msg/', '/')}\n{DEFINITIONS[kind]}\n")
    return "".join(parts)


Values = dict[str, float | int | str | tuple[float, ...]]


def decoded(layout: MessageLayout, data: memoryview) -> Values:
    """Return the values of a message by dotted names; arrays of numbers are tuples, arrays of types are passed over.

    Raises:
        AssetError: The message is shorter than its layout, or not plain CDR.
    """
    if len(data) < 4 or data[0] != 0 or data[1] not in (0, 1):
        raise AssetError(
            f"A message of {layout.name} is not plain CDR: it begins with {bytes(data[:4]).hex(' ') or 'nothing'}."
        )
    reader = _CdrReader(ByteCursor(data[4:], f"a message of {layout.name}"), "<" if data[1] else ">")
    values: Values = {}
    reader.read(layout.fields, "", values)
    return values


class _CdrReader:
    def __init__(self, cursor: ByteCursor, order: str) -> None:
        self.cursor = cursor
        self.order = order

    def read(self, fields: tuple[_Field, ...], head: str, values: Values | None) -> None:
        for item in fields:
            name = head + item.name
            count = item.count
            if count < 0:
                count = int(self._numbers("I", 1)[0])
                if count > self.cursor.left:
                    raise self.cursor.refuse(f"sequence {name} declares {count} items, more than bytes are left")
            if item.primitive == "s":
                texts = [self._string(name) for _ in range(count if item.count else 1)]
                if values is not None and not item.count:
                    values[name] = texts[0]
            elif item.primitive:
                numbers = self._numbers(item.primitive, count if item.count else 1) if count or not item.count else ()
                if values is not None:
                    values[name] = numbers if item.count else numbers[0]
            elif item.count:
                for _ in range(count):
                    self.read(item.parts, "", None)
            else:
                self.read(item.parts, f"{name}.", values)

    def _numbers(self, letter: str, count: int) -> tuple[float, ...]:
        size = struct.calcsize(f"<{letter}")
        self.cursor.take(-self.cursor.at % size, "padding")
        return struct.unpack(f"{self.order}{count}{letter}", self.cursor.take(size * count, "numbers"))

    def _string(self, name: str) -> str:
        (length,) = self._numbers("I", 1)
        return bytes(self.cursor.take(int(length), name)).rstrip(b"\0").decode("utf-8", "replace")
