"""Courses: by name, from waypoints, and as files: JSON with a version, every field checked, one sentence for what is wrong."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.errors import AirworthyError, AssetError, unknown_name
from airworthy.core.files import read_json, write_text
from airworthy.core.schema import Bound, Length
from airworthy.core.table_schema import TableSchema, unknown_key, wrong
from airworthy.trajectories.allocation import (
    EVALUATIONS,
    check_points,
    shorten_durations,
    slow_to,
    spline_through,
    stretch_until_proven,
    time_allocation_trapezoid,
)
from airworthy.trajectories.gate_path import through_gates
from airworthy.trajectories.gates import BAR, OPENING, Gate
from airworthy.trajectories.limits import DEFAULT_LIMITS, TRACKING_ENVELOPE, Limits
from airworthy.trajectories.min_snap import COEFFICIENTS, Keyframe, minimum_snap
from airworthy.trajectories.trajectory import Trajectory, laps
from airworthy.trajectories.trajectory_file import body_of
from airworthy.trajectories.yaw import path_headings, unwrap_headings, yaw_fixed, yaw_spline

# ---- From waypoints to a trajectory that keeps its limits -------------------------------------------------------------------

WAYPOINTS_MAX = 2000
_HEADINGS_PER_LEG = 4
_TRIED_LEGS = 60_000  # legs times trials: some ten seconds
_UNBOUNDED = (5.0, 5.0)  # [m/s], [m/s^2] from which durations start where no limit says otherwise


def from_waypoints(
    points: ArrayLike,
    limits: Limits = DEFAULT_LIMITS,
    yaw: str | float | ArrayLike = "forward",
    evaluations: int | None = None,
) -> Trajectory:
    """Return the minimum-snap trajectory through waypoints, at rest at both ends, as fast as limits allow; the limits are
    proved.

    Args:
        points: World [m], shape (k, 3), k >= 2.
        limits: Bounds along the whole path; at least one of speed, acceleration, jerk, thrust_max, envelope.
        yaw: "forward" (along the path), "fixed" (0), one angle, or one per waypoint [rad], shape (k,), turned on the
            shorter arcs. Where limits on the yaw or body rate leave no time for a turn, it begins sooner and ends later.
        evaluations: Most trials of the search over durations; 1 keeps the ratios of the trapezoidal allocation. None: 600, less
            for more than 100 legs, so that 800 waypoints take seconds too.

    Raises:
        AirworthyError: Points that are too few, too many, repeated or not finite, or limits that do not bound the speed.
    """
    path = check_points(points)
    if len(path) > WAYPOINTS_MAX:
        raise AirworthyError(f"{len(path)} waypoints are more than the {WAYPOINTS_MAX} that one trajectory can pass.")
    if all(bound is None for bound in (limits.speed, limits.acceleration, limits.jerk, limits.thrust_max, limits.envelope)):
        raise AirworthyError(
            "Limits must bound speed, acceleration, jerk, thrust_max or the envelope, or no time is the least."
        )
    speed = limits.speed_max if np.isfinite(limits.speed_max) else _UNBOUNDED[0]
    push = limits.acceleration_max if np.isfinite(limits.acceleration_max) else _UNBOUNDED[1]
    start = time_allocation_trapezoid(path, speed, push)
    if evaluations is None:
        # Each trial costs as much as there are legs: long paths get fewer.
        evaluations = min(EVALUATIONS, max(40, _TRIED_LEGS // (len(path) - 1)))
    durations = shorten_durations(path, start, limits, evaluations)
    knots = np.concatenate(([0.0], np.cumsum(durations)))
    coefficients = spline_through(path, durations)
    # Headings follow the path as it is flown, so the path comes first.
    bare = Trajectory(knots, coefficients, *yaw_fixed(knots[-1], 0.0))
    turned = Trajectory(bare.knots, bare.coefficients, *_yaw(bare, yaw, _HEADINGS_PER_LEG))
    if all(bound is None for bound in (limits.yaw_rate, limits.yaw_acceleration, limits.body_rate)) and not limits.rotors:
        return stretch_until_proven(turned, limits)
    return slow_to(turned, limits)


def _yaw(path: Trajectory, yaw: str | float | ArrayLike, per_leg: int) -> tuple[Array, Array]:
    if isinstance(yaw, str):
        if yaw == "fixed":
            return yaw_fixed(path.duration, 0.0)
        if yaw != "forward":
            raise AirworthyError(f"Yaw must be 'forward', 'fixed', an angle or one angle per waypoint, but is {yaw!r}.")
        return _forward(path, per_leg)
    angles = np.asarray(yaw, dtype=np.float64)
    if not np.all(np.isfinite(angles)):
        raise AirworthyError("Yaw must be finite.")
    if angles.ndim == 0:
        return yaw_fixed(path.duration, float(angles))
    if angles.shape != path.knots.shape:
        raise AirworthyError(f"Yaw must have one angle per waypoint, {len(path.knots)}, but has shape {angles.shape}.")
    return yaw_spline(path.knots, unwrap_headings(angles))


def _forward(path: Trajectory, per_leg: int) -> tuple[Array, Array]:
    """Spline through the path's headings at each waypoint and evenly between."""
    shares = np.arange(per_leg) / per_leg
    times = (path.knots[:-1, None] + shares * np.diff(path.knots)[:, None]).reshape(-1)
    times = np.append(times, path.duration)
    return yaw_spline(times, path_headings(path.sample(times).velocity))


# -----------------------------------------------------------------------------------------------------------------------------

CATALOGUE = Path(__file__).parent / "courses"
Kind = Literal["keyframes", "gates", "waypoints"]
Point = tuple[float, float, float]


@dataclass(frozen=True)
class Course:
    """A course; of keyframes, gates and waypoints it has the one that `kind` names. World frame, z up."""

    name: str
    kind: Kind
    description: str = ""
    source: str = ""
    """Where its numbers come from."""
    keyframes: tuple[Keyframe, ...] = ()
    coefficient_count: int = COEFFICIENTS
    """Polynomial coefficients per segment and axis of a keyframe course."""
    gates: tuple[Gate, ...] = ()
    """One lap, in the order to be flown."""
    start: Point = (0.0, 0.0, 0.0)
    """Where a gate course begins, at rest [m]."""
    start_yaw: float = 0.0
    """[rad]"""
    lap_count: int = 1
    waypoints: tuple[Point, ...] = ()
    """[m]"""
    waypoint_yaw: str | float | tuple[float, ...] = "forward"
    """"forward", "fixed", one angle, or one per waypoint [rad]."""
    limits: Limits | None = None
    """How fast it may be flown; None: as `trajectory` says for its kind."""

    def trajectory(
        self, limits: Limits | None = None, *, lap_count: int | None = None, yaw_ramp: bool = True, yaw_offset: float = 0.0
    ) -> Trajectory:
        """Return what is flown.

        Args:
            limits: Proved along the whole path; None: the course's own. Keyframes are slowed as a whole if they need it, never
                hurried; without any limits they are as published. Gates are flown as fast as the limits allow, by default
                eq. 3 of the gate specification; waypoints too, by default at 2 m/s and 3 m/s^2.
            lap_count: Instead of the course's own.
            yaw_ramp: Whether the vehicle turns to each gate's heading; otherwise it keeps its first one.
            yaw_offset: Added to yaw throughout [rad].

        Raises:
            AirworthyError: The limits cannot be kept, or more than one lap of a course that does not close.
        """
        count = self.lap_count if lap_count is None else lap_count
        if count < 1:
            raise AirworthyError(f"The number of laps must be 1 or more, but is {count!r}.")
        limits = self.limits if limits is None else limits
        if self.kind == "gates":
            chosen = TRACKING_ENVELOPE if limits is None else limits
            # Laps of gates are one chain: the last gate of a lap leads to the first without a stop.
            gates = self.gates * count
            return through_gates(self.start, self.start_yaw, gates, chosen, ramp=yaw_ramp, yaw_offset=yaw_offset)
        if self.kind == "keyframes":
            path = minimum_snap(self.keyframes, self.coefficient_count)
            path = path if limits is None else slow_to(path, limits)
        else:
            path = from_waypoints(self.waypoints, DEFAULT_LIMITS if limits is None else limits, self.waypoint_yaw)
        return laps(path, count).turned(yaw_offset)

    def hurried(self, speed: float | None, acceleration: float | None) -> Limits:
        """Return its limits with another speed [m/s] or acceleration [m/s^2], where these are given.

        For gates either stands instead of the envelope, which bounds both.
        """
        base = self.limits or {"waypoints": DEFAULT_LIMITS, "gates": TRACKING_ENVELOPE, "keyframes": Limits()}[self.kind]
        given: dict[str, Any] = {name: v for name, v in (("speed", speed), ("acceleration", acceleration)) if v is not None}
        if base.envelope is not None and given:
            push, speed_most = base.envelope[0], base.speed_max
            given = {"speed": min(speed_most, base.speed or speed_most), "acceleration": base.acceleration or push} | given
            return replace(base, envelope=None, **given)
        return replace(base, **given)


def course(name: str | Path) -> Course:
    """Return a course of the catalogue by name, or a course file by path (anything that ends in .json or has a folder).

    Raises:
        UnknownNameError: No course of that name.
        AssetError: The file is not a course.
    """

    if isinstance(name, Path) or name.endswith(".json") or "/" in name or "\\" in name:
        return read_course(name)
    if name not in course_names():
        raise unknown_name("course", name, course_names(), "A course of your own is given as the path of its JSON file.")
    return read_course(CATALOGUE / f"{name}.json")


def course_names() -> list[str]:
    """Return names of the catalogue's courses, sorted."""
    return sorted(path.stem for path in CATALOGUE.glob("*.json"))


def reversed_keyframes(keyframes: Sequence[Keyframe]) -> tuple[Keyframe, ...]:
    """Return the same keyframes passed in the opposite order and direction: odd derivatives change sign, yaw turns by half a
    turn.
    """

    def back(values: tuple[float | None, ...], turn: float = 0.0) -> tuple[float | None, ...]:
        signed = [v if v is None or k % 2 == 0 else 0.0 - v for k, v in enumerate(values)]
        if signed and signed[0] is not None:
            signed[0] += turn
        return tuple(signed)

    end = keyframes[-1].time
    return tuple(
        replace(k, time=end - k.time, x=back(k.x), y=back(k.y), z=back(k.z), yaw=back(k.yaw, math.pi))
        for k in reversed(keyframes)
    )


# ---------------------------------------------------------------------------------------------------------------------------

FORMAT = "airworthy-course"
VERSION = 1
ITEMS_MAX = 2000
"""Most keyframes, gates or waypoints of a course."""
_METRES_MAX = 1e6
_SCHEMA = TableSchema(entries_max=64, list_max=ITEMS_MAX, tuple_noun="numbers", text_max=4000)
_AXES = ("x", "y", "z", "yaw")
_FREE = (None, None, None, None)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,79}")
_LIMITS = {
    "speed_m_s": "speed",
    "acceleration_m_s2": "acceleration",
    "jerk_m_s3": "jerk",
    "thrust_max_m_s2": "thrust_max",
    "thrust_min_m_s2": "thrust_min",
    "body_rate_rad_s": "body_rate",
    "yaw_rate_rad_s": "yaw_rate",
    "yaw_acceleration_rad_s2": "yaw_acceleration",
    "envelope": "envelope",
}
"""Keys of the table `limits` and the fields of `Limits` that they set."""

_Magnitude = Annotated[float, Bound(0.0, _METRES_MAX)]
_Pair = Annotated[tuple[float, float], Bound(-_METRES_MAX, _METRES_MAX)]
_Position = Annotated[tuple[float, float, float], Bound(-_METRES_MAX, _METRES_MAX, "m")]
_Yaw = Annotated[float, Bound(-1e3, 1e3, "rad")]
_Derivatives = Annotated[tuple[float | None, ...], Bound(-_METRES_MAX, _METRES_MAX), Length(0, 4)]
"""Value, first, second, third derivative of one axis; null where the path is free."""


@dataclass(frozen=True)
class _KeyframeTable:
    """A keyframe as a file has it."""

    time_s: Annotated[float, Bound(0.0, 1e5, "s")]
    name: str = ""
    x: _Derivatives = _FREE
    y: _Derivatives = _FREE
    z: _Derivatives = _FREE
    yaw: _Derivatives = _FREE


@dataclass(frozen=True)
class _GateTable:
    """A gate as a file has it."""

    position_m: _Position
    yaw_rad: _Yaw
    opening_m: Annotated[tuple[float, float], Bound(0.0, _METRES_MAX, "m", above=True)] = OPENING
    bar_m: Annotated[float, Bound(0.0, 10.0, "m")] = BAR


@dataclass(frozen=True, kw_only=True)
class _CourseTable:
    """What every course file has."""

    name: str
    kind: Kind
    description: str = ""
    source: str = ""
    lap_count: Annotated[int, Bound(1, 100)] = 1
    limits: dict[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class _KeyframeCourse(_CourseTable):
    keyframes: Annotated[tuple[_KeyframeTable, ...], Length(2, ITEMS_MAX)]
    coefficient_count: Annotated[int, Bound(2, 12)] = COEFFICIENTS

    def fields(self, where: str) -> dict[str, Any]:
        """Return the fields of a `Course` that are this kind's."""
        frames: list[Keyframe] = []
        for index, row in enumerate(self.keyframes):
            # Splines divide by the differences of these times.
            if row.time_s <= frames[-1].time if frames else row.time_s != 0.0:
                label = f"{where}keyframes[{index}].time_s"
                raise wrong(label, "0 for the first keyframe and later for each following one", row.time_s)
            frames.append(Keyframe(row.time_s, name=row.name, **{axis: getattr(row, axis) for axis in _AXES}))
        return {"keyframes": tuple(frames), "coefficient_count": self.coefficient_count}


@dataclass(frozen=True, kw_only=True)
class _GateCourse(_CourseTable):
    gates: Annotated[tuple[_GateTable, ...], Length(1, ITEMS_MAX)]
    start_m: _Position
    start_yaw_rad: _Yaw = 0.0

    def fields(self, where: str) -> dict[str, Any]:
        """Return the fields of a `Course` that are this kind's."""
        gates = tuple(Gate(row.position_m, row.yaw_rad, row.opening_m, row.bar_m) for row in self.gates)
        return {"gates": gates, "start": self.start_m, "start_yaw": self.start_yaw_rad}


@dataclass(frozen=True, kw_only=True)
class _WaypointCourse(_CourseTable):
    waypoints_m: Annotated[tuple[_Position, ...], Length(2, ITEMS_MAX)]
    yaw: Annotated[Literal["forward", "fixed"] | float | tuple[float, ...], Bound(-_METRES_MAX, _METRES_MAX, "rad")] = "forward"

    def fields(self, where: str) -> dict[str, Any]:
        """Return the fields of a `Course` that are this kind's."""
        if isinstance(self.yaw, tuple) and len(self.yaw) != len(self.waypoints_m):
            raise wrong(f"{where}yaw", f"one angle per waypoint, {len(self.waypoints_m)}", list(self.yaw))
        return {"waypoints": self.waypoints_m, "waypoint_yaw": self.yaw}


_KINDS: dict[str, type[_KeyframeCourse | _GateCourse | _WaypointCourse]] = {
    "keyframes": _KeyframeCourse,
    "gates": _GateCourse,
    "waypoints": _WaypointCourse,
}


def read_course(path: str | Path) -> Course:
    """Read and check a course file; raises AssetError for anything that is not a course."""
    where = f"{str(path)!r}: "
    body = body_of(read_json(path), repr(str(path)), FORMAT, VERSION)
    kind = _SCHEMA.entry(body, "kind", Kind, where)
    found = _SCHEMA.record(_KINDS[kind], body, where)
    if not _NAME.fullmatch(found.name):
        raise wrong(f"{where}name", "1 to 80 letters, digits, '_', '.' or '-'", found.name)
    common = {key: getattr(found, key) for key in ("name", "kind", "description", "source", "lap_count")}
    return Course(**common, limits=_limits(found.limits, f"{where}limits", kind), **found.fields(where))


def _limits(table: dict[str, Any] | None, where: str, kind: str) -> Limits | None:
    if table is None:
        return None
    given: dict[str, Any] = {}
    for key, value in table.items():
        if key not in _LIMITS:
            raise unknown_key(key, _LIMITS, where)
        given[_LIMITS[key]] = _SCHEMA.decode(_Pair if key == "envelope" else _Magnitude, value, f"{where}.{key}")
    try:
        limits = Limits(**given)
    except AirworthyError as error:
        raise AssetError(f"{where}: {error}") from None
    # Key frames bring their times; all others are timed by limits, and without these would be flown arbitrarily fast.
    if kind != "keyframes" and not (np.isfinite(limits.speed_max) or np.isfinite(limits.acceleration_max)):
        raise AssetError(f"{where} bound neither speed nor acceleration: give speed_m_s or acceleration_m_s2.")
    return limits


def write_course(course: Course, path: str | Path) -> Path:
    """Write a course file, atomically, one keyframe, gate or waypoint per line; `read_course` gives the same course back."""
    head: dict[str, Any] = {"format": FORMAT, "version": VERSION, "name": course.name, "kind": course.kind, "frame": "z_up"}
    head |= {"description": course.description, "source": course.source}
    if course.lap_count != 1:
        head["lap_count"] = course.lap_count
    if course.limits is not None:
        values = {key: getattr(course.limits, name) for key, name in _LIMITS.items()}
        head["limits"] = {key: value for key, value in values.items() if value is not None}
    if course.kind == "keyframes":
        head["coefficient_count"] = course.coefficient_count
        rows = [_keyframe_row(keyframe) for keyframe in course.keyframes]
        return _write(path, head, "keyframes", rows)
    if course.kind == "gates":
        head |= {"start_m": course.start, "start_yaw_rad": course.start_yaw}
        return _write(path, head, "gates", [_gate_row(gate) for gate in course.gates])
    return _write(path, head | {"yaw": course.waypoint_yaw}, "waypoints_m", list(course.waypoints))


def _keyframe_row(keyframe: Keyframe) -> dict[str, Any]:
    row: dict[str, Any] = {"name": keyframe.name} if keyframe.name else {}
    row["time_s"] = keyframe.time
    axes = {axis: list(getattr(keyframe, axis)) for axis in _AXES}
    # What equals the default is left out, as the reader puts it back.
    return row | {axis: values for axis, values in axes.items() if values != list(_FREE)}


def _gate_row(gate: Gate) -> dict[str, Any]:
    row: dict[str, Any] = {"position_m": gate.position, "yaw_rad": gate.yaw}
    if gate.opening != OPENING:
        row["opening_m"] = gate.opening
    return row if gate.bar == BAR else row | {"bar_m": gate.bar}


def _write(path: str | Path, head: dict[str, Any], key: str, rows: list[Any]) -> Path:
    # NaN is no JSON; better an error here than a file that other readers refuse.
    lines = [f"  {json.dumps(name)}: {json.dumps(value, allow_nan=False)}," for name, value in head.items()]
    body = ",\n".join(f"    {json.dumps(row, allow_nan=False)}" for row in rows)
    return write_text(path, "{\n" + "\n".join(lines) + f'\n  "{key}": [\n{body}\n  ]\n}}\n')
