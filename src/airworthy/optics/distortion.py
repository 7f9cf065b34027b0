"""Lens distortion: plumb-bob (radial and tangential) and the angle polynomial of fisheyes, and their inverses.

Normalised coordinates are x = X/Z, y = Y/Z in the optical frame (x right, y down, z forward).
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayLike
from airworthy.core.schema import check_fields

TOLERANCE = 1e-9
"""Residual at which an inverse counts as found, in normalised coordinates or radians."""
_STEPS = 16
_NEWTON = 4
_NEWTON_LAST = 20


@dataclass(frozen=True)
class PlumbBob:
    """Brown's model as OpenCV and ROS write it.

    With r^2 = x^2 + y^2 and g = 1 + k1 r^2 + k2 r^4 + k3 r^6:
    x' = g x + 2 p1 x y + p2 (r^2 + 2 x^2),  y' = g y + p1 (r^2 + 2 y^2) + 2 p2 x y.
    """

    k1: float = 0.0
    k2: float = 0.0
    p1: float = 0.0
    p2: float = 0.0
    k3: float = 0.0

    def __post_init__(self) -> None:
        check_fields(self, "PlumbBob.")

    @property
    def any(self) -> bool:
        """Whether it changes anything."""
        return any(value != 0.0 for value in astuple(self))

    def distort(self, point: ArrayLike) -> Array:
        """Return distorted coordinates of undistorted ones, (..., 2)."""
        x, y = _columns(point)
        r2 = x * x + y * y
        gain = 1.0 + r2 * (self.k1 + r2 * (self.k2 + r2 * self.k3))
        across, down = 2.0 * self.p1 * x * y, 2.0 * self.p2 * x * y
        return np.stack([gain * x + across + self.p2 * (r2 + 2 * x * x), gain * y + self.p1 * (r2 + 2 * y * y) + down], -1)

    def jacobian(self, point: ArrayLike) -> Array:
        """Return the derivative of `distort`, (..., 2, 2)."""
        x, y = _columns(point)
        r2 = x * x + y * y
        gain = 1.0 + r2 * (self.k1 + r2 * (self.k2 + r2 * self.k3))
        slope = 2.0 * (self.k1 + r2 * (2.0 * self.k2 + r2 * 3.0 * self.k3))
        mixed = slope * x * y + 2.0 * self.p1 * x + 2.0 * self.p2 * y
        xx = gain + slope * x * x + 2.0 * self.p1 * y + 6.0 * self.p2 * x
        yy = gain + slope * y * y + 6.0 * self.p1 * y + 2.0 * self.p2 * x
        return np.stack([np.stack([xx, mixed], -1), np.stack([mixed, yy], -1)], -2)

    def undistort(self, point: ArrayLike) -> tuple[Array, ArrayBool]:
        """Return undistorted coordinates of distorted ones, and where they exist.

        The solution is followed from the centre outwards, so that it stays on the branch that images what is in front; it
        exists where the Jacobian keeps its sign all the way.

        Args:
            point: Distorted coordinates, (..., 2).

        Returns:
            Coordinates (..., 2), and whether each was found within `TOLERANCE`, (...).
        """
        target = np.asarray(point, np.float64)
        if not self.any:
            return target.copy(), np.ones(target.shape[:-1], bool)
        found = np.zeros_like(target)
        with np.errstate(all="ignore"):
            # From the centre, where distortion is none, in steps short enough that Newton stays on the branch it came by.
            for step in range(1, _STEPS + 1):
                for _ in range(_NEWTON if step < _STEPS else _NEWTON_LAST):
                    found = found - self._newton(found, target * (step / _STEPS))
            # What diverged is NaN or far off, and fails here rather than by a warning on the way.
            residual = np.abs(self.distort(found) - target).max(-1)
            invertible = self._unfolded(found)
        return found, (residual <= TOLERANCE) & invertible

    def _newton(self, found: Array, target: Array) -> Array:
        error, matrix = self.distort(found) - target, self.jacobian(found)
        (a, b), (c, d) = (matrix[..., 0, 0], matrix[..., 0, 1]), (matrix[..., 1, 0], matrix[..., 1, 1])
        determinant = a * d - b * c
        return (
            np.stack([d * error[..., 0] - b * error[..., 1], a * error[..., 1] - c * error[..., 0]], -1)
            / determinant[..., None]
        )

    def _unfolded(self, point: Array) -> ArrayBool:
        """Tell whether the image is not folded anywhere between the centre and a point."""
        good = np.ones(point.shape[:-1], bool)
        for share in np.linspace(0.0, 1.0, 2 * _STEPS + 1):
            # Not 0: next to a fold the inverse exists but magnifies rounding beyond use.
            good &= np.linalg.det(self.jacobian(share * point)) > 1e-6
        return good


STRAIGHT = PlumbBob()
"""No distortion."""


@dataclass(frozen=True)
class AnglePolynomial:
    """Kannala-Brandt (OpenCV's fisheye, ROS' equidistant): r = t (1 + k1 t^2 + k2 t^4 + k3 t^6 + k4 t^8), t off the axis."""

    k1: float = 0.0
    k2: float = 0.0
    k3: float = 0.0
    k4: float = 0.0

    def __post_init__(self) -> None:
        check_fields(self, "AnglePolynomial.")

    def radius(self, angle: ArrayLike) -> Any:
        """Return the radius in the image of unit focal length, of angles off the axis [rad]."""
        t = np.asarray(angle, np.float64)
        t2 = t * t
        return t * (1.0 + t2 * (self.k1 + t2 * (self.k2 + t2 * (self.k3 + t2 * self.k4))))

    def slope(self, angle: ArrayLike) -> Any:
        """Return the derivative of `radius`."""
        t = np.asarray(angle, np.float64)
        t2 = t * t
        return 1.0 + t2 * (3 * self.k1 + t2 * (5 * self.k2 + t2 * (7 * self.k3 + t2 * 9 * self.k4)))

    def angle_limit(self, angle_max: float) -> float:
        """Return the largest angle up to `angle_max` [rad] below which the radius grows."""
        angles = np.linspace(0.0, angle_max, 4097)
        # Sampled, since a polynomial of eighth degree in the angle has no closed zero; 4097 samples are 0.04 degrees apart.
        falling = np.flatnonzero(self.slope(angles) <= 1e-9)
        return float(angles[max(int(falling[0]) - 1, 0)]) if falling.size else angle_max

    def angle(self, radius: ArrayLike, limit: float) -> Array:
        """Return angle off the axis [rad] of a radius, at most `limit`, below which the radius must grow."""
        grid = np.linspace(0.0, limit, 1025)
        target = np.asarray(radius, np.float64)
        # A table's guess is near enough for Newton to converge quadratically: six steps reach rounding.
        found = np.interp(target, self.radius(grid), grid)
        for _ in range(6):
            found = np.clip(found - (self.radius(found) - target) / np.maximum(self.slope(found), 1e-9), 0.0, limit)
        return np.asarray(found)


EQUIDISTANT = AnglePolynomial()
"""The radius is the angle."""


def _columns(point: ArrayLike) -> tuple[Array, Array]:
    array = np.asarray(point, np.float64)
    return array[..., 0], array[..., 1]
