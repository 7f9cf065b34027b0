"""A splat file as a scene to fly in: its own frame, bounds around what is opaque, something to hit, and a free way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.scenes.extent import splats_box
from airworthy.scenes.free_points import free_path
from airworthy.scenes.record import Region, Scene, SplatPlacement, Vector3
from airworthy.scenes.splats.placing import _surfaced, surface_geometry
from airworthy.scenes.splats.read import LoadedSplats, read_splats

__all__ = ["splat_file_scene"]

MARGIN = 2.0
"""Bounds lie this far beyond what is opaque [m]."""


def splat_file_scene(
    path: str | Path,
    scale: float = 1.0,
    up: str | None = None,
    margin: float = MARGIN,
    resolution: float | None = None,
    level: int = 0,
) -> Scene:
    """Return a splat file as a scene of its own.

    It stands in its own frame, z up. Bounds lie around its opaque gaussians, the farthest thousandth left out at each side; a
    closed mesh around what is opaque can be hit; start and goal are where there is room, with a free way between them.

    Args:
        path: The file, or the folder of a SOG.
        scale: Metres per unit of the file.
        up: The axis of the file that points up; None: as `read_splats` finds.
        margin: Between what is opaque and the bounds [m].
        resolution: Edge of a cell of the mesh [m]; None: as suits the size.
        level: Level of detail of a streamed SOG, 0 the finest.

    Raises:
        AssetError: The file cannot be used.
        AirworthyError: Nothing in it is opaque, or a number is out of range.
    """
    if not (np.isfinite(margin) and margin >= 0.0):
        raise AirworthyError(f"`margin` is {margin}; expected metres, 0 or more.")
    if not (np.isfinite(scale) and scale > 0.0):
        raise AirworthyError(f"`scale` is {scale}; expected metres per unit of the file, above 0.")
    path = Path(path)
    loaded = read_splats(path, up=up, level=level)
    name = _name(path)
    item = SplatPlacement(name, scale=scale, name=name)
    box = splats_box(loaded.splats, item)
    if box is None:
        raise AirworthyError(
            f"None of the {len(loaded.splats)} gaussians of {str(path)!r} is opaque; there is nothing to fly in."
        )
    bounds = Region(_triple(box[0] - margin), _triple(box[1] + margin))
    scene = Scene(name, clouds={name: loaded.splats}, splats=(item,), lights=(), bounds=bounds)
    cells = surface_geometry(scene, resolution)
    lower, upper = np.array(bounds.lower), np.array(bounds.upper)
    start, goal = free_path(cells.clearance, lower, upper, 0.5 * (box[0] + box[1]))
    scene = replace(
        scene, start=start, goal=goal, description=_description(path, loaded), source=path.name, facts=_facts(loaded)
    )
    return _surfaced(scene, cells.mesh)


def _name(path: Path) -> str:
    """Return the folder's name where the file's says nothing."""
    own = path.parent if path.name in ("meta.json", "lod-meta.json") else path
    return own.resolve().stem or "splats"


def _description(path: Path, loaded: LoadedSplats) -> str:
    return f"{path.name}, {loaded.container}: {len(loaded.splats):,} gaussians, {loaded.source.up} of the file up"


def _facts(loaded: LoadedSplats) -> dict[str, float]:
    return {"gaussians": float(len(loaded.splats)), "dropped": float(sum(loaded.dropped.values()))}


def _triple(values: Array) -> Vector3:
    return float(values[0]), float(values[1]), float(values[2])
