"""Courses: what is to be flown, as data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.trajectories.allocation import slow_to
from airworthy.trajectories.gate_path import through_gates
from airworthy.trajectories.gates import Gate
from airworthy.trajectories.limits import DEFAULT_LIMITS, TRACKING_ENVELOPE, Limits
from airworthy.trajectories.min_snap import COEFFICIENTS, Keyframe, minimum_snap
from airworthy.trajectories.trajectory import Trajectory, laps
from airworthy.trajectories.waypoints import from_waypoints

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

    def trajectory(
        self, limits: Limits | None = None, *, lap_count: int | None = None, yaw_ramp: bool = True, yaw_offset: float = 0.0
    ) -> Trajectory:
        """What is flown.

        Args:
            limits: Proved along the whole path. Keyframes are slowed as a whole if they need it, never hurried; None leaves
                them as published. Gates are flown as fast as the limits allow, by default eq. 3 of the gate specification;
                waypoints too, by default at 2 m/s and 3 m/s^2.
            lap_count: Instead of the course's own.
            yaw_ramp: Whether the vehicle turns to each gate's heading; otherwise it keeps its first one.
            yaw_offset: Added to yaw throughout [rad].

        Raises:
            AirworthyError: The limits cannot be kept, or more than one lap of a course that does not close.
        """
        count = self.lap_count if lap_count is None else lap_count
        if count < 1:
            raise AirworthyError(f"The number of laps must be 1 or more, but is {count!r}.")
        if self.kind == "gates":
            chosen = TRACKING_ENVELOPE if limits is None else limits
            gates = self.gates * count
            return through_gates(self.start, self.start_yaw, gates, chosen, ramp=yaw_ramp, yaw_offset=yaw_offset)
        if self.kind == "keyframes":
            path = minimum_snap(self.keyframes, self.coefficient_count)
            path = path if limits is None else slow_to(path, limits)
        else:
            path = from_waypoints(self.waypoints, DEFAULT_LIMITS if limits is None else limits, self.waypoint_yaw)
        return laps(path, count).turned(yaw_offset)

    @property
    def start_pose(self) -> tuple[Point, float]:
        """Position [m] and yaw [rad] where the course begins; computed for those that do not state it."""
        if self.kind == "gates":
            return self.start, self.start_yaw
        first = self.trajectory(lap_count=1).sample(0.0)
        x, y, z = (float(value) for value in first.position)
        return (x, y, z), float(first.yaw)


def course(name: str | Path) -> Course:
    """A course of the catalogue by name, or a course file by path (anything that ends in .json or has a folder).

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
    """The same keyframes passed in the opposite order and direction: odd derivatives change sign, yaw turns by half a turn."""

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
