"""The job behind `airworthy races fly`: courses of a race flown by `truth:race` -> refereed flights -> one file.

A race with the true state is no result of its benchmark: rows say "with true state", that rotor speeds are commanded, and that
planning takes no simulated time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from airworthy import __version__
from airworthy.core.errors import AirworthyError
from airworthy.core.jobs.block_job import describe_machine
from airworthy.race.benchmark.course_flight import COMMAND_HZ, CourseFlight, Told, fly_courses
from airworthy.race.benchmark.flight import check_scene
from airworthy.race.courses import course_of
from airworthy.race.gates_apart import check_apart
from airworthy.race.pilots.rotor_pilot import RotorInverse
from airworthy.race.planning.course_planner import CoursePlanner, plan_options
from airworthy.race.planning.minimum_time import casadi_module
from airworthy.race.planning.plan import RacePlan
from airworthy.race.published import TRUE_STATE
from airworthy.race.racers import race_vehicle
from airworthy.race.record import Race
from airworthy.race.scoring import race_statistics

__all__ = ["course_row", "fly_race_courses", "summary_of"]

_RESERVES = (0.03, 0.07)
"""Parts of all thrust that plans leave unused besides, tried in turn where a rehearsal is lost; ours. `random:77123`, a climb
and a dive of 0.8 s at full thrust, is flown up to 0.31 m off without, and 0.14 and 0.13 m with them."""


def fly_race_courses(
    race: Race, courses: Sequence[str], *, seed: int = 0, flown: Callable[[CourseFlight], None] = lambda flight: None
) -> tuple[CourseFlight, ...]:
    """Fly courses of a race with the true state, one after the other.

    Args:
        race: Nominal, with a vehicle, and not in the hall, whose races have a benchmark of their own.
        courses: Names, each once.
        seed: Of the spread of vehicles.
        flown: Told each flight when it has ended.

    Raises:
        AirworthyError: A race of the hall, no vehicle, no solver, no such course, or no plan.
    """
    check_scene(race)
    if race.scene:
        raise AirworthyError(
            f"The race {race.name!r} is flown in its scene {race.scene!r}: airworthy bench race --pilot truth:race."
        )
    casadi_module()
    # What cannot be flown is refused before a plan of minutes is solved: the vehicle, and any of the courses.
    flown_by = race_vehicle(race)
    RotorInverse(flown_by)
    plans = CoursePlanner.of(race, flown_by)
    for name in courses:
        check_apart(course_of(race, name))
    flights: list[CourseFlight] = []
    for name in courses:
        # Alone: a plan in flight takes a second, a batch would wait for each of them and gain nothing.
        try:
            flights.append(_flown(race, name, plans, seed))
        except AirworthyError as error:
            raise AirworthyError(f"{error} This was the course {name!r}, behind {len(flights)} that were flown.") from error
        flown(flights[-1])
    return tuple(flights)


def _flown(race: Race, course: str, plans: CoursePlanner, seed: int) -> CourseFlight:
    """Return the flight of a course; where all is known beforehand, behind rehearsals that did not complete it, if need be.

    A rehearsal flies the same vehicle from the same start along the same plan, so that the flight of the plan that it completes
    is its own to the bit, and is not flown twice. What is drawn, or told in flight, cannot be rehearsed.
    """

    def fly(reserve: float) -> CourseFlight:
        (flight,) = fly_courses(race, [course], partial(_planned, plans.with_reserve(reserve)), seed=seed)
        return replace(flight, reserve=reserve)

    flight = fly(0.0)
    if flight.result.completed or race.spread is not None or race.information.gates == "near":
        return flight
    tried = 0
    for number, reserve in enumerate(_RESERVES, 1):
        try:
            calmer = fly(reserve)
        except AirworthyError:
            break  # with less thrust there is no plan: the boldest flight stands
        if calmer.result.completed:
            return replace(calmer, rehearsals=number)
        tried = number
    return replace(flight, rehearsals=tried)


def _planned(plans: CoursePlanner, told: Told) -> RacePlan | None:
    if told.plan is None:
        return plans.first(told.race, told.unseen)
    return plans.rest(told.race, state=told.state, passed=told.passed, before=told.plan, clock=told.clock, unseen=told.unseen)


def course_row(flight: CourseFlight) -> dict[str, Any]:
    """Return a flight as JSON has it: null where a number is not there."""
    result = flight.result
    return {
        "course": flight.course,
        "end": result.end,
        "completed": result.completed,
        "time_s": _number(result.time_s),
        "passed": result.passed,
        "part": flight.part,
        "missed": flight.missed,
        "missed_s": _number(flight.missed_s),
        "planned_s": flight.planned_s,
        "rehearsals": flight.rehearsals,
        "reserve": flight.reserve,
        "plans": flight.plans,
        "plans_failed": flight.failures,
        "error_max_m": flight.error_max,
        "speed_max_mps": flight.speed_max,
        "path_m": flight.path_m,
        "commands_sha256": flight.commands_sha256,
        "passages": [
            {
                "gate": item.gate,
                "strict_s": _number(item.strict_time),
                "offset_m": [_number(value) for value in item.offset],
            }
            for item in result.passages
        ],
    }


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _informed(race: Race) -> str:
    """Return what its pilot knows, and whether that is what the race itself gives."""
    if race.information.sensors != ("state",):
        return TRUE_STATE
    near = f", gates and posts told within {race.information.near_m:g} m" if race.information.gates == "near" else ""
    return f"{TRUE_STATE}, which the race gives{near}"


def _rehearsed(flights: Sequence[CourseFlight]) -> str:
    """Return what share of flights is not that of a first attempt: who reads how many were completed must know; empty: none."""
    again = [flight.course for flight in flights if flight.rehearsals and flight.result.completed]
    lost = [
        f"{flight.rehearsals} of {flight.course}" for flight in flights if flight.rehearsals and not flight.result.completed
    ]
    told = f"; {len(again)} of {len(flights)} behind rehearsals that were lost ({', '.join(again)})" if again else ""
    return told + (f"; {len(lost)} of {len(flights)} lost, and calmer ones too: {', '.join(lost)}" if lost else "")


def warning_of(race: Race, flights: Sequence[CourseFlight]) -> str:
    """Return what is to be said of flights that knew where everything is, and hit or missed something or came near to it.

    Empty: nothing.

    Args:
        race: Nominal.
        flights: Of it.
    """
    options = plan_options(race, race_vehicle(race))
    room, runs = min(options.margin, options.clearance), len(flights)
    hits = [flight for flight in flights if flight.result.end == "contact"]
    missed = [flight for flight in flights if flight.missed and flight not in hits]
    near = [flight for flight in flights if flight.error_max > room and flight.result.completed]
    said = []
    if hits:
        parts = ", ".join(dict.fromkeys(flight.part for flight in hits))
        said.append(f"{len(hits)} of {runs} flights hit something although the true state was known ({parts})")
    if missed:
        gates = ", ".join(dict.fromkeys(f"{flight.missed} at {flight.missed_s:.3g} s" for flight in missed))
        said.append(f"{len(missed)} of {runs} flights missed a gate although the true state was known ({gates})")
    if near:
        said.append(f"{len(near)} of {runs} flights were lucky to hit nothing")
    if not said:
        return ""
    worst = max(flight.error_max for flight in (*hits, *missed, *near))
    return (
        f"Warning: {' and '.join(said)}: they were up to {worst:.2g} m off plans that keep {room:.2g} m from frames, edges and"
        " posts at best; wider openings, or more way to turn in before them, make the race safer"
    )


def summary_of(race: Race, flights: Sequence[CourseFlight], seed: int) -> dict[str, Any]:
    """Return what is said of flights of a race.

    Args:
        race: Nominal.
        flights: At least one.
        seed: Of the spread of vehicles.
    """
    times = [flight.result.time_s for flight in flights if flight.result.completed]
    return {
        "version": __version__,
        "race": race.name,
        "pilot": "truth:race",
        "note": f"{_informed(race)}; rotor speeds at {COMMAND_HZ:g} Hz; planning takes no simulated time{_rehearsed(flights)}",
        "vehicle": race.vehicle,
        "seed": seed,
        "runs": len(flights),
        "completed": len(times),
        "mean_time_s": float(np.mean(times)) if times else None,
        "best_time_s": min(times) if times else None,
        "worst_time_s": max(times) if times else None,
        "warning": warning_of(race, flights),
        "statistics": race_statistics(race.score, [flight.result for flight in flights]),
        "flights": [course_row(flight) for flight in flights],
        "hardware": describe_machine(),
    }
