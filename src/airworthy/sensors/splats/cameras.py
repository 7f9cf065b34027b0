"""Cameras as rows of the kernels: poses, lenses, and the clouds that stand before them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError
from airworthy.sensors.splats.cloud import rotation_matrices
from airworthy.sensors.splats.lens import Lens
from airworthy.sensors.splats.movers import SplatMovers
from airworthy.sensors.splats.native_text import CAMERA


@dataclass(frozen=True, eq=False)
class Window:
    """A part of a larger image: what is rendered is that part, pixel for pixel."""

    width: int
    """Of the larger image [px]; intrinsics are its."""
    height: int
    corner: ArrayLike
    """(2,) or (c, 2) column and row of the larger image at which the part begins."""


SIDE_MARGIN = 0.15
"""Part of the image, beyond its edges, up to which a Gaussian's projection is linearised at its own mean; one farther out is
linearised there, or its image would grow without bound towards the plane of the camera."""
POSITION_LIMIT = 1e6
_SAMPLES = 33


def camera_rows(
    spans: NDArray[np.int32],
    width: int,
    height: int,
    intrinsics: ArrayLike,
    position: ArrayLike,
    attitude: ArrayLike,
    scene: ArrayLike | None,
    background: ArrayLike,
    lens: Lens,
    movers: SplatMovers | None,
    window: Window | None = None,
) -> tuple[NDArray[np.void], int]:
    """Rows of `CAMERA`, those of the images and then those of their movers, and how many images there are.

    Raises:
        AirworthyError: If something does not fit.
    """
    where = values("position", position, 3)
    count = len(where)
    turned, pixels = values("attitude", attitude, 4, count), values("intrinsics", intrinsics, 4, count)
    behind = values("background", background, 3, count)
    if not (np.abs(where) <= POSITION_LIMIT).all():
        raise AirworthyError(f"A camera's position is beyond {POSITION_LIMIT:g} m.")
    if not (pixels[:, :2] > 0.0).all():
        raise AirworthyError("A focal length is not above 0; expected fx, fy, cx, cy in pixels.")
    norm = np.linalg.norm(turned, axis=1, keepdims=True)
    if not (norm > 1e-9).all():
        raise AirworthyError("A camera's attitude is a quaternion of zeros; expected x, y, z, w.")
    rotation = rotation_matrices(turned / norm).swapaxes(1, 2)
    rows = np.zeros(count, CAMERA)
    rows["rotation"], rows["position"] = rotation.reshape(count, 9), where
    rows["intrinsics"], rows["background"] = pixels, behind
    if window is None:
        _set_lens(rows, width, height, pixels, lens)
    else:
        _set_lens(rows, window.width, window.height, pixels, lens)
        rows["intrinsics"][:, 2:] = pixels[:, 2:] - values("corners of windows", window.corner, 2, count)
    numbers = _scene_numbers(scene, count, len(spans))
    rows["first_chunk"], rows["chunk_count"] = np.where(numbers[:, None] < 0, 0, spans[numbers]).T
    rows["slot_count"] = rows["chunk_count"]
    return (rows if movers is None else _with_movers(rows, spans, where, rotation, movers)), count


def _with_movers(
    rows: NDArray[np.void],
    spans: NDArray[np.int32],
    where: NDArray[np.float64],
    rotation: NDArray[np.float64],
    movers: SplatMovers,
) -> NDArray[np.void]:
    count = len(rows)
    if movers.camera_count != count:
        raise AirworthyError(f"Movers are for {movers.camera_count} cameras, and {count} were given; expected one row each.")
    camera, cloud, inside, turned = movers.views(where, rotation)
    if len(cloud) and not (cloud.min() >= 0 and cloud.max() < len(spans)):
        raise AirworthyError(f"Movers name clouds {cloud.min()} to {cloud.max()}; expected 0 to {len(spans) - 1}.")
    more = rows[camera]
    more["rotation"], more["position"] = turned.reshape(-1, 9), inside
    more["first_chunk"], more["chunk_count"] = spans[cloud].T
    each = np.bincount(camera, minlength=count)
    first = np.concatenate([[0], np.cumsum(each)])
    chunks = np.concatenate([[0], np.cumsum(more["chunk_count"].astype(np.int64))])
    more["slot"] = rows["chunk_count"][camera] + chunks[:-1] - chunks[first[camera]]
    rows["more_first"], rows["more_count"] = count + first[:-1], each
    rows["slot_count"] = rows["chunk_count"] + chunks[first[1:]] - chunks[first[:-1]]
    return np.concatenate([rows, more])


def part_of(images: NDArray[np.void], rows: NDArray[np.void], some: slice) -> NDArray[np.void]:
    """Rows of some of the images, with those of their movers among all rows."""
    part = images[some]
    if not part["more_count"].any():
        return part
    begin, last = int(part["more_first"][0]), int(part["more_first"][-1] + part["more_count"][-1])
    part = part.copy()
    part["more_first"] += len(part) - begin
    return np.concatenate([part, rows[begin:last]])


def _set_lens(rows: NDArray[np.void], width: int, height: int, pixels: NDArray[np.float64], lens: Lens) -> None:
    if lens.straight:
        rows["slopes"] = slope_limits(width, height, pixels)
        return
    kinds, which = np.unique(pixels, axis=0, return_inverse=True)
    found = [lens_numbers(lens, width, height, tuple(kind.tolist())) for kind in kinds]
    which = which.reshape(-1)
    for name in ("slopes", "field", "least_gain", "steepest"):
        rows[name] = np.array([one[name] for one in found])[which] if len(rows) else 0.0
    rows["lens"], rows["lens_limit"] = lens.numbers, lens.limit


def slope_limits(width: int, height: int, pixels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ray slopes x_low, x_high, y_low, y_high (c, 4) between which projections of a pinhole are linearised at the mean."""
    size = np.array([width, height], np.float64)
    low = (-SIDE_MARGIN * size - pixels[:, 2:]) / pixels[:, :2]
    high = ((1.0 + SIDE_MARGIN) * size - pixels[:, 2:]) / pixels[:, :2]
    return np.stack([low[:, 0], high[:, 0], low[:, 1], high[:, 1]], axis=1)


@lru_cache(maxsize=64)
def lens_numbers(lens: Lens, width: int, height: int, pixels: tuple[float, ...]) -> dict[str, Any]:
    """What the kernels need to know of a lens that is not straight, before one camera.

    `slopes`: as of `slope_limits`, of the undistorted image; `field`: the image's greatest distance from the principal point
    [px]; `least_gain` and `steepest`: the least that a slope or an angle becomes in pixels, and the most that a length over its
    distance becomes, by which chunks are culled.
    """
    focal, centre, size = np.array(pixels[:2]), np.array(pixels[2:]), np.array([width, height], np.float64)
    corners = np.array([[0, 0], [1, 0], [0, 1], [1, 1]]) * size - centre
    field = float(np.linalg.norm(corners, axis=1).max())
    if lens.model == "fisheye":
        angle = np.linspace(1e-3, lens.limit, 256)
        place, derivative, _ = lens.unroll(np.stack([np.sin(angle), 0.0 * angle, np.cos(angle)], axis=1))
        gain, steep = (place[:, 0] / angle).min(), np.linalg.norm(derivative, 2, axis=(1, 2)).max()
        slopes = np.zeros(4)
    else:
        slopes = _opencv_limits(lens, size, focal, centre)
        low_x, high_x, low_y, high_y = slopes.tolist()
        x, y = np.meshgrid(np.linspace(low_x, high_x, _SAMPLES), np.linspace(low_y, high_y, _SAMPLES))
        held = np.stack([x, y], axis=-1).reshape(-1, 2)
        steep = (np.linalg.norm(lens.slopes(held), 2, axis=(1, 2)) * np.sqrt(1.0 + (held * held).sum(axis=1))).max()
        turn, radius = np.linspace(0.0, 2.0 * np.pi, _SAMPLES), np.linspace(1e-3, lens.limit, 256)[:, None]
        ring = np.stack([np.cos(turn) * radius, np.sin(turn) * radius], axis=-1)
        gain = (np.linalg.norm(lens.bend(ring), axis=-1) / radius).min()
    # Sampled, hence margins; both are only used to leave out what cannot be seen.
    return {
        "slopes": slopes,
        "field": field + 1.0,
        "least_gain": 0.95 * float(focal.min()) * float(gain),
        "steepest": 1.1 * float(focal.max()) * float(steep),
    }


def _opencv_limits(
    lens: Lens, size: NDArray[np.float64], focal: NDArray[np.float64], centre: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Slopes between which the lens' images of what is around the picture lie; where it has none, up to its limit."""
    share = np.linspace(-SIDE_MARGIN, 1.0 + SIDE_MARGIN, _SAMPLES)
    low, high = np.full(_SAMPLES, share[0]), np.full(_SAMPLES, share[-1])
    edge = np.concatenate([np.stack(side, axis=-1) for side in ((share, low), (share, high), (low, share), (high, share))])
    place = (edge * size - centre) / focal
    rays, known = lens.rays(place)
    slope = np.where(
        known[:, None], rays[:, :2] / rays[:, 2:], lens.limit * place / np.linalg.norm(place, axis=1, keepdims=True)
    )
    return np.stack([slope.min(axis=0), slope.max(axis=0)], axis=1).reshape(-1)


def values(name: str, value: ArrayLike, size: int, count: int | None = None) -> NDArray[np.float64]:
    """(count, size) from that, or, for all cameras, from (size,).

    Raises:
        AirworthyError: If the shape is another or a number is not finite.
    """
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
    if count and not (numbers.min() >= -1 and numbers.max() < scene_count):
        raise AirworthyError(
            f"`scene` names scenes {numbers.min()} to {numbers.max()}; expected 0 to {scene_count - 1}, or -1 for none."
        )
    return numbers
