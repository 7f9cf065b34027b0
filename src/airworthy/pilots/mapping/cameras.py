"""The depth camera of the published planners, and the pixels of an image that mapping reads.

In mode `fast` the image has 320 x 240 pixels, of which the ray caster needs to cast only those that are read (`read_pixels`);
its rays are every second of those of mode `full`, 640 x 480. Pixel (j, i) looks along its whole numbers, as in the published
code.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.frames import camera_attitude, rotate
from airworthy.pilots.planning.interface import MapSettings
from airworthy.sensors.projections import Pinhole

__all__ = ["CAMERA_OFFSET", "MODES", "camera_pose", "mapping_camera", "pixel_slopes", "read_pixels"]

Array = NDArray[np.float64]

MODES: dict[str, Pinhole] = {
    "full": Pinhole(640, 480, 387.229, 387.229, 321.046, 243.450, integer_pixels=True),
    "fast": Pinhole(320, 240, 193.6145, 193.6145, 160.523, 121.725, integer_pixels=True),
}
"""Whole images by mode; rates are 30 Hz and that of the map (`MapSettings.rate`)."""

CAMERA_OFFSET = (0.0, 0.0, -0.02)
"""Place of the camera in the body [m]; it looks ahead."""


def mapping_camera(mode: str = "fast") -> Pinhole:
    """The camera of a mode.

    Raises:
        AirworthyError: If there is no such mode.
    """
    if mode not in MODES:
        raise unknown_name("mapping mode", mode, MODES)
    return MODES[mode]


def camera_pose(position: ArrayLike, attitude: ArrayLike) -> tuple[Array, Array]:
    """Place (k, 3) and attitude (k, 4) of the camera's optical frame, from those of the body."""
    body = np.asarray(attitude, np.float64)
    return np.asarray(position, np.float64) + rotate(body, CAMERA_OFFSET), camera_attitude(body)


def read_pixels(projection: Pinhole, settings: MapSettings) -> Pinhole:
    """A camera that has just the pixels of another that mapping reads: every `skip`-th inside the border.

    Depth images of it are taken by `LocalMaps.update` as well as whole ones, with equal results.

    Raises:
        AirworthyError: If no pixel is left, or it is no pinhole camera.
    """
    if not isinstance(projection, Pinhole):
        raise AirworthyError(f"Only the pixels of a Pinhole can be thinned out; got a {type(projection).__name__}.")
    rows, columns = _read(projection, settings)
    half, skip = 0.0 if projection.integer_pixels else 0.5, settings.skip
    cx, cy = ((c - settings.border - half) / skip + half for c in (projection.cx, projection.cy))
    fx, fy = projection.fx / skip, projection.fy / skip
    return Pinhole(len(columns), len(rows), fx, fy, cx, cy, projection.distortion, projection.integer_pixels)


def pixel_slopes(projection: Any, settings: MapSettings) -> tuple[Array, NDArray[np.int32], tuple[int, int]]:
    """What mapping needs of the pixels that it reads, row by row.

    Returns:
        (p, 2) x/z and y/z of their rays in the optical frame; (p,) their numbers in the image of `read_pixels`, row * width +
        column; and that image's (height, width). Pixels without a ray ahead are left out.

    Raises:
        AirworthyError: If no pixel is left, or the projection has no optical frame.
    """
    if not projection.optical:
        raise AirworthyError(f"Maps are made from depth along an optical axis; {type(projection).__name__} has none.")
    rows, columns = _read(projection, settings)
    u, v = np.meshgrid(columns, rows)
    half = 0.0 if getattr(projection, "integer_pixels", False) else 0.5
    ray = projection.unproject(np.stack([u, v], -1) + half).reshape(-1, 3)
    mask = projection.mask()
    fits = ray[:, 2] > 0.0 if mask is None else (ray[:, 2] > 0.0) & mask[np.ix_(rows, columns)].reshape(-1)
    pixel = np.flatnonzero(fits).astype(np.int32)
    return ray[pixel, :2] / ray[pixel, 2:], pixel, (len(rows), len(columns))


def _read(projection: Any, settings: MapSettings) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and columns that are read."""
    rows, columns = (
        np.arange(settings.border, size - settings.border, settings.skip) for size in (projection.height, projection.width)
    )
    if not (len(rows) and len(columns)):
        raise AirworthyError(
            f"An image of {projection.width} x {projection.height} pixels with a border of {settings.border} has none to read."
        )
    return rows, columns
