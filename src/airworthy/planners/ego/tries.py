"""Tries of EGO-Planner for many flights at once: what goes in, what comes out, and the launch.

Builds the kernel of EGO-Planner: one task, one try of one flight.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayInt, NDArray
from airworthy.core.native_kernel import native_kernel, quiet_launch, quiet_warp
from airworthy.planners.common.lbfgs import lbfgs_source, lbfgs_work
from airworthy.planners.common.search import CellTable, SearchMemory, planning_source
from airworthy.planners.ego.config import EgoConfig

__all__ = [
    "DOUBLES",
    "INTS",
    "MOST",
    "NUMBERS",
    "PAIRS",
    "PATHS",
    "RESULTS",
    "SAMPLES",
    "STATES",
    "EgoStart",
    "Questions",
    "ReboundResults",
    "ReboundTries",
    "ego_kernel",
    "ego_source",
    "settings_of",
]


# Ours: a kernel cannot ask for more memory while it runs.
MOST, PAIRS, PATHS, SAMPLES = 128, 32, 32_768, 1_024
"""Most control points, pairs of each, cells of all ways, and samples of a warm start."""
STATES, NUMBERS, RESULTS = 18, 7, 7
"""Doubles per try: start and target (position, velocity, acceleration each); see `EgoTry::run`; see the kernel."""

# Per array of a try, so that the Python side knows the sizes and the native side only offsets.
_DOUBLES = {
    "problem.q": 3 * MOST,
    "problem.parts": 9 * MOST,
    "problem.pairs": 6 * MOST * PAIRS,
    "problem.path_centres": 3 * MOST,
    "points": 3 * MOST,
    "fit_work": 3 * MOST,
    "solver_work": lbfgs_work(3 * MOST),
    "samples": 3 * SAMPLES,
    "arcs": SAMPLES,
    "knots": MOST + 4,
    "x": 3 * MOST,
}
_INTS = {
    "problem.pair_count": MOST,
    "problem.paths": PATHS,
    "problem.path_ends": MOST + 1,
    "problem.first": MOST,
    "problem.second": MOST,
    "problem.paired": MOST,
}
DOUBLES, INTS = sum(_DOUBLES.values()), sum(_INTS.values())
"""Work memory of one try at a time."""

_BODY = """
SearchSpace space = {(SearchNode*)nodes.data, (SearchItem*)heap.data, stamp.data};
Cells cells((const unsigned long long*)address.data, corners.data, sizes.data, rows.data[task]);
const double* r = reals.data;
const int* w = wholes.data;
EgoTry t;
CARVED
t.problem.cells = &cells;
t.problem.space = &space;
t.problem.set = EgoSettings{r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8], r[9], w[0], w[1], w[2]};
t.start = states.data + 18 * task;
t.target = t.start + 9;
t.numbers = numbers.data + 7 * task;
t.previous = previous.data + (long long)3 * EGO_MOST * task;
t.previous_count = kinds.data[2 * task];
t.mode = kinds.data[2 * task + 1];
t.evaluations = t.count = 0;
double* out = results.data + 7 * task;
out[0] = t.run();
out[1] = t.count;
out[2] = t.interval;
out[3] = (double)t.problem.expansions;
out[4] = t.evaluations;
out[5] = t.rebounds;
out[6] = t.restarts;
for (int i = 0; i < 3 * t.count; ++i) control.data[(long long)3 * EGO_MOST * task + i] = t.problem.q[i];
"""


def ego_source() -> str:
    """Complete native source of a try."""
    folder = files("airworthy.planners.ego").joinpath("native")
    problem, attempt = (folder.joinpath(name).read_text() for name in ("problem.h", "try.h"))
    parts = [planning_source("cells.h", "search.h", "bspline.h", "polynomial.h"), problem]
    # In this order: each text uses the names of those before it.
    parts += [lbfgs_source("EgoProblem", "EgoLbfgs"), attempt, _BODY.replace("CARVED", _carving())]
    text = "\n".join(parts)
    for name, value in {"MOST": MOST, "PAIRS": PAIRS, "PATHS": PATHS, "SAMPLES": SAMPLES}.items():
        text = text.replace(f"EGO_{name}", str(value))
    return text


def _carving() -> str:
    """Statements that give every array of a try its share of the work memory."""
    lines = []
    for memory, shares in (("doubles", _DOUBLES), ("ints", _INTS)):
        at = 0
        for name, size in shares.items():
            lines.append(f"t.{name} = {memory}.data + {at};")
            at += size
    return "\n".join(lines)


_ARGUMENTS = """
    address: uint64[]  # of the cells of each row
    corners: float64[]  # lower corner, box, resolution (row, 10)
    sizes: int32[]  # cells along each axis, bytes between them (row, 6)
    rows: int32[]  # which cells each try takes
    states: float64[]  # start and target: position, velocity, acceleration (try, 2, 3, 3)
    numbers: float64[]  # speed, acceleration, two random, failures, previous interval, time on it (try, 7)
    previous: float64[]  # control points of the trajectory that is followed (try, MOST, 3)
    kinds: int32[]  # their number, kind of the initial path (try, 2)
    reals: float64[]  # settings
    wholes: int32[]
    # output
    control: float64[]  # control points (try, MOST, 3)
    results: float64[]  # outcome, control points, interval, expansions, evaluations, rebounds, restarts
    # work
    doubles: float64[]
    ints: int32[]
    nodes: float64[]
    heap: float64[]
    stamp: int32[]
"""


@cache
def ego_kernel() -> Any:
    """Return tries as a Warp kernel for a CPU, one after the other in one memory; compiled at first launch, then cached on
    disk.
    """
    # One memory serves all tries, so that they cannot run side by side; 32,768 cells of ways for each would be much.
    return native_kernel("ego", ego_source(), _ARGUMENTS, first=False)


class EgoStart(IntEnum):
    """Where the initial path of a try comes from; the numbers are those of the native text."""

    POLYNOMIAL = 0
    WARM = 1
    """The trajectory that is followed, and on to the target."""
    RANDOM = 2
    """Two polynomials through a random point."""


@dataclass(frozen=True, eq=False)
class Questions:
    """k tries."""

    row: ArrayInt
    """Rows of the table of cells, (k,)."""
    start: Array
    """Position, velocity, acceleration, (k, 3, 3)."""
    target: Array
    """Position, velocity, and zeros, (k, 3, 3)."""
    speed: Array
    """(k,) [m/s]"""
    acceleration: Array
    """(k,) [m/s^2]"""
    draws: Array
    """Two uniform numbers for random starts, (k, 2)."""
    failures: Array
    """Failed tries in a row, (k,): random points stray further."""
    kind: ArrayInt
    """`EgoStart`, (k,)."""
    previous: Array
    """Control points of what is followed, (k, MOST, 3)."""
    previous_count: ArrayInt
    """How many of them, (k,)."""
    previous_interval: Array
    """(k,) [s]"""
    previous_time: Array
    """How far it has been followed, (k,) [s]."""


@dataclass(frozen=True, eq=False)
class ReboundResults:
    """What k tries gave."""

    outcome: ArrayInt
    """`EgoOutcome`, (k,)."""
    control: Array
    """Control points, (k, MOST, 3)."""
    count: ArrayInt
    """How many of them, (k,)."""
    interval: Array
    """(k,) [s]"""
    expansions: ArrayInt
    """Of all searches, (k,)."""
    evaluations: ArrayInt
    """Of all minimisations, (k,)."""
    rebounds: ArrayInt
    """Times that new obstacles were discovered on the way, (k,)."""
    restarts: ArrayInt
    """Times that a minimum was in collision, (k,)."""


def settings_of(config: EgoConfig) -> tuple[Array, NDArray[np.int32]]:
    """Return settings as the kernel takes them."""
    c = config
    reals = [c.spacing, c.horizon, c.tolerance, c.smooth, c.collision, c.feasibility, c.fitness]
    reals += [c.clearance, c.close, c.gradient]
    return np.array(reals), np.array([c.expansions, c.evaluations, c.iterations], np.int32)


class ReboundTries:
    """Runs tries; holds the work memory of one at a time."""

    def __init__(self, config: EgoConfig):
        self._memory = SearchMemory()
        self._work = (np.zeros(DOUBLES), np.zeros(INTS, np.int32))
        self._settings = settings_of(config)

    def run(self, table: CellTable, q: Questions) -> ReboundResults:
        """Return every try by itself; the order does not matter."""
        wp = quiet_warp()
        k = len(q.row)
        control, results = np.zeros((k, MOST, 3)), np.zeros((k, RESULTS))
        if k:
            states = np.concatenate([q.start, q.target], axis=1).reshape(k, STATES)
            columns = (q.speed, q.acceleration, *q.draws.T, q.failures, q.previous_interval, q.previous_time)
            numbers = np.stack(columns, axis=1).astype(float).reshape(k, NUMBERS)
            kinds = np.stack([q.previous_count, q.kind], axis=1).astype(np.int32)
            given = [table.address, table.numbers, table.sizes, q.row.astype(np.int32), states, numbers, q.previous, kinds]
            arrays = [*given, *self._settings, control, results, *self._work]
            # Not copied: results are written into the very arrays that are read below.
            held = [wp.array(np.ascontiguousarray(a).reshape(-1), device="cpu", copy=False) for a in arrays]
            quiet_launch(ego_kernel(), k, [*held, *self._memory.arguments], "cpu")
        # All but the interval are counts, exact in doubles.
        whole = results.astype(np.int64)
        return ReboundResults(whole[:, 0], control, whole[:, 1], results[:, 2].copy(), *(whole[:, i] for i in range(3, 7)))
