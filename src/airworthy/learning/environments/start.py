"""Starts of flights from uniform numbers, as scalars."""

from __future__ import annotations

from airworthy.core.arrays import Scalar, Vector
from airworthy.core.ops import sin_cos
from airworthy.core.vectors import quaternion_multiply

__all__ = ["euler_quaternion", "turned_start"]


def euler_quaternion(roll: Scalar, pitch: Scalar, yaw: Scalar) -> Vector:
    """Quaternion x, y, z, w of Z-Y-X Euler angles.

    Args:
        roll: [rad]
        pitch: [rad]
        yaw: [rad]
    """
    turns = []
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
    """State of a new flight: uniform in boxes, Z-Y-X Euler angles.

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
    spun = tuple(h * (1.0 + rotors * u[12 + k % 4]) for k, h in enumerate(hover))
    return (
        *(position * x for x in u[:3]),
        *(velocity * x for x in u[3:6]),
        *attitude,
        *(rate * x for x in u[9:12]),
        *spun,
    )
