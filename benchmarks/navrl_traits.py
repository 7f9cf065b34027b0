"""NavRL's traits as figures: how fast it flies, to which side it turns, which heights it uses, and where that comes from.

    python benchmarks/navrl_traits.py                            three vehicles, ten layouts, three scenarios, both wrappers
    python benchmarks/navrl_traits.py --layouts 3 --scenarios forest sudden_drop

The paper says of it: it flies at about 1 m/s whatever the vehicle, avoids to the right only, makes no manoeuvre in height, and
is as good on weak vehicles as on agile ones. The wrapper `faithful` is to show that; `full_3d`, the same weights with their
vertical commands kept, what of it is the wrapper's. The second part is an experiment without vehicle, camera and controller: a
single pillar that stands on the way or beside it, known within 6 m, and set-points that are followed exactly.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import Array

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from airworthy.benchmarks.navigation.config import Flight, NavigationConfig
from airworthy.benchmarks.navigation.fly_batch import fly_flights
from airworthy.benchmarks.navigation.methods import method_of
from airworthy.planners.common.interface import Mission
from airworthy.planners.navrl import NavRL, NavRLSettings
from benchmarks.planner_demo import fly_ideally
from benchmarks.planner_maps import SolidMaps, mission, pillars
from benchmarks.tables import table

WRAPPERS = {"faithful": "navrl", "full_3d": "navrl_full_3d"}
VEHICLES = ("real_09", "real_04", "virt_05")
"""Thrust to weight 1.4, 6.0 and 4.6, roll acceleration 56, 227 and 1083 rad/s^2: weak, middle, agile."""
SCENARIOS = ("forest", "random_cylinder", "sudden_drop")
RATE = 100.0
"""Of the tracks [Hz]."""
ASIDE, LEAST = np.radians(30.0), 0.4
"""It avoids where it flies this far off the direction to the goal for so long [s]."""
SLOW = 0.3
"""Below this speed it has no direction [m/s]."""
OFFSETS = (0.1, 0.25, 0.5, 0.75)
"""Of the pillar to either side of the line [m]."""
PILLAR, INFLATED = 0.4, 0.15
"""Radius of the pillar, and by how much NavRL's map grows it beyond the one cell of `SolidMaps` [m]."""
SIGHT = 6.0
"""Within which the pillar is known [m]: more than the 4 m that rays reach."""
TALLY = ("left", "right")


@dataclass(frozen=True)
class Flown:
    """What is told of one flight."""

    vehicle: str
    scenario: str
    success: bool
    cause: str
    speed_mean: float
    speed_top: float
    lowest: float
    highest: float
    sides: tuple[str, ...]
    """Of its avoidance manoeuvres, in order."""


def main() -> int:
    """Print the tables, or JSON."""
    given = _options()
    begin = time.process_time()
    flown = {wrapper: _flown(word, given) for wrapper, word in WRAPPERS.items()}
    passed = {wrapper: pillar_passed(wrapper) for wrapper in WRAPPERS}
    if given.json:
        told = {wrapper: [vars(item) for item in items] for wrapper, items in flown.items()}
        print(json.dumps({"flights": told, "pillar": passed, "seconds": time.process_time() - begin}))
        return 0
    print(table("Traits over all flights", ("", *WRAPPERS), _traits(flown)))
    print(table("Success [%]", ("wrapper, scenario", *given.vehicles, "all", "spread"), _rates(flown, given)))
    print(table("Why flights failed", ("wrapper, scenario, cause", "flights"), _causes(flown)))
    heads = ("wrapper, pillar left of the line by [m]", "passed it at its", "nearest [m]", "heights [m]")
    print(table("One pillar, known, followed exactly", heads, _passes(passed)))
    print(f"\n{time.process_time() - begin:.0f} s of processor time")
    return 0


def _options() -> argparse.Namespace:
    shown = argparse.ArgumentDefaultsHelpFormatter
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0], formatter_class=shown)
    parser.add_argument("--vehicles", nargs="+", default=list(VEHICLES), help="of the catalogue")
    parser.add_argument("--scenarios", nargs="+", default=list(SCENARIOS), help="of the benchmark")
    parser.add_argument("--layouts", type=int, default=10, choices=range(1, 11), metavar="1..10", help="of each scenario")
    parser.add_argument("--json", action="store_true", help="every flight and pass")
    return parser.parse_args()


# ---- flights ----------------------------------------------------------------------------------------------------------


def _flown(word: str, given: argparse.Namespace) -> list[Flown]:
    """Every vehicle in every layout by the benchmark's own rules, scenario by scenario."""
    config, who, found = NavigationConfig(pilots=(word,)), method_of(word), []
    for scenario in given.scenarios:
        flights = [Flight(scenario, k, name) for k in range(1, given.layouts + 1) for name in given.vehicles]
        done = fly_flights(flights, who, config, keep_track=True)
        assert done.track is not None
        for k, flight in enumerate(flights):
            outcome = str(done.watch.outcome[k])
            cause = done.cause[k] or outcome.replace("_", " ")
            motion = _motion(done.track.path(k), done.mission.goal[k])
            found.append(Flown(flight.vehicle, scenario, outcome == "success", cause, *motion))
    return found


def _motion(path: Array, goal: Array) -> tuple[float, float, float, float, tuple[str, ...]]:
    """Mean and top speed, least and largest height, sides of avoidance."""
    velocity = np.diff(path, axis=0) * RATE
    speed = np.linalg.norm(velocity, axis=1)
    sides = manoeuvres(path[:-1], velocity, goal)
    return float(speed.mean()), float(speed.max()), float(path[:, 2].min()), float(path[:, 2].max()), sides


def manoeuvres(path: Array, velocity: Array, goal: Array) -> tuple[str, ...]:
    """Sides to which a path (n, 3) leaves the direction to the goal, one per manoeuvre, of at least `LEAST` seconds."""
    to_goal = (goal - path)[:, :2]
    cross = to_goal[:, 0] * velocity[:, 1] - to_goal[:, 1] * velocity[:, 0]
    angle = np.arctan2(cross, np.sum(to_goal * velocity[:, :2], axis=1))
    moves = np.linalg.norm(velocity[:, :2], axis=1) > SLOW
    side = np.where(moves & (np.abs(angle) > ASIDE), np.sign(angle), 0.0)
    change = np.flatnonzero(np.diff(np.concatenate([[0.0], side, [0.0]])))
    found = []
    for first, last in pairwise(change):
        if side[first] and last - first >= LEAST * RATE:
            found.append(TALLY[0] if side[first] > 0.0 else TALLY[1])
    return tuple(found)


def _traits(flown: dict[str, list[Flown]]) -> list[tuple[str, ...]]:
    def row(name: str, tell: Any) -> tuple[str, ...]:
        return (name, *(tell(items) for items in flown.values()))

    def right(items: list[Flown]) -> str:
        sides = [side for item in items for side in item.sides]
        return f"{100 * sides.count('right') / len(sides):.0f} % of {len(sides)}" if sides else "none"

    return [
        row("flights", lambda items: str(len(items))),
        row("mean speed [m/s]", lambda items: f"{np.mean([i.speed_mean for i in items]):.2f}"),
        row("mean speed of those that arrived", lambda items: _mean([i.speed_mean for i in items if i.success])),
        row("top speed [m/s]", lambda items: f"{max(i.speed_top for i in items):.2f}"),
        row("avoidance to the right", right),
        row("height flown, middle flight [m]", lambda items: f"{np.median([i.highest - i.lowest for i in items]):.2f}"),
        row("largest in any flight", lambda items: f"{max(i.highest - i.lowest for i in items):.2f}"),
    ]


def _mean(values: list[float]) -> str:
    return f"{np.mean(values):.2f}" if values else "none"


def _rates(flown: dict[str, list[Flown]], given: argparse.Namespace) -> list[tuple[str, ...]]:
    rows = []
    for wrapper, items in flown.items():
        for scenario in given.scenarios:
            mine = [item for item in items if item.scenario == scenario]
            rates = [100.0 * np.mean([i.success for i in mine if i.vehicle == name]) for name in given.vehicles]
            rows.append((f"{wrapper}, {scenario}", *(f"{r:.0f}" for r in (*rates, np.mean(rates), max(rates) - min(rates)))))
    return rows


def _causes(flown: dict[str, list[Flown]]) -> list[tuple[str, ...]]:
    counts: dict[str, int] = {}
    for wrapper, items in flown.items():
        for item in items:
            if not item.success:
                key = f"{wrapper}, {item.scenario}, {item.cause}"
                counts[key] = counts.get(key, 0) + 1
    return [(key, str(count)) for key, count in counts.items()]


# ---- one pillar -------------------------------------------------------------------------------------------------------


def pillar_passed(wrapper: str) -> list[dict[str, Any]]:
    """Twelve metres with a pillar in the middle, at `OFFSETS` to either side: which side it takes, how near, how high."""
    offsets = sorted({0.0, *OFFSETS, *(-offset for offset in OFFSETS)}, reverse=True)
    task = _task(len(offsets))
    box = (task.lower[0].tolist(), task.upper[0].tolist())
    grids = [pillars(np.array([[0.0, y]]), np.array([PILLAR + INFLATED]), *box) for y in offsets]
    planner = NavRL(NavRLSettings(wrapper=wrapper))  # type: ignore[arg-type]
    flown = fly_ideally(planner, task, SolidMaps(grids, task, SIGHT), 9.0)
    return [_pass(flown.path[k], y) for k, y in enumerate(offsets)]


def _task(count: int) -> Mission:
    start, goal = (np.tile((x, 0.0, 1.0), (count, 1)) for x in (-6.0, 6.0))
    return mission(start, goal, (-10.0, -8.0, 0.0), (10.0, 8.0, 3.0), 4.0, 6.0)


def _pass(path: Array, offset: float) -> dict[str, Any]:
    gap = np.linalg.norm(path[:, :2] - [0.0, offset], axis=1) - PILLAR
    beyond = np.flatnonzero(path[:, 0] > 0.0)
    side = "" if not len(beyond) else TALLY[0] if path[beyond[0], 1] > offset else TALLY[1]
    heights = [float(path[:, 2].min()), float(path[:, 2].max())]
    return {"offset_m": offset, "side": side, "clearance_m": float(gap.min()), "heights_m": heights}


def _passes(passed: dict[str, list[dict[str, Any]]]) -> list[tuple[str, ...]]:
    return [
        (
            f"{wrapper}, {item['offset_m']:+.2f}",
            item["side"] or "never",
            f"{item['clearance_m']:.2f}",
            " to ".join(f"{h:.2f}" for h in item["heights_m"]),
        )
        for wrapper, items in passed.items()
        for item in items
    ]


if __name__ == "__main__":
    raise SystemExit(main())
