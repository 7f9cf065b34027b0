"""LiDARs: the whole scan at once, or column by column while the vehicle moves; and their points."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError
from airworthy.core.frames import slerp
from airworthy.sensors.projections import Spherical
from airworthy.sensors.sampling import RaySensor


class Lidar(RaySensor):
    """A spinning LiDAR, dome or radar.

    Raises:
        AirworthyError: If a rolling scan is asked of a projection that has no columns in time.
    """

    def __init__(self, device: Any, name: str = ""):
        super().__init__(device, name)
        if device.rolling and not isinstance(device.projection, Spherical):
            raise AirworthyError(f"LiDAR {self.name!r} scans column by column; that needs a spherical projection.")

    def column_age(self) -> NDArray[np.float64]:
        """How long before the stamp each column fired [s], (width,): the last one fires at the stamp."""
        assert isinstance(self.device.projection, Spherical)
        fraction = self.device.projection.column_fraction()
        return (fraction[-1] - fraction) / self.device.rate


def column_poses(
    age: ArrayLike, past: ArrayLike, position: NDArray[Any], attitude: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Poses at each column's instant, from poses at known instants: linear, and spherical-linear in attitude.

    Args:
        age: How long before the stamp each column fired [s], (width,).
        past: How long before the stamp each known pose was [s], falling to 0, (camera, k); before the first, it holds.
        position: World [m], (camera, k, 3).
        attitude: (camera, k, 4).

    Returns:
        Positions (camera, width, 3), attitudes (camera, width, 4).
    """
    when, known = -np.asarray(age, np.float64), -np.asarray(past, np.float64)
    count = known.shape[1]
    after = (
        np.clip((known[:, None, :] < when[None, :, None]).sum(-1), 1, count - 1)
        if count > 1
        else np.zeros((len(known), len(when)), int)
    )
    before = np.maximum(after - 1, 0)
    row = np.arange(len(known))[:, None]
    start, end = known[row, before], known[row, after]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(end > start, np.clip((when[None] - start) / (end - start), 0.0, 1.0), 0.0)
    a, b = np.asarray(position, np.float64)[row, before], np.asarray(position, np.float64)[row, after]
    qa, qb = np.asarray(attitude, np.float64)[row, before], np.asarray(attitude, np.float64)[row, after]
    return a + (b - a) * share[..., None], slerp(qa, qb, share)


def packed_points(points: NDArray[Any]) -> list[NDArray[np.float32]]:
    """Point clouds without the rays that returned nothing: one array (n, 3) per camera, in scan order."""
    flat = np.asarray(points, np.float32).reshape(len(points), -1, 3)
    return [cloud[np.isfinite(cloud).all(-1)] for cloud in flat]
