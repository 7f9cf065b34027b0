"""Cameras: pinhole with plumb-bob distortion, and fisheye. See `airworthy.optics.projections`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from airworthy.core.arrays import Array, ArrayBool
from airworthy.core.errors import AirworthyError
from airworthy.geometry import RayTable
from airworthy.optics.distortion import EQUIDISTANT, STRAIGHT, AnglePolynomial, PlumbBob
from airworthy.optics.pixels import CAMERA_AXIS, border, check_size, focal_length, inside, pixel_centres, table, unit


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
        """Square pixels and a centred axis, from one field of view.

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
        """Ray table in the optical frame."""
        return table(self.unproject(pixel_centres(self.height, self.width, self._offset)), CAMERA_AXIS)

    def mask(self) -> None:
        """Return None: every pixel has a ray."""
        return

    def project(self, points: ArrayLike) -> tuple[Array, ArrayBool]:
        """Pixel of points in the optical frame, (..., 2), and whether they are in front and strictly inside the image."""
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
        """Square pixels and a centred axis, from the field of view across the image's width.

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
        """Ray table in the optical frame; pixels without a ray look along the axis."""
        rays = self.unproject(pixel_centres(self.height, self.width))
        mask = self.mask()
        if mask is not None:
            rays = np.where(mask[..., None], rays, CAMERA_AXIS)
        return table(rays, CAMERA_AXIS)

    def mask(self) -> ArrayBool | None:
        """Pixels inside the image circle; None: all are."""
        radius = np.linalg.norm(self._normalised(pixel_centres(self.height, self.width)), axis=-1)
        inside = np.asarray(radius <= self.polynomial.radius(self._limit))
        return None if inside.all() else inside

    def project(self, points: ArrayLike) -> tuple[Array, ArrayBool]:
        """Pixel of points in the optical frame, (..., 2), and whether they are in the field and strictly inside the image."""
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
