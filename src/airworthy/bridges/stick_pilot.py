"""A pilot at a transmitter: follows a trajectory with the sticks of a firmware that levels itself (angle mode)."""

from __future__ import annotations

import math

import numpy as np

from airworthy.bridges.betaflight import Sticks
from airworthy.bridges.vehicle_sample import VehicleSample
from airworthy.core.frames import enu_ned_attitude, enu_ned_vector, from_wxyz, wrap_angle, yaw_of
from airworthy.trajectories import Trajectory
from airworthy.vehicles import Vehicle
from airworthy.vehicles.check import rotor_thrust

__all__ = ["StickPilot"]

ANGLE_LIMIT = math.radians(60.0)
"""Betaflight's angle_limit, its default: attitude at full stick [rad]."""
MOTOR_IDLE = 0.055
"""Betaflight's motor_idle, its default: share of the motors' range at throttle zero."""
# Ours: sticks move an attitude loop of some 5 rad/s, below which the outer loop has to stay.
_POSITION_GAIN, _VELOCITY_GAIN = 2.0, 2.8  # [1/s^2], [1/s]: damped with a ratio of 1
_HEIGHT_INTEGRAL = 0.8  # [1/s^3]
_HEIGHT_INTEGRAL_MAX = 4.0  # [m/s^2]: throttle curve and idle speed may have been changed in the firmware
_TILT_MAX = math.radians(35.0)
_YAW_GAIN, _YAW_STICK_MAX = 1.2, 0.5  # stick per radian, of its travel
_ARM_AFTER = 1.0  # [s]: Betaflight arms on a switch that it has seen off
_LIFT_MIN = 0.2  # of the weight: a copter without thrust has no attitude control


class StickPilot:
    """Callable as the sticks of `BetaflightPilot`; it sees the vehicle's true position, as a pilot in sight does.

    Args:
        vehicle: Whose thrust it knows.
        path: To follow from the moment that the vehicle is let go.
        rate: Of samples [Hz].
        angle_limit: Attitude at full stick [rad].
    """

    def __init__(self, vehicle: Vehicle, path: Trajectory, rate: float, angle_limit: float = ANGLE_LIMIT):
        self._path, self._period, self._angle_limit = path, 1.0 / rate, angle_limit
        self._gravity = vehicle.gravity
        lift = sum(rotor_thrust(rotor, rotor.speed_max) for rotor in vehicle.rotors)
        self._acceleration_max = lift / vehicle.mass
        self._begun: float | None = None
        self._height = 0.0

    def __call__(self, sample: VehicleSample, standing: bool) -> Sticks:
        """Return what the hands do."""
        if standing:
            return Sticks(arm=sample.time > _ARM_AFTER)
        if self._begun is None:
            self._begun = sample.time
        wanted = self._path.sample(np.array([sample.time - self._begun]))
        position, velocity = enu_ned_vector(sample.position), enu_ned_vector(sample.velocity)
        away, slower = wanted.position[0] - position, wanted.velocity[0] - velocity
        push = wanted.acceleration[0] + _POSITION_GAIN * away + _VELOCITY_GAIN * slower
        self._height += _HEIGHT_INTEGRAL * float(away[2]) * self._period
        self._height = min(max(self._height, -_HEIGHT_INTEGRAL_MAX), _HEIGHT_INTEGRAL_MAX)
        up = max(self._gravity + float(push[2]) + self._height, _LIFT_MIN * self._gravity)
        yaw = float(yaw_of(enu_ned_attitude(from_wxyz(sample.attitude))))
        ahead = math.cos(yaw) * push[0] + math.sin(yaw) * push[1]
        left = -math.sin(yaw) * push[0] + math.cos(yaw) * push[1]
        pitch, roll = self._tilt(ahead, up), self._tilt(-left, up)
        turn = float(wrap_angle(wanted.yaw[0] - yaw))
        # Thrust grows with the square of the throttle: a command is a share of the rotors' highest speed.
        speed = math.sqrt(up / (math.cos(pitch) * math.cos(roll)) / self._acceleration_max)
        stick = min(max(-_YAW_GAIN * turn, -_YAW_STICK_MAX), _YAW_STICK_MAX)
        return Sticks(
            roll / self._angle_limit, pitch / self._angle_limit, stick, (speed - MOTOR_IDLE) / (1.0 - MOTOR_IDLE), arm=True
        )

    def _tilt(self, push: float, up: float) -> float:
        return min(max(math.atan2(float(push), up), -_TILT_MAX), _TILT_MAX)
