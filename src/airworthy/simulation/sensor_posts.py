"""One sensor on every vehicle of a simulator: how it is used, its clock, mounts, buffers and past poses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.sensors.build import Sensor, make_sensor
from airworthy.sensors.camera import Camera
from airworthy.sensors.devices import Device, device
from airworthy.sensors.lidar import Lidar, column_poses
from airworthy.sensors.mounting import Mount, mounted_pose
from airworthy.sensors.realism.settings import Realism
from airworthy.sensors.timing import SampleClock
from airworthy.simulation.sensor_ring import NEVER, SampleRing
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
    realism: Realism | str | Mapping[str, Any] | None = None
    """What a real camera adds to colours; see docs/realism.md."""
    quality: str | None = None
    """Quality profile of a camera's colours."""
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
            "realism": self.realism,
            "quality": self.quality,
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


class SensorPost:
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
        if isinstance(self.sensor, Camera):
            self.sensor.reset(ids)

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
        own = {f"camera/{k}": v for k, v in self.sensor.save().items()} if isinstance(self.sensor, Camera) else {}
        return {"taken": self._taken.copy(), **{k: v.copy() for k, v in past.items()}, **own, **self.ring.save()}

    def restore(self, saved: dict[str, NDArray[Any]], every: Ids, keys: NDArray[np.uint32]) -> None:
        own = ("taken", "past_step", "past_position", "past_attitude")
        camera = {name.removeprefix("camera/"): array for name, array in saved.items() if name.startswith("camera/")}
        if isinstance(self.sensor, Camera):
            self.sensor.restore(camera)
        self.ring.restore({name: array for name, array in saved.items() if name not in own and not name.startswith("camera/")})
        self._taken, self._past_step, self._past_position, self._past_attitude = (saved[name].copy() for name in own)
        self.position[every], self.attitude[every] = self.sensor.device.effective_mount.drawn(keys, self.sensor.number)
