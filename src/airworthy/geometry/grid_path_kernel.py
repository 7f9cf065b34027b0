"""Builds the kernel of the grid search: one task, one search."""

# No postponed annotations here: Warp reads them.

from functools import cache
from importlib.resources import files
from typing import Any

from airworthy.core.native_kernel import MODULE_OPTIONS, quiet_warp, shared_source

UNSEEN, CLOSED = -1, -2
"""Marks in `place`: never in the open set, already expanded."""


def grid_path_source() -> str:
    """Complete native source of the search."""
    text = files("airworthy.geometry").joinpath("native", "grid_path.h").read_text()
    return "\n".join([shared_source("prelude.h"), f"enum {{ UNSEEN = {UNSEEN}, CLOSED = {CLOSED} }};", text])


@cache
def grid_path_kernel() -> Any:
    """Return the search as a Warp kernel; compiled at first launch, then cached on disk."""
    wp = quiet_warp()

    @wp.func_native(grid_path_source())
    def native_search(
        occupied: wp.array[wp.uint8],
        cost: wp.array[wp.float64],
        estimate: wp.array[wp.float64],
        heap: wp.array[wp.int32],
        place: wp.array[wp.int32],
        came: wp.array[wp.uint8],
        result: wp.array[wp.int32],
        nx: int,
        ny: int,
        nz: int,
        start: int,
        goal: int,
        most: int,
    ): ...

    def airworthy_grid_path(
        occupied: wp.array[wp.uint8],  # 1 where no vehicle may be, (nx * ny * nz)
        cost: wp.array[wp.float64],  # length of the best way found [cells], infinite before
        estimate: wp.array[wp.float64],  # cost + least way still to go [cells]
        heap: wp.array[wp.int32],  # open cells
        place: wp.array[wp.int32],  # where in the heap a cell is, UNSEEN or CLOSED
        # output
        came: wp.array[wp.uint8],  # step (0..26) by which a cell was reached
        result: wp.array[wp.int32],  # found, expansions, cells left in the open set
        nx: int,
        ny: int,
        nz: int,
        start: int,
        goal: int,
        most: int,
    ):
        native_search(occupied, cost, estimate, heap, place, came, result, nx, ny, nz, start, goal, most)

    return wp.kernel(airworthy_grid_path, module="unique", module_options=MODULE_OPTIONS)
