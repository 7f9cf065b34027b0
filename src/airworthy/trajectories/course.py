"""Courses: what is to be flown, as data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError, unknown_name
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
from airworthy.trajectories.gates import Gate
from airworthy.trajectories.limits import DEFAULT_LIMITS, TRACKING_ENVELOPE, Limits
from airworthy.trajectories.min_snap import COEFFICIENTS, Keyframe, minimum_snap
from airworthy.trajectories.trajectory import Trajectory, laps
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
    """Minimum-snap trajectory through waypoints, at rest at both ends, as fast as limits allow; the limits are proved.

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

    @property
    def start_pose(self) -> tuple[Point, float]:
        """Position [m] and yaw [rad] where the course begins; computed for those that do not state it."""
        if self.kind == "gates":
            return self.start, self.start_yaw
        first = self.trajectory(lap_count=1).sample(0.0)
        x, y, z = (float(value) for value in first.position)
        return (x, y, z), float(first.yaw)


def course(name: str | Path) -> Course:
    """Return a course of the catalogue by name, or a course file by path (anything that ends in .json or has a folder).

    Raises:
        UnknownNameError: No course of that name.
        AssetError: The file is not a course.
    """
    from airworthy.trajectories.course_file import read_course

    if isinstance(name, Path) or name.endswith(".json") or "/" in name or "\\" in name:
        return read_course(name)
    if name not in course_names():
        raise unknown_name("course", name, course_names(), "A course of your own is given as the path of its JSON file.")
    return read_course(CATALOGUE / f"{name}.json")


def course_names() -> list[str]:
    """Names of the catalogue's courses, sorted."""
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
