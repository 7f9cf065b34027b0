"""Infrared beacons seen by a camera (spec/flightgoggles 3.1): pixels and identities, no distance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError
from airworthy.core.frames import camera_attitude, rotate_inverse
from airworthy.geometry import occluded
from airworthy.sensors.devices import Device
from airworthy.sensors.noise import Draw, normal_of, sensor_number, uniforms_of
from airworthy.sensors.sampling import Channels, View, geometry_of

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class BeaconOptions:
    """What the original sensor does not do; all off by default."""

    pixel_noise: float = 0.0
    """Standard deviation of each coordinate [px]; a pixel that leaves the image is kept."""
    dropout: float = 0.0
    """Probability that a visible beacon is not reported."""
    range_max: float = math.inf
    """Farther beacons are not seen [m]."""
    angle_max: float = math.pi
    """Beacons farther off the optical axis are not seen [rad]."""
    shuffle: bool = False
    """Report in random order, with identities exchanged among the visible at random: association is the reader's task."""
    clearance: float = 1e-3
    """The ray leaves this far in front of the beacon [m], so that the surface which carries it does not hide it."""


class BeaconCamera:
    """A camera that reports beacons.

    `capture` gives "pixel" (camera, beacons, 2) [px], origin at the upper left, NaN where there is none, and "beacon" (camera,
    beacons): the number in the scene's `beacons` of what is reported there, -1 where nothing is.

    Args:
        device: A camera or beacon device; its projection counts.
        name: Its name on the vehicle.
        options: Noise, dropout, range.
        positions: World positions (n, 3) or (env, n, 3) of the beacons; None: those of the scene.
    """

    def __init__(
        self, device: Device, name: str = "", options: BeaconOptions = BeaconOptions(), positions: ArrayLike | None = None
    ):
        if not device.projection.optical:
            raise AirworthyError(f"Device {device.name!r} is no camera; beacons are seen in pixels, so give one with a lens.")
        self.device, self.name, self.options = device, name or device.name, options
        self.number = sensor_number(self.name)
        self._positions = None if positions is None else np.asarray(positions, np.float64)

    def capture(self, scene: Any, view: View, channels: Sequence[str] = ()) -> Channels:
        """Report the beacons that each view sees; see the class."""
        position = np.asarray(view.position, np.float64)
        env = np.arange(len(position)) if view.env is None else np.asarray(view.env)
        beacons = self._beacons(scene, env)
        pixel, seen = self._projected(beacons, position, view.attitude)
        seen[seen] = ~self._hidden(scene, view, beacons, position, env, seen)
        return self._reported(pixel, seen, view.draw)

    def _beacons(self, scene: Any, env: NDArray[Any]) -> Floats:
        if self._positions is None:
            if not hasattr(scene, "beacon_positions"):
                raise AirworthyError(f"Beacon sensor {self.name!r} needs a SceneBatch, or the positions of the beacons.")
            return np.asarray(scene.beacon_positions(), np.float64)[env]
        if self._positions.ndim == 3:
            return self._positions[env]
        return np.broadcast_to(self._positions, (len(env), *self._positions.shape))

    def _projected(self, beacons: Floats, position: Floats, attitude: NDArray[Any]) -> tuple[Floats, NDArray[np.bool_]]:
        """Pixels (camera, n, 2) and which are in front, strictly inside the image and within the options' reach."""
        local = rotate_inverse(camera_attitude(attitude)[:, None], beacons - position[:, None])
        pixel, inside = self.device.projection.project(local)
        with np.errstate(invalid="ignore"):
            distance = np.linalg.norm(local, axis=-1)
            angle = np.arctan2(np.hypot(local[..., 0], local[..., 1]), local[..., 2])
            inside &= (distance <= self.options.range_max) & (angle <= self.options.angle_max)
        return pixel, inside

    def _hidden(
        self, scene: Any, view: View, beacons: Floats, position: Floats, env: NDArray[Any], seen: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Of the seen ones (k,), whether something other than the own body is between beacon and camera."""
        if not seen.any():
            return np.zeros(0, bool)
        camera = np.nonzero(seen)[0]
        start, end = beacons[seen], position[camera]
        length = np.linalg.norm(end - start, axis=-1, keepdims=True)
        start = start + (end - start) * np.minimum(self.options.clearance / np.maximum(length, 1e-12), 0.5)
        own = np.full(len(position), -1) if view.ignore is None else np.asarray(view.ignore)
        return np.asarray(occluded(geometry_of(scene), start, end, env[camera], own[camera]))

    def _reported(self, pixel: Floats, seen: NDArray[np.bool_], draw: Draw | None) -> Channels:
        options, count = self.options, seen.shape[1]
        ids = np.broadcast_to(np.arange(count), seen.shape)
        if draw is not None and count and (options.pixel_noise or options.dropout or options.shuffle):
            word = draw.words(2 * count).reshape(len(seen), count, 2, 4)
            noise = np.stack([normal_of(word[..., 0, 0], word[..., 0, 1]), normal_of(word[..., 0, 2], word[..., 0, 3])], -1)
            pixel = pixel + options.pixel_noise * noise
            seen = seen & (uniforms_of(word[..., 1, 0]) >= options.dropout)
            if options.shuffle:
                order = _shuffled(seen, uniforms_of(word[..., 1, 1]))
                pixel = np.take_along_axis(pixel, order[..., None], axis=1)
                ids = np.take_along_axis(ids, _shuffled(seen, uniforms_of(word[..., 1, 2])), axis=1)
                seen = np.take_along_axis(seen, order, axis=1)
        return {
            "pixel": np.where(seen[..., None], pixel, np.nan).astype(np.float32),
            "beacon": np.where(seen, ids, -1).astype(np.int32),
        }


def _shuffled(seen: NDArray[np.bool_], share: Floats) -> NDArray[np.intp]:
    """An order with the seen ones first, otherwise by the drawn numbers."""
    return np.argsort(np.where(seen, share, 2.0 + share), axis=1)


def markers(scene: Any, sample: Channels, camera: int, env: int | None = None) -> list[tuple[str, str, float, float, float]]:
    """The report as FlightGoggles publishes it: (landmark, marker, x, y, 0) per visible beacon of one camera.

    Args:
        scene: The `SceneBatch` that was looked at.
        sample: What `BeaconCamera.capture` gave.
        camera: Row of the sample.
        env: Its environment; None: the same number.
    """
    record = scene.scenes[scene.scene_of_env[camera if env is None else env]]
    out = []
    for number, (x, y) in zip(sample["beacon"][camera], sample["pixel"][camera], strict=True):
        if number >= 0:
            beacon = record.beacons[number]
            out.append((beacon.landmark, beacon.marker, float(x), float(y), 0.0))
    return out
