"""Baking light with the renderer itself, and keeping it on disk.

`bake(scene)` gives the light of one scene; `use_baked(batch)` bakes, or finds in the cache, and lights a batch with it.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AssetError
from airworthy.geometry import RayTable
from airworthy.scenes.appearance import appearance_of
from airworthy.scenes.baked_files import load_baked, save_baked, scene_hash
from airworthy.scenes.baking import DEFAULT_BAKE, BakeSettings, solve
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.lightmaps import BakedLight
from airworthy.scenes.record import Scene
from airworthy.sensors.shading import Cameras, ShadingOptions, shade_channels

__all__ = ["bake", "baked_light", "cache_folder", "use_baked"]

_OPTIONS = ShadingOptions(specular=False, sun_disc=False, texture_scale=0.125, max_range=2000.0)
"""Light that bounces is diffuse, and its colours may be coarse."""


class RenderTracer:
    """What directions bring, by the renderer."""

    def __init__(self, batch: SceneBatch) -> None:
        self.batch = batch

    def __call__(self, table: RayTable, position: NDArray[np.float64], attitude: NDArray[np.float64]) -> tuple[Any, Any, Any]:
        cameras = Cameras.of(self.batch, table, position, attitude, np.zeros(len(position), np.int32))
        found = shade_channels(self.batch, table, cameras, ("rgb", "hits"), _OPTIONS)
        return found["rgb"], found["range"], found["back"]

    def use(self, baked: BakedLight) -> None:
        """Light surfaces with this."""
        appearance_of(self.batch, _OPTIONS.texture_scale).use(0, baked)


def bake(scene: Scene, settings: BakeSettings = DEFAULT_BAKE, quiet: bool = True, threads: int | None = None) -> BakedLight:
    """Bake the light of a scene; its actors, and lamps on them, are left out.

    Args:
        scene: The scene.
        settings: How finely.
        quiet: Show no progress.
        threads: Of the CPU; None: all.
    """
    still = replace(scene, actors=(), lights=tuple(light for light in scene.lights if not getattr(light, "attached", "")))
    batch = SceneBatch(still, threads=threads)
    return solve(still, batch.geometry, RenderTracer(batch), settings, quiet)


def cache_folder() -> Path:
    """Where baked light is kept: AIRWORTHY_CACHE, else XDG_CACHE_HOME/airworthy, else ~/.cache/airworthy."""
    given = os.environ.get("AIRWORTHY_CACHE", "")
    if given:
        return Path(given) / "light"
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base else Path.home() / ".cache") / "airworthy" / "light"


def baked_light(
    scene: Scene, settings: BakeSettings = DEFAULT_BAKE, folder: str | Path | None = None, quiet: bool = True
) -> BakedLight:
    """The baked light of a scene, from the cache where it lies there by its content; else baked and kept.

    Args:
        scene: The scene.
        settings: How finely.
        folder: The cache; None: `cache_folder()`.
        quiet: Show no progress.
    """
    path = Path(folder or cache_folder()) / f"{scene_hash(scene, settings)[:32]}.safetensors"
    if path.is_file():
        try:
            return load_baked(path)
        except AssetError:  # damaged: it is only a cache
            pass
    baked = bake(scene, settings, quiet)
    save_baked(baked, path)
    return baked


def use_baked(
    batch: SceneBatch,
    settings: BakeSettings = DEFAULT_BAKE,
    texture_scale: float = 1.0,
    folder: str | Path | None = None,
    quiet: bool = True,
) -> None:
    """Light every scene of a batch with its baked light.

    Args:
        batch: The scenes.
        settings: How finely.
        texture_scale: Of the `ShadingOptions` that images are made with.
        folder: The cache; None: `cache_folder()`.
        quiet: Show no progress.
    """
    looks = appearance_of(batch, texture_scale)
    for index, scene in enumerate(batch.scenes):
        looks.use(index, baked_light(scene, settings, folder, quiet))
