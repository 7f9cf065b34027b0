"""A course while it is drawn: way-points, headings and limits that change by small steps, each of which can be undone.

Nothing here knows a place or a window: the viewer, the command line and scripts draw by the same operations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.trajectories.course_file import WAYPOINTS_MAX, Course, Point
from airworthy.trajectories.limits import DEFAULT_LIMITS, Limits

__all__ = ["CourseDraft", "DraftHistory", "parse_points"]

APART_LEAST = 1e-3
"""Neighbours nearer than this are one way-point [m]: the time between them would be nothing."""
UNDO_MAX = 200
"""Steps that can be taken back."""
_EDGE_MAX = 1e6


@dataclass(frozen=True)
class CourseDraft:
    """Way-points in the order they are flown, world frame, z up; operations return a new draft.

    Raises:
        AirworthyError: A number is not finite, or there is not one heading per way-point.
    """

    points: tuple[Point, ...] = ()
    """[m]"""
    yaws: tuple[float | None, ...] = ()
    """Heading at each way-point [rad]; None: along the path. Empty: along the path everywhere."""
    limits: Limits = DEFAULT_LIMITS
    """How fast it may be flown."""
    name: str = "drawn"
    source: str = "drawn by hand"

    def __post_init__(self) -> None:
        for given in ("points", "yaws"):
            object.__setattr__(self, given, _listed(getattr(self, given), given))
        object.__setattr__(self, "points", tuple(_point(point) for point in self.points))
        object.__setattr__(self, "yaws", self.yaws or (None,) * len(self.points))
        if not isinstance(self.limits, Limits):
            raise AirworthyError(f"The limits of a course are {type(self.limits).__name__}; expected Limits.")
        if not all(isinstance(text, str) for text in (self.name, self.source)):
            raise AirworthyError(f"A course is named {self.name!r} and from {self.source!r}; expected texts.")
        if len(self.yaws) != len(self.points):
            raise AirworthyError(f"A course of {len(self.points)} way-points has {len(self.yaws)} headings; give one each.")
        for yaw in self.yaws:
            known = isinstance(yaw, int | float) and not isinstance(yaw, bool) and abs(yaw) <= _EDGE_MAX
            if not (yaw is None or known):
                raise AirworthyError(f"A heading is {yaw!r}; expected a number of radians, or none to fly along the path.")

    def __len__(self) -> int:
        return len(self.points)

    # ---- Operations -------------------------------------------------------------------------------------------------

    def added(self, point: ArrayLike, at: int | None = None) -> CourseDraft:
        """Return the draft with one more way-point.

        Args:
            point: World [m], (3,).
            at: Its number, 0 for the first; None: the last.
        """
        k = len(self) if at is None else self._number(at, len(self))
        return self._with([*self.points[:k], _point(point), *self.points[k:]], [*self.yaws[:k], None, *self.yaws[k:]])

    def inserted(self, point: ArrayLike) -> CourseDraft:
        """Return the draft with a way-point between the two whose leg is nearest to it; with fewer than two, at the end.

        Args:
            point: World [m], (3,).
        """
        return self.added(point, None if len(self) < 2 else self.nearest_leg(point) + 1)

    def moved(self, k: int, point: ArrayLike) -> CourseDraft:
        """Return the draft with way-point k elsewhere [m]."""
        k = self._number(k)
        return self._with([*self.points[:k], _point(point), *self.points[k + 1 :]], self.yaws)

    def removed(self, k: int) -> CourseDraft:
        """Return the draft without way-point k."""
        k = self._number(k)
        return self._with([*self.points[:k], *self.points[k + 1 :]], [*self.yaws[:k], *self.yaws[k + 1 :]])

    def turned(self, k: int, yaw: float | None) -> CourseDraft:
        """Return the draft with another heading at way-point k [rad]; None: along the path."""
        k = self._number(k)
        return self._with(self.points, [*self.yaws[:k], yaw, *self.yaws[k + 1 :]])

    def limited(self, **limits: float | None) -> CourseDraft:
        """Return the draft with other limits, by their names in `Limits`; raises AirworthyError for one that cannot be."""
        known = {item.name for item in fields(Limits)}
        if not set(limits) <= known:
            raise AirworthyError(f"There is no limit {min(set(limits) - known)!r}; known are {', '.join(sorted(known))}.")
        given: dict[str, Any] = dict(limits)
        return replace(self, limits=replace(self.limits, **given))

    def flipped(self) -> CourseDraft:
        """Return the draft flown the other way round; headings that were set stay at their places."""
        return self._with(self.points[::-1], self.yaws[::-1])

    # ---- What it is -------------------------------------------------------------------------------------------------

    def nearest_leg(self, point: ArrayLike) -> int:
        """Return the number of the leg nearest to a point [m]; leg k leads from way-point k to the next."""
        if len(self) < 2:
            raise AirworthyError(f"A course of {len(self)} way-points has no leg; add way-points first.")
        path = np.array(self.points)
        begin, span = path[:-1], np.diff(path, axis=0)
        length = np.maximum((span * span).sum(1), 1e-12)
        share = np.clip(((np.array(_point(point)) - begin) * span).sum(1) / length, 0.0, 1.0)
        return int(np.argmin(np.linalg.norm(begin + share[:, None] * span - np.array(_point(point)), axis=1)))

    def problem(self) -> str:
        """Return one sentence on why it cannot be planned yet; empty where it can."""
        if len(self) < 2:
            return f"A course needs two way-points or more, and this one has {len(self)}."
        if len(self) > WAYPOINTS_MAX:
            return f"{len(self)} way-points are more than the {WAYPOINTS_MAX} that one course can have."
        if not (np.isfinite(self.limits.speed_max) or np.isfinite(self.limits.acceleration_max)):
            return "Without a limit on speed or acceleration a course would be flown arbitrarily fast: set one of them."
        apart = np.linalg.norm(np.diff(np.array(self.points), axis=0), axis=1)
        k = int(np.argmin(apart))
        if apart[k] < APART_LEAST:
            return f"Way-points {k + 1} and {k + 2} are at one place, {_said(self.points[k])} m: move or delete one of them."
        return ""

    def headings(self) -> tuple[float, ...]:
        """Return the heading at each way-point [rad]: as set, else along the way from the one before to the next.

        Straight up or down, the heading before is kept.
        """
        path = np.array(self.points)
        ahead = path[np.minimum(np.arange(len(path)) + 1, len(path) - 1)] - path[np.maximum(np.arange(len(path)) - 1, 0)]
        found: list[float] = []
        for yaw, (x, y, _) in zip(self.yaws, ahead, strict=True):
            along = math.atan2(y, x) if math.hypot(x, y) > APART_LEAST else (found[-1] if found else 0.0)
            found.append(float(along if yaw is None else yaw))
        return tuple(found)

    def course(self) -> Course:
        """Return the course; raises AirworthyError where it cannot be planned."""
        problem = self.problem()
        if problem:
            raise AirworthyError(problem)
        yaw: str | tuple[float, ...] = "forward" if all(yaw is None for yaw in self.yaws) else self.headings()
        given: dict[str, Any] = {"waypoints": self.points, "waypoint_yaw": yaw, "limits": self.limits}
        return Course(self.name, "waypoints", source=self.source, **given)

    @classmethod
    def from_course(cls, course: Course) -> CourseDraft:
        """Return the draft of a course of way-points, to go on with it.

        Raises:
            AirworthyError: It is one of gates or key frames, or has several laps, which a drawing would lose.
        """
        if course.kind != "waypoints":
            raise AirworthyError(
                f"The course {course.name!r} is one of {course.kind}; only courses of way-points can be drawn on with."
            )
        if course.lap_count != 1:
            raise AirworthyError(f"The course {course.name!r} has {course.lap_count} laps, and a drawn one is flown once.")
        given, count = course.waypoint_yaw, len(course.waypoints)
        yaws: tuple[float | None, ...] = (None,) * count
        if not isinstance(given, str):
            yaws = (float(given),) * count if isinstance(given, int | float) else tuple(given)
        elif given == "fixed":
            yaws = (0.0,) * count
        return cls(course.waypoints, yaws, course.limits or DEFAULT_LIMITS, course.name, course.source)

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _with(self, points: Sequence[Point], yaws: Sequence[float | None]) -> CourseDraft:
        return replace(self, points=tuple(points), yaws=tuple(yaws))

    def _number(self, k: int, most: int | None = None) -> int:
        last = len(self) - 1 if most is None else most
        if not 0 <= k <= last:
            raise AirworthyError(f"There is no way-point {k + 1} in a course of {len(self)}.")
        return k


@dataclass(eq=False)
class DraftHistory:
    """A draft, and the ones before it."""

    now: CourseDraft = field(default_factory=CourseDraft)
    _before: list[CourseDraft] = field(default_factory=list)
    _after: list[CourseDraft] = field(default_factory=list)

    def do(self, draft: CourseDraft) -> None:
        """Go on with another draft; one that is the same takes no step."""
        if draft == self.now:
            return
        self._before = [*self._before[-UNDO_MAX + 1 :], self.now]
        self._after.clear()
        self.now = draft

    def undo(self) -> bool:
        """Go back by one step; False where there is none."""
        return self._step(self._before, self._after)

    def redo(self) -> bool:
        """Take back an `undo`; False where there is none."""
        return self._step(self._after, self._before)

    def _step(self, source: list[CourseDraft], target: list[CourseDraft]) -> bool:
        if not source:
            return False
        target.append(self.now)
        self.now = source.pop()
        return True


def parse_points(text: str) -> tuple[Point, ...]:
    """Return way-points from text, "x y z; x y z; ..." [m]; commas stand for spaces.

    Raises:
        AirworthyError: A part of it is no point; it names the part.
    """
    found = []
    for number, part in enumerate((part for part in text.split(";") if part.strip()), start=1):
        words = part.replace(",", " ").split()
        try:
            values = [float(word) for word in words]
        except ValueError:
            values = []
        if len(values) != 3 or not np.isfinite(values).all() or max(map(abs, values)) > _EDGE_MAX:
            raise AirworthyError(f"Way-point {number} is {part.strip()!r}; expected three numbers in metres, as in '1 0 1.2'.")
        found.append(_point(values))
    if len(found) < 2:
        raise AirworthyError(f"{text.strip()!r} holds {len(found)} way-points; expected two or more, as '0 0 1; 2 0 1.2'.")
    return tuple(found)


def _listed(values: object, name: str) -> tuple[Any, ...]:
    """Return values as a tuple; raises AirworthyError where they are no list."""
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if not isinstance(values, list | tuple):
        raise AirworthyError(f"The {name} of a course are {values!r:.60}; expected a list.")
    return tuple(values)


def _point(values: ArrayLike) -> Point:
    try:
        array: Array = np.asarray(values, np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise AirworthyError(f"A way-point is {values!r:.60}; expected x, y, z in metres.") from error
    if array.shape != (3,) or not np.isfinite(array).all() or np.abs(array).max() > _EDGE_MAX:
        raise AirworthyError(f"A way-point is {array.tolist()}; expected x, y, z in metres.")
    # Rounded to a micrometre: what was clicked is no better known, and files are read by people.
    x, y, z = (round(float(value), 6) + 0.0 for value in array)
    return x, y, z


def _said(point: Point) -> str:
    return "(" + ", ".join(f"{value:.3g}" for value in point) + ")"
