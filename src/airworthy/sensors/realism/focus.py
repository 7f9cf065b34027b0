"""Depth of field of a thin lens.

A camera's focal length in pixels is the distance v of the image behind the lens; in focus at depth s the lens has the focal
length f = v s / (v + s) and the aperture A = f / N. A point at depth d becomes a disc of diameter A f |d - s| / (d (s - f)).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.geometry import RayTable
from airworthy.sensors.realism.settings import DepthOfField

__all__ = ["ThinLens", "aperture_points", "gathered", "lens_table"]

Floats = NDArray[np.float64]
_GOLDEN = np.pi * (3.0 - np.sqrt(5.0))
_SHARP_ANGLE = 0.05
"""Rays whose cosine is below stay as they are: they meet the focus plane far off, or never."""
_GATHER_MAX = 0.05
"""Largest radius that is gathered from, of the image's height."""


@dataclass(frozen=True)
class ThinLens:
    """Lens of a camera, in metres and pixels."""

    focal_length: float
    """[m]"""
    aperture: float
    """Diameter [m]."""
    focus: float
    """[m]"""
    pixel: float
    """Side of a pixel on the chip [m]."""

    @classmethod
    def of(cls, settings: DepthOfField, focal_pixels: float, height: int) -> ThinLens:
        """The lens of a camera with a focal length [px] and so many rows."""
        pixel = settings.sensor_height / height
        image = focal_pixels * pixel
        focal = image * settings.focus / (image + settings.focus)
        return cls(focal, focal / settings.f_number, settings.focus, pixel)

    def circle(self, depth: ArrayLike) -> Floats:
        """Diameter of the disc that points at depths [m] become, on the chip [m]; +inf is as far as it gets."""
        d, s, f = np.asarray(depth, np.float64), self.focus, self.focal_length
        with np.errstate(invalid="ignore", divide="ignore"):
            spread = np.where(np.isfinite(d), np.abs(1.0 - s / d), 1.0)
        return np.asarray(self.aperture * f * spread / (s - f))

    def circle_pixels(self, depth: ArrayLike) -> Floats:
        """The same in pixels."""
        return self.circle(depth) / self.pixel


def aperture_points(samples: int) -> Floats:
    """Points evenly over the unit disc (samples, 2), in an order in which neighbours lie apart (Vogel, 1979)."""
    number = np.arange(samples)
    radius, angle = np.sqrt((number + 0.5) / samples), number * _GOLDEN
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], -1)[_spread(samples)]


def _spread(samples: int) -> NDArray[np.int64]:
    """A permutation that steps by about the golden section: instants of an exposure meet places all over the lens."""
    stride = max(round(samples * 0.618), 1)
    while np.gcd(stride, samples) != 1:
        stride += 1
    return (np.arange(samples) * stride) % samples


def lens_table(table: RayTable, lens: ThinLens, point: ArrayLike) -> RayTable:
    """The rays of a camera through one point of its lens, each to where it met the plane of focus before.

    Args:
        table: Rays through the middle of the lens, in the optical frame (z forward).
        lens: Aperture and focus.
        point: On the unit disc, (2,).
    """
    offset = np.array([*(0.5 * lens.aperture * np.asarray(point, np.float64)), 0.0])
    cosine = table.directions @ table.axis
    usable = cosine > _SHARP_ANGLE
    target = table.directions * (lens.focus / np.where(usable, cosine, 1.0))[..., None]
    directions = np.where(usable[..., None], target - offset, table.directions)
    origins = np.where(usable[..., None], offset, 0.0)
    return RayTable(directions, origins if table.origins is None else table.origins + origins, table.axis)


def gathered(image: NDArray[np.float32], depth: NDArray[Any], lens: ThinLens, samples: int) -> NDArray[np.float32]:
    """An image blurred by its own depth: every pixel takes from places of a disc those whose own disc reaches it.

    What hides behind an edge is not known to the image, so the fringe of near things that are out of focus is approximate.

    Args:
        image: Linear, (c, H, W, 3).
        depth: [m], (c, H, W); +inf: nothing.
        lens: Its aperture and focus.
        samples: Places besides the pixel itself.
    """
    height, width = image.shape[1:3]
    radius = np.minimum(0.5 * lens.circle_pixels(depth), _GATHER_MAX * height).astype(np.float32)
    out = np.empty_like(image)
    for number in range(len(image)):
        out[number] = _gathered(image[number], depth[number], radius[number], samples, (height, width))
    return out


def _gathered(
    image: NDArray[np.float32], depth: NDArray[Any], radius: NDArray[np.float32], samples: int, size: tuple[int, int]
) -> NDArray[np.float32]:
    reach = float(radius.max(initial=0.0))
    if reach < 0.5:
        return image.copy()  # nothing is spread over more than its own pixel
    row, column = np.arange(size[0])[:, None], np.arange(size[1])[None, :]
    # A pixel stands for its share of the disc: with `samples` places on it, that of one place.
    total, weight = image.copy(), np.ones(size, np.float32)
    for x, y in aperture_points(samples) * reach:
        i = np.clip(row + round(float(y)), 0, size[0] - 1)
        j = np.clip(column + round(float(x)), 0, size[1] - 1)
        away = float(np.hypot(x, y))
        # Farther things do not spill over nearer ones that are sharper than they.
        spill = np.where(depth[i, j] > depth + 0.1, np.minimum(radius[i, j], radius), radius[i, j])
        area = np.maximum(spill, 0.5) ** 2
        share = np.clip(spill - away + 0.5, 0.0, 1.0) * (reach**2 / area) / samples
        share = np.minimum(share, 8.0).astype(np.float32)
        total += share[..., None] * image[i, j]
        weight += share
    return total / weight[..., None]
