"""Writing COLLADA 1.4.1."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from airworthy.core.files import write_text
from airworthy.scenes.formats._parts import Part, Writable, as_model, material_of, parts
from airworthy.scenes.formats._source import unique_name
from airworthy.scenes.formats._xml import Element, identifier, numbers
from airworthy.scenes.formats.model import Model

_DATE = "2000-01-01T00:00:00"  # the format demands one; a fixed one keeps the bytes the same


def write_dae(path: str | Path, thing: Writable) -> Path:
    """Write a mesh, model or scene as COLLADA 1.4.1: z up, metres, world coordinates, one geometry per semantic class.

    Materials keep their base colour and emission; images are left out. The same input gives the same bytes.

    Raises:
        AirworthyError: An instance names a missing shape, or the file cannot be written.
    """
    model = as_model(thing)
    groups: dict[str, list[Part]] = {}
    for part in parts(model):
        groups.setdefault(part.semantic, []).append(part)
    root = Element("COLLADA", xmlns="http://www.collada.org/2005/11/COLLADASchema", version="1.4.1")
    asset = root.add("asset")
    asset.add("contributor").add("authoring_tool", "airworthy")
    asset.add("created", _DATE)
    asset.add("modified", _DATE)
    asset.add("unit", name="meter", meter="1")
    asset.add("up_axis", "Z_UP")
    names = _materials(root, model, [part.material for group in groups.values() for part in group])
    geometries = root.add("library_geometries")
    scene = Element("visual_scene", id="scene", name="scene")
    ids: dict[str, str] = {}
    for semantic, group in groups.items():
        ids[semantic] = unique_name(set(ids.values()), "geometry_" + identifier(semantic))
        _geometry(geometries, ids[semantic], semantic, group, names)
        _node(scene, ids[semantic], semantic, group, names)
    root.add("library_visual_scenes").children.append(scene)
    root.add("scene").add("instance_visual_scene", url="#scene")
    return write_text(path, root.document())


def _materials(root: Element, model: Model, used: list[str]) -> dict[str, str]:
    """Id of each material."""
    names: dict[str, str] = {}
    effects, materials = Element("library_effects"), Element("library_materials")
    for name in dict.fromkeys(used):
        names[name] = unique_name(set(names.values()), identifier(f"material_{name or 'default'}"))
        material = material_of(model, name)
        effect = effects.add("effect", id=names[name] + "-effect")
        surface = effect.add("profile_COMMON").add("technique", sid="common").add("lambert")
        surface.add("emission").add("color", numbers((*material.emissive, 1.0)))
        surface.add("diffuse").add("color", numbers(material.base_color))
        entry = materials.add("material", id=names[name], name=name or "default")
        entry.add("instance_effect", url=f"#{names[name]}-effect")
    if names:
        root.children += [effects, materials]
    return names


def _geometry(library: Element, key: str, semantic: str, group: list[Part], names: dict[str, str]) -> None:
    geometry = library.add("geometry", id=key, name=semantic)
    mesh = geometry.add("mesh")
    _source(mesh, f"{key}-positions", np.concatenate([part.vertices for part in group]))
    normals = all(part.normals is not None for part in group)
    if normals:
        _source(mesh, f"{key}-normals", np.concatenate([part.normals for part in group if part.normals is not None]))
    vertices = mesh.add("vertices", id=f"{key}-vertices")
    vertices.add("input", semantic="POSITION", source=f"#{key}-positions")
    starts = np.cumsum([0] + [len(part.vertices) for part in group])
    for material in dict.fromkeys(part.material for part in group):
        faces = [part.faces + start for part, start in zip(group, starts, strict=False) if part.material == material]
        indices = np.concatenate(faces).reshape(-1)
        triangles = mesh.add("triangles", material=names[material], count=str(len(indices) // 3))
        triangles.add("input", semantic="VERTEX", source=f"#{key}-vertices", offset="0")
        if normals:
            triangles.add("input", semantic="NORMAL", source=f"#{key}-normals", offset="0")
        triangles.add("p", " ".join(map(str, indices.tolist())))


def _source(mesh: Element, key: str, values: NDArray[np.float32]) -> None:
    source = mesh.add("source", id=key)
    source.add("float_array", numbers(values.reshape(-1).tolist()), id=f"{key}-array", count=str(values.size))
    accessor = source.add("technique_common").add("accessor", source=f"#{key}-array", count=str(len(values)), stride="3")
    for axis in "XYZ":
        accessor.add("param", name=axis, type="float")


def _node(scene: Element, key: str, semantic: str, group: list[Part], names: dict[str, str]) -> None:
    node = scene.add("node", id=f"{key}-node", name=semantic, type="NODE")
    binding = node.add("instance_geometry", url=f"#{key}").add("bind_material").add("technique_common")
    for material in dict.fromkeys(part.material for part in group):
        binding.add("instance_material", symbol=names[material], target=f"#{names[material]}")
