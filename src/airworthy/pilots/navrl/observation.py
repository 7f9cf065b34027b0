"""What NavRL sees: the goal in its own frame, rays through the map, and what moves. Specification, section 7.1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.pilots.navrl.network import BEAMS, OBSTACLE_SIZE, OBSTACLES, RAYS

__all__ = ["RANGE", "MovingObstacles", "goal_frames", "moving_rows", "ray_directions", "scan_ranges", "state_rows"]

Array = NDArray[np.float64]

RANGE, RAY_STEP = 4.0, 0.1
"""How far rays reach and how finely they are walked [m]."""
ELEVATIONS = np.radians([-10.0, 0.0, 10.0, 20.0])
_TALL = 1.0
"""Moving obstacles higher than this count as without end [m]."""
_WIDTH_STEP, _WIDTH_CLASSES, _GROWN = 0.25, 4, 0.6
_SMALLEST = 1e-6


@dataclass(frozen=True, eq=False)
class MovingObstacles:
    """What moves around n flights, m of them; NaN positions where there are fewer."""

    position: Array
    """(n, m, 3) middles, world [m]."""
    velocity: Array
    """(n, m, 3) [m/s]"""
    size: Array
    """(n, m, 3) edges of boxes [m]."""


def goal_frames(start: Array, goal: Array) -> Array:
    """Rotations from the world into the goals' frames, (n, 3, 3): x level from start (n, 3) to goal, z up."""
    way = (goal - start)[:, :2]
    length = np.linalg.norm(way, axis=1)
    usable = length > _SMALLEST
    unit = np.where(usable[:, None], way / np.where(usable, length, 1.0)[:, None], [1.0, 0.0])
    frames = np.zeros((len(start), 3, 3))
    frames[:, 0, :2] = unit
    frames[:, 1, 0], frames[:, 1, 1], frames[:, 2, 2] = -unit[:, 1], unit[:, 0], 1.0
    return frames


def state_rows(frames: Array, position: Array, velocity: Array, goal: Array) -> Array:
    """(n, 8): unit vector to the goal, horizontal distance, vertical offset, velocity; in the goal's frame."""
    way = goal - position
    unit = way / np.maximum(np.linalg.norm(way, axis=1), _SMALLEST)[:, None]
    level = np.linalg.norm(way[:, :2], axis=1)
    return np.concatenate([_turned(frames, unit), level[:, None], way[:, 2:], _turned(frames, velocity)], axis=1)


def _turned(frames: Array, vectors: Array) -> Array:
    # einsum without a library behind it: a row's sum does not depend on how many rows there are.
    return np.asarray(np.einsum("nij,n...j->n...i", frames, vectors))


def ray_directions(frames: Array) -> Array:
    """Unit vectors of the rays in the world, (n, 36, 4, 3): (cos, sin, tan elevation) at unit length, the goal's way first."""
    azimuth = 2.0 * np.pi * np.arange(RAYS) / RAYS
    local = np.empty((RAYS, BEAMS, 3))
    local[..., 0], local[..., 1] = np.cos(azimuth)[:, None], np.sin(azimuth)[:, None]
    local[..., 2] = np.tan(ELEVATIONS)
    local /= np.linalg.norm(local, axis=-1, keepdims=True)
    return np.asarray(np.einsum("nji,rbj->nrbi", frames, local))


def scan_ranges(
    maps: Any, places: NDArray[np.int64], position: Array, directions: Array, ceiling: Array, unknown_stops: bool = False
) -> Array:
    """Distances at which rays meet what the maps know to be occupied, (k, 36, 4) [m]; RANGE where nothing does.

    The maps' virtual ceiling stops no ray: it is a rule for planners, not a thing.

    Args:
        maps: `airworthy.pilots.planning.interface.Maps`.
        places: Flights (k,) in the maps.
        position: (k, 3) [m]
        directions: (k, 36, 4, 3)
        ceiling: (k,) height above which nothing counts [m].
        unknown_stops: Rays also end where the maps have seen nothing.
    """
    steps = RAY_STEP * np.arange(1, round(RANGE / RAY_STEP))
    points = position[:, None, None, None] + steps[:, None] * directions[:, :, :, None]
    shape = points.shape[:4]
    flat = points.reshape(len(places), -1, 3)
    met = np.asarray(maps.occupied(places, flat))
    if unknown_stops:
        met = met | (np.asarray(maps.state(places, flat)) < 0)
    met = met.reshape(shape)
    met = met & (points[..., 2] < ceiling[:, None, None, None])
    first = met.argmax(axis=-1)
    return np.where(met.any(axis=-1), steps[first], RANGE)


def moving_rows(frames: Array, position: Array, moving: MovingObstacles | None) -> Array:
    """(n, 5, 10): of the nearest moving obstacles within RANGE, by horizontal distance."""
    rows = np.zeros((len(position), OBSTACLES, OBSTACLE_SIZE))
    if moving is None or not moving.position.shape[1]:
        return rows
    way = moving.position - position[:, None]
    tall = moving.size[..., 2] > _TALL
    way[..., 2] = np.where(tall, 0.0, way[..., 2])
    level = np.linalg.norm(way[..., :2], axis=-1)
    order = np.argsort(np.where(np.isfinite(level), level, np.inf), axis=1, kind="stable")[:, :OBSTACLES]
    for k in range(order.shape[1]):
        each, n = order[:, k], np.arange(len(position))
        near = level[n, each] <= RANGE
        unit = way[n, each] / np.maximum(np.linalg.norm(way[n, each], axis=1), _SMALLEST)[:, None]
        width = np.ceil((moving.size[n, each, :2].max(axis=1) + _GROWN) / _WIDTH_STEP) - 1.0
        parts = (
            _turned(frames, unit),
            level[n, each, None],
            way[n, each, 2:],
            _turned(frames, moving.velocity[n, each]),
            np.clip(width, 0.0, _WIDTH_CLASSES - 1.0)[:, None],
            np.where(tall[n, each], 0.0, _TALL)[:, None],
        )
        rows[near, k] = np.concatenate(parts, axis=1)[near]
    return rows
