"""Directions in which baking looks, and how its work is parted.

Tables are the same for all points of a kind, so that results depend on nothing but the scene and the settings.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from airworthy.core.arrays import Array, NDArray
from airworthy.core.jobs.progress import progress
from airworthy.geometry import RayTable

__all__ = ["RAYS_PER_PASS", "attitudes_towards", "hemisphere_table", "parts", "ray_density", "sphere_table"]

RAYS_PER_PASS = 1 << 20
"""Rays that are asked for at once."""


def sphere_table(count: int) -> RayTable:
    """Return directions spread evenly over the sphere (a Fibonacci spiral), in an order in which neighbours are close."""
    k = np.arange(count) + 0.5
    z = 1.0 - 2.0 * k / count
    return _spiral_table(k, z)


def hemisphere_table(count: int) -> RayTable:
    """Return directions over the half of the sphere around z, as dense as their cosine: every one counts the same."""
    k = np.arange(count) + 0.5
    return _spiral_table(k, np.sqrt(1.0 - k / count))


def _spiral_table(k: NDArray[np.floating], z: NDArray[np.floating]) -> RayTable:
    azimuth = k * (np.pi * (3.0 - np.sqrt(5.0))) % (2.0 * np.pi)
    flat = np.sqrt(np.maximum(1.0 - z * z, 0.0))
    directions = np.stack([np.cos(azimuth) * flat, np.sin(azimuth) * flat, z], -1)
    # Octants one after the other, azimuths within them: packets of rays that stay together are fast.
    octant = (directions < 0.0) @ np.array([1, 2, 4])
    order = np.lexsort((azimuth, octant))
    return RayTable(directions[order][None])


def ray_density(table: RayTable, hemisphere: bool) -> Array:
    """Return how densely the rays of a table of one row lie, (K,) [1/sr].

    Args:
        table: Of `hemisphere_table` or `sphere_table`.
        hemisphere: Which.
    """
    direction = table.directions[0].astype(np.float64)
    cosine = np.maximum(direction[:, 2], 0.0) if hemisphere else np.full(len(direction), 0.25)
    return np.asarray(len(direction) * cosine / np.pi)


def attitudes_towards(normals: Array) -> Array:
    """Return quaternions (n, 4) that turn z onto unit vectors (n, 3)."""
    n = np.asarray(normals, np.float64)
    w = 1.0 + n[:, 2]
    q = np.stack([-n[:, 1], n[:, 0], np.zeros(len(n)), w], -1)
    q[w < 1e-9] = [1.0, 0.0, 0.0, 0.0]
    return np.asarray(q / np.linalg.norm(q, axis=1, keepdims=True))


def parts(count: int, rays: int, text: str, quiet: bool) -> Iterable[slice]:
    """Split surface points into passes of at most `RAYS_PER_PASS` rays, so that memory stays bounded.

    Args:
        count: Points.
        rays: Rays of each point.
        text: What the progress bar is called.
        quiet: Whether there is none.
    """
    size = max(1, RAYS_PER_PASS // rays)
    return progress([slice(k, min(k + size, count)) for k in range(0, count, size)], text, quiet=quiet)
