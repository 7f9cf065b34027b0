"""Every passage of a path through gates, proved: which gate, in which direction, in which order.

A path meets a gate where its distance to the gate's plane changes sign inside the opening. Pieces of the polynomial in
Bernstein form are halved until each is surely away from the opening, or surely inside it and moving one way along its normal;
then the signs at the ends of pieces are all that can happen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayInt
from airworthy.trajectories.gates import Gate
from airworthy.trajectories.proof import Verdict
from airworthy.trajectories.quantities import derivative_controls, halve
from airworthy.trajectories.trajectory import Trajectory

__all__ = ["Crossing", "CrossingCheck", "check_crossings"]


# Ours: a nanometre, above rounding of positions of some metres and below anything that is flown.
ON_PLANE = 1e-9
"""Distance to a gate's plane that counts as none [m]: paths join in it."""
# Ours: at 10 m/s a micrometre; halving further would only count rounding.
_SHORTEST = 1e-7  # pieces that are still open at this length stay open [s]


@dataclass(frozen=True)
class Crossing:
    """A passage through a gate's opening."""

    time: float
    """Just before which the plane was crossed [s]."""
    gate: int
    """Number of the gate in the first lap, from 0."""
    forwards: bool


@dataclass(frozen=True)
class CrossingCheck:
    """All passages of a path, held against a course."""

    crossings: tuple[Crossing, ...]
    """In order of time."""
    asked: tuple[int, ...]
    """Gates of the course in order, by the same numbers."""
    open_times: tuple[float, ...]
    """Where it could not be decided whether a gate is crossed [s]."""

    @property
    def verdict(self) -> Verdict:
        """It is "proven" when the path passes the course's gates in order, forwards, and none else."""
        if self.open_times:
            return "undecided"
        return "violated" if self.fault else "proven"

    @property
    def fault(self) -> str:
        """The first passage that is not as asked, as half a sentence; empty where all are."""
        for k, met in enumerate(self.crossings):
            if not met.forwards:
                return f"gate {met.gate + 1} is crossed backwards at {met.time:.2f} s"
            if k >= len(self.asked):
                return f"gate {met.gate + 1} is passed again at {met.time:.2f} s, after the last one"
            if met.gate != self.asked[k]:
                return f"gate {met.gate + 1} is passed at {met.time:.2f} s, where gate {self.asked[k] + 1} is asked for"
        if len(self.crossings) < len(self.asked):
            return f"gate {self.asked[len(self.crossings)] + 1} is not passed"
        return ""


def check_crossings(trajectory: Trajectory, gates: Sequence[Gate]) -> CrossingCheck:
    """Find every passage of a path through any gate of a course.

    Args:
        trajectory: The path. One that begins or ends in a gate's plane has not crossed it there.
        gates: In the order to be flown; a gate flown on two laps stands there twice.
    """
    kinds = list(dict.fromkeys(gates))
    numbers = {gate: k for k, gate in enumerate(kinds)}
    controls, times = derivative_controls(trajectory, 0)
    pieces = np.tile(np.arange(len(times)), len(kinds))
    owner = np.repeat(np.arange(len(kinds)), len(times))
    local = _in_gate_frames(controls[pieces], kinds, owner)
    half = 0.5 * np.array([gate.opening for gate in kinds])
    inside, undecided = _resolved(local, times[pieces], owner, half)
    crossings = [met for k in range(len(kinds)) for met in _met(k, *(x[inside.owner == k] for x in inside.ends))]
    crossings.sort(key=lambda met: met.time)
    return CrossingCheck(tuple(crossings), tuple(numbers[gate] for gate in gates), undecided)


def _in_gate_frames(controls: Array, kinds: Sequence[Gate], owner: ArrayInt) -> Array:
    """Control points ahead of, left of and above the centre of each piece's gate, (n, 3, k)."""
    center = np.array([gate.position for gate in kinds])[owner]
    yaw = np.array([gate.yaw for gate in kinds])[owner]
    c, s = np.cos(yaw)[:, None], np.sin(yaw)[:, None]
    x, y, z = np.moveaxis(controls - center[:, :, None], 1, 0)
    return np.stack((c * x + s * y, c * y - s * x, z), axis=1)


@dataclass(frozen=True)
class _Inside:
    """Pieces inside an opening that move one way along its normal."""

    owner: ArrayInt
    ends: tuple[Array, Array]
    """Times of their ends and distances to the plane there, (n, 2) each."""


def _resolved(local: Array, times: Array, owner: ArrayInt, half: Array) -> tuple[_Inside, tuple[float, ...]]:
    kept: list[tuple[ArrayInt, Array, Array]] = []
    undecided: list[float] = []
    while len(owner):
        low, high = np.min(local, axis=-1), np.max(local, axis=-1)
        wide = half[owner]
        far = (low[:, 0] > ON_PLANE) | (high[:, 0] < -ON_PLANE)
        far |= np.any((low[:, 1:] > wide) | (high[:, 1:] < -wide), axis=1)
        within = np.all((low[:, 1:] >= -wide) & (high[:, 1:] <= wide), axis=1)
        step = np.diff(local[:, 0], axis=-1)
        # At rest, and where segments join, the derivative vanishes to rounding.
        slack = 1e-13 * (1.0 + np.max(np.abs(local[:, 0]), axis=-1))
        monotonic = (np.min(step, axis=-1) >= -slack) | (np.max(step, axis=-1) <= slack)
        done = ~far & within & monotonic
        kept.append((owner[done], times[done], local[done][:, 0][:, [0, -1]]))
        more = ~far & ~done
        short = more & (times[:, 1] - times[:, 0] < _SHORTEST)
        undecided += [float(t) for t in times[short, 0]]
        more &= ~short
        (local,), times = halve((local[more],), times[more])
        owner = np.tile(owner[more], 2)
    owners, spans, ends = (np.concatenate(x) for x in zip(*kept, strict=True))
    return _Inside(owners, (spans, ends)), tuple(sorted(undecided))


def _met(number: int, spans: Array, ends: Array) -> list[Crossing]:
    """Return changes of sign along touching pieces of one gate; ends on the plane itself have no sign."""
    found, side, until = [], 0.0, -np.inf
    for k in np.argsort(spans[:, 0], kind="stable"):
        # Only pieces that touch tell of a crossing: between others the path left the opening and may have come back.
        if spans[k, 0] > until + ON_PLANE:
            side = 0.0  # not joined to the piece before: it came from elsewhere
        for time, ahead in zip(spans[k], ends[k], strict=True):
            now = float(np.sign(ahead)) if abs(ahead) > ON_PLANE else 0.0
            if now and side and now != side:
                # The side changes between two signed ends; where the ends lie on the plane itself the change is told by the
                # next signed one.
                found.append(Crossing(float(time), number, now > 0.0))
            side = now or side
        until = spans[k, 1]
    return found
