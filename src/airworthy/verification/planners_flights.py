"""EGO-Planner past a pillar and through a gap, and the published forests: items 4 and 5 of the planners' acceptance list."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from airworthy.core.arrays import Array
from airworthy.planners.ego import EgoPlanner
from airworthy.planners.fast import FastPlanner
from airworthy.verification.planners_worlds import World, follow, forest, mission_of
from airworthy.verification.published import Figure

__all__ = ["DEMOS", "demo_figure", "ego_figures"]


BOX = (16.0, 8.0, 2.0)
START, GOAL = np.array([-6.0, 0.0, 1.0]), np.array([6.0, 0.0, 1.0])
OFFSETS = (0.0, 0.05, -0.05)
"""Of the pillar from the straight way [m]."""
SPEED, ACCELERATION = 2.0, 3.0
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
    flown = follow(EgoPlanner(), worlds, mission_of(worlds, starts, goals, SPEED, ACCELERATION), 18.0 / SPEED)
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
    """Arrivals in a demonstration, set-points followed exactly; a flight that was inside a pillar has not arrived.

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
