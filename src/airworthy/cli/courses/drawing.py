"""`airworthy courses draw`: a course from clicks in the browser, from way-points, or from a recorded walk."""

from __future__ import annotations

import sys
import webbrowser
from dataclasses import dataclass, fields
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Literal

from airworthy.cli.common import emit_json
from airworthy.core.errors import AirworthyError
from airworthy.core.idle_options import IdleRule, refuse_idle
from airworthy.tasks.course_fit import CourseCheck
from airworthy.trajectories import DEFAULT_LIMITS, Limits, read_course, write_course
from airworthy.trajectories.course_draft import CourseDraft, parse_points

if TYPE_CHECKING:
    from airworthy.scenes.record import Scene
    from airworthy.tasks.course_room import CourseRoom
    from airworthy.tasks.course_walk import WalkCourse
    from airworthy.vehicles import Vehicle

DRAW_DESCRIPTION = (
    "Draw a course: in the browser by clicks (needs the extra 'viewer': pip install 'airworthy[viewer]'), or without one from"
    " --points or from the --walk of a capture. What it writes is taken by fly, synthesize, train and evaluate."
)


@dataclass(frozen=True)
class DrawCourseConfig:
    """What to draw, and where."""

    out: Path
    """Course file to write, ending in .json; in the browser, one that is there already is drawn on with."""
    scene: str | None = None
    """The place: a scene's name, or the path of a place, a scene or splats; without one, nothing is kept clear of."""
    points: str = ""
    """Way-points "x y z; x y z; ..." [m], instead of the browser."""
    walk: Path | None = None
    """Folder of a capture whose cameras are followed, in metres and in the frame of the place, instead of the browser."""
    vehicle: str = "carl"
    """Who flies: its body needs the room, its rotors the thrust; a catalogue name or a vehicle TOML file."""
    speed: float | None = None
    """Highest speed [m/s]; by default 2, or that of the file drawn on with."""
    acceleration: float | None = None
    """Highest acceleration [m/s^2]; by default 3, or that of the file drawn on with."""
    name: str = ""
    """Of the course; by default that of the file."""
    yaw: Literal["forward", "fixed", "camera"] = "forward"
    """Where the vehicle looks: along the path, along x, or where the cameras of the walk looked."""
    height: float | None = None
    """Of a walk: fly all of it at this height [m]; by default as high as the camera was carried."""
    smooth: float = 0.3
    """Of a walk: bends narrower than about this are smoothed away [m]."""
    detail: float = 0.1
    """Of a walk: way-points are left out where the way passes within this without them [m]."""
    clear: float = 0.3
    """Of a walk: room to keep between the body and anything that can be hit [m]; way-points are moved away for it."""
    check: CourseCheck = "refuse"
    """What becomes of --points that do not fit in the place: an error, a warning, or nothing, not even a look."""
    host: str = "127.0.0.1"
    """Of the browser: address to listen on, a loopback address."""
    port: int | None = None
    """Of the browser: port to listen on, 0 for any free one; without it, the first free one from 8080 on."""
    open: bool = False
    """Of the browser: open it."""
    json: bool = False
    """Print JSON; not with the browser."""


DRAW_RULES = (
    IdleRule(
        ("height", "smooth", "detail", "clear"),
        lambda config: config.walk is None,
        "without the --walk that it is of",
        "name the folder of a capture",
    ),
    IdleRule(("check",), lambda config: not config.points, "without --points; a walk is kept clear, a drawing is told of"),
    IdleRule(("check",), lambda config: config.scene is None, "without a place to look at", "name a --scene"),
    IdleRule(("clear",), lambda config: config.scene is None, "without a place to keep clear of", "name a --scene"),
    IdleRule(
        ("host", "port", "open"),
        lambda config: bool(config.points) or config.walk is not None,
        "with --points or --walk, which need no browser",
    ),
    IdleRule(
        ("yaw", "json"),
        lambda config: not config.points and config.walk is None,
        "in the browser, where headings are set by way-point",
    ),
)
"""Options of `airworthy courses draw` that change nothing beside the others."""


def draw(config: DrawCourseConfig) -> int:
    """Run `airworthy courses draw`."""
    refuse_idle(config, DRAW_RULES)
    _check(config)
    if config.points:
        return _written(config, _of_points(config), None)
    if config.walk is not None:
        found = _of_walk(config)
        return _written(config, found.draft, found)
    return _in_browser(config)


def _check(config: DrawCourseConfig) -> None:
    if config.points and config.walk is not None:
        raise AirworthyError("Both --points and --walk are given: a course is drawn from one of them.")
    if config.yaw == "camera" and config.walk is None:
        raise AirworthyError("--yaw camera looks where the cameras of a --walk looked: name one, or leave it out.")
    if config.out.suffix.lower() != ".json":
        raise AirworthyError(f"--out is {str(config.out)!r}; a course is a .json file.")
    if config.out.exists():
        # Only a course may be written over: any other file is somebody's.
        read_course(config.out)


def _limits(config: DrawCourseConfig, base: Limits = DEFAULT_LIMITS) -> Limits:
    given: dict[str, Any] = {name: getattr(config, name) for name in ("speed", "acceleration")}
    for name, value in given.items():
        if value is not None and not 0.0 < value <= 100.0:
            raise AirworthyError(f"--{name} is {value:g}; expected more than 0, up to 100.")
    kept = {item.name: getattr(base, item.name) for item in fields(Limits)}
    return Limits(**{**kept, **{name: value for name, value in given.items() if value is not None}})


def _named(config: DrawCourseConfig) -> str:
    return config.name or "".join(c if c.isalnum() or c in "_.-" else "_" for c in config.out.stem).lstrip("_.-") or "drawn"


def _of_points(config: DrawCourseConfig) -> CourseDraft:
    points = parse_points(config.points)
    yaws = (0.0,) * len(points) if config.yaw == "fixed" else ()
    return CourseDraft(points, yaws, _limits(config), _named(config), "way-points given by hand")


def _of_walk(config: DrawCourseConfig) -> WalkCourse:
    from airworthy.capture import read_poses
    from airworthy.tasks.course_walk import WalkOptions, walk_course

    assert config.walk is not None  # the caller asked
    poses = read_poses(config.walk)
    if not poses.metric:
        raise AirworthyError(
            f"The capture in {str(config.walk)!r} is not in metres: bring it to scale first (`airworthy capture align`)."
        )
    room = None if config.scene is None else _room(config)
    look: Literal["forward", "camera"] = "camera" if config.yaw == "camera" else "forward"
    options = WalkOptions(config.height, config.smooth, config.detail, config.clear, look)
    source = f"the walk of {config.walk.resolve().name}"
    head: dict[str, Any] = {"name": _named(config), "source": source, "heading": poses.heading, "quiet": config.json}
    return walk_course(poses.position, room, options, _limits(config), **head)


def _room(config: DrawCourseConfig) -> CourseRoom:
    from airworthy.tasks.course_room import CourseRoom

    place, vehicle = _place(config)
    assert place is not None  # a scene was named
    return CourseRoom(place, vehicle)


def _place(config: DrawCourseConfig) -> tuple[Scene | None, Vehicle]:
    from airworthy.scenes import scene
    from airworthy.vehicles import named_vehicle

    return None if config.scene is None else scene(config.scene), named_vehicle(config.vehicle)


def _written(config: DrawCourseConfig, draft: CourseDraft, walk: WalkCourse | None) -> int:
    """Plan, look at its room, write, and say what came of it."""
    from airworthy.tasks import course_clearance
    from airworthy.tasks.course_fit import check_course
    from airworthy.tasks.course_room import course_margins

    course = draft.course()
    path = course.trajectory()
    place, vehicle = _place(config)
    clearance = None if walk is None else walk.clearance
    if place is not None and walk is None and config.check != "none":
        check_course(path, place, [vehicle], course.name, config.check, "move its way-points")
        clearance = course_clearance(path, place, vehicle)
    write_course(course, config.out)
    facts: dict[str, Any] = {"out": config.out, "name": course.name, "waypoints": len(draft), "duration_s": path.duration}
    facts["length_m"] = path.length()
    if clearance is not None:
        facts["gap_m"] = clearance.gap if clearance.gap < float("inf") else None
    if walk is not None:
        facts |= {
            "cameras": walk.recorded,
            "moved": walk.moved,
            "moved_most_m": walk.farthest,
            "around_m": walk.around,
            "slower": walk.slower,
        }
        facts |= {"led_round": walk.led, "led_round_most_m": walk.aside}
    margins = course_margins(path, _limits(config), vehicle, samples=max(2, round(20.0 * path.duration) + 1))
    worst = int(margins.rotor_share.argmax())
    facts["rotor_percent"] = 100.0 * float(margins.rotor_share[worst])
    if config.json:
        emit_json(facts)
        return 0
    print(f"Wrote {config.out}: {len(draft)} way-points, {path.length():.4g} m in {path.duration:.4g} s.")
    if walk is not None:
        _tell_of_walk(walk)
    if clearance is not None:
        print(f"In {clearance.scene!r} {clearance.vehicle!r} {clearance.room()}.")
    if facts["rotor_percent"] > 100.0:
        print(
            f"Note: it asks {facts['rotor_percent']:.0f} % of what a rotor of {vehicle.name!r} gives, at"
            f" {margins.time[worst]:.2f} s, and cannot be flown as it is: draw it slower or rounder there, or keep other room."
        )
    flown = f"--course {quote(str(config.out))} --out {quote(f'runs/{draft.name}')}"
    print(f"Next: airworthy fly --vehicle {quote(str(config.vehicle))} {_scene_word(config)}{flown}")
    return 0


def _tell_of_walk(walk: WalkCourse) -> None:
    moved = f"{walk.moved} way-points moved away from surfaces, by up to {walk.farthest:.2f} m" if walk.moved else "none moved"
    print(f"Follows {walk.recorded} cameras; {moved}.")
    if walk.slower > 1.0:
        print(f"It is flown {walk.slower:.2g} times slower than asked for, since its bends ask too much of the rotors.")
    if not walk.around:
        return
    round_ = f"{walk.led} way-points follow ways round that, up to {walk.aside:.2f} m beside the walk" if walk.led else ""
    ends = "its ends without room are left out"
    print(f"{walk.around:.1f} m of the walk leave no such room: {round_ + ', and ' if round_ else ''}{ends}.")


def _scene_word(config: DrawCourseConfig) -> str:
    return "" if config.scene is None else f"--scene {quote(str(config.scene))} "


# ---- In the browser ---------------------------------------------------------------------------------------------------------


def _in_browser(config: DrawCourseConfig) -> int:
    """Serve until interrupted."""
    from airworthy.tasks.course_room import CourseRoom
    from airworthy.viewer.drawing.course_drawing import CourseDrawing
    from airworthy.viewer.playback import Viewer
    from airworthy.viewer.server import free_port, serve, stop
    from airworthy.viewer.subjects import Subject

    draft = _begun(config)
    place, vehicle = _place(config)
    room = None if place is None else CourseRoom(place, vehicle)
    server = serve(config.host, free_port(config.host) if config.port is None else config.port)
    viewer: Viewer | None = None
    drawing: CourseDrawing | None = None
    try:
        viewer = Viewer(server, Subject("a course" if place is None else place.name, place))
        drawing = CourseDrawing(viewer, vehicle, room, draft, config.out, _say)
        _say(f"Draw at {viewer.url} (Ctrl-C ends); 'save' writes {config.out}.")
        if config.open:
            webbrowser.open(viewer.url)
        viewer.run()
    except KeyboardInterrupt:
        print("Closed.")
    finally:
        if drawing is not None:
            drawing.close()
        stop(server) if viewer is None else viewer.close()
    if drawing is not None and drawing.unsaved:
        print(f"What was drawn last is not saved: {config.out} is as it was, or was not written.", file=sys.stderr)
    return 0


def _begun(config: DrawCourseConfig) -> CourseDraft:
    """Return the draft to begin with: of the file that is there, else an empty one."""
    if not config.out.exists():
        return CourseDraft(limits=_limits(config), name=_named(config))
    found = CourseDraft.from_course(read_course(config.out))
    return CourseDraft(found.points, found.yaws, _limits(config, found.limits), config.name or found.name, found.source)


def _say(text: str) -> None:
    print(text, flush=True)
