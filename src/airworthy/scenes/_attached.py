"""What a batch holds beside the things that rays meet: its twin as colours see it, splats, lights and beacons on actors."""

from __future__ import annotations

import copy
import weakref
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayBool, ArrayInt, NDArray
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.geometry import Shape, Sphere
from airworthy.geometry.batch import GeometryBatch
from airworthy.geometry.placement import Placement
from airworthy.scenes.instance_tables import InstanceTable, look_instances
from airworthy.scenes.record import Instance, Scene, SplatPlacement
from airworthy.scenes.skeletons import PartJoints, part_joints

if TYPE_CHECKING:
    from airworthy.scenes.batch import SceneBatch

# ---- Batches as colours see them: without the things that splats and looks stand for, and with the looks --------------------


def is_collision_only(item: Instance) -> bool:
    """Tell whether rays meet a thing that has no colour of its own."""
    return item.covered and not item.visible


def collision_only_masks(scene: Scene) -> tuple[ArrayBool, ArrayBool]:
    """Return which instances, and which parts of actors, are ghosts."""
    parts = [part for actor in scene.actors for part in actor.parts]
    return np.array([is_collision_only(item) for item in scene.instances], bool), np.array(
        [is_collision_only(item) for item in parts], bool
    )


class RenderedBatch:
    """The twin of a batch in which ghosts do not exist and looks do; everything else is shared with it.

    Static instances keep their numbers, looks follow them; only what moves is numbered anew where there are looks.
    """

    def __init__(self, batch: SceneBatch):
        self._of = batch.geometry
        masks = [collision_only_masks(scene) for scene in batch.scenes]
        layouts = [_without(batch.geometry.layout(k), static) for k, (static, _) in enumerate(masks)]
        shapes, self._own = list(batch.geometry.shapes), {}
        riding = [_none() for _ in batch.scenes]
        if batch.has_looks:
            shape_table, material_table = batch.look_tables()
            rows = [look_instances(scene, k, shape_table, material_table) for k, scene in enumerate(batch.scenes)]
            looks = [one.placement() for one in rows]
            rides = [np.array([bool(item.attached) for item in scene.looks], bool) for scene in batch.scenes]
            layouts = [_joined(layout, _chosen(one, ~mask)) for layout, one, mask in zip(layouts, looks, rides, strict=True)]
            riding = [_chosen(one, mask) for one, mask in zip(looks, rides, strict=True)]
            shapes = shape_table.shapes
            self._own = {"_shapes": shape_table, "_materials": material_table}
        pad = np.zeros(batch.extra_count, bool)
        dynamic = [_without(batch.dynamic_placement(k), np.concatenate((pad, moving))) for k, (_, moving) in enumerate(masks)]
        self._riders = Riders(batch.scenes)
        most = max(map(len, riding))
        # Behind what moves already, which keeps its numbers; scenes with fewer are filled up with what is not there.
        dynamic = [_joined(one, _padded(two, most)) for one, two in zip(dynamic, riding, strict=True)] if most else dynamic
        self._dynamic_instances = dynamic
        self.geometry = GeometryBatch(
            _needed_shapes(shapes, [*layouts, *dynamic]),
            layouts,
            batch.scene_of_env,
            [dynamic[scene] for scene in batch.scene_of_env] if batch.geometry.dynamic_count or most else None,
            device=batch.device,
            threads=batch.threads,
        )
        self._revision = -1
        self._view = copy.copy(batch)
        self._view._twin = None

    def fits(self, batch: SceneBatch) -> bool:
        """Tell whether it is still of the batch's scenes."""
        return self._of is batch.geometry

    def view(self, batch: SceneBatch) -> SceneBatch:
        """Return the twin with everything where it is now."""
        geometry = self.geometry
        if batch.geometry.revision != self._revision:
            self._revision = batch.geometry.revision
            changed = np.flatnonzero(geometry.env_layout != batch.scene_of_env)
            if len(changed):
                geometry.assign(changed, batch.scene_of_env[changed])
            if geometry.dynamic_count:
                if len(changed):
                    geometry.replace_dynamic_instances(
                        changed, [self._dynamic_instances[scene] for scene in batch.scene_of_env[changed]]
                    )
                position, attitude, active = self._riders.behind(batch)
                geometry.set_dynamic_instances(position, attitude, None, active)
        # No strong way back: a batch that nobody holds goes at once, with the clouds and images that are kept with it.
        own = {**self._own, "geometry": geometry, "_origin": weakref.ref(batch), "_twin": None}
        vars(self._view).update({**vars(batch), **own})
        return self._view


def _without(placement: Placement, collision_only: ArrayBool) -> Placement:
    mask = np.zeros(len(placement), bool)
    mask[: len(collision_only)] = collision_only
    return replace(placement, visible=placement.visible & ~mask, collide=np.zeros(len(placement), bool))


def _chosen(placement: Placement, mask: ArrayBool) -> Placement:
    return Placement(**{item.name: getattr(placement, item.name)[mask] for item in fields(Placement)})


def _none() -> Placement:
    return Placement.of(shape=[], position=np.zeros((0, 3)))


def _padded(placement: Placement, count: int) -> Placement:
    """Return a placement of more rows, the last of which nothing uses."""
    missing = count - len(placement)
    spare = Placement.of(
        shape=[0] * missing, position=np.zeros((missing, 3)), visible=[False] * missing, collide=[False] * missing
    )
    return _joined(placement, spare) if missing else placement


class Riders:
    """Looks that ride on actors: where they are, by the actors' poses and joints."""

    def __init__(self, scenes: list[Scene]):
        from airworthy.scenes.actors import look_rows, riding_looks  # which is built of batches' tables

        self._scenes: list[tuple[InstanceTable, PartJoints] | None] = []
        for scene in scenes:
            riding = riding_looks(scene)
            if not riding:
                self._scenes.append(None)
                continue
            rows, names = look_rows(scene, riding)
            self._scenes.append((rows, part_joints(scene, rows, names)))
        self.count = max((len(one[0]) for one in self._scenes if one), default=0)

    def behind(self, batch: SceneBatch) -> tuple[Array, Array, ArrayBool]:
        """Return `dynamic_poses` of a batch with those of what rides behind them."""
        position, attitude, active = batch.dynamic_poses
        if not self.count:
            return position, attitude, active
        count = batch.env_count
        where, turned = np.zeros((count, self.count, 3)), np.tile(frames.IDENTITY, (count, self.count, 1))
        there = np.zeros((count, self.count), bool)
        places, turns = batch.actor_poses()
        for scene, one in enumerate(self._scenes):
            envs = np.flatnonzero(batch.scene_of_env == scene)
            if one is None or not len(envs):
                continue
            rows, joints = one
            local, turn = joints.poses(rows, envs, batch.time[envs], batch.joint_overrides)
            base, spin = places[envs][:, rows.actor], turns[envs][:, rows.actor]
            mine = slice(0, len(rows))
            where[envs, mine] = base + frames.rotate(spin, local)
            turned[envs, mine] = frames.normalize(frames.multiply(spin, turn))
            there[envs, mine] = True
        parts = ((position, where), (attitude, turned), (active, there))
        whole = [np.concatenate(pair, axis=1) for pair in parts]
        return whole[0], whole[1], whole[2]


def _joined(first: Placement, second: Placement) -> Placement:
    """Return the instances of two placements, one after the other."""
    return Placement(
        **{item.name: np.concatenate((getattr(first, item.name), getattr(second, item.name))) for item in fields(Placement)}
    )


def _needed_shapes(shapes: list[Shape], placements: list[Placement]) -> list[Shape]:
    """Return the shapes, those that nothing shows as specks: a tree over the mesh of a whole cloud would be built for
    nothing.
    """
    shown = {int(shape) for item in placements for shape in item.shape[item.visible]}
    return [shape if index in shown else Sphere(1e-3) for index, shape in enumerate(shapes)]


# ---- Clouds of splats that ride on actors -----------------------------------------------------------------------------------


class AttachedSplats:
    """The attached placements of each scene, in the frames of their actors."""

    def __init__(self) -> None:
        self._scenes: list[tuple[Array, Array, ArrayInt]] = []

    def add(self, scene: Scene) -> None:
        """Add placements of the next scene.

        Raises:
            UnknownNameError: A placement names a cloud or an actor that the scene does not hold.
            AirworthyError: A pose or scale is not usable.
        """
        names = [actor.name for actor in scene.actors]
        for index, item in enumerate(scene.splats):
            _check(item, index, scene, names)
        items = [item for item in scene.splats if item.attached]
        position = np.array([item.position for item in items], float).reshape(-1, 3)
        attitude = np.array([item.attitude for item in items], float).reshape(-1, 4)
        actor = np.array([names.index(item.attached) for item in items], np.int64)
        self._scenes.append((position, frames.normalize(attitude), actor))

    def poses(self, scene_of_env: NDArray[np.int32], position: Array, attitude: Array) -> tuple[Array, Array]:
        """Return world positions (env, placements, 3) and attitudes (env, placements, 4); NaN where an environment has fewer.

        Args:
            scene_of_env: (env,)
            position: Of actors, (env, actors, 3).
            attitude: Of actors, (env, actors, 4).
        """
        most = max((len(actor) for _, _, actor in self._scenes), default=0)
        points, turns = np.full((len(scene_of_env), most, 3), np.nan), np.full((len(scene_of_env), most, 4), np.nan)
        for index, (where, turned, actor) in enumerate(self._scenes):
            envs = np.flatnonzero(scene_of_env == index)
            if not (len(envs) and len(actor)):
                continue
            origin, turn = position[envs][:, actor], attitude[envs][:, actor]
            points[envs, : len(actor)] = origin + frames.rotate(turn, where)
            turns[envs, : len(actor)] = frames.normalize(frames.multiply(turn, turned))
        return points, turns


def _check(item: SplatPlacement, index: int, scene: Scene, actors: list[str]) -> None:
    if item.cloud not in scene.clouds:
        raise unknown_name("cloud", item.cloud, scene.clouds, f"splats[{index}] of scene {scene.name!r} names it.")
    if item.attached and item.attached not in actors:
        raise unknown_name("actor", item.attached, actors, f"splats[{index}] of scene {scene.name!r} is attached to it.")
    numbers = np.array([*item.position, *item.attitude, item.scale], float)
    if not np.isfinite(numbers).all() or abs(np.linalg.norm(item.attitude) - 1.0) > 1e-4 or item.scale <= 0.0:
        raise AirworthyError(
            f"splats[{index}] of scene {scene.name!r} has position {item.position}, attitude {item.attitude} and scale"
            f" {item.scale}; expected finite numbers, a quaternion of length 1 and a scale above 0."
        )


# -----------------------------------------------------------------------------------------------------------------------------


class AttachedMarks:
    """Points with directions, per scene, in the world or in an actor's frame."""

    def __init__(self) -> None:
        self._scenes: list[tuple[Array, Array, ArrayInt]] = []
        self._padded: tuple[Array, Array, ArrayInt] | None = None

    def add(self, scene: Scene, position: list[Any], direction: list[Any], attached: list[str]) -> None:
        """Add the marks of the next scene.

        Args:
            scene: It, for the names of its actors.
            position: Of each mark [m], (m, 3), in the frame of what it is attached to.
            direction: Alike, (m, 3).
            attached: Actor of each; "": fixed in the world.

        Raises:
            UnknownNameError: The scene has no such actor.
        """
        names = [actor.name for actor in scene.actors]
        for name in attached:
            if name and name not in names:
                raise unknown_name("actor", name, names, f"A light or beacon of scene {scene.name!r} is attached to it.")
        actor = np.array([names.index(name) if name else -1 for name in attached], np.int64)
        self._scenes.append((np.array(position, float).reshape(-1, 3), np.array(direction, float).reshape(-1, 3), actor))
        self._padded = None

    def poses(self, scene_of_env: NDArray[np.int32], position: Array, attitude: Array) -> tuple[Array, Array]:
        """Return world positions and directions (env, marks, 3), NaN where there is none.

        Args:
            scene_of_env: (env,)
            position: Of actors, (env, actors, 3).
            attitude: Of actors, (env, actors, 4).
        """
        tables = self._tables()
        points, directions, actor = tables[0][scene_of_env], tables[1][scene_of_env], tables[2][scene_of_env]
        env, mark = np.nonzero(actor >= 0)
        if len(env):
            turn, origin = attitude[env, actor[env, mark]], position[env, actor[env, mark]]
            points[env, mark] = origin + frames.rotate(turn, points[env, mark])
            directions[env, mark] = frames.rotate(turn, directions[env, mark])
        return points, directions

    def _tables(self) -> tuple[Array, Array, ArrayInt]:
        if self._padded is None:
            most = max((len(actor) for _, _, actor in self._scenes), default=0)
            points = np.full((len(self._scenes), most, 3), np.nan)
            directions, actors = points.copy(), np.full((len(self._scenes), most), -1)
            for index, (position, direction, actor) in enumerate(self._scenes):
                points[index, : len(actor)], directions[index, : len(actor)] = position, direction
                actors[index, : len(actor)] = actor
            self._padded = points, directions, actors
        return self._padded
