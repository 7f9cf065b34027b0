"""Learn l2f_position like for like: SAC and the gradient on the task as RLtools' zoo has it, TD3 on that of 2024; every seed.

    python benchmarks/learn_l2f.py --trainer sac --seeds 10
    python benchmarks/learn_l2f.py --trainer sac --harder     with noise of observations, a push and starts at up to 90 degrees

RLtools states no return, and no bar: its program prints the mean return of its deterministic policy over 100 flights. Here it
is that over 1,024 flights (seed 7919, of no training) of 500 steps; beside it stand the share of flights kept within the task's
bounds, their length, and the mean distance over the last 2 s of those that were kept. A seed counts as solved, which is
stricter, where 99 % are kept. The gradient learns with a push and without noise, whatever it is judged on. Compilation is not
counted; learning is timed alone.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np

from airworthy.learning.environments import LearningTask, VectorTask
from airworthy.learning.environments.tasks import L2fPosition
from airworthy.learning.environments.tasks.l2f_position import L2F_HARDER
from airworthy.learning.gradient.evaluation import EVALUATION_SEED
from airworthy.learning.gradient.trainer import network_action
from airworthy.learning.l2f_position.gradient import L2fGradientOptions
from airworthy.learning.off_policy.training import OffPolicyTrainingOptions
from airworthy.learning.timed_training import hardware_found

SOLVED = 0.99
STEADY_S = 2.0


def judged(task: LearningTask, weights: Any, flights: int, seed: int) -> dict[str, float]:
    """Fly a deterministic policy on the task itself.

    Args:
        task: With its noise and push.
        weights: Of each layer, over what the task shows.
        flights: How many.
        seed: Of their starts.
    """
    environments = VectorTask(task, flights, seed=seed)
    seen, alive = environments.observation, np.ones(flights, bool)
    returns, length, errors = np.zeros(flights), np.zeros(flights), []
    for step in range(task.episode_steps):
        # Before the step: behind the last one new flights stand there.
        if step >= task.episode_steps - STEADY_S * task.rate:
            errors.append(np.linalg.norm(environments.state[:3], axis=0))
        result = environments.step(network_action(weights, seen))
        returns += np.where(alive, result.reward, 0.0)
        length += alive
        alive &= ~result.terminated
        seen = result.observation
    error = np.mean(errors, axis=0)[alive]
    found = {"kept": float(alive.mean()), "return": float(returns.mean()), "length": float(length.mean())}
    return {**found, "error_m": float(error.mean()) if len(error) else np.nan}


def learnt(options: Any) -> tuple[Any, float, float]:
    """Learn; returns the training, wall and CPU seconds."""
    work = options.begin(None)
    work.prepare()
    wall, cpu = time.perf_counter(), time.process_time()
    while not work.finished:
        work.step()
    return work, time.perf_counter() - wall, time.process_time() - cpu


def _line(row: Any) -> str:
    return "  ".join(f"{name} {value:.3f}" if isinstance(value, float) else f"{name} {value}" for name, value in row.items())


def main() -> None:
    """Print every seed, and medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trainer", choices=("sac", "td3", "gradient"), default="sac")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--harder", action="store_true", help="the zoo's task with noise, push and starts at up to 90 degrees")
    parser.add_argument("--steps", type=int, help="decisions of all flights, of sac and td3")
    parser.add_argument("--critic-every", type=int, help="steps between updates of the critics; the actor's come half as often")
    parser.add_argument("--flights", type=int, default=1024)
    parser.add_argument("--start-seed", type=int, default=EVALUATION_SEED, help="another to choose settings by")
    asked = parser.parse_args()
    print(json.dumps(hardware_found()))
    rows = []
    for seed in range(asked.seeds):
        if asked.trainer == "gradient":
            options: Any = L2fGradientOptions(seed=seed)
        else:
            every = (
                {}
                if asked.critic_every is None
                else {"critic_every": asked.critic_every, "actor_every": 2 * asked.critic_every}
            )
            named = {"options": L2F_HARDER} if asked.harder else {}
            options = OffPolicyTrainingOptions.usual(asked.trainer, "l2f_position", seed, steps=asked.steps, **every, **named)
        work, wall, cpu = learnt(options)
        row = {"seed": seed, "steps": work.env_steps, "wall_s": wall, "cpu_s": cpu}
        task = work.task if asked.trainer != "gradient" or asked.harder else L2fPosition.newer()
        row |= judged(task, work.weights, asked.flights, asked.start_seed)
        rows.append(row)
        print(_line(row), flush=True)
    middle = {name: float(np.median([row[name] for row in rows])) for name in rows[0] if name != "seed"}
    solved = sum(row["kept"] >= SOLVED for row in rows)
    print("median  " + _line(middle))
    print(f"solved {solved} of {len(rows)} (kept >= {SOLVED:.0%}); load {hardware_found()['load_average']}")


if __name__ == "__main__":
    main()
