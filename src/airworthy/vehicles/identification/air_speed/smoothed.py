"""Velocities of positions: what the accelerometer integrates to in between, held to the positions by a smoother.

Differences of positions of 1 cm, 50 in a second, are velocities of 0.7 m/s noise: drag fitted against them is drawn towards
none, since noise of what one fits against always takes of the slope. Here positions are averaged over as long as attitude and
accelerometer bridge well, a few tenths of a second, which leaves centimetres per second.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.frames import rotate
from airworthy.vehicles.identification.prediction.signals import Readings

__all__ = ["smoothed_velocities"]

RATE_MOST = 100.0
"""Positions that come faster are averaged to this [Hz]: between them a vehicle moves as its accelerometer says."""
WANDER = 0.5
"""Ours: what attitudes and accelerometers are off by in the world changes by so much in a second [m/s^2]: three degrees of
gravity."""
SHAKEN = 0.02
"""Ours: what of that is new at each moment [m/s^2/sqrt(Hz)]; a noisy accelerometer of 0.4 m/s^2 at 500 Hz."""
NOISE_LEAST = 1e-4
"""Of positions [m]: a good capture system's; a log that rounds or repeats them shows less."""
UNKNOWN = (10.0, 10.0, 5.0)
"""Deviations of place [m], speed [m/s] and error of the acceleration [m/s^2] before the first position, about what it says."""


def smoothed_velocities(
    position: Readings, force: Readings, attitude: Array, gravity: float, gap: float
) -> tuple[Readings, float]:
    """Return velocities at positions, in the world [m/s], and the deviation of their noise [m/s].

    Args:
        position: In the world [m], (n, 3).
        force: Specific force, body axes [m/s^2], (m, 3).
        attitude: At each sample of it, body to world, x, y, z, w, (m, 4).
        gravity: [m/s^2]
        gap: Over longer pauses of positions nothing is bridged [s].
    """
    pushed = Readings(force.time, rotate(attitude, force.values) - np.array([0.0, 0.0, gravity]))
    gained = Readings(force.time, pushed.integral)
    inside = (position.time >= force.time[0]) & (position.time <= force.time[-1])
    time, where = position.time[inside], position.values[inside]
    left = where - _at(gained.integral, force.time, time)
    starts = np.concatenate([[0], np.flatnonzero(np.diff(time) > gap) + 1, [len(time)]])
    parts = [_thinned(time[a:b], left[a:b]) for a, b in pairwise(starts) if b - a >= 4]
    if not parts:
        return Readings(time[:0], where[:0]), 0.0
    # Behind what the accelerometer says, second differences of positions are their noise.
    bends = np.concatenate([values[2:] - 2.0 * values[1:-1] + values[:-2] for _, values in parts])
    noise = max(float(np.median(np.abs(bends))) / 0.6745 / np.sqrt(6.0), NOISE_LEAST)
    found = [_smoothed(t, values, noise) for t, values in parts]
    stamps = np.concatenate([t for t, _ in parts])
    velocity = np.concatenate([speed for speed, _ in found]) + _at(gained.values, force.time, stamps)
    return Readings(stamps, velocity), float(np.sqrt(np.median(np.concatenate([spread for _, spread in found]))))


def _at(values: Array, stamps: Array, time: Array) -> Array:
    """Return columns between their stamps, (k, columns)."""
    return np.stack([np.interp(time, stamps, column) for column in values.T], axis=1)


def _thinned(time: Array, values: Array) -> tuple[Array, Array]:
    """Return means of some samples each, where they come faster than is of use."""
    block = max(int(1.0 / (RATE_MOST * float(np.median(np.diff(time))))), 1)
    count = len(time) // block
    if block == 1 or count < 4:
        return time, values
    cut = count * block
    return time[:cut].reshape(count, block).mean(axis=1), values[:cut].reshape(count, block, -1).mean(axis=1)


def _smoothed(time: Array, place: Array, noise: float) -> tuple[Array, Array]:
    """Return how fast a place moves, (n, 3), and the variance of that, (n,): the smoother of Rauch, Tung and Striebel.

    Args:
        time: [s], (n,).
        place: What the accelerometer does not tell of positions [m], (n, 3).
        noise: Of each [m].
    """
    count, start = len(time), place[0].copy()
    state, spread = np.zeros((3, 3)), np.diag(np.square(UNKNOWN))
    state[1] = (place[3] - place[0]) / (time[3] - time[0])
    ahead, behind = np.empty((count, 3, 3)), np.empty((count, 3, 3))
    wide, narrow = np.empty((count, 3, 3)), np.empty((count, 3, 3))
    moves = np.empty((count, 3, 3))
    for k in range(count):
        if k:
            moves[k], added = _step(float(time[k] - time[k - 1]))
            state, spread = moves[k] @ state, moves[k] @ spread @ moves[k].T + added
        ahead[k], wide[k] = state, spread
        gain = spread[:, 0] / (spread[0, 0] + noise**2)
        state = state + np.outer(gain, place[k] - start - state[0])
        spread = spread - np.outer(gain, spread[0])
        spread = 0.5 * (spread + spread.T)
        behind[k], narrow[k] = state, spread
    for k in range(count - 2, -1, -1):
        back = np.linalg.solve(wide[k + 1], moves[k + 1] @ narrow[k]).T
        behind[k] += back @ (behind[k + 1] - ahead[k + 1])
        narrow[k] += back @ (narrow[k + 1] - wide[k + 1]) @ back.T
    return behind[:, 1], narrow[:, 1, 1]


def _step(h: float) -> tuple[Array, Array]:
    """Return how place, speed and error of the acceleration go on over a time [s], and what is new of them."""
    moves = np.array([[1.0, h, 0.5 * h * h], [0.0, 1.0, h], [0.0, 0.0, 1.0]])
    wander = np.array([[h**5 / 20, h**4 / 8, h**3 / 6], [h**4 / 8, h**3 / 3, h**2 / 2], [h**3 / 6, h**2 / 2, h]])
    shaken = np.array([[h**3 / 3.0, h**2 / 2.0, 0.0], [h**2 / 2.0, h, 0.0], [0.0, 0.0, 0.0]])
    return moves, WANDER**2 * wander + SHAKEN**2 * shaken
