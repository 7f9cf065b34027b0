"""Open-loop prediction: many windows and many parameter sets at once, float64, by the project's own equations of motion.

A prediction starts at the reference state, is fed rotor speeds, and is never corrected. RK4 with the attitude normalised after each
step; the speeds are linear inside a half step and their slope is the rotors' acceleration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.vectors import scale
from airworthy.dynamics.equations import derivative
from airworthy.dynamics.parameters import body_parameters, rigid_layout
from airworthy.evaluation.validation.windows import HORIZON_STEPS, STEPS, TIME_STEP, Windows
from airworthy.vehicles import Vehicle

Array = NDArray[np.float64]
Vector = tuple[Any, ...]
HubForces = Callable[[Vector, Vector, Vector, Vector], tuple[Vector, Vector]]
"""(velocity, attitude, rate, rotor speeds) -> force in the world, moment in the body: effects that a vehicle record cannot say."""

_LAYOUT = rigid_layout(4)


@dataclass(frozen=True)
class Prediction:
    """Predicted states at each horizon; leading axes are parameter sets (if several) and windows."""

    position: Array
    velocity: Array
    attitude: Array
    rate: Array


def parameters(vehicles: Sequence[Vehicle]) -> SimpleNamespace:
    """Parameters of four-rotor vehicles as the equations read them: every field of shape (vehicles, 1)."""
    columns = np.stack([body_parameters(vehicle, _LAYOUT, 4) for vehicle in vehicles], axis=1)[:, :, None]
    # The equations' rotor rate is a (c - w): with a = 1 a command of speed + slope makes it the measured slope.
    columns[_LAYOUT.rows("rotor_rise")] = columns[_LAYOUT.rows("rotor_fall")] = np.tile([1.0, 0.0], 4)[:, None, None]
    return _LAYOUT.record(lambda row: columns[row])


def predict(windows: Windows, vehicles: Sequence[Vehicle], extra: HubForces | None = None) -> Prediction:
    """Predict every window with every vehicle.

    Args:
        windows: Starts and rotor speeds, w windows.
        vehicles: Parameter sets, v of them, four rotors each in the order of the log.
        extra: Effects beyond the record.

    Returns:
        States at each of h horizons, arrays (v, w, h, 3 or 4).
    """
    p = parameters(vehicles)
    shape = (len(vehicles), len(windows))

    def spread(values: Array) -> list[Array]:
        return [np.broadcast_to(column, shape).copy() for column in values.T]

    state = (*spread(windows.position[:, 0]), *spread(windows.velocity[:, 0]))
    state = (*state, *spread(windows.attitude[:, 0]), *spread(windows.rate[:, 0]))
    speeds = np.moveaxis(windows.rotor_speed, 0, -1)  # (half step, rotor, window)
    kept = []
    with np.errstate(over="ignore", invalid="ignore"):
        for step in range(STEPS):
            state = _rk4(state, speeds[2 * step : 2 * step + 3], p, extra)
            if step + 1 in HORIZON_STEPS:
                kept.append(np.stack(state, axis=-1))
    out = np.stack(kept, axis=2)
    return Prediction(out[..., 0:3], out[..., 3:6], out[..., 6:10], out[..., 10:13])


def _rk4(state: Vector, speed: Array, p: Any, extra: HubForces | None) -> Vector:
    """One step; `speed` holds start, middle and end."""
    dt = TIME_STEP
    slopes = ((speed[1] - speed[0]) * (2.0 / dt), (speed[2] - speed[1]) * (2.0 / dt))
    k1 = _rates(state, speed[0], slopes[0], p, extra)
    k2 = _rates(_moved(state, k1, dt / 2.0), speed[1], slopes[0], p, extra)
    k3 = _rates(_moved(state, k2, dt / 2.0), speed[1], slopes[1], p, extra)
    k4 = _rates(_moved(state, k3, dt), speed[2], slopes[1], p, extra)
    moved = [x + dt / 6.0 * (a + 2.0 * (b + c) + d) for x, a, b, c, d in zip(state, k1, k2, k3, k4, strict=True)]
    length = np.sqrt(sum(q * q for q in moved[6:10]))
    moved[6:10] = [q / length for q in moved[6:10]]
    return tuple(moved)


def _moved(state: Vector, rates: Vector, dt: float) -> Vector:
    return tuple(x + dt * k for x, k in zip(state, rates, strict=True))


def _rates(state: Vector, speed: Array, slope: Array, p: Any, extra: HubForces | None) -> Vector:
    velocity, attitude, rate = state[3:6], state[6:10], state[10:13]
    rotors = tuple(speed)
    zero = (0.0, 0.0, 0.0)
    force, moment = zero, zero
    if extra is not None:
        force, moment = extra(velocity, attitude, rate, rotors)
    command = tuple(w + s for w, s in zip(rotors, slope, strict=True))
    dv, dq, dw, _, _ = derivative(velocity, attitude, rate, rotors, command, zero, force, moment, None, p)
    return (*velocity, *dv, *scale(dq, 1.0), *dw)
