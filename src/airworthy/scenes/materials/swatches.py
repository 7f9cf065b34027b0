"""Small scenes in which one material is seen as it is used: a wall, a floor, a trunk, a ball, a card, a window."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from airworthy.core.errors import unknown_name
from airworthy.geometry import Box, Mesh, Shape
from airworthy.scenes.materials.library import SIZE, MaterialRecipe, card, material_recipe, with_material
from airworthy.scenes.record import Decal, Instance, Material, Quaternion, Scene, Sky, Sun, Vector3
from airworthy.scenes.viewpoints import Viewpoint, look_at

__all__ = ["swatch"]

_SKY = Sky((0.26, 0.42, 0.74), (0.78, 0.82, 0.86), (0.28, 0.26, 0.24), 0.75)
_RAKING = Sun((0.62, 0.50, -0.60), irradiance=3.0)
"""Low enough that relief shows, high enough that it is not all there is."""


def swatch(recipe: str | MaterialRecipe, size: int = SIZE) -> tuple[Scene, Viewpoint]:
    """Return a scene that shows a material, and the camera that looks at it.

    Args:
        recipe: A recipe, or its name.
        size: Side of the maps [px].

    Raises:
        UnknownNameError: There is no such material.
    """
    item = material_recipe(recipe) if isinstance(recipe, str) else recipe
    if item.shown not in _STAGES:
        raise unknown_name("stage of a swatch", item.shown, _STAGES)
    place = Scene("swatch", materials={"grey": Material((0.32, 0.32, 0.32, 1.0))}, lights=(_RAKING,), sky=_SKY)
    return _STAGES[item.shown](with_material(place, item, "shown", size), item, size)


def _view(eye: Vector3, target: Vector3, fov: float) -> Viewpoint:
    return Viewpoint(np.array(eye), look_at(eye, target), fov)


def _wall(place: Scene, item: MaterialRecipe, size: int) -> tuple[Scene, Viewpoint]:
    # Four fifths of a tile across the picture, from its middle: the pattern is seen once, at its own scale.
    side, middle = 0.8 * item.tile, 0.5 * item.tile
    thing = Instance("wall", (0.0, 0.5, 0.0), materials=("shown",))
    made = replace(place, shapes={"wall": Box((8.0 * side, 0.5, 8.0 * side))}, instances=(thing,))
    away = side * 1.35
    return made, _view((middle - 0.35 * away, -away, 0.12 * away - middle), (middle, 0.0, -middle), 0.72)


def _floor(place: Scene, item: MaterialRecipe, size: int) -> tuple[Scene, Viewpoint]:
    side, middle = 0.75 * item.tile, 0.5 * item.tile
    thing = Instance("floor", (0.0, 0.0, -0.5), materials=("shown",), semantic="ground")
    made = replace(place, shapes={"floor": Box((40.0 * side, 40.0 * side, 0.5))}, instances=(thing,))
    away = side * 1.25
    return made, _view((middle, -middle - 0.72 * away, away), (middle, 0.06 * away - middle, 0.0), 0.75)


def _trunk(place: Scene, item: MaterialRecipe, size: int) -> tuple[Scene, Viewpoint]:
    radius = 0.28
    made = replace(
        with_material(place, item, "shown", size, by_coordinates=True),
        shapes={"trunk": round_card(radius, 3.0, item.tile), "back": Box((30.0, 0.1, 30.0))},
        instances=(Instance("trunk", materials=("shown",)), Instance("back", (0.0, 12.0, 0.0), materials=("grey",))),
    )
    return made, _view((0.0, -1.35, 0.1), (0.0, 0.0, 0.0), 0.62)


def round_card(radius: float, height: float, tile: float, sides: int = 96) -> Mesh:
    """Return an upright tube around which a material is wrapped without a seam.

    Args:
        radius: [m].
        height: [m].
        tile: Of the material [m]: as many whole repeats go round as come nearest to its scale.
        sides: Of the tube.
    """
    around = max(1, round(2.0 * math.pi * radius / tile))
    angle = np.linspace(0.0, 2.0 * np.pi, sides + 1)
    ring = np.stack([np.cos(angle), np.sin(angle)], -1)
    vertices = np.concatenate([np.column_stack([radius * ring, np.full(sides + 1, z)]) for z in (-0.5 * height, 0.5 * height)])
    normals = np.concatenate([np.column_stack([ring, np.zeros(sides + 1)])] * 2)
    u = around * angle / (2.0 * np.pi)
    uv = np.concatenate([np.column_stack([u, np.full(sides + 1, v)]) for v in (height / tile, 0.0)])
    low = np.arange(sides)
    high = low + sides + 1
    faces = np.concatenate([np.column_stack([low, low + 1, high + 1]), np.column_stack([low, high + 1, high])])
    return Mesh(
        vertices.astype(np.float32), faces.astype(np.int32), normals=normals.astype(np.float32), uv=uv.astype(np.float32)
    )


def _card(place: Scene, item: MaterialRecipe, size: int) -> tuple[Scene, Viewpoint]:
    side = item.tile
    shapes: dict[str, Shape] = {"card": card(side, side), "back": Box((400.0 * side, 0.1, 400.0 * side))}
    things = (
        Instance("card", (0.0, 0.0, 0.0), _turned(0.12), materials=("shown",)),
        Instance("back", (0.0, 60.0 * side, 0.0), materials=("grey",)),
    )
    return replace(place, shapes=shapes, instances=things), _view((-0.5 * side, -1.6 * side, 0.3 * side), (0.0, 0.0, 0.0), 0.66)


def _turned(angle: float) -> Quaternion:
    """Return a turn about the horizontal axis across [rad]."""
    return (math.sin(0.5 * angle), 0.0, 0.0, math.cos(0.5 * angle))


def _decal(place: Scene, item: MaterialRecipe, size: int) -> tuple[Scene, Viewpoint]:
    under = replace(material_recipe("plaster"), wear=0.3)
    side, middle = item.tile, 0.5 * under.tile
    thing = Instance("wall", (0.0, 0.5, 0.0), materials=("shown",))
    made = with_material(place, under, "shown", size, (Decal(_name(item), (middle, middle)),))
    made = replace(made, shapes={"wall": Box((20.0, 0.5, 20.0))}, instances=(thing,))
    return made, _view((middle - 0.4 * side, -1.5 * side, 0.1 * side - middle), (middle, 0.0, -middle), 0.72)


def _decal_floor(place: Scene, item: MaterialRecipe, size: int) -> tuple[Scene, Viewpoint]:
    under = material_recipe("asphalt")
    side, middle = item.tile, 0.5 * under.tile
    thing = Instance("floor", (0.0, 0.0, -0.5), materials=("shown",), semantic="ground")
    made = with_material(place, under, "shown", size, (Decal(_name(item), (middle, middle)),))
    made = replace(made, shapes={"floor": Box((60.0, 60.0, 0.5))}, instances=(thing,))
    return made, _view((middle, -middle - 0.9 * side, 0.9 * side), (middle, -middle, 0.0), 0.75)


def _name(item: MaterialRecipe) -> str:
    return f"{item.name}@{item.seed}" if item.seed else item.name


def _window(place: Scene, item: MaterialRecipe, size: int) -> tuple[Scene, Viewpoint]:
    """Set a window of two panes in a brick wall, as glass alone would show nothing but the sky."""
    wall = with_material(place, "brick", "brick", size)
    wall = replace(wall, materials={**wall.materials, "frame": Material((0.62, 0.61, 0.57, 1.0), roughness=0.5)})
    bar, pane = 0.05, (0.42, 0.55)
    wide, high = 2.0 * pane[0] + 1.5 * bar, pane[1] + bar
    shapes: dict[str, Shape] = {
        "pane": Box((pane[0], 0.01, pane[1])),
        "post": Box((0.5 * bar, 0.04, high)),
        "rail": Box((wide, 0.04, 0.5 * bar)),
        "side": Box((3.0, 0.5, 6.0)),
        "above": Box((wide, 0.5, 3.0)),
    }
    rows = [("pane", (s * (pane[0] + 0.5 * bar), 0.16, 0.0), "shown") for s in (-1.0, 1.0)]
    rows += [("post", (s * (wide - 0.5 * bar), 0.15, 0.0), "frame") for s in (-1.0, 0.0, 1.0)]
    rows += [("rail", (0.0, 0.15, s * (high - 0.5 * bar)), "frame") for s in (-1.0, 1.0)]
    rows += [("side", (s * (wide + 3.0), 0.5, 0.0), "brick") for s in (-1.0, 1.0)]
    rows += [("above", (0.0, 0.5, s * (high + 3.0)), "brick") for s in (-1.0, 1.0)]
    things = tuple(Instance(shape, where, materials=(name,)) for shape, where, name in rows)
    return replace(wall, shapes=shapes, instances=things), _view((-0.7, -2.3, -0.25), (0.0, 0.0, 0.0), 0.85)


_STAGES: dict[str, Callable[[Scene, MaterialRecipe, int], tuple[Scene, Viewpoint]]] = {
    "card": _card,
    "decal": _decal,
    "decal_floor": _decal_floor,
    "floor": _floor,
    "trunk": _trunk,
    "wall": _wall,
    "window": _window,
}
"""What a recipe's `shown` may be."""
