"""The sliding window: three gates at a time as the eight numbers that a predictor sees.

Source: spec/boundary_predictor sections 5 and 8. Gate i lies at (d, theta) around gate i - 1, theta clockwise from the heading
there; heights are absolute. The speed at gate i - 1 is the first of the eight, and what was predicted for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import wrap_angle
from airworthy.gates.planner.contract import PAPER_RANGES
from airworthy.trajectories import Gate

Predictor = Callable[[Array], Any]
"""Situations (k, 8) -> speeds [m/s] and durations [s], (k, 2); NaN where there is no answer."""

RANGES = np.array(PAPER_RANGES)
"""Least and greatest value of each field in the paper's grid [m/s, m, rad] (Table II), shape (8, 2)."""
RANGES.setflags(write=False)
# Ours: ten times the sixth digit.
SLACK = 1e-5
"""How far outside its range a field counts as inside: courses are kept with six digits [m, rad]."""
# Source: spec/boundary_predictor section 8; 0.8 m is also the least distance of the grid (Table II).
STOP_DISTANCE = 0.8
"""Least distance from the last gate to where the flight ends [m]; also what the predictor is told."""

Headings = Literal["given", "incoming"]


@dataclass(frozen=True)
class GateRoute:
    """Where a plan goes: start, every gate of every lap, and the place beyond the last one; n gates, n + 2 points."""

    positions: Array
    """[m], shape (n + 2, 3); the last is `STOP_DISTANCE` beyond the last gate and moves with its speed."""
    headings: Array
    """Directions of flight there [rad], counter-clockwise from world x, shape (n + 2,)."""
    departure: Array
    """How far each gate's heading is from the leg that reaches it [rad], which no predictor sees; shape (n,)."""

    @property
    def count(self) -> int:
        """Gates."""
        return len(self.positions) - 2

    @property
    def directions(self) -> Array:
        """Unit vectors of the headings, shape (n + 2, 3)."""
        return np.stack((np.cos(self.headings), np.sin(self.headings), np.zeros_like(self.headings)), axis=-1)

    def stopping_at(self, distance: float) -> Array:
        """Return positions with the end this far [m] beyond the last gate, shape (n + 2, 3)."""
        positions = self.positions.copy()
        positions[-1] = positions[-2] + distance * self.directions[-2]
        return positions


def route_of(start: Sequence[float], start_yaw: float, gates: Sequence[Gate], rule: Headings = "given") -> GateRoute:
    """Return positions and headings of a course.

    Args:
        start: Where it begins, at rest [m].
        start_yaw: Heading there [rad].
        gates: In the order to be flown; one flown on two laps stands there twice.
        rule: "given": through each gate along its own heading; "incoming": along the leg that reaches it.

    Raises:
        AirworthyError: No gate, numbers that are not finite, or a gate right above or at the one before.
    """
    if not gates:
        raise AirworthyError("A plan needs at least one gate.")
    if rule not in ("given", "incoming"):
        raise AirworthyError(f"The rule for headings must be 'given' or 'incoming', but is {rule!r}.")
    points = np.array([start, *(gate.position for gate in gates)], dtype=np.float64)
    given = np.array([start_yaw, *(gate.yaw for gate in gates)], dtype=np.float64)
    if points.shape[1:] != (3,) or not (np.all(np.isfinite(points)) and np.all(np.isfinite(given))):
        raise AirworthyError("Start and gates of a plan must be finite numbers.")
    leg = np.diff(points[:, :2], axis=0)
    # 1 cm (ours): the bearing of a shorter leg says nothing, and situations begin at 0.8 m.
    close = np.flatnonzero(np.hypot(leg[:, 0], leg[:, 1]) < 0.01)
    if close.size:
        raise AirworthyError(f"Gate {close[0] + 1} is less than 1 cm aside from what comes before it: move it.")
    incoming = np.arctan2(leg[:, 1], leg[:, 0])
    headings = given if rule == "given" else np.concatenate((given[:1], incoming))
    end = points[-1] + STOP_DISTANCE * np.array([np.cos(headings[-1]), np.sin(headings[-1]), 0.0])
    departure = wrap_angle(given[1:] - incoming)
    return GateRoute(np.vstack((points, end)), np.append(headings, headings[-1]), np.asarray(departure))


def situations_of(route: GateRoute) -> Array:
    """Return what a predictor is asked at each gate, with a speed of 0 before it, shape (n, 8); headings turn clockwise in
    it.
    """
    leg = np.diff(route.positions, axis=0)
    distance = np.hypot(leg[:, 0], leg[:, 1])
    # Counter-clockwise headings become clockwise bearings here: theta is the heading before the leg minus that of the leg.
    theta = wrap_angle(route.headings[:-1] - np.arctan2(leg[:, 1], leg[:, 0]))
    z = route.positions[:, 2]
    zero = np.zeros(route.count)
    rows = (zero, z[:-2], distance[:-1], theta[:-1], z[1:-1], distance[1:], theta[1:], z[2:])
    return np.stack(rows, axis=-1)


def outside(situations: Array, ranges: Array) -> Array:
    """Return how far each field is outside its range, 0 where it is inside, shape (..., 8)."""
    return outside_of(situations, ranges[:, 0], ranges[:, 1])


def outside_of(values: Array, low: Array | float, high: Array | float) -> Array:
    """Return how far values are outside their range, 0 where they are inside or within `SLACK` of it.

    Args:
        values: Of any shape.
        low: Least values, of a shape that broadcasts.
        high: Greatest values.
    """
    beyond = np.maximum(low - values, values - high)
    return np.where(beyond > SLACK, beyond, 0.0)


@dataclass(frozen=True)
class PlanChain:
    """What was asked and answered along courses, shapes (c, n, ...)."""

    situations: Array
    """As they are, before clamping, (c, n, 8)."""
    beyond: Array
    """How far outside the ranges, (c, n, 8)."""
    speeds: Array
    """Through each gate [m/s], (c, n); NaN from the first gate on for which there was no answer."""
    durations: Array
    """Of the segment that reaches it [s], (c, n)."""

    def row(self, index: int) -> PlanChain:
        """Return one course's, shapes (n, ...)."""
        return PlanChain(self.situations[index], self.beyond[index], self.speeds[index], self.durations[index])


def predict_chain(
    situations: Array, predict: Predictor, ranges: Array | None = RANGES, caps: Array | float = np.inf
) -> PlanChain:
    """Slide the window along courses, all at once: each answer's speed is the next question's first number.

    Args:
        situations: From `situations_of`, shape (c, n, 8).
        predict: Who answers.
        ranges: Questions are clamped to these, (8, 2); None: asked as they are, nothing counts as outside.
        caps: Most speed through each gate [m/s], (c, n) or one number. A faster answer is lowered, and its duration grows as
            that of an even change of speed between the gates does.

    Raises:
        AirworthyError: The answer has the wrong shape.
    """
    asked = np.array(situations, dtype=np.float64)
    count, gates, _ = asked.shape
    answers = np.full((count, gates, 2), np.nan)
    beyond = np.zeros_like(asked)
    most = np.broadcast_to(np.asarray(caps, dtype=np.float64), (count, gates))
    speed = np.zeros(count)
    alive = np.ones(count, dtype=bool)
    for gate in range(gates):
        asked[:, gate, 0] = speed
        question = asked[:, gate]
        if ranges is not None:
            beyond[:, gate] = outside(question, ranges)
            question = np.clip(question, ranges[:, 0], ranges[:, 1])
        # A row whose chain has broken is asked along with speed 0 and its answer dropped: batches keep one shape.
        answer = np.asarray(predict(question), dtype=np.float64)
        if answer.shape != (count, 2):
            raise AirworthyError(f"The predictor answered {count} situations with shape {answer.shape}; expected ({count}, 2).")
        alive &= np.isfinite(answer).all(axis=1) & (answer[:, 0] >= 0.0) & (answer[:, 1] > 0.0)
        lowered = np.where(alive, np.minimum(answer[:, 0], most[:, gate]), 0.0)
        # An even change of speed over the same way takes 2 d / (v_prev + v); 1 mm/s keeps the ratio finite from rest to rest.
        longer = np.where(lowered < answer[:, 0], (speed + answer[:, 0]) / np.maximum(speed + lowered, 1e-3), 1.0)
        answers[alive, gate, 0], answers[alive, gate, 1] = lowered[alive], (answer[:, 1] * longer)[alive]
        speed = lowered
    return PlanChain(asked, beyond, answers[..., 0], answers[..., 1])
