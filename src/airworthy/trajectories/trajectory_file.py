"""Trajectories as JSON files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import read_json, write_json
from airworthy.core.table_schema import TableSchema, check_header, number_array, unknown_key, wrong
from airworthy.trajectories.trajectory import Trajectory

FORMAT = "airworthy-trajectory"
VERSION = 1
# Ours: a stranger's file may be of any size.
LIMIT_BYTES = 32 * 1024 * 1024
_HEAD = ("format", "version", "frame")
_FIELDS = {"knots_s": 1, "position_coefficients_m": 3, "yaw_knots_s": 1, "yaw_coefficients_rad": 2}
"""Name and how many lists deep its numbers lie: segments, axes, coefficients."""
_SCHEMA = TableSchema(entries_max=len(_FIELDS), list_max=0)


def save(trajectory: Trajectory, path: str | Path) -> None:
    """Write a trajectory; numbers are spelled so that reading gives the same bits."""
    arrays = (trajectory.knots, trajectory.coefficients, trajectory.yaw_knots, trajectory.yaw_coefficients)
    value: dict[str, Any] = {"format": FORMAT, "version": VERSION, "frame": "z_up"}
    value.update({name: array.tolist() for name, array in zip(_FIELDS, arrays, strict=True)})
    write_json(path, value)


def load(path: str | Path) -> Trajectory:
    """Read a trajectory; raises AssetError for anything that is not one."""
    where = repr(str(path))
    body = body_of(read_json(path, LIMIT_BYTES), where, FORMAT, VERSION)
    for key in body:
        if key not in _FIELDS:
            raise unknown_key(key, _FIELDS, where)
    arrays = [
        number_array(_SCHEMA.entry(body, name, Any, f"{where}: "), depth, f"{where}: {name}") for name, depth in _FIELDS.items()
    ]
    try:
        return Trajectory(*arrays)
    except AirworthyError as error:
        raise AssetError(f"{where} is not a trajectory: {error}") from error


def body_of(value: Any, where: str, kind: str, version: int) -> dict[str, Any]:
    """Return the table of one of our JSON files without its head: format, version and frame.

    Args:
        value: Content of the file.
        where: Names the file in messages.
        kind: Format that is expected.
        version: The one that is known.

    Raises:
        AssetError: It is of another format, version or frame.
    """
    check_header(value, where, f"an {kind} file", ("format", kind), version)
    if value.get("frame") != "z_up":
        raise wrong(f"{where}: frame", "'z_up'", value.get("frame"))
    return {key: entry for key, entry in value.items() if key not in _HEAD}
