"""The way to the goal of each flight: a polynomial from start to goal, of which a part is replaced by what was planned last.

Where a plan takes longer than the part that it replaces, all that comes after is later by as much. Source: spec/planners
section 5, step 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from airworthy.core.arrays import Array, ArrayBool
from airworthy.core.schema import check_fields
from airworthy.planners.common.bspline import (
    derivative,
    differences,
    evaluate,
    evaluate_uniform,
    lengthen,
    limits_ratio,
    uniform_knots,
)
from airworthy.planners.common.interface import MapSettings
from airworthy.planners.common.reference import References
from airworthy.planners.fast.costs import FitPoints
from airworthy.planners.fast.plans import smoothed
from airworthy.planners.fast.timed import TimedSettings

__all__ = [
    "CollisionRange",
    "GuidePath",
    "PgoSettings",
    "RoadmapSettings",
    "Segment",
    "collision_range",
    "guided",
    "path_length",
    "resampled",
    "squared_jerk",
    "stretched",
]

# -----------------------------------------------------------------------------------------------------------------------------
# Splines drawn to a guiding path, compared, and refined. Source: spec/planners section 5, steps 2, 6 and 7.


def path_length(path: Array) -> float:
    """Return the length of corners (k, 3) [m]."""
    return float(np.sqrt((np.diff(path, axis=0) ** 2).sum(1)).sum())


def resampled(path: Array, count: int) -> Array:
    """Return `count` points (count, 3) evenly along a path (k, 3)."""
    ends = np.append(0.0, np.cumsum(np.sqrt((np.diff(path, axis=0) ** 2).sum(1))))
    lengths = np.linspace(0.0, ends[-1], count)
    return np.stack([np.interp(lengths, ends, path[:, k]) for k in range(3)], axis=1)


def guided(control: Array, guide: Array, smooth: float, weight: float) -> Array:
    """Return control points (N, 3) that minimise smooth * sum |third differences|^2 + weight * sum |Q_i - g_i|^2.

    The first and the last three stay; `guide` (N - 6, 3) draws the others. The problem is linear and solved exactly.

    Args:
        control: (N, 3) [m], world.
        guide: (N - 6, 3) [m], of the points between the first and the last three.
        smooth: Weight of the squared third differences.
        weight: Of the distance from the guide.
    """
    return smoothed(control, guide, (1,), 3, smooth=smooth, weight=weight)


def squared_jerk(control: Array, interval: float) -> float:
    """Return the integral of the squared jerk of an evenly knotted cubic (N, 3)."""
    jerk = differences(control[None], interval, 3)[0]
    return float((jerk**2).sum() * interval)


@dataclass(frozen=True, eq=False)
class CollisionRange:
    """Where a spline is too near to something."""

    head: Array
    """Points before, (h, 3); the last is where it begins."""
    tail: Array
    """Points after, (t, 3); the first is where it is over."""


def collision_range(control: Array, interval: float, times: Array, safe: ArrayBool) -> CollisionRange | str:
    """Return the range from the first entry to the last exit of what is not safe, at times (m,) [s] of an evenly knotted cubic
    (N, 3).

    Args:
        control: (N, 3) [m], world.
        interval: Between knots [s].
        times: (m,) [s] since the spline began.
        safe: Whether there is clearance at them, (m,).

    Returns:
        The range; or "free" where there is none, or "ends inside" where it is entered once and never left.
    """
    change = np.diff(np.concatenate([[True], safe]).astype(int))
    entries, exits = np.flatnonzero(change < 0), np.flatnonzero(change > 0)
    if not len(entries):
        return "free"
    if not len(exits):
        return "ends inside"
    knots, total = uniform_knots(len(control), interval), (len(control) - 3) * interval
    first, last = max(float(times[max(entries[0] - 1, 0)]), 0.0), float(times[exits[-1]])

    def points(a: float, b: float) -> Array:
        at = np.linspace(a, b, max(1, int(np.ceil((b - a) / interval - 1e-9))) + 1)
        return evaluate(control[None], knots, at[None])[0]

    return CollisionRange(points(0.0, first), points(last, total))


def stretched(control: Array, interval: float, speed: float, acceleration: float, most: float) -> tuple[FitPoints, float]:
    """Return an evenly knotted cubic (N, 3) made slower, or faster, towards its limits: points for a new one, and the time won
    [s].

    Time is multiplied by how far the limits are exceeded, at most by `most`; a plan that is slower than it need be becomes
    faster.

    Args:
        control: (N, 3) [m], world.
        interval: Between knots [s].
        speed: Limit [m/s].
        acceleration: Limit [m/s^2].
        most: Largest factor on time.
    """
    knots = uniform_knots(len(control), interval)
    ratio = float(limits_ratio(control[None], np.array([interval]), speed, acceleration)[1][0])
    if len(control) >= 8:
        knots = lengthen(knots, np.array([min(ratio, most)]))
    count = len(control) - 3
    total = float(knots[0, len(control)] - knots[0, 3])
    velocity, velocity_knots = derivative(control[None], knots)
    bend, bend_knots = derivative(velocity, velocity_knots, 2)
    ends = np.array([[0.0, total]])
    boundary = np.stack([evaluate(velocity, velocity_knots, ends, degree=2)[0], evaluate(bend, bend_knots, ends, degree=1)[0]])
    points = evaluate(control[None], knots, np.linspace(0.0, total, count + 1)[None])[0]
    return FitPoints(points, boundary, total / count), total - count * interval


# ---- Records that go to the roadmap's compiled code and come back -----------------------------------------------------------

# Ours, as all sizes of records here: what does not fit is given up, and said.
MOST_CORNERS = 256
"""Corners of a path; one that needs more is given up."""

MOST_DEPTH = 64
"""Nodes of a path through the roadmap."""

MOST_ENDS = 80
"""Points of the safe beginning of a segment, and of its end."""

MOST_REGION = 1 << 21
"""Cells around a question that are copied, for fast lines of sight; a larger region is read where it lies."""

MOST_PATHS = 8
"""Paths that a roadmap may give."""

ASKED = np.dtype(
    [
        ("window", np.int32),  # number of its window
        ("samples", np.int32),
        ("heads", np.int32),  # points of `head`
        ("tails", np.int32),
        ("most_raw", np.int32),  # paths enumerated
        ("most_paths", np.int32),  # of which so many are looked at
        ("reserve", np.int32),  # of which so many are given
        ("effort", np.int32),  # steps of the enumeration
        ("key", np.int32, (4,)),  # of the random numbers; see airworthy.core.random
        ("attempt", np.int32),  # which roadmap of the flight it is
        ("stream", np.int32),
        ("start", np.float64, (3,)),
        ("end", np.float64, (3,)),
        ("wider", np.float64, (3,)),  # half sizes of the box of samples: beyond the ends, sideways, up and down
        ("clearance", np.float64),  # of samples
        ("ratio", np.float64),  # longest over shortest path
        ("head", np.float64, (3 * MOST_ENDS,)),  # flown before the start
        ("tail", np.float64, (3 * MOST_ENDS,)),  # and after the end
    ]
)
"""One roadmap."""

FOUND = np.dtype(
    [
        ("nodes", np.int32),  # after pruning
        ("raw", np.int32),  # paths enumerated
        ("distinct", np.int32),  # after shortening and comparing
        ("paths", np.int32),  # given
        ("sizes", np.int32, (MOST_PATHS,)),  # corners of each
        ("points", np.float64, (MOST_PATHS * 3 * MOST_CORNERS,)),
    ]
)
"""Its paths, the shortest between start and end first."""

# ---- Parameters of PGO, with the values of its public configuration ---------------------------------------------------------


@dataclass(frozen=True)
class RoadmapSettings:
    """Of the topological roadmap."""

    samples: int = 2000
    beyond: float = 1.0
    """How far the box of samples reaches beyond the ends [m]."""
    sideways: float = 3.5
    """Its half width [m]."""
    upright: float = 1.0
    """Its half height, across the line between the ends [m]."""
    clearance: float = 0.3
    """Of samples from everything [m]."""
    most_raw: int = 300
    """Paths enumerated."""
    most_paths: int = 25
    """Of which those of the fewest nodes are looked at."""
    reserve: int = 6
    """Of which the shortest are optimised."""
    ratio: float = 5.5
    """Longest over shortest path."""
    effort: int = 200_000
    """Steps of the enumeration: with many dead ends it could go on for very long."""

    def __post_init__(self) -> None:
        check_fields(self, "RoadmapSettings.")


@dataclass(frozen=True)
class PgoSettings(TimedSettings):
    """Of the whole planner. The public configuration switches the limits term off (`feasible`, its lambda3)."""

    maps: MapSettings = field(
        default_factory=lambda: MapSettings(
            margin=50, ground=-1.0, border=2, skip=3, depth_max=4.5, ray_min=0.5, field=True, field_margin=0.5
        )
    )
    spacing: float = 0.3
    yaw_points: float = 20.0
    roadmap: RoadmapSettings = field(default_factory=RoadmapSettings)
    local_length: float = 7.0
    """How far the local segment reaches [m]."""
    guide: float = 1.5
    """Weight of the distance from the guiding path."""
    slower: float = 1.01
    """The refinement stretches time by at most so much."""
    replan_after: float = 0.5
    """Age of a plan before the next [s]."""
    replan_distance: float = 0.5
    """With the goal in the plan, it is replaced only where its end is farther than this [m]."""
    safety_stop: float = 0.5
    """What is met nearer than this stops the vehicle [m]."""
    resume: bool = False
    """After a stop, or at the end of a plan, set out for the goal again. The published planner drops its goal."""
    failed_pause: float = 0.02
    """Between attempts that found no path [s]: about what one takes on one core."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, "PgoSettings.")


# -----------------------------------------------------------------------------------------------------------------------------

# Source: spec/planners section 5, step 1: from now forward in 0.2 s steps.
_STEP = 0.2
"""Between points at which a segment's length is measured [s]."""
# Ours: fewer leave nothing free between the two boundary states; more do not fit a spline's record.
_LEAST_PIECES, _MOST_PIECES = 6, 240


@dataclass(frozen=True, eq=False)
class Segment:
    """A part of a course."""

    begin: float
    """On the course's clock [s]."""
    duration: float
    """[s]"""


class GuidePath:
    """One flight's.

    Args:
        references: Polynomials of all flights.
        flight: Which is its own.

    Attributes:
        duration: Of all of it, by now [s].
    """

    def __init__(self, references: References, flight: int):
        self._references, self._flight = references, flight
        self.duration = float(references.duration[flight])
        self._control: Array | None = None
        self._interval, self._from, self._to = 1.0, 0.0, 0.0
        self._later = self._last_later = 0.0

    @property
    def reaches_goal(self) -> bool:
        """The part planned last ends at the goal."""
        return self._control is not None and abs(self._to - self.duration) < 1e-3

    def sample(self, time: Array, order: int = 0) -> Array:
        """Return positions, or a derivative, at times (m,) of its clock [s]; (m, 3)."""
        before = time <= self._from
        shifted = np.where(before, time - self._later + self._last_later, time - self._later)
        found = self._references.sample([self._flight], shifted[None], order)[0]
        if self._control is None:
            return found
        planned = evaluate_uniform(self._control[None], np.array([self._interval]), (time - self._from)[None], order)[0]
        return np.where((~before & (time < self._to))[:, None], planned, found)

    def replace(self, control: Array, interval: float, begin: float, later: float) -> None:
        """Let control points (N, 3) hold from `begin` on [s]; all that follows is later by `later` [s] than it was.

        Args:
            control: (N, 3) [m], world.
            interval: Between knots [s].
            begin: When they take over [s].
            later: How much longer the course becomes [s].
        """
        self._control, self._interval = control, interval
        self._from, self._to = begin, begin + (len(control) - 3) * interval
        self.duration += later
        self._later += later
        self._last_later = later

    def segment(self, begin: float, reach: float, spacing: float) -> tuple[Segment, FitPoints]:
        """Return the part from `begin` on [s] up to `reach` away [m], and points on it about `spacing` apart [m].

        Args:
            begin: Time on the course [s].
            reach: Straight distance at which the part ends [m].
            spacing: Of the points [m].
        """
        left = max(self.duration - begin, 1e-2)
        times = np.append(np.arange(0.0, left, _STEP), left)
        points = self.sample(begin + times)
        away = np.sqrt(((points - points[0]) ** 2).sum(1)) >= reach
        last = int(np.argmax(away)) if away.any() else len(times) - 1
        length = float(np.sqrt((np.diff(points[: last + 1], axis=0) ** 2).sum(1)).sum())
        part = Segment(begin, float(times[last]))
        return part, self.points(part, int(length / spacing))

    def points(self, part: Segment, pieces: int) -> FitPoints:
        """Return points on a part, evenly in time, with the derivatives at its ends."""
        count = min(max(pieces, _LEAST_PIECES), _MOST_PIECES)
        interval = part.duration / count
        ends = part.begin + np.array([0.0, part.duration])
        boundary = np.stack([self.sample(ends, 1), self.sample(ends, 2)])
        at: Array = part.begin + np.arange(count + 1, dtype=np.float64) * interval
        return FitPoints(self.sample(at), boundary, interval)
