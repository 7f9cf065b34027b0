"""What one counted unit of planning costs on one core: the constants of the compute model "fixed".

    python benchmarks/compute_costs.py            about two minutes
    python benchmarks/compute_costs.py --repeats 3

Each unit is measured where the planners spend it: compiled searches and optimisations in the demonstration forests of
`benchmarks/planners.py` and `benchmarks/planner_ego.py`, the network, the rays and the shield of NavRL on inputs like those of
a flight. Times are processor times of one thread over many calls, batch 1, compilation left out; printed are the median over
repeats, the least and the most. `src/airworthy/pilots/planning/compute_costs.toml` holds them, rounded to two digits.
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

os.environ["AIRWORTHY_THREADS"] = "1"

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from airworthy.planners.common.depth_input import recorded_costs
from airworthy.planners.common.interface import MapSettings, Mission
from airworthy.planners.common.search import CellTable, SearchMemory, find_paths
from airworthy.planners.ego import EgoPlanner
from airworthy.planners.fast import FastPlanner
from airworthy.planners.known_free import KnownFreeSettings, RouteSettings
from airworthy.planners.known_free.candidates import candidates
from airworthy.planners.known_free.known_space import CellSource, Certifier, KnownSpace, ball_cells, merge, ring_nodes
from airworthy.planners.known_free.limits import limits_of
from airworthy.planners.known_free.route import RouteSearches
from airworthy.planners.mapping import maps_of_cells
from airworthy.planners.mapping.maps import CellMaps
from airworthy.planners.navrl.network import load_network
from airworthy.planners.navrl.planner import goal_frames, ray_directions, scan_ranges
from airworthy.planners.navrl.shield import height_planes, shielded, spheres_of_scan
from airworthy.planners.pgo import PgoPlanner
from benchmarks import hardware, planners
from benchmarks.planner_demo import Forest, fly_ideally
from benchmarks.planner_ego import Timed
from benchmarks.tables import hardware_table, table

CALLS, EXPANSIONS = 200, 300_000
"""Of cheap things, and of A*, per repeat."""
Costs = dict[str, float]


def spent(call: Callable[[], Any], times: int = 1) -> float:
    """Processor time of one call [s]."""
    begin = time.process_time()
    for _ in range(times):
        call()
    return (time.process_time() - begin) / times


def forest_maps(seed: int) -> tuple[CellMaps, Mission]:
    """All of a forest of 40 x 20 m as one flight's map."""
    settings = MapSettings()
    cells, _ = planners.forest(seed, settings.ground)
    start, goal = np.array([[-19.0, 0.0, 1.0]]), np.array([[19.0, 0.0, 1.0]])
    lower, upper = np.array([[-20.0, -10.0, 0.0]]), np.array([[20.0, 10.0, 3.0]])
    mission = Mission(start, goal, np.array([4.0]), np.array([6.0]), lower, upper, np.array([seed]))
    return maps_of_cells([cells], mission, settings), mission


def grid_search(seed: int) -> Costs:
    """Return A* across a forest, 8 m each, from anywhere to anywhere."""
    maps, mission = forest_maps(seed)
    rng, memory, table = np.random.default_rng(seed), SearchMemory(), CellTable(maps, mission, [0], 0.1)
    expansions, seconds = 0, 0.0
    while expansions < EXPANSIONS:
        start = rng.uniform((-11.0, -9.0, 0.8), (11.0, 9.0, 1.5))
        goal = start + rng.choice((-8.0, 8.0)) * np.array([1.0, 0.0, 0.0])
        begin = time.process_time()
        expansions += find_paths(table, [0], [start], [goal], memory=memory)[0].expansions
        seconds += time.process_time() - begin
    return {"expansions": seconds / expansions}


def ego_evaluations(seed: int, expansion: float) -> Costs:
    """Return calls of EGO-Planner as they come, without what their searches take by `expansion` [s]."""
    forest, planner = Forest(), EgoPlanner()
    task = forest.mission([seed], 4.0, 6.0)
    timed = Timed(planner._tries)
    planner._tries = timed  # type: ignore[assignment]
    flown = fly_ideally(planner, task, forest.maps([seed], task), 16.0)
    searching = expansion * float(flown.work["expansions"].sum())
    return {"evaluations (EGO-Planner)": (sum(timed.seconds) - searching) / sum(timed.evaluations)}


def forest_planner(planner: Any, seed: int, names: dict[str, str]) -> Costs:
    """Compiled parts of Fast-Planner or PGO, by what they count."""
    watches, counted, think = planners.parts(planner), dict.fromkeys(names, 0.0), planner.update

    def update(*arguments: Any) -> Any:
        report = think(*arguments)
        for kind in counted:
            counted[kind] += float(report["work"][kind][0])
        return report

    planner.update = update
    planners.fly(planner, seed)
    return {f"{kind} ({planner.name})": watches[part].taken() / counted[kind] for kind, part in names.items()}


def policy(seed: int) -> Costs:
    """NavRL: one look through the map, one inference, one shield."""
    maps, task = forest_maps(seed)
    rng, network = np.random.default_rng(seed), load_network()
    frames = goal_frames(task.start, task.goal)
    directions = ray_directions(frames)
    place, ceiling = np.zeros(1, np.int64), np.array([3.0])
    position = rng.uniform((-15.0, -6.0, 1.0), (15.0, 6.0, 1.0))[None]
    rays = spent(lambda: scan_ranges(maps, place, position, directions, ceiling), CALLS)
    state, scan = rng.uniform(-1.0, 1.0, (1, 8)), rng.uniform(0.0, 4.0, (1, 36, 4))
    inference = spent(lambda: network.forward(state, scan), CALLS)
    ranges = scan_ranges(maps, place, position, directions, ceiling)[0]
    points = ranges[ranges < 4.0][:, None] * directions[0][ranges < 4.0]
    found = spheres_of_scan(points)
    planes = height_planes(1.0, 0.0, 0.7, 1.3)
    shield = spent(lambda: shielded(np.array([2.0, 0.0, 0.0]), spheres_of_scan(points), planes), CALLS // 10)
    return {"rays": rays / directions[0, ..., 0].size, "inferences": inference, "spheres": shield / max(len(found), 1)}


def known_free(seed: int) -> Costs:
    """Flight in known free space: a route through half a forest that was seen, balls along it, candidates in the open."""
    cells, _ = planners.forest(seed, 0.0)
    drawn = np.where(cells, 8000, -8000).astype(np.int16)
    drawn[cells.shape[0] // 2 :] = -20000  # nobody has looked there
    side = np.array(drawn.shape, np.int32)
    space = KnownSpace(np.array([-20.0, -10.0, 0.0]), side, 0.1, ball_cells(0.3, 0.1), ring_nodes(0.6, 1.0, 0.1))
    merge(
        [space], [CellSource(drawn.reshape(-1), side, np.zeros(3, np.int32), np.zeros(3, np.int32), side)], -9000, -4000, 4000
    )
    box = np.array([[-19.6, -9.6, 0.45], [19.6, 9.6, 2.5]])
    start, goal = np.array([-19.0, 0.0, 1.0]), np.array([19.0, 0.0, 1.0])
    searches, certifier = RouteSearches(RouteSettings(weight=1.0)), Certifier()
    expansions = searches.find(space, start, goal, box, 0.15).expansions
    route = spent(lambda: searches.find(space, start, goal, box, 0.15), 10) / expansions
    paths = list(np.random.default_rng(seed).uniform((-19.0, -9.0, 0.5), (-1.0, 9.0, 1.5), (300, 3))[:, None])
    certificate = spent(lambda: certifier.check(space, box, paths, 0.31, 0.305), CALLS) / len(paths)
    line = np.stack([0.1 * np.arange(60), np.zeros(60), np.ones(60)], 1)
    one = limits_of(forest_maps(seed)[1], KnownFreeSettings()).of(0)
    state = np.array([line[0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    tried = candidates(state, line, 48, one, False).tried
    polynomial = spent(lambda: candidates(state, line, 48, one, False), CALLS) / tried
    return {"route_expansions": route, "certificates": certificate, "polynomials": polynomial}


def once(seed: int) -> Costs:
    """Every cost [s], one draw of places."""
    found = grid_search(seed)
    found |= ego_evaluations(seed, found["expansions"])
    found |= forest_planner(FastPlanner(), seed, {"kino_expansions": "search", "evaluations": "optimisation"})
    found |= forest_planner(PgoPlanner(), seed, {"samples": "roadmap", "evaluations": "optimisation"})
    return found | policy(seed) | known_free(seed)


def measured(repeats: int) -> dict[str, list[float]]:
    """Costs [s] of every repeat, by kind; the first, which compiles, is left out."""
    once(1000)
    rows = [once(seed) for seed in range(repeats)]
    return {kind: [row[kind] for row in rows] for kind in rows[0]}


def main() -> None:
    """Print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    cores = hardware.use_cores(1)
    found, recorded = measured(options.repeats), recorded_costs()
    if options.json:
        print(json.dumps({"seconds": found, "hardware": hardware.describe(cores)}, indent=2))
        return
    print(hardware_table(hardware.describe(cores)))
    rows = [
        (kind, *(f"{1e6 * value:.3g}" for value in (np.median(times), min(times), max(times))), _recorded(kind, recorded))
        for kind, times in found.items()
    ]
    print(table("one unit [microseconds]", ("kind", "median", "least", "most", "recorded"), rows))


def _recorded(kind: str, costs: Costs) -> str:
    value = costs.get(kind.split(" (", maxsplit=1)[0])
    return "" if value is None else f"{1e6 * value:.3g}"


if __name__ == "__main__":
    main()
