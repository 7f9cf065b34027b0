"""What of a scene's materials a format has no place for, as it is written here."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from typing import Any

from airworthy.scenes.formats._parts import Writable, as_model, material_of
from airworthy.scenes.record import Material

__all__ = ["export_losses"]

_MAPS = {"base_color_map", "metallic_roughness_map", "normal_map", "occlusion_map", "emissive_map", "height_map"}
_MTL = {"base_color", "metallic", "roughness", "emissive", "normal_scale", "height_scale", "uv_scale"} | _MAPS
_KEPT = {"obj": _MTL, "sdf": _MTL, "dae": {"base_color", "emissive", "uv_scale"}}
"""Fields of a material that are in the file (`uv_scale` in the texture coordinates; of sdf, its meshes'). In glb are all; stl,
ply and point clouds have no materials."""

_NEEDS = {
    "normal_scale": "normal_map",
    "height_scale": "height_map",
    "detail_repeat": "detail_map",
    "ior": "transmission",
    "attenuation": "transmission",
    "scattered": "transmission",
    "wave_slope": "transmission",
}
"""Without these a field says nothing."""


def export_losses(thing: Writable, format: str) -> tuple[str, ...]:  # noqa: A002
    """Return what is left out when a mesh, model or scene is written, a sentence or none.

    Args:
        thing: What `export_scene` is given.
        format: A key of `EXPORTS`.
    """
    if format not in _KEPT:
        return ()
    model = as_model(thing)
    used = {name: material_of(model, name) for instance in model.instances for name in instance.materials}
    lost: Counter[str] = Counter()
    for material in used.values():
        lost.update(_lost(material, _KEPT[format]))
    if not lost:
        return ()
    counts = ", ".join(f"{name} of {count}" for name, count in lost.items())
    return (f"Left out, since {format} as written here has no place for it: {counts} of {len(used)} materials; glb keeps all.",)


def _lost(material: Material, kept: set[str]) -> list[str]:
    """Names of fields that say something and are not kept, in their order."""
    plain, mapped = Material(), any(getattr(material, name) for name in (*_MAPS, "detail_map"))

    def says(name: str) -> bool:
        value: Any = getattr(material, name)
        if value == getattr(plain, name) or (name == "texture_size" and not mapped):
            return False
        return name not in _NEEDS or bool(getattr(material, _NEEDS[name]))

    return [item.name for item in fields(Material) if item.name not in kept and says(item.name)]
