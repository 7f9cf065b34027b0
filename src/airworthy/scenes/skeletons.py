"""Skeletons at work: clips to joint poses, joints to the parts and meshes that they move.

A skeleton is data (`formats.Skeleton`): joints with parents, a rest pose, bound meshes, clips. Its frame is the actor's. Parts
of an actor ride on the joint whose name they bear (up to a "#", where a bone has several); parts named otherwise ride on the
actor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayInt, ArrayLike
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.geometry import Mesh
from airworthy.scenes.formats.model import Clip, Skeleton, Track
from airworthy.scenes.record import Scene

if TYPE_CHECKING:
    from airworthy.scenes.instance_tables import InstanceTable

__all__ = ["PartJoints", "joint_matrices", "joint_of_part", "part_joints", "skinned_mesh"]


def _sampled(track: Track, time: Array, rotation: bool) -> Array:
    """Values (n, 3 or 4) of a track at times (n,), held at both ends."""
    times = np.asarray(track.times, float)
    values = np.asarray(track.values, float)
    after = np.clip(np.searchsorted(times, time, side="right"), 1, max(len(times) - 1, 1))
    before = after - 1
    after = np.minimum(after, len(times) - 1)
    step = times[after] - times[before]
    fraction = np.clip(np.where(step > 0.0, (time - times[before]) / np.where(step > 0.0, step, 1.0), 0.0), 0.0, 1.0)
    if track.interpolation == "cubic":
        found = _hermite(values, before, after, fraction[:, None], step[:, None])
    elif track.interpolation == "step":
        found = values[np.where(fraction >= 1.0, after, before)]
    elif rotation:
        return frames.slerp(frames.normalize(values[before]), frames.normalize(values[after]), fraction)
    else:
        found = values[before] + (values[after] - values[before]) * fraction[:, None]
    return frames.normalize(found) if rotation else found


def _hermite(values: Array, before: ArrayInt, after: ArrayInt, s: Array, step: Array) -> Array:
    """Cubic Hermite spline with tangents per second (glTF 2.0, appendix C)."""
    start, leaving, entering, stop = values[before, 1], values[before, 2], values[after, 0], values[after, 1]
    h1, h2 = 2.0 * s**3 - 3.0 * s**2 + 1.0, s**3 - 2.0 * s**2 + s
    h3, h4 = 3.0 * s**2 - 2.0 * s**3, s**3 - s**2
    return h1 * start + h2 * step * leaving + h3 * stop + h4 * step * entering


def _matrices(position: Array, attitude: Array, scale: Array) -> Array:
    """(..., 4, 4) of translation times rotation times scale."""
    shape = np.broadcast_shapes(position.shape[:-1], attitude.shape[:-1], scale.shape[:-1])
    out = np.zeros((*shape, 4, 4))
    out[..., :3, :3] = frames.to_matrix(attitude) * scale[..., None, :]
    out[..., :3, 3] = position
    out[..., 3, 3] = 1.0
    return out


def joint_matrices(skeleton: Skeleton, clip: str = "", time: ArrayLike = 0.0, turns: ArrayLike | None = None) -> Array:
    """Return matrices from joint frames to the skeleton's own.

    Args:
        skeleton: Joints and clips.
        clip: Its name; it repeats. "": the rest pose.
        time: (n,) [s].
        turns: (n, joints, 4) local turns that replace those of the clip (motion capture).

    Returns:
        (n, joints, 4, 4).

    Raises:
        UnknownNameError: There is no such clip.
    """
    at = np.atleast_1d(np.asarray(time, float))
    count = len(skeleton.names)
    position = np.tile(np.asarray(skeleton.position, float), (len(at), 1, 1))
    attitude = np.tile(frames.normalize(skeleton.attitude), (len(at), 1, 1))
    scale = np.tile(np.asarray(skeleton.scale, float), (len(at), 1, 1))
    if clip:
        _play(_clip(skeleton, clip), at, position, attitude, scale)
    if turns is not None:
        attitude = np.broadcast_to(frames.normalize(turns), attitude.shape)
    local = _matrices(position, attitude, scale)
    world = np.empty_like(local)
    for joint in range(count):  # parents come first
        parent = int(skeleton.parents[joint])
        world[:, joint] = local[:, joint] if parent < 0 else world[:, parent] @ local[:, joint]
    return world


def _clip(skeleton: Skeleton, name: str) -> Clip:
    if name not in skeleton.clips:
        raise unknown_name("animation", name, skeleton.clips)
    return skeleton.clips[name]


def _play(clip: Clip, time: Array, position: Array, attitude: Array, scale: Array) -> None:
    # A clip of one instant has no period.
    at = np.mod(time, clip.duration) if clip.duration > 0.0 else np.zeros_like(time)
    for tracks, target, rotation in (
        (clip.translation, position, False),
        (clip.rotation, attitude, True),
        (clip.scale, scale, False),
    ):
        for joint, track in tracks.items():
            target[:, joint] = _sampled(track, at, rotation)


def skinned_mesh(skeleton: Skeleton, shape_name: str, mesh: Mesh, matrices: Array) -> Mesh:
    """Return a bound mesh in a pose, by linear-blend skinning: v' = sum of weight * G_j @ inverse_bind_j @ v.

    Args:
        skeleton: To which it is bound.
        shape_name: Its name in `skeleton.joints`.
        mesh: The mesh as it was bound.
        matrices: (joints, 4, 4) of `joint_matrices`.

    Returns:
        A new mesh with moved vertices and normals; everything else is shared.

    Raises:
        UnknownNameError: The shape is not bound to this skeleton.
    """
    if shape_name not in skeleton.joints:
        raise unknown_name("bound shape", shape_name, skeleton.joints)
    moves = matrices @ np.asarray(skeleton.inverse_bind, float)
    blend = np.einsum("vk,vkab->vab", np.asarray(skeleton.weights[shape_name], float), moves[skeleton.joints[shape_name]])
    vertices = np.einsum("vab,vb->va", blend[:, :3, :3], mesh.vertices.astype(float)) + blend[:, :3, 3]
    normals = None
    if mesh.normals is not None:
        turned = np.einsum("vab,vb->va", blend[:, :3, :3], mesh.normals.astype(float))
        # By the same matrices, brought to length 1: exact for rigid joints, near enough for those that stretch evenly.
        normals = turned / np.maximum(np.linalg.norm(turned, axis=1, keepdims=True), 1e-12)
    return replace(mesh, vertices=vertices, normals=normals)


def joint_of_part(skeleton: Skeleton, part_name: str) -> int:
    """Return the number of the joint that a part rides on; -1: on the actor."""
    # "hand#2": several parts of one joint.
    name = part_name.partition("#")[0]
    return skeleton.names.index(name) if name in skeleton.names else -1


@dataclass
class _Moved:
    """Parts of one actor that joints move."""

    slot: int
    """Of the actor in its scene."""
    skeleton: Skeleton
    clip: str
    rows: ArrayInt
    """Of the parts among the scene's dynamic instances."""
    joints: ArrayInt
    """Of every such part."""
    rest_inverse: Array
    """(joints, 4, 4) inverse of the joints' rest matrices."""


@dataclass
class PartJoints:
    """Which parts of a scene's actors joints move, and how."""

    moved: list[_Moved] = field(default_factory=list)

    def joint_count(self, slot: int) -> int:
        """Return joints of an actor; 0: it has no skeleton."""
        return next((len(item.skeleton.names) for item in self.moved if item.slot == slot), 0)

    def poses(
        self, rows: InstanceTable, envs: ArrayInt, time: Array, overrides: dict[tuple[int, int], Array]
    ) -> tuple[Array, Array]:
        """Return poses of a scene's parts in their actors' frames, (k, parts, 3) and (k, parts, 4).

        Args:
            rows: The parts at rest.
            envs: (k,) environments.
            time: (k,) [s].
            overrides: Local turns of all joints given from outside, by (environment, actor).
        """
        position = np.tile(rows.position, (len(envs), 1, 1))
        attitude = np.tile(rows.attitude, (len(envs), 1, 1))
        for item in self.moved:
            matrices = self._matrices(item, envs, time, overrides)
            # From the rest pose to this one; of rest poses without change of scale, a rigid motion.
            move = matrices[:, item.joints] @ item.rest_inverse[item.joints]
            turn = frames.from_matrix(_unit_columns(move[..., :3, :3]))
            rest = rows.position[item.rows]
            position[:, item.rows] = np.einsum("kpab,pb->kpa", move[..., :3, :3], rest) + move[..., :3, 3]
            attitude[:, item.rows] = frames.multiply(turn, rows.attitude[item.rows])
        return position, attitude

    def _matrices(self, item: _Moved, envs: ArrayInt, time: Array, overrides: dict[tuple[int, int], Array]) -> Array:
        matrices = joint_matrices(item.skeleton, item.clip, time)
        given = [k for k, env in enumerate(envs) if (int(env), item.slot) in overrides]
        if given:
            turns = np.stack([overrides[int(envs[k]), item.slot] for k in given])
            matrices[given] = joint_matrices(item.skeleton, item.clip, time[given], turns)
        return matrices


def _unit_columns(matrix: Array) -> Array:
    return matrix / np.maximum(np.linalg.norm(matrix, axis=-2, keepdims=True), 1e-12)


def part_joints(scene: Scene, rows: InstanceTable, names: Sequence[str] | None = None) -> PartJoints:
    """Return which joints move which rows of a scene's actors' parts, or of what rides on actors.

    Args:
        scene: The scene.
        rows: The parts at rest.
        names: Of what rides, as many as rows; None: rows are the actors' parts.

    Raises:
        UnknownNameError: An actor names a skeleton or animation that is not there.
        AirworthyError: A joint's rest pose cannot be inverted.
    """
    found = PartJoints()
    for slot, actor in enumerate(scene.actors):
        if not actor.skeleton:
            continue
        if actor.skeleton not in scene.skeletons:
            raise unknown_name("skeleton", actor.skeleton, scene.skeletons, f"Actor {actor.name!r} of scene {scene.name!r}.")
        skeleton = scene.skeletons[actor.skeleton]
        if actor.animation:
            _clip(skeleton, actor.animation)
        mine = np.flatnonzero(rows.actor == slot)
        called = [part.name for part in actor.parts] if names is None else [names[int(row)] for row in mine]
        joints = np.array([joint_of_part(skeleton, name) for name in called], np.int64)
        rest = joint_matrices(skeleton)[0]
        # Parts are carried from the rest pose, which must be undone first.
        if (np.abs(np.linalg.det(rest)) < 1e-12).any():
            raise AirworthyError(f"Skeleton {actor.skeleton!r} of scene {scene.name!r} has a joint of no size at rest.")
        found.moved.append(_Moved(slot, skeleton, actor.animation, mine[joints >= 0], joints[joints >= 0], np.linalg.inv(rest)))
    return found
