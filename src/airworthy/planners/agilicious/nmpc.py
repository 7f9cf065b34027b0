"""Predictive controllers: of rotor thrusts (Agilicious) and of thrust and body rates (Agile-Autonomy).

Source: specification of the planners, sections 9 and 10.4. Multiple shooting with real-time iteration: each tick is linearised
once about the last solution, and the bounded problem that results is solved by an interior-point method.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.control.levels import ControlConfig
from airworthy.core.arrays import Array, ArrayBool
from airworthy.core.frames import multiply, rotate, to_matrix
from airworthy.planners.agilicious.bounded_lqr import LinearProblem, solve_bounded
from airworthy.planners.agilicious.dfbc import quaternion_of_axes
from airworthy.planners.agilicious.pipeline import Measured, VehicleBodies
from airworthy.planners.common.interface import Setpoints
from airworthy.planners.common.tracking_backends import BackendInput
from airworthy.simulation.simulator import Simulator
from airworthy.vehicles import upright

__all__ = ["Nmpc", "NmpcModel", "RateModel", "RateMpc", "RotorModel", "Tracking", "added", "difference", "exponential"]

# ---- The models that the predictive controllers look ahead with, their exact steps and their derivatives --------------------
#
# A state is position, velocity, attitude (quaternion x, y, z, w) and, of the full model, body rates; differences of states are
# position, velocity, a small turn in the body frame, rates. Inputs are rotor thrusts, or thrust over mass and body rates.

# The models' own (docs/concepts/conventions.md); what a vehicle's record says of gravity does not reach them.
GRAVITY = np.array([0.0, 0.0, -9.81])
_UNIT_Z = np.array([0.0, 0.0, 1.0])
# Ours: below it sin(x) / x is 1 to the last bit, and the quotient would be 0 / 0.
_SMALL = 1e-8


def exponential(turn: Array) -> Array:
    """Return quaternions of small or large turns (..., 3) [rad]."""
    angle = np.linalg.norm(turn, axis=-1, keepdims=True)
    half = 0.5 * angle
    share = np.where(angle > _SMALL, np.sin(half) / np.where(angle > _SMALL, angle, 1.0), 0.5)
    return np.concatenate([share * turn, np.cos(half)], axis=-1)


def logarithm(q: Array) -> Array:
    """Return turns (..., 3) of quaternions, of the shorter way [rad]."""
    q = np.where(q[..., 3:] < 0.0, -q, q)
    size = np.linalg.norm(q[..., :3], axis=-1, keepdims=True)
    angle = 2.0 * np.arctan2(size, q[..., 3:])
    return np.where(size > _SMALL, angle / np.where(size > _SMALL, size, 1.0), 2.0) * q[..., :3]


def _conjugate(q: Array) -> Array:
    return q * [-1.0, -1.0, -1.0, 1.0]


def difference(state: Array, other: Array) -> Array:
    """Return what has to be added to `other` to be at `state`, (..., 9 or 12)."""
    turn = logarithm(multiply(_conjugate(other[..., 6:10]), state[..., 6:10]))
    return np.concatenate([state[..., :6] - other[..., :6], turn, state[..., 10:] - other[..., 10:]], axis=-1)


def added(state: Array, change: Array) -> Array:
    """Return a state moved by a difference."""
    q = multiply(state[..., 6:10], exponential(change[..., 6:9]))
    q = q / np.linalg.norm(q, axis=-1, keepdims=True)
    return np.concatenate([state[..., :6] + change[..., :6], q, state[..., 10:] + change[..., 9:]], axis=-1)


def skew(v: Array) -> Array:
    """Return matrices (..., 3, 3) of the cross product with v."""
    x, y, z = np.moveaxis(v, -1, 0)
    zero = np.zeros_like(x)
    return np.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=-1).reshape(*v.shape, 3)


@dataclass(frozen=True, eq=False)
class NmpcModel(ABC):
    """Common to both models."""

    size: int
    """Of a difference of states."""

    @abstractmethod
    def slope(self, state: Array, inputs: Array) -> tuple[Array, Array, Array]:
        """Return acceleration, body rates and their slope of states (..., n, 10 or 13)."""

    def step(self, state: Array, inputs: Array, dt: float) -> Array:
        """Return states a step later, inputs held: midpoint rule, the turn by the exponential of the mean rate.

        Args:
            state: (..., n, 10 or 13): position [m], velocity [m/s], quaternion, body rates [rad/s] of the full model; world.
            inputs: (..., n, m), held over the step.
            dt: Length of the step [s].
        """
        a, w, s = self.slope(state, inputs)
        middle = self._moved(state, 0.5 * dt, state[..., 3:6], a, w, s)
        a2, w2, s2 = self.slope(middle, inputs)
        return self._moved(state, dt, middle[..., 3:6], a2, w2, s2)

    def _moved(self, state: Array, dt: float, v: Array, a: Array, w: Array, s: Array) -> Array:
        q = multiply(state[..., 6:10], exponential(dt * w))
        q = q / np.linalg.norm(q, axis=-1, keepdims=True)
        parts = [state[..., :3] + dt * v, state[..., 3:6] + dt * a, q]
        return np.concatenate([*parts, state[..., 10:] + dt * s] if state.shape[-1] > 10 else parts, axis=-1)

    @abstractmethod
    def linear(self, state: Array, inputs: Array) -> tuple[Array, Array]:
        """Return derivatives of the slope of differences: by states (..., n, s, s) and by inputs (..., n, s, m)."""

    def discrete(self, state: Array, inputs: Array, dt: float) -> tuple[Array, Array]:
        """Return derivatives of a step: series of the exponential up to dt^3, about the middle of the step.

        Args:
            state: (..., n, 10 or 13), as of `step`.
            inputs: (..., n, m), held over the step.
            dt: Length of the step [s].
        """
        a, w, s = self.slope(state, inputs)
        ac, bc = self.linear(self._moved(state, 0.5 * dt, state[..., 3:6], a, w, s), inputs)
        one = np.broadcast_to(np.eye(self.size), ac.shape)
        half = ac @ ac
        series = dt * one + (dt * dt / 2.0) * ac + (dt**3 / 6.0) * half
        return one + ac @ series, series @ bc


@dataclass(frozen=True, eq=False)
class RotorModel(NmpcModel):
    """Rotor thrusts [N] of n vehicles."""

    mass: Array
    """(n,)"""
    inertia: Array
    """(n, 3, 3)"""
    inverse: Array
    """Of the inertia (n, 3, 3)."""
    effect: Array
    """Force along body z and moments per newton of each rotor, (n, 4, m)."""

    def slope(self, state: Array, inputs: Array) -> tuple[Array, Array, Array]:
        wrench = _apply(self.effect, inputs)
        w = state[..., 10:]
        lift = (wrench[..., 0] / self.mass)[..., None] * _UNIT_Z
        spin = np.cross(w, _apply(self.inertia, w))
        return rotate(state[..., 6:10], lift) + GRAVITY, w, _apply(self.inverse, wrench[..., 1:] - spin)

    def linear(self, state: Array, inputs: Array) -> tuple[Array, Array]:
        shape = state.shape[:-1]
        a, b = np.zeros((*shape, 12, 12)), np.zeros((*shape, 12, inputs.shape[-1]))
        turn, w = to_matrix(state[..., 6:10]), state[..., 10:]
        push = (self.effect[:, 0] / self.mass[:, None])[..., None, :]
        lift = _apply(self.effect, inputs)[..., :1] / self.mass[:, None]
        a[..., 0:3, 3:6] = np.eye(3)
        a[..., 3:6, 6:9] = -turn @ skew(lift * _UNIT_Z)
        a[..., 6:9, 6:9], a[..., 6:9, 9:12] = -skew(w), np.eye(3)
        a[..., 9:12, 9:12] = self.inverse @ (skew(_apply(self.inertia, w)) - skew(w) @ self.inertia)
        b[..., 3:6, :] = turn[..., :, 2:] * push
        b[..., 9:12, :] = self.inverse @ self.effect[:, 1:]
        return a, b


@dataclass(frozen=True, eq=False)
class RateModel(NmpcModel):
    """Thrust over mass [m/s^2] and body rates [rad/s]."""

    def slope(self, state: Array, inputs: Array) -> tuple[Array, Array, Array]:
        lift = inputs[..., :1] * _UNIT_Z
        return rotate(state[..., 6:10], lift) + GRAVITY, inputs[..., 1:], np.zeros_like(state[..., 10:])

    def linear(self, state: Array, inputs: Array) -> tuple[Array, Array]:
        shape = state.shape[:-1]
        a, b = np.zeros((*shape, 9, 9)), np.zeros((*shape, 9, 4))
        turn = to_matrix(state[..., 6:10])
        a[..., 0:3, 3:6] = np.eye(3)
        a[..., 3:6, 6:9] = -turn @ skew(inputs[..., :1] * _UNIT_Z)
        a[..., 6:9, 6:9] = -skew(inputs[..., 1:])
        b[..., 3:6, 0], b[..., 6:9, 1:] = turn[..., :, 2], np.eye(3)
        return a, b


def _apply(matrix: Array, vector: Array) -> Array:
    return np.asarray(np.matmul(matrix, vector[..., None])[..., 0])


# -----------------------------------------------------------------------------------------------------------------------------

# Source: spec/planners section 9: the pipeline runs at >= 100 Hz, minimum period 0.01 s.
SOLVING_RATE = 100.0
"""Solutions per second of the controller of rotor thrusts [Hz]."""
# Source: spec/planners section 9, "about 20 nodes over 1 s", free to tune.
NODES, STEP = 20, 0.05
"""Of the controller of rotor thrusts: a second."""
# Source: [R] agilib/params/mpc.yaml: attitude 5, 5, 200 as of a turn vector, hence the quarter for quaternion components.
ROTOR_WEIGHTS = np.array([200.0, 200.0, 500.0, 1.0, 1.0, 1.0, 5.0 / 4.0, 5.0 / 4.0, 200.0 / 4.0, 1.0, 1.0, 1.0])
"""Position, velocity, attitude, rates; those of the attitude are of quaternion components, half the angle."""
# Same file, tuned for the 0.752 kg "kingfisher"; other vehicles get it times (0.752 / mass)^2, so that accelerations weigh
# alike.
THRUST_WEIGHT, WEIGHT_MASS = 6.0, 0.752
"""Of each rotor's thrust, and the vehicle that it is for [kg]."""
RATE_BOUND = np.array([10.0, 10.0, 4.0])
"""[rad/s], ours."""
# Source: spec/planners 10.4, [R] agile_autonomy, data_generation/agile_autonomy/parameters/mpc_params.yaml.
RATE_NODES, RATE_STEP = 10, 0.1
RATE_WEIGHTS = np.array([100.0, 100.0, 100.0, 10.0, 10.0, 10.0, 200.0 / 4.0, 200.0 / 4.0, 200.0 / 4.0])
RATE_LIMITS = np.array([6.0, 6.0, 2.0])
"""[rad/s]"""
THRUST_RANGE, RANGE_MASS = (5.0, 20.0), 0.68
"""[N] of the vehicle that it is for [kg]."""


class Tracking:
    """Real-time iteration over one model.

    Args:
        model: Of n vehicles.
        weights: Of states, (n, s), and inputs, (n, m).
        low: Least inputs (n, m).
        high: Largest inputs (n, m).
        rate_bound: Of body rates that are states, (3,); None: the model has none.
        nodes: Steps ahead.
        dt: Of a step [s].
    """

    def __init__(
        self,
        model: NmpcModel,
        weights: tuple[Array, Array],
        low: Array,
        high: Array,
        rate_bound: Array | None,
        nodes: int,
        dt: float,
    ):
        self.model, self._weights, self._low, self._high, self._dt = model, weights, low, high, dt
        self._bound, self._nodes = rate_bound, nodes
        self._states: Array | None = None
        self._inputs: Array = np.zeros(0)

    def solve(self, state: Array, states: Array, inputs: Array, fresh: ArrayBool, due: ArrayBool | None = None) -> Array:
        """Return the first inputs (n, m), of the solution that is kept for the next tick.

        Args:
            state: Measured, (n, 10 or 13).
            states: Wanted, (N + 1, n, 10 or 13).
            inputs: Wanted, (N, n, m).
            fresh: Flights that begin from what is wanted, (n,).
            due: Flights whose solution is renewed, (n,); None: all.
        """
        if self._states is None:
            self._states, self._inputs = states.copy(), inputs.copy()
        # A solution that is lost begins anew, too.
        lost = fresh | ~(np.isfinite(self._states).all(axis=(0, 2)) & np.isfinite(self._inputs).all(axis=(0, 2)))
        x = np.where(lost[None, :, None], states, self._states)
        u = np.where(lost[None, :, None], inputs, self._inputs)
        a, b = self.model.discrete(x[:-1], u, self._dt)
        gap = difference(self.model.step(x[:-1], u, self._dt), x[1:])
        floor, top = self._rate_room(x)
        problem = LinearProblem(
            a, b, gap, difference(state, x[0]), difference(x, states), u - inputs, *self._weights,
            self._low - u, self._high - u, slice(self.model.size - 3, self.model.size), floor, top,
        )  # fmt: skip
        dx, du = solve_bounded(problem)
        renewed = np.ones(len(fresh), bool)[None, :, None] if due is None else (due | lost)[None, :, None]
        self._states = np.where(renewed, added(x, dx), self._states)
        self._inputs = np.where(renewed, u + du, self._inputs)
        return np.asarray(self._inputs[0])

    def _rate_room(self, x: Array) -> tuple[Array, Array]:
        if self._bound is None:  # the last three differences are the turn: no bound that binds
            far = np.full((*x.shape[:2], 3), 10.0)
            return -far, far
        return -self._bound - x[..., 10:], self._bound - x[..., 10:]


def wanted_states(ahead: Sequence[Setpoints], rates: bool) -> tuple[Array, Array]:
    """Return states (N + 1, n, 10 or 13) of set-points by flatness, and thrust over mass (N + 1, n) [m/s^2]."""
    position, velocity, acceleration = (
        np.array([getattr(point, name) for point in ahead]) for name in ("position", "velocity", "acceleration")
    )
    yaw = np.array([point.yaw for point in ahead])
    push = acceleration + np.array([0.0, 0.0, -GRAVITY[2]])
    lift = np.maximum(np.linalg.norm(push, axis=-1), 1e-6)
    z = push / lift[..., None]
    x = np.cross(np.stack([-np.sin(yaw), np.cos(yaw), np.zeros_like(yaw)], axis=-1), z)
    x /= np.maximum(np.linalg.norm(x, axis=-1), 1e-6)[..., None]
    rows = [np.moveaxis(axis, -1, 0) for axis in (x, np.cross(z, x), z)]
    q = quaternion_of_axes(tuple(tuple(row) for row in rows))  # type: ignore[arg-type]
    parts = [position, velocity, np.stack(q, axis=-1)]
    return np.concatenate([*parts, np.zeros_like(z)] if rates else parts, axis=-1), lift


class Nmpc:
    """The outer controller of rotor thrusts; see `pipeline.Outer`."""

    ahead: tuple[float, ...] = tuple(STEP * k for k in range(NODES + 1))

    def configure(self, bodies: VehicleBodies, simulator: Simulator) -> None:
        """Make a model of each vehicle."""
        xx, yy, zz, xy, xz, yz = bodies.inertia.T
        inertia = np.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], axis=1).reshape(-1, 3, 3)
        self.bodies, self._inertia = bodies, inertia
        model = RotorModel(12, bodies.mass, inertia, np.linalg.inv(inertia), bodies.effect[:, 2:])
        scaled = THRUST_WEIGHT * (WEIGHT_MASS / bodies.mass) ** 2
        weights = np.tile(ROTOR_WEIGHTS, (len(bodies), 1)), np.tile(scaled[:, None], (1, bodies.rotors))
        high = np.maximum(bodies.highest, bodies.lowest + 1e-3)  # rotors that are not there get a sliver
        self.tracking = Tracking(model, weights, bodies.lowest, high, RATE_BOUND, NODES, STEP)
        self._tick = np.full(len(bodies), -1, np.int64)
        self._first = np.zeros((len(bodies), bodies.rotors))
        weight = bodies.mass * -GRAVITY[2]
        self._share = bodies.allocated(weight, [np.zeros(len(bodies))] * 3) / weight[:, None]

    def wish(self, wanted: Setpoints, measured: Measured) -> tuple[Array, Array]:
        """Return the wish of the first rotor thrusts of the solution."""
        motion = measured.motion
        state = np.concatenate([motion.position, motion.velocity, motion.attitude, measured.rate], axis=1)
        tick = np.floor(motion.time * SOLVING_RATE + 0.2).astype(np.int64)
        due = (tick != self._tick) | measured.fresh
        if due.any():  # between ticks the last thrusts are held
            states, lift = wanted_states(measured.ahead, rates=True)
            inputs = (lift[:-1] * self.bodies.mass)[..., None] * self._share
            found = self.tracking.solve(state, states, inputs, measured.fresh, due)
            self._first[due], self._tick[due] = found[due], tick[due]
        wrench = self.bodies.wrench(self._first)
        spin = np.cross(measured.rate, np.matmul(self._inertia, measured.rate[..., None])[..., 0])
        turn = np.linalg.solve(self._inertia, (wrench[:, 3:] - spin)[..., None])[..., 0]
        return wrench[:, 2], turn


class RateMpc:
    """The controller of thrust and body rates, a back end of its own; its commands are followed by the vehicle's rate loop."""

    name = "rate_mpc"
    level = "rate_thrust"
    rate = 100.0
    observes: tuple[str, ...] = ()
    ahead: tuple[float, ...] = tuple(RATE_STEP * k for k in range(RATE_NODES + 1))

    def control(self) -> ControlConfig:
        """Return a configuration whose rates the vehicle's own gains follow."""
        return ControlConfig()

    def configure(self, simulator: Simulator) -> None:
        """Set bounds of each vehicle: the published ones over mass, within what its rotors give."""
        bodies = VehicleBodies([upright(item) for item in simulator.vehicles])
        count = len(bodies)
        most = np.minimum(THRUST_RANGE[1] / RANGE_MASS, bodies.wrench(bodies.highest)[:, 2] / bodies.mass)
        # Ours, and it binds: the published least is 7.35 m/s^2, three quarters of gravity. Why 0.7 was not written down.
        least = np.minimum(THRUST_RANGE[0] / RANGE_MASS, 0.7 * -GRAVITY[2])
        low = np.concatenate([np.full((count, 1), least), np.tile(-RATE_LIMITS, (count, 1))], axis=1)
        high = np.concatenate([most[:, None], np.tile(RATE_LIMITS, (count, 1))], axis=1)
        weights = np.tile(RATE_WEIGHTS, (count, 1)), np.ones((count, 4))
        self.tracking = Tracking(RateModel(9), weights, low, high, None, RATE_NODES, RATE_STEP)
        self._mass, self._time = bodies.mass, np.full(count, np.inf)

    def command(self, given: BackendInput) -> Array:
        """Return thrust [N] and body rates [rad/s], (n, 4)."""
        motion = given.motion
        step = motion.time - self._time
        fresh, self._time = ~((step > 0.0) & (step < 1.0)), motion.time.copy()
        state = np.concatenate([motion.position, motion.velocity, motion.attitude], axis=1)
        states, lift = wanted_states(given.ahead, rates=False)
        inputs = np.concatenate([lift[:-1, :, None], np.zeros((len(lift) - 1, len(self._mass), 3))], axis=2)
        found = self.tracking.solve(state, states, inputs, fresh)
        return np.concatenate([(self._mass * found[:, 0])[:, None], found[:, 1:]], axis=1)
