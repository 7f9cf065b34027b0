"""The renderer as plain NumPy in float64, every Gaussian at every pixel: what the kernels are tested against.

Source of the equations: Zwicker, Pfister, van Baar, Gross: EWA volume splatting (2001), for the linearised projection; Kerbl,
Kopanas, Leimkuehler, Drettakis: 3D Gaussian splatting (2023), for opacity, harmonics and compositing; Yu et al.: Mip-splatting
(2024), for the opacity of Gaussians narrower than a pixel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.scenes.splats.harmonics import basis
from airworthy.scenes.splats.record import Splats
from airworthy.sensors.splats.cloud import rotation_matrices
from airworthy.sensors.splats.native_text import LEAST_ALPHA, LEAST_LEFT, MOST_ALPHA
from airworthy.sensors.splats.views import DILATION, slope_limits

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Projected:
    """Gaussians in an image, nearest first."""

    index: NDArray[np.intp]
    """Of the cloud's Gaussians, (n,)."""
    mean: Array
    """(n, 2) [px]."""
    precision: Array
    """Inverse covariance (n, 2, 2) [1/px^2]."""
    opacity: Array
    depth: Array
    colour: Array
    """(n, 3)"""


def project(
    splats: Splats,
    width: int,
    height: int,
    intrinsics: ArrayLike,
    position: ArrayLike,
    attitude: ArrayLike,
    antialiased: bool = False,
    near: float = 0.05,
    dilation: float = DILATION,
) -> Projected:
    """Gaussians of a cloud in one camera's image."""
    fx, fy, cx, cy = np.asarray(intrinsics, np.float64)
    to_camera = rotation_matrices(np.asarray(attitude, np.float64)[None])[0].T
    away = splats.position.astype(np.float64) - np.asarray(position, np.float64)
    inside = away @ to_camera.T
    ahead = np.flatnonzero(inside[:, 2] > near)
    ahead = ahead[np.argsort(inside[ahead, 2], kind="stable")]
    x, y, z = inside[ahead].T
    low_x, high_x, low_y, high_y = slope_limits(width, height, np.array([[fx, fy, cx, cy]]))[0]
    jacobian = np.zeros((len(ahead), 2, 3))
    jacobian[:, 0, 0], jacobian[:, 0, 2] = fx / z, -fx / z * np.clip(x / z, low_x, high_x)
    jacobian[:, 1, 1], jacobian[:, 1, 2] = fy / z, -fy / z * np.clip(y / z, low_y, high_y)
    axes = rotation_matrices(splats.rotation[ahead]) * splats.scale[ahead, None, :].astype(np.float64)
    flat = jacobian @ to_camera @ axes
    bare = flat @ flat.swapaxes(1, 2)
    wide = bare + dilation * np.eye(2)
    opacity = splats.opacity[ahead].astype(np.float64)
    if antialiased:
        opacity = opacity * np.sqrt(np.maximum(np.linalg.det(bare), 0.0) / np.linalg.det(wide))
    mean = np.stack([fx * x / z + cx, fy * y / z + cy], axis=1)
    return Projected(ahead, mean, np.linalg.inv(wide), opacity, z, colours(splats, away)[ahead])


def colours(splats: Splats, away: Array) -> Array:
    """Colours (n, 3) seen along directions `away` (n, 3), of any length."""
    unit = away / np.maximum(np.linalg.norm(away, axis=1, keepdims=True), 1e-12)
    return np.maximum(0.5 + np.einsum("nk,nkc->nc", basis(unit, splats.degree), splats.harmonics.astype(np.float64)), 0.0)


def render(
    splats: Splats,
    width: int,
    height: int,
    intrinsics: ArrayLike,
    position: ArrayLike,
    attitude: ArrayLike,
    background: ArrayLike = (0.0, 0.0, 0.0),
    depth_mode: str = "expected",
    **options: Any,
) -> dict[str, Array]:
    """Images of one camera: `rgb` (H, W, 3), `depth` and `alpha` (H, W); arguments as of `SplatRenderer.render`."""
    seen = project(splats, width, height, intrinsics, position, attitude, **options)
    x, y = np.arange(width) + 0.5, (np.arange(height) + 0.5)[:, None]
    left, rgb = np.ones((height, width)), np.zeros((height, width, 3))
    mean_depth, half_depth = np.zeros((height, width)), np.full((height, width), np.inf)
    for mean, form, opacity, depth, colour in zip(
        seen.mean, seen.precision, seen.opacity, seen.depth, seen.colour, strict=True
    ):
        dx, dy = x - mean[0], y - mean[1]
        alpha = opacity * np.exp(-0.5 * (form[0, 0] * dx * dx + 2.0 * form[0, 1] * dx * dy + form[1, 1] * dy * dy))
        alpha = np.where((alpha >= LEAST_ALPHA) & (left >= LEAST_LEFT), np.minimum(alpha, MOST_ALPHA), 0.0)
        rgb += (alpha * left)[..., None] * colour
        mean_depth += alpha * left * depth
        rest = left * (1.0 - alpha)
        half_depth = np.where((left > 0.5) & (rest <= 0.5), depth, half_depth)
        left = rest
    seen_alpha = 1.0 - left
    mean_depth = np.where(seen_alpha >= LEAST_ALPHA, mean_depth / np.maximum(seen_alpha, LEAST_ALPHA), np.inf)
    rgb += left[..., None] * np.asarray(background, np.float64)
    return {"rgb": rgb, "depth": half_depth if depth_mode == "median" else mean_depth, "alpha": seen_alpha}
