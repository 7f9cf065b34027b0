"""What noise of actions and of observations does to a law that has learnt nothing, in the position tasks of lmf2.

    python benchmarks/action_noise.py

The laws v = e and a = 2 e - 3 v, by yaw rate -yaw, fly 256 starts of seed 7920 in the training's physics for as long as the
tasks' flights are, with noise on their actions whose deviation is the same at each instant, white or lasting. Printed: the
median over flights of the mean distance over the last 2 s, and the mean reward per step there.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from airworthy.core.arrays import Array
from airworthy.learning.environments import VectorTask, learning_task
from benchmarks import hardware
from benchmarks.tables import hardware_table

LAWS = {"position_setpoint_velocity": (1.0, 0.0, 1.0), "position_setpoint_acceleration": (2.0, 3.0, 2.0)}
"""By task: gain of the error, of the velocity, and what a whole action commands."""
CASES = ((0.0, 0.0), (0.05, 0.0), (0.1, 0.0), (0.2, 0.0), (0.1, 0.95))
"""Deviation of actions, and share of its noise that an action leaves to the next."""
LAST = 200
"""Decisions over which distance and reward are taken."""


def action(seen: Array, law: tuple[float, float, float]) -> Array:
    """Return what a law commands, (env, 4), of what the task shows."""
    x, y, z, w = seen[:, 3:7].T
    yaw = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    c, s = np.cos(yaw), np.sin(yaw)
    error = np.stack([c * seen[:, 0] + s * seen[:, 1], c * seen[:, 1] - s * seen[:, 0], seen[:, 2]], axis=1)
    push = (law[0] * error - law[1] * seen[:, 7:10]) / law[2]
    return np.concatenate([push, -yaw[:, None]], axis=1)


def flown(name: str, deviation: float, memory: float, noise: bool, count: int = 256) -> tuple[float, float]:
    """Return distance [m] and reward per step.

    Args:
        name: Of the task.
        deviation: Of noise on actions.
        memory: Share of it that an action leaves to the next.
        noise: Whether observations have the task's noise.
        count: Flights.
    """
    task = VectorTask(learning_task(name, noise=noise), count, seed=7920)
    rng, left = np.random.default_rng(0), np.zeros((count, 4))
    distance, reward = [], []
    # But for the last decision, with which the flights end and others begin.
    for step in range(task.task.episode_steps - 1):
        left = memory * left + np.sqrt(1.0 - memory**2) * deviation * rng.standard_normal(left.shape)
        result = task.step(np.clip(action(task.observation, LAWS[name]) + left, -1.0, 1.0))
        if step >= task.task.episode_steps - LAST:
            distance.append(np.linalg.norm(task.state[:3], axis=0))
            reward.append(float(result.reward.mean()))
    return float(np.median(np.mean(distance, axis=0))), float(np.mean(reward))


def main(argv: list[str] | None = None) -> int:
    """Fly and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--flights", type=int, default=256)
    asked = parser.parse_args(argv)
    print(hardware_table(hardware.describe(hardware.use_cores(2))))
    print("| task | noise of observations | deviation of actions | lasting share | held [cm] | reward per step |")
    print("| --- " * 6 + "|")
    for name in LAWS:
        for noise in (False, True):
            for deviation, memory in CASES:
                far, reward = flown(name, deviation, memory, noise, asked.flights)
                said = "as published" if noise else "none"
                print(f"| {name} | {said} | {deviation:g} | {memory:g} | {100.0 * far:.1f} | {reward:.1f} |", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
