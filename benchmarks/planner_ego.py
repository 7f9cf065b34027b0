"""EGO-Planner in its demonstration forests: arrivals, and processor time per call beside the published figure.

    python benchmarks/planner_ego.py                     20 forests, about a minute
    python benchmarks/planner_ego.py --flights 5 --speed 4 --acceleration 6

A call is one of the planner's own: from a start to a trajectory or a failure. Published: 3.3 ms (median of its calls on one
thread), of which about 1 ms is optimisation (planners specification, section 12.8). The forests are known to the flights within
4.5 m, and set-points are followed exactly, so that nothing but the planner is measured; mapping is `benchmarks/mapping.py`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from airworthy.planners.common.search import CellTable
from airworthy.planners.ego import EgoOutcome, EgoPlanner
from airworthy.planners.ego.tries import Questions, ReboundResults, ReboundTries
from benchmarks import hardware
from benchmarks.planner_demo import Flown, Forest, arrived, clearance, fly_ideally
from benchmarks.tables import hardware_table, table

PUBLISHED_MS = 3.3


class Timed(ReboundTries):
    """Tries whose every flight is timed by itself."""

    def __init__(self, tries: ReboundTries):
        self.__dict__.update(tries.__dict__)
        self.seconds: list[float] = []
        self.evaluations: list[int] = []

    def run(self, table: CellTable, q: Questions) -> ReboundResults:
        parts = []
        for i in range(len(q.row)):
            one = Questions(**{name: value[i : i + 1] for name, value in vars(q).items()})
            begin = time.thread_time()
            parts.append(super().run(table, one))
            self.seconds.append(time.thread_time() - begin)
            self.evaluations.append(int(parts[-1].evaluations[0]))
        return ReboundResults(**{name: np.concatenate([vars(p)[name] for p in parts]) for name in vars(parts[0])})


def demonstrate(flights: int, speed: float, acceleration: float) -> dict[str, Any]:
    """Fly the forests of seeds 0 to `flights` - 1."""
    forest, seeds, planner = Forest(), list(range(flights)), EgoPlanner()
    task = forest.mission(seeds, speed, acceleration)
    first = forest.mission(seeds[:1], speed, acceleration)
    fly_ideally(planner, first, forest.maps(seeds[:1], first), 0.5)  # compile
    timed = Timed(planner._tries)
    planner._tries = timed
    seconds = 35.0 * 2.0 / speed
    flown = fly_ideally(planner, task, forest.maps(seeds, task), seconds)
    found = arrived(flown, task, forest, seeds)
    return {**_flights(flown, task.goal, forest, seeds, found), **_calls(planner, timed, flown, seconds * flights)}


def _flights(flown: Flown, goal: Array, forest: Forest, seeds: list[int], found: ArrayBool) -> dict[str, Any]:
    near = np.linalg.norm(flown.path - goal[:, None], axis=-1) < 0.5
    return {
        "arrived": int(found.sum()),
        "flights": len(seeds),
        "time_median_s": float(np.median(np.argmax(near, axis=1)[found] * 0.01)) if found.any() else None,
        "least_clearance_m": min(clearance(flown.path[i], *forest.pillars(s)) for i, s in enumerate(seeds)),
        "replans_per_flight": float(flown.replans.mean()),
    }


def _calls(planner: EgoPlanner, timed: Timed, flown: Flown, flown_seconds: float) -> dict[str, Any]:
    ms = 1e3 * np.array(timed.seconds)
    return {
        "calls": len(ms),
        "calls_that_failed": int(planner.outcomes.sum() - planner.outcomes[:, EgoOutcome.FOUND].sum()),
        "call_median_ms": float(np.median(ms)),
        "call_p95_ms": float(np.percentile(ms, 95)),
        "published_median_ms": PUBLISHED_MS,
        "evaluations_per_call": sum(timed.evaluations) / len(ms),
        "expansions_per_call": float(flown.work["expansions"].sum() / len(ms)),
        "core_seconds_per_flown_second": flown.thinking / flown_seconds,
    }


def main() -> None:
    """Print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flights", type=int, default=20)
    parser.add_argument("--speed", type=float, default=2.0, help="cap [m/s]")
    parser.add_argument("--acceleration", type=float, default=3.0, help="cap [m/s^2]")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    cores = [0]
    found = {**demonstrate(asked.flights, asked.speed, asked.acceleration), "hardware": hardware.describe(cores)}
    if asked.json:
        print(json.dumps(found, indent=2))
        return
    print(hardware_table(found.pop("hardware")))
    rows = [(name, f"{value:.4g}" if isinstance(value, float) else str(value)) for name, value in found.items()]
    print(table("EGO-Planner, 40 x 40 m, 200 pillars at least 1.2 m apart", ("figure", "found"), rows))


if __name__ == "__main__":
    main()
