"""What watches over a racer in flight and acts where its parts alone would lose the race (spec/race 5.5).

Each rule is a function of what the racer believes, and does nothing in an ordinary race; what it does is noted at the desk, so
that tables count it:

    stretch   a narrow gate comes near and nobody knows where it stands: slow down before it and look
    brake     no plan was found: fly the path in force, ever more slowly, until one is
    restart   the racer is far off its plan: plan from where it will be, not from where it should be
    return    a gate was missed: fly back round it, where that costs less than the gate is worth
    loosen    the filter is surprised by all it sees: believe it less
    forget    a gate is seen where its estimate cannot be: begin it anew from its bounds
    guard     the floor comes nearer than the racer can stop: upright, with all thrust
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayInt
from airworthy.core.schema import Bound, check_fields
from airworthy.race.pilots.tracker import RaceTracker
from airworthy.race.planning.guess import TimedPlan
from airworthy.race.planning.horizon import GateWindows
from airworthy.race.planning.racer import RacerModel

__all__ = ["Supervisor", "SupervisorOptions", "flown_ahead", "upright"]

_STEP = 1.0 / 240.0
"""Of what is flown ahead in thought [s]: the tracker's own period."""


@dataclass(frozen=True)
class SupervisorOptions:
    """When its rules act."""

    unlocalised: Annotated[float, Bound(0.0, 10.0, "m")] = 0.15
    """A narrow gate is unlocalised with a larger standard deviation of its place across the flight [m] (spec/race 5.5)."""
    stretch_s: Annotated[float, Bound(0.0, 10.0, "s")] = 0.8
    """Before its crossing [s] (spec/race 5.5)."""
    slow: Annotated[float, Bound(0.1, 100.0, "m/s")] = 6.0
    """To which it slows down [m/s] (spec/race 5.5)."""
    braking: Annotated[float, Bound(0.1, 100.0, "m/s^2")] = 12.0
    """With which it does [m/s^2]. Ours: a third of the thrust, so that the rest can still turn."""
    strayed: Annotated[float, Bound(0.0, 10.0, "m")] = 0.4
    """So far off its plan it plans from where it will be [m]. Ours: in 40 ordinary races nobody asked for a plan so far off."""
    gate_worth: Annotated[float, Bound(0.0, 1000.0, "s")] = 10.0
    """What a gate is worth [s]: ten points, and a second is one (spec/race 1)."""
    tolerance: Annotated[float, Bound(0.0, 1.0, "m")] = 0.1
    """By which the loose test counts beside an opening [m] (spec/race 1)."""
    surprise: Annotated[float, Bound(1.0, 1e6)] = 12.0
    """Mean NIS per degree of freedom from which on the filter is not believed. Ours: the worst of 98 races in class `noisy` was
    6.1, of 25 in class `hard` 8.9."""
    surprise_frames: Annotated[int, Bound(1, 1000)] = 30
    """Over so many frames."""
    loosened: Annotated[float, Bound(1.0, 1e6)] = 9.0
    """By which the covariance then grows: three times the standard deviations. Ours."""
    excluded_frames: Annotated[int, Bound(1, 1000)] = 6
    """A gate of which nearly all corners are refused in so many frames on end stands elsewhere."""
    floor: Annotated[float, Bound(-1000.0, 1000.0, "m")] = 0.25
    """Height below which it must not fall [m]: the body's 0.15 m, and as much again of doubt."""
    turning: Annotated[float, Bound(0.1, 100.0, "rad/s")] = 12.0
    """With which it comes upright [rad/s]: a plan's own bound."""

    def __post_init__(self) -> None:
        check_fields(self, "SupervisorOptions.")


class Supervisor:
    """The rules, for one flight.

    Args:
        model: Who flies.
        wide: Half width from which on an opening is wide [m].
        note: Takes a word for each thing that it does.
        options: When it acts.
    """

    def __init__(
        self, model: RacerModel, wide: float, note: Callable[[str], None], options: SupervisorOptions | None = None
    ) -> None:
        self.model, self.options = model, options or SupervisorOptions()
        self._wide, self._note = wide, note
        self._nis: deque[float] = deque(maxlen=self.options.surprise_frames)
        self._refused: Array = np.zeros(0, np.int64)
        self._stretched = -1
        self._guarding = False

    # ---- Of plans -----------------------------------------------------------------------------------------------------------

    def stretched(self, next_gate: int, left_s: float, half: float, sigma: float) -> bool:
        """Return whether the next gate has to be approached slowly; once it has, for as long as it is not localised.

        Args:
            next_gate: Its number.
            left_s: Until its planned crossing [s].
            half: Half width of its opening [m].
            sigma: Of its place across the flight [m].
        """
        options = self.options
        if half > self._wide or sigma <= options.unlocalised:
            return False
        if self._stretched != next_gate:
            if not left_s < options.stretch_s:
                return False
            self._stretched = next_gate
            self._note("stretched a leg")
        return True

    def strayed(self, state: Array, flown: TimedPlan, time: float) -> bool:
        """Return whether a plan has to begin where the racer will be, since it is far from where it should be.

        Args:
            state: Believed, (13,).
            flown: The plan in force.
            time: Now [s].
        """
        off = float(np.linalg.norm(flown.at(time)[0][:3] - state[:3]))
        if off > self.options.strayed:
            self._note("planned from where it was")
            return True
        return False

    # ---- Of the filter ------------------------------------------------------------------------------------------------------

    def surprised(self, nis: float) -> bool:
        """Take the NIS of a frame, per degree of freedom, and return whether to loosen the filter.

        Args:
            nis: Of the frame.
        """
        self._nis.append(nis)
        if len(self._nis) < self.options.surprise_frames or np.mean(self._nis) <= self.options.surprise:
            return False
        # What has been seen so far was said of the filter as it was.
        self._nis.clear()
        self._note("loosened its estimate")
        return True

    def excluded(self, seen: ArrayInt, refused: ArrayInt) -> list[int]:
        """Take a frame, and return gates that stand where their estimate cannot be.

        Args:
            seen: Corners of each gate, (gates,).
            refused: Of these, (gates,).
        """
        if len(self._refused) != len(seen):
            self._refused = np.zeros(len(seen), np.int64)
        most = (seen >= 3) & (refused >= seen - 1)
        # A frame that shows less of a gate says nothing of it.
        self._refused = np.where(most, self._refused + 1, np.where(seen >= 3, 0, self._refused))
        gates = np.flatnonzero(self._refused >= self.options.excluded_frames)
        self._refused[gates] = 0
        for _ in gates:
            self._note("forgot a gate")
        return [int(gate) for gate in gates]

    # ---- Of gates -----------------------------------------------------------------------------------------------------------

    def missed(self, position: Array, gates: GateWindows, number: int, sigma: Array) -> bool:
        """Return whether a gate whose plane was just crossed was surely missed, by two standard deviations.

        Args:
            position: Believed [m], (3,).
            gates: All passages, with whole openings.
            number: Of the gate.
            sigma: Of its place, to the left and upwards [m], (2,).
        """
        away = position - gates.center[number]
        across = np.abs(np.array([away @ gates.left[number], away @ gates.up[number]]))
        return bool(np.any(across > gates.half[number] + self.options.tolerance + 2.0 * np.asarray(sigma)))

    def worth_returning(self, way: TimedPlan, number: int, time: float) -> bool:
        """Return whether to fly back for a gate: where that takes less than the gate is worth.

        Args:
            way: Back and through it.
            number: Of the gate.
            time: Now [s].
        """
        if not way.crossing(number) - time < self.options.gate_worth:
            self._note("left a gate out")
            return False
        self._note("returned for a gate")
        return True

    # ---- Of the floor -------------------------------------------------------------------------------------------------------

    def lowest(self, state: Array) -> float:
        """Return how low a racer falls if it comes upright at once and then pushes with all it has [m].

        While it turns it falls freely; its thrust, on its side, does neither good nor harm.

        Args:
            state: Believed, (13,).
        """
        upright = float(np.clip(frames.to_matrix(state[None, 6:10])[0, 2, 2], -1.0, 1.0))
        # Down to half of the thrust upwards, at 60 degrees, it does not fall faster.
        turn = max(0.0, float(np.arccos(upright)) - np.pi / 3.0) / self.options.turning
        gravity = self.model.gravity
        height = state[2] + state[5] * turn - 0.5 * gravity * turn**2
        speed = state[5] - gravity * turn
        push = 0.94 * self.model.thrust_max / self.model.mass * 0.75 - gravity
        return float(height - (speed**2 / (2.0 * push) if speed < 0.0 else 0.0))

    def guards(self, state: Array) -> bool:
        """Return whether to leave the plan for the floor's sake, until the racer no longer falls.

        Args:
            state: Believed, (13,).
        """
        if self._guarding:
            self._guarding = bool(state[5] < 0.0)
        elif state[5] < 0.0 and self.lowest(state) < self.options.floor:
            self._guarding = True
            self._note("guarded the floor")
        return self._guarding


def flown_ahead(tracker: RaceTracker, state: Array, flown: TimedPlan, time: float, late: float) -> Array:
    """Return where a racer that tracks its plan will be, (13,).

    Args:
        tracker: Its law.
        state: Believed now, (13,).
        flown: The plan in force.
        time: Now [s].
        late: From now [s].
    """
    for k in range(round(late / _STEP)):
        now = time + k * _STEP
        reference, inputs = flown.at(now)
        _, ahead = flown.at(now + tracker.gains.lead)
        thrust, alpha = tracker.command(state[None], reference[None], inputs[None], ahead[None])
        state = np.array(tracker.model.step(state, np.concatenate([thrust, alpha[0]]), _STEP))
    return state


def upright(state: Array, model: RacerModel) -> tuple[Array, Array]:
    """Return what the tracker is to follow instead of a plan: where it is, level, going no lower, with all thrust.

    Args:
        state: Believed, (13,).
        model: Who flies.

    Returns:
        (13,) and (4,), as of `TimedPlan.at`.
    """
    forward = frames.to_matrix(state[None, 6:10])[0, :, 0]
    yaw = float(np.arctan2(forward[1], forward[0]))
    reference = state.copy()
    reference[5] = max(0.0, float(state[5]))
    reference[6:10] = frames.from_euler(0.0, 0.0, yaw)
    reference[10:] = 0.0
    return reference, np.array([0.94 * model.thrust_max, 0.0, 0.0, 0.0])
