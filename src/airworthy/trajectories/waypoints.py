"""From waypoints to a trajectory that keeps its limits."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError
from airworthy.trajectories.allocation import (
    EVALUATIONS,
    check_points,
    shorten_durations,
    slow_to,
    spline_through,
    stretch_until_proven,
    time_allocation_trapezoid,
)
from airworthy.trajectories.limits import DEFAULT_LIMITS, Limits
from airworthy.trajectories.trajectory import Trajectory
from airworthy.trajectories.yaw import path_headings, unwrap_headings, yaw_fixed, yaw_spline

Array = NDArray[np.float64]

WAYPOINTS_MAX = 2000
_HEADINGS_PER_LEG = 4
_UNBOUNDED = (5.0, 5.0)  # [m/s], [m/s^2] from which durations start where no limit says otherwise


def from_waypoints(
    points: ArrayLike,
    limits: Limits = DEFAULT_LIMITS,
    yaw: str | float | ArrayLike = "forward",
    evaluations: int = EVALUATIONS,
) -> Trajectory:
    """Minimum-snap trajectory through waypoints, at rest at both ends, as fast as limits allow; the limits are proved.

    Args:
        points: World [m], shape (k, 3), k >= 2.
        limits: Bounds along the whole path; at least one of speed, acceleration, jerk, thrust_max, envelope.
        yaw: "forward" (along the path), "fixed" (0), one angle, or one per waypoint [rad], shape (k,), turned on the
            shorter arcs.
        evaluations: Most trials of the search over durations; 1 keeps the ratios of the trapezoidal allocation.

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
    durations = shorten_durations(path, start, limits, evaluations)
    knots = np.concatenate(([0.0], np.cumsum(durations)))
    coefficients = spline_through(path, durations)
    bare = Trajectory(knots, coefficients, *yaw_fixed(knots[-1], 0.0))
    if limits.yaw_rate is None and limits.body_rate is None:
        return stretch_until_proven(_with_yaw(bare, yaw, _HEADINGS_PER_LEG), limits)
    # A heading that follows every bend can turn much faster than the path needs: fewer headings per leg may be flown sooner.
    shares = (_HEADINGS_PER_LEG, 2, 1) if isinstance(yaw, str) and yaw == "forward" else (1,)
    return min((slow_to(_with_yaw(bare, yaw, share), limits) for share in shares), key=lambda found: found.duration)


def _with_yaw(path: Trajectory, yaw: str | float | ArrayLike, per_leg: int) -> Trajectory:
    return Trajectory(path.knots, path.coefficients, *_yaw(path, yaw, per_leg))


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
