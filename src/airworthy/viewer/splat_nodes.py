"""Gaussian splats as a node of the viewer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core import frames
from airworthy.scenes.splats import Splats, thinned

__all__ = ["SPLATS_MAX", "add_splats"]

SPLATS_MAX = 1_000_000
"""More are merged to this many, which a browser still sorts."""
_BAND_0 = 0.28209479177387814
"""Value of the constant spherical harmonic, 1 / (2 sqrt(pi))."""


def add_splats(
    api: Any,
    name: str,
    splats: Splats,
    position: ArrayLike = (0.0, 0.0, 0.0),
    attitude: ArrayLike = (0.0, 0.0, 0.0, 1.0),
    scale: float = 1.0,
    limit: int = SPLATS_MAX,
) -> Any:
    """Show splats; the browser draws their mean colour, without what depends on the direction of view.

    Args:
        api: `viser.ViserServer.scene`.
        name: Of the node.
        splats: In their own frame.
        position: Of that frame in the world [m].
        attitude: x, y, z, w, of that frame.
        scale: Of that frame.
        limit: Most gaussians to send.
    """
    few = thinned(splats, limit)
    return api.add_gaussian_splats(
        name,
        few.position,
        covariances(few),
        np.clip(0.5 + _BAND_0 * few.harmonics[:, 0], 0.0, 1.0),
        few.opacity[:, None],
        scale=float(scale),
        position=np.asarray(position, float),
        wxyz=frames.to_wxyz(attitude),
    )


def covariances(splats: Splats) -> NDArray[np.float32]:
    """(n, 3, 3) [m^2], in blocks, since double-precision matrices of a million gaussians are large."""
    made = np.empty((len(splats), 3, 3), np.float32)
    for start in range(0, len(splats), 1 << 17):
        rows = slice(start, start + (1 << 17))
        axes = frames.to_matrix(splats.rotation[rows].astype(np.float64)) * splats.scale[rows, None, :]
        made[rows] = axes @ axes.transpose(0, 2, 1)
    return made
