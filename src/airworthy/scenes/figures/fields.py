"""Shapes as distances: what a body is made of before it becomes a mesh. Plain float64 NumPy; below 0 is inside.

Distances are near to true ones at the surface, where meshes are made of them, and only of the right sign and order elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayLike

__all__ = ["Field", "Limb", "ball", "blended", "gradient", "limb", "sheared", "sheet", "union"]

Field = Callable[[Array], Array]
"""Distances (n,) [m] of points (n, 3) [m]."""


def ball(center: ArrayLike, radius: ArrayLike) -> Field:
    """Return an ellipsoid: center (3,) and half axes (3,), or one radius [m]."""
    middle, half = np.asarray(center, float), np.broadcast_to(np.asarray(radius, float), (3,))

    def distance(points: Array) -> Array:
        # To first order (k0 (k0 - 1) / k1 of ellipsoids in common use in ray marching): exact for a sphere.
        q = points - middle
        k0 = np.sqrt(((q / half) ** 2).sum(-1))
        k1 = np.sqrt(((q / half**2) ** 2).sum(-1))
        return np.where(k1 > 1e-9, k0 * (k0 - 1.0) / np.maximum(k1, 1e-9), -half.min())

    return distance


@dataclass(frozen=True)
class Limb:
    """Cross-sections along the z axis of a frame: ellipses whose front and back halves may differ."""

    z: tuple[float, ...]
    """Rising, [m]."""
    front: tuple[float, ...]
    back: tuple[float, ...]
    half_width: tuple[float, ...]
    middle: tuple[float, ...] = ()
    """Where the axis is along x; empty: 0."""


def limb(shape: Limb, swell: float = 0.0, square: float = 2.0) -> Field:
    """Return what cross-sections span, rounded at both ends.

    Args:
        shape: The sections.
        swell: Added to all radii [m].
        square: Exponent of the cross-section: 2 an ellipse, more a rounded box.
    """
    from scipy.interpolate import PchipInterpolator

    z = np.asarray(shape.z, float)
    axis = shape.middle or (0.0,) * len(z)
    # Monotone cubics: limbs without waves between the sections that are told.
    curve = PchipInterpolator(z, np.stack([shape.front, shape.back, shape.half_width, axis], -1).astype(float), axis=0)

    def distance(points: Array) -> Array:
        at = np.clip(points[:, 2], z[0], z[-1])
        front, back, wide, middle = curve(at).T
        x, y = points[:, 0] - middle, points[:, 1]
        deep = np.where(x > 0.0, front, back) + swell
        wide = wide + swell
        share = (np.abs(x / deep) ** square + np.abs(y / wide) ** square) ** (1.0 / square)
        radius = np.sqrt(x * x + y * y)
        # Along the ray from the axis; 1e-6 of the axis itself.
        around = np.where(share > 1e-6, radius * (1.0 - 1.0 / np.maximum(share, 1e-6)), -np.minimum(deep, wide))
        beyond = np.abs(points[:, 2] - at)
        return np.where(beyond > 0.0, np.hypot(np.maximum(around, 0.0), beyond), around)

    return distance


def sheet(normal: ArrayLike, offset: float) -> Field:
    """Return a half space: inside where normal . point < offset."""
    n = np.asarray(normal, float)
    return lambda points: points @ n - offset


def union(a: Array, b: Array, blend: float = 0.0) -> Array:
    """Return the distance of two shapes joined, their seam rounded over a width [m] (a quadratic between them)."""
    if blend <= 0.0:
        return np.minimum(a, b)
    near = np.maximum(blend - np.abs(a - b), 0.0)
    return np.asarray(np.minimum(a, b) - near * near / (4.0 * blend))


def blended(parts: Sequence[tuple[Field, float]]) -> Field:
    """Return fields joined one after the other, each over its width."""

    def distance(points: Array) -> Array:
        found = parts[0][0](points)
        for part, blend in parts[1:]:
            found = union(found, part(points), blend)
        return found

    return distance


def sheared(field: Field, matrix: Array) -> Field:
    """Return a field in the world of one in a frame: (4, 4), a rigid motion from frame to world."""
    turn, place = matrix[:3, :3], matrix[:3, 3]
    return lambda points: field((points - place) @ turn)


def gradient(field: Field, points: Array, step: float = 5e-4) -> Array:
    """Return unit normals (n, 3) of a field's surfaces: central differences over twice a step [m]."""
    found = np.empty_like(points)
    for axis in range(3):
        shift = np.zeros(3)
        shift[axis] = step
        found[:, axis] = field(points + shift) - field(points - shift)
    return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)
