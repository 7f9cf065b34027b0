"""How much of the light from all sides reaches a place between buildings, found by rays against boxes."""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import Array, ArrayFloat

__all__ = ["open_shares"]

_RAYS = 28
_GRID = 0.8
"""Vertices in one cell of this side, that face alike, share an answer [m]."""
_RETURNED = 0.30
"""Light that walls send on, over that of the sky which they hide: their albedo, in light about as bright as the sky."""
_GOLDEN = np.pi * (3.0 - np.sqrt(5.0))


def open_shares(points: Array, normals: Array, lower: ArrayFloat, upper: ArrayFloat) -> Array:
    """Return the share (n,) of light from all sides that boxes leave to points on surfaces.

    Rays that go down count as open: what the ground sends up is part of the sky's light on a surface.

    Args:
        points: (n, 3), world [m].
        normals: (n, 3), unit.
        lower: Corners of boxes (b, 3) [m].
        upper: The others.
    """
    if not len(lower) or not len(points):
        return np.ones(len(points))
    key = np.concatenate([np.rint(points / _GRID), np.rint(2.0 * normals)], axis=1).astype(np.int32)
    _, first, group = np.unique(key, axis=0, return_index=True, return_inverse=True)
    # Off the wall, so that the box that it is a side of does not hide everything.
    start = (points + 0.12 * normals)[first]
    found = np.concatenate(
        [_open(start[k : k + 2000], normals[first][k : k + 2000], lower, upper) for k in range(0, len(first), 2000)]
    )
    return np.asarray(found[group.reshape(-1)])


def _open(start: Array, normals: Array, lower: ArrayFloat, upper: ArrayFloat) -> Array:
    number = np.arange(_RAYS) + 0.5
    up, angle = np.sqrt(1.0 - number / _RAYS), _GOLDEN * np.arange(_RAYS)
    flat = np.sqrt(1.0 - up * up)
    local = np.stack([flat * np.cos(angle), flat * np.sin(angle), up], -1)  # spread as the cosine
    reference = np.where(np.abs(normals[:, 2:]) < 0.9, np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0]))
    first = np.cross(normals, reference)
    first /= np.maximum(np.linalg.norm(first, axis=1, keepdims=True), 1e-9)
    second = np.cross(normals, first)
    ways = local[:, 0, None] * first[:, None] + local[:, 1, None] * second[:, None] + local[:, 2, None] * normals[:, None]
    ways = np.where(np.abs(ways) < 1e-7, 1e-7, ways).astype(np.float32)
    # Axis by axis: reductions over three numbers cost more than they compute.
    inverse = [1.0 / ways[..., k] for k in range(3)]
    origin = [start[:, k, None].astype(np.float32) for k in range(3)]
    hidden = np.zeros(ways.shape[:2], bool)
    for low, high in zip(np.asarray(lower, np.float32), np.asarray(upper, np.float32), strict=True):
        near, far = np.float32(1e-3), np.float32(np.inf)
        for k in range(3):
            a, b = (low[k] - origin[k]) * inverse[k], (high[k] - origin[k]) * inverse[k]
            near, far = np.maximum(near, np.minimum(a, b)), np.minimum(far, np.maximum(a, b))
        # A start inside of a box lies in a recess of it, and does not see it.
        outside = np.zeros((len(start), 1), bool)
        for k in range(3):
            outside |= (origin[k] < low[k]) | (origin[k] > high[k])
        hidden |= (far > near) & outside
    hidden &= ways[..., 2] > 0.0
    share = hidden.mean(1)
    return np.asarray(1.0 - share * (1.0 - _RETURNED))
