"""The fastest flight through a course that also looks at the gates that matter: offline, and where solvers in flight begin.

The plan of minimum time looks at nothing, and a field of view with a sharp edge has no slope from there. So it is solved in
steps, from an edge that is as wide as the field to the real one, each from the plan before (continuation).
"""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np

from airworthy.core.arrays import ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.race.planning.bounds import PlanBounds, RacePlanOptions
from airworthy.race.planning.glances import SOFT, glances_of
from airworthy.race.planning.horizon import HorizonOptions, NodeGuess, whole_openings
from airworthy.race.planning.horizon_casadi import HorizonPlanner
from airworthy.race.planning.minimum_time import minimum_time_plan
from airworthy.race.planning.plan import RacePlan, course_digest, flown_gates, start_state
from airworthy.race.planning.racer import RacerModel
from airworthy.race.planning.replanner import ReplanOptions, glance_needs, inner_windows, too_late
from airworthy.race.record import Race

__all__ = ["glancing_plan"]

_SOFTENING = (10.0, 5.0, 2.5, 1.0)
"""Edges, in those of `SOFT`. Ours; from 10 at once to 1 the solver looks away again."""


def glancing_plan(
    race: Race, model: RacerModel, options: ReplanOptions | None = None, sigma: ArrayLike | None = None
) -> RacePlan:
    """Solve the fastest flight through a course, from rest at its start, with all its glances taken.

    Args:
        race: Its course: gates are where the record says, and nothing about them is uncertain.
        model: Who flies it.
        options: Margins and needs; nodes and iterations are those of an offline plan.
        sigma: How well each gate's place across the flight is known beforehand [m], (passages,): what is not known is looked at
            in time. Nothing given: all are known.

    Raises:
        AirworthyError: CasADi is not installed, or no plan was found.
    """
    options = options or ReplanOptions()
    offline = PlanBounds()
    bounds = replace(options.horizon.bounds, nodes=offline.nodes, iterations=offline.iterations)
    shapes = flown_gates(race)
    glances = glances_of([name for name, _ in race.passes])
    horizon = HorizonOptions(bounds, len(shapes), len(glances), solver="casadi", expand=False)
    gates = whole_openings(shapes)
    windows = inner_windows(gates, np.zeros((len(shapes), 2)), replace(options, horizon=horizon))
    planner = HorizonPlanner(model, len(shapes), horizon)
    begun = minimum_time_plan(race, model, RacePlanOptions(**asdict(bounds)))
    late_share = too_late(np.zeros(len(shapes)) if sigma is None else np.asarray(sigma, np.float64), begun.legs)
    asked = [(glance, options.need) for glance in glances]
    needs = glance_needs(asked, gates.center, range(len(shapes)), bounds.nodes, late_share)
    guess = NodeGuess(begun.states, begun.inputs, begun.legs)
    for factor in _SOFTENING:
        answer = planner.solve(start_state(race), windows, guess, needs, factor * SOFT)
        lacking = float(np.max(np.concatenate([answer.window_slack, answer.glance_slack, [0.0]])))
        # Slacks of an interior point method end a little above zero.
        if not answer.usable or lacking > 1e-3:
            raise AirworthyError(
                f"No plan with glances was found through the race {race.name!r}: the solver says {answer.status}, and"
                f" {lacking:.2g} m or s are lacking; ask for shorter looks, or lower the margins."
            )
        guess = NodeGuess(answer.plan.states, answer.plan.inputs, answer.plan.legs)
    return replace(answer.plan, digest=course_digest(race, model), options={**asdict(bounds), "need": options.need})
