"""Text of data sets: EuRoC's IMU and ground truth, and trajectories as TUM writes them."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from airworthy.core.arrays import ArrayAny
from airworthy.core.frames import from_wxyz
from airworthy.logs.building import Found, LogDraft, table
from airworthy.logs.clocks.clock import nanoseconds
from airworthy.logs.readers.columns import text_columns

_TUM_LINE = re.compile(rb"[ \t]*[-+\d.eE]+([ \t]+[-+\d.eE]+){7}[ \t]*\r?\n?")
_TUM = ("t", "x", "y", "z", "qx", "qy", "qz", "qw")
_EUROC_HEAD = re.compile(rb"#\s*time(stamp)?\s*([\[(\s]+ns|,\s*(p_RS_R|w_RS_S|a_RS_S|q_RS)_)", re.IGNORECASE)
"""Stamps in ns, or, as the published ground truth has it, stamps and then a column with one of EuRoC's own names."""


def is_euroc(data: bytes) -> bool:
    """Tell whether text begins with EuRoC's line of column names, stamps in ns."""
    return _EUROC_HEAD.match(data.removeprefix(b"\xef\xbb\xbf")) is not None


def is_tum(data: bytes) -> bool:
    """Tell whether the first line that is no comment holds eight numbers between blanks."""
    for line in data[: 1 << 16].splitlines(keepends=True):
        if line.strip() and not line.lstrip().startswith(b"#"):
            return _TUM_LINE.fullmatch(line) is not None
    return False


def read_euroc(data: bytes, draft: LogDraft, label: str = "") -> None:
    """Read EuRoC's `imu0` or ground truth into a draft.

    The axes are the sensor's own, x up in EuRoC's vehicle: nothing of the file says how it is mounted.

    Raises:
        AssetError: It is neither.
    """
    columns = text_columns(data, draft)
    names = list(columns)
    if len(names) < 2 or not _EUROC_HEAD.match(b"#" + ",".join(names[:2]).encode()):
        raise draft.refuse("its first columns are not '#timestamp [ns]' and one of EuRoC's")
    stamps = nanoseconds(_whole(columns[names[0]], draft), "ns", f"Log {draft.path!r}, column 1")
    draft.raw |= {f"{label or 'table'}.{name}": (stamps, columns[name]) for name in names[1:]}
    lower = [name.lower() for name in names]

    def part(kind: str, starts: Sequence[str], made: str = "") -> None:
        found = [names[k] for start in starts for k, text in enumerate(lower) if text.startswith(start)]
        values = table(columns, found) if len(found) == len(starts) else None
        if values is not None:
            values = from_wxyz(values) if kind == "attitude" else values
            draft.found.append(Found(kind, stamps, values, made, origin=", ".join(found)))

    before = len(draft.found)
    part("gyro", ["w_rs_s_x", "w_rs_s_y", "w_rs_s_z"])
    part("accelerometer", ["a_rs_s_x", "a_rs_s_y", "a_rs_s_z"])
    if len(draft.found) > before:
        draft.note("Axes are those of the inertial sensor: EuRoC does not say how it is mounted in a body x forward, z up.")
    for places in (["p_rs_r_x", "p_rs_r_y", "p_rs_r_z"], ["px", "py", "pz"]):
        part("position", places, "truth")
    for turns in (["q_rs_w", "q_rs_x", "q_rs_y", "q_rs_z"], ["qw", "qx", "qy", "qz"]):
        part("attitude", turns, "truth")
    for speeds in (["v_rs_r_x", "v_rs_r_y", "v_rs_r_z"], ["vx", "vy", "vz"]):
        part("velocity", speeds, "truth")
    if len(draft.found) == before:
        raise draft.refuse(f"its columns are neither EuRoC's IMU nor its ground truth ({', '.join(names[:8])})")


def _whole(values: ArrayAny, draft: LogDraft) -> ArrayAny:
    if values.dtype.kind != "i":
        draft.note("Stamps are not all whole nanoseconds; they were rounded to 256 ns, what 64 bits of float hold.")
        known = np.isfinite(values)
        if not known.all():
            raise draft.refuse(f"row {int(np.argmin(known))} has no stamp")
    return values


def read_tum(data: bytes, draft: LogDraft) -> None:
    """Read a trajectory in TUM's form into a draft: stamp [s], position, quaternion x, y, z, w.

    Raises:
        AssetError: It is none.
    """
    start = 0
    while data[start : start + 1] in (b"#", b"\n", b"\r") and start < len(data):
        end = data.find(b"\n", start)
        start = len(data) if end < 0 else end + 1
    text = re.sub(rb"(?m)^[ \t]+|[ \t\r]+$", b"", data[start:])
    columns = text_columns(re.sub(rb"[ \t]+", b",", text), draft, names=_TUM)
    if any(name not in columns for name in _TUM):
        raise draft.refuse("its lines do not hold eight numbers: stamp, position, quaternion x, y, z, w")
    time = columns["t"]
    known = np.isfinite(time)
    if not known.all():
        draft.note(f"{int((~known).sum())} rows have no stamp and were left out.")
    columns = {name: values[known] for name, values in columns.items()}
    stamps = nanoseconds(columns["t"], "s", f"Log {draft.path!r}, column 1")
    for kind, names in (("position", _TUM[1:4]), ("attitude", _TUM[4:])):
        values = table(columns, names)
        assert values is not None
        draft.found.append(Found(kind, stamps, values, origin=" ".join(names)))
