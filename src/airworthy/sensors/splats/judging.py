"""How well splats stand for a scene of meshes: their images against its own, their depth against its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.geometry import RayTable, cast
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.splats.record import Splats
from airworthy.sensors.splats.refining import PosedImages, image_psnr, image_ssim
from airworthy.sensors.splats.renderer import SplatRenderer

__all__ = ["DepthError", "ImageQuality", "depth_error", "image_quality"]

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class ImageQuality:
    """Over views: means, and the worst view."""

    psnr: float
    """[dB]"""
    worst_psnr: float
    ssim: float
    worst_ssim: float


def image_quality(splats: Splats | SplatRenderer, views: PosedImages) -> ImageQuality:
    """PSNR [dB] and structural similarity of the splats' images of views."""
    renderer = splats if isinstance(splats, SplatRenderer) else SplatRenderer(splats)
    psnr, ssim = [], []
    for k in range(len(views)):
        image = renderer.render(*views.camera(k), channels=("rgb",))["rgb"][0]
        psnr.append(image_psnr(image, views.rgb[k]))
        ssim.append(image_ssim(image, views.rgb[k]))
    return ImageQuality(float(np.mean(psnr)), min(psnr), float(np.mean(ssim)), min(ssim))


@dataclass(frozen=True)
class DepthError:
    """Of the pixels of all views at which the meshes are within a span of depth."""

    median: float
    """Of the absolute difference [m]."""
    bias: float
    """Median of splats less meshes [m]."""
    within: float
    """Share of the pixels that differ by less than 5 cm."""
    pixels: int


def depth_error(
    splats: Splats | SplatRenderer,
    batch: SceneBatch,
    views: PosedImages,
    span: tuple[float, float] = (4.5, 5.5),
    mode: str = "median",
) -> DepthError:
    """Depth along the optical axis of splats less that of a batch's first scene, at the middles of pixels.

    Args:
        splats: In the frame of the scene.
        batch: The scene.
        views: Where from; their images are not looked at.
        span: Pixels count whose meshes' depth is in it [m].
        mode: Depth of splats: `median` or `expected`.
    """
    renderer = splats if isinstance(splats, SplatRenderer) else SplatRenderer(splats)
    off = []
    for k in range(len(views)):
        width, height, lens, place, turn = views.camera(k)
        found = renderer.render(width, height, lens, place, turn, channels=("depth",), depth_mode=mode)["depth"][0]
        table = RayTable(_rays(width, height, lens[0]))
        truth = cast(batch.geometry, table, place, turn, np.zeros(1, np.int32), ("depth",))["depth"][0]
        some = (truth >= span[0]) & (truth <= span[1])
        off.append((found[some] - truth[some]).astype(np.float64))
    away = np.concatenate(off)
    if not len(away):
        return DepthError(np.nan, np.nan, np.nan, 0)
    size = np.abs(away)
    return DepthError(float(np.median(size)), float(np.median(away)), float((size < 0.05).mean()), len(away))


def _rays(width: int, height: int, lens: Floats) -> NDArray[np.float64]:
    u, v = np.meshgrid((np.arange(width) + 0.5 - lens[2]) / lens[0], (np.arange(height) + 0.5 - lens[3]) / lens[1])
    return np.stack((u, v, np.ones_like(u)), axis=-1)
