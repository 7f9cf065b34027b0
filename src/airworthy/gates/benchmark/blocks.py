"""The benchmark's work in parts, each a pure function of the settings: courses, flights, random courses, errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.jobs.block_store import ManifestKind
from airworthy.core.jobs.json_blocks import JsonBlockStore
from airworthy.gates.benchmark.baselines import baseline_laps, least_time
from airworthy.gates.benchmark.config import GatesBenchConfig, course_of
from airworthy.gates.benchmark.dense_check import dense_row
from airworthy.gates.benchmark.families import FAMILIES, FlightSpread, GatesMethod, mass_spread_of
from airworthy.gates.benchmark.flights import FlightOptions, PlanFlights, fly
from airworthy.gates.benchmark.predictions import errors_content, number, plan_row, rows_of, short
from airworthy.gates.planner.certificate import BoundaryPlan, PlanOptions
from airworthy.gates.planner.planner import plan, plan_many
from airworthy.trajectories import Limits, Trajectory
from airworthy.trajectories.generated_courses import RandomCourse, random_course
from airworthy.trajectories.limits import path_usage

__all__ = [
    "WorkBlock",
    "blocks_of",
    "course_content",
    "flight_options",
    "flights_content",
    "plan_options",
    "random_content",
    "worked",
]

# ---- What a gates benchmark keeps on disk: one JSON file per finished block, whole or not there -----------------------------
#
# gates_bench.json     what was asked, and its digest
# blocks/NAME.json     a block's content with the digest of what it belongs to and a checksum

MANIFEST_FILE = "gates_bench.json"
SCHEMA_VERSION = 2


class GatesStore(JsonBlockStore):
    """The folder of a benchmark."""

    kind = ManifestKind(MANIFEST_FILE, "a gates benchmark", SCHEMA_VERSION)


# -----------------------------------------------------------------------------------------------------------------------------

# ---- Courses of a benchmark: planned, certified, looked at again, flown; lap times beside them ------------------------------

# Ours: enough to see the spread of a hundred flights, few enough to tell lines apart.
DRAWN = 12
"""Flights of which the path is kept, of each course and family."""
PATH_RATE = 25.0
# Ours: median and the middle nine tenths.
_QUANTILES = (0.05, 0.5, 0.95)


def plan_options(config: GatesBenchConfig) -> PlanOptions:
    """Return what plans of a benchmark must keep."""
    return PlanOptions(
        limits=config.limits,
        clearance=config.clearance,
        floor=config.floor,
        headings=config.headings,
        ramp=config.yaw_ramp,
        outside=config.outside,
        lowerings=config.lowerings,
    )


def flight_options(config: GatesBenchConfig, family: str) -> FlightOptions:
    """Return how plans of a benchmark are flown."""
    spread = FlightSpread(mass=mass_spread_of(family, config.mass_spread))
    return FlightOptions(
        seed=config.seed,
        spread=spread,
        vehicle=config.vehicle,
        identified=config.randomize is not None,
        device=config.device,
        threads=config.threads,
    )


def course_content(specifier: str, config: GatesBenchConfig, predictor: Any, others: bool = True) -> dict[str, Any]:
    """Return a plan, its certificate, what 10,000 samples a second say of it, and lap times beside it.

    Args:
        specifier: The course.
        config: Settings.
        predictor: Who predicts.
        others: Find the other planners' laps, too.
    """
    found = course_of(specifier)
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


def _laps(made: BoundaryPlan, config: GatesBenchConfig, others: bool) -> dict[str, Any]:
    start = made.route.positions[0]
    table: dict[str, Any] = {}
    if others:
        position, yaw = (float(start[0]), float(start[1]), float(start[2])), float(made.route.headings[0])
        laps = baseline_laps(position, yaw, made.gates, config.limits, config.clearance, config.floor)
        table = {lap.planner: asdict(lap) for lap in laps}
    verdict = made.certificate.verdict if made.certificate else ""
    table["plan"] = {"planner": "plan", "time": made.lap_time, "passed": made.flyable, "verdict": verdict}
    table["least"] = {"planner": "least", "time": least_time(made.route.positions[:-1], config.limits)}
    return table


def flights_content(specifier: str, family: str, config: GatesBenchConfig, predictor: Any) -> dict[str, Any]:
    """Return randomised flights of one approved plan in one family; none where it was refused.

    Args:
        specifier: Name of the course.
        family: Name of the vehicle's family.
        config: Of the benchmark.
        predictor: Whose plan is flown.
    """
    found = course_of(specifier)
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


def _offset(flown: PlanFlights, ahead: Array) -> Array:
    """Median height of flights over their reference [m]."""
    return np.asarray(np.median(flown.position[:, :, 2] - ahead[:, 2], axis=0))


def random_content(numbers: Sequence[int], config: GatesBenchConfig, predictor: Any, others: bool = True) -> dict[str, Any]:
    """Return random courses: planned together, each approved one flown once in each family.

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


def _flown_random(approved: dict[int, BoundaryPlan], name: str, config: GatesBenchConfig) -> list[dict[str, Any]]:
    if not approved:
        return []
    paths, courses = [made.approved() for made in approved.values()], [made.gates for made in approved.values()]
    flown = fly(paths, courses, FAMILIES[name], 1, flight_options(config, name), numbers=list(approved))
    return rows_of(flown, [made.name for made in approved.values()])


# -----------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WorkBlock:
    """A part of the work."""

    name: str
    kind: str
    """"course", "flights", "random" or "errors"."""
    who: int = 0
    """Number of the method."""
    course: str = ""
    family: str = ""
    first: int = 0
    count: int = 0


def blocks_of(config: GatesBenchConfig, methods: Sequence[GatesMethod]) -> list[WorkBlock]:
    """Return every block, in order: all of a course, then the next, so that what is there can be compared early."""
    made = []
    everyone = range(len(methods))
    for specifier in config.courses:
        name = course_of(specifier).name
        for who in everyone:
            made.append(WorkBlock(f"{_who(who)}course-{name}", "course", who, specifier))
            made += [
                WorkBlock(f"{_who(who)}flights-{name}-{family}", "flights", who, specifier, family)
                for family in config.families
            ]
    for first in range(0, config.random, config.block):
        count = min(config.block, config.random - first)
        made += [WorkBlock(f"{_who(who)}random-{first:06d}", "random", who, first=first, count=count) for who in everyone]
    if config.off_grid:
        asked = [who for who in everyone if methods[who].truth is not None]
        made += [WorkBlock(f"{_who(who)}errors", "errors", who, count=config.off_grid) for who in asked]
    return made


def _who(number: int) -> str:
    return f"beside{number}-" if number else ""


def worked(block: WorkBlock, config: GatesBenchConfig, methods: Sequence[GatesMethod]) -> dict[str, Any]:
    """Do one block.

    Args:
        block: Which.
        config: Settings.
        methods: All of them, `--network` first.
    """
    own = methods[block.who]
    if block.kind == "course":
        # What other planners make of a course does not depend on who predicts: it is found once.
        return course_content(block.course, config, own.predictor, others=block.who == 0)
    if block.kind == "flights":
        return flights_content(block.course, block.family, config, own.predictor)
    if block.kind == "random":
        return random_content(range(block.first, block.first + block.count), config, own.predictor, others=block.who == 0)
    return errors_content(block.count, config.seed, own)
