"""First contacts of moving spheres and capsules: exact, however fast the body and however thin what it meets."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.geometry.batch import GeometryBatch
from airworthy.geometry.query_arguments import environments, instance_numbers, lengths, vectors
from airworthy.geometry.query_launch import run_queries
from airworthy.geometry.sweep_kernel import sweep_kernel


@dataclass(frozen=True, eq=False)
class Impact:
    """The first contact of each of n moving bodies."""

    fraction: NDArray[np.float64]
    """Of the motion until contact, (n,) in [0, 1]; 1 where there is none; NaN for a motion that is not finite."""
    normal: NDArray[np.float64]
    """Unit, from the surface to the body, (n, 3); 0 where there is no contact."""
    point: NDArray[np.float64]
    """Of the surface that is touched, world [m], (n, 3); NaN where there is no contact."""
    instance: NDArray[np.int32]
    """Number of the instance hit as in a ray's hits, (n,); -1 where there is no contact."""
    face: NDArray[np.int32]
    """Face of a mesh, (n,); 0 for solids, -1 where there is no contact."""


def sweep_sphere(
    batch: GeometryBatch,
    start: ArrayLike,
    end: ArrayLike,
    radius: ArrayLike,
    env: ArrayLike | None = None,
    *,
    ignore: ArrayLike | None = None,
) -> Impact:
    """First contact of spheres that move straight from `start` to `end`.

    A sphere that touches something at its start, or whose centre is inside a solid or closed mesh, has contact at fraction 0,
    with what it is deepest in. Equal contacts: the lowest instance number, then the lowest face.

    Args:
        batch: Environments.
        start: Centre, world [m], (n, 3).
        end: Centre, world [m], (n, 3).
        radius: [m], (n,) or one number; 0 moves a point.
        env: Environment of each sphere, (n,) or one number; None: environment k for sphere k, or the only one.
        ignore: Instance that each sphere passes through (the vehicle's own), (n,) or one number; -1: none.

    Raises:
        AirworthyError: If shapes do not fit, a radius is negative or an environment is out of range.
    """
    return sweep_capsule(batch, start, end, (0.0, 0.0, 0.0), radius, env, ignore=ignore)


def sweep_capsule(
    batch: GeometryBatch,
    start: ArrayLike,
    end: ArrayLike,
    axis: ArrayLike,
    radius: ArrayLike,
    env: ArrayLike | None = None,
    *,
    ignore: ArrayLike | None = None,
) -> Impact:
    """First contact of capsules that move straight, without turning, from `start` to `end`.

    The core of a capsule is the segment centre - axis ... centre + axis. For the rest see `sweep_sphere`.

    Args:
        batch: Environments.
        start: Centre, world [m], (n, 3).
        end: Centre, world [m], (n, 3).
        axis: Half of the core, world [m], (n, 3) or (3,).
        radius: [m], (n,) or one number.
        env: Environment of each capsule, (n,) or one number; None: environment k for capsule k, or the only one.
        ignore: Instance that each capsule passes through, (n,) or one number; -1: none.

    Raises:
        AirworthyError: If shapes do not fit, a radius is negative or an environment is out of range.
    """
    begin = vectors("start", start)
    count = len(begin)
    way = vectors("end", end, count) - begin
    motion = np.concatenate([begin, way, vectors("axis", axis, count), lengths("radius", radius, count)[:, None]], 1)
    inputs = (motion, environments(env, count, batch.env_count), instance_numbers(ignore, count))
    result, which = run_queries(batch, sweep_kernel(), inputs, ((np.float64, 7), (np.int32, 2)), count)
    result[which[:, 0] < 0, 1:4] = math.nan
    result[~np.isfinite(motion).all(1), 0] = math.nan
    return Impact(result[:, 0], result[:, 4:7], result[:, 1:4], which[:, 0], which[:, 1])
