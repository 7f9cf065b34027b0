"""The gates task: fly through every gate in order, touch none; judged for many flights at once.

Source: spec/boundary_predictor sections 6 and 11. A gate is passed where a flight crosses its plane in the direction of flight,
between two physics steps, within the opening. A crash is any contact of the body with a frame, the floor or an obstacle.
A passage the wrong way is no success, whatever follows: the body went through an opening against the direction of flight, from
wholly in front of the plane to wholly behind it (ours; the paper's courses cannot ask for it).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from math import isfinite

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayInt, ArrayLike, NDArray
from airworthy.core.errors import AirworthyError
from airworthy.core.schema import check_fields
from airworthy.tasks.outcomes import first_match
from airworthy.trajectories import Gate, YawedBox
from airworthy.trajectories.gates import match_in_order

__all__ = ["FLOOR", "OBSTACLE", "Bars", "GateJudge", "GateProtocol", "GateResults", "judge_path"]

# ---- Bodies against frames: an upright cylinder and the four bars of each gate, for many flights at once --------------------

# Beyond the numbers of gates (0 and up), FLOOR and OBSTACLE.
NOTHING = -9


@dataclass(frozen=True)
class Bars:
    """Distinct gates of every flight, padded to the most of any; f flights, g gates."""

    center: Array
    """[m], (f, g, 3)."""
    normal: Array
    """Direction of flight, (f, g, 3)."""
    left: Array
    """(f, g, 3)"""
    opening: Array
    """Half width and half height [m], (f, g, 2)."""
    bar: Array
    """Side of the bars [m], (f, g)."""
    present: ArrayBool
    """(f, g)"""


def bars_of(courses: Sequence[Sequence[Gate]]) -> Bars:
    """Return frames of each flight's distinct gates."""
    most = max(map(len, courses))
    shape = (len(courses), most)
    center, yaw = np.zeros((*shape, 3)), np.zeros(shape)
    opening, bar, present = np.ones((*shape, 2)), np.zeros(shape), np.zeros(shape, dtype=bool)
    for row, gates in enumerate(courses):
        n = len(gates)
        center[row, :n] = [gate.position for gate in gates]
        yaw[row, :n] = [gate.yaw for gate in gates]
        opening[row, :n] = [gate.opening for gate in gates]
        bar[row, :n] = [gate.bar for gate in gates]
        present[row, :n] = True
    zero = np.zeros(shape)
    normal = np.stack((np.cos(yaw), np.sin(yaw), zero), axis=-1)
    left = np.stack((-np.sin(yaw), np.cos(yaw), zero), axis=-1)
    return Bars(center, normal, left, 0.5 * opening, bar, present)


def body_extent(radius: float, half_height: float, up: Array | None) -> tuple[Array | float, Array | float]:
    """Return radius and half height of the upright cylinder round a cylinder whose axis is `up` (..., 3): never too small.

    Args:
        radius: Of the cylinder [m].
        half_height: Of the cylinder [m].
        up: Directions of its axis, unit, (..., 3); None: upright.
    """
    if up is None:
        return radius, half_height
    upright = np.clip(np.abs(up[..., 2]) / np.maximum(np.linalg.norm(up, axis=-1), 1e-9), 0.0, 1.0)
    leaning = np.sqrt(1.0 - upright**2)
    return np.minimum(radius + half_height * leaning, np.hypot(radius, half_height)), half_height * upright + radius * leaning


def touched(
    bars: Bars, position: Array, radius: Array | float, half: Array | float, obstacles: Sequence[YawedBox], obstacle: int
) -> ArrayInt:
    """Return what upright cylinders touch.

    Args:
        bars: Frames.
        position: Centres [m], (k, f, 3).
        radius: Of the cylinders [m], (k, f) or one number.
        half: Half their height, alike.
        obstacles: Boxes in every flight's way.
        obstacle: What to answer for one of them.

    Returns:
        Number of the gate, `obstacle` or NOTHING, (k, f).
    """
    into = np.full(position.shape[:2], NOTHING, np.int64)
    r, h = np.broadcast_to(radius, position.shape[:2]), np.broadcast_to(half, position.shape[:2])
    relative = position[:, :, None] - bars.center
    reach = np.max(bars.opening, axis=-1) * 1.5 + 2.0 * bars.bar + 0.2
    with np.errstate(invalid="ignore"):
        near = (np.max(np.abs(relative), axis=-1) < reach) & bars.present
    step, flight, gate = np.nonzero(near)
    if step.size:
        away = relative[step, flight, gate]
        ahead = np.sum(away * bars.normal[flight, gate], axis=-1)
        aside = np.sum(away * bars.left[flight, gate], axis=-1)
        frame = (bars.opening[flight, gate], bars.bar[flight, gate])
        hit = _frame_hit(ahead, aside, away[:, 2], *frame, r[step, flight], h[step, flight])
        into[step[hit], flight[hit]] = gate[hit]
    for box in obstacles:
        c, s = np.cos(box.yaw), np.sin(box.yaw)
        away = position - np.asarray(box.center)
        ahead, aside = c * away[..., 0] + s * away[..., 1], c * away[..., 1] - s * away[..., 0]
        into[_box_hit(ahead, aside, away[..., 2], box.half_size, r, h)] = obstacle
    return into


def _frame_hit(ahead: Array, aside: Array, above: Array, opening: Array, bar: Array, r: Array, h: Array) -> ArrayBool:
    """Tell whether cylinders touch a frame, in its own coordinates: upright bars left and right, level ones over the
    corners.
    """
    wide, high, b = opening[:, 0], opening[:, 1], 0.5 * bar
    # The frame is symmetric: one upright and one level bar stand for both of each.
    upright = _box_hit(ahead, np.abs(aside) - (wide + b), above, (b, b, high), r, h)
    level = _box_hit(ahead, aside, np.abs(above) - (high + b), (b, wide + bar, b), r, h)
    return upright | level


def _box_hit(x: Array, y: Array, z: Array, size: Sequence[Array | float], r: Array, h: Array) -> ArrayBool:
    gap = np.hypot(np.maximum(np.abs(x) - size[0], 0.0), np.maximum(np.abs(y) - size[1], 0.0))
    return np.asarray((gap <= r) & (np.abs(z) - size[2] <= h))


# -----------------------------------------------------------------------------------------------------------------------------

FLOOR, OBSTACLE = -1, -2
"""What a flight may have met, besides gates by their number."""


@dataclass(frozen=True)
class GateProtocol:
    """Numbers of the gates task; they are written into every result. The body is that of a Crazyflie."""

    body_radius_m: float = 0.06
    """Of the upright cylinder that is the body."""
    body_half_height_m: float = 0.0125
    """Half its height."""
    floor_m: float = 0.0
    """Height of the floor."""
    step_max_m: float = 0.01
    """Longer moves between samples are looked at in parts of at most this."""

    def __post_init__(self) -> None:
        check_fields(self, "GateProtocol.")
        for item in fields(self):
            value = getattr(self, item.name)
            if not isfinite(value) or (item.name != "floor_m" and value <= 0.0):
                raise AirworthyError(f"The gate protocol's {item.name} is {value!r}; expected a positive finite number.")


@dataclass(frozen=True)
class GateResults:
    """What became of flights; courses with fewer gates than the longest are padded with False and NaN."""

    passed: ArrayBool
    """Shape (flights, gates), every gate of every lap."""
    times: Array
    """When [s], NaN where not, (flights, gates)."""
    offsets: Array
    """To the left and up from the centre [m], (flights, gates, 2)."""
    asked: ArrayInt
    """Gates of each flight's course, (flights,)."""
    crashed: ArrayBool
    """(flights,)"""
    crash_time: Array
    """[s]; NaN where none."""
    crash_into: ArrayInt
    """Number of the gate in the course's first lap, FLOOR or OBSTACLE; meaningless without a crash."""
    wrong_way: ArrayInt
    """Passages of any gate against the direction of flight, before any crash, (flights,)."""

    @property
    def skipped(self) -> ArrayInt:
        """Gates crossed outside the opening, out of order, or never, (flights,)."""
        return self.asked - np.count_nonzero(self.passed, axis=1)

    @property
    def lap_time(self) -> Array:
        """When the last gate was passed [s]; NaN where it was not, (flights,)."""
        return np.asarray(self.times[np.arange(len(self.asked)), self.asked - 1])

    @property
    def outcomes(self) -> NDArray[np.str_]:
        """`collision`; `success` where every gate was passed, none the wrong way; else `partial`, (flights,)."""
        partial = (self.skipped > 0) | (self.wrong_way > 0)
        return first_match([(self.crashed, "collision"), (partial, "partial")], otherwise="success")


class GateJudge:
    """Watches flights and judges them at the end.

    Args:
        courses: Gates in the order to be flown, all laps: one sequence per flight.
        protocol: Numbers.
        obstacles: What else stands in every flight's way.

    Raises:
        AirworthyError: A course without gates.
    """

    def __init__(
        self, courses: Sequence[Sequence[Gate]], protocol: GateProtocol | None = None, obstacles: Sequence[YawedBox] = ()
    ):
        if not courses or not all(courses):
            raise AirworthyError("The gates task needs flights, each with at least one gate.")
        self.protocol = GateProtocol() if protocol is None else protocol
        self.courses = [tuple(gates) for gates in courses]
        self._distinct = [tuple(dict.fromkeys(gates)) for gates in self.courses]
        self._bars = bars_of(self._distinct)
        self._obstacles = tuple(obstacles)
        count = len(self.courses)
        self._crash_time = np.full(count, np.nan)
        self._crash_into = np.zeros(count, np.int64)
        self._events: list[tuple[ArrayInt, ArrayInt, Array, Array]] = []
        self._wrong: list[tuple[ArrayInt, Array]] = []
        # Per flight and gate: on which side the whole body last was, and whether it left that side through the opening.
        self._side = np.zeros(self._bars.present.shape)
        self._entered = np.zeros(self._bars.present.shape, dtype=bool)

    @property
    def crashed(self) -> ArrayBool:
        """So far, (flights,)."""
        return np.isfinite(self._crash_time)

    @property
    def crash_time(self) -> Array:
        """When, so far [s]; NaN where none, (flights,)."""
        return self._crash_time

    def watch(self, times: ArrayLike, positions: ArrayLike, up: ArrayLike | None = None) -> None:
        """Take the next samples; the first must be the last of the call before.

        Args:
            times: [s], shape (k,).
            positions: Centres of the bodies [m], shape (k, flights, 3).
            up: Their z axes in the world, the same shape; None: upright.

        Raises:
            AirworthyError: Another number of flights.
        """
        t, path = np.asarray(times, dtype=np.float64), np.asarray(positions, dtype=np.float64)
        if path.shape != (len(t), len(self.courses), 3):
            expected = (len(t), len(self.courses), 3)
            raise AirworthyError(f"The judge was shown positions of shape {path.shape}; expected {expected}.")
        axes = None if up is None else np.asarray(up, dtype=np.float64)
        parts = self._parts(path)
        for k in range(parts):
            self._meet(t, path, axes, (k + 1) / parts)
        self._cross(t, path)

    def _parts(self, path: Array) -> int:
        moved = np.linalg.norm(np.diff(path, axis=0), axis=-1)
        longest = float(np.nanmax(moved, initial=0.0))
        return max(1, int(np.ceil(min(longest, 10.0) / self.protocol.step_max_m - 1e-9)))

    def _meet(self, t: Array, path: Array, up: Array | None, share: float) -> None:
        """Contacts at this share of every step; the earliest counts."""
        position = path[:-1] + share * np.diff(path, axis=0)
        axes = None if up is None else up[:-1] + share * np.diff(up, axis=0)
        when = t[:-1] + share * np.diff(t)
        radius, half = body_extent(self.protocol.body_radius_m, self.protocol.body_half_height_m, axes)
        into = touched(self._bars, position, radius, half, self._obstacles, OBSTACLE)
        low = position[..., 2] - half <= self.protocol.floor_m
        hit = (into != NOTHING) | low
        flights = np.flatnonzero(np.any(hit, axis=0))
        for flight in flights:
            row = int(np.argmax(hit[:, flight]))
            if not when[row] >= self._crash_time[flight]:
                self._crash_time[flight] = when[row]
                self._crash_into[flight] = FLOOR if low[row, flight] else into[row, flight]

    def _cross(self, t: Array, path: Array) -> None:
        """Passages of every distinct gate within the opening: in the direction of flight, and against it."""
        b = self._bars
        relative = path[:, :, None] - b.center
        ahead = np.sum(relative * b.normal, axis=-1)
        with np.errstate(invalid="ignore"):
            crossed = (ahead[:-1] < 0.0) & (ahead[1:] >= 0.0) & b.present
            back = (ahead[:-1] >= 0.0) & (ahead[1:] < 0.0) & b.present
        step, flight, gate, share, offset, inside = self._met(crossed, relative, ahead)
        when = t[step] + share * (t[step + 1] - t[step])
        self._events.append((flight[inside], gate[inside], when[inside], offset[inside]))
        step, flight, gate, share, _, inside = self._met(back, relative, ahead)
        through = np.zeros(ahead.shape, dtype=np.int8)
        through[step + 1, flight, gate] = np.where(inside, 1, -1)
        self._turn_back(t, ahead, through)

    def _met(
        self, crossed: ArrayBool, relative: Array, ahead: Array
    ) -> tuple[ArrayInt, ArrayInt, ArrayInt, Array, Array, ArrayBool]:
        """Return where planes were crossed: step, flight, gate, share of the step, offset there, within the opening."""
        b = self._bars
        step, flight, gate = np.nonzero(crossed)
        first, last = ahead[step, flight, gate], ahead[step + 1, flight, gate]
        share = -first / (last - first)
        at = relative[step, flight, gate] + share[:, None] * (relative[step + 1, flight, gate] - relative[step, flight, gate])
        offset = np.stack((np.sum(at * b.left[flight, gate], axis=-1), at[:, 2]), axis=-1)
        return step, flight, gate, share, offset, np.all(np.abs(offset) <= b.opening[flight, gate], axis=-1)

    def _turn_back(self, t: Array, ahead: Array, through: NDArray[np.int8]) -> None:
        """Passages against the direction of flight: a body that trembles in the plane makes none.

        Args:
            t: [s], (k,).
            ahead: Distances to the planes [m], (k, flights, gates).
            through: At the sample after a crossing backwards 1 within the opening, -1 beside it, (k, flights, gates).
        """
        radius = self.protocol.body_radius_m
        side = np.where(ahead > radius, 1.0, np.where(ahead < -radius, -1.0, 0.0))
        last = _carried(side, self._side)
        entered = _carried(through.astype(np.float64), np.where(self._entered, 1.0, -1.0))
        step, flight, _ = np.nonzero((last[:-1] > 0.0) & (last[1:] < 0.0) & (entered[1:] > 0.0))
        self._wrong.append((flight, t[step + 1]))
        self._side, self._entered = last[-1], entered[-1] > 0.0

    def results(self) -> GateResults:
        """Judge what was seen: the most gates that can be matched in order, earliest first, before any crash."""
        flight, gate, when, offset = (np.concatenate(x) for x in zip(*self._events, strict=True)) if self._events else _NONE
        asked = np.array([len(gates) for gates in self.courses])
        shape = (len(asked), int(np.max(asked)))
        passed, times = np.zeros(shape, dtype=bool), np.full(shape, np.nan)
        offsets = np.full((*shape, 2), np.nan)
        end = np.where(self.crashed, self._crash_time, np.inf)
        for index, gates in enumerate(self.courses):
            rows = np.flatnonzero((flight == index) & (when <= end[index]))
            rows = rows[np.argsort(when[rows], kind="stable")]
            numbers = {item: k for k, item in enumerate(self._distinct[index])}
            wanted = [numbers[item] for item in gates]
            for order, event in match_in_order(wanted, gate[rows].tolist()):
                passed[index, order], times[index, order] = True, when[rows[event]]
                offsets[index, order] = offset[rows[event]]
        back, instant = (np.concatenate(x) for x in zip(*self._wrong, strict=True)) if self._wrong else _NONE[1:3]
        wrong = np.bincount(back[instant <= end[back]], minlength=len(asked))
        crash = (self.crashed.copy(), self._crash_time.copy(), self._crash_into.copy())
        return GateResults(passed, times, offsets, asked, *crash, wrong)


def _carried(marks: Array, before: Array) -> Array:
    """Return the last mark that is not 0 up to each sample, (k, ...); `before` where there was none."""
    rows = np.arange(len(marks)).reshape(-1, *[1] * (marks.ndim - 1))
    latest = np.maximum.accumulate(np.where(marks != 0.0, rows, -1), axis=0)
    known = np.take_along_axis(marks, np.maximum(latest, 0), axis=0)
    return np.where(latest >= 0, known, before)


_NONE = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros((0, 2)))


def judge_path(
    gates: Sequence[Gate],
    times: ArrayLike,
    positions: ArrayLike,
    protocol: GateProtocol | None = None,
    obstacles: Sequence[YawedBox] = (),
) -> GateResults:
    """Judge recorded flights of one course: positions (k, flights, 3) or (k, 3) at times (k,).

    Args:
        gates: In the order to be flown.
        times: (k,) [s].
        positions: (k, flights, 3) or (k, 3) [m], world.
        protocol: What counts as passed; None: the defaults.
        obstacles: What else may be met.
    """
    path = np.asarray(positions, dtype=np.float64)
    path = path[:, None] if path.ndim == 2 else path
    judge = GateJudge([gates] * path.shape[1], protocol, obstacles)
    judge.watch(times, path)
    return judge.results()
