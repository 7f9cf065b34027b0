"""The controller by differential flatness of Agilicious, and its guard variant; equations.

Source: specification of the planners, section 9, after Sun and others, "A Comparative Study of Nonlinear MPC and
Differential-Flatness-Based Control for Quadrotor Agile Flight" (2022); attitude by tilt first, after Brescianini and D'Andrea.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from airworthy.control.attitude import unit_or
from airworthy.core.arrays import Scalar, Vector
from airworthy.core.ops import clip, sin_cos, sqrt, where
from airworthy.core.vectors import add, cross, dot, matrix_columns, norm, scale, sub

__all__ = ["DFBC_GAINS", "GUARD_GAINS", "DfbcGains", "DfbcWish", "dfbc_control", "quaternion_of_axes", "tilt_first"]

# World z, up.
_UP = (0.0, 0.0, 1.0)


class DfbcGains(NamedTuple):
    """Gains; any record with these attributes will do."""

    position: Vector
    """[1/s^2]"""
    velocity: Vector
    """[1/s]"""
    tilt: Scalar
    """Of roll and pitch: [1/s^2] with rate gains, [1/s] without."""
    yaw: Scalar
    rate: Vector
    """[1/s]; zeros: what comes out are body rates [rad/s]."""
    position_max: Vector = (1e3, 1e3, 1e3)
    """Clip of position errors [m]."""
    velocity_max: Vector = (1e3, 1e3, 1e3)
    """Clip of velocity errors [m/s]."""


# Source: spec/planners section 9.
DFBC_GAINS = DfbcGains((10.0, 10.0, 10.0), (6.0, 6.0, 6.0), 150.0, 3.0, (20.0, 20.0, 8.0))
"""As shipped (`geo.yaml`)."""
GUARD_GAINS = DfbcGains((10.0, 10.0, 20.0), (4.0, 4.0, 6.0), 10.0, 2.0, (0.0, 0.0, 0.0), (0.6, 0.6, 0.3), (1.0, 1.0, 1.0))
"""As shipped (`geo_guard.yaml`)."""


class DfbcWish(NamedTuple):
    """What it asks for."""

    thrust: Scalar
    """Over mass [m/s^2]."""
    turn: Vector
    """Angular acceleration, body [rad/s^2]; with rate gains 0 body rates [rad/s]."""
    direction: Vector
    """Wanted body z, world."""


def dfbc_control(
    position: Vector, velocity: Vector, attitude: Vector, rate: Vector, wanted: Any, gains: Any, air: Vector, thrust: Scalar
) -> DfbcWish:
    """Return thrust and angular acceleration that follow a reference.

    Args:
        position: World [m].
        velocity: World [m/s].
        attitude: Quaternion x, y, z, w.
        rate: Body [rad/s].
        wanted: With position, velocity, acceleration, jerk (tuples, world), yaw and yaw_rate.
        gains: `DfbcGains` or alike.
        air: Acceleration that makes up for the air's, world [m/s^2]; zeros: none.
        thrust: Present thrust over mass, for the rates of the reference [m/s^2].
    """
    pull = []
    for i in range(3):
        e_p = clip(wanted.position[i] - position[i], -gains.position_max[i], gains.position_max[i])
        e_v = clip(wanted.velocity[i] - velocity[i], -gains.velocity_max[i], gains.velocity_max[i])
        lift = GRAVITY if i == 2 else 0.0
        pull.append(gains.position[i] * e_p + gains.velocity[i] * e_v + wanted.acceleration[i] + lift + air[i])
    asked = (pull[0], pull[1], pull[2])
    size = norm(asked)
    axes = matrix_columns(attitude)
    z = unit_or(asked, axes[2])
    sine, cosine = sin_cos(wanted.yaw)
    x = unit_or(cross((-sine, cosine, 0.0), z), axes[0])
    y = cross(z, x)
    turn = tilt_first(attitude, quaternion_of_axes((x, y, z)), gains.tilt, gains.yaw)
    per_thrust = 1.0 / where(thrust > 1.0, thrust, 1.0)
    h = scale(sub(wanted.jerk, scale(z, dot(z, wanted.jerk))), per_thrust)
    flat = (-dot(h, y), dot(h, x), wanted.yaw_rate)
    damping = tuple(gains.rate[i] * (flat[i] - rate[i]) for i in range(3))
    return DfbcWish(size, add(turn, damping), z)


# As the shipped controller has it; the vehicle's own gravity does not reach it.
GRAVITY = 9.81


def tilt_first(attitude: Vector, target: Vector, tilt: Scalar, yaw: Scalar) -> Vector:
    """Return 2 / sqrt(w^2 + z^2) diag(k_xy, k_xy, k_z) (w x - y z, w y + x z, sign(w) z) of q_e = q^-1 q_target.

    The first two turn body z by the shortest way, whatever the yaw is.

    Args:
        attitude: Present quaternion x, y, z, w, body to world.
        target: Wanted quaternion x, y, z, w.
        tilt: Gain k_xy of roll and pitch [1/s^2], or [1/s] where rates come out.
        yaw: Gain k_z, in the same unit.
    """
    x, y, z, w = _product((-attitude[0], -attitude[1], -attitude[2], attitude[3]), target)
    length = w * w + z * z
    usable = length > 1e-12
    share = where(usable, 2.0, 0.0) / sqrt(where(usable, length, 1.0))
    sign = where(w < 0.0, -1.0, 1.0)
    return share * tilt * (w * x - y * z), share * tilt * (w * y + x * z), share * yaw * sign * z


def _product(p: Vector, q: Vector) -> Vector:
    """Hamilton product of quaternions x, y, z, w."""
    (a, b, c, d), (x, y, z, w) = p, q
    return (
        d * x + a * w + b * z - c * y,
        d * y - a * z + b * w + c * x,
        d * z + a * y - b * x + c * w,
        d * w - a * x - b * y - c * z,
    )


def quaternion_of_axes(axes: tuple[Vector, Vector, Vector]) -> Vector:
    """Return the quaternion x, y, z, w of body axes in the world: the largest of its four numbers first, so that none
    cancels."""
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = axes
    squares = (1.0 + xx - yy - zz, 1.0 - xx + yy - zz, 1.0 - xx - yy + zz, 1.0 + xx + yy + zz)
    sums = (
        (squares[0], xy + yx, xz + zx, yz - zy),
        (xy + yx, squares[1], yz + zy, zx - xz),
        (xz + zx, yz + zy, squares[2], xy - yx),
        (yz - zy, zx - xz, xy - yx, squares[3]),
    )
    best, largest = sums[3], squares[3]
    for row, square in zip(sums[:3], squares[:3], strict=True):
        better = square > largest
        best = tuple(where(better, a, b) for a, b in zip(row, best, strict=True))
        largest = where(better, square, largest)
    half = 0.5 / sqrt(largest)
    return tuple(half * v for v in best)
