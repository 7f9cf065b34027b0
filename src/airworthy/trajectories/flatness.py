"""Differential flatness as plain functions of scalars: from position and yaw to attitude, thrust, rates and moment.

World z up, body x forward, y left, z up. The body's x axis stays in the vertical plane of the heading, so the attitude is
yaw, then pitch, then roll. Linear drag D = diag(d) in the body keeps a multirotor flat (Faessler, Franchi & Scaramuzza 2018):

    a + g e3 = c z_B - R D R^T v                                             (1)

Along body axes, with V = R^T v, A = R^T a, J = R^T j and the heading's axes X = R^T x_C, Y = R^T y_C, the time
derivative of (1) and of x_B . y_C = 0 are three equations, linear in the body rates w:

    (c + (dx - dz) Vz) wy + (dy - dx) Vy wz = Jx + dx Ax
   -(c + (dy - dz) Vz) wx + (dy - dx) Vx wz = Jy + dy Ay                     (2)
    Yy wz - Yz wy = yaw' Xx

and their derivatives give the angular acceleration with the same matrix. Without drag they are those of spec/sousvide
section 3, turned to z up. Undefined in free fall (c = 0) and where the body's y axis is vertical; there denominators are
held away from zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayLike, Scalar, Vector
from airworthy.core.errors import AirworthyError
from airworthy.core.ops import absolute, sin_cos, sqrt, where
from airworthy.core.vectors import add, cross, scale, sub, symmetric_multiply
from airworthy.trajectories.trajectory import FlatSample
from airworthy.vehicles import Vehicle, control_effectiveness

ZERO: Vector = (0.0, 0.0, 0.0)
# Ours: below it a direction is rounding.
_SMALLEST = 1e-9


class Tilt(NamedTuple):
    """Attitude as cosines and sines of yaw, pitch and roll."""

    yaw: tuple[Scalar, Scalar]
    pitch: tuple[Scalar, Scalar]
    roll: tuple[Scalar, Scalar]


class Matrix(NamedTuple):
    """Coefficients of (2): p wy + q wz = r1; -p2 wx + q2 wz = r2; y1 wz - y2 wy = r3."""

    p: Scalar
    q: Scalar
    p2: Scalar
    q2: Scalar
    y1: Scalar
    y2: Scalar


class FlatState(NamedTuple):
    """What a body must be and do to follow a flat output."""

    attitude: Vector
    """Quaternion x, y, z, w, body to world; its sign is continuous while yaw is and pitch and roll stay within half a turn."""
    thrust: Scalar
    """Collective thrust along body z over mass [m/s^2]."""
    body_rate: Vector
    """Body rates [rad/s]."""
    rate_dot: Vector
    """Angular acceleration [rad/s^2]; zero where snap was not asked for."""
    thrust_rate: Scalar
    """Time derivative of the thrust over mass [m/s^3]."""


def flat_attitude(velocity: Vector, acceleration: Vector, heading: Vector, drag: Vector = ZERO, gravity: Scalar = 9.81) -> Tilt:
    """Return yaw, pitch and roll that point the thrust where it is needed.

    Args:
        velocity: Through the air, world [m/s].
        acceleration: World [m/s^2].
        heading: Cosine and sine of yaw.
        drag: Linear drag over mass per body axis [1/s].
        gravity: [m/s^2]
    """
    lifted = (acceleration[0], acceleration[1], acceleration[2] + gravity)
    # x_B is normal to y_C and to (1) + dx v; y_B to x_B and to (1) + dy v.
    ax, _, az = _turn_z(add(lifted, scale(velocity, drag[0])), heading)
    pitch = _direction(az, ax)
    bx, by, bz = _turn_z(add(lifted, scale(velocity, drag[1])), heading)
    roll = _direction(pitch[1] * bx + pitch[0] * bz, -by)
    return Tilt(heading, pitch, roll)


def into_body(tilt: Tilt, v: Vector) -> Vector:
    """Return a world vector along the body's axes."""
    x, y, z = _turn_z(v, tilt.yaw)
    (cp, sp), (cr, sr) = tilt.pitch, tilt.roll
    x, z = cp * x - sp * z, sp * x + cp * z
    return (x, cr * y + sr * z, cr * z - sr * y)


def tilt_quaternion(tilt: Tilt, half_heading: Vector) -> Vector:
    """Return the quaternion of a tilt; `half_heading` is cosine and sine of half the yaw, whose sign it inherits."""
    (cy, sy), (cp, sp), (cr, sr) = half_heading, _half(tilt.pitch), _half(tilt.roll)
    return (
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
        cr * cp * cy + sr * sp * sy,
    )


def flat_inputs(
    velocity: Vector,
    acceleration: Vector,
    jerk: Vector,
    half_heading: Vector,
    yaw_rate: Scalar,
    drag: Vector = ZERO,
    gravity: Scalar = 9.81,
) -> FlatState:
    """Return attitude, thrust and body rates: the inputs of a semi-kinematic vehicle.

    Args:
        velocity: Through the air, world [m/s]; its derivative must be the acceleration (constant wind).
        acceleration: World [m/s^2].
        jerk: World [m/s^3].
        half_heading: Cosine and sine of half the yaw (`half_angle`).
        yaw_rate: [rad/s]
        drag: Linear drag over mass per body axis [1/s].
        gravity: [m/s^2]
    """
    tilt = flat_attitude(velocity, acceleration, _double(half_heading), drag, gravity)
    v, a, j = (into_body(tilt, vector) for vector in (velocity, acceleration, jerk))
    thrust = _thrust(tilt, v, a, drag, gravity)
    matrix = _matrix(tilt, v, thrust, drag)
    body_rate = _solve(matrix, j[0] + drag[0] * a[0], j[1] + drag[1] * a[1], yaw_rate * tilt.pitch[0])
    thrust_rate = _thrust_rate(v, a, j, body_rate, drag)
    return FlatState(tilt_quaternion(tilt, half_heading), thrust, body_rate, ZERO, thrust_rate)


def flat_motion(
    velocity: Vector,
    acceleration: Vector,
    jerk: Vector,
    snap: Vector,
    half_heading: Vector,
    yaw_rate: Scalar,
    yaw_acceleration: Scalar,
    drag: Vector = ZERO,
    gravity: Scalar = 9.81,
) -> FlatState:
    """Return the motion as `flat_inputs`, and the angular acceleration: what a rigid body needs; snap [m/s^4], yaw acceleration
    [rad/s^2].

    Args:
        velocity: World [m/s].
        acceleration: World [m/s^2].
        jerk: World [m/s^3].
        snap: World [m/s^4].
        half_heading: Cosine and sine of half the heading, as of `flat_inputs`.
        yaw_rate: [rad/s]
        yaw_acceleration: [rad/s^2]
        drag: Linear, over mass, body axes [1/s].
        gravity: [m/s^2]
    """
    tilt = flat_attitude(velocity, acceleration, _double(half_heading), drag, gravity)
    v, a, j, s = (into_body(tilt, vector) for vector in (velocity, acceleration, jerk, snap))
    thrust = _thrust(tilt, v, a, drag, gravity)
    matrix = _matrix(tilt, v, thrust, drag)
    body_rate = _solve(matrix, j[0] + drag[0] * a[0], j[1] + drag[1] * a[1], yaw_rate * tilt.pitch[0])
    thrust_rate = _thrust_rate(v, a, j, body_rate, drag)
    # A vector fixed in the world changes along body axes by -w x it.
    v_dot, a_dot, j_dot = sub(a, cross(body_rate, v)), sub(j, cross(body_rate, a)), sub(s, cross(body_rate, j))
    x_axis, y_axis = _heading_axes(tilt)
    x_dot = sub(scale(y_axis, yaw_rate), cross(body_rate, x_axis))
    y_dot = sub(scale(x_axis, -yaw_rate), cross(body_rate, y_axis))
    dx, dy, dz = drag
    moved = Matrix(
        thrust_rate + (dx - dz) * v_dot[2],
        (dy - dx) * v_dot[1],
        thrust_rate + (dy - dz) * v_dot[2],
        (dy - dx) * v_dot[0],
        y_dot[1],
        y_dot[2],
    )
    wx, wy, wz = body_rate
    rate_dot = _solve(
        matrix,
        j_dot[0] + dx * a_dot[0] - moved.p * wy - moved.q * wz,
        j_dot[1] + dy * a_dot[1] + moved.p2 * wx - moved.q2 * wz,
        yaw_acceleration * x_axis[0] + yaw_rate * x_dot[0] - moved.y1 * wz + moved.y2 * wy,
    )
    return FlatState(tilt_quaternion(tilt, half_heading), thrust, body_rate, rate_dot, thrust_rate)


def body_moment(inertia: Vector, body_rate: Vector, rate_dot: Vector) -> Vector:
    """Return the moment about the centre of mass [N m]: I w' + w x I w; inertia as xx, yy, zz, xy, xz, yz [kg m^2].

    Args:
        inertia: xx, yy, zz, xy, xz, yz [kg m^2].
        body_rate: Body [rad/s].
        rate_dot: Body [rad/s^2].
    """
    return add(symmetric_multiply(inertia, rate_dot), cross(body_rate, symmetric_multiply(inertia, body_rate)))


def half_angle(yaw: Scalar) -> Vector:
    """Return cosine and sine of half an angle [rad]."""
    sine, cosine = sin_cos(yaw * 0.5)
    return (cosine, sine)


def _double(half: Vector) -> Vector:
    c, s = half
    return (c * c - s * s, 2.0 * s * c)


def _half(angle: Vector) -> Vector:
    """Cosine (>= 0) and sine of half the angle in [-pi, pi] whose cosine and sine are given, without cancellation."""
    c, s = angle
    large = sqrt(0.5 + 0.5 * absolute(c))
    small = 0.5 * absolute(s) / large
    near = c >= 0.0
    sine = where(near, small, large)
    return (where(near, large, small), where(s < 0.0, -sine, sine))


def _direction(x: Scalar, y: Scalar) -> Vector:
    """Cosine and sine of the angle of (x, y); 1 and 0 for a vector too short to have one."""
    length = sqrt(x * x + y * y)
    usable = length > _SMALLEST
    guarded = where(usable, length, 1.0)
    return (where(usable, x / guarded, 1.0), where(usable, y / guarded, 0.0))


def _turn_z(v: Vector, heading: Vector) -> Vector:
    c, s = heading
    return (c * v[0] + s * v[1], c * v[1] - s * v[0], v[2])


def _heading_axes(tilt: Tilt) -> tuple[Vector, Vector]:
    """Return the heading's horizontal x and y axes along the body's."""
    (cp, sp), (cr, sr) = tilt.pitch, tilt.roll
    return (cp, sr * sp, cr * sp), (0.0, cr, -sr)


def _thrust(tilt: Tilt, v: Vector, a: Vector, drag: Vector, gravity: Scalar) -> Scalar:
    return a[2] + gravity * tilt.pitch[0] * tilt.roll[0] + drag[2] * v[2]


def _thrust_rate(v: Vector, a: Vector, j: Vector, body_rate: Vector, drag: Vector) -> Scalar:
    dx, dy, dz = drag
    return j[2] + dz * a[2] + (dy - dz) * v[1] * body_rate[0] - (dx - dz) * v[0] * body_rate[1]


def _matrix(tilt: Tilt, v: Vector, thrust: Scalar, drag: Vector) -> Matrix:
    dx, dy, dz = drag
    _, y_axis = _heading_axes(tilt)
    turn = dy - dx
    return Matrix(thrust + (dx - dz) * v[2], turn * v[1], thrust + (dy - dz) * v[2], turn * v[0], y_axis[1], y_axis[2])


def _solve(m: Matrix, r1: Scalar, r2: Scalar, r3: Scalar) -> Vector:
    inverse = 1.0 / _guard(m.p * m.y1 + m.q * m.y2)
    wy = (m.y1 * r1 - m.q * r3) * inverse
    wz = (m.p * r3 + m.y2 * r1) * inverse
    return ((m.q2 * wz - r2) / _guard(m.p2), wy, wz)


def _guard(x: Scalar) -> Scalar:
    return where(absolute(x) > _SMALLEST, x, _SMALLEST)


# ---- Flatness maps on batches: from trajectory samples to what a vehicle must be and do, in NumPy float64 -------------------


@dataclass(frozen=True)
class KinematicState:
    """What a semi-kinematic vehicle must be and be given, at samples of shape (...)."""

    attitude: Array
    """Quaternion x, y, z, w, body to world: w >= 0 at the first sample, then sign-continuous; shape (..., 4)."""
    thrust: Array
    """Collective thrust over mass [m/s^2], shape (...)."""
    body_rate: Array
    """Body rates [rad/s], shape (..., 3)."""


@dataclass(frozen=True)
class RigidState(KinematicState):
    """What a rigid vehicle must be and be given, at samples of shape (...)."""

    rate_dot: Array
    """Angular acceleration in the body frame [rad/s^2], shape (..., 3)."""
    force: Array
    """Collective thrust along body z [N], shape (...)."""
    moment: Array
    """Moment of the rotors about the centre of mass, body frame [N m], shape (..., 3)."""


def kinematic_state(sample: FlatSample, gravity: float = 9.81) -> KinematicState:
    """Return attitude, thrust and body rates along a trajectory, without drag.

    Args:
        sample: Flat outputs at times of shape (..., time), or at one time; the last axis is followed for the sign of the
            attitude.
        gravity: [m/s^2]
    """
    velocity, acceleration, jerk = _rows(sample, 3)
    state = flat_inputs(velocity, acceleration, jerk, _half_heading(sample), sample.yaw_rate, gravity=gravity)
    return KinematicState(_attitude(state), *_plain(state, sample))


def rigid_state(
    sample: FlatSample,
    mass: float,
    inertia: ArrayLike,
    *,
    linear_drag: ArrayLike = (0.0, 0.0, 0.0),
    angular_drag: ArrayLike = (0.0, 0.0, 0.0),
    wind: ArrayLike = (0.0, 0.0, 0.0),
    gravity: float = 9.81,
) -> RigidState:
    """Return attitude, rates, thrust and moment along a trajectory of a rigid body with linear drag: exact, open loop.

    Args:
        sample: As for `kinematic_state`.
        mass: [kg]
        inertia: About the centre of mass, body axes: xx, yy, zz, xy, xz, yz [kg m^2], shape (6,).
        linear_drag: Force against velocity through the air per body axis [N s/m], shape (3,).
        angular_drag: Moment against body rate per axis [N m s/rad], shape (3,).
        wind: Constant air velocity, world [m/s], shape (3,).
        gravity: [m/s^2]

    Raises:
        AirworthyError: A mass that is not positive.
    """
    if not mass > 0.0:
        raise AirworthyError(f"The mass must be positive, but is {mass!r} kg.")
    drag = tuple(np.asarray(linear_drag, dtype=np.float64) / mass)
    velocity, acceleration, jerk, snap = _rows(sample, 4)
    through_air = tuple(v - w for v, w in zip(velocity, np.asarray(wind, dtype=np.float64), strict=True))
    heading = _half_heading(sample)
    state = flat_motion(through_air, acceleration, jerk, snap, heading, sample.yaw_rate, sample.yaw_acceleration, drag, gravity)
    thrust, body_rate = _plain(state, sample)
    damping = np.asarray(angular_drag, dtype=np.float64) * body_rate
    moment = _stack(body_moment(tuple(np.asarray(inertia, dtype=np.float64)), state.body_rate, state.rate_dot)) + damping
    return RigidState(_attitude(state), thrust, body_rate, _stack(state.rate_dot), mass * thrust, moment)


def vehicle_state(sample: FlatSample, vehicle: Vehicle, wind: ArrayLike = (0.0, 0.0, 0.0)) -> RigidState:
    """Return `rigid_state` with a vehicle's mass, inertia and linear drag; its other drag terms are left to the controller.

    Args:
        sample: Of a trajectory.
        vehicle: Whose mass, inertia and linear drag count.
        wind: World [m/s], (3,).
    """
    return rigid_state(
        sample,
        vehicle.mass,
        vehicle.inertia,
        linear_drag=vehicle.drag.linear,
        angular_drag=vehicle.drag.angular_linear,
        wind=wind,
        gravity=vehicle.gravity,
    )


def rotor_thrusts(state: RigidState, vehicle: Vehicle) -> Array:
    """Return thrust per rotor [N] that makes a state's force and moment, shape (..., rotor_count); not clipped to what rotors
    can do.

    The least-squares answer: exact where the rotors span thrust and moment, as on every ordinary multirotor.
    """
    inverse = np.linalg.pinv(control_effectiveness(vehicle))
    zero = np.zeros_like(state.force)
    wrench = np.concatenate((np.stack((zero, zero, state.force), axis=-1), state.moment), axis=-1)
    return wrench @ inverse.T


def thrust_command(thrust: ArrayLike, mass: float, thrust_max: float) -> Array:
    """Return collective command in [0, 1] from thrust over mass [m/s^2] and the force of all rotors at full command [N].

    Args:
        thrust: Over mass [m/s^2], any shape.
        mass: [kg]
        thrust_max: Of all rotors at full command [N].
    """
    return np.asarray(thrust, dtype=np.float64) * mass / thrust_max


def _rows(sample: FlatSample, count: int) -> list[tuple[Array, ...]]:
    arrays = (sample.velocity, sample.acceleration, sample.jerk, sample.snap)[:count]
    return [tuple(np.moveaxis(a, -1, 0)) for a in arrays]


def _half_heading(sample: FlatSample) -> tuple[Array, Array]:
    """NumPy's own functions: the traced polynomials are built for float32."""
    return np.cos(0.5 * sample.yaw), np.sin(0.5 * sample.yaw)


def _plain(state: FlatState, sample: FlatSample) -> tuple[Array, Array]:
    return np.asarray(state.thrust), np.broadcast_to(_stack(state.body_rate), sample.velocity.shape)


def _stack(vector: tuple[Array, ...]) -> Array:
    return np.stack(np.broadcast_arrays(*vector), axis=-1)


def _attitude(state: FlatState) -> Array:
    attitude = frames.normalize(_stack(state.attitude))
    return frames.canonical(attitude) if attitude.ndim == 1 else frames.continuous(attitude)
