"""Collision bodies as spheres, for contact with scene geometry.

A sphere is itself. A box is cut into equal cells, each enclosed by its sphere, so the set encloses the box and sticks out a
little; a cylinder likewise, by discs that cover its disc. Spheres inside the set are left out: nothing reaches them first.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from airworthy.vehicles.record import CollisionBody

Array = NDArray[np.float64]

SPHERES_MAX = 27
"""Cells that a box is cut into at most."""


def body_spheres(body: CollisionBody, center_of_mass: tuple[float, float, float]) -> tuple[Array, Array]:
    """Spheres that together enclose a collision body.

    Returns:
        Centres from the centre of mass, body frame [m], (m, 3), and radii [m], (m,).
    """
    middle = np.asarray(body.center, float) - np.asarray(center_of_mass, float)
    if body.shape == "sphere":
        return middle[None], np.array([float(body.size[0])])
    centers, radius = _box(body.size) if body.shape == "box" else _cylinder(body.size[0], body.size[2])
    return middle + centers, np.full(len(centers), radius)


def reach(centers: Array, radius: Array) -> float:
    """Farthest that spheres extend from the centre of mass [m]."""
    return float((np.linalg.norm(centers, axis=1) + radius).max())


def _box(half: tuple[float, float, float]) -> tuple[Array, float]:
    """The cut into at most `SPHERES_MAX` cells whose spheres are smallest; of equal ones that with fewest cells."""
    size = np.asarray(half, float)
    cuts = [np.array(n) for n in product(range(1, 10), repeat=3) if np.prod(n) <= SPHERES_MAX]
    cut = min(cuts, key=lambda n: (round(float(np.linalg.norm(size / n)), 9), int(np.prod(n))))
    axes = [h * (2.0 * np.arange(n) + 1.0 - n) / n for h, n in zip(size, cut, strict=True)]
    outer = [[k in (0, n - 1) for k in range(n)] for n in cut]
    kept = [any(flags) for flags in product(*outer)]
    return np.array(list(product(*axes)))[kept], float(np.linalg.norm(size / cut))


def _cylinder(radius: float, half_height: float) -> tuple[Array, float]:
    """Layers of seven: discs of half the radius, one in the middle and six around it, cover a disc."""
    layers = int(np.clip(round(2.0 * half_height / radius), 1, 3))
    turns = np.arange(6) * np.pi / 3.0
    ring = np.sqrt(0.75) * radius * np.stack([np.cos(turns), np.sin(turns)], axis=1)
    disc = np.concatenate([np.zeros((1, 2)), ring])
    heights = half_height * (2.0 * np.arange(layers) + 1.0 - layers) / layers
    centers = np.array([[x, y, z] for z in heights for x, y in disc])
    return centers, float(np.hypot(0.5 * radius, half_height / layers))
