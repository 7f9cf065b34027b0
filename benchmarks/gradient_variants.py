"""Variants of the gradient trainer beside its plain form, on the same starts: a critic at the end of short windows, and memory.

    python benchmarks/gradient_variants.py critic     windows of a second, of a third of one, and of that with a critic
    python benchmarks/gradient_variants.py memory     nothing, past actions, and a GRU, where the mass is unknown

Every training of every seed is printed. Judged as `airworthy train hover` judges, on 1,024 starts of seed 7919 (of the masses:
the first 256). Seconds are the processor's, of the learning alone, one thread.

critic: tinyprop, as it is; each form with several lengths of training. Bars are 99.5 % of flights kept and a median error of
2 cm, and of 10 cm.

memory: flights of masses within 20 % of the record's, drawn in training, where no policy is told which; flown at -20, -10, +10
and +20 %. A policy without memory can only settle between what each mass needs.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ["AIRWORTHY_THREADS"] = "1"

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from airworthy.learning.gradient import GradientOptions, GradientTraining
from airworthy.learning.gradient.evaluation import AS_IT_IS, HoverCondition, HoverProtocol, figures, fly_hover
from airworthy.learning.gradient.flyers import LearntPolicy
from airworthy.simulation import Randomization
from airworthy.vehicles import vehicle

CRITIC: dict[str, tuple[dict[str, Any], tuple[int, ...]]] = {
    "windows of 100": ({}, (250, 500, 1000)),
    "windows of 32": ({"window": 32}, (1500, 3000)),
    "windows of 32 and a critic": ({"window": 32, "critic": True}, (750, 1500, 3000, 6000)),
}
"""Options of each form, and gradient steps of each training."""
MEMORY: dict[str, dict[str, Any]] = {
    "nothing": {},
    "2 past actions": {"history": 2},
    "8 past actions": {"history": 8},
    "GRU of 16": {"hidden": 16, "memory": "gru", "history": 1},
    "GRU of 32": {"memory": "gru", "history": 1},
}
MASSES = (0.8, 0.9, 1.1, 1.2)


def train(name: str, **options: Any) -> tuple[GradientTraining, float]:
    """Return a finished training, and the processor seconds that it learnt for."""
    made = GradientTraining(vehicle(name), GradientOptions(**options))
    made.prepare()
    begun = time.process_time()
    while not made.finished:
        made.step()
    return made, time.process_time() - begun


def judge(made: GradientTraining, flights: int, condition: HoverCondition) -> tuple[float, float]:
    """Share of flights kept [%] and median error [cm]; infinite where half of the flights are lost."""
    policy = LearntPolicy.of(made)
    found = figures(fly_hover(made.vehicle, policy, HoverProtocol(), made.options.start, flights, condition))
    error = found["median_error_m"]
    return float(found["kept_percent"]), np.inf if error is None else 100.0 * float(error)


def critic(seeds: list[int]) -> Iterator[str]:
    """Lines of the table of critics."""
    yield "form                        steps  seed  processor [s]  kept [%]  median error [cm]"
    for form, (options, lengths) in CRITIC.items():
        for steps in lengths:
            for seed in seeds:
                made, seconds = train("tinyprop", seed=seed, iterations=steps, **options)
                kept, error = judge(made, 1024, AS_IT_IS)
                yield f"{form:26}  {steps:5}  {seed:4}  {seconds:13.2f}  {kept:8.2f}  {error:17.2f}"


def memory(name: str, seeds: list[int]) -> Iterator[str]:
    """Lines of the table of memories."""
    yield f"{name}: kept [%] and median error [cm] at each mass"
    yield "remembers       numbers  seed  processor [s]  " + "  ".join(f"{100 * (m - 1):+13.0f} %" for m in (1.0, *MASSES))
    usual = {"env_count": 64, "iterations": 2000, "learning_rate": 1.5e-2, "keep": 0.98}
    for form, options in MEMORY.items():
        for seed in seeds:
            made, seconds = train(name, seed=seed, randomization=Randomization(mass=0.2), **usual, **options)
            cells = []
            for mass in (1.0, *MASSES):
                kept, error = judge(made, 256, HoverCondition("mass", f"{mass:g}", mass=mass))
                cells.append(f"{kept:6.1f}, {error:6.2f}")
            numbers = sum(w.size for w in made.weights)
            yield f"{form:14}  {numbers:7}  {seed:4}  {seconds:13.2f}  " + "  ".join(f"{cell:>15}" for cell in cells)


def main() -> None:
    """Train, fly, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("critic", "memory"))
    parser.add_argument("--vehicle", default="x500", help="of memory")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    given = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}, numpy {np.__version__}", flush=True)
    for line in critic(given.seeds) if given.what == "critic" else memory(given.vehicle, given.seeds):
        print(line, flush=True)


if __name__ == "__main__":
    main()
