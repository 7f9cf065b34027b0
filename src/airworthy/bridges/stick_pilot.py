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

__all__ = ["StickPilot", "stick_for_rate"]

ANGLE_LIMIT = math.radians(60.0)
"""Betaflight's angle_limit, its default: attitude at full stick [rad]."""
CENTRE_RATE, FULL_RATE = math.radians(70.0), math.radians(670.0)
"""Betaflight's defaults of the actual rates (rc_rate 7, srate 67, expo 0): slope at the sticks' middle, and rate at full stick
[rad/s]. Since 4.5 angles follow the same curve, so that a small stick is worth a tenth of its share."""
MOTOR_IDLE = 0.055
"""Betaflight's motor_idle, its default: share of the motors' range at throttle zero."""
# Ours: sticks move an attitude loop of some 5 rad/s, below which the outer loop has to stay.
_POSITION_GAIN, _VELOCITY_GAIN = 2.0, 2.8  # [1/s^2], [1/s]: damped with a ratio of 1
# Throttle curve and idle speed may have been changed in the firmware, and an accelerometer that is off tilts what it takes
# for level.
_INTEGRAL, _INTEGRAL_MAX = np.array([0.4, 0.4, 0.8]), np.array([1.0, 1.0, 4.0])  # [1/s^3], [m/s^2]
_TILT_MAX = math.radians(35.0)
# Ours, flown with Betaflight 2026.6.1: with its default gains the yaw of x500 swings at 7 rad/s and is hardly damped, and an
# outer loop of more than 1/s makes it swing for ever.
_YAW_GAIN, _YAW_RATE_MAX = 0.8, math.radians(60.0)  # [1/s], [rad/s]
# Betaflight arms on a switch that it has seen off since it was ready, some 5 s after its start.
_ARM_OFF, _ARM_PERIOD = 1.0, 4.0  # [s]
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
        self._learnt = np.zeros(3)

    def __call__(self, sample: VehicleSample, standing: bool) -> Sticks:
        """Return what the hands do."""
        if standing:
            return Sticks(arm=sample.time % _ARM_PERIOD > _ARM_OFF)
        if self._begun is None:
            self._begun = sample.time
        wanted = self._path.sample(np.array([sample.time - self._begun]))
        position, velocity = enu_ned_vector(sample.position), enu_ned_vector(sample.velocity)
        away, slower = wanted.position[0] - position, wanted.velocity[0] - velocity
        self._learnt = np.clip(self._learnt + _INTEGRAL * away * self._period, -_INTEGRAL_MAX, _INTEGRAL_MAX)
        push = wanted.acceleration[0] + _POSITION_GAIN * away + _VELOCITY_GAIN * slower + self._learnt
        up = max(self._gravity + float(push[2]), _LIFT_MIN * self._gravity)
        yaw = float(yaw_of(enu_ned_attitude(from_wxyz(sample.attitude))))
        ahead = math.cos(yaw) * push[0] + math.sin(yaw) * push[1]
        left = -math.sin(yaw) * push[0] + math.cos(yaw) * push[1]
        pitch, roll = self._tilt(ahead, up), self._tilt(-left, up)
        turn = float(wrap_angle(wanted.yaw[0] - yaw))
        # Thrust grows with the square of the throttle: a command is a share of the rotors' highest speed.
        speed = math.sqrt(up / (math.cos(pitch) * math.cos(roll)) / self._acceleration_max)
        rate = min(max(-_YAW_GAIN * turn, -_YAW_RATE_MAX), _YAW_RATE_MAX)
        return Sticks(
            self._for_angle(roll),
            self._for_angle(pitch),
            stick_for_rate(rate),
            (speed - MOTOR_IDLE) / (1.0 - MOTOR_IDLE),
            arm=True,
        )

    def _for_angle(self, angle: float) -> float:
        return stick_for_rate(FULL_RATE * angle / self._angle_limit)

    def _tilt(self, push: float, up: float) -> float:
        return min(max(math.atan2(float(push), up), -_TILT_MAX), _TILT_MAX)


def stick_for_rate(rate: float) -> float:
    """Return the stick, in [-1, 1], at which Betaflight's actual rates ask for a rate [rad/s]: that of
    rate = c s + (m - c) s |s|, with c at the middle and m at full stick.
    """
    more = FULL_RATE - CENTRE_RATE
    root = math.sqrt(CENTRE_RATE * CENTRE_RATE + 4.0 * more * abs(rate)) - CENTRE_RATE
    return math.copysign(min(root / (2.0 * more), 1.0), rate)
