"""Rows of instances as `native/batch.h` reads them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from airworthy.geometry.placement import Placement

VISIBLE, COLLIDES = 1, 2
"""Flags of an instance; neither: it is not there."""


def fill_instances(rows: NDArray[np.void], placement: Placement, active: NDArray[np.bool_]) -> None:
    """Everything of instance rows but the pose."""
    for name in ("shape", "instance_id", "semantic_id", "material"):
        rows[name] = getattr(placement, name)
    rows["flags"] = np.where(active, VISIBLE * placement.visible + COLLIDES * placement.collide, 0)


def pose_words(position: NDArray[np.float64], attitude: NDArray[np.float64], scale: NDArray[np.float64]) -> NDArray[np.float32]:
    """(n, 11): position, what single precision leaves of it, quaternion, scale."""
    high = position.astype(np.float32)
    return np.concatenate([high, position - high, attitude, scale[:, None]], 1).astype(np.float32)
