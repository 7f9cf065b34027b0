"""Derivatives of a loss with respect to clouds and cameras."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.scenes.splats.record import Splats
from airworthy.sensors.splats.cloud import Cloud, rotation_matrices
from airworthy.sensors.splats.lanes_back import Slopes
from airworthy.sensors.splats.native_text import CHUNK, SLOPE_ROWS

Array = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Gradients:
    """Derivatives of a loss with respect to one scene's `Splats`, summed over cameras."""

    position: Array
    rotation: Array
    """(n, 4); along the unit sphere: of a quaternion that is normalised after each step."""
    scale: Array
    opacity: Array
    harmonics: Array
    image_shift: Array
    """(n,) length of the derivative with respect to the place in the image [1/px], summed over cameras."""
    seen: Array
    """(n,) in how many images."""


@dataclass(frozen=True, eq=False)
class PoseGradients:
    """Derivatives with respect to the cameras' poses."""

    position: NDArray[np.float64]
    """(c, 3)"""
    rotation: NDArray[np.float64]
    """(c, 3) of a small turn about the camera's own axes [1/rad]: attitude times the turn."""


def gradients_of(scenes: list[Splats], cloud: Cloud, slopes: Slopes) -> list[Gradients]:
    """What was found of every scene, in the order of its Gaussians."""
    found, first = [], 0
    for splats, order, (chunk, chunks) in zip(scenes, cloud.order, cloud.spans, strict=True):
        k = splats.harmonics.shape[1]
        blocks = slice(chunk * CHUNK // 16, (chunk + chunks) * CHUNK // 16)
        rows = _unpacked(slopes.gaussians[blocks], order, SLOPE_ROWS)
        size = chunks * CHUNK * 3 * k
        colours = _unpacked(slopes.harmonics[first : first + size].reshape(-1, 3 * k, 16), order, 3 * k)
        first += size
        rotation, scale = _of_axes(splats, rows[:, 3:12].reshape(-1, 3, 3))
        parts = (rows[:, :3], rotation, scale, rows[:, 12], colours.reshape(-1, k, 3), rows[:, 13], rows[:, 14])
        found.append(Gradients(*(np.ascontiguousarray(part, np.float32) for part in parts)))
    return found


def pose_gradients(cameras: NDArray[np.void], slopes: Slopes) -> PoseGradients:
    """What was found of the cameras, rows of `CAMERA`."""
    rows = np.concatenate([*slopes.poses, np.zeros((0, 12))])
    # A turn by w about the camera's axes takes the matrix R to R - [w] R: the derivative is the antisymmetric part.
    part = rows[:, 3:].reshape(-1, 3, 3) @ cameras["rotation"].reshape(-1, 3, 3).astype(np.float64).swapaxes(1, 2)
    turn = np.stack([part[:, 1, 2] - part[:, 2, 1], part[:, 2, 0] - part[:, 0, 2], part[:, 0, 1] - part[:, 1, 0]], axis=1)
    return PoseGradients(rows[:, :3], turn)


def _unpacked(blocks: Array, order: NDArray[np.int64], width: int) -> Array:
    """(block, width, 16) -> (n, width) in the user's order."""
    rows = blocks.swapaxes(1, 2).reshape(-1, width)[: len(order)]
    found = np.empty_like(rows)
    found[order] = rows
    return found


def _of_axes(splats: Splats, axes: Array) -> tuple[NDArray[Any], NDArray[Any]]:
    """Derivatives with respect to quaternions and scales from those with respect to the axes R diag(scale)."""
    turned = rotation_matrices(splats.rotation)
    scale = np.einsum("njk,njk->nk", turned, axes)
    g = axes * splats.scale[:, None, :].astype(np.float64)
    x, y, z, w = splats.rotation.astype(np.float64).T
    a, b, c = g[:, 0], g[:, 1], g[:, 2]
    quaternion = np.stack(
        [
            2 * (y * (a[:, 1] + b[:, 0]) + z * (a[:, 2] + c[:, 0]) - 2 * x * (b[:, 1] + c[:, 2]) + w * (c[:, 1] - b[:, 2])),
            2 * (x * (a[:, 1] + b[:, 0]) + z * (b[:, 2] + c[:, 1]) - 2 * y * (a[:, 0] + c[:, 2]) + w * (a[:, 2] - c[:, 0])),
            2 * (x * (a[:, 2] + c[:, 0]) + y * (b[:, 2] + c[:, 1]) - 2 * z * (a[:, 0] + b[:, 1]) + w * (b[:, 0] - a[:, 1])),
            2 * (x * (c[:, 1] - b[:, 2]) + y * (a[:, 2] - c[:, 0]) + z * (b[:, 0] - a[:, 1])),
        ],
        axis=1,
    )
    unit = splats.rotation.astype(np.float64)
    return quaternion - unit * np.sum(unit * quaternion, axis=1, keepdims=True), scale
