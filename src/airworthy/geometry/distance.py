"""Clearance: how far points are from everything that can be hit, over many environments at once."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.geometry.batch import GeometryBatch
from airworthy.geometry.distance_kernel import clearance_kernel
from airworthy.geometry.query_arguments import environments, instance_numbers, lengths, vectors
from airworthy.geometry.query_launch import run_queries


@dataclass(frozen=True, eq=False)
class Distance:
    """The nearest surface to each of n points."""

    distance: NDArray[np.float64]
    """[m], (n,): negative inside solids and closed meshes; +inf: nothing within reach; NaN: the point is not finite."""
    point: NDArray[np.float64]
    """Nearest surface point, world [m], (n, 3); NaN where there is none."""
    normal: NDArray[np.float64]
    """Gradient of the distance, (n, 3): unit, from the surface to the point, outwards inside; 0 where there is none."""
    instance: NDArray[np.int32]
    """Number of the nearest instance as in a ray's hits, (n,); -1 where there is none."""
    face: NDArray[np.int32]
    """Nearest face of a mesh, (n,); 0 for solids, -1 where there is none."""


def clearance(
    batch: GeometryBatch,
    points: ArrayLike,
    env: ArrayLike | None = None,
    max_distance: ArrayLike = math.inf,
    *,
    ignore: ArrayLike | None = None,
) -> Distance:
    """Distance from points to the nearest instance that collides.

    Signed for boxes, spheres, cylinders and capsules, and for meshes whose triangles bound a volume counter-clockwise seen from
    outside; the distance to other meshes is never negative, and triangles without area do not count. Where several instances
    overlap, the least of their distances counts. Of equally near instances the lowest number is reported, then the lowest face.

    Args:
        batch: Environments.
        points: World [m], (n, 3).
        env: Environment of each point, (n,) or one number; None: environment k for point k, or the only one.
        max_distance: What is farther does not matter [m], (n,) or one number. Small ones are found faster.
        ignore: Instance that each point does not see (the vehicle's own), (n,) or one number; -1: none.

    Raises:
        AirworthyError: If shapes do not fit or an environment is out of range.
    """
    at = vectors("points", points)
    count = len(at)
    where, limit = environments(env, count, batch.env_count), lengths("max_distance", max_distance, count)
    inputs = (at, where, limit, instance_numbers(ignore, count))
    result, which = run_queries(batch, clearance_kernel(), inputs, ((np.float64, 7), (np.int32, 2)), count)
    none = which[:, 0] < 0
    result[none, 0], result[none, 1:4] = math.inf, math.nan
    result[~np.isfinite(at).all(1), 0] = math.nan
    return Distance(result[:, 0], result[:, 1:4], result[:, 4:7], which[:, 0], which[:, 1])
