"""How actors move: scripted paths, commanded velocities, poses from outside; for many environments at once, in float64.

Every function takes rows (one per actor and environment) and is a plain NumPy closed form: a pose never depends on how many
steps led to it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayAny, ArrayLike, NDArray
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.geometry import Mesh, Shape
from airworthy.scenes.formats.model import Skeleton
from airworthy.scenes.instance_tables import (
    InstanceTable,
    MaterialTable,
    ShapeTable,
    actor_instances,
    instance_numbers,
    look_instances,
)
from airworthy.scenes.record import Actor, Instance, Material, Quaternion, Scene, Texture, Vector3, Waypoint
from airworthy.scenes.skeletons import joint_matrices, part_joints, skinned_mesh

__all__ = [
    "EXTERNAL",
    "SCRIPTED",
    "VELOCITY",
    "ActorKit",
    "ActorTable",
    "PathTable",
    "actor_table",
    "add_actor",
    "drifted",
    "look_rows",
    "path_pose",
    "posed",
    "riding_looks",
]

# ---- Actors with all they are made of, and putting them into scenes ---------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ActorKit:
    """An actor and the tables that its parts refer to."""

    actor: Actor
    shapes: dict[str, Shape] = field(default_factory=dict)
    materials: dict[str, Material] = field(default_factory=dict)
    textures: dict[str, Texture] = field(default_factory=dict)
    skeletons: dict[str, Skeleton] = field(default_factory=dict)
    looks: tuple[Instance, ...] = ()
    """What colours show of it in the place of its parts (`Instance.attached`)."""


def add_actor(scene: Scene, kit: ActorKit | Actor) -> Scene:
    """Return a scene with one more actor. What the scene holds under a name of the kit's already must be the same, or of equal
    value.

    Args:
        scene: The scene.
        kit: An actor whose parts are shapes and materials of the scene, or a kit that brings them.

    Raises:
        AirworthyError: The scene has an actor of this name, or something else under a name of the kit's; a part's shape or
            material is in neither.
    """
    if isinstance(kit, Actor):
        kit = ActorKit(kit)
    if not isinstance(kit, ActorKit):
        raise AirworthyError(f"add_actor() got a {type(kit).__name__}; expected an Actor, or an ActorKit with its shapes.")
    for part in (*kit.actor.parts, *kit.looks):
        _known("shape", (part.shape,), {**scene.shapes, **kit.shapes}, kit.actor)
        _known("material", part.materials, {**scene.materials, **kit.materials}, kit.actor)
    if any(actor.name == kit.actor.name for actor in scene.actors):
        raise AirworthyError(f"Scene {scene.name!r} already has an actor {kit.actor.name!r}; give the new one another name.")
    return replace(
        scene,
        actors=(*scene.actors, kit.actor),
        shapes=_joined(scene.name, "shape", scene.shapes, kit.shapes),
        materials=_joined(scene.name, "material", scene.materials, kit.materials),
        textures=_joined(scene.name, "texture", scene.textures, kit.textures),
        # Skeletons of one name are one: persons of equal height and speed.
        skeletons={**kit.skeletons, **scene.skeletons},
        looks=scene.looks + kit.looks,
    )


def _known(kind: str, names: tuple[str, ...], table: dict[str, Any], actor: Actor) -> None:
    for name in names:
        if name not in table:
            how = f"ActorKit(actor, {kind}s={{{name!r}: ...}}) brings one along"
            raise unknown_name(kind, name, table, f"A part of actor {actor.name!r} names it; {how}.")


def _joined(scene: str, kind: str, there: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    for name, value in new.items():
        if name in there and there[name] is not value and there[name] != value:
            raise AirworthyError(f"Scene {scene!r} already has another {kind} {name!r}; rename one of them.")
    return {**there, **new}


# -----------------------------------------------------------------------------------------------------------------------------

SCRIPTED, VELOCITY, EXTERNAL = 0, 1, 2
_KIND = {"scripted": SCRIPTED, "velocity": VELOCITY, "external": EXTERNAL}


class PathTable:
    """The scripted paths of many actors, padded to arrays."""

    def __init__(self) -> None:
        self._paths: list[tuple[tuple[Waypoint, ...], bool]] = []
        self._index: dict[Any, int] = {}
        self._arrays: tuple[ArrayAny, ...] | None = None

    def add(self, path: tuple[Waypoint, ...], repeat: bool, who: str) -> int:
        """Return the number of a path; equal paths share one.

        Args:
            path: Waypoints, times rising.
            repeat: Whether it begins again after its last waypoint.
            who: Begins the sentence of an error.

        Raises:
            AirworthyError: It is empty, its times do not rise, or a pose is not finite and of unit length.
        """
        key = (path, repeat)
        if key not in self._index:
            _check_path(path, who)
            self._index[key] = len(self._paths)
            self._paths.append(key)
            self._arrays = None
        return self._index[key]

    def pose(self, path: NDArray[np.int32], time: Array) -> tuple[Array, Array]:
        """Return positions (n, 3) and attitudes (n, 4) on paths (n,) at times (n,) [s].

        Linear in position and spherical-linear in attitude between waypoints; held before the first and after the last, or
        repeated with the period between the first and the last.
        """
        times, positions, attitudes, last, repeat = self._padded()
        known = times[path]
        row = np.arange(len(path))
        first, end = known[:, 0], known[row, last[path]]
        span = end - first
        # A path of one waypoint has no period.
        turn = repeat[path] & (span > 0.0)
        # fmod by a zero span is avoided, not masked afterwards: it would warn.
        inside = np.where(turn, first + np.mod(time - first, np.where(turn, span, 1.0)), np.clip(time, first, end))
        before = np.clip((known <= inside[:, None]).sum(1) - 1, 0, np.maximum(last[path] - 1, 0))
        after = np.minimum(before + 1, last[path])
        step = known[row, after] - known[row, before]
        fraction = np.where(step > 0.0, (inside - known[row, before]) / np.where(step > 0.0, step, 1.0), 0.0)
        start, stop = positions[path, before], positions[path, after]
        return start + (stop - start) * fraction[:, None], frames.slerp(
            attitudes[path, before], attitudes[path, after], fraction
        )

    def _padded(self) -> tuple[ArrayAny, ...]:
        if self._arrays is None:
            count, most = len(self._paths), max(len(path) for path, _ in self._paths)
            # Padding lies at no time: comparisons below never count it.
            times = np.full((count, most), np.inf)
            positions, attitudes = np.zeros((count, most, 3)), np.tile(frames.IDENTITY, (count, most, 1))
            for index, (path, _) in enumerate(self._paths):
                times[index, : len(path)] = [point.time for point in path]
                positions[index, : len(path)] = [point.position for point in path]
                attitudes[index, : len(path)] = frames.normalize([point.attitude for point in path])
            last = np.array([len(path) - 1 for path, _ in self._paths])
            self._arrays = (times, positions, attitudes, last, np.array([repeat for _, repeat in self._paths]))
        return self._arrays


def _check_path(path: tuple[Waypoint, ...], who: str) -> None:
    if not path:
        raise AirworthyError(f"{who} is scripted, but its path is empty; give it at least one waypoint.")
    # In one array, so that one look finds whatever is not finite.
    values = np.array([(point.time, *point.position, *point.attitude) for point in path], float)
    if not np.isfinite(values).all() or (np.abs(np.linalg.norm(values[:, 4:], axis=1) - 1.0) > 1e-4).any():
        raise AirworthyError(f"{who} has a waypoint that is not finite, or whose attitude is not a quaternion of length 1.")
    if (np.diff(values[:, 0]) <= 0.0).any():
        raise AirworthyError(f"{who} has waypoints whose times do not rise; each must be later than the one before.")


def path_pose(path: Sequence[Waypoint], time: ArrayLike, repeat: bool = False) -> tuple[Array, Array]:
    """Return positions (..., 3) and attitudes (..., 4) of one scripted path at times (...) [s]; see `PathTable.pose`.

    Args:
        path: Waypoints, times rising.
        time: Since the path began [s], (...).
        repeat: Whether it begins again after its last waypoint.
    """
    table = PathTable()
    index = table.add(tuple(path), repeat, "A path")
    at = np.asarray(time, float)
    position, attitude = table.pose(np.full(at.size, index, np.int32), at.reshape(-1))
    return position.reshape(*at.shape, 3), attitude.reshape(*at.shape, 4)


def drifted(position: Array, attitude: Array, velocity: Array, rate: Array, duration: Array) -> tuple[Array, Array]:
    """Return poses after moving with constant world velocity and world rate; exact.

    p + v t, and exp(w t) q, the turn being about world axes through the actor's own origin.

    Args:
        position: World [m], (n, 3).
        attitude: Quaternions x, y, z, w, actor to world, (n, 4).
        velocity: World [m/s], (n, 3).
        rate: Angular velocity about world axes [rad/s], (n, 3).
        duration: [s], (n,).
    """
    # From the left: about world axes, which a constant world rate keeps.
    turn = frames.from_rotation_vector(rate * duration[:, None])
    return position + velocity * duration[:, None], frames.normalize(frames.multiply(turn, attitude))


@dataclass
class ActorTable:
    """Actors as rows of n: what moves them, and from where."""

    kind: NDArray[np.int8]
    """SCRIPTED, VELOCITY or EXTERNAL."""
    path: NDArray[np.int32]
    """Of scripted ones: index in the path table."""
    position: Array
    """(n, 3): where a drift began, or the pose given from outside."""
    attitude: Array
    """(n, 4)"""
    velocity: Array
    """(n, 3) [m/s], world."""
    rate: Array
    """(n, 3) [rad/s], world."""
    since: Array
    """(n,): when the drift began [s]."""

    def __len__(self) -> int:
        return len(self.kind)

    def take(self, rows: Any) -> ActorTable:
        """Return the rows of an index or mask."""
        return replace(self, **{name: getattr(self, name)[rows] for name in self.__dataclass_fields__})

    def put(self, rows: Any, other: ActorTable) -> None:
        """Overwrite rows."""
        for name in self.__dataclass_fields__:
            getattr(self, name)[rows] = getattr(other, name)

    def pose(self, paths: PathTable, time: Array) -> tuple[Array, Array]:
        """Return world positions (n, 3) and attitudes (n, 4) at times (n,) [s]."""
        position, attitude = self.position.copy(), self.attitude.copy()
        scripted, moving = np.flatnonzero(self.kind == SCRIPTED), np.flatnonzero(self.kind == VELOCITY)
        if len(scripted):
            position[scripted], attitude[scripted] = paths.pose(self.path[scripted], time[scripted])
        if len(moving):
            position[moving], attitude[moving] = drifted(
                position[moving], attitude[moving], self.velocity[moving], self.rate[moving], (time - self.since)[moving]
            )
        return position, attitude


def still(count: int) -> ActorTable:
    """Return rows of actors that stand at the origin."""
    return ActorTable(
        np.full(count, EXTERNAL, np.int8),
        np.zeros(count, np.int32),
        np.zeros((count, 3)),
        np.tile(frames.IDENTITY, (count, 1)),
        np.zeros((count, 3)),
        np.zeros((count, 3)),
        np.zeros(count),
    )


def actor_table(scene: Scene, paths: PathTable) -> ActorTable:
    """Return rows of a scene's actors at time 0.

    Raises:
        AirworthyError: Two actors share a name, or a path, pose or velocity is not usable.
    """
    table = still(len(scene.actors))
    names = [actor.name for actor in scene.actors]
    for row, actor in enumerate(scene.actors):
        who = f"Actor {actor.name!r} of scene {scene.name!r}"
        if not actor.name or names.count(actor.name) > 1:
            raise AirworthyError(f"{who} needs a name of its own; {names.count(actor.name)} actors have that one.")
        _fill(table, row, actor, who)
        if actor.motion == "scripted":
            table.path[row] = paths.add(actor.path, actor.repeat, who)
    return table


def _fill(table: ActorTable, row: int, actor: Actor, who: str) -> None:
    if actor.motion not in _KIND:
        raise AirworthyError(f"{who} has the motion {actor.motion!r}; expected 'scripted', 'velocity' or 'external'.")
    values = np.array((*actor.position, *actor.velocity, *actor.rate, *actor.attitude), float)
    if not np.isfinite(values).all() or abs(np.linalg.norm(actor.attitude) - 1.0) > 1e-4:
        raise AirworthyError(f"{who} has a pose or velocity that is not finite, or an attitude that is not of length 1.")
    table.kind[row] = _KIND[actor.motion]
    table.position[row], table.attitude[row] = actor.position, frames.normalize(actor.attitude)
    table.velocity[row], table.rate[row] = actor.velocity, actor.rate


# ---- A scene with its actors frozen at a time: for pictures, for export, and for skins --------------------------------------


def stationary(scene: Scene) -> Scene:
    """Return a scene without its actors and what rides on them: looks, splats, lights."""
    return replace(
        scene,
        actors=(),
        looks=tuple(item for item in scene.looks if not item.attached),
        splats=tuple(item for item in scene.splats if not item.attached),
        lights=tuple(light for light in scene.lights if not getattr(light, "attached", "")),
    )


def posed(scene: Scene, time: float = 0.0, skins: bool = True) -> Scene:
    """Return a scene without actors, in which their parts stand as instances where they are at a time.

    Args:
        scene: The scene.
        time: [s]
        skins: Of actors with bound meshes, show the mesh in its pose; their capsules can still be hit, but no longer seen.

    Raises:
        AirworthyError: The time is not finite, or an actor cannot be posed (`SceneBatch`).
    """
    if not math.isfinite(time):
        raise AirworthyError(f"Actors cannot stand where they are at the time {time}; expected finite seconds.")
    if not scene.actors:
        return scene
    rows = actor_instances(scene, 0, ShapeTable(), MaterialTable())
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
    # For what is attached to actors: without them it must stand in the world.
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
        looks=_standing_looks(scene, position, attitude, at),
    )


def _standing_looks(scene: Scene, position: Array, attitude: Array, time: Array) -> tuple[Instance, ...]:
    """Return a scene's looks, those of actors where these are at a time; behind the others, in their order."""
    riding = riding_looks(scene)
    if not riding:
        return scene.looks
    rows, names = look_rows(scene, riding)
    local, turn = part_joints(scene, rows, names).poses(rows, np.zeros(1, np.int64), time[:1], {})
    world = position[rows.actor] + frames.rotate(attitude[rows.actor], local[0])
    turned = frames.normalize(frames.multiply(attitude[rows.actor], turn[0]))
    moved = [replace(item, position=three(world[k]), attitude=four(turned[k]), attached="") for k, item in enumerate(riding)]
    return tuple(item for item in scene.looks if not item.attached) + tuple(moved)


def riding_looks(scene: Scene) -> tuple[Instance, ...]:
    """Return the looks that ride on actors."""
    return tuple(item for item in scene.looks if item.attached)


def look_rows(scene: Scene, riding: Sequence[Instance]) -> tuple[InstanceTable, list[str]]:
    """Return poses of looks in their actors' frames at rest, with `actor`, and their names; shapes and materials are not told.

    Args:
        scene: The scene.
        riding: Of `riding_looks`.

    Raises:
        UnknownNameError: The scene has no such actor.
    """
    actors = {actor.name: index for index, actor in enumerate(scene.actors)}
    for item in riding:
        if item.attached not in actors:
            raise unknown_name("actor", item.attached, actors, f"A look of scene {scene.name!r} is attached to it.")
    bare = replace(scene, actors=(), looks=tuple(replace(item, materials=()) for item in riding))
    rows = look_instances(bare, 0, ShapeTable(), MaterialTable())
    rows.actor = np.array([actors[item.attached] for item in riding], np.int32)
    return rows, [item.name for item in riding]


def _detached(item: Any, poses: dict[str, tuple[Any, Any]]) -> Any:
    """Return a light, beacon or cloud of an actor, in the world."""
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
    """Return a vector as a record holds it."""
    return float(v[0]), float(v[1]), float(v[2])


def four(q: Any) -> Quaternion:
    """Return a quaternion as a record holds it."""
    return float(q[0]), float(q[1]), float(q[2]), float(q[3])


def _skinned(scene: Scene, actor: Actor, item: Instance, shapes: dict[str, Shape], time: float) -> Instance:
    """Return a bound mesh in its pose, made visible; a capsule of such an actor, made invisible."""
    skeleton = scene.skeletons.get(actor.skeleton)
    if skeleton is None or not skeleton.joints:
        return item
    if item.shape not in skeleton.joints:
        return replace(item, visible=False)
    mesh = scene.shapes[item.shape]
    assert isinstance(mesh, Mesh)  # only meshes are bound
    # Another name: the mesh at rest may still be another instance's.
    name = f"{item.shape}@{time:g}"
    shapes[name] = skinned_mesh(skeleton, item.shape, mesh, joint_matrices(skeleton, actor.animation, time)[0])
    return replace(item, shape=name, visible=True)
