"""One sensor on every vehicle of a simulator: how it is used, its clock, mounts, buffers and past poses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayIndex, ArrayInt, ArrayU32
from airworthy.core.errors import AirworthyError
from airworthy.scenes.batch import SceneMotion
from airworthy.sensors.build import Sensor, make_sensor
from airworthy.sensors.devices import Device
from airworthy.sensors.lidar import Lidar, column_poses
from airworthy.sensors.mounting import Mount, SampleClock, mounted_pose
from airworthy.sensors.own import check_sensor, device_or_sensor, remembers, renamed, sampled
from airworthy.sensors.realism.settings import Realism
from airworthy.sensors.sampling import Before, SensorView
from airworthy.simulation.simulator import Simulator

# ---- Samples that wait for their arrival: a ring per sensor, with one column per environment --------------------------------

NEVER = -1
_SAVED = ("step", "number", "arrival", "position", "attitude")


@dataclass(frozen=True, eq=False)
class Sample:
    """The newest sample of one sensor that has arrived, per environment."""

    time: Array
    """Instant of the sample since the start of its flight [s], (env,); NaN where none has arrived."""
    step: ArrayInt
    """The same as a physics step, exact; -1 where none has arrived."""
    number: ArrayInt
    """Samples of the flight before this one, (env,); -1 where none has arrived."""
    valid: ArrayBool
    """Whether one has arrived since the flight began, (env,)."""
    position: Array
    """Mount at that instant, world [m], (env, 3)."""
    attitude: Array
    """Mount to world, (env, 4); of a camera, x is where it looks."""
    data: dict[str, ArrayAny]
    """Arrays (env, ...) by channel; rows of environments that are not valid hold nothing of use."""

    def __getitem__(self, channel: str) -> ArrayAny:
        if channel not in self.data:
            raise AirworthyError(f"A sample has no channel {channel!r}; it has {', '.join(self.data)}.")
        return self.data[channel]


class SampleRing:
    """The last `depth` samples of every environment.

    Args:
        env_count: Environments.
        depth: Samples that may wait at once, plus the one that has arrived.
    """

    def __init__(self, env_count: int, depth: int):
        self.depth = depth
        self.step = np.full((depth, env_count), NEVER, np.int64)
        self.arrival = np.full((depth, env_count), NEVER, np.int64)
        self.number = np.full((depth, env_count), NEVER, np.int64)
        self.position = np.zeros((depth, env_count, 3))
        self.attitude = np.tile([0.0, 0.0, 0.0, 1.0], (depth, env_count, 1))
        self.data: dict[str, ArrayAny] = {}

    def put(
        self,
        envs: ArrayIndex,
        number: ArrayInt,
        step: ArrayInt,
        arrival: ArrayInt,
        pose: tuple[ArrayAny, ArrayAny],
        data: dict[str, ArrayAny],
    ) -> None:
        """Keep a sample of some environments (k,), which can be read from step `arrival` on.

        Args:
            envs: Environments (k,).
            number: Of the samples in their flights, (k,).
            step: Physics steps on which they fell, (k,).
            arrival: Physics steps from which they can be read, (k,).
            pose: Of the mounts, world [m] (k, 3) and quaternions (k, 4).
            data: Arrays (k, ...) by channel.
        """
        # The place of the oldest: no more than `depth` wait at once.
        slot = number % self.depth
        self.arrival[slot, envs] = arrival
        self.step[slot, envs], self.number[slot, envs] = step, number
        self.position[slot, envs], self.attitude[slot, envs] = pose
        for name, array in data.items():
            if name not in self.data:
                # What has not been sampled yet must not look like a reading of zero.
                blank = np.nan if array.dtype.kind == "f" else 0
                self.data[name] = np.full((self.depth, self.step.shape[1], *array.shape[1:]), blank, array.dtype)
            self.data[name][slot, envs] = array

    def forget(self, envs: ArrayIndex) -> None:
        """Forget the samples taken before a flight began, which it must not see."""
        self.step[:, envs] = NEVER
        self.number[:, envs] = NEVER

    def newest(self, now: ArrayInt, physics_rate: float) -> Sample:
        """Return what has arrived by a step of each flight, (env,)."""
        # Latency: a sample is of its instant, and seen from its arrival on.
        arrived = (self.step != NEVER) & (self.arrival <= now)
        slot = np.where(arrived, self.number, NEVER).argmax(axis=0)
        env = np.arange(len(now))
        valid = arrived[slot, env]
        step = np.where(valid, self.step[slot, env], NEVER)
        data = {name: array[0] if self.depth == 1 else array[slot, env] for name, array in self.data.items()}
        return Sample(
            np.where(valid, step / physics_rate, np.nan),
            step,
            np.where(valid, self.number[slot, env], NEVER),
            valid,
            self.position[slot, env],
            self.attitude[slot, env],
            data,
        )

    def save(self) -> dict[str, ArrayAny]:
        """Return copies of everything, by name."""
        fixed = {name: getattr(self, name) for name in _SAVED}
        return {name: array.copy() for name, array in {**fixed, **{f"data/{k}": v for k, v in self.data.items()}}.items()}

    def restore(self, saved: dict[str, ArrayAny]) -> None:
        """Continue from `save`.

        Raises:
            AirworthyError: If it is of another shape.
        """
        if saved["step"].shape != self.step.shape:
            raise AirworthyError(
                f"Saved samples of shape {saved['step'].shape} do not fit {self.step.shape}; mount the same sensors."
            )
        for name in _SAVED:
            setattr(self, name, saved[name].copy())
        self.data = {name.removeprefix("data/"): array.copy() for name, array in saved.items() if name.startswith("data/")}


# -----------------------------------------------------------------------------------------------------------------------------

# Ours: between two of them a drone at 10 Hz turns for 6 ms, in which a straight line between attitudes does.
ROLLING_POSES = 16
"""Poses taken per revolution of a rolling scan; columns between them are interpolated."""
_POSES_KEPT = 2 * ROLLING_POSES + 2
"""The steps of two clocks, of poses and of samples, need not fall together within a revolution; and since a step is the first
*after* its sample's exact instant, the pose before the oldest column's is needed, too."""


@dataclass(frozen=True, eq=False)
class MountedSensor:
    """A sensor and how it is used; what is None is as the device says."""

    device: Device | Sensor | str
    """Device, or its name in the catalogue, or FILE.toml:NAME; or a sensor of one's own, or FILE.py:CLASS."""
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
    """What a real camera adds to colours; see docs/concepts/realism.md."""
    quality: str | None = None
    """Quality profile of a camera's colours."""
    attached: str = ""
    """Name of an actor that carries it; empty: the vehicle."""
    link: str = ""
    """Link of a vehicle with joints that carries it, in whose frame its mount is; empty: the root."""
    frame_delay: bool = False
    """Deliver each sample when the next is due, as FlightGoggles does, whose frames show the pose of the trigger before."""
    options: dict[str, Any] = field(default_factory=dict)
    """Of a beacon camera: `options`, `positions`."""

    def built(self, name: str) -> Sensor:
        """Return the sensor as it is mounted.

        Args:
            name: On the vehicle.

        Raises:
            AirworthyError: A sensor of one's own lacks something.
        """
        what = self.what
        if isinstance(what, Device):
            return make_sensor(self.resolved(), name, **self.options)
        return renamed(check_sensor(what, name), self.resolved(), name)

    @cached_property
    def what(self) -> Device | Sensor:
        """Device, or sensor of one's own, behind a word."""
        return device_or_sensor(self.device) if isinstance(self.device, str) else self.device

    def resolved(self) -> Device:
        """Return the device with everything that is said here."""
        what = self.what
        item = what if isinstance(what, Device) else check_sensor(what, type(what).__name__).device
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
    envs: ArrayIndex
    """Environments, (k,)."""
    number: ArrayInt
    """(k,)"""
    step: ArrayInt
    """(k,)"""
    position: Array
    """Mount, world [m], (k, 3)."""
    attitude: Array
    """Mount to world, (k, 4)."""
    data: dict[str, ArrayAny]
    """Arrays (k, ...) by channel."""


@dataclass(frozen=True, eq=False)
class SampleRequest:
    """One sample of some environments before it is rendered: all that it depends on besides sensor and scene, as copies."""

    name: str
    number: ArrayInt
    """Of the samples in their flights, (k,)."""
    step: ArrayInt
    """Physics steps of the flights, (k,)."""
    view: SensorView
    """Of the sensor, (k, ...)."""
    motion: SceneMotion | None
    """Where everything is that moves; None: of a scene in which nothing does."""


class SampleRenderer(Protocol):
    """Renders samples beside the simulation, which goes on meanwhile."""

    def renders(self, name: str) -> bool:
        """Return whether samples of a sensor are rendered here."""
        ...

    def accepts(self, name: str) -> bool:
        """Return whether it takes the sample of a sensor that is due now; else that sample is left out, and counted here."""
        ...

    def render(self, exposure: SampleRequest) -> None:
        """Take a sample, which it accepted."""
        ...

    def reset(self, env_ids: ArrayIndex) -> None:
        """Begin new flights in some environments: sensors forget what they remember."""
        ...


class SensorState:
    """One sensor on every vehicle: its clock, mounts, buffers and past poses."""

    def __init__(self, name: str, spec: MountedSensor, simulator: Simulator):
        self.name, self.spec = name, spec
        self.sensor = spec.built(name)
        item = self.sensor.device
        self._own = not isinstance(spec.what, Device)
        self._memory: Any = self.sensor if remembers(self.sensor) else None
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
        depth = _POSES_KEPT if self.rolling else 0
        self._past_step = np.full((count, depth), NEVER, np.int64)
        self._past_position, self._past_attitude = np.zeros((count, depth, 3)), np.zeros((count, depth, 4))
        self.flows = "flow" in item.channels
        self._before: dict[str, ArrayAny] = {}

    def sampled(self, scene: Any, view: SensorView) -> dict[str, ArrayAny]:
        """Take a sample; of a sensor of one's own it is held to what `Sensor` says.

        Args:
            scene: What it looks at.
            view: From where.
        """
        return sampled(self.sensor, scene, view, self.name) if self._own else self.sensor.capture(scene, view)

    def next_step(self, now: ArrayInt) -> ArrayInt:
        """Return the next step on which this sensor wants to be asked, per environment."""
        first = self.clock.next_step(now)
        return first if self._pose_clock is None else np.minimum(first, self._pose_clock.next_step(now))

    def awaits(self, now: ArrayInt) -> ArrayBool:
        """Return environments with a sample on this step that is not taken."""
        return self.clock.due(now) & (self._taken != now)

    def begin(self, ids: ArrayIndex, keys: ArrayU32) -> None:
        """Begin new flights of some environments."""
        self.ring.forget(ids)
        self._taken[ids] = NEVER
        self._past_step[ids] = NEVER
        self.position[ids], self.attitude[ids] = self.sensor.device.effective_mount.drawn(keys, self.sensor.number)
        if self._memory is not None:
            self._memory.reset(ids)

    def remember(self, now: ArrayInt, position: Array, attitude: Array) -> None:
        """Keep the carriers' poses of this step, for the columns of a rolling scan.

        Args:
            now: Physics steps of the flights, (env,).
            position: Of the carriers, (env, 3) [m], world.
            attitude: Of the carriers, (env, 4).
        """
        if self._pose_clock is None:
            return
        fresh = np.flatnonzero((self._past_step[:, -1] != now) & (self._pose_clock.due(now) | self.clock.due(now)))
        placed, turned = mounted_pose(position[fresh], attitude[fresh], self.position[fresh], self.attitude[fresh])
        for past, value in ((self._past_step, now[fresh]), (self._past_position, placed), (self._past_attitude, turned)):
            past[fresh, :-1] = past[fresh, 1:]
            past[fresh, -1] = value

    def since(self, ids: ArrayIndex, position: Array, attitude: Array, dynamic_instances: tuple[Array, Array]) -> Before | None:
        """Return where everything was at the sample before, for `flow`; keeps where it is now. In a first sample it is where
        it was.

        Args:
            ids: Environments, (k,).
            position: Of the mount now, world [m], (k, 3).
            attitude: (k, 4).
            dynamic_instances: Of the geometry now, all environments, see `GeometryBatch.dynamic_poses`.
        """
        if not self.flows:
            return None
        placed, turned = dynamic_instances
        now = {"position": position, "attitude": attitude, "movers": placed[ids], "turns": turned[ids]}
        fresh = self._taken[ids] == NEVER
        was = {}
        for name, array in now.items():
            kept = self._before.setdefault(name, np.zeros((len(self._taken), *array.shape[1:])))
            was[name] = np.where(fresh.reshape(-1, *[1] * (array.ndim - 1)), array, kept[ids])
            kept[ids] = array
        return Before(was["position"], was["attitude"], (was["movers"], was["turns"]))

    def columns(self, ids: ArrayIndex, step: ArrayInt) -> tuple[Array | None, Array | None]:
        """Return poses of a rolling scan's columns."""
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

    def left(self, ids: ArrayIndex, step: ArrayInt) -> None:
        """Mark samples as taken that are rendered elsewhere, or not at all."""
        self._taken[ids] = step

    def keep(self, capture: Capture) -> None:
        """Put a sample where readers find it once it has arrived."""
        sent = self.clock.step_of(capture.number + 1) if self.spec.frame_delay else capture.step
        pose = (capture.position, capture.attitude)
        self.ring.put(capture.envs, capture.number, capture.step, sent + self.clock.delay_steps, pose, capture.data)
        self._taken[capture.envs] = capture.step
        self.last = capture

    def save(self) -> dict[str, ArrayAny]:
        past = {"past_step": self._past_step, "past_position": self._past_position, "past_attitude": self._past_attitude}
        own = {f"camera/{k}": v for k, v in self._memory.save().items()} if self._memory is not None else {}
        past |= {f"before/{name}": array for name, array in self._before.items()}
        return {"taken": self._taken.copy(), **{k: v.copy() for k, v in past.items()}, **own, **self.ring.save()}

    def restore(self, saved: dict[str, ArrayAny], every: ArrayIndex, keys: ArrayU32) -> None:
        """Continue from what `save` returned.

        Args:
            saved: By name.
            every: All environments, (env,).
            keys: Of their flights, (env, 4), from which mounts are drawn again.
        """
        own = ("taken", "past_step", "past_position", "past_attitude")
        camera = {name.removeprefix("camera/"): array for name, array in saved.items() if name.startswith("camera/")}
        if self._memory is not None:
            self._memory.restore(camera)
        self._before = {
            name.removeprefix("before/"): array.copy() for name, array in saved.items() if name.startswith("before/")
        }
        self.ring.restore(
            {name: a for name, a in saved.items() if name not in own and not name.startswith(("camera/", "before/"))}
        )
        self._taken, self._past_step, self._past_position, self._past_attitude = (saved[name].copy() for name in own)
        self.position[every], self.attitude[every] = self.sensor.device.effective_mount.drawn(keys, self.sensor.number)
