"""Meshes that a hall needs besides the solids: boxes with one picture per face, turned profiles, leaves, padded boxes."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from airworthy.geometry import Mesh

Array = NDArray[np.float64]

# Outward normal and the direction of the picture's right edge; "up" follows from them.
_SIDES = (
    ((1, 0, 0), (0, 1, 0)),
    ((-1, 0, 0), (0, -1, 0)),
    ((0, 1, 0), (-1, 0, 0)),
    ((0, -1, 0), (1, 0, 0)),
    ((0, 0, 1), (1, 0, 0)),
    ((0, 0, -1), (1, 0, 0)),
)
_CORNERS = ((-1, -1), (1, -1), (1, 1), (-1, 1))


def unwrapped_box(size: tuple[float, float, float]) -> Mesh:
    """A box of full side lengths `size` [m] whose every face shows the whole texture, upright on the sides."""
    half = 0.5 * np.asarray(size, float)
    vertices: list[Array] = []
    normals: list[Array] = []
    uv: list[tuple[float, float]] = []
    faces: list[tuple[int, int, int]] = []
    for normal, right in _SIDES:
        n, r = np.array(normal, float), np.array(right, float)
        up = np.cross(n, r)
        first = len(vertices)
        for a, b in _CORNERS:
            vertices.append(half * (n + a * r + b * up))
            normals.append(n)
            uv.append((0.5 + 0.5 * a, 0.5 - 0.5 * b))
        faces += [(first, first + 1, first + 2), (first, first + 2, first + 3)]
    return Mesh(np.array(vertices), np.array(faces), np.array(normals), np.array(uv))


def turned_profile(profile: list[tuple[float, float]], segments: int = 24) -> Mesh:
    """A surface of revolution about z.

    Args:
        profile: (radius, height) [m] from bottom to top; a radius of 0 closes an end.
        segments: Around the axis.
    """
    radius, height = np.array(profile, float).T
    angle = 2.0 * math.pi * np.arange(segments + 1) / segments
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    vertices = np.concatenate([np.c_[r * ring, np.full(len(ring), h)] for r, h in zip(radius, height, strict=True)])
    arc = np.concatenate([[0.0], np.cumsum(np.hypot(np.diff(radius), np.diff(height)))])
    uv = np.stack(np.broadcast_arrays(np.linspace(0, 1, segments + 1)[None, :], 1.0 - (arc / arc[-1])[:, None]), -1).reshape(
        -1, 2
    )
    faces = []
    count = segments + 1
    for row in range(len(profile) - 1):
        for column in range(segments):
            a, b = row * count + column, row * count + column + 1
            if radius[row] > 0:
                faces.append((a, b, b + count))
            if radius[row + 1] > 0:
                faces.append((a, b + count, a + count))
    return Mesh(vertices, np.array(faces), _smooth_profile(radius, height, ring), uv)


def _smooth_profile(radius: Array, height: Array, ring: Array) -> Array:
    """Normals of a surface of revolution: across the mean of the adjoining pieces of the profile."""
    step = np.stack([np.diff(radius), np.diff(height)], axis=1)
    step /= np.maximum(np.linalg.norm(step, axis=1, keepdims=True), 1e-12)
    slope = np.vstack([step[:1], step[:-1] + step[1:], step[-1:]])
    slope /= np.maximum(np.linalg.norm(slope, axis=1, keepdims=True), 1e-12)
    rows = [np.c_[dz * ring, np.full(len(ring), -dr)] for dr, dz in slope]
    return np.concatenate(rows)


def foliage(radius: float, count: int, size: float, seed: int) -> Mesh:
    """A bunch of leaf quads about the origin, denser towards the rim.

    Args:
        radius: Of the bunch [m].
        count: Leaves.
        size: Length of a leaf [m].
        seed: Variant.
    """
    rng = np.random.default_rng([seed, count])
    direction = rng.standard_normal((count, 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    direction[:, 2] = np.abs(direction[:, 2]) * 1.1 - 0.25
    center = direction * radius * rng.uniform(0.35, 1.0, (count, 1)) ** 0.5
    axis = direction + 0.7 * rng.standard_normal((count, 3))
    axis /= np.linalg.norm(axis, axis=1, keepdims=True)
    side = np.cross(axis, rng.standard_normal((count, 3)))
    side /= np.linalg.norm(side, axis=1, keepdims=True)
    length = size * rng.uniform(0.6, 1.2, (count, 1))
    corners = [
        center - 0.5 * length * axis,
        center + 0.22 * length * side,
        center + 0.5 * length * axis,
        center - 0.22 * length * side,
    ]
    vertices = np.stack(corners, axis=1).reshape(-1, 3)
    first = 4 * np.arange(count)[:, None]
    faces = np.concatenate([first + np.array([0, 1, 2]), first + np.array([0, 2, 3])], axis=1).reshape(-1, 3)
    normals = np.repeat(np.cross(axis, side), 4, axis=0)
    uv = np.tile([[0.5, 1.0], [1.0, 0.5], [0.5, 0.0], [0.0, 0.5]], (count, 1))
    tint = np.repeat(rng.uniform(0.7, 1.25, (count, 1)), 4, axis=0) * np.array([[1.0, 1.0, 0.9]])
    return Mesh(vertices, faces, normals, uv, np.c_[np.clip(tint, 0, 1), np.ones(4 * count)])
