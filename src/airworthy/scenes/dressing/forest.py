"""The forest of the navigation benchmark as a film shows it: grown trees over trunks, leaves over hedges, a wood around.

What is hit, ranged and labelled is the scenario's own, to the byte; what is seen are looks (`Scene.looks`). Within the bounds
nothing that is seen stands farther than 5 cm from what is hit: trunks are straight up to the ceiling and as thick as their
cylinders, what lies on the ground is flat; ferns and saplings stand beyond the hedge.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np

from airworthy.geometry import Box, Cylinder, Mesh
from airworthy.scenes.extent import hidden
from airworthy.scenes.generators.seeding import checked, generator
from airworthy.scenes.record import Instance, Material, Scene
from airworthy.scenes.vegetation.cache import kept_mesh
from airworthy.scenes.vegetation.kinds import Season, tree_kind
from airworthy.scenes.vegetation.planting import FOLIAGE, Planting, about_up, scattered
from airworthy.scenes.vegetation.tree import TreeForm
from airworthy.scenes.vegetation.undergrowth import fern, grass_tuft, hedge_panel, litter, patch

__all__ = ["dressed_forest"]

_KINDS = ("beech", "oak", "maple", "beech", "pine", "birch")
"""Of the trees over the trunks, in turns by chance; slender ones only over thin trunks."""
_SLENDER = ("birch", "pine")
_BOLE = {"oak": 0.42, "pine": 0.52}
"""Share of the height below the crown; 0.36 of all others: none hangs into the heights that are flown at."""
_VARIANTS = 2
"""Different trees of a kind."""
FOLIAGE_SHADE = "foliage shade"
"""Material behind the leaves of a hedge."""
_PANEL = 2.0
"""Width of the pieces of which the leaves on a hedge are made [m]."""
_BEYOND = 26.0
"""How far the wood reaches beyond the hedge [m]."""
_SOWN: dict[str, tuple[Callable[[int], Mesh], float, float, float]] = {
    "litter": (litter, 2.6, 1.1, 0.025),
    "low grass": (lambda seed: grass_tuft(seed, 0.05, 0.4, 120), 2.4, 1.7, 0.012),
}
"""On the ground: plants by seed, radius of a patch and distance of plants in it [m], and the width of a pixel [m] from which on
leaves and blades are noise, and the ground's map shows the like."""


def dressed_forest(scene: Scene, season: Season = "summer", look: int = 0) -> Scene:
    """Return a forest of the benchmark with grown trees, litter, hedges of leaves and a wood around; what is hit stays.

    Args:
        scene: As `scene("forest:3")`.
        season: Of the leaves.
        look: Seed of what grows where, from 0 on: kinds over the trunks, the wood around, what lies on the ground.
    """
    planting = Planting()
    rng = generator("dressed forest", scene.name, season, *((look,) if checked("look", look, 0) else ()))
    ground = planting.material("forest_floor")
    instances = tuple(_instance(scene, item, planting, ground, season, rng) for item in scene.instances)
    _floor(scene, planting, rng)
    _beyond(scene, planting, season, rng)
    return planting.joined(replace(scene, instances=instances))


def _instance(
    scene: Scene, item: Instance, planting: Planting, ground: str, season: Season, rng: np.random.Generator
) -> Instance:
    """Return what is hit as it is in the dressed scene, and plant what is seen in its place."""
    shape = scene.shapes[item.shape]
    if item.semantic == "tree":
        if isinstance(shape, Cylinder):
            _tree(item, shape.radius * item.scale, planting, season, rng)
        return hidden(item)
    if item.semantic == "ground":
        return replace(item, materials=(ground,))
    if isinstance(shape, Box):
        _hedge(item, shape, planting, rng)
        return replace(item, materials=(FOLIAGE_SHADE,))
    return item


def _tree(item: Instance, radius: float, planting: Planting, season: Season, rng: np.random.Generator) -> None:
    kinds = [kind for kind in _KINDS if radius < 0.42 or kind not in _SLENDER]
    name = kinds[int(rng.random() * len(kinds))]
    kind = tree_kind(name)
    form = TreeForm(name, int(rng.random() * _VARIANTS), season, bare=_BOLE.get(name, 0.36), detail=1)
    x, y, _ = item.position
    # The mesh's bole loses 6 % up to the crown: in the middle of the flown heights it is as thick as the cylinder.
    planting.tree(form, (x, y, 0.0), 2.0 * math.pi * rng.random(), 1.015 * radius / (kind.girth * kind.height))


def _hedge(item: Instance, box: Box, planting: Planting, rng: np.random.Generator) -> None:
    """Plant leaves on the faces of a wall that look into the area and out of it."""
    planting.materials.setdefault(FOLIAGE_SHADE, Material((0.018, 0.032, 0.010, 1.0), roughness=1.0))
    hx, hy, hz = (item.scale * half for half in box.half_size)
    along = 0 if hx > hy else 1
    length, thick = (hx, hy) if along == 0 else (hy, hx)
    pieces = max(math.ceil(2.0 * length / _PANEL), 1)
    width = 2.0 * length / pieces
    for side in (-1.0, 1.0):
        for k in range(pieces):
            at = (k + 0.5) * width - length
            offset = np.array([at, side * thick, 0.0] if along == 0 else [side * thick, at, 0.0])
            yaw = (0.0 if side < 0.0 else math.pi) if along == 0 else (-0.5 * math.pi if side < 0.0 else 0.5 * math.pi)
            seed = int(rng.random() * 4)
            name = f"hedge/{seed}/{width:.3f}/{2.0 * hz:.3f}"
            panel = hedge_panel(seed, round(width, 3), round(2.0 * hz, 3), leaves=int(900 * width * hz))
            planting.thing(name, panel, (FOLIAGE,), np.asarray(item.position) + offset, about_up(yaw))


def _floor(scene: Scene, planting: Planting, rng: np.random.Generator) -> None:
    """Strew fallen leaves and low grass over the ground within the bounds, nothing of it higher than 5 cm."""
    low, high = scene.bounds.lower, scene.bounds.upper
    for name, (_, radius, _, seen) in _SOWN.items():
        kinds = [_patch(name, seed) for seed in range(3)]
        for x, y in scattered(rng, low, high, 1.3 * radius, 2500):
            seed = int(rng.random() * len(kinds))
            turn = about_up(6.28 * rng.random())
            planting.thing(f"{name}/{seed}", kinds[seed], (FOLIAGE,), (x, y, 0.0), turn, shadow="none", footprint=(0.0, seen))


@cache
def _patch(name: str, seed: int) -> Mesh:
    """Return one of the patches of what is sown, the same mesh in every look."""
    plants, radius, apart, _ = _SOWN[name]
    text = f"{name} {seed} {radius} {apart}"
    return kept_mesh(text, lambda: patch(seed, radius, apart, [plants(number) for number in range(4)]))


def _beyond(scene: Scene, planting: Planting, season: Season, rng: np.random.Generator) -> None:
    """Let the wood go on beyond the hedge."""
    low, high = np.array(scene.bounds.lower[:2]), np.array(scene.bounds.upper[:2])
    ground = Box((float(high[0] + _BEYOND + 30.0), float(high[1] + _BEYOND + 30.0), 0.5))
    planting.thing("ground beyond", ground, (planting.material("forest_floor"),), (0.0, 0.0, -0.52))

    def outside(points: np.ndarray, margin: float) -> np.ndarray:
        return points[((points < low - margin) | (points > high + margin)).any(1)]

    for x, y in outside(scattered(rng, low - _BEYOND, high + _BEYOND, 4.2, 900), 2.2):
        name = ("beech", "oak", "maple", "spruce", "spruce", "birch")[int(rng.random() * 6)]
        bare = None if name == "spruce" else 0.2
        # Trunks and the hedge stand before them: few leaves are enough.
        form = TreeForm(name, int(rng.random() * _VARIANTS), season, 0.75, bare, 0)
        planting.tree(form, (x, y, 0.0), 6.28 * rng.random(), 0.7 + 0.5 * rng.random())
    for x, y in outside(scattered(rng, low - 6.0, high + 6.0, 1.6, 2500), 1.2):
        if rng.random() < 0.3:
            form = TreeForm(("beech", "maple", "spruce")[int(rng.random() * 3)], 0, season, 0.14, 0.1 if season else None, 0)
            planting.tree(form, (x, y, 0.0), 6.28 * rng.random(), 0.6 + 0.7 * rng.random())
        else:
            seed = int(rng.random() * 3)
            planting.thing(
                f"fern/{seed}", fern(seed), (FOLIAGE,), (x, y, 0.0), about_up(6.28 * rng.random()), 0.7 + 0.6 * rng.random()
            )
