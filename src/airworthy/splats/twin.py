"""The renderer as plain NumPy in float64, every Gaussian at every pixel: what the kernels are tested against.

Source of the equations: Zwicker, Pfister, van Baar, Gross: EWA volume splatting (2001), for the linearised projection; Kerbl,
Kopanas, Leimkuehler, Drettakis: 3D Gaussian splatting (2023), for opacity, harmonics and compositing; Yu et al.: Mip-splatting
(2024), for the opacity of Gaussians narrower than a pixel; Zhang et al.: RaDe-GS (2024), for the depth along a ray at which a
Gaussian is densest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayAny, ArrayBool, ArrayIndex, ArrayLike
from airworthy.splats.cameras import DILATION, PINHOLE, lens_numbers, reduced_spread, slope_limits
from airworthy.splats.lens import Lens
from airworthy.splats.native_text import LEAST_ALPHA, LEAST_LEFT, MOST_ALPHA, PLANE_MOST, PLANE_SPREAD


@dataclass(frozen=True, eq=False)
class Projected:
    """Gaussians in an image, nearest first."""

    index: ArrayIndex
    """Of the cloud's Gaussians, (n,)."""
    mean: ArrayAny
    """(n, 2) [px]."""
    precision: ArrayAny
    """Inverse covariance (n, 2, 2) [1/px^2]."""
    opacity: ArrayAny
    depth: ArrayAny
    """By which they are ordered: along the axis, of a fisheye the distance."""
    colour: ArrayAny
    """(n, 3)"""
    lean: ArrayAny
    """(n, 2) derivatives of the logarithm of its plane's depth [1/px]."""
    normal: ArrayAny
    """(n, 3) its shortest axis, towards the camera, in the camera's frame."""


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
    lens: Lens | None = None,
    reduced: tuple[float, float] | None = None,
) -> Projected:
    """Return gaussians of a cloud in one camera's image.

    Args:
        splats: The cloud.
        width: Of the image [px].
        height: Of the image [px].
        intrinsics: fx, fy, cx, cy [px].
        position: (3,) [m], world.
        attitude: Quaternion x, y, z, w, camera to world.
        antialiased: Whether narrow Gaussians lose opacity.
        near: Least depth of a mean [m].
        dilation: Variance of a pixel's width [px^2].
        lens: How the camera bends rays; None: a pinhole.
        reduced: What the camera's image is resized by; None: nothing.
    """
    lens = lens or PINHOLE
    fx, fy, cx, cy = np.asarray(intrinsics, np.float64)
    to_camera = rotations(np.asarray(attitude)[None])[0].T
    away = splats.position - np.asarray(position)
    inside = away @ to_camera.T
    image_point, derivative, depth, shown = mapped(lens, inside, width, height, (fx, fy, cx, cy))
    ahead = np.flatnonzero(shown & (depth.real > near))
    ahead = ahead[np.argsort(depth[ahead].real, kind="stable")]
    jacobian = derivative[ahead] * np.array([fx, fy])[:, None]
    flat = jacobian @ to_camera @ (rotations(splats.rotation[ahead]) * splats.scale[ahead, None, :])
    bare = flat @ flat.swapaxes(1, 2)
    wide = kept = bare + dilation * np.eye(2)
    if reduced is not None:
        kept, wide = (bare + np.diag(spread) for spread in reduced_spread(reduced, dilation))
    opacity = splats.opacity[ahead] + 0.0
    if antialiased or reduced is not None:
        opacity = opacity * np.sqrt(np.linalg.det(bare if antialiased else kept) / np.linalg.det(wide))
    mean = image_point[ahead] * (fx, fy) + (cx, cy)
    # A row of the linear map for the depth: along the axis, of a fisheye along the ray to the mean.
    outward = away[ahead] / depth[ahead, None] if lens.model == "fisheye" else np.broadcast_to(to_camera[2], (len(ahead), 3))
    axes = rotations(splats.rotation[ahead]) * splats.scale[ahead, None, :]
    steep = np.einsum("nik,nk->ni", flat, np.einsum("nj,njk->nk", outward, axes))
    lean = np.linalg.solve(bare + PLANE_SPREAD * np.eye(2), steep[..., None])[..., 0] / depth[ahead, None]
    normal = _normals(axes, splats.scale[ahead], away[ahead]) @ to_camera.T
    shades = colours(splats.harmonics, away)[ahead]
    return Projected(ahead, mean, np.linalg.inv(wide), opacity, depth[ahead], shades, lean, normal)


def _normals(axes: ArrayAny, scale: ArrayAny, away: ArrayAny) -> ArrayAny:
    """Return unit vectors (n, 3) along the shortest axes, towards the camera, in the frame of the cloud."""
    shortest = np.argmin(scale.real, axis=1)
    normal = np.take_along_axis(axes, shortest[:, None, None], axis=2)[..., 0]
    normal = normal / np.sqrt(np.sum(normal * normal, axis=1, keepdims=True))
    return np.where(np.sum(normal * away, axis=1, keepdims=True).real > 0.0, -normal, normal)


def mapped(
    lens: Lens, point: ArrayAny, width: int, height: int, intrinsics: tuple[float, ...]
) -> tuple[ArrayAny, ArrayAny, ArrayAny, ArrayBool]:
    """Return points of the camera's frame (n, 3) in the image of unit focal length.

    Args:
        lens: How the camera bends rays.
        point: (n, 3) [m], camera's frame, z forward.
        width: Of the image [px].
        height: Of the image [px].
        intrinsics: fx, fy, cx, cy [px].

    Returns:
        Place (n, 2); its derivative (n, 2, 3), at ray slopes held within the image and its surroundings; depth (n,), of a
        fisheye the distance; which the lens shows, were they far enough.
    """
    if lens.model == "fisheye":
        image_point, derivative, angle = lens.unroll(point)
        return image_point, derivative, np.sqrt(np.sum(point * point, axis=1)), angle.real <= lens.limit
    z = np.where(point[:, 2].real > 0.0, point[:, 2], 1.0)
    slope = point[:, :2] / z[:, None]
    shown = point[:, 2].real > 0.0
    if lens.straight:
        limits, bent = slope_limits(width, height, np.array([intrinsics]))[0], slope
    else:
        limits, bent = lens_numbers(lens, width, height, tuple(intrinsics))["slopes"], lens.bend(slope)
        shown = shown & (np.linalg.norm(slope.real, axis=1) <= lens.limit)
    held = np.minimum(np.maximum(slope, limits[0::2]), limits[1::2])
    matrix = np.broadcast_to(np.eye(2), (len(z), 2, 2)) if lens.straight else lens.slopes(held)
    derivative = np.concatenate([matrix, -matrix @ held[:, :, None]], axis=2) / z[:, None, None]
    return bent, derivative, point[:, 2], shown


def rotations(quaternion: ArrayAny) -> ArrayAny:
    """Return rotations (n, 3, 3) of unit quaternions x, y, z, w (n, 4)."""
    x, y, z, w = (quaternion + np.float64(0.0)).T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), -1, 0)


def colours(harmonics: ArrayAny, away: ArrayAny) -> ArrayAny:
    """Return colours (n, 3) of coefficients (n, k, 3) seen along directions `away` (n, 3), of any length."""
    values = harmonics_basis(away, harmonics.shape[1])
    return np.maximum(0.5 + np.einsum("nk,nkc->nc", values, harmonics), 0.0)


def harmonics_basis(away: ArrayAny, count: int) -> ArrayAny:
    """Return the first real spherical harmonics (n, count) of directions `away` (n, 3), of any length."""
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
    return np.stack(basis[:count], axis=1)


def render(
    splats: Any,
    width: int,
    height: int,
    intrinsics: ArrayLike,
    position: ArrayLike,
    attitude: ArrayLike,
    background: ArrayLike = (0.0, 0.0, 0.0),
    depth_mode: str = "expected",
    limit: ArrayLike | None = None,
    lens: Lens | None = None,
    depth_at: str = "mean",
    **options: Any,
) -> dict[str, ArrayAny]:
    """Return images of one camera: `rgb` and `normal` (H, W, 3), `depth` and `alpha` (H, W); arguments as of
    `SplatRenderer.render`.

    Args:
        splats: The cloud.
        width: Of the image [px].
        height: Of the image [px].
        intrinsics: fx, fy, cx, cy [px].
        position: (3,) [m], world.
        attitude: Quaternion x, y, z, w, camera to world.
        background: (3,)
        depth_mode: `expected` or `median`.
        limit: (H, W) depth of something opaque [m]; None: nothing.
        lens: How the camera bends rays; None: a pinhole.
        depth_at: `mean` or `plane`.
        options: The others of `project`.
    """
    projected = project(splats, width, height, intrinsics, position, attitude, lens=lens, **options)
    farthest, along = np.inf if limit is None else np.asarray(limit, np.float64), np.ones(())
    if lens is not None and lens.model == "fisheye":
        along = lens.pixel_rays(width, height, intrinsics)[0][..., 2]
        farthest = np.where(np.isinf(farthest), np.inf, farthest / along)
    x, y = np.arange(width) + 0.5, (np.arange(height) + 0.5)[:, None]
    kind = np.result_type(projected.mean, projected.precision, projected.opacity, projected.colour, projected.normal)
    left, rgb, normals = np.ones((height, width), kind), np.zeros((height, width, 3), kind), np.zeros((height, width, 3), kind)
    mean_depth, half_depth = np.zeros((height, width), kind), np.full((height, width), np.inf, kind)
    for mean, form, opacity, depth, colour, lean, normal in zip(
        projected.mean, projected.precision, projected.opacity, projected.depth, projected.colour, projected.lean,
        projected.normal, strict=True,
    ):  # fmt: skip
        dx, dy = x - mean[0], y - mean[1]
        alpha = opacity * np.exp(-0.5 * (form[0, 0] * dx * dx + 2.0 * form[0, 1] * dx * dy + form[1, 1] * dy * dy))
        counts = (alpha >= LEAST_ALPHA) & (left >= LEAST_LEFT) & (depth.real <= farthest)
        alpha = np.where(counts, np.minimum(alpha, MOST_ALPHA), 0.0)
        rgb += (alpha * left)[..., None] * colour
        normals += (alpha * left)[..., None] * normal
        if depth_at == "plane":
            slope = lean[0] * dx + lean[1] * dy
            depth = depth / (1.0 - np.where(slope.real < PLANE_MOST, slope, PLANE_MOST))
        mean_depth += alpha * left * depth
        rest = left * (1.0 - alpha)
        half_depth = np.where((left > 0.5) & (rest <= 0.5), depth, half_depth)
        left = rest
    covered = 1.0 - left
    mean_depth = np.where(covered >= LEAST_ALPHA, mean_depth / np.maximum(covered, LEAST_ALPHA), np.inf)
    rgb += left[..., None] * np.asarray(background, np.float64)
    depths = half_depth if depth_mode == "median" else mean_depth
    known = np.isfinite(depths.real)
    depths = np.where(known, np.where(known, depths, 0.0) * along, np.inf)
    return {"rgb": rgb, "depth": depths, "alpha": covered, "normal": normals}
