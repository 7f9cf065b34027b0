"""Lenses through which splats are rendered: pinhole, OpenCV's distortion, equidistant fisheye.

A lens takes a point of the camera's frame (x right, y down, z forward) to the image of unit focal length; intrinsics make
pixels of that. A Gaussian is carried along by the derivative of this map at its mean, of the whole lens and not of a pinhole
(Zwicker et al.: EWA volume splatting, 2001, for the linearisation). Sources of the maps: OpenCV's camera model (Brown 1966,
with the rational gain of Claus and Fitzgibbon 2005), and Kannala and Brandt: A generic camera model (2006).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayLike
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.schema import check_fields
from airworthy.optics.distortion import AnglePolynomial
from airworthy.optics.lenses import Fisheye, Pinhole

MODELS = ("pinhole", "opencv", "fisheye")
WIDEST = 3.0
"""Angle off the axis beyond which nothing is shown [rad]: a Gaussian behind a fisheye would be a ring."""
_COEFFICIENTS = {"pinhole": 0, "opencv": 8, "fisheye": 4}
_LEAST_AREA = 1e-3
"""Share of its area that a piece of the image keeps at least."""
_DIRECTIONS = 32
_STEPS = 16


@dataclass(frozen=True)
class Lens:
    """How a camera bends rays.

    Raises:
        AirworthyError: If there is no such model, or the coefficients do not fit it.
    """

    model: Literal["pinhole", "opencv", "fisheye"] = "pinhole"
    coefficients: tuple[float, ...] = ()
    """`opencv`: k1, k2, p1, p2, k3, k4, k5, k6 as OpenCV orders them, later ones 0 where they are left out; `fisheye`: k1 to k4
    of r = t (1 + k1 t^2 + k2 t^4 + k3 t^6 + k4 t^8), focal lengths being pixels per radian; `pinhole`: none."""

    def __post_init__(self) -> None:
        check_fields(self, "Lens.")
        if self.model not in MODELS:
            raise unknown_name("lens model", self.model, MODELS)
        most = _COEFFICIENTS[self.model]
        if len(self.coefficients) > most or not all(math.isfinite(k) and abs(k) <= 1e3 for k in self.coefficients):
            raise AirworthyError(
                f"A lens of model {self.model!r} got coefficients {self.coefficients}; expected at most {most} numbers, within"
                " +-1000."
            )
        object.__setattr__(self, "coefficients", tuple(float(k) for k in self.coefficients))

    @classmethod
    def of(cls, projection: object) -> tuple[Lens, tuple[float, float, float, float]] | None:
        """Return lens and intrinsics of a projection of `optics.projections`; None where no lens describes it."""
        if isinstance(projection, Pinhole):
            # Pixel k spans k to k + 1 here; centres at whole numbers lie half a pixel further on.
            d, shift = projection.distortion, 0.5 if projection.integer_pixels else 0.0
            lens = cls("opencv", (d.k1, d.k2, d.p1, d.p2, d.k3)) if d.any else cls()
            return lens, (projection.fx, projection.fy, projection.cx + shift, projection.cy + shift)
        if isinstance(projection, Fisheye):
            p = projection.polynomial
            return cls("fisheye", (p.k1, p.k2, p.k3, p.k4)), (projection.fx, projection.fy, projection.cx, projection.cy)
        return None

    @property
    def straight(self) -> bool:
        """Whether it is a pinhole."""
        return self.model == "pinhole" or (self.model == "opencv" and not any(self.coefficients))

    @cached_property
    def numbers(self) -> Array:
        """Coefficients, (8,), those left out as 0."""
        return np.array([*self.coefficients, *[0.0] * (8 - len(self.coefficients))])

    @cached_property
    def limit(self) -> float:
        """Greatest ray slope (`opencv`), or angle off the axis [rad] (`fisheye`), up to which the lens can be inverted."""
        if self.model == "fisheye":
            return self._polynomial.angle_limit(WIDEST)
        # Evenly in the angle, up to 89 degrees: a lens folds near its border.
        radius = np.tan(np.linspace(0.0, 1.55, 2048))
        turn = np.arange(_DIRECTIONS) * (2.0 * math.pi / _DIRECTIONS)
        slope = radius[:, None, None] * np.stack([np.cos(turn), np.sin(turn)], axis=-1)
        with np.errstate(all="ignore"):
            (xx, xy), (_, yy) = np.moveaxis(self.slopes(slope), (-2, -1), (0, 1))
            # Positive area and trace: neither folded nor turned over, in every direction.
            good = ((xx * yy - xy * xy > _LEAST_AREA) & (xx + yy > 0.0)).all(axis=1)
        bad = np.flatnonzero(~good)
        return float(radius[max(int(bad[0]) - 1, 0)]) if bad.size else float(radius[-1])

    def bend(self, slope: ArrayAny) -> ArrayAny:
        """Return `opencv`: image of unit focal length (..., 2) of ray slopes x/z, y/z (..., 2)."""
        x, y = slope[..., 0], slope[..., 1]
        _, _, p1, p2 = self.numbers[:4]
        r2 = x * x + y * y
        gain = self._radial(r2)[0]
        across, down = 2.0 * p1 * x * y + p2 * (r2 + 2.0 * x * x), p1 * (r2 + 2.0 * y * y) + 2.0 * p2 * x * y
        return np.stack([gain * x + across, gain * y + down], axis=-1)

    def slopes(self, slope: ArrayAny) -> ArrayAny:
        """Return `opencv`: derivative of `bend`, (..., 2, 2)."""
        x, y = slope[..., 0], slope[..., 1]
        _, _, p1, p2 = self.numbers[:4]
        gain, steep = self._radial(x * x + y * y)
        xx = gain + 2.0 * steep * x * x + 2.0 * p1 * y + 6.0 * p2 * x
        yy = gain + 2.0 * steep * y * y + 6.0 * p1 * y + 2.0 * p2 * x
        xy = 2.0 * (steep * x * y + p1 * x + p2 * y)
        return np.stack([np.stack([xx, xy], axis=-1), np.stack([xy, yy], axis=-1)], axis=-2)

    def unroll(self, point: ArrayAny) -> tuple[ArrayAny, ArrayAny, ArrayAny]:
        """Return `fisheye`: images of unit focal length (n, 2) of points (n, 3), derivatives (n, 2, 3), angles off the axis
        (n,)."""
        x, y, z = point.T
        across2 = x * x + y * y
        away2 = across2 + z * z
        across, away = np.sqrt(across2), np.sqrt(away2)
        # arctan2(across, z) by the half angle, which a complex step goes through.
        far = away + np.where(z.real < 0.0, -z, z)
        half = np.where(z.real < 0.0, far / np.where(across2 == 0.0, 1e-30, across), across / far)
        angle = 2.0 * np.arctan(half)
        k, t2 = self.numbers[:4], angle * angle
        radius = angle * (1.0 + t2 * (k[0] + t2 * (k[1] + t2 * (k[2] + t2 * k[3]))))
        along = (1.0 + t2 * (3 * k[0] + t2 * (5 * k[1] + t2 * (7 * k[2] + t2 * 9 * k[3])))) / away2
        on_axis = across2 == 0.0
        gain = np.where(on_axis, 1.0 / away, radius / np.where(on_axis, 1.0, across))
        bend = np.where(on_axis, 0.0, (along * z - gain) / np.where(on_axis, 1.0, across2))
        rows = [
            np.stack([gain + bend * x * x, bend * x * y, -along * x], axis=-1),
            np.stack([bend * x * y, gain + bend * y * y, -along * y], axis=-1),
        ]
        return np.stack([gain * x, gain * y], axis=-1), np.stack(rows, axis=-2), angle

    def rays(self, image: ArrayLike) -> tuple[Array, ArrayBool]:
        """Return unit rays (..., 3) of places in the image of unit focal length (..., 2); where the lens can be inverted,
        (...).
        """
        plane = np.asarray(image, np.float64)
        if self.model == "fisheye":
            radius = np.linalg.norm(plane, axis=-1)
            angle = self._polynomial.angle(radius, self.limit)
            share = np.sin(angle) / np.where(radius > 0.0, radius, 1.0)
            rays = np.concatenate([plane * share[..., None], np.cos(angle)[..., None]], axis=-1)
            return rays, radius <= self._polynomial.radius(self.limit)
        slope, known = (plane, np.ones(plane.shape[:-1], bool)) if self.straight else self._straightened(plane)
        rays = np.concatenate([slope, np.ones((*slope.shape[:-1], 1))], axis=-1)
        return rays / np.linalg.norm(rays, axis=-1, keepdims=True), known

    def pixel_rays(self, width: int, height: int, intrinsics: ArrayLike) -> tuple[Array, ArrayBool]:
        """Return unit rays (H, W, 3) through the pixels' centres, and which pixels have one, (H, W).

        Args:
            width: Of the image [px].
            height: Of the image [px].
            intrinsics: fx, fy, cx, cy [px].
        """
        fx, fy, cx, cy = np.asarray(intrinsics, np.float64)
        x, y = np.meshgrid((np.arange(width) + 0.5 - cx) / fx, (np.arange(height) + 0.5 - cy) / fy)
        return self.rays(np.stack([x, y], axis=-1))

    @cached_property
    def _polynomial(self) -> AnglePolynomial:
        return AnglePolynomial(*self.numbers[:4].tolist())

    def _radial(self, r2: ArrayAny) -> tuple[ArrayAny, ArrayAny]:
        """Gain and its derivative with respect to the squared radius."""
        k1, k2, _, _, k3, k4, k5, k6 = self.numbers
        under = 1.0 + r2 * (k4 + r2 * (k5 + r2 * k6))
        gain = (1.0 + r2 * (k1 + r2 * (k2 + r2 * k3))) / under
        steep = (k1 + r2 * (2.0 * k2 + r2 * 3.0 * k3) - gain * (k4 + r2 * (2.0 * k5 + r2 * 3.0 * k6))) / under
        return gain, steep

    def _straightened(self, plane: Array) -> tuple[Array, ArrayBool]:
        """Slopes (..., 2) of places in the image; Newton's steps from the middle outwards stay on the branch that is shown."""
        found = np.zeros_like(plane)
        with np.errstate(all="ignore"):
            for step in range(1, _STEPS + 1):
                for _ in range(4 if step < _STEPS else 20):
                    error = self.bend(found) - plane * (step / _STEPS)
                    (a, b), (_, d) = np.moveaxis(self.slopes(found), (-2, -1), (0, 1))
                    over = 1.0 / (a * d - b * b)
                    u, v = error[..., 0], error[..., 1]
                    found = found - np.stack([(d * u - b * v) * over, (a * v - b * u) * over], axis=-1)
            known = (np.abs(self.bend(found) - plane).max(axis=-1) <= 1e-9) & (np.linalg.norm(found, axis=-1) <= self.limit)
        return np.where(known[..., None], found, 0.0), known
