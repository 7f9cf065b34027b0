"""Where surfaces are, from posed images alone: planes swept through each view's cone until its neighbours agree on colours.

Sources: Collins: A space-sweep approach to true multi-image matching (1996); Hirschmueller: Stereo processing by semiglobal
matching (2008), equation 14, along rows and columns both ways. Coarse on purpose: a start for training, not a reconstruction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayF32, ArrayFloat, ArrayIndex, ArrayInt, ArrayLike, ArrayU8
from airworthy.core.native_kernel import thread_limit
from airworthy.core.threads import share
from airworthy.splats.cloud import rotation_matrices


def views_radius(position: ArrayFloat) -> float:
    """Return the greatest distance of cameras (c, 3) from their middle, and a tenth of it [m]."""
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
    """Return places (c, n, 2) [px] of points in views, and whether they are in the image (c, n).

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
    """Return points in the volume that views have in common.

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


_LONGEST = 128
"""Longest side of the images that are swept [px]."""
_DEPTHS = 96
_NEIGHBOURS = 6
_MOST_VIEWS = 120
"""Views that are swept, evenly among all."""
_ANGLES = (0.05, 0.5)
"""Between rays to a point, preferred [rad]: below, depth is uncertain; above, things look too different."""
_COLOR_LIMIT, _FORM_LIMIT = 0.15, 1.5
_SMALL_STEP, _JUMP = 0.03, 0.25
"""Penalties of a change of depth by one plane and by more."""
_AGREE = 0.05
"""Part by which depths of two views may differ at one point."""


def turned(points: ArrayFloat, matrix: ArrayFloat) -> Array:
    """Return rows (..., 3) times a matrix (3, 3), without the library of linear algebra, whose threads would hinder ours."""
    x, y, z = points[..., 0, None], points[..., 1, None], points[..., 2, None]
    return np.asarray(x * matrix[0] + y * matrix[1] + z * matrix[2])


@dataclass(frozen=True, eq=False)
class SmallView:
    """A small image."""

    rgb: ArrayF32
    form: ArrayF32
    """Grey less its mean nearby, over its deviation there."""
    lens: ArrayFloat
    eye: ArrayFloat
    axes: ArrayFloat
    """Camera to world (3, 3)."""

    def rays(self) -> Array:
        """Return (H, W, 3) at depth 1, world."""
        h, w = self.form.shape
        u, v = np.meshgrid(
            (np.arange(w) + 0.5 - self.lens[2]) / self.lens[0], (np.arange(h) + 0.5 - self.lens[3]) / self.lens[1]
        )
        return turned(np.stack([u, v, np.ones_like(u)], axis=-1), self.axes.T)

    def at(self, points: ArrayFloat) -> tuple[ArrayIndex, ArrayFloat, ArrayBool]:
        """Return pixel numbers, depths, and which points (..., 3) are in the image."""
        h, w = self.form.shape
        inside = turned(points - self.eye, self.axes)
        depth = np.maximum(inside[..., 2], 1e-9)
        x = inside[..., 0] / depth * self.lens[0] + self.lens[2]
        y = inside[..., 1] / depth * self.lens[1] + self.lens[3]
        visible = (inside[..., 2] > 1e-6) & (x >= 0.0) & (x < w) & (y >= 0.0) & (y < h)
        pixel_index = np.where(visible, y, 0.0).astype(np.intp) * w + np.where(visible, x, 0.0).astype(np.intp)
        return pixel_index, inside[..., 2], visible


@dataclass(frozen=True, eq=False)
class SweptPoints:
    """What was found."""

    position: Array
    """(n, 3) [m]"""
    color: Array
    """(n, 3)"""
    width: Array
    """(n,) of a pixel there [m]."""


def small_view(rgb: ArrayU8, lens: ArrayFloat, eye: ArrayFloat, attitude: ArrayFloat) -> SmallView:
    """Return an image, reduced.

    Args:
        rgb: (H, W, 3)
        lens: fx, fy, cx, cy [px].
        eye: (3,) [m], world.
        attitude: Quaternion x, y, z, w, camera to world.
    """
    from PIL import Image
    from scipy.ndimage import uniform_filter

    h, w = rgb.shape[:2]
    share = min(1.0, _LONGEST / max(h, w))
    size = (max(8, round(w * share)), max(8, round(h * share)))
    small = np.asarray(Image.fromarray(rgb).resize(size, Image.Resampling.BOX), np.float32) / 255.0
    grey = small.mean(axis=-1)
    mean = uniform_filter(grey, 7)
    # Rounding may leave a variance below 0.
    spread = np.sqrt(np.maximum(uniform_filter(grey * grey, 7) - mean * mean, 0.0))
    scaled = np.asarray(lens, np.float64) * np.array([size[0] / w, size[1] / h] * 2)
    # 0.03, ours: without it the noise of a flat wall would count as much as its edges.
    return SmallView(
        small, ((grey - mean) / (spread + 0.03)).astype(np.float32), scaled, eye, rotation_matrices(attitude[None])[0]
    )


def swept_points(
    images: Sequence[ArrayU8],
    intrinsics: ArrayFloat,
    position: ArrayFloat,
    attitude: ArrayFloat,
    near: float,
    far: float,
    progress: Callable[[list[int]], Any] = iter,
) -> SweptPoints:
    """Return points on surfaces that at least two other views confirm.

    Args:
        images: (H, W, 3) each.
        intrinsics: (c, 4) [px].
        position: (c, 3) [m].
        attitude: (c, 4) camera to world.
        near: Nearest depth that is looked at [m].
        far: Farthest [m].
        progress: Shows how far the work is.
    """
    views = [small_view(*one) for one in zip(images, intrinsics, position, attitude, strict=True)]
    chosen = np.unique(np.linspace(0, len(views) - 1, min(len(views), _MOST_VIEWS)).round().astype(int))
    # Evenly in inverse depth: from plane to plane a place moves about as far in a neighbour's image.
    planes = 1.0 / np.linspace(1.0 / far, 1.0 / near, _DEPTHS)
    near_by = _neighbours(views, chosen, np.geomspace(near, far, 5)[1:4])

    depths: dict[int, Array] = {}

    def sweep(k: int) -> None:
        depths[k] = _depths(views[chosen[k]], [views[j] for j in near_by[k]], planes)

    threads = thread_limit()
    for first in progress(list(range(0, len(chosen), threads))):  # a thread each, so that progress is shown in between
        share(sweep, range(first, min(first + threads, len(chosen))), threads, "airworthy-sweeping")
    return _agreed([views[k] for k in chosen], [depths[k] for k in range(len(chosen))])


def _neighbours(views: list[SmallView], chosen: ArrayAny, depths: ArrayFloat) -> list[ArrayInt]:
    """Return views that see much of what each sees, from another place but not too far off."""
    eyes = np.stack([view.eye for view in views])
    found = []
    for k in chosen:
        rays = views[k].rays()
        h, w = rays.shape[:2]
        some = rays[h // 8 :: max(1, h // 4), w // 8 :: max(1, w // 4)].reshape(-1, 3)
        points = (views[k].eye + depths[:, None, None] * some).reshape(-1, 3)
        own = points - views[k].eye
        own /= np.linalg.norm(own, axis=-1, keepdims=True)
        other = points[None] - eyes[:, None]
        other /= np.maximum(np.linalg.norm(other, axis=-1, keepdims=True), 1e-12)
        angle = np.arccos(np.clip((own * other).sum(axis=-1), -1.0, 1.0))
        worth = np.minimum(angle / _ANGLES[0], 1.0) * np.exp(-np.square(angle / _ANGLES[1]))
        visible = np.stack([view.at(points)[2] for view in views])
        score = (worth * visible).sum(axis=-1)
        score[k] = -1.0
        best = np.argsort(-score, kind="stable")[:_NEIGHBOURS]
        found.append(best[score[best] > 0.0])
    return found


def _depths(view: SmallView, others: list[SmallView], planes: ArrayFloat) -> Array:
    """(H, W) depth along the axis [m]; NaN where nothing can be said."""
    from scipy.ndimage import uniform_filter

    shape = view.form.shape
    if len(others) < 2:
        return np.full(shape, np.nan)
    # Costs of the neighbours that see a place best, least first: half of them are enough, others may be hidden.
    best_few = [np.full((len(planes), *shape), 2.0, np.float32) for _ in range(max(2, len(others) // 2))]
    rays = view.rays()
    for other in others:
        cost = uniform_filter(_cost(view, other, rays, planes), (0, 3, 3))
        for held in best_few:
            lower = np.minimum(held, cost)
            cost = np.maximum(held, cost)
            held[...] = lower
    total = np.mean(best_few, axis=0)
    smooth = np.moveaxis(_smoothed(np.ascontiguousarray(np.moveaxis(total, 0, -1))), -1, 0)
    best = smooth.argmin(axis=0)
    # Between planes: where a parabola through the costs of three is least.
    inner = np.clip(best, 1, len(planes) - 2)
    low, mid, high = (np.take_along_axis(smooth, (inner + k)[None], 0)[0] for k in (-1, 0, 1))
    bend = np.maximum(low - 2.0 * mid + high, 1e-6)
    step = np.clip(0.5 * (low - high) / bend, -0.5, 0.5)
    depth = 1.0 / np.interp(inner + step, np.arange(len(planes)), 1.0 / planes)
    # What fits best at the first or last plane may lie beyond it.
    sure = (np.take_along_axis(total, best[None], 0)[0] < 0.6) & (best > 0) & (best < len(planes) - 1)
    return np.where(sure, depth, np.nan)


def _cost(view: SmallView, other: SmallView, rays: ArrayFloat, planes: ArrayFloat) -> ArrayF32:
    """(D, H, W) how different another view is at each plane; 2 where it does not see it."""
    h, w = other.form.shape
    ahead = turned(rays, other.axes).astype(np.float32)
    offset = turned(view.eye - other.eye, other.axes).astype(np.float32)
    over = (1.0 / planes).astype(np.float32)[:, None, None]
    x, y, z = (ahead[..., k] + offset[k] * over for k in range(3))
    front = z > 1e-6
    z = np.where(front, z, np.float32(1.0))
    x = x / z * np.float32(other.lens[0]) + np.float32(other.lens[2])
    y = y / z * np.float32(other.lens[1]) + np.float32(other.lens[3])
    visible = front & (x >= 0.0) & (x < w) & (y >= 0.0) & (y < h)
    pixel_index = np.where(visible, y, 0.0).astype(np.int32) * w + np.where(visible, x, 0.0).astype(np.int32)
    color = sum(np.abs(np.take(other.rgb[..., k], pixel_index) - view.rgb[..., k]) for k in range(3))
    form = np.abs(np.take(other.form, pixel_index) - view.form)
    both = np.minimum(color * np.float32(1.0 / (3.0 * _COLOR_LIMIT)), 1.0) + np.minimum(
        form * np.float32(1.0 / _FORM_LIMIT), 1.0
    )
    return np.where(visible, np.float32(0.5) * both, np.float32(2.0))


def _smoothed(cost: ArrayF32) -> ArrayF32:
    """Costs (H, W, D) summed along four paths that charge for changes of depth."""
    total = np.zeros_like(cost)
    for axis in (0, 1):
        lines = cost if axis == 0 else cost.swapaxes(0, 1)
        sums = total if axis == 0 else total.swapaxes(0, 1)
        for order in (range(len(lines)), range(len(lines) - 1, -1, -1)):
            last = np.zeros_like(lines[0])
            for k in order:
                least = last.min(axis=-1, keepdims=True)
                step = np.minimum(last, least + np.float32(_JUMP))
                step[:, 1:] = np.minimum(step[:, 1:], last[:, :-1] + np.float32(_SMALL_STEP))
                step[:, :-1] = np.minimum(step[:, :-1], last[:, 1:] + np.float32(_SMALL_STEP))
                # Without taking off the least so far, sums would grow along a path; no minimum changes.
                last = lines[k] + step - least
                sums[k] += last
    return total


def _agreed(views: list[SmallView], depths: list[Array]) -> SweptPoints:
    """Points at which the depths of at least two other views are nearly the same."""
    position, color, width = [], [], []
    for k, view in enumerate(views):
        known = np.isfinite(depths[k])
        points = view.eye + (depths[k][known])[:, None] * view.rays()[known]
        votes = np.zeros(len(points), np.int64)
        for j, other in enumerate(views):
            if j != k:
                pixel_index, depth, visible = other.at(points)
                there = depths[j].reshape(-1)[pixel_index]
                votes += visible & (np.abs(there - depth) < _AGREE * depth)
        kept = votes >= 2
        position.append(points[kept])
        color.append(view.rgb[known][kept].astype(np.float64))
        width.append((depths[k][known] / view.lens[0])[kept])
    return SweptPoints(np.concatenate(position), np.concatenate(color), np.concatenate(width))
