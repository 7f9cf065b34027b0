"""Cameras as photogrammetry writes them: a pinhole, and what the lens does to it.

The upper left corner of the image is (0, 0), the centre of its first pixel (0.5, 0.5), as in COLMAP and here everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError
from airworthy.sensors.distortion import STRAIGHT, AnglePolynomial, PlumbBob

__all__ = ["MODELS", "Rational", "SourceCamera", "camera_of"]

Array = NDArray[np.float64]
SIZE_MAX = 65_536
_LARGEST = 1e6
_DIRECTIONS, _RADII = 16, 256

MODELS: dict[str, tuple[str, ...]] = {
    "SIMPLE_PINHOLE": ("f", "cx", "cy"),
    "PINHOLE": ("fx", "fy", "cx", "cy"),
    "SIMPLE_RADIAL": ("f", "cx", "cy", "k1"),
    "RADIAL": ("f", "cx", "cy", "k1", "k2"),
    "OPENCV": ("fx", "fy", "cx", "cy", "k1", "k2", "p1", "p2"),
    "OPENCV_FISHEYE": ("fx", "fy", "cx", "cy", "k1", "k2", "k3", "k4"),
    "FULL_OPENCV": ("fx", "fy", "cx", "cy", "k1", "k2", "p1", "p2", "k3", "k4", "k5", "k6"),
    "SIMPLE_RADIAL_FISHEYE": ("f", "cx", "cy", "k1"),
    "RADIAL_FISHEYE": ("f", "cx", "cy", "k1", "k2"),
}
"""Parameters of COLMAP's camera models, in its order."""


@dataclass(frozen=True)
class Rational:
    """OpenCV's rational model: the radial gain of `PlumbBob` over 1 + k4 r^2 + k5 r^4 + k6 r^6."""

    k1: float = 0.0
    k2: float = 0.0
    p1: float = 0.0
    p2: float = 0.0
    k3: float = 0.0
    k4: float = 0.0
    k5: float = 0.0
    k6: float = 0.0

    def distort(self, point: ArrayLike) -> Array:
        """Distorted coordinates of undistorted ones, (..., 2)."""
        flat = np.asarray(point, np.float64)
        r2 = (flat * flat).sum(axis=-1, keepdims=True)
        above = 1.0 + r2 * (self.k1 + r2 * (self.k2 + r2 * self.k3))
        below = 1.0 + r2 * (self.k4 + r2 * (self.k5 + r2 * self.k6))
        sideways = PlumbBob(p1=self.p1, p2=self.p2).distort(flat) - flat
        return np.asarray(flat * (above / below) + sideways)


@dataclass(frozen=True)
class SourceCamera:
    """A camera of a capture, before its images are made straight.

    Raises:
        AirworthyError: If a number cannot be used.
    """

    width: int
    height: int
    fx: float
    """[px]; of a fisheye [px/rad]."""
    fy: float
    cx: float
    """Principal point [px]."""
    cy: float
    lens: PlumbBob | Rational | AnglePolynomial = STRAIGHT

    def __post_init__(self) -> None:
        if not (0 < self.width <= SIZE_MAX and 0 < self.height <= SIZE_MAX):
            raise AirworthyError(f"its camera has {self.width} x {self.height} pixels; expected 1 to {SIZE_MAX} a side")
        numbers = np.array([self.fx, self.fy, self.cx, self.cy, *vars(self.lens).values()], np.float64)
        if not (np.abs(numbers) < _LARGEST).all() or min(self.fx, self.fy) <= 1e-3:
            raise AirworthyError(f"its camera has the focal lengths {self.fx:.6g}, {self.fy:.6g} and numbers out of range")

    @property
    def straight(self) -> bool:
        """Whether it is a pinhole without distortion."""
        return not isinstance(self.lens, AnglePolynomial) and not any(vars(self.lens).values())

    def sized(self, width: int, height: int) -> SourceCamera:
        """The same camera for images of another size: the same field of view, so exact in these pixel coordinates."""
        across, down = width / self.width, height / self.height
        return replace(
            self, width=width, height=height, fx=self.fx * across, fy=self.fy * down, cx=self.cx * across, cy=self.cy * down
        )

    def distort(self, flat: ArrayLike) -> Array:
        """Where rays (x/z, y/z), (..., 2), meet the image of unit focal length, (..., 2)."""
        point = np.asarray(flat, np.float64)
        with np.errstate(all="ignore"):
            if not isinstance(self.lens, AnglePolynomial):
                return self.lens.distort(point)
            radius = np.linalg.norm(point, axis=-1, keepdims=True)
            gain = self.lens.radius(np.arctan(radius)) / np.where(radius > 0.0, radius, 1.0)
            return np.asarray(point * np.where(radius > 0.0, gain, 1.0))

    def pixels(self, flat: ArrayLike) -> Array:
        """Pixels of rays (x/z, y/z), (..., 2)."""
        return self.distort(flat) * (self.fx, self.fy) + (self.cx, self.cy)

    def reach(self, radius_max: float) -> float:
        """Largest |(x/z, y/z)| up to `radius_max` below which the lens does not fold its image over, in any direction.

        Beyond, polynomials fitted to an image go anywhere, and may lead what is far outside back into it.
        """
        if self.straight or not radius_max > 0.0:
            return radius_max
        turn = np.linspace(0.0, 2.0 * np.pi, _DIRECTIONS, endpoint=False)
        way = np.stack((np.cos(turn), np.sin(turn)), axis=-1)
        radius = np.linspace(0.0, radius_max, _RADII)
        points = radius[:, None, None] * way
        step = 1e-5 * max(radius_max, 1e-3)
        slopes = [(self.distort(points + e) - self.distort(points - e)) / (2.0 * step) for e in step * np.eye(2)]
        area = slopes[0][..., 0] * slopes[1][..., 1] - slopes[0][..., 1] * slopes[1][..., 0]
        folded = np.flatnonzero(~(area > 1e-6).all(axis=1))
        return float(radius[max(int(folded[0]) - 1, 0)]) if folded.size else radius_max


def camera_of(model: str, width: int, height: int, parameters: Sequence[float]) -> SourceCamera:
    """A camera of one of COLMAP's models.

    Raises:
        AirworthyError: The model is none of `MODELS`, its parameters are not as many as it has, or a number cannot be used.
    """
    if model not in MODELS:
        raise AirworthyError(f"its camera model is {model}; known are {', '.join(MODELS)}")
    names = MODELS[model]
    if len(parameters) != len(names):
        raise AirworthyError(f"its camera has {len(parameters)} parameters; {model} has {len(names)}")
    given: dict[str, Any] = dict(zip(names, map(float, parameters), strict=True))
    if "f" in given:
        given["fx"] = given["fy"] = given.pop("f")
    pinhole = {name: given.pop(name) for name in ("fx", "fy", "cx", "cy")}
    kind: Any = AnglePolynomial if model.endswith("FISHEYE") else Rational if model == "FULL_OPENCV" else PlumbBob
    return SourceCamera(width, height, **pinhole, lens=kind(**given))
