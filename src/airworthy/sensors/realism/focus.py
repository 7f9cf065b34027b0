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
from airworthy.sensors.realism.pieces import DepthOfField

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
        point: On the unit disc, (2,). It is turned about the axis from pixel to pixel, so that few points look like grain and
            not like so many edges.
    """
    offset = np.zeros_like(table.directions)
    offset[..., :2] = 0.5 * lens.aperture * _turned(np.asarray(point, np.float64), table.height, table.width)
    cosine = table.directions @ table.axis
    usable = cosine > _SHARP_ANGLE
    target = table.directions * (lens.focus / np.where(usable, cosine, 1.0))[..., None]
    directions = np.where(usable[..., None], target - offset, table.directions)
    origins = np.where(usable[..., None], offset, 0.0)
    return RayTable(directions, origins if table.origins is None else table.origins + origins, table.axis)


def _turned(point: Floats, height: int, width: int) -> Floats:
    """A point (2,) turned by an angle that differs between neighbours, (H, W, 2): gradient noise of Jimenez (2014)."""
    row, column = np.arange(height)[:, None], np.arange(width)[None, :]
    angle = 2.0 * np.pi * np.mod(52.9829189 * np.mod(0.06711056 * column + 0.00583715 * row, 1.0), 1.0)
    cosine, sine = np.cos(angle), np.sin(angle)
    return np.stack([cosine * point[0] - sine * point[1], sine * point[0] + cosine * point[1]], -1)


def gathered(image: NDArray[np.float32], depth: NDArray[Any], lens: ThinLens, samples: int) -> NDArray[np.float32]:
    """An image blurred by its own depth: every pixel takes from places of a disc those whose own disc reaches it.

    What hides behind an edge is not known to the image, so the fringe of near things that are out of focus is approximate.
    Pixels that nothing wider than a pixel reaches stay as they are.

    Args:
        image: Linear, (c, H, W, 3).
        depth: [m], (c, H, W); +inf: nothing.
        lens: Its aperture and focus.
        samples: Places on each disc.
    """
    radius = np.minimum(0.5 * lens.circle_pixels(depth), _GATHER_MAX * image.shape[1]).astype(np.float32)
    out = image.copy()
    for number in range(len(image)):
        wide = radius[number] >= 0.5
        if not wide.any():
            continue
        reach = int(np.ceil(radius[number].max()))
        rows, columns = np.flatnonzero(wide.any(1)), np.flatnonzero(wide.any(0))
        # Only what a disc can touch; the window is wide enough to hold all that reaches into its inner part.
        window = tuple(slice(max(k[0] - 2 * reach, 0), k[-1] + 2 * reach + 1) for k in (rows, columns))
        out[number][window] = _gathered(image[number][window], depth[number][window], radius[number][window], reach, samples)
    return out


def _gathered(
    image: NDArray[np.float32], depth: NDArray[Any], radius: NDArray[np.float32], reach: int, samples: int
) -> NDArray[np.float32]:
    from scipy.ndimage import maximum_filter

    around = maximum_filter(radius, size=2 * reach + 1, mode="nearest")
    touched = np.flatnonzero(around >= 0.5)
    flat, far, own, width = image.reshape(-1, 3), depth.reshape(-1), radius.reshape(-1), image.shape[1]
    row, column = np.divmod(touched, width)
    disc, mine = around.reshape(-1)[touched], own[touched]
    weight = 1.0 / np.maximum(np.pi * mine**2, 1.0)  # the pixel itself: one of those on its disc
    total = weight[:, None] * flat[touched]
    for x, y in aperture_points(samples):
        i = np.clip(np.rint(row + y * disc), 0, len(image) - 1).astype(np.int64)
        j = np.clip(np.rint(column + x * disc), 0, width - 1).astype(np.int64)
        there = i * width + j
        # Farther things do not spill over nearer ones that are sharper than they.
        spill = np.where(far[there] > far[touched] + 0.1, np.minimum(own[there], mine), own[there])
        away = np.hypot(i - row, j - column)
        share = np.clip(spill - away + 0.5, 0.0, 1.0) * (disc / np.maximum(spill, 0.5)) ** 2 / samples
        total += share[:, None] * flat[there]
        weight += share
    out = image.copy()
    out.reshape(-1, 3)[touched] = total / weight[:, None]
    return out
