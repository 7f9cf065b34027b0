"""How actors move: scripted paths, commanded velocities, poses from outside; for many environments at once, in float64.

Every function takes rows (one per actor and environment) and is a plain NumPy closed form: a pose never depends on how many
steps led to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core import frames
from airworthy.core.errors import AirworthyError
from airworthy.scenes.record import Actor, Scene, Waypoint

__all__ = ["EXTERNAL", "SCRIPTED", "VELOCITY", "ActorTable", "PathTable", "actor_table", "drifted", "path_pose"]

Floats = NDArray[np.float64]
SCRIPTED, VELOCITY, EXTERNAL = 0, 1, 2
_KIND = {"scripted": SCRIPTED, "velocity": VELOCITY, "external": EXTERNAL}


class PathTable:
    """The scripted paths of many actors, padded to arrays."""

    def __init__(self) -> None:
        self._paths: list[tuple[tuple[Waypoint, ...], bool]] = []
        self._index: dict[Any, int] = {}
        self._arrays: tuple[NDArray[Any], ...] | None = None

    def add(self, path: tuple[Waypoint, ...], repeat: bool, who: str) -> int:
        """Index of a path.

        Raises:
            AirworthyError: It is empty, its times do not rise, or a pose is not finite and of unit length.
        """
        key = (path, repeat)
        if key not in self._index:
            _check_path(path, who)
            self._index[key] = len(self._paths)
            self._paths.append(key)
            self._arrays = None
        return self._index[key]

    def pose(self, path: NDArray[np.int32], time: Floats) -> tuple[Floats, Floats]:
        """Positions (n, 3) and attitudes (n, 4) on paths (n,) at times (n,) [s].

        Linear in position and spherical-linear in attitude between waypoints; held before the first and after the last, or
        repeated with the period between the first and the last.
        """
        times, positions, attitudes, last, repeat = self._padded()
        known = times[path]
        row = np.arange(len(path))
        first, end = known[:, 0], known[row, last[path]]
        span = end - first
        turn = repeat[path] & (span > 0.0)
        # fmod by a zero span is avoided, not masked afterwards: it would warn.
        inside = np.where(turn, first + np.mod(time - first, np.where(turn, span, 1.0)), np.clip(time, first, end))
        before = np.clip((known <= inside[:, None]).sum(1) - 1, 0, np.maximum(last[path] - 1, 0))
        after = np.minimum(before + 1, last[path])
        step = known[row, after] - known[row, before]
        fraction = np.where(step > 0.0, (inside - known[row, before]) / np.where(step > 0.0, step, 1.0), 0.0)
        start, stop = positions[path, before], positions[path, after]
        return start + (stop - start) * fraction[:, None], frames.slerp(
            attitudes[path, before], attitudes[path, after], fraction
        )

    def _padded(self) -> tuple[NDArray[Any], ...]:
        if self._arrays is None:
            count, most = len(self._paths), max(len(path) for path, _ in self._paths)
            times = np.full((count, most), np.inf)
            positions, attitudes = np.zeros((count, most, 3)), np.tile(frames.IDENTITY, (count, most, 1))
            for index, (path, _) in enumerate(self._paths):
                times[index, : len(path)] = [point.time for point in path]
                positions[index, : len(path)] = [point.position for point in path]
                attitudes[index, : len(path)] = frames.normalize([point.attitude for point in path])
            last = np.array([len(path) - 1 for path, _ in self._paths])
            self._arrays = (times, positions, attitudes, last, np.array([repeat for _, repeat in self._paths]))
        return self._arrays


def _check_path(path: tuple[Waypoint, ...], who: str) -> None:
    if not path:
        raise AirworthyError(f"{who} is scripted, but its path is empty; give it at least one waypoint.")
    values = np.array([(point.time, *point.position, *point.attitude) for point in path], float)
    if not np.isfinite(values).all() or (np.abs(np.linalg.norm(values[:, 4:], axis=1) - 1.0) > 1e-4).any():
        raise AirworthyError(f"{who} has a waypoint that is not finite, or whose attitude is not a quaternion of length 1.")
    if (np.diff(values[:, 0]) <= 0.0).any():
        raise AirworthyError(f"{who} has waypoints whose times do not rise; each must be later than the one before.")


def path_pose(path: Sequence[Waypoint], time: ArrayLike, repeat: bool = False) -> tuple[Floats, Floats]:
    """Positions (..., 3) and attitudes (..., 4) of one scripted path at times (...) [s]; see `PathTable.pose`."""
    table = PathTable()
    index = table.add(tuple(path), repeat, "A path")
    at = np.asarray(time, float)
    position, attitude = table.pose(np.full(at.size, index, np.int32), at.reshape(-1))
    return position.reshape(*at.shape, 3), attitude.reshape(*at.shape, 4)


def drifted(position: Floats, attitude: Floats, velocity: Floats, rate: Floats, duration: Floats) -> tuple[Floats, Floats]:
    """Poses after moving with constant world velocity [m/s] and world rate [rad/s] for durations (n,) [s]; exact.

    p + v t, and exp(w t) q, the turn being about world axes through the actor's own origin.
    """
    turn = frames.from_rotation_vector(rate * duration[:, None])
    return position + velocity * duration[:, None], frames.normalize(frames.multiply(turn, attitude))


@dataclass
class ActorTable:
    """Actors as rows of n: what moves them, and from where."""

    kind: NDArray[np.int8]
    """SCRIPTED, VELOCITY or EXTERNAL."""
    path: NDArray[np.int32]
    """Of scripted ones: index in the path table."""
    position: Floats
    """(n, 3): where a drift began, or the pose given from outside."""
    attitude: Floats
    """(n, 4)"""
    velocity: Floats
    """(n, 3) [m/s], world."""
    rate: Floats
    """(n, 3) [rad/s], world."""
    since: Floats
    """(n,): when the drift began [s]."""

    def __len__(self) -> int:
        return len(self.kind)

    def take(self, rows: Any) -> ActorTable:
        """The rows of an index or mask."""
        return replace(self, **{name: getattr(self, name)[rows] for name in self.__dataclass_fields__})

    def put(self, rows: Any, other: ActorTable) -> None:
        """Overwrite rows."""
        for name in self.__dataclass_fields__:
            getattr(self, name)[rows] = getattr(other, name)

    def pose(self, paths: PathTable, time: Floats) -> tuple[Floats, Floats]:
        """World positions (n, 3) and attitudes (n, 4) at times (n,) [s]."""
        position, attitude = self.position.copy(), self.attitude.copy()
        scripted, moving = np.flatnonzero(self.kind == SCRIPTED), np.flatnonzero(self.kind == VELOCITY)
        if len(scripted):
            position[scripted], attitude[scripted] = paths.pose(self.path[scripted], time[scripted])
        if len(moving):
            position[moving], attitude[moving] = drifted(
                position[moving], attitude[moving], self.velocity[moving], self.rate[moving], (time - self.since)[moving]
            )
        return position, attitude


def still(count: int) -> ActorTable:
    """Rows of actors that stand at the origin."""
    return ActorTable(
        np.full(count, EXTERNAL, np.int8),
        np.zeros(count, np.int32),
        np.zeros((count, 3)),
        np.tile(frames.IDENTITY, (count, 1)),
        np.zeros((count, 3)),
        np.zeros((count, 3)),
        np.zeros(count),
    )


def actor_table(scene: Scene, paths: PathTable) -> ActorTable:
    """Rows of a scene's actors at time 0.

    Raises:
        AirworthyError: Two actors share a name, or a path, pose or velocity is not usable.
    """
    table = still(len(scene.actors))
    names = [actor.name for actor in scene.actors]
    for row, actor in enumerate(scene.actors):
        who = f"Actor {actor.name!r} of scene {scene.name!r}"
        if not actor.name or names.count(actor.name) > 1:
            raise AirworthyError(f"{who} needs a name of its own; {names.count(actor.name)} actors have that one.")
        _fill(table, row, actor, who)
        if actor.motion == "scripted":
            table.path[row] = paths.add(actor.path, actor.repeat, who)
    return table


def _fill(table: ActorTable, row: int, actor: Actor, who: str) -> None:
    if actor.motion not in _KIND:
        raise AirworthyError(f"{who} has the motion {actor.motion!r}; expected 'scripted', 'velocity' or 'external'.")
    values = np.array((*actor.position, *actor.velocity, *actor.rate, *actor.attitude), float)
    if not np.isfinite(values).all() or abs(np.linalg.norm(actor.attitude) - 1.0) > 1e-4:
        raise AirworthyError(f"{who} has a pose or velocity that is not finite, or an attitude that is not of length 1.")
    table.kind[row] = _KIND[actor.motion]
    table.position[row], table.attitude[row] = actor.position, frames.normalize(actor.attitude)
    table.velocity[row], table.rate[row] = actor.velocity, actor.rate
