"""Raw triangles of a file made into a mesh that nothing downstream can stumble over: what is unfit is dropped and counted."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayF32, NDArray
from airworthy.core.errors import AirworthyError
from airworthy.geometry import Mesh, Shape
from airworthy.scenes.extent import seen_from_near
from airworthy.scenes.formats._source import ModelSource, clean_name
from airworthy.scenes.formats.meshes.solids import tessellate
from airworthy.scenes.formats.model import Model
from airworthy.scenes.record import Actor, Instance, Light, Material, PointLight, Scene, SpotLight

# ---- What the writers write: a mesh, a model or a scene, as instances or as parts in world coordinates ----------------------

Writable = Mesh | Model | Scene


@dataclass
class MeshPart:
    """Triangles of one instance and one material, in world coordinates."""

    name: str
    semantic: str
    material: str
    """"" for the default."""
    vertices: ArrayF32
    faces: NDArray[np.int32]
    normals: ArrayF32 | None
    uv: ArrayF32 | None
    colors: ArrayF32 | None


def as_model(thing: Writable) -> Model:
    """Return a mesh or scene as a model; actors stand where they begin."""
    if isinstance(thing, Model):
        return thing
    if isinstance(thing, Mesh):
        return Model({"mesh": thing}, instances=(Instance("mesh", name="mesh"),))
    if not isinstance(thing, Scene):
        raise AirworthyError(f"A {type(thing).__name__} cannot be written; a Mesh, Model or Scene is expected.")
    actors = {actor.name: actor for actor in thing.actors}
    moving = [carried(actor, part) for actor in thing.actors for part in actor.parts]
    lights = tuple(_carried_light(light, actors) for light in thing.lights)
    looks = [
        dataclasses.replace(carried(actors[look.attached], look) if look.attached in actors else look, collide=False)
        for look in seen_from_near(thing.looks)
    ]
    return Model(dict(thing.shapes), thing.materials, thing.textures, (*thing.instances, *looks, *moving), lights)


def carried(actor: Actor, part: Instance) -> Instance:
    """Return a part of an actor in the world, where the actor begins."""
    turn = np.array(actor.attitude, float)
    position = np.array(actor.position, float) + frames.rotate(turn, np.array(part.position, float))
    attitude = frames.multiply(turn, np.array(part.attitude, float))
    name = f"{actor.name} {part.name}".strip()
    return dataclasses.replace(part, position=_tuple(position), attitude=_tuple(attitude), name=name, attached="")


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
    """Return a material by name, the default for "" and for one that the model lacks."""
    return model.materials.get(name, Material())


def label(instance: Instance, index: int) -> str:
    """Return the name of an instance in a file."""
    return clean_name(instance.name, f"{instance.shape}_{index}")


def parts(thing: Writable, *, segments: int = 32) -> Iterator[MeshPart]:
    """Yield every visible or colliding instance, split by material, in world coordinates; solids become triangles.

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
            # A piece of one material needs only its own vertices.
            used, kept = np.unique(faces, return_inverse=True)
            yield MeshPart(
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
    """Return the shape of an instance; raises AirworthyError where the model has not got it."""
    if instance.shape not in model.shapes:
        raise AirworthyError(f"Instance {instance.name!r} uses the shape {instance.shape!r}, which is not among the shapes.")
    return model.shapes[instance.shape]


def faces_by_material(mesh: Mesh) -> Iterator[tuple[int, ArrayAny]]:
    """Yield (material number, faces) in rising order; empty groups are left out."""
    if mesh.face_material is None:
        if len(mesh.faces):
            yield 0, mesh.faces
        return
    for number in np.unique(mesh.face_material):
        yield int(number), mesh.faces[mesh.face_material == number]


def _placed(instance: Instance, mesh: Mesh) -> tuple[ArrayF32, ArrayF32 | None]:
    turn = np.array(instance.attitude, float)
    vertices = frames.rotate(turn, mesh.vertices.astype(np.float64) * instance.scale) + np.array(instance.position, float)
    normals = None if mesh.normals is None else frames.rotate(turn, mesh.normals.astype(np.float64)).astype(np.float32)
    return vertices.astype(np.float32), normals


# -----------------------------------------------------------------------------------------------------------------------------

_BLOCK = 1 << 17
_UV_MAX = 1e6


@dataclass
class RawMesh:
    """Arrays as they stand in a file: lengths fit, indices are in range, values may be anything."""

    vertices: ArrayF32
    faces: NDArray[np.int32]
    normals: ArrayF32 | None = None
    uv: ArrayF32 | None = None
    colors: ArrayF32 | None = None
    face_material: NDArray[np.int32] | None = None
    channels: dict[str, ArrayF32] = field(default_factory=dict)
    joints: NDArray[np.int32] | None = None
    weights: ArrayF32 | None = None


def clean(source: ModelSource, raw: RawMesh) -> RawMesh:
    """Drop vertices that are not finite, faces that use them or have no area; mend normals and texture coordinates.

    Args:
        source: The file, which gets a note of everything that was dropped or mended.
        raw: The mesh; its arrays may be changed.
    """
    limit = np.float32(source.limits.coordinate)
    sound: ArrayBool = np.all(np.abs(raw.vertices) <= limit, axis=1)  # False also for NaN
    keep = _with_area(raw.vertices, raw.faces, sound)
    unsound_faces = int((~sound[raw.faces].all(1)).sum()) if not sound.all() else 0
    flat = int(len(keep) - keep.sum()) - unsound_faces
    if flat:
        source.warn("faces without area dropped", flat)
    if len(keep) and not keep.any() and unsound_faces:
        source.refuse(
            f"no triangle is left, since {unsound_faces:,} of {len(keep):,} have a corner that is not finite or lies"
            f" beyond {limit:g} m"
        )
    if not keep.all():
        raw.faces = raw.faces[keep]
        if raw.face_material is not None:
            raw.face_material = raw.face_material[keep]
    if not sound.all():
        source.warn(f"vertices dropped that are not finite or beyond {limit:g} m", int((~sound).sum()))
        _keep_vertices(raw, sound)
    _mend(source, raw)
    return raw


def finish(source: ModelSource, raw: RawMesh) -> Mesh:
    """Return the mesh of cleaned arrays, its normals on the side of its faces' fronts."""
    if raw.normals is not None and len(raw.faces):
        _agree(source, raw)
    largest = float(np.abs(raw.vertices).max()) if raw.vertices.size else 0.0
    # A hundred kilometres: there a float32 keeps six millimetres.
    if largest > 1e5:
        source.warn(f"coordinates reach {largest:.3g} m, where a float32 keeps {largest * 6e-8:.2g} m: subtract an offset")
    return Mesh(raw.vertices, raw.faces, raw.normals, raw.uv, raw.colors, raw.face_material, raw.channels)


def _with_area(vertices: ArrayF32, faces: NDArray[np.int32], sound: ArrayBool) -> ArrayBool:
    """(F,) whether a face has sound vertices and an area; in blocks, to bound the memory."""
    keep = np.empty(len(faces), bool)
    for start in range(0, len(faces), _BLOCK):
        block = faces[start : start + _BLOCK]
        good: ArrayBool = np.all(sound[block], axis=1)
        # Zeros for what is unsound: NaN would raise a warning for each.
        corners = np.where(good[:, None, None], vertices[block], 0).astype(np.float64)
        cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        keep[start : start + _BLOCK] = good & (cross != 0).any(1)
    return keep


def _keep_vertices(raw: RawMesh, keep: ArrayBool) -> None:
    # Number of each kept vertex among the kept; others are named by no face any more.
    renumbered = np.cumsum(keep, dtype=np.int32) - 1
    raw.faces = renumbered[raw.faces].astype(np.int32).reshape(-1, 3)
    raw.vertices = raw.vertices[keep]
    for name in ("normals", "uv", "colors", "joints", "weights"):
        value = getattr(raw, name)
        if value is not None:
            setattr(raw, name, value[keep])
    raw.channels = {name: value[keep] for name, value in raw.channels.items()}


def compact(raw: RawMesh) -> RawMesh:
    """Return the mesh without the vertices that no face uses."""
    used = np.zeros(len(raw.vertices), bool)
    used[raw.faces.reshape(-1)] = True
    if not used.all():
        _keep_vertices(raw, used)
    return raw


_AGAINST = -0.5
"""Cosine between a normal and that of the faces around below which it points the wrong way: 120 degrees, since normals of
leaves and grass are bent on purpose, though seldom so far."""


def _agree(source: ModelSource, raw: RawMesh) -> None:
    """Make normals and windings agree: what points against the side that its faces call their front is drawn dark.

    Where most faces disagree with their normals, the normals are turned; where fewer or just half do, or where these lie among
    others that agree, the faces are wound wrong: turning normals that several faces share would leave patches.
    """
    assert raw.normals is not None
    size = 46 * len(raw.vertices) + 2 * len(raw.faces)
    source.take(size, "the sides of its normals")
    side = _face_sides(raw)
    against = (side < 0) & ~_folded(source, raw, side)
    if against.any():
        if int(against.sum()) <= int((side > 0).sum()) or _patchwork(raw, side):
            source.warn("faces turned round that are wound against their vertex normals", int(against.sum()))
            raw.faces = np.where(against[:, None], raw.faces[:, [0, 2, 1]], raw.faces)
        else:
            _turn_normals(source, raw)
    source.give_back(size)


def _turn_normals(source: ModelSource, raw: RawMesh) -> None:
    """Turn round the normals that point against the winding of the faces around them, also those that do so by little."""
    assert raw.normals is not None
    around, known = unit(_summed(raw.vertices, raw.faces))
    # Also those in between: they would be left alone among turned ones.
    turned = known & (np.einsum("vi,vi->v", around, raw.normals) < 0.0)
    source.warn("vertex normals turned round that point against the winding of their faces", int(turned.sum()))
    raw.normals = np.where(turned[:, None], -raw.normals, raw.normals)


def _face_sides(raw: RawMesh) -> NDArray[np.int8]:
    """(F,) -1 where a face is wound against its normals, 1 where it is wound as they point, 0 where they are bent aside."""
    assert raw.normals is not None
    side = np.empty(len(raw.faces), np.int8)
    for start in range(0, len(raw.faces), _BLOCK):
        block = raw.faces[start : start + _BLOCK]
        corners = raw.vertices[block].astype(np.float64)
        front, _ = unit(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]))
        mean, known = unit(raw.normals[block].sum(1))
        cosine = np.where(known, np.einsum("fi,fi->f", front, mean), 0.0)
        side[start : start + _BLOCK] = np.where(cosine < _AGAINST, -1, cosine > -_AGAINST)
    return side


def _folded(source: ModelSource, raw: RawMesh, side: NDArray[np.int8]) -> ArrayBool:
    """(F,) whether a face against its normals is wound as its neighbours that are not: a fold of a scan, no mistake.

    Two faces are wound alike if they run along the edge between them to and fro.
    """
    result = np.zeros(len(side), bool)
    if not (side < 0).any():
        return result
    touched = np.zeros(len(raw.vertices), bool)
    touched[raw.faces[side < 0]] = True
    near = raw.faces[(side > 0) & (touched[raw.faces].sum(1) > 1)]
    against = raw.faces[side < 0]
    size = 120 * (len(near) + len(against))
    source.take(size, "the edges of its faces")
    count = np.int64(len(raw.vertices))
    fro = near[:, [1, 2, 0]] * count + near
    result[side < 0] = np.isin(against * count + against[:, [1, 2, 0]], fro).any(1)
    source.give_back(size)
    return result


def _patchwork(raw: RawMesh, side: NDArray[np.int8]) -> bool:
    """Tell whether most faces that are wound against their normals share one of these with a face that is not."""
    agreeing = np.zeros(len(raw.vertices), bool)
    agreeing[raw.faces[side > 0]] = True
    return bool(agreeing[raw.faces[side < 0]].any(1).mean() > 0.5)


def vertex_normals(vertices: ArrayF32, faces: NDArray[np.int32]) -> ArrayF32:
    """Return (V, 3) unit normals, faces weighted by area; vertices without a face get z."""
    return unit(_summed(vertices, faces))[0]


def _summed(vertices: ArrayF32, faces: NDArray[np.int32]) -> Array:
    """Return (V, 3) sums of the normals of the faces around each vertex, as long as twice their areas."""
    total = np.zeros((len(vertices), 3))
    for start in range(0, len(faces), _BLOCK):
        block = faces[start : start + _BLOCK]
        corners = vertices[block].astype(np.float64)
        cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        for corner in range(3):
            for axis in range(3):
                total[:, axis] += np.bincount(block[:, corner], cross[:, axis], len(vertices))
    return total


def unit(vectors: NDArray) -> tuple[ArrayF32, ArrayBool]:
    """Return rows of length one, and which of them had a direction; the others become z."""
    wide = vectors.astype(np.float64)
    largest = np.abs(wide).max(1, initial=0.0)
    good = np.isfinite(largest) & (largest > 0)
    wide[~good] = (0.0, 0.0, 1.0)
    wide /= np.where(good, largest, 1.0)[:, None]  # first by the largest entry: squares of tiny ones would vanish
    return (wide / np.linalg.norm(wide, axis=1, keepdims=True)).astype(np.float32), good


def _mend(source: ModelSource, raw: RawMesh) -> None:
    if raw.normals is not None:
        raw.normals, good = unit(raw.normals)
        if not good.all():
            source.warn("normals without a direction replaced by those of the faces", int((~good).sum()))
            # Of the faces around: better than a fixed direction, which would show as a dark spot.
            raw.normals[~good] = vertex_normals(raw.vertices, raw.faces)[~good]
    if raw.uv is not None:
        bad = ~(np.abs(raw.uv) <= _UV_MAX).all(1)
        if bad.any():
            source.warn("texture coordinates that are not finite set to zero", int(bad.sum()))
            raw.uv[bad] = 0.0
    if raw.colors is not None:
        raw.colors = np.nan_to_num(raw.colors, nan=1.0, posinf=1.0, neginf=0.0).clip(0.0, 1.0).astype(np.float32)
    for name, value in raw.channels.items():
        bad = ~np.isfinite(value)
        if bad.any():
            source.warn(f"values of the channel {name} that are not finite set to zero", int(bad.sum()))
            value[bad] = 0.0
    if raw.weights is not None:
        _mend_weights(source, raw)


def _mend_weights(source: ModelSource, raw: RawMesh) -> None:
    assert raw.weights is not None
    weights = np.nan_to_num(raw.weights.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0).clip(0.0, 1e6)
    total = weights.sum(1)
    lost = total <= 0
    if lost.any():
        source.warn("vertices without skin weights bound to their first joint", int(lost.sum()))
        weights[lost] = (1.0, 0.0, 0.0, 0.0)
        total[lost] = 1.0
    raw.weights = (weights / total[:, None]).astype(np.float32)
