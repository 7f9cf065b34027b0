"""Maps that know the whole scene, as if every place had been seen: for tests of planners and for privileged pilots."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayAny, ArrayBool, NDArray
from airworthy.core.errors import AirworthyError
from airworthy.geometry.distance import distance_field
from airworthy.geometry.occupancy import voxelize
from airworthy.planners.common.interface import MapSettings, Mission
from airworthy.planners.mapping.boxes import MapBoxes, floor_layers, map_boxes
from airworthy.planners.mapping.maps import FAR, CellMaps, MapLayers

__all__ = ["grown", "maps_of_cells", "maps_of_scene"]


def maps_of_scene(batch: Any, mission: Mission, settings: MapSettings | None = None, device: str = "cpu") -> CellMaps:
    """Return maps of what is in the flights' scenes now, inflated as settings say, with the virtual ceiling.

    Args:
        batch: A `SceneBatch` or `GeometryBatch` whose environment i is that of flight i, or one environment for all.
        mission: The flights; their boxes are mapped whole.
        settings: None: the defaults, without a field.
        device: Where the maps lie.

    Raises:
        AirworthyError: If counts do not fit or settings cannot be used.
    """
    settings = settings or MapSettings()
    boxes = map_boxes(mission, settings, whole=True)
    geometry = getattr(batch, "geometry", batch)
    if geometry.env_count not in (1, len(boxes)):
        raise AirworthyError(f"The scenes are of {geometry.env_count} environments and the mission has {len(boxes)} flights.")
    cells: list[ArrayBool] = []
    first = _alike(batch, boxes)
    for flight in range(len(boxes)):
        # The very array, not a copy: `maps_of_cells` knows by it that the layers are made already.
        if first[flight] < flight:
            cells.append(cells[first[flight]])
            continue
        lower = boxes.origin[flight]
        upper = lower + boxes.resolution * boxes.cells[flight]
        cells.append(voxelize(geometry, flight if geometry.env_count > 1 else 0, lower, upper, boxes.resolution))
    return maps_of_cells(cells, mission, settings, device)


def _alike(batch: Any, boxes: MapBoxes) -> list[int]:
    """Of each flight the first one whose map is the same: in the same scene, in which nothing moves, in the same box."""
    known: dict[tuple[object, ...], int] = {}
    scenes, found = _still_scenes(batch, len(boxes)), []
    for flight in range(len(boxes)):
        key = (scenes[flight], *boxes.origin[flight], *boxes.cells[flight]) if scenes[flight] >= 0 else (-1, flight)
        found.append(known.setdefault(key, flight))
    return found


def _still_scenes(batch: Any, count: int) -> list[int]:
    """Return the number of each flight's scene; -1 where something in it moves, or where a batch does not tell."""
    numbers = getattr(batch, "scene_of_env", None)
    if numbers is None or len(numbers) != count:
        return [-1] * count
    return [-1 if batch.scenes[number].actors else int(number) for number in numbers]


def maps_of_cells(
    cells: list[ArrayBool], mission: Mission, settings: MapSettings | None = None, device: str = "cpu"
) -> CellMaps:
    """Return maps of given occupied cells, one array (nx, ny, nz) per flight that covers its box from the lower corner on.

    Args:
        cells: Per flight, taken cells (nx, ny, nz) of its whole box.
        mission: With the boxes [m], world.
        settings: Of the maps; None: the defaults.
        device: Warp device.

    Raises:
        AirworthyError: If a shape does not fit.
    """
    settings = settings or MapSettings()
    boxes = map_boxes(mission, settings, whole=True)
    inflated = np.zeros(boxes.base[-1], np.uint8)
    squared = np.full(boxes.base[-1], FAR, np.int16) if settings.field else None
    radius = math.ceil(settings.inflation / settings.resolution)
    made: dict[int, tuple[ArrayBool, NDArray[np.int16] | None]] = {}
    for flight, given in enumerate(cells):
        if np.shape(given) != tuple(boxes.cells[flight]):
            raise AirworthyError(
                f"Cells of flight {flight} have shape {np.shape(given)}; expected {tuple(boxes.cells[flight])}."
            )
        # `id` serves, for the caller's list keeps every array alive.
        if id(given) not in made:  # flights in one scene are given one array
            layer = grown(np.asarray(given, bool), radius)
            # The ceiling is taken, as in maps from images; what lies above cannot be flown.
            layer[..., -1] = True
            layer[..., : floor_layers(settings)] = True
            made[id(given)] = layer, signed_squares(layer) if squared is not None else None
        layer, whole = made[id(given)]
        _fill(inflated, boxes, flight, layer)
        if squared is not None and whole is not None:
            _fill(squared, boxes, flight, whole)
    return CellMaps(MapLayers(boxes, np.zeros((len(boxes), 3), np.int32), inflated, squared), device)


def grown(cells: ArrayBool, radius: int) -> ArrayBool:
    """Return cells (nx, ny, nz) of which one lies within a cube of +-radius cells."""
    out = cells.copy()
    for axis in range(3):
        # A cube is the product of its axes: three passes of 2 r steps instead of (2 r + 1)^3.
        before = np.moveaxis(out.copy(), axis, 0)
        after = np.moveaxis(out, axis, 0)
        for step in range(1, radius + 1):
            after[step:] |= before[:-step]
            after[:-step] |= before[step:]
    return out


def signed_squares(layer: ArrayBool) -> NDArray[np.int16]:
    """Return the distance layer (`lookup`) of cells (nx, ny, nz)."""
    # Squares of cell counts are whole numbers: 16 bits hold them without loss, up to FAR.
    outside, inside = (np.minimum(distance_field(c, 1.0).values ** 2, float(FAR)) for c in (layer, ~layer))
    return np.where(layer, -np.rint(inside), np.rint(outside)).astype(np.int16)


def _fill(flat: ArrayAny, boxes: MapBoxes, flight: int, cells: ArrayAny) -> None:
    """Put a flight's whole box (nx, ny, nz) into a flat array."""
    ring = flat[boxes.base[flight] : boxes.base[flight + 1]].reshape(boxes.side[flight])
    ring[:, :, : cells.shape[2]] = cells
