"""Random parts of rollouts (Table I), as functions of (seed, situation index, draw, step) alone.

All candidates of a situation meet the same vehicle and the same noise, so that they are compared by what they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.random import Stream, Words, flight_key, uniforms, words
from airworthy.learning.gates.craft import Craft
from airworthy.learning.gates.options import Randomisation

__all__ = ["Draws", "draw", "noise"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Draws:
    """Of k rollouts."""

    mass: Array
    """[kg], shape (k,)."""
    inertia: Array
    """[kg m^2], shape (k, 3)."""
    keys: Words
    """For the noise of each step, shape (k, 4)."""

    def at(self, rows: NDArray[np.int64] | list[int]) -> Draws:
        """Of some of the rollouts, in this order."""
        return Draws(self.mass[rows], self.inertia[rows], self.keys[rows])


def draw(craft: Craft, law: Randomisation, seed: int, index: ArrayLike, number: ArrayLike = 0) -> Draws:
    """Mass, inertia and keys of rollouts.

    Args:
        craft: Has the nominal values.
        law: Half widths.
        seed: Of the run.
        index: Situation numbers, shape (k,).
        number: Which of the draws of the situation, shape (k,) or one.
    """
    keys = flight_key(seed, index, number)
    turned = 2.0 * uniforms(keys, np.zeros(len(keys), np.uint32), Stream.PARAMETERS, 4) - 1.0
    return Draws(craft.mass + law.mass * turned[:, 0], np.array(craft.inertia) + law.inertia * turned[:, 1:], keys)


def noise(keys: Words, step: int, law: Randomisation) -> Array:
    """Outer force [N] and noise of each motor's thrust [N] in one step, shape (k, 7).

    One block of four words serves a step, so that each number has 16 bits: uniform numbers lie on a grid of 2^16, and
    normals reach 4.9 deviations.
    """
    if law.force == 0.0 and law.thrust == 0.0:
        return np.zeros((len(keys), 7))
    drawn = words(keys, np.full(len(keys), step, np.uint32), Stream.DISTURBANCE, 4)
    high, low = drawn & np.uint32(0xFFFF0000), drawn << np.uint32(16)
    first, second = _uniform(high), _uniform(low)
    force = law.force * (2.0 * np.stack((first[:, 0], second[:, 0], first[:, 1]), axis=-1) - 1.0)
    radius = law.thrust * np.sqrt(-2.0 * np.log(first[:, 2:]))
    angle = _angle(low[:, 2:])
    normal = np.stack((radius * np.cos(angle), radius * np.sin(angle)), axis=-1).reshape(-1, 4)
    return np.concatenate((force, normal), axis=-1)


def _uniform(word: Words) -> Array:
    return ((word >> np.uint32(9)).astype(np.float64) + 0.5) * 2.0**-23


def _angle(word: Words) -> Array:
    """As `normal_pair` of native/random.h takes it: two bits of quadrant, then the place within it."""
    quadrant = (word >> np.uint32(30)).astype(np.float64)
    inside = ((word << np.uint32(2)) >> np.uint32(9)).astype(np.float64) + 0.5
    return (quadrant - 0.5) * (np.pi / 2) + inside * (np.pi / 2**24)
