"""Which roll-outs there are: course, start time, drone and offset of each, drawn from its number alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from airworthy.control.mpc import mpc_preset
from airworthy.core.arrays import Array, ArrayInt, ArrayLike, ArrayU8
from airworthy.core.errors import AirworthyError
from airworthy.core.random import Stream, flight_key, uniforms
from airworthy.learning.synthesis.config import ROLLOUTS_MAX, SynthesisConfig
from airworthy.optics.tone import to_8bit
from airworthy.pilots.expert import ExpertReference, expert_reference, full_thrust_of
from airworthy.pilots.svnet.pilot import objective_of
from airworthy.scenes import Scene, SceneBatch
from airworthy.sensors.build import make_sensor
from airworthy.sensors.devices import Device
from airworthy.sensors.mounting import mounted_pose
from airworthy.sensors.sampling import SensorView
from airworthy.trajectories import Trajectory, course, kinematic_state
from airworthy.vehicles import Vehicle, named_vehicle

__all__ = ["Pictures", "RolloutPlan", "RolloutStarts", "objective_of"]

# -----------------------------------------------------------------------------------------------------------------------------
# Images of what a drone sees: 8 bits, each a function of its roll-out's number, its tick and its pose alone.

# Ours: 24 MiB of colours as float32.
PIXELS_AT_ONCE = 1 << 21
"""Of the images that are rendered together: about 42 of 224 x 224."""
_LIGHT = 2
"""Step of the stream of synthesis from which brightness is drawn."""


class Pictures:
    """Renders a camera on drones in a scene, as the simulator's mounted sensors do.

    Actors of the scene stand where they are at each image's time on the course.

    Args:
        scene: Where.
        vehicle: Whose camera.
        camera: The device, mounted.
        light: Brightness of a roll-out, uniform between these two; factors of linear radiance.
        noise: Standard deviation of the noise of a pixel's channel [counts of 255].
        seed: Of brightness and noise.
        device: Where rendering runs.
        threads: Of a CPU; None: all.

    Raises:
        AirworthyError: The scene cannot be placed, or the camera does not give colours.
    """

    def __init__(
        self,
        scene: Scene,
        vehicle: Vehicle,
        camera: Device,
        light: tuple[float, float] = (1.0, 1.0),
        noise: float = 0.0,
        seed: int = 0,
        device: str = "cpu",
        threads: int | None = None,
    ):
        if "rgb" not in camera.channels:
            raise AirworthyError(f"Camera {camera.name!r} gives {', '.join(camera.channels)}; images need rgb.")
        self.camera = camera
        self._sensor, self._mount = make_sensor(camera), camera.effective_mount
        self._light, self._noise, self._seed = light, noise, seed
        self._center = -np.asarray(vehicle.center_of_mass, np.float64)
        self._at_once = max(1, PIXELS_AT_ONCE // (camera.width * camera.height))
        self._moves = bool(scene.actors)
        self._batch = SceneBatch(scene, self._at_once if self._moves else 1, device, threads)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, columns, channels of an image."""
        return self.camera.height, self.camera.width, 3

    def images(self, number: ArrayLike, tick: ArrayLike, time: ArrayLike, state: ArrayLike) -> Iterator[ArrayU8]:
        """Render k images, some at a time.

        Args:
            number: (k,) of the roll-outs.
            tick: (k,) in them.
            time: (k,) on the course [s].
            state: (k, 10) or more columns: true position of the centre of mass, velocity, quaternion; z up.

        Yields:
            Images (some, H, W, 3), in order.
        """
        numbers, ticks = np.asarray(number, np.int64), np.asarray(tick, np.int64)
        times, states = np.asarray(time, np.float64), np.asarray(state, np.float64)
        for first in range(0, len(numbers), self._at_once):
            some = slice(first, min(first + self._at_once, len(numbers)))
            yield self._some(numbers[some], ticks[some], times[some], states[some])

    def _some(self, number: ArrayInt, tick: ArrayInt, time: Array, state: Array) -> ArrayU8:
        attitude = state[:, 6:10]
        # States are of the centre of mass, mounts of the body's origin.
        carrier, _ = mounted_pose(state[:, :3], attitude, self._center, (0.0, 0.0, 0.0, 1.0))
        position, turned = mounted_pose(carrier, attitude, self._mount.position, self._mount.attitude)
        env = np.zeros(len(number), np.int32)
        if self._moves:
            env = np.arange(len(number), dtype=np.int32)
            # The batch keeps one size, so the last time fills it up.
            self._batch.advance(np.concatenate([time, np.full(self._at_once - len(time), time[-1])]))
        linear = self._sensor.capture(self._batch, SensorView(position, turned, env), ("rgb",))["rgb"]
        found = to_8bit(linear, self._brightness(number))
        return found if self._noise == 0.0 else self._noisy(found, number, tick)

    def _brightness(self, number: ArrayInt) -> Array:
        # One brightness per roll-out: light does not change from tick to tick.
        low, high = self._light
        share = uniforms(flight_key(self._seed, number), _LIGHT, Stream.SYNTHESIS, 1)[:, 0]
        return low + (high - low) * share

    def _noisy(self, images: ArrayU8, number: ArrayInt, tick: ArrayInt) -> ArrayU8:
        """With Gaussian noise; a generator of its own for every image, by its key."""
        out = np.empty_like(images)
        for k, image in enumerate(images):
            # Keyed by roll-out and tick: the same image whatever batch or process it is made in.
            key = np.array([self._seed & 0xFFFFFFFFFFFFFFFF, (int(number[k]) << 32) | int(tick[k])], np.uint64)
            drawn = np.random.Generator(np.random.Philox(key=key)).standard_normal(image.shape, np.float32)
            out[k] = np.clip(np.rint(image + np.float32(self._noise) * drawn), 0, 255)
        return out


# -----------------------------------------------------------------------------------------------------------------------------

# Part of every data set's bytes: a new quantity gets a step of its own, or old ones would change.
_START, _DRONE = 0, 1
"""Steps of the stream from which a roll-out draws."""


@dataclass(frozen=True, eq=False)
class RolloutStarts:
    """Of n roll-outs."""

    number: ArrayInt
    """(n,)"""
    course: ArrayInt
    """(n,) index of the configuration's courses."""
    time: Array
    """(n,) on the course [s]."""
    state: Array
    """(n, 10) position, velocity, quaternion; z up."""
    mass: Array
    """(n,) [kg]"""
    force: Array
    """(n,) of one rotor at full command [N]."""


class RolloutPlan:
    """Everything that is the same for all roll-outs of a configuration.

    Roll-outs are numbered course by course; within one, number i n_rep + j is repetition j of start point i.

    Raises:
        AirworthyError: A course or the vehicle is unknown, or there are too many roll-outs.
    """

    def __init__(self, config: SynthesisConfig):
        self.config = config
        self.vehicle: Vehicle = named_vehicle(config.vehicle)
        courses = [course(name) for name in config.courses]
        self.paths: list[Trajectory] = [item.trajectory() for item in courses]
        self.reference: ExpertReference = expert_reference(courses, mpc_preset(config.mpc), self.vehicle.gravity)
        points = [max(1, round(path.duration * config.per_second)) for path in self.paths]
        if (total := sum(points) * config.repetitions) > ROLLOUTS_MAX:
            raise AirworthyError(
                f"There would be {total:,} roll-outs; expected up to {ROLLOUTS_MAX:,}: lower per_second or repetitions."
            )
        self.counts = np.array([count * config.repetitions for count in points], np.int64)
        """(courses,) roll-outs of each."""
        self.first = np.concatenate([[0], np.cumsum(self.counts)])
        """(courses + 1,) number of the first of each."""
        self.objectives = np.stack([objective_of(path, self.vehicle.gravity) for path in self.paths])
        """(courses, 18), z up; see `objective_of`."""

    @property
    def count(self) -> int:
        """Roll-outs of all courses."""
        return int(self.first[-1])

    def starts(self, numbers: ArrayLike) -> RolloutStarts:
        """Draw roll-outs by their numbers (n,)."""
        number = np.asarray(numbers, np.int64)
        which = np.searchsorted(self.first, number, side="right") - 1
        key = flight_key(self.config.seed, number)
        drawn = uniforms(key, _START, Stream.SYNTHESIS, 12)
        # Every start point is jittered: start points exactly on the grid would repeat the same images.
        time = self._times(number, which, drawn[:, 0])
        wanted = np.stack([self._state(int(w), float(t)) for w, t in zip(which, time, strict=True)])
        state = wanted + self.config.half_width * (2.0 * drawn[:, 1:11] - 1.0)
        state[:, 6:] /= np.linalg.norm(state[:, 6:], axis=1, keepdims=True)
        # Drawn components may end on the other side of the quaternion's sphere; the sign of the path is kept.
        state[:, 6:] *= np.where((state[:, 6:] * wanted[:, 6:]).sum(1, keepdims=True) < 0.0, -1.0, 1.0)
        share = 2.0 * uniforms(key, _DRONE, Stream.SYNTHESIS, 2) - 1.0
        mass = self.vehicle.mass * (1.0 + self.config.mass * share[:, 0])
        force = full_thrust_of(self.vehicle) / self.vehicle.rotor_count * (1.0 + self.config.thrust * share[:, 1])
        return RolloutStarts(number, which, time, state, mass, force)

    def _times(self, number: ArrayInt, which: ArrayInt, drawn: Array) -> Array:
        point = (number - self.first[which]) // self.config.repetitions
        end = np.array([path.duration for path in self.paths])[which]
        return np.clip(point / self.config.per_second + self.config.jitter * (2.0 * drawn - 1.0), 0.0, end)

    def _state(self, path: int, time: float) -> Array:
        sample = self.paths[path].sample(np.array([time]))
        attitude = kinematic_state(sample, self.vehicle.gravity).attitude[0]
        # A flight comes here with a sign that it has kept from the start, as the reference does; one sample has none.
        row = min(self.reference.first[path] + round(time * self.reference.rate), self.reference.last[path])
        sign = -1.0 if attitude @ self.reference.table.states[row, 6:] < 0.0 else 1.0
        return np.concatenate([sample.position[0], sample.velocity[0], sign * attitude])
