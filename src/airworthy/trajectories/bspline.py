"""Cubic B-splines over evenly spaced knots: curves that stay in the hull of their control points.

Piece i of a spline with control points Q_0 .. Q_n depends on Q_i .. Q_{i+3}. Its derivatives are splines of lower degree
whose control points are differences: velocity (Q_{i+1} - Q_i) / dt, acceleration (Q_{i+2} - 2 Q_{i+1} + Q_i) / dt^2, so
that limits on those control points are limits on the whole curve. Planners move the control points; `to_trajectory` gives
what is flown.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.trajectories.polynomial import differentiate, evaluate
from airworthy.trajectories.trajectory import Trajectory
from airworthy.trajectories.yaw import path_headings, yaw_fixed, yaw_spline

# Rows: powers 1, tau, tau^2, tau^3; columns: the four control points of a piece.
_BASIS = np.array([[1.0, 4.0, 1.0, 0.0], [-3.0, 0.0, 3.0, 0.0], [3.0, -6.0, 3.0, 0.0], [-1.0, 3.0, -3.0, 1.0]]) / 6.0


@dataclass(frozen=True)
class UniformBspline:
    """A cubic B-spline through space.

    Raises:
        AirworthyError: Fewer than 4 control points, numbers that are not finite, an interval that is not positive.
    """

    control_points: Array
    """[m], shape (n, 3), n >= 4."""
    interval: float
    """Knot spacing [s]."""

    def __post_init__(self) -> None:
        points = np.array(self.control_points, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != 3 or len(points) < 4 or not np.all(np.isfinite(points)):
            raise AirworthyError(f"A cubic B-spline needs 4 or more finite control points (n, 3), not shape {points.shape}.")
        if not (np.isfinite(self.interval) and self.interval > 0.0):
            raise AirworthyError(f"The knot spacing of a B-spline must be positive, but is {self.interval!r} s.")
        points.setflags(write=False)
        object.__setattr__(self, "control_points", points)

    @property
    def duration(self) -> float:
        """[s]"""
        return (len(self.control_points) - 3) * self.interval

    def pieces(self) -> Array:
        """Return ascending coefficients of normalised time, shape (n - 3, 3, 4)."""
        windows = np.lib.stride_tricks.sliding_window_view(self.control_points, 4, axis=0)
        return windows @ _BASIS.T

    def sample(self, t: ArrayLike, derivative: int = 0) -> Array:
        """Return the position or a time derivative at times t (...), clipped to [0, duration]; shape (..., 3)."""
        u = np.clip(np.asarray(t, dtype=np.float64) / self.interval, 0.0, len(self.control_points) - 3)
        piece = np.minimum(u.astype(np.int64), len(self.control_points) - 4)
        coefficients = differentiate(self.pieces(), derivative)[piece]
        return evaluate(coefficients, (u - piece)[..., None]) / self.interval**derivative

    def derivative_points(self, order: int) -> Array:
        """Return control points of a time derivative, shape (n - order, 3): the derivative stays in their hull."""
        return np.diff(self.control_points, n=order, axis=0) / self.interval**order

    def bound(self, order: int) -> float:
        """Return a bound of the derivative's magnitude along the whole curve; speed [m/s] for order 1."""
        return float(np.max(np.linalg.norm(self.derivative_points(order), axis=-1)))

    def slowed(self, speed: float, acceleration: float) -> UniformBspline:
        """Return the same curve, slow enough that its control points keep both limits [m/s, m/s^2]; never faster than it is."""
        factor = max(1.0, self.bound(1) / speed, float(np.sqrt(self.bound(2) / acceleration)))
        return UniformBspline(self.control_points, self.interval * factor)

    def to_trajectory(self, yaw: float | str = "forward") -> Trajectory:
        """Return the same curve as a trajectory; `yaw` is "forward", along the velocity, or a constant [rad]."""
        knots = np.arange(len(self.control_points) - 2) * self.interval
        if isinstance(yaw, str):
            if yaw != "forward":
                raise AirworthyError(f"Yaw of a B-spline is 'forward' or a number [rad], but is {yaw!r}.")
            heading = yaw_spline(knots, path_headings(self.sample(knots, 1)))
        else:
            heading = yaw_fixed(self.duration, yaw)
        return Trajectory(knots, self.pieces(), *heading)


def interpolate(
    points: ArrayLike,
    interval: float,
    start_velocity: ArrayLike = (0.0, 0.0, 0.0),
    end_velocity: ArrayLike = (0.0, 0.0, 0.0),
) -> UniformBspline:
    """Return the cubic B-spline through points at its knots, with given velocities at its ends.

    Args:
        points: [m], shape (n, 3), n >= 2.
        interval: Time between neighbouring points [s].
        start_velocity: [m/s], shape (3,).
        end_velocity: [m/s], shape (3,).

    Returns:
        A spline of n + 2 control points and duration (n - 1) interval.
    """
    from scipy.linalg import solve_banded

    through = np.asarray(points, dtype=np.float64)
    if through.ndim != 2 or through.shape[1] != 3 or len(through) < 2:
        raise AirworthyError(f"Interpolation needs 2 or more points (n, 3), but got shape {through.shape}.")
    count = len(through) + 2
    # v_0 = (Q_2 - Q_0) / (2 dt), p_i = (Q_i + 4 Q_{i+1} + Q_{i+2}) / 6, v_n likewise; bands up to two beside the diagonal.
    band = np.zeros((5, count))
    band[3, : count - 2], band[2, 1:-1], band[1, 2:] = 1.0, 4.0, 1.0
    band[2, 0], band[0, 2], band[1, 1] = -1.0, 1.0, 0.0
    band[2, -1], band[4, -3], band[3, -2] = 1.0, -1.0, 0.0
    slopes = [2.0 * interval * np.asarray(v, dtype=np.float64)[None] for v in (start_velocity, end_velocity)]
    right = np.concatenate((slopes[0], 6.0 * through, slopes[1]))
    return UniformBspline(solve_banded((2, 2), band, right), interval)


def fit(trajectory: Trajectory, interval: float) -> UniformBspline:
    """Return the B-spline through a trajectory's points, about `interval` [s] apart, with its velocities at the ends."""
    count = max(2, round(trajectory.duration / interval) + 1)
    times = np.linspace(0.0, trajectory.duration, count)
    sample = trajectory.sample(times)
    return interpolate(sample.position, trajectory.duration / (count - 1), sample.velocity[0], sample.velocity[-1])
