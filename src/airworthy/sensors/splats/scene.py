"""Scenes with splats: where the splats are, their images, and what is hit where they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core import frames
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.geometry import Mesh
from airworthy.scenes.record import IDENTITY, Instance, Region, Scene, SplatSlot
from airworthy.scenes.splats import LoadedSplats, Splats, merged, read_splats, transformed
from airworthy.scenes.splats.geometry import SUPPORT, THRESHOLD, SplatGeometry, splat_box, splat_geometry
from airworthy.sensors.splats.renderer import SplatRenderer

COLLISION_NAME = "splat_surface"
"""Of the shape and the instance that are hit in the place of splats."""
RESOLUTION = 0.1
"""Edge of a cell of the collision geometry [m]."""
_OPAQUE = 0.5


class SplatScene:
    """A scene and its splats, placed.

    Args:
        scene: The place. Its slot names the file, and says where its content stands.
        folder: Where the slot's path begins, and what it may not leave (the folder of a scene.toml); None: the path is taken
            as it is.
        splats: Further splats, already in the frame of the scene, or the only ones where it has no slot.
        up: The axis of the file that points up; None: as `read_splats` finds.
        device: Of the renderer.
        threads: Of the renderer on a CPU.

    Raises:
        AssetError: The file cannot be used, or the slot's path leaves its folder.
        AirworthyError: There are neither a slot nor splats, or the slot's pose is not usable.
    """

    def __init__(
        self,
        scene: Scene,
        folder: str | Path | None = None,
        *,
        splats: Splats | Sequence[Splats] = (),
        up: str | None = None,
        device: str = "cpu",
        threads: int | None = None,
    ):
        self.scene = scene
        self.loaded: LoadedSplats | None = None
        """What reading the slot's file gave, not placed yet; its `warnings` say what was dropped."""
        parts = [splats] if isinstance(splats, Splats) else list(splats)
        if scene.splat is not None:
            self.loaded = read_splats(_slot_path(scene.splat, folder), up=up)
            slot = scene.splat
            parts.insert(0, transformed(self.loaded.splats, slot.attitude, slot.position, slot.scale))
        if not parts:
            raise AirworthyError(f"The scene {scene.name!r} has no splat slot, and no splats were given; one is needed.")
        self.splats = merged(parts) if len(parts) > 1 else parts[0]
        """In the frame of the scene."""
        self._device, self._threads = device, threads
        self._geometry: dict[tuple[float, float, int, bool], SplatGeometry] = {}

    @cached_property
    def renderer(self) -> SplatRenderer:
        """Images of the splats; over a shaded image of the scene by `compositing.composite`."""
        return SplatRenderer(self.splats, self._device, self._threads)

    def geometry(
        self, resolution: float = RESOLUTION, threshold: float = THRESHOLD, support: int = SUPPORT, filled: bool = False
    ) -> SplatGeometry:
        """Occupied cells of the splats within the bounds of the scene; kept, so that asking again is free.

        Args:
            resolution: Edge of a cell [m].
            threshold: Share of the light that an occupied cell stops.
            support: Smaller groups of cells are floaters.
            filled: Occupy what is enclosed, too: for closed objects. A room that was captured from inside is enclosed as well,
                and would be filled.

        Raises:
            AirworthyError: If a number is out of range, there are too many cells, or no splats are within the bounds.
        """
        key = (float(resolution), float(threshold), int(support), bool(filled))
        if key not in self._geometry:
            lower, upper = self._box(resolution)
            options = {"threshold": threshold, "support": support, "filled": filled}
            self._geometry[key] = splat_geometry(self.splats, resolution, lower, upper, **options)
        return self._geometry[key]

    def _box(self, resolution: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Around splats and within bounds; a floor lies on these, so a cell more."""
        low, high = splat_box(self.splats)
        bounds = self.scene.bounds
        lower = np.maximum(low, np.asarray(bounds.lower) - resolution)
        upper = np.minimum(high, np.asarray(bounds.upper) + resolution)
        if not (lower < upper).all():
            raise AirworthyError(
                f"The splats of {self.scene.name!r} lie from {np.round(low, 2).tolist()} to {np.round(high, 2).tolist()}, "
                f"outside its bounds {bounds.lower} to {bounds.upper}; move them or set the bounds."
            )
        return lower, upper

    def collision(self, resolution: float = RESOLUTION, **options: Any) -> tuple[Mesh, Instance]:
        """A closed mesh around what is opaque, and its instance: hit, and not seen. Options are those of `geometry`."""
        instance = Instance(COLLISION_NAME, name=COLLISION_NAME, visible=False)
        return self.geometry(resolution, **options).mesh, instance

    def colliding(self, resolution: float = RESOLUTION, **options: Any) -> Scene:
        """The scene with what is hit where its splats are.

        Raises:
            AirworthyError: As `geometry`; or the scene has such an instance already.
        """
        if COLLISION_NAME in self.scene.shapes:
            raise AirworthyError(
                f"The scene {self.scene.name!r} has a shape {COLLISION_NAME!r} already; give the scene without it."
            )
        mesh, instance = self.collision(resolution, **options)
        if not len(mesh.faces):  # all of it too faint or too small
            return self.scene
        shapes = {**self.scene.shapes, COLLISION_NAME: mesh}
        return replace(self.scene, shapes=shapes, instances=(*self.scene.instances, instance))


def _slot_path(slot: SplatSlot, folder: str | Path | None) -> Path:
    if folder is None:
        return Path(slot.path)
    inner = PurePosixPath(slot.path.replace("\\", "/"))
    path = Path(folder) / inner
    if inner.is_absolute() or ".." in inner.parts or not path.resolve().is_relative_to(Path(folder).resolve()):
        raise AssetError(f"The splat file {slot.path!r} of a scene lies outside its folder; give a path below it.")
    return path


def splat_file_scene(path: str | Path, scale: float = 1.0, up: str | None = None, margin: float = 1.0) -> SplatScene:
    """A splat file as a scene of its own, in its own frame.

    Args:
        path: The file.
        scale: Metres per unit of the file.
        up: The axis of the file that points up; None: as `read_splats` finds.
        margin: Bounds lie this far beyond what is opaque, the farthest thousandth left out at each side [m].

    Raises:
        AssetError: The file cannot be used.
        AirworthyError: Nothing in it is opaque, or a number is out of range.
    """
    if not (np.isfinite(margin) and margin >= 0.0):
        raise AirworthyError(f"`margin` is {margin}; expected metres, 0 or more.")
    slot = SplatSlot(str(path), scale=scale)
    found = SplatScene(Scene(Path(path).stem, splat=slot), up=up)
    low, high = _quantiles(found.splats, 0.001)
    found.scene = replace(found.scene, bounds=Region(_triple(low - margin), _triple(high + margin)))
    return found


def standing(splats: Splats, position: ArrayLike, yaw: float = 0.0, scale: float = 1.0, foot: float = 0.005) -> Splats:
    """Splats as an object that stands on a floor: upright as they are, the middle of their foot print at a place.

    Args:
        splats: Of one object, z up.
        position: Where it stands [m], (3,).
        yaw: Turn about z [rad].
        scale: Metres per unit.
        foot: Share of the opaque gaussians that may lie below its foot (captures have some under the ground).

    Raises:
        AirworthyError: Nothing is opaque, or a number is not usable.
    """
    if not 0.0 <= foot < 0.5:
        raise AirworthyError(f"`foot` is {foot}; expected a share of the gaussians, 0 or more and below 0.5.")
    low, high = _quantiles(splats, foot)
    turn = np.array([0.0, 0.0, np.sin(0.5 * yaw), np.cos(0.5 * yaw)])
    middle = np.array([*(0.5 * (low + high))[:2], low[2]])
    offset = np.asarray(position, np.float64) - scale * frames.rotate(turn, middle)
    return transformed(splats, turn if yaw else IDENTITY, offset, scale)


def _quantiles(splats: Splats, share: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Corners of the box around opaque means, a share left out at each side."""
    means = splats.position[splats.opacity >= _OPAQUE].astype(np.float64)
    if not len(means):
        raise AirworthyError(f"None of {len(splats)} gaussians has an opacity of {_OPAQUE} or more; there is nothing to place.")
    low, high = np.quantile(means, [share, 1.0 - share], axis=0)
    return low, high


def _triple(values: NDArray[np.float64]) -> tuple[float, float, float]:
    return float(values[0]), float(values[1]), float(values[2])
