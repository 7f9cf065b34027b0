"""Equations of bodies that meet surfaces of any direction, as plain functions of scalars (see `airworthy.core.ops`).

Together with those of `airworthy.dynamics.contact` they are all the arithmetic of contact with scenes: on NumPy arrays in
`airworthy.dynamics.scene_contact`, as traced double precision code in `airworthy.dynamics.scene_native`.
"""

from __future__ import annotations

from typing import Any

from airworthy.core.vectors import add, cross, dot, rotate_inverse, scale, sub, symmetric_multiply
from airworthy.dynamics.equations import normalize, quaternion_exponential

Scalar = Any
Vector = tuple[Any, ...]


def lever(attitude: Vector, normal: Vector, point: Vector, p: Any) -> tuple[Vector, Vector, Vector, Scalar]:
    """How a push at a contact point acts on a body.

    Args:
        attitude: Of the body.
        normal: Of the surface, towards the body, world.
        point: Centre of the sphere that touches, body, from the centre of mass [m].
        p: Parameters: mass_inverse, inertia_inverse, contact_radius.

    Returns:
        The normal in the body frame; the arm of the push: the point leaves at `normal . velocity + arm . rate`; the change of
        the rate per unit of impulse; the change of the point's own speed per unit of impulse, positive.
    """
    up = rotate_inverse(attitude, normal)
    arm = cross(sub(point, scale(up, p.contact_radius)), up)
    turn = symmetric_multiply(p.inertia_inverse, arm)
    return up, arm, turn, p.mass_inverse + dot(arm, turn)


def slip_square(velocity: Vector, rate: Vector, up: Vector, point: Vector, p: Any) -> Scalar:
    """Square of the speed at which a contact point moves along the surface [m^2/s^2].

    Args:
        velocity: Of the centre of mass, body [m/s].
        rate: Body rate [rad/s].
        up: Normal of the surface, body.
        point: As in `lever`.
        p: Parameters: contact_radius.
    """
    at_point = add(velocity, cross(rate, sub(point, scale(up, p.contact_radius))))
    slip = sub(at_point, scale(up, dot(up, at_point)))
    return dot(slip, slip)


def drift(
    position: Vector,
    velocity: Vector,
    attitude: Vector,
    rate: Vector,
    acceleration: Vector,
    torque: Vector,
    time: Scalar,
    p: Any,
) -> tuple[Vector, Vector, Vector, Vector]:
    """Free motion over a part of a physics step: position, velocity, attitude and rate at its end.

    Args:
        position: World [m].
        velocity: World [m/s].
        attitude: Body to world.
        rate: Body [rad/s].
        acceleration: World [m/s^2], held.
        torque: Body [N m], held; the gyroscopic one is added.
        time: Length of the part [s].
        p: Parameters: inertia, inertia_inverse.
    """
    spin = symmetric_multiply(p.inertia_inverse, sub(torque, cross(rate, symmetric_multiply(p.inertia, rate))))
    next_rate, next_velocity = add(rate, scale(spin, time)), add(velocity, scale(acceleration, time))
    turned = quaternion_exponential(attitude, scale(add(rate, next_rate), 0.5), time)
    moved = scale(add(velocity, next_velocity), 0.5 * time)
    return add(position, moved), next_velocity, normalize(turned), next_rate


def held_torque(rate: Vector, next_rate: Vector, dt: Scalar, p: Any) -> Vector:
    """Torque (body [N m]) that turned a body over a step, besides the gyroscopic one.

    Args:
        rate: Body rate at its begin [rad/s].
        next_rate: At its end.
        dt: Its length [s].
        p: Parameters: inertia.
    """
    middle = scale(add(rate, next_rate), 0.5)
    change = scale(sub(next_rate, rate), 1.0 / dt)
    return add(symmetric_multiply(p.inertia, change), cross(middle, symmetric_multiply(p.inertia, middle)))
