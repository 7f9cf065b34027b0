"""Builds the kernel of the questions that maps answer: one task is a block of points."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from airworthy.core.native_kernel import native_kernel, shared_source
from airworthy.planners.mapping.lookup import FAR

POINTS_PER_TASK = 256
"""On a CPU; one on a GPU."""


def lookup_source() -> str:
    """Native text of `struct Lookup`, for kernels that ask maps themselves; see `CellMaps.device_arrays`."""
    return f"enum {{ FAR = {FAR} }};\n" + files("airworthy.planners.mapping").joinpath("native", "lookup.h").read_text()


def questions_source() -> str:
    """Complete native source of the questions."""
    text = files("airworthy.planners.mapping").joinpath("native", "lookup.cpp").read_text()
    return "\n".join([shared_source("prelude.h"), lookup_source(), text])


_ARGUMENTS = """
    words: int32[]  # points, points per flight, 0: whether occupied, 1: distance
    flight: int32[]  # (k,)
    points: float64[]  # (k, m, 3) [m]
    box_numbers: float64[]  # (n, 6) corners of the boxes [m]
    box_words: int32[]  # (n, 9) cells, side, first cell of the window
    box_base: int64[]  # (n,) first element of each flight
    inflated: uint8[]
    squared: int16[]
    # output
    taken: uint8[]  # (k, m)
    answers: float64[]  # (k, m, 4) distance [m] and gradient
    resolution: float64
"""


@cache
def questions_kernel() -> Any:
    """Return the questions as a Warp kernel; compiled at first launch, then cached on disk."""
    return native_kernel("map_questions", questions_source(), _ARGUMENTS)
