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

from typing import Protocol

from numpy.typing import ArrayLike

from airworthy.geometry import RayTable
from airworthy.sensors.lenses import Fisheye, Pinhole
from airworthy.sensors.pixels import Array, Bools, focal_length, pixel_centres
from airworthy.sensors.scans import Spherical, UserRays

__all__ = ["Fisheye", "Pinhole", "Projection", "Spherical", "UserRays", "focal_length", "pixel_centres"]


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
    def mask(self) -> Bools | None: ...
    def project(self, points: ArrayLike) -> tuple[Array, Bools]: ...
    def unproject(self, pixels: ArrayLike) -> Array: ...
