"""Contact of a rigid body with the ground plane, as plain functions of scalars (see `airworthy.core.ops`).

Impulses act at a few points of the body. The order of events, in `native/rigid_ground.h` and in the twin: pushes, never pulls,
that stop what approaches (projected Gauss-Seidel: each update lowers the kinetic energy), the rebound, friction. No part of it
can add energy, whatever the shape, inertia, speed or number of points: a rebound that would is shortened, and what lifts a
body out of the ground is paid for by its motion.

Everything is in the body frame: `up` is the plane's normal there, `velocity` that of the centre of mass.
"""

from __future__ import annotations

from typing import Any

from airworthy.core.ops import maximum, minimum, sqrt, where
from airworthy.core.vectors import add, choose, cross, dot, matrix_columns, scale, sub, symmetric_multiply

Scalar = Any
Vector = tuple[Any, ...]

BOUNCE_SPEED = 0.1
"""Slower approaches do not rebound [m/s]."""


def ground_frame(velocity: Vector, attitude: Vector) -> tuple[Vector, Vector]:
    """World up and the velocity, in the body frame."""
    columns = matrix_columns(attitude)
    return tuple(axis[2] for axis in columns), tuple(dot(axis, velocity) for axis in columns)


def contact_state(height: Scalar, up: Vector, velocity: Vector, rate: Vector, point: Vector, p: Any) -> tuple[Scalar, Scalar]:
    """Depth of a point below the ground [m] and the speed at which it approaches [m/s].

    Args:
        height: Of the centre of mass [m].
        up: World up, body.
        velocity: Of the centre of mass, body [m/s].
        rate: Body rate [rad/s].
        point: Centre of the contact ball, body, from the centre of mass [m].
        p: Parameters: contact_radius, ground_height.
    """
    lever = _lever(up, point, p)
    return p.ground_height - (height + dot(up, lever)), -(dot(up, velocity) + dot(rate, cross(lever, up)))


def contact_push(
    touches: Scalar, push: Scalar, velocity: Vector, rate: Vector, up: Vector, point: Vector, p: Any
) -> tuple[Vector, Vector, Scalar]:
    """Velocity, rate and the point's impulse [N s] after the impulse was corrected so that the point does not approach.

    Args:
        touches: 1 where the point is in contact, else 0: nothing changes.
        push: Impulse given at this point so far; corrections may take it back, but never below zero.
        velocity: Body [m/s].
        rate: Body rate [rad/s].
        up: World up, body.
        point: As in `contact_state`.
        p: Parameters: mass_inverse, inertia_inverse, contact_radius.
    """
    arm = cross(_lever(up, point, p), up)
    turn = symmetric_multiply(p.inertia_inverse, arm)
    leaving = dot(up, velocity) + dot(rate, arm)
    wanted = maximum(push - leaving / (p.mass_inverse + dot(arm, turn)), 0.0)
    change = wanted - push
    inside = touches > 0.5
    moved = add(velocity, scale(up, change * p.mass_inverse))
    return choose(inside, moved, velocity), choose(inside, add(rate, scale(turn, change)), rate), where(inside, wanted, push)


def contact_rebound(
    approach: Scalar, velocity: Vector, rate: Vector, velocity_before: Vector, rate_before: Vector, dt: Scalar, p: Any
) -> tuple[Vector, Vector, Scalar]:
    """Velocity and rate after the rebound, and the share of the pushes that it returned.

    Poisson's hypothesis: the share e of the pushes acts once more. Energy then grows by `e worked + e^2 given`; where this
    exceeds what the pushes took (`given - worked`), as it can before they have converged, e is lowered.

    Args:
        approach: Fastest approach of a touching point before the pushes [m/s].
        velocity: After them, body.
        rate: After them.
        velocity_before: Before them, body.
        rate_before: Before them.
        dt: Step [s]; what gravity adds in two steps does not rebound either.
        p: Parameters: mass, inertia, gravity, restitution.
    """
    linear, turn = sub(velocity, velocity_before), sub(rate, rate_before)
    spin = symmetric_multiply(p.inertia, turn)
    worked = p.mass * dot(velocity, linear) + dot(rate, spin)
    given = 0.5 * (p.mass * dot(linear, linear) + dot(turn, spin))
    e = where(approach > bounce_speed(dt, p), p.restitution, 0.0)
    gain = e * (maximum(worked, 0.0) + e * given)
    share = e * minimum(maximum(given - worked, 0.0) / maximum(gain, 1e-30), 1.0)
    return add(velocity, scale(linear, share)), add(rate, scale(turn, share)), share


def bounce_speed(dt: Scalar, p: Any) -> Scalar:
    """Approach below which a contact counts as resting [m/s]."""
    return maximum(2.0 * p.gravity * dt, BOUNCE_SPEED)


def contact_friction(
    touches: Scalar, push: Scalar, velocity: Vector, rate: Vector, up: Vector, point: Vector, p: Any
) -> tuple[Vector, Vector, Scalar]:
    """Velocity and rate after Coulomb friction at a point, and the speed at which the point leaves the ground [m/s].

    The impulse opposes the slip, ends it at most, and is within `friction` times the push.

    Args:
        touches: 1 where the point is in contact, else 0: nothing changes.
        push: The point's impulse along the normal [N s].
        velocity: Body [m/s].
        rate: Body rate [rad/s].
        up: World up, body.
        point: As in `contact_state`.
        p: Parameters: mass_inverse, inertia_inverse, contact_radius, friction.
    """
    lever = _lever(up, point, p)
    at_point = add(velocity, cross(rate, lever))
    leaving = dot(up, at_point)
    slip = sub(at_point, scale(up, leaving))
    speed = sqrt(dot(slip, slip))
    tangent = scale(slip, 1.0 / maximum(speed, 1e-9))
    arm = cross(lever, tangent)
    turn = symmetric_multiply(p.inertia_inverse, arm)
    impulse = minimum(speed / (p.mass_inverse + dot(arm, turn)), p.friction * push)
    inside = touches > 0.5
    moved = sub(velocity, scale(tangent, impulse * p.mass_inverse))
    return choose(inside, moved, velocity), choose(inside, sub(rate, scale(turn, impulse)), rate), leaving


def contact_lift(lift: Scalar, velocity: Vector, rate: Vector, p: Any) -> tuple[Vector, Vector]:
    """Velocity and rate after a lift [m] out of the ground at the cost of kinetic energy, as far as that goes."""
    energy = 0.5 * (p.mass * dot(velocity, velocity) + dot(rate, symmetric_multiply(p.inertia, rate)))
    left = maximum(energy - p.mass * p.gravity * lift, 0.0) / maximum(energy, 1e-30)
    factor = where(lift > 0.0, sqrt(left), 1.0)
    return scale(velocity, factor), scale(rate, factor)


def ground_result(velocity: Vector, velocity_before: Vector, attitude: Vector, dt: Scalar) -> tuple[Vector, Vector]:
    """Change of the world velocity [m/s], and the support as a specific force in the body frame [m/s^2]."""
    change = sub(velocity, velocity_before)
    x, y, z = matrix_columns(attitude)
    world = tuple(x[i] * change[0] + y[i] * change[1] + z[i] * change[2] for i in range(3))
    return world, scale(change, 1.0 / dt)


def _lever(up: Vector, point: Vector, p: Any) -> Vector:
    """Lowest point of the contact ball, from the centre of mass, body [m]."""
    return sub(point, scale(up, p.contact_radius))
