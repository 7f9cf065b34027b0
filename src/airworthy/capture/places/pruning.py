"""Gaussians that hardly any camera sees: counted by what they add to the training images, and left out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from airworthy.capture.record import CaptureImages
from airworthy.core.arrays import Array, ArrayBool, ArrayF32, ArrayInt
from airworthy.core.jobs.progress import progress
from airworthy.rendering.refining import image_psnr
from airworthy.scenes.splats.editing import selected
from airworthy.scenes.splats.record import C0, Splats

__all__ = ["LOSS_MAX", "Pruned", "camera_counts", "mean_psnr", "pruned"]

SHARE = 0.1
"""A camera sees a gaussian that adds this much to its image, in whole pixels (ours: less is no part of what is seen)."""
CAMERAS = 2
"""Cameras that must see a gaussian: what one alone sees stands anywhere on its rays."""
LOSS_MAX = 0.1
"""Most by which leaving them out may lower the PSNR of the held-out images [dB]."""
_WIDTH = 320
"""Widest image in which they are counted [px]."""


@dataclass(frozen=True, eq=False)
class Pruned:
    """Splats without what hardly anybody sees."""

    splats: Splats
    kept: ArrayBool
    """(n,) of the gaussians before."""
    least: int
    """Cameras that had to see a gaussian: fewer than `CAMERAS` where more would have cost too much; 0: nothing was left out."""
    psnr_before: float
    """Mean of the held-out images [dB], of those trained on where none are held out."""
    psnr_after: float

    @property
    def left_out(self) -> int:
        """Gaussians that are no longer there."""
        return int(np.count_nonzero(~self.kept))


def camera_counts(
    splats: Splats, images: CaptureImages, near: float, *, antialiased: bool = False, quiet: bool = True
) -> ArrayInt:
    """Return how many training images each gaussian shows in (n,): those to which it adds `SHARE` of a pixel or more.

    What a gaussian adds is the sum over pixels of its opacity there times the light that reaches it. That is the derivative of
    the summed colour with respect to the gaussian's own, which the renderer gives exactly.

    Args:
        splats: As trained, in the frame of the images.
        images: Cameras; those held out are left out.
        near: Nearest depth that is rendered [m].
        antialiased: As of the training.
        quiet: Show no progress.
    """
    from airworthy.splats.renderer import SplatRenderer

    # Grey throughout: a colour that is cut off at 0 has no derivative.
    grey = replace(splats, harmonics=np.full((len(splats), 1, 3), 0.5 / C0, np.float32))
    renderer = SplatRenderer(grey)
    found = np.zeros(len(splats), np.int64)
    for k in progress(images.training.tolist(), "Counting what is seen", quiet=quiet):
        width, height = (int(side) for side in images.sizes[k])
        share = min(1.0, _WIDTH / width)
        small = max(1, round(width * share)), max(1, round(height * share))
        lens = images.intrinsics[k] * np.array([small[0] / width, small[1] / height] * 2)
        camera = (*small, lens[None], images.position[k : k + 1], images.attitude[k : k + 1])
        slopes = renderer.gradients(_summed_red, *camera, near=near, antialiased=antialiased)[0][0]
        found += slopes.harmonics[:, 0, 0] / np.float32(C0) >= SHARE
    return found


def _summed_red(images: dict[str, ArrayF32], _: slice) -> dict[str, Any]:
    slope = np.zeros_like(images["rgb"])
    slope[..., 0] = 1.0
    return {"rgb": slope}


def pruned(
    splats: Splats,
    images: CaptureImages,
    near: float,
    *,
    antialiased: bool = False,
    background: float = 0.0,
    quiet: bool = True,
) -> Pruned:
    """Return splats without the gaussians that fewer than `CAMERAS` training cameras see.

    Where that would lower the held-out PSNR by more than `LOSS_MAX`, only what no camera sees is left out, or nothing.

    Args:
        splats: As trained, in the frame of the images.
        images: Cameras, and images to compare with.
        near: Nearest depth that is rendered [m].
        antialiased: As of the training.
        background: Behind everything, black to white.
        quiet: Show no progress.
    """
    counts = camera_counts(splats, images, near, antialiased=antialiased, quiet=quiet)
    options: dict[str, Any] = {"antialiased": antialiased, "background": background}
    before = mean_psnr(splats, images, near, **options)
    for least in range(min(CAMERAS, max(1, len(images.training) // 2)), 0, -1):
        kept = counts >= least
        some = selected(splats, kept)
        after = mean_psnr(some, images, near, **options) if len(some) else -np.inf
        if after >= before - LOSS_MAX:
            return Pruned(some, kept, least, before, after)
    return Pruned(splats, np.ones(len(splats), bool), 0, before, before)


def mean_psnr(
    splats: Splats, images: CaptureImages, near: float, *, antialiased: bool = False, background: float = 0.0
) -> float:
    """Return the mean PSNR [dB] of the held-out images; of up to ten of those trained on where none are held out.

    Args:
        splats: In the frame of the images.
        images: Cameras, and images to compare with.
        near: Nearest depth that is rendered [m].
        antialiased: As of the training.
        background: Behind everything, black to white.
    """
    from airworthy.splats.renderer import SplatRenderer

    renderer, found = SplatRenderer(splats), []
    chosen = images.held_out_ids
    if not len(chosen):
        train = images.training
        chosen = train[np.unique(np.linspace(0, len(train) - 1, min(10, len(train))).astype(int))]
    for k in chosen.tolist():
        width, height = (int(side) for side in images.sizes[k])
        camera = (width, height, images.intrinsics[k : k + 1], images.position[k : k + 1], images.attitude[k : k + 1])
        options = {"near": near, "antialiased": antialiased, "background": (background,) * 3}
        image = renderer.render(*camera, channels=("rgb",), **options)["rgb"][0]
        truth: Array = images.rgb[k] / np.float32(255.0)
        found.append(image_psnr(image, truth, images.masks[k]))
    return float(np.mean(found))
