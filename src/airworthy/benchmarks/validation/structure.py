"""Our model of a Crazyflie as a vector of parameters: what each means, what is known beforehand, and the model it makes.

Every parameter has a prior mean and standard deviation from physics or publications. Logarithms keep positive values positive.

Open-loop prediction: many windows and many parameter sets at once, float64, by the project's own equations of motion.

A prediction starts at the reference state, is fed rotor speeds, and is never corrected. RK4 with the attitude normalised
after each step; the speeds are linear inside a half step and their slope is the rotors' acceleration.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.benchmarks.validation.windows import HORIZON_STEPS, PAST_COUNT, PAST_SPAN, STEPS, TIME_STEP, LogWindows
from airworthy.core.arrays import Array, Vector
from airworthy.core.vectors import add, cross, rotate, rotate_inverse, scale, symmetric_multiply
from airworthy.dynamics.equations import derivative, drag_wrench
from airworthy.dynamics.state import body_parameters, rigid_layout
from airworthy.vehicles import Drag, Rotor, RotorResponse, Vehicle

Wrench = Callable[[Vector, Vector, Vector, Vector], tuple[Vector, Vector]]
"""(velocity, attitude, rate, rotor speeds) -> force in the world, moment in the body."""

_LAYOUT = rigid_layout(4)


@dataclass(frozen=True)
class VehicleModel:
    """A vehicle to predict with, and what its record cannot say."""

    vehicle: Vehicle
    drag_center: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Where the drag force would have to act, from the centre of mass [m]: its moment is center x drag (flapping included)."""


@dataclass(frozen=True)
class DisturbanceDecay:
    """How a disturbance found in the past goes on: wrench(t) = gain exp(-t / decay) times its mean over the past."""

    gain: float
    decay: float
    """[s]"""


@dataclass(frozen=True)
class Prediction:
    """Predicted states at each horizon: arrays (model, window, horizon, 3 or 4)."""

    position: Array
    velocity: Array
    attitude: Array
    rate: Array


def predict(
    windows: LogWindows, models: Sequence[VehicleModel], trim: DisturbanceDecay | None = None, coarse: bool = False
) -> Prediction:
    """Predict every window with every model.

    Args:
        windows: Starts and rotor speeds.
        models: Parameter sets with four rotors each, in the order of the log.
        trim: Let each model start with the disturbance that its own equations found missing in the moment before; None:
            without.
        coarse: Use the midpoint rule, half the work of RK4: for fits, where its error of the order of 1e-4 does not count.

    Returns:
        States at each horizon; a prediction that diverges is not finite.
    """
    columns = np.stack([body_parameters(model.vehicle, _LAYOUT, 4) for model in models], axis=1)[:, :, None]
    # The equations' rotor rate is a (c - w): with a = 1 a command of speed + slope makes it the measured slope.
    columns[_LAYOUT.rows("rotor_rise")] = columns[_LAYOUT.rows("rotor_fall")] = np.tile([1.0, 0.0], 4)[:, None, None]
    p = _LAYOUT.record(lambda row: columns[row])
    beyond = _beyond_record(models, p)
    disturbance = None if trim is None else past_disturbance(windows, p, beyond)
    shape = (len(models), len(windows))
    start = np.concatenate([windows.position, windows.velocity, windows.attitude, windows.rate], axis=2)[:, 0]
    state: Vector = tuple(np.broadcast_to(column, shape) for column in start.T)
    speeds = np.moveaxis(windows.rotor_speed, 0, -1)  # (half step, rotor, window)
    kept = []
    advance = _midpoint if coarse else _rk4
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for step in range(STEPS):
            acting = beyond if trim is None else _with_disturbance(beyond, disturbance, trim, step * TIME_STEP)
            state = advance(state, speeds[2 * step : 2 * step + 3], p, acting)
            if step + 1 in HORIZON_STEPS:
                kept.append(np.stack(state, axis=-1))
    out = np.stack(kept, axis=2)
    return Prediction(out[..., 0:3], out[..., 3:6], out[..., 6:10], out[..., 10:13])


def _rk4(state: Vector, speed: Array, p: Any, beyond: Wrench | None) -> Vector:
    """Take one step; `speed` holds start, middle and end."""
    dt = TIME_STEP
    slopes = ((speed[1] - speed[0]) * (2.0 / dt), (speed[2] - speed[1]) * (2.0 / dt))
    k1 = _rates(state, speed[0], slopes[0], p, beyond)
    k2 = _rates(_moved(state, k1, dt / 2.0), speed[1], slopes[0], p, beyond)
    k3 = _rates(_moved(state, k2, dt / 2.0), speed[1], slopes[1], p, beyond)
    k4 = _rates(_moved(state, k3, dt), speed[2], slopes[1], p, beyond)
    return _unit(tuple(x + dt / 6.0 * (a + 2.0 * (b + c) + d) for x, a, b, c, d in zip(state, k1, k2, k3, k4, strict=True)))


def _midpoint(state: Vector, speed: Array, p: Any, beyond: Wrench | None) -> Vector:
    """Return one step of second order."""
    slope = (speed[2] - speed[0]) / TIME_STEP
    half = _moved(state, _rates(state, speed[0], slope, p, beyond), TIME_STEP / 2.0)
    return _unit(_moved(state, _rates(half, speed[1], slope, p, beyond), TIME_STEP))


def _unit(state: Vector) -> Vector:
    """Return the state with its attitude normalised."""
    moved = list(state)
    length = np.sqrt(sum(q * q for q in moved[6:10]))
    moved[6:10] = [q / length for q in moved[6:10]]
    return tuple(moved)


def _moved(state: Vector, rates: Vector, dt: float) -> Vector:
    return tuple(x + dt * k for x, k in zip(state, rates, strict=True))


def _rates(state: Vector, speed: Array, slope: Array, p: Any, beyond: Wrench | None) -> Vector:
    velocity, attitude, rate, rotors = state[3:6], state[6:10], state[10:13], tuple(speed)
    zero = (0.0, 0.0, 0.0)
    force, moment = (zero, zero) if beyond is None else beyond(velocity, attitude, rate, rotors)
    command = tuple(speed + slope)
    dv, dq, dw, _, _ = derivative(velocity, attitude, rate, rotors, command, zero, force, moment, None, p, drag="hubs")
    return (*velocity, *dv, *dq, *dw)


def past_disturbance(windows: LogWindows, p: Any, beyond: Wrench | None) -> tuple[Vector, Vector]:
    """Return the mean force and moment, in the body, that the equations miss along the reference before each window.

    Measured change of velocity and rate over the past, minus the integral of what the equations say on the reference itself.

    Args:
        windows: With past states and rotor speeds [rad/s].
        p: Parameters as the equations take them, arrays (model, 1).
        beyond: Effects that the vehicle's record has no room for; None: none.

    Returns:
        Force [N] and moment [N m], three arrays (model, window) each; zero where the past cannot be trusted.
    """
    step = PAST_SPAN / (PAST_COUNT - 1)
    slope = np.gradient(windows.past_speed, step, axis=1)
    forces, moments = [], []
    for k in range(PAST_COUNT):
        velocity, attitude = tuple(windows.past_velocity[:, k].T), tuple(windows.past_attitude[:, k].T)
        state = (*velocity, *velocity, *attitude, *windows.past_rate[:, k].T)
        rates = _rates(state, windows.past_speed[:, k].T, slope[:, k].T, p, beyond)
        measured = tuple(np.gradient(windows.past_velocity, step, axis=1)[:, k].T)
        turning = tuple(np.gradient(windows.past_rate, step, axis=1)[:, k].T)
        missing = tuple(a - b for a, b in zip(measured, rates[3:6], strict=True))
        spin = tuple(a - b for a, b in zip(turning, rates[10:13], strict=True))
        forces.append(np.stack(scale(rotate_inverse(attitude, missing), p.mass)))
        moments.append(np.stack(symmetric_multiply(p.inertia, spin)))
    weight = np.full(PAST_COUNT, 1.0)
    # The trapezoidal rule: samples at the ends stand for half a spacing.
    weight[[0, -1]] = 0.5
    weight = weight / weight.sum()

    def mean(parts: list[Array]) -> Vector:
        return tuple(np.where(windows.past_valid, np.tensordot(weight, np.stack(parts), axes=1), 0.0))

    return mean(forces), mean(moments)


def _with_disturbance(beyond: Wrench | None, disturbance: Any, trim: DisturbanceDecay, time: float) -> Wrench:
    share = trim.gain * float(np.exp(-(time + 0.5 * TIME_STEP) / trim.decay))
    push, turn = scale(disturbance[0], share), scale(disturbance[1], share)

    def wrench(velocity: Vector, attitude: Vector, rate: Vector, rotors: Vector) -> tuple[Vector, Vector]:
        zero = (0.0, 0.0, 0.0)
        force, moment = (zero, zero) if beyond is None else beyond(velocity, attitude, rate, rotors)
        return add(force, rotate(attitude, push)), add(moment, turn)

    return wrench


def _beyond_record(models: Sequence[VehicleModel], p: Any) -> Wrench | None:
    """Return the effects of `VehicleModel` beside its record; None where no model has any."""
    center = _columns([c.drag_center for c in models])
    if not any(np.any(c) for c in center):
        return None

    def wrench(velocity: Vector, attitude: Vector, rate: Vector, rotors: Vector) -> tuple[Vector, Vector]:
        drag, _ = drag_wrench(rotate_inverse(attitude, velocity), rate, rotors, p, False)
        return (0.0, 0.0, 0.0), cross(center, drag)

    return wrench


def _columns(vectors: Sequence[tuple[float, float, float]]) -> Vector:
    """Return three arrays (model, 1)."""
    return tuple(np.array(vectors, float).T[:, :, None])


CORNERS = ((1, -1), (-1, -1), (-1, 1), (1, 1))
"""Signs of x and y of M1 front right, M2 back right, M3 back left, M4 front left; the logs confirm them by regression."""
SPINS = (-1, 1, -1, 1)
"""Reaction torque about body z: M1 and M3 turn counter-clockwise seen from above."""
SPEED_NOMINAL = 1600.0
"""Rotor speed about which the thrust polynomial's linear share is counted [rad/s]."""
SPEED_MAX = 3000.0


@dataclass(frozen=True)
class Airframe:
    """What is known of a vehicle before any flight."""

    name: str
    mass: float
    """Weighed [kg]."""
    arm: float
    """Rotor hub from the centre along x and along y [m]."""
    inertia: tuple[float, float, float]
    """Prior of Ixx, Iyy, Izz [kg m^2]."""
    rotor_inertia: float
    """Prior [kg m^2]."""
    torque_ratio: float
    """Prior of torque over thrust [m]."""
    time_constant: float = 0.05
    """Rotor lag, for flying the result [s]; predictions are fed rotor speeds."""
    source: str = ""


PRIORS: dict[str, tuple[float, float, str]] = {
    "thrust": (0.0, 0.3, "log thrust of all rotors over what carries the weight on average"),
    "thrust_1": (0.0, 0.05, "log thrust factor of M1"),
    "thrust_2": (0.0, 0.05, "log thrust factor of M2"),
    "thrust_3": (0.0, 0.05, "log thrust factor of M3"),
    "thrust_4": (0.0, 0.05, "log thrust factor of M4"),
    "torque": (0.0, 0.3, "log torque over thrust, over its prior"),
    "torque_split": (0.0, 0.05, "half the log ratio of torque of spin +1 over spin -1 rotors"),
    "inertia_x": (0.0, 0.2, "log Ixx over its prior"),
    "inertia_y": (0.0, 0.2, "log Iyy over its prior"),
    "inertia_z": (0.0, 0.2, "log Izz over its prior"),
    "rotor_inertia": (0.0, 0.3, "log rotor inertia over its prior"),
    "drag_xy": (0.014, 0.005, "linear drag along x and y [N s/m]"),
    "drag_z": (0.015, 0.007, "linear drag along z [N s/m]"),
    "tilt_x": (0.0, 0.015, "thrust axes' x component"),
    "tilt_y": (0.0, 0.015, "thrust axes' y component"),
    "drag_height": (0.02, 0.02, "height at which the drag force would have to act [m]"),
    "damping_xy": (2e-5, 4e-5, "linear damping of roll and pitch rate [N m s/rad]"),
    "damping_z": (1e-5, 1e-5, "linear damping of yaw rate [N m s/rad]"),
    "linear_share": (0.0, 0.2, "share of hover thrust that is linear in rotor speed"),
    "drag_quadratic": (0.0, 0.003, "quadratic drag along x and y [N s^2/m^2]"),
    "hub_across": (2e-6, 1e-6, "drag at each hub per rotor speed and air speed across the axis [N s^2/(rad m)]"),
    "hub_along": (2e-6, 2e-6, "the same along the axis"),
    "flapping": (4e-8, 4e-8, "moment of flapping blades per rotor speed and air speed across the axis [N s^2/rad]"),
    "translational_lift": (0.0, 1e-3, "thrust per squared air speed across the axis [N s^2/m^2]"),
    "effective_x": (0.0, 1.0, "log Ixx beyond physics: what input errors leave of the response"),
    "effective_y": (0.0, 1.0, "log Iyy beyond physics"),
}
"""Name -> (prior mean, prior standard deviation, meaning)."""

_SCALES = ("thrust", "thrust_1", "thrust_2", "thrust_3", "thrust_4", "torque", "torque_split")
_RIGID = (*_SCALES, "inertia_x", "inertia_y", "inertia_z", "rotor_inertia")
_DRAG = (*_RIGID, "drag_xy", "drag_z", "tilt_x", "tilt_y")
_DAMPING = (*_DRAG, "drag_height", "damping_xy", "damping_z")
_HUBS = (*_RIGID, "tilt_x", "tilt_y", "hub_across", "hub_along", "flapping", "damping_xy", "damping_z")
_FULL = (*_DAMPING, "linear_share", "drag_quadratic")
STRUCTURES: dict[str, tuple[str, ...]] = {
    "rigid": _RIGID,
    "drag": _DRAG,
    "drag moment": (*_DRAG, "drag_height"),
    "damping": _DAMPING,
    "full": _FULL,
    "hubs": _HUBS,
    "hubs and lift": (*_HUBS, "translational_lift"),
    "full and hubs": (*_FULL, "hub_along", "flapping", "translational_lift"),
    "effective inertia": (*_FULL, "effective_x", "effective_y"),
}
"""Nested choices of free parameters; effects of what is not free are absent."""

_ABSENT = dict.fromkeys(PRIORS, 0.0)


@dataclass(frozen=True)
class Structure:
    """Which parameters are free for an airframe, and the thrust that makes it hover."""

    airframe: Airframe
    free: tuple[str, ...]
    thrust_hover: float
    """Coefficient of squared speed that carries the weight in the fitted flights [N s^2/rad^2]."""

    @property
    def mean(self) -> Array:
        """Prior means of the free parameters."""
        return np.array([PRIORS[name][0] for name in self.free])

    @property
    def deviation(self) -> Array:
        """Prior standard deviations of the free parameters."""
        return np.array([PRIORS[name][1] for name in self.free])

    def model(self, theta: Sequence[float] | Array, name: str = "") -> VehicleModel:
        """Return the model of a parameter vector."""
        v = dict(_ABSENT) | dict(zip(self.free, (float(t) for t in theta), strict=True))
        frame = self.airframe
        length = math.sqrt(1.0 + v["tilt_x"] ** 2 + v["tilt_y"] ** 2)
        axis = (v["tilt_x"] / length, v["tilt_y"] / length, 1.0 / length)
        rotors = []
        for index, ((x, y), spin) in enumerate(zip(CORNERS, SPINS, strict=True)):
            scale = self.thrust_hover * math.exp(v["thrust"] + v[f"thrust_{index + 1}"])
            thrust = (0.0, scale * v["linear_share"] * SPEED_NOMINAL, scale * (1.0 - v["linear_share"]))
            ratio = frame.torque_ratio * math.exp(v["torque"] + spin * v["torque_split"])
            rotors.append(
                Rotor(
                    position=(x * frame.arm, y * frame.arm, 0.0),
                    thrust=thrust,
                    torque=(0.0, thrust[1] * ratio, thrust[2] * ratio),
                    spin=-1 if spin < 0 else 1,
                    response=RotorResponse.first_order(frame.time_constant),
                    speed_max=SPEED_MAX,
                    axis=axis,
                    inertia=frame.rotor_inertia * math.exp(v["rotor_inertia"]),
                    hub_drag=(v["hub_across"], v["hub_along"]),
                    flapping=v["flapping"],
                    translational_lift=v["translational_lift"],
                )
            )
        beyond = (v["effective_x"], v["effective_y"], 0.0)
        inertia = [
            prior * math.exp(v[f"inertia_{k}"] + more) for prior, k, more in zip(frame.inertia, "xyz", beyond, strict=True)
        ]
        drag = Drag(
            linear=(v["drag_xy"], v["drag_xy"], v["drag_z"]),
            quadratic_norm=(v["drag_quadratic"], v["drag_quadratic"], 0.0),
            angular_linear=(v["damping_xy"], v["damping_xy"], v["damping_z"]),
        )
        vehicle = Vehicle(
            name or frame.name, frame.mass, (inertia[0], inertia[1], inertia[2], 0.0, 0.0, 0.0), tuple(rotors), drag=drag
        )
        return VehicleModel(vehicle, drag_center=(0.0, 0.0, v["drag_height"]))
