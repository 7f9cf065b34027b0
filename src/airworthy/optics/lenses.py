"""Cameras: pinhole with plumb-bob distortion, and fisheye. See `airworthy.optics.projections`.

Pixels: where they are, and what projections share.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayF32, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.geometry import RayTable
from airworthy.optics.distortion import EQUIDISTANT, STRAIGHT, AnglePolynomial, PlumbBob

__all__ = ["SUPERSAMPLES", "Fisheye", "Pinhole", "pixel_angle", "ray_steps", "shifted", "spreads", "supersampled"]


# ---- Pixels of a table of rays: how wide they are, and rays beside their middles --------------------------------------------

SUPERSAMPLES: dict[int, tuple[tuple[float, float], ...]] = {
    1: ((0.0, 0.0),),
    2: ((0.25, 0.25), (-0.25, -0.25)),
    4: ((-0.125, -0.375), (0.375, -0.125), (0.125, 0.375), (-0.375, 0.125)),
    8: tuple(((2 * k + 1) / 16 - 0.5, ((5 * k + 2) % 8 * 2 + 1) / 16 - 0.5) for k in range(8)),
}
"""Places of samples in a pixel, from its middle: a rotated grid, one sample per row and column."""

_SPREADS: WeakKeyDictionary[RayTable, ArrayF32] = WeakKeyDictionary()
_ANGLES: WeakKeyDictionary[RayTable, float] = WeakKeyDictionary()
_SHIFTED: WeakKeyDictionary[RayTable, dict[tuple[float, float], RayTable]] = WeakKeyDictionary()


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
    """Return the angle that each pixel covers [rad], as the side of a square, in the table's packets (packet, 16)."""
    found = _SPREADS.get(table)
    if found is None:
        across, down = ray_steps(table)
        area = np.linalg.norm(np.cross(across, down), axis=-1).reshape(-1)
        side = np.sqrt(np.maximum(area, 0.0)).astype(np.float32)
        found = _SPREADS[table] = np.ascontiguousarray(side[np.maximum(table.pixels, 0)])
    return found


def pixel_angle(table: RayTable) -> float:
    """Return the angle that a usual pixel of a table covers [rad]: the median of all."""
    found = _ANGLES.get(table)
    if found is None:
        found = _ANGLES[table] = float(np.median(spreads(table)))
    return found


def supersampled(table: RayTable, samples: int) -> list[RayTable]:
    """Return tables whose rays pass the places of `SUPERSAMPLES` in each pixel."""
    if samples == 1:
        return [table]
    return [shifted(table, x, y) for x, y in SUPERSAMPLES[samples]]


def shifted(table: RayTable, x: float, y: float) -> RayTable:
    """Return the table whose rays pass beside the middles of pixels, by parts of a pixel to the right and down; it is kept."""
    kept = _SHIFTED.setdefault(table, {})
    if (x, y) not in kept:
        across, down = ray_steps(table)
        kept[x, y] = RayTable(table.directions + across * x + down * y, table.origins, table.axis)
    return kept[x, y]


# -----------------------------------------------------------------------------------------------------------------------------

CAMERA_AXIS = (0.0, 0.0, 1.0)
SENSOR_AXIS = (1.0, 0.0, 0.0)


def pixel_centres(height: int, width: int, offset: float = 0.5) -> Array:
    """Return coordinates (u, v) of every pixel, (height, width, 2).

    Args:
        height: Rows.
        width: Columns.
        offset: Coordinate of the first centre [px]: 0.5 where pixel k covers [k, k + 1], 0 where centres lie at whole numbers.
    """
    u, v = np.meshgrid(np.arange(width) + offset, np.arange(height) + offset)
    return np.stack([u, v], axis=-1)


def focal_length(size: int, field_of_view: float) -> float:
    """Return the focal length [px] of a pinhole with this many pixels across this field of view [rad]: (size / 2) / tan(fov /
    2).

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
    """Return the ray table of unit rays (height, width, 3)."""
    return RayTable(rays, None, axis)


def unit(v: Array) -> Array:
    """Return vectors brought to unit length."""
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
    """Return points of the image's border, 65 per side, (260, 2)."""
    share = np.linspace(0.0, 1.0, 65)
    u, v = share * width, share * height
    sides = [(u, 0 * v), (u, 0 * v + height), (0 * u, v), (0 * u + width, v)]
    return np.concatenate([np.stack(side, axis=-1) for side in sides])


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
    distortion: PlumbBob = STRAIGHT
    integer_pixels: bool = False
    """The ray of column j, row i passes (j, i) instead of the pixel's centre, as in Aerial Gym's source."""

    optical = True

    def __post_init__(self) -> None:
        check_size(self.width, self.height)
        if not (self.fx > 0.0 and self.fy > 0.0 and np.isfinite([self.fx, self.fy, self.cx, self.cy]).all()):
            raise AirworthyError(
                f"A pinhole has focal lengths {self.fx}, {self.fy} and centre {self.cx}, {self.cy}; expected finite numbers,"
                " lengths > 0."
            )
        if self.distortion.any:
            # The border is the farthest that pixels are from the axis: what folds, folds there first.
            edge = self._normalised(border(self.height, self.width))
            if not self.distortion.undistort(edge)[1].all():
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
        distortion: PlumbBob = STRAIGHT,
        integer_pixels: bool = False,
    ) -> Pinhole:
        """Return square pixels and a centred axis, from one field of view.

        Args:
            width: Columns.
            height: Rows.
            horizontal: Across the width [rad]; this or `vertical`.
            vertical: Across the height [rad].
            distortion: Of the lens.
            integer_pixels: Whether the axis goes through the centre of a pixel (width // 2, height // 2), counted at whole
                numbers.

        Raises:
            AirworthyError: If not exactly one field of view is given, or it cannot be one.
        """
        check_size(width, height)
        if (horizontal is None) == (vertical is None):
            raise AirworthyError("Pinhole.from_fov needs either a horizontal or a vertical field of view, and not both.")
        focal = focal_length(width, horizontal) if horizontal is not None else focal_length(height, vertical or 0.0)
        cx, cy = (float(width // 2), float(height // 2)) if integer_pixels else (0.5 * width, 0.5 * height)
        return cls(width, height, focal, focal, cx, cy, distortion, integer_pixels)

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
        return float(
            np.linalg.norm(self.distortion.undistort(self._normalised(border(self.height, self.width)))[0], axis=-1).max()
        )

    def rays(self) -> RayTable:
        """Return the ray table in the optical frame."""
        return table(self.unproject(pixel_centres(self.height, self.width, self._offset)), CAMERA_AXIS)

    def mask(self) -> None:
        """Return None: every pixel has a ray."""
        return

    def project(self, points: ArrayLike) -> tuple[Array, ArrayBool]:
        """Return the pixel of points in the optical frame, (..., 2), and whether they are in front and strictly inside the
        image."""
        x, y, z = np.moveaxis(np.asarray(points, np.float64), -1, 0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            flat = np.stack([x / z, y / z], -1)
            bent = self.distortion.distort(flat) if self.distortion.any else flat
            pixel = bent * (self.fx, self.fy) + (self.cx, self.cy)
            # The hair is for points that were unprojected from the border itself.
            front = (z > 0.0) & (np.linalg.norm(flat, axis=-1) <= self._radius_max * (1.0 + 1e-9))
            return pixel, front & inside(pixel, self.height, self.width)

    def unproject(self, pixels: ArrayLike) -> Array:
        """Return unit rays of pixels in the optical frame, (..., 3)."""
        flat, _ = self.distortion.undistort(self._normalised(np.asarray(pixels, np.float64)))
        return unit(np.concatenate([flat, np.ones((*flat.shape[:-1], 1))], axis=-1))

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
    polynomial: AnglePolynomial = EQUIDISTANT
    angle_max: float = math.pi
    """Half of the lens' field [rad]; pixels beyond have no ray."""

    optical = True

    def __post_init__(self) -> None:
        check_size(self.width, self.height)
        finite = np.isfinite([self.fx, self.fy, self.cx, self.cy]).all()
        if not (finite and self.fx > 0.0 and self.fy > 0.0 and 0.0 < self.angle_max <= math.pi):
            raise AirworthyError(
                f"A fisheye has focal lengths {self.fx}, {self.fy}, centre {self.cx}, {self.cy} and half field"
                f" {self.angle_max} rad; expected finite numbers, lengths and field > 0, the field at most pi."
            )
        needed = float(np.linalg.norm(self._normalised(border(self.height, self.width)), axis=-1).max())
        limit = self.polynomial.angle_limit(self.angle_max)
        # Beyond the corners it may turn back as it likes: no pixel is there.
        if limit < self.angle_max and self.polynomial.radius(limit) < needed:
            raise AirworthyError(
                f"The {self.polynomial} stops growing {limit:.4g} rad off the axis, inside the image: check the coefficients,"
                " crop the image, or give a smaller angle_max."
            )

    @classmethod
    def from_fov(cls, width: int, height: int, horizontal: float, polynomial: AnglePolynomial = EQUIDISTANT) -> Fisheye:
        """Return square pixels and a centred axis, from the field of view across the image's width.

        Args:
            width: Columns.
            height: Rows.
            horizontal: Field of view [rad].
            polynomial: Radius over focal length, of the angle to the axis.
        """
        focal = 0.5 * width / float(polynomial.radius(0.5 * horizontal))
        return cls(width, height, focal, focal, 0.5 * width, 0.5 * height, polynomial)

    @cached_property
    def _limit(self) -> float:
        return self.polynomial.angle_limit(self.angle_max)

    def rays(self) -> RayTable:
        """Return the ray table in the optical frame; pixels without a ray look along the axis."""
        rays = self.unproject(pixel_centres(self.height, self.width))
        mask = self.mask()
        if mask is not None:
            rays = np.where(mask[..., None], rays, CAMERA_AXIS)
        return table(rays, CAMERA_AXIS)

    def mask(self) -> ArrayBool | None:
        """Return pixels inside the image circle; None: all are."""
        radius = np.linalg.norm(self._normalised(pixel_centres(self.height, self.width)), axis=-1)
        inside = np.asarray(radius <= self.polynomial.radius(self._limit))
        return None if inside.all() else inside

    def project(self, points: ArrayLike) -> tuple[Array, ArrayBool]:
        """Return the pixel of points in the optical frame, (..., 2), and whether they are in the field and strictly inside the
        image."""
        x, y, z = np.moveaxis(np.asarray(points, np.float64), -1, 0)
        across = np.hypot(x, y)
        angle = np.arctan2(across, z)
        with np.errstate(divide="ignore", invalid="ignore"):
            # On the axis the direction across is undefined and the radius 0: any finite gain does.
            gain = np.where(across > 0.0, self.polynomial.radius(np.minimum(angle, self._limit)) / across, 0.0)
        pixel = np.stack([x * gain, y * gain], -1) * (self.fx, self.fy) + (self.cx, self.cy)
        return pixel, (angle <= self._limit) & inside(pixel, self.height, self.width)

    def unproject(self, pixels: ArrayLike) -> Array:
        """Return unit rays of pixels in the optical frame, (..., 3)."""
        flat = self._normalised(np.asarray(pixels, np.float64))
        radius = np.linalg.norm(flat, axis=-1)
        angle = self.polynomial.angle(radius, self._limit)
        with np.errstate(divide="ignore", invalid="ignore"):
            # Likewise undefined on the axis, where it is multiplied by 0.
            sine = np.where(radius > 0.0, np.sin(angle) / radius, 0.0)
        return np.concatenate([flat * sine[..., None], np.cos(angle)[..., None]], axis=-1)

    def _normalised(self, pixels: Array) -> Array:
        return (pixels - (self.cx, self.cy)) / (self.fx, self.fy)
