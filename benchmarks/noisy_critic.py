"""What a critic that sees the noise of observations knows of the worth of a place, in the position task of lmf2 by velocity.

    python benchmarks/noisy_critic.py

A policy learns by the task's usual settings, with the rate of the published 52.4 million decisions, its critic seeing the
noisy observation, as published, or the true state. On the way learning stops a while and flights go on, with the noise of
actions that they learn with: of those that have flown for 2.5 s, the discounted reward that they then got, and what the critic
expected, as slopes by the true distance from the target. Of a regressor whose input has noise the slope is too flat by the
share of the noise in the input's variance (errors in variables).
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from airworthy.core.arrays import Array
from airworthy.learning.native_ppo import NativePpo, generalized_advantages
from airworthy.learning.task_training.options import TaskTrainingOptions
from airworthy.learning.task_training.training import TaskTraining
from benchmarks import hardware
from benchmarks.tables import hardware_table

TASK = "position_setpoint_velocity"
PUBLISHED = 52_400_000
"""Decisions over which the rate falls."""
REST = 250
"""Decisions after which a flight is where it will stay."""
TAKEN, FLOWN = 12, 26
"""Rollouts of 32 decisions at whose beginnings flights are looked at, and that are flown: what the critic says at the end of
the last counts gamma^448 at most, a tenth."""


@dataclass(frozen=True)
class Worth:
    """Of flights that rest."""

    away: float
    """From the target, mean [m]."""
    spread: float
    """Deviation of the place over flights, root of the mean over axes [m]."""
    flown: float
    """Slope of the discounted reward by the distance [1/m], in scaled rewards."""
    said: float
    """The same of what the critic expects."""


def worth(ppo: NativePpo) -> Worth:
    """Fly on without learning, and go back to where learning was.

    Args:
        ppo: Learner.
    """
    o, e, held = ppo.options, ppo.environments, ppo.save()
    places, rests, expected, rollouts = [], [], [], []
    for _ in range(FLOWN):
        places.append(e.state[:3].astype(float))
        rests.append(np.asarray(e.age) >= REST)
        rollouts.append(ppo.fly())
        expected.append(np.asarray(ppo._scaled(ppo.values), float))
        ppo.updates += 1  # or the next rollout would have the same noise
    ppo.restore(held)

    def joined(name: str) -> Array:
        return np.concatenate([getattr(one, name) for one in rollouts])

    values = np.concatenate([v[:-1] for v in expected])
    rewards = joined("rewards") * o.reward_scale
    # With lambda 1 an advantage is what was flown less what was expected; time limits go on from the critic.
    flown = values + generalized_advantages(
        rewards, values, expected[-1][-1], joined("ended"), joined("cut_values"), o.gamma, 1.0
    )
    chosen = np.stack(rests[:TAKEN])
    place = np.stack(places[:TAKEN], axis=1)[:, chosen]
    away = np.linalg.norm(place, axis=0)
    slopes = [float(np.polyfit(away, x[: TAKEN * o.rollout : o.rollout][chosen], 1)[0]) for x in (flown, values)]
    return Worth(float(away.mean()), float(np.sqrt(place.var(axis=1).mean())), *slopes)


def main(argv: list[str] | None = None) -> int:
    """Learn, fly on and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--at", type=float, nargs="+", default=[6e6, 8e6, 1e7], help="decisions after which to look")
    parser.add_argument("--critics", nargs="+", default=["observation", "state"], choices=["observation", "state"])
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(argv)
    print(hardware_table(hardware.describe(hardware.use_cores(2))))
    columns = (
        "critic sees",
        "decisions",
        "reward per step",
        "away [cm]",
        "spread [cm]",
        "worth of a cm: flown",
        "critic",
        "share",
    )
    print(f"| {' | '.join(columns)} |")
    print("| --- " * len(columns) + "|")
    for symmetric in [name == "observation" for name in asked.critics]:
        made = TaskTraining(None, TaskTrainingOptions.usual(TASK, asked.seed, steps=PUBLISHED, symmetric=symmetric), threads=1)
        assert isinstance(made.ppo, NativePpo)
        for steps in sorted(asked.at):
            reward = 0.0
            while made.env_steps < steps:
                reward = -made.step()
            found = worth(made.ppo)
            sees = "noisy observation" if symmetric else "true state"
            numbers = (
                100.0 * found.away,
                100.0 * found.spread,
                0.01 * found.flown,
                0.01 * found.said,
                found.said / found.flown,
            )
            cells = (f"{1e-6 * steps:g} M", f"{reward:.2f}", *(f"{x:.2f}" for x in numbers))
            print(f"| {sees} | {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
