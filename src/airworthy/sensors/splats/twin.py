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

from airworthy.sensors.splats.native_text import LEAST_ALPHA, LEAST_LEFT, MOST_ALPHA
from airworthy.sensors.splats.views import DILATION, slope_limits

Array = NDArray[Any]
"""float64, or complex for derivatives by a complex step: every choice here looks at real parts."""


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
    splats: Any,
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
    to_camera = rotations(np.asarray(attitude)[None])[0].T
    away = splats.position - np.asarray(position)
    inside = away @ to_camera.T
    ahead = np.flatnonzero(inside[:, 2].real > near)
    ahead = ahead[np.argsort(inside[ahead, 2].real, kind="stable")]
    x, y, z = inside[ahead].T
    low_x, high_x, low_y, high_y = slope_limits(width, height, np.array([[fx, fy, cx, cy]]))[0]
    jacobian = np.zeros((len(ahead), 2, 3), inside.dtype)
    jacobian[:, 0, 0], jacobian[:, 0, 2] = fx / z, -fx / z * np.minimum(np.maximum(x / z, low_x), high_x)
    jacobian[:, 1, 1], jacobian[:, 1, 2] = fy / z, -fy / z * np.minimum(np.maximum(y / z, low_y), high_y)
    flat = jacobian @ to_camera @ (rotations(splats.rotation[ahead]) * splats.scale[ahead, None, :])
    bare = flat @ flat.swapaxes(1, 2)
    wide = bare + dilation * np.eye(2)
    opacity = splats.opacity[ahead] + 0.0
    if antialiased:
        opacity = opacity * np.sqrt(np.linalg.det(bare) / np.linalg.det(wide))
    mean = np.stack([fx * x / z + cx, fy * y / z + cy], axis=1)
    return Projected(ahead, mean, np.linalg.inv(wide), opacity, z, colours(splats.harmonics, away)[ahead])


def rotations(quaternion: Array) -> Array:
    """Rotations (n, 3, 3) of unit quaternions x, y, z, w (n, 4)."""
    x, y, z, w = (quaternion + np.float64(0.0)).T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), -1, 0)


def colours(harmonics: Array, away: Array) -> Array:
    """Colours (n, 3) of coefficients (n, k, 3) seen along directions `away` (n, 3), of any length."""
    x, y, z = (away / np.sqrt(np.sum(away * away, axis=1, keepdims=True) + 1e-30)).T
    one, pi = np.ones_like(x), np.pi
    basis = [
        np.sqrt(1 / (4 * pi)) * one,
        *(np.sqrt(3 / (4 * pi)) * v for v in (-y, z, -x)),
        *(np.sqrt(15 / (4 * pi)) * v for v in (x * y, -y * z)),
        np.sqrt(5 / (16 * pi)) * (2 * z * z - x * x - y * y),
        *(np.sqrt(15 / (4 * pi)) * v for v in (-x * z, 0.5 * (x * x - y * y))),
        np.sqrt(35 / (32 * pi)) * -y * (3 * x * x - y * y),
        np.sqrt(105 / (4 * pi)) * x * y * z,
        np.sqrt(21 / (32 * pi)) * -y * (4 * z * z - x * x - y * y),
        np.sqrt(7 / (16 * pi)) * z * (2 * z * z - 3 * x * x - 3 * y * y),
        np.sqrt(21 / (32 * pi)) * -x * (4 * z * z - x * x - y * y),
        np.sqrt(105 / (16 * pi)) * z * (x * x - y * y),
        np.sqrt(35 / (32 * pi)) * -x * (x * x - 3 * y * y),
    ]
    values = np.stack(basis[: harmonics.shape[1]], axis=1)
    return np.maximum(0.5 + np.einsum("nk,nkc->nc", values, harmonics), 0.0)


def render(
    splats: Any,
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
    kind = np.result_type(seen.mean, seen.precision, seen.opacity, seen.colour)
    left, rgb = np.ones((height, width), kind), np.zeros((height, width, 3), kind)
    mean_depth, half_depth = np.zeros((height, width), kind), np.full((height, width), np.inf, kind)
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
