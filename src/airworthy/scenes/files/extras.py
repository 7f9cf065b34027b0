"""What a scene file may say more shortly than its record: headings, model files with a pose, persons, skinned actors."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, NDArray
from airworthy.core.errors import AirworthyError, AssetError, AssetWarning, unknown_name
from airworthy.geometry import Capsule, Mesh, Shape
from airworthy.scenes.actors import ActorKit
from airworthy.scenes.files.assets import SCHEMA, Folder
from airworthy.scenes.files.skeleton_recording import read_skeletons, recorded_person
from airworthy.scenes.formats.model import Model, Skeleton
from airworthy.scenes.people import person
from airworthy.scenes.record import IDENTITY, Actor, Color, Instance, Quaternion, Scene, Vector3, prefixed_material
from airworthy.scenes.skeletons import joint_matrices, skinned_mesh

__all__ = ["fit_capsule", "fit_capsules", "skinned_actor"]

# -----------------------------------------------------------------------------------------------------------------------------
# Actors from skinned models: what is seen is the mesh, what rays and contact meet by default is a capsule per bone.

_SHARE_MIN = 0.004
"""Joints that hold a smaller share of the vertices (finger tips) give them to their parents."""
_RADIUS_MIN = 0.005


def fit_capsule(points: NDArray[np.floating]) -> tuple[Capsule, Array, Array]:
    """Return a capsule around points: along their longest principal axis, wide enough for 95 % of them, long enough for all.

    Args:
        points: (n, 3), n >= 1.

    Returns:
        The capsule, its centre (3,) and its attitude (4,).
    """
    at = np.asarray(points, float)
    middle = at.mean(0)
    # The direction in which the vertices are spread most: along a limb.
    axis = np.linalg.svd(at - middle, full_matrices=False)[2][0] if len(at) > 1 else np.array([0.0, 0.0, 1.0])
    axis = axis if axis[np.argmax(np.abs(axis))] > 0.0 else -axis  # the sign of a singular vector is arbitrary
    along = (at - middle) @ axis
    across = (at - middle) - along[:, None] * axis
    # The middle of the extent across is a better line than the mean, which dense patches of vertices pull aside.
    shift = 0.5 * (across.min(0) + across.max(0))
    shift -= (shift @ axis) * axis
    # A few vertices stand out at joints; a capsule around all of them would be too thick.
    radius = max(float(np.quantile(np.linalg.norm(across - shift, axis=1), 0.95)), _RADIUS_MIN)
    low, high = float(along.min()), float(along.max())
    center = middle + shift + 0.5 * (low + high) * axis
    cross = np.cross((0.0, 0.0, 1.0), axis)
    turn = frames.normalize(np.append(cross, 1.0 + axis[2])) if axis[2] > -0.999999 else np.array([1.0, 0.0, 0.0, 0.0])
    return Capsule(radius, max(0.5 * (high - low) - radius, 0.0)), center, turn


def fit_capsules(skeleton: Skeleton, shapes: dict[str, Mesh]) -> dict[int, tuple[Capsule, Array, Array]]:
    """Return capsules in the skeleton's rest pose by joint, each around the vertices that the joint moves most.

    Args:
        skeleton: Joints and weights.
        shapes: The bound meshes by name.

    Raises:
        AirworthyError: No vertex is bound.
    """
    rest = joint_matrices(skeleton)[0]
    points, owners = [], []
    for name, mesh in shapes.items():
        if name in skeleton.joints and len(mesh.vertices):
            points.append(skinned_mesh(skeleton, name, mesh, rest).vertices)
            # Each vertex to one bone, although skins blend several.
            strongest = np.argmax(skeleton.weights[name], axis=1)
            owners.append(skeleton.joints[name][np.arange(len(strongest)), strongest])
    if not points:
        raise AirworthyError("This skeleton binds no vertices, so no capsules can be fitted.")
    vertices, owner = np.concatenate(points), np.concatenate(owners).astype(np.int64)
    # Fingers and toes have bones of their own, and need no capsules of their own.
    least = max(8, int(_SHARE_MIN * len(owner)))
    for joint in range(len(skeleton.names) - 1, 0, -1):  # children first
        mine = owner == joint
        if 0 < mine.sum() < least and skeleton.parents[joint] >= 0:
            owner[mine] = skeleton.parents[joint]
    return {int(joint): fit_capsule(vertices[owner == joint]) for joint in np.unique(owner)}


def skinned_actor(model: Model, name: str, skeleton_name: str = "", animation: str = "", semantic: str = "person") -> ActorKit:
    """Return an actor from a model with a skin; `actors.add_actor` puts it into a scene.

    Its capsules are seen and hit. Its meshes come along as parts that are neither, until `posing.posed` replaces the capsules
    by the mesh in its pose.

    Args:
        model: As `formats.read_model` gives it.
        name: The actor's.
        skeleton_name: Which skeleton; "": the only, or first one.
        animation: Clip that plays; "": the rest pose.
        semantic: Class of all its parts.

    Raises:
        AirworthyError: The model has no skin, or no such skeleton or clip.
    """
    if not model.skeletons:
        raise AirworthyError(f"The model for actor {name!r} has no skin; a glTF with a skeleton was expected.")
    chosen = skeleton_name or next(iter(model.skeletons))
    if chosen not in model.skeletons:
        raise unknown_name("skeleton", chosen, model.skeletons)
    skeleton = _prefixed(model.skeletons[chosen], name)
    if animation and animation not in skeleton.clips:
        raise unknown_name("animation", animation, skeleton.clips)
    bound = [item for item in model.instances if f"{name}/{item.shape}" in skeleton.joints]
    meshes = {f"{name}/{key}": shape for key, shape in model.shapes.items() if isinstance(shape, Mesh)}
    shapes: dict[str, Shape] = {key: shape for key, shape in meshes.items() if key in skeleton.joints}
    parts = [_skin_part(item, name, semantic) for item in bound]
    for joint, (capsule, center, turn) in fit_capsules(skeleton, meshes).items():
        bone = skeleton.names[joint]
        shapes[f"{name}/{bone}"] = capsule
        parts.append(Instance(f"{name}/{bone}", _three(center), _four(turn), semantic=semantic, name=bone))
    return ActorKit(
        Actor(name, tuple(parts), skeleton=f"{name}/{chosen}", animation=animation),
        shapes,
        {f"{name}/{key}": prefixed_material(material, name) for key, material in model.materials.items()},
        {f"{name}/{key}": texture for key, texture in model.textures.items()},
        {f"{name}/{chosen}": skeleton},
    )


def _prefixed(skeleton: Skeleton, name: str) -> Skeleton:
    return replace(
        skeleton,
        joints={f"{name}/{key}": value for key, value in skeleton.joints.items()},
        weights={f"{name}/{key}": value for key, value in skeleton.weights.items()},
    )


def _skin_part(item: Instance, name: str, semantic: str) -> Instance:
    materials = tuple(f"{name}/{key}" for key in item.materials)
    return Instance(f"{name}/{item.shape}", materials=materials, semantic=semantic, name="skin", collide=False, visible=False)


def _three(v: Array) -> Vector3:
    return float(v[0]), float(v[1]), float(v[2])


def _four(q: Array) -> Quaternion:
    return float(q[0]), float(q[1]), float(q[2]), float(q[3])


# -----------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ModelRow:
    """A model file with a pose."""

    file: str
    position: Vector3 = (0.0, 0.0, 0.0)
    attitude: Quaternion = IDENTITY
    scale: float = 1.0
    units: Literal["m", "cm", "mm"] = "m"
    up: Literal["z", "y"] = "z"
    floor: bool = False
    """Stand it on `position`: the middle of its lower side comes there."""
    semantic: str = "object"
    name: str = ""
    collide: bool = True


@dataclass(frozen=True)
class PersonRow:
    """Measures of a capsule person."""

    height: float = 1.75
    speed: float = 1.3
    shirt: Color | None = None
    recording: str = ""
    """File with its motion (`skeleton_recording`), beside the scene file; it has no other."""


@dataclass(frozen=True)
class SkinRow:
    """A skinned model file."""

    file: str
    skeleton: str = ""
    semantic: str = "person"


def with_yaw(row: dict[str, Any], where: str) -> dict[str, Any]:
    """Return a table with its `yaw` [rad] turned into an attitude; raises AssetError where it has both."""
    if "yaw" not in row:
        return row
    if "attitude" in row:
        raise AssetError(f"{where} has both 'yaw' and 'attitude'; give one of them.")
    half = 0.5 * SCHEMA.decode(float, row["yaw"], f"{where}.yaw")
    rest = {key: value for key, value in row.items() if key != "yaw"}
    return {**rest, "attitude": [0.0, 0.0, math.sin(half), math.cos(half)]}


def model_from_table(scene: Scene, row: dict[str, Any], folder: Folder, where: str) -> Scene:
    """Return the scene with the content of a model file; raises AssetError.

    Args:
        scene: To which the content is added.
        row: Fields of a `ModelRow`, as parsed.
        folder: Where files are looked for, with their limits.
        where: Names the row in messages.
    """
    from airworthy.scenes.imports import add_model

    wanted: ModelRow = SCHEMA.record(ModelRow, with_yaw(row, where), where)
    path = folder.path(wanted.file, f"{where}.file")
    options = {item.name: getattr(wanted, item.name) for item in fields(wanted) if item.name != "file"}
    try:
        return add_model(scene, path, limits=folder.limits, **options)
    except AssetError:
        raise
    except AirworthyError as error:
        raise AssetError(f"{where}: {error}") from None


def actor_from_table(row: dict[str, Any], folder: Folder, where: str) -> Actor | ActorKit:
    """Return an actor; with `person` or `skin`, together with all it is made of. Raises AssetError.

    Args:
        row: Fields of an actor, as parsed.
        folder: Where files are looked for, with their limits.
        where: Names the row in messages.
    """
    body = with_yaw(dict(row), where)
    for key in ("parts", "path"):
        if key in body:
            labelled = [(f"{where}.{key}[{k}]", item) for k, item in enumerate(SCHEMA.rows(body[key], f"{where}.{key}"))]
            body[key] = [with_yaw(SCHEMA.table(item, label), label) for label, item in labelled]
    extra = {key: body.pop(key) for key in ("person", "skin") if key in body}
    if not extra:
        actor: Actor = SCHEMA.record(Actor, body, where)
        return actor
    for key in ("parts", "skeleton"):
        if key in body or len(extra) > 1:
            raise AssetError(f"{where} has {' and '.join(extra)} as well as {key!r}; give one of them.")
    actor = SCHEMA.record(Actor, {**body, "parts": []}, where)
    try:
        kit = (
            _person(actor, extra["person"], folder, where) if "person" in extra else _skin(actor, extra["skin"], folder, where)
        )
    except AssetError:
        raise
    except AirworthyError as error:
        raise AssetError(f"{where}: {error}") from None
    moving = {
        item.name: getattr(actor, item.name) for item in fields(Actor) if item.name not in ("parts", "skeleton", "animation")
    }
    return replace(kit, actor=replace(kit.actor, **moving))


def _person(actor: Actor, value: Any, folder: Folder, where: str) -> ActorKit:
    asked: PersonRow = SCHEMA.record(PersonRow, value, f"{where}.person")
    if asked.recording:
        if actor.animation or actor.path or actor.motion != "external":
            raise AssetError(f"{where} has a recording, which moves it, and other motion besides; give one of them.")
        found = read_skeletons(folder.path(asked.recording, f"{where}.person.recording"))
        for note in found.notes:
            warnings.warn(f"{where}: {note}", AssetWarning, stacklevel=2)
        return recorded_person(actor.name, found, asked.height, shirt=asked.shirt)
    animation = actor.animation or "standing"
    return person(actor.name, asked.height, speed=asked.speed, shirt=asked.shirt, animation=animation)


def _skin(actor: Actor, value: Any, folder: Folder, where: str) -> ActorKit:
    from airworthy.scenes.formats import read_model

    asked: SkinRow = SCHEMA.record(SkinRow, value, f"{where}.skin")
    model = read_model(folder.path(asked.file, f"{where}.skin.file"), folder.limits)
    return skinned_actor(model, actor.name, asked.skeleton, actor.animation, asked.semantic)
