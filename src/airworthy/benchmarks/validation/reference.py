"""What the vehicle really did: its state at any time of a log, from motion capture and gyro.

Attitude: the gyro is integrated, and a rotation that drifts slowly ties it to the captured attitudes; a local mean of that
rotation is a local fit on the rotation group with the gyro as its shape. Position and velocity: a local cubic in the captured
positions, moved from the markers to the vehicle. Body rate: a local quadratic in the gyro. Poses whose attitude leaves the
gyro's for a moment (the capture system swaps markers: 45 degrees in one flight) are thrown away.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from airworthy.benchmarks.validation.calibration import Calibration, at_times, attitude_at, integrate_gyro
from airworthy.benchmarks.validation.logs import FlightLog
from airworthy.core.arrays import Array, ArrayBool

POSE_HALF_WIDTH = 0.1
"""Half width of the local fit of position and attitude [s]."""
RATE_HALF_WIDTH = 0.012
"""Half width of the local fit of the body rate [s]."""
OUTLIER_ANGLE = np.deg2rad(3.0)
"""A pose whose attitude is this far from its surroundings' is a mistake of the capture system."""
_SURROUNDINGS = 2.0
_POSES_MIN, _POSES_EACH_SIDE = 7, 3
_GAP_MAX = 0.065


@dataclass(frozen=True)
class States:
    """Reference states at given times; `valid` says where the poses around suffice."""

    time: Array
    position: Array
    """World [m], (n, 3)."""
    velocity: Array
    """World [m/s], (n, 3)."""
    attitude: Array
    """Body to world, x, y, z, w, (n, 4)."""
    rate: Array
    """Body [rad/s], (n, 3)."""
    valid: ArrayBool


@dataclass(frozen=True)
class LogReference:
    """A log made ready for questions about its state."""

    log: FlightLog
    calibration: Calibration
    pose_time: Array
    """Capture times with the latency taken off, accepted poses only [s], (m,)."""
    position: Array
    """Body origin (IMU) in the world [m], (m, 3)."""
    turned: Array
    """Gyro-integrated attitude over the log's time, (n, 4)."""
    tie: Array
    """World rotation that ties the integrated to the captured attitude, at each accepted pose, quaternions (m, 4)."""
    rejected: int
    """Poses thrown away."""

    def states(self, time: Array) -> States:
        """Return reference states at times of the log [s], (n,)."""
        fits = [self._local(t) for t in time]
        near = attitude_at(self.log.time, self.turned, time)
        tie = Rotation.from_quat(np.stack([f[0] for f in fits]))
        return States(
            time=time,
            position=np.stack([f[1] for f in fits]),
            velocity=np.stack([f[2] for f in fits]),
            attitude=(tie * near).as_quat(),
            rate=np.stack([self._rate(t) for t in time]),
            valid=np.array([f[3] for f in fits]) & (time >= self.log.time[0]) & (time <= self.log.time[-1]),
        )

    def _local(self, time: float) -> tuple[Array, Array, Array, bool]:
        """Tie rotation, position and velocity at one time from the poses around it, and whether there are enough."""
        inside = slice(*np.searchsorted(self.pose_time, [time - POSE_HALF_WIDTH, time + POSE_HALF_WIDTH]))
        offset = self.pose_time[inside] - time
        if offset.size < _POSES_MIN or min(np.sum(offset < 0), np.sum(offset > 0)) < _POSES_EACH_SIDE:
            return np.array([0.0, 0.0, 0.0, 1.0]), np.zeros(3), np.zeros(3), False
        edges = np.concatenate([[-POSE_HALF_WIDTH], offset, [POSE_HALF_WIDTH]])
        tie = Rotation.from_quat(self.tie[inside]).mean().as_quat()
        cubic = np.linalg.lstsq(np.vander(offset, 4, increasing=True), self.position[inside], rcond=None)[0]
        return tie, cubic[0], cubic[1], bool(np.diff(edges).max() <= _GAP_MAX)

    def _rate(self, time: float) -> Array:
        inside = slice(*np.searchsorted(self.log.time, [time - RATE_HALF_WIDTH, time + RATE_HALF_WIDTH]))
        offset = self.log.time[inside] - time
        if offset.size < 4:
            return at_times(self.log.time, self.log.gyro, np.array([time]))[0] - self.calibration.gyro_bias
        quadratic = np.linalg.lstsq(np.vander(offset, 3, increasing=True), self.log.gyro[inside], rcond=None)[0]
        return quadratic[0] - self.calibration.gyro_bias


def reference(log: FlightLog, calibration: Calibration) -> LogReference:
    """Tie a log's gyro to its poses and drop poses that cannot be."""
    turned = integrate_gyro(log.time, log.gyro - calibration.gyro_bias)
    time = log.pose_time - calibration.latency
    inside = (time >= log.time[0]) & (time <= log.time[-1])
    time = time[inside]
    captured = Rotation.from_quat(log.attitude[inside]) * Rotation.from_quat(calibration.rotation)
    tie = captured * attitude_at(log.time, turned, time).inv()
    good = _consistent(time, tie)
    attitude = Rotation.from_quat(_smooth(time[good], tie[good])) * attitude_at(log.time, turned, time[good])
    return LogReference(
        log=log,
        calibration=calibration,
        pose_time=time[good],
        position=log.position[inside][good] - attitude.apply(calibration.lever),
        turned=turned,
        tie=tie[good].as_quat(),
        rejected=int(np.sum(~good)),
    )


def _consistent(time: Array, tie: Rotation) -> ArrayBool:
    """Return which poses agree with the (componentwise) median of the surrounding two seconds on either side."""
    quaternions = tie.as_quat()
    good = np.zeros(len(time), bool)
    for index, now in enumerate(time):
        around = quaternions[slice(*np.searchsorted(time, [now - _SURROUNDINGS, now + _SURROUNDINGS]))]
        aligned = around * np.where(around @ quaternions[index] < 0.0, -1.0, 1.0)[:, None]
        middle = Rotation.from_quat(np.median(aligned, axis=0))
        good[index] = (middle.inv() * tie[index]).magnitude() < OUTLIER_ANGLE
    return good


def _smooth(time: Array, tie: Rotation) -> Array:
    quaternions = tie.as_quat()
    return np.stack(
        [
            Rotation.from_quat(quaternions[slice(*np.searchsorted(time, [t - POSE_HALF_WIDTH, t + POSE_HALF_WIDTH]))])
            .mean()
            .as_quat()
            for t in time
        ]
    )
