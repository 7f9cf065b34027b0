"""`airworthy courses`: list, show, validate and draw courses."""

from __future__ import annotations

import dataclasses
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from tyro.conf import Positional

from airworthy.cli.common import ListConfig, Subcommands, emit_json, run_subcommand, show_table
from airworthy.cli.courses.drawing import DRAW_DESCRIPTION, DrawCourseConfig, draw
from airworthy.core.errors import AirworthyError
from airworthy.core.idle_options import IdleRule, refuse_idle
from airworthy.trajectories import Course, Trajectory, course, course_names, read_course

if TYPE_CHECKING:
    from airworthy.tasks import CourseClearance, CourseView

PROG = "airworthy courses"
_DESCRIPTION = "List the courses there are. Also: airworthy courses show NAME | validate FILE | draw --scene PLACE --out FILE."
_SAMPLES = 4001
_DECIMALS = 9
"""What is below a nanometre is rounding: a hover is 0 m long, and not 7e-16."""
_MANY = 100
"""Waypoints whose planning is announced."""


@dataclass(frozen=True)
class ShowCourseConfig:
    """What to show."""

    name: Positional[str]
    """Catalogue name (`airworthy courses` lists them), or the path of a course JSON."""
    json: bool = False
    """Print every field as JSON."""


@dataclass(frozen=True)
class ValidateCourseConfig:
    """What to validate."""

    file: Positional[Path]
    """Course JSON to read, check and plan; or a catalogue name."""
    scene: str | None = None
    """Also check that a vehicle has room along it in this place: a scene's name or file."""
    unknown: Literal["solid", "free"] | None = None
    """Of a captured place: whether space of which nobody knows is in the way; without it, as the place says, which is solid."""
    vehicle: str = "carl"
    """Whose body needs the room, and whose camera looks: a catalogue name or a vehicle TOML file."""
    clear: float = 0.0
    """In the place without what stands this near the path [m], as `airworthy synthesize --clear` shows it; 0: as it is."""
    view: bool = True
    """Of a place of Gaussian splats: look through the vehicle's camera along the course for what was never captured."""
    json: bool = False
    """Print JSON."""


VALIDATE_RULES = (
    IdleRule(
        ("vehicle", "clear", "view", "unknown"),
        lambda config: config.scene is None,
        "without a place to check the course in",
        "name a --scene",
    ),
)
"""Options of `airworthy courses validate` that change nothing beside the others."""


def main(argv: list[str]) -> int:
    """Run `airworthy courses`; users' mistakes raise AirworthyError, which the command line prints."""
    commands: Subcommands = {
        "list": (ListConfig, _list, _DESCRIPTION),
        "show": (ShowCourseConfig, _show, "Show one course, and what its default trajectory asks of a vehicle."),
        "validate": (
            ValidateCourseConfig,
            _validate,
            "Read a course, check and plan it; with --scene, check its room there.",
        ),
        "draw": (DrawCourseConfig, draw, DRAW_DESCRIPTION),
    }
    return run_subcommand(PROG, commands, argv)


def _head(item: Course) -> dict[str, Any]:
    """Return what a course's file says, without planning it."""
    return {
        "name": item.name,
        "kind": item.kind,
        "count": len(item.keyframes) + len(item.gates) + len(item.waypoints),
        "published_duration_s": item.keyframes[-1].time if item.keyframes else None,
        "lap_count": item.lap_count,
        "description": item.description,
        "source": item.source,
    }


def _flown(path: Trajectory) -> dict[str, Any]:
    """Return what the default trajectory asks for, at samples."""
    sample = path.sample(np.linspace(0.0, path.duration, _SAMPLES))
    return {
        "duration_s": path.duration,
        "length_m": path.length(),
        "speed_max_m_s": float(np.max(np.linalg.norm(sample.velocity, axis=-1))),
        "acceleration_max_m_s2": float(np.max(np.linalg.norm(sample.acceleration, axis=-1))),
        "lowest_m": np.min(sample.position, axis=0).tolist(),
        "highest_m": np.max(sample.position, axis=0).tolist(),
    }


def _list(config: ListConfig) -> int:
    rows = [_head(course(name)) for name in course_names()]
    if config.json:
        emit_json(rows)
        return 0
    columns = {"name": "name", "kind": "kind", "count": "count", "duration [s]": "published_duration_s", "what": "description"}
    show_table(f"{len(rows)} courses", list(columns), [[row[key] for key in columns.values()] for row in rows])
    return 0


def _show(config: ShowCourseConfig) -> int:
    item = course(config.name)
    values = {**_head(item), **_flown(item.trajectory())}
    if config.json:
        emit_json({**values, "course": dataclasses.asdict(item)})
        return 0
    for key, value in values.items():
        if value is not None:
            print(f"{key:24}{_shown(value)}")
    return 0


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(f"{round(number, _DECIMALS):.4g}" for number in value)
    return f"{round(value, _DECIMALS):.5g}" if isinstance(value, float) else str(value)


def _validate(config: ValidateCourseConfig) -> int:
    refuse_idle(config, VALIDATE_RULES)
    if not 0.0 <= config.clear <= 100.0:
        raise AirworthyError(f"--clear is {config.clear}; expected 0 to 100 m.")
    named = str(config.file) in course_names()
    item = course(str(config.file)) if named else read_course(config.file)
    count = len(item.waypoints)
    if count > _MANY:
        print(f"Planning {count} waypoints, which takes some seconds ...", file=sys.stderr, flush=True)
    path = item.trajectory()
    flown = _flown(path)
    fit, seen = (None, None) if config.scene is None else _in_place(config, path)
    problem = "" if fit is None else fit.problem(item.name)
    if config.json:
        emit_json({**_head(item), **flown, "valid": not problem, "problem": problem, **_place_facts(fit, seen)})
        return 1 if problem else 0
    summary = f"{item.kind}, {flown['duration_s']:.4g} s, {flown['length_m']:.4g} m, up to {flown['speed_max_m_s']:.3g} m/s"
    if problem:
        raise AirworthyError(f"{problem}: move its way-points, or take what is in the way out of the scene.")
    print(f"{config.file}: {item.name} is valid ({summary}).")
    if fit is not None:
        print(f"In {fit.scene!r} {fit.vehicle!r} {fit.room()}.")
    if seen is not None:
        text = seen.text()
        print(f"note: {text}." if seen.poor.any() else f"{text[0].upper()}{text[1:]}.")
    if not item.source:
        print("note: no source is given")
    return 0


def _in_place(config: ValidateCourseConfig, path: Trajectory) -> tuple[CourseClearance, CourseView | None]:
    """Return the room that a course leaves in a place and, where that was captured, what is seen of it."""
    from airworthy.learning.synthesis.config import cleared_for
    from airworthy.scenes import scene
    from airworthy.tasks import course_clearance, course_view
    from airworthy.vehicles import named_vehicle

    flown = named_vehicle(config.vehicle)
    place = cleared_for(scene(str(config.scene), unknown=config.unknown), str(config.file), config.clear)
    fit = course_clearance(path, place, flown)
    looks = config.view and fit.fits and any(sensor.kind == "camera" for sensor in flown.sensors)
    return fit, course_view(path, place, flown) if looks else None


def _place_facts(fit: CourseClearance | None, seen: CourseView | None) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if fit is not None:
        gap = fit.gap if np.isfinite(fit.gap) else None  # nothing near: JSON has no infinity
        facts["clearance"] = {**dataclasses.asdict(fit), "gap": gap}
    if seen is not None:
        share = float(seen.poor.mean())
        facts["view"] = {"hole_max": float(seen.hole.max()), "empty_max": float(seen.empty.max()), "poor_share": share}
    return facts
