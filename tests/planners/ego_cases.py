"""Situations for EGO-Planner: grids with pillars, starts, targets, trajectories that are followed."""

from __future__ import annotations

import numpy as np
from benchmarks.planner_maps import SolidMaps, mission, pillars

from airworthy.planners.common.search import CellTable
from airworthy.planners.ego.config import EgoConfig
from airworthy.planners.ego.tries import MOST, EgoStart, Questions, ReboundTries

LOWER, UPPER = (-2.0, -4.0, 0.0), (12.0, 4.0, 2.5)


def questions(seed: int, count: int, speed: float = 2.0, acceleration: float = 3.0) -> tuple[CellTable, Questions]:
    """Tries among pillars, one third from polynomials, one from random points, one from what an earlier try found."""
    rng = np.random.default_rng(seed)
    grids = []
    for _ in range(count):
        centres = np.stack([rng.uniform(1.5, 7.0, 5), rng.uniform(-2.5, 2.5, 5)], axis=1)
        grids.append(pillars(centres, rng.uniform(0.15, 0.5, 5), LOWER, UPPER))
    starts = np.stack([np.zeros(count), rng.uniform(-1, 1, count), rng.uniform(0.6, 1.6, count)], axis=1)
    task = mission(starts, starts + np.array([7.5, 0, 0]), LOWER, UPPER)
    table = CellTable(SolidMaps(grids, task), task, range(count), 0.1)
    start, target = np.zeros((count, 3, 3)), np.zeros((count, 3, 3))
    start[:, 0], start[:, 1], start[:, 2] = (
        starts,
        rng.uniform((0, -1, 0), (2, 1, 0.2), (count, 3)),
        rng.normal(size=(count, 3)),
    )
    target[:, 0], target[:, 1] = starts + np.array([7.3, 0, 0]), (speed, 0.0, 0.0)
    rest = np.zeros(count)
    asked = Questions(
        np.arange(count),
        start,
        target,
        rest + speed,
        rest + acceleration,
        rng.uniform(size=(count, 2)),
        rng.integers(0, 6, count).astype(float),
        np.where(np.arange(count) % 2, EgoStart.RANDOM, EgoStart.POLYNOMIAL),
        np.zeros((count, MOST, 3)),
        rest.astype(int),
        rest + 1.0,
        rest,
    )
    return table, _some_warm(table, asked)


def _some_warm(table: CellTable, asked: Questions) -> Questions:
    """Let every third try go on from what it finds now, a second later and with one obstacle more near the way."""
    found = ReboundTries(EgoConfig()).run(table, asked)
    warm = (np.arange(len(asked.row)) % 3 == 0) & (found.outcome == 0)
    kind, start = np.where(warm, EgoStart.WARM, asked.kind), asked.start.copy()
    for i in np.flatnonzero(warm):
        q, dt = found.control[i, : found.count[i]], found.interval[i]
        at = int(1.0 / dt)
        start[i, 0] = (q[at] + 4 * q[at + 1] + q[at + 2]) / 6
        start[i, 1], start[i, 2] = (q[at + 2] - q[at]) / (2 * dt), (q[at + 2] - 2 * q[at + 1] + q[at]) / dt**2
    target = asked.target.copy()
    target[:, 0, 0] += 1.0
    time = np.array([int(1.0 / max(dt, 0.01)) * dt for dt in found.interval])
    return Questions(
        asked.row,
        start,
        target,
        asked.speed,
        asked.acceleration,
        asked.draws,
        asked.failures,
        kind,
        found.control,
        found.count,
        found.interval,
        time,
    )
