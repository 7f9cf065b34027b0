"""Plants in scenes: their shapes and materials joined to a scene's tables, and where they stand."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Literal

import numpy as np

from airworthy.core.arrays import Array, ArrayLike
from airworthy.geometry import Shape
from airworthy.scenes.extent import seen_from_near
from airworthy.scenes.materials.library import with_material
from airworthy.scenes.record import Instance, Material, Quaternion, Scene, Texture
from airworthy.scenes.vegetation.kinds import tree_kind
from airworthy.scenes.vegetation.leaf import FOLIAGE, FOLIAGE_MATERIAL
from airworthy.scenes.vegetation.tree import TreeForm, crown_mesh, trunk_mesh

__all__ = ["COARSE", "FIRST_TREE", "FOLIAGE", "Planting", "about_up", "scattered"]

FIRST_TREE = 1000
"""Number of the first tree among instances."""
COARSE = 0.04
"""Where a pixel covers more at a crown [m], its coarse kin is shown: leaves of the finer one are then some six pixels long."""
_DERIVED: dict[str, tuple[str, tuple[float, float, float, float], float, float]] = {
    # name: recipe, tint, share of the relief, roughness
    "bark_smooth": ("bark_oak", (1.45, 1.50, 1.55, 1.0), 0.22, 0.85),
    "bark_palm": ("bark_oak", (1.35, 1.25, 1.10, 1.0), 0.55, 0.9),
    "forest_floor": ("leaf_litter", (0.66, 0.62, 0.58, 1.0), 1.0, 0.0),
}
"""Surfaces made of others of the library: a beech's bark is grey and smooth, what lies under trees damp."""
_MAP_SIZE = 512


@dataclass
class Planting:
    """Shapes, materials and instances of plants, gathered before they join a scene."""

    shapes: dict[str, Shape] = field(default_factory=dict)
    materials: dict[str, Material] = field(default_factory=lambda: {FOLIAGE: FOLIAGE_MATERIAL})
    textures: dict[str, Texture] = field(default_factory=dict)
    items: list[Instance] = field(default_factory=list)
    trees: int = 0
    """Number of trees that stand."""

    def tree(
        self, form: TreeForm, position: Sequence[float], yaw: float = 0.0, scale: float = 1.0, kin: bool = True
    ) -> Instance:
        """Stand a tree somewhere: trunk, crown, and where it has detail a coarse crown for afar and for its shadow.

        Args:
            form: Which tree.
            position: Of its foot, world [m].
            yaw: Heading [rad].
            scale: Size over the form's own.
            kin: With the coarse crown; False: the tree is to be seen from near, or alone.

        Returns:
            The trunk's instance, which is among the items already, as the others are, behind it.
        """
        surfaces = (self.material(tree_kind(form.kind).bark), FOLIAGE)
        turn = about_up(yaw)
        # Trunks are the same in every season and detail.
        stem = replace(form, season="summer", detail=2)
        first = len(self.items)
        self.thing(_named("trunk", stem), trunk_mesh(stem), surfaces, position, turn, scale)
        fine = self.thing(_named("crown", form), crown_mesh(form), surfaces, position, turn, scale)
        if form.detail > 0 and kin:
            coarse = replace(form, detail=0)
            far = self.thing(_named("crown", coarse), crown_mesh(coarse), surfaces, position, turn, scale)
            self.items[-2] = replace(fine, shadow="none", footprint=(0.0, COARSE))
            self.items[-1] = replace(far, shadow="none", footprint=(COARSE, 0.0))
            self.items.append(replace(far, shadow="only"))
        # Trunk and crown are one thing to whoever labels it.
        self.items[first:] = [replace(item, instance_id=FIRST_TREE + self.trees) for item in self.items[first:]]
        self.trees += 1
        return self.items[first]

    def thing(
        self,
        name: str,
        shape: Shape,
        materials: tuple[str, ...],
        position: Sequence[float],
        attitude: Quaternion = (0.0, 0.0, 0.0, 1.0),
        scale: float = 1.0,
        shadow: Literal["own", "none", "only"] = "own",
        footprint: tuple[float, float] = (0.0, 0.0),
    ) -> Instance:
        """Stand anything somewhere.

        Args:
            name: Of the shape.
            shape: It; one that is known by its name already is used again.
            materials: Of the planting.
            position: World [m].
            attitude: Local to world.
            scale: Over the shape's own size.
            shadow: As `Instance.shadow`.
            footprint: As `Instance.footprint`.
        """
        self.shapes.setdefault(name, shape)
        x, y, z = (float(v) for v in position)
        item = Instance(
            name, (x, y, z), attitude, float(scale), materials, "tree", collide=False, shadow=shadow, footprint=footprint
        )
        self.items.append(item)
        return item

    def material(self, name: str) -> str:
        """Make a material of the library known, laid by the coordinates of meshes where it is bark; return its name."""
        if name not in self.materials:
            made, textures = _surface(name)
            self.materials[name] = made
            self.textures.update(textures)
        return name

    def solid(self) -> tuple[Instance, ...]:
        """Return the plants as things that are hit as they are seen from near, and keep the others: coarse kin, shadows."""
        hit = seen_from_near(self.items)
        self.items[:] = [item for item in self.items if item.shadow == "only" or item.footprint[0] > 0.0]
        return tuple(replace(item, collide=True) for item in hit)

    def joined(self, scene: Scene, looks: bool = True) -> Scene:
        """Return a scene with the plants: as looks, or as things that are hit as well."""
        items = tuple(self.items)
        return replace(
            scene,
            shapes={**scene.shapes, **self.shapes},
            materials={**scene.materials, **self.materials},
            textures={**scene.textures, **self.textures},
            looks=scene.looks + items if looks else scene.looks,
            instances=scene.instances if looks else scene.instances + items,
        )


@cache
def _surface(name: str) -> tuple[Material, dict[str, Texture]]:
    """Return a surface and its maps: the same pixels each time, so that the looks of a place share them."""
    recipe, tint, relief, rough = _DERIVED.get(name, (name, (1.0, 1.0, 1.0, 1.0), 1.0, 0.0))
    made = with_material(Scene(""), recipe, name, _MAP_SIZE, by_coordinates=recipe.startswith("bark"))
    material = made.materials[name]
    red, green, blue, alpha = (a * b for a, b in zip(material.base_color, tint, strict=True))
    material = replace(material, base_color=(red, green, blue, alpha), normal_scale=material.normal_scale * relief)
    return (replace(material, roughness=rough) if rough else material), made.textures


def _named(part: str, form: TreeForm) -> str:
    return f"{part}/{form.kind}/{form.seed}/{form.season}/{form.age:g}/{form.bare}/{form.detail}"


def about_up(yaw: float) -> Quaternion:
    """Return the turn about z by an angle [rad]."""
    return (0.0, 0.0, math.sin(0.5 * yaw), math.cos(0.5 * yaw))


def scattered(
    rng: np.random.Generator,
    lower: ArrayLike,
    upper: ArrayLike,
    apart: float,
    tries: int,
    avoid: Iterable[Array] = (),
) -> Array:
    """Return points (n, 2) in a rectangle, no two nearer than a distance: dart throwing, on a grid of cells of half that.

    Args:
        rng: Draws them.
        lower: Corner [m].
        upper: The other.
        apart: Least distance [m].
        tries: Darts thrown.
        avoid: Rows (x, y, radius) in which none may lie.
    """
    low, high = np.asarray(lower, float)[:2], np.asarray(upper, float)[:2]
    darts = low + (high - low) * rng.random((tries, 2))
    for row in avoid:
        darts = darts[((darts - row[:2]) ** 2).sum(1) > row[2] ** 2]
    cell = apart / math.sqrt(2.0)
    taken: dict[tuple[int, int], Array] = {}
    for dart in darts:
        x, y = math.floor(dart[0] / cell), math.floor(dart[1] / cell)
        near = (taken.get((x + dx, y + dy)) for dx in (-2, -1, 0, 1, 2) for dy in (-2, -1, 0, 1, 2))
        if all(other is None or ((other - dart) ** 2).sum() >= apart * apart for other in near):
            taken[x, y] = dart
    return np.array(list(taken.values())).reshape(-1, 2)
