"""Sensors mounted on the vehicles of a simulator: sampled on their own steps, delivered after their latency.

Sample k of a sensor at rate f falls on step ceil(k f_physics / f) of each flight; it is taken at exactly that step's pose and
carries exactly that step's stamp. Sensors whose steps coincide see the same pose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.random import flight_key
from airworthy.sensors.build import Sensor
from airworthy.sensors.devices import Device
from airworthy.sensors.mounting import mounted_pose
from airworthy.sensors.noise import Draw
from airworthy.sensors.sampling import View, geometry_of
from airworthy.sensors.timing import SampleClock
from airworthy.simulation.events import FAR
from airworthy.simulation.sensor_movers import VehicleMovers
from airworthy.simulation.sensor_posts import Capture, MountedSensor, SensorPost
from airworthy.simulation.sensor_ring import Sample
from airworthy.simulation.simulator import Simulator

__all__ = ["Capture", "MountedSensor", "MountedSensors", "Sample", "VehicleMovers"]

Ints = NDArray[np.int64]
Ids = NDArray[np.intp]
Floats = NDArray[np.float64]


class MountedSensors:
    """Sensors on every vehicle of a simulator.

    It asks the simulator to stop where a sample is due, so that no launch runs past one. Mount everything before flying; the
    first samples (step 0) are taken at once, and again at each reset of the environments it concerns.

    Args:
        simulator: Whose poses and clock count.
        scene: A `SceneBatch` with the simulator's number of environments.
        sensors: By name; the name tells their random numbers apart.
        others: Makes the vehicles of a group visible to each other; the scene must have been built with its movers.
        move_scene: Pose the scene's actors at each sample's instant, and put them back when a flight begins. Switch it off
            where somebody else does.

    Raises:
        AirworthyError: If counts, rates or names do not fit.
    """

    def __init__(
        self,
        simulator: Simulator,
        scene: Any,
        sensors: Mapping[str, MountedSensor | Device | str],
        others: VehicleMovers | None = None,
        move_scene: bool = True,
    ):
        self.simulator, self.scene, self._others, self._move_scene = simulator, scene, others, move_scene
        envs = getattr(scene, "env_count", simulator.env_count)
        if envs != simulator.env_count:
            raise AirworthyError(f"The scenes are of {envs} environments and the simulator has {simulator.env_count}.")
        self._offset = -np.array([v.center_of_mass for v in simulator.vehicles])
        self._posts = {name: SensorPost(name, _mounted(item), simulator) for name, item in sensors.items()}
        self._listeners: list[Callable[[Capture], None]] = []
        self.reset(np.arange(simulator.env_count))
        simulator.add_events(self)

    # ---- reading ----------------------------------------------------------------------------------------------------

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the sensors."""
        return tuple(self._posts)

    def sensor(self, name: str) -> Sensor:
        """The sensor behind a name."""
        return self._post(name).sensor

    def clock(self, name: str) -> SampleClock:
        """When a sensor samples."""
        return self._post(name).clock

    def latest(self, name: str) -> Sample:
        """The newest sample that has arrived by now, per environment.

        The arrays are the buffers themselves where nothing waits: copy what must outlive the next step.
        """
        return self._post(name).ring.newest(self._now(), self.simulator.config.physics_rate)

    def listen(self, listener: Callable[[Capture], None]) -> None:
        """Call somebody (a recorder) with every sample when it is taken; those of step 0, already taken, are told now."""
        self._listeners.append(listener)
        for post in self._posts.values():
            if post.last is not None and not post.last.step.any():
                listener(post.last)

    # ---- events -----------------------------------------------------------------------------------------------------

    def due(self, flight_step: NDArray[np.uint32]) -> Ints:
        """Physics steps until the next event of each environment, at least 1, (env,); asked by the simulator."""
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
        self._place_movers()
        for post in rolling:
            post.remember(now, *self._carrier(post, np.arange(simulator.env_count)))
        for name, ids in due.items():
            self._take(self._posts[name], ids, now[ids])

    def reset(self, env_ids: Ids) -> None:
        """New flights began, or a snapshot was restored: forget samples, draw mounts, take the sample of step 0.

        Called by the simulator. After restoring a snapshot, `restore` brings the samples back.
        """
        new = env_ids[self._now()[env_ids] == 0]
        if new.size and self._move_scene and hasattr(self.scene, "reset"):
            self.scene.reset(new)
        for post in self._posts.values():
            post.begin(env_ids, self._keys(env_ids))
        if new.size:
            self.fire(self.simulator)

    # ---- save, restore ----------------------------------------------------------------------------------------------

    def save(self) -> dict[str, dict[str, NDArray[Any]]]:
        """What the samples to come depend on besides the simulator's own snapshot and the scene's state, by sensor."""
        return {name: post.save() for name, post in self._posts.items()}

    def restore(self, saved: Mapping[str, dict[str, NDArray[Any]]]) -> None:
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

    def _post(self, name: str) -> SensorPost:
        if name not in self._posts:
            raise unknown_name("mounted sensor", name, self._posts)
        return self._posts[name]

    def _now(self) -> Ints:
        return self.simulator.flight_step.astype(np.int64)

    def _keys(self, ids: Ids) -> NDArray[np.uint32]:
        return flight_key(self.simulator.seed, self.simulator.flight_ids[ids], self.simulator.episode[ids])

    def _carrier(self, post: SensorPost, ids: Ids) -> tuple[Floats, Floats]:
        """World poses of what carries a sensor's mount: the body's reference point, or an actor."""
        if post.spec.attached:
            position, attitude = self.scene.actor_pose(post.spec.attached, ids)
            return np.asarray(position, np.float64), np.asarray(attitude, np.float64)
        attitude = np.asarray(self.simulator.attitude, np.float64)[ids]
        position = np.asarray(self.simulator.position, np.float64)[ids]
        return mounted_pose(position, attitude, self._offset[ids], (0.0, 0.0, 0.0, 1.0))

    def _place_movers(self) -> None:
        """Everything that moves, at this instant."""
        if self._move_scene and hasattr(self.scene, "advance"):
            self.scene.advance(self.simulator.time)
        if self._others is not None:
            position, attitude, active = self._others.poses(self.simulator.position, self.simulator.attitude)
            self.scene.pose_movers(position, attitude, active=active)

    def _take(self, post: SensorPost, ids: Ids, step: Ints) -> None:
        position, attitude = mounted_pose(*self._carrier(post, ids), post.position[ids], post.attitude[ids])
        number = post.clock.taken(step) - 1
        draw = Draw(self._keys(ids), number.astype(np.uint32), post.sensor.number)
        columns = post.columns(ids, step)
        view = View(position, attitude, ids, draw, self._own(post, ids), *columns)
        data = post.sensor.capture(self.scene, view)
        capture = Capture(post.name, post.sensor, ids, number, step, position, attitude, data)
        post.keep(capture)
        for listener in self._listeners:
            listener(capture)

    def _own(self, post: SensorPost, ids: Ids) -> NDArray[np.int32] | None:
        """Number of each vehicle's own body in its scene; a sensor on an actor sees the vehicle."""
        if self._others is None or post.spec.attached:
            return None
        return (geometry_of(self.scene).mover_start + self._others.own_row[ids]).astype(np.int32)


def _mounted(item: MountedSensor | Device | str) -> MountedSensor:
    return item if isinstance(item, MountedSensor) else MountedSensor(item)
