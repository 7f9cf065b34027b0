"""What an inertial sensor would have measured along poses: splines through them, gravity, and a device's noise.

Positions are joined by a spline of degree 5, attitudes by SciPy's rotation spline of degree 3, so that specific force and rate
are continuous. Noise is as `airworthy.simulation.Imu` has it: white, a bias that walks from a drawn start, saturation. The
mounting angle that a device may have is left out: the data set states its extrinsics.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.bridges.replay.poses import PosePath
from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import rotate_inverse
from airworthy.core.random import Stream, flight_key, normals, uniforms
from airworthy.logs.clocks.clock import NS
from airworthy.simulation import Imu

__all__ = ["GRAVITY", "InertialSeries", "simulated_imu"]

GRAVITY = 9.81
"""[m/s^2], as in the simulator's equations."""
_POSES_MIN = 6
"""That a spline of degree 5 goes through."""


@dataclass(frozen=True, eq=False)
class InertialSeries:
    """Samples of an inertial sensor, axes of the body."""

    stamps: Any
    """[ns], int64, (n,)."""
    rate: Array
    """[rad/s], (n, 3)."""
    force: Array
    """Specific force [m/s^2], (n, 3)."""
    rate_bias: Array | None = None
    """Where it is known, (n, 3)."""
    force_bias: Array | None = None


def simulated_imu(path: PosePath, device: Imu, rate: float, seed: int = 0) -> InertialSeries:
    """Return the samples of a device that is carried along poses, its axes and origin those of the body.

    Args:
        path: Of the body, in a world with z up.
        device: Noise and limits.
        rate: Samples per second.
        seed: Key of the noise.

    Raises:
        AirworthyError: There are too few poses.
    """
    from scipy.interpolate import make_interp_spline
    from scipy.spatial.transform import Rotation, RotationSpline

    if len(path.stamps) < _POSES_MIN:
        raise AirworthyError(f"An inertial sensor is derived from {len(path.stamps)} poses; expected {_POSES_MIN} or more.")
    seconds = (path.stamps - path.stamps[0]) / NS
    count = int(seconds[-1] * rate + 1e-6) + 1
    stamps = path.stamps[0] + np.rint(np.arange(count) / rate * NS).astype(np.int64)
    at = np.minimum((stamps - path.stamps[0]) / NS, seconds[-1])
    push = make_interp_spline(seconds, path.position, k=5).derivative(2)(at)
    turns = RotationSpline(seconds, Rotation.from_quat(path.attitude))
    attitude, turning = turns(at).as_quat(), turns(at, 1)
    force = rotate_inverse(attitude, push + np.array([0.0, 0.0, GRAVITY]))
    return _noisy(stamps, turning, force, device, rate, seed)


def _noisy(stamps: Any, turning: Array, force: Array, device: Imu, rate: float, seed: int) -> InertialSeries:
    key, count = flight_key(seed, 0), len(stamps)
    white = normals(key[None], np.arange(count), Stream.SENSOR, 12)
    start = 2.0 * uniforms(key[None], np.zeros(1, np.uint32), Stream.RESET, 8)[0] - 1.0
    force_walk = np.cumsum(white[:, 6:9] * np.asarray(device.accelerometer_walk) / np.sqrt(rate), axis=0)
    rate_walk = np.cumsum(white[:, 9:12] * np.asarray(device.gyroscope_walk) / np.sqrt(rate), axis=0)
    force_bias = start[:3] * device.bias_initial[0] + force_walk
    rate_bias = start[3:6] * device.bias_initial[1] + rate_walk
    force = force + force_bias + white[:, :3] * np.asarray(device.accelerometer_noise) * np.sqrt(rate)
    turning = turning + rate_bias + white[:, 3:6] * np.asarray(device.gyroscope_noise) * np.sqrt(rate)
    limits = device.gyroscope_limit, device.accelerometer_limit
    return InertialSeries(
        stamps, np.clip(turning, -limits[0], limits[0]), np.clip(force, -limits[1], limits[1]), rate_bias, force_bias
    )
