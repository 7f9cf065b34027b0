"""What drawing identified vehicles costs a training: the same, without draws and with them, in turns.

    python benchmarks/identified_draws.py MINE.toml [--task hover] [--updates 8]

MINE.toml is a vehicle of `airworthy vehicles identify`. Each side is a native PPO of 4,096 flights, one thread; updates take
turns, so that what else the machine does meets all alike. The aim is 95 % of the decisions per second (specification of
identification, 11.8). Beside it the environments alone, where every action is that of hover, and a vehicle without its dead
time.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ["AIRWORTHY_THREADS"] = "1"

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from airworthy.learning import VectorTask
from airworthy.learning.native_ppo import NativePpo, PpoOptions
from airworthy.simulation import Randomization
from airworthy.vehicles import Vehicle, read_vehicle

TOGETHER = Randomization(posterior=True)
ENVIRONMENTS = 4096
WARM = 3
"""Updates that do not count: of a young training every flight crashes at once."""


def sides(vehicle: Vehicle) -> dict[str, tuple[Vehicle, Randomization | None]]:
    """Vehicles and draws that are compared."""
    return {
        "without dead time": (replace(vehicle, command_delay=0.0), None),
        "as recorded": (vehicle, None),
        "identified": (vehicle, TOGETHER),
    }


def turns(work: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the best time of each [s], all in turns."""
    best = dict.fromkeys(work, float("inf"))
    for _ in range(rounds):
        for name, call in work.items():
            begun = time.process_time()
            call()
            best[name] = min(best[name], time.process_time() - begun)
    return best


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vehicle")
    parser.add_argument("--task", default="hover")
    parser.add_argument("--updates", type=int, default=8)
    chosen = parser.parse_args()
    vehicle = read_vehicle(chosen.vehicle)
    made = {
        name: VectorTask(chosen.task, ENVIRONMENTS, item, seed=1, randomization=spread, threads=1)
        for name, (item, spread) in sides(vehicle).items()
    }
    hover = {name: np.tile(task.hover_action, (ENVIRONMENTS, 1)) for name, task in made.items()}

    def stepping(name: str) -> Callable[[], object]:
        return lambda: [made[name].step(hover[name]) for _ in range(25)]

    alone = turns({name: stepping(name) for name in made}, 4 * chosen.updates)
    learners = {
        name: NativePpo(
            VectorTask(chosen.task, ENVIRONMENTS, item, seed=1, randomization=spread, threads=1), PpoOptions(seed=1), 1
        )
        for name, (item, spread) in sides(vehicle).items()
    }
    for learner in learners.values():
        for _ in range(WARM):
            learner.update()
    before = {name: learner.env_steps for name, learner in learners.items()}
    training = turns({name: learner.update for name, learner in learners.items()}, chosen.updates)
    print(f"{'':20s} environments alone [M/s]   training [M/s]   of it as recorded")
    for name, learner in learners.items():
        decisions = (learner.env_steps - before[name]) / chosen.updates
        share = training["as recorded"] / training[name]
        print(
            f"{name:20s} {25 * ENVIRONMENTS / alone[name] / 1e6:24.2f} {decisions / training[name] / 1e6:16.3f} {share:18.3f}"
        )


if __name__ == "__main__":
    main()
