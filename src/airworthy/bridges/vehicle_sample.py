"""What an autopilot is told of its vehicle at one instant, in its frames: body forward-right-down, world north-east-down."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.frames import enu_ned_attitude, enu_ned_vector, flu_frd_vector, to_wxyz
from airworthy.sensors.navigation.suite import NavigationSample

__all__ = ["VehicleSample", "vehicle_sample"]


@dataclass(frozen=True)
class VehicleSample:
    """Truth and measurements of one vehicle; arrays of (3,), the attitude (4,)."""

    time: float
    """Of the link [s]; never goes back."""
    acceleration: Array
    """Specific force as the accelerometer measures it, FRD [m/s^2]."""
    rate_measured: Array
    """As the gyroscope measures it, FRD [rad/s]."""
    rate: Array
    """Truth, FRD [rad/s]."""
    position: Array
    """Truth, from home, NED [m]."""
    velocity: Array
    """Truth, NED [m/s]."""
    attitude: Array
    """Truth, FRD to NED, w, x, y, z."""
    navigation: NavigationSample
    """What magnetometer, barometer and satellite navigation have new, in our own frames, (1, ...)."""


def vehicle_sample(
    time: float,
    position: ArrayLike,
    velocity: ArrayLike,
    attitude: ArrayLike,
    rate: ArrayLike,
    imu: ArrayLike,
    navigation: NavigationSample,
) -> VehicleSample:
    """Return a sample from our own frames: world east-north-up, body forward-left-up.

    Args:
        time: [s].
        position: World [m], (3,).
        velocity: World [m/s], (3,).
        attitude: x, y, z, w, body to world, (4,).
        rate: Body [rad/s], (3,).
        imu: Accelerometer [m/s^2] and gyroscope [rad/s], body, (6,).
        navigation: Of the same instant.
    """
    measured = np.asarray(imu, np.float64)
    return VehicleSample(
        time,
        flu_frd_vector(measured[:3]),
        flu_frd_vector(measured[3:]),
        flu_frd_vector(rate),
        enu_ned_vector(position),
        enu_ned_vector(velocity),
        to_wxyz(enu_ned_attitude(np.asarray(attitude, np.float64))),
        navigation,
    )
