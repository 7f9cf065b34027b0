"""Pixels: where they are, and what projections share."""

from __future__ import annotations

import math
from weakref import WeakKeyDictionary

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayF32
from airworthy.core.errors import AirworthyError
from airworthy.geometry import RayTable

__all__ = ["SUPERSAMPLES", "ray_steps", "spreads", "supersampled"]

# ---- Pixels of a table of rays: how wide they are, and rays beside their middles --------------------------------------------

SUPERSAMPLES: dict[int, tuple[tuple[float, float], ...]] = {
    1: ((0.0, 0.0),),
    2: ((0.25, 0.25), (-0.25, -0.25)),
    4: ((-0.125, -0.375), (0.375, -0.125), (0.125, 0.375), (-0.375, 0.125)),
    8: tuple(((2 * k + 1) / 16 - 0.5, ((5 * k + 2) % 8 * 2 + 1) / 16 - 0.5) for k in range(8)),
}
"""Places of samples in a pixel, from its middle: a rotated grid, one sample per row and column."""

_SPREADS: WeakKeyDictionary[RayTable, ArrayF32] = WeakKeyDictionary()
_SUPERSAMPLED: WeakKeyDictionary[RayTable, dict[int, list[RayTable]]] = WeakKeyDictionary()


def ray_steps(table: RayTable) -> tuple[Array, Array]:
    """Change of the direction from one column, and from one row, to the next; each (H, W, 3)."""
    rays = table.directions

    def steps(axis: int) -> Array:
        return np.gradient(rays, axis=axis) if rays.shape[axis] > 1 else np.zeros_like(rays)

    across, down = steps(1), steps(0)
    if rays.shape[1] == 1:
        across = np.cross(down, rays)
    if rays.shape[0] == 1:
        down = np.cross(rays, across)
    # A spinning scanner's last column meets its first: a step over the seam is no step.
    for step in (across, down):
        length = np.linalg.norm(step, axis=-1)
        usual = np.median(length)
        # Columns of a scan differ by a few parts; a seam is hundreds of columns wide.
        far = length > 4.0 * max(usual, 1e-9)
        step[far] *= (usual / np.maximum(length[far], 1e-12))[:, None]
    return across, down


def spreads(table: RayTable) -> ArrayF32:
    """Angle that each pixel covers [rad], as the side of a square, in the table's packets (packet, 16)."""
    found = _SPREADS.get(table)
    if found is None:
        across, down = ray_steps(table)
        area = np.linalg.norm(np.cross(across, down), axis=-1).reshape(-1)
        side = np.sqrt(np.maximum(area, 0.0)).astype(np.float32)
        found = _SPREADS[table] = np.ascontiguousarray(side[np.maximum(table.pixels, 0)])
    return found


def supersampled(table: RayTable, samples: int) -> list[RayTable]:
    """Tables whose rays pass the places of `SUPERSAMPLES` in each pixel."""
    if samples == 1:
        return [table]
    kept = _SUPERSAMPLED.setdefault(table, {})
    if samples not in kept:
        across, down = ray_steps(table)
        kept[samples] = [
            RayTable(table.directions + across * x + down * y, table.origins, table.axis) for x, y in SUPERSAMPLES[samples]
        ]
    return kept[samples]


# -----------------------------------------------------------------------------------------------------------------------------

CAMERA_AXIS = (0.0, 0.0, 1.0)
SENSOR_AXIS = (1.0, 0.0, 0.0)


def pixel_centres(height: int, width: int, offset: float = 0.5) -> Array:
    """Coordinates (u, v) of every pixel, (height, width, 2).

    Args:
        height: Rows.
        width: Columns.
        offset: Coordinate of the first centre [px]: 0.5 where pixel k covers [k, k + 1], 0 where centres lie at whole numbers.
    """
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


def inside(pixel: Array, height: int, width: int) -> ArrayBool:
    """Return which pixels lie strictly inside the image.

    Args:
        pixel: Coordinates (u, v) [px], (..., 2).
        height: Rows.
        width: Columns.
    """
    u, v = pixel[..., 0], pixel[..., 1]
    return np.asarray((u > 0.0) & (u < width) & (v > 0.0) & (v < height))


def border(height: int, width: int) -> Array:
    """Points of the image's border, 65 per side, (260, 2)."""
    share = np.linspace(0.0, 1.0, 65)
    u, v = share * width, share * height
    sides = [(u, 0 * v), (u, 0 * v + height), (0 * u, v), (0 * u + width, v)]
    return np.concatenate([np.stack(side, axis=-1) for side in sides])
