"""Images of what a drone sees: 8 bits, each a function of its roll-out's number, its tick and its pose alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError
from airworthy.core.random import Stream, flight_key, uniforms
from airworthy.scenes import Scene, SceneBatch
from airworthy.sensors.build import make_sensor
from airworthy.sensors.devices import Device
from airworthy.sensors.mounting import mounted_pose
from airworthy.sensors.sampling import View
from airworthy.sensors.tone import to_8bit
from airworthy.vehicles import Vehicle

__all__ = ["Pictures"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Images = NDArray[np.uint8]
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

    def images(self, number: ArrayLike, tick: ArrayLike, time: ArrayLike, state: ArrayLike) -> Iterator[Images]:
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

    def _some(self, number: Ints, tick: Ints, time: Array, state: Array) -> Images:
        attitude = state[:, 6:10]
        carrier, _ = mounted_pose(state[:, :3], attitude, self._center, (0.0, 0.0, 0.0, 1.0))
        position, turned = mounted_pose(carrier, attitude, self._mount.position, self._mount.attitude)
        env = np.zeros(len(number), np.int32)
        if self._moves:
            env = np.arange(len(number), dtype=np.int32)
            self._batch.advance(np.concatenate([time, np.full(self._at_once - len(time), time[-1])]))
        linear = self._sensor.capture(self._batch, View(position, turned, env), ("rgb",))["rgb"]
        found = to_8bit(linear, self._brightness(number))
        return found if self._noise == 0.0 else self._noisy(found, number, tick)

    def _brightness(self, number: Ints) -> Array:
        low, high = self._light
        share = uniforms(flight_key(self._seed, number), _LIGHT, Stream.SYNTHESIS, 1)[:, 0]
        return low + (high - low) * share

    def _noisy(self, images: Images, number: Ints, tick: Ints) -> Images:
        """With Gaussian noise; a generator of its own for every image, by its key."""
        out = np.empty_like(images)
        for k, image in enumerate(images):
            key = np.array([self._seed & 0xFFFFFFFFFFFFFFFF, (int(number[k]) << 32) | int(tick[k])], np.uint64)
            drawn = np.random.Generator(np.random.Philox(key=key)).standard_normal(image.shape, np.float32)
            out[k] = np.clip(np.rint(image + np.float32(self._noise) * drawn), 0, 255)
        return out
