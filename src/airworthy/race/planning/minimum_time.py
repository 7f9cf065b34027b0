"""The fastest flight through a course, by multiple shooting: an offline plan, the rest of one in flight, the bound of both.
The programme itself: `airworthy.race.planning.minimum_time_program`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from typing import Any

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.race.planning.beginnings import sampled, slowly
from airworthy.race.planning.bounds import RacePlanOptions
from airworthy.race.planning.minimum_time_program import SOLVED, MinimumTimeProgram, ProgramEnd
from airworthy.race.planning.obstacles import KeepOff, obstacles_of
from airworthy.race.planning.plan import RacePlan, course_digest, flown_gates, start_state
from airworthy.race.planning.racer import RacerModel
from airworthy.race.planning.ways import check_time, check_ways
from airworthy.race.record import Race

__all__ = ["casadi_module", "minimum_time_plan", "rest_plan"]

_AGAIN = (0.7, 1.4, 0.4)
"""Speeds of further guesses over that of the first, where no plan was found from it; ours."""
_CROSSED = 0.01
"""Slack from which on a plan is looked for from another beginning, too: a centimetre beside a window, or a half per cent of the
distance from a post."""
_TAKES = 0.6
"""Least duration of a leg that is flown slowly at first, over that of its guess."""
_TOLERANCE = 1e-3
"""Largest defect of a plan that is accepted: mm, mm/s (spec/race, acceptance 6)."""


def minimum_time_plan(
    race: Race,
    model: RacerModel,
    options: RacePlanOptions | None = None,
    unseen: Collection[str] = (),
    like: RacePlan | None = None,
) -> RacePlan:
    """Solve the fastest flight through a course, from rest at its start to its last gate.

    Args:
        race: Its course: gates are where the record says.
        model: Who flies it.
        options: Bounds.
        unseen: Gates that may stand elsewhere yet (`RacePlanOptions.speed_max`).
        like: A plan through the same gates from a place near the start, with which the solver begins; None: it begins with
            lines and curves from gate to gate.

    Raises:
        AirworthyError: CasADi is not installed, or no plan was found.
    """
    if not isinstance(race, Race) or not isinstance(model, RacerModel):
        raise AirworthyError(
            f"A plan was asked for of {type(race).__name__} and {type(model).__name__}; expected a Race and a RacerModel."
        )
    options = options or RacePlanOptions()
    problem = MinimumTimeProgram(
        casadi_module(), model, flown_gates(race), start_state(race), options, _obstacles(race, options, 0)
    )
    problem.unseen = frozenset(unseen)
    lower, upper = problem.ranges()
    if np.any(lower > upper):
        raise AirworthyError(
            f"No plan was found through the race {race.name!r}: its limits leave no room between height_min and the walls."
        )
    if like is not None:
        problem.warm = sampled(like, 0.0, len(problem.gates), problem.options.nodes, problem.start)
    check_ways(race, problem.obstacles, options)
    check_time(race, model, options.cruise)
    found = problem.solve()
    for number, share in enumerate((1.0, *_AGAIN) if like is not None else _AGAIN):
        # Where a guess leads nowhere another one does: which, nobody knows before.
        if found.status not in SOLVED:
            problem.warm, problem.guess_share, problem.guess_side = None, share, 2.0 * (number % 2) - 1.0
            found = min(found, problem.solve(), key=lambda one: one.rank)
    return _checked(problem, race, problem.shorter(found))


def rest_plan(
    race: Race,
    model: RacerModel,
    options: RacePlanOptions,
    *,
    state: Array,
    passed: int,
    before: RacePlan,
    clock: float,
    unseen: Collection[str] = (),
) -> RacePlan:
    """Solve the fastest flight through the rest of a race, from a state in flight, warm from the plan in force.

    Args:
        race: Gates and posts where they are believed to be.
        model: Who flies it.
        options: Bounds.
        state: Where the plan begins, (13,).
        passed: Passages that lie behind.
        before: The plan in force; its last legs are those that are left.
        clock: Its time at that state [s].
        unseen: As of `minimum_time_plan`.

    Raises:
        AirworthyError: CasADi is not installed, nothing is left, or no plan was found.
    """
    gates = flown_gates(race)[passed:]
    if not gates or len(gates) > len(before.legs):
        raise AirworthyError(
            f"{passed} passages of {len(race.passes)} lie behind, which the plan in force does not go on from."
        )
    problem = MinimumTimeProgram(casadi_module(), model, gates, state, options, _obstacles(race, options, passed))
    problem.unseen = frozenset(unseen)
    problem.held = before.at([clock])[1][0]
    problem.warm = sampled(before, clock, len(gates), options.nodes, state)
    found = problem.shorter(problem.solve())
    crossed = [leg for leg in range(len(gates)) if np.max(found.slacks[:2, leg]) > _CROSSED]
    if crossed:
        # From a path that led elsewhere the solver may end at a bar, or on the wrong side of a post, where braking or the other
        # side was the way: slowly and straight is another beginning, and the better of both ends is taken.
        problem.far = True
        first = found
        # A post right before a gate that stands elsewhere leaves a window out of reach on one of its sides, too.
        for around in (False, True) if len(problem.obstacles.posts) else (False,):
            posts = problem.obstacles.posts if around else None
            problem.warm = slowly((first.states, first.inputs, first.legs), crossed, state, gates, problem.hover, posts)
            # Without a least duration the solver hurries back to where it came from.
            problem.least[crossed] = _TAKES * problem.warm[-len(gates) :][crossed]
            found = min(found, problem.solve(), key=lambda one: one.rank)
    return _checked(problem, race, found)


def _obstacles(race: Race, options: RacePlanOptions, passed: int) -> KeepOff:
    return obstacles_of(race, options.clearance, options.wall).after(passed)


def _checked(problem: MinimumTimeProgram, race: Race, found: ProgramEnd) -> RacePlan:
    model, options = problem.model, problem.options
    plan = RacePlan(found.states, found.inputs, found.legs, model, course_digest(race, model), asdict(options))
    worst = float(np.max(plan.defects()))
    if found.status in SOLVED and worst < _TOLERANCE:
        return plan
    why = (
        f"steps of its path err by {worst:.2g}, expected below {_TOLERANCE:g}"
        if found.status in SOLVED
        else f"it ends with a path that does not keep {found.broken}"
    )
    raise AirworthyError(
        f"No plan was found through the race {race.name!r}: the solver says {found.status}, and {why}; check that its gates can"
        " be flown, or change RacePlanOptions: raise iterations or nodes, or lower margin."
    )


def casadi_module() -> Any:
    """Import CasADi where it is first needed; raises AirworthyError where it is not installed."""
    try:
        import casadi
    except ModuleNotFoundError as error:
        raise AirworthyError("Solving a plan needs the package 'casadi': pip install 'airworthy[race]'.") from error
    return casadi
