"""What sensors read of a driven vehicle, readable: the float64 twin of `predict`."""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import Array
from airworthy.vehicles.identification.prediction.held_command import HeldCommand
from airworthy.vehicles.identification.prediction.plant import Plant
from airworthy.vehicles.identification.prediction.predict import (
    WIDTH,
    SensorPrediction,
    Windows,
    crossed,
    drift_times,
    thrusts,
)

__all__ = ["followed_states", "integrated", "predicted"]


def predicted(plant: Plant, windows: Windows, push: Array | None = None) -> SensorPrediction:
    """Return what sensors read, as `predict`.

    Args:
        plant: Sets.
        windows: Starts, commands and rates at the starts.
        push: Angular acceleration added throughout [rad/s^2], (sets, windows, steps + 1, 3); None: none.
    """
    thrust = thrusts(plant, followed_states(plant, windows))
    moment = np.einsum("swkr,sir->swki", thrust, plant.moment)
    pulled = plant.drag_arm[:, None, None, None] * _drag(plant, windows)
    # Of a force (x, y) at a height: -y about x, +x about y.
    moment[..., 0] -= pulled[..., 1]
    moment[..., 1] += pulled[..., 0]
    inverse = np.asarray(np.linalg.inv(plant.inertia), np.float64)
    driven = np.einsum("swkj,sij->swki", moment, inverse) + plant.turn_offset[:, None, None]
    driven += plant.turn_drift[:, None, None] * drift_times(plant, windows)
    if push is not None:
        driven[:, :, ::2] += push
        driven[:, :, 1::2] += 0.5 * (push[:, :, 1:] + push[:, :, :-1])
    # From the sensor's axes to the body's.
    begun = windows.rate[None, :, 0] + crossed(plant.tilt[:, None], windows.rate[None, :, 0])
    rate, acceleration = integrated(begun, driven, plant.inertia, inverse, plant.damping, windows.step)
    force = np.einsum("swkr,sir->swki", thrust[:, :, ::2], plant.force)
    read = _in_sensor(plant, force + _pushed(plant, rate, acceleration)) + plant.force_offset[:, None, None]
    return SensorPrediction(_in_sensor(plant, rate), _later(plant, read, windows.step))


def followed_states(plant: Plant, windows: Windows) -> Array:
    """Return rotor states at the ends and the middle of each step, (sets, windows, 2 steps + 1, rotors), as `rotor_states`."""
    time = windows.start[:, None] + 0.5 * windows.step * np.arange(2 * windows.steps + 1)
    flight, found = windows.flight, []
    for k in range(len(plant)):
        if flight.speeds is not None:
            found.append(flight.speeds.mean(time + plant.speed_delay[k], WIDTH) / plant.speed_full[k])
            continue
        command: HeldCommand = flight.supplied(*plant.supply[k].tolist())
        known = command.states(plant.response[k : k + 1])[0]
        found.append(command.at(known, plant.response[k], time - plant.delay[k]))
    return np.stack(found)


def _drag(plant: Plant, windows: Windows) -> Array:
    """Specific force of the air across the rotors' axes, in the body's axes [m/s^2], (sets, windows, 2 steps + 1, 2)."""
    force, rate, acceleration, weight = windows.air
    read = force - plant.force_offset[:, None, None]
    found = read + crossed(plant.tilt[:, None, None], read) - _pushed(plant, rate[None], acceleration[None])
    return np.asarray(found[..., :2] * weight)


def _pushed(plant: Plant, rate: Array, acceleration: Array) -> Array:
    """By which turning pushes a sensor that lies off the centre of mass: w' x p + w (w . p) - p |w|^2."""
    lever = plant.lever[:, None, None]
    along = (rate * lever).sum(axis=-1, keepdims=True)
    return np.asarray(crossed(acceleration, lever) + rate * along - lever * (rate**2).sum(axis=-1, keepdims=True))


def _in_sensor(plant: Plant, vector: Array) -> Array:
    """Return vectors of the body in the axes of the sensor, which is turned by a small angle."""
    return np.asarray(vector - crossed(plant.tilt[:, None, None], vector))


def _later(plant: Plant, force: Array, step: float) -> Array:
    """Return what an accelerometer reads that is late: linear between two steps, and beyond one as the step goes on."""
    share = (plant.force_delay / step)[:, None, None, None]
    before = np.concatenate([2.0 * force[:, :, :1] - force[:, :, 1:2], force[:, :, :-1]], axis=2)
    return np.asarray(force - share * (force - before))


def integrated(begun: Array, driven: Array, inertia: Array, inverse: Array, damping: Array, span: float) -> tuple[Array, Array]:
    """Return rates and angular accelerations at each step, (sets, windows, steps + 1, 3) each.

    Euler's equation, w' = driven - J^-1 (w x J w + damping w), by Runge and Kutta's fourth order.

    Args:
        begun: Rates at first, (sets, windows, 3) [rad/s].
        driven: Torques over inertia at the ends and the middle of each step, (sets, windows, 2 steps + 1, 3) [rad/s2].
        inertia: (sets, 3, 3) [kg m2].
        inverse: Of these, (sets, 3, 3).
        damping: (sets, 3) [N m s].
        span: Of a step [s].
    """

    def slope(rate: Array, pushed: Array) -> Array:
        momentum = np.einsum("sij,swj->swi", inertia, rate)
        against = np.cross(rate, momentum) + damping[:, None] * rate
        return np.asarray(pushed - np.einsum("sij,swj->swi", inverse, against))

    rate, h = begun, span
    rates, slopes = [rate], []
    for k in range((driven.shape[2] - 1) // 2):
        first, middle, last = (driven[:, :, 2 * k + part] for part in range(3))
        k1 = slope(rate, first)
        k2 = slope(rate + 0.5 * h * k1, middle)
        k3 = slope(rate + 0.5 * h * k2, middle)
        k4 = slope(rate + h * k3, last)
        rate = rate + h / 6.0 * (k1 + 2.0 * (k2 + k3) + k4)
        rates.append(rate)
        slopes.append(k1)
    slopes.append(slope(rate, driven[:, :, -1]))
    return np.stack(rates, axis=2), np.stack(slopes, axis=2)
