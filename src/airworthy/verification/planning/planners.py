"""The planners' acceptance list (specification of the planners, section 12), measured.

EGO-Planner past a pillar and through a gap, and the published forests: items 4 and 5 of the planners' acceptance list.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from airworthy.benchmarks.navigation.replay import planning_times
from airworthy.core.arrays import Array
from airworthy.core.random import flight_key
from airworthy.planners.ego import EgoPlanner
from airworthy.planners.fast import FastPlanner
from airworthy.planners.fast.search import connection, cost_of_time, least_cost
from airworthy.planners.pgo import RoadmapSettings
from airworthy.planners.pgo.roadmap import Question, Roadmaps
from airworthy.planners.pgo.roadmap_twin import Visibility
from airworthy.verification.planning.costs import cost_figures, network_figures, shield_figures, usable_network
from airworthy.verification.planning.maps import map_figures, twin_figures
from airworthy.verification.planning.worlds import World, follow, forest, mission_of
from airworthy.verification.published import Figure, below, zero

__all__ = ["DEMOS", "demo_figure", "ego_figures", "path_figures", "planner_figures", "search_figures", "time_figures"]


BOX = (16.0, 8.0, 2.0)
START, GOAL = np.array([-6.0, 0.0, 1.0]), np.array([6.0, 0.0, 1.0])
OFFSETS = (0.0, 0.05, -0.05)
"""Of the pillar from the straight way [m]."""
FLIGHT_SPEED, ACCELERATION = 2.0, 3.0
DEMOS: dict[str, dict[str, Any]] = {
    "EGO-Planner": {
        "planner": EgoPlanner,
        "caps": (2.0, 3.0),
        "limit": 40.0,
        "place": {"size": (40.0, 40.0, 3.0), "count": 200, "spacing": 1.2},
        "words": "40 x 40 m, 200 pillars",
    },
    "Fast-Planner": {
        "planner": FastPlanner,
        "caps": (3.0, 2.0),
        "limit": 40.0,
        "place": {"size": (40.0, 20.0, 3.0), "count": 150},
        "words": "40 x 20 m, 150 pillars",
    },
}
"""The public demonstrations; at least 90 % are to arrive."""


def ego_figures() -> Iterator[Figure]:
    """Check a pillar 1 m wide on the way or 5 cm beside it, and a wall with a gap of 2 m whose middle is 2 m to either side."""
    free = World(BOX, np.zeros((0, 3)))
    pillars = [World(BOX, np.array([[0.0, offset, 0.5]])) for offset in OFFSETS]
    walls = [World(BOX, np.zeros((0, 3)), (0.0, low, low + 2.0)) for low in (1.0, -3.0)]
    worlds = [free, *pillars, *walls]
    starts, goals = (np.tile(end, (len(worlds), 1)) for end in (START, GOAL))
    flown = follow(EgoPlanner(), worlds, mission_of(worlds, starts, goals, FLIGHT_SPEED, ACCELERATION), 18.0 / FLIGHT_SPEED)
    last = 1 + len(pillars)
    least = min(world.clearance(path) for world, path in zip(pillars, flown.paths[1:last], strict=True))
    yield Figure("EGO-Planner 4: from a pillar of 1 m ahead, least", least, "at least 0.3", least >= 0.3, "m")
    late = 100.0 * float(np.max(flown.time[1:last] / flown.time[0]) - 1.0)
    yield Figure("EGO-Planner 4: longer than the straight flight, past a pillar", late, "at most 15", late <= 15.0, "%")
    sides = sorted(_side(path, offset) for path, offset in zip(flown.paths[2:last], OFFSETS[1:], strict=True))
    other = sum(a != b for a, b in zip(sides, (-1.0, 1.0), strict=True))
    yield Figure("EGO-Planner 4: sides of a pillar not taken, of 2", float(other), "0", other == 0)
    missed = sum(not _through(path, world) for path, world in zip(flown.paths[last:], walls, strict=True))
    missed += int(np.isnan(flown.time[last:]).sum())
    yield Figure("EGO-Planner 4: walls not passed by their gap, of 2", float(missed), "0", missed == 0)


def _side(path: Array, offset: float) -> float:
    """On which side of a pillar at x = 0 a path passes: 1 on its left."""
    return float(np.sign(np.interp(0.0, path[:, 0], path[:, 1]) - offset))


def _through(path: Array, world: World) -> bool:
    """Tell whether all of a path within the wall's thickness lies in its gap."""
    assert world.wall is not None
    at, low, high = world.wall
    crossing = path[np.abs(path[:, 0] - at) < 0.2, 1]
    return bool(len(crossing) and crossing.min() > low and crossing.max() < high)


def demo_figure(name: str, seeds: int) -> Figure:
    """Return arrivals in a demonstration, set-points followed exactly; a flight that was inside a pillar has not arrived.

    Args:
        name: One of DEMOS.
        seeds: How many forests.
    """
    demo = DEMOS[name]
    made = [forest(seed, **demo["place"]) for seed in range(seeds)]
    worlds = [world for world, _, _ in made]
    starts, goals = (np.array([item[k] for item in made]) for k in (1, 2))
    flown = follow(demo["planner"](), worlds, mission_of(worlds, starts, goals, *demo["caps"]), demo["limit"])
    clear = [world.clearance(path) > 0.0 for world, path in zip(worlds, flown.paths, strict=True)]
    share = 100.0 * float(np.mean(np.isfinite(flown.time) & clear))
    speed, push = demo["caps"]
    label = f"{name} 5: arrivals in the demonstration ({demo['words']}, {speed:g} m/s, {push:g} m/s^2), {seeds} seeds"
    return Figure(label, share, "at least 90", share >= 90.0, "%")


# -----------------------------------------------------------------------------------------------------------------------------
# The least cost between two states, and the cubic that flies it: item 3 of the planners' acceptance list.

WEIGHT, SPEED = 10.0, 3.0
"""Of time in the cost, and the cap [m/s]."""
SAMPLES, SPAN = 60_001, 30.0
"""Of the dense search, and over which time from the least one on [s]: 0.5 ms apart. Between two samples a minimum lies lower by
c'' dt^2 / 8, here some 1e-6 of the cost."""


def search_figures(draws: int = 200) -> Iterator[Figure]:
    """Check random pairs of states, a third of them ending at rest.

    Args:
        draws: How many.
    """
    rng = np.random.default_rng(1)
    above = under = ends = effort = 0.0
    for case in range(draws):
        start, end = ((*rng.uniform(-8.0, 8.0, 3).tolist(), *rng.uniform(-3.0, 3.0, 3).tolist()) for _ in range(2))
        if case % 3 == 0:
            end = (*end[:3], 0.0, 0.0, 0.0)
        found, when = least_cost(start, end, WEIGHT, SPEED)
        least = max(abs(a - b) for a, b in zip(start[:3], end[:3], strict=True)) / (0.5 * SPEED)
        dense = _dense(start, end, least)
        above, under = max(above, found / dense - 1.0), max(under, 1.0 - found / dense)
        gap, spent = _flown(start, end, when)
        ends, effort = max(ends, gap), max(effort, abs(spent / found - 1.0))
    yield below(f"Fast-Planner 3: least cost above a dense search over time, {draws} pairs of states, worst", above, 1e-9)
    yield below("Fast-Planner 3: the same below it, worst", under, 1e-5)
    yield below("Fast-Planner 3: shot off its boundary conditions, position and velocity, worst", ends, 1e-9)
    yield below("Fast-Planner 3: cost of the shot off the least cost, worst, relative", effort, 1e-9)


def _dense(start: tuple[float, ...], end: tuple[float, ...], least: float) -> float:
    times = np.linspace(least, least + SPAN, SAMPLES)
    return float(np.min(cost_of_time(start, end, WEIGHT, times)))  # type: ignore[arg-type]


def _flown(start: tuple[float, ...], end: tuple[float, ...], t: float) -> tuple[float, float]:
    """Return how far the cubic is off both states, and the integral of |a|^2 plus the weight of its time."""
    c = connection(start, end, t)
    powers, slopes = t ** np.arange(4), np.array([0.0, 1.0, 2.0 * t, 3.0 * t * t])
    gaps = np.concatenate([c[:, 0], c[:, 1], c @ powers, c @ slopes]) - np.array([*start, *end])
    a, b = 2.0 * c[:, 2], 6.0 * c[:, 3]
    effort = float((a @ a) * t + (a @ b) * t**2 + (b @ b) * t**3 / 3.0)
    return float(np.abs(gaps).max()), effort + WEIGHT * t


# ---- PGO's ways around pillars, and which of them are one: item 6 of the planners' acceptance list --------------------------

_SIZE = (14.0, 12.0, 3.0)
ONE = World(_SIZE, np.array([[0.0, 0.0, 0.5]]))
TWO = World(_SIZE, np.array([[0.0, -1.0, 0.5], [0.0, 1.0, 0.5]]))
ROW = World(_SIZE, np.array([[-1.2, 0.0, 0.5], [1.2, 0.0, 0.5]]))
_START, _END = np.array([-3.0, 0.0, 1.5]), np.array([3.0, 0.0, 1.5])


def path_figures(seeds: int = 4) -> Iterator[Figure]:
    """Check classes of ways found, the fewest of some roadmaps, and whether equivalence depends on the order.

    Args:
        seeds: Roadmaps per place.
    """
    for world, world_name, fewest in (
        (ONE, "around one pillar", 2),
        (TWO, "around two side by side", 3),
        (ROW, "around two in a row", 3),
    ):
        found = min(_classes(world, seed) for seed in range(seeds))
        aim = "2" if fewest == 2 else "at least 3"
        yield Figure(f"PGO 6: homotopy classes {world_name}, fewest of {seeds} roadmaps", float(found), aim, found >= fewest)
    yield from _equivalence()


def _classes(world: World, seed: int) -> int:
    """Of the ways that a roadmap finds: on which side of each pillar they pass."""
    none = np.zeros((0, 3))
    asked = Question(0, _START, _END, none, none, flight_key(seed, 0), 0)
    paths = Roadmaps(RoadmapSettings()).run([asked], world.window())[0].paths
    return len({tuple(bool(np.interp(x, p[:, 0], p[:, 1]) > y) for x, y, _ in world.pillars) for p in paths})


def _equivalence() -> Iterator[Figure]:
    sight, rng, paths = Visibility(TWO.window().view(0)), np.random.default_rng(0), []
    for _ in range(8):
        along = np.sort(rng.uniform(-2.0, 2.0, 2))
        corners = np.stack([along, rng.uniform(-3.0, 3.0, 2), rng.uniform(0.8, 2.2, 2)], axis=1)
        paths.append(np.concatenate([[_START], corners, [_END]]))
    table = np.array([[sight.equivalent(a, b) for b in paths] for a in paths])
    yield zero("PGO 6: of 64 pairs of paths, judged otherwise the other way round", int(np.sum(table != table.T)))
    # Two ways on the same side of both pillars are one; those between and beyond them are others.
    known_paths = [np.array([_START, [0.0, y, 1.5], _END]) for y in (-2.2, -2.0, 0.0, 2.0)]
    said = np.array([[sight.equivalent(a, b) for b in known_paths] for a in known_paths])
    wanted = np.eye(4, dtype=bool)
    wanted[:2, :2] = True
    yield zero("PGO 6: of 16 pairs of known ways, judged wrongly", int(np.sum(said != wanted)))


# -----------------------------------------------------------------------------------------------------------------------------

SEEDS, ALL_SEEDS = 5, 20
"""Forests of each demonstration."""
TIMED = ("ego", "fast", "pgo")
"""Pilots whose calls are timed."""


def planner_figures(everything: bool = False) -> Iterator[Figure]:
    """Run the checks one after the other; the check values of NavRL are left out without its weights.

    Args:
        everything: 20 forests of each demonstration, ten times the draws, and more flights to time.
    """
    many = 10 if everything else 1
    yield from cost_figures(40 * many)
    yield from twin_figures(4 * many)
    yield from map_figures(2 * many)
    yield from search_figures(200 * many)
    yield from ego_figures()
    for name in DEMOS:
        yield demo_figure(name, ALL_SEEDS if everything else SEEDS)
    yield from path_figures(4 * many)
    if (network := usable_network()) is not None:
        yield from network_figures(network)
    yield from shield_figures(400 * many)
    yield from time_figures(4 if everything else 1)


def time_figures(flights: int) -> Iterator[Figure]:
    """Check the item 8: how long a call in which a planner works takes here, of one flight on one thread, beside what was
    published.

    Args:
        flights: Through the benchmark's forest, whose calls are counted.
    """
    for found in planning_times(TIMED, flights=flights):
        label = f"{found.title} 8: median planning time per call, {found.calls:,} calls"
        yield Figure(label, found.median_ms, f"not judged; published {found.published}", True, "ms")
