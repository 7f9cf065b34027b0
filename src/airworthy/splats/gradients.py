"""Derivatives of a loss with respect to clouds and cameras."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayF32, ArrayInt
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.native_kernel import CPU_LANES
from airworthy.scenes.splats.record import Splats
from airworthy.splats.cameras import CameraView
from airworthy.splats.cloud import Cloud
from airworthy.splats.lanes import Slopes
from airworthy.splats.native_text import CHUNK, SLOPE_ROWS
from airworthy.splats.single import SingleSlopes

Loss = Callable[[dict[str, ArrayF32], slice], dict[str, ArrayAny]]
"""Of the images of some of the cameras, and which these are: derivatives with respect to the channels it depends on."""


@dataclass(frozen=True, eq=False)
class Gradients:
    """Derivatives of a loss with respect to one scene's `Splats`, summed over cameras."""

    position: ArrayF32
    rotation: ArrayF32
    """(n, 4); along the unit sphere: of a quaternion that is normalised after each step."""
    scale: ArrayF32
    opacity: ArrayF32
    harmonics: ArrayF32
    image_shift: ArrayF32
    """(n,) length of the derivative with respect to the place in the image [1/px], summed over cameras."""
    image_count: ArrayF32
    """(n,) in how many images."""


@dataclass(frozen=True, eq=False)
class PoseGradients:
    """Derivatives with respect to the cameras' poses."""

    position: Array
    """(c, 3)"""
    rotation: Array
    """(c, 3) of a small turn about the camera's own axes [1/rad]: attitude times the turn."""


def gradients_of(scenes: list[Splats], cloud: Cloud, slopes: Slopes | SingleSlopes) -> list[Gradients]:
    """Return what was found of every scene, in the order of its Gaussians; costs what was seen.

    Args:
        scenes: The clouds.
        cloud: The same, packed.
        slopes: Sums over cameras.
    """
    found = (slopes.gaussians, slopes.harmonics, slopes.touched)
    return [_of_scene(splats, cloud, scene, *found) for scene, splats in enumerate(scenes)]


def _of_scene(
    splats: Splats, cloud: Cloud, scene: int, gaussians: ArrayF32, harmonics: ArrayF32, touched: ArrayBool
) -> Gradients:
    first, count = cloud.spans[scene]
    chunks = first + np.flatnonzero(touched[first : first + count])
    rows = _rows(gaussians.reshape(len(touched), -1)[chunks], SLOPE_ROWS)
    used = np.flatnonzero(rows[14] > 0.0)
    ranks = ((chunks - first)[:, None] * CHUNK + np.arange(CHUNK)).reshape(-1)[used]
    which, rows = cloud.order[scene][ranks], rows[:, used]
    k = splats.harmonics.shape[1]
    numbers = int(cloud.chunks["harmonics"][first]) * CPU_LANES
    blocks = harmonics[numbers : numbers + count * CHUNK * 3 * k].reshape(count, -1)
    colours = _rows(blocks[chunks - first], 3 * k)[:, used].reshape(k, 3, -1)
    rotation, scale = _of_axes(splats.rotation[which], splats.scale[which], rows[3:12].reshape(3, 3, -1))
    parts = (rows[:3], rotation, scale, rows[12], colours, rows[13], rows[14])
    return Gradients(*(_placed(part, which, len(splats)) for part in parts))


def pose_gradients(cameras: NDArray[np.void], slopes: Slopes | SingleSlopes) -> PoseGradients:
    """Return what was found of the cameras, rows of `CAMERA`."""
    rows = np.concatenate([*slopes.poses, np.zeros((0, 12))])
    matrices = cameras["rotation"][: len(rows)].reshape(-1, 3, 3).astype(np.float64)
    return PoseGradients(rows[:, :3], turns(rows[:, 3:].reshape(-1, 3, 3), matrices))


def turns(slopes: Array, matrices: Array) -> Array:
    """Return derivatives (c, 3) with respect to small turns about the cameras' axes, from those with respect to their matrices.

    A turn by w takes the matrix R to R - [w] R: the derivative is the antisymmetric part.
    """
    part = slopes @ matrices.swapaxes(1, 2)
    return np.stack([part[:, 1, 2] - part[:, 2, 1], part[:, 2, 0] - part[:, 0, 2], part[:, 0, 1] - part[:, 1, 0]], axis=1)


def answered(loss: Loss, view: CameraView, some: slice, images: dict[str, ArrayF32]) -> dict[str, ArrayF32]:
    """Ask a loss for its derivatives with respect to images just rendered, which it may read only.

    Args:
        loss: Of the user.
        view: What was rendered, all cameras of this group.
        some: Which of all cameras these are.
        images: By channel, (c, H, W) or (c, H, W, 3).

    Raises:
        AirworthyError: If it names something else, or gives another shape.
    """
    cosines = view.scale  # a fisheye is rendered with distances
    shown = {name: image.view() for name, image in images.items()}
    if cosines is not None:
        with np.errstate(invalid="ignore"):
            shown["depth"] = np.where(np.isfinite(images["depth"]), images["depth"] * cosines, np.inf).astype(np.float32)
    for image in shown.values():
        image.flags.writeable = False
    answer = {name: np.asarray(slope, np.float32) for name, slope in loss(shown, some).items()}
    for name, slope in answer.items():
        if name not in images:
            raise unknown_name("channel", name, tuple(images))
        if slope.shape != images[name].shape:
            raise AirworthyError(
                f"A loss gave derivatives of {name} of shape {slope.shape}; expected {images[name].shape}, as the images."
            )
    if cosines is not None and "depth" in answer:
        answer["depth"] = (answer["depth"] * cosines).astype(np.float32)
    return answer


def _rows(chunks: ArrayF32, width: int) -> ArrayF32:
    """(chunk, numbers of its blocks) -> (width, n)"""
    return chunks.reshape(-1, width, CPU_LANES).swapaxes(0, 1).reshape(width, -1)


def _placed(values: ArrayF32, which: ArrayInt, count: int) -> ArrayF32:
    """(..., n) of some -> (count, ...) of all."""
    found = np.zeros((count, *values.shape[:-1]), np.float32)
    found[which] = np.moveaxis(values, -1, 0)
    return found


def _of_axes(rotation: ArrayF32, scale: ArrayF32, axes: ArrayF32) -> tuple[ArrayF32, ArrayF32]:
    """Return derivatives with respect to quaternions (4, n) and scales (3, n) from those with respect to the axes R
    diag(scale).
    """
    unit = np.ascontiguousarray(rotation.T)
    x, y, z, w = unit
    matrix = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)),
        (2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)),
        (2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)),
    )
    along = np.stack([sum(matrix[row][k] * axes[row, k] for row in range(3)) for k in range(3)])
    (aa, ab, ac), (ba, bb, bc), (ca, cb, cc) = axes * np.ascontiguousarray(scale.T)
    quaternion = 2 * np.stack(
        [
            y * (ab + ba) + z * (ac + ca) - 2 * x * (bb + cc) + w * (cb - bc),
            x * (ab + ba) + z * (bc + cb) - 2 * y * (aa + cc) + w * (ac - ca),
            x * (ac + ca) + y * (bc + cb) - 2 * z * (aa + bb) + w * (ba - ab),
            x * (cb - bc) + y * (ac - ca) + z * (ba - ab),
        ]
    )
    return quaternion - unit * (unit * quaternion).sum(axis=0), along
