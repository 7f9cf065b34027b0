"""What planners decide, number by number: set-points, states and counted work of short flights that follow them exactly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fixtures.snapshots import check_snapshot

from airworthy.planners import EgoPlanner, FastPlanner, Oracle, PgoPlanner, StraightFlight
from airworthy.planners.common.interface import Mission, Motion
from airworthy.planners.mapping import maps_of_cells
from airworthy.planners.sampling_expert import MAP_SETTINGS, SamplingExpert, SamplingSettings
from airworthy.verification.planning.worlds import SightMaps, World

FILE = Path(__file__).parent / "snapshots" / "planners.txt"
SIZE = (20.0, 10.0, 3.0)
WORLDS = [
    World(SIZE, np.array([[-4.0, 0.2, 0.5], [0.5, -0.7, 0.4], [3.0, 0.6, 0.6]])),
    World(SIZE, np.array([[-5.0, -0.4, 0.3]]), (-1.0, -0.2, 2.5)),
]

CELLS = [np.concatenate([world.cells, world.cells[..., -1:]], axis=2) for world in WORLDS]
"""A box of 3 m holds a layer of cells more, about its upper face."""


def mission(count: int, speed: float = 3.0) -> Mission:
    tile = (np.tile(x, (count, 1)) for x in ([-8.0, 0.0, 1.2], [8.0, 0.5, 1.4], WORLDS[0].lower, WORLDS[0].upper))
    start, goal, lower, upper = tile
    return Mission(start, goal, np.full(count, speed), np.full(count, 4.0), lower, upper, np.arange(count) + 3, 5)


PLANNERS: dict[str, Callable[[], Any]] = {
    "straight": StraightFlight,
    "ego": EgoPlanner,
    "fast": FastPlanner,
    "pgo": PgoPlanner,
    "oracle": Oracle,
    "expert": lambda: SamplingExpert(SamplingSettings(samples=64)),
}


SENSITIVE = ("ego", "pgo")
"""Their searches for a least stop where rounding says: of these the first third, roughly."""


@pytest.mark.parametrize("name", PLANNERS)
def test_what_is_decided(name: str) -> None:
    """A second and a half of two flights, in sight of four metres, or knowing all where the planner is privileged."""
    planner, count = PLANNERS[name](), 2
    asked = mission(count)
    planner.reset(asked)
    whole = name in ("oracle", "expert")
    maps: Any = maps_of_cells(CELLS, asked, MAP_SETTINGS) if whole else SightMaps(WORLDS, 4.0)
    position, velocity = asked.start.copy(), np.zeros((count, 3))
    told: dict[str, list[Any]] = {}
    for step in range(10 if name in SENSITIVE else 30):
        now = np.full(count, 0.05 * step)
        if not whole:
            maps.see(position)
        motion = Motion(now, position, velocity, np.tile([0.0, 0.0, 0.0, 1.0], (count, 1)))
        found = planner.update(motion, None if name == "straight" else maps, np.ones(count, bool))
        planner.adopt(np.full(count, 0.01))
        wanted = planner.setpoints(now + 0.05)
        position, velocity = wanted.position, wanted.velocity
        for key, value in {**vars(wanted), **found["work"], "replans": found["replans"], "state": found["state"]}.items():
            told.setdefault(key, []).append(np.array(value, float))
    values = {key: np.array(rows) for key, rows in told.items()}
    if name in SENSITIVE:
        del values["evaluations"]
    rough = 5e-2 if name in SENSITIVE else 1e-3
    check_snapshot(FILE, values, rough, rough, part=name)
    if name != "straight":
        clear = [WORLDS[k].clearance(values["position"][:, k]) for k in range(count)]
        assert min(clear) > 0.1
