"""Tables of rays: what a sensor looks along, in its own frame."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import CPU_LANES
from airworthy.geometry.cast_kernel import RAY_ROWS
from airworthy.geometry.hierarchy import as_warp

CAMERA_AXIS = (0.0, 0.0, 1.0)
"""Optical axis of a camera; a LiDAR's is (1, 0, 0)."""


class RayTable:
    """The rays of an image, in the sensor frame, sorted into packets of neighbours.

    Args:
        directions: (H, W, 3), normalised here.
        origins: (H, W, 3) where rays start [m], or None: all in the sensor's origin.
        axis: (3,) direction along which depth is measured.

    Raises:
        AirworthyError: If a shape does not fit or a direction is zero or not finite.
    """

    def __init__(self, directions: ArrayLike, origins: ArrayLike | None = None, axis: ArrayLike = CAMERA_AXIS):
        self.directions = _unit(directions)
        """(H, W, 3) float64, of length one."""
        self.height, self.width = self.directions.shape[:2]
        self.origins = None if origins is None else np.array(origins, np.float64)
        """(H, W, 3) [m], or None."""
        if self.origins is not None and (self.origins.shape != self.directions.shape or not np.isfinite(self.origins).all()):
            raise AirworthyError(
                f"Ray origins have shape {self.origins.shape} or are not finite; expected {self.directions.shape}."
            )
        self.axis = np.array(axis, np.float64)
        """(3,)"""
        if self.axis.shape != (3,):
            raise AirworthyError(f"A ray table's axis has shape {self.axis.shape}; expected (3,).")
        self.pixels = packet_pixels(self.height, self.width)
        self._arrays: dict[str, tuple[Any, Any]] = {}

    @property
    def packet_count(self) -> int:
        """Packets of 16 rays."""
        return len(self.pixels)

    def arrays(self, device: str) -> tuple[Any, Any]:
        """Warp arrays on a device: rays by packet (packets, 7, 16), and the pixel of each (packets, 16), -1 for padding."""
        if device not in self._arrays:
            sent = (as_warp(self._rows()), as_warp(self.pixels))
            self._arrays[device] = sent if device == "cpu" else (sent[0].to(device), sent[1].to(device))
        return self._arrays[device]

    def _rows(self) -> NDArray[np.float32]:
        chosen = np.maximum(self.pixels, 0)
        flat = self.directions.reshape(-1, 3)
        rows = np.zeros((len(chosen), RAY_ROWS, CPU_LANES), np.float32)
        rows[:, 0:3] = flat[chosen].transpose(0, 2, 1)
        rows[:, 3] = (flat @ self.axis)[chosen]
        if self.origins is not None:
            rows[:, 4:7] = self.origins.reshape(-1, 3)[chosen].transpose(0, 2, 1)
        return rows


def _unit(directions: ArrayLike) -> NDArray[np.float64]:
    array = np.array(directions, np.float64)
    if array.ndim != 3 or array.shape[2] != 3 or not array.size:
        raise AirworthyError(f"Ray directions have shape {array.shape}; expected (height, width, 3), at least one ray.")
    length = np.sqrt(np.sum(array * array, axis=2, keepdims=True))
    if not (np.isfinite(length) & (length > 1e-12)).all():
        raise AirworthyError("A ray direction is zero or not finite; expected vectors of length one.")
    return array / length


def packet_pixels(height: int, width: int) -> NDArray[np.int32]:
    """Pixels (row * width + column) in packets of neighbours (packets, 16); -1 for padding.

    A packet is a tile, as square as the image allows; neighbours in memory are neighbours in the image.
    """
    rows = 4 if height >= 3 else (2 if height == 2 else 1)
    columns = CPU_LANES // rows
    tall, wide = -(-height // rows), -(-width // columns)
    number = np.full((tall * rows, wide * columns), -1, np.int32)
    number[:height, :width] = np.arange(height * width, dtype=np.int32).reshape(height, width)
    tiles = number.reshape(tall, rows, wide, columns).transpose(0, 2, 1, 3).reshape(-1, CPU_LANES)
    return np.ascontiguousarray(tiles)
