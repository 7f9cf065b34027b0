"""What training cameras see of trained splats: where rays end, how surely, and how far they are free."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.capture.record import CaptureImages
from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayF32, ArrayFloat
from airworthy.core.jobs.progress import progress
from airworthy.scenes.splats.record import Splats

__all__ = ["DepthViews", "certain_depth", "depth_views"]

DEPTH_WIDTH = 320
"""Widest depth image [px]: a pixel is then about as wide as a cell of 5 cm at 10 m."""
SURE = 0.04
"""Depth is certain where its mean and its median differ by no more than this share of it (ours: twice what trained rooms have
on flat walls)."""
SHARES = (0.95, 0.9, 0.75)
"""Of the median depth, at which it is asked how much light is stopped before; depth is certain where little is before the
second."""
FOG = 0.3
"""Share of the light that may be stopped before a ray ends (ours: of rays of a room trained for 1,500 steps, 0.5 % were freed
beyond its true surfaces, and a cell needs three of them)."""
OPAQUE = 0.9
"""Share of the light that must be stopped where a ray is to end for certain."""
STRAY_PIXELS = 5
"""Side of the square over which a ray's free depth is the median of its neighbours' [px]."""


@dataclass(frozen=True, eq=False)
class DepthViews:
    """What cameras see of splats: depth along the optical axis, and how far each ray is known to be free."""

    depth: tuple[ArrayF32, ...]
    """(h_i, w_i) [m]; 0 where it is not certain."""
    freed: tuple[ArrayF32, ...]
    """(h_i, w_i) depth up to which nothing opaque is [m]; 0 where nothing is known."""
    intrinsics: ArrayFloat
    """(n, 4) fx, fy, cx, cy [px] of these images."""
    position: ArrayFloat
    """(n, 3) world [m]."""
    attitude: ArrayFloat
    """(n, 4) camera to world."""

    def __len__(self) -> int:
        return len(self.depth)

    def points(self, k: int, *, freed: bool = False) -> Array:
        """Return where the certain rays of a camera end (m, 3), world [m].

        Args:
            k: Number of the camera.
            freed: Instead up to where each ray is free that frees anything.
        """
        depth = self.freed[k] if freed else self.depth[k]
        v, u = np.nonzero(depth > 0.0)
        fx, fy, cx, cy = self.intrinsics[k]
        z = depth[v, u].astype(np.float64)
        ray = np.stack(((u + 0.5 - cx) / fx * z, (v + 0.5 - cy) / fy * z, z), axis=-1)
        return np.asarray(frames.rotate(self.attitude[k], ray) + self.position[k])


def depth_views(
    splats: Splats, images: CaptureImages, near: float, *, antialiased: bool = False, quiet: bool = True
) -> DepthViews:
    """Return depths of splats as the training cameras of a capture see them, in images of at most `DEPTH_WIDTH` pixels.

    A ray ends where half of its light has been stopped, where it meets that gaussian's plane. It is free up to before that by
    as much as the mean depth differs, or up to a share of it before which next to no light is stopped (`SHARES`, `FOG`),
    whichever is farther: clouds that are not trained to the end have fog before their surfaces. Where less than `OPAQUE` of
    the light is stopped, a ray ends at nothing for certain and frees nothing.

    Args:
        splats: As trained, in the frame of the images.
        images: Cameras; those held out are left out.
        near: Nearest depth that is rendered [m].
        antialiased: As of the training.
        quiet: Show no progress.
    """
    from airworthy.splats.renderer import SplatRenderer

    renderer = SplatRenderer(splats)
    depth, freed, lenses = [], [], []
    chosen = images.training
    for k in progress(chosen.tolist(), "Looking for depths", quiet=quiet):
        width, height, lens = _reduced(images, k)
        camera = (width, height, lens[None], images.position[k : k + 1], images.attitude[k : k + 1])
        options = {"near": near, "antialiased": antialiased}

        def rendered(*channels: str, camera: Any = camera, options: Any = options, **more: Any) -> list[ArrayF32]:
            found = renderer.render(*camera, channels=channels, **options, **more)
            return [found[name][0] for name in channels]

        mean, alpha = rendered("depth", "alpha", depth_mode="expected")
        (median,) = rendered("depth", depth_mode="median")
        (plane,) = rendered("depth", depth_mode="median", depth_at="plane")
        known = np.isfinite(mean) & np.isfinite(median) & np.isfinite(plane) & (alpha >= OPAQUE)
        mean, median = np.where(known, mean, 0.0), np.where(known, median, 0.0)
        before = [rendered("alpha", limit=(share * median)[None].astype(np.float32))[0] for share in SHARES]
        certain, free = certain_depth(mean, median, before)
        # By means for what is free, as `limit` is; by planes for where surfaces lie: means of slanted ones are seen too near.
        depth.append(np.where(certain > 0.0, plane, 0.0).astype(np.float32))
        freed.append(free)
        lenses.append(lens)
    return DepthViews(tuple(depth), tuple(freed), np.stack(lenses), images.position[chosen], images.attitude[chosen])


def _reduced(images: CaptureImages, k: int) -> tuple[int, int, Array]:
    width, height = (int(side) for side in images.sizes[k])
    share = min(1.0, DEPTH_WIDTH / width)
    small = max(1, round(width * share)), max(1, round(height * share))
    scale = np.array([small[0] / width, small[1] / height] * 2)
    return *small, images.intrinsics[k] * scale


def certain_depth(mean: ArrayF32, median: ArrayF32, before: Sequence[ArrayF32]) -> tuple[ArrayF32, ArrayF32]:
    """Return depth (h, w) where it is certain, and up to where rays are free (h, w) [m]; 0 where they are not.

    Args:
        mean: Over what is seen (h, w) [m]; 0 where it is not opaque.
        median: Where half of the light has been stopped (h, w) [m].
        before: Light that is stopped before each of `SHARES` of the median (h, w).
    """
    from scipy.ndimage import median_filter

    apart = np.abs(mean - median)
    freed = np.maximum(np.minimum(mean, median) - apart, 0.0)
    for share, stopped in zip(SHARES, before, strict=True):
        freed = np.maximum(freed, np.where(stopped <= FOG, share * median, 0.0))
    # Single pixels in which splats are not sure would close every cell behind them; things that wide still have their hits.
    freed = median_filter(freed, STRAY_PIXELS, mode="nearest")
    sure = (apart <= SURE * median) | (freed >= SHARES[1] * median)
    return np.where(sure, median, 0.0).astype(np.float32), freed.astype(np.float32)
