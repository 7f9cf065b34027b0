"""A cloud to begin with: from sparse points, or from nothing but the views."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from airworthy.core.arrays import Array, ArrayBool, ArrayFloat, ArrayInt
from airworthy.scenes.splats.record import C0, Splats
from airworthy.splats.cloud import rotation_matrices


def splats_at(points: ArrayFloat, colors: ArrayFloat, opacity: float = 0.1, least: float = 1e-6) -> Splats:
    """Round Gaussians at points, as wide as the root mean square distance to their three nearest neighbours.

    Args:
        points: (n, 3) [m].
        colors: (n, 3) in [0, 1], sRGB-encoded.
        opacity: Of each.
        least: Standard deviation [m] where points coincide.
    """
    from scipy.spatial import cKDTree

    n = len(points)
    # Four: the nearest of all to a point is the point itself.
    near = cKDTree(points).query(points, k=min(4, n))[0] if n > 1 else np.ones((n, 2))
    width = np.maximum(np.sqrt(np.square(near[:, 1:]).mean(axis=1)), least)
    turn = np.tile((0.0, 0.0, 0.0, 1.0), (n, 1))
    shade = ((np.asarray(colors, np.float64) - 0.5) / C0)[:, None]
    return Splats(points, turn, np.repeat(width[:, None], 3, axis=1), np.full(n, opacity), shade)


def views_radius(position: ArrayFloat) -> float:
    """Greatest distance of cameras (c, 3) from their middle, and a tenth of it [m]."""
    away = np.linalg.norm(position - position.mean(axis=0), axis=1)
    # Source of the tenth: reference code of Kerbl et al. (2023).
    return 1.1 * float(away.max()) if len(away) and away.max() > 0.0 else 1.0


def focus(position: ArrayFloat, attitude: ArrayFloat) -> Array:
    """Return the point (3,) nearest to all optical axes (least squares)."""
    ahead = rotation_matrices(attitude)[:, :, 2]
    across = np.eye(3) - ahead[:, :, None] * ahead[:, None, :]
    # Parallel axes have no nearest point: a little of the cameras' middle decides then.
    matrix = across.sum(axis=0) + 1e-6 * len(ahead) * np.eye(3)
    right = np.einsum("nij,nj->i", across, position) + 1e-6 * len(ahead) * position.mean(axis=0)
    return np.asarray(np.linalg.solve(matrix, right))


def reach_of(position: ArrayFloat, attitude: ArrayFloat) -> float:
    """Return how far from its camera the scene may be [m]: the cameras' radius, or the distance to the one thing they look
    at.
    """
    thing = focus(position, attitude)
    ahead = np.einsum("ni,ni->n", rotation_matrices(attitude)[:, :, 2], thing - position)
    visible = ahead[ahead > 0.0]
    # Ours: cameras that look outwards, as in a room, have no one thing in front of them.
    distance = float(np.median(visible)) if len(visible) > 0.8 * len(ahead) else 0.0
    return max(views_radius(position), distance)


def visible_from(
    points: ArrayFloat, intrinsics: ArrayFloat, position: ArrayFloat, attitude: ArrayFloat, sizes: ArrayFloat, near: float
) -> tuple[Array, ArrayBool]:
    """Places (c, n, 2) [px] of points in views, and whether they are in the image (c, n).

    Args:
        points: (n, 3) [m], world.
        intrinsics: fx, fy, cx, cy (c, 4) [px].
        position: (c, 3) [m], world.
        attitude: (c, 4) quaternion x, y, z, w, camera to world.
        sizes: Width and height of each image, (c, 2) [px].
        near: Least depth [m].
    """
    away = points[None] - position[:, None]
    inside = np.einsum("cij,cni->cnj", rotation_matrices(attitude), away)
    depth = np.maximum(inside[..., 2], 1e-9)
    pixel = inside[..., :2] / depth[..., None] * intrinsics[:, None, :2] + intrinsics[:, None, 2:]
    shown = (inside[..., 2] > near) & (pixel > 0.0).all(axis=-1) & (pixel < sizes[:, None]).all(axis=-1)
    return pixel, shown


def random_points(
    count: int,
    intrinsics: ArrayLike,
    position: ArrayLike,
    attitude: ArrayLike,
    sizes: ArrayLike,
    rng: np.random.Generator,
    far: float = 3.0,
    least_views: int = 3,
) -> Array:
    """Points in the volume that views have in common.

    A view, a pixel and a depth are drawn for each, so that every view's cone is filled evenly in depth up to `far` times the
    reach of the views (`reach_of`) and nothing nearer than a twentieth of it; kept are those that at least three views see, or
    half of the views where there are fewer.

    Args:
        count: Points.
        intrinsics: (c, 4) fx, fy, cx, cy [px].
        position: (c, 3) [m].
        attitude: (c, 4) camera to world.
        sizes: (c, 2) width and height of the images [px].
        rng: Draws.
        far: How deep, over the reach.
        least_views: Views that must see a point.

    Returns:
        (count, 3) [m].
    """
    lens, eye, turn, size = (np.asarray(x, np.float64) for x in (intrinsics, position, attitude, sizes))
    reach = reach_of(eye, turn)
    least = min(least_views, max(1, len(eye) // 2))
    axes = rotation_matrices(turn)
    found, missing = [], count
    for attempt in range(12):
        # The last time whatever was drawn is taken.
        drawn = max(2 * missing, 1024)
        view = rng.integers(len(eye), size=drawn)
        pixel = rng.random((drawn, 2)) * size[view]
        depth = reach * rng.uniform(0.05, far, drawn)
        ray = np.concatenate([(pixel - lens[view, 2:]) / lens[view, :2], np.ones((drawn, 1))], axis=1) * depth[:, None]
        points = eye[view] + np.einsum("nij,nj->ni", axes[view], ray)
        visible = _views_of(points, lens, eye, turn, size, 0.02 * reach) >= (least if attempt < 11 else 0)
        points = points[visible][:missing]
        found.append(points)
        missing -= len(points)
        if not missing:
            break
    return np.concatenate(found)


def _views_of(
    points: ArrayFloat, lens: ArrayFloat, eye: ArrayFloat, turn: ArrayFloat, size: ArrayFloat, near: float
) -> ArrayInt:
    total = np.zeros(len(points), np.int64)
    for k in range(len(eye)):
        one = slice(k, k + 1)
        total += visible_from(points, lens[one], eye[one], turn[one], size[one], near)[1][0]
    return total
