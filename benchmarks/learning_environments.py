"""Speed of environments of a learning task: steps with reward, reset, randomisation and observation, and a full reset.

python benchmarks/learning_environments.py [--seconds 1.0] [--rounds 5] [--tasks]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from airworthy.learning import VectorTask
from airworthy.learning.environments.tasks import SHIPPED
from airworthy.simulation import Randomization
from benchmarks import hardware

SIZES = (1_024, 4_096, 16_384)
RESET_SIZE = 16_384
SPREAD = Randomization(mass=0.2, inertia=0.3, thrust=0.1, rotor=0.05, lag=0.3)


def environments(count: int, threads: int | None, name: str = "motor_command") -> VectorTask:
    """Return a task, every vehicle drawn anew, ages spread as in training."""
    task = VectorTask(name, count, randomization=SPREAD, threads=threads)
    task.age[:] = np.random.default_rng(0).integers(0, task.task.episode_steps, count)
    return task


def steps_per_second(task: VectorTask, seconds: float) -> float:
    """Env-steps per second over at least `seconds`, by actions about hover, so that flights end by crashes and by time."""
    return stepped(task, seconds, time.perf_counter)


def stepped(task: VectorTask, seconds: float, clock: Callable[[], float]) -> float:
    """Env-steps per second of a clock over at least `seconds` of it."""
    noise = 0.2 * np.random.default_rng(1).normal(size=(8, task.env_count, task.action_count))
    actions = (np.asarray(task.hover_action) + noise).astype(np.float32)
    started, steps = clock(), 0
    while clock() - started < seconds:
        for k in range(16):
            task.step(actions[k % 8])
        steps += 16
    return steps * task.env_count / (clock() - started)


def reset_seconds(task: VectorTask) -> float:
    """Of one full reset, with vehicles and starts drawn."""
    started = time.perf_counter()
    task.reset()
    return time.perf_counter() - started


def measured(call: Callable[[], float], rounds: int) -> tuple[float, float, float]:
    """Median, least and largest of `rounds` calls, after one that warms up."""
    call()
    values = [call() for _ in range(rounds)]
    return statistics.median(values), min(values), max(values)


def main() -> None:
    """Print hardware, versions, command and figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tasks", action="store_true", help="every task instead, 4,096 environments, one thread, CPU time")
    given = parser.parse_args()
    cores = hardware.use_cores(1_000)
    for name, value in hardware.describe(cores).items():
        print(f"{name}: {value}")
    if given.tasks:
        print("\nM env-steps per CPU second, 4,096 environments, one thread: median (least to largest)")
        for shipped in SHIPPED:
            task = environments(4_096, 1, shipped.name)
            middle, least, most = measured(lambda task=task: stepped(task, given.seconds, time.process_time), given.rounds)
            print(f"{shipped.name:31} {middle / 1e6:5.1f} ({least / 1e6:.1f} to {most / 1e6:.1f})")
        return
    print(f"\nmotor_command with reward, reset, randomisation and observation; median of {given.rounds} (least to largest)")
    for threads in sorted({1, len(cores)}):
        for count in SIZES:
            task = environments(count, threads)
            middle, least, most = measured(lambda task=task: steps_per_second(task, given.seconds), given.rounds)
            bar = ", bar 8 M on two quiet cores" if count == 4_096 and threads > 1 else ""
            print(
                f"{threads} threads, {count:6,}: {middle / 1e6:5.1f} M env-steps/s ({least / 1e6:.1f} to {most / 1e6:.1f}){bar}"
            )
        task = environments(RESET_SIZE, threads)
        middle, least, most = (1e3 * x for x in measured(lambda task=task: reset_seconds(task), given.rounds))
        print(f"{threads} threads, reset of {RESET_SIZE:,}: {middle:.1f} ms ({least:.1f} to {most:.1f}), bar 20 ms")


if __name__ == "__main__":
    main()
