"""Where a control polygon meets obstacles, the ways around them, and the pairs that push control points there.

Readable twin of the second half of `native/problem.h`. Source: spec/planners sections 3.4 and 3.6.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array
from airworthy.planners.common.bspline import evaluate_uniform
from airworthy.planners.common.reference import evaluate_polynomial, quintic, quintic_pair
from airworthy.planners.common.search import Cells, shortest_grid_path
from airworthy.planners.ego.config import EgoConfig
from airworthy.planners.ego.costs import Pair
from airworthy.planners.ego.tries import MOST, PAIRS, SAMPLES, EgoStart, Questions

__all__ = ["Initial", "PairBook", "initial_path", "new_obstacles", "scan"]

Segment = tuple[int, int]


def dot(a: Array, b: Array) -> float:
    """Return the sum of three products, from the first."""
    return float(a[0] * b[0] + a[1] * b[1] + a[2] * b[2])


def length(a: Array) -> float:
    """Return the length of a vector (3,)."""
    return float(np.sqrt(dot(a, a)))


def scan(q: Array, cells: Cells) -> list[Segment]:
    """Return where the nearest two thirds of the polygon enter and leave obstacles; contacts shorter than 3 steps are
    ignored.
    """
    count, found = len(q), []
    # Half a voxel along the mean edge, as a share of it (spec/planners 3.4): no cell is stepped over.
    step = cells.resolution / (length(q[0] - q[-1]) / (count - 1)) / 2.0
    if not step > 1e-4:
        return []
    into = out = 0
    same, before, started, maybe = 3, False, False, False
    for i in range(3, count - 3 - (count - 6) // 3 + 1):
        shares = _down(1.0, step)
        for occupied in cells.taken(shares[:, None] * q[i - 1] + (1.0 - shares)[:, None] * q[i]):
            if occupied and not before:
                # Contacts shorter than three steps are flicker of the grid's corners, not obstacles (spec/planners 3.4, step
                # 1).
                if same > 2 or i == 3:
                    into, started = i - 1, True
                same, maybe = 0, False
            elif not occupied and before:
                out, maybe, same = i, True, 0
            else:
                same += 1
            ended = maybe and (same > 2 or i == count - 3)
            maybe = maybe and not ended
            before = bool(occupied)
            if started and ended:
                found.append((into, out))
                started = False
    return found


def _down(start: float, step: float) -> Array:
    """Numbers from `start` down to 0 as repeated subtraction gives them."""
    count = int(start / step) + 2
    values = np.subtract.accumulate(np.concatenate([[start], np.full(count, step)]))
    return np.asarray(values[values >= 0.0])


def new_obstacles(q: Array, cells: Cells, pairs: list[list[Pair]]) -> list[Segment] | None:
    """Return free control points around those in obstacles from which they are not pushed yet; None: the end is taken.

    Args:
        q: Control points (N, 3) [m], world.
        cells: Inflated occupancy.
        pairs: Of each control point, what it is already pushed from.
    """
    # Source: spec/planners 3.6: a point within one voxel of all its planes may still be pushed out, so it is not new.
    taken, found, i = cells.taken(q), [], 2
    last = len(q) - 3 - (len(q) - 6) // 3
    while i <= last:
        known = any(dot(q[i] - base, direction) < cells.resolution for base, direction in pairs[i])
        if taken[i] and not known:
            a, b = i - 1, i + 1
            while a > 0 and taken[a]:
                a -= 1
            while b < len(q) and taken[b]:
                b += 1
            if b >= len(q):
                return None
            found.append((a, b))
            i = b
        i += 1
    return found


@dataclass
class PairBook:
    """The pairs of all control points, and what finding them cost."""

    cells: Cells
    budget: int
    pairs: list[list[Pair]]
    expansions: int = 0

    def pair_up(self, q: Array, segments: list[Segment]) -> None:
        """Find ways around segments, then pairs of the control points between."""
        for segment in segments:
            path = shortest_grid_path(self.cells, q[segment[0]], q[segment[1]], self.budget)
            self.expansions += path.expansions
            if len(path.points):
                self._pair_segment(q, segment, path.points)

    def _pair_segment(self, q: Array, segment: Segment, path: Array) -> None:
        first, second = segment
        paired: set[int] = set()
        got = -1
        for j in range(first + 1, second):
            x = crossing(path, q[j], q[j + 1] - q[j - 1])
            base = None if x is None else self._surface(x, q[j])
            if x is not None and base is not None:
                self._add(j, base, x - q[j])
                paired.add(j)
                got = j
        if second - first == 1:
            middle = (q[second] + q[first]) / 2.0
            x = crossing(path, middle, q[second] - q[first])
            # Nearer than 1 cm the direction of the push would be rounding (spec/planners 3.4, step 3).
            if x is not None and length(x - middle) > 0.01:
                self._add(first, q[first].copy(), x - middle)
                paired.add(first)
                got = first
        if got < 0:
            return
        for j in range(got + 1, second + 1):
            self._inherit(j, j - 1, paired)
        for j in range(got - 1, first - 1, -1):
            self._inherit(j, j + 1, paired)

    def _surface(self, x: Array, at: Array) -> Array | None:
        """From x towards `at`: the last free point before an obstacle, or `at`; None where both are one."""
        whole, step = length(x - at), self.cells.resolution
        # The path passes through the control point itself: there is no direction to push it.
        if not whole > 1e-5:
            return None
        for a in _down(whole, step):
            occupied = bool(self.cells.taken(a / whole * x + (1.0 - a / whole) * at))
            if occupied or a < step:
                a = a + step if occupied else a
                return np.asarray(a / whole * x + (1.0 - a / whole) * at)
        return None

    def _add(self, j: int, base: Array, away: Array) -> None:
        if len(self.pairs[j]) < PAIRS:
            self.pairs[j].append((base, away / length(away)))

    def _inherit(self, j: int, source: int, paired: set[int]) -> None:
        if j not in paired and self.pairs[source] and len(self.pairs[j]) < PAIRS:
            self.pairs[j].append(self.pairs[source][-1])


def crossing(path: Array, at: Array, normal: Array) -> Array | None:
    """Return where the plane through `at` meets a way (k, 3), walked from its middle; None where it does not.

    Args:
        path: Points (k, 3) [m] of a path around the obstacle.
        at: A point of the plane, (3,) [m].
        normal: Of the plane, (3,), any length.
    """
    here = len(path) // 2
    began = side = dot(path[here] - at, normal)
    while True:
        before = path[here]
        here += -1 if side >= 0.0 else 1
        if not 0 <= here < len(path):
            return None
        side = dot(path[here] - at, normal)
        if side * began <= 0.0 and (abs(side) > 0.0 or abs(began) > 0.0):
            edge = path[here] - before
            across = dot(normal, edge)
            return None if across == 0.0 else np.asarray(path[here] + edge * (dot(normal, at - path[here]) / across))


# -----------------------------------------------------------------------------------------------------------------------------
# Initial paths of EGO-Planner: from a polynomial, through a random point, or from the trajectory that is followed.
#
# Readable twin of the first half of `native/try.h`. Source: spec/planners section 3.3.

# At least 7 samples, the step divided by 1.5 until there are (spec/planners 3.3). 60 rounds are ours: a step 3e-11 of the first
# is only reached where the numbers went wrong.
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
    """Return the initial path of one try; None where none of 7 to `MOST` - 2 points is found.

    Args:
        config: Numbers of the planner.
        asked: Of all tries.
        row: Which try.
    """
    found = None
    if asked.kind[row] == EgoStart.WARM:
        found = _warm(config, asked, row)
    return found or _polynomial(config, asked, row)


def _polynomial(config: EgoConfig, asked: Questions, row: int) -> Initial | None:
    start, target = asked.start[row], asked.target[row]
    v, a = float(asked.speed[row]), float(asked.acceleration[row])
    distance = length(start[0] - target[0])
    # Times of spec/planners 3.3: where full speed cannot be reached and shed again within the distance, sqrt(D / a).
    short = v * v / a > distance
    time = float(np.sqrt(distance / a)) if short else (distance - v * v / a) / v + 2.0 * v / a
    curve = _curve(asked, row, time, distance)
    # [R] ego-planner, plan_manage/src/planner_manager.cpp: dt = 1.2 ctrl_dist / max_vel, 20 % more time for each distance than
    # full speed needs. The factor 1.5 is taken back by the first round.
    step = 1.2 * config.spacing / v * 1.5
    for _ in range(_ROUNDS):
        step /= 1.5
        points: list[Array] = []
        t, far = 0.0, False
        last = curve(0.0, 0)
        while t < time:
            p = curve(t, 0)
            # 1.5: samples farther apart would leave the control polygon too coarse to see obstacles between (spec/planners
            # 3.3).
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
    """Return a point beside the middle, further away after more failures."""
    start, target = asked.start[row, 0], asked.target[row, 0]
    d = start - target
    h = _unit(np.array([d[1], -d[0], 0.0]))
    w = _unit(np.array([d[1] * h[2] - d[2] * h[1], d[2] * h[0] - d[0] * h[2], d[0] * h[1] - d[1] * h[0]]))
    # [R] ego-planner, planner_manager.cpp, by spec/planners 3.3: 0.989 - 0.978 / (failures + 0.989), about 0.0001 before the
    # first failure and towards 0.989 after many: detours widen slowly. 0.8 and 0.4 of the distance are the whole width and
    # height of where middles are drawn.
    s = 0.989 - 0.978 / (float(asked.failures[row]) + 0.989)
    side = (float(asked.draws[row, 0]) - 0.5) * distance * 0.8 * s
    up = (float(asked.draws[row, 1]) - 0.5) * distance * 0.4 * s
    return np.asarray((start + target) / 2.0 + side * h + up * w)


def _unit(a: Array) -> Array:
    size = length(a)
    return a / size if size > 0.0 else np.zeros(3)


def _warm(config: EgoConfig, asked: Questions, row: int) -> Initial | None:
    start, target = asked.start[row], asked.target[row]
    # As in `_polynomial`; the five times longer step of the source is only for targets within 0.1 m, which `close` refuses
    # before.
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
    # More than three times horizon / spacing: the old trajectory winds, and a straight start is the better one (spec/planners
    # 3.3).
    if len(points) < _LEAST or len(points) > config.horizon / config.spacing * 3.0:
        return None
    return Initial(np.array(points), dt, np.stack([start[1], target[1]]), np.stack([start[2], np.zeros(3)]))


def _ahead(asked: Questions, row: int, dt: float) -> Array | None:
    """Return samples of the rest of the trajectory, and of a quintic from its end to the target."""
    count, before = int(asked.previous_count[row]), float(asked.previous_interval[row])
    times: list[float] = []
    t, end = float(asked.previous_time[row]), (count - 3) * before
    control, interval = asked.previous[row, None, :count], np.array([before])
    # A millisecond past the end still counts: sums of intervals miss it by rounding.
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
    # Twice the time at full speed: the source's allowance for starting from the old end (spec/planners 3.3).
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
