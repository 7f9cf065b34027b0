"""Cameras: depth, colour and stereo."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError
from airworthy.geometry import GeometryBatch
from airworthy.sensors.noise import measure
from airworthy.sensors.projections import Pinhole
from airworthy.sensors.sampling import SIGHT, Channels, RaySensor, View
from airworthy.sensors.stereo import disparity, stereo_shadow


class Camera(RaySensor):
    """A camera; with a baseline, depth is lost where the second eye does not see the point."""

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
