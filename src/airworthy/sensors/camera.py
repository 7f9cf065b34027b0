"""Cameras: depth, colour and stereo."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError
from airworthy.geometry import GeometryBatch
from airworthy.sensors.devices import Device
from airworthy.sensors.noise import measure
from airworthy.sensors.projections import Pinhole
from airworthy.sensors.realism.camera import RealCamera
from airworthy.sensors.realism.settings import realism
from airworthy.sensors.sampling import SIGHT, Channels, RaySensor, View
from airworthy.sensors.stereo import disparity, stereo_shadow

if TYPE_CHECKING:
    from airworthy.sensors.shading import ShadingOptions


class Camera(RaySensor):
    """A camera; with a baseline, depth is lost where the second eye does not see the point.

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
        self.real = None if settings is None else RealCamera(settings, device.projection, self.table, device.rate)
        """Its lens, shutter and chip; None: an ideal camera."""
        self._shading()  # an unknown profile is told here, and not at the first image

    def capture(self, scene: Any, view: View, channels: Sequence[str] = ()) -> Channels:
        out = super().capture(scene, view, channels)
        if self.real is not None and "rgb" in out:
            out["rgb"] = self.real.develop(out["rgb"], view.env, view.draw)
        return out

    def reset(self, env_ids: ArrayLike | None = None) -> None:
        """New flights begin in environments (None: all): forget exposure and earlier poses."""
        if self.real is not None:
            self.real.state.reset(env_ids)

    def save(self) -> dict[str, NDArray[Any]]:
        """What the next image depends on besides the scene and the pose."""
        return {} if self.real is None else self.real.state.save()

    def restore(self, saved: dict[str, NDArray[Any]]) -> None:
        """Continue from `save`."""
        if self.real is not None:
            self.real.state.restore(saved)

    def _true(self, scene: Any, view: View, wanted: Sequence[str]) -> Channels:
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

    def _measured(self, batch: GeometryBatch, view: View, true: Channels, name: str) -> NDArray[np.float32]:
        device = self.device
        values = np.array(true[name], np.float32, order="C")
        if device.baseline and name == "depth":
            attitude = self.optical_attitude(view.attitude)
            far = min(device.limits.maximum, SIGHT)
            hidden = stereo_shadow(
                batch, self.table, view.position, attitude, true["range"], device.baseline, far, view.env, view.ignore
            )
            # What a sensor knows to be wrong; it becomes the limits' near value.
            values[hidden] = -np.inf
        return measure(values, device.effective_noise, device.limits, view.draw)

    def _derived(self, name: str, view: View, reading: NDArray[np.float32]) -> NDArray[Any]:
        if name != "disparity":
            return super()._derived(name, view, reading)
        projection = self.device.projection
        if not (self.device.baseline and isinstance(projection, Pinhole)):
            raise AirworthyError(f"Camera {self.name!r} has no disparity; that needs a pinhole with a baseline.")
        metres = self.device.limits.metres(reading)
        return disparity(metres, projection.fx, self.device.baseline).astype(np.float32)
