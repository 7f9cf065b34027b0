"""How long Fast-Planner and PGO take per replan on one core, beside the published times.

    python benchmarks/planners.py            ten forests each, about a minute
    python benchmarks/planners.py --seeds 3

Forests are those of the public demo: 40 x 20 m, 150 pillars 0.5 to 0.7 m wide, crossed from end to end by a vehicle that is
where its set-points say, in a map that knows all of it. Times are processor times of one thread, per call that made a plan,
without mapping; the parts are those of compiled code.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from airworthy.core.arrays import Array, ArrayBool

os.environ["AIRWORTHY_THREADS"] = "1"

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from airworthy.planners.common.interface import Mission, Motion
from airworthy.planners.fast import FastPlanner
from airworthy.planners.mapping import maps_of_cells
from airworthy.planners.pgo import PgoPlanner
from benchmarks import hardware

SIZE, CELL, PERIOD, LIMIT = (40.0, 20.0, 3.0), 0.1, 0.01, 40.0
PUBLISHED = {"fast": "7.6 (median, search and optimisation; its paper)", "pgo": "10 to 20 (reference of the specification)"}
ACCELERATION = {"fast": 2.0, "pgo": 2.5}


class Stopwatch:
    """Adds up the processor time of calls of a method."""

    def __init__(self, owner: Any, name: str):
        self.total, self._call = 0.0, getattr(owner, name)
        setattr(owner, name, self)

    def __call__(self, *arguments: Any) -> Any:
        begin = time.process_time()
        found = self._call(*arguments)
        self.total += time.process_time() - begin
        return found

    def taken(self) -> float:
        """Since last asked [s]."""
        total, self.total = self.total, 0.0
        return total


def forest(seed: int, ground: float) -> tuple[ArrayBool, Array]:
    """Occupied cells from below the floor to the ceiling, and the pillars (k, 3)."""
    draw, pillars = np.random.default_rng(seed), []
    while len(pillars) < 150:
        p = np.array([draw.uniform(-20.0, 20.0), draw.uniform(-10.0, 10.0), draw.uniform(0.25, 0.35)])
        if min(np.hypot(p[0] - x, p[1]) for x in (-19.0, 19.0)) > 1.0 + p[2]:
            pillars.append(p)
    x, y = ((np.arange(round(s / CELL)) + 0.5) * CELL - 0.5 * s for s in SIZE[:2])
    flat = np.zeros((len(x), len(y)), bool)
    for a, b, r in pillars:
        flat |= (x[:, None] - a) ** 2 + (y[None] - b) ** 2 < r * r
    height = round((SIZE[2] - ground) / CELL) + 1
    cells = np.repeat(flat[..., None], height, axis=2)
    cells[..., : round(-ground / CELL)] = True
    return cells, np.array(pillars)


def parts(planner: Any) -> dict[str, Stopwatch]:
    """Watches on the compiled parts of a planner."""
    if isinstance(planner, FastPlanner):
        return {"search": Stopwatch(planner._search, "run"), "optimisation": Stopwatch(planner._descent, "run")}
    inner = planner._replanner
    return {"roadmap": Stopwatch(inner._roadmaps, "run"), "optimisation": Stopwatch(inner._descent, "run")}


def fly(planner: Any, seed: int) -> tuple[list[dict[str, float]], bool, float]:
    """Return times [ms] of each replan, whether the goal was reached without contact, and planning time per second of flight
    [ms].
    """
    cells, pillars = forest(seed, planner.settings.ground)
    start, goal = np.array([[-19.0, 0.0, 1.0]]), np.array([[19.0, 0.0, 1.0]])
    lower, upper = np.array([[-20.0, -10.0, 0.0]]), np.array([[20.0, 10.0, 3.0]])
    mission = Mission(start, goal, np.array([3.0]), np.array([ACCELERATION[planner.name]]), lower, upper, np.array([seed]))
    maps = maps_of_cells([cells], mission, planner.settings)
    planner.reset(mission)
    watches, rows, spent = parts(planner), [], 0.0
    position, velocity, yaw, clear = start, np.zeros((1, 3)), np.zeros(1), True
    for step in range(int(LIMIT / PERIOD)):
        now = np.array([step * PERIOD])
        turned = np.array([[0.0, 0.0, np.sin(0.5 * yaw[0]), np.cos(0.5 * yaw[0])]])
        begin = time.process_time()
        report = planner.update(Motion(now, position, velocity, turned), maps, np.array([True]))
        wanted = planner.setpoints(now + PERIOD)
        whole = time.process_time() - begin
        spent += whole
        times = {name: 1e3 * watch.taken() for name, watch in watches.items()}
        if report["replans"][0] and step:
            rows.append({"whole call": 1e3 * whole, **times})
        position, velocity, yaw = wanted.position, wanted.velocity, wanted.yaw
        clear &= bool((np.hypot(*(position[0, :2] - pillars[:, :2]).T) > pillars[:, 2]).all() and 0.0 < position[0, 2] < 3.0)
        if np.linalg.norm(position - goal) < 0.5 and np.linalg.norm(velocity) < 0.5:
            return rows, clear, 1e3 * spent / (now[0] + PERIOD)
    return rows, False, 1e3 * spent / LIMIT


def measured(make: Callable[[], Any], seeds: int) -> None:
    """Fly and print."""
    fly(make(), 1000)  # compiles, and fills caches
    flown = [fly(make(), seed) for seed in range(seeds)]
    rows = [row for times, _, _ in flown for row in times]
    name = make().name
    print(f"\n{name}: {sum(ok for _, ok, _ in flown)} of {seeds} arrived without contact, {len(rows)} replans")
    print(f"{'per replan [ms]':<20}{'median':>10}{'95 %':>10}{'most':>10}")
    for part in rows[0]:
        values = np.array([row[part] for row in rows])
        print(f"{part:<20}{np.median(values):>10.2f}{np.quantile(values, 0.95):>10.2f}{values.max():>10.2f}")
    print(f"{'published':<20}{PUBLISHED[name]:>10}")
    print(f"{'per flown second':<20}{np.median([share for _, _, share in flown]):>10.1f} ms of one core, set-points included")


def main() -> None:
    """Measure both planners."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10, help="forests per planner")
    options = parser.parse_args()
    print(json.dumps(hardware.describe(hardware.use_cores(1))))
    for make in (FastPlanner, PgoPlanner):
        measured(make, options.seeds)


if __name__ == "__main__":
    main()
