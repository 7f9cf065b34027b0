"""What is known of the space of a captured place: free, occupied, or unknown; and unknown space as something to hit.

Cameras tell where nothing is only along their rays. What no ray passed may hold anything, so a captured place keeps three
values for each cell of a grid, and what is unknown is solid unless somebody decides otherwise: bodies meet it, distances and
course checks see it, planners that know the truth keep out of it. Rays pass through it: what a camera shows there is what the
splats show.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayLike, ArrayU8
from airworthy.core.errors import AirworthyError, AssetError, unknown_name
from airworthy.geometry import Mesh
from airworthy.geometry.occupancy import MAX_CELLS
from airworthy.scenes.record import Instance, Scene, Vector3
from airworthy.scenes.splats.geometry import collision_mesh

__all__ = [
    "FREE",
    "OCCUPIED",
    "UNKNOWN",
    "UNKNOWN_CLASS",
    "UNKNOWN_SPACE",
    "CarvedSpace",
    "UnknownMode",
    "carved_arrays",
    "carved_from_arrays",
    "freed",
    "is_unknown_solid",
    "with_unknown",
]

UNKNOWN, FREE, OCCUPIED = 0, 1, 2
"""Values of cells."""
BACKGROUND = "background"
"""Cloud of a place of what lies beyond its known space: seen, never hit."""
UNKNOWN_SPACE = "unknown space"
"""Name of the shape and of the instance that are met where nobody has seen that nothing is."""
UNKNOWN_CLASS = "unknown_space"
"""Its class: part of the place, which no edit of a scene takes out as a thing."""
UnknownMode = Literal["solid", "free"]
UNKNOWN_MODES: tuple[UnknownMode, ...] = get_args(UnknownMode)
_PER_BYTE = 4
"""Cells of two bits in a byte of a file."""


@dataclass(frozen=True, eq=False)
class CarvedSpace:
    """A grid of cells of which each is known to be free, holds a surface, or is unknown; beyond the grid all is unknown.

    Raises:
        AirworthyError: The cells are no grid of these values, or a number is out of range.
    """

    cells: ArrayU8
    """(nx, ny, nz) of `UNKNOWN`, `FREE`, `OCCUPIED`."""
    lower: Vector3
    """Lower corner of the grid, world [m]."""
    resolution: float
    """Edge of a cell [m]."""

    def __post_init__(self) -> None:
        cells = np.asarray(self.cells)
        if cells.ndim != 3 or cells.dtype != np.uint8 or not 0 < cells.size <= MAX_CELLS or cells.max() > OCCUPIED:
            raise AirworthyError(
                f"Carved space has cells of {cells.dtype}, shape {cells.shape}; expected uint8 of 0 to {OCCUPIED},"
                f" (nx, ny, nz), at most {MAX_CELLS:,}."
            )
        sound = len(self.lower) == 3 and np.isfinite(self.lower).all()
        if not (sound and self.resolution > 0.0 and math.isfinite(self.resolution)):
            raise AirworthyError(
                f"Carved space lies at {self.lower} in cells of {self.resolution} m; expected finite metres, cells above 0."
            )

    @property
    def upper(self) -> Vector3:
        """Upper corner of the grid, world [m]."""
        x, y, z = (float(low + n * self.resolution) for low, n in zip(self.lower, self.cells.shape, strict=True))
        return x, y, z

    def volumes(self) -> dict[str, float]:
        """Return the volume of each kind of space in the grid [m^3]: free, occupied, unknown."""
        counts = np.bincount(self.cells.reshape(-1), minlength=OCCUPIED + 1) * self.resolution**3
        return {"free": float(counts[FREE]), "occupied": float(counts[OCCUPIED]), "unknown": float(counts[UNKNOWN])}

    def values(self, points: ArrayLike) -> ArrayU8:
        """Return what is known of places (n, 3), world [m]: (n,) of `UNKNOWN`, `FREE`, `OCCUPIED`."""
        at = np.asarray(points, np.float64)
        if at.ndim != 2 or at.shape[1] != 3:
            raise AirworthyError(f"`points` has shape {at.shape}; expected (n, 3).")
        # Compared before they become whole numbers: what is not finite, or far away, has no cell.
        share = (at - np.asarray(self.lower)) / self.resolution
        within = ((share >= 0.0) & (share < np.array(self.cells.shape))).all(axis=1)
        x, y, z = np.where(within[:, None], share, 0.0).astype(np.int64).T
        return np.where(within, self.cells[x, y, z], UNKNOWN).astype(np.uint8)

    def unknown_mesh(self) -> Mesh:
        """Return the closed surface of the unknown cells."""
        return collision_mesh(self.cells == UNKNOWN, self.lower, self.resolution)


# ---- As something to hit ------------------------------------------------------------------------------------------------


def is_unknown_solid(scene: Scene) -> bool | None:
    """Return whether bodies meet the unknown space of a scene; None where nothing says what is unknown."""
    return None if scene.carved is None else any(item.name == UNKNOWN_SPACE for item in scene.instances)


def with_unknown(scene: Scene, mode: str) -> Scene:
    """Return the scene with its unknown space solid, something to hit, or free, as if nothing were there.

    Args:
        scene: A captured place.
        mode: "solid" or "free".

    Raises:
        AirworthyError: The scene has no unknown space, or the mode is none of these.
    """
    if mode not in UNKNOWN_MODES:
        raise unknown_name("treatment of unknown space", mode, UNKNOWN_MODES)
    if scene.carved is None:
        raise AirworthyError(
            f"Scene {scene.name!r} has no unknown space, of which captured places alone know (`airworthy capture place`):"
            f" leave out that it is {mode}."
        )
    if is_unknown_solid(scene) == (mode == "solid"):
        return scene
    if mode == "free":
        shapes = {name: shape for name, shape in scene.shapes.items() if name != UNKNOWN_SPACE}
        return replace(scene, shapes=shapes, instances=tuple(i for i in scene.instances if i.name != UNKNOWN_SPACE))
    mesh = scene.carved.unknown_mesh()
    if not len(mesh.faces):
        return scene
    # Neither visible nor covered: rays pass, so that depth is that of surfaces; bodies and distances meet it.
    item = Instance(UNKNOWN_SPACE, semantic=UNKNOWN_CLASS, name=UNKNOWN_SPACE, visible=False)
    return replace(scene, shapes={**scene.shapes, UNKNOWN_SPACE: mesh}, instances=(*scene.instances, item))


def freed(scene: Scene, which: Callable[[Array], ArrayBool]) -> Scene:
    """Return the scene with cells known to be free, as after an edit that took out what stood there; unknown space follows.

    Args:
        scene: Any; one that nobody carved comes back as it is.
        which: Tells of points (n, 3), world [m], whether they are free now (n,).
    """
    if scene.carved is None:
        return scene
    space, solid = scene.carved, is_unknown_solid(scene)
    middle = np.asarray(space.lower) + space.resolution * (
        np.moveaxis(np.indices(space.cells.shape), 0, -1).reshape(-1, 3) + 0.5
    )
    cells = np.where(which(middle).reshape(space.cells.shape), FREE, space.cells).astype(np.uint8)
    bare = replace(with_unknown(scene, "free"), carved=replace(space, cells=cells))
    return with_unknown(bare, "solid") if solid else bare


# ---- As arrays of a file ------------------------------------------------------------------------------------------------


def carved_arrays(carved: CarvedSpace) -> dict[str, Any]:
    """Return carved space as named arrays, four cells to a byte."""
    flat = np.pad(carved.cells.reshape(-1), (0, -carved.cells.size % _PER_BYTE)).reshape(-1, _PER_BYTE)
    packed = (flat << (2 * np.arange(_PER_BYTE, dtype=np.uint8))).sum(axis=1, dtype=np.uint8)
    return {
        "cells": packed,
        "shape": np.array(carved.cells.shape, np.int64),
        "lower": np.array(carved.lower, np.float64),
        "resolution": np.array([carved.resolution], np.float64),
    }


def carved_from_arrays(arrays: dict[str, Any], where: str) -> CarvedSpace:
    """Return the carved space of a file; raises AssetError where it is damaged.

    Args:
        arrays: By their names, of an arrays file.
        where: Names the file in messages.
    """
    wanted = {"cells": np.uint8, "shape": np.int64, "lower": np.float64, "resolution": np.float64}
    for name, kind in wanted.items():
        if name not in arrays or arrays[name].dtype != kind or arrays[name].ndim != 1:
            raise AssetError(f"{where} lacks {name!r} as a row of {np.dtype(kind).name}; write the place again.")
    sides = [int(side) for side in arrays["shape"]]
    count = math.prod(sides)
    # Held against each other before anything is unpacked.
    if len(sides) != 3 or min(sides) < 1 or count > MAX_CELLS or len(arrays["cells"]) != -(-count // _PER_BYTE):
        raise AssetError(f"{where} promises a grid of {sides} cells, which its {len(arrays['cells']):,} bytes do not hold.")
    if len(arrays["lower"]) != 3 or len(arrays["resolution"]) != 1:
        raise AssetError(f"{where} has no corner of three numbers, or no edge of a cell; write the place again.")
    flat = (arrays["cells"][:, None] >> (2 * np.arange(_PER_BYTE, dtype=np.uint8)) & 3).reshape(-1)[:count]
    x, y, z = (float(value) for value in arrays["lower"])
    try:
        return CarvedSpace(flat.reshape(sides), (x, y, z), float(arrays["resolution"][0]))
    except AirworthyError as error:
        raise AssetError(f"{where}: {error}") from None
