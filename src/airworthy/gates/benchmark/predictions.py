"""Predictions by themselves: held against a fresh search between the grid's points, and timed along courses."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.random import Stream, flight_key, uniforms
from airworthy.gates.benchmark.families import GatesMethod
from airworthy.gates.benchmark.flights import PlanFlights
from airworthy.gates.planner.certificate import BoundaryPlan
from airworthy.gates.planner.network import percent_error
from airworthy.gates.planner.window import RANGES, predict_chain, route_of, situations_of
from airworthy.gates.task import FLOOR
from airworthy.trajectories.generated_courses import random_course

__all__ = ["errors_content", "number", "off_grid", "plan_row", "rows_of", "short", "us_per_gate"]

# ---- Numbers as JSON has them, and small; rows of flights and of plans ------------------------------------------------------


def rows_of(flown: PlanFlights, names: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return one row per flight."""
    r = flown.results
    outcomes, laps, skipped = r.outcomes, r.lap_time, r.skipped
    rows = []
    for k in range(len(outcomes)):
        into = "" if not r.crashed[k] else "floor" if r.crash_into[k] == FLOOR else f"gate {r.crash_into[k] + 1}"
        row: dict[str, Any] = {"course": names[k]} if names else {}
        drawn = {"drawn": {**flown.drawn[k].values, "rejected": flown.drawn[k].rejected}} if flown.drawn else {}
        rows.append(
            row
            | {
                "flight": k,
                "outcome": str(outcomes[k]),
                "skipped": int(skipped[k]),
                "wrong_way": int(r.wrong_way[k]),
                "into": into,
                "lap_time_s": number(laps[k]),
                "error_mean_m": number(flown.error_mean[k]),
                "error_max_m": number(flown.error_max[k]),
                "gate_offset_m": number(np.nanmax(np.abs(r.offsets[k]), initial=0.0)),
                "mass_kg": number(flown.mass[k]),
                **drawn,
            }
        )
    return rows


def plan_row(made: BoundaryPlan) -> dict[str, Any]:
    """Return how a plan came out, in short."""
    sure = made.certificate
    # As the predictor said it, before any mending: does that keep the limit?
    untouched = bool(np.all(made.stretched == 0) and np.all(made.lowered == 0))
    return {
        "course": made.name,
        "flyable": made.flyable,
        "reason": made.reason,
        "untouched": untouched,
        "stretches": int(np.sum(made.stretched)),
        "lowered": int(np.sum(made.lowered)),
        "clamped": made.clamped,
        "asked": len(made.situations),
        "lap_time_s": number(made.lap_time),
        "limit_used": number(limit_used(made)),
        "clearance_m": number(sure.clearance.bound if sure else np.nan),
        "verdict": sure.verdict if sure else "",
    }


def limit_used(made: BoundaryPlan) -> float:
    """Return the largest proved share of any limit; NaN without a path."""
    if made.certificate is None:
        return float("nan")
    checks = made.certificate.limit.checks
    return max(
        check.bound / check.limit if check.sense == "at most" else check.limit / max(check.bound, 1e-9) for check in checks
    )


def short(values: Any, digits: int = 4) -> Any:
    """Return rounded lists: figures need no more, and files stay small."""
    return np.round(np.asarray(values, dtype=np.float64), digits).tolist()


def number(value: Any) -> float | None:
    """Return a plain number; None where it is not finite, as JSON has it."""
    return float(value) if np.isfinite(value) else None


# -----------------------------------------------------------------------------------------------------------------------------

# Ours: enough for a mean; a second at most is spent on it.
_TIMED_COURSES = 40
_PATIENCE = 1.0
"""Most of the time for it [s], beyond a first course: a search is slow, and its time of no interest."""


def off_grid(count: int, seed: int, ranges: Array = RANGES) -> Array:
    """Return situations drawn evenly inside the ranges, heights among the grid's two, shape (count, 8).

    Args:
        count: Situations wanted.
        seed: Of the draws.
        ranges: Least and greatest value of each field, (8, 2) [m/s, m, rad].
    """
    draw = uniforms(flight_key(seed, np.arange(count)), 0, Stream.COURSE, 8)
    made = ranges[:, 0] + (ranges[:, 1] - ranges[:, 0]) * draw
    heights = [1, 4, 7]
    made[:, heights] = np.where(draw[:, heights] < 0.5, ranges[heights, 0], ranges[heights, 1])
    return np.asarray(made)


def errors_content(count: int, seed: int, own: GatesMethod) -> dict[str, Any]:
    """Return predictions held against a fresh search of the same kind as they learnt from, between its grid's points.

    Args:
        count: Situations.
        seed: Of them.
        own: A method with a `truth`.
    """
    assert own.truth is not None
    asked = off_grid(count, seed, own.ranges)
    found = np.asarray(own.truth(asked), dtype=np.float64)
    label = np.minimum(found, own.ends)
    predicted = np.asarray(own.ask(asked), dtype=np.float64)
    known = np.isfinite(label).all(axis=1) & np.isfinite(predicted).all(axis=1)
    keeps = (
        {}
        if own.keeps is None
        else {
            "keep_predicted": int(np.count_nonzero(own.keeps(asked[known], predicted[known]))),
            "keep_label": int(np.count_nonzero(own.keeps(asked[known], found[known]))),
        }
    )
    return {
        "asked": count,
        "without_label": int(np.count_nonzero(~np.isfinite(label).all(axis=1))),
        "clipped": int(np.count_nonzero((found[known] > own.ends).any(axis=1))),
        "known": int(np.count_nonzero(known)),
        "label": short(label[known]),
        "predicted": short(predicted[known]),
        "percent": [[number(x) for x in row] for row in short(percent_error(label[known], predicted[known]), 3)],
        **keeps,
    }


def us_per_gate(own: GatesMethod) -> float:
    """Return the median time per gate of predicting whole courses one after the other, one question at a time, on one core
    [us].

    The window's sliding, scaling and clamping are part of it; forming the situations of a course, which is done once for all
    its gates, is too.
    """
    courses = [random_course(k, 0) for k in range(_TIMED_COURSES)]
    took: list[float] = []
    begun = time.perf_counter()
    with _one_core():
        for course in [courses[0], *courses]:  # the first warms caches, and does not count
            begin = time.perf_counter()
            route = route_of(course.start, course.start_yaw, course.gates)
            predict_chain(situations_of(route)[None], own.ask, own.ranges)
            took.append((time.perf_counter() - begin) / route.count)
            if time.perf_counter() - begun > _PATIENCE and len(took) > 1:
                break
    return float(1e6 * np.median(took[1:]))


@contextmanager
def _one_core() -> Iterator[None]:
    """Stay on one core meanwhile, where the system can be told so."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
