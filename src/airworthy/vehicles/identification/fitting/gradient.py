"""Gradient of a fit's cost by all parameters at once: motors forwards, the body backwards.

A cost is one number and its parameters are many, so the rotation of every window is walked back once: the adjoint of the
fourth-order Runge-Kutta steps of `predict`, with the equations of Euler inside. What moves a rotor's state - lag, dead time,
lateness of speeds - are three or four numbers of a lattice that runs through the whole flight, also through what no window
covers: their sensitivities go forwards, by differences. Between values of a vehicle and what predicts stand closed forms
without time, derived by differences. A test compares the whole with differences of the cost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array
from airworthy.vehicles.identification.fitting.parameters import FALL, SPEEDS_LATE
from airworthy.vehicles.identification.fitting.refine import BLOCK_STEPS, FAR, LIFT, SOFT, TOLD_BLOCKS, FitProblem
from airworthy.vehicles.identification.prediction.plant import Plant, picked
from airworthy.vehicles.identification.prediction.predict import Windows, crossed, drift_times, rotor_states, thrusts

__all__ = ["cost_and_gradient"]

MOTORS = ("lag", FALL, "command_delay", SPEEDS_LATE, "sag")
"""Parameters that move rotor states."""
STATELESS = (
    *(
        "thrust",
        "force",
        "moment",
        "inertia",
        "damping",
        "lever",
        "tilt",
        "turn_offset",
        "turn_drift",
        "force_offset",
        "force_delay",
    ),
    "drag_arm",
)
"""Of a plant, what the body is predicted with."""
STEP, STEP_STATE = 1e-6, 1e-4
"""Of differences of what predicts, and of rotor states, in prior deviations: closed forms, and such with a filter."""


def cost_and_gradient(problem: FitProblem, theta: Array) -> tuple[float, Array]:
    """Return the cost of a vector, and its slopes by what is free, in prior deviations, (free,).

    Args:
        problem: With its errors' weights.
        theta: All parameters, (parameters,).
    """
    parameters = problem.parameters
    index, sd = parameters.index, parameters.sd
    moved = np.repeat(theta[None], len(index) + 1, axis=0)
    sizes = np.array([STEP_STATE if parameters.items[k].name in MOTORS else STEP for k in index])
    moved[1 + np.arange(len(index)), index] += sizes * sd[index]
    late = np.array([0, *(1 + j for j, k in enumerate(index) if parameters.items[k].name in MOTORS)])
    total, slopes = 0.0, np.zeros(len(index))
    for flight, windows in enumerate(problem.windows):
        plants = parameters.plant(moved, flight)
        plant = picked(plants, np.array([0]))
        states = rotor_states(picked(plants, late), windows)
        motion = _moved(plant, windows, states[0])
        cost, by_rate, by_force = _weighed(problem, flight, plant, motion)
        total += cost
        back = _walked_back(plant, windows, motion, by_rate, by_force)
        for name, slope in back.by_plant.items():
            values = np.linalg.inv(plants.inertia) if name == "inverse" else getattr(plants, name)
            slopes += ((values[1:] - values[0]).reshape(len(index), -1) / sizes[:, None]) @ slope.ravel()
        for j, row in enumerate(late[1:], start=1):
            slopes[row - 1] += float((back.by_state * (states[j] - states[0])).sum()) / sizes[row - 1]
    z = ((theta - parameters.mean) / sd)[index]
    beside = problem.measured(moved)
    total += 0.5 * float(z @ z) + 0.5 * float(beside[0] @ beside[0])
    return total, slopes + z + ((beside[1:] - beside[0]) / sizes[:, None]) @ beside[0]


@dataclass(frozen=True, eq=False)
class _Motion:
    """What one plant does in the windows of a flight."""

    state: Array
    """Of rotors, (windows, 2 steps + 1, rotors)."""
    thrust: Array
    """(windows, 2 steps + 1, rotors)."""
    turning: Array
    """Moments over inertia before its inverse: moments [N m], (windows, 2 steps + 1, 3)."""
    pulled: Array
    """Specific force of the air across the rotors' axes, (windows, 2 steps + 1, 2)."""
    stages: Array
    """Rates at the four stages of each step, (steps, 4, windows, 3)."""
    rate: Array
    """(windows, steps + 1, 3)."""
    acceleration: Array
    """(windows, steps + 1, 3)."""
    felt: Array
    """Specific force where the sensor is, in body axes, (windows, steps + 1, 3)."""
    read: Array
    """The same as the sensor reads it, before it is late."""


def _moved(plant: Plant, windows: Windows, state: Array) -> _Motion:
    inverse = np.linalg.inv(plant.inertia[0])
    thrust = thrusts(plant, state[None])[0]
    turning = thrust @ plant.moment[0].T
    pulled = _pulled(plant, windows)
    turning[..., 0] -= plant.drag_arm[0] * pulled[..., 1]
    turning[..., 1] += plant.drag_arm[0] * pulled[..., 0]
    driven = turning @ inverse.T + plant.turn_offset[0] + plant.turn_drift[0] * drift_times(plant, windows)[0]
    begun = windows.rate[:, 0] + crossed(plant.tilt[0], windows.rate[:, 0])
    inertia, damping, h = plant.inertia[0], plant.damping[0], windows.step

    def slope(rate: Array, push: Array) -> Array:
        return np.asarray(push - (crossed(rate, rate @ inertia.T) + damping * rate) @ inverse.T)

    rate, rates, accelerations, stages = begun, [begun], [], []
    for k in range(windows.steps):
        first, middle, last = driven[:, 2 * k], driven[:, 2 * k + 1], driven[:, 2 * k + 2]
        k1 = slope(rate, first)
        k2 = slope(second := rate + 0.5 * h * k1, middle)
        k3 = slope(third := rate + 0.5 * h * k2, middle)
        k4 = slope(fourth := rate + h * k3, last)
        stages.append(np.stack([rate, second, third, fourth]))
        rate = rate + h / 6.0 * (k1 + 2.0 * (k2 + k3) + k4)
        rates.append(rate)
        accelerations.append(k1)
    accelerations.append(slope(rate, driven[:, -1]))
    turned, turning_at = np.stack(rates, axis=1), np.stack(accelerations, axis=1)
    lever = plant.lever[0]
    pushed = crossed(turning_at, lever) + turned * (turned @ lever)[..., None] - lever * (turned**2).sum(axis=-1, keepdims=True)
    felt = thrust[:, ::2] @ plant.force[0].T + pushed
    read = felt - crossed(plant.tilt[0], felt) + plant.force_offset[0]
    return _Motion(state, thrust, turning, pulled, np.stack(stages), turned, turning_at, felt, read)


def _pulled(plant: Plant, windows: Windows) -> Array:
    force, rate, acceleration, weight = windows.air
    lever = plant.lever[0]
    pushed = crossed(acceleration, lever) + rate * (rate @ lever)[..., None] - lever * (rate**2).sum(axis=-1, keepdims=True)
    read = force - plant.force_offset[0]
    return np.asarray((read + crossed(plant.tilt[0], read) - pushed)[..., :2] * weight)


def _weighed(problem: FitProblem, flight: int, plant: Plant, motion: _Motion) -> tuple[float, Array, Array]:
    """Cost of a flight's windows, and its slopes by predicted rates and specific forces, (windows, steps + 1, 3) each."""
    windows, picked = problem.windows[flight], problem.picked
    whitening = problem.whitening[flight][:, TOLD_BLOCKS:]
    share = float(plant.force_delay[0]) / windows.step
    force = motion.read - share * (motion.read - _before(motion.read))
    rate = motion.rate - crossed(plant.tilt[0], motion.rate)
    both = np.concatenate([rate - windows.rate, force - windows.force], axis=-1)[:, 1:]
    count, blocks = len(both), both.shape[1] // BLOCK_STEPS
    used = blocks * BLOCK_STEPS
    errors = both[:, :used].reshape(count, blocks, BLOCK_STEPS, 6).mean(axis=2)[..., picked]
    white = np.einsum("wbc,cnb->wnc", errors, whitening, optimize=True)
    white = np.clip(np.nan_to_num(white, nan=FAR, posinf=FAR, neginf=-FAR), -FAR, FAR)
    heard = int(np.any(whitening, axis=(1, 2)).sum())
    size = SOFT**2 * float(white.shape[1] * heard)
    root = np.sqrt(1.0 + (white**2).sum(axis=(1, 2)) / size)
    slopes = np.zeros((count, both.shape[1] + 1, 6))
    by_errors = np.einsum("wnc,cnb->wbc", white / root[:, None, None], whitening, optimize=True)
    slopes[:, 1 : used + 1, picked] = np.repeat(by_errors / BLOCK_STEPS, BLOCK_STEPS, axis=1)
    cost = float((size * (root - 1.0)).sum())
    level = problem.levels[flight] if problem.levels else None
    if level is not None:
        off = float(np.clip(level.weight @ both[:, :used, LIFT].mean(axis=1) / level.sd, -FAR, FAR))
        cost += 0.5 * off**2
        slopes[:, 1 : used + 1, LIFT] += (off / level.sd / used) * level.weight[:, None]
    return cost, slopes[..., :3], slopes[..., 3:]


def _before(read: Array) -> Array:
    """Return readings of the step before each, as the first step goes on before it."""
    return np.concatenate([2.0 * read[:, :1] - read[:, 1:2], read[:, :-1]], axis=1)


@dataclass(frozen=True, eq=False)
class _Back:
    """Slopes of a cost by what predicts."""

    by_plant: dict[str, Array]
    """By names of `STATELESS`, and "inverse" of the inertia."""
    by_state: Array
    """By each rotor's state, (windows, 2 steps + 1, rotors)."""


def _walked_back(plant: Plant, windows: Windows, motion: _Motion, by_rate: Array, by_force: Array) -> _Back:
    tilt, lever, inertia, h = plant.tilt[0], plant.lever[0], plant.inertia[0], windows.step
    inverse = np.linalg.inv(inertia)
    found = {name: np.zeros_like(getattr(plant, name)[0]) for name in STATELESS}
    # An accelerometer that is late.
    share = float(plant.force_delay[0]) / h
    found["force_delay"] = np.asarray(-(by_force * (motion.read - _before(motion.read))).sum() / h)
    by_read = (1.0 - share) * by_force
    by_read[:, :-1] += share * by_force[:, 1:]
    by_read[:, 0] += 2.0 * share * by_force[:, 0]
    by_read[:, 1] -= share * by_force[:, 0]
    # Into the sensor's axes: a - tilt x a.
    found["force_offset"] += by_read.sum(axis=(0, 1))
    found["tilt"] -= _sum(crossed(motion.felt, by_read)) + _sum(crossed(motion.rate, by_rate))
    by_felt, by_turned = by_read + crossed(tilt, by_read), by_rate + crossed(tilt, by_rate)
    # Where the sensor sits: thrust, and w' x p + w (w . p) - p |w|^2.
    found["force"] += np.einsum("wki,wkr->ir", by_felt, motion.thrust[:, ::2])
    by_thrust = np.zeros_like(motion.thrust)
    by_thrust[:, ::2] += by_felt @ plant.force[0]
    by_acceleration, push_rate = _pushed_back(found, lever, motion.rate, motion.acceleration, by_felt)
    by_turned = by_turned + push_rate
    by_driven = _steps_back(found, plant, inverse, windows, motion, by_turned, by_acceleration)
    # Moments, and the force of the air above the centre of mass.
    found["turn_offset"] += by_driven.sum(axis=(0, 1))
    found["turn_drift"] += _sum(by_driven * drift_times(plant, windows)[0])
    found["inverse"] += np.einsum("wki,wkj->ij", by_driven, motion.turning)
    by_moment = by_driven @ inverse
    found["moment"] += np.einsum("wki,wkr->ir", by_moment, motion.thrust)
    by_thrust += by_moment @ plant.moment[0]
    # Also where the air acts at the centre of mass: the slope by its height is not zero there.
    _air_back(found, plant, windows, motion, by_moment)
    return _Back(found, _thrust_back(found, plant, motion.state, by_thrust))


def _sum(values: Array) -> Array:
    return np.asarray(values.sum(axis=(0, 1)))


def _pushed_back(found: dict[str, Array], lever: Array, rate: Array, acceleration: Array, slope: Array) -> tuple[Array, Array]:
    """Slopes by acceleration and rate of what pushes a sensor off the centre of mass; that by its place is added."""
    along, across = rate @ lever, (slope * rate).sum(axis=-1)
    found["lever"] += _sum(crossed(slope, acceleration))
    found["lever"] += np.einsum("wk,wki->i", across, rate) - np.einsum("wk,wki->i", (rate**2).sum(axis=-1), slope)
    by_rate = slope * along[..., None] + across[..., None] * lever - 2.0 * rate * (slope @ lever)[..., None]
    return crossed(lever, slope), by_rate


def _steps_back(
    found: dict[str, Array],
    plant: Plant,
    inverse: Array,
    windows: Windows,
    motion: _Motion,
    by_rate: Array,
    by_acceleration: Array,
) -> Array:
    """Walk the steps back; slopes by what drives them, (windows, 2 steps + 1, 3), and by inertia and damping in `found`."""
    inertia, damping, h = plant.inertia[0], plant.damping[0], windows.step
    by_driven = np.zeros_like(motion.turning)
    found["inverse"] = np.zeros((3, 3))

    def back(rate: Array, slope: Array) -> Array:
        """Of push - (w x J w + D w) / J by w; those by J, 1/J and D are added."""
        spun = rate @ inertia.T
        against = crossed(rate, spun) + damping * rate
        found["inverse"] -= slope.T @ against
        y = -slope @ inverse
        by_spun = crossed(y, rate)
        found["inertia"] += by_spun.T @ rate
        found["damping"] += (y * rate).sum(axis=0)
        return np.asarray(by_spun @ inertia + crossed(spun, y) + damping * y)

    carried = by_rate[:, -1] + back(motion.rate[:, -1], by_acceleration[:, -1])
    by_driven[:, -1] += by_acceleration[:, -1]
    for k in range(windows.steps - 1, -1, -1):
        w1, w2, w3, w4 = motion.stages[k]
        g4 = h / 6.0 * carried
        x4 = back(w4, g4)
        g3 = h / 3.0 * carried + h * x4
        x3 = back(w3, g3)
        g2 = h / 3.0 * carried + 0.5 * h * x3
        x2 = back(w2, g2)
        g1 = h / 6.0 * carried + 0.5 * h * x2 + by_acceleration[:, k]
        x1 = back(w1, g1)
        by_driven[:, 2 * k] += g1
        by_driven[:, 2 * k + 1] += g2 + g3
        by_driven[:, 2 * k + 2] += g4
        carried = carried + x1 + x2 + x3 + x4 + by_rate[:, k]
    # From the sensor's axes to the body's: w + tilt x w.
    found["tilt"] += crossed(windows.rate[:, 0], carried).sum(axis=0)
    return by_driven


def _air_back(found: dict[str, Array], plant: Plant, windows: Windows, motion: _Motion, by_moment: Array) -> None:
    """Add slopes of the moment of the air's force, which the sensor's own reading tells."""
    force, rate, acceleration, weight = windows.air
    found["drag_arm"] += (by_moment[..., 1] * motion.pulled[..., 0] - by_moment[..., 0] * motion.pulled[..., 1]).sum()
    slope = np.zeros_like(by_moment)
    slope[..., 0], slope[..., 1] = by_moment[..., 1], -by_moment[..., 0]
    slope *= plant.drag_arm[0] * weight
    read = force - plant.force_offset[0]
    found["tilt"] += _sum(crossed(read, slope))
    found["force_offset"] -= _sum(slope + crossed(slope, plant.tilt[0]))
    _pushed_back(found, plant.lever[0], rate, acceleration, -slope)


def _thrust_back(found: dict[str, Array], plant: Plant, state: Array, by_thrust: Array) -> Array:
    """Slopes by rotor states; those by the curve of the thrust are added."""
    c1, c2 = plant.thrust[0, :, 1], plant.thrust[0, :, 2]
    found["thrust"][:, 0] += (by_thrust * (np.abs(state) > 1e-6)).sum(axis=(0, 1))
    found["thrust"][:, 1] += (by_thrust * state).sum(axis=(0, 1))
    found["thrust"][:, 2] += (by_thrust * state * np.abs(state)).sum(axis=(0, 1))
    return np.asarray(by_thrust * (c1 + 2.0 * c2 * np.abs(state)))
