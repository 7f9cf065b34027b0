"""Sensors mounted on the vehicles of a simulator: sampled on their own steps, delivered after their latency.

Sample k of a sensor at rate f falls on step ceil(k f_physics / f) of each flight; it is taken at exactly that step's pose and
carries exactly that step's stamp. Sensors whose steps coincide see the same pose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.random import flight_key
from airworthy.sensors.build import Sensor, make_sensor
from airworthy.sensors.devices import Device, device
from airworthy.sensors.lidar import Lidar, column_poses
from airworthy.sensors.mounting import Mount, mounted_pose
from airworthy.sensors.noise import Draw
from airworthy.sensors.sampling import View, geometry_of
from airworthy.sensors.timing import SampleClock
from airworthy.simulation.events import FAR
from airworthy.simulation.sensor_movers import VehicleMovers
from airworthy.simulation.sensor_ring import NEVER, Sample, SampleRing
from airworthy.simulation.simulator import Simulator

Ints = NDArray[np.int64]
Ids = NDArray[np.intp]
Floats = NDArray[np.float64]

ROLLING_POSES = 16
"""Poses kept per revolution of a rolling scan; columns between them are interpolated."""


@dataclass(frozen=True, eq=False)
class MountedSensor:
    """A sensor and how it is used; what is None is as the device says."""

    device: Device | str
    """Device, or its name in the catalogue."""
    mount: Mount | None = None
    """Pose in the body."""
    rate: float | None = None
    """Samples per second."""
    latency: float | None = None
    """From a sample's instant until it can be read [s]."""
    channels: tuple[str, ...] | None = None
    noise: bool | None = None
    """Switch the device's noise on or off."""
    randomize_mount: bool | None = None
    """Draw the device's mounting boxes at each reset."""
    attached: str = ""
    """Name of an actor that carries it; empty: the vehicle."""
    frame_delay: bool = False
    """Deliver each sample when the next is due, as FlightGoggles does, whose frames show the pose of the trigger before."""
    options: dict[str, Any] = field(default_factory=dict)
    """Of a beacon camera: `options`, `positions`."""

    def resolved(self) -> Device:
        """The device with everything that is said here."""
        item = device(self.device) if isinstance(self.device, str) else self.device
        asked = {
            "mount": self.mount,
            "rate": self.rate,
            "latency": self.latency,
            "channels": self.channels,
            "noise_enabled": self.noise,
            "randomize_mount": self.randomize_mount,
        }
        return item.variant(**{name: value for name, value in asked.items() if value is not None})


@dataclass(frozen=True, eq=False)
class Capture:
    """One sample of some environments at the moment it is taken, before its latency; see `MountedSensors.listen`."""

    name: str
    sensor: Sensor
    envs: Ids
    """Environments, (k,)."""
    number: Ints
    """(k,)"""
    step: Ints
    """(k,)"""
    position: Floats
    """Mount, world [m], (k, 3)."""
    attitude: Floats
    """Mount to world, (k, 4)."""
    data: dict[str, NDArray[Any]]
    """Arrays (k, ...) by channel."""


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
        self._posts = {name: _Post(name, _mounted(item), simulator) for name, item in sensors.items()}
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
        """Call somebody with every sample when it is taken (a recorder); samples of step 0 that are already taken are told now."""
        self._listeners.append(listener)
        for post in self._posts.values():
            if post.last is not None:
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
        if self._move_scene and hasattr(self.scene, "reset"):
            self.scene.reset(new)
        for post in self._posts.values():
            post.begin(env_ids, self._keys(env_ids))
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

    def _post(self, name: str) -> _Post:
        if name not in self._posts:
            raise unknown_name("mounted sensor", name, self._posts)
        return self._posts[name]

    def _now(self) -> Ints:
        return self.simulator.flight_step.astype(np.int64)

    def _keys(self, ids: Ids) -> NDArray[np.uint32]:
        return flight_key(self.simulator.seed, self.simulator.flight_ids[ids], self.simulator.episode[ids])

    def _carrier(self, post: _Post, ids: Ids) -> tuple[Floats, Floats]:
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

    def _take(self, post: _Post, ids: Ids, step: Ints) -> None:
        position, attitude = mounted_pose(*self._carrier(post, ids), post.position[ids], post.attitude[ids])
        number = post.clock.taken(step) - 1
        draw = Draw(self._keys(ids), number.astype(np.uint32), post.sensor.number)
        columns = post.columns(ids, step)
        view = View(position, attitude, ids, draw, self._own(post, ids), *columns)
        data = post.sensor.capture(self.scene, view)
        post.keep(Capture(post.name, post.sensor, ids, number, step, position, attitude, data))
        for listener in self._listeners:
            listener(post.last)

    def _own(self, post: _Post, ids: Ids) -> NDArray[np.int32] | None:
        """Number of each vehicle's own body in its scene; a sensor on an actor sees the vehicle."""
        if self._others is None or post.spec.attached:
            return None
        return (geometry_of(self.scene).mover_start + self._others.own_row[ids]).astype(np.int32)


class _Post:
    """One sensor on every vehicle: its clock, mounts, buffers and past poses."""

    def __init__(self, name: str, spec: MountedSensor, simulator: Simulator):
        self.name, self.spec = name, spec
        item = spec.resolved()
        self.sensor: Sensor = make_sensor(item, name, **spec.options)
        rate, count = simulator.config.physics_rate, simulator.env_count
        self._rate = rate
        self.clock = SampleClock(item.rate, rate, item.latency)
        waiting = -(-self.clock.delay_steps // max(int(rate / item.rate), 1)) + int(spec.frame_delay)
        self.ring = SampleRing(count, waiting + 1)
        self.position, self.attitude = np.zeros((count, 3)), np.tile([0.0, 0.0, 0.0, 1.0], (count, 1))
        self._taken = np.full(count, NEVER, np.int64)
        self.last: Capture | None = None
        self.rolling = isinstance(self.sensor, Lidar) and item.rolling
        self._pose_clock = SampleClock(min(item.rate * ROLLING_POSES, rate), rate) if self.rolling else None
        depth = ROLLING_POSES + 1 if self.rolling else 0
        self._past_step = np.full((count, depth), NEVER, np.int64)
        self._past_position, self._past_attitude = np.zeros((count, depth, 3)), np.zeros((count, depth, 4))

    def next_step(self, now: Ints) -> Ints:
        """Next step on which this sensor wants to be asked, per environment."""
        first = self.clock.next_step(now)
        return first if self._pose_clock is None else np.minimum(first, self._pose_clock.next_step(now))

    def awaits(self, now: Ints) -> NDArray[np.bool_]:
        """Environments with a sample on this step that is not taken."""
        return self.clock.due(now) & (self._taken != now)

    def begin(self, ids: Ids, keys: NDArray[np.uint32]) -> None:
        """New flights of some environments."""
        self.ring.forget(ids)
        self._taken[ids] = NEVER
        self._past_step[ids] = NEVER
        self.position[ids], self.attitude[ids] = self.sensor.device.effective_mount.drawn(keys, self.sensor.number)

    def remember(self, now: Ints, position: Floats, attitude: Floats) -> None:
        """Keep the carriers' poses of this step, for the columns of a rolling scan."""
        if self._pose_clock is None:
            return
        fresh = np.flatnonzero((self._past_step[:, -1] != now) & (self._pose_clock.due(now) | self.clock.due(now)))
        placed, turned = mounted_pose(position[fresh], attitude[fresh], self.position[fresh], self.attitude[fresh])
        for past, value in ((self._past_step, now[fresh]), (self._past_position, placed), (self._past_attitude, turned)):
            past[fresh, :-1] = past[fresh, 1:]
            past[fresh, -1] = value

    def columns(self, ids: Ids, step: Ints) -> tuple[Floats | None, Floats | None]:
        """Poses of a rolling scan's columns."""
        if not self.rolling:
            return None, None
        assert isinstance(self.sensor, Lidar)
        known = self._past_step[ids]
        # Before a flight began the vehicle stood where it started: the first known pose holds.
        first = np.where(known == NEVER, np.iinfo(np.int64).max, known).argmin(axis=1)
        source = np.maximum(np.arange(known.shape[1])[None], first[:, None])
        row = np.arange(len(ids))[:, None]
        past = (step[:, None] - known[row, source]) / self._rate
        position, attitude = self._past_position[ids][row, source], self._past_attitude[ids][row, source]
        return column_poses(self.sensor.column_age(), past, position, attitude)

    def keep(self, capture: Capture) -> None:
        """Put a sample where readers find it once it has arrived."""
        sent = self.clock.step_of(capture.number + 1) if self.spec.frame_delay else capture.step
        pose = (capture.position, capture.attitude)
        self.ring.put(capture.envs, capture.number, capture.step, sent + self.clock.delay_steps, pose, capture.data)
        self._taken[capture.envs] = capture.step
        self.last = capture

    def save(self) -> dict[str, NDArray[Any]]:
        past = {"past_step": self._past_step, "past_position": self._past_position, "past_attitude": self._past_attitude}
        return {"taken": self._taken.copy(), **{k: v.copy() for k, v in past.items()}, **self.ring.save()}

    def restore(self, saved: dict[str, NDArray[Any]], every: Ids, keys: NDArray[np.uint32]) -> None:
        own = ("taken", "past_step", "past_position", "past_attitude")
        self.ring.restore({name: array for name, array in saved.items() if name not in own})
        self._taken, self._past_step, self._past_position, self._past_attitude = (saved[name].copy() for name in own)
        self.position[every], self.attitude[every] = self.sensor.device.effective_mount.drawn(keys, self.sensor.number)


def _mounted(item: MountedSensor | Device | str) -> MountedSensor:
    return item if isinstance(item, MountedSensor) else MountedSensor(item)
