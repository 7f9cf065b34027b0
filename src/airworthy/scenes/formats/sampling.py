"""Point clouds of places: the middle of every occupied cell of a grid."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from airworthy.core import frames
from airworthy.core.errors import AirworthyError
from airworthy.geometry import bounds
from airworthy.scenes.formats._parts import Writable, as_model, shape_of
from airworthy.scenes.formats.model import Model, Points
from airworthy.scenes.record import Instance

SPACING = 0.1
"""[m], as the maps of the navigation benchmark have it."""
_TILE = 256  # cells a side that are looked at in one go
_CELLS_MAX = 2_000_000_000


def sample_points(thing: Writable, spacing: float = SPACING) -> Points:
    """Points on a grid, on the surfaces and inside the solids and closed meshes of a mesh, model or scene.

    The cells of the grid begin at the world's origin; each occupied one gives its middle, in the order x, y, z. Only what
    collides counts.

    Args:
        thing: What to sample; a scene's actors stand where they begin.
        spacing: Edge of a cell [m].

    Raises:
        AirworthyError: If the spacing is not above 0, nothing collides, or there are more than two thousand million cells.
    """
    from airworthy.geometry.batch import GeometryBatch
    from airworthy.geometry.occupancy import voxelize
    from airworthy.geometry.placement import Placement

    if not spacing > 0:
        raise AirworthyError(f"Points every {spacing} m were asked for; the spacing must be above 0.")
    model = as_model(thing)
    placed = [instance for instance in model.instances if instance.collide]
    if not placed:
        raise AirworthyError("There is nothing to sample: no instance collides.")
    names = list(dict.fromkeys(instance.shape for instance in placed))
    placement = Placement.of(
        shape=[names.index(instance.shape) for instance in placed],
        position=[instance.position for instance in placed],
        attitude=[instance.attitude for instance in placed],
        scale=[instance.scale for instance in placed],
    )
    batch = GeometryBatch([model.shapes[name] for name in names], [placement])
    lower, upper = _cells(model, placed, spacing)
    if math.prod(upper - lower) > _CELLS_MAX:
        raise AirworthyError(f"{math.prod(upper - lower):,} cells of {spacing} m were asked for; use a larger spacing.")
    found = []
    for corner in itertools.product(*(range(a, b, _TILE) for a, b in zip(lower, upper, strict=True))):
        first = np.array(corner)
        size = np.minimum(upper - first, _TILE)
        # The upper corner is half a cell short, so that rounding adds no cell.
        cells = voxelize(batch, 0, first * spacing, (first + size - 0.5) * spacing, spacing)
        found.append((np.argwhere(cells) + first + 0.5) * spacing)
    points = np.concatenate(found)
    return Points(points[np.lexsort((points[:, 2], points[:, 1], points[:, 0]))].astype(np.float32))


def _cells(model: Model, placed: list[Instance], spacing: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numbers of the first cells and of those after the last, with one to spare on each side."""
    lower, upper = np.full(3, np.inf), np.full(3, -np.inf)
    for instance in placed:
        low, high = bounds(shape_of(model, instance))
        corners = np.array(list(itertools.product(*zip(low, high, strict=True)))) * instance.scale
        world = frames.rotate(np.array(instance.attitude, float), corners) + np.array(instance.position)
        lower, upper = np.minimum(lower, world.min(0)), np.maximum(upper, world.max(0))
    return np.floor(lower / spacing).astype(np.int64) - 1, np.ceil(upper / spacing).astype(np.int64) + 1
