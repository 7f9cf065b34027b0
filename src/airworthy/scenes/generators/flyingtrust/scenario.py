"""Configurations of the scenarios, and their scenes."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import SupportsIndex

import numpy as np

from airworthy.core.errors import unknown_name
from airworthy.geometry.grid_path import shortest_path
from airworthy.scenes.generators.flyingtrust.difficulty import TERMS, blocked_cells
from airworthy.scenes.generators.flyingtrust.layout import ObstacleLayout, goal_of, start_of
from airworthy.scenes.generators.flyingtrust.ordering import arrange, drawn, rank_sums
from airworthy.scenes.generators.flyingtrust.parameters import CONFIGURATIONS, RESOLUTION, SCENARIOS, WALL_THICKNESS
from airworthy.scenes.generators.seeding import DAY, DAY_SKY, checked, surfaces, textures_of
from airworthy.scenes.record import Instance, Pose, Region, Scene, Vector3

__all__ = ["Row", "layout_of", "rows", "scene_of", "searched", "solvable"]

# ---- A scene from a layout: ground, closed outer walls, start and goal, surfaces, sky, facts --------------------------------

GROUND: dict[str, tuple[str, str]] = {
    "forest": ("grass", "hedge"),
    "urban": ("asphalt", "concrete~1"),
    "random_cylinder": ("soil", "corrugated"),
    "narrow_gap": ("floor", "concrete"),
    "sudden_drop": ("floor", "concrete"),
    "sudden_drop_plus": ("floor", "concrete"),
    "maze": ("floor", "brick"),
    "perlin": ("soil", "concrete~3"),
}
"""Surfaces of the ground and of the outer walls."""
_SOURCE = "Generated after FLYINGTRUST, arXiv 2510.26588, section on scenarios"
_GROUND_DEPTH = 1.0


def build(layout: ObstacleLayout, index: int, seed: int) -> Scene:
    """Return the scene of one configuration.

    Args:
        layout: Its obstacles and openings.
        index: Of the configuration.
        seed: Of the catalogue.
    """
    stated, name = layout.stated, layout.scenario
    shapes, instances, facts = layout.shapes, layout.instances, layout.facts
    frame = ObstacleLayout(name)
    _ground(frame)
    _outer_walls(frame, layout.openings)
    if layout.voxels is not None:
        frame.add(layout.voxels.mesh(), (0.0, 0.0, 0.0), "voxel", "concrete~3", name="clutter")
    everything: tuple[Instance, ...] = (*frame.instances, *instances)
    materials = surfaces(*sorted({m for item in everything for m in item.materials}))
    start, goal = start_of(stated), goal_of(stated)
    half = (0.5 * stated.length, 0.5 * stated.width)
    stated_facts = {
        "length_m": stated.length,
        "width_m": stated.width,
        "ceiling_m": stated.ceiling,
        "altitude_m": stated.altitude,
    }
    return Scene(
        name=f"{name}:{index}" + (f"@{seed}" if seed else ""),
        shapes={**frame.shapes, **shapes},
        materials=materials,
        textures=textures_of(materials),
        instances=everything,
        lights=DAY,
        sky=DAY_SKY,
        bounds=Region((-half[0], -half[1], 0.0), (half[0], half[1], stated.ceiling)),
        start=Pose((float(start[0]), 0.0, stated.altitude), 0.0),
        goal=Pose((float(goal[0]), 0.0, stated.altitude), 0.0),
        description=f"{name}, configuration {index} of 10, seed {seed}",
        source=_SOURCE,
        facts={"configuration": float(index), "seed": float(seed), **stated_facts, **facts},
    )


def _ground(frame: ObstacleLayout) -> None:
    stated = frame.stated
    size = (stated.length + 2.0 * WALL_THICKNESS, stated.width + 2.0 * WALL_THICKNESS, _GROUND_DEPTH)
    frame.box((0.0, 0.0, -0.5 * _GROUND_DEPTH), size, "ground", GROUND[frame.scenario][0], name="ground")


def _outer_walls(frame: ObstacleLayout, openings: tuple[float, ...]) -> None:
    """Inner faces lie on the edges of the area. `openings`: widths around the centre line at the two short edges."""
    stated, surface, t = frame.stated, GROUND[frame.scenario][1], WALL_THICKNESS
    x, y, h = 0.5 * stated.length, 0.5 * stated.width, stated.height
    for side, name in ((-1.0, "right"), (1.0, "left")):
        center: Vector3 = (0.0, side * (y + 0.5 * t), 0.5 * h)
        frame.box(center, (2.0 * (x + t), t, h), "wall", surface, name=f"outer_{name}")
    gaps = openings or (0.0, 0.0)
    for side, name, gap in ((-1.0, "back", gaps[0]), (1.0, "front", gaps[1])):
        x_wall = side * (x + 0.5 * t)
        if gap == 0.0:
            frame.box((x_wall, 0.0, 0.5 * h), (t, 2.0 * y, h), "wall", surface, name=f"outer_{name}")
            continue
        part = y - 0.5 * gap
        for hand, which in ((-1.0, "right"), (1.0, "left")):
            middle = hand * (0.5 * gap + 0.5 * part)
            frame.box((x_wall, middle, 0.5 * h), (t, part, h), "wall", surface, name=f"outer_{name}_{which}")


# -----------------------------------------------------------------------------------------------------------------------------

DEFAULT_SEED = 0
TABLE = "default_seed.json"
"""The search's result for the default seed, so that it need not be repeated; `tools/prove_scenarios.py --write` renews it."""


@dataclass(frozen=True)
class Row:
    """What the search found about one configuration."""

    draw: tuple[int, int]
    """Index and attempt under which it was drawn."""
    free: bool
    """The straight line is free."""
    terms: tuple[float, ...]
    """Detour, tightness [1/m], occlusion, turn [rad] (`difficulty`)."""
    rank_sum: float


def searched(name: str, seed: int) -> tuple[Row, ...]:
    """Return the ten rows of a seed, by drawing, measuring and arranging: seconds."""
    ten = arrange(name, seed)
    sums = rank_sums([c.difficulty.terms() for c in ten])
    return tuple(
        Row(c.draw, c.free, tuple(round(term, 9) for term in c.difficulty.terms()), float(total))
        for c, total in zip(ten, sums, strict=True)
    )


@lru_cache(maxsize=256)
def rows(name: str, seed: int) -> tuple[Row, ...]:
    """Return the same; those of the default seed are read from the package."""
    known = _table() if seed == DEFAULT_SEED else {}
    return known[name] if name in known else searched(name, seed)


@cache
def _table() -> dict[str, tuple[Row, ...]]:
    text = files("airworthy.scenes.generators.flyingtrust").joinpath(TABLE).read_text(encoding="utf-8")
    return {name: tuple(_row(**row) for row in ten) for name, ten in json.loads(text).items()}


def _row(draw: Sequence[int], free: bool, terms: Sequence[float], rank_sum: float) -> Row:
    return Row((int(draw[0]), int(draw[1])), free, tuple(terms), rank_sum)


def layout_of(name: str, index: SupportsIndex, seed: SupportsIndex = DEFAULT_SEED) -> ObstacleLayout:
    """Return obstacles of a configuration, with their facts.

    The first call for a (name, seed) other than the default seed draws and measures all ten, which takes seconds.

    Args:
        name: One of `SCENARIOS`.
        index: 1 to 10, from easy to difficult.
        seed: 0: the benchmark's own configurations; others are held out.

    Raises:
        UnknownNameError: If there is no such scenario.
        AirworthyError: If index or seed is not an integer, or the index is out of range.
    """
    if name not in SCENARIOS:
        raise unknown_name("scenario", name, SCENARIOS)
    number, seed = checked("index", index, 1, CONFIGURATIONS), checked("seed", seed)
    row = rows(name, seed)[number - 1]
    layout = drawn(name, seed, *row.draw)
    assert layout is not None, (name, seed, row)
    layout.facts.update({f"difficulty_{term}": value for term, value in zip(TERMS, row.terms, strict=True)})
    layout.facts.update(difficulty_rank_sum=row.rank_sum, straight_line_free=float(row.free))
    return layout


def scene_of(name: str, index: SupportsIndex, seed: SupportsIndex = DEFAULT_SEED) -> Scene:
    """Return the scene of a configuration; arguments and errors as `layout_of`.

    Args:
        name: Of the scenario.
        index: Of the configuration.
        seed: Of the catalogue.
    """
    return build(layout_of(name, index, seed), checked("index", index), checked("seed", seed))


# ---- Whether a configuration can be solved: is there a way from start to goal that stays 0.30 m away from obstacles, walls,
# floor and ceiling, on a grid with cells of 0.1 m? `tools/prove_scenarios.py` asks it of all of them.

_LAYER, _CORRIDOR = 4.0, 10.0
"""Height, and width to either side of the line, of the part of the grid that is searched first [m]."""


def solvable(layout: ObstacleLayout, resolution: float = RESOLUTION) -> float:
    """Return the length of the shortest way found on a grid [m], or NaN.

    A way in a part of the area is a way, so parts near the line and near the ground are searched before the whole width and the
    whole height: a grid over a tall scene is large.
    """
    stated, obstacles = layout.stated, layout.obstacles()
    for corridor, top in ((_CORRIDOR, _LAYER), (np.inf, _LAYER), (_CORRIDOR, np.inf)):
        grid, lower = blocked_cells(obstacles, stated, resolution, corridor, top)
        found = shortest_path(grid, resolution, start_of(stated), goal_of(stated), lower=lower)
        if found is not None:
            return found.length
    return math.nan
