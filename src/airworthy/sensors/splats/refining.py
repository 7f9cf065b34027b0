"""Making splats look like given images, by the derivatives of their own; and how alike they are.

The number of Gaussians stays; `training` moves colour, opacity, size, turn and place.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError
from airworthy.core.progress import progress
from airworthy.geometry import RayTable
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.splats.record import Splats
from airworthy.scenes.viewing import look_at
from airworthy.sensors.capture import render
from airworthy.sensors.shading import ShadingOptions
from airworthy.sensors.splats.converting import seen_color
from airworthy.sensors.splats.renderer import SplatRenderer
from airworthy.sensors.splats.surfaces import sequence, viewpoints
from airworthy.sensors.splats.training.image_loss import likeness_map
from airworthy.sensors.splats.training.optimizer import Rates, SplatOptimizer

__all__ = ["PosedImages", "RefineOptions", "image_psnr", "image_ssim", "refined", "scene_views", "splat_psnr"]

Floats = NDArray[np.floating[Any]]
_LEAST_SCALE = 1e-4
"""No standard deviation falls below this [m]."""
_DECAYS = (0.9, 0.99)
"""Of Adam's moments: few steps are made, so the second forgets fast."""
HELD_OUT = 1000
"""First number of the places of `scene_views` that are kept for judging."""


@dataclass(frozen=True, eq=False)
class PosedImages:
    """Images and where they were taken."""

    rgb: NDArray[np.float32]
    """(n, H, W, 3) as splats' colours are: sRGB-encoded, [0, 1]."""
    intrinsics: Floats
    """(n, 4) fx, fy, cx, cy [px]."""
    position: Floats
    """(n, 3) world [m]."""
    attitude: Floats
    """(n, 4) camera to world."""

    def __len__(self) -> int:
        return len(self.rgb)

    def camera(self, which: ArrayLike) -> tuple[int, int, Floats, Floats, Floats]:
        """Width, height, intrinsics, positions and attitudes of some, as `SplatRenderer.render` takes them."""
        some = np.atleast_1d(np.asarray(which))
        return self.rgb.shape[2], self.rgb.shape[1], self.intrinsics[some], self.position[some], self.attitude[some]


@dataclass(frozen=True)
class RefineOptions:
    """How splats are refined.

    Raises:
        AirworthyError: If a number is out of range.
    """

    steps: int = 400
    """Images looked at, one per step."""
    color_rate: float = 0.012
    """Of the colour, per step, at first; all rates fall to a tenth."""
    opacity_rate: float = 0.02
    """Of its logit."""
    scale_rate: float = 0.012
    """Of its logarithm."""
    rotation_rate: float = 0.003
    place_rate: float = 0.03
    """In standard deviations along the surface."""
    seed: int = 0

    def __post_init__(self) -> None:
        rates = (self.color_rate, self.opacity_rate, self.scale_rate, self.rotation_rate, self.place_rate)
        if self.steps < 0 or min(rates) < 0:
            raise AirworthyError(f"Splats cannot be refined with {self}; expected counts and rates of 0 or more.")


def scene_views(
    batch: SceneBatch,
    count: int,
    width: int = 320,
    height: int = 180,
    fov: float = 1.4,
    first: int = 0,
    exposure: float = 1.0,
    samples: int = 4,
) -> PosedImages:
    """Images of a batch's first scene from free places evenly in its bounds, looking all around, up to 0.35 rad up or down.

    Args:
        batch: The scene (`lit_batch`).
        count: How many.
        width: [px]
        height: [px]
        fov: Across the width [rad].
        first: Other views for other numbers; `HELD_OUT` for judging.
        exposure: As of the conversion.
        samples: Rays per pixel: 1, 2, 4 or 8.
    """
    position = viewpoints(batch, count, first=first)
    turn = sequence(count, first + 17)
    yaw, pitch = 2.0 * np.pi * turn[:, 0], 0.7 * (turn[:, 1] - 0.5)
    way = np.stack((np.cos(yaw) * np.cos(pitch), np.sin(yaw) * np.cos(pitch), np.sin(pitch)), axis=-1)
    attitude = np.stack([look_at(np.zeros(3), one) for one in way])
    focal = 0.5 * width / np.tan(0.5 * fov)
    u, v = np.meshgrid(np.arange(width) + 0.5 - 0.5 * width, np.arange(height) + 0.5 - 0.5 * height)
    table = RayTable(np.stack((u / focal, v / focal, np.ones_like(u)), axis=-1))
    options = ShadingOptions(samples=samples)
    images = np.empty((count, height, width, 3), np.float32)
    for k in range(count):
        found = render(batch, table, position[k : k + 1], attitude[k : k + 1], np.zeros(1, np.int32), ("rgb",), options)
        images[k] = seen_color(found["rgb"][0], exposure)
    return PosedImages(images, np.tile((focal, focal, 0.5 * width, 0.5 * height), (count, 1)), position, attitude)


def image_psnr(image: Floats, truth: Floats, mask: NDArray[np.bool_] | None = None) -> float:
    """Peak signal to noise [dB] of values in [0, 1]: 10 log10(1 / mean squared error).

    Args:
        image: (H, W, 3).
        truth: The same.
        mask: (H, W) pixels that count; None: all.
    """
    square = np.square(np.clip(image, 0.0, 1.0).astype(np.float64) - truth)
    kept = square if mask is None or not mask.any() else square[mask]
    return float(-10.0 * np.log10(max(float(kept.mean()), 1e-12)))


def image_ssim(image: Floats, truth: Floats, mask: NDArray[np.bool_] | None = None) -> float:
    """Mean structural similarity of values in [0, 1] (Wang, Bovik, Sheikh, Simoncelli: Image quality assessment, 2004).

    Per colour, with a Gaussian window of 11 x 11 and standard deviation 1.5, where the window lies in the image whole.

    Args:
        image: (H, W, 3), 11 pixels or more each way; smaller ones are judged with zeros around them.
        truth: The same.
        mask: (H, W) pixels that count; None: all.
    """
    values = likeness_map(np.clip(image, 0.0, 1.0), truth)
    inner = (slice(5, -5), slice(5, -5)) if min(values.shape[:2]) >= 11 else (slice(None), slice(None))
    values, kept = values[inner], None if mask is None else mask[inner]
    return float(values.mean() if kept is None or not kept.any() else values[kept].mean())


def splat_psnr(splats: Splats | SplatRenderer, views: PosedImages) -> list[float]:
    """PSNR of each view [dB]."""
    renderer = splats if isinstance(splats, SplatRenderer) else SplatRenderer(splats)
    values = []
    for k in range(len(views)):
        image = renderer.render(*views.camera(k), channels=("rgb",))["rgb"][0]
        values.append(image_psnr(image, views.rgb[k]))
    return values


def refined(splats: Splats, views: PosedImages, options: RefineOptions | None = None, quiet: bool = True) -> Splats:
    """Splats that look more like the views; the same number, degree and order. The same input gives the same bytes.

    The loss is the mean absolute difference plus the mean squared difference of colours.

    Args:
        splats: To begin with.
        views: What they should look like.
        options: How.
        quiet: Show no progress.

    Raises:
        AirworthyError: There are no views.
    """
    options = options or RefineOptions()
    if not len(views):
        raise AirworthyError("Splats cannot be refined without views.")
    order = _order(len(views), options)
    optimizer = SplatOptimizer(splats, options.seed, _LEAST_SCALE)
    work: Iterable[int] = progress(range(options.steps), "Refining", options.steps, quiet=quiet)
    for step in work:
        truth = views.rgb[order[step] : order[step] + 1]

        def loss(image: NDArray[np.float32], truth: Any = truth) -> tuple[float, NDArray[np.float32]]:
            off = image - truth
            slope = ((np.sign(off) + 2.0 * off) / truth.size).astype(np.float32)
            return float(np.abs(off).mean() + np.square(off).mean()), slope

        optimizer.step(optimizer.shot(*views.camera(order[step])), loss, _rates(options, step))
    return optimizer.splats()


def _order(count: int, options: RefineOptions) -> NDArray[np.int64]:
    """Which view each step looks at: all of them once, shuffled, and again."""
    rng = np.random.default_rng(options.seed)
    rounds = -(-options.steps // count)
    shuffled = [rng.permutation(count) for _ in range(rounds)]
    return np.concatenate(shuffled) if shuffled else np.zeros(0, np.int64)


def _rates(options: RefineOptions, step: int) -> Rates:
    """Falling to a tenth."""
    fall = 0.1 ** (step / max(options.steps - 1, 1))
    return Rates(
        place=0.0,
        place_share=options.place_rate * fall,
        scale=options.scale_rate * fall,
        rotation=options.rotation_rate * fall,
        opacity=options.opacity_rate * fall,
        color=options.color_rate * fall,
        color_rest=options.color_rate * fall,
        decays=_DECAYS,
    )
