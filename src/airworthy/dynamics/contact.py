"""Contact of a rigid body with the ground plane, as plain functions of scalars (see `airworthy.core.ops`).

Impulses act at a few points of the body. The order of events, in `native/rigid_ground.h` and in the twin: the way back to the
surface, for a step ends below it; pushes, never pulls, that stop what approaches (projected Gauss-Seidel: each update lowers
the kinetic energy), the rebound, friction, and what resists rolling. No part of it can add energy, whatever the shape, inertia,
speed or number of points: a rebound that would is shortened, and what lifts a body out of the ground is paid for by its motion.

Everything is in the body frame: `up` is the plane's normal there, `velocity` that of the centre of mass.
"""

from __future__ import annotations

from typing import Any

from airworthy.core.arrays import Scalar, Vector
from airworthy.core.ops import maximum, minimum, sqrt, where
from airworthy.core.vectors import add, choose, cross, dot, matrix_columns, scale, sub, symmetric_multiply

BOUNCE_SPEED = 0.1
"""Slower approaches do not rebound [m/s]."""


ROLLS = 0.1
"""A round body whose point below slips by less than this share of what its rotation makes there rolls."""


def ground_frame(velocity: Vector, attitude: Vector) -> tuple[Vector, Vector]:
    """Return the world up and the velocity, in the body frame."""
    columns = matrix_columns(attitude)
    return tuple(axis[2] for axis in columns), tuple(dot(axis, velocity) for axis in columns)


def contact_state(
    height: Scalar, up: Vector, velocity: Vector, body_rate: Vector, point: Vector, p: Any
) -> tuple[Scalar, Scalar]:
    """Return the depth of a point below the ground [m] and the speed at which it approaches [m/s].

    Args:
        height: Of the centre of mass [m].
        up: World up, body.
        velocity: Of the centre of mass, body [m/s].
        body_rate: Body rate [rad/s].
        point: Centre of the contact ball, body, from the centre of mass [m].
        p: Parameters: contact_radius, ground_height.
    """
    lever = _lever(up, point, p)
    return p.ground_height - (height + dot(up, lever)), -(dot(up, velocity) + dot(body_rate, cross(lever, up)))


def contact_push(
    touches: Scalar, push: Scalar, velocity: Vector, body_rate: Vector, up: Vector, point: Vector, p: Any
) -> tuple[Vector, Vector, Scalar]:
    """Return velocity, rate and the point's impulse [N s] after the impulse was corrected so that the point does not approach.

    Args:
        touches: 1 where the point is in contact, else 0: nothing changes.
        push: Impulse given at this point so far; corrections may take it back, but never below zero.
        velocity: Body [m/s].
        body_rate: Body rate [rad/s].
        up: World up, body.
        point: As in `contact_state`.
        p: Parameters: mass_inverse, inertia_inverse, contact_radius.
    """
    arm = cross(_lever(up, point, p), up)
    turn = symmetric_multiply(p.inertia_inverse, arm)
    leaving = dot(up, velocity) + dot(body_rate, arm)
    wanted = maximum(push - leaving / (p.mass_inverse + dot(arm, turn)), 0.0)
    change = wanted - push
    inside = touches > 0.5
    moved = add(velocity, scale(up, change * p.mass_inverse))
    return (
        choose(inside, moved, velocity),
        choose(inside, add(body_rate, scale(turn, change)), body_rate),
        where(inside, wanted, push),
    )


def contact_rebound(
    approach: Scalar, velocity: Vector, body_rate: Vector, velocity_before: Vector, rate_before: Vector, dt: Scalar, p: Any
) -> tuple[Vector, Vector, Scalar]:
    """Return velocity and rate after the rebound, and the share of the pushes that it returned.

    Poisson's hypothesis: the share e of the pushes acts once more. Energy then grows by `e worked + e^2 given`; where this
    exceeds what the pushes took (`given - worked`), as it can before they have converged, e is lowered.

    Args:
        approach: Fastest approach of a touching point before the pushes [m/s].
        velocity: After them, body.
        body_rate: After them.
        velocity_before: Before them, body.
        rate_before: Before them.
        dt: Step [s]; what gravity adds in two steps does not rebound either.
        p: Parameters: mass, inertia, gravity, restitution.
    """
    linear, turn = sub(velocity, velocity_before), sub(body_rate, rate_before)
    spin = symmetric_multiply(p.inertia, turn)
    worked = p.mass * dot(velocity, linear) + dot(body_rate, spin)
    given = 0.5 * (p.mass * dot(linear, linear) + dot(turn, spin))
    e = where(approach > bounce_speed(dt, p), p.restitution, 0.0)
    gain = e * (maximum(worked, 0.0) + e * given)
    share = e * minimum(maximum(given - worked, 0.0) / maximum(gain, 1e-30), 1.0)
    return add(velocity, scale(linear, share)), add(body_rate, scale(turn, share)), share


def bounce_speed(dt: Scalar, p: Any) -> Scalar:
    """Approach below which a contact counts as resting [m/s]."""
    return maximum(2.0 * p.gravity * dt, BOUNCE_SPEED)


def contact_friction(
    touches: Scalar, push: Scalar, velocity: Vector, body_rate: Vector, up: Vector, point: Vector, p: Any
) -> tuple[Vector, Vector, Scalar]:
    """Return velocity and rate after Coulomb friction at a point, and the speed at which the point leaves the ground [m/s].

    The impulse opposes the slip, ends it at most, and is within `friction` times the push.

    Args:
        touches: 1 where the point is in contact, else 0: nothing changes.
        push: The point's impulse along the normal [N s].
        velocity: Body [m/s].
        body_rate: Body rate [rad/s].
        up: World up, body.
        point: As in `contact_state`.
        p: Parameters: mass_inverse, inertia_inverse, contact_radius, friction.
    """
    lever = _lever(up, point, p)
    at_point = add(velocity, cross(body_rate, lever))
    leaving = dot(up, at_point)
    slip = sub(at_point, scale(up, leaving))
    speed = sqrt(dot(slip, slip))
    tangent = scale(slip, 1.0 / maximum(speed, 1e-9))
    arm = cross(lever, tangent)
    turn = symmetric_multiply(p.inertia_inverse, arm)
    impulse = minimum(speed / (p.mass_inverse + dot(arm, turn)), p.friction * push)
    inside = touches > 0.5
    moved = sub(velocity, scale(tangent, impulse * p.mass_inverse))
    return choose(inside, moved, velocity), choose(inside, sub(body_rate, scale(turn, impulse)), body_rate), leaving


def contact_rolling(
    push: Scalar, velocity: Vector, body_rate: Vector, up: Vector, point: Vector, p: Any
) -> tuple[Vector, Vector]:
    """Return velocity and rate after what resists rolling, and spinning on the spot, where a round body stands on the ground.

    The angular impulse opposes the rotation, ends it at most, and is within `rolling` times the radius times the push. A body
    that slides turns about its centre of mass, with the inertia I; one that rolls turns about the point below, with
    I + m (l.l 1 - l l^T), l being the lever to it, as friction holds it there. With dw = -J^-1 n L, J either of them and n the
    axis of the rotation, the energy falls by L |w| - L^2 (n J^-1 n) / 2, which is positive up to twice the impulse that ends it
    (the slip that still counts as rolling is worth a tenth of the first term).

    Args:
        push: Impulse along the normal, of all points [N s].
        velocity: Body, after friction [m/s].
        body_rate: Body [rad/s].
        up: Normal, body.
        point: As in `contact_state`.
        p: Parameters: mass, inertia, contact_radius, rolling, friction.
    """
    lever = _lever(up, point, p)
    at_point = add(velocity, cross(body_rate, lever))
    slip = sub(at_point, scale(up, dot(up, at_point)))
    speed = sqrt(dot(body_rate, body_rate))
    rolls = ROLLS * p.contact_radius * speed
    held = where(dot(slip, slip) < rolls * rolls, p.mass, 0.0)
    axis = scale(body_rate, 1.0 / maximum(speed, 1e-9))
    turn = _turned(axis, lever, held, p)
    shift = cross(turn, lever)
    most = p.friction * push / maximum(held * sqrt(dot(shift, shift)), 1e-30)
    impulse = minimum(minimum(speed / maximum(dot(axis, turn), 1e-9), p.rolling * p.contact_radius * push), most)
    slower = add(velocity, scale(shift, impulse))
    return choose(held > 0.0, slower, velocity), sub(body_rate, scale(turn, impulse))


def _turned(axis: Vector, lever: Vector, mass: Scalar, p: Any) -> Vector:
    """Change of the rate per angular impulse about an axis, for a body with a point mass at the end of a lever."""
    xx, yy, zz, xy, xz, yz = p.inertia
    x, y, z = lever
    xx, yy, zz = xx + mass * (y * y + z * z), yy + mass * (x * x + z * z), zz + mass * (x * x + y * y)
    xy, xz, yz = xy - mass * x * y, xz - mass * x * z, yz - mass * y * z
    inverse = (yy * zz - yz * yz, xx * zz - xz * xz, xx * yy - xy * xy, xz * yz - xy * zz, xy * yz - xz * yy, xy * xz - xx * yz)
    determinant = xx * inverse[0] + xy * inverse[3] + xz * inverse[4]
    return scale(symmetric_multiply(inverse, axis), 1.0 / maximum(determinant, 1e-30))


def contact_holds(velocity: Vector, body_rate: Vector, up: Vector, point: Vector, p: Any) -> Scalar:
    """Return 1 where the contact of a round body can stop all of its motion within a step, else 0.

    That takes the impulse -m v at the point below and the angular impulse -I w less the moment of the former; both must be
    within friction and the resistance to rolling. Applied one after the other these two would let the body creep: each gives
    back a part of what the other took.

    Args:
        velocity: Body [m/s].
        body_rate: Body [rad/s].
        up: Normal, body.
        point: As in `contact_state`.
        p: Parameters: mass, inertia, contact_radius, friction, rolling.
    """
    push = -p.mass * dot(up, velocity)
    along = add(scale(velocity, p.mass), scale(up, push))
    moment = sub(cross(_lever(up, point, p), scale(velocity, p.mass)), symmetric_multiply(p.inertia, body_rate))
    sticks, stands = p.friction * push, p.rolling * p.contact_radius * push
    slipping = where(dot(along, along) < sticks * sticks, 1.0, 0.0)
    held = where(dot(moment, moment) < stands * stands, slipping, 0.0)
    return where(push > 0.0, held, 0.0)


def kinetic_energy(velocity: Vector, body_rate: Vector, p: Any) -> Scalar:
    """Return the energy of translation and rotation [J].

    Args:
        velocity: Of the centre of mass [m/s], in any frame.
        body_rate: Body rate, body frame [rad/s].
        p: Parameters: mass, inertia.
    """
    return 0.5 * (p.mass * dot(velocity, velocity) + dot(body_rate, symmetric_multiply(p.inertia, body_rate)))


def affordable_lift(lift: Scalar, velocity: Vector, body_rate: Vector, p: Any) -> Scalar:
    """Return the part of a lift [m] that a body's kinetic energy can pay for.

    Args:
        lift: Height to be raised by [m].
        velocity: Of the centre of mass [m/s], in any frame.
        body_rate: Body rate, body frame [rad/s].
        p: Parameters: mass, inertia, gravity.
    """
    return minimum(lift, kinetic_energy(velocity, body_rate, p) / maximum(p.mass * p.gravity, 1e-30))


def contact_rise(rise: Scalar, velocity: Vector, body_rate: Vector, up: Vector, p: Any) -> tuple[Vector, Vector]:
    """Return velocity and rate on the way down, a `rise` [m] above where they are: less vertical speed, as far as there is any.

    What the fall cannot pay for, as where the body's rotation brought a point down, all of its motion pays (`contact_lift`).

    Args:
        rise: Height above the present one [m]; none or a negative one changes nothing.
        velocity: Of the centre of mass, body [m/s].
        body_rate: Body rate [rad/s].
        up: World up, body.
        p: Parameters: mass, inertia, gravity.
    """
    falling = dot(up, velocity)
    square = falling * falling
    kept = sqrt(maximum(square - 2.0 * p.gravity * rise, 0.0))
    slower = add(velocity, scale(up, where(falling < 0.0, -kept, kept) - falling))
    owed = maximum(rise - square / maximum(2.0 * p.gravity, 1e-30), 0.0)
    return contact_lift(owed, choose(rise > 0.0, slower, velocity), body_rate, p)


def contact_lift(lift: Scalar, velocity: Vector, body_rate: Vector, p: Any) -> tuple[Vector, Vector]:
    """Return velocity and rate after a lift [m] out of the ground at the cost of kinetic energy, as far as that goes.

    Args:
        lift: Height to be raised by [m]; none or a negative one changes nothing.
        velocity: Of the centre of mass [m/s], in any frame.
        body_rate: Body rate, body frame [rad/s].
        p: Parameters: mass, inertia, gravity.
    """
    energy = kinetic_energy(velocity, body_rate, p)
    left = maximum(energy - p.mass * p.gravity * lift, 0.0) / maximum(energy, 1e-30)
    factor = where(lift > 0.0, sqrt(left), 1.0)
    return scale(velocity, factor), scale(body_rate, factor)


def unpaid_lift(lift: Scalar, specific: Vector, up: Vector, p: Any) -> Scalar:
    """Return the part of a lift [m] that a body's motion must pay for: what rotors and air do on the way is paid already.

    Without it a body whose rotors carry more than its weight, but unevenly, would stay on the ground: it turns about a corner,
    the corner is lifted, and the lift would cost more than the motion that the rotors gave it within a step.

    Args:
        lift: Height to be raised by [m].
        specific: Force of rotors and air over mass, without the ground's, body [m/s^2].
        up: World up, body.
        p: Parameters: gravity.
    """
    return lift * maximum(1.0 - dot(up, specific) / maximum(p.gravity, 1e-30), 0.0)


def bounded_motion(allowed: Scalar, velocity: Vector, body_rate: Vector, p: Any) -> tuple[Vector, Vector]:
    """Return velocity and rate slowed alike so that their kinetic energy is `allowed` [J] at most.

    Args:
        allowed: Most kinetic energy [J]; below zero counts as zero.
        velocity: Of the centre of mass [m/s], in any frame.
        body_rate: Body rate, body frame [rad/s].
        p: Parameters: mass, inertia.
    """
    energy = kinetic_energy(velocity, body_rate, p)
    factor = sqrt(minimum(maximum(allowed, 0.0) / maximum(energy, 1e-30), 1.0))
    return scale(velocity, factor), scale(body_rate, factor)


def ground_result(velocity: Vector, velocity_before: Vector, attitude: Vector, dt: Scalar) -> tuple[Vector, Vector]:
    """Change of the world velocity [m/s], and the support as a specific force in the body frame [m/s^2].

    Args:
        velocity: After the contact, body [m/s].
        velocity_before: Before it, body [m/s].
        attitude: Quaternion x, y, z, w, body to world.
        dt: Step [s].
    """
    change = sub(velocity, velocity_before)
    x, y, z = matrix_columns(attitude)
    world = tuple(x[i] * change[0] + y[i] * change[1] + z[i] * change[2] for i in range(3))
    return world, scale(change, 1.0 / dt)


def _lever(up: Vector, point: Vector, p: Any) -> Vector:
    """Lowest point of the contact ball, from the centre of mass, body [m]."""
    return sub(point, scale(up, p.contact_radius))
