"""Messages of ROS 2 as bytes and back, from the definitions that the package rosbags ships; nothing is written by hand here.

Types that no distribution has are defined in `airworthy.logs.ros_types`, by the public text of their packages.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from airworthy.core.errors import AirworthyError
from airworthy.logs.ros_types import DEFINITIONS

__all__ = [
    "ABORT_TIMES",
    "FRAME_TIMES",
    "IR_MARKERS",
    "OWN_TYPES",
    "RATE_THRUST",
    "RosTypes",
    "dds_type",
    "needed",
    "ros_types",
]

RATE_THRUST, IR_MARKERS = "mav_msgs/msg/RateThrust", "flightgoggles/msg/IRMarkerArray"
FRAME_TIMES, ABORT_TIMES = "airworthy_msgs/msg/FrameTimes", "airworthy_msgs/msg/AbortTimes"
OWN_TYPES: Mapping[str, str] = {
    "mav_msgs/msg/Actuators": DEFINITIONS["mav_msgs/msg/Actuators"],
    # Fields of FlightGoggles' messages of these names, which have no standard type in ROS 2 (spec/flightgoggles 6.1); ROS 2
    # wants names of fields in small letters.
    "flightgoggles/msg/IRMarker": ("std_msgs/String landmark_id\nstd_msgs/String marker_id\nfloat32 x\nfloat32 y\nfloat32 z"),
    IR_MARKERS: "std_msgs/Header header\nflightgoggles/IRMarker[] markers",
    RATE_THRUST: "std_msgs/Header header\ngeometry_msgs/Vector3 angular_rates\ngeometry_msgs/Vector3 thrust",
    # Ours: instants of vehicle in the loop [ns], of this machine's monotonic clock but for pose_stamp.
    FRAME_TIMES: (
        "std_msgs/Header header\nint64 pose_stamp\nint64 received\nint64 due\nint64 begun\nint64 rendered\nint64 sent\n"
        "bool held"
    ),
    ABORT_TIMES: "std_msgs/Header header\nstring cause\nint64 since\nint64 told",
}
"""Type -> definition; a node on the other side needs a package with these (docs/howto/ros2.md)."""
_PLAIN = b"\x00\x01\x00\x00"
"""Head of plain CDR, little-endian."""


def needed(package: str, extra: str) -> AirworthyError:
    """Return what to say where an optional package is missing."""
    return AirworthyError(f"This needs the package {package}: pip install 'airworthy[{extra}]'.")


def dds_type(kind: str) -> str:
    """Return the name of "package/msg/Type" in DDS, "package::msg::dds_::Type_"."""
    package, _, name = kind.split("/")
    return f"{package}::msg::dds_::{name}_"


class RosTypes:
    """A store of types; see `ros_types`."""

    def __init__(self) -> None:
        try:
            from rosbags.typesys import Stores, get_types_from_msg, get_typestore
        except ImportError:
            raise needed("rosbags", "ros2") from None
        # Its types are those of all distributions from Humble on, as far as bytes go; older ones have no hashes.
        self._store = get_typestore(Stores.ROS2_JAZZY)
        for kind, text in OWN_TYPES.items():
            self._store.register(get_types_from_msg(text, kind))

    @property
    def kinds(self) -> tuple[str, ...]:
        """Return every type that is known."""
        return tuple(self._store.types)

    def fields(self, kind: str) -> list[tuple[str, Any]]:
        """Return names and nodes of a type's fields, as rosbags describes them."""
        return list(self._store.fielddefs[kind][1])

    def type_hash(self, kind: str) -> str:
        """Return the hash of a type, "RIHS01_..." (REP 2011)."""
        return str(self._store.hash_rihs01(kind))

    def definition(self, kind: str) -> str:
        """Return the definition of a type with all that it uses, as MCAP files carry it."""
        return str(self._store.generate_msgdef(kind, ros_version=2)[0])

    def packed(self, kind: str, values: Mapping[str, Any]) -> bytes:
        """Return the bytes of a message: plain CDR, little-endian, with its head.

        Args:
            kind: "package/msg/Type".
            values: By field, messages in it as mappings, lists of messages as sequences of mappings; fields left out are 0,
                empty or "".

        Raises:
            AirworthyError: A field that the type does not have.
        """
        return bytes(self._store.serialize_cdr(self._made(kind, values), kind))

    def unpacked(self, kind: str, data: bytes) -> Any:
        """Return a message of some bytes, with its fields as attributes.

        Raises:
            AirworthyError: They are not of this type.
        """
        try:
            if data[:4] not in (_PLAIN, b"\x00\x00\x00\x00"):
                raise ValueError(f"it begins with {data[:4].hex(' ') or 'nothing'}")
            return self._store.deserialize_cdr(data, kind)
        except Exception as error:  # whatever a stranger's bytes make of the reader
            reason = (str(error).splitlines() or [type(error).__name__])[0][:120]
            raise AirworthyError(f"{len(data):,} bytes are no message {kind}: {reason}.") from None

    def _made(self, kind: str, values: Mapping[str, Any]) -> Any:
        fields = dict(self._store.fielddefs[kind][1])
        unknown = set(values) - set(fields)
        if unknown:
            raise AirworthyError(f"A message {kind} has no field {', '.join(sorted(unknown))}; it has {', '.join(fields)}.")
        return self._store.types[kind](**{name: self._value(node, values.get(name)) for name, node in fields.items()})

    def _value(self, node: Any, value: Any) -> Any:
        which, about = int(node[0]), node[1]
        if which == _NAME:
            return self._made(about, {} if value is None else value)
        if which == _BASE:
            empty: Any = "" if about[0] == "string" else False if about[0] == "bool" else 0
            return empty if value is None else value
        (inner, detail), count = about
        fixed = count if which == _ARRAY else 0
        if int(inner) == _NAME:
            return [self._made(detail, item) for item in (value if value is not None else [{}] * fixed)]
        if detail[0] == "string":
            return list(value) if value is not None else [""] * fixed
        return np.zeros(fixed, detail[0]) if value is None else np.ascontiguousarray(value, detail[0]).reshape(-1)


# Of rosbags.interfaces.Nodetype, which is loaded with it alone.
_BASE, _NAME, _ARRAY = 1, 2, 3


@cache
def ros_types() -> RosTypes:
    """Return the types of ROS 2 and ours.

    Raises:
        AirworthyError: The package rosbags is missing.
    """
    return RosTypes()
