"""How fast gate-to-gate candidates are flown and labelled on this machine.

    python benchmarks/gates.py                          about a minute
    python benchmarks/gates.py --whole --exhaustive     the whole published grid, pruned and exhaustive
    python benchmarks/gates.py --device cuda:0 --whole

"kernel" is the fused flight alone, on rollouts of the search's own mix of lengths; "search" is everything: candidates, limit,
rounds, labels. A step is one control and physics step at 500 Hz with Table I's randomisation. "core" counts processor time of
all threads, which a busy machine changes little; "wall" is what a clock shows.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from airworthy.gates.labels.candidates import candidates
from airworthy.gates.labels.controller_model import make_controller_model
from airworthy.gates.labels.kernel import fly_lanes, make_lanes
from airworthy.gates.labels.labels import Labels, label
from airworthy.gates.labels.options import SearchOptions
from airworthy.gates.labels.situations import PAPER, draw
from benchmarks import hardware


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return what it returned, and its wall and processor time [s]."""
    begin, spent = time.perf_counter(), time.process_time()
    result = work()
    return result, time.perf_counter() - begin, time.process_time() - spent


def kernel(options: SearchOptions, rollouts: int, device: str, repeats: int) -> dict[str, float]:
    """Rates of the fused launch, the best of some."""
    rng = np.random.default_rng(0)
    numbers = np.sort(rng.choice(PAPER.size, min(rollouts, PAPER.size), replace=False))
    e = PAPER.situations(numbers)
    found = candidates(e, options.choices)
    rows, choice = np.nonzero(found.admissible)
    kept = np.sort(rng.choice(len(rows), min(rollouts, len(rows)), replace=False))
    rows, choice = rows[kept], choice[kept]
    controller_model = make_controller_model(options)
    drawn = draw(controller_model, options.randomisation, options.seed, numbers[rows])
    parts = (getattr(found, name)[rows, choice] for name in ("v", "t0", "tf"))
    lanes = make_lanes(e[rows], *parts, drawn, controller_model, options)
    limit = np.full(len(lanes), np.inf)
    steps = int(fly_lanes(lanes, controller_model, options, limit, device)[1].sum())
    tries = [timed(lambda: fly_lanes(lanes, controller_model, options, limit, device))[1:] for _ in range(repeats)]
    wall, core = (min(column) for column in zip(*tries, strict=True))
    rates = {"steps_per_second": steps / wall, "rollouts_per_second": len(lanes) / wall}
    return {
        "rollouts": len(lanes),
        "steps": steps,
        "wall_s": wall,
        "core_s": core,
        **rates,
        "steps_per_core_second": steps / core,
    }


def search(options: SearchOptions, every: int, device: str) -> dict[str, float]:
    """Rates of the whole search, and what the whole grid takes at that rate."""
    numbers = np.arange(0, PAPER.size, every)
    size = 6480 if device == "cpu" else PAPER.size
    parts: list[Labels] = []

    def work() -> None:
        for at in range(0, len(numbers), size):
            part = numbers[at : at + size]
            parts.append(label(PAPER.situations(part), options, part, device))

    label(PAPER.situations([0]), options, device=device)  # compiles
    _, wall, core = timed(work)
    rollouts, steps = (sum(int(getattr(part, name).sum()) for part in parts) for name in ("tried", "steps"))
    rates = {"rollouts_per_second": rollouts / wall, "steps_per_second": steps / wall}
    whole = {"whole_grid_wall_s": wall * every, "whole_grid_core_s": core * every}
    return {"situations": len(numbers), "rollouts": rollouts, "steps": steps, "wall_s": wall, "core_s": core, **rates, **whole}


def main() -> int:
    """Measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollouts", type=int, default=16_384, help="of the kernel's measurement")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--whole", action="store_true", help="search the whole grid instead of every 20th situation")
    parser.add_argument("--exhaustive", action="store_true", help="also without pruning")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    options, every = SearchOptions(), 1 if chosen.whole else 20
    found: dict[str, Any] = {
        "hardware": hardware.describe(sorted(os.sched_getaffinity(0))),
        "kernel": kernel(options, chosen.rollouts, chosen.device, chosen.repeats),
    }
    found["search"] = search(options, every, chosen.device)
    if chosen.exhaustive:
        found["exhaustive"] = search(replace(options, exhaustive=True), every, chosen.device)
    if chosen.json:
        print(json.dumps(found, indent=1))
        return 0
    for name in ("kernel", "search", "exhaustive"):
        for key, value in found.get(name, {}).items():
            print(f"{name:<11} {key:<22} {value:>16,.2f}" if isinstance(value, float) else f"{name:<11} {key:<22} {value:>16,}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
