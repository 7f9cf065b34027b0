"""The scenes of many environments, ready for queries: shapes shared, instances placed, actors posed in time."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayInt, ArrayLike, NDArray
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.geometry import Shape, Sphere
from airworthy.geometry.batch import GeometryBatch
from airworthy.geometry.placement import Placement
from airworthy.scenes._attached import AttachedMarks, AttachedSplats, RenderedBatch, is_collision_only
from airworthy.scenes.actors import EXTERNAL, VELOCITY, ActorTable, PathTable, actor_table, still
from airworthy.scenes.instance_tables import (
    InstanceTable,
    MaterialTable,
    ShapeTable,
    actor_instances,
    carrier_groups,
    semantic_numbers,
    static_instances,
)
from airworthy.scenes.record import Instance, Material, Scene, Texture
from airworthy.scenes.skeletons import PartJoints, part_joints

__all__ = ["SceneBatch", "SceneMotion"]


@dataclass(frozen=True, eq=False)
class SceneMotion:
    """Where everything that moves in a batch is at one instant, as copies; see `SceneBatch.motion`."""

    time: Array
    """(env,) [s]"""
    actors: ActorTable
    """What moves them."""
    joints: Mapping[tuple[int, int], Array]
    """Of (environment, actor): turns of joints that were given from outside."""
    extra: tuple[Array, Array, ArrayBool]
    """Poses of the extra dynamic instances, (env, k, 3) and (env, k, 4), and which exist, (env, k)."""


class SceneBatch:
    """The scenes of N environments.

    Static instances of a scene are one layout that its environments share; parts of actors, and other vehicles, are dynamic
    instances of each environment. In an environment the first are `extra_dynamic_instances`, then its scene's actors' parts in
    order; where scenes have different numbers of parts, the rest is inactive.

    Args:
        scenes: One scene for all environments; or several, of which environment i takes number i (modulo their count). More
            scenes than environments are a pool for `assign`. The same object given twice is placed once.
        env_count: Environments; None: one per scene given.
        device: Where queries run.
        threads: Of a CPU; None: all.
        extra_dynamic_instances: Others that move in every environment (vehicles): rows of their shapes, visibility and
            numbers. Their poses are set by `pose_dynamic_instances`; until then they are inactive.
        extra_shapes: Shapes that `extra_dynamic_instances.shape` counts in.
        extra_materials: Materials that `extra_dynamic_instances.material` counts in.

    Raises:
        AirworthyError: A scene cannot be placed (`instance_tables`, `actors`), or there is no scene or environment.
    """

    geometry: GeometryBatch
    """What rays and distances ask. `assign` replaces it when a scene joins that the batch has never seen."""

    def __init__(
        self,
        scenes: Scene | Sequence[Scene],
        env_count: int | None = None,
        device: str = "cpu",
        threads: int | None = None,
        extra_dynamic_instances: Placement | None = None,
        extra_shapes: Sequence[Shape] = (),
        extra_materials: Sequence[Material] = (),
    ) -> None:
        given = [scenes] if isinstance(scenes, Scene) else list(scenes)
        self.env_count = len(given) if env_count is None else int(env_count)
        if not given or self.env_count < 1:
            raise AirworthyError(f"{len(given)} scenes for {self.env_count} environments; expected at least one of each.")
        self.device, self.threads = device, threads
        self.scenes: list[Scene] = []
        """The unique scenes."""
        self.semantics: list[dict[str, int]] = []
        """Of every unique scene: class name -> number."""
        self.instance_names: list[tuple[str, ...]] = []
        """Of every unique scene: names of its static instances, by slot."""
        self._shapes, self._materials, self._paths = ShapeTable(), MaterialTable(), PathTable()
        self._static: list[InstanceTable] = []
        self._moving: list[InstanceTable] = []
        self._actors: list[ActorTable] = []
        self._joints: list[PartJoints] = []
        self._lights, self._beacons, self._attached_splats = AttachedMarks(), AttachedMarks(), AttachedSplats()
        self._carriers: list[ArrayInt] = []
        self._carrier_table = np.zeros((0, 0), np.int32)
        self._origin: weakref.ref[SceneBatch] | None = None
        self._twin: RenderedBatch | None = None
        self._index: dict[int, int] = {}
        self._extra = _extra_instances(extra_dynamic_instances, extra_shapes, extra_materials, self._shapes, self._materials)
        chosen = [self._add(scene) for scene in given]
        self.scene_of_env = np.array([chosen[env % len(chosen)] for env in range(self.env_count)], np.int32)
        """(env,) index into `scenes`."""
        self.time = np.zeros(self.env_count)
        """(env,) [s] of the last `advance`."""
        self._build()

    @property
    def material_rows(self) -> list[tuple[int, str]]:
        """(scene index, material name) of every row that an instance's `material` counts in; (-1, "") is the default."""
        return self._materials.rows

    def material(self, row: int) -> tuple[Material, dict[str, Texture]]:
        """Return the material of a row, and the textures behind its maps by their names."""
        return self._materials.materials[row], self._materials.textures[row]

    @property
    def origin(self) -> SceneBatch:
        """Of what `rendered` gives, the batch that was asked; of every other batch, itself."""
        of = None if self._origin is None else self._origin()
        return self if of is None else of

    @property
    def extra_count(self) -> int:
        """Dynamic instances of each environment that are no actors."""
        return len(self._extra)

    def dynamic_names(self, scene: int) -> tuple[str, ...]:
        """Return names of the dynamic instances of a unique scene, by slot from `geometry.dynamic_start` on: "actor/part"."""
        names = [f"vehicle/{index}" for index in range(self.extra_count)]
        for actor in self.scenes[scene].actors:
            names += [f"{actor.name}/{part.name or index}" for index, part in enumerate(actor.parts)]
        return tuple(names)

    def instance_name(self, env: int, number: int) -> str:
        """Return the name of what a query met, by its instance number: an instance's own ("Gate21, left post"), or else its
        shape's; of what moves as `dynamic_names`; "" for -1, nothing.
        """
        scene, first = int(self.scene_of_env[env]), self.geometry.dynamic_start
        names = self.instance_names[scene] if number < first else self.dynamic_names(scene)
        return "" if number < 0 else names[number if number < first else number - first]

    @property
    def dynamic_poses(self) -> tuple[Array, Array, ArrayBool]:
        """Copies of k dynamic instances' world positions (env, k, 3), attitudes (env, k, 4) and which exist (env, k), now."""
        return self._position.copy(), self._attitude.copy(), self._active.copy()

    # --- construction

    def _add(self, scene: Scene) -> int:
        """Index of a scene, which joins the pool when it is new."""
        # By identity: comparing two scenes would compare their meshes.
        found = self._index.get(id(scene))
        if found is not None:
            return found
        index = len(self.scenes)
        # All that may refuse the scene comes before the first list grows: a failed `assign` leaves the pool as it was.
        static = static_instances(scene, index, self._shapes, self._materials)
        moving = actor_instances(scene, index, self._shapes, self._materials)
        actors = actor_table(scene, self._paths)
        joints = part_joints(scene, moving)
        lights, beacons, groups = _light_marks(scene), _beacon_marks(scene), carrier_groups(scene)
        self._attached_splats.add(scene)
        self.scenes.append(scene)
        self.semantics.append(semantic_numbers(scene))
        self.instance_names.append(tuple(item.name or item.shape for item in scene.instances))
        self._static.append(static)
        self._moving.append(moving)
        self._actors.append(actors)
        self._joints.append(joints)
        self._lights.add(*lights)
        self._beacons.add(*beacons)
        self._carriers.append(np.array([groups.get(beacon.landmark, 0) for beacon in scene.beacons], np.int64))
        self._index[id(scene)] = index
        return index

    def _build(self) -> None:
        """Build the engine's batch over the pool, and the state of every actor at its beginning."""
        self._actor_max = max(len(table) for table in self._actors)
        self._dynamic_max = self.extra_count + max(len(instances) for instances in self._moving)
        self._parts = self._padded_parts()
        self._state = still(self.env_count * self._actor_max)
        self._position = np.zeros((self.env_count, self._dynamic_max, 3))
        self._attitude = np.tile(frames.IDENTITY, (self.env_count, self._dynamic_max, 1))
        self._active = np.zeros((self.env_count, self._dynamic_max), bool)
        self._overrides: dict[tuple[int, int], Array] = {}
        if not self._shapes.shapes:
            self._shapes.add(Sphere(1e-3))  # the engine wants a shape even where nothing stands
        dynamic_instances = [self.dynamic_placement(scene) for scene in range(len(self.scenes))] if self._dynamic_max else None
        self.geometry = GeometryBatch(
            self._shapes.shapes,
            [instances.placement() for instances in self._static],
            self.scene_of_env,
            [dynamic_instances[scene] for scene in self.scene_of_env] if dynamic_instances else None,
            device=self.device,
            threads=self.threads,
        )
        self._begin(np.arange(self.env_count))

    def dynamic_placement(self, scene: int) -> Placement:
        """Return dynamic instances of an environment with a unique scene: vehicles, parts at rest, rows that nothing uses."""
        instances = self._moving[scene]
        # All environments have as many of them, so that a swap of scenes rebuilds no arrays; the rest are switched off.
        spare = self._dynamic_max - self.extra_count - len(instances)
        columns = [
            np.concatenate((getattr(self._extra, name), getattr(instances, name), np.repeat(blank, spare, axis=0)))
            for name, blank in _BLANK.items()
        ]
        return Placement(*columns)

    # --- state

    def _begin(self, env_ids: ArrayInt) -> None:
        """Actors of environments at their beginning, which is the environments' present time."""
        for env in env_ids if self._actor_max else ():
            table = self._actors[self.scene_of_env[env]]
            rows = slice(env * self._actor_max, env * self._actor_max + len(table))
            self._state.put(rows, table)
            self._state.since[rows] = self.time[env]
            self._active[env, self.extra_count :] = False
            self._active[env, self.extra_count : self.extra_count + len(self._moving[self.scene_of_env[env]])] = True
        if self._overrides:
            gone = set(env_ids.tolist())
            # Poses from a motion-capture system belong to the flight in which they arrived.
            self._overrides = {key: value for key, value in self._overrides.items() if key[0] not in gone}
        self._place(env_ids)

    def reset(self, env_ids: ArrayLike | None = None, time: float = 0.0) -> None:
        """Put actors of environments back to their beginning, at a time [s]: commands and poses given since are forgotten."""
        envs = self._envs(env_ids)
        self.time[envs] = time
        self._begin(envs)

    def advance(self, time: ArrayLike) -> None:
        """Pose every actor at a time.

        Args:
            time: [s], one for all environments or (env,). It may go back: poses are functions of time.

        Raises:
            AirworthyError: A time is not finite, or there are not as many as environments.
        """
        given = np.asarray(time, float)
        if given.shape not in ((), (self.env_count,)) or not np.isfinite(given).all():
            raise AirworthyError(
                f"advance() got times of shape {given.shape}; expected one finite time or ({self.env_count},)."
            )
        self.time = np.broadcast_to(given, (self.env_count,)).copy()
        if self._actor_max:
            self._place(np.arange(self.env_count))

    def motion(self) -> SceneMotion:
        """Return where everything that moves is now, for `follow` of another batch of the same scenes."""
        mine = slice(self.extra_count)
        extra = self._position[:, mine].copy(), self._attitude[:, mine].copy(), self._active[:, mine].copy()
        actors = self._state.take(np.arange(len(self._state)))  # by numbers: copies
        return SceneMotion(self.time.copy(), actors, dict(self._overrides), extra)

    def follow(self, motion: SceneMotion) -> None:
        """Put everything that moves where it is in another batch of the same scenes.

        Args:
            motion: Of that one.

        Raises:
            AirworthyError: It is of another number of environments, actors or vehicles.
        """
        theirs = (len(motion.time), len(motion.actors), motion.extra[0].shape[1])
        ours = (self.env_count, len(self._state), self.extra_count)
        if theirs != ours:
            raise AirworthyError(
                f"follow() got {theirs[0]} environments with {theirs[1]} actors and {theirs[2]} vehicles; expected"
                f" {ours[0]} with {ours[1]} and {ours[2]}."
            )
        self.time = motion.time.copy()
        self._state.put(slice(None), motion.actors)
        self._overrides = dict(motion.joints)
        mine = slice(self.extra_count)
        self._position[:, mine], self._attitude[:, mine], self._active[:, mine] = motion.extra
        self._place(np.arange(self.env_count))

    def actor_pose(self, name: str, env_ids: ArrayLike | None = None) -> tuple[Array, Array]:
        """Return world positions (k, 3) and attitudes (k, 4) of an actor now, in the environments that have it, or in those
        given."""
        rows, envs = self._actor_indices(name, env_ids)
        return self._state.take(rows).pose(self._paths, self.time[envs])

    def pose_actor(
        self,
        name: str,
        position: ArrayLike,
        attitude: ArrayLike = frames.IDENTITY,
        env_ids: ArrayLike | None = None,
        joints: ArrayLike | None = None,
    ) -> None:
        """Put an actor at a pose, where it stays, whatever moved it before.

        Args:
            name: The actor's.
            position: (3,) or (k, 3), world [m].
            attitude: (4,) or (k, 4), unit.
            env_ids: Environments (k,); None: all whose scene has the actor.
            joints: Of an actor with a skeleton, local turns of its joints, (joints, 4) or (k, joints, 4), as a motion-capture
                system sends them; None: its clip, or its last such pose, goes on.

        Raises:
            AirworthyError: Shapes do not fit, a number is not finite, or an environment's scene has no such actor.
        """
        rows, envs = self._actor_indices(name, env_ids)
        self._state.position[rows] = _spread(position, len(rows), 3, "position")
        self._state.attitude[rows] = _unit(attitude, len(rows))
        self._state.kind[rows] = EXTERNAL
        if joints is not None:
            self._override(name, envs, np.asarray(joints, float))
        self._place(envs)

    def command_actor(
        self, name: str, velocity: ArrayLike, rate: ArrayLike = (0.0, 0.0, 0.0), env_ids: ArrayLike | None = None
    ) -> None:
        """Let an actor move on from where it is now with constant world velocity [m/s] and world rate [rad/s].

        Args:
            name: The actor's.
            velocity: (3,) or (k, 3).
            rate: (3,) or (k, 3).
            env_ids: Environments (k,); None: all whose scene has the actor.

        Raises:
            AirworthyError: As `pose_actor`.
        """
        rows, envs = self._actor_indices(name, env_ids)
        speed, turn = _spread(velocity, len(rows), 3, "velocity"), _spread(rate, len(rows), 3, "rate")
        position, attitude = self._state.take(rows).pose(self._paths, self.time[envs])
        self._state.position[rows], self._state.attitude[rows] = position, attitude
        self._state.velocity[rows], self._state.rate[rows] = speed, turn
        self._state.since[rows], self._state.kind[rows] = self.time[envs], VELOCITY
        self._place(envs)

    def pose_dynamic_instances(
        self, position: ArrayLike, attitude: ArrayLike, env_ids: ArrayLike | None = None, active: ArrayLike | None = None
    ) -> None:
        """Pose the extra dynamic instances of k environments.

        Args:
            position: World [m], (k, extra_count, 3).
            attitude: Quaternions x, y, z, w, body to world, (k, extra_count, 4).
            env_ids: (k,); None: all.
            active: Which of them are there, (k, extra_count); None: all.
        """
        envs = self._envs(env_ids)
        count = (len(envs), self.extra_count)
        self._position[envs, : self.extra_count] = np.broadcast_to(np.asarray(position, float), (*count, 3))
        self._attitude[envs, : self.extra_count] = np.broadcast_to(np.asarray(attitude, float), (*count, 4))
        self._active[envs, : self.extra_count] = True if active is None else np.broadcast_to(np.asarray(active, bool), count)
        self._send(envs)

    def assign(self, env_ids: ArrayLike, scenes: Scene | int | Sequence[Scene | int]) -> None:
        """Swap the whole scene of environments; their actors begin anew at the environments' present time.

        Scenes of the pool cost one small rebuild of the dynamic instances; a scene that the batch has never seen is placed
        first, which replaces `geometry`, so give all of them to the constructor where this happens at every reset.

        Args:
            env_ids: Environments (k,).
            scenes: One, or k: scenes, or indices into `scenes`.

        Raises:
            AirworthyError: Counts do not fit, an index is out of range, or a scene cannot be placed.
        """
        envs = self._envs(env_ids)
        given = list(scenes) if isinstance(scenes, Sequence) else [scenes] * len(envs)
        if len(given) != len(envs):
            raise AirworthyError(f"assign() got {len(given)} scenes for {len(envs)} environments; expected as many, or one.")
        known = len(self.scenes)
        chosen = [self._add(item) if isinstance(item, Scene) else int(item) for item in given]
        if min(chosen, default=0) < 0 or max(chosen, default=0) >= len(self.scenes):
            raise AirworthyError(f"assign() got scene {max(chosen)}; expected 0 to {len(self.scenes) - 1}.")
        self.scene_of_env[envs] = chosen
        # A new scene may have more static or dynamic instances than there is room for.
        if len(self.scenes) > known:
            self._rebuild()
            return
        self.geometry.assign(envs, self.scene_of_env[envs])
        if self._dynamic_max:
            self.geometry.replace_dynamic_instances(envs, [self.dynamic_placement(scene) for scene in self.scene_of_env[envs]])
        self._begin(envs)

    def _rebuild(self) -> None:
        """Place the grown pool, keeping what the extra dynamic instances do. Actors of all environments begin anew."""
        count = self.extra_count
        kept = [array[:, :count].copy() for array in (self._position, self._attitude, self._active)]
        self._build()
        for array, old in zip((self._position, self._attitude, self._active), kept, strict=True):
            array[:, :count] = old
        self._send(np.arange(self.env_count))

    # --- attached things

    def light_poses(self) -> tuple[Array, Array]:
        """Return world positions and directions of the lights now, each (env, lights, 3); NaN where an environment has fewer.

        In the order of the scene's `lights`. The sun has no position, a point light no direction: NaN.
        """
        return self._lights.poses(self.scene_of_env, *self._actor_poses(np.arange(self.env_count)))

    def beacon_positions(self) -> Array:
        """Return world positions of the beacons now, (env, beacons, 3), in the order of the scene's `beacons`; NaN padded."""
        return self._beacons.poses(self.scene_of_env, *self._actor_poses(np.arange(self.env_count)))[0]

    def beacon_groups(self) -> NDArray[np.int32]:
        """Return the group of instances that carry each beacon, (env, beacons), in the order of the scene's `beacons`; 0 where
        nothing carries one, and where an environment has fewer.

        Rays of a beacon pass through its group (`geometry.occluded`).
        """
        # Padded when a scene has joined, not at every one of a sensor's samples.
        if len(self._carrier_table) != len(self._carriers):
            most = max(map(len, self._carriers))
            self._carrier_table = np.array([np.pad(row, (0, most - len(row))) for row in self._carriers], np.int32)
        return self._carrier_table[self.scene_of_env]

    def splat_poses(self) -> tuple[Array, Array]:
        """Return world positions (env, placements, 3) and attitudes (env, placements, 4) of clouds that ride on actors, now.

        In the order of those of the scene's `splats` that are attached; NaN padded.
        """
        return self._attached_splats.poses(self.scene_of_env, *self._actor_poses(np.arange(self.env_count)))

    def look_tables(self) -> tuple[ShapeTable, MaterialTable]:
        """Return copies of the tables of shapes and materials, for what only colours see to join."""
        return self._shapes.copy(), self._materials.copy()

    @property
    def has_looks(self) -> bool:
        """Whether colours see things that no other ray meets (`Scene.looks`)."""
        return any(scene.looks for scene in self.scenes)

    def rendered(self) -> SceneBatch:
        """Return the batch as colours see it: without what is covered and invisible, and with the scenes' looks.

        It shares everything else with this one and is of this instant; it is this one where there is nothing of the kind.
        Instances keep their numbers; where there are looks, these come behind the static ones, and numbers of dynamic
        instances begin at this one's `geometry.dynamic_start`.
        """
        if self._origin is not None:
            return self
        if self._twin is None or not self._twin.fits(self):
            things = (item for scene in self.scenes for item in (*scene.instances, *_parts(scene)))
            if not self.has_looks and not any(map(is_collision_only, things)):
                return self
            # Made when a colour is first asked for: most batches have nothing that is hit and not shown.
            self._twin = RenderedBatch(self)
        return self._twin.view(self)

    def actor_poses(self) -> tuple[Array, Array]:
        """Return world poses of all actors now, (env, actors, 3) and (env, actors, 4), in the order of their scenes."""
        return self._actor_poses(np.arange(self.env_count))

    @property
    def joint_overrides(self) -> dict[tuple[int, int], Array]:
        """Local turns of joints that were given from outside, by (environment, actor)."""
        return self._overrides

    def _actor_poses(self, envs: ArrayInt) -> tuple[Array, Array]:
        """World poses of the actors of environments (k,), (k, actors, 3) and (k, actors, 4)."""
        rows = (envs[:, None] * self._actor_max + np.arange(self._actor_max)).reshape(-1)
        position, attitude = self._state.take(rows).pose(self._paths, np.repeat(self.time[envs], self._actor_max))
        return position.reshape(len(envs), -1, 3), attitude.reshape(len(envs), -1, 4)

    # --- inside

    def _place(self, envs: ArrayInt) -> None:
        """Pose the parts of environments' actors and tell the engine."""
        if not self._dynamic_max:
            return
        if self._actor_max:
            scenes = self.scene_of_env[envs]
            actor, local, turn = (array[scenes] for array in self._parts)
            # Only skinned actors move part by part; all others move as a whole below.
            for scene in np.unique(scenes):
                if self._joints[scene].moved:
                    mine = scenes == scene
                    instances = self._moving[scene]
                    pose = self._joints[scene].poses(instances, envs[mine], self.time[envs[mine]], self._overrides)
                    local[mine, : len(instances)], turn[mine, : len(instances)] = pose
            position, attitude = self._actor_poses(envs)
            row = np.arange(len(envs))[:, None]
            position, attitude = position[row, actor], attitude[row, actor]
            self._position[envs, self.extra_count :] = position + frames.rotate(attitude, local)
            self._attitude[envs, self.extra_count :] = frames.normalize(frames.multiply(attitude, turn))
        self._send(envs)

    def _padded_parts(self) -> tuple[ArrayInt, Array, Array]:
        """Of every scene's parts at rest: actor (scene, part), position (scene, part, 3) and attitude (scene, part, 4)."""
        count = (len(self.scenes), self._dynamic_max - self.extra_count)
        actor, local, turn = np.zeros(count, np.int64), np.zeros((*count, 3)), np.tile(frames.IDENTITY, (*count, 1))
        for scene, instances in enumerate(self._moving):
            actor[scene, : len(instances)], local[scene, : len(instances)], turn[scene, : len(instances)] = (
                instances.actor,
                instances.position,
                instances.attitude,
            )
        return actor, local, turn

    def _send(self, envs: ArrayInt) -> None:
        self.geometry.set_dynamic_instances(self._position[envs], self._attitude[envs], envs, self._active[envs])

    def _envs(self, env_ids: ArrayLike | None) -> ArrayInt:
        if env_ids is None:
            return np.arange(self.env_count)
        envs = np.atleast_1d(np.asarray(env_ids, np.int64)).reshape(-1)
        if envs.size and (envs.min() < 0 or envs.max() >= self.env_count):
            raise AirworthyError(f"Environment {envs.max()} does not exist; expected 0 to {self.env_count - 1}.")
        return envs

    def _actor_indices(self, name: str, env_ids: ArrayLike | None) -> tuple[ArrayInt, ArrayInt]:
        """Rows of an actor in the state, and its environments."""
        slots = np.array([_slot(scene, name) for scene in self.scenes])[self.scene_of_env]
        envs = np.flatnonzero(slots >= 0) if env_ids is None else self._envs(env_ids)
        # Asked for by number, an environment must have the actor; asked for all, those without it are passed over.
        missing = envs[slots[envs] < 0]
        if len(missing) or not len(envs):
            scene = self.scenes[self.scene_of_env[missing[0] if len(missing) else 0]]
            raise unknown_name("actor", name, [actor.name for actor in scene.actors], f"They are in scene {scene.name!r}.")
        return envs * self._actor_max + slots[envs], envs

    def _override(self, name: str, envs: ArrayInt, joints: Array) -> None:
        for row, env in enumerate(envs):
            scene = self.scene_of_env[env]
            slot = _slot(self.scenes[scene], name)
            count = self._joints[scene].joint_count(slot)
            pose = joints if joints.ndim == 2 else joints[row] if row < len(joints) else joints[:0]
            if count == 0 or pose.shape != (count, 4) or not np.isfinite(pose).all():
                raise AirworthyError(f"Actor {name!r} has {count} joints; got turns of shape {pose.shape}, or not finite ones.")
            self._overrides[int(env), slot] = frames.normalize(pose)


_BLANK: dict[str, ArrayAny] = {
    "shape": np.zeros(1, np.int32),
    "position": np.zeros((1, 3)),
    "attitude": np.array([frames.IDENTITY]),
    "scale": np.ones(1),
    "instance_id": np.zeros(1, np.int32),
    "semantic_id": np.zeros(1, np.int32),
    "material": np.zeros(1, np.int32),
    "visible": np.zeros(1, bool),
    "collide": np.zeros(1, bool),
    "group": np.zeros(1, np.int32),
}


def _extra_instances(
    placement: Placement | None,
    shapes: Sequence[Shape],
    materials: Sequence[Material],
    shape_table: ShapeTable,
    material_table: MaterialTable,
) -> InstanceTable:
    """Rows of the dynamic instances that are no actors, their shapes and materials counted in the batch's tables."""
    if placement is None:
        return InstanceTable(**{name: blank[:0] for name, blank in _BLANK.items()})
    if len(placement.shape) and int(placement.shape.max()) >= len(shapes):
        raise AirworthyError(
            f"extra_dynamic_instances names shape {int(placement.shape.max())}, but {len(shapes)} extra_shapes are given."
        )
    # Counted anew: the batch has shapes of scenes before these.
    index = np.array([shape_table.add(shape) for shape in shapes], np.int32)
    table = Scene("extra", materials={str(number): material for number, material in enumerate(materials)})
    rows = [material_table.add(table, -1, (name,), 1) for name in table.materials] or [0]
    same = ("position", "attitude", "scale", "instance_id", "semantic_id", "visible", "collide", "group")
    return InstanceTable(
        shape=index[placement.shape],
        material=np.array(rows, np.int32)[np.minimum(placement.material, len(rows) - 1)],
        **{name: getattr(placement, name) for name in same},
    )


def _parts(scene: Scene) -> Iterator[Instance]:
    return (part for actor in scene.actors for part in actor.parts)


def _slot(scene: Scene, name: str) -> int:
    return next((index for index, actor in enumerate(scene.actors) if actor.name == name), -1)


def _spread(value: ArrayLike, count: int, width: int, what: str) -> Array:
    array = np.asarray(value, float)
    if array.shape not in ((width,), (count, width)) or not np.isfinite(array).all():
        raise AirworthyError(f"{what} has shape {array.shape}; expected ({width},) or ({count}, {width}), all finite.")
    return np.broadcast_to(array, (count, width))


def _unit(value: ArrayLike, count: int) -> Array:
    attitude = _spread(value, count, 4, "attitude")
    if (np.abs(np.linalg.norm(attitude, axis=1) - 1.0) > 1e-3).any():
        raise AirworthyError("attitude is not a quaternion x, y, z, w of length 1; normalise it first.")
    return frames.normalize(attitude)


def _light_marks(scene: Scene) -> tuple[Scene, list[Any], list[Any], list[str]]:
    none = (np.nan,) * 3
    lights = scene.lights
    return (
        scene,
        [getattr(light, "position", none) for light in lights],
        [getattr(light, "direction", none) for light in lights],
        [getattr(light, "attached", "") for light in lights],
    )


def _beacon_marks(scene: Scene) -> tuple[Scene, list[Any], list[Any], list[str]]:
    beacons = scene.beacons
    return scene, [b.position for b in beacons], [(np.nan,) * 3] * len(beacons), [b.attached for b in beacons]
