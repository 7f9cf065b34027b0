"""Starts of flights from uniform numbers, as scalars."""

from __future__ import annotations

import math

from airworthy.core.arrays import Scalar, Vector
from airworthy.core.ops import absolute, exp, log, maximum, sin_cos, sqrt
from airworthy.core.vectors import norm, quaternion_multiply, scale

__all__ = ["any_quaternion", "euler_quaternion", "in_ball", "near_quaternion", "tilted_quaternion", "turned_start"]

_TURN = 6.283185307179586


def any_quaternion(u: Vector) -> Vector:
    """Return the attitude x, y, z, w, uniform over all, from three numbers in (0, 1) (Shoemake, Graphics Gems III, 1992)."""
    (s1, c1), (s2, c2), a, b = sin_cos(_TURN * u[1]), sin_cos(_TURN * u[2]), sqrt(1.0 - u[0]), sqrt(u[0])
    return (a * s1, a * c1, b * s2, b * c2)


def tilted_quaternion(u: Vector, most: float) -> Vector:
    """Return the attitude x, y, z, w, turned by a uniform angle about any axis.

    Args:
        u: Three numbers in (0, 1).
        most: Largest angle [rad].
    """
    return _about_any_axis(u, most * u[2])


def near_quaternion(u: Vector, most: float) -> Vector:
    """Return the attitude x, y, z, w, uniform among all that are turned by at most an angle: more are large than small.

    Angles t have the density 1 - cos t (Shoemake, Graphics Gems III, 1992, of axes and angles), so that t - sin t is uniform.

    Args:
        u: Three numbers in (0, 1).
        most: Largest angle, up to pi [rad].
    """
    share = u[2] * (most - math.sin(most))
    # From t - sin t = t^3 / 6, which is never too large; four steps of Newton are exact in float32.
    angle = exp(log(6.0 * share) / 3.0)
    for _ in range(4):
        sine, cosine = sin_cos(angle)
        angle = angle - (angle - sine - share) / (1.0 - cosine)
    return _about_any_axis(u, angle)


def _about_any_axis(u: Vector, angle: Scalar) -> Vector:
    # Archimedes: heights of points spread evenly over a sphere are uniform.
    height = 2.0 * u[0] - 1.0
    (sine, cosine), around = sin_cos(_TURN * u[1]), sqrt(1.0 - height * height)
    s, c = sin_cos(0.5 * angle)
    return (s * around * cosine, s * around * sine, s * height, c)


def in_ball(u: Vector, radius: Scalar) -> Vector:
    """Return the vector within a ball from three numbers in (0, 1): the cube around it, pulled in along each direction.

    Args:
        u: In (0, 1).
        radius: Of the ball.
    """
    x = tuple(2.0 * v - 1.0 for v in u)
    # Zero only if all three draws are a half to 2^-24, which the grid of uniform numbers leaves out.
    largest, length = maximum(maximum(absolute(x[0]), absolute(x[1])), absolute(x[2])), norm(x)
    return scale(x, radius * largest / length)


def euler_quaternion(roll: Scalar, pitch: Scalar, yaw: Scalar) -> Vector:
    """Return the quaternion x, y, z, w of Z-Y-X Euler angles.

    Args:
        roll: [rad]
        pitch: [rad]
        yaw: [rad]
    """
    turns = []
    # Z, then Y, then X, each about the axis as turned by those before: products from left to right.
    for axis, angle in ((2, yaw), (1, pitch), (0, roll)):
        sine, cosine = sin_cos(0.5 * angle)
        turns.append((*(sine if k == axis else 0.0 for k in range(3)), cosine))
    return quaternion_multiply(quaternion_multiply(turns[0], turns[1]), turns[2])


def turned_start(
    uniforms: Vector,
    hover: Vector,
    position: Scalar,
    velocity: Scalar,
    tilt: Scalar,
    rate: Scalar,
    rotors: Scalar = 0.0,
    heading: Scalar = 3.141592653589793,
) -> Vector:
    """Return the state of a new flight: uniform in boxes, Z-Y-X Euler angles.

    Args:
        uniforms: 16 numbers in (0, 1): position 3, velocity 3, roll, pitch, yaw, body rate 3, rotors 4.
        hover: Rotor states of hover, n.
        position: Half width of each axis [m].
        velocity: Of each axis [m/s].
        tilt: Of roll and pitch [rad].
        rate: Of each body axis [rad/s].
        rotors: Share of hover by which each rotor may be off; more than four share draws.
        heading: Half width of the yaw [rad]; default: any.
    """
    u = tuple(2.0 * x - 1.0 for x in uniforms)
    attitude = euler_quaternion(tilt * u[6], tilt * u[7], heading * u[8])
    # Of 16 numbers four are left: rotors beyond the fourth share theirs with the one four before.
    spun = tuple(h * (1.0 + rotors * u[12 + k % 4]) for k, h in enumerate(hover))
    return (
        *(position * x for x in u[:3]),
        *(velocity * x for x in u[3:6]),
        *attitude,
        *(rate * x for x in u[9:12]),
        *spun,
    )
