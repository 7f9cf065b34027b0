"""Lakeside: a lake among wooded hills, between start and goal. Its surface is hit as it is seen, by rays and by bodies."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from airworthy.core.arrays import Array
from airworthy.geometry import Mesh
from airworthy.scenes.generators.seeding import checked, generator
from airworthy.scenes.generators.woodland import (
    CEILING,
    HALF,
    HAZE,
    MIXES,
    RIM,
    Relief,
    lay_stones_and_trunks,
    plant_trees,
    strew,
)
from airworthy.scenes.materials.water import water_material
from airworthy.scenes.record import Haze, Pose, Region, Scene
from airworthy.scenes.sky.weather import under_sky, weather_named
from airworthy.scenes.vegetation.kinds import SEASONS
from airworthy.scenes.vegetation.planting import FOLIAGE, Planting, about_up, scattered
from airworthy.scenes.vegetation.undergrowth import grass_tuft

__all__ = ["Basin", "lakeside"]

_CELL = 0.6
"""Of the ground's mesh [m]: finer than in woods, where no shore shows it."""
_BANK = 0.12
"""By which land stands above the water at least [m]."""
_SOFT = 0.3
"""Over which hills are lifted out of the water [m]: hollows of the relief become meadows."""
_WATERS = ("lake", "lake", "pond")


class Basin(Relief):
    """Hills with a lake in a hollow; the water stands at z = 0, and every place off the lake above it.

    Args:
        rng: Draws it.
        height: Root mean square of the largest waves of the relief [m].
        radii: Half lengths of the lake along x and y [m].
        depth: In its middle [m].
    """

    def __init__(self, rng: np.random.Generator, height: float, radii: tuple[float, float], depth: float) -> None:
        super().__init__(rng, height)
        self.radii, self.depth = np.array(radii), depth
        self._bays = rng.random((5, 2)) * [1.0, 2.0 * math.pi]

    def reach(self, points: Array) -> Array:
        """Return how far out points (n, 2) lie: 0 in the lake's middle, 1 at its shore, (n,)."""
        q = points / self.radii
        angle = np.arctan2(q[:, 1], q[:, 0])
        bays = sum(0.13 / (k + 1) * size * np.cos((k + 2) * angle + turn) for k, (size, turn) in enumerate(self._bays))
        return np.asarray(np.linalg.norm(q, axis=-1) / (1.0 + bays))

    def __call__(self, points: Array) -> Array:
        """Return heights (n,) at points (n, 2) [m]."""
        hills, out = super().__call__(points), self.reach(points)
        # Hills rise with the distance from the shore.
        raised = hills + 0.9 * np.clip(out - 1.0, 0.0, 2.0)
        land = _BANK + 0.5 * (raised + np.sqrt(raised * raised + _SOFT**2))
        bed = -self.depth * (1.0 - np.clip(out, 0.0, 1.0) ** 2) + 0.12 * hills * np.clip(1.0 - out, 0.0, 0.3)
        share = np.clip((out - 0.93) / 0.14, 0.0, 1.0)
        share = share * share * (3.0 - 2.0 * share)
        return np.asarray(np.minimum(bed, 0.0) * (1.0 - share) + land * share)

    def dry(self, points: Array, depth: float = 0.0) -> Array:
        """Return points (n, 2) that stand out of the water, or in no more than a depth of it [m]."""
        return points[self(points) > (0.5 * _BANK if depth == 0.0 else -depth)]


def lakeside(index: int, seed: int) -> Scene:
    """Return a lake among wooded hills: its shape, depth, water, wind, trees and season are drawn.

    Args:
        index: Which one, from 0 on.
        seed: Of the series.
    """
    index, seed = checked("index", index, 0), checked("seed", seed)
    rng = generator("lakeside", index, seed)
    kinds = MIXES[int(rng.random() * len(MIXES))]
    season = SEASONS[1] if index == 0 else SEASONS[int(rng.random() * 3)]
    half = np.array(HALF)
    basin = Basin(
        rng, 0.35 + 0.5 * rng.random(), (20.0 + 7.0 * rng.random(), 13.0 + 6.0 * rng.random()), 1.2 + 2.6 * rng.random()
    )
    name, wind = _WATERS[int(rng.random() * len(_WATERS))], 0.2 + 3.5 * rng.random() ** 2
    ends = np.array([[-half[0] + 4.0, 0.0], [half[0] - 4.0, 0.0]])
    planting = Planting()
    ground = basin.mesh(-half - RIM, half + RIM, _CELL)
    floor = planting.thing("ground", ground, (planting.material("forest_floor"),), (0.0, 0.0, 0.0))
    planting.items[-1] = replace(floor, semantic="ground", collide=True)
    # Shelter of trees: half the waves that such a wind raises on open water.
    surface = water_material(name, wind)
    planting.materials["water"] = replace(surface, wave_slope=0.5 * surface.wave_slope)
    lake = planting.thing("water", _sheet(basin), ("water",), (0.0, 0.0, 0.0))
    planting.items[-1] = replace(lake, semantic="water", collide=True)
    apart = 4.2 + 2.0 * rng.random()
    trees = plant_trees(planting, basin, rng, kinds, season, apart, ends)
    lay_stones_and_trunks(planting, basin, rng, half, ends)
    hit = planting.solid()
    strew(planting, basin, rng, half)
    _sedges(planting, basin, rng, half)
    heights = basin(ends) + 2.5
    start, goal = ((float(x), float(y), float(z)) for (x, y), z in zip(ends, heights, strict=True))
    lowest = -basin.depth - 0.5
    scene = Scene(
        f"lakeside:{index}" + (f"@{seed}" if seed else ""),
        instances=hit,
        bounds=Region((-HALF[0], -HALF[1], lowest), (HALF[0], HALF[1], CEILING)),
        start=Pose(start, 0.0),
        goal=Pose(goal, 0.0),
        description=f"lakeside {index} of seed {seed}: {name} of {basin.depth:.1f} m, {', '.join(kinds)}, {season}",
        source="Generated; trees after Weber and Penn 1995",
        facts={"trees": float(trees), "least_spacing_m": apart, "depth_m": basin.depth, "wind_m_s": wind},
    )
    return under_sky(planting.joined(scene), weather_named("noon").sky, Haze(HAZE, 40.0, 0.0))


def _sheet(basin: Basin) -> Mesh:
    """Return the water's surface: flat, a little wider than the lake; land hides its rim."""
    x, y = 1.3 * basin.radii
    corners = np.array([[-x, -y, 0.0], [x, -y, 0.0], [x, y, 0.0], [-x, y, 0.0]])
    return Mesh(corners, np.array([[0, 1, 2], [0, 2, 3]]))


def _sedges(planting: Planting, basin: Basin, rng: np.random.Generator, half: Array) -> None:
    """Grow sedges where the water is shallow, in patches."""
    places = basin.dry(scattered(rng, -half, half, 0.55, 16000), 0.35)
    places = places[
        (basin(places) < 0.1) & (np.sin(0.31 * places[:, 0] + 6.0 * rng.random()) + 0.8 * rng.random(len(places)) > 0.2)
    ]
    for (x, y), z in zip(places, basin(places), strict=True):
        seed = int(rng.random() * 4)
        planting.thing(
            f"grass/{seed}", grass_tuft(seed), (FOLIAGE,), (x, y, z), about_up(6.28 * rng.random()), 1.6 + 0.9 * rng.random()
        )
