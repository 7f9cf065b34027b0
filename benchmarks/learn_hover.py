"""How long learning to hover takes, and how well it is learnt: every seed of every vehicle, on the evaluation's starts.

    python benchmarks/learn_hover.py                        a minute on two quiet cores
    python benchmarks/learn_hover.py --randomize default    drawn vehicles and late commands; some minutes

Time is that of the learning alone, without import, compilation and evaluation. On a machine that does other things, too, read
the processor's seconds: wall time is then that of the queue.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from airworthy.learning.gradient import GradientTraining
from airworthy.learning.gradient.config import HoverConfig
from airworthy.learning.gradient.evaluation import AS_IT_IS, DRAWN, HoverCondition, HoverProtocol, figures, fly_hover
from airworthy.learning.gradient.flyers import LearntPolicy
from airworthy.vehicles import named_vehicle
from benchmarks import hardware

VEHICLES = ("tinyprop", "cf2x_L250", "carl", "x500", "lmf2")
"""Of the acceptance list: 33 g to 1.7 kg."""
LATE = (HoverCondition(delay_s=0.02), HoverCondition(drawn=DRAWN), HoverCondition(delay_s=0.02, drawn=DRAWN))
"""Flown besides where vehicles are drawn."""


def measure(name: str, config: HoverConfig, seed: int, protocol: HoverProtocol) -> dict[str, Any]:
    """Train one seed and judge it."""
    item, options = named_vehicle(name), config.options(seed)
    training = GradientTraining(item, options)
    training.window.prepare(options.keep)
    wall, cpu = time.perf_counter(), time.process_time()
    while not training.finished:
        training.step()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    policy, found = LearntPolicy.of(training), []
    for condition in (AS_IT_IS, *(LATE if options.randomization.any else ())):
        flown = figures(fly_hover(item, policy, protocol, options.start, protocol.flights, condition))
        found.append({name: flown[name] for name in ("kept_percent", "median_error_m", "p95_error_m")})
    return {"vehicle": name, "seed": seed, "wall_s": wall, "cpu_s": cpu, "env_steps": training.env_steps, "flown": found}


def _cell(found: dict[str, Any]) -> str:
    error = found["median_error_m"]
    return f"{found['kept_percent']:6.2f} {'inf' if error is None else f'{100.0 * error:.2f}':>5}"


def main(argv: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vehicles", nargs="+", default=list(VEHICLES))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--randomize", nargs="*", default=[], help="as of airworthy train hover")
    parser.add_argument("--iterations", type=int, default=None)
    parser.add_argument("--flights", type=int, default=1024)
    parser.add_argument("--json", type=Path, default=None, help="write all figures to this file")
    given = parser.parse_args(argv)
    config = HoverConfig(randomize=tuple(given.randomize), iterations=given.iterations)
    about = hardware.describe(hardware.use_cores(2))
    print(json.dumps(about))
    heads = ["as it is", "20 ms late", "drawn", "drawn, 20 ms late"][: 4 if config.randomization.any else 1]
    print("vehicle          seed   wall s  CPU s   " + "   ".join(f"{head}: kept %, median cm" for head in heads))
    rows = []
    for name in given.vehicles:
        for seed in range(given.seeds):
            rows.append(measure(name, config, seed, HoverProtocol(flights=given.flights)))
            row = rows[-1]
            cells = "   ".join(_cell(found) for found in row["flown"])
            print(f"{name:16} {seed:4} {row['wall_s']:8.2f} {row['cpu_s']:6.2f}   {cells}", flush=True)
    print("medians: " + ", ".join(f"{key} {np.median([row[key] for row in rows]):.2f}" for key in ("wall_s", "cpu_s")))
    if given.json is not None:
        given.json.write_text(json.dumps({"machine": about, "rows": rows}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
