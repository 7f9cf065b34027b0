"""What a critic that sees the noise of observations knows of the worth of a place, in the position task of lmf2 by velocity.

    python benchmarks/noisy_critic.py

A policy learns by the task's usual settings, but with the rate of the published 52.4 million decisions, its critic seeing the
noisy observation, as published, or the true state. Then flights that rest are moved, by a few centimetres towards the target or
away from it, and flown on by the policy beside their twins that were not moved, with the same noise: what the move is worth in
discounted reward, and what the critic says it is worth. Of a regressor whose input has noise the slope is too flat by the share
of the noise in the input's variance (errors in variables): where all flights rest at one place, nearly all of it is noise.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from airworthy.core.arrays import Array
from airworthy.learning.environments import VectorTask
from airworthy.learning.native_ppo import NativePpo
from airworthy.learning.task_training.options import TaskTrainingOptions
from airworthy.learning.task_training.training import TaskTraining
from benchmarks import hardware
from benchmarks.tables import hardware_table

TASK = "position_setpoint_velocity"
PUBLISHED = 52_400_000
"""Decisions over which the rate falls."""
REST, ON = 350, 440
"""Decisions until flights rest, and that are flown on: gamma^440 is 0.11, and moved flights are back within 200."""


def learnt(symmetric: bool, steps: int, seed: int) -> NativePpo:
    """Return a learner after so many decisions.

    Args:
        symmetric: Whether its critic sees what the policy sees.
        steps: Decisions.
        seed: Of the training.
    """
    made = TaskTraining(None, TaskTrainingOptions.usual(TASK, seed, steps=PUBLISHED, symmetric=symmetric), threads=1)
    while made.env_steps < steps:
        made.step()
    ppo = made.ppo
    assert isinstance(ppo, NativePpo)
    return ppo


def worth(ppo: NativePpo, moved: float, count: int = 1024) -> tuple[float, float, float, float]:
    """Distance at rest [m], its spread over flights [m], and the worth of a move as flown and as the critic says, scaled.

    Args:
        ppo: Learner.
        moved: Towards the target [m]; at most to the target.
        count: Flights.
    """
    task, other = (VectorTask(ppo.environments.task, count, seed=7920) for _ in range(2))
    for _ in range(REST):
        task.step(np.clip(ppo.action(task.observation), -1.0, 1.0))
    other.restore(task.saved())
    place = other.state[:3]
    away = np.linalg.norm(place, axis=0)
    spread = float(np.linalg.norm(place.std(axis=1)))
    place -= place / away * np.minimum(moved, away)
    gains, values = np.zeros((2, count)), np.zeros((2, count))
    for row, flown in enumerate((task, other)):
        # A step apart: only then what is seen is of the place that was moved to.
        flown.step(np.clip(ppo.action(flown.observation), -1.0, 1.0))
        values[row] = ppo.value(flown.critic_observation if ppo.sizes.known else flown.observation)
        for k in range(ON):
            result = flown.step(np.clip(ppo.action(flown.observation), -1.0, 1.0))
            gains[row] += ppo.options.gamma**k * ppo.options.reward_scale * result.reward
    found: Array = np.array([(x[1] - x[0]).mean() for x in (gains, values)])
    return float(np.median(away)), spread, float(found[0]), float(found[1])


def main(argv: list[str] | None = None) -> int:
    """Learn, move and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=float, default=8e6, help="decisions of each training")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(argv)
    print(hardware_table(hardware.describe(hardware.use_cores(2))))
    print("| critic sees | rests at [cm] | spread of flights [cm] | moved [cm] | worth as flown | critic says | share |")
    print("| --- " * 7 + "|")
    for symmetric in (True, False):
        ppo = learnt(symmetric, int(asked.steps), asked.seed)
        for moved in (0.02, -0.02, -0.05, -0.1):
            away, spread, true, said = worth(ppo, moved)
            sees = "noisy observation" if symmetric else "true state"
            cells = (f"{100 * away:.1f}", f"{100 * spread:.1f}", f"{100 * moved:+.0f}", f"{true:+.3f}", f"{said:+.3f}")
            print(f"| {sees} | {' | '.join(cells)} | {said / true:.2f} |", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
