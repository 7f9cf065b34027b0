"""The least cost between two states, and the cubic that flies it: item 3 of the planners' acceptance list."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from airworthy.evaluation.verification.figure import Figure, below
from airworthy.pilots.fast.boundary import connection, cost_of_time, least_cost

__all__ = ["search_figures"]

WEIGHT, SPEED = 10.0, 3.0
"""Of time in the cost, and the cap [m/s]."""
SAMPLES, SPAN = 60_001, 30.0
"""Of the dense search, and over which time from the least one on [s]: 0.5 ms apart. Between two samples a minimum lies lower by
c'' dt^2 / 8, here some 1e-6 of the cost."""


def search_figures(draws: int = 200) -> Iterator[Figure]:
    """Random pairs of states, a third of them ending at rest.

    Args:
        draws: How many.
    """
    rng = np.random.default_rng(1)
    above = under = ends = effort = 0.0
    for case in range(draws):
        start, end = ((*rng.uniform(-8.0, 8.0, 3).tolist(), *rng.uniform(-3.0, 3.0, 3).tolist()) for _ in range(2))
        if case % 3 == 0:
            end = (*end[:3], 0.0, 0.0, 0.0)
        found, when = least_cost(start, end, WEIGHT, SPEED)
        least = max(abs(a - b) for a, b in zip(start[:3], end[:3], strict=True)) / (0.5 * SPEED)
        dense = _dense(start, end, least)
        above, under = max(above, found / dense - 1.0), max(under, 1.0 - found / dense)
        gap, spent = _flown(start, end, when)
        ends, effort = max(ends, gap), max(effort, abs(spent / found - 1.0))
    yield below(f"Fast-Planner 3: least cost above a dense search over time, {draws} pairs of states, worst", above, 1e-9)
    yield below("Fast-Planner 3: the same below it, worst", under, 1e-5)
    yield below("Fast-Planner 3: shot off its boundary conditions, position and velocity, worst", ends, 1e-9)
    yield below("Fast-Planner 3: cost of the shot off the least cost, worst, relative", effort, 1e-9)


def _dense(start: tuple[float, ...], end: tuple[float, ...], least: float) -> float:
    times = np.linspace(least, least + SPAN, SAMPLES)
    return float(np.min(cost_of_time(start, end, WEIGHT, times)))  # type: ignore[arg-type]


def _flown(start: tuple[float, ...], end: tuple[float, ...], t: float) -> tuple[float, float]:
    """How far the cubic is off both states, and the integral of |a|^2 plus the weight of its time."""
    c = connection(start, end, t)
    powers, slopes = t ** np.arange(4), np.array([0.0, 1.0, 2.0 * t, 3.0 * t * t])
    gaps = np.concatenate([c[:, 0], c[:, 1], c @ powers, c @ slopes]) - np.array([*start, *end])
    a, b = 2.0 * c[:, 2], 6.0 * c[:, 3]
    effort = float((a @ a) * t + (a @ b) * t**2 + (b @ b) * t**3 / 3.0)
    return float(np.abs(gaps).max()), effort + WEIGHT * t
