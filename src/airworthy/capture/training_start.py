"""The Gaussians that a training begins with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.capture.record import CaptureImages
from airworthy.capture.training_options import TrainOptions
from airworthy.core.progress import progress
from airworthy.scenes.splats.record import Splats
from airworthy.sensors.splats.training.initial import random_points, reach_of, seen_from, splats_at
from airworthy.sensors.splats.training.sweeping import swept_points

__all__ = ["first_splats", "views_reach"]

Floats = NDArray[np.floating[Any]]
_ENOUGH_POINTS = 1000
_FILL = 0.1
"""Share of the first Gaussians that stand at random, for what no method found."""
_SWEEP_DEPTHS = (0.08, 3.0)
"""Over the reach."""
_OPACITY = 0.3


def views_reach(images: CaptureImages) -> float:
    """How far the scene extends from its cameras, in the set's unit."""
    return reach_of(images.position, images.attitude)


def first_splats(images: CaptureImages, options: TrainOptions, quiet: bool) -> tuple[Splats, str]:
    """Splats, and in words where they come from.

    Args:
        images: To train on.
        options: Chosen.
        quiet: Show no progress.
    """
    rng = np.random.default_rng((options.seed, 0))
    count = max(1, round(options.start_share * options.count))
    points, colors, words = _surface(images, options, quiet)
    some = rng.permutation(len(points))[: count - round(_FILL * count)]
    more = _random(images, count - len(some), rng)
    position = np.concatenate([points[some], more])
    color = np.concatenate([colors[some], seen_colors(images, more)])
    least = 1e-5 * views_reach(images)
    return splats_at(position, color, _OPACITY, least), f"{len(some):,} {words}, {len(more):,} at random" if len(
        some
    ) else words


def _surface(images: CaptureImages, options: TrainOptions, quiet: bool) -> tuple[Floats, Floats, str]:
    """Points (n, 3) on surfaces and their colours."""
    nothing = np.zeros((0, 3))
    known = images.points if images.points is not None else nothing
    if options.start == "points" or (options.start == "auto" and len(known) >= _ENOUGH_POINTS):
        given = images.colors / 255.0 if images.colors is not None else np.full(known.shape, 0.5)
        kept = np.isfinite(known).all(axis=1)
        return known[kept], given[kept], "at the set's points"
    if options.start == "random":
        return nothing, nothing, "all at random in the views' volume"
    reach = views_reach(images)
    near, far = (share * reach for share in _SWEEP_DEPTHS)

    def shown(steps: list[int]) -> Any:
        return progress(steps, "Looking for surfaces", quiet=quiet)

    found = swept_points(images.rgb, images.intrinsics, images.position, images.attitude, near, far, shown)
    return found.position, found.color, "where swept planes agree"


def _random(images: CaptureImages, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    return random_points(count, images.intrinsics, images.position, images.attitude, images.sizes, rng)


def seen_colors(images: CaptureImages, points: Floats) -> NDArray[np.float64]:
    """Mean colour (n, 3) of points in all images in which they are; grey where they are in none."""
    total, number = np.zeros((len(points), 3)), np.zeros((len(points), 1))
    near = 0.02 * views_reach(images)
    for k, image in enumerate(images.rgb):
        one = slice(k, k + 1)
        lens, at, turned = images.intrinsics[one], images.position[one], images.attitude[one]
        place, shown = seen_from(points, lens, at, turned, images.sizes[one].astype(np.float64), near)
        x, y = place[0, shown[0]].astype(np.intp).T
        total[shown[0]] += image[y, x] / 255.0
        number[shown[0]] += 1.0
    return np.where(number > 0.0, total / np.maximum(number, 1.0), 0.5)
