"""Initial paths of EGO-Planner: from a polynomial, through a random point, or from the trajectory that is followed.

Readable twin of the first half of `native/try.h`. Source: spec/planners section 3.3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from airworthy.pilots.ego.config import EgoConfig
from airworthy.pilots.ego.ego_kernel import MOST, SAMPLES
from airworthy.pilots.ego.pairs import length
from airworthy.pilots.ego.tries import EgoStart, Questions
from airworthy.pilots.planning.bspline import evaluate_uniform
from airworthy.pilots.planning.reference_polynomials import evaluate_polynomial, quintic, quintic_pair

__all__ = ["Initial", "initial_path"]

Array = NDArray[np.float64]
_LEAST, _ROUNDS = 7, 60


@dataclass(frozen=True, eq=False)
class Initial:
    """Points to be fitted."""

    points: Array
    """(K, 3) [m]"""
    interval: float
    """Between them [s]."""
    velocity: Array
    """At start and end, (2, 3)."""
    acceleration: Array
    """At start and end, (2, 3)."""


def initial_path(config: EgoConfig, asked: Questions, row: int) -> Initial | None:
    """The initial path of one try; None where none of 7 to `MOST` - 2 points is found."""
    found = None
    if asked.kind[row] == EgoStart.WARM:
        found = _warm(config, asked, row)
    return found or _polynomial(config, asked, row)


def _polynomial(config: EgoConfig, asked: Questions, row: int) -> Initial | None:
    start, target = asked.start[row], asked.target[row]
    v, a = float(asked.speed[row]), float(asked.acceleration[row])
    distance = length(start[0] - target[0])
    short = v * v / a > distance
    time = float(np.sqrt(distance / a)) if short else (distance - v * v / a) / v + 2.0 * v / a
    curve = _curve(asked, row, time, distance)
    step = 1.2 * config.spacing / v * 1.5
    for _ in range(_ROUNDS):
        step /= 1.5
        points: list[Array] = []
        t, far = 0.0, False
        last = curve(0.0, 0)
        while t < time:
            p = curve(t, 0)
            if length(last - p) > 1.5 * config.spacing:
                far = True
                break
            if len(points) >= MOST - 2:
                return None
            points.append(p)
            last = p
            t += step
        if not far and len(points) >= _LEAST:
            velocity = np.stack([curve(0.0, 1), target[1]])
            return Initial(np.array(points), step, velocity, np.stack([curve(0.0, 2), curve(t - step, 2)]))
    return None


def _curve(asked: Questions, row: int, time: float, distance: float) -> Callable[[float, int], Array]:
    start, target = asked.start[row], asked.target[row]
    if asked.kind[row] != EgoStart.RANDOM:
        whole = quintic(start, target, time)
        return lambda t, order: evaluate_polynomial(whole, t, order)
    half = time / 2.0
    first, second = quintic_pair(start, _random_middle(asked, row, distance), target, half)
    return lambda t, order: evaluate_polynomial(second, t - half, order) if t > half else evaluate_polynomial(first, t, order)


def _random_middle(asked: Questions, row: int, distance: float) -> Array:
    """A point beside the middle, further away after more failures."""
    start, target = asked.start[row, 0], asked.target[row, 0]
    d = start - target
    h = _unit(np.array([d[1], -d[0], 0.0]))
    w = _unit(np.array([d[1] * h[2] - d[2] * h[1], d[2] * h[0] - d[0] * h[2], d[0] * h[1] - d[1] * h[0]]))
    s = 0.989 - 0.978 / (float(asked.failures[row]) + 0.989)
    side = (float(asked.draws[row, 0]) - 0.5) * distance * 0.8 * s
    up = (float(asked.draws[row, 1]) - 0.5) * distance * 0.4 * s
    return np.asarray((start + target) / 2.0 + side * h + up * w)


def _unit(a: Array) -> Array:
    size = length(a)
    return a / size if size > 0.0 else np.zeros(3)


def _warm(config: EgoConfig, asked: Questions, row: int) -> Initial | None:
    start, target = asked.start[row], asked.target[row]
    dt = 1.2 * config.spacing / float(asked.speed[row])
    samples = _ahead(asked, row, dt)
    if samples is None or len(samples) < 2:
        return None
    gaps = np.array([length(g) for g in np.diff(samples, axis=0)])
    arcs = np.add.accumulate(np.concatenate([[0.0], gaps]))
    spacing = config.spacing * 1.5
    points: list[Array] = []
    for _ in range(_ROUNDS):
        spacing /= 1.5
        made = _resampled(samples, arcs, spacing)
        if made is None:
            return None
        points = [*made, target[0]]
        if len(points) >= _LEAST:
            break
    if len(points) < _LEAST or len(points) > config.horizon / config.spacing * 3.0:
        return None
    return Initial(np.array(points), dt, np.stack([start[1], target[1]]), np.stack([start[2], np.zeros(3)]))


def _ahead(asked: Questions, row: int, dt: float) -> Array | None:
    """Samples of the rest of the trajectory, and of a quintic from its end to the target."""
    count, before = int(asked.previous_count[row]), float(asked.previous_interval[row])
    times: list[float] = []
    t, end = float(asked.previous_time[row]), (count - 3) * before
    control, interval = asked.previous[row, None, :count], np.array([before])
    while t < end + 1e-3:
        if len(times) >= SAMPLES:
            return None
        times.append(t)
        t += dt
    if not times or count < 4:
        return None
    t -= dt
    last = np.stack([evaluate_uniform(control, interval, np.array([[t]]), order)[0, 0] for order in range(3)])
    samples = list(evaluate_uniform(control, interval, np.array([times]))[0])
    rest = length(last[0] - asked.target[row, 0]) / float(asked.speed[row]) * 2.0
    if rest > dt:
        onwards, t = quintic(last, asked.target[row], rest), dt
        while t < rest:
            if len(samples) >= SAMPLES:
                return None
            samples.append(evaluate_polynomial(onwards, t))
            t += dt
    return np.array(samples)


def _resampled(samples: Array, arcs: Array, spacing: float) -> list[Array] | None:
    """Points of a polygon at equal distances along it."""
    points: list[Array] = []
    at, i = 0.0, 0
    while i + 1 < len(samples) and at <= arcs[-1]:
        if not arcs[i] <= at < arcs[i + 1]:
            i += 1
            continue
        if len(points) >= MOST - 3:
            return None
        share = (at - arcs[i]) / (arcs[i + 1] - arcs[i])
        points.append(share * samples[i + 1] + (1.0 - share) * samples[i])
        at += spacing
    return points
