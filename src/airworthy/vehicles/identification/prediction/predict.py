"""Predictions over windows of a flight: from a measured rate, fed with commands, and never corrected.

Fourth-order Runge-Kutta; rotor states are exact at the ends and the middle of each step. Compared is what a gyro and an
accelerometer read, in means over blocks of `BLOCK`, since what lies within one is vibration.

A vehicle that flies through air is held back by it, and an accelerometer reads that across its rotors' axes, where they push
nothing. The force acts above the centre of mass, where rotors and their blades are, so that it turns the vehicle, too. A fit
takes it as measured throughout a window; a prediction knows it of the moment before, and lets it fade.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayInt
from airworthy.core.errors import AirworthyError
from airworthy.vehicles.identification.prediction.held_command import HeldCommand
from airworthy.vehicles.identification.prediction.kernels import integrate_rates
from airworthy.vehicles.identification.prediction.plant import Plant, distinct, picked
from airworthy.vehicles.identification.prediction.signals import FlightSignals

__all__ = ["SensorPrediction", "Windows", "cut_windows", "predict"]

STEP = 0.005
"""Of the integration [s]."""
WIDTH = 0.005
"""Over which sensors are averaged about each step [s]."""
FIT_TIME = 0.35
"""Length of windows that a fit predicts [s]; longer ones show drift that an inertial sensor alone cannot tell from a push."""
START_WIDTH = 0.005
"""Over which the rate at the start is averaged [s]."""
DRAG_WIDTH, DRAG_WIDTH_PAST = 0.2, 0.05
"""Over which the force of the air is averaged, in a fit and before a prediction [s]. What is faster is vibration, and makes the
height where it acts too small: of a small quadrotor 5 mm in means over 0.1 s, 15 to 18 mm over 0.2 s and more."""
FADING = 0.3
"""Time in which the force of the air is forgotten in a prediction [s]: of 0.1 to 1 what foretells the fitted flights of a small
quadrotor best; its force goes with itself by 0.8 after 0.1 s and by 0.3 to 0.6 after 0.25 s."""
EXCITED_SHARE = 0.5
"""Windows count as excited whose change of rate is above this quantile of all."""


@dataclass(frozen=True, eq=False)
class Windows:
    """Stretches of one flight that are predicted."""

    flight: FlightSignals
    start: Array
    """[s], (windows,)."""
    step: float
    """[s]"""
    rate: Array
    """Measured at each step, the start first [rad/s], (windows, steps + 1, 3)."""
    force: Array
    """Measured specific force [m/s^2], (windows, steps + 1, 3)."""
    fading: float | None = None
    """Time in which the force of the air of the moment before a window is forgotten [s]; None: it is taken as measured."""

    def __len__(self) -> int:
        return len(self.start)

    @property
    def steps(self) -> int:
        """Number of steps."""
        return self.rate.shape[1] - 1

    def select(self, index: Array | ArrayBool) -> Windows:
        """Return some of the windows."""
        return replace(self, start=self.start[index], rate=self.rate[index], force=self.force[index])

    @cached_property
    def air(self) -> tuple[Array, Array, Array, Array]:
        """Return specific force [m/s^2], rate and angular acceleration that the force of the air is told by, and its weight.

        At the ends and the middle of each step, (windows, 2 steps + 1, 3) each, and (2 steps + 1, 1).
        """
        along = 0.5 * self.step * np.arange(2 * self.steps + 1)
        time, weight, width = self.start[:, None] + along, np.ones((len(along), 1)), DRAG_WIDTH
        if self.fading is not None:
            width = DRAG_WIDTH_PAST
            time = self.start[:, None] - 0.5 * width
            weight = np.exp(-along / self.fading)[:, None]
        ends = [self.flight.gyro.mean(time + half * width, WIDTH) for half in (0.5, -0.5)]
        felt = self.flight.felt or self.flight.force
        force, rate = (readings.mean(time, width) for readings in (felt, self.flight.gyro))
        return force, rate, (ends[0] - ends[1]) / width, weight

    @property
    def excited(self) -> ArrayBool:
        """Windows in which the rate about x and y changes more than in half of all, (windows,)."""
        change = np.abs(self.rate[:, :, :2] - self.rate[:, :1, :2]).max(axis=(1, 2))
        return np.asarray(change > np.quantile(change, EXCITED_SHARE)) if len(change) else np.zeros(0, bool)


@dataclass(frozen=True, eq=False)
class SensorPrediction:
    """What a gyro and an accelerometer would have read, by sets of parameters."""

    rate: Array
    """[rad/s], (sets, windows, steps + 1, 3)."""
    force: Array
    """[m/s^2], (sets, windows, steps + 1, 3)."""


def cut_windows(
    flight: FlightSignals,
    count: int,
    length: float = FIT_TIME,
    step: float = STEP,
    seed: int | None = None,
    before: float = 0.0,
    fading: float | None = None,
) -> Windows:
    """Return windows of the usable parts of a flight.

    Args:
        flight: Signals.
        count: At most so many; they are fewer where they would overlap by over half.
        length: Of each [s].
        step: Of the integration [s].
        seed: Starts at random by this seed; None: spread evenly.
        before: So much of the flight before each window is usable, too [s].
        fading: As of `Windows`.

    Raises:
        AirworthyError: No usable part is as long as a window.
    """
    steps = max(round(length / step), 1)
    length = steps * step
    # A window needs its sensors averaged on both sides, and the force of the air of the moment before it.
    lead, behind = max(before + DRAG_WIDTH_PAST, 0.5 * DRAG_WIDTH) + WIDTH, 0.5 * DRAG_WIDTH + WIDTH
    free = [(a + lead, b - length - behind) for a, b in flight.spans if b - a > length + lead + behind]
    room = np.array([b - a for a, b in free])
    if not free:
        raise AirworthyError(f"No usable part of {flight.name!r} is {length:g} s long; widen --use.")
    count = max(min(count, int(2.0 * (room.sum() + length * len(free)) / length)), 1)
    even = (np.arange(count) + 0.5) / count
    share = even if seed is None else np.sort(np.random.default_rng(seed).uniform(size=count))
    along = share * room.sum()
    ends = np.concatenate([[0.0], np.cumsum(room)])
    part = np.clip(np.searchsorted(ends, along, side="right") - 1, 0, len(free) - 1)
    start = np.array([free[k][0] for k in part]) + along - ends[part]
    time = start[:, None] + step * np.arange(steps + 1)
    return Windows(flight, start, step, flight.gyro.mean(time, WIDTH), flight.force.mean(time, WIDTH), fading)


def predict(plant: Plant, windows: Windows, push: Array | None = None) -> SensorPrediction:
    """Predict windows with sets of parameters.

    Args:
        plant: Sets.
        windows: Starts, commands and rates at the starts.
        push: Angular acceleration added throughout [rad/s^2], (sets, windows, steps + 1, 3); None: none.

    Returns:
        Readings; of a set that diverges they are not finite.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        thrust, of = _distinct_thrusts(plant, windows)
        count, points = thrust.shape[1:3]
        flat = thrust.reshape(len(thrust), count * points, -1)
        turning = _by_rotors(flat, plant.moment, of).reshape(len(plant), count, points, 3)
        if np.any(plant.drag_arm):
            pulled = plant.drag_arm[:, None, None, None] * _drag(plant, windows)
            # Of a force (x, y) at a height: -y about x, +x about y.
            turning[..., 0] -= pulled[..., 1]
            turning[..., 1] += pulled[..., 0]
        inverse = np.asarray(np.linalg.inv(plant.inertia), np.float64)
        turning = np.matmul(turning.reshape(len(plant), -1, 3), np.swapaxes(inverse, 1, 2)).reshape(turning.shape)
        turning += plant.turn_offset[:, None, None]
        if np.any(plant.turn_drift):
            turning += plant.turn_drift[:, None, None] * drift_times(plant, windows)
        if push is not None:
            turning[:, :, ::2] += push
            turning[:, :, 1::2] += 0.5 * (push[:, :, 1:] + push[:, :, :-1])
        # From the sensor's axes to the body's.
        begun = np.broadcast_to(windows.rate[:, 0], (len(plant), count, 3))
        begun = begun + np.cross(plant.tilt[:, None], begun)
        turned, acceleration = integrate_rates(begun, turning, plant.inertia, inverse, plant.damping, windows.step)
        at_steps = thrust[:, :, ::2].reshape(len(thrust), -1, thrust.shape[-1])
        force = _by_rotors(at_steps, plant.force, of).reshape(len(plant), count, -1, 3)
        return SensorPrediction(
            _in_sensor(plant, turned), _later(plant, _sensed(plant, turned, acceleration, force), windows.step)
        )


def _distinct_thrusts(plant: Plant, windows: Windows) -> tuple[Array, ArrayInt]:
    """Return thrusts of rotors [N], (kinds, windows, 2 steps + 1, rotors), and which of them is each set's, (sets,)."""
    first, kind = distinct(plant.response, plant.delay, plant.thrust, plant.speed_delay, plant.speed_full, plant.supply)
    one = picked(plant, first)
    return thrusts(one, rotor_states(one, windows)), kind


def _by_rotors(thrust: Array, directions: Array, kind: ArrayInt) -> Array:
    """Return what rotors do together, (sets, points, 3).

    Args:
        thrust: Of rotors, (kinds, points, rotors).
        directions: What one newton of each does, (sets, 3, rotors).
        kind: Of the thrust of each set, (sets,).
    """
    first, alike = distinct(kind[:, None].astype(np.float64), directions)
    return np.asarray(np.matmul(thrust[kind[first]], np.swapaxes(directions[first], 1, 2))[alike], np.float64)


def drift_times(plant: Plant, windows: Windows) -> Array:
    """Return how long the trim has drifted at the ends and the middle of each step [s], (sets, windows, 2 steps + 1, 1)."""
    time = windows.start[:, None] + 0.5 * windows.step * np.arange(2 * windows.steps + 1)
    return np.asarray((time[None] - plant.turn_since[:, None, None])[..., None])


def _drag(plant: Plant, windows: Windows) -> Array:
    """Specific force of the air across the rotors' axes, in the body's axes [m/s^2], (sets, windows, 2 steps + 1, 2)."""
    first, kind = distinct(plant.lever, plant.force_offset, plant.tilt)
    return _drag_of(picked(plant, first), windows)[kind]


def _drag_of(plant: Plant, windows: Windows) -> Array:
    force, rate, acceleration, weight = windows.air
    lever = plant.lever[:, None, None]
    pushed = crossed(acceleration[None], lever) + rate * (rate * lever).sum(axis=-1, keepdims=True)
    pushed = pushed - lever * (rate**2).sum(axis=-1, keepdims=True)
    read = force - plant.force_offset[:, None, None]
    found = read + crossed(plant.tilt[:, None, None], read) - pushed
    return np.asarray(found[..., :2] * weight)


def _later(plant: Plant, force: Array, step: float) -> Array:
    """Return what an accelerometer reads that is late: linear between two steps, and beyond one as the step goes on."""
    if not np.any(plant.force_delay):
        return force
    share = (plant.force_delay / step)[:, None, None, None]
    before = np.concatenate([2.0 * force[:, :, :1] - force[:, :, 1:2], force[:, :, :-1]], axis=2)
    return np.asarray(force - share * (force - before))


def thrusts(plant: Plant, state: Array) -> Array:
    """Return the thrust of each rotor at given states [N], (sets, windows, 2 steps + 1, rotors)."""
    c0, c1, c2 = (plant.thrust[:, None, None, :, k] for k in range(3))
    # A rotor that stands gives no thrust, whatever a published polynomial says.
    return np.asarray(c1 * state + c2 * (state * np.abs(state)) + c0 * (np.abs(state) > 1e-6))


def rotor_states(plant: Plant, windows: Windows) -> Array:
    """Return rotor states at the ends and the middle of each step, fractions of full, (sets, windows, 2 steps + 1, rotors).

    Of a flight with measured speeds rotors turn as they were measured, else as commands have led them.
    """
    time = windows.start[:, None] + 0.5 * windows.step * np.arange(2 * windows.steps + 1)
    speeds, command = windows.flight.speeds, windows.flight.command
    if speeds is not None:
        lates, back = np.unique(plant.speed_delay, return_inverse=True)
        measured = np.stack([speeds.mean(time + late, WIDTH) for late in lates])
        return np.asarray(measured[back] / plant.speed_full[:, None, None])
    if windows.flight.supply is None or not np.any(plant.supply[:, 0]):
        return _followed(command, plant.response, plant.delay, time)
    # Each supply's commands are others.
    kinds, of = np.unique(plant.supply, axis=0, return_inverse=True)
    states = np.empty((len(plant), *time.shape, command.values.shape[1]))
    for k, (power, nominal) in enumerate(kinds.tolist()):
        rows = np.flatnonzero(of == k)
        states[rows] = _followed(windows.flight.supplied(power, nominal), plant.response[rows], plant.delay[rows], time)
    return states


def _followed(command: HeldCommand, responses: Array, delays: Array, time: Array) -> Array:
    """Rotor states at given times, by responses and dead times of several sets, (sets, ..., rotors)."""
    # Many sets share response and dead time: those of a Jacobian differ in one parameter each.
    pairs, back = np.unique(np.column_stack([responses, delays]), axis=0, return_inverse=True)
    kinds, of = np.unique(pairs[:, :4], axis=0, return_inverse=True)
    known = command.states(kinds)
    states = np.stack([command.at(known[of[k]], row[:4], time - row[4]) for k, row in enumerate(pairs)])
    return np.asarray(states[back])


def _sensed(plant: Plant, rate: Array, acceleration: Array, force: Array) -> Array:
    """Specific force where the sensor sits, in its axes, bias included."""
    if np.any(plant.lever):
        # Where the sensor lies off the centre of mass, turning pushes it, too: w' x p + w (w . p) - p |w|^2.
        lever = plant.lever[:, None, None]
        pushed = crossed(acceleration, lever) + rate * (rate * lever).sum(axis=-1, keepdims=True)
        force = force + pushed - lever * (rate**2).sum(axis=-1, keepdims=True)
    return np.asarray(_in_sensor(plant, force) + plant.force_offset[:, None, None])


def _in_sensor(plant: Plant, vector: Array) -> Array:
    """Return vectors of the body in the axes of the sensor, which is turned by a small angle."""
    if not np.any(plant.tilt):
        return vector
    return np.asarray(vector - crossed(plant.tilt[:, None, None], vector))


def crossed(a: Array, b: Array) -> Array:
    """Return the cross product, (..., 3); NumPy's own takes longer over its arguments."""
    x, y, z = (a[..., k] for k in range(3))
    u, v, w = (b[..., k] for k in range(3))
    return np.stack([y * w - z * v, z * u - x * w, x * v - y * u], axis=-1)
