"""Batches as colours see them: without the things that splats stand for."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from airworthy.geometry import Shape, Sphere
from airworthy.geometry.batch import GeometryBatch
from airworthy.geometry.placement import Placement
from airworthy.scenes.record import Instance, Scene

if TYPE_CHECKING:
    from airworthy.scenes.batch import SceneBatch


def is_ghost(item: Instance) -> bool:
    """Whether rays meet a thing that has no colour of its own."""
    return item.covered and not item.visible


def ghost_masks(scene: Scene) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which instances, and which parts of actors, are ghosts."""
    parts = [part for actor in scene.actors for part in actor.parts]
    return np.array([is_ghost(item) for item in scene.instances], bool), np.array([is_ghost(item) for item in parts], bool)


class SeenBatch:
    """The twin of a batch in which ghosts do not exist; everything else is shared with it, numbers included."""

    def __init__(self, batch: SceneBatch):
        self._of = batch.geometry
        masks = [ghost_masks(scene) for scene in batch.scenes]
        layouts = [_without(batch.geometry.layout(k), static) for k, (static, _) in enumerate(masks)]
        pad = np.zeros(batch.extra_count, bool)
        movers = [_without(batch.mover_placement(k), np.concatenate((pad, moving))) for k, (_, moving) in enumerate(masks)]
        self._movers = movers
        self.geometry = GeometryBatch(
            _needed_shapes(list(batch.geometry.shapes), [*layouts, *movers]),
            layouts,
            batch.scene_of_env,
            [movers[scene] for scene in batch.scene_of_env] if batch.geometry.mover_count else None,
            device=batch.device,
            threads=batch.threads,
        )
        self._revision = -1
        self._view = copy.copy(batch)

    def fits(self, batch: SceneBatch) -> bool:
        """Whether it is still of the batch's scenes."""
        return self._of is batch.geometry

    def view(self, batch: SceneBatch) -> SceneBatch:
        """The twin with everything where it is now."""
        geometry = self.geometry
        if batch.geometry.revision != self._revision:
            self._revision = batch.geometry.revision
            changed = np.flatnonzero(geometry.env_layout != batch.scene_of_env)
            if len(changed):
                geometry.assign(changed, batch.scene_of_env[changed])
            if geometry.mover_count:
                if len(changed):
                    geometry.replace_movers(changed, [self._movers[scene] for scene in batch.scene_of_env[changed]])
                position, attitude, active = batch.mover_poses
                geometry.set_movers(position, attitude, None, active)
        vars(self._view).update({**vars(batch), "geometry": geometry, "_origin": batch})
        return self._view


def _without(placement: Placement, ghosts: NDArray[np.bool_]) -> Placement:
    mask = np.zeros(len(placement), bool)
    mask[: len(ghosts)] = ghosts
    return replace(placement, visible=placement.visible & ~mask, collide=np.zeros(len(placement), bool))


def _needed_shapes(shapes: list[Shape], placements: list[Placement]) -> list[Shape]:
    """The shapes, those that nothing shows as specks: a tree over the mesh of a whole cloud would be built for nothing."""
    shown = {int(shape) for item in placements for shape in item.shape[item.visible]}
    return [shape if index in shown else Sphere(1e-3) for index, shape in enumerate(shapes)]
