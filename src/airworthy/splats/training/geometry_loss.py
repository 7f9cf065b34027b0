"""What a loss says of surfaces rather than colours: normals of Gaussians against those of the rendered depth, and smooth depth.

Sources: Huang, Yu, Chen, Geiger, Gao: 2D Gaussian splatting (2024), equation 14, for normals that agree; Chen et al.: PGSR
(2024),
for leaving out edges of the image; the smoothness is the usual edge-aware one (Godard, Mac Aodha, Brostow, 2017), of second
differences of inverse depth, which vanish on every plane, however slanted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayF32, ArrayLike
from airworthy.core.errors import AirworthyError

__all__ = ["GeometryLoss", "SurfaceImages", "edge_weights", "normals_of_depth"]

COVERED = 0.5
"""Alpha from which a pixel's depth is that of a surface."""
# Ours: a step of a tenth of the depth from one pixel to the next but one is an outline; a surface seen so flat says little.
_JUMP = 0.1
_EDGE = 10.0
"""How fast a pixel loses weight with the change of colour across it: at 0.1 per pixel it has a third."""


@dataclass(frozen=True, eq=False)
class SurfaceImages:
    """What splats show of surfaces to one pinhole."""

    depth: ArrayAny
    """(H, W) along the axis [m], +inf where nothing is."""
    alpha: ArrayAny
    """(H, W)"""
    normal: ArrayAny
    """(H, W, 3) blended, towards the camera, in its frame."""


class GeometryLoss:
    """The loss of surfaces: means over all pixels of an image.

    Args:
        normal: Weight of 1 - M N, M the blended normal of the Gaussians and N that of the rendered depth.
        smooth: Weight of the second differences of inverse depth, times the depth.

    Raises:
        AirworthyError: A weight is below 0.
    """

    def __init__(self, normal: float = 0.05, smooth: float = 0.0):
        if not (normal >= 0.0 and smooth >= 0.0):
            raise AirworthyError(f"A loss of surfaces got the weights {normal} and {smooth}; expected 0 or more.")
        self.normal, self.smooth = normal, smooth

    def __call__(self, images: SurfaceImages, edges: ArrayF32, intrinsics: ArrayLike) -> tuple[float, ArrayF32, ArrayF32]:
        """Return the loss and its derivatives with respect to depth (H, W) and normal (H, W, 3).

        Weights, and which pixels count, are held still.

        Args:
            images: As rendered.
            edges: (H, W) weight of each pixel (`edge_weights`); 0 where it does not show the scene.
            intrinsics: fx, fy, cx, cy [px].
        """
        inverse, weight = self._weights(images, edges)
        slope, normal_slope, value = np.zeros_like(inverse), np.zeros_like(images.normal), 0.0
        if self.normal:
            part, by_inverse, normal_slope = self._normals(inverse, images.normal, weight, intrinsics)
            slope, value = slope + by_inverse, value + part
        if self.smooth:
            part, by_inverse = self._smoothness(inverse, weight)
            slope, value = slope + by_inverse, value + part
        return float(value), np.asarray(-slope * inverse * inverse, np.float32), np.asarray(normal_slope, np.float32)

    def _weights(self, images: SurfaceImages, edges: ArrayF32) -> tuple[ArrayAny, ArrayAny]:
        """Inverse depth [1/m], and weights (H - 2, W - 2) of the inner pixels, whose neighbours are on the same surface."""
        seen = (images.alpha > COVERED) & np.isfinite(images.depth)
        inverse = np.where(seen, 1.0 / np.where(seen, images.depth, 1.0), np.float32(0.0))
        weight = edges[1:-1, 1:-1] * images.alpha[1:-1, 1:-1] * _inner(seen)
        middle = inverse[1:-1, 1:-1]
        for across in (inverse[1:-1, 2:] - inverse[1:-1, :-2], inverse[2:, 1:-1] - inverse[:-2, 1:-1]):
            weight = weight * (np.abs(across) <= _JUMP * middle)
        return inverse, weight

    def _normals(
        self, inverse: ArrayAny, normal: ArrayAny, weight: ArrayAny, intrinsics: ArrayLike
    ) -> tuple[float, ArrayAny, ArrayAny]:
        found, length, lens = _facing(inverse, intrinsics)
        share = np.float32(self.normal / inverse.size) * weight
        own = normal[1:-1, 1:-1]
        alike = np.sum(own * found, axis=-1)
        value = float(np.sum(share * (1.0 - alike), dtype=np.float64))
        by_normal = np.zeros_like(normal)
        by_normal[1:-1, 1:-1] = -share[..., None] * found
        # N = -u / |u|: of u it is -(g - N (N g)) / |u|, g = -share M being that of N.
        by_u = (share / length)[..., None] * (own - found * alike[..., None])
        return value, _spread(by_u, lens, inverse.shape), by_normal

    def _smoothness(self, inverse: ArrayAny, weight: ArrayAny) -> tuple[float, ArrayAny]:
        middle, slope, value = inverse[1:-1, 1:-1], np.zeros_like(inverse), 0.0
        # In shares of the depth, whose derivative is left out: what is far off must not be the smoother for it.
        share = np.float32(self.smooth / inverse.size) * weight / np.where(middle > 0.0, middle, 1.0)
        for before, after in (
            ((slice(1, -1), slice(None, -2)), (slice(1, -1), slice(2, None))),
            ((slice(None, -2), slice(1, -1)), (slice(2, None), slice(1, -1))),
        ):
            bend = inverse[before] - 2.0 * middle + inverse[after]
            value += float(np.sum(share * np.abs(bend), dtype=np.float64))
            found = share * np.sign(bend)
            slope[before] += found
            slope[after] += found
            slope[1:-1, 1:-1] -= 2.0 * found
        return value, slope


def edge_weights(truth: ArrayF32, mask: ArrayBool | None = None) -> ArrayF32:
    """Return how much each pixel (H, W) counts in a loss of surfaces: little where colours (H, W, 3) change, where one surface
    often ends, and nothing where `mask` says that it does not show the scene.

    Args:
        truth: The photograph, in [0, 1].
        mask: (H, W) where it shows the scene; None: everywhere.
    """
    grey = truth.mean(axis=-1)
    change = np.zeros_like(grey)
    change[:, 1:-1] = np.abs(grey[:, 2:] - grey[:, :-2])
    change[1:-1] = np.maximum(change[1:-1], np.abs(grey[2:] - grey[:-2]))
    weight = np.exp(np.float32(-0.5 * _EDGE) * change)
    return np.asarray(weight if mask is None else weight * mask, np.float32)


def normals_of_depth(depth: ArrayAny, intrinsics: ArrayLike) -> Array:
    """Return unit normals (H, W, 3) of a depth image, towards the camera, in its frame; zero at the border and beside nothing.

    A plane's inverse depth changes evenly over a pinhole's image, and how it does is the plane's normal: with b = 1 / z,
    n = (fx b_x, fy b_y, b - (x - cx) b_x - (y - cy) b_y).

    Args:
        depth: (H, W) along the axis [m], +inf where nothing is.
        intrinsics: fx, fy, cx, cy [px].
    """
    inverse = 1.0 / np.asarray(depth, np.float64)
    found = np.zeros((*inverse.shape, 3))
    some = _inner(inverse > 0.0)
    found[1:-1, 1:-1] = np.where(some[..., None], _facing(inverse, intrinsics)[0], 0.0)
    return found


def _inner(seen: ArrayBool) -> ArrayBool:
    """(H - 2, W - 2) which of the inner pixels are seen with their four neighbours."""
    return np.asarray(seen[1:-1, 1:-1] & seen[1:-1, 2:] & seen[1:-1, :-2] & seen[2:, 1:-1] & seen[:-2, 1:-1])


def _facing(inverse: ArrayAny, intrinsics: ArrayLike) -> tuple[ArrayAny, ArrayAny, tuple[ArrayAny, ...]]:
    """Return unit normals (H - 2, W - 2, 3) of inner pixels, lengths they had, and fx, fy, x - cx, y - cy."""
    fx, fy, cx, cy = np.asarray(intrinsics, inverse.dtype)
    height, width = inverse.shape
    x = (np.arange(1, width - 1) + 0.5).astype(inverse.dtype) - cx
    y = ((np.arange(1, height - 1) + 0.5).astype(inverse.dtype) - cy)[:, None]
    across = 0.5 * (inverse[1:-1, 2:] - inverse[1:-1, :-2])
    down = 0.5 * (inverse[2:, 1:-1] - inverse[:-2, 1:-1])
    away = np.stack([fx * across, fy * down, inverse[1:-1, 1:-1] - x * across - y * down], axis=-1)
    length = np.sqrt(np.sum(away * away, axis=-1)) + inverse.dtype.type(1e-12)
    return -away / length[..., None], length, (fx, fy, x, y)


def _spread(by_away: ArrayAny, lens: tuple[ArrayAny, ...], shape: tuple[int, int]) -> ArrayAny:
    """Return derivatives with respect to inverse depth (H, W) from those with respect to normals not yet of length 1."""
    fx, fy, x, y = lens
    slope = np.zeros(shape, by_away.dtype)
    across = 0.5 * (fx * by_away[..., 0] - x * by_away[..., 2])
    down = 0.5 * (fy * by_away[..., 1] - y * by_away[..., 2])
    slope[1:-1, 1:-1] += by_away[..., 2]
    slope[1:-1, 2:] += across
    slope[1:-1, :-2] -= across
    slope[2:, 1:-1] += down
    slope[:-2, 1:-1] -= down
    return slope
