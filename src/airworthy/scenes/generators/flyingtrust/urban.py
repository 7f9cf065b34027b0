"""Urban: a regular grid of streets and blocks, buildings in the blocks, and walls, poles and parked cars in the streets.

Buildings are the lots of a block: a block is cut until its pieces are no larger than the largest footprint, and lots are built
on until the wanted coverage is reached. The rest of the objects stands in the streets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np

from airworthy.core.arrays import Array
from airworthy.scenes.generators.flyingtrust.layout import ObstacleLayout, goal_of, start_of
from airworthy.scenes.generators.flyingtrust.parameters import (
    BLOCK,
    BUILDING_HEIGHT,
    CLEAR_RADIUS,
    CONFIGURATIONS,
    COVERAGE,
    FOOTPRINT,
    PARKED,
    POLE_HEIGHT,
    POLE_RADIUS,
    SCENARIOS,
    STREET,
    STREET_WALL,
    URBAN_COUNT,
)

Rectangle = tuple[float, float, float, float]
"""x0, y0, x1, y1 [m]"""
Rng = np.random.Generator
_SETBACK = 0.5
"""Between a lot's edge and its building, so that alleys are at least a metre wide [m]."""
_LEAST = FOOTPRINT[0] + 2.0 * _SETBACK
"""Shortest side of a lot [m]."""
_APART = 0.9
"""Least distance between things in the streets, and between them and buildings [m]."""
_FACADES = ("facade", "brick", "plaster", "concrete")


@dataclass(frozen=True)
class Spans:
    """Blocks along one axis."""

    block: float
    """Length of a whole block [m]."""
    street: float
    """Width of a street [m]."""
    blocks: list[tuple[float, float]]
    """Where they begin and end [m]."""

    def holds(self, at: float) -> bool:
        """Tell whether a coordinate is within a block."""
        return any(a < at < b for a, b in self.blocks)


def object_count(index: int) -> int:
    """Return objects of a configuration, linear in its index."""
    low, high = URBAN_COUNT
    return round(low + (high - low) * (index - 1) / (CONFIGURATIONS - 1))


def draw_urban(index: int, rng: Rng) -> ObstacleLayout | None:
    """Return one district; None where the lots do not give the wanted coverage with few enough buildings."""
    stated, count = SCENARIOS["urban"], object_count(index)
    across, along = _spans(stated.length, rng), _spans(stated.width, rng)
    whole = 0.9 - 0.06 * (index - 1)  # fewer objects cover as much: larger buildings
    wanted = (COVERAGE[0] + (COVERAGE[1] - COVERAGE[0]) * float(rng.random())) * stated.length * stated.width
    lots = [lot for a in across.blocks for b in along.blocks for lot in _lots((a[0], b[0], a[1], b[1]), whole, rng)]
    built = _built(lots, wanted, rng)
    # One after the other: from Python 3.12 on `sum` keeps what rounding drops, and a digest would depend on the version.
    covered = reduce(add, ((x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in built), 0.0)
    share = covered / (stated.length * stated.width)
    if len(built) > count - 5 or not COVERAGE[0] <= share <= COVERAGE[1]:
        return None
    layout = ObstacleLayout("urban")
    for lot in built:
        _building(layout, lot, rng)
    furniture = _furniture(layout, (across, along), built, count - len(built), rng)
    if furniture is None:
        return None
    layout.facts = {"obstacles": float(count), "buildings": float(len(built)), "coverage": share, **furniture}
    layout.facts |= {"block_x_m": across.block, "block_y_m": along.block}
    layout.facts |= {"street_x_m": across.street, "street_y_m": along.street}
    return layout


def _spans(length: float, rng: Rng) -> Spans:
    """Blocks along one axis, streets between them, at a random phase; what reaches over the edge is cut off."""
    # A random phase: streets must not lie in the same place in every district.
    blocks, at = [], -0.5 * length - 20.0 * float(rng.random())
    block = BLOCK[0] + (BLOCK[1] - BLOCK[0]) * float(rng.random())
    street = STREET[0] + (STREET[1] - STREET[0]) * float(rng.random())
    while at < 0.5 * length:
        low, high = max(at, -0.5 * length), min(at + block, 0.5 * length)
        # What the edge leaves of a block may be too narrow for any building.
        if high - low >= _LEAST:
            blocks.append((low, high))
        at += block + street
    return Spans(block, street, blocks)


def _lots(block: Rectangle, whole: float, rng: Rng) -> list[Rectangle]:
    """Cut the longer side of a piece in two while it is too long for a building; else it stays whole that often."""
    x0, y0, x1, y1 = block
    wide, deep = x1 - x0, y1 - y0
    long = max(wide, deep)
    small = long <= FOOTPRINT[1] + 2.0 * _SETBACK
    if long < 2.0 * _LEAST or (small and rng.random() < whole):
        return [block]
    # Around the middle, and never so that a part is too small.
    cut = _LEAST + (long - 2.0 * _LEAST) * (0.35 + 0.3 * float(rng.random()))
    if wide >= deep:
        parts = [(x0, y0, x0 + cut, y1), (x0 + cut, y0, x1, y1)]
    else:
        parts = [(x0, y0, x1, y0 + cut), (x0, y0 + cut, x1, y1)]
    return [lot for part in parts for lot in _lots(part, whole, rng)]


def _built(lots: list[Rectangle], wanted: float, rng: Rng) -> list[Rectangle]:
    """Footprints on lots taken in random order until the wanted area is covered; start and goal stay clear."""
    stated = SCENARIOS["urban"]
    ends = np.stack([start_of(stated), goal_of(stated)])
    built, covered = [], 0.0
    # A shuffle by sorting: stable sorts give the same order on every machine.
    for k in np.argsort(rng.random(len(lots)), kind="stable").tolist():
        x0, y0, x1, y1 = lots[k]
        u = float(rng.random())
        a, b = (_SETBACK + u * min(1.0, 0.25 * (side - _LEAST)) for side in (x1 - x0, y1 - y0))
        footprint = (x0 + a, y0 + b, x1 - a, y1 - b)
        if covered >= wanted or _distance(footprint, ends).min() < CLEAR_RADIUS + 0.05:
            continue
        built.append(footprint)
        covered += (footprint[2] - footprint[0]) * (footprint[3] - footprint[1])
    return built


def _distance(rectangle: Rectangle, points: Array) -> Array:
    """Horizontal distance of points to a rectangle, 0 inside."""
    x0, y0, x1, y1 = rectangle
    dx = np.maximum(np.maximum(x0 - points[:, 0], points[:, 0] - x1), 0.0)
    dy = np.maximum(np.maximum(y0 - points[:, 1], points[:, 1] - y1), 0.0)
    return np.asarray(np.hypot(dx, dy))


def _building(layout: ObstacleLayout, lot: Rectangle, rng: Rng) -> None:
    x0, y0, x1, y1 = lot
    height = BUILDING_HEIGHT[0] + (BUILDING_HEIGHT[1] - BUILDING_HEIGHT[0]) * float(rng.random())
    surface = f"{_FACADES[int(rng.random() * len(_FACADES))]}~{int(rng.random() * 5)}"
    size = (x1 - x0, y1 - y0, height)
    layout.box((0.5 * (x0 + x1), 0.5 * (y0 + y1), 0.5 * height), size, "building", surface)


def _furniture(
    layout: ObstacleLayout, grid: tuple[Spans, Spans], built: list[Rectangle], count: int, rng: Rng
) -> dict[str, float] | None:
    """Walls, poles and parked cars, none nearer than `_APART` to anything else; None if they find no room."""
    stated = SCENARIOS["urban"]
    ends = np.stack([start_of(stated), goal_of(stated)])
    taken, placed = list(built), {"walls": 0.0, "poles": 0.0, "parked": 0.0}
    # Sixty trials for each thing: a district that is full refuses rather than loops.
    for _ in range(60 * count):
        if sum(placed.values()) == count:
            return placed
        kind = ("walls", "poles", "parked")[int(rng.random() * 3.0)]
        position = _in_street(grid, kind, rng)
        size, along_x = _size(kind, rng), bool(rng.random() < 0.5)
        if not along_x:
            size = (size[1], size[0], size[2])
        half = (0.5 * size[0], 0.5 * size[1])
        spot = (position[0] - half[0], position[1] - half[1], position[0] + half[0], position[1] + half[1])
        outside = max(abs(spot[0]), abs(spot[2])) > 0.5 * stated.length or max(abs(spot[1]), abs(spot[3])) > 0.5 * stated.width
        if outside or _distance(spot, ends).min() < CLEAR_RADIUS + 0.05 or any(_gap(spot, t) < _APART for t in taken):
            continue
        _put(layout, kind, position, size, rng)
        taken.append(spot)
        placed[kind] += 1.0
    return None


def _in_street(grid: tuple[Spans, Spans], kind: str, rng: Rng) -> tuple[float, float]:
    """Return a place between blocks; cars and poles keep to the edges, walls may stand anywhere that is not built on."""
    stated = SCENARIOS["urban"]
    while True:
        x, y = stated.length * (float(rng.random()) - 0.5), stated.width * (float(rng.random()) - 0.5)
        if kind == "walls" or not (grid[0].holds(x) and grid[1].holds(y)):
            return (x, y)


def _size(kind: str, rng: Rng) -> tuple[float, float, float]:
    """Sizes along and across, and height [m]."""
    u = rng.random(2).tolist()
    if kind == "parked":
        return (PARKED[1], PARKED[0], PARKED[2])
    if kind == "poles":
        radius = POLE_RADIUS[0] + (POLE_RADIUS[1] - POLE_RADIUS[0]) * u[0]
        return (2.0 * radius, 2.0 * radius, POLE_HEIGHT[0] + (POLE_HEIGHT[1] - POLE_HEIGHT[0]) * u[1])
    thick, (short, long), (low, high) = STREET_WALL
    return (short + (long - short) * u[0], thick, low + (high - low) * u[1])


def _put(layout: ObstacleLayout, kind: str, position: tuple[float, float], size: tuple[float, float, float], rng: Rng) -> None:
    x, y = position
    if kind == "poles":
        layout.upright(x, y, 0.5 * size[0], size[2], "pillar", "metal")
        return
    surface = "car_paint" if kind == "parked" else "brick"
    semantic = "object" if kind == "parked" else "wall"
    layout.box((x, y, 0.5 * size[2]), size, semantic, f"{surface}~{int(rng.random() * 5)}")


def _gap(a: Rectangle, b: Rectangle) -> float:
    """Distance between two rectangles, 0 where they overlap."""
    dx = max(a[0] - b[2], b[0] - a[2], 0.0)
    dy = max(a[1] - b[3], b[1] - a[3], 0.0)
    return math.hypot(dx, dy)
