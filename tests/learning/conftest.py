"""A data set in memory, small and quick to make, with what training reads of a real one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from airworthy.core.arrays import Array, ArrayAny, ArrayInt, ArrayU8
from airworthy.core.frames import multiply
from airworthy.learning.gradient import GradientOptions, GradientTraining
from airworthy.vehicles import vehicle

RATE, SUBSTEPS, GRAVITY = 20.0, 5, 9.81


class Images:
    """Images (k, side, side, 3) as a data set holds them."""

    def __init__(self, values: ArrayU8):
        self.values, self.shape = values, values.shape

    def take(self, which: ArrayInt) -> ArrayU8:
        return self.values[which]


class PairsInMemory:
    """Roll-outs of point masses with attitude (specification, section 2) under commands that hover roughly.

    The last `held` roll-outs of each course are held out.
    """

    def __init__(self, rollouts: int, ticks: int, side: int, seed: int, held: int, courses: tuple[str, ...]):
        rng = np.random.default_rng(seed)
        self.ticks, self.rollouts = ticks, rollouts
        mass, force = 1.144 * rng.uniform(0.7, 1.3, rollouts), 6.9 * rng.uniform(0.7, 1.3, rollouts)
        self.parameters = np.stack([mass, force], axis=1)
        self.course = np.array(courses)[np.arange(rollouts) % len(courses)]
        self.objective = rng.normal(size=(len(courses), 18))[np.arange(rollouts) % len(courses)]
        state, command = flown(rng, 4.0 * force / mass, ticks)
        clock = np.broadcast_to(np.arange(ticks) / RATE, (rollouts, ticks))
        self.sensed = np.concatenate([clock[..., None], state], axis=-1).reshape(rollouts * ticks, 11)
        self.command = command.reshape(-1, 4)
        self.rollout = np.repeat(np.arange(rollouts), ticks)
        last = [np.flatnonzero(self.course == name)[-held:] for name in courses] if held else [np.zeros(0, np.int64)]
        self._held = np.isin(self.rollout, np.concatenate(last))
        self.digest = f"stand-in {rollouts} {ticks} {side} {seed}"
        self.images: Images | None = None
        self.camera: dict[str, Any] | None = None
        if side:
            self.images = Images(rng.integers(0, 256, (rollouts * ticks, side, side, 3), dtype=np.uint8))
            self.camera = {"view": str(side), "width": side, "height": side, "fx": 26.0, "fy": 47.0, "cx": 16.0, "cy": 16.0}

    def split(self, course: str | None = None) -> tuple[ArrayInt, ArrayInt]:
        mine = np.ones(len(self.rollout), bool) if course is None else self.course[self.rollout] == course
        return np.flatnonzero(mine & ~self._held), np.flatnonzero(mine & self._held)

    def of_rollouts(self, values: ArrayLike) -> ArrayAny:
        given = np.asarray(values)
        return given.reshape(self.rollouts, self.ticks, *given.shape[1:])


def up_axis(attitude: Array) -> Array:
    """World z-axis of the body (..., 3), z up."""
    x, y, z, w = np.moveaxis(attitude, -1, 0)
    return np.stack([2 * (x * z + y * w), 2 * (y * z - x * w), w * w - x * x - y * y + z * z], axis=-1)


def flown(rng: np.random.Generator, thrust: Array, ticks: int, push: Array | None = None) -> tuple[Array, Array]:
    """States (n, ticks, 10) and commands (n, ticks, 4), z up, of n drones of specific force `thrust` (n,) at full command;
    Euler's method at 100 Hz. `push`: (n, 3) a further acceleration of the world [m/s^2]."""
    count, dt = len(thrust), 1.0 / (RATE * SUBSTEPS)
    state = np.zeros((count, 10))
    state[:, :3], state[:, 3:6] = rng.uniform(-1, 1, (count, 3)), rng.uniform(-0.5, 0.5, (count, 3))
    state[:, 6:] = np.concatenate([rng.uniform(-0.1, 0.1, (count, 3)), np.ones((count, 1))], axis=1)
    state[:, 6:] /= np.linalg.norm(state[:, 6:], axis=1, keepdims=True)
    states, commands = [], []
    for _ in range(ticks):
        command = np.concatenate([rng.uniform(0.3, 0.5, (count, 1)), rng.uniform(-0.5, 0.5, (count, 3))], axis=1)
        states.append(state.copy())
        commands.append(command)
        for _ in range(SUBSTEPS):
            force = (thrust * command[:, 0])[:, None] * up_axis(state[:, 6:]) - (0.0, 0.0, GRAVITY)
            force = force if push is None else force + push
            state[:, :3] += dt * state[:, 3:6]
            state[:, 3:6] += dt * force
            spin = np.concatenate([command[:, 1:], np.zeros((count, 1))], axis=1)
            state[:, 6:] += 0.5 * dt * multiply(state[:, 6:], spin)
            state[:, 6:] /= np.linalg.norm(state[:, 6:], axis=1, keepdims=True)
    return np.stack(states, axis=1), np.stack(commands, axis=1)


@pytest.fixture(scope="session")
def pairs_in_memory() -> Callable[..., PairsInMemory]:
    """Makes one: (rollouts, ticks, side of the images or 0, seed, held-out roll-outs per course, courses)."""

    def make(
        rollouts: int = 12, ticks: int = 8, side: int = 0, seed: int = 0, held: int = 2, courses: tuple[str, ...] = ("a",)
    ) -> PairsInMemory:
        return PairsInMemory(rollouts, ticks, side, seed, held, courses)

    return make


TINY_HOVER = {"env_count": 64, "window": 100, "hidden": 16, "iterations": 250, "learning_rate": 1.5e-2}
"""Options of a training that takes a second and hovers."""


@pytest.fixture(scope="session")
def learnt_hover() -> GradientTraining:
    """A finished training; read only."""
    made = GradientTraining(vehicle("tinyprop"), GradientOptions(**TINY_HOVER))
    while not made.finished:
        made.step()
    return made
