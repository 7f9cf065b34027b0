"""Pixels: where they are, and what projections share."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError
from airworthy.geometry import RayTable

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]

CAMERA_AXIS = (0.0, 0.0, 1.0)
SENSOR_AXIS = (1.0, 0.0, 0.0)


def pixel_centres(height: int, width: int, offset: float = 0.5) -> Array:
    """Coordinates (u, v) of every pixel, (height, width, 2)."""
    u, v = np.meshgrid(np.arange(width) + offset, np.arange(height) + offset)
    return np.stack([u, v], axis=-1)


def focal_length(size: int, field_of_view: float) -> float:
    """Focal length [px] of a pinhole with this many pixels across this field of view [rad]: (size / 2) / tan(fov / 2).

    Raises:
        AirworthyError: If the field of view is not between 0 and pi.
    """
    if not 0.0 < field_of_view < math.pi:
        raise AirworthyError(
            f"A pinhole's field of view is {field_of_view:.4g} rad; expected between 0 and pi, or take a fisheye."
        )
    return 0.5 * size / math.tan(0.5 * field_of_view)


def check_size(width: int, height: int) -> None:
    """Refuse sizes that no image has.

    Raises:
        AirworthyError: If a side is not between 1 and 16384 pixels.
    """
    if not (1 <= width <= 16384 and 1 <= height <= 16384):
        raise AirworthyError(f"A sensor is {width} x {height} pixels; expected between 1 and 16384 each way.")


def table(rays: Array, axis: tuple[float, float, float]) -> RayTable:
    """Ray table of unit rays (height, width, 3)."""
    return RayTable(rays, None, axis)


def unit(v: Array) -> Array:
    """Vectors brought to unit length."""
    return np.asarray(v / np.linalg.norm(v, axis=-1, keepdims=True))


def inside(pixel: Array, height: int, width: int) -> Bools:
    """Which pixels lie strictly inside the image."""
    u, v = pixel[..., 0], pixel[..., 1]
    return np.asarray((u > 0.0) & (u < width) & (v > 0.0) & (v < height))


def border(height: int, width: int) -> Array:
    """Points of the image's border, 65 per side, (260, 2)."""
    share = np.linspace(0.0, 1.0, 65)
    u, v = share * width, share * height
    sides = [(u, 0 * v), (u, 0 * v + height), (0 * u, v), (0 * u + width, v)]
    return np.concatenate([np.stack(side, axis=-1) for side in sides])
