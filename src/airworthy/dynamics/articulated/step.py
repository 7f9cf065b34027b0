"""One evaluation of an articulated vehicle's motion, and the small steps that integrators are put together from.

These are the traced blocks of the native step; the twin (`twin.py`) calls the same functions on float64.

Integrators, with step dt; laws of joints are taken implicitly over h (`laws.py`):
    semi_implicit  one evaluation, h = dt; then velocities, then positions by the new velocities. Order 1.
    midpoint       half a semi-implicit step finds pose and rates; there one evaluation, laws taken at the start with h = dt/2,
                   positions by the mean of old and new velocity. Order 2, A-stable, not L-stable.
    extrapolated   twice (two half semi-implicit steps) less one whole. Order 2, L-stable in the joints.
    rk4            the classical one, laws as they stand. Order 4; only for joints that are slow enough (`stiffness.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from airworthy.core.arrays import Scalar, Vector
from airworthy.core.ops import absolute, clip, exp, floor
from airworthy.core.vectors import add, cross, dot, matrix_columns, scale, sub, symmetric_multiply
from airworthy.dynamics.articulated.equations import (
    ZERO,
    BodyFrame,
    accelerations,
    is_zero,
    kinematics,
    matrix_vector,
    rotor_loads,
    turned_inertia,
    velocities,
)
from airworthy.dynamics.articulated.laws import torques
from airworthy.dynamics.articulated.tree import Propeller, TreeNumbers, TreeStructure
from airworthy.dynamics.equations import normalize, quaternion_exponential

__all__ = ["INTEGRATORS", "evaluate", "rotor_keep", "rotor_step", "to_root", "to_world", "turned", "wrapped"]

INTEGRATORS = {"semi_implicit": 0, "midpoint": 1, "extrapolated": 2, "rk4": 3}
STAGES = (1, 2, 3, 4)
"""Evaluations of each."""


def evaluate(
    structure: TreeStructure,
    model: TreeNumbers,
    attitude: Vector,
    rate: Vector,
    q: Vector,
    qd: Vector,
    law_q: Vector,
    law_qd: Vector,
    rotor: Vector,
    command: Vector,
    target: Vector,
    force: Vector,
    moment: Vector,
    velocity: Vector,
    air: Vector,
    h: Scalar,
    stop_h: Scalar,
    sensing: int | None = None,
) -> tuple[Vector, ...]:
    """Return world acceleration of the root's own centre of mass, angular acceleration of the root, joint accelerations, joint
    torques, and the root's specific force in its axes; of a body that senses, also its specific force and angular acceleration.

    Args:
        structure: Of the tree.
        model: Its numbers.
        attitude: Of the root, x, y, z, w, root to world.
        rate: Of the root, root axes [rad/s].
        q: Joint angles that geometry is taken at [rad].
        qd: Joint rates that geometry is taken at [rad/s].
        law_q: Those that laws are taken at.
        law_qd: Alike.
        rotor: Rotor states.
        command: Commanded ones.
        target: Of the joints.
        force: External, on the root's own centre of mass, world [N].
        moment: External, on the root, root axes [N m].
        velocity: Of the root's own centre of mass, world [m/s].
        air: Velocity of the air, world [m/s].
        h: Step of the laws [s].
        stop_h: Step of the stops [s].
        sensing: Number of a body that carries an inertial sensor, whose point of reference and axes it is asked for.
    """
    frames = kinematics(structure, model, q)
    columns = matrix_columns(attitude)
    turning, _ = velocities(structure, frames, ZERO, rate, qd)
    loads = rotor_loads(structure, model, frames, turning, rotor, _rotor_rate(model, rotor, command))
    loads += drag_loads(structure, model, frames, tuple(dot(axis, sub(velocity, air)) for axis in columns), rate, qd)
    held = None
    if structure.fixed_base:
        held = tuple(axis[2] * model.gravity for axis in columns)
    else:
        loads.append((0, tuple(dot(axis, force) for axis in columns), moment))
    acting = torques(structure, model, law_q, law_qd, target, h, stop_h)
    found = accelerations(structure, model, frames, rate, qd, acting, loads, held)
    specific = found.specific[0]
    world = to_world(attitude, specific)
    free = ZERO if held is not None else (world[0], world[1], world[2] - model.gravity)
    motion = (free, found.angular[0], found.joint, found.torque, specific)
    if sensing is None:
        return motion
    turn = frames[sensing].rotation
    return *motion, into_axes(turn, found.specific[sensing]), into_axes(turn, found.angular[sensing])


def drag_loads(
    structure: TreeStructure, model: TreeNumbers, frames: Sequence[BodyFrame], velocity: Vector, rate: Vector, qd: Vector
) -> list[tuple[int, Vector, Vector]]:
    """Return, per body with drag, its number, the force [N] and the moment about its point of reference [N m], root axes.

    Args:
        structure: Of the tree.
        model: Its numbers.
        frames: Of `kinematics`.
        velocity: Of the root's own centre of mass against the air, root axes [m/s].
        rate: Of the root [rad/s].
        qd: Joint rates [rad/s].
    """
    loads = []
    turning, moving = velocities(structure, frames, velocity, rate, qd)
    for index, (body, frame) in enumerate(zip(model.bodies, frames, strict=True)):
        if all(map(is_zero, body.drag)):
            continue
        arm = matrix_vector(frame.rotation, body.center)
        speed = add(moving[index], cross(turning[index], arm))
        force = scale(symmetric_multiply(turned_inertia(frame.rotation, body.drag), speed), -1.0)
        loads.append((index, force, cross(arm, force)))
    return loads


def sensed_rate(structure: TreeStructure, model: TreeNumbers, rate: Vector, q: Vector, qd: Vector, sensing: int) -> Vector:
    """Return a body's angular velocity in its own axes [rad/s].

    Args:
        structure: Of the tree.
        model: Its numbers.
        rate: Of the root, root axes [rad/s].
        q: Joint angles [rad].
        qd: Joint rates [rad/s].
        sensing: Number of the body.
    """
    frames = kinematics(structure, model, q)
    turning, _ = velocities(structure, frames, ZERO, rate, qd)
    return into_axes(frames[sensing].rotation, turning[sensing])


def into_axes(rotation: tuple[Vector, Vector, Vector], vector: Vector) -> Vector:
    """Return R^T v."""
    return tuple(dot(tuple(row[k] for row in rotation), vector) for k in range(3))


def joint_aim(structure: TreeStructure, q: Vector, target: Vector, angle: Vector, gain: Vector, rate_max: Vector) -> Vector:
    """Return the joints' targets: as asked, of servos with what brings them to an angle, within the rate that they may have.

    Args:
        structure: Of the tree.
        q: Joint angles [rad].
        target: As asked: angles of springs [rad], rates of servos [rad/s], torques [N m].
        angle: That servos are to hold [rad].
        gain: At which they do [1/s]; 0: none is held.
        rate_max: Of servos [rad/s].
    """
    return tuple(
        clip(asked + hold * (held - at), -most, most) if law == "servo" else asked
        for law, at, asked, held, hold, most in zip(structure.laws, q, target, angle, gain, rate_max, strict=True)
    )


def to_world(attitude: Vector, vector: Vector) -> Vector:
    """Return a body vector in world axes."""
    x, y, z = matrix_columns(attitude)
    return add(add(scale(x, vector[0]), scale(y, vector[1])), scale(z, vector[2]))


def to_root(attitude: Vector, vector: Vector) -> Vector:
    """Return a world vector in body axes."""
    return tuple(dot(axis, vector) for axis in matrix_columns(attitude))


def turned(attitude: Vector, rate: Vector, dt: Scalar) -> Vector:
    """Return the unit attitude after turning at a constant body rate [rad/s] for dt [s]."""
    return normalize(quaternion_exponential(attitude, rate, dt))


def imu_on_root(specific: Vector, rate: Vector, rate_dot: Vector, position: Vector) -> Vector:
    """Return the specific force at a point of the root from its own centre of mass [m/s^2], root axes."""
    return add(specific, add(cross(rate_dot, position), cross(rate, cross(rate, position))))


def _first_order(item: Propeller) -> bool:
    return is_zero(item.rise[1]) and is_zero(item.fall[1])


def _rates(model: TreeNumbers, rotor: Vector, command: Vector) -> Vector:
    from airworthy.dynamics.equations import rotor_acceleration

    class Response:
        rotor_rise = tuple(item.rise for item in model.propellers)
        rotor_fall = tuple(item.fall for item in model.propellers)

    return rotor_acceleration(rotor, command, Response)


def _rotor_rate(model: TreeNumbers, rotor: Vector, command: Vector) -> Vector:
    """Rates of rotors whose inertia is felt, zero elsewhere."""
    found = _rates(model, rotor, command)
    return tuple(0.0 if is_zero(item.inertia) else rate for item, rate in zip(model.propellers, found, strict=True))


def rotor_keep(model: TreeNumbers, dt: Scalar) -> tuple[Vector, Vector]:
    """Return, per rotor, what is left of its distance from the command after half a step, rising and falling; of first order.

    Args:
        model: Numbers of the tree.
        dt: Step [s].
    """
    half = -0.5 * dt
    rise = tuple(exp(item.rise[0] * half) if _first_order(item) else 0.0 for item in model.propellers)
    fall = tuple(exp(item.fall[0] * half) if _first_order(item) else 0.0 for item in model.propellers)
    return rise, fall


def rotor_step(
    model: TreeNumbers, rotor: Vector, command: Vector, keep_rise: Vector, keep_fall: Vector, dt: Scalar
) -> tuple[Vector, Vector]:
    """Return rotor states after half a step and after a whole one; they depend on nothing but their commands.

    First order: exactly. Else by the classical Runge-Kutta step, twice.

    Args:
        model: Numbers of the tree.
        rotor: States.
        command: Within limits, held.
        keep_rise: Of `rotor_keep`.
        keep_fall: Of `rotor_keep`.
        dt: Step [s].
    """
    half = _half_step(model, rotor, command, keep_rise, keep_fall, 0.5 * dt)
    return half, _half_step(model, half, command, keep_rise, keep_fall, 0.5 * dt)


def _half_step(model: TreeNumbers, w: Vector, c: Vector, rise: Vector, fall: Vector, h: Scalar) -> Vector:
    from airworthy.dynamics.equations import rotor_exact

    exact = rotor_exact(w, c, rise, fall)
    if all(_first_order(item) for item in model.propellers):
        return exact
    k1 = _rates(model, w, c)
    k2 = _rates(model, add(w, scale(k1, 0.5 * h)), c)
    k3 = _rates(model, add(w, scale(k2, 0.5 * h)), c)
    k4 = _rates(model, add(w, scale(k3, h)), c)
    total = tuple(a + 2.0 * (b + d) + e for a, b, d, e in zip(k1, k2, k3, k4, strict=True))
    stepped = add(w, scale(total, h / 6.0))
    return tuple(e if _first_order(item) else s for item, e, s in zip(model.propellers, exact, stepped, strict=True))


def within_limits(model: TreeNumbers, command: Vector) -> Vector:
    """Return rotor commands within the rotors' limits."""
    return tuple(clip(c, item.least, item.most) for c, item in zip(command, model.propellers, strict=True))


def on_stops(structure: TreeStructure, model: TreeNumbers, q: Vector) -> Scalar:
    """Return the number of joints that press into a stop."""
    from airworthy.core.ops import where

    total: Scalar = 0.0
    for (lower, upper), hinge, angle in zip(structure.stops, model.hinges, q, strict=True):
        if upper:
            total = total + where(angle > hinge.upper, 1.0, 0.0)
        if lower:
            total = total + where(angle < hinge.lower, 1.0, 0.0)
    return total


def wrapped(structure: TreeStructure, q: Vector) -> Vector:
    """Return joint angles, those that turn on without end brought to within half a turn of zero: the polynomials of sine and
    cosine hold up to 200 rad."""
    whole = 6.283185307179586
    return tuple(
        angle - whole * floor(angle * (1.0 / whole) + 0.5) if turns else angle
        for turns, angle in zip(structure.turning, q, strict=True)
    )


def motion_size(velocity: Vector, rate: Vector, q: Vector, qd: Vector) -> Scalar:
    """Return the sum of magnitudes, which is not finite where one of them is not."""
    total: Scalar = 0.0
    for value in (*velocity, *rate, *q, *qd):
        total = total + absolute(value)
    return total
