"""Builds the kernel of the searches between points, and gives its texts to kernels of planners."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from airworthy.core.native_kernel import native_kernel, shared_source

# Source: spec/planners 3.4: A* on 100^3 cells centred between the two control points.
SIDE = 100
"""Cells along each edge of a search."""
NODE_SIZE, ITEM_SIZE = 2, 2
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


_ARGUMENTS = """
    address: uint64[]  # of the cells of each row
    numbers: float64[]  # lower corner, box, resolution (row, 10)
    sizes: int32[]  # cells along each axis, bytes between them (row, 6)
    rows: int32[]  # which cells each search takes
    ends: float64[]  # start, goal (search, 2, 3)
    # output
    paths: int32[]  # (search, PATH_MAX)
    result: int32[]  # cells of the way, expansions (search, 2)
    # work
    nodes: float64[]
    heap: float64[]
    stamp: int32[]
    budget: int
"""


@cache
def search_kernel() -> Any:
    """Return the searches as a Warp kernel for a CPU, one after the other in one memory; compiled at first launch, then
    cached.
    """
    return native_kernel("search_ways", planning_source("cells.h", "search.h") + _BODY, _ARGUMENTS, first=False)
