"""Maps that know the whole scene, as if every place had been seen: for tests of planners and for privileged pilots."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError
from airworthy.geometry.distance_field import distance_field
from airworthy.geometry.occupancy import voxelize
from airworthy.pilots.mapping.boxes import MapBoxes, map_boxes
from airworthy.pilots.mapping.lookup import FAR, Layers
from airworthy.pilots.mapping.maps import CellMaps
from airworthy.pilots.mapping.rules import floor_layers
from airworthy.pilots.planning.interface import MapSettings, Mission

__all__ = ["grown", "maps_of_cells", "maps_of_scene"]


def maps_of_scene(batch: Any, mission: Mission, settings: MapSettings | None = None, device: str = "cpu") -> CellMaps:
    """Maps of what is in the flights' scenes now, inflated as settings say, with the virtual ceiling.

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
    cells = []
    for place in range(len(boxes)):
        lower = boxes.origin[place]
        upper = lower + boxes.resolution * boxes.cells[place]
        cells.append(voxelize(geometry, place if geometry.env_count > 1 else 0, lower, upper, boxes.resolution))
    return maps_of_cells(cells, mission, settings, device)


def maps_of_cells(
    cells: list[NDArray[np.bool_]], mission: Mission, settings: MapSettings | None = None, device: str = "cpu"
) -> CellMaps:
    """Maps of given occupied cells, one array (nx, ny, nz) per flight that covers its box from the lower corner on.

    Raises:
        AirworthyError: If a shape does not fit.
    """
    settings = settings or MapSettings()
    boxes = map_boxes(mission, settings, whole=True)
    inflated = np.zeros(boxes.base[-1], np.uint8)
    squared = np.full(boxes.base[-1], FAR, np.int16) if settings.field else None
    radius = math.ceil(settings.inflation / settings.resolution)
    for place, given in enumerate(cells):
        if np.shape(given) != tuple(boxes.cells[place]):
            raise AirworthyError(f"Cells of flight {place} have shape {np.shape(given)}; expected {tuple(boxes.cells[place])}.")
        layer = grown(np.asarray(given, bool), radius)
        layer[..., -1] = True
        layer[..., : floor_layers(settings)] = True
        _fill(inflated, boxes, place, layer)
        if squared is not None:
            _fill(squared, boxes, place, signed_squares(layer))
    return CellMaps(Layers(boxes, np.zeros((len(boxes), 3), np.int32), inflated, squared), device)


def grown(cells: NDArray[np.bool_], radius: int) -> NDArray[np.bool_]:
    """Cells (nx, ny, nz) of which one lies within a cube of +-radius cells."""
    out = cells.copy()
    for axis in range(3):
        before = np.moveaxis(out.copy(), axis, 0)
        after = np.moveaxis(out, axis, 0)
        for step in range(1, radius + 1):
            after[step:] |= before[:-step]
            after[:-step] |= before[step:]
    return out


def signed_squares(layer: NDArray[np.bool_]) -> NDArray[np.int16]:
    """The distance layer (`lookup`) of cells (nx, ny, nz)."""
    outside, inside = (np.minimum(distance_field(c, 1.0).values ** 2, float(FAR)) for c in (layer, ~layer))
    return np.where(layer, -np.rint(inside), np.rint(outside)).astype(np.int16)


def _fill(flat: NDArray[Any], boxes: MapBoxes, place: int, cells: NDArray[Any]) -> None:
    """Put a flight's whole box (nx, ny, nz) into a flat array."""
    ring = flat[boxes.base[place] : boxes.base[place + 1]].reshape(boxes.side[place])
    ring[:, :, : cells.shape[2]] = cells
