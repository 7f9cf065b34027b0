"""Flatness maps on batches: from trajectory samples to what a vehicle must be and do, in NumPy float64."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core import frames
from airworthy.core.errors import AirworthyError
from airworthy.trajectories.flatness import FlatState, body_moment, flat_inputs, flat_motion
from airworthy.trajectories.trajectory import FlatSample
from airworthy.vehicles import Vehicle, control_effectiveness

Array = NDArray[np.float64]


@dataclass(frozen=True)
class KinematicState:
    """What a semi-kinematic vehicle must be and be given, at samples of shape (...)."""

    attitude: Array
    """Quaternion x, y, z, w, body to world: w >= 0 at the first sample, then sign-continuous; shape (..., 4)."""
    thrust: Array
    """Collective thrust over mass [m/s^2], shape (...)."""
    rate: Array
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
    """Attitude, thrust and body rates along a trajectory, without drag.

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
    """Attitude, rates, thrust and moment along a trajectory of a rigid body with linear drag: exact, open loop.

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
    thrust, rate = _plain(state, sample)
    damping = np.asarray(angular_drag, dtype=np.float64) * rate
    moment = _stack(body_moment(tuple(np.asarray(inertia, dtype=np.float64)), state.rate, state.rate_dot)) + damping
    return RigidState(_attitude(state), thrust, rate, _stack(state.rate_dot), mass * thrust, moment)


def vehicle_state(sample: FlatSample, vehicle: Vehicle, wind: ArrayLike = (0.0, 0.0, 0.0)) -> RigidState:
    """`rigid_state` with a vehicle's mass, inertia and linear drag; its other drag terms are left to the controller."""
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
    """Thrust per rotor [N] that makes a state's force and moment, shape (..., rotor_count); not clipped to what rotors can do.

    The least-squares answer: exact where the rotors span thrust and moment, as on every ordinary multirotor.
    """
    inverse = np.linalg.pinv(control_effectiveness(vehicle))
    zero = np.zeros_like(state.force)
    wrench = np.concatenate((np.stack((zero, zero, state.force), axis=-1), state.moment), axis=-1)
    return wrench @ inverse.T


def thrust_command(thrust: ArrayLike, mass: float, thrust_max: float) -> Array:
    """Collective command in [0, 1] from thrust over mass [m/s^2] and the force of all rotors at full command [N]."""
    return np.asarray(thrust, dtype=np.float64) * mass / thrust_max


def _rows(sample: FlatSample, count: int) -> list[tuple[Array, ...]]:
    arrays = (sample.velocity, sample.acceleration, sample.jerk, sample.snap)[:count]
    return [tuple(np.moveaxis(a, -1, 0)) for a in arrays]


def _half_heading(sample: FlatSample) -> tuple[Array, Array]:
    """NumPy's own functions: the traced polynomials are built for float32."""
    return np.cos(0.5 * sample.yaw), np.sin(0.5 * sample.yaw)


def _plain(state: FlatState, sample: FlatSample) -> tuple[Array, Array]:
    return np.asarray(state.thrust), np.broadcast_to(_stack(state.rate), sample.velocity.shape)


def _stack(vector: tuple[Array, ...]) -> Array:
    return np.stack(np.broadcast_arrays(*vector), axis=-1)


def _attitude(state: FlatState) -> Array:
    attitude = frames.normalize(_stack(state.attitude))
    return frames.canonical(attitude) if attitude.ndim == 1 else frames.continuous(attitude)
