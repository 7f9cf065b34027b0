"""Surfaces of buildings and streets: recipes of the library, changed by a table, and plain paints, gathered for a scene."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from airworthy.core.errors import unknown_name
from airworthy.core.files import packaged_toml
from airworthy.geometry import Shape
from airworthy.scenes.buildings.panes import pane_materials
from airworthy.scenes.materials.library import MaterialRecipe, material_recipe, with_material
from airworthy.scenes.record import Decal, Instance, Material, Quaternion, Scene, Texture, Vector3

__all__ = ["Fittings", "surface_recipe"]

_PAINTS: dict[str, Material] = {
    # White: colours are those of vertices.
    "painted": Material((1.0, 1.0, 1.0, 1.0), roughness=0.68),
    "lacquer": Material((1.0, 1.0, 1.0, 1.0), roughness=0.16),
    "matt": Material((1.0, 1.0, 1.0, 1.0), roughness=0.9),
    "metal": Material((1.0, 1.0, 1.0, 1.0), metallic=1.0, roughness=0.35),
    "window glass": Material((1.0, 1.0, 1.0, 1.0), roughness=0.04),
    "lamp glass": Material((0.5, 0.5, 0.48, 1.0), roughness=0.3, emissive=(0.030, 0.023, 0.014)),
    # In halls: panes that let light through, stretched film, lamps that burn.
    "clear glass": Material((0.93, 0.96, 0.94, 1.0), roughness=0.02, transmission=0.9, ior=1.5),
    "skylight": Material((0.94, 0.95, 0.90, 1.0), roughness=0.2, transmission=0.72, ior=1.5),
    "galvanised": Material((1.0, 1.0, 1.0, 1.0), metallic=0.5, roughness=0.66),
    "film": Material((1.0, 1.0, 1.0, 1.0), roughness=0.42),
    "lamp tube": Material((0.9, 0.9, 0.9, 1.0), roughness=0.4, emissive=(2.4, 2.35, 2.2)),
}


@cache
def _table() -> dict[str, dict[str, Any]]:
    return {name: dict(row) for name, row in packaged_toml("airworthy.scenes.buildings", "surfaces.toml").items()}


def surface_recipe(name: str) -> MaterialRecipe:
    """Return the recipe of a surface of `surfaces.toml`.

    Raises:
        UnknownNameError: There is none of this name.
    """
    if name not in _table():
        raise unknown_name("surface", name, _table())
    row = {key: value for key, value in _row(name).items() if key != "decals"}
    base = material_recipe(row.pop("recipe"))
    for key in ("numbers", "colors"):
        row[key] = {**getattr(base, key), **row.get(key, {})}
    if "albedo_range" in row:
        row["albedo_range"] = tuple(row["albedo_range"])
    low, high = row.get("albedo_range", base.albedo_range)
    albedo = row.get("albedo", base.albedo)
    # Another stone in the same pattern may be paler than the recipe's own may be.
    row["albedo_range"] = (min(low, albedo), max(high, albedo))
    return replace(base, **row)


def _row(name: str) -> dict[str, Any]:
    """Return what the table says of a surface, and, where it is like another, of that."""
    row = dict(_table()[name])
    other = row.pop("like", "")
    return {**_row(other), **row} if other else row


def _decals(name: str) -> list[Decal]:
    """Return what is laid on every tile of a surface: in the table name, where its middle is [m], side [m]."""
    return [Decal(str(one[0]), (float(one[1]), float(one[2])), float(one[3])) for one in _row(name).get("decals", [])]


@dataclass
class Fittings:
    """Shapes, materials and things that are made for a scene, before they join it."""

    map_size: int = 512
    """Side of the materials' maps [px]."""
    shapes: dict[str, Shape] = field(default_factory=dict)
    materials: dict[str, Material] = field(default_factory=dict)
    textures: dict[str, Texture] = field(default_factory=dict)
    items: list[Instance] = field(default_factory=list)

    def surface(self, name: str) -> str:
        """Make a surface known; return its name.

        Args:
            name: Of `surfaces.toml`, of a paint, or "rooms", "shops" or "words".
        """
        if name in self.materials:
            return name
        if name in _PAINTS:
            self.materials[name] = _PAINTS[name]
            return name
        if name in ("rooms", "shops", "words"):
            materials, textures = pane_materials()
            self.materials[name] = materials[name]
            self.textures |= {key: value for key, value in textures.items() if key.partition("/")[0] == name}
            return name
        made = with_material(Scene(""), surface_recipe(name), name, self.map_size, _decals(name))
        material = made.materials[name]
        if material.alpha_cutoff > 0.0:
            # Laid on cards that lie within its outline: no hole has to be looked through.
            material = replace(material, alpha_cutoff=0.0)
        self.materials[name] = material
        self.textures |= made.textures
        return name

    def thing(
        self,
        name: str,
        shape: Shape,
        materials: tuple[str, ...],
        position: Vector3 = (0.0, 0.0, 0.0),
        attitude: Quaternion = (0.0, 0.0, 0.0, 1.0),
        semantic: str = "object",
        scale: float = 1.0,
    ) -> None:
        """Stand something somewhere.

        Args:
            name: Of the shape; one that is known by its name already is used again.
            shape: It.
            materials: Surfaces, in the order of its faces' numbers.
            position: World [m].
            attitude: Local to world.
            semantic: Its class.
            scale: Over the shape's own size.
        """
        self.shapes.setdefault(name, shape)
        used = tuple(self.surface(one) for one in materials)
        x, y, z = (float(v) for v in position)
        self.items.append(Instance(name, (x, y, z), attitude, float(scale), used, semantic))

    def joined(self, scene: Scene, looks: bool) -> Scene:
        """Return a scene with these things: as looks, or as things that are hit as well."""
        items = tuple(replace(item, collide=False) if looks else item for item in self.items)
        return replace(
            scene,
            shapes={**scene.shapes, **self.shapes},
            materials={**scene.materials, **self.materials},
            textures={**scene.textures, **self.textures},
            looks=scene.looks + items if looks else scene.looks,
            instances=scene.instances if looks else scene.instances + items,
        )
