"""Where the actors of a scene are at a time, and their parts: asked thirty times a second, so prepared once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core import frames
from airworthy.scenes.actors import PathTable, actor_table
from airworthy.scenes.placing import MaterialTable, ShapeTable, actor_rows
from airworthy.scenes.record import Instance, Scene
from airworthy.scenes.skeletons import part_joints

__all__ = ["ActorPoses"]

Floats = NDArray[np.floating[Any]]


class ActorPoses:
    """Poses of actors as the scene scripts them; `advance` sets the time.

    People are the capsules that rays and vehicles meet: a skin would have to be sent to the browser anew at every time.

    Raises:
        AirworthyError: An actor cannot be posed (`SceneBatch`).
    """

    def __init__(self, scene: Scene):
        self._names = [actor.name for actor in scene.actors]
        self.parts: tuple[Instance, ...] = tuple(part for actor in scene.actors for part in actor.parts)
        """All actors' parts in order, in the frames of their actors at rest."""
        self._paths = PathTable()
        self._table = actor_table(scene, self._paths)
        self._rows = actor_rows(scene, 0, ShapeTable(), MaterialTable()) if self._names else None
        self._joints = None if self._rows is None else part_joints(scene, self._rows)
        self.advance(0.0)

    def advance(self, time: float) -> None:
        """Go to a time [s]."""
        at = np.full(len(self._names), float(time))
        self._position, self._attitude = self._table.pose(self._paths, at)
        if self._rows is None or self._joints is None:
            return
        local, turn = self._joints.poses(self._rows, np.zeros(1, np.int64), np.array([float(time)]), {})
        actor = self._rows.actor
        self.part_position: Floats = self._position[actor] + frames.rotate(self._attitude[actor], local[0])
        """(parts, 3) world [m]."""
        self.part_attitude: Floats = frames.normalize(frames.multiply(self._attitude[actor], turn[0]))
        """(parts, 4) world."""

    def actor(self, name: str) -> tuple[Floats, Floats]:
        """World position (3,) and attitude (4,) of an actor."""
        row = self._names.index(name)
        return self._position[row], self._attitude[row]
