"""People who walk about beside a path: random walks on a grid of free places, each flight's its own.

Where somebody is at a time is a function of (seed, flight, person, time) alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from airworthy.benchmarks.tracking.condition_scene import PERSON_SPEED, person_names
from airworthy.core.arrays import Array, ArrayBool, ArrayInt, ArrayU32
from airworthy.core.errors import AirworthyError
from airworthy.core.random import Stream, uniforms
from airworthy.geometry.distance import clearance
from airworthy.scenes import Scene, SceneBatch

__all__ = ["WalkableGround", "Walkers", "free_ground"]

STEP = 0.6
"""Between neighbouring places [m]."""
NEAR, FAR = 1.0, 2.6
"""How near the path, seen from above, and how far from it they walk [m]; nearer they would stand in the way."""
VISIBLE_SHARE, SIGHT, VIEW = 0.1, 7.0, np.radians(28.0)
"""They stay where a camera looks for this share of the course, not farther than this [m], this far off its axis [rad]."""
ROOM = 0.35
"""Free space round a place [m]."""
HEIGHTS = (0.5, 1.0, 1.6)
"""At which space must be free [m]."""


@dataclass(frozen=True, eq=False)
class WalkableGround:
    """Places where a person may be, and which of them are one step apart."""

    position: Array
    """(n, 2) world x, y [m]."""
    neighbours: tuple[tuple[int, ...], ...]
    """Of each place; none is empty."""
    along: Array
    """(n,) share of the course at which each place is looked at: the middle of the times at which it is."""


def free_ground(scene: Scene, path: Array, yaw: Array) -> WalkableGround:
    """Return where one can walk in view beside a path: at least `NEAR` from it, with free space round oneself.

    Args:
        scene: Without the people.
        path: (n, 3) points of the course, evenly in time [m].
        yaw: (n,) heading there [rad].

    Raises:
        AirworthyError: There is no room for anybody.
    """
    low = np.maximum(path[:, :2].min(0) - FAR, np.array(scene.bounds.lower[:2]) + ROOM)
    high = np.minimum(path[:, :2].max(0) + FAR, np.array(scene.bounds.upper[:2]) - ROOM)
    axes = [np.arange(a, b + 1e-9, STEP) for a, b in zip(low, high, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    away = np.linalg.norm(grid[:, None] - path[None, :, :2], axis=-1)
    in_view = _in_view(grid, path, yaw)
    batch = SceneBatch(scene, 1)
    room = (away.min(1) >= NEAR) & (away.min(1) <= FAR) & (in_view.mean(1) >= VISIBLE_SHARE) & _free(batch, grid)
    position, in_view = grid[room], in_view[room]
    along = (in_view * np.arange(len(path))).sum(1) / np.maximum(in_view.sum(1), 1) / len(path)
    linked = _linked(batch, position, path)
    kept = np.flatnonzero([bool(item) for item in linked])
    if not len(kept):
        raise AirworthyError(f"There is no room for people beside the path in scene {scene.name!r}; leave 'dynamic' out.")
    number = {int(old): new for new, old in enumerate(kept)}
    return WalkableGround(position[kept], tuple(tuple(number[k] for k in linked[old]) for old in kept), along[kept])


def _in_view(position: Array, path: Array, yaw: Array) -> ArrayBool:
    """(places, points) whether a camera that faces the heading has a place in view, what stands between aside."""
    offset = position[:, None] - path[None, :, :2]
    ahead = offset[..., 0] * np.cos(yaw) + offset[..., 1] * np.sin(yaw)
    return (ahead > 0.3) & (ahead >= np.cos(VIEW) * np.linalg.norm(offset, axis=-1)) & (ahead <= SIGHT)


def _free(batch: SceneBatch, points: Array) -> ArrayBool:
    """Tell whether there is space round points (n, 2) at all heights."""
    free = np.ones(len(points), bool)
    for height in HEIGHTS:
        at = np.concatenate([points, np.full((len(points), 1), height)], axis=1)
        free &= clearance(batch.geometry, at, max_distance=1.0).distance > ROOM
    return free


def _linked(batch: SceneBatch, position: Array, path: Array) -> list[list[int]]:
    """Numbers of the places one step from each, with free ground half way."""
    if not len(position):
        return []
    step = np.linalg.norm(position[:, None] - position[None], axis=-1)
    one, other = np.nonzero((step > 0.1) & (step < 1.1 * STEP))
    middle = 0.5 * (position[one] + position[other])
    clear = np.linalg.norm(middle[:, None] - path[None, :, :2], axis=-1).min(1) >= NEAR if len(one) else np.zeros(0, bool)
    good = clear & _free(batch, middle) if len(one) else clear
    found: list[list[int]] = [[] for _ in position]
    for a, b, useful in zip(one.tolist(), other.tolist(), good, strict=True):
        if useful:
            found[a].append(b)
    return found


class Walkers:
    """The people of n flights.

    Args:
        ground: Where they may be.
        keys: (n, 4) of the flights.
        count: People in each.
        duration: How long they walk [s]; they stand where they are then.
    """

    def __init__(self, ground: WalkableGround, keys: ArrayU32, count: int, duration: float):
        self._ground, self._keys, self._count = ground, keys, count
        self._steps = int(np.ceil(duration * PERSON_SPEED / STEP)) + 2

    @cached_property
    def corners(self) -> Array:
        """(n, people, steps, 2) places one after the other."""
        return np.stack([self._walks(person) for person in range(self._count)], axis=1)

    def _walks(self, person: int) -> Array:
        drawn = uniforms(self._keys, person, Stream.COURSE, self._steps)
        # Spread along the path: each begins in a part of it of its own.
        part = np.flatnonzero(np.floor(self._ground.along * self._count).astype(int) == person)
        part = part if len(part) else np.arange(len(self._ground.position))
        walks = []
        for row in drawn:
            here, before = int(part[int(row[0] * len(part))]), -1
            numbers = [here]
            for share in row[1:]:
                exits = [k for k in self._ground.neighbours[here] if k != before] or list(self._ground.neighbours[here])
                before, here = here, exits[int(share * len(exits))]
                numbers.append(here)
            walks.append(self._ground.position[numbers])
        return np.stack(walks)

    def at(self, time: Array) -> tuple[Array, Array]:
        """Positions (n, people, 3) on the floor and attitudes (n, people, 4), heading forward, at times (n,) [s]."""
        share = np.clip(np.asarray(time, float) * PERSON_SPEED / STEP, 0.0, self._steps - 1.001)
        first = share.astype(np.int64)
        row = np.arange(len(first))
        a, b = self.corners[row, :, first], self.corners[row, :, first + 1]
        position = a + (share - first)[:, None, None] * (b - a)
        half = 0.5 * np.arctan2(b[..., 1] - a[..., 1], b[..., 0] - a[..., 0])
        zero = np.zeros_like(half)
        return np.concatenate([position, zero[..., None]], axis=-1), np.stack([zero, zero, np.sin(half), np.cos(half)], axis=-1)

    def pose(self, batch: SceneBatch, time: Array, env_ids: ArrayInt | None = None) -> None:
        """Put the actors of a batch where they are at times (n,), and move their limbs.

        Args:
            batch: Of the scenes.
            time: Since each flight's start [s], (n,).
            env_ids: Environments that are posed; None: all.
        """
        position, attitude = self.at(time)
        batch.time = np.array(time, float)  # by which their limbs move; `advance` would pose everybody once more
        for index, name in enumerate(person_names(self._count)):
            batch.pose_actor(name, position[:, index], attitude[:, index], env_ids)
