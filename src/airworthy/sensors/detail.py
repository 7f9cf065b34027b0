"""Levels of detail: three meshes per thing, chosen by how large it is in the image (spec/flightgoggles 2.6).

Rays pay little for many triangles, so what this saves is memory and the glitter of far meshes, not time. It changes what every
query of its batch meets: give images a batch of their own where contact must not depend on where a camera is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core import frames
from airworthy.core.errors import AirworthyError
from airworthy.geometry import Mesh, Placement, Shape, bounds
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.formats.simplify import levels_of_detail
from airworthy.scenes.record import Scene
from airworthy.sensors.quality import LEVEL_SHARES, LEVELS, Profile, profile, scene_at

__all__ = ["HYSTERESIS", "LEVEL_SIZES", "DetailedScenes", "choose_level", "projected_size"]

LEVEL_SIZES = (0.60, 0.25, 0.08)
"""Least share of the image's height at which high, medium and low are shown; smaller things may be dropped."""
HYSTERESIS = 0.10
"""A level is kept until the size is this share beyond its border."""
FACES_MIN = 64
"""Meshes of no more triangles have one level."""


def projected_size(radius: ArrayLike, distance: ArrayLike, vertical_fov: float) -> NDArray[np.float64]:
    """Share of the image's height that a ball of a radius [m] covers at a distance [m]: 2 r / (2 d tan(fov / 2))."""
    return np.asarray(radius, float) / np.maximum(np.asarray(distance, float) * np.tan(0.5 * vertical_fov), 1e-9)


def choose_level(
    size: ArrayLike, current: ArrayLike | None = None, *, bias: float = 1.0, finest: int = 0, hysteresis: float = HYSTERESIS
) -> NDArray[np.int32]:
    """Level of detail by projected size: 0 high, 1 medium, 2 low, 3 smaller than low needs.

    Args:
        size: Share of the image's height, (...).
        current: Levels shown now, (...): kept while the size is within the hysteresis; None: none.
        bias: Multiplies the size.
        finest: No finer level than this.
        hysteresis: Share of a border by which it must be passed.
    """
    seen = np.asarray(size, float) * bias
    borders = np.array(LEVEL_SIZES)
    fresh = np.sum(seen[..., None] < borders, axis=-1)
    if current is not None:
        # Coarser only below the border less the hysteresis, finer only above it plus the hysteresis.
        coarser = np.sum(seen[..., None] < borders * (1.0 - hysteresis), axis=-1)
        finer = np.sum(seen[..., None] < borders * (1.0 + hysteresis), axis=-1)
        fresh = np.clip(np.asarray(current), coarser, finer)
    return np.maximum(fresh, finest).astype(np.int32)


class DetailedScenes:
    """A batch of scenes for images, whose static meshes change their level as cameras come nearer.

    Args:
        scenes: One per environment (as many different objects), since levels follow each environment's own cameras; a copy by
            `dataclasses.replace(scene)` shares its meshes.
        of: Profile: the finest level, the bias.
        vertical_fov: Of the cameras [rad].
        drop: Leave out things smaller than the last border; otherwise they stay at the lowest level.
        device: Where queries run.
        threads: Of a CPU; None: all.

    Raises:
        AirworthyError: If two environments have the same scene object.
    """

    batch: SceneBatch
    """What to render. Actors and their parts stay at the profile's finest level."""

    def __init__(
        self,
        scenes: Scene | Sequence[Scene],
        of: Profile | str = "High",
        vertical_fov: float = 1.2217,
        drop: bool = False,
        device: str = "cpu",
        threads: int | None = None,
    ):
        given = [scenes] if isinstance(scenes, Scene) else list(scenes)
        if len({id(scene) for scene in given}) != len(given):
            raise AirworthyError(
                "Environments share a scene, but levels follow the cameras of each; give each its `dataclasses.replace(scene)`."
            )
        self.profile = profile(of) if isinstance(of, str) else of
        self.vertical_fov, self.drop = vertical_fov, drop
        made: dict[int, tuple[Mesh, ...]] = {}
        shown = [self._at_finest(scene, made) for scene in given]
        spare = [mesh for levels in made.values() for mesh in levels[self.profile.finest_level :]]
        self.batch = SceneBatch(
            shown, len(given), device, threads, extra_movers=Placement.empty(), extra_shapes=list(dict.fromkeys(spare))
        )
        number = {id(shape): index for index, shape in enumerate(self.batch.geometry.shapes)}
        self._rows = np.tile(np.arange(len(number), dtype=np.int32)[:, None], (1, len(LEVELS)))
        """Shape of every shape at every level, (shape, level)."""
        for levels in made.values():
            chosen = [number[id(levels[max(k, self.profile.finest_level)])] for k in range(len(LEVELS))]
            self._rows[chosen[0]] = chosen
        self._balls = [_balls(self.batch.geometry.layout(env), self.batch.geometry.shapes) for env in range(len(given))]
        self._full = [self.batch.geometry.layout(env) for env in range(len(given))]
        self.levels: list[NDArray[np.int32] | None] = [None] * len(given)
        """Of every environment: level of each static instance, (n,); None before the first `look_from`."""

    def _at_finest(self, scene: Scene, made: dict[int, tuple[Mesh, ...]]) -> Scene:
        bound = {name for skeleton in scene.skeletons.values() for name in skeleton.joints}
        static = dict.fromkeys(instance.shape for instance in scene.instances)
        others = {name: shape for name, shape in scene.shapes.items() if name not in static}
        shapes = {**scene.shapes, **scene_at(replace(scene, shapes=others, instances=()), self.profile).shapes}
        for name in static:
            mesh = scene.shapes[name]
            if isinstance(mesh, Mesh) and name not in bound and len(mesh.faces) > FACES_MIN:
                if id(mesh) not in made:
                    made[id(mesh)] = levels_of_detail(mesh, LEVEL_SHARES)
                shapes[name] = made[id(mesh)][self.profile.finest_level]
        return replace(scene, shapes=shapes)

    def look_from(self, position: ArrayLike, env: ArrayLike | None = None) -> int:
        """Choose levels for cameras.

        Args:
            position: World [m], (c, 3).
            env: (c,) environment of each; None: 0, 1, 2, ... Others keep their levels.

        Returns:
            How many instances changed.
        """
        where = np.asarray(position, np.float64).reshape(-1, 3)
        envs = np.arange(len(where)) if env is None else np.asarray(env, np.intp)
        return sum(self._choose(int(one), where[envs == one]) for one in np.unique(envs))

    def _choose(self, env: int, cameras: NDArray[np.float64]) -> int:
        center, radius = self._balls[env]
        away = np.linalg.norm(center[None] - cameras[:, None], axis=-1).min(axis=0)
        size = projected_size(radius, away, self.vertical_fov)
        before = self.levels[env]
        level = choose_level(size, before, bias=self.profile.level_bias, finest=self.profile.finest_level)
        changed = len(level) if before is None else int((level != before).sum())
        if changed:
            self.levels[env] = level
            full = self._full[env]
            shape = self._rows[full.shape, np.minimum(level, len(LEVELS) - 1)]
            visible = full.visible & (level < len(LEVELS)) if self.drop else full.visible
            index = int(self.batch.scene_of_env[env])
            self.batch.geometry.set_layout(index, replace(full, shape=shape, visible=visible))
        return changed


def _balls(placement: Placement, shapes: Sequence[Shape]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Centres (n, 3) and radii (n,) of balls around instances, world [m]."""
    boxes = [bounds(shape) for shape in shapes]
    middle = np.array([0.5 * (lower + upper) for lower, upper in boxes]).reshape(-1, 3)
    half = np.array([0.5 * np.linalg.norm(upper - lower) for lower, upper in boxes])
    local = middle[placement.shape] * placement.scale[:, None]
    return placement.position + frames.rotate(placement.attitude, local), half[placement.shape] * placement.scale
