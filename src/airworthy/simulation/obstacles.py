"""What bodies made of spheres meet in scene geometry: first contacts of a sub-step, and what touches at an instant.

On NumPy arrays over many bodies: the readable twin of `dynamics/native/scene_sweep.h`, which flies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.dynamics.scene_contact import Bodies, Motion
from airworthy.geometry.batch import GeometryBatch
from airworthy.geometry.distance import clearance
from airworthy.geometry.sweep import sweep_sphere

Array = NDArray[np.float64]
Ints = NDArray[np.intp]

GAP = 2e-5
"""Distance at which bodies count as touching, and are kept from surfaces [m]."""
BAND = 1e-4
"""What is nearer than this beyond the gap, at an impact elsewhere, takes part in it [m]."""
LEAVING = 1e-7
"""Way into a surface over a sub-step that does not count as an approach [m]: a tenth of a micrometre."""
SHALLOW = 1e-3
"""Overlap up to which a body may slide or fly out; a deeper one is a contact whatever it does [m]."""
PAIRS_MAX = 1 << 18
"""Spheres that are swept in one call."""


@dataclass
class Contacts:
    """First contacts of bodies in motion."""

    fraction: Array
    """Of the motion until contact, (k,); 1 where there is none."""
    sphere: Ints
    """Which sphere of the body, (k,)."""
    normal: Array
    """From the surface to the body, world, (k, 3)."""
    point: Array
    """On the surface, world [m], (k, 3); NaN where there is none."""
    instance: NDArray[np.int32]
    """What was hit, (k,); -1: nothing."""

    def drop(self, rows: NDArray[np.bool_]) -> None:
        """Some bodies meet nothing."""
        self.fraction[rows], self.instance[rows], self.normal[rows], self.point[rows] = 1.0, -1, 0.0, np.nan


class Obstacles:
    """Scene geometry as bodies meet it.

    Args:
        geometry: Environments.
        env: Environment of each body, (k,).
    """

    def __init__(self, geometry: GeometryBatch, env: Ints):
        self._geometry, self.env = geometry, env

    def take(self, rows: Any) -> Obstacles:
        """As some of the bodies meet it."""
        return Obstacles(self._geometry, self.env[rows])

    def safe_radius(self, position: Array, reach: Array, farthest: Array | float = np.inf) -> Array:
        """Distance that a body may go without meeting anything [m], (k,); negative where it may have already.

        Args:
            position: Centre of mass, (k, 3).
            reach: Farthest that each body extends from it, (k,).
            farthest: A larger answer is of no use [m].
        """
        found = clearance(self._geometry, position, self.env, farthest + reach)
        return np.minimum(found.distance, farthest + reach) - reach

    def first(self, bodies: Bodies, start: Motion, end: Motion) -> Contacts:
        """First contact of each body between two motions: its spheres move straight from where they were to where they are."""
        block = max(PAIRS_MAX // bodies.radius.shape[1], 1)
        count = len(self.env)
        if count > block:
            parts = [slice(k, k + block) for k in range(0, count, block)]
            found = [self.take(rows).first(bodies.take(rows), start.take(rows), end.take(rows)) for rows in parts]
            return Contacts(*(np.concatenate([getattr(f, name) for f in found]) for name in Contacts.__dataclass_fields__))
        there = (bodies.radius >= 0.0) & (start.finite() & end.finite())[:, None]
        row, sphere = np.nonzero(there)
        begin = bodies.centers_at(start.position, start.attitude)[row, sphere]
        final = bodies.centers_at(end.position, end.attitude)[row, sphere]
        hits = self._sweep(begin, final, bodies.radius[row, sphere] + GAP, self.env[row])
        table = np.full(there.shape, 2.0)
        table[row, sphere] = np.where(hits.instance >= 0, hits.fraction, 2.0)
        best = table.argmin(axis=1)
        number = np.full(there.shape, -1)
        number[row, sphere] = np.arange(len(row))
        chosen = number[np.arange(count), best]
        met = table[np.arange(count), best] <= 1.0
        chosen = np.where(met, chosen, -1)  # the last row of the padded tables: nothing
        pad = {"fraction": 1.0, "normal": np.zeros(3), "point": np.full(3, np.nan), "instance": np.int32(-1)}
        values = {name: np.concatenate([getattr(hits, name), np.asarray(value)[None]])[chosen] for name, value in pad.items()}
        return Contacts(sphere=best, **values)

    def _sweep(self, begin: Array, final: Array, radius: Array, env: Ints) -> Contacts:
        """Sweeps of spheres; one that touches at the start without going further in is swept as if it did not touch."""
        hit = sweep_sphere(self._geometry, begin, final, radius, env)
        found = Contacts(hit.fraction, np.zeros(len(env), np.intp), hit.normal, hit.point, hit.instance)
        way = final - begin
        inward, length = -_dot(way, found.normal), np.sqrt(_dot(way, way))
        found.drop((found.instance >= 0) & (found.fraction > 0.0) & (length <= LEAVING))
        again = np.flatnonzero((found.instance >= 0) & (found.fraction <= 0.0) & (inward <= LEAVING))
        if not again.size:
            return found
        near = clearance(self._geometry, begin[again], env[again], radius[again] + SHALLOW)
        depth = radius[again] - near.distance
        again, smaller = again[depth <= SHALLOW], (near.distance - 2.0 * LEAVING)[depth <= SHALLOW]
        again, smaller = again[smaller > 0.0], smaller[smaller > 0.0]
        hit = sweep_sphere(self._geometry, begin[again], final[again], np.minimum(smaller, radius[again]), env[again])
        for mine, new in ((found.fraction, hit.fraction), (found.normal, hit.normal), (found.point, hit.point)):
            mine[again] = new
        found.instance[again] = hit.instance
        return found

    def touching(self, bodies: Bodies, at: Motion, hit: Contacts) -> tuple[NDArray[np.bool_], Array, Array]:
        """What touches at an impact: the sphere that hit, and those that nearly do.

        Returns:
            Which spheres, (k, m), the normals there, (k, m, 3), and how far each is from where it should be kept, (k, m) [m]:
            positive where it is deeper.
        """
        row, sphere = np.nonzero(bodies.radius >= 0.0)
        points = bodies.centers_at(at.position, at.attitude)[row, sphere]
        radius = bodies.radius[row, sphere]
        near = clearance(self._geometry, points, self.env[row], radius + 2.0 * SHALLOW + BAND)
        normal, depth = np.zeros((*bodies.radius.shape, 3)), np.full(bodies.radius.shape, -np.inf)
        normal[row, sphere] = near.normal
        depth[row, sphere] = radius + GAP - near.distance
        touch = depth > -BAND
        which = np.arange(len(hit.sphere))
        touch[which, hit.sphere] = True
        # A sphere in a corner is near two surfaces: the one that it hit counts.
        normal[which, hit.sphere] = hit.normal
        return touch, normal, depth


def _dot(a: Array, b: Array) -> Array:
    return np.asarray(a[:, 0] * b[:, 0] + a[:, 1] * b[:, 1] + a[:, 2] * b[:, 2])
