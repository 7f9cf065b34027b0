"""What a course asks and what it leaves, place by place: speed, thrust, turning and room along it.

`CourseRoom` keeps a place ready for one vehicle, so that a course that is being drawn can be looked at again after every step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayLike
from airworthy.core.vectors import norm
from airworthy.dynamics.scene_native import body_core
from airworthy.geometry.distance import Distance, clearance
from airworthy.scenes import Scene, SceneBatch
from airworthy.tasks.course_fit import FAR, SLACK, CourseClearance, course_clearance, gap_of, solid_scene
from airworthy.trajectories import Limits, RotorBound, Trajectory
from airworthy.trajectories.limits import path_usage
from airworthy.trajectories.tracked import rotor_shares, tracked_samples
from airworthy.vehicles import Vehicle

__all__ = ["CourseMargins", "CourseRoom", "course_margins"]

SAMPLES = 400
"""Along a course: what is drawn and plotted. What is promised comes from `course_clearance` and `prove`."""


@dataclass(frozen=True, eq=False)
class CourseMargins:
    """A course at samples even in time, (n,) each."""

    time: Array
    """[s]"""
    position: Array
    """World [m], (n, 3)."""
    speed: Array
    """[m/s]"""
    used: Array
    """The largest part of any limit on the path that is used: 1 where one is just reached."""
    rotor_share: Array
    """Thrust of the busiest rotor over the most it gives, for a body that tracks exactly, without drag."""
    body_rate: Array
    """Magnitude, yaw included [rad/s]."""
    yaw_rate: Array
    """Magnitude [rad/s]."""
    gap: Array
    """Distance of the body from anything that can be hit [m]; negative: it overlaps; at most `FAR`. NaN without a place."""
    inside: ArrayBool
    """Whether it is within the bounds of the place; True without one."""

    @property
    def duration(self) -> float:
        """[s]"""
        return float(self.time[-1])


class CourseRoom:
    """A place, ready to be asked how much room there is for a vehicle. What moves in it is left out.

    Args:
        scene: The place.
        vehicle: Whose body needs the room.
    """

    def __init__(self, scene: Scene, vehicle: Vehicle):
        self.scene, self.vehicle = scene, vehicle
        self._solid = solid_scene(scene)
        self._geometry = SceneBatch(self._solid, 1).geometry
        self._core = body_core(vehicle.body, vehicle.center_of_mass)

    @property
    def radius(self) -> float:
        """Of a ball around the centre of mass that holds the body in every attitude [m]."""
        return float(self._core[8])

    def clearance(self, path: Trajectory) -> CourseClearance:
        """Return the room that a course leaves, as `course_clearance` does."""
        return course_clearance(path, self.scene, self.vehicle, solid=self._solid, geometry=self._geometry)

    def gaps(self, path: Trajectory, time: Array) -> Array:
        """Return the body's distance from anything that can be hit [m], at most `FAR`, at times (n,) [s]."""
        return gap_of(path, self._geometry, self._core, self.vehicle.gravity)(time)[0]

    def holds(self, points: Array) -> ArrayBool:
        """Tell which of points (n, 3) [m] are within the bounds of the place."""
        lower, upper = np.array(self.scene.bounds.lower), np.array(self.scene.bounds.upper)
        return np.asarray(((points >= lower - SLACK) & (points <= upper + SLACK)).all(axis=-1))

    def nearest(self, points: ArrayLike) -> Distance:
        """Return what is nearest to points (n, 3) [m], within `FAR`."""
        at = np.atleast_2d(np.asarray(points, np.float64))
        return clearance(self._geometry, at, env=np.zeros(len(at), np.int32), max_distance=FAR)


def course_margins(
    path: Trajectory, limits: Limits, vehicle: Vehicle, room: CourseRoom | None = None, samples: int = SAMPLES
) -> CourseMargins:
    """Return what a course asks of a vehicle and what room it leaves, at samples.

    Args:
        path: The course as it is flown.
        limits: Those that it keeps, for `used`.
        vehicle: Who flies.
        room: The place, of the same vehicle; None: no room is told.
        samples: How many, ends included; at least 2.
    """
    time = np.linspace(0.0, path.duration, max(samples, 2))
    sample = path.sample(time)
    state = tracked_samples(sample, vehicle.gravity)
    shares = np.atleast_2d(np.asarray(rotor_shares(state, (RotorBound.of(vehicle),))))
    speed = np.linalg.norm(sample.velocity, axis=-1)
    return CourseMargins(
        time=time,
        position=sample.position,
        speed=speed,
        used=path_usage(limits, sample.velocity, sample.acceleration, sample.jerk),
        rotor_share=np.nan_to_num(shares).max(axis=0),
        body_rate=np.nan_to_num(np.asarray(norm(state.body_rate))),
        yaw_rate=np.abs(sample.yaw_rate),
        gap=np.full(len(time), np.nan) if room is None else room.gaps(path, time),
        inside=np.ones(len(time), bool) if room is None else room.holds(sample.position),
    )
