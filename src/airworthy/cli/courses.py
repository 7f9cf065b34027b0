"""`airworthy courses`: list, show and validate courses."""

from __future__ import annotations

import dataclasses
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tyro.conf import Positional

from airworthy.cli.common import ListConfig, Subcommands, emit_json, run_subcommand, show_table
from airworthy.trajectories import Course, Trajectory, course, course_names, read_course

PROG = "airworthy courses"
_DESCRIPTION = "List the courses there are. Also: airworthy courses show NAME | validate FILE."
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
    """Course JSON to read, check and plan."""


def main(argv: list[str]) -> int:
    """Run `airworthy courses`; users' mistakes raise AirworthyError, which the command line prints."""
    commands: Subcommands = {
        "list": (ListConfig, _list, _DESCRIPTION),
        "show": (ShowCourseConfig, _show, "Show one course, and what its default trajectory asks of a vehicle."),
        "validate": (ValidateCourseConfig, _validate, "Read a course JSON, check it and plan its trajectory."),
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
    item = read_course(config.file)
    count = len(item.waypoints)
    if count > _MANY:
        print(f"Planning {count} waypoints, which takes some seconds ...", file=sys.stderr, flush=True)
    path = item.trajectory()
    flown = _flown(path)
    summary = f"{item.kind}, {flown['duration_s']:.4g} s, {flown['length_m']:.4g} m, up to {flown['speed_max_m_s']:.3g} m/s"
    print(f"{config.file}: {item.name} is valid ({summary}).")
    if not item.source:
        print("note: no source is given")
    return 0
