"""Woodland: hills under grown trees. Ground, stones, wood, leaves are hit as they are seen; grass, ferns, litter are looks."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from airworthy.core.arrays import Array
from airworthy.geometry import Mesh
from airworthy.scenes.generators.seeding import checked, generator
from airworthy.scenes.record import Haze, Pose, Region, Scene
from airworthy.scenes.sky.weather import under_sky, weather_named
from airworthy.scenes.vegetation.kinds import SEASONS, Season
from airworthy.scenes.vegetation.planting import FOLIAGE, Planting, about_up, scattered
from airworthy.scenes.vegetation.tree import TreeForm
from airworthy.scenes.vegetation.undergrowth import fallen_trunk, fern, grass_tuft, litter, stone

__all__ = [
    "CEILING",
    "HALF",
    "HAZE",
    "MIXES",
    "RIM",
    "Relief",
    "lay_stones_and_trunks",
    "plant_trees",
    "strew",
    "woodland",
]

HAZE = 0.0004
"""Of the air [1/m]: a contrast is halved after 1.7 km. Haze glows in shade as in the sun: more of it pales a wood."""
HALF = (40.0, 30.0)
"""Of the bounds along x and y [m]."""
CEILING = 12.0
RIM = 24.0
"""How far the ground goes on beyond the bounds [m]."""
_CELL = 0.8
"""Of the ground's mesh [m]."""
_CLEAR = 3.5
"""Around start and goal [m]."""
MIXES = (("beech", "oak", "maple"), ("spruce", "larch", "pine"), ("oak", "birch", "pine"), ("beech", "birch", "spruce"))
"""Kinds that grow together."""


class Relief:
    """Height of the ground: waves of falling size in directions drawn by chance, with gullies where two of them meet.

    Args:
        rng: Draws them.
        height: Root mean square of the largest waves [m].
    """

    def __init__(self, rng: np.random.Generator, height: float) -> None:
        length = 34.0 / 1.75 ** np.arange(8).repeat(3)
        angle = 2.0 * np.pi * rng.random(len(length))
        self._waves = 2.0 * np.pi / length[:, None] * np.stack([np.cos(angle), np.sin(angle)], -1)
        self._phase = 2.0 * np.pi * rng.random(len(length))
        # Heights fall a little faster than lengths: hills are smoother than what lies on them.
        self._size = 0.8 * height * (length / length[0]) ** 1.25
        self._gully = height

    def __call__(self, points: Array) -> Array:
        """Return heights (n,) at points (n, 2) [m]."""
        found = np.sin(points @ self._waves.T + self._phase) @ self._size
        ridge = np.abs(np.sin(0.5 * points @ self._waves[1] + 1.4 * np.sin(0.7 * points @ self._waves[2]) + self._phase[3]))
        return np.asarray(found - 0.6 * self._gully * np.exp(-((ridge / 0.22) ** 2)))

    def dry(self, points: Array, depth: float = 0.0) -> Array:
        """Return points (n, 2) that stand out of the water, or in no more than a depth of it [m]; of hills all."""
        return points

    def mesh(self, low: Array, high: Array, cell: float) -> Mesh:
        """Return the ground between two corners (2,) as triangles of a grid, with coordinates in metres.

        Args:
            low: Lower corner [m].
            high: Upper one.
            cell: Side of the grid's cells [m].
        """
        x, y = (np.linspace(a, b, round((b - a) / cell) + 1) for a, b in zip(low, high, strict=True))
        flat = np.stack(np.meshgrid(x, y, indexing="ij"), -1)
        height = self(flat.reshape(-1, 2)).reshape(len(x), len(y))
        slope_x, slope_y = np.gradient(height, x, y)
        normals = np.stack([-slope_x, -slope_y, np.ones_like(height)], -1)
        normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
        i, j = np.meshgrid(np.arange(len(x) - 1), np.arange(len(y) - 1), indexing="ij")
        a = (i * len(y) + j).reshape(-1)
        b, c, d = a + len(y), a + 1, a + len(y) + 1
        faces = np.concatenate([np.stack([a, b, d], -1), np.stack([a, d, c], -1)])
        points = np.concatenate([flat, height[..., None]], -1).reshape(-1, 3)
        # Bare and dark in hollows, where it is wet.
        wet = np.clip(0.82 + 0.28 * (height - np.mean(height)) / max(float(np.std(height)), 1e-6) * 0.5, 0.62, 1.0).reshape(-1)
        colors = np.stack([wet, wet, wet, np.ones_like(wet)], -1)
        return Mesh(points, faces, normals.reshape(-1, 3), flat.reshape(-1, 2), colors)


def woodland(index: int, seed: int) -> Scene:
    """Return a wood on hills: mix of kinds, season, density and relief are drawn.

    Args:
        index: Which one, from 0 on.
        seed: Of the series.
    """
    index, seed = checked("index", index, 0), checked("seed", seed)
    rng = generator("woodland", index, seed)
    kinds = MIXES[int(rng.random() * len(MIXES))]
    season = SEASONS[1] if index == 0 else SEASONS[int(rng.random() * 3)]
    relief = Relief(rng, 0.5 + 0.9 * rng.random())
    half = np.array(HALF)
    ends = np.array([[-half[0] + 4.0, 0.0], [half[0] - 4.0, 0.0]])
    planting = Planting()
    ground = relief.mesh(-half - RIM, half + RIM, _CELL)
    floor = planting.thing("ground", ground, (planting.material("forest_floor"),), (0.0, 0.0, 0.0))
    planting.items[-1] = replace(floor, semantic="ground", collide=True)
    apart = 3.6 + 2.0 * rng.random()
    trees = plant_trees(planting, relief, rng, kinds, season, apart, ends)
    lay_stones_and_trunks(planting, relief, rng, half, ends)
    hit = planting.solid()
    strew(planting, relief, rng, half)
    heights = relief(ends) + 2.5
    start, goal = ((float(x), float(y), float(z)) for (x, y), z in zip(ends, heights, strict=True))
    lowest = float(relief(_grid(half)).min())
    scene = Scene(
        f"woodland:{index}" + (f"@{seed}" if seed else ""),
        instances=hit,
        bounds=Region((-HALF[0], -HALF[1], lowest - 0.5), (HALF[0], HALF[1], lowest + CEILING)),
        start=Pose(start, 0.0),
        goal=Pose(goal, 0.0),
        description=f"woodland {index} of seed {seed}: {', '.join(kinds)}, {season}",
        source="Generated; trees after Weber and Penn 1995",
        facts={"trees": float(trees), "least_spacing_m": apart},
    )
    weather = weather_named("noon")
    return under_sky(planting.joined(scene), weather.sky, Haze(HAZE, 40.0, lowest))


def _grid(half: Array) -> Array:
    x, y = (np.linspace(-h, h, round(2.0 * h) + 1) for h in half)
    return np.stack(np.meshgrid(x, y, indexing="ij"), -1).reshape(-1, 2)


def plant_trees(
    planting: Planting,
    relief: Relief,
    rng: np.random.Generator,
    kinds: tuple[str, ...],
    season: Season,
    apart: float,
    ends: Array,
) -> int:
    """Plant the wood, its far side with little detail; return how many trees."""
    half = np.array(HALF)
    clear = [np.array([*end, _CLEAR]) for end in ends]
    places = relief.dry(scattered(rng, -half - RIM + 2.0, half + RIM - 2.0, apart, 4000, clear))
    for (x, y), z in zip(places, relief(places), strict=True):
        name = kinds[int(rng.random() * len(kinds))]
        near = abs(x) < half[0] + 2.0 and abs(y) < half[1] + 2.0
        # No needles near the eye: a spray of them is one kite (`tree.py`).
        sapling = near and rng.random() < 0.16 and name not in ("spruce", "larch", "pine")
        age, bare = (0.18, None) if sapling else (0.8, 0.34 if near else None)
        form = TreeForm(name, int(rng.random() * 2), season, age, bare, 1 if near else 0)
        planting.tree(form, (x, y, z - 0.05), 2.0 * math.pi * rng.random(), 0.7 + 0.55 * rng.random())
    return len(places)


def lay_stones_and_trunks(planting: Planting, relief: Relief, rng: np.random.Generator, half: Array, ends: Array) -> None:
    """Lay stones and fallen trunks, which are hit."""
    clear = [np.array([*end, _CLEAR]) for end in ends]
    rock, bark = planting.material("gravel"), planting.material("bark_oak")
    places = relief.dry(scattered(rng, -half, half, 5.0, 60, clear), 0.4)
    for (x, y), z in zip(places, relief(places), strict=True):
        seed = int(rng.random() * 4)
        planting.thing(
            f"stone/{seed}", stone(seed), (rock,), (x, y, z), about_up(6.28 * rng.random()), 0.5 + 1.6 * rng.random() ** 2
        )
    places = relief.dry(scattered(rng, -half, half, 9.0, 26, clear))
    for (x, y), z in zip(places, relief(places), strict=True):
        seed = int(rng.random() * 3)
        trunk = fallen_trunk(seed)
        planting.thing(
            f"fallen trunk/{seed}", trunk, (bark,), (x, y, z), about_up(6.28 * rng.random()), 0.6 + 0.7 * rng.random()
        )


def strew(planting: Planting, relief: Relief, rng: np.random.Generator, half: Array) -> None:
    """Strew what bends or lies flat, which colours alone show."""
    sown: tuple[tuple[str, float, int], ...] = (("litter", 1.3, 6000), ("grass", 1.15, 5000), ("fern", 2.1, 1500))
    for name, apart, tries in sown:
        places = relief.dry(scattered(rng, -half - 3.0, half + 3.0, apart, tries))
        # Each in patches of its own: by a slow wave over the ground.
        wave = np.sin(0.21 * places[:, 0] + 2.0 * rng.random()) * np.sin(0.17 * places[:, 1] + 6.0 * rng.random())
        kept = places if name == "litter" else places[wave + 0.7 * rng.random(len(places)) > (0.25 if name == "fern" else 0.05)]
        for (x, y), z in zip(kept, relief(kept), strict=True):
            seed = int(rng.random() * 4)
            shape = {"litter": litter, "grass": grass_tuft, "fern": fern}[name](seed)
            size = 0.6 + 0.7 * rng.random()
            planting.thing(f"{name}/{seed}", shape, (FOLIAGE,), (x, y, z), about_up(6.28 * rng.random()), size)
