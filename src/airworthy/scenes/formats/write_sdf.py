"""Writing Gazebo worlds (SDF 1.9)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from airworthy.core import frames
from airworthy.core.files import make_folder, write_text
from airworthy.geometry import Box, Capsule, Cylinder, Mesh, Sphere
from airworthy.scenes.formats._parts import Writable, as_model, label, material_of, shape_of
from airworthy.scenes.formats._source import unique_name
from airworthy.scenes.formats._xml import Element, identifier, numbers
from airworthy.scenes.formats.model import Model
from airworthy.scenes.formats.write_obj import write_obj
from airworthy.scenes.record import Instance, Light, PointLight, Scene, Sun

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
    root = Element("sdf", version="1.9")
    world = root.add("world", name=identifier(thing.name if isinstance(thing, Scene) else path.stem))
    physics = world.add("physics", name="default", type="ode")
    physics.add("max_step_size", "0.001")
    physics.add("real_time_factor", "1")
    if isinstance(thing, Scene):
        ambient = 0.5 * (np.array(thing.sky.zenith) + np.array(thing.sky.ground)) * thing.sky.intensity
        scene = world.add("scene")
        scene.add("ambient", numbers((*ambient.clip(0, 1), 1.0)))
        scene.add("background", numbers((*np.array(thing.sky.horizon).clip(0, 1), 1.0)))
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


def _pose(element: Element, position: object, attitude: object) -> None:
    angles = frames.to_euler(frames.normalize(np.array(attitude, float)))
    element.add("pose", numbers([float(v) + 0.0 for v in (*position, *angles)]))  # type: ignore[misc]


def _model(world: Element, name: str, instance: Instance, model: Model, meshes: _Meshes) -> None:
    entry = world.add("model", name=name)
    entry.add("static", "true")
    _pose(entry, instance.position, instance.attitude)
    link = entry.add("link", name="link")
    shape = shape_of(model, instance)
    for use, wanted in (("collision", instance.collide), ("visual", instance.visible)):
        if not wanted:
            continue
        element = link.add(use, name=use)
        _geometry(element.add("geometry"), shape, instance, meshes)
        if use == "visual" and not isinstance(shape, Mesh):
            material = material_of(model, instance.materials[0] if instance.materials else "")
            look = element.add("material")
            look.add("ambient", numbers(material.base_color))
            look.add("diffuse", numbers(material.base_color))
            look.add("emissive", numbers((*np.array(material.emissive).clip(0, 1), 1.0)))


def _geometry(geometry: Element, shape: object, instance: Instance, meshes: _Meshes) -> None:
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


def _light(world: Element, index: int, light: Light) -> None:
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
