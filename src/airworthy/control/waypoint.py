"""Way-point control by body rates: the outer loop for a vehicle whose own computer holds rates.

Source of the gains and limits: spec/flightgoggles 4.4 (100 Hz). Their source does not print the law; ours is position and
velocity feedback with both limits, and rates in proportion to the attitude error.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from airworthy.control.attitude import attitude_error, desired_axes, unit_or
from airworthy.control.geometric import BodyState
from airworthy.core.ops import clip, maximum, sin_cos, where
from airworthy.core.vectors import add, dot, matrix_columns, norm, scale, sub

Scalar = Any
Vector = tuple[Any, ...]


class WaypointParameters(NamedTuple):
    """Gains and limits; any record with these attributes will do."""

    mass: Scalar
    """[kg]"""
    gravity: Scalar
    """[m/s^2]"""
    position_gain: Scalar = 7.0
    """[1/s^2]"""
    velocity_gain: Scalar = 3.0
    """[1/s]"""
    attitude_gain: Scalar = 10.0
    """[1/s]"""
    rate_max: Scalar = 8.0
    """[rad/s], per axis."""
    acceleration_max: Scalar = 3.0
    """[m/s^2]"""
    speed_max: Scalar = 3.0
    """[m/s]"""


def limited_length(vector: Vector, longest: Scalar) -> Vector:
    """The vector, shortened to a length where it is longer."""
    length = norm(vector)
    return scale(vector, where(length > longest, longest / maximum(length, 1e-9), 1.0))


def waypoint_control(state: BodyState, position: Vector, yaw: Scalar, p: Any) -> tuple[Scalar, Vector]:
    """Collective thrust [N] and body rates [rad/s] towards a way-point.

    The position error is shortened so that it alone asks for no more than `speed_max`.

    Args:
        state: Present state.
        position: World [m].
        yaw: [rad]
        p: `WaypointParameters` or alike.
    """
    reach = p.speed_max * p.velocity_gain / p.position_gain
    pull = scale(limited_length(sub(position, state.position), reach), p.position_gain)
    wanted = limited_length(sub(pull, scale(state.velocity, p.velocity_gain)), p.acceleration_max)
    force = scale(add(wanted, (0.0, 0.0, p.gravity)), p.mass)
    axes = matrix_columns(state.attitude)
    sine, cosine = sin_cos(yaw)
    direction = unit_or(force, axes[2], 1e-6 * (p.mass * p.gravity) * (p.mass * p.gravity))
    target = desired_axes(direction, (cosine, sine, 0.0), 0.0, axes)
    rates = scale(attitude_error(axes, target), -p.attitude_gain)
    return dot(force, axes[2]), tuple(clip(rate, -p.rate_max, p.rate_max) for rate in rates)
