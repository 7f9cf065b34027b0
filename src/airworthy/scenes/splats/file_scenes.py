"""A splat file as a scene to fly in: its own frame, bounds around what is opaque, something to hit, and a free way."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError
from airworthy.scenes.extent import splats_box
from airworthy.scenes.record import Pose, Region, Scene, SplatPlacement, Vector3
from airworthy.scenes.splats.geometry import SplatGeometry
from airworthy.scenes.splats.loaded import LoadedSplats
from airworthy.scenes.splats.placing import _surfaced, surface_geometry
from airworthy.scenes.splats.read import read_splats

__all__ = ["splat_file_scene"]

Floats = NDArray[np.float64]
MARGIN = 2.0
"""Bounds lie this far beyond what is opaque [m]."""
_WIDE = 1.2
"""Clearance that a start should have, if there is room [m]."""
_NARROW = 0.4
"""Clearance of the straight way from start to goal [m]."""
_WAY = 6.0
"""Longest way from start to goal [m]."""
_LATTICE = (25, 25, 9)


def splat_file_scene(
    path: str | Path,
    scale: float = 1.0,
    up: str | None = None,
    margin: float = MARGIN,
    resolution: float | None = None,
    level: int = 0,
) -> Scene:
    """A splat file as a scene of its own.

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
    start, goal = _way(cells, scene, 0.5 * (box[0] + box[1]))
    scene = replace(
        scene, start=start, goal=goal, description=_description(path, loaded), source=path.name, facts=_facts(loaded)
    )
    return _surfaced(scene, cells.mesh)


def _name(path: Path) -> str:
    """The folder's name where the file's says nothing."""
    own = path.parent if path.name in ("meta.json", "lod-meta.json") else path
    return own.resolve().stem or "splats"


def _description(path: Path, loaded: LoadedSplats) -> str:
    return f"{path.name}, {loaded.container}: {len(loaded.splats):,} gaussians, {loaded.source.up} of the file up"


def _facts(loaded: LoadedSplats) -> dict[str, float]:
    return {"gaussians": float(len(loaded.splats)), "dropped": float(sum(loaded.dropped.values()))}


def _way(cells: SplatGeometry, scene: Scene, middle: Floats) -> tuple[Pose | None, Pose | None]:
    """Start and goal: the free place nearest to the middle, looking at it, and the farthest one that it sees.

    In a room that is its middle, beside a statue a place before it. None where there is no free place.
    """
    low, high = np.array(scene.bounds.lower), np.array(scene.bounds.upper)
    edge = np.minimum(0.8, 0.25 * (high - low))
    axes = [np.linspace(a, b, n) for a, b, n in zip(low + edge, high - edge, _LATTICE, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
    room = cells.clearance(points)
    wide = min(_WIDE, 0.7 * float(room.max()))
    if not wide > 0.05:
        return None, None
    free = points[room >= wide]
    start = free[np.argmin(np.linalg.norm(free - middle, axis=1))]
    goal = _seen_from(cells, start, free, min(_NARROW, 0.5 * wide))
    ahead = middle if np.hypot(*(middle - start)[:2]) > 0.3 else start + np.array([1.0, 0.0, 0.0]) if goal is None else goal
    yaw = math.atan2(*(ahead - start)[[1, 0]])
    return Pose(_triple(start), yaw), None if goal is None else Pose(_triple(goal))


def _seen_from(cells: SplatGeometry, start: Floats, free: Floats, least: float) -> Floats | None:
    """The farthest place, at much the same height, to which a straight way leads; of equally good ones the first."""
    far, rise = np.linalg.norm(free - start, axis=1), np.abs(free[:, 2] - start[2])
    usable = (far <= _WAY) & (far > 0.5)
    # Level ways are better ones: a metre up or down counts against two metres along.
    order = np.argsort(-np.where(usable, far - 2.0 * rise, -np.inf), kind="stable")
    for index in order[: np.count_nonzero(usable)]:
        steps = np.linspace(0.0, 1.0, max(int(far[index] / (0.5 * least)), 2))[:, None]
        if (cells.clearance(start + steps * (free[index] - start)) >= least).all():
            return np.asarray(free[index])
    return None


def _triple(values: Floats) -> Vector3:
    return float(values[0]), float(values[1]), float(values[2])
