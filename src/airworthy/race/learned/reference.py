"""The expert's plan of many flights at once: the stored plan, moved with each flight's gates and stretched, at any instant.

What `airworthy.race.planning.smooth.moved_plan` gives of one plan at its nodes is computed here where it is asked for, of a
batch whose gates differ and whose beliefs of them change: no plan is kept, and no solver runs.
"""

from __future__ import annotations

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayInt
from airworthy.race.planning.horizon import GateWindows
from airworthy.race.planning.plan import RacePlan

__all__ = ["MovedReference", "centred", "eased"]

_GRID_S = 0.002
"""Of the stored plan's table [s]: lines between its rows err by 20 um at 40 m/s^2."""
_APART_S = 0.01
"""Attitudes so long before and behind an instant give its rate [s], and so far apart in turn the rate's change; ours, a fifth
of a step of the stored plan."""
_MOST_SLOPE = 1e-6
_HURRIED = 30.0
"""Acceleration that a gate's move may ask for besides [m/s^2]: about what all rotors give, so that what flight itself takes is
lacking. Of AlphaPilot's legs those to Gate1 (40) and to Gate22 (54) ask for more, others for 20 at most."""
_BESIDE = 0.25
"""Share of the ease on legs beside such a leg; ours."""


def centred(plan: RacePlan, gates: GateWindows, spare: float) -> Array:
    """Return how far beside a plan's crossings of gates crossings lie that keep off the openings' edges [m], (passages, 3).

    Args:
        plan: Through the gates.
        gates: With their whole openings.
        spare: Wanted between a crossing and the edges [m]; where an opening is too small the crossing is in its middle.
    """
    away = plan.at(plan.gate_times)[0][:, :3] - gates.center
    aside = np.zeros_like(away)
    for axis, half in ((gates.left, gates.half[:, 0]), (gates.up, gates.half[:, 1])):
        off, most = np.sum(away * axis, axis=1), np.maximum(half - spare, 0.0)
        aside += (np.clip(off, -most, most) - off)[:, None] * axis
    return aside


def eased(plan: RacePlan, bounds: Array, ease: float) -> Array:
    """Return how many times as slowly each leg's middle is to be flown, (passages,): a leg at whose ends gates may move against
    each other such that the step of degree five asks for too much, and a quarter of that on the legs beside.

    Args:
        plan: Through the gates.
        bounds: How far each may stand aside, x and y [m], (passages, 2).
        ease: Of such a leg.
    """
    most = np.max(bounds, axis=1)
    # The step of degree five over a way of 1 m in 1 s has 10 / sqrt(3) m/s^2 where it bends most.
    ask = 10.0 / np.sqrt(3.0) * (most + np.concatenate([[0.0], most[:-1]])) / plan.legs**2
    hurried = (ask > _HURRIED).astype(np.float64)
    beside = np.maximum(np.append(hurried[1:], 0.0), np.append(0.0, hurried[:-1]))
    return np.asarray(1.0 + (ease - 1.0) * np.maximum(hurried, _BESIDE * beside))


class MovedReference:
    """A plan moved with gates.

    Args:
        plan: Through all passages as they nominally stand.
        stretch: It is flown so many times as slowly.
        aside: Where it crosses each passage besides, beside where the plan does [m], (passages, 3).
        slow: How many times as slowly it is flown in the middle of each leg besides, (passages,); lines between them.
    """

    def __init__(self, plan: RacePlan, stretch: float, aside: Array | None = None, slow: Array | None = None) -> None:
        self.plan, self.model = plan, plan.model
        self._aside = np.zeros((len(plan.legs), 3)) if aside is None else aside
        # Seconds flown per second of the plan, along the plan, and the clock that they make.
        fine = np.linspace(0.0, plan.duration, int(np.ceil(plan.duration / _GRID_S)) + 1)
        middles = plan.gate_times - 0.5 * plan.legs
        pace = stretch * np.interp(fine, middles, np.ones(len(plan.legs)) if slow is None else slow)
        clock = np.concatenate([[0.0], np.cumsum(0.5 * (pace[1:] + pace[:-1]) * np.diff(fine))])
        self.ends: Array = np.interp(plan.gate_times, fine, clock)
        self.legs: Array = np.diff(self.ends, prepend=0.0)
        self.duration = float(self.ends[-1])
        self._begun = self.ends - self.legs
        flown = np.linspace(0.0, clock[-1], len(fine))
        self._grid = float(flown[1])
        time = np.interp(flown, clock, fine)
        self._table = _table(plan, time, np.interp(time, fine, pace), np.interp(time, fine, np.gradient(pace, fine)))

    def leg(self, time: Array) -> ArrayInt:
        """Return on which leg an instant lies, (n,): the number of the passage at its end."""
        return np.asarray(np.minimum(np.searchsorted(self.ends, time, side="right"), len(self.ends) - 1), np.int64)

    def path(self, time: Array, shifts: Array) -> tuple[Array, Array, Array, Array]:
        """Return place [m], velocity [m/s], acceleration [m/s^2] and where body x points as nearly as it can, (n, 3) each.

        Args:
            time: Since the start [s], (n,).
            shifts: Of the passages [m], (n, passages, 3).
        """
        inside, shifts = np.clip(time, 0.0, self.duration), shifts + self._aside
        at = inside / self._grid
        low = np.minimum(at.astype(np.int64), len(self._table) - 2)
        share = (at - low)[:, None]
        row = self._table[low] * (1.0 - share) + self._table[low + 1] * share
        leg = self.leg(inside)
        rows = np.arange(len(inside))
        before = np.where((leg > 0)[:, None], shifts[rows, leg - 1], 0.0)
        across = shifts[rows, leg] - before
        length = self.legs[leg]
        part = ((inside - self._begun[leg]) / length)[:, None]
        length = length[:, None]
        # The step of degree five, as `moved_plan` has it.
        step = part**3 * (10.0 - 15.0 * part + 6.0 * part**2)
        slope = part**2 * (30.0 - 60.0 * part + 30.0 * part**2)
        bend = part * (60.0 - 180.0 * part + 120.0 * part**2)
        place = row[:, :3] + before + step * across
        velocity = row[:, 3:6] + slope * across / length
        pull = row[:, 6:9] + bend * across / length**2
        # Behind its end the plan goes on straight ahead.
        beyond = (time - inside)[:, None]
        place = place + np.maximum(beyond, 0.0) * velocity
        return place, velocity, np.where(beyond > 0.0, 0.0, pull), row[:, 9:12]

    def _attitude(self, time: Array, shifts: Array) -> tuple[Array, Array, Array, Array]:
        """Return place and velocity (n, 3), thrust [N] (n,) and body axes as columns (n, 3, 3)."""
        place, velocity, pull, facing = self.path(time, shifts)
        speed = np.linalg.norm(velocity, axis=1, keepdims=True)
        force = self.model.mass * (pull + np.array([0.0, 0.0, self.model.gravity])) + self.model.drag * speed * velocity
        thrust = np.linalg.norm(force, axis=1)
        z = force / np.maximum(thrust, _MOST_SLOPE)[:, None]
        x = facing - np.sum(facing * z, axis=1, keepdims=True) * z
        x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), _MOST_SLOPE)
        return place, velocity, thrust, np.stack([x, np.cross(z, x), z], axis=-1)

    def at(self, time: Array, shifts: Array, lead: float) -> tuple[Array, Array, Array]:
        """Return states (n, 13), inputs (n, 4), and inputs `lead` later (n, 4), as a tracker takes them.

        Args:
            time: Since the start [s], (n,).
            shifts: Of the passages, as believed [m], (n, passages, 3).
            lead: [s].
        """
        offsets = np.array([-_APART_S, 0.0, _APART_S, lead - _APART_S, lead, lead + _APART_S])
        count, many = len(time), len(offsets)
        instants = (time + offsets[:, None]).ravel()
        place, velocity, thrust, axes = self._attitude(instants, np.tile(shifts, (many, 1, 1)))
        axes, thrust = axes.reshape(many, count, 3, 3), thrust.reshape(many, count)
        attitude = frames.from_matrix(axes.reshape(-1, 3, 3)).reshape(many, count, 4)
        states = np.hstack([place[count : 2 * count], velocity[count : 2 * count], attitude[1], self._rates(attitude[:3])[0]])
        inputs = np.hstack([thrust[1][:, None], self._rates(attitude[:3])[1]])
        ahead = np.hstack([thrust[4][:, None], self._rates(attitude[3:])[1]])
        return states, inputs, ahead

    @staticmethod
    def _rates(attitude: Array) -> tuple[Array, Array]:
        """Return rate [rad/s] and angular acceleration [rad/s^2] in the middle of three attitudes, (n, 3) each."""
        back, forth = (
            frames.to_rotation_vector(frames.canonical(frames.multiply(frames.conjugate(a), b)))
            for a, b in ((attitude[0], attitude[1]), (attitude[1], attitude[2]))
        )
        return np.asarray((back + forth) / (2.0 * _APART_S)), np.asarray((forth - back) / _APART_S**2)


def _table(plan: RacePlan, time: Array, pace: Array, change: Array) -> Array:
    """Return place [m], velocity [m/s], acceleration [m/s^2] and body x of a plan that is flown more slowly, (n, 12).

    Args:
        plan: As it was made.
        time: On the plan's clock [s], (n,).
        pace: Seconds flown per second of the plan there, (n,).
        change: Of the pace, by the plan's clock [1/s], (n,).
    """
    states, _ = plan.at(time)
    # Thrusts are held from node to node: lines between the means at nodes keep the acceleration from jumping.
    nodes = np.concatenate([[0.0], np.cumsum(plan.steps)])
    held = plan.inputs[:, 0]
    thrust = np.interp(time, nodes, np.concatenate([held[:1], 0.5 * (held[1:] + held[:-1]), held[-1:]]))
    axes = frames.to_matrix(states[:, 6:10])
    velocity, pace, change = states[:, 3:6], pace[:, None], change[:, None]
    speed = np.linalg.norm(velocity, axis=1, keepdims=True)
    force = thrust[:, None] * axes[..., 2] - plan.model.drag * speed * velocity
    pull = force / plan.model.mass - np.array([0.0, 0.0, plan.model.gravity])
    # x(s(t)) with s' = 1 / pace: by the chain rule.
    return np.hstack([states[:, :3], velocity / pace, pull / pace**2 - velocity * change / pace**3, axes[..., 0]])
