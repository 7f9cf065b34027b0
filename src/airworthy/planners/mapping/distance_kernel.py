"""Builds the kernel of the questions that maps answer: one task is a block of points."""

# No postponed annotations here: Warp reads them.

from functools import cache
from importlib.resources import files
from typing import Any

from airworthy.core.native_kernel import MODULE_OPTIONS, quiet_warp, shared_source
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


@cache
def questions_kernel() -> Any:
    """Return the questions as a Warp kernel; compiled at first launch, then cached on disk."""
    wp = quiet_warp()

    @wp.func_native(questions_source())
    def native_questions(
        words: wp.array[wp.int32],
        flight: wp.array[wp.int32],
        points: wp.array[wp.float64],
        box_numbers: wp.array[wp.float64],
        box_words: wp.array[wp.int32],
        box_base: wp.array[wp.int64],
        inflated: wp.array[wp.uint8],
        squared: wp.array[wp.int16],
        taken: wp.array[wp.uint8],
        answers: wp.array[wp.float64],
        resolution: wp.float64,
        task: int,
    ): ...

    def airworthy_map_questions(
        words: wp.array[wp.int32],  # points, points per flight, 0: whether occupied, 1: distance
        flight: wp.array[wp.int32],  # (k,)
        points: wp.array[wp.float64],  # (k, m, 3) [m]
        box_numbers: wp.array[wp.float64],  # (n, 6) corners of the boxes [m]
        box_words: wp.array[wp.int32],  # (n, 9) cells, side, first cell of the window
        box_base: wp.array[wp.int64],  # (n,) first element of each flight
        inflated: wp.array[wp.uint8],
        squared: wp.array[wp.int16],
        # output
        taken: wp.array[wp.uint8],  # (k, m)
        answers: wp.array[wp.float64],  # (k, m, 4) distance [m] and gradient
        resolution: wp.float64,
        first: int,
    ):
        native_questions(
            words,
            flight,
            points,
            box_numbers,
            box_words,
            box_base,
            inflated,
            squared,
            taken,
            answers,
            resolution,
            first + wp.tid(),
        )

    return wp.kernel(airworthy_map_questions, module="unique", module_options=MODULE_OPTIONS)
