"""Predictions by themselves: held against a fresh search between the grid's points, and timed along courses."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.random import Stream, flight_key, uniforms
from airworthy.evaluation.gates.contestants import Contestant
from airworthy.evaluation.gates.rows import number, short
from airworthy.pilots.boundary.errors import percent_error
from airworthy.pilots.boundary.window import RANGES, predict_chain, route_of, situations_of
from airworthy.trajectories.generated_courses import random_course

__all__ = ["errors_content", "off_grid", "us_per_gate"]

Array = NDArray[np.float64]
_TIMED_COURSES = 40
_PATIENCE = 1.0
"""Most of the time for it [s], beyond a first course: a search is slow, and its time of no interest."""


def off_grid(count: int, seed: int, ranges: Array = RANGES) -> Array:
    """Situations drawn evenly inside the ranges, heights among the grid's two, shape (count, 8)."""
    draw = uniforms(flight_key(seed, np.arange(count)), 0, Stream.COURSE, 8)
    made = ranges[:, 0] + (ranges[:, 1] - ranges[:, 0]) * draw
    heights = [1, 4, 7]
    made[:, heights] = np.where(draw[:, heights] < 0.5, ranges[heights, 0], ranges[heights, 1])
    return np.asarray(made)


def errors_content(count: int, seed: int, own: Contestant) -> dict[str, Any]:
    """Predictions held against a fresh search of the same kind as they learnt from, between its grid's points.

    Args:
        count: Situations.
        seed: Of them.
        own: A contestant with a `truth`.
    """
    assert own.truth is not None
    asked = off_grid(count, seed, own.ranges)
    found = np.asarray(own.truth(asked), dtype=np.float64)
    label = np.minimum(found, own.ends)
    told = np.asarray(own.ask(asked), dtype=np.float64)
    known = np.isfinite(label).all(axis=1) & np.isfinite(told).all(axis=1)
    keeps = (
        {}
        if own.keeps is None
        else {
            "keep_predicted": int(np.count_nonzero(own.keeps(asked[known], told[known]))),
            "keep_label": int(np.count_nonzero(own.keeps(asked[known], found[known]))),
        }
    )
    return {
        "asked": count,
        "without_label": int(np.count_nonzero(~np.isfinite(label).all(axis=1))),
        "clipped": int(np.count_nonzero((found[known] > own.ends).any(axis=1))),
        "known": int(np.count_nonzero(known)),
        "label": short(label[known]),
        "predicted": short(told[known]),
        "percent": [[number(x) for x in row] for row in short(percent_error(label[known], told[known]), 3)],
        **keeps,
    }


def us_per_gate(own: Contestant) -> float:
    """Median time per gate of predicting whole courses one after the other, one question at a time, on one core [us].

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
