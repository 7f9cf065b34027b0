"""What the columns of a table mean: `mapping.toml`, read, checked and applied.

    gyro = { columns = ["wx", "wy", "wz"], unit = "deg/s", frame = "frd", time = "t", time_unit = "ms", stamp = "instant" }

A second sensor of a kind is `"gyro:1"`. Attitudes take four columns x, y, z, w, or three of roll, pitch, yaw with a unit of
"deg" or "rad". A sensor that is turned in the body is turned back by the order of its columns, and a minus before a name:
`columns = ["-wy", "wx", "wz"]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from airworthy.core.arrays import ArrayAny
from airworthy.core.errors import AssetError, unknown_name
from airworthy.core.files import read_toml
from airworthy.core.frames import FRAMES, from_euler
from airworthy.core.table_schema import TableSchema
from airworthy.logs.building import Found, LogDraft, table
from airworthy.logs.clocks.clock import TIME_UNITS, nanoseconds
from airworthy.logs.record import KINDS, STAMPS
from airworthy.logs.units import DEGREE, UNITS

_ANGLES = {"deg": DEGREE, "rad": 1.0}


@dataclass(frozen=True)
class ColumnMapping:
    """One stream of a table."""

    columns: tuple[str, ...]
    """Columns of the table, in the order of the stream's own; a minus before a name turns its sign."""
    unit: str = ""
    """Unit in the table; empty: SI."""
    frame: str = ""
    """Frame in the table, as "frd", "ned" or "frd->ned"; empty: FLU and ENU."""
    time: str = "time"
    """Column of the stamps."""
    time_unit: Literal["s", "ms", "us", "ns"] = "s"
    stamp: str = ""
    """"instant", "held" or "mean"; empty: "held" for commands, "instant" for all else."""
    scale: float = 1.0
    """Further factor, for counts of a converter."""


_SCHEMA = TableSchema(entries_max=256, list_max=64, list_noun="columns", number_max=1e12)


def read_mapping(path: str | Path) -> dict[str, ColumnMapping]:
    """Read a mapping.

    Raises:
        AssetError: The file is missing, or a line is not one of a mapping.
    """
    return parse_mapping(read_toml(path), str(path))


def parse_mapping(content: Mapping[str, object], where: str) -> dict[str, ColumnMapping]:
    """Return a mapping from its table, checked; raises AssetError where a kind, unit or frame is unknown."""
    made = {}
    for name, value in content.items():
        kind, _, _ = name.partition(":")
        if kind not in KINDS:
            raise unknown_name(f"kind of stream in {where!r}", kind, KINDS)
        made[name] = _SCHEMA.record(ColumnMapping, value, f"{where}: {name}")
        _check(kind, made[name], f"{where}: {name}")
    if not made:
        raise AssetError(f"{where!r} maps no stream; expected a line as gyro = {{ columns = [...], unit = ... }}.")
    return made


def _check(kind: str, item: ColumnMapping, where: str) -> None:
    width = KINDS[kind].width
    euler = KINDS[kind].frame == "flu->enu" and len(item.columns) == 3
    if not item.columns or (width not in (None, len(item.columns)) and not euler):
        raise AssetError(f"{where} has {len(item.columns)} columns; expected {width or 'at least 1'}.")
    known = _ANGLES if euler else UNITS.get(KINDS[kind].unit, {})
    if item.unit and item.unit not in known:
        raise AssetError(f"{where} has unit {item.unit!r}; expected one of {', '.join(known)}.")
    if item.frame and (item.frame not in FRAMES or _axes(item.frame) != _axes(KINDS[kind].frame)):
        fitting = [f for f in FRAMES if _axes(f) == _axes(KINDS[kind].frame)]
        raise AssetError(f"{where} has frame {item.frame!r}; expected {' or '.join(fitting) or 'none'}.")
    if item.stamp and item.stamp not in STAMPS:
        raise AssetError(f"{where} has stamp {item.stamp!r}; expected one of {', '.join(STAMPS)}.")


def _axes(frame: str) -> str:
    """Return whose axes a frame has: the body's, the world's, both (an attitude), or none."""
    if "->" in frame:
        return "attitude"
    return {"flu": "body", "frd": "body", "enu": "world", "ned": "world"}.get(frame, "")


def apply_mapping(columns: Mapping[str, ArrayAny], mapping: Mapping[str, ColumnMapping], draft: LogDraft) -> None:
    """Add the streams of a mapping to a draft.

    Raises:
        AssetError: A column that the mapping names is not there, or two have different lengths.
    """
    for name, item in mapping.items():
        signs, names = _signed(item.columns, columns)
        for column in (*names, item.time):
            if column not in columns:
                raise AssetError(str(unknown_name("column", column, columns, f"Mapped to {name!r}.")))
        kind, _, label = name.partition(":")
        lengths = {len(columns[column]) for column in (*names, item.time)}
        if len(lengths) != 1:
            raise draft.refuse(f"columns of {name!r} have different lengths ({', '.join(map(str, sorted(lengths)))})")
        values = table(columns, names)
        assert values is not None
        values = values * signs if (signs < 0.0).any() else values
        time = np.asarray(columns[item.time])
        known = np.isfinite(time)
        if not known.all():
            draft.note(f"{int((~known).sum())} rows of {name} have no time and were left out.")
            time, values = time[known], values[known]
        # A blank row of a table of several streams is no sample of this one.
        there = ~np.isnan(values).all(axis=1)
        if not there.any():
            draft.note(f"Stream {name!r} is left out: its columns are blank throughout.")
        time, values = time[there], values[there]
        if KINDS[kind].frame == "flu->enu" and len(item.columns) == 3:
            _refuse_angles(values, item, name, draft)
            values = from_euler(*(values * _ANGLES[item.unit or "rad"] * item.scale).T)
        else:
            factor, shift = UNITS.get(KINDS[kind].unit, {}).get(item.unit or KINDS[kind].unit, (1.0, 0.0))
            values = values * (factor * item.scale) + shift
        stamps = nanoseconds(time, item.time_unit, f"Log {draft.path!r}, column {item.time!r}")
        origin = ", ".join(item.columns)
        draft.found.append(Found(kind, stamps, values, label, item.frame, item.stamp, origin=origin))


def _signed(names: tuple[str, ...], columns: Mapping[str, ArrayAny]) -> tuple[ArrayAny, tuple[str, ...]]:
    """Return the sign and the column of each name of a mapping."""
    turned = [name.startswith("-") and name not in columns for name in names]
    signs = np.where(turned, -1.0, 1.0)
    return signs, tuple(name[1:] if minus else name for name, minus in zip(names, turned, strict=True))


def _refuse_angles(values: ArrayAny, item: ColumnMapping, name: str, draft: LogDraft) -> None:
    """Refuse pitch of over half a turn: degrees that are taken for radians, mostly.

    Raises:
        AssetError: With the largest pitch.
    """
    pitch = float(np.nanmax(np.abs(values[:, 1]), initial=0.0)) * _ANGLES[item.unit or "rad"] * abs(item.scale)
    if pitch > np.pi * (1.0 + 1e-6):
        hint = 'they look in degrees: say unit = "deg"' if (item.unit or "rad") == "rad" else "its unit or scale is wrong"
        raise draft.refuse(f"angles of {name!r} have pitch up to {pitch:.3g} rad, over half a turn: {hint}")


assert set(TIME_UNITS) == {"s", "ms", "us", "ns"}
