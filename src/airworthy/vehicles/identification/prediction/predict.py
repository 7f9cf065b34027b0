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
from airworthy.vehicles.identification.prediction.kernels import LANES, sense_windows, states_between
from airworthy.vehicles.identification.prediction.plant import Plant, distinct
from airworthy.vehicles.identification.prediction.signals import FlightSignals

__all__ = [
    "SensorPrediction",
    "Windows",
    "crossed",
    "cut_windows",
    "drift_times",
    "predict",
    "predicted_means",
    "rotor_states",
    "thrusts",
]

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

    @cached_property
    def air_in_lanes(self) -> tuple[Array, Array]:
        """Return the same as the kernel takes it, (groups, 2 steps + 1, 9, lanes), and the weight, (2 steps + 1,).

        Specific force, and what a lever times turns the force across the rotors' axes by, row after row: it is linear in it.
        """
        force, rate, acceleration, weight = self.air
        square = (rate**2).sum(axis=-1)
        turned = rate[..., :2, None] * rate[..., None, :]
        for axis in (0, 1):
            turned[..., axis, axis] -= square
        # The cross product of the angular acceleration and a lever.
        turned[..., 0, 1] -= acceleration[..., 2]
        turned[..., 0, 2] += acceleration[..., 1]
        turned[..., 1, 0] += acceleration[..., 2]
        turned[..., 1, 2] -= acceleration[..., 0]
        told = np.concatenate([force, turned.reshape(*force.shape[:-1], 6)], axis=-1)
        return in_lanes(np.broadcast_to(told, (len(self), len(weight), 9))), weight[:, 0]

    @cached_property
    def begin_in_lanes(self) -> tuple[Array, Array]:
        """Return times and measured rates of the starts as kernels take them, (groups, lanes) and (groups, 3, lanes)."""
        return in_lanes(self.start), in_lanes(self.rate[:, 0])

    @cached_property
    def means(self) -> dict[int, Array]:
        """Measured rates and specific forces in means over blocks, by their steps; filled by `measured_means`."""
        return {}

    def measured_means(self, block_steps: int) -> Array:
        """Return measured rates and specific forces in means over blocks, the start left out, (windows, blocks, 6)."""
        if block_steps not in self.means:
            self.means[block_steps] = block_means(np.concatenate([self.rate, self.force], axis=-1), block_steps)
        return self.means[block_steps]

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
    found = _sensed(plant, windows, push, 0)
    return SensorPrediction(found[..., :3], found[..., 3:])


def predicted_means(plant: Plant, windows: Windows, block_steps: int, push: Array | None = None) -> Array:
    """Return predicted rates and specific forces in means over blocks, the start left out, (sets, windows, blocks, 6).

    Args:
        plant: As of `predict`.
        windows: As of `predict`.
        block_steps: Steps of a block; those behind the last whole one are left out.
        push: As of `predict`.
    """
    return _sensed(plant, windows, push, block_steps)


def _sensed(plant: Plant, windows: Windows, push: Array | None, block_steps: int) -> Array:
    states, kind = _states_in_lanes(plant, windows)
    starts, begun = windows.begin_in_lanes
    # What no set asks for is not looked up.
    air, weights = windows.air_in_lanes if np.any(plant.drag_arm) else (np.zeros(0), np.zeros(0))
    shape = (len(plant), len(windows), windows.steps + 1, 3)
    sent = None if push is None else np.broadcast_to(push, shape)
    return sense_windows(
        _sent(plant, windows.step), states, kind, starts, begun, air, weights, sent, len(windows), windows.step, block_steps
    )


def _sent(plant: Plant, step: float) -> Array:
    """Return what the kernel takes of each set, row by row, (sets, numbers)."""
    inverse = np.asarray(np.linalg.inv(plant.inertia), np.float64)
    parts = (
        plant.thrust,
        plant.force,
        plant.moment,
        plant.inertia,
        inverse,
        plant.damping,
        plant.lever,
        plant.tilt,
        plant.turn_offset,
        plant.turn_drift,
        plant.force_offset,
        plant.turn_since,
        plant.force_delay / step,
        plant.drag_arm,
    )
    return np.concatenate([part.reshape(len(plant), -1) for part in parts], axis=1)


def rotor_states(plant: Plant, windows: Windows) -> Array:
    """Return rotor states at the ends and the middle of each step, fractions of full, (sets, windows, 2 steps + 1, rotors).

    Of a flight with measured speeds rotors turn as they were measured, else as commands have led them.
    """
    states, kind = _states_in_lanes(plant, windows)
    return of_lanes(states, len(windows))[kind]


def _states_in_lanes(plant: Plant, windows: Windows) -> tuple[Array, ArrayInt]:
    """Return rotor states as kernels take them, (kinds, groups, 2 steps + 1, rotors, lanes), and each set's kind, (sets,)."""
    speeds, command = windows.flight.speeds, windows.flight.command
    if speeds is not None:
        first, kind = distinct(plant.speed_delay, plant.speed_full)
        time = windows.start[:, None] + 0.5 * windows.step * np.arange(2 * windows.steps + 1)
        measured = {late: speeds.mean(time + late, WIDTH) for late in np.unique(plant.speed_delay[first]).tolist()}
        states = np.stack([measured[float(plant.speed_delay[k])] / plant.speed_full[k] for k in first])
        return np.stack([in_lanes(one) for one in states]), kind
    starts, places, half = windows.begin_in_lanes[0], 2 * windows.steps + 1, 0.5 * windows.step
    if windows.flight.supply is None or not np.any(plant.supply[:, 0]):
        # Many sets share response and dead time: those of a Jacobian differ in one parameter each.
        first, kind = distinct(plant.response, plant.delay)
        return _between(command, plant.response[first], plant.delay[first], starts, half, places), kind
    first, kind = distinct(plant.response, plant.delay, plant.supply)
    # Each supply's commands are others.
    powers, of = np.unique(plant.supply[first], axis=0, return_inverse=True)
    states = np.empty((len(first), *starts.shape[:1], places, command.values.shape[1], LANES))
    for k, (power, nominal) in enumerate(powers.tolist()):
        rows = first[of.reshape(-1) == k]
        supplied = windows.flight.supplied(power, nominal)
        states[of.reshape(-1) == k] = _between(supplied, plant.response[rows], plant.delay[rows], starts, half, places)
    return states, kind


def _between(command: HeldCommand, responses: Array, delays: Array, starts: Array, half: float, places: int) -> Array:
    """Rotor states at given times, by responses and dead times of several sets, (sets, groups, places, rotors, lanes)."""
    kinds, of = np.unique(responses, axis=0, return_inverse=True)
    edges, lattice = command.states(kinds), (command.start, command.period)
    return states_between(command.values, lattice, edges, of.reshape(-1), responses, delays, starts, half, places)


def in_lanes(values: Array) -> Array:
    """Return numbers of windows as kernels take them, eight windows side by side, (groups, ..., lanes); the last one stands in
    for those that are missing.

    Args:
        values: (windows, ...).
    """
    groups = -(-len(values) // LANES)
    index = np.minimum(np.arange(groups * LANES), len(values) - 1)
    return np.ascontiguousarray(np.moveaxis(values[index].reshape(groups, LANES, *values.shape[1:]), 1, -1))


def of_lanes(values: Array, count: int) -> Array:
    """Return what `in_lanes` made of each of several, (n, windows, ...).

    Args:
        values: (n, groups, ..., lanes).
        count: Windows.
    """
    found = np.moveaxis(values, -1, 2)
    return found.reshape(len(values), -1, *found.shape[3:])[:, :count]


def block_means(values: Array, block_steps: int) -> Array:
    """Return means over blocks of steps, the start left out, (windows, blocks, k); a sum of slices runs along memory.

    Args:
        values: (windows, steps + 1, k).
        block_steps: Steps of a block.
    """
    blocks = (values.shape[1] - 1) // block_steps
    parts = [values[:, 1 + k : 1 + blocks * block_steps : block_steps] for k in range(block_steps)]
    return np.asarray(sum(parts[1:], start=parts[0]) / block_steps)


def thrusts(plant: Plant, state: Array) -> Array:
    """Return the thrust of each rotor at given states [N], (sets, windows, 2 steps + 1, rotors)."""
    c0, c1, c2 = (plant.thrust[:, None, None, :, k] for k in range(3))
    # A rotor that stands gives no thrust, whatever a published polynomial says.
    return np.asarray(c1 * state + c2 * (state * np.abs(state)) + c0 * (np.abs(state) > 1e-6))


def drift_times(plant: Plant, windows: Windows) -> Array:
    """Return how long the trim has drifted at the ends and the middle of each step [s], (sets, windows, 2 steps + 1, 1)."""
    time = windows.start[:, None] + 0.5 * windows.step * np.arange(2 * windows.steps + 1)
    return np.asarray((time[None] - plant.turn_since[:, None, None])[..., None])


def crossed(a: Array, b: Array) -> Array:
    """Return the cross product, (..., 3); NumPy's own takes longer over its arguments."""
    x, y, z = (a[..., k] for k in range(3))
    u, v, w = (b[..., k] for k in range(3))
    return np.stack([y * w - z * v, z * u - x * w, x * v - y * u], axis=-1)
