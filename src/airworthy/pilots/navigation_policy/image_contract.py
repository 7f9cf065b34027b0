"""What a navigation policy's contract says of its image: of the sensor, of what is read of it, and of the noise it learnt with.

Nothing of it can be chosen: it is for people and programs of others, and a folder that says something else is refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

from airworthy.pilots.navigation_policy.sight import (
    CELLS,
    FIELD_OF_VIEW,
    IMAGE,
    LIDAR_CELLS,
    LIDAR_ELEVATION,
    LIDAR_MOUNT,
    LIDAR_POOL,
    LIDAR_SCAN,
    MOUNT,
    NEAREST,
    POOL,
    REACH,
)

__all__ = ["LIDAR_NOISE", "image_entries", "is_short_image"]

# Source: specification, learning by reward, 3.2: what training adds to cells (`learning.navigation.eyes.LidarEye`).
LIDAR_NOISE = MappingProxyType(
    {
        "of": "cells of the nearest range, one after the other",
        "farther": {"share": 0.03, "by_m": [NEAREST, REACH]},
        "empty": {"share": 0.02, "reads_m": REACH},
        "near": {"share": 0.02, "rows_from": 10, "reads_m": [NEAREST, 1.0]},
    }
)
"""Of a LiDAR's cells while it learns: shares of cells, and uniform between two numbers; in flight there is none."""
_SHORT = ("read_as", "numbers")
"""All that contracts of LiDARs said before, and still may."""


def image_entries(task: str, read_as: str, numbers: int) -> dict[str, Any]:
    """Return what a contract says of the image.

    Args:
        task: That the policy learnt.
        read_as: "pooled", or "latent" of a depth camera's encoder.
        numbers: That the policy reads of an image.
    """
    if task == "lidar_navigation":
        return {**_lidar(), **(_pooled_scan() if read_as == "pooled" else {}), "read_as": read_as, "numbers": numbers}
    shown = {
        "shape": list(IMAGE),
        "field_of_view_deg": _degrees(FIELD_OF_VIEW),
        "reach_m": REACH,
        "mount_m": list(MOUNT),
    }
    if read_as == "latent":
        return {**shown, "read_as": "latent", "numbers": numbers}
    told = "3 / clip(depth, 0.3, reach) - 0.6, of the nearest return of each block of pixels"
    return {**shown, "read_as": "pooled", "numbers": math.prod(CELLS), "pool": list(POOL), "input": told}


def is_short_image(task: str, image: Any) -> bool:
    """Return whether a contract's image is that of a LiDAR as folders of earlier versions tell it, which mean the same."""
    return task == "lidar_navigation" and isinstance(image, dict) and set(image) == set(_SHORT)


def _lidar() -> dict[str, Any]:
    """Return rays, reach and place of the LiDAR."""
    position, euler = LIDAR_MOUNT
    return {
        "shape": list(LIDAR_SCAN),
        "elevation_deg": _all_degrees(LIDAR_ELEVATION),
        "azimuth_deg": [-180.0, 180.0],
        "rays": "rows from the highest elevation to the lowest, both included; columns from +180 degrees of azimuth downwards,"
        " all round, the last not the first again; x forward, y left, z up",
        "reach_m": REACH,
        "nearest_m": NEAREST,
        "mount_m": list(position),
        "mount_roll_pitch_yaw_deg": _all_degrees(euler),
    }


def _pooled_scan() -> dict[str, Any]:
    """Return what is read of its ranges."""
    told = "1 / range of the nearest return of each block of rays; no return, and what is nearer than nearest_m, is at reach_m"
    noise = {name: dict(x) if isinstance(x, dict) else x for name, x in LIDAR_NOISE.items()}
    return {"pool": list(LIDAR_POOL), "cells": list(LIDAR_CELLS), "input": told, "training_noise": noise}


def _degrees(angle: float) -> float:
    # As a contract's file has it: without the last bits of a conversion.
    return round(math.degrees(angle), 6)


def _all_degrees(angles: Sequence[float]) -> list[float]:
    return [_degrees(angle) for angle in angles]
