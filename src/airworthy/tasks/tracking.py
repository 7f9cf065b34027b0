"""The tracking task: fly along a reference path and face where it says."""

from __future__ import annotations

from dataclasses import dataclass
from math import radians
from typing import Annotated, Any

import numpy as np

from airworthy.core.arrays import Array, ArrayLike, NDArray
from airworthy.core.errors import AirworthyError
from airworthy.core.schema import SHARE, Bound, check_fields, check_signs
from airworthy.tasks.outcomes import first_match

# ---- What a tracking task asks for: where to be, how fast and facing where, over time ---------------------------------------

_LATENESS = 0.05
"""What a second off the clock counts as, in metres off the path [m/s]; ours: slower than any course is flown, so that it
decides only where the vehicle is asked to wait."""
_STILL = 1e-3
"""A reference that is slower goes nowhere [m/s]."""


@dataclass(frozen=True)
class TrackingReference:
    """A time-sampled reference. Its path is the polyline through the positions; after the last sample the end pose is held.

    Raises:
        AirworthyError: Shapes disagree, a value is not finite, or times do not rise.
    """

    t: Array
    """Times [s], rising, shape (K,)."""
    position: Array
    """World [m], shape (K, 3)."""
    velocity: Array
    """World [m/s], shape (K, 3)."""
    yaw: Array
    """Heading [rad], shape (K,); need not be unwrapped."""

    def __post_init__(self) -> None:
        shapes = {"t": (), "position": (3,), "velocity": (3,), "yaw": ()}
        for name in shapes:
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        count = self.t.size
        if count == 0:
            raise AirworthyError("A tracking reference needs at least one sample; it has none.")
        for name, tail in shapes.items():
            values = getattr(self, name)
            if values.shape != (count, *tail):
                raise AirworthyError(f"The reference's {name} has shape {values.shape}; expected {(count, *tail)}.")
            if not np.isfinite(values).all():
                raise AirworthyError(f"The reference's {name} holds a value that is not finite.")
        if np.any(np.diff(self.t) <= 0.0):
            raise AirworthyError("The reference's times must rise from sample to sample.")

    @classmethod
    def from_trajectory(cls, trajectory: Any, rate_hz: float = 20.0) -> TrackingReference:
        """Sample a trajectory.

        Args:
            trajectory: Has `duration` [s] and `sample(t)` with `position`, `velocity` (..., 3) and `yaw` (...).
            rate_hz: Samples per second; the end is always one of them.
        """
        # A whole number of equal steps, so that the end is a sample; the rate is met to within half a step over the whole path.
        steps = max(1, round(float(trajectory.duration) * rate_hz))
        t = np.linspace(0.0, float(trajectory.duration), steps + 1) if trajectory.duration > 0.0 else np.zeros(1)
        flat = trajectory.sample(t)
        return cls(t, np.asarray(flat.position), np.asarray(flat.velocity), np.asarray(flat.yaw))

    @property
    def duration(self) -> float:
        """Time from the first sample to the last [s]."""
        return float(self.t[-1] - self.t[0])

    @property
    def path(self) -> Array:
        """Corners of the polyline without repetitions [m], shape (at least 1, 3)."""
        # Pieces without length have no direction to project on.
        moved = np.any(np.diff(self.position, axis=0) != 0.0, axis=1)
        return self.position[np.concatenate(([True], moved))]

    @property
    def length(self) -> float:
        """Length of the path [m]."""
        return float(np.sum(np.linalg.norm(np.diff(self.position, axis=0), axis=1)))

    def position_at(self, t: ArrayLike) -> Array:
        """Return the position [m] at times (...), linear between samples, shape (..., 3)."""
        return self._at(t, self.position)

    def velocity_at(self, t: ArrayLike) -> Array:
        """Return the velocity [m/s] at times (...), linear between samples and zero after the last, shape (..., 3)."""
        t = np.asarray(t, dtype=np.float64)
        # `interp` would hold the last velocity, of a path that may end in flight; the end pose is held instead.
        return np.where((t > self.t[-1])[..., None], 0.0, self._at(t, self.velocity))

    def yaw_at(self, t: ArrayLike) -> Array:
        """Return the heading [rad] at times (...), continuous, shape (...)."""
        # Unwrapped first: between 179 and -179 degrees lie two degrees, not 358.
        return np.interp(np.asarray(t, dtype=np.float64), self.t, np.unwrap(self.yaw))

    def yaw_along(self, t: ArrayLike, position: ArrayLike, window: float) -> Array:
        """Return the heading [rad] that the path asks for where a vehicle is along it, continuous, shape (n,).

        Who flies by sight has no clock: a second late on a circle that faces its middle, it faces what it should. The place
        along the path is that of the sample which is nearest, of those at most `window` from the clock: where a path crosses
        itself or returns, that leg counts which is flown.

        Args:
            t: Times [s], (n,).
            position: World [m], (n, 3).
            window: How late or early [s]; 0: as `yaw_at`.
        """
        t, position = np.asarray(t, dtype=np.float64), np.asarray(position, dtype=np.float64)
        if window <= 0.0 or self.t.size < 2:
            return self.yaw_at(t)
        count = max(1, round(window / float(np.median(np.diff(self.t)))))
        clock = np.clip(np.searchsorted(self.t, t), 0, self.t.size - 1)
        when, best = t, np.linalg.norm(position - self.position_at(t), axis=-1)
        # From the clock outwards: where a vehicle waits and turns in one place, the clock decides.
        for shift in sorted(range(-count, count + 1), key=abs):
            sample = np.clip(clock + shift, 0, self.t.size - 1)
            late = np.abs(self.t[sample] - t)
            off = np.linalg.norm(position - self.position[sample], axis=-1) + _LATENESS * late
            nearer = (off < best) & (late <= window)
            when, best = np.where(nearer, self._beside(sample, position), when), np.where(nearer, off, best)
        return self.yaw_at(when)

    def _beside(self, sample: NDArray[np.intp], position: Array) -> Array:
        """Return times [s] (n,) at which the path is nearest, at most half a step from samples, as if straight there."""
        speed = self.velocity[sample]
        along = np.sum((position - self.position[sample]) * speed, axis=-1)
        step = 0.5 * float(np.median(np.diff(self.t)))
        shift = np.clip(along / np.maximum(np.sum(speed * speed, axis=-1), _STILL**2), -step, step)
        return np.asarray(self.t[sample] + shift)

    def _at(self, t: ArrayLike, values: Array) -> Array:
        t = np.asarray(t, dtype=np.float64)
        return np.stack([np.interp(t, self.t, values[:, axis]) for axis in range(3)], axis=-1)


# -----------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TrackingProtocol:
    """Thresholds of the tracking task; they are written into every result.

    The outcome classes and the 0.3 m are those of SOUS VIDE (arXiv:2412.16346). It names no number for "finished",
    "orientation not followed" and a collision event; the other values are ours.
    """

    end_radius_m: float = 0.5
    """Finished: within this distance of the last waypoint ..."""
    end_window_s: float = 2.0
    """... at some time in the last seconds of the flight, these ..."""
    path_distance_max_m: float = 1.5
    """... never farther than this from the path ..."""
    coverage_min: Annotated[float, SHARE] = 0.9
    """... and along at least this share of it, in its order, or up to `end_radius_m` before its end: to wait where a closed
    course begins and ends is not to fly it."""
    yaw_error_max_rad: float = radians(30.0)
    """Partial: the median yaw error, or that at the end, is above this."""
    yaw_window_s: Annotated[float, Bound(0.0, 60.0, "s")] = 1.5
    """The heading is compared with that of the course where the vehicle is along it, at most so far from the clock: like the
    distance from the path it does not ask for punctuality. 0: at the clock's."""
    proximity_m: float = 0.3
    """Proximity percentile: share of samples at most this far from the path."""
    collision_start_m: float = 0.15
    """A collision event starts where clearance drops below this (where clearance was recorded) ..."""
    collision_end_m: float = 0.25
    """... and ends where it rises above this."""
    duration_tolerance_s: float = 0.15
    """A flight that ends this much before its reference still covers it."""

    def __post_init__(self) -> None:
        check_fields(self, "TrackingProtocol.")
        check_signs(self, "The tracking protocol's")
        if self.collision_end_m < self.collision_start_m:
            raise AirworthyError("The tracking protocol's collision_end_m must not be under its collision_start_m.")


def classify_tracking(
    protocol: TrackingProtocol,
    *,
    diverged: ArrayLike,
    out_of_bounds: ArrayLike,
    collisions: ArrayLike,
    covered: ArrayLike,
    end_distance: ArrayLike,
    path_distance_max: ArrayLike,
    yaw_error_median: ArrayLike,
    yaw_error_end: ArrayLike,
    went_along: ArrayLike = True,
) -> NDArray[np.str_]:
    """Return the outcome of each flight, the first that matches, in the order of SOUS VIDE's classes.

    Args:
        protocol: Thresholds.
        diverged: Whether the state ceased to be finite or sane, shape (flights,), as all others.
        out_of_bounds: Whether it left the world.
        collisions: Number of collision events.
        covered: Whether the flight lasted as long as its reference.
        end_distance: Smallest distance to the last waypoint within the end window [m].
        path_distance_max: Largest distance to the path [m].
        yaw_error_median: Median over the flight of the absolute yaw error [rad]; NaN where nothing was asked.
        yaw_error_end: Absolute yaw error of the last sample [rad]; NaN where nothing was asked.
        went_along: Whether enough of the path was flown, in its order.

    Returns:
        Outcomes, shape (flights,): `diverged`, `collision` (one after which the course was not finished), `out_of_bounds`,
        `aborted` (the record ends early for no reason in it), `off_course`, `partial`, `success_recovered`, `success`.
        A distance that is NaN never finishes a course.
    """
    collided = np.asarray(collisions) > 0
    near_end = np.asarray(end_distance, dtype=np.float64) <= protocol.end_radius_m
    near_path = np.asarray(path_distance_max, dtype=np.float64) <= protocol.path_distance_max_m
    covered, outside = np.asarray(covered, dtype=bool), np.asarray(out_of_bounds, dtype=bool)
    finished = covered & near_end & near_path & ~outside & np.asarray(went_along, dtype=bool)
    # `fmax` passes over NaN: where only one of the two was asked for, that one counts.
    yaw_error = np.fmax(np.asarray(yaw_error_median, dtype=np.float64), np.asarray(yaw_error_end, dtype=np.float64))
    return first_match(
        [
            (diverged, "diverged"),
            (collided & ~finished, "collision"),
            (outside, "out_of_bounds"),
            (~covered & near_path, "aborted"),
            (~finished, "off_course"),
            (yaw_error > protocol.yaw_error_max_rad, "partial"),
            (collided, "success_recovered"),
        ],
        otherwise="success",
    )
