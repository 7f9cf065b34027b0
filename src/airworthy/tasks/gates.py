"""The gates task: fly through every gate in order, touch none; judged for many flights at once.

Source: spec/boundary_predictor sections 6 and 11. A gate is passed where a flight crosses its plane in the direction of flight,
between two physics steps, within the opening. A crash is any contact of the body with a frame, the floor or an obstacle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from math import isfinite

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError
from airworthy.tasks.gates_bodies import NOTHING, Bars, bars_of, body_extent, touched
from airworthy.tasks.outcomes import first_match
from airworthy.trajectories import Box, Gate
from airworthy.trajectories.gates_order import match_in_order

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Ints = NDArray[np.int64]

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
        for item in fields(self):
            value = getattr(self, item.name)
            if not isfinite(value) or (item.name != "floor_m" and value <= 0.0):
                raise AirworthyError(f"The gate protocol's {item.name} is {value!r}; expected a positive finite number.")


@dataclass(frozen=True)
class GateResults:
    """What became of flights; courses with fewer gates than the longest are padded with False and NaN."""

    passed: Mask
    """Shape (flights, gates), every gate of every lap."""
    times: Array
    """When [s], NaN where not, (flights, gates)."""
    offsets: Array
    """To the left and up from the centre [m], (flights, gates, 2)."""
    asked: Ints
    """Gates of each flight's course, (flights,)."""
    crashed: Mask
    """(flights,)"""
    crash_time: Array
    """[s]; NaN where none."""
    crash_into: Ints
    """Number of the gate in the course's first lap, FLOOR or OBSTACLE; meaningless without a crash."""

    @property
    def skipped(self) -> Ints:
        """Gates crossed outside the opening, out of order, or never, (flights,)."""
        return self.asked - np.count_nonzero(self.passed, axis=1)

    @property
    def lap_time(self) -> Array:
        """When the last gate was passed [s]; NaN where it was not, (flights,)."""
        return np.asarray(self.times[np.arange(len(self.asked)), self.asked - 1])

    @property
    def outcomes(self) -> NDArray[np.str_]:
        """`collision`; `success` where every gate was passed; `partial` where some were skipped, (flights,)."""
        return first_match([(self.crashed, "collision"), (self.skipped > 0, "partial")], otherwise="success")


class GateJudge:
    """Watches flights and judges them at the end.

    Args:
        courses: Gates in the order to be flown, all laps: one sequence per flight.
        protocol: Numbers.
        obstacles: What else stands in every flight's way.

    Raises:
        AirworthyError: A course without gates.
    """

    def __init__(self, courses: Sequence[Sequence[Gate]], protocol: GateProtocol | None = None, obstacles: Sequence[Box] = ()):
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
        self._events: list[tuple[Ints, Ints, Array, Array]] = []

    @property
    def crashed(self) -> Mask:
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
        place = path[:-1] + share * np.diff(path, axis=0)
        axes = None if up is None else up[:-1] + share * np.diff(up, axis=0)
        when = t[:-1] + share * np.diff(t)
        radius, half = body_extent(self.protocol.body_radius_m, self.protocol.body_half_height_m, axes)
        into = touched(self._bars, place, radius, half, self._obstacles, OBSTACLE)
        low = place[..., 2] - half <= self.protocol.floor_m
        hit = (into != NOTHING) | low
        flights = np.flatnonzero(np.any(hit, axis=0))
        for flight in flights:
            row = int(np.argmax(hit[:, flight]))
            if not when[row] >= self._crash_time[flight]:
                self._crash_time[flight] = when[row]
                self._crash_into[flight] = FLOOR if low[row, flight] else into[row, flight]

    def _cross(self, t: Array, path: Array) -> None:
        """Passages of every distinct gate, in the direction of flight and within the opening."""
        b = self._bars
        relative = path[:, :, None] - b.center
        ahead = np.sum(relative * b.normal, axis=-1)
        with np.errstate(invalid="ignore"):
            crossed = (ahead[:-1] < 0.0) & (ahead[1:] >= 0.0) & b.present
        step, flight, gate = np.nonzero(crossed)
        first, last = ahead[step, flight, gate], ahead[step + 1, flight, gate]
        share = -first / (last - first)
        at = relative[step, flight, gate] + share[:, None] * (relative[step + 1, flight, gate] - relative[step, flight, gate])
        offset = np.stack((np.sum(at * b.left[flight, gate], axis=-1), at[:, 2]), axis=-1)
        inside = np.all(np.abs(offset) <= b.opening[flight, gate], axis=-1)
        when = t[step] + share * (t[step + 1] - t[step])
        self._events.append((flight[inside], gate[inside], when[inside], offset[inside]))

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
            for place, event in match_in_order(wanted, gate[rows].tolist()):
                passed[index, place], times[index, place] = True, when[rows[event]]
                offsets[index, place] = offset[rows[event]]
        return GateResults(passed, times, offsets, asked, self.crashed.copy(), self._crash_time.copy(), self._crash_into.copy())


_NONE = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros((0, 2)))


def judge_path(
    gates: Sequence[Gate],
    times: ArrayLike,
    positions: ArrayLike,
    protocol: GateProtocol | None = None,
    obstacles: Sequence[Box] = (),
) -> GateResults:
    """Judge recorded flights of one course: positions (k, flights, 3) or (k, 3) at times (k,)."""
    path = np.asarray(positions, dtype=np.float64)
    path = path[:, None] if path.ndim == 2 else path
    judge = GateJudge([gates] * path.shape[1], protocol, obstacles)
    judge.watch(times, path)
    return judge.results()


__all__ = ["FLOOR", "OBSTACLE", "Bars", "GateJudge", "GateProtocol", "GateResults", "judge_path"]
