"""How difficult a configuration is: four terms along the shortest way, and the proof that there is one.

* detour: length of the shortest way that keeps 0.30 m clearance, over the straight length;
* tightness: mean of 1 / distance to the nearest obstacle along it [1/m];
* occlusion: largest share of the view ahead (90 by 60 degrees, 6 m deep) that obstacles fill, along it;
* turn: sharpest change of direction between a metre before and a metre after a point of it [rad].

The way is a shortest path on a grid (geometry.grid_path), then pulled tight with exact distances.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayBool
from airworthy.geometry.grid_path import shortest_path
from airworthy.scenes.generators.flyingtrust.layout import ObstacleField, goal_of, start_of, straight_is_free
from airworthy.scenes.generators.flyingtrust.parameters import COLLISION_RADIUS, Scenario

TERMS = ("detour", "tightness", "occlusion", "turn")
VIEW_REACH = 6.0
"""How deep the view is [m]."""
_SPACING = 0.25
_AHEAD = 1.0
_RADIUS_MAX = 5.0
"""An obstacle farther away than this does not make the way tighter or wider [m]."""


@dataclass(frozen=True, eq=False)
class Difficulty:
    """The way and the four terms."""

    path: Array
    """Corners of the way from start to goal, (k, 3) [m]."""
    detour: float
    tightness: float
    occlusion: float
    turn: float

    def terms(self) -> tuple[float, float, float, float]:
        return (self.detour, self.tightness, self.occlusion, self.turn)


def blocked_cells(
    obstacles: ObstacleField, stated: Scenario, resolution: float, corridor: float = np.inf, top: float = np.inf
) -> tuple[ArrayBool, Array]:
    """Return the grid over the area up to the ceiling, True where the way may not go, and its lower corner.

    The grid ends `corridor` to either side of the line and at the height `top` [m], and at the latest where the area ends.

    A way through the centres of free neighbours keeps `COLLISION_RADIUS` everywhere, not only at the centres: neighbours are at
    most sqrt(3) * 0.1 m apart at the resolution of the proof, so centres keep sqrt(0.3^2 + (sqrt(3) * 0.05)^2) = 0.3123 m.

    Args:
        obstacles: What must be kept clear of.
        stated: Its area and ceiling.
        resolution: Edge of a cell [m].
        corridor: Half width about the line from start to goal, y = 0 [m].
        top: Height at which the grid ends [m].
    """
    keep = float(np.hypot(COLLISION_RADIUS, 0.05 * np.sqrt(3.0))) + 1e-6
    width = min(stated.width, 2.0 * corridor)
    lower = np.array([-0.5 * stated.length, -0.5 * width, 0.0])
    size = np.array([stated.length, width, stated.ceiling])
    high = min(stated.ceiling, top)
    shape = tuple(int(n) for n in np.rint(np.array([*size[:2], high]) / resolution))
    grid = obstacles.near(lower, shape, resolution, keep)
    for axis, count in enumerate(shape):
        centre = (np.arange(count) + 0.5) * resolution
        # Bounds are kept clear of as obstacles are: a flight must not leave the area.
        outside = np.minimum(centre, size[axis] - centre) < COLLISION_RADIUS - 1e-9
        grid[(slice(None),) * axis + (outside,)] = True
    return grid, lower


def measure(obstacles: ObstacleField, stated: Scenario) -> Difficulty | None:
    """Return the terms, or None where no way leads to the goal."""
    path = find_path(obstacles, stated)
    if path is None:
        return None
    points = _resampled(path, _SPACING)
    # What is far away is equally easy, however far; nearer than the radius a path cannot be.
    radius = np.clip(obstacles.distance(points), COLLISION_RADIUS, _RADIUS_MAX)
    straight = float(np.linalg.norm(goal_of(stated) - start_of(stated)))
    length = float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum())
    return Difficulty(path, length / straight, float((1.0 / radius).mean()), _occlusion(obstacles, points), _turn(points))


def find_path(obstacles: ObstacleField, stated: Scenario) -> Array | None:
    """Return corners of the shortest way, (k, 3), or None."""
    start, goal = start_of(stated), goal_of(stated)
    if straight_is_free(obstacles, stated):
        return np.stack([start, goal])
    grid, lower = blocked_cells(obstacles, stated, stated.search, stated.corridor)
    found = shortest_path(grid, stated.search, start, goal, lower=lower)
    if found is None:
        return None
    return _pulled(np.vstack([start, found.points, goal]), obstacles)


def _pulled(points: Array, obstacles: ObstacleField) -> Array:
    """Corners left when each leads straight to the farthest point that can be reached without coming too near."""
    corners, at, last = [0], 0, len(points) - 1
    while at < last:
        reach, step = at + 1, 2
        # Doubling, then halving: a path has hundreds of points and few corners.
        while reach < last and _visible(points[at], points[min(at + step, last)], obstacles):
            reach, step = min(at + step, last), 2 * step
        low, high = reach, min(at + step, last)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if _visible(points[at], points[middle], obstacles) else (low, middle)
        at = low
        corners.append(at)
    return points[corners]


def _visible(a: Array, b: Array, obstacles: ObstacleField) -> bool:
    count = int(np.linalg.norm(b - a) / 0.05) + 2
    # Samples are at most 0.05 m apart, so that sqrt(0.3011^2 - 0.025^2) > 0.30 m is kept between them.
    return obstacles.keeps(np.linspace(a, b, count), COLLISION_RADIUS + 0.0011)


def _resampled(path: Array, spacing: float) -> Array:
    """Points along the way at even distances of at most `spacing`, both ends included."""
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1))])
    at = np.linspace(0.0, along[-1], int(np.ceil(along[-1] / spacing)) + 1)
    return np.stack([np.interp(at, along, path[:, k]) for k in range(3)], axis=1)


def _turn(points: Array) -> float:
    step = round(_AHEAD / _SPACING)
    leg = points[step:] - points[:-step]
    before, after = leg[:-step], leg[step:]
    norm = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
    # Over a distance, not from point to point: a path on a grid turns at every cell.
    cosine = np.sum(before * after, axis=1) / np.maximum(norm, 1e-12)
    return float(np.arccos(np.clip(cosine, -1.0, 1.0)).max())


def _occlusion(obstacles: ObstacleField, points: Array) -> float:
    every = round(_AHEAD / _SPACING)
    at = points[:-every:every]
    ahead = points[every::every][: len(at)] - at
    heading = np.arctan2(ahead[:, 1], ahead[:, 0])
    fan = np.meshgrid(np.radians(np.linspace(-45, 45, 19)), np.radians(np.linspace(-30, 30, 13)))
    azimuth, elevation = fan[0].reshape(-1), fan[1].reshape(-1)
    level, up = np.cos(elevation), np.sin(elevation)
    worst = 0.0
    for point, turn in zip(at, heading.tolist(), strict=True):
        rays = np.stack([level * np.cos(turn + azimuth), level * np.sin(turn + azimuth), up], axis=1)
        worst = max(worst, float(np.isfinite(obstacles.first_hit(point, rays, VIEW_REACH)).mean()))
    return worst
