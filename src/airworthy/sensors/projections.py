"""Projections: which ray belongs to which pixel, and back.

Pixel coordinates are (u, v), u along columns, v along rows, origin at the upper left corner of the upper left pixel: the ray of
column j, row i passes (j + 0.5, i + 0.5), for LiDARs too. A camera's rays are in its optical frame (x right, y down, z forward),
every other sensor's in its own (x forward, y left, z up). Every projection offers

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
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError
from airworthy.geometry import RayTable
from airworthy.sensors.distortion import AnglePolynomial, PlumbBob

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]

CAMERA_AXIS = (0.0, 0.0, 1.0)
SENSOR_AXIS = (1.0, 0.0, 0.0)


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
        raise AirworthyError(f"A pinhole's field of view is {field_of_view:.4g} rad; expected between 0 and pi, or take a fisheye.")
    return 0.5 * size / math.tan(0.5 * field_of_view)


@dataclass(frozen=True)
class Pinhole:
    """Perspective camera with plumb-bob distortion.

    Raises:
        AirworthyError: If a number cannot be used, or the distortion folds the image over within its field.
    """

    width: int
    height: int
    fx: float
    """[px]"""
    fy: float
    cx: float
    """Principal point [px]."""
    cy: float
    distortion: PlumbBob = PlumbBob()
    integer_pixels: bool = False
    """The ray of column j, row i passes (j, i) instead of the pixel's centre, as in Aerial Gym's source."""

    optical = True

    def __post_init__(self) -> None:
        _check_size(self.width, self.height)
        if not (self.fx > 0.0 and self.fy > 0.0 and np.isfinite([self.fx, self.fy, self.cx, self.cy]).all()):
            raise AirworthyError(
                f"A pinhole has focal lengths {self.fx}, {self.fy} and centre {self.cx}, {self.cy}; expected finite numbers, lengths > 0."
            )
        if self.distortion.any:
            border = _border(self.height, self.width)
            if not self.distortion.undistort(self._normalised(border))[1].all():
                raise AirworthyError(
                    f"The distortion {self.distortion} folds a {self.width}x{self.height} image over before its border, so that"
                    " pixels there have no ray: check the coefficients, crop the image, or take a fisheye."
                )

    @classmethod
    def from_fov(
        cls,
        width: int,
        height: int,
        *,
        horizontal: float | None = None,
        vertical: float | None = None,
        distortion: PlumbBob = PlumbBob(),
        integer_pixels: bool = False,
    ) -> Pinhole:
        """Square pixels and a centred axis, from one field of view [rad].

        Raises:
            AirworthyError: If not exactly one field of view is given, or it cannot be one.
        """
        _check_size(width, height)
        if (horizontal is None) == (vertical is None):
            raise AirworthyError("Pinhole.from_fov needs either a horizontal or a vertical field of view, and not both.")
        focal = focal_length(width, horizontal) if horizontal is not None else focal_length(height, vertical or 0.0)
        centre = (width // 2, height // 2) if integer_pixels else (0.5 * width, 0.5 * height)
        return cls(width, height, focal, focal, *centre, distortion, integer_pixels)

    @property
    def horizontal_fov(self) -> float:
        """Between the left and right border, without distortion [rad]."""
        return math.atan(self.cx / self.fx) + math.atan((self.width - self.cx) / self.fx)

    @property
    def vertical_fov(self) -> float:
        """Between the upper and lower border, without distortion [rad]."""
        return math.atan(self.cy / self.fy) + math.atan((self.height - self.cy) / self.fy)

    @property
    def matrix(self) -> Array:
        """Camera matrix, (3, 3)."""
        return np.array([[self.fx, 0.0, self.cx], [0.0, self.fy, self.cy], [0.0, 0.0, 1.0]])

    @cached_property
    def _radius_max(self) -> float:
        """Undistorted radius beyond which nothing is in the image: behind it a polynomial may fold points back in."""
        if not self.distortion.any:
            return math.inf
        return float(np.linalg.norm(self.distortion.undistort(self._normalised(_border(self.height, self.width)))[0], axis=-1).max())

    def rays(self) -> RayTable:
        """Ray table in the optical frame."""
        return _table(self.unproject(pixel_centres(self.height, self.width, self._offset)), CAMERA_AXIS)

    def mask(self) -> None:
        """Every pixel has a ray."""
        return

    def project(self, points: ArrayLike) -> tuple[Array, Bools]:
        """Pixel of points in the optical frame, (..., 2), and whether they are in front and strictly inside the image."""
        x, y, z = np.moveaxis(np.asarray(points, np.float64), -1, 0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            flat = np.stack([x / z, y / z], -1)
            bent = self.distortion.distort(flat) if self.distortion.any else flat
            pixel = bent * (self.fx, self.fy) + (self.cx, self.cy)
            front = (z > 0.0) & (np.linalg.norm(flat, axis=-1) <= self._radius_max * (1.0 + 1e-9))
            return pixel, front & _inside(pixel, self.height, self.width)

    def unproject(self, pixels: ArrayLike) -> Array:
        """Unit rays of pixels in the optical frame, (..., 3)."""
        flat, _ = self.distortion.undistort(self._normalised(np.asarray(pixels, np.float64)))
        return _unit(np.concatenate([flat, np.ones((*flat.shape[:-1], 1))], axis=-1))

    @property
    def _offset(self) -> float:
        return 0.0 if self.integer_pixels else 0.5

    def _normalised(self, pixels: Array) -> Array:
        return (pixels - (self.cx, self.cy)) / (self.fx, self.fy)


@dataclass(frozen=True)
class Fisheye:
    """Equidistant camera with Kannala-Brandt's polynomial.

    Raises:
        AirworthyError: If a number cannot be used, or the polynomial stops growing within the field.
    """

    width: int
    height: int
    fx: float
    """[px/rad]"""
    fy: float
    cx: float
    """Principal point [px]."""
    cy: float
    polynomial: AnglePolynomial = AnglePolynomial()
    angle_max: float = math.pi
    """Half of the lens' field [rad]; pixels beyond have no ray."""

    optical = True

    def __post_init__(self) -> None:
        _check_size(self.width, self.height)
        if not (self.fx > 0.0 and self.fy > 0.0 and 0.0 < self.angle_max <= math.pi):
            raise AirworthyError(
                f"A fisheye has focal lengths {self.fx}, {self.fy} and half field {self.angle_max} rad; expected > 0, and at most pi."
            )
        needed = float(np.linalg.norm(self._normalised(_border(self.height, self.width)), axis=-1).max())
        limit = self.polynomial.angle_limit(self.angle_max)
        if limit < self.angle_max and self.polynomial.radius(limit) < needed:
            raise AirworthyError(
                f"The {self.polynomial} stops growing {limit:.4g} rad off the axis, inside the image: check the coefficients, crop the"
                " image, or give a smaller angle_max."
            )

    @classmethod
    def from_fov(cls, width: int, height: int, horizontal: float, polynomial: AnglePolynomial = AnglePolynomial()) -> Fisheye:
        """Square pixels and a centred axis, from the field of view across the image's width [rad]."""
        focal = 0.5 * width / float(polynomial.radius(0.5 * horizontal))
        return cls(width, height, focal, focal, 0.5 * width, 0.5 * height, polynomial)

    @cached_property
    def _limit(self) -> float:
        return self.polynomial.angle_limit(self.angle_max)

    def rays(self) -> RayTable:
        """Ray table in the optical frame; pixels without a ray look along the axis."""
        rays = self.unproject(pixel_centres(self.height, self.width))
        mask = self.mask()
        if mask is not None:
            rays = np.where(mask[..., None], rays, CAMERA_AXIS)
        return _table(rays, CAMERA_AXIS)

    def mask(self) -> Bools | None:
        """Pixels inside the image circle; None: all are."""
        radius = np.linalg.norm(self._normalised(pixel_centres(self.height, self.width)), axis=-1)
        inside = np.asarray(radius <= self.polynomial.radius(self._limit))
        return None if inside.all() else inside

    def project(self, points: ArrayLike) -> tuple[Array, Bools]:
        """Pixel of points in the optical frame, (..., 2), and whether they are in the field and strictly inside the image."""
        x, y, z = np.moveaxis(np.asarray(points, np.float64), -1, 0)
        across = np.hypot(x, y)
        angle = np.arctan2(across, z)
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = np.where(across > 0.0, self.polynomial.radius(np.minimum(angle, self._limit)) / across, 0.0)
        pixel = np.stack([x * gain, y * gain], -1) * (self.fx, self.fy) + (self.cx, self.cy)
        return pixel, (angle <= self._limit) & _inside(pixel, self.height, self.width)

    def unproject(self, pixels: ArrayLike) -> Array:
        """Unit rays of pixels in the optical frame, (..., 3)."""
        flat = self._normalised(np.asarray(pixels, np.float64))
        radius = np.linalg.norm(flat, axis=-1)
        angle = self.polynomial.angle(radius, self._limit)
        with np.errstate(divide="ignore", invalid="ignore"):
            sine = np.where(radius > 0.0, np.sin(angle) / radius, 0.0)
        return np.concatenate([flat * sine[..., None], np.cos(angle)[..., None]], axis=-1)

    def _normalised(self, pixels: Array) -> Array:
        return (pixels - (self.cx, self.cy)) / (self.fx, self.fy)


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
        _check_size(self.width, self.height)
        low, high = self.azimuth
        down, up = self.elevation
        if not (0.0 < high - low <= 2 * math.pi + 1e-9 and -math.pi / 2 - 1e-9 <= down <= up <= math.pi / 2 + 1e-9):
            raise AirworthyError(
                f"A scan has azimuth {self.azimuth} and elevation {self.elevation} rad; expected rising pairs within a full turn"
                " and within +-pi/2."
            )
        if self.elevations and (len(self.elevations) != self.height or np.any(np.diff(self.elevations) >= 0)):
            raise AirworthyError(f"A scan of {self.height} rows got {len(self.elevations)} elevations; expected as many, falling.")

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
        """When each column fires, as a share of one revolution, (width,)."""
        return np.arange(self.width) / self.width

    def rays(self) -> RayTable:
        """Ray table in the sensor's frame."""
        return _table(_sphere(self.azimuths[None, :], self.row_elevations[:, None]), SENSOR_AXIS)

    def mask(self) -> None:
        """Every pixel has a ray."""
        return

    def project(self, points: ArrayLike) -> tuple[Array, Bools]:
        """Pixel of points in the sensor's frame, (..., 2), and whether they are strictly inside the scan."""
        x, y, z = np.moveaxis(np.asarray(points, np.float64), -1, 0)
        azimuth, elevation = np.arctan2(y, x), np.arctan2(z, np.hypot(x, y))
        low, high = self.azimuth
        u = (high - azimuth) * self._cells(self.width, self._wraps) / (high - low) - self._first(self.width) + 0.5
        if self._wraps:
            u = np.mod(u, self.width)
        rows = np.arange(self.height) + 0.5
        if self.elevations:
            v = np.interp(-elevation, -self.row_elevations, rows, left=-1.0, right=self.height + 1.0)
        else:
            low, high = self.elevation
            v = (high - elevation) * self._cells(self.height, False) / max(high - low, 1e-12) - self._first(self.height) + 0.5
        pixel = np.stack([u, v], axis=-1)
        return pixel, _inside(pixel, self.height, self.width)

    def unproject(self, pixels: ArrayLike) -> Array:
        """Unit rays of pixels in the sensor's frame, (..., 3)."""
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
        """The table itself."""
        return RayTable(self.directions.astype(np.float32), self.origins, self.axis)

    def mask(self) -> None:
        """Every pixel has a ray."""
        return

    def project(self, points: ArrayLike) -> tuple[Array, Bools]:
        """A table cannot be inverted.

        Raises:
            AirworthyError: Always.
        """
        raise AirworthyError("A user's table of rays cannot project points; describe the sensor by a projection of its own.")

    def unproject(self, pixels: ArrayLike) -> Array:
        """Rays of the pixels that hold the coordinates, (..., 3)."""
        index = np.floor(np.asarray(pixels, np.float64)).astype(np.intp)
        u, v = np.clip(index[..., 0], 0, self.width - 1), np.clip(index[..., 1], 0, self.height - 1)
        return np.asarray(self.directions[v, u], np.float64)


def _check_size(width: int, height: int) -> None:
    if not (1 <= width <= 16384 and 1 <= height <= 16384):
        raise AirworthyError(f"A sensor is {width} x {height} pixels; expected between 1 and 16384 each way.")


def _table(rays: Array, axis: tuple[float, float, float]) -> RayTable:
    return RayTable(rays.astype(np.float32), None, axis)


def _sphere(azimuth: Array, elevation: Array) -> Array:
    flat = np.cos(elevation)
    return np.stack(np.broadcast_arrays(np.cos(azimuth) * flat, np.sin(azimuth) * flat, np.sin(elevation)), axis=-1)


def _unit(v: Array) -> Array:
    return np.asarray(v / np.linalg.norm(v, axis=-1, keepdims=True))


def _inside(pixel: Array, height: int, width: int) -> Bools:
    u, v = pixel[..., 0], pixel[..., 1]
    return np.asarray((u > 0.0) & (u < width) & (v > 0.0) & (v < height))


def _border(height: int, width: int) -> Array:
    """Points of the image's border, 65 per side, (260, 2)."""
    share = np.linspace(0.0, 1.0, 65)
    u, v = share * width, share * height
    sides = [(u, 0 * v), (u, 0 * v + height), (0 * u, v), (0 * u + width, v)]
    return np.concatenate([np.stack(side, axis=-1) for side in sides])
