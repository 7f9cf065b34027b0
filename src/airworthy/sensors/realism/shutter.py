"""When the pixels of an image are exposed, and where the camera is then.

Instants are in frame periods before the stamp: the stamp is 0, the frame before 1. An image's last row is exposed until the
stamp; without a rolling shutter all rows are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.geometry import RayTable
from airworthy.sensors.lidar import column_poses

__all__ = ["averaged", "exposure_ages", "poses_at", "row_ages", "rows_as_columns", "upright"]

Floats = NDArray[np.float64]


def exposure_ages(percent: float, samples: int) -> Floats:
    """Ages of the exposures of a row, (samples,): the middles of equal parts of `percent` of the period, oldest first."""
    return percent * (1.0 - (np.arange(samples) + 0.5) / samples)


def row_ages(height: int, readout: float) -> Floats:
    """How much earlier than the last row each row is exposed, (height,); rows differ by readout / height."""
    return readout * (height - 1 - np.arange(height)) / height


def poses_at(ages: NDArray[Any], position: Floats, attitude: Floats) -> tuple[Floats, Floats]:
    """Poses at ages (n,), from those of the last frames: linear, and spherical-linear in attitude.

    Args:
        ages: In frame periods, from 0 to the number of frames known less 1; beyond, the oldest holds.
        position: Of the last frames, oldest first, (c, k, 3).
        attitude: (c, k, 4).

    Returns:
        (c, n, 3), (c, n, 4)
    """
    known = position.shape[1]
    past = np.broadcast_to(np.arange(known - 1, -1, -1.0), (len(position), known))
    return column_poses(ages, past, position, attitude)


def averaged(render: Callable[[int], NDArray[np.float32]], numbers: Iterable[int]) -> NDArray[np.float32]:
    """Mean of images, added in order."""
    total: NDArray[np.float32] | None = None
    count = 0
    for number in numbers:
        image = render(number)
        total = image.astype(np.float32) if total is None else total + image
        count += 1
    assert total is not None
    return total if count == 1 else total * np.float32(1.0 / count)


def rows_as_columns(table: RayTable) -> RayTable:
    """The table on its side, so that a query with a pose per column has one per row of the image."""
    origins = None if table.origins is None else table.origins.swapaxes(0, 1)
    return RayTable(table.directions.swapaxes(0, 1), origins, table.axis)


def upright(channels: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Images (c, W, H, ...) of a table on its side as (c, H, W, ...)."""
    return {name: np.ascontiguousarray(array.swapaxes(1, 2)) for name, array in channels.items()}
