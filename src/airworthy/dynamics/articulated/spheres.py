"""Spheres by which vehicles with joints meet ground and scenes: made of the shapes of their links."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from airworthy.dynamics.articulated.tree import JointTree
from airworthy.vehicles.links import rotation_matrix
from airworthy.vehicles.record import LinkShape, Vehicle

__all__ = ["contact_spheres", "sphere_reach", "widest_gap"]


def contact_spheres(vehicle: Vehicle, tree: JointTree) -> tuple[tuple[int, tuple[float, float, float, float]], ...]:
    """Return the spheres that a vehicle meets things with: their bodies, places in these bodies' frames and radii [m].

    A shape that is long along one axis has a sphere at each end and one in the middle; any other has one. A vehicle whose links
    have no shapes has that around its collision body, on the root.

    Args:
        vehicle: With joints.
        tree: Of it.
    """
    found = []
    for body, link in enumerate(vehicle.links):
        for shape in link.shapes:
            for place, radius in _spheres_of(shape):
                at = tree.frames[body].T @ (place - tree.origins[body])
                found.append((body, (float(at[0]), float(at[1]), float(at[2]), radius)))
    if not found:
        x, y, z = np.asarray(vehicle.body.center, float) - tree.origins[0]
        found.append((0, (float(x), float(y), float(z), max(vehicle.body.size))))
    return tuple(found)


def _spheres_of(shape: LinkShape) -> list[tuple[np.ndarray[Any, Any], float]]:
    half = np.array(shape.size, float)
    if shape.shape == "cylinder":
        half = np.array([shape.size[0], shape.size[0], shape.size[2]])
    middle = np.asarray(shape.position, float)
    long = int(np.argmax(half))
    across = float(np.delete(half, long).max())
    if shape.shape == "sphere" or half[long] < 2.0 * across:
        return [(middle, float(half.max()))]
    axis = rotation_matrix(shape.rotation)[:, long] * (half[long] - across)
    return [(middle - axis, across), (middle, across), (middle + axis, across)]


def widest_gap(shape: LinkShape) -> float:
    """Return the clear distance between two neighbouring spheres of a shape [m]: what is thinner passes through there.

    Args:
        shape: Of a link.
    """
    spheres = _spheres_of(shape)
    pairs = pairwise(spheres)
    gaps = [float(np.linalg.norm(far - near)) - radius - other for (near, radius), (far, other) in pairs]
    return max(gaps, default=0.0)


def sphere_reach(tree: JointTree, spheres: Any) -> float:
    """Return how far any sphere can be from the root's own centre of mass [m], at any angles of the joints."""
    away = [0.0]
    for parent, body in zip(tree.structure.parents, tree.model.bodies[1:], strict=True):
        away.append(away[parent] + math.sqrt(sum(float(x) ** 2 for x in body.offset)))
    return max(away[body] + math.hypot(*at[:3]) + at[3] for body, at in spheres)
