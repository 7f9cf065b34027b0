"""Projections: which ray belongs to which pixel, and back.

Pixel coordinates are (u, v), u along columns, v along rows, origin at the upper left corner of the upper left pixel: the ray
of column j, row i passes (j + 0.5, i + 0.5), for LiDARs too. A camera's rays are in its optical frame (x right, y down, z
forward), every other sensor's in its own (x forward, y left, z up). Every projection offers

* `rays()`: the table of rays that a query casts,
* `mask()`: which pixels have a ray at all, (height, width), None: every one,
* `project(points)`: pixel of points (..., 3) in the sensor's frame, and whether they are strictly inside the image,
* `unproject(pixels)`: unit rays (..., 3) of pixels (..., 2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.geometry import RayTable
from airworthy.optics.lenses import SENSOR_AXIS, Fisheye, Pinhole, check_size, focal_length, inside, pixel_centres, table

__all__ = ["Fisheye", "Pinhole", "Projection", "Spherical", "UserRays", "focal_length", "pixel_centres"]

# -----------------------------------------------------------------------------------------------------------------------------
# Scans: rays at even azimuths and elevations, and tables of the user's own. See `airworthy.optics.projections`.


@dataclass(frozen=True)
class Spherical:
    """Rays at even azimuths and elevations: spinning LiDARs, domes, multi-zone time-of-flight sensors.

    Ray (i, j) is (cos az cos el, sin az cos el, sin el): azimuth falls from its largest over the columns, elevation over the
    rows, both ends included; around a full circle column W would repeat column 0 and is left out (spec/aerial_gym 7.5).
    """

    width: int
    height: int
    azimuth: tuple[float, float] = (-math.pi, math.pi)
    """Smallest and largest [rad]."""
    elevation: tuple[float, float] = (-math.pi / 4, math.pi / 4)
    """Smallest and largest [rad]."""
    elevations: tuple[float, ...] = ()
    """Elevation of each row [rad], falling; empty: evenly spaced."""
    duplicate_column: bool = False
    """Keep both ends of a full circle, as Aerial Gym's source does: the last column repeats the first."""
    centres: bool = False
    """Rays through the centres of equal cells between the ends (the zones of a time-of-flight sensor), not through the ends."""

    optical = False

    def __post_init__(self) -> None:
        check_size(self.width, self.height)
        low, high = self.azimuth
        down, up = self.elevation
        if not (0.0 < high - low <= 2 * math.pi + 1e-9 and -math.pi / 2 - 1e-9 <= down <= up <= math.pi / 2 + 1e-9):
            raise AirworthyError(
                f"A scan has azimuth {self.azimuth} and elevation {self.elevation} rad; expected rising pairs within a full"
                " turn and within +-pi/2."
            )
        if self.elevations and (len(self.elevations) != self.height or np.any(np.diff(self.elevations) >= 0)):
            raise AirworthyError(
                f"A scan of {self.height} rows got {len(self.elevations)} elevations; expected as many, falling."
            )

    @property
    def full_circle(self) -> bool:
        """Whether the columns go all the way round."""
        return self.azimuth[1] - self.azimuth[0] > 2 * math.pi - 1e-6

    @cached_property
    def azimuths(self) -> Array:
        """Azimuth of each column [rad], falling, (width,)."""
        low, high = self.azimuth
        return high - (np.arange(self.width) + self._first(self.width)) * (high - low) / self._cells(self.width, self._wraps)

    @cached_property
    def row_elevations(self) -> Array:
        """Elevation of each row [rad], falling, (height,)."""
        if self.elevations:
            return np.asarray(self.elevations, np.float64)
        low, high = self.elevation
        return high - (np.arange(self.height) + self._first(self.height)) * (high - low) / self._cells(self.height, False)

    def column_fraction(self) -> Array:
        """Return when each column fires, as a share of one revolution, (width,)."""
        return np.arange(self.width) / self.width

    def rays(self) -> RayTable:
        """Return the ray table in the sensor's frame."""
        return table(_sphere(self.azimuths[None, :], self.row_elevations[:, None]), SENSOR_AXIS)

    def mask(self) -> None:
        """Return None: every pixel has a ray."""
        return

    def project(self, points: ArrayLike) -> tuple[Array, ArrayBool]:
        """Return the pixel of points in the sensor's frame, (..., 2), and whether they are strictly inside the scan."""
        x, y, z = np.moveaxis(np.asarray(points, np.float64), -1, 0)
        azimuth, elevation = np.arctan2(y, x), np.arctan2(z, np.hypot(x, y))
        low, high = self.azimuth
        u = (high - azimuth) * self._cells(self.width, self._wraps) / (high - low) - self._first(self.width) + 0.5
        if self._wraps:
            # The seam is behind the sensor: what lies on it belongs to the first column.
            u = np.mod(u, self.width)
        rows = np.arange(self.height) + 0.5
        if self.elevations:
            # `interp` wants rising values, and elevations fall; outside them lies outside the image.
            v = np.interp(-elevation, -self.row_elevations, rows, left=-1.0, right=self.height + 1.0)
        else:
            low, high = self.elevation
            v = (high - elevation) * self._cells(self.height, False) / max(high - low, 1e-12) - self._first(self.height) + 0.5
        pixel = np.stack([u, v], axis=-1)
        return pixel, inside(pixel, self.height, self.width)

    def unproject(self, pixels: ArrayLike) -> Array:
        """Return unit rays of pixels in the sensor's frame, (..., 3)."""
        u, v = np.moveaxis(np.asarray(pixels, np.float64), -1, 0)
        low, high = self.azimuth
        azimuth = high - (u - 0.5 + self._first(self.width)) * (high - low) / self._cells(self.width, self._wraps)
        if self.elevations:
            return _sphere(azimuth, np.interp(v, np.arange(self.height) + 0.5, self.row_elevations))
        low, high = self.elevation
        return _sphere(azimuth, high - (v - 0.5 + self._first(self.height)) * (high - low) / self._cells(self.height, False))

    @property
    def _wraps(self) -> bool:
        return self.full_circle and not self.duplicate_column

    def _first(self, count: int) -> float:
        return 0.5 if self.centres or count == 1 else 0.0

    def _cells(self, count: int, wraps: bool) -> int:
        return count if self.centres or wraps or count == 1 else count - 1


@dataclass(frozen=True, eq=False)
class UserRays:
    """A table of rays of the user's own; it has no inverse.

    Raises:
        AirworthyError: If shapes do not fit or a direction has no length.
    """

    directions: Array
    """(height, width, 3), in the sensor's frame; brought to unit length."""
    origins: Array | None = None
    """(height, width, 3) [m], None: all from the sensor's origin."""
    axis: tuple[float, float, float] = SENSOR_AXIS
    """Along which depth is measured, unit length."""
    optical: bool = field(default=False)
    """The table is in an optical frame (z forward)."""

    def __post_init__(self) -> None:
        rays = np.asarray(self.directions, np.float64)
        if rays.ndim != 3 or rays.shape[-1] != 3:
            raise AirworthyError(f"A table of rays has shape {rays.shape}; expected (height, width, 3).")
        length = np.linalg.norm(rays, axis=-1, keepdims=True)
        if not (length > 1e-9).all() or not np.isfinite(rays).all():
            raise AirworthyError("A table of rays holds a direction that is zero or not finite; leave such rays out.")
        if self.origins is not None and np.shape(self.origins) != rays.shape:
            raise AirworthyError(f"A table of rays {rays.shape} has origins {np.shape(self.origins)}; expected the same shape.")
        object.__setattr__(self, "directions", rays / length)

    @property
    def height(self) -> int:
        """Rows of the table."""
        return int(self.directions.shape[0])

    @property
    def width(self) -> int:
        """Columns of the table."""
        return int(self.directions.shape[1])

    def rays(self) -> RayTable:
        """Return the table itself."""
        return RayTable(self.directions, self.origins, self.axis)

    def mask(self) -> None:
        """Return None: every pixel has a ray."""
        return

    def project(self, points: ArrayLike) -> tuple[Array, ArrayBool]:
        """Refuse, since a table cannot be inverted.

        Raises:
            AirworthyError: Always.
        """
        raise AirworthyError("A user's table of rays cannot project points; describe the sensor by a projection of its own.")

    def unproject(self, pixels: ArrayLike) -> Array:
        """Return rays of the pixels that hold the coordinates, (..., 3)."""
        index = np.floor(np.asarray(pixels, np.float64)).astype(np.intp)
        u, v = np.clip(index[..., 0], 0, self.width - 1), np.clip(index[..., 1], 0, self.height - 1)
        return np.asarray(self.directions[v, u], np.float64)


def _sphere(azimuth: Array, elevation: Array) -> Array:
    """Return unit rays of azimuths and elevations [rad], x forward, z up."""
    flat = np.cos(elevation)
    return np.stack(np.broadcast_arrays(np.cos(azimuth) * flat, np.sin(azimuth) * flat, np.sin(elevation)), axis=-1)


# -----------------------------------------------------------------------------------------------------------------------------


class Projection(Protocol):
    """What every projection offers; see the module."""

    @property
    def height(self) -> int: ...
    @property
    def width(self) -> int: ...
    @property
    def optical(self) -> bool:
        """Whether rays are in an optical frame (z forward) instead of the sensor's (x forward)."""
        ...

    def rays(self) -> RayTable: ...
    def mask(self) -> ArrayBool | None: ...
    def project(self, points: ArrayLike) -> tuple[Array, ArrayBool]: ...
    def unproject(self, pixels: ArrayLike) -> Array: ...
