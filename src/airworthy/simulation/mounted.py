"""Sensors mounted on the vehicles of a simulator: sampled on their own steps, delivered after their latency.

Sample k of a sensor at rate f falls on step ceil(k f_physics / f) of each flight; it is taken at exactly that step's pose and
carries exactly that step's stamp. Sensors whose steps coincide see the same pose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayIndex, ArrayInt, ArrayLike, ArrayU32, NDArray
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.frames import rotate
from airworthy.core.random import flight_key
from airworthy.geometry import Box, Cylinder, Placement, Shape, Sphere
from airworthy.sensors.build import Sensor
from airworthy.sensors.devices import Device
from airworthy.sensors.mounting import SampleClock, mounted_pose
from airworthy.sensors.noise import Draw
from airworthy.sensors.sampling import SensorView, geometry_of
from airworthy.simulation.events import FAR
from airworthy.simulation.sensor_state import Capture, MountedSensor, Sample, SampleRenderer, SampleRequest, SensorState
from airworthy.simulation.simulator import Simulator
from airworthy.vehicles import Vehicle
from airworthy.vehicles.links import refuse_links
from airworthy.vehicles.record import CollisionBody

__all__ = ["Capture", "DynamicVehicles", "MountedSensor", "MountedSensors", "Sample"]

# ---- Vehicles as things that sensors see: the collision bodies of a group as dynamic instances of each member's scene -------

# Ours: far above the instance numbers of scenes, and within the 16 bits of an image.
FIRST_VEHICLE_ID = 60000
"""Instance number of a group's first member; the others follow."""
VEHICLE_CLASS = 8
"""Semantic number of vehicles (`scenes.DEFAULT_SEMANTICS`)."""


def body_shape(body: CollisionBody) -> Shape:
    """Return a vehicle's collision body as a shape."""
    if body.shape == "sphere":
        return Sphere(body.size[0])
    if body.shape == "box":
        return Box(body.size)
    return Cylinder(body.size[0], body.size[2])


class DynamicVehicles:
    """Bodies of every member of a group, for the scene of each of them.

    A scene batch wants the same rows in every environment, so there is one row per place in a group and kind of body, of which
    one per place is active. Use `placement` and `shapes` as `extra_dynamic_instances` and `extra_shapes` of a `SceneBatch`.

    Args:
        vehicles: One per environment.
        groups: Group of each environment, (env,); None: each flies alone, and its own body is the only row.
        flight_ids: Of the simulator, (env,); members are ordered by them, so that numbers do not depend on the batch's order.
    """

    def __init__(self, vehicles: Sequence[Vehicle], groups: ArrayLike | None = None, flight_ids: ArrayLike | None = None):
        self.env_count = len(vehicles)
        for item in vehicles:
            refuse_links(item, "What vehicles see of each other")
        group = np.arange(self.env_count) if groups is None else np.asarray(groups, np.int64)
        if group.shape != (self.env_count,):
            raise AirworthyError(f"Groups have shape {group.shape}; expected one number per environment, ({self.env_count},).")
        # In order of appearance, each kind of body once.
        bodies = list(dict.fromkeys((v.body.shape, v.body.size) for v in vehicles))
        self.shapes: list[Shape] = [body_shape(CollisionBody(*body)) for body in bodies]
        kind = np.array([bodies.index((v.body.shape, v.body.size)) for v in vehicles])
        flights = np.arange(self.env_count) if flight_ids is None else np.asarray(flight_ids)
        self._members, slot = _members(group, flights)
        self.member_max, kinds = self._members.shape[1], len(bodies)
        # Bodies are placed from the reference point, poses are those of the centre of mass.
        self._offset = np.array([v.body.center for v in vehicles]) - [v.center_of_mass for v in vehicles]
        present = self._members >= 0
        self._active = (present[..., None] & (kind[self._members][..., None] == np.arange(kinds))).reshape(self.env_count, -1)
        self.own_row: ArrayInt = slot * kinds + kind
        """Row of each environment's own vehicle, (env,)."""
        self.placement = Placement.of(
            shape=np.tile(np.arange(kinds), self.member_max),
            instance_id=FIRST_VEHICLE_ID + np.repeat(np.arange(self.member_max), kinds),
            semantic_id=np.full(self.member_max * kinds, VEHICLE_CLASS),
            collide=np.zeros(self.member_max * kinds, bool),
        )

    def poses(self, position: NDArray[np.floating], attitude: NDArray[np.floating]) -> tuple[Array, Array, ArrayBool]:
        """Return arguments of `SceneBatch.pose_dynamic_instances`: positions (env, rows, 3), attitudes (env, rows, 4), active
        (env, rows).

        Args:
            position: Centres of mass, world [m], (env, 3).
            attitude: (env, 4).
        """
        turn = np.asarray(attitude, np.float64)
        centre = np.asarray(position, np.float64) + rotate(turn, self._offset)
        kinds = len(self.shapes)
        return (
            np.repeat(centre[self._members], kinds, axis=1),
            np.repeat(turn[self._members], kinds, axis=1),
            self._active,
        )


def _members(group: ArrayInt, flights: NDArray[np.generic]) -> tuple[ArrayInt, ArrayInt]:
    """Environments of each one's group in order, (env, most), -1 where there are fewer; and each one's place among them."""
    # By flight numbers within a group: what a sensor sees does not depend on the batch's order.
    order = np.lexsort((flights, group))
    _, start, count = np.unique(group[order], return_index=True, return_counts=True)
    slot = np.zeros(len(group), np.int64)
    members = np.full((len(group), int(count.max())), -1, np.int64)
    for first, size in zip(start, count, strict=True):
        those = order[first : first + size]
        slot[those] = np.arange(size)
        members[those, :size] = those
    return members, slot


# -----------------------------------------------------------------------------------------------------------------------------


class MountedSensors:
    """Sensors on every vehicle of a simulator.

    It asks the simulator to stop where a sample is due, so that no launch runs past one. Mount everything before flying; the
    first samples (step 0) are taken at once, and again at each reset of the environments it concerns.

    Args:
        simulator: Whose poses and clock count.
        scene: A `SceneBatch` with the simulator's number of environments.
        sensors: By name; the name tells their random numbers apart. Devices, names or files of devices, or a `Sensor` of
            one's own, of which a copy is mounted.
        others: Makes the vehicles of a group visible to each other; the scene must have been built with its dynamic instances.
        move_scene: Pose the scene's actors at each sample's instant, and put them back when a flight begins. Switch it off
            where somebody else does.
        renderer: Renders the samples of some sensors beside the simulation; they are read where it sends them, and neither
            `latest` nor listeners have them. None: every sample is rendered before the simulation goes on.

    Raises:
        AirworthyError: If counts, rates or names do not fit.
    """

    def __init__(
        self,
        simulator: Simulator,
        scene: Any,
        sensors: Mapping[str, MountedSensor | Device | Sensor | str],
        others: DynamicVehicles | None = None,
        move_scene: bool = True,
        renderer: SampleRenderer | None = None,
    ):
        self.simulator, self.scene, self._others, self._move_scene = simulator, scene, others, move_scene
        self._renderer = renderer
        envs = getattr(scene, "env_count", simulator.env_count)
        if envs != simulator.env_count:
            raise AirworthyError(f"The scenes are of {envs} environments and the simulator has {simulator.env_count}.")
        self._offset = -np.array([v.center_of_mass for v in simulator.vehicles])
        self._jointed = simulator.config.dynamics == "articulated"
        for name, item in sensors.items():
            link = item.link if isinstance(item, MountedSensor) else ""
            if link and not self._jointed:
                raise AirworthyError(f"Sensor {name!r} is mounted on the link {link!r}, but the vehicles have no links.")
            if self._jointed:  # refuses a link that is not there
                simulator.link_pose(link, [0])
        self._posts = {name: SensorState(name, _mounted(item), simulator) for name, item in sensors.items()}
        self._listeners: list[Callable[[Capture], None]] = []
        self.reset(np.arange(simulator.env_count))
        simulator.add_events(self)

    # ---- reading ----------------------------------------------------------------------------------------------------

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the sensors."""
        return tuple(self._posts)

    def sensor(self, name: str) -> Sensor:
        """Return the sensor behind a name."""
        return self._post(name).sensor

    def clock(self, name: str) -> SampleClock:
        """Return when a sensor samples."""
        return self._post(name).clock

    def latest(self, name: str) -> Sample:
        """Return the newest sample that has arrived by now, per environment.

        The arrays are the buffers themselves where nothing waits: copy what must outlive the next step.

        Raises:
            AirworthyError: The sensor's samples are rendered beside the simulation.
        """
        if self._beside(name):
            raise AirworthyError(
                f"Samples of sensor {name!r} are rendered beside the simulation: read them where they are sent."
            )
        return self._post(name).ring.newest(self._now(), self.simulator.config.physics_rate)

    def listen(self, listener: Callable[[Capture], None]) -> None:
        """Call somebody (a recorder) with every sample when it is taken; those of step 0, already taken, are told now."""
        self._listeners.append(listener)
        for post in self._posts.values():
            if post.last is not None and not post.last.step.any():
                listener(post.last)

    # ---- events -----------------------------------------------------------------------------------------------------

    def due(self, flight_step: ArrayU32) -> ArrayInt:
        """Return physics steps until the next event of each environment, at least 1, (env,); asked by the simulator."""
        now = flight_step.astype(np.int64)
        waits = [post.next_step(now) - now for post in self._posts.values()]
        return np.min(waits, axis=0) if waits else np.full(len(now), FAR)

    def fire(self, simulator: Simulator) -> None:
        """Take every sample that falls on the present step of its flight and has not been taken; called by the simulator."""
        now = self._now()
        due = {name: ids for name, post in self._posts.items() if (ids := np.flatnonzero(post.awaits(now))).size}
        rolling = [post for post in self._posts.values() if post.rolling]
        if not (due or rolling):
            return
        # Once for all sensors that are due at this instant.
        self._place_dynamic_instances()
        for post in rolling:
            post.remember(now, *self._carrier(post, np.arange(simulator.env_count)))
        for name, ids in due.items():
            self._take(self._posts[name], ids, now[ids])

    def reset(self, env_ids: ArrayIndex) -> None:
        """Begin anew after new flights or a restored snapshot: forget samples, draw mounts, take the sample of step 0.

        Called by the simulator. After restoring a snapshot, `restore` brings the samples back.
        """
        # After a restored snapshot flights are under way: nothing is sampled, `restore` brings the samples back.
        new = env_ids[self._now()[env_ids] == 0]
        if new.size and self._move_scene and hasattr(self.scene, "reset"):
            self.scene.reset(new)
        for post in self._posts.values():
            post.begin(env_ids, self._keys(env_ids))
        if self._renderer is not None:
            self._renderer.reset(env_ids)
        if new.size:
            self.fire(self.simulator)

    # ---- save, restore ----------------------------------------------------------------------------------------------

    def save(self) -> dict[str, dict[str, ArrayAny]]:
        """Return what the samples to come depend on besides the simulator's own snapshot and the scene's state, by sensor.

        Raises:
            AirworthyError: Samples are rendered beside the simulation, where sensors remember what is not known here.
        """
        if any(map(self._beside, self._posts)):
            raise AirworthyError("Sensors whose samples are rendered beside the simulation cannot be saved.")
        return {name: post.save() for name, post in self._posts.items()}

    def restore(self, saved: Mapping[str, dict[str, ArrayAny]]) -> None:
        """Continue from `save`, after the simulator was restored.

        Raises:
            AirworthyError: If it is of other sensors.
        """
        if set(saved) != set(self._posts):
            raise AirworthyError(f"Saved samples are of {', '.join(saved)}; mounted are {', '.join(self._posts)}.")
        every = np.arange(self.simulator.env_count)
        for name, post in self._posts.items():
            post.restore(saved[name], every, self._keys(every))

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _post(self, name: str) -> SensorState:
        if name not in self._posts:
            raise unknown_name("mounted sensor", name, self._posts)
        return self._posts[name]

    def _now(self) -> ArrayInt:
        return self.simulator.flight_step.astype(np.int64)

    def _keys(self, ids: ArrayIndex) -> ArrayU32:
        return flight_key(self.simulator.seed, self.simulator.flight_ids[ids], self.simulator.episode[ids])

    def _carrier(self, post: SensorState, ids: ArrayIndex) -> tuple[Array, Array]:
        """World poses of what carries a sensor's mount: the body's reference point, or an actor."""
        if post.spec.attached:
            position, attitude = self.scene.actor_pose(post.spec.attached, ids)
            return np.asarray(position, np.float64), np.asarray(attitude, np.float64)
        if self._jointed:
            return self.simulator.link_pose(post.spec.link, ids)
        attitude = np.asarray(self.simulator.attitude, np.float64)[ids]
        position = np.asarray(self.simulator.position, np.float64)[ids]
        return mounted_pose(position, attitude, self._offset[ids], (0.0, 0.0, 0.0, 1.0))

    def _place_dynamic_instances(self) -> None:
        """Everything that moves, at this instant."""
        if self._move_scene and hasattr(self.scene, "advance"):
            self.scene.advance(self.simulator.time)
        if self._others is not None:
            position, attitude, active = self._others.poses(self.simulator.position, self.simulator.attitude)
            self.scene.pose_dynamic_instances(position, attitude, active=active)

    def _take(self, post: SensorState, ids: ArrayIndex, step: ArrayInt) -> None:
        if self._beside(post.name):
            self._expose(post, ids, step)
            return
        number, view = self._view(post, ids, step)
        data = post.sampled(self.scene, view)
        capture = Capture(post.name, post.sensor, ids, number, step, view.position, view.attitude, data)
        post.keep(capture)
        for listener in self._listeners:
            listener(capture)

    def _expose(self, post: SensorState, ids: ArrayIndex, step: ArrayInt) -> None:
        """Have a sample rendered beside the simulation, or left out."""
        assert self._renderer is not None
        if self._renderer.accepts(post.name):
            number, view = self._view(post, ids, step)
            motion = self.scene.motion() if hasattr(self.scene, "motion") else None
            self._renderer.render(SampleRequest(post.name, number, step, view, motion))
        post.left(ids, step)

    def _view(self, post: SensorState, ids: ArrayIndex, step: ArrayInt) -> tuple[ArrayInt, SensorView]:
        """Return the numbers of samples and from where they are taken."""
        position, attitude = mounted_pose(*self._carrier(post, ids), post.position[ids], post.attitude[ids])
        # Counted from the clock, not by calls: a flight that was restored goes on with its own numbers.
        number = post.clock.taken(step) - 1
        draw = Draw(self._keys(ids), number.astype(np.uint32), post.sensor.number)
        columns = post.columns(ids, step)
        before = post.since(ids, position, attitude, geometry_of(self.scene).dynamic_poses()) if post.flows else None
        velocity = None if post.spec.attached else np.asarray(self.simulator.velocity, np.float64)[ids]
        return number, SensorView(position, attitude, ids, draw, self._own(post, ids), *columns, before, velocity)

    def _beside(self, name: str) -> bool:
        """Tell whether a sensor's samples are rendered beside the simulation."""
        return self._renderer is not None and self._renderer.renders(name)

    def _own(self, post: SensorState, ids: ArrayIndex) -> NDArray[np.int32] | None:
        """Return the number of each vehicle's own body in its scene; a sensor on an actor sees the vehicle."""
        if self._others is None or post.spec.attached:
            return None
        return (geometry_of(self.scene).dynamic_start + self._others.own_row[ids]).astype(np.int32)


def _mounted(item: MountedSensor | Device | Sensor | str) -> MountedSensor:
    return item if isinstance(item, MountedSensor) else MountedSensor(item)
