"""Clouds of splats that ride on actors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from airworthy.core import frames
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.scenes.record import Scene, SplatPlacement

Floats = NDArray[np.float64]


class RidingSplats:
    """The attached placements of each scene, in the frames of their actors."""

    def __init__(self) -> None:
        self._scenes: list[tuple[Floats, Floats, NDArray[np.int64]]] = []

    def add(self, scene: Scene) -> None:
        """Placements of the next scene.

        Raises:
            UnknownNameError: A placement names a cloud or an actor that the scene does not hold.
            AirworthyError: A pose or scale is not usable.
        """
        names = [actor.name for actor in scene.actors]
        for index, item in enumerate(scene.splats):
            _check(item, index, scene, names)
        riding = [item for item in scene.splats if item.attached]
        position = np.array([item.position for item in riding], float).reshape(-1, 3)
        attitude = np.array([item.attitude for item in riding], float).reshape(-1, 4)
        actor = np.array([names.index(item.attached) for item in riding], np.int64)
        self._scenes.append((position, frames.normalize(attitude), actor))

    def poses(self, scene_of_env: NDArray[np.int32], position: Floats, attitude: Floats) -> tuple[Floats, Floats]:
        """World positions (env, placements, 3) and attitudes (env, placements, 4); NaN where an environment has fewer.

        Args:
            scene_of_env: (env,)
            position: Of actors, (env, actors, 3).
            attitude: Of actors, (env, actors, 4).
        """
        most = max((len(actor) for _, _, actor in self._scenes), default=0)
        points, turns = np.full((len(scene_of_env), most, 3), np.nan), np.full((len(scene_of_env), most, 4), np.nan)
        for index, (where, turned, actor) in enumerate(self._scenes):
            envs = np.flatnonzero(scene_of_env == index)
            if not (len(envs) and len(actor)):
                continue
            origin, turn = position[envs][:, actor], attitude[envs][:, actor]
            points[envs, : len(actor)] = origin + frames.rotate(turn, where)
            turns[envs, : len(actor)] = frames.normalize(frames.multiply(turn, turned))
        return points, turns


def _check(item: SplatPlacement, index: int, scene: Scene, actors: list[str]) -> None:
    if item.cloud not in scene.clouds:
        raise unknown_name("cloud", item.cloud, scene.clouds, f"splats[{index}] of scene {scene.name!r} names it.")
    if item.attached and item.attached not in actors:
        raise unknown_name("actor", item.attached, actors, f"splats[{index}] of scene {scene.name!r} is attached to it.")
    numbers = np.array([*item.position, *item.attitude, item.scale], float)
    if not np.isfinite(numbers).all() or abs(np.linalg.norm(item.attitude) - 1.0) > 1e-4 or item.scale <= 0.0:
        raise AirworthyError(
            f"splats[{index}] of scene {scene.name!r} has position {item.position}, attitude {item.attitude} and scale"
            f" {item.scale}; expected finite numbers, a quaternion of length 1 and a scale above 0."
        )
