"""A cloud to begin with: Gaussians at points, flat where these lie on a surface."""

from __future__ import annotations

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayFloat
from airworthy.scenes.splats.record import C0, Splats

__all__ = ["splats_at", "surfaces_at"]

_AROUND = 12
"""Points by which it is judged how a surface lies: fewer follow noise, more reach round corners."""
_THINNEST = 0.1
"""Least thickness of a flat Gaussian over its width."""


def splats_at(
    points: ArrayFloat, colors: ArrayFloat, opacity: float = 0.1, least: float = 1e-6, *, flat: bool = False
) -> Splats:
    """Return Gaussians at points, as wide as the root mean square distance to their three nearest neighbours.

    Args:
        points: (n, 3) [m].
        colors: (n, 3) in [0, 1], sRGB-encoded.
        opacity: Of each.
        least: Standard deviation [m] where points coincide.
        flat: Whether they lie on the surface of their neighbours, as thin as those are spread across it over along it, down to
            a tenth; where neighbours lie in no plane they are as round as those. Else they are round.
    """
    from scipy.spatial import cKDTree

    n = len(points)
    # Four: the nearest of all to a point is the point itself.
    near = cKDTree(points).query(points, k=min(4, n))[0] if n > 1 else np.ones((n, 2))
    width = np.maximum(np.sqrt(np.square(near[:, 1:]).mean(axis=1)), least)
    turn = np.tile((0.0, 0.0, 0.0, 1.0), (n, 1))
    scale = np.repeat(width[:, None], 3, axis=1)
    if flat and n > _AROUND:
        turn, thickness = surfaces_at(points)
        scale[:, 0] *= thickness
    shade = ((np.asarray(colors, np.float64) - 0.5) / C0)[:, None]
    return Splats(points, turn, scale, np.full(n, opacity), shade)


def surfaces_at(points: ArrayFloat) -> tuple[Array, Array]:
    """Return how the surface lies at each point by its neighbours: rotations (n, 4) whose x axis is its normal, and thickness
    (n,) in [0.1, 1], the neighbours' spread along the normal over that along the shorter way across.

    Principal components of the covariance of twelve points (Hoppe et al. 1992: Surface reconstruction from unorganized
    points).

    Args:
        points: (n, 3), more than twelve.
    """
    from scipy.spatial import cKDTree

    group = points[cKDTree(points).query(points, k=_AROUND)[1]]
    away = group - group.mean(axis=1, keepdims=True)
    square, axes = np.linalg.eigh(np.einsum("nki,nkj->nij", away, away) / _AROUND)
    # Eigenvectors may be left-handed.
    axes[:, :, 0] *= np.sign(np.linalg.det(axes))[:, None]
    spread = np.sqrt(np.maximum(square, 0.0))
    thickness = spread[:, 0] / np.maximum(spread[:, 1], 1e-12)
    return frames.from_matrix(axes), np.clip(np.where(spread[:, 1] > 0.0, thickness, 1.0), _THINNEST, 1.0)
