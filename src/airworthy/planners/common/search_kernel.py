"""Builds the kernel of the searches between points, and gives its texts to kernels of planners."""

# No postponed annotations here: Warp reads them.

from functools import cache
from importlib.resources import files
from typing import Any

from airworthy.core.native_kernel import MODULE_OPTIONS, quiet_warp, shared_source

# Source: spec/planners 3.4: A* on 100^3 cells centred between the two control points.
SIDE = 100
"""Cells along each edge of a search."""
NODE_WORDS, ITEM_WORDS = 2, 2
"""Doubles per cell, and per entry of the open set, of work memory."""
WAITING = 1 << 21
"""Most entries of the open set: a search that needs more has failed."""
PATH_MAX = 20_000
"""Longest way that is handed over [cells]."""


def planning_source(*names: str) -> str:
    """`prelude.h` and the named headers of `planning/native`, joined: `cells.h`, `search.h`, `bspline.h`, `polynomial.h`."""
    folder = files("airworthy.planners.common").joinpath("native")
    texts = (folder.joinpath(name).read_text().replace("SEARCH_WAITING", str(WAITING)) for name in names)
    return "\n".join([shared_source("prelude.h"), *texts])


_BODY = f"""
SearchSpace space = {{(SearchNode*)nodes.data, (SearchItem*)heap.data, stamp.data}};
Cells cells((const unsigned long long*)address.data, numbers.data, sizes.data, rows.data[task]);
int* path = paths.data + (long long)task * {PATH_MAX};
result.data[2 * task] = space.search(cells, ends.data + 6 * task, ends.data + 6 * task + 3, budget, path, {PATH_MAX});
result.data[2 * task + 1] = (int)space.expansions;
"""


@cache
def search_kernel() -> Any:
    """Return the searches as a Warp kernel for a CPU, one after the other in one memory; compiled at first launch, then
    cached.
    """
    wp = quiet_warp()

    @wp.func_native(planning_source("cells.h", "search.h") + _BODY)
    def native_search_ways(
        address: wp.array[wp.uint64],
        numbers: wp.array[wp.float64],
        sizes: wp.array[wp.int32],
        rows: wp.array[wp.int32],
        ends: wp.array[wp.float64],
        paths: wp.array[wp.int32],
        result: wp.array[wp.int32],
        nodes: wp.array[wp.float64],
        heap: wp.array[wp.float64],
        stamp: wp.array[wp.int32],
        budget: int,
        task: int,
    ): ...

    def airworthy_search_ways(
        address: wp.array[wp.uint64],  # of the cells of each row
        numbers: wp.array[wp.float64],  # lower corner, box, resolution (row, 10)
        sizes: wp.array[wp.int32],  # cells along each axis, bytes between them (row, 6)
        rows: wp.array[wp.int32],  # which cells each search takes
        ends: wp.array[wp.float64],  # start, goal (search, 2, 3)
        # output
        paths: wp.array[wp.int32],  # (search, PATH_MAX)
        result: wp.array[wp.int32],  # cells of the way, expansions (search, 2)
        # work
        nodes: wp.array[wp.float64],
        heap: wp.array[wp.float64],
        stamp: wp.array[wp.int32],
        budget: int,
    ):
        native_search_ways(address, numbers, sizes, rows, ends, paths, result, nodes, heap, stamp, budget, wp.tid())

    return wp.kernel(airworthy_search_ways, module="unique", module_options=MODULE_OPTIONS)
