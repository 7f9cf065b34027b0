"""Random meshes and poses, and rays against solids and triangles in float64: what the ray engine is compared with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.frames import rotate_inverse
from airworthy.geometry import Box, Capsule, Cylinder, Mesh, RayTable, Shape, Sphere

Array = NDArray[np.float64]
_BLOCK = 1 << 21
"""Pairs of ray and triangle that are looked at in one go."""


def ray_table(width: int = 64, height: int = 48, focal: float = 180.0) -> RayTable:
    """A pinhole's rays, z forward."""
    u, v = np.meshgrid(np.arange(width) + 0.5 - 0.5 * width, np.arange(height) + 0.5 - 0.5 * height)
    return RayTable(np.stack([u, v, np.full_like(u, focal)], -1))


def quaternions(rng: np.random.Generator, count: int) -> Array:
    """Uniformly random attitudes (count, 4)."""
    drawn = rng.normal(size=(count, 4))
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))


def random_mesh(rng: np.random.Generator, kind: int) -> Mesh:
    """About 2 m across: triangles anywhere (0), a rough ball (1), a rough terrain (2)."""
    if kind == 0:
        centre = rng.uniform(-1.0, 1.0, (24, 1, 3))
        return Mesh((centre + rng.normal(0.0, 0.4, (24, 3, 3))).reshape(-1, 3), np.arange(72).reshape(-1, 3))
    u, v = np.meshgrid(np.linspace(0.0, 1.0, 9), np.linspace(0.0, 1.0, 7), indexing="ij")
    if kind == 1:
        around, up = 2 * np.pi * u, np.pi * v
        ball = np.stack([np.sin(up) * np.cos(around), np.sin(up) * np.sin(around), np.cos(up)], -1)
        points = ball * rng.uniform(0.7, 1.2, (9, 7, 1))
    else:
        points = np.stack([2 * u - 1, 2 * v - 1, rng.uniform(-0.3, 0.3, u.shape)], -1)
    corner = (np.arange(8)[:, None] * 7 + np.arange(6)).reshape(-1)
    faces = np.concatenate([np.stack([corner, corner + 7, corner + 8], 1), np.stack([corner, corner + 8, corner + 1], 1)])
    return Mesh(points.reshape(-1, 3), faces)


def solid_range(shape: Shape, origin: Array, direction: Array) -> Array:
    """Distance along rays that start outside (n, 3), (n, 3) to a solid, in its frame [m], (n,); +inf: none."""
    if isinstance(shape, Box):
        return _box(np.array(shape.half_size), origin, direction)
    if isinstance(shape, Sphere):
        return _nearest([_sphere(shape.radius, origin, direction)])
    assert isinstance(shape, Cylinder | Capsule)
    roots = _quadric(shape.radius, origin[:, :2], direction[:, :2])
    height = origin[:, 2:] + roots * direction[:, 2:]
    found = [np.where(np.abs(height) <= shape.half_length, roots, np.inf)]
    for end in (-shape.half_length, shape.half_length):
        if isinstance(shape, Capsule):
            found.append(_sphere(shape.radius, origin - [0.0, 0.0, end], direction))
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            lid = (end - origin[:, 2]) / direction[:, 2]
            reach = np.linalg.norm(origin[:, :2] + lid[:, None] * direction[:, :2], axis=1)
        found.append(np.where(reach <= shape.radius, lid, np.inf)[:, None])
    return _nearest(found)


def placed_range(shape: Shape, position: Array, attitude: Array, origin: Array, direction: Array) -> Array:
    """The same for a solid somewhere in the world."""
    return solid_range(shape, rotate_inverse(attitude, origin - position), rotate_inverse(attitude, direction))


def plane_range(point: Array, normal: Array, origin: Array, direction: Array) -> Array:
    """Distance along rays to a plane without end [m], (n,); +inf: none."""
    with np.errstate(divide="ignore"):
        return _nearest([(((point - origin) @ normal) / (direction @ normal))[:, None]])


def _box(half: Array, origin: Array, direction: Array) -> Array:
    with np.errstate(divide="ignore"):
        sides = (np.stack([-half, half])[:, None] - origin) / direction
    enter, leave = sides.min(0).max(1), sides.max(0).min(1)
    return np.where((enter <= leave) & (enter > 0.0), enter, np.inf)


def _sphere(radius: float, origin: Array, direction: Array) -> Array:
    return _quadric(radius, origin, direction)


def _quadric(radius: float, origin: Array, direction: Array) -> Array:
    """Both distances at which |origin + t direction| = radius, (n, 2)."""
    a, b = np.sum(direction**2, 1), np.sum(origin * direction, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.sqrt(b * b - a * (np.sum(origin**2, 1) - radius * radius))
        return np.stack([(-b - root) / a, (-b + root) / a], 1)


def _nearest(found: list[Array]) -> Array:
    together = np.concatenate(found, 1)
    return np.where(together > 0.0, together, np.inf).min(1)


def triangle_hits(origin: Array, direction: Array, corners: Array) -> tuple[Array, NDArray[np.int64]]:
    """Nearest of triangles (m, 3, 3) along rays (n, 3), (n, 3): distance [m], +inf, and its number, -1 (Moeller-Trumbore)."""
    rows = max(_BLOCK // max(len(corners), 1), 1)
    parts = [_hits(origin[k : k + rows], direction[k : k + rows], corners) for k in range(0, len(origin), rows)]
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def _hits(origin: Array, direction: Array, corners: Array) -> tuple[Array, NDArray[np.int64]]:
    a, b, c = corners[:, 0], corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    p = np.cross(direction[:, None], c)
    away = origin[:, None] - a
    q = np.cross(away, b)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = 1.0 / np.sum(p * b, -1)
        u, v = np.sum(away * p, -1) * scale, np.sum(direction[:, None] * q, -1) * scale
        t = np.sum(q * c, -1) * scale
        met = (u >= 0.0) & (v >= 0.0) & (u + v <= 1.0) & (t > 0.0)
    t = np.where(met, t, np.inf)
    nearest = t.argmin(1)
    distance = t[np.arange(len(t)), nearest]
    return distance, np.where(np.isfinite(distance), nearest, -1)


def silhouette(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Pixels of images (c, H, W) with another label among their eight neighbours, and the outermost ones."""
    band = np.ones(labels.shape, bool)
    inner = labels[:, 1:-1, 1:-1]
    height, width = labels.shape[1:]
    shifted = [labels[:, i : height - 2 + i, j : width - 2 + j] for i in range(3) for j in range(3)]
    band[:, 1:-1, 1:-1] = np.any([other != inner for other in shifted], axis=0)
    return band
