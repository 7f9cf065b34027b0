"""Native PPO on Aerial Gym's motor-command task: env-steps per second, and what is learnt from how many.

    python benchmarks/learn_reward.py                      speed of both network sizes, about half a minute
    python benchmarks/learn_reward.py --steps 160e6 --seeds 0 1 2 3 4     the published budget, every seed, our settings
    python benchmarks/learn_reward.py --steps 160e6 --settings published  alike with the published settings of the learner
    python benchmarks/learn_reward.py --steps 160e6 --trainer ppo         alike by the form in torch
    python benchmarks/learn_reward.py --beside             PPO of libraries in turn, same task, network and rollout

Speed is the median of rounds, in wall and in processor time, with everything a learner does: flights, actions, update. What was
learnt is judged at 250 Hz, without noise, on 512 starts of a seed that is not trained on; a flight is lost beyond 5.5 m, as
published. Published: 0.09 m on the real vehicle after 160 M steps.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

# Before NumPy: an evaluation's products are small, and threads of a linear algebra library would wait by spinning.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from airworthy.learning.environments import VectorTask
from airworthy.learning.environments.tasks import MotorCommand
from airworthy.learning.native_ppo import NativePpo, PpoOptions
from airworthy.learning.native_ppo.config import MotorCommandConfig
from benchmarks import hardware
from benchmarks.reward_libraries import ROLLOUT, sides

SIZES: dict[str, dict[str, Any]] = {
    "32-24, 5 passes": {"hidden": (32, 24), "epochs": 5},
    "64-64, 4 passes": {"hidden": (64, 64), "epochs": 4, "minibatches": 4},
}
ENVIRONMENTS = 4096
EVALUATION_SEED, EVALUATED, SECONDS = 7919, 512, 5.0
"""Starts of nobody's training (specification, learning by reward, section 8)."""


def speed(options: dict[str, Any], rounds: int, threads: int) -> dict[str, float]:
    """Env-steps per second of wall and of processor time, medians of rounds."""
    made = NativePpo(VectorTask("motor_command", ENVIRONMENTS, threads=threads), PpoOptions(**options), threads)
    made.update()  # compiles
    walls, cpus = [], []
    for _ in range(rounds):
        wall, cpu = time.perf_counter(), time.process_time()
        made.update()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    steps = ENVIRONMENTS * made.options.rollout
    return {"per_wall_s": steps / float(np.median(walls)), "per_cpu_s": steps / float(np.median(cpus))}


def beside(count: int, rounds: int, threads: int) -> dict[str, dict[str, Any]]:
    """Env-steps per second of each library's PPO, in turn, medians of rounds.

    Args:
        count: Environments.
        rounds: Updates of each that count; one before compiles and fills caches.
        threads: Of each.
    """
    found = sides(count, threads)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in found}
    for turn in range(rounds + 1):
        for name, (_, update) in found.items():
            wall, cpu = time.perf_counter(), time.process_time()
            update()
            if turn:
                times[name].append((time.perf_counter() - wall, time.process_time() - cpu))
    steps = count * ROLLOUT
    return {
        name: {
            "package": f"{package} {hardware.version(package)}",
            "per_wall_s": steps / float(np.median([wall for wall, _ in taken])),
            "per_cpu_s": steps / float(np.median([cpu for _, cpu in taken])),
        }
        for (name, taken), (package, _) in zip(times.items(), found.values(), strict=True)
    }


def evaluate(made: NativePpo) -> dict[str, float]:
    """Deterministic flights at 250 Hz: share lost, and distances over their last two seconds."""
    task = MotorCommand(rate=250.0, episode_steps=100_000, crash_m=5.5, noise=False)
    flights = VectorTask(task, EVALUATED, seed=EVALUATION_SEED)
    lost, distances = np.zeros(EVALUATED, bool), []
    for _ in range(int(SECONDS * task.rate)):
        lost |= flights.step(made.action(flights.observation)).terminated
        distances.append(np.linalg.norm(flights.state[:3], axis=0))
    last = np.array(distances)[-int(2.0 * task.rate) :].mean(axis=0)
    kept = last[~lost] if not lost.all() else np.array([np.nan])
    return {
        "lost_percent": 100.0 * float(lost.mean()),
        "mean_error_m": float(kept.mean()),
        "median_error_m": float(np.median(last)),
    }


def learn(seed: int, settings: str, steps: float, trainer: str, threads: int) -> dict[str, Any]:
    """Train one seed, printing a line now and then.

    Args:
        seed: Which.
        settings: "ours" or "published".
        steps: Env-steps.
        trainer: "native_ppo" or "ppo".
        threads: Most.
    """
    options = MotorCommandConfig(trainer=trainer, published=settings == "published", env_count=ENVIRONMENTS).options(seed)
    task = MotorCommand(episode_steps=options.episode_steps or MotorCommand().episode_steps)
    environments = VectorTask(task, ENVIRONMENTS, seed=seed, threads=threads)
    made: Any = (_torch_ppo() if trainer == "ppo" else NativePpo)(environments, options.ppo, threads)
    wall, cpu, said = time.perf_counter(), time.process_time(), 0
    while made.env_steps < steps:
        told = made.update()
        if made.env_steps - said >= steps / 10:
            said = made.env_steps
            print(
                f"  seed {seed}  {said / 1e6:6.1f} M steps  {time.perf_counter() - wall:6.1f} s  reward {told.reward:.3f}"
                f"  return {told.episode_return:.0f}  std {told.std:.2f}",
                file=sys.stderr,
                flush=True,
            )
    times = {"training_wall_s": time.perf_counter() - wall, "training_cpu_s": time.process_time() - cpu}
    return {
        "trainer": trainer,
        "settings": settings,
        "seed": seed,
        "env_steps": made.env_steps,
        **times,
        **evaluate(made),
    }


def _torch_ppo() -> Any:
    from airworthy.learning.ppo import TorchPpo

    return TorchPpo


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=float, default=0.0, help="env-steps of a training; 0: speed alone")
    parser.add_argument("--settings", nargs="+", choices=("ours", "published"), default=["ours"])
    parser.add_argument("--trainer", choices=("native_ppo", "ppo"), default="native_ppo", help="of a training")
    parser.add_argument("--beside", action="store_true", help="only the speed of libraries, in turn")
    parser.add_argument("--envs", type=int, default=1024, help="environments, with --beside")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    found: dict[str, Any] = {"hardware": hardware.describe(hardware.use_cores(asked.threads)), "speed": {}, "learnt": []}
    if asked.beside:
        found["speed"] = beside(asked.envs, asked.rounds, asked.threads)
    for name, options in SIZES.items() if not asked.beside else ():
        found["speed"][name] = speed(options, asked.rounds, asked.threads)
    if asked.steps > 0.0:
        found["learnt"] = [
            learn(seed, name, asked.steps, asked.trainer, asked.threads) for name in asked.settings for seed in asked.seeds
        ]
    if asked.json:
        print(json.dumps(found, indent=1))
        return 0
    print(json.dumps(found["hardware"], indent=1))
    for name, row in found["speed"].items():
        print(
            f"{name:18} {row['per_wall_s'] / 1e6:6.3f} M env-steps/s, {row['per_cpu_s'] / 1e6:6.3f} M per processor second"
            f"  {row.get('package', '')}"
        )
    for row in found["learnt"]:
        print(
            f"{row['trainer']}, {row['settings']}, seed {row['seed']}: {row['env_steps'] / 1e6:.0f} M steps"
            f" in {row['training_wall_s']:.0f} s"
            f" ({row['training_cpu_s']:.0f} s of processor), {row['lost_percent']:.1f} % lost,"
            f" mean {row['mean_error_m']:.3f} m, median {row['median_error_m']:.3f} m"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
