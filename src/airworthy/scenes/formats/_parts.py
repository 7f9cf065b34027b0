"""What the writers write: a mesh, a model or a scene, as instances or as parts in world coordinates."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core import frames
from airworthy.core.errors import AirworthyError
from airworthy.geometry import Mesh, Shape
from airworthy.scenes.formats._source import clean_name
from airworthy.scenes.formats.model import Model
from airworthy.scenes.formats.tessellate import tessellate
from airworthy.scenes.record import Actor, Instance, Light, Material, PointLight, Scene, SpotLight

Writable = Mesh | Model | Scene


@dataclass
class Part:
    """Triangles of one instance and one material, in world coordinates."""

    name: str
    semantic: str
    material: str
    """"" for the default."""
    vertices: NDArray[np.float32]
    faces: NDArray[np.int32]
    normals: NDArray[np.float32] | None
    uv: NDArray[np.float32] | None
    colors: NDArray[np.float32] | None


def as_model(thing: Writable) -> Model:
    """A mesh or scene as a model; actors stand where they begin."""
    if isinstance(thing, Model):
        return thing
    if isinstance(thing, Mesh):
        return Model({"mesh": thing}, instances=(Instance("mesh", name="mesh"),))
    if not isinstance(thing, Scene):
        raise AirworthyError(f"A {type(thing).__name__} cannot be written; a Mesh, Model or Scene is expected.")
    actors = {actor.name: actor for actor in thing.actors}
    moving = [carried(actor, part) for actor in thing.actors for part in actor.parts]
    lights = tuple(_carried_light(light, actors) for light in thing.lights)
    return Model(dict(thing.shapes), thing.materials, thing.textures, (*thing.instances, *moving), lights)


def carried(actor: Actor, part: Instance) -> Instance:
    """A part of an actor in the world, where the actor begins."""
    turn = np.array(actor.attitude, float)
    position = np.array(actor.position, float) + frames.rotate(turn, np.array(part.position, float))
    attitude = frames.multiply(turn, np.array(part.attitude, float))
    name = f"{actor.name} {part.name}".strip()
    return dataclasses.replace(part, position=_tuple(position), attitude=_tuple(attitude), name=name)


def _carried_light(light: Light, actors: dict[str, Actor]) -> Light:
    if not isinstance(light, PointLight | SpotLight) or light.attached not in actors:
        return light
    actor = actors[light.attached]
    turn = np.array(actor.attitude, float)
    position = np.array(actor.position, float) + frames.rotate(turn, np.array(light.position, float))
    changes: dict[str, Any] = {"position": _tuple(position), "attached": ""}
    if isinstance(light, SpotLight):
        changes["direction"] = _tuple(frames.rotate(turn, np.array(light.direction, float)))
    return dataclasses.replace(light, **changes)


def _tuple(values: NDArray) -> tuple:
    return tuple(float(v) for v in values)


def material_of(model: Model, name: str) -> Material:
    """A material by name, the default for "" and for one that the model lacks."""
    return model.materials.get(name, Material())


def label(instance: Instance, index: int) -> str:
    """Name of an instance in a file."""
    return clean_name(instance.name, f"{instance.shape}_{index}")


def parts(thing: Writable, *, segments: int = 32) -> Iterator[Part]:
    """Every visible or colliding instance, split by material, in world coordinates; solids become triangles.

    Texture coordinates are multiplied by the material's `uv_scale`, since few formats can say so.

    Raises:
        AirworthyError: An instance names a shape that is missing.
    """
    model = as_model(thing)
    meshes: dict[str, Mesh] = {}
    for index, instance in enumerate(model.instances):
        if instance.shape not in meshes:
            meshes[instance.shape] = tessellate(shape_of(model, instance), segments)
        mesh = meshes[instance.shape]
        placed = _placed(instance, mesh)
        for number, faces in faces_by_material(mesh):
            material = instance.materials[min(number, len(instance.materials) - 1)] if instance.materials else ""
            scale = np.array(material_of(model, material).uv_scale, np.float32)
            used, kept = np.unique(faces, return_inverse=True)
            yield Part(
                label(instance, index),
                instance.semantic,
                material,
                placed[0][used],
                kept.reshape(-1, 3).astype(np.int32),
                None if placed[1] is None else placed[1][used],
                None if mesh.uv is None else mesh.uv[used] * scale,
                None if mesh.colors is None else mesh.colors[used],
            )


def shape_of(model: Model, instance: Instance) -> Shape:
    """Shape of an instance; raises AirworthyError where the model has not got it."""
    if instance.shape not in model.shapes:
        raise AirworthyError(f"Instance {instance.name!r} uses the shape {instance.shape!r}, which is not among the shapes.")
    return model.shapes[instance.shape]


def faces_by_material(mesh: Mesh) -> Iterator[tuple[int, NDArray[Any]]]:
    """(material number, faces) in rising order; empty groups are left out."""
    if mesh.face_material is None:
        if len(mesh.faces):
            yield 0, mesh.faces
        return
    for number in np.unique(mesh.face_material):
        yield int(number), mesh.faces[mesh.face_material == number]


def _placed(instance: Instance, mesh: Mesh) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
    turn = np.array(instance.attitude, float)
    vertices = frames.rotate(turn, mesh.vertices.astype(np.float64) * instance.scale) + np.array(instance.position, float)
    normals = None if mesh.normals is None else frames.rotate(turn, mesh.normals.astype(np.float64)).astype(np.float32)
    return vertices.astype(np.float32), normals
