"""Poses over time, and between the frames of files and the viewer's."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core import frames

Floats = NDArray[np.floating[Any]]
GLTF_TURN = np.array([np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)])
"""x, y, z, w: the y-up frame of a .glb file to z up; viser takes the file's numbers as they are."""


def between(times: Floats, position: Floats, attitude: Floats, time: float) -> tuple[Floats, Floats]:
    """Pose at a time [s] from rows in order of time: linear in position, spherical-linear in attitude, held at the ends.

    Args:
        times: (n,) [s], rising; n at least 1.
        position: (n, 3)
        attitude: (n, 4) unit quaternions.
        time: [s]
    """
    after = int(np.clip(np.searchsorted(times, time, side="right"), 1, max(len(times) - 1, 1)))
    before, after = after - 1, min(after, len(times) - 1)
    span = float(times[after] - times[before])
    share = float(np.clip((time - times[before]) / span, 0.0, 1.0)) if span > 0.0 else 0.0
    place = (1.0 - share) * position[before].astype(np.float64) + share * position[after].astype(np.float64)
    return place, frames.slerp(attitude[before].astype(np.float64), attitude[after].astype(np.float64), share)


def word(text: str) -> str:
    """A name as a part of a node's path."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", text)[:48] or "part"
