"""Lights and beacons that stand in the world or ride on actors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core import frames
from airworthy.core.errors import unknown_name
from airworthy.scenes.record import Scene

Floats = NDArray[np.float64]


class AttachedMarks:
    """Points with directions, per scene, in the world or in an actor's frame."""

    def __init__(self) -> None:
        self._scenes: list[tuple[Floats, Floats, NDArray[np.int64]]] = []
        self._padded: tuple[Floats, Floats, NDArray[np.int64]] | None = None

    def add(self, scene: Scene, position: list[Any], direction: list[Any], attached: list[str]) -> None:
        """Marks of the next scene: (m, 3), (m, 3) and names of actors ("": world).

        Raises:
            UnknownNameError: The scene has no such actor.
        """
        names = [actor.name for actor in scene.actors]
        for name in attached:
            if name and name not in names:
                raise unknown_name("actor", name, names, f"A light or beacon of scene {scene.name!r} is attached to it.")
        actor = np.array([names.index(name) if name else -1 for name in attached], np.int64)
        self._scenes.append((np.array(position, float).reshape(-1, 3), np.array(direction, float).reshape(-1, 3), actor))
        self._padded = None

    def poses(self, scene_of_env: NDArray[np.int32], position: Floats, attitude: Floats) -> tuple[Floats, Floats]:
        """World positions and directions (env, marks, 3), NaN where there is none.

        Args:
            scene_of_env: (env,)
            position: Of actors, (env, actors, 3).
            attitude: Of actors, (env, actors, 4).
        """
        tables = self._tables()
        points, directions, actor = tables[0][scene_of_env], tables[1][scene_of_env], tables[2][scene_of_env]
        env, mark = np.nonzero(actor >= 0)
        if len(env):
            turn, origin = attitude[env, actor[env, mark]], position[env, actor[env, mark]]
            points[env, mark] = origin + frames.rotate(turn, points[env, mark])
            directions[env, mark] = frames.rotate(turn, directions[env, mark])
        return points, directions

    def _tables(self) -> tuple[Floats, Floats, NDArray[np.int64]]:
        if self._padded is None:
            most = max((len(actor) for _, _, actor in self._scenes), default=0)
            points = np.full((len(self._scenes), most, 3), np.nan)
            directions, actors = points.copy(), np.full((len(self._scenes), most), -1)
            for index, (position, direction, actor) in enumerate(self._scenes):
                points[index, : len(actor)], directions[index, : len(actor)] = position, direction
                actors[index, : len(actor)] = actor
            self._padded = points, directions, actors
        return self._padded
