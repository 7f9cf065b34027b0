"""What a splat renderer is asked for, checked, and its cameras as rows of the kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.sensors.splats.cloud import rotation_matrices
from airworthy.sensors.splats.native_text import CAMERA, FLAGS

CHANNELS = ("rgb", "depth", "alpha")
DEPTH_MODES = ("expected", "median")
DILATION = 0.3
"""Variance that the width of a pixel adds to every Gaussian in the image [px^2]."""
SIDE_MARGIN = 0.15
"""Part of the image, beyond its edges, up to which a Gaussian's projection is linearised at its own mean; one farther out is
linearised there, or its image would grow without bound towards the plane of the camera."""
SIZE_LIMIT = 8192
NEAR_LIMITS = (1e-4, 1e3)
POSITION_LIMIT = 1e6


@dataclass(frozen=True)
class Shot:
    """One call, checked."""

    width: int
    height: int
    flags: int
    channels: tuple[str, ...]
    near: float
    dilation: float
    cameras: NDArray[np.void]
    """Rows of `CAMERA`, one each."""


def shot(
    spans: NDArray[np.int32],
    width: int,
    height: int,
    intrinsics: ArrayLike,
    position: ArrayLike,
    attitude: ArrayLike,
    scene: ArrayLike | None,
    background: ArrayLike,
    antialiased: bool,
    near: float,
    dilation: float,
    channels: Sequence[str],
    depth_mode: str,
) -> Shot:
    """Check a call of `SplatRenderer.render`.

    Raises:
        AirworthyError: If something does not fit.
    """
    if not (1 <= width <= SIZE_LIMIT and 1 <= height <= SIZE_LIMIT):
        raise AirworthyError(f"An image of {width} x {height} pixels was asked for; expected 1 to {SIZE_LIMIT} each way.")
    if not NEAR_LIMITS[0] <= near <= NEAR_LIMITS[1]:
        raise AirworthyError(f"`near` is {near}; expected {NEAR_LIMITS[0]:g} to {NEAR_LIMITS[1]:g} m.")
    if not 1e-3 <= dilation <= 1e3:
        raise AirworthyError(f"`dilation` is {dilation}; expected 0.001 to 1000 px^2.")
    for name in channels:
        if name not in CHANNELS:
            raise unknown_name("channel", name, CHANNELS)
    if depth_mode not in DEPTH_MODES:
        raise unknown_name("depth mode", depth_mode, DEPTH_MODES)
    flags = sum(FLAGS[name] for name in dict.fromkeys(channels)) | FLAGS["antialiased"] * bool(antialiased)
    flags |= FLAGS[depth_mode] * ("depth" in channels)
    cameras = _camera_rows(spans, width, height, intrinsics, position, attitude, scene, background)
    return Shot(width, height, flags, tuple(dict.fromkeys(channels)), float(near), float(dilation), cameras)


def _camera_rows(
    spans: NDArray[np.int32],
    width: int,
    height: int,
    intrinsics: ArrayLike,
    position: ArrayLike,
    attitude: ArrayLike,
    scene: ArrayLike | None,
    background: ArrayLike,
) -> NDArray[np.void]:
    where = _values("position", position, 3)
    count = len(where)
    turned, lens = _values("attitude", attitude, 4, count), _values("intrinsics", intrinsics, 4, count)
    behind = _values("background", background, 3, count)
    if not (np.abs(where) <= POSITION_LIMIT).all():
        raise AirworthyError(f"A camera's position is beyond {POSITION_LIMIT:g} m.")
    if not (lens[:, :2] > 0.0).all():
        raise AirworthyError("A focal length is not above 0; expected fx, fy, cx, cy in pixels.")
    norm = np.linalg.norm(turned, axis=1, keepdims=True)
    if not (norm > 1e-9).all():
        raise AirworthyError("A camera's attitude is a quaternion of zeros; expected x, y, z, w.")
    rows = np.zeros(count, CAMERA)
    rows["rotation"] = rotation_matrices(turned / norm).swapaxes(1, 2).reshape(count, 9)
    rows["position"], rows["intrinsics"], rows["background"] = where, lens, behind
    rows["slopes"] = slope_limits(width, height, lens)
    numbers = _scene_numbers(scene, count, len(spans))
    rows["first_chunk"], rows["chunk_count"] = spans[numbers].T
    return rows


def slope_limits(width: int, height: int, lens: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ray slopes x_low, x_high, y_low, y_high (c, 4) between which projections are linearised at the mean."""
    size = np.array([width, height], np.float64)
    low = (-SIDE_MARGIN * size - lens[:, 2:]) / lens[:, :2]
    high = ((1.0 + SIDE_MARGIN) * size - lens[:, 2:]) / lens[:, :2]
    return np.stack([low[:, 0], high[:, 0], low[:, 1], high[:, 1]], axis=1)


def _values(name: str, value: ArrayLike, size: int, count: int | None = None) -> NDArray[np.float64]:
    """(count, size) from that, or, for all cameras, from (size,)."""
    array = np.asarray(value, np.float64)
    if array.ndim == 1 and count is not None:
        array = np.broadcast_to(array, (count, len(array)))
    if array.ndim != 2 or array.shape[1] != size or (count is not None and len(array) != count):
        wanted = f"({'c' if count is None else count}, {size})"
        raise AirworthyError(f"Cameras got {name} of shape {np.shape(value)}; expected {wanted}, one row per camera.")
    if not np.isfinite(array).all():
        raise AirworthyError(f"Cameras got {name} that is not finite.")
    return array


def _scene_numbers(scene: ArrayLike | None, count: int, scene_count: int) -> NDArray[Any]:
    if scene is None:
        if scene_count not in (1, count):
            raise AirworthyError(f"{count} cameras arrived for {scene_count} scenes; give `scene`, one number per camera.")
        return np.zeros(count, np.int64) if scene_count == 1 else np.arange(count)
    numbers = np.broadcast_to(np.asarray(scene), (count,)) if np.ndim(scene) == 0 else np.asarray(scene)
    if numbers.shape != (count,) or not np.issubdtype(numbers.dtype, np.integer):
        raise AirworthyError(
            f"`scene` is an array of {numbers.dtype}, shape {numbers.shape}; expected whole numbers ({count},)."
        )
    if count and not (numbers.min() >= 0 and numbers.max() < scene_count):
        raise AirworthyError(f"`scene` names scenes {numbers.min()} to {numbers.max()}; expected 0 to {scene_count - 1}.")
    return numbers
