"""Geometric control on SE(3), one law for every level from rates to tracking, and full pose control.

Source: Aerial Gym section 6 in its consistent-sign form (force = m (a_cmd + g e3), errors set-point minus state), after Lee,
Leok and McClamroch 2010. K_x [1/s^2] and K_v [1/s] multiply the mass; K_R [N m] acts on e_R = 1/2 (Rd^T R - R^T Rd)^vee and
K_W [N m s] on the rate error. All functions are equations (see `airworthy.core.ops`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from airworthy.control.attitude import (
    Axes,
    attitude_direction,
    attitude_error,
    desired_axes,
    flat_angular_acceleration,
    flat_rates,
    heading,
    into_body,
    into_world,
    unit_or,
)
from airworthy.control.levels import ZERO, Mode, Reference
from airworthy.core.arrays import Scalar, Vector
from airworthy.core.ops import clip, maximum, minimum, sin_cos, sqrt, where
from airworthy.core.vectors import add, choose, cross, dot, matrix_columns, rotate_inverse, scale, sub, symmetric_multiply

# Ours: with less lift than this, limiting the inclination would take all sideways force, too.
LIFT_MIN = 0.1
"""Least upward force, as a share of the weight, while the inclination is limited."""


class BodyState(NamedTuple):
    """What the controllers read."""

    position: Vector
    """Centre of mass, world [m]."""
    velocity: Vector
    """World [m/s]."""
    attitude: Vector
    """Quaternion x, y, z, w, body to world, unit length."""
    body_rate: Vector
    """Body rates in the body frame [rad/s]."""


class GeometricParameters(NamedTuple):
    """The controller's own copy of the vehicle and its gains; any record with these attributes will do."""

    mass: Scalar
    """[kg]"""
    gravity: Scalar
    """[m/s^2]"""
    inertia: Vector
    """xx, yy, zz, xy, xz, yz [kg m^2]."""
    position_gain: Vector
    """K_x [1/s^2]."""
    velocity_gain: Vector
    """K_v [1/s]."""
    attitude_gain: Vector
    """K_R [N m]."""
    rate_gain: Vector
    """K_W [N m s]."""
    inclination_tangent: Scalar = 0.0
    """Tangent of the largest angle between the force and the vertical; 0: no limit."""
    thrust_max: Scalar = 0.0
    """Largest force asked for [N], height before sideways; 0: no limit."""
    yaw_rate_max: Scalar = 1.0471975511965976
    """Clamp of commanded yaw rates [rad/s]; pi/3 in the specification."""
    pull_max: Vector = (0.0, 0.0)
    """Largest acceleration asked for by the position error, horizontal and vertical [m/s^2]; 0: no limit. It bounds the speed
    towards a far goal to pull over K_v."""


class GeometricCommand(NamedTuple):
    """What the geometric law asks of the airframe."""

    thrust: Scalar
    """Along body z [N]; may be negative where the force points away from body z."""
    moment: Vector
    """About the centre of mass, body frame [N m]."""
    axes: Axes
    """Desired body axes, world."""
    body_rate: Vector
    """Desired body rates, present body frame [rad/s]."""


def geometric_control(state: BodyState, reference: Reference, mode: Mode, p: Any) -> GeometricCommand:
    """Return thrust and moment of the geometric law.

    M = -K_R e_R - K_W e_W + W x J W, f = F . R e3 with F = m (K_x e_x + K_v e_v + a_d + g e3); `mode` masks the terms.
    Where F is below 1e-3 of the weight the present body z is kept. Limits of `p` act on F at every level but "tracking".

    Args:
        state: Present state.
        reference: Set-points; see `Reference`.
        mode: Masks; `levels.MODES` has one per level.
        p: `GeometricParameters` or alike.
    """
    axes = matrix_columns(state.attitude)
    present = heading(axes)
    sine, cosine = sin_cos(reference.yaw)
    chi = choose(mode.hold_yaw > 0.5, present, (cosine, sine, 0.0))
    force = commanded_force(state, reference, mode, present, p)

    # 1e-6 of the weight squared: in free fall the direction of the force is rounding.
    by_force = unit_or(force, axes[2], 1e-6 * (p.mass * p.gravity) * (p.mass * p.gravity))
    direction = choose(mode.attitude > 0.5, attitude_direction(reference.roll, reference.pitch, present), by_force)
    target = desired_axes(direction, chi, mode.hold_yaw, axes)
    target = _choose_axes(mode.rate > 0.5, axes, target)

    body_rate, acceleration = _target_rates(reference, mode, target, axes, chi, dot(force, target[2]) / p.mass, p)
    moment = attitude_moment(state.body_rate, attitude_error(axes, target), body_rate, p)
    # Derivative of the wanted rates as seen from the turning body (Lee, Leok and McClamroch 2010).
    swing = sub(acceleration, cross(state.body_rate, body_rate))
    moment = add(moment, scale(symmetric_multiply(p.inertia, swing), mode.angular))
    thrust = where(mode.thrust > 0.5, reference.thrust, dot(force, axes[2]))
    return GeometricCommand(thrust, moment, target, body_rate)


def _choose_axes(condition: Any, a: Axes, b: Axes) -> Axes:
    return choose(condition, a[0], b[0]), choose(condition, a[1], b[1]), choose(condition, a[2], b[2])


def commanded_force(state: BodyState, reference: Reference, mode: Mode, present: Vector, p: Any) -> Vector:
    """Return F = m (K_x e_x + K_v e_v + a_d + g e3), world [N], within the limits of `p` unless the mode is flat.

    Args:
        state: Position [m], velocity [m/s], world; attitude and body rates.
        reference: Wanted position, velocity and acceleration, in the mode's frame.
        mode: Masks of what counts.
        present: Present heading, horizontal unit vector, world.
        p: `GeometricParameters` or alike.
    """
    velocity = _from_vehicle(reference.velocity, present, mode.vehicle_frame)
    acceleration = _from_vehicle(reference.acceleration, present, mode.vehicle_frame)
    pull = position_pull(sub(reference.position, state.position), p)
    wanted = []
    for i in range(3):
        damping = mode.velocity * p.velocity_gain[i] * (velocity[i] - state.velocity[i])
        wanted.append(mode.position * pull[i] + damping + acceleration[i])
    # Source: spec/aerial_gym section 6: the consistent sign of (4) and (5); read literally, the print inverts a_d.
    force = scale((wanted[0], wanted[1], wanted[2] + p.gravity), p.mass)
    return choose(mode.flat > 0.5, force, limited_force(force, p))


def position_pull(error: Vector, p: Any) -> Vector:
    """Return K_x e_x [m/s^2], shortened to `pull_max`: the horizontal part as a vector, the vertical by itself."""
    x, y, z = (k * e for k, e in zip(p.position_gain, error, strict=True))
    horizontal, vertical = p.pull_max[0], p.pull_max[1]
    length = sqrt(x * x + y * y)
    far = (horizontal > 0.0) & (length > horizontal)
    # The inner `where` keeps 0 / 0 out: both sides of the outer one are evaluated.
    share = where(far, horizontal / where(far, length, 1.0), 1.0)
    return (x * share, y * share, where(vertical > 0.0, clip(z, -vertical, vertical), z))


def limited_force(force: Vector, p: Any) -> Vector:
    """Return the force within the inclination and thrust limits; height comes before sideways motion."""
    inclined, bounded = p.inclination_tangent > 0.0, p.thrust_max > 0.0
    vertical = where(inclined, maximum(force[2], LIFT_MIN * p.mass * p.gravity), force[2])
    vertical = where(bounded, clip(vertical, -p.thrust_max, p.thrust_max), vertical)
    sideways = sqrt(force[0] * force[0] + force[1] * force[1])
    allowed = where(inclined, minimum(sideways, p.inclination_tangent * vertical), sideways)
    # What height leaves of the budget.
    rest = sqrt(maximum(p.thrust_max * p.thrust_max - vertical * vertical, 0.0))
    allowed = where(bounded, minimum(allowed, rest), allowed)
    share = allowed / where(sideways > 0.0, sideways, 1.0)
    return (force[0] * share, force[1] * share, vertical)


def _from_vehicle(vector: Vector, chi: Vector, mask: Scalar) -> Vector:
    """Return a vector of the vehicle frame (where masked) in the world."""
    turned = (vector[0] * chi[0] - vector[1] * chi[1], vector[0] * chi[1] + vector[1] * chi[0], vector[2])
    return choose(mask > 0.5, turned, vector)


def _target_rates(
    reference: Reference, mode: Mode, target: Axes, axes: Axes, chi: Vector, thrust: Scalar, p: Any
) -> tuple[Vector, Vector]:
    """Desired rates and angular acceleration in the present body frame: R^T R_d W_d and R^T R_d W_d'."""
    flat = flat_rates(target, thrust, reference.jerk, chi, reference.yaw_rate)
    yaw_rate = clip(reference.yaw_rate, -p.yaw_rate_max, p.yaw_rate_max) * mode.hold_yaw
    # A yaw rate about the vertical is R^T e3 in the body frame: the last column of the Euler-rate matrix.
    level = (axes[0][2] * yaw_rate, axes[1][2] * yaw_rate, axes[2][2] * yaw_rate)
    body_rate = choose(mode.flat > 0.5, into_body(axes, into_world(target, flat)), level)
    body_rate = choose(mode.rate > 0.5, reference.rate, body_rate)
    angular = flat_angular_acceleration(
        target, thrust, flat, reference.jerk, reference.snap, chi, reference.yaw_rate, reference.yaw_acceleration
    )
    return body_rate, into_body(axes, into_world(target, angular))


def attitude_moment(body_rate: Vector, error: Vector, rate_target: Vector, p: Any) -> Vector:
    """Return M = -K_R e_R - K_W (W - W_target) + W x J W, equation (3); all in the present body frame [N m].

    Args:
        body_rate: Body rates W [rad/s].
        error: e_R [-], body.
        rate_target: Wanted rates in the present body frame [rad/s].
        p: `GeometricParameters` or alike.
    """
    spin = cross(body_rate, symmetric_multiply(p.inertia, body_rate))
    return tuple(spin[i] - p.attitude_gain[i] * error[i] - p.rate_gain[i] * (body_rate[i] - rate_target[i]) for i in range(3))


def pose_control(
    state: BodyState,
    position: Vector,
    attitude: Vector,
    p: Any,
    velocity: Vector = ZERO,
    acceleration: Vector = ZERO,
) -> tuple[Vector, Vector]:
    """Return force and moment that hold position and attitude independently; needs an airframe of rank 6.

    Args:
        state: Present state.
        position: World [m].
        attitude: Quaternion x, y, z, w; any length but zero (zero counts as level).
        p: `GeometricParameters` or alike.
        velocity: World [m/s].
        acceleration: World [m/s^2].

    Returns:
        Force R^T m (K_x e_x + K_v e_v + a_d + g e3) [N] and moment [N m], body frame.
    """
    reference = Reference(position=position, velocity=velocity, acceleration=acceleration)
    force = commanded_force(state, reference, Mode(position=1.0, velocity=1.0, flat=1.0), (1.0, 0.0, 0.0), p)
    axes = matrix_columns(state.attitude)
    error = attitude_error(axes, matrix_columns(unit_quaternion(attitude)))
    return rotate_inverse(state.attitude, force), attitude_moment(state.body_rate, error, ZERO, p)


def unit_quaternion(q: Vector) -> Vector:
    """Return a quaternion at unit length; identity where it is shorter than 1e-6."""
    squared = dot(q, q) + q[3] * q[3]
    usable = squared > 1e-12
    return choose(usable, scale(q, 1.0 / sqrt(where(usable, squared, 1.0))), (0.0, 0.0, 0.0, 1.0))
