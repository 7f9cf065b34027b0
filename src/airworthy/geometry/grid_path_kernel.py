"""Builds the kernel of the grid search: one task, one search."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from airworthy.core.native_kernel import native_kernel, shared_source

UNSEEN, CLOSED = -1, -2
"""Marks in `place`: never in the open set, already expanded."""


def grid_path_source() -> str:
    """Complete native source of the search."""
    text = files("airworthy.geometry").joinpath("native", "grid_path.h").read_text()
    return "\n".join([shared_source("prelude.h"), f"enum {{ UNSEEN = {UNSEEN}, CLOSED = {CLOSED} }};", text])


_ARGUMENTS = """
    occupied: uint8[]  # 1 where no vehicle may be, (nx * ny * nz)
    cost: float64[]  # length of the best way found [cells], infinite before
    estimate: float64[]  # cost + least way still to go [cells]
    heap: int32[]  # open cells
    place: int32[]  # where in the heap a cell is, UNSEEN or CLOSED
    # output
    came: uint8[]  # step (0..26) by which a cell was reached
    result: int32[]  # found, expansions, cells left in the open set
    nx: int
    ny: int
    nz: int
    start: int
    goal: int
    most: int
"""


@cache
def grid_path_kernel() -> Any:
    """Return the search as a Warp kernel; compiled at first launch, then cached on disk."""
    return native_kernel("grid_path", grid_path_source(), _ARGUMENTS, "", first=False)
