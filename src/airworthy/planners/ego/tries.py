"""Tries of EGO-Planner for many flights at once: what goes in, what comes out, and the launch."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from airworthy.core.arrays import Array, ArrayInt
from airworthy.core.native_kernel import quiet_launch, quiet_warp
from airworthy.planners.common.search import CellTable, SearchMemory
from airworthy.planners.ego.config import EgoConfig
from airworthy.planners.ego.ego_kernel import DOUBLES, INTS, MOST, NUMBERS, RESULTS, STATES, ego_kernel

__all__ = ["EgoStart", "Questions", "ReboundResults", "ReboundTries", "settings_of"]


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
            held = [wp.array(np.ascontiguousarray(a).reshape(-1), device="cpu", copy=False) for a in arrays]
            quiet_launch(ego_kernel(), k, [*held, *self._memory.arguments], "cpu")
        whole = results.astype(np.int64)
        return ReboundResults(whole[:, 0], control, whole[:, 1], results[:, 2].copy(), *(whole[:, i] for i in range(3, 7)))
