"""Builds the kernel of the exact distance transform: a task is one line of planes."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from airworthy.core.native_kernel import CPU_LANES, native_kernel, shared_source

MAX_SIDE = 8192
"""Cells along one axis: the squares of three such distances stay below NOWHERE."""

_FAR = 1 << 14
_NOWHERE = _FAR * _FAR
_REACH = 96


def scratch_size(ny: int, stride: int) -> int:
    """Whole numbers of work memory that one task needs."""
    return max(ny * (CPU_LANES + 3), 6 * stride)


def distance_field_source() -> str:
    """Complete native source of the transform."""
    text = files("airworthy.geometry").joinpath("native", "distance_field.h").read_text()
    names = f"enum {{ FAR = {_FAR}, NOWHERE = {_NOWHERE}, REACH = {_REACH} }};"
    return "\n".join([shared_source("prelude.h"), names, text])


_ARGUMENTS = """
    occupied: uint8[]  # (grid, nx, ny, stride)
    squared: int32[]  # work: squared distance so far [cells^2], (grid, nx, ny, stride)
    scratch: int32[]  # work: (grid * nx, scratch_size)
    # output
    distance: float32[]  # [m], (grid, nx, ny, stride)
    nx: int
    ny: int
    nz: int
    stride: int  # nz rounded up to whole lanes
    scratch_size: int
    resolution: float  # [m]
    far_value: float  # what a grid without an occupied cell gets [m]
    along_x: int  # 1: the x sweeps, a task per (grid, y); 0: y and z, a task per (grid, x)
"""


@cache
def distance_field_kernel() -> Any:
    """Return the transform as a Warp kernel; compiled at first launch, then cached on disk."""
    return native_kernel("distance_field", distance_field_source(), _ARGUMENTS)
