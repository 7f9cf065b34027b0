"""How alike splats are to given images and to the meshes of a scene: PSNR, structural similarity, error of depth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayF32, ArrayFloat, ArrayLike
from airworthy.geometry import RayTable, cast
from airworthy.rendering.converting import display_color
from airworthy.rendering.images import render
from airworthy.rendering.shading import ShadingOptions
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.splats.record import Splats
from airworthy.scenes.viewpoints import look_at
from airworthy.splats.renderer import SplatRenderer
from airworthy.splats.surfaces import sequence, viewpoints
from airworthy.splats.training.image_loss import likeness_map

__all__ = [
    "DepthError",
    "ImageQuality",
    "PosedImages",
    "depth_error",
    "free_poses",
    "image_psnr",
    "image_quality",
    "image_ssim",
    "scene_views",
]

HELD_OUT = 1000
"""First number of the places of `scene_views` that are kept for judging."""


@dataclass(frozen=True, eq=False)
class PosedImages:
    """Images and where they were taken."""

    rgb: ArrayF32
    """(n, H, W, 3) as splats' colours are: sRGB-encoded, [0, 1]."""
    intrinsics: ArrayFloat
    """(n, 4) fx, fy, cx, cy [px]."""
    position: ArrayFloat
    """(n, 3) world [m]."""
    attitude: ArrayFloat
    """(n, 4) camera to world."""

    def __len__(self) -> int:
        return len(self.rgb)

    def camera(self, which: ArrayLike) -> tuple[int, int, ArrayFloat, ArrayFloat, ArrayFloat]:
        """Return width, height, intrinsics, positions and attitudes of some, as `SplatRenderer.render` takes them."""
        some = np.atleast_1d(np.asarray(which))
        return self.rgb.shape[2], self.rgb.shape[1], self.intrinsics[some], self.position[some], self.attitude[some]


def free_poses(batch: SceneBatch, count: int, first: int = 0, pitch: float = 0.35) -> tuple[Array, Array]:
    """Return positions (count, 3) and attitudes (count, 4), camera to world, evenly in a scene's bounds and all around.

    Args:
        batch: The scene.
        count: How many.
        first: Others for other numbers; `HELD_OUT` for judging.
        pitch: Most they look up or down [rad]; little by default, as a drone's camera looks.
    """
    position = viewpoints(batch, count, first=first)
    # Another part of the sequence than the positions', or place and direction would go together.
    turn = sequence(count, first + 17)
    yaw, tilt = 2.0 * np.pi * turn[:, 0], 2.0 * pitch * (turn[:, 1] - 0.5)
    directions = np.stack((np.cos(yaw) * np.cos(tilt), np.sin(yaw) * np.cos(tilt), np.sin(tilt)), axis=-1)
    return np.asarray(position, np.float64), np.stack([look_at(np.zeros(3), one) for one in directions])


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
    """Return images of a batch's first scene from free places evenly in its bounds, looking all around, up to 0.35 rad up or
    down.

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
    position, attitude = free_poses(batch, count, first)
    focal = 0.5 * width / np.tan(0.5 * fov)
    u, v = np.meshgrid(np.arange(width) + 0.5 - 0.5 * width, np.arange(height) + 0.5 - 0.5 * height)
    table = RayTable(np.stack((u / focal, v / focal, np.ones_like(u)), axis=-1))
    options = ShadingOptions(samples=samples)
    images = np.empty((count, height, width, 3), np.float32)
    for k in range(count):
        found = render(batch, table, position[k : k + 1], attitude[k : k + 1], np.zeros(1, np.int32), ("rgb",), options)
        images[k] = display_color(found["rgb"][0], exposure)
    return PosedImages(images, np.tile((focal, focal, 0.5 * width, 0.5 * height), (count, 1)), position, attitude)


def image_psnr(image: ArrayFloat, truth: ArrayFloat, mask: ArrayBool | None = None) -> float:
    """Return the peak signal to noise [dB] of values in [0, 1]: 10 log10(1 / mean squared error).

    Args:
        image: (H, W, 3).
        truth: The same.
        mask: (H, W) pixels that count; None: all.
    """
    # Clipped, as a screen would; splats' colours may leave the range.
    square = np.square(np.clip(image, 0.0, 1.0).astype(np.float64) - truth)
    kept = square if mask is None or not mask.any() else square[mask]
    # Equal images have 120 dB instead of infinity, so that means over views stay finite.
    return float(-10.0 * np.log10(max(float(kept.mean()), 1e-12)))


def image_ssim(image: ArrayFloat, truth: ArrayFloat, mask: ArrayBool | None = None) -> float:
    """Return the mean structural similarity of values in [0, 1] (Wang, Bovik, Sheikh, Simoncelli: Image quality assessment,
    2004).

    Per colour, with a Gaussian window of 11 x 11 and standard deviation 1.5, where the window lies in the image whole.

    Args:
        image: (H, W, 3), 11 pixels or more each way; smaller ones are judged with zeros around them.
        truth: The same.
        mask: (H, W) pixels that count; None: all.
    """
    values = likeness_map(np.clip(image, 0.0, 1.0), truth)
    # Half of the window of 11: nearer to the border it would hang over it.
    inner = (slice(5, -5), slice(5, -5)) if min(values.shape[:2]) >= 11 else (slice(None), slice(None))
    values, kept = values[inner], None if mask is None else mask[inner]
    return float(values.mean() if kept is None or not kept.any() else values[kept].mean())


# ---- How well splats stand for a scene of meshes: their images against its own, their depth against its own -----------------


@dataclass(frozen=True)
class ImageQuality:
    """Over views: means, and the worst view."""

    psnr: float
    """[dB]"""
    worst_psnr: float
    ssim: float
    worst_ssim: float


def image_quality(splats: Splats | SplatRenderer, views: PosedImages) -> ImageQuality:
    """Return PSNR [dB] and structural similarity of the splats' images of views."""
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
    depth_at: str = "mean",
) -> DepthError:
    """Return the depth along the optical axis of splats less that of a batch's first scene, at the middles of pixels.

    Args:
        splats: In the frame of the scene.
        batch: The scene.
        views: Where from; their images are not looked at.
        span: Pixels count whose meshes' depth is in it [m].
        mode: Depth of splats: `median` or `expected`.
        depth_at: Of a Gaussian: of its `mean`, or of its `plane` where a pixel's ray meets it.
    """
    renderer = splats if isinstance(splats, SplatRenderer) else SplatRenderer(splats)
    off = []
    for k in range(len(views)):
        width, height, lens, eye, turn = views.camera(k)
        asked = {"channels": ("depth",), "depth_mode": mode, "depth_at": depth_at}
        found = renderer.render(width, height, lens, eye, turn, **asked)["depth"][0]
        table = RayTable(_rays(width, height, lens[0]))
        truth = cast(batch.geometry, table, eye, turn, np.zeros(1, np.int32), ("depth",))["depth"][0]
        # By the depth of the meshes: that of the splats is what is judged.
        some = (truth >= span[0]) & (truth <= span[1])
        off.append((found[some] - truth[some]).astype(np.float64))
    away = np.concatenate(off)
    if not len(away):
        return DepthError(np.nan, np.nan, np.nan, 0)
    size = np.abs(away)
    # Medians: a ray past an edge is metres off, and says nothing about the surface.
    return DepthError(float(np.median(size)), float(np.median(away)), float((size < 0.05).mean()), len(away))


def _rays(width: int, height: int, lens: ArrayFloat) -> Array:
    # Pixel k spans k to k + 1, so its middle is at a half.
    u, v = np.meshgrid((np.arange(width) + 0.5 - lens[2]) / lens[0], (np.arange(height) + 0.5 - lens[3]) / lens[1])
    return np.stack((u, v, np.ones_like(u)), axis=-1)
