"""Where a solver begins in flight: the plan before as far as it reaches, and beyond it the stored nominal plan, moved with the
gates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array
from airworthy.race.planning.horizon import NodeGuess
from airworthy.race.planning.plan import RacePlan

__all__ = ["TimedPlan", "begun_guess"]

_PASSED = 0.01
"""A leg of the plan before that is shorter [s] is over: there is nothing of it to begin with."""
_SHORT = 0.1
"""Least duration that a leg of the nominal plan is given [s]; the one that has been half flown is shorter than stored."""


@dataclass(frozen=True)
class TimedPlan:
    """A plan with the moment at which it begins."""

    plan: RacePlan
    begun: float
    """[s since arming]."""
    first: int
    """Number of the passage where its first leg ends."""

    def at(self, time: float) -> tuple[Array, Array]:
        """Return states and inputs at a moment since arming [s], (13,) and (4,)."""
        states, inputs = self.plan.at(np.array([time - self.begun]))
        return states[0], inputs[0]

    def crossing(self, passage: int) -> float:
        """Return when a passage is planned [s since arming]; NaN where the plan does not reach it."""
        leg = passage - self.first
        return self.begun + float(self.plan.gate_times[leg]) if 0 <= leg < len(self.plan.legs) else float("nan")


def begun_guess(
    time: float,
    passages: range,
    nodes: int,
    *,
    before: TimedPlan | None,
    nominal: RacePlan,
    shifts: Array,
) -> NodeGuess:
    """Return a guess.

    Args:
        time: At which the plan is to begin [s since arming].
        passages: That it is to reach, in order.
        nodes: On each leg.
        before: The plan that is flown; None: there is none, or it is not to be trusted.
        nominal: Through all passages as they nominally stand.
        shifts: Where centres are believed, less where they nominally are [m], (all passages, 3).
    """
    states, inputs, legs, done = [], [], [], time
    for passage in passages:
        end = before.crossing(passage) if before is not None else float("nan")
        if before is not None and end > done + _PASSED:
            some, held = before.plan.at(np.linspace(done, end, nodes + 1) - before.begun)
            duration = end - done
        else:
            begin = 0.0 if passage == 0 else float(nominal.gate_times[passage - 1])
            duration = float(nominal.legs[passage])
            part = np.linspace(0.0, 1.0, nodes + 1)
            some, held = nominal.at(begin + part * duration)
            moved = shifts[passage - 1] if passage else np.zeros(3)
            some[:, :3] += moved * (1.0 - part)[:, None] + shifts[passage] * part[:, None]
            duration = max(duration, _SHORT)
        states.append(some[:-1])
        inputs.append(held[:-1])
        legs.append(duration)
        done += duration
    return NodeGuess(np.vstack([*states, some[-1:]]), np.vstack(inputs), np.array(legs))
