"""What of a scene a format has no place for, as it is written here: fields of materials, lights, motion, weather, the place."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from typing import Any

from airworthy.geometry import Mesh
from airworthy.scenes.formats._parts import Writable, as_model, material_of, shape_of
from airworthy.scenes.formats.model import Model
from airworthy.scenes.record import Instance, Material, Scene

__all__ = ["export_losses"]

_MAPS = {"base_color_map", "metallic_roughness_map", "normal_map", "occlusion_map", "emissive_map", "height_map"}
_MTL = {"base_color", "metallic", "roughness", "emissive", "normal_scale", "height_scale", "uv_scale"} | _MAPS
_MTL |= {"transmission", "ior"}
_KEPT = {"obj": _MTL, "sdf": _MTL, "dae": {"base_color", "emissive"}}
"""Fields of a material that are in the file (`uv_scale` in the texture coordinates). In glb are all, and with `_MTL` the holes
of a map with alpha."""
_OF_SOLIDS = {"base_color", "emissive"}
"""Of an sdf's boxes, spheres, cylinders and capsules, which name no mesh."""
_BARE = {"stl": "shapes alone", "ply": "shapes and the colours of surfaces", "pcd": "points alone", "cloud.ply": "points alone"}
_LIGHTS = ("glb", "sdf")
"""Formats that hold lights; of motion and weather toml alone tells."""
_SKIES, _CLASSES, _CLOUDS = ("sdf",), ("glb", "dae"), ("pcd", "cloud.ply")
"""Those that hold the colours of a sky, the classes of things, and, with points, bounds, start and goal."""
_ALIKE = ("obj", "dae", "stl", "ply")
"""Those whose shapes are all seen and hit; points are of what is hit."""

_NEEDS = {
    "normal_scale": "normal_map",
    "height_scale": "height_map",
    "detail_repeat": "detail_map",
    "ior": "transmission",
    "attenuation": "transmission",
    "scattered": "attenuation",
    "wave_slope": "attenuation",
    "translucent_tint": "translucency",
}
"""Without these a field says nothing."""


def export_losses(thing: Writable, format: str) -> tuple[str, ...]:  # noqa: A002
    """Return what is left out when a mesh, model or scene is written, a sentence for materials, one for the rest and one
    for shapes that are not seen and hit alike, or none.

    Args:
        thing: What `export_scene` is given.
        format: A key of `EXPORTS`.
    """
    if format not in (*_KEPT, *_BARE, "glb"):
        return ()
    model = as_model(thing)
    return (*_of_materials(model, format), *_of_scene(thing, model, format))


def _of_materials(model: Model, format: str) -> tuple[str, ...]:  # noqa: A002
    used: dict[str, set[str]] = {}
    for instance in model.instances:
        solid = format == "sdf" and not isinstance(shape_of(model, instance), Mesh)
        # A solid has one material.
        for name in (instance.materials or ("",))[: 1 if solid else None]:
            kept = _kept(format, solid) | _kept_holes(model, name, format, solid)
            used.setdefault(name, set()).update(_lost(material_of(model, name), kept))
            if solid and max(material_of(model, name).emissive) > 1.0:
                used[name].add("emissive above 1")
    spoken = {name for name, lost in used.items() if lost}
    if format in _BARE:
        if not spoken:
            return ()
        return (f"It holds {_BARE[format]}: what {len(spoken)} of {len(used)} materials say is left out; glb keeps all.",)
    lost = Counter(field for name in used for field in used[name])
    if not lost:
        return ()
    order = [item.name for item in fields(Material)]
    names = sorted(lost, key=lambda name: order.index(name) if name in order else len(order))
    counts = ", ".join(f"{name} of {lost[name]}" for name in names)
    return (f"Left out, since {format} as written here has no place for it: {counts} of {len(used)} materials; glb keeps all.",)


def _kept(format: str, solid: bool) -> set[str]:  # noqa: A002
    if format in _BARE:
        return {"base_color"} if format == "ply" else set()
    return _OF_SOLIDS if solid else _KEPT.get(format, {item.name for item in fields(Material)})


def _kept_holes(model: Model, name: str, format: str, solid: bool) -> set[str]:  # noqa: A002
    """Return the field of holes where the format has a mask for them, and the material one to be written."""
    if _KEPT.get(format) != _MTL or solid:
        return set()
    texture = model.textures.get(material_of(model, name).base_color_map)
    return {"alpha_cutoff"} if texture is not None and texture.pixels.shape[2] == 4 else set()


def _of_scene(thing: Writable, model: Model, format: str) -> tuple[str, ...]:  # noqa: A002
    lost = [f"lights ({len(model.lights)})"] if model.lights and format not in _LIGHTS else []
    if isinstance(thing, Scene):
        lost += [f"motion of actors ({len(thing.actors)})"] if thing.actors else []
        plain = {item.name: item.default for item in fields(Scene)}
        lost += [name for name in ("haze", "rain", "snow") if getattr(thing, name) != plain[name]]
        lost += _of_place(thing, model, format)
    told = (f"Left out, too: {', '.join(lost)}; toml keeps all.",) if lost else ()
    return (*told, *_of_unlike(model, format))


def _of_place(thing: Scene, model: Model, format: str) -> list[str]:  # noqa: A002
    """Return what of a place itself is left out: what surrounds it, what its things are, and where flights begin and lead."""
    plain = Scene("")
    classes = {item.semantic for item in model.instances}
    lost = ["sky"] if thing.sky != plain.sky and format not in _SKIES else []
    lost += [f"classes ({len(classes)})"] if classes > {Instance.semantic} and format not in _CLASSES else []
    said = [name for name in ("bounds", "start", "goal") if getattr(thing, name) != getattr(plain, name)]
    lost += said if format not in _CLOUDS else []
    lost += [f"looks ({len(thing.looks)})"] if thing.looks and format in _CLOUDS else []
    counted = ((name, len(getattr(thing, name))) for name in ("spawn", "gates", "beacons", "courses"))
    return lost + [f"{name} ({count})" for name, count in counted if count]


def _of_unlike(model: Model, format: str) -> tuple[str, ...]:  # noqa: A002
    """Return what becomes seen and hit alike where a format has one kind of shape."""
    if format not in _ALIKE:
        return ()
    seen, hit = (sum(not getattr(item, name) for item in model.instances) for name in ("collide", "visible"))
    counts = [f"{count} that are {how}" for count, how in ((seen, "seen and not hit"), (hit, "hit and not seen")) if count]
    return (f"Shapes like all others there: {' and '.join(counts)}; glb and sdf part them.",) if counts else ()


def _lost(material: Material, kept: set[str]) -> list[str]:
    """Names of fields that say something and are not kept, in their order."""
    plain, mapped = Material(), any(getattr(material, name) for name in (*_MAPS, "detail_map"))

    def says(name: str) -> bool:
        value: Any = getattr(material, name)
        if value == getattr(plain, name) or (name in ("texture_size", "uv_scale") and not mapped):
            return False
        return name not in _NEEDS or says(_NEEDS[name])

    return [item.name for item in fields(Material) if item.name not in kept and says(item.name)]
