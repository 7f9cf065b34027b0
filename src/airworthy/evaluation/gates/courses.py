"""Courses of a benchmark: planned, certified, looked at again, flown; lap times beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.evaluation.gates.comparing import least_time, other_laps
from airworthy.evaluation.gates.config import GatesConfig, course_of
from airworthy.evaluation.gates.dense import dense_row
from airworthy.evaluation.gates.families import FAMILIES, Spread
from airworthy.evaluation.gates.flying import FlightOptions, Flown, fly
from airworthy.evaluation.gates.limiting import mass_spread_of
from airworthy.evaluation.gates.rows import number, plan_row, rows_of, short
from airworthy.pilots.boundary.planner import plan, plan_many
from airworthy.pilots.boundary.plans import BoundaryPlan, PlanOptions
from airworthy.trajectories import Limits, Trajectory
from airworthy.trajectories.generated_courses import RandomCourse, random_course
from airworthy.trajectories.limits import path_usage

__all__ = ["course_content", "flight_options", "flights_content", "plan_options", "random_content"]

Array = NDArray[np.float64]

DRAWN = 12
"""Flights of which the path is kept, of each course and family."""
PATH_RATE = 25.0
_QUANTILES = (0.05, 0.5, 0.95)


def plan_options(config: GatesConfig) -> PlanOptions:
    """What plans of a benchmark must keep."""
    return PlanOptions(
        limits=config.limits,
        clearance=config.clearance,
        floor=config.floor,
        headings=config.headings,
        ramp=config.yaw_ramp,
        outside=config.outside,
        lowerings=config.lowerings,
    )


def flight_options(config: GatesConfig, family: str) -> FlightOptions:
    """How plans of a benchmark are flown."""
    spread = Spread(mass=mass_spread_of(family, config.mass_spread))
    return FlightOptions(seed=config.seed, spread=spread, device=config.device, threads=config.threads)


def course_content(word: str, config: GatesConfig, predictor: Any, others: bool = True) -> dict[str, Any]:
    """A plan, its certificate, what 10,000 samples a second say of it, and lap times beside it.

    Args:
        word: The course.
        config: Settings.
        predictor: Who predicts.
        others: Find the other planners' laps, too.
    """
    found = course_of(word)
    made = plan(found, predictor, plan_options(config), config.laps or None)
    content: dict[str, Any] = {"course": found.name, "plan": made.report(), "laps": _laps(made, config, others)}
    content["row"] = plan_row(made)
    content["gates"] = [
        {"position_m": list(gate.position), "yaw_rad": gate.yaw, "opening_m": list(gate.opening)} for gate in found.gates
    ]
    content["dense"] = dense_row(made, plan_options(config)) if made.flyable else None
    if made.trajectory is not None:
        content["path"] = _path(made.trajectory, config.limits)
    return content


def _path(path: Trajectory, limits: Limits) -> dict[str, Any]:
    """Of a path, for figures: places, speeds, and the share of the limits that is used."""
    t = np.arange(0.0, path.duration + 0.5 / PATH_RATE, 1.0 / PATH_RATE)
    flat = path.sample(t)
    return {
        "t_s": short(t),
        "position_m": short(flat.position),
        "speed_m_s": short(np.linalg.norm(flat.velocity, axis=-1)),
        "used": short(path_usage(limits, flat.velocity, flat.acceleration, flat.jerk)),
    }


def _laps(made: BoundaryPlan, config: GatesConfig, others: bool) -> dict[str, Any]:
    start = made.route.positions[0]
    told: dict[str, Any] = {}
    if others:
        place, yaw = (float(start[0]), float(start[1]), float(start[2])), float(made.route.headings[0])
        laps = other_laps(place, yaw, made.gates, config.limits, config.clearance, config.floor)
        told = {lap.planner: asdict(lap) for lap in laps}
    verdict = made.certificate.verdict if made.certificate else ""
    told["plan"] = {"planner": "plan", "time": made.lap_time, "passed": made.flyable, "verdict": verdict}
    told["least"] = {"planner": "least", "time": least_time(made.route.positions[:-1], config.limits)}
    return told


def flights_content(word: str, family: str, config: GatesConfig, predictor: Any) -> dict[str, Any]:
    """Randomised flights of one approved plan in one family; none where it was refused."""
    found = course_of(word)
    made = plan(found, predictor, plan_options(config), config.laps or None)
    content: dict[str, Any] = {"course": found.name, "family": family, "rows": []}
    if not made.flyable:
        return content
    flown = fly([made.approved()], [made.gates], FAMILIES[family], config.flights, flight_options(config, family))
    content["rows"] = rows_of(flown)
    bands = np.full((3, len(flown.t)), np.nan)
    known = np.isfinite(flown.error).any(axis=0)
    bands[:, known] = np.nanquantile(flown.error[:, known], _QUANTILES, axis=0)
    ahead = made.approved().sample(flown.t).position
    content["error"] = {"t_s": short(flown.t), "bands_m": short(bands), "offset_z_m": short(_offset(flown, ahead))}
    content["paths_m"] = short(flown.position[:DRAWN])
    content["gate_offset_max_m"] = short(np.nan_to_num(np.max(np.abs(np.nan_to_num(flown.results.offsets)), axis=0)))
    return content


def _offset(flown: Flown, ahead: Array) -> Array:
    """Median height of flights over their reference [m]."""
    return np.asarray(np.median(flown.position[:, :, 2] - ahead[:, 2], axis=0))


def random_content(numbers: Sequence[int], config: GatesConfig, predictor: Any, others: bool = True) -> dict[str, Any]:
    """Random courses: planned together, each approved one flown once in each family.

    Args:
        numbers: Of the courses, which fix what their flights draw.
        config: Settings.
        predictor: Who predicts.
        others: Find the other planners' laps of the first ones, too.
    """
    choice = RandomCourse(gates=config.random_gates, heading=config.random_heading)
    plans = plan_many([random_course(k, config.seed, choice) for k in numbers], predictor, plan_options(config))
    rows = [plan_row(made) for made in plans]
    for row, made, k in zip(rows, plans, numbers, strict=True):
        row["least_time_s"] = number(least_time(made.route.positions[:-1], config.limits))
        row["laps"] = _laps(made, config, True) if others and k < config.random_compared else None
        row["dense"] = dense_row(made, plan_options(config)) if made.flyable else None
    approved = {k: made for k, made in zip(numbers, plans, strict=True) if made.flyable}
    return {"plans": rows, "flights": {name: _flown_random(approved, name, config) for name in config.families}}


def _flown_random(approved: dict[int, BoundaryPlan], name: str, config: GatesConfig) -> list[dict[str, Any]]:
    if not approved:
        return []
    paths, courses = [made.approved() for made in approved.values()], [made.gates for made in approved.values()]
    flown = fly(paths, courses, FAMILIES[name], 1, flight_options(config, name), numbers=list(approved))
    return rows_of(flown, [made.name for made in approved.values()])
