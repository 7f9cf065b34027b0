"""Cameras as photogrammetry writes them: a pinhole, and what the lens does to it.

The upper left corner of the image is (0, 0), the centre of its first pixel (0.5, 0.5), as in COLMAP and here everywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from airworthy.capture._gate import clean
from airworthy.core.arrays import Array, ArrayFloat, ArrayLike, ArrayU8
from airworthy.core.errors import AirworthyError
from airworthy.optics.distortion import STRAIGHT, AnglePolynomial, PlumbBob
from airworthy.scenes.splats import SourceFrame

__all__ = ["MODELS", "CapturedFrame", "Listing", "Rational", "SourceCamera", "camera_of"]

SIZE_MAX = 65_536
_LARGEST = 1e6
_DIRECTIONS, _RADII = 16, 256
_NEWTON_STEPS, _STEEPEST, _FARTHEST = 30, 1.5, 1e3
"""Steps from a pixel to its ray; angle from the axis [rad] up to which a fisheye's is begun; |(x/z, y/z)| of the widest."""

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
        """Return distorted coordinates of undistorted ones, (..., 2)."""
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
        """Return the same camera for images of another size: the same field of view, so exact in these pixel coordinates."""
        across, down = width / self.width, height / self.height
        return replace(
            self, width=width, height=height, fx=self.fx * across, fy=self.fy * down, cx=self.cx * across, cy=self.cy * down
        )

    def distort(self, flat: ArrayLike) -> Array:
        """Return where rays (x/z, y/z), (..., 2), meet the image of unit focal length, (..., 2)."""
        point = np.asarray(flat, np.float64)
        with np.errstate(all="ignore"):
            if not isinstance(self.lens, AnglePolynomial):
                return self.lens.distort(point)
            radius = np.linalg.norm(point, axis=-1, keepdims=True)
            gain = self.lens.radius(np.arctan(radius)) / np.where(radius > 0.0, radius, 1.0)
            return np.asarray(point * np.where(radius > 0.0, gain, 1.0))

    def pixels(self, flat: ArrayLike) -> Array:
        """Return pixels of rays (x/z, y/z), (..., 2)."""
        return self.distort(flat) * (self.fx, self.fy) + (self.cx, self.cy)

    def rays(self, pixels: ArrayLike) -> Array:
        """Return rays (x/z, y/z), (..., 2), that meet pixels (..., 2); NaN for pixels that none meets.

        By Newton's method, from the ray that would meet the pixel without a lens; beyond where the lens folds its image over
        there is none.
        """
        target = (np.asarray(pixels, np.float64) - (self.cx, self.cy)) / (self.fx, self.fy)
        if self.straight:
            return target
        point = target
        if isinstance(self.lens, AnglePolynomial):
            radius = np.linalg.norm(target, axis=-1, keepdims=True)
            point = target * np.tan(np.minimum(radius, _STEEPEST)) / np.maximum(radius, 1e-300)
        for _ in range(_NEWTON_STEPS):
            step = 1e-6 * (1.0 + np.linalg.norm(point, axis=-1, keepdims=True))
            off = self.distort(point) - target
            sides = [self.distort(point + step * e) - self.distort(point - step * e) for e in np.eye(2)]
            slope = np.stack(sides, axis=-1) / (2.0 * step[..., None])
            with np.errstate(all="ignore"):
                area = slope[..., 0, 0] * slope[..., 1, 1] - slope[..., 0, 1] * slope[..., 1, 0]
                x = (slope[..., 1, 1] * off[..., 0] - slope[..., 0, 1] * off[..., 1]) / area
                y = (slope[..., 0, 0] * off[..., 1] - slope[..., 1, 0] * off[..., 0]) / area
            point = point - np.nan_to_num(np.stack((x, y), axis=-1), nan=0.0, posinf=0.0, neginf=0.0)
        radius = np.linalg.norm(point, axis=-1)
        found = np.linalg.norm(self.distort(point) - target, axis=-1) < 1e-9 * (1.0 + np.linalg.norm(target, axis=-1))
        seen = radius[found & (radius < _FARTHEST)]
        found &= radius <= (self.reach(1.001 * float(seen.max())) if len(seen) else 0.0)
        return np.where(found[..., None], point, np.nan)

    def reach(self, radius_max: float) -> float:
        """Return the largest |(x/z, y/z)| up to `radius_max` below which the lens does not fold its image over, in any
        direction.

        Beyond, polynomials fitted to an image go anywhere, and may lead what is far outside back into it.
        """
        if self.straight or not radius_max > 0.0:
            return radius_max
        turn = np.linspace(0.0, 2.0 * np.pi, _DIRECTIONS, endpoint=False)
        directions = np.stack((np.cos(turn), np.sin(turn)), axis=-1)
        radius = np.linspace(0.0, radius_max, _RADII)
        points = radius[:, None, None] * directions
        step = 1e-5 * max(radius_max, 1e-3)
        slopes = [(self.distort(points + e) - self.distort(points - e)) / (2.0 * step) for e in step * np.eye(2)]
        area = slopes[0][..., 0] * slopes[1][..., 1] - slopes[0][..., 1] * slopes[1][..., 0]
        folded = np.flatnonzero(~(area > 1e-6).all(axis=1))
        return float(radius[max(int(folded[0]) - 1, 0)]) if folded.size else radius_max


def camera_of(model: str, width: int, height: int, parameters: Sequence[float]) -> SourceCamera:
    """Return a camera of one of COLMAP's models.

    Args:
        model: Name in `MODELS`.
        width: Of the images [px].
        height: Of the images [px].
        parameters: In COLMAP's order for the model: focal lengths and principal point [px], then coefficients.

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


# -----------------------------------------------------------------------------------------------------------------------------
# What a data set says of its images before any of them is opened: names, cameras, poses; and of its points.

_EXAMPLES, _REASONS = 3, 50


@dataclass(frozen=True, eq=False)
class CapturedFrame:
    """An image that a data set lists."""

    name: str
    """As the set calls it, from the folder of the set."""
    camera: SourceCamera | None
    """None: a field of view without a size, see `angle`."""
    position: ArrayFloat
    """(3,) optical centre, frame of the set."""
    attitude: ArrayFloat
    """(4,) camera (x right, y down, z forward) to the frame of the set."""
    mask: str = ""
    """Name of an image that is white where the image is to be used."""
    angle: float = 0.0
    """Field of view across the image [rad], where the set gives no camera."""
    held_out: bool = False


@dataclass(eq=False)
class Listing:
    """A data set, listed."""

    what: str
    """In words: "transforms.json", "COLMAP, binary"."""
    frames: list[CapturedFrame] = field(default_factory=list)
    points: ArrayFloat | None = None
    """(m, 3), frame of the set."""
    colors: ArrayU8 | None = None
    metric: bool = False
    up: str = ""
    """The axis that the set says points up; "": it says none."""
    split: bool = False
    """Whether the set says which images are held out."""
    source: SourceFrame | None = None
    """The frame of the set that this one came from, and the similarity from there; None: it says none."""
    alignment: SourceFrame | None = None
    """The similarity from the frame of the set to the place that a file beside it tells; None: none does."""
    aligned_metric: bool = False
    """Whether that leads to metres."""
    rendered: bool = False
    """Whether the set says that its images are rendered ones."""
    notes: list[str] = field(default_factory=list)
    missing: Counter[str] = field(default_factory=Counter)
    """How many listed images cannot be used, by reason."""
    examples: dict[str, list[str]] = field(default_factory=dict)

    def skip(self, name: str, reason: str) -> None:
        """Leave an image out, and say so."""
        reason = reason if len(self.missing) < _REASONS or reason in self.missing else "is left out for a further reason"
        self.missing[reason] += 1
        examples = self.examples.setdefault(reason, [])
        if len(examples) < _EXAMPLES:
            examples.append(clean(name))

    @property
    def skipped(self) -> tuple[str, ...]:
        """A sentence for each reason why images are missing."""
        return tuple(self._sentence(reason, count) for reason, count in self.missing.items())

    def _sentence(self, reason: str, count: int) -> str:
        names = ", ".join(self.examples[reason])
        if count == 1:
            return f"1 listed image left out ({names}): {reason}"
        more = ", ..." if count > len(self.examples[reason]) else ""
        return f"{count:,} listed images left out ({names}{more}): {reason}"
