"""Open-loop prediction: many windows and many parameter sets at once, float64, by the project's own equations of motion.

A prediction starts at the reference state, is fed rotor speeds, and is never corrected. RK4 with the attitude normalised
after each step; the speeds are linear inside a half step and their slope is the rotors' acceleration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.benchmarks.validation.windows import HORIZON_STEPS, PAST_COUNT, PAST_SPAN, STEPS, TIME_STEP, LogWindows
from airworthy.core.arrays import Array, Vector
from airworthy.core.vectors import add, cross, rotate, rotate_inverse, scale, symmetric_multiply
from airworthy.dynamics.equations import derivative, drag_wrench
from airworthy.dynamics.state import body_parameters, rigid_layout
from airworthy.vehicles import Vehicle

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
        windows: Starts and rotor speeds. models: Parameter sets with four rotors each, in the order of the log. trim: Let
        each model start with the disturbance that its own equations found missing in the moment before; None: without.
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
    """Mean force and moment, in the body, that the equations miss along the reference before each window.

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
