"""Write the catalogue of courses from its sources: `python tools/build_courses.py` with AIRWORTHY_DATA set.

The files in `courses/` are what users get; this says, and tests check, how they came about. Values given with z down turn
to z up here, once: (x, y, z, yaw) becomes (x, -y, -z, -yaw), derivatives alike. Bearings, clockwise from +y, become headings.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from airworthy.core.errors import AirworthyError
from airworthy.core.files import data_dir, read_json
from airworthy.trajectories.course_file import CATALOGUE, Course, reversed_keyframes, write_course
from airworthy.trajectories.gates import Gate
from airworthy.trajectories.min_snap import Derivatives, Keyframe

_ORBIT_RADIUS, _ORBIT_CLIMB, _ORBIT_DURATION, _ORBIT_HEIGHT, _ORBIT_STEPS = 2.0, 0.6, 12.0, 0.8, 12


def published_courses(folder: Path) -> list[Course]:
    """Return the seven keyframe courses of SOUS VIDE and FiGS."""
    courses = read_json(folder / "sousvide" / "courses.json")["courses"]
    return [_published(name, data) for name, data in courses.items()]


def gate_courses(folder: Path) -> list[Course]:
    """Return this project's own gate courses, after BoundaryPredictor."""
    return [_gate_course(data) for data in read_json(folder / "boundary_predictor" / "courses.json")["courses"]]


def own_courses(published: list[Course]) -> list[Course]:
    """Stand-ins for the multi-objective experiment, whose courses were not published."""
    sigmoid = next(course for course in published if course.name == "sigmoid")
    backwards = Course(
        "sigmoid_reversed",
        "keyframes",
        "the sigmoid reversed in time and direction",
        f"own, from sigmoid ({sigmoid.source})",
        reversed_keyframes(sigmoid.keyframes),
        sigmoid.coefficient_count,
    )
    return [backwards, climbing_orbit()]


def climbing_orbit() -> Course:
    """Return one turn about the origin, rising, nose to the centre, at rest at both ends: a keyframe a second."""
    frames = []
    for step in range(_ORBIT_STEPS + 1):
        share = step / _ORBIT_STEPS
        turned = share**3 * (10.0 - 15.0 * share + 6.0 * share**2)
        angle = 2.0 * math.pi * turned
        position = (_ORBIT_RADIUS * math.cos(angle), _ORBIT_RADIUS * math.sin(angle), _ORBIT_HEIGHT + _ORBIT_CLIMB * turned)
        tail: Derivatives = (0.0, 0.0) if step in (0, _ORBIT_STEPS) else (None, None, None)
        x, y, z = ((round(value, 6) + 0.0, *tail) for value in position)
        frames.append(Keyframe(share * _ORBIT_DURATION, x, y, z, (round(angle + math.pi, 6), *tail), name=f"orbit{step}"))
    text = f"climbing orbit: radius {_ORBIT_RADIUS:g} m, one turn, {_ORBIT_CLIMB:g} m up, facing the centre"
    return Course("climbing_orbit", "keyframes", text, "own", tuple(frames))


def _published(name: str, data: dict[str, Any]) -> Course:
    source = data["source"]
    text = f"{source['repo']} {source['path']} at {source['commit'][:7]}; z down turned to z up"
    frames = tuple(
        Keyframe(
            k["t"], _signed(k["x"], 1.0), _signed(k["y"], -1.0), _signed(k["z"], -1.0), _signed(k["yaw"], -1.0), name=k["id"]
        )
        for k in data["keyframes"]
    )
    return Course(name, "keyframes", data["description"], text, frames, data["n_coeff"])


def _signed(values: list[float | None], sign: float) -> Derivatives:
    return tuple(None if value is None else sign * value + 0.0 for value in values)


def _gate_course(data: dict[str, Any]) -> Course:
    first, *others = data["gates"]
    gates = tuple(Gate((g["x"] + 0.0, g["y"] + 0.0, g["z"]), _heading(g["bearing_rad"])) for g in others)
    start = (first["x"], first["y"], first["z"])
    source = "own, inside the ranges of BoundaryPredictor; gate frame of the IROS 2022 competition (safe-control-gym)"
    return Course(
        data["name"], "gates", data["note"], source, gates=gates, start=start, start_yaw=_heading(first["bearing_rad"])
    )


def _heading(bearing: float) -> float:
    """Heading, counter-clockwise from x, of a bearing, clockwise from y."""
    return round(0.5 * math.pi - bearing, 6) + 0.0


def main() -> None:
    """Write every file."""
    folder = data_dir()
    if folder is None:
        raise AirworthyError("AIRWORTHY_DATA is unset: point it at the reference files.")
    published = published_courses(folder)
    for course in [*published, *gate_courses(folder), *own_courses(published)]:
        write_course(course, CATALOGUE / f"{course.name}.json")


if __name__ == "__main__":
    main()
