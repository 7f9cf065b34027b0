"""A scene as a file for other tools."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import ArrayF32
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.files import make_folder, write_text
from airworthy.geometry import Box, Capsule, Cylinder, Mesh, Sphere
from airworthy.scenes.formats._parts import MeshPart, Writable, as_model, label, material_of, parts, shape_of
from airworthy.scenes.formats._source import unique_name
from airworthy.scenes.formats.gltf.writer import write_glb
from airworthy.scenes.formats.meshes.sampling import sample_points
from airworthy.scenes.formats.model import Model
from airworthy.scenes.formats.obj.writer import write_obj
from airworthy.scenes.formats.write_plain import write_pcd, write_ply, write_points_ply, write_stl
from airworthy.scenes.record import Instance, Light, PointLight, Scene, Sun
from airworthy.scenes.sky.tables import as_gradient

# ---- Writing XML. Nothing here, or anywhere in this package, reads it -------------------------------------------------------

_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


class XmlElement:
    """An element with attributes, and text or children."""

    def __init__(self, tag: str, text: str = "", **attributes: str) -> None:
        self.tag = tag
        self.text = text
        self.attributes = attributes
        self.children: list[XmlElement] = []

    def add(self, tag: str, text: str = "", **attributes: str) -> XmlElement:
        """Append a child and return it."""
        child = XmlElement(tag, text, **attributes)
        self.children.append(child)
        return child

    def lines(self, indent: str = "") -> list[str]:
        """Return the element as lines of text."""
        head = "".join([self.tag, *(f' {name}="{escaped(value)}"' for name, value in self.attributes.items())])
        if not self.children:
            return [f"{indent}<{head}>{escaped(self.text)}</{self.tag}>" if self.text else f"{indent}<{head}/>"]
        inner = [line for child in self.children for line in child.lines(indent + "  ")]
        return [f"{indent}<{head}>", *inner, f"{indent}</{self.tag}>"]

    def document(self) -> str:
        """Return the whole document."""
        return "\n".join(['<?xml version="1.0" encoding="utf-8"?>', *self.lines()]) + "\n"


def escaped(text: str) -> str:
    """Return the text that XML can hold."""
    return html.escape(_FORBIDDEN.sub("?", text), quote=True)


def numbers(values: object) -> str:
    """Return numbers with blanks between them; nine digits keep every float32."""
    return " ".join(f"{value:.9g}" for value in values)  # type: ignore[attr-defined]


def identifier(text: str) -> str:
    """Return a name that XML takes as an id."""
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", text)
    return name if name[:1].isalpha() or name[:1] == "_" else f"_{name}"


# ---- Writing COLLADA 1.4.1 --------------------------------------------------------------------------------------------------

_DATE = "2000-01-01T00:00:00"  # the format demands one; a fixed one keeps the bytes the same


def write_dae(path: str | Path, thing: Writable) -> Path:
    """Write a mesh, model or scene as COLLADA 1.4.1: z up, metres, world coordinates, one geometry per semantic class.

    Materials keep their base colour and emission; images are left out. The same input gives the same bytes.

    Raises:
        AirworthyError: An instance names a missing shape, or the file cannot be written.
    """
    model = as_model(thing)
    groups: dict[str, list[MeshPart]] = {}
    for part in parts(model):
        groups.setdefault(part.semantic, []).append(part)
    root = XmlElement("COLLADA", xmlns="http://www.collada.org/2005/11/COLLADASchema", version="1.4.1")
    asset = root.add("asset")
    asset.add("contributor").add("authoring_tool", "airworthy")
    asset.add("created", _DATE)
    asset.add("modified", _DATE)
    asset.add("unit", name="meter", meter="1")
    asset.add("up_axis", "Z_UP")
    names = _materials(root, model, [part.material for group in groups.values() for part in group])
    geometries = root.add("library_geometries")
    scene = XmlElement("visual_scene", id="scene", name="scene")
    ids: dict[str, str] = {}
    for semantic, group in groups.items():
        ids[semantic] = unique_name(set(ids.values()), "geometry_" + identifier(semantic))
        _geometry(geometries, ids[semantic], semantic, group, names)
        _node(scene, ids[semantic], semantic, group, names)
    root.add("library_visual_scenes").children.append(scene)
    root.add("scene").add("instance_visual_scene", url="#scene")
    return write_text(path, root.document())


def _materials(root: XmlElement, model: Model, used: list[str]) -> dict[str, str]:
    """Id of each material."""
    names: dict[str, str] = {}
    effects, materials = XmlElement("library_effects"), XmlElement("library_materials")
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


def _geometry(library: XmlElement, key: str, semantic: str, group: list[MeshPart], names: dict[str, str]) -> None:
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


def _source(mesh: XmlElement, key: str, values: ArrayF32) -> None:
    source = mesh.add("source", id=key)
    source.add("float_array", numbers(values.reshape(-1).tolist()), id=f"{key}-array", count=str(values.size))
    accessor = source.add("technique_common").add("accessor", source=f"#{key}-array", count=str(len(values)), stride="3")
    for axis in "XYZ":
        accessor.add("param", name=axis, type="float")


def _node(scene: XmlElement, key: str, semantic: str, group: list[MeshPart], names: dict[str, str]) -> None:
    node = scene.add("node", id=f"{key}-node", name=semantic, type="NODE")
    binding = node.add("instance_geometry", url=f"#{key}").add("bind_material").add("technique_common")
    for material in dict.fromkeys(part.material for part in group):
        binding.add("instance_material", symbol=names[material], target=f"#{names[material]}")


# ---- Writing Gazebo worlds (SDF 1.9) ----------------------------------------------------------------------------------------

_BRIGHT = 3.14  # irradiance under which a white surface has radiance 1: that of a Gazebo light of colour 1


def write_sdf(path: str | Path, thing: Writable) -> Path:
    """Write a mesh, model or scene as a Gazebo world: one static model per instance, solids as primitives, lights.

    Meshes go, each once, as .obj with materials and images into the folder `<name>_meshes` beside it. The world has no ground
    of its own, and names no plugins.

    Raises:
        AirworthyError: An instance names a missing shape, or a file cannot be written.
    """
    path = Path(path)
    model = as_model(thing)
    root = XmlElement("sdf", version="1.9")
    world = root.add("world", name=identifier(thing.name if isinstance(thing, Scene) else path.stem))
    physics = world.add("physics", name="default", type="ode")
    physics.add("max_step_size", "0.001")
    physics.add("real_time_factor", "1")
    if isinstance(thing, Scene):
        sky = as_gradient(thing.sky)
        ambient = 0.5 * (np.array(sky.zenith) + np.array(sky.ground)) * sky.intensity
        scene = world.add("scene")
        scene.add("ambient", numbers((*ambient.clip(0, 1), 1.0)))
        scene.add("background", numbers((*np.array(sky.horizon).clip(0, 1), 1.0)))
        scene.add("shadows", "true")
    meshes = _Meshes(model, path)
    names: set[str] = set()
    for index, light in enumerate(model.lights):
        _light(world, index, light)
    for index, instance in enumerate(model.instances):
        name = unique_name(names, identifier(label(instance, index)))
        names.add(name)
        _model(world, name, instance, model, meshes)
    return write_text(path, root.document())


class _Meshes:
    """Mesh files beside the world, each shape with its materials written once."""

    def __init__(self, model: Model, path: Path) -> None:
        self._model = model
        self._folder = path.with_name(path.stem + "_meshes")
        self._names: dict[tuple[str, tuple[str, ...]], str] = {}

    def uri(self, instance: Instance) -> str:
        key = (instance.shape, instance.materials)
        if key not in self._names:
            make_folder(self._folder)
            name = unique_name(set(self._names.values()), identifier(instance.shape))
            self._names[key] = name
            alone = Instance(instance.shape, materials=instance.materials, name=name)
            shapes = {instance.shape: self._model.shapes[instance.shape]}
            write_obj(self._folder / f"{name}.obj", Model(shapes, self._model.materials, self._model.textures, (alone,)))
        return f"{self._folder.name}/{self._names[key]}.obj"


def _pose(element: XmlElement, position: object, attitude: object) -> None:
    angles = frames.to_euler(frames.normalize(np.array(attitude, float)))
    element.add("pose", numbers([float(v) + 0.0 for v in (*position, *angles)]))  # type: ignore[misc]


def _model(world: XmlElement, name: str, instance: Instance, model: Model, meshes: _Meshes) -> None:
    entry = world.add("model", name=name)
    entry.add("static", "true")
    _pose(entry, instance.position, instance.attitude)
    link = entry.add("link", name="link")
    shape = shape_of(model, instance)
    for use, wanted in (("collision", instance.collide), ("visual", instance.visible)):
        if not wanted:
            continue
        element = link.add(use, name=use)
        _write_sdf_geometry(element.add("geometry"), shape, instance, meshes)
        if use == "visual" and not isinstance(shape, Mesh):
            material = material_of(model, instance.materials[0] if instance.materials else "")
            visual = element.add("material")
            visual.add("ambient", numbers(material.base_color))
            visual.add("diffuse", numbers(material.base_color))
            visual.add("emissive", numbers((*np.array(material.emissive).clip(0, 1), 1.0)))


def _write_sdf_geometry(geometry: XmlElement, shape: object, instance: Instance, meshes: _Meshes) -> None:
    scale = instance.scale
    if isinstance(shape, Box):
        geometry.add("box").add("size", numbers(2 * scale * np.array(shape.half_size)))
    elif isinstance(shape, Sphere):
        geometry.add("sphere").add("radius", numbers([scale * shape.radius]))
    elif isinstance(shape, Cylinder | Capsule):
        solid = geometry.add("cylinder" if isinstance(shape, Cylinder) else "capsule")
        solid.add("radius", numbers([scale * shape.radius]))
        solid.add("length", numbers([2 * scale * shape.half_length]))
    else:
        mesh = geometry.add("mesh")
        mesh.add("uri", meshes.uri(instance))
        mesh.add("scale", numbers([scale] * 3))


def _light(world: XmlElement, index: int, light: Light) -> None:
    kind = "directional" if isinstance(light, Sun) else "point" if isinstance(light, PointLight) else "spot"
    entry = world.add("light", name=f"light_{index}", type=kind)
    strength = (light.irradiance if isinstance(light, Sun) else light.intensity) / _BRIGHT
    entry.add("cast_shadows", "true")
    entry.add("diffuse", numbers((*(np.array(light.color) * min(strength, 1.0)), 1.0)))
    entry.add("specular", "0.1 0.1 0.1 1")
    entry.add("intensity", numbers([max(strength, 1.0)]))
    if isinstance(light, Sun):
        entry.add("direction", numbers(light.direction))
        return
    _pose(entry, light.position, (0.0, 0.0, 0.0, 1.0))
    fade = entry.add("attenuation")
    fade.add("range", numbers([light.range or 1000.0]))
    for name, value in (("constant", 0.0), ("linear", 0.0), ("quadratic", 1.0)):
        fade.add(name, numbers([value]))
    if not isinstance(light, PointLight):
        entry.add("direction", numbers(light.direction))
        cone = entry.add("spot")
        cone.add("inner_angle", numbers([2 * light.inner_angle]))  # SDF counts the whole angle
        cone.add("outer_angle", numbers([2 * light.outer_angle]))
        cone.add("falloff", "1")


# -----------------------------------------------------------------------------------------------------------------------------


def _write_cloud_pcd(path: str | Path, thing: Writable) -> Path:
    return write_pcd(path, sample_points(thing))


def _write_cloud_ply(path: str | Path, thing: Writable) -> Path:
    return write_points_ply(path, sample_points(thing))


EXPORTS: dict[str, Callable[[str | Path, Writable], Path]] = {
    "glb": write_glb,
    "obj": write_obj,
    "stl": write_stl,
    "ply": write_ply,
    "dae": write_dae,
    "sdf": write_sdf,
    "pcd": _write_cloud_pcd,
    "cloud.ply": _write_cloud_ply,
}
"""What `export_scene` can write: pcd and cloud.ply hold points, the others triangles."""


def export_scene(scene: Writable, path: str | Path, format: str = "") -> Path:  # noqa: A002
    """Write a scene for other tools, in world coordinates with z up (glTF: y up, as it demands).

    Args:
        scene: The scene, or a model or mesh; actors stand where they begin.
        path: The file. Images and meshes that a format keeps apart go beside it under names that begin with its own.
        format: A key of `EXPORTS`; "": by the name of the file.

    Returns:
        The path written.

    Raises:
        UnknownNameError: There is no such format.
        AirworthyError: An instance names a missing shape, or a file cannot be written.
    """
    chosen = format or _format_of(Path(path).name.lower())
    if chosen not in EXPORTS:
        raise unknown_name("export format", chosen, EXPORTS)
    check_ending(path, chosen, EXPORTS)
    return EXPORTS[chosen](path, scene)


def check_ending(path: str | Path, chosen: str, formats: Iterable[str]) -> None:
    """Refuse to write one format into a file whose name ends as another's does.

    Args:
        path: The file.
        chosen: Its format.
        formats: All that can be written.

    Raises:
        AirworthyError: With both.
    """
    named = _format_of(Path(path).name.lower()) if "." in Path(path).name else chosen
    if named != chosen and named in formats and not (chosen.endswith(".ply") and named == "ply"):
        raise AirworthyError(
            f"The format is {chosen}, and {Path(path).name!r} ends as {named} does: name the file .{chosen}, or leave the"
            " format out."
        )


def _format_of(name: str) -> str:
    if name.endswith(".cloud.ply"):
        return "cloud.ply"
    return "sdf" if name.endswith(".world") else name.rpartition(".")[2]
