"""The shell of a hall: walls of trapezoid sheet over a plinth of bricks, a ridged roof with strips of skylight, floor and yard.

Frames: the world's; the floor at z = 0, the ridge along x at y = 0.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array
from airworthy.scenes.buildings.patches import PatchMesh
from airworthy.scenes.warehouses.parts import (
    ASPHALT,
    BRAKED,
    BRICK,
    COATED,
    CONCRETE,
    FLOOR,
    HAZARD,
    LINE,
    PAINT,
    PANE,
    RUSTY,
    SKYLIGHT,
    STAINED,
    TURNED,
    WASHED,
    Color3,
)

__all__ = ["HallMeasures", "HallWall", "Hole", "floor_patches", "roof_patches", "wall_patches", "yard_patches"]

_RIB = 0.25
"""From rib to rib of the sheet [m]."""
_RIB_DEEP = 0.035
_PLINTH = 1.2
"""Height of the plinth [m]."""
_CELL = 1.6
"""Of walls and floor whose shade may change [m]."""
_FLOOR_TILE, _WALL_TILE = 4.0, 3.0
"""Of the materials of floor and sheet [m], as in `surfaces.toml`."""
_LIFT = 0.004
"""What is painted on the floor lies this much higher [m]."""


@dataclass(frozen=True)
class HallMeasures:
    """Of a hall [m]."""

    half_length: float
    half_width: float
    eave: float
    ridge: float
    bay: float
    """From frame to frame along x."""
    brick: bool
    """Whether the plinth is of bricks, not of concrete."""
    sheet: Color3
    """Colour of walls."""
    skylights: tuple[int, ...]
    """Bays that have them."""

    @property
    def frames(self) -> Array:
        """x of the frames, (n,)."""
        count = round(2.0 * self.half_length / self.bay)
        return np.linspace(-self.half_length, self.half_length, count + 1)

    def roof(self, y: float) -> float:
        """Return the height of the roof over a place [m]."""
        return self.ridge - (self.ridge - self.eave) * abs(y) / self.half_width


@dataclass(frozen=True)
class Hole:
    """A rectangle that is left out of a wall [m]: along it and up."""

    u0: float
    u1: float
    v0: float
    v1: float
    pane: bool = False
    """Filled with window panes."""


@dataclass(frozen=True)
class HallWall:
    """An upright plane: where it begins, along which level unit vector it runs, and how long it is [m]; its inside lies to
    the left of that."""

    start: tuple[float, float]
    along: tuple[float, float]
    length: float
    holes: tuple[Hole, ...] = ()

    @property
    def inward(self) -> Array:
        """A level unit vector (3,) into the hall."""
        return np.array([-self.along[1], self.along[0], 0.0])

    def at(self, u: float, v: float, deep: float = 0.0) -> Array:
        """Return the place (3,) `u` along, `v` up and `deep` inwards [m]."""
        base = np.array([self.start[0] + u * self.along[0], self.start[1] + u * self.along[1], v])
        return base + deep * self.inward

    def quad(
        self, patches: PatchMesh, hole: Hole, slot: int, color: Sequence[float] = (1.0, 1.0, 1.0), deep: float = 0.0
    ) -> None:
        """Add a rectangle of this wall that is seen from inside."""
        corners = [
            self.at(u, v, deep) for u, v in ((hole.u1, hole.v0), (hole.u0, hole.v0), (hole.u0, hole.v1), (hole.u1, hole.v1))
        ]
        patches.quad(corners, slot, color)

    def block(self, patches: PatchMesh, hole: Hole, slot: int, color: Sequence[float], deep: tuple[float, float]) -> None:
        """Add a box in front of a rectangle of this wall, from one depth to another."""
        a, b = self.at(hole.u0, hole.v0, deep[0]), self.at(hole.u1, hole.v1, deep[1])
        patches.box(np.minimum(a, b).tolist(), np.maximum(a, b).tolist(), slot, color)


def wall_patches(
    wall: HallWall, measures: HallMeasures, tops: Sequence[tuple[float, float]], rng: np.random.Generator
) -> PatchMesh:
    """Return a wall with its holes, panes in some of them with bars, and a sill.

    Args:
        wall: Where.
        measures: Of the hall.
        tops: Points (u, v) of its upper edge, along it.
        rng: Draws where water has run down the sheet.
    """
    patches = PatchMesh()
    top_u, top_v = np.array(tops).T
    lowest = float(top_v.min())
    for a, b, c, d in _cells(wall, 0.0, _PLINTH):
        slot = BRICK if measures.brick else CONCRETE
        wall.quad(patches, Hole(a, b, c, d), slot, (1.0, 1.0, 1.0), 0.12)
    for hole in _solid(wall, 0.0, _PLINTH):  # the plinth's upper side
        corners = [
            wall.at(hole.u0, _PLINTH, 0.12),
            wall.at(hole.u0, _PLINTH),
            wall.at(hole.u1, _PLINTH),
            wall.at(hole.u1, _PLINTH, 0.12),
        ]
        patches.quad(corners, CONCRETE, (0.8, 0.8, 0.8))
    kinds: dict[tuple[int, int], int] = {}
    for a, b, c, d in _cells(wall, _PLINTH, lowest, _WALL_TILE):
        middle = wall.at(0.5 * (a + b), 0.5 * (c + d))
        key = int(np.floor(middle[0 if wall.along[0] else 1] / _WALL_TILE)), int(np.floor(middle[2] / _WALL_TILE))
        if key not in kinds:
            kinds[key] = (COATED, COATED, COATED, WASHED, RUSTY)[int(rng.random() * 5)]
        _ribs(patches, wall, (a, b), (c, c), (d, d), measures.sheet, kinds[key])
    if float(top_v.max()) > lowest + 1e-6:
        marks = np.arange(0.0, wall.length + 1e-6, _RIB * 4.0)
        for a, b in itertools.pairwise([*marks[:-1], wall.length]):
            high = np.interp([a, b], top_u, top_v)
            _ribs(patches, wall, (a, b), (lowest, lowest), (high[0], high[1]), measures.sheet)
    for hole in wall.holes:
        if hole.pane:
            _window(patches, wall, hole)
    return patches


def _edges(low: float, high: float, marks: Sequence[float]) -> Array:
    """Return where a stretch is cut: at marks, and into cells in between."""
    inner = sorted({low, high, *(float(m) for m in marks if low + 1e-6 < m < high - 1e-6)})
    inner = [a for a, b in itertools.pairwise([*inner, math.inf]) if b - a > 1e-6]
    cut = [np.linspace(a, b, max(int(np.ceil((b - a) / _CELL)), 1) + 1)[:-1] for a, b in itertools.pairwise(inner)]
    return np.array([*np.concatenate(cut), high])


def _cells(wall: HallWall, low: float, high: float, tile: float = 0.0) -> list[tuple[float, float, float, float]]:
    """Return cells (u0, u1, v0, v1) of a band of a wall that lie in no hole, cut where tiles of the world end, if any."""
    along = 0 if wall.along[0] else 1
    first, way = wall.start[along], wall.along[along]
    tiles = np.arange(-30, 31) * tile
    u = _edges(0.0, wall.length, [*(m for h in wall.holes for m in (h.u0, h.u1)), *((tiles - first) * way if tile else ())])
    v = _edges(low, high, [*(m for h in wall.holes for m in (h.v0, h.v1)), *(tiles if tile else ())])
    found = []
    for a, b in itertools.pairwise(u):
        for c, d in itertools.pairwise(v):
            x, y = 0.5 * (a + b), 0.5 * (c + d)
            if not any(h.u0 < x < h.u1 and h.v0 < y < h.v1 for h in wall.holes):
                found.append((float(a), float(b), float(c), float(d)))
    return found


def _solid(wall: HallWall, low: float, high: float) -> list[Hole]:
    """Return the stretches of a band that no hole cuts."""
    marks = sorted({0.0, wall.length, *(m for h in wall.holes if h.v0 < high for m in (h.u0, h.u1))})
    found = []
    for a, b in itertools.pairwise(marks):
        if not any(h.u0 < 0.5 * (a + b) < h.u1 and h.v0 < high for h in wall.holes):
            found.append(Hole(a, b, low, high))
    return found


def _ribs(
    patches: PatchMesh,
    wall: HallWall,
    u: tuple[float, float],
    low: tuple[float, float],
    high: tuple[float, float],
    color: Color3,
    slot: int = COATED,
) -> None:
    """Add trapezoid sheet; `low` and `high` at both ends."""
    first, last = int(np.floor(u[0] / _RIB)), int(np.ceil(u[1] / _RIB))
    profile = [
        (k * _RIB + a, d)
        for k in range(first, last + 1)
        for a, d in ((0.0, 0.0), (0.10, 0.0), (0.13, _RIB_DEEP), (0.22, _RIB_DEEP))
    ]
    places, depths = np.array(profile).T
    inside = places[(places > u[0] + 1e-6) & (places < u[1] - 1e-6)]
    places_cut = np.array([u[0], *inside, u[1]])
    deep = np.interp(places_cut, places, depths)
    for k in range(len(places_cut) - 1):
        ends = places_cut[k], places_cut[k + 1]
        z0, z1 = np.interp(ends, u, low), np.interp(ends, u, high)
        corners = [
            wall.at(ends[1], z0[1], deep[k + 1]),
            wall.at(ends[0], z0[0], deep[k]),
            wall.at(ends[0], z1[0], deep[k]),
            wall.at(ends[1], z1[1], deep[k + 1]),
        ]
        patches.quad(corners, slot, color)


def _window(patches: PatchMesh, wall: HallWall, hole: Hole) -> None:
    """Add a band of panes with bars around and between."""
    frame = (0.30, 0.31, 0.31)
    wall.quad(patches, hole, PANE, deep=0.01)
    count = max(round((hole.u1 - hole.u0) / 1.1), 1)
    for u in np.linspace(hole.u0, hole.u1, count + 1):
        wall.block(patches, Hole(u - 0.03, u + 0.03, hole.v0 - 0.03, hole.v1 + 0.03), PAINT, frame, (-0.02, 0.05))
    for v in (hole.v0, 0.55 * hole.v0 + 0.45 * hole.v1, hole.v1):
        wall.block(patches, Hole(hole.u0, hole.u1, v - 0.03, v + 0.03), PAINT, frame, (-0.02, 0.045))
    wall.block(patches, Hole(hole.u0 - 0.08, hole.u1 + 0.08, hole.v0 - 0.07, hole.v0 - 0.03), PAINT, frame, (0.0, 0.12))


# ---- Roof -------------------------------------------------------------------------------------------------------------------


def roof_patches(measures: HallMeasures) -> PatchMesh:
    """Return both slopes: sheet with ribs from eave to ridge, and strips of skylight in some bays."""
    patches = PatchMesh()
    frames = measures.frames
    strips = [(0.5 * (frames[k] + frames[k + 1]) - 0.6, 0.5 * (frames[k] + frames[k + 1]) + 0.6) for k in measures.skylights]
    for side in (-1.0, 1.0):
        y = np.linspace(0.0, side * measures.half_width, 5)
        marks = sorted({-measures.half_length, measures.half_length, *(m for strip in strips for m in strip)})
        for a, b in itertools.pairwise(marks):
            glazed = any(abs(a - strip[0]) < 1e-6 for strip in strips)
            for y0, y1 in itertools.pairwise(y):
                if glazed:
                    _strip(patches, measures, (a, b), (y0, y1))
                else:
                    _roof_ribs(patches, measures, (a, b), (y0, y1))
    return patches


def _roof_ribs(patches: PatchMesh, measures: HallMeasures, x: tuple[float, float], y: tuple[float, float]) -> None:
    places = [x[0]]
    deep = [0.0]
    for k in range(int(np.ceil((x[1] - x[0]) / _RIB))):
        for a, d in ((0.10, 0.0), (0.13, _RIB_DEEP), (0.22, _RIB_DEEP), (0.25, 0.0)):
            if x[0] + k * _RIB + a < x[1] - 1e-6:
                places.append(x[0] + k * _RIB + a)
                deep.append(d)
    places.append(x[1])
    deep.append(0.0)
    z0, z1 = measures.roof(y[0]), measures.roof(y[1])
    shade = (0.92 * measures.sheet[0], 0.92 * measures.sheet[1], 0.92 * measures.sheet[2])
    for (a, da), (b, db) in itertools.pairwise(zip(places, deep, strict=True)):
        corners = [[a, y[0], z0 - da], [b, y[0], z0 - db], [b, y[1], z1 - db], [a, y[1], z1 - da]]
        patches.quad(corners if y[1] < y[0] else corners[::-1], COATED, shade)


def _strip(patches: PatchMesh, measures: HallMeasures, x: tuple[float, float], y: tuple[float, float]) -> None:
    """Add a part of a skylight with the bars at its sides and its end."""
    z0, z1 = measures.roof(y[0]), measures.roof(y[1])
    corners = [[x[0], y[0], z0], [x[1], y[0], z0], [x[1], y[1], z1], [x[0], y[1], z1]]
    patches.quad(corners if y[1] < y[0] else corners[::-1], SKYLIGHT)
    for at in x:
        side = [
            [at - 0.03, y[0], z0 - 0.05],
            [at + 0.03, y[0], z0 - 0.05],
            [at + 0.03, y[1], z1 - 0.05],
            [at - 0.03, y[1], z1 - 0.05],
        ]
        patches.quad(side if y[1] < y[0] else side[::-1], PAINT, (0.5, 0.5, 0.49))
    bar_z = z1 - 0.04
    low = min(y[1], y[1] + 0.06)
    patches.quad(
        [[x[0], low, bar_z], [x[0], low + 0.06, bar_z], [x[1], low + 0.06, bar_z], [x[1], low, bar_z]], PAINT, (0.5, 0.5, 0.49)
    )


# ---- Floor and yard ---------------------------------------------------------------------------------------------------------


def _area(patches: PatchMesh, rect: tuple[float, float, float, float], slot: int, z: float, cell: float) -> None:
    x0, y0, x1, y1 = rect
    x = np.linspace(x0, x1, max(int(np.ceil((x1 - x0) / cell)), 1) + 1)
    y = np.linspace(y0, y1, max(int(np.ceil((y1 - y0) / cell)), 1) + 1)
    grid = np.stack([*np.meshgrid(x, y, indexing="ij"), np.full((len(x), len(y)), z)], -1).reshape(-1, 3)
    i, j = np.meshgrid(np.arange(len(x) - 1), np.arange(len(y) - 1), indexing="ij")
    a = (i * len(y) + j).reshape(-1)
    b, c, d = a + len(y), a + len(y) + 1, a + 1
    faces = np.concatenate([np.stack([a, b, c], -1), np.stack([a, c, d], -1)])
    patches.add(grid, faces, np.repeat([[0.0, 0.0, 1.0]], len(grid), 0), slot)


def floor_patches(measures: HallMeasures, rng: np.random.Generator) -> PatchMesh:
    """Return the floor without what is painted on it, in a frame that is turned: its y is the hall's x, its x the hall's -y.

    Marks of tyres, which are part of some of its material's tiles, lie along y there.

    Args:
        measures: Of the hall.
        rng: Draws what lies on each tile.
    """
    patches = PatchMesh()
    lx, ly = measures.half_length, measures.half_width
    kinds = {}
    x, y = (_tiled(low, high, _FLOOR_TILE / 5.0) for low, high in ((-ly, ly), (-lx, lx + 0.25)))
    for x0, x1 in itertools.pairwise(x):
        for y0, y1 in itertools.pairwise(y):
            key = int(np.floor(0.5 * (x0 + x1) / _FLOOR_TILE)), int(np.floor(0.5 * (y0 + y1) / _FLOOR_TILE))
            if key not in kinds:
                kinds[key] = (FLOOR, FLOOR, BRAKED, TURNED, STAINED)[int(rng.random() * 5)]
            patches.quad([[x0, y0, 0.0], [x1, y0, 0.0], [x1, y1, 0.0], [x0, y1, 0.0]], kinds[key])
    return patches


def _tiled(low: float, high: float, cell: float) -> Array:
    """Return the ends of cells of a stretch, at multiples of the cell's length."""
    inner = cell * np.arange(np.floor(low / cell) + 1, np.ceil(high / cell))
    return np.array([low, *inner[(inner > low + 1e-6) & (inner < high - 1e-6)], high])


def line(patches: PatchMesh, rect: tuple[float, float, float, float], color: Color3) -> None:
    """Paint a rectangle on the floor, in lengths of two metres, so that its wear differs."""
    x0, y0, x1, y1 = rect
    along_x = x1 - x0 > y1 - y0
    count = max(int((x1 - x0 if along_x else y1 - y0) / 2.0), 1)
    for k in range(count):
        a, b = k / count, (k + 1) / count
        r = (x0 + a * (x1 - x0), y0, x0 + b * (x1 - x0), y1) if along_x else (x0, y0 + a * (y1 - y0), x1, y0 + b * (y1 - y0))
        corners = [[r[0], r[1], _LIFT], [r[2], r[1], _LIFT], [r[2], r[3], _LIFT], [r[0], r[3], _LIFT]]
        patches.quad(corners, LINE, color)


def stripes(patches: PatchMesh, rect: tuple[float, float, float, float]) -> None:
    """Paint yellow and black stripes on the floor, one picture of them per square."""
    x0, y0, x1, y1 = rect
    along_x = x1 - x0 > y1 - y0
    side = min(x1 - x0, y1 - y0) * 2.0
    count = max(round((x1 - x0 if along_x else y1 - y0) / side), 1)
    for k in range(count):
        a, b = k / count, (k + 1) / count
        r = (x0 + a * (x1 - x0), y0, x0 + b * (x1 - x0), y1) if along_x else (x0, y0 + a * (y1 - y0), x1, y0 + b * (y1 - y0))
        corners = [[r[0], r[1], _LIFT], [r[2], r[1], _LIFT], [r[2], r[3], _LIFT], [r[0], r[3], _LIFT]]
        uv = (
            np.array([[0.0, 0.5], [1.0, 0.5], [1.0, 0.0], [0.0, 0.0]])
            if along_x
            else np.array([[0.0, 0.0], [0.0, 0.5], [1.0, 0.5], [1.0, 0.0]])
        )
        patches.quad(corners, HAZARD, (1.0, 1.0, 1.0), uv)


def yard_patches(measures: HallMeasures) -> PatchMesh:
    """Return the ground outside: asphalt all around, lines where lorries stand."""
    patches = PatchMesh()
    lx, ly = measures.half_length, measures.half_width
    _area(patches, (-lx - 30.0, -ly - 40.0, lx + 60.0, ly + 40.0), ASPHALT, -0.03, 12.0)
    for k in range(9):
        y = -16.0 + 4.0 * k
        patches.quad(
            [
                [lx + 8.0, y - 0.06, -0.026],
                [lx + 14.0, y - 0.06, -0.026],
                [lx + 14.0, y + 0.06, -0.026],
                [lx + 8.0, y + 0.06, -0.026],
            ],
            LINE,
        )
    return patches


def yard_things(measures: HallMeasures) -> PatchMesh:
    """Return freight containers in the yard, and the wall around it."""
    patches = PatchMesh()
    lx = measures.half_length
    for x, y, long, color in _CONTAINERS:
        _container(patches, (lx + x, y), long, color)
    for k in range(30):  # a wall of concrete panels around the yard
        y = -30.0 + 2.0 * k
        patches.box((lx + 40.0, y + 0.01, -0.03), (lx + 40.15, y + 1.99, 2.2), CONCRETE, (0.95, 0.95, 0.95))
        patches.box((lx + 39.95, y - 0.09, -0.03), (lx + 40.2, y + 0.09, 2.35), CONCRETE, (0.8, 0.8, 0.8))
    return patches


def _container(patches: PatchMesh, corner: tuple[float, float], long: float, color: Color3) -> None:
    """Stand a freight container along y in the yard: ribbed sides between its corner posts, a door at one end."""
    x, y = corner
    wide, high = 2.44, 2.59
    sides = [HallWall((x, y), (0.0, 1.0), long), HallWall((x + wide, y + long), (0.0, -1.0), long)]
    sides += [HallWall((x + wide, y), (-1.0, 0.0), wide), HallWall((x, y + long), (1.0, 0.0), wide)]
    for wall in sides:
        _ribs(patches, wall, (0.08, wall.length - 0.08), (0.12, 0.12), (high - 0.12, high - 0.12), color)
    for px in (x, x + wide - 0.12):
        for py in (y, y + long - 0.12):
            patches.box((px, py, 0.0), (px + 0.12, py + 0.12, high), PAINT, color)
    for z in (0.0, high - 0.14):
        patches.box((x - 0.01, y, z), (x + wide + 0.01, y + long, z + 0.14), PAINT, color)


_CONTAINERS: tuple[tuple[float, float, float, Color3], ...] = (
    (26.0, -13.0, 6.06, (0.05, 0.13, 0.30)),
    (29.0, -6.4, 6.06, (0.34, 0.07, 0.03)),
    (27.0, 3.4, 12.19, (0.10, 0.24, 0.16)),
)
"""In the yard: x and y of a corner [m] from the wall of the docks, length [m], colour."""
