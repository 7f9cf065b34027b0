"""A scene with its actors frozen at a time: for pictures, for export, and for skins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from airworthy.core import frames
from airworthy.geometry import Mesh, Shape
from airworthy.scenes.actors import PathTable, actor_table
from airworthy.scenes.placing import MaterialTable, ShapeTable, actor_rows, instance_numbers
from airworthy.scenes.record import Actor, Instance, Quaternion, Scene, Vector3
from airworthy.scenes.skeletons import joint_matrices, part_joints, skinned_mesh

__all__ = ["posed"]


def posed(scene: Scene, time: float = 0.0, skins: bool = True) -> Scene:
    """A scene without actors, in which their parts stand as instances where they are at a time.

    Args:
        scene: The scene.
        time: [s]
        skins: Of actors with bound meshes, show the mesh in its pose; their capsules can still be hit, but no longer seen.

    Raises:
        AirworthyError: An actor cannot be posed (`SceneBatch`).
    """
    if not scene.actors:
        return scene
    rows = actor_rows(scene, 0, ShapeTable(), MaterialTable())
    paths = PathTable()
    at = np.full(len(scene.actors), float(time))
    position, attitude = actor_table(scene, paths).pose(paths, at)
    local, turn = part_joints(scene, rows).poses(rows, np.zeros(1, np.int64), at[:1], {})
    world = position[rows.actor] + frames.rotate(attitude[rows.actor], local[0])
    turned = frames.normalize(frames.multiply(attitude[rows.actor], turn[0]))
    parts = [(actor, part) for actor in scene.actors for part in actor.parts]
    shapes: dict[str, Shape] = dict(scene.shapes)
    items: list[Instance] = []
    for k, (actor, part) in enumerate(parts):
        name = f"{actor.name}/{part.name or part.shape}"
        number = int(rows.instance_id[k])
        item = replace(part, position=three(world[k]), attitude=four(turned[k]), name=name, instance_id=number)
        items.append(_skinned(scene, actor, item, shapes, time) if skins else item)
    numbers = instance_numbers(scene)[0]
    static = tuple(replace(item, instance_id=number) for item, number in zip(scene.instances, numbers, strict=True))
    names = [actor.name for actor in scene.actors]
    at_rest = {name: (position[k], attitude[k]) for k, name in enumerate(names)}
    return replace(
        scene,
        shapes=shapes,
        instances=static + tuple(items),
        actors=(),
        skeletons={},
        lights=tuple(_detached(light, at_rest) for light in scene.lights),
        beacons=tuple(_detached(beacon, at_rest) for beacon in scene.beacons),
        splats=tuple(_detached(item, at_rest) for item in scene.splats),
    )


def _detached(item: Any, poses: dict[str, tuple[Any, Any]]) -> Any:
    """A light, beacon or cloud of an actor, in the world."""
    if not getattr(item, "attached", ""):
        return item
    position, attitude = poses[item.attached]
    moved: dict[str, Any] = {"position": three(position + frames.rotate(attitude, item.position)), "attached": ""}
    if hasattr(item, "direction"):
        moved["direction"] = three(frames.rotate(attitude, item.direction))
    if hasattr(item, "attitude"):
        moved["attitude"] = four(frames.normalize(frames.multiply(attitude, np.asarray(item.attitude, float))))
    return replace(item, **moved)


def three(v: Any) -> Vector3:
    """A vector as a record holds it."""
    return float(v[0]), float(v[1]), float(v[2])


def four(q: Any) -> Quaternion:
    """A quaternion as a record holds it."""
    return float(q[0]), float(q[1]), float(q[2]), float(q[3])


def _skinned(scene: Scene, actor: Actor, item: Instance, shapes: dict[str, Shape], time: float) -> Instance:
    """A bound mesh in its pose, made visible; a capsule of such an actor, made invisible."""
    skeleton = scene.skeletons.get(actor.skeleton)
    if skeleton is None or not skeleton.joints:
        return item
    if item.shape not in skeleton.joints:
        return replace(item, visible=False)
    mesh = scene.shapes[item.shape]
    assert isinstance(mesh, Mesh)  # only meshes are bound
    name = f"{item.shape}@{time:g}"
    shapes[name] = skinned_mesh(skeleton, item.shape, mesh, joint_matrices(skeleton, actor.animation, time)[0])
    return replace(item, shape=name, visible=True)
