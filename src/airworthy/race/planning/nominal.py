"""The stored plan that pilots in flight begin with, and the refusal of races and vehicles for which it was not made."""

from __future__ import annotations

import numpy as np

from airworthy.core.errors import AirworthyError
from airworthy.race.planning.horizon import GateWindows
from airworthy.race.planning.plan import RacePlan, packaged_plan
from airworthy.race.planning.racer import RacerModel

__all__ = ["nominal_plan"]

NOMINAL = "alphapilot_glances"
"""The stored plan with glances: what is flown first, and where solvers begin."""
_PLANE_M = 0.02
"""A crossing lies in its gate's plane to so much [m]: a thousand times what the stored plan's decimals and its solver leave."""
_DEFECT_MAX = 0.01
"""Largest defect [m, m/s, rad/s] for a vehicle that the plan is for: ten times what plans are accepted with."""


def nominal_plan(model: RacerModel, gates: GateWindows) -> RacePlan:
    """Return the stored plan with glances.

    Args:
        model: Who is to fly it.
        gates: All passages as they nominally stand, with their whole openings.

    Raises:
        AirworthyError: Its path does not lead through these gates, or it is a plan for another vehicle.
    """
    plan = packaged_plan(NOMINAL, model)
    reason = _misfit(plan, gates)
    if reason:
        raise AirworthyError(
            f"This pilot begins with the stored plan {NOMINAL!r} of the race 'alphapilot', and {reason}. Fly another race with"
            " `servo`, with `truth:race`, or with `airworthy races fly`."
        )
    return plan


def _misfit(plan: RacePlan, gates: GateWindows) -> str:
    """Say why a plan is none through these gates; empty: it is one."""
    if len(plan.legs) != len(gates.center):
        return f"it has {len(plan.legs)} passages where this race has {len(gates.center)}"
    each = len(plan.inputs) // len(plan.legs)
    crossed = plan.states[each::each]
    offset = crossed[:, :3] - gates.center
    aside = [np.abs(np.sum(offset * axis, axis=1)) for axis in (gates.left, gates.up)]
    outside = np.abs(np.sum(offset * gates.normal, axis=1)) > _PLANE_M
    outside |= (aside[0] > gates.half[:, 0]) | (aside[1] > gates.half[:, 1])
    # A gate that is flown the other way round stands in the same place.
    outside |= np.sum(crossed[:, 3:6] * gates.normal, axis=1) <= 0.0
    if np.any(outside):
        return f"it does not lead through passage {int(np.argmax(outside)) + 1} of this race as it nominally stands"
    worst = float(np.max(plan.defects()))
    if worst > _DEFECT_MAX:
        return f"this vehicle does not fly it: its steps lead up to {worst:.2g} m or m/s beside the next"
    return ""
