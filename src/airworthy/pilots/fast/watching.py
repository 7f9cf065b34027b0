"""Where plans meet what the maps show by now, and how near the goals are to something: many flights in one launch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from airworthy.pilots.fast.kernel import Task
from airworthy.pilots.fast.plans import FlightPlans
from airworthy.pilots.fast.records import PROBE, WATCH
from airworthy.pilots.fast.windows import View, Windows
from airworthy.pilots.fast.work import Work
from airworthy.pilots.planning.bspline import duration, evaluate

__all__ = ["Seen", "Watcher", "first_meeting", "probe"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

STEP = 0.02
"""Between samples of a plan [s]."""


@dataclass(frozen=True, eq=False)
class Seen:
    """Of k flights."""

    hit: Array
    """Seconds until the plan meets something; -1: it does not."""
    distance: Array
    """From where the plan is now to there [m]."""
    goal_near: NDArray[np.bool_]
    """The goal is not farther from something than it should be."""


class Watcher:
    """Walks along plans.

    Args:
        ahead: How far from where each plan is now [m].
        goal_least: How far goals should be from what is occupied [m].
    """

    def __init__(self, ahead: float, goal_least: float):
        self._ahead, self._goal_least, self._work = ahead, goal_least, Work(8)

    def look(self, plans: FlightPlans, places: Ints, time: Array, goal: Array, windows: Windows) -> Seen:
        """Look along the plans of flights (k,) from times (k,) on; goals (k, 3)."""
        records = np.zeros(len(places), WATCH)
        plans.copy_to(records, places)
        records["window"], records["goal"], records["goal_least"] = np.arange(len(places)), goal, self._goal_least
        records["now"], records["ahead"] = np.clip(time - plans.begin[places], 0.0, plans.duration[places]), self._ahead
        self._work.launch(Task.WATCH, windows, records)
        return Seen(records["hit"].copy(), records["distance"].copy(), records["goal_near"] != 0)


def probe(work: Work, which: list[int], points: list[Array], windows: Windows) -> list[Array]:
    """Distances (m,) [m] at the cells of points (m, 3), m up to `MOST_PROBES`, in the windows of those numbers."""
    records = np.zeros(len(points), PROBE)
    for record, at in zip(records, points, strict=True):
        record["count"] = len(at)
        record["points"][: at.size] = at.reshape(-1)
    records["window"] = which
    work.launch(Task.PROBE, windows, records)
    return [record["distance"][: len(at)].copy() for record, at in zip(records, points, strict=True)]


def first_meeting(control: Array, knots: Array, now: float, ahead: float, view: View) -> tuple[float, float]:
    """Seconds from `now` until a plan first meets something, and how far away that is [m]; -1 if it does not. The twin."""
    whole = float(duration(knots[None])[0])
    times = now + STEP * np.arange(int((whole - now) / STEP) + 2)
    points = evaluate(control[None], knots[None], times[None])[0]
    away, taken = np.sqrt(((points - points[0]) ** 2).sum(1)), view.taken(points)
    for k in range(1, len(times)):
        if away[k - 1] >= ahead or times[k] >= whole:
            break
        if taken[k]:
            return STEP * k, float(away[k - 1])
    return -1.0, 0.0
