"""The benchmark's work in parts, each a pure function of the settings: courses, flights, random courses, errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.random import Stream, flight_key, uniforms
from airworthy.evaluation.gates.comparing import least_time, other_laps
from airworthy.evaluation.gates.config import GatesConfig, course_of
from airworthy.evaluation.gates.families import FAMILIES, Spread
from airworthy.evaluation.gates.flying import FlightOptions, Flown, fly
from airworthy.pilots.boundary.errors import percent_error
from airworthy.pilots.boundary.planner import BoundaryPlan, PlanOptions, plan, plan_many
from airworthy.pilots.boundary.window import RANGES
from airworthy.tasks.gates import FLOOR
from airworthy.trajectories import Course
from airworthy.trajectories.generated_courses import RandomCourse, random_course

Array = NDArray[np.float64]
Ask = Callable[[Array], Any]

OWN_SPREAD = "competition"
"""The family whose flights differ as Table I says; the lift of the others leaves room for a third of its masses."""
DRAWN = 12
"""Flights of which the path is kept, of each course and family."""
PATH_RATE = 25.0
_QUANTILES = (0.05, 0.5, 0.95)


@dataclass(frozen=True)
class Block:
    """A part of the work."""

    name: str
    kind: str
    """"course", "flights", "random" or "errors"."""
    course: str = ""
    family: str = ""
    first: int = 0
    count: int = 0


def blocks_of(config: GatesConfig, with_errors: bool) -> list[Block]:
    """Every block, in order."""
    made = []
    for word in config.courses:
        name = course_of(word).name
        made.append(Block(f"course-{name}", "course", word))
        made += [Block(f"flights-{name}-{family}", "flights", word, family) for family in config.families]
    for first in range(0, config.random, config.block):
        count = min(config.block, config.random - first)
        made.append(Block(f"random-{first:06d}", "random", first=first, count=count))
    if with_errors and config.off_grid:
        made.append(Block("errors", "errors", count=config.off_grid))
    return made


def worked(block: Block, config: GatesConfig, predictor: Any, truth: Ask | None) -> dict[str, Any]:
    """Do one block.

    Args:
        block: Which.
        config: Settings.
        predictor: Who predicts.
        truth: A fresh search's labels of situations (k, 8) as (k, 2), for "errors".
    """
    if block.kind == "course":
        return _course(block, config, predictor)
    if block.kind == "flights":
        return _flights(block, config, predictor)
    if block.kind == "random":
        return _random(block, config, predictor)
    if truth is None:
        return {}
    return _errors(block, config, predictor, truth)


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
    mass = config.mass_spread if family == OWN_SPREAD else config.mass_spread / 3.0
    return FlightOptions(seed=config.seed, spread=Spread(mass=mass), device=config.device, threads=config.threads)


def _planned(word: str, config: GatesConfig, predictor: Any) -> tuple[Course, BoundaryPlan]:
    found = course_of(word)
    return found, plan(found, predictor, plan_options(config), config.laps or None)


def _course(block: Block, config: GatesConfig, predictor: Any) -> dict[str, Any]:
    """A plan, its certificate, and lap times beside it."""
    found, made = _planned(block.course, config, predictor)
    content: dict[str, Any] = {"course": found.name, "plan": made.report(), "laps": _laps(made, config)}
    gates = [{"position_m": list(gate.position), "yaw_rad": gate.yaw, "opening_m": list(gate.opening)} for gate in found.gates]
    content["gates"] = gates
    path = made.trajectory
    if path is not None:
        t = np.arange(0.0, path.duration + 0.5 / PATH_RATE, 1.0 / PATH_RATE)
        flat = path.sample(t)
        limit = np.linalg.norm(flat.acceleration, axis=-1) + config.limit[1] * np.linalg.norm(flat.velocity, axis=-1) ** 3
        content["path"] = {
            "t_s": _short(t),
            "position_m": _short(flat.position),
            "speed_m_s": _short(np.linalg.norm(flat.velocity, axis=-1)),
            "limit_m_s2": _short(limit),
        }
    return content


def _laps(made: BoundaryPlan, config: GatesConfig) -> dict[str, Any]:
    start = made.route.positions[0]
    others = other_laps(
        (float(start[0]), float(start[1]), float(start[2])),
        float(made.route.headings[0]),
        made.gates,
        config.limits,
        config.clearance,
        config.floor,
    )
    told: dict[str, Any] = {lap.planner: asdict(lap) for lap in others}
    own = {"planner": "plan", "time": made.lap_time, "passed": made.flyable}
    told["plan"] = {**own, "verdict": made.certificate.verdict if made.certificate else ""}
    told["least"] = {"planner": "least", "time": least_time(made.route.positions[:-1], config.limits)}
    return told


def _flights(block: Block, config: GatesConfig, predictor: Any) -> dict[str, Any]:
    """Randomised flights of one approved plan in one family; none where it was refused."""
    found, made = _planned(block.course, config, predictor)
    content: dict[str, Any] = {"course": found.name, "family": block.family, "rows": []}
    if not made.flyable:
        return content
    options = flight_options(config, block.family)
    flown = fly([made.approved()], [made.gates], FAMILIES[block.family], config.flights, options)
    content["rows"] = rows_of(flown)
    bands = np.full((3, len(flown.t)), np.nan)
    known = np.isfinite(flown.error).any(axis=0)
    bands[:, known] = np.nanquantile(flown.error[:, known], _QUANTILES, axis=0)
    ahead = made.approved().sample(flown.t).position
    content["error"] = {"t_s": _short(flown.t), "bands_m": _short(bands), "offset_z_m": _short(_offset(flown, ahead))}
    content["paths_m"] = _short(flown.position[:DRAWN])
    content["gate_offset_max_m"] = _short(np.nan_to_num(np.max(np.abs(np.nan_to_num(flown.results.offsets)), axis=0)))
    return content


def _offset(flown: Flown, ahead: Array) -> Array:
    """Median height of flights over their reference [m]."""
    return np.asarray(np.median(flown.position[:, :, 2] - ahead[:, 2], axis=0))


def rows_of(flown: Flown, names: Sequence[str] = ()) -> list[dict[str, Any]]:
    """One row per flight."""
    r = flown.results
    outcomes, laps, skipped = r.outcomes, r.lap_time, r.skipped
    rows = []
    for k in range(len(outcomes)):
        into = "" if not r.crashed[k] else "floor" if r.crash_into[k] == FLOOR else f"gate {r.crash_into[k] + 1}"
        row: dict[str, Any] = {"course": names[k]} if names else {}
        rows.append(
            row
            | {
                "flight": k,
                "outcome": str(outcomes[k]),
                "skipped": int(skipped[k]),
                "into": into,
                "lap_time_s": _number(laps[k]),
                "error_mean_m": _number(flown.error_mean[k]),
                "error_max_m": _number(flown.error_max[k]),
                "gate_offset_m": _number(np.nanmax(np.abs(r.offsets[k]), initial=0.0)),
                "mass_kg": _number(flown.mass[k]),
            }
        )
    return rows


def _random(block: Block, config: GatesConfig, predictor: Any) -> dict[str, Any]:
    """Random courses: planned together, each approved one flown once in each family."""
    choice = RandomCourse(gates=config.random_gates, heading=config.random_heading)
    numbers = range(block.first, block.first + block.count)
    courses = [random_course(k, config.seed, choice) for k in numbers]
    plans = plan_many(courses, predictor, plan_options(config))
    rows = [_plan_row(made) for made in plans]
    for row, made, number in zip(rows, plans, numbers, strict=True):
        row["least_time_s"] = least_time(made.route.positions[:-1], config.limits)
        row["laps"] = _laps(made, config) if number < config.random_compared else None
    approved = [made for made in plans if made.flyable]
    flights = {name: _flown_random(approved, name, config, block.first) for name in config.families}
    return {"plans": rows, "flights": flights}


def _flown_random(approved: Sequence[BoundaryPlan], name: str, config: GatesConfig, first: int) -> list[dict[str, Any]]:
    if not approved:
        return []
    paths, courses = [made.approved() for made in approved], [made.gates for made in approved]
    flown = fly(paths, courses, FAMILIES[name], 1, flight_options(config, name), first_id=first)
    return rows_of(flown, [made.name for made in approved])


def _plan_row(made: BoundaryPlan) -> dict[str, Any]:
    sure = made.certificate
    # As the predictor said it, before any mending: does that keep the limit?
    untouched = bool(np.all(made.stretched == 0) and np.all(made.lowered == 0))
    return {
        "course": made.name,
        "flyable": made.flyable,
        "reason": made.reason,
        "untouched": untouched,
        "stretches": int(np.sum(made.stretched)),
        "lowered": int(np.sum(made.lowered)),
        "clamped": made.clamped,
        "asked": len(made.situations),
        "lap_time_s": _number(made.lap_time),
        "limit_bound": _number(sure.limit.checks[0].bound if sure else np.nan),
        "clearance_m": _number(sure.clearance.bound if sure else np.nan),
        "verdict": sure.verdict if sure else "",
    }


def off_grid(count: int, seed: int, ranges: Array = RANGES) -> Array:
    """Situations drawn evenly inside the ranges, heights among the grid's two, shape (count, 8)."""
    draw = uniforms(flight_key(seed, np.arange(count)), 0, Stream.COURSE, 8)
    made = ranges[:, 0] + (ranges[:, 1] - ranges[:, 0]) * draw
    heights = [1, 4, 7]
    made[:, heights] = np.where(draw[:, heights] < 0.5, ranges[heights, 0], ranges[heights, 1])
    return np.asarray(made)


def _errors(block: Block, config: GatesConfig, predictor: Any, truth: Ask) -> dict[str, Any]:
    """Predictions held against a fresh search at situations between the grid's points."""
    asked = off_grid(block.count, config.seed)
    label = np.asarray(truth(asked), dtype=np.float64)
    told = np.asarray(getattr(predictor, "predict", predictor)(asked), dtype=np.float64)
    known = np.isfinite(label).all(axis=1) & np.isfinite(told).all(axis=1)
    percent = percent_error(label[known], told[known])
    return {
        "asked": block.count,
        "without_label": int(np.count_nonzero(~np.isfinite(label).all(axis=1))),
        "label": _short(label[known]),
        "predicted": _short(told[known]),
        "percent": _short(percent, 3),
    }


def _short(values: Any, digits: int = 4) -> Any:
    """Rounded lists: figures need no more, and files stay small."""
    return np.round(np.asarray(values, dtype=np.float64), digits).tolist()


def _number(value: Any) -> float | None:
    """A plain number; None where it is not finite, as JSON has it."""
    return float(value) if np.isfinite(value) else None


__all__ = ["Block", "blocks_of", "flight_options", "off_grid", "plan_options", "rows_of", "worked"]
