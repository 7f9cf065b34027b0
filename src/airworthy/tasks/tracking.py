"""The tracking task: fly along a reference path and face where it says."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import isfinite, radians

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError
from airworthy.tasks.outcomes import first_match


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
    """... and never farther than this from the path."""
    yaw_error_max_rad: float = radians(30.0)
    """Partial: the median yaw error, or that at the end, is above this."""
    proximity_m: float = 0.3
    """Proximity percentile: share of samples at most this far from the path."""
    collision_start_m: float = 0.15
    """A collision event starts where clearance drops below this (where clearance was recorded) ..."""
    collision_end_m: float = 0.25
    """... and ends where it rises above this."""
    duration_tolerance_s: float = 0.15
    """A flight that ends this much before its reference still covers it."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isfinite(value) or value < 0.0:
                raise AirworthyError(
                    f"The tracking protocol's {field.name} is {value!r}; expected a finite number of at least 0."
                )
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
) -> NDArray[np.str_]:
    """Outcome of each flight, the first that matches, in the order of SOUS VIDE's classes.

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

    Returns:
        Outcomes, shape (flights,): `diverged`, `collision` (one after which the course was not finished), `out_of_bounds`,
        `aborted` (the record ends early for no reason in it), `off_course`, `partial`, `success_recovered`, `success`.
        A distance that is NaN never finishes a course.
    """
    collided = np.asarray(collisions) > 0
    near_end = np.asarray(end_distance, dtype=np.float64) <= protocol.end_radius_m
    near_path = np.asarray(path_distance_max, dtype=np.float64) <= protocol.path_distance_max_m
    covered, outside = np.asarray(covered, dtype=bool), np.asarray(out_of_bounds, dtype=bool)
    finished = covered & near_end & near_path & ~outside
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
