"""Plants in scenes: their shapes and materials joined to a scene's tables, and where they stand."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from airworthy.core.arrays import Array, ArrayLike
from airworthy.geometry import Shape
from airworthy.scenes.materials.library import with_material
from airworthy.scenes.record import Instance, Material, Quaternion, Scene, Texture
from airworthy.scenes.vegetation.kinds import tree_kind
from airworthy.scenes.vegetation.tree import TreeForm, tree_mesh

__all__ = ["FOLIAGE", "Planting", "about_up", "scattered"]

FOLIAGE = "foliage"
"""Material of leaves, needles and blades: white, since their colours are those of their vertices."""
_FOLIAGE = Material((1.0, 1.0, 1.0, 1.0), roughness=0.62)
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
    materials: dict[str, Material] = field(default_factory=lambda: {FOLIAGE: _FOLIAGE})
    textures: dict[str, Texture] = field(default_factory=dict)
    items: list[Instance] = field(default_factory=list)

    def tree(self, form: TreeForm, position: Sequence[float], yaw: float = 0.0, scale: float = 1.0) -> Instance:
        """Stand a tree somewhere; return its instance, which is among the items already.

        Args:
            form: Which tree.
            position: Of its foot, world [m].
            yaw: Heading [rad].
            scale: Size over the form's own.
        """
        name = f"{form.kind}/{form.seed}/{form.season}/{form.age:g}/{form.bare}/{form.detail}"
        bark = self.material(tree_kind(form.kind).bark)
        return self.thing(name, tree_mesh(form), (bark, FOLIAGE), position, about_up(yaw), scale)

    def thing(
        self,
        name: str,
        shape: Shape,
        materials: tuple[str, ...],
        position: Sequence[float],
        attitude: Quaternion = (0.0, 0.0, 0.0, 1.0),
        scale: float = 1.0,
    ) -> Instance:
        """Stand anything somewhere.

        Args:
            name: Of the shape.
            shape: It; one that is known by its name already is used again.
            materials: Of the planting.
            position: World [m].
            attitude: Local to world.
            scale: Over the shape's own size.
        """
        self.shapes.setdefault(name, shape)
        x, y, z = (float(v) for v in position)
        item = Instance(name, (x, y, z), attitude, float(scale), materials, "tree", collide=False)
        self.items.append(item)
        return item

    def material(self, name: str) -> str:
        """Make a material of the library known, laid by the coordinates of meshes where it is bark; return its name."""
        if name not in self.materials:
            recipe, tint, relief, rough = _DERIVED.get(name, (name, (1.0, 1.0, 1.0, 1.0), 1.0, 0.0))
            made = with_material(Scene(""), recipe, name, _MAP_SIZE, by_coordinates=recipe.startswith("bark"))
            material = made.materials[name]
            red, green, blue, alpha = (a * b for a, b in zip(material.base_color, tint, strict=True))
            material = replace(material, base_color=(red, green, blue, alpha), normal_scale=material.normal_scale * relief)
            self.materials[name] = replace(material, roughness=rough) if rough else material
            self.textures.update(made.textures)
        return name

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
