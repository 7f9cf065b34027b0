"""Trajectories as JSON files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import read_json, write_json
from airworthy.trajectories.trajectory import Trajectory

FORMAT = "airworthy-trajectory"
VERSION = 1
# Ours: a stranger's file may be of any size.
LIMIT_BYTES = 32 * 1024 * 1024
_FIELDS = ("knots_s", "position_coefficients_m", "yaw_knots_s", "yaw_coefficients_rad")


def save(trajectory: Trajectory, path: str | Path) -> None:
    """Write a trajectory; numbers are spelled so that reading gives the same bits."""
    arrays = (trajectory.knots, trajectory.coefficients, trajectory.yaw_knots, trajectory.yaw_coefficients)
    value: dict[str, Any] = {"format": FORMAT, "version": VERSION, "frame": "z_up"}
    value.update({name: array.tolist() for name, array in zip(_FIELDS, arrays, strict=True)})
    write_json(path, value)


def load(path: str | Path) -> Trajectory:
    """Read a trajectory; raises AssetError for anything that is not one."""
    value = read_json(path, LIMIT_BYTES)
    check_header(value, path, FORMAT, VERSION)
    unknown = sorted(set(value) - {"format", "version", "frame", *_FIELDS})
    if unknown:
        raise AssetError(f"{str(path)!r} has the unknown key {unknown[0][:60]!r}.")
    arrays = [_numbers(value, name, depth, path) for name, depth in zip(_FIELDS, (1, 3, 1, 2), strict=True)]
    try:
        return Trajectory(*arrays)
    except AirworthyError as error:
        raise AssetError(f"{str(path)!r} is not a trajectory: {error}") from error


def check_header(value: Any, path: str | Path, kind: str, version: int) -> None:
    """Format, version and frame of one of our JSON files; raises AssetError.

    Args:
        value: Content of the file.
        path: Of the file, for messages.
        kind: Format that is expected.
        version: The one that is known.
    """
    if not isinstance(value, dict) or value.get("format") != kind:
        raise AssetError(f"{str(path)!r} is not an {kind} file: its 'format' must say so.")
    if value.get("version") != version:
        raise AssetError(f"{str(path)!r} has version {str(value.get('version'))[:20]}; version {version} is read here.")
    if value.get("frame") != "z_up":
        raise AssetError(f"{str(path)!r} must give its frame as 'z_up', but gives {str(value.get('frame'))[:20]!r}.")


def _numbers(value: dict[str, Any], name: str, depth: int, path: str | Path) -> Array:
    try:
        array = np.array(value.get(name))
    except (TypeError, ValueError, OverflowError) as error:
        raise AssetError(f"{name!r} of {str(path)!r} must be a {depth}-dimensional list of numbers.") from error
    # Text, booleans and integers too large for a float have other kinds.
    if array.ndim != depth or array.dtype.kind not in "if":
        raise AssetError(f"{name!r} of {str(path)!r} must be a {depth}-dimensional list of numbers.")
    return array.astype(np.float64)
