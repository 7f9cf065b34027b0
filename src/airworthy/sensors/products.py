"""Images for files and messages from what sensors measure (spec/flightgoggles 2.3)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.arrays import Array, ArrayAny, ArrayU8
from airworthy.core.errors import AirworthyError

OUTPUT_MODES = {
    -1: "rgb",
    0: "instance_id",
    1: "semantic_id",
    2: "depth_8bit",
    3: "depth_16bit",
    4: "normal",
    5: "grey",
    6: "flow",
}
"""FlightGoggles' numbers of camera outputs."""


def depth_16bit(metres: ArrayLike, unit: float = 1e-3) -> NDArray[np.uint16]:
    """16-bit image of a depth or range: counts of `unit` metres, rounded; 0 where nothing returned or it does not fit."""
    return _counted(metres, unit, np.uint16)


def depth_8bit(metres: ArrayLike, unit: float = 0.2) -> ArrayU8:
    """8-bit image: counts of `unit` metres (FlightGoggles 2019: 0.20); 0 where nothing returned or it does not fit."""
    return _counted(metres, unit, np.uint8)


def metres_of(image: ArrayLike, unit: float = 1e-3) -> Array:
    """Metres of a counted image; +inf where it holds 0."""
    counts = np.asarray(image, np.float64)
    return np.where(counts > 0.0, counts * unit, np.inf)


def ids_16bit(numbers: ArrayLike) -> NDArray[np.uint16]:
    """16-bit image of instance or semantic numbers; 0 where nothing is hit.

    Raises:
        AirworthyError: If a number does not fit into 16 bits.
    """
    array = np.asarray(numbers)
    if array.size and array.max() > 65535:
        raise AirworthyError(f"An image of ids holds {array.max()}, which 16 bits cannot; number instances below 65536.")
    return np.where(array > 0, array, 0).astype(np.uint16)


def normals_8bit(normals: ArrayLike) -> ArrayU8:
    """8-bit image of normals: (n + 1) / 2 x 255 per axis; 0, 0, 0 where nothing is hit."""
    n = np.asarray(normals, np.float64)
    return np.where(np.isnan(n), 0.0, np.rint((n + 1.0) * 127.5)).astype(np.uint8)


def grey(rgb: ArrayLike) -> ArrayU8:
    """Grey image of an 8-bit RGB image: 0.299 R + 0.587 G + 0.114 B (ITU-R BT.601)."""
    return np.rint(np.asarray(rgb, np.float64) @ (0.299, 0.587, 0.114)).astype(np.uint8)


def _counted(metres: ArrayLike, unit: float, kind: Any) -> ArrayAny:
    with np.errstate(invalid="ignore", over="ignore"):
        counts = np.rint(np.asarray(metres, np.float64) / unit)
        fits = (counts > 0) & (counts <= np.iinfo(kind).max)
    return np.where(fits, counts, 0).astype(kind)
