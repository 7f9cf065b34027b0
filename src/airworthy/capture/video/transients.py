"""What is not there to stay - people, doors, shadows that pass - by how pictures differ from splats that were trained of all.

A training for a few steps shows what most pictures agree on. What one of them shows beside that is left over, and so is what
the splats do not hold yet: fine texture, edges. The two are told apart by the other pictures that see the same surface: what
the splats lack is left over in all of them alike, what passes by in one. So the leftover of a pixel is held against the median
of those at its surface in other pictures, in units of their scatter, and connected regions that stand out are masked. Leftovers
of a robust training mask distractors in RobustNeRF (Sabour et al., 2023) and SpotLessSplats (2024); statistics over pictures
stand in place of their learnt features.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from airworthy.capture.record import CaptureImages
from airworthy.capture.training.options import TrainOptions
from airworthy.capture.training.run import views_reach
from airworthy.capture.training.train import train_splats
from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayBool, ArrayF32, ArrayFloat
from airworthy.core.errors import AirworthyError
from airworthy.core.files import make_folder, write_bytes
from airworthy.core.jobs.progress import progress
from airworthy.scenes.splats import read_splats
from airworthy.scenes.splats.record import Splats

__all__ = ["SeenViews", "deviations", "leftover_colors", "seen_views", "standing_out", "with_transients_masked"]

TRANSIENTS_FILE, QUICK = "transients.npz", "quick"
_WIDTH = 256
"""Of the pictures that are compared [px]: a person 5 m away is about 80 px tall."""
_STEPS, _COUNT = 1500, 30_000
"""Of the training that is compared with; longer ones learn what passes by, too."""
_SAME_DEPTH = 0.05
"""Share of the depth up to which two pictures see the same surface."""
_LEAST_OTHERS = 4
"""Pictures of the same surface of which a median and a scatter can be taken."""
_MOST_OTHERS = 40
_LEVEL = 1.0 / 255.0
"""Of a picture's 8 bits: no scatter is smaller."""
_NORMAL = 1.4826
"""Standard deviation over median absolute deviation, of a normal distribution."""
_STRONG, _WEAK = 6.0, 3.0
"""Deviations at which a region begins, and down to which it reaches."""
_AREA = 0.001
"""Smallest part of a picture that is masked; a quarter of it must be strong."""
_GROWN = 3
"""Margin [px at `_WIDTH`]: leftovers are smoothed, and borders of people are blurred."""
_TRIMMED, _ROUNDS = 0.75, 5
"""Share of the pixels that exposure is fitted to, and how often they are chosen anew."""
_FEW_PIXELS = 100


@dataclass(frozen=True, eq=False)
class SeenViews:
    """What was left over in pictures, and where it was seen."""

    leftover: tuple[ArrayF32, ...]
    """(h_i, w_i, 3) photograph minus splats, smoothed; NaN where a picture is masked already."""
    depth: tuple[ArrayF32, ...]
    """(h_i, w_i) of the splats, along the optical axis; 0 where there is none."""
    intrinsics: ArrayFloat
    """(n, 4) fx, fy, cx, cy [px] of these images."""
    position: ArrayFloat
    """(n, 3) world."""
    attitude: ArrayFloat
    """(n, 4) camera to world."""

    def __len__(self) -> int:
        return len(self.leftover)


def leftover_colors(image: ArrayF32, truth: ArrayF32, shown: ArrayBool | None = None) -> ArrayF32:
    """Return what a photograph (h, w, 3) shows beyond an image, smoothed by a pixel; NaN where it is not shown.

    Exposure is fitted first, an affine map of colours by the three quarters of the pixels that fit it best, so that somebody
    before the camera does not count as light.

    Args:
        image: As rendered.
        truth: The photograph, in [0, 1].
        shown: (h, w) where it shows the scene; None: everywhere.
    """
    from scipy.ndimage import gaussian_filter

    seen = np.ones(truth.shape[:2], bool) if shown is None else shown
    colors = np.concatenate([image[seen], np.ones((int(seen.sum()), 1))], axis=1).astype(np.float64)
    wanted = truth[seen].astype(np.float64)
    fitted = image
    if len(colors) >= _FEW_PIXELS:
        kept = np.ones(len(colors), bool)
        for _ in range(_ROUNDS):
            known, pull = colors[kept], 1e-4 * kept.sum()
            map_ = np.linalg.solve(known.T @ known + pull * np.eye(4), known.T @ wanted[kept] + pull * np.eye(4, 3))
            off = np.abs(colors @ map_ - wanted).max(axis=1)
            kept = off <= np.quantile(off, _TRIMMED)
        fitted = image @ map_[:3] + map_[3]
    off = np.where(seen[..., None], truth - fitted, 0.0)
    weight = gaussian_filter(seen.astype(np.float32), 1.0)[..., None]
    found = gaussian_filter(off.astype(np.float32), (1.0, 1.0, 0.0)) / np.maximum(weight, 1e-6)
    return np.where(seen[..., None], found, np.nan).astype(np.float32)


def seen_views(splats: Splats, images: CaptureImages) -> SeenViews:
    """Return what photographs show beyond splats.

    Args:
        splats: In the frame of the images.
        images: Photographs, at the size that is compared.
    """
    from airworthy.splats.renderer import SplatRenderer

    renderer = SplatRenderer(splats)
    near = float(np.clip(0.02 * views_reach(images), 1e-4, 1e3))
    leftover, depth = [], []
    for k, photograph in enumerate(images.rgb):
        one, (height, width) = slice(k, k + 1), photograph.shape[:2]
        camera = (width, height, images.intrinsics[one], images.position[one], images.attitude[one])
        found = renderer.render(*camera, channels=("rgb", "depth"), depth_mode="median", near=near)
        leftover.append(leftover_colors(found["rgb"][0], photograph / np.float32(255.0), images.masks[k]))
        depth.append(np.where(np.isfinite(found["depth"][0]), found["depth"][0], 0.0).astype(np.float32))
    return SeenViews(tuple(leftover), tuple(depth), images.intrinsics, images.position, images.attitude)


def deviations(views: SeenViews, k: int) -> ArrayF32:
    """Return how far picture k is from other pictures of the same surfaces (h, w), in standard deviations.

    Scatter is that of the other pictures at the surface and that of the whole picture together. Where fewer than four others
    see a surface, the leftover itself is held against twice its scatter over the picture. 0 where the picture is masked.

    Args:
        views: All pictures.
        k: Which.
    """
    own = views.leftover[k].reshape(-1, 3)
    points = _surface_points(views, k)
    others = np.full((0, *own.shape), np.nan, np.float32)
    chosen = _nearest(views, k)
    if len(chosen):
        others = np.stack([_at_surface(views, int(j), points) for j in chosen])
    median, scatter, count = _robust(others)
    few = count < _LEAST_OTHERS
    if not np.isfinite(own).any():
        return np.zeros(views.depth[k].shape, np.float32)
    # Nobody tells there what the splats lack; it is no larger than elsewhere.
    median[few], scatter[few] = 0.0, 2.0 * _NORMAL * np.nanmedian(np.abs(own), axis=0)
    off = np.abs(own - median)
    whole = _NORMAL * np.nanmedian(off, axis=0)
    found = (off / np.sqrt(whole**2 + scatter**2 + _LEVEL**2)).max(axis=1)
    return np.asarray(np.nan_to_num(found, nan=0.0), np.float32).reshape(views.depth[k].shape)


def _nearest(views: SeenViews, k: int) -> Array:
    """Numbers of other pictures, those that look the same way from near by first."""
    ahead = frames.rotate(views.attitude, np.array([0.0, 0.0, 1.0]))
    apart = np.linalg.norm(views.position - views.position[k], axis=1)
    depth = views.depth[k][views.depth[k] > 0.0]
    cost = apart / (float(np.median(depth)) if len(depth) else 1.0) + 1.0 - ahead @ ahead[k]
    cost[k] = np.inf
    return np.argsort(cost, kind="stable")[: min(_MOST_OTHERS, len(views) - 1)]


def _surface_points(views: SeenViews, k: int) -> Array:
    """World places (m, 3) of all pixels of a picture, row by row; those without depth are at the camera."""
    depth = views.depth[k].astype(np.float64)
    v, u = np.mgrid[0 : depth.shape[0], 0 : depth.shape[1]]
    fx, fy, cx, cy = views.intrinsics[k]
    ray = np.stack(((u + 0.5 - cx) / fx * depth, (v + 0.5 - cy) / fy * depth, depth), axis=-1).reshape(-1, 3)
    return np.asarray(frames.rotate(views.attitude[k], ray) + views.position[k])


def _at_surface(views: SeenViews, j: int, points: Array) -> ArrayF32:
    """Leftovers (m, 3) of picture j at places (m, 3); NaN where it does not see them."""
    eye = frames.rotate_inverse(views.attitude[j], points - views.position[j])
    height, width = views.depth[j].shape
    fx, fy, cx, cy = views.intrinsics[j]
    z = np.maximum(eye[:, 2], 1e-9)
    x, y = np.floor(fx * eye[:, 0] / z + cx), np.floor(fy * eye[:, 1] / z + cy)
    inside = (eye[:, 2] > 1e-6) & (x >= 0) & (y >= 0) & (x < width) & (y < height)
    column, row = np.where(inside, x, 0).astype(np.intp), np.where(inside, y, 0).astype(np.intp)
    inside &= np.abs(views.depth[j][row, column] - eye[:, 2]) < _SAME_DEPTH * eye[:, 2]
    return np.where(inside[:, None], views.leftover[j][row, column], np.nan).astype(np.float32)


def _robust(others: ArrayF32) -> tuple[ArrayF32, ArrayF32, Array]:
    """Median (m, 3) and normal scatter (m, 3) over the first axis (j, m, 3), NaN left out, and how many there were (m,)."""
    count = np.isfinite(others[..., 0]).sum(axis=0)
    if not len(others):
        nothing = np.zeros(others.shape[1:], np.float32)
        return nothing, nothing.copy(), count
    median = _middle(others, count)
    return median, np.float32(_NORMAL) * _middle(np.abs(others - median), count), count


def _middle(values: ArrayF32, count: Array) -> ArrayF32:
    # NaN is sorted to the end; without any number the first is taken, and is NaN, which nobody uses.
    ordered = np.sort(values, axis=0)
    low, high = np.maximum(count - 1, 0) // 2, np.maximum(count, 1) // 2
    high = np.minimum(high, np.maximum(count - 1, 0))
    pick = [np.take_along_axis(ordered, at[None, :, None], axis=0)[0] for at in (low, high)]
    return np.nan_to_num(0.5 * (pick[0] + pick[1]), nan=0.0).astype(np.float32)


def standing_out(deviation: ArrayF32) -> ArrayBool:
    """Return connected regions (h, w) that are large enough and strong, without holes, and with a margin.

    Args:
        deviation: (h, w) of `deviations`.
    """
    from scipy import ndimage

    label, count = ndimage.label(deviation > _WEAK)
    if not count:
        return np.zeros(deviation.shape, bool)
    size = np.bincount(label.ravel(), minlength=count + 1)
    strong = np.bincount(label.ravel(), weights=(deviation > _STRONG).ravel(), minlength=count + 1)
    least = _AREA * deviation.size
    kept = (size >= least) & (strong >= 0.25 * least)
    kept[0] = False
    found = ndimage.binary_closing(np.pad(kept[label], _GROWN), iterations=_GROWN)
    found = ndimage.binary_fill_holes(found)[_GROWN:-_GROWN, _GROWN:-_GROWN]
    return np.asarray(ndimage.binary_dilation(found, iterations=_GROWN), bool)


# ---- Masks of a capture -----------------------------------------------------------------------------------------------------


def with_transients_masked(images: CaptureImages, folder: str | Path, seed: int = 0, quiet: bool = True) -> CaptureImages:
    """Return the images with what passes by masked, by a short training of splats; masks that lie in the folder are taken.

    Held-out images are masked as well, by splats that never saw them: what passes by there is nothing to be judged on.

    Args:
        images: Posed, in any unit.
        folder: For transients.npz and the training.
        seed: Of the training.
        quiet: Show no progress.

    Raises:
        AirworthyError: The folder's masks are of other images, or splats cannot be trained.
    """
    path = Path(folder) / TRANSIENTS_FILE
    if not path.is_file():
        small = _reduced(images)
        options = TrainOptions(
            steps=_STEPS, count=_COUNT, degree=0, exposure="off" if images.rendered else "on", judge_every=_STEPS, seed=seed
        )
        trained = train_splats(small, make_folder(folder) / QUICK, options, quiet)
        views = seen_views(read_splats(trained.splats).splats, small)
        shown = progress(range(len(views)), "Masking what passes by", quiet=quiet)
        write_bytes(path, _packed([standing_out(deviations(views, k)) for k in shown]))
    masks = _unpacked(path, len(images))
    return replace(images, masks=tuple(_combined(images, k, mask) for k, mask in enumerate(masks)))


def _combined(images: CaptureImages, k: int, mask: ArrayBool) -> ArrayBool | None:
    """Where image k shows what stays, at its own size."""
    if not mask.any():
        return images.masks[k]
    height, width = images.rgb[k].shape[:2]
    rows, columns = np.arange(height) * mask.shape[0] // height, np.arange(width) * mask.shape[1] // width
    stays = ~mask[rows[:, None], columns]
    before = images.masks[k]
    return stays if before is None else stays & before


def _reduced(images: CaptureImages) -> CaptureImages:
    """Return the images by whole factors smaller, about `_WIDTH` wide."""
    rgb, masks, lenses = [], [], images.intrinsics.copy()
    for k, image in enumerate(images.rgb):
        factor = max(1, round(max(image.shape[:2]) / _WIDTH))
        height, width = (side // factor for side in image.shape[:2])
        blocks = image[: height * factor, : width * factor].reshape(height, factor, width, factor, 3)
        rgb.append(np.round(blocks.mean(axis=(1, 3))).astype(np.uint8))
        mask = images.masks[k]
        if mask is not None:
            mask = mask[: height * factor, : width * factor].reshape(height, factor, width, factor).all(axis=(1, 3))
        masks.append(mask)
        lenses[k] /= factor
    return replace(images, rgb=tuple(rgb), masks=tuple(masks), intrinsics=lenses)


def _packed(masks: Sequence[ArrayBool]) -> bytes:
    held = io.BytesIO()
    sizes = np.array([mask.shape for mask in masks], np.int32)
    np.savez_compressed(held, sizes=sizes, bits=np.packbits(np.concatenate([mask.ravel() for mask in masks])))
    return held.getvalue()


def _unpacked(path: Path, count: int) -> list[ArrayBool]:
    with np.load(path, allow_pickle=False) as held:
        sizes, bits = held["sizes"].astype(np.int64), held["bits"]
    areas = sizes.prod(axis=1)
    if len(sizes) != count or len(bits) != (areas.sum() + 7) // 8:
        raise AirworthyError(
            f"{str(path)!r} holds masks of {len(sizes)} images, and there are {count}: delete it, and they are made anew."
        )
    parts = np.split(np.unpackbits(bits, count=int(areas.sum())).astype(bool), np.cumsum(areas)[:-1])
    return [part.reshape(size) for part, size in zip(parts, sizes, strict=True)]
