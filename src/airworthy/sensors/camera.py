"""Cameras: depth, colour and stereo."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayF32, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import rotate
from airworthy.geometry import GeometryBatch, RayTable, occluded
from airworthy.optics.projections import Pinhole, Projection
from airworthy.sensors.devices import Device
from airworthy.sensors.noise import measure
from airworthy.sensors.realism.settings import realism
from airworthy.sensors.sampling import SIGHT, Channels, RaySensor, SensorView

if TYPE_CHECKING:
    from airworthy.rendering.shading import ShadingOptions
    from airworthy.sensors.realism.camera import RealCamera

# ---- Stereo: which pixels the second eye cannot see, hidden (Aerial Gym) or beyond its image, and disparity -----------------

# Source: spec/aerial_gym 7.4: start at 0.999 t along the ray.
START = 0.999
"""Share of a hit's range from which the second eye is looked for: just before the surface."""


def stereo_shadow(
    batch: GeometryBatch,
    table: RayTable,
    position: ArrayLike,
    attitude: ArrayLike,
    ranges: ArrayAny,
    baseline: float,
    far: float,
    env: ArrayLike | None = None,
    ignore: ArrayLike | None = None,
) -> ArrayBool:
    """Return pixels that the second eye does not see.

    From 0.999 of the range a ray goes to the second eye; whatever it meets on the way hides the point. Where nothing is hit
    within `far`, the same is asked of the point at `far` along the ray.

    Args:
        batch: Geometry.
        table: Rays of the first eye, optical frame.
        position: Of the first eye, world [m], (camera, 3).
        attitude: Optical frame to world, (camera, 4).
        ranges: Along the rays [m], (camera, height, width), +inf on a miss.
        baseline: The second eye is this far along the first one's x axis [m] (Aerial Gym writes -0.095 for 0.095).
        far: Range of the far plane [m].
        env: Environment of each camera, (camera,); default 0, 1, 2, ...
        ignore: Instance that is not seen, (camera,).

    Returns:
        Shape (camera, height, width).
    """
    position, attitude = np.asarray(position, np.float64), np.asarray(attitude, np.float64)
    cameras = len(position)
    rays = rotate(attitude[:, None, None], np.asarray(table.directions, np.float64))
    start = position[:, None, None] + rays * _length(ranges, far)[..., None]
    eye = position + rotate(attitude, (baseline, 0.0, 0.0))
    end = np.broadcast_to(eye[:, None, None], start.shape)
    envs = np.arange(cameras) if env is None else np.asarray(env)
    pixels = ranges[0].size
    own = np.full(cameras, -1) if ignore is None else np.broadcast_to(np.asarray(ignore), (cameras,))
    hidden = occluded(batch, start.reshape(-1, 3), end.reshape(-1, 3), np.repeat(envs, pixels), np.repeat(own, pixels))
    return np.asarray(hidden).reshape(ranges.shape)


def beyond_second_image(projection: Projection, table: RayTable, ranges: ArrayAny, baseline: float, far: float) -> ArrayBool:
    """Return pixels whose point lies outside the second eye's image: the blind band along the edge of a pair.

    The eyes are alike and parallel, so at a depth z the band of a pinhole is focal length x baseline / z columns wide, at the
    edge away from the second eye. Where nothing is hit within `far`, the point at `far` along the ray is asked.

    Args:
        projection: Of either eye.
        table: Rays of the first eye, optical frame.
        ranges: Along the rays [m], (camera, height, width), +inf on a miss.
        baseline: The second eye is this far along the first one's x axis [m].
        far: Range of the far plane [m].

    Returns:
        Shape (camera, height, width).
    """
    points = np.asarray(table.directions, np.float64) * _length(ranges, far)[..., None]
    _, inside = projection.project(points - (baseline, 0.0, 0.0))
    # Ours: Aerial Gym asks only for occlusion; real pairs have no depth where the second image ends.
    return ~inside


def _length(ranges: ArrayAny, far: float) -> Array:
    """Return how far along each ray the point is that both eyes are asked for [m]."""
    with np.errstate(invalid="ignore"):
        return np.where(ranges <= far, START * np.asarray(ranges, np.float64), far)


def disparity(depth: ArrayLike, focal_length: float, baseline: float) -> Array:
    """Return the disparity [px] = focal length [px] x baseline / depth; 0 where there is no depth (infinite).

    Args:
        depth: Along the optical axis [m], (...).
        focal_length: [px]
        baseline: Between the eyes [m].
    """
    return focal_length * baseline / np.asarray(depth, np.float64)


def depth_of(disparity_px: ArrayLike, focal_length: float, baseline: float) -> Array:
    """Return the depth [m] of a disparity [px]; infinite where it is 0.

    Args:
        disparity_px: [px], (...).
        focal_length: [px]
        baseline: Between the eyes [m].
    """
    with np.errstate(divide="ignore"):
        return focal_length * baseline / np.asarray(disparity_px, np.float64)


# -----------------------------------------------------------------------------------------------------------------------------


class Camera(RaySensor):
    """A camera; with a baseline, depth is lost where the second eye does not see the point.

    Its `flow` is the motion since its image before: where a pixel's point is less where it was then [px]. In a flight's first
    image, before which everything stood where it began, it is 0.

    Raises:
        AirworthyError: If its realism or quality is unknown, or a rolling shutter is to serve a stereo camera or world points.
    """

    def __init__(self, device: Device, name: str = ""):
        super().__init__(device, name)
        settings = realism(device.realism)
        if settings is not None and settings.rolling_shutter and (device.baseline or device.points_in_world):
            raise AirworthyError(
                f"Camera {self.name!r} has a rolling shutter, so its rows have no common pose for a stereo baseline or points"
                " in the world; switch one of them off."
            )
        self.real: RealCamera | None = None
        """Its lens, shutter and chip; None: an ideal camera."""
        if settings is not None:
            from airworthy.sensors.realism.camera import RealCamera

            self.real = RealCamera(settings, device.projection, self.table, device.rate)
        if device.quality:
            self._shading()  # an unknown profile is told here, and not at the first image

    def capture(self, scene: Any, view: SensorView, channels: Sequence[str] = ()) -> Channels:
        """Capture as every sensor does; colours come through lens, shutter and chip where the camera is a real one.

        Args:
            scene: A `SceneBatch`; a `GeometryBatch` is enough where no colour is asked for.
            view: Where.
            channels: What to give; default: the device's channels.
        """
        out = super().capture(scene, view, channels)
        if self.real is not None and "rgb" in out:
            out["rgb"] = self.real.develop(out["rgb"], view.env, view.draw)
        return out

    def reset(self, env_ids: ArrayLike | None = None) -> None:
        """Begin new flights in environments (None: all): forget exposure and earlier poses."""
        if self.real is not None:
            self.real.state.reset(env_ids)

    def save(self) -> dict[str, ArrayAny]:
        """Return what the next image depends on besides the scene and the pose."""
        return {} if self.real is None else self.real.state.save()

    def restore(self, saved: dict[str, ArrayAny]) -> None:
        """Continue from `save`."""
        if self.real is not None:
            self.real.state.restore(saved)

    def _true(self, scene: Any, view: SensorView, wanted: Sequence[str]) -> Channels:
        if self.real is None:
            return super()._true(scene, view, wanted)
        trace = partial(self._traced, scene, view)
        attitude = self.optical_attitude(view.attitude)
        return self._masked(self.real.expose(trace, view.position, attitude, view.env, self._needed(wanted), scene))

    def _shading(self) -> ShadingOptions:
        if not self.device.quality:
            return super()._shading()
        from airworthy.sensors.quality import profile

        return profile(self.device.quality).options()

    def _needed(self, wanted: Sequence[str]) -> list[str]:
        names = super()._needed(wanted)
        if self.device.baseline and "depth" in names and "range" not in names:
            names.append("range")
        return names

    def _measured(self, batch: GeometryBatch, view: SensorView, true: Channels, name: str) -> ArrayF32:
        device = self.device
        values = np.array(true[name], np.float32, order="C")
        if device.baseline and name == "depth":
            attitude = self.optical_attitude(view.attitude)
            far = min(device.limits.maximum, SIGHT)
            hidden = stereo_shadow(
                batch, self.table, view.position, attitude, true["range"], device.baseline, far, view.env, view.ignore
            )
            hidden |= beyond_second_image(device.projection, self.table, true["range"], device.baseline, far)
            # What a sensor knows to be wrong; it becomes the limits' near value.
            values[hidden] = -np.inf
        return measure(values, device.effective_noise, device.limits, view.draw)

    def _derived(self, name: str, view: SensorView, reading: ArrayF32) -> ArrayAny:
        if name != "disparity":
            return super()._derived(name, view, reading)
        projection = self.device.projection
        if not (self.device.baseline and isinstance(projection, Pinhole)):
            raise AirworthyError(f"Camera {self.name!r} has no disparity; that needs a pinhole with a baseline.")
        metres = self.device.limits.metres(reading)
        return disparity(metres, projection.fx, self.device.baseline).astype(np.float32)
