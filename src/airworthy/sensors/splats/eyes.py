"""From a table of rays to a camera that splats can be projected into."""

from __future__ import annotations

from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError
from airworthy.geometry import RayTable
from airworthy.sensors.lenses import Fisheye, Pinhole
from airworthy.sensors.pixels import CAMERA_AXIS
from airworthy.sensors.projections import Projection
from airworthy.sensors.splats.projected import pinhole_of

__all__ = ["Eye", "eye_of"]

Floats = NDArray[np.float64]

_FAR = 100.0
"""Parallel rays are seen from this many times the image's width away."""
_LENS = 0.1
"""Rays that start as near to each other as this pass a lens of the projection; splats are seen through its middle [m]."""
_SAME = 1e-6
"""Directions and origins that differ by less are the same."""


@dataclass(frozen=True, eq=False)
class Eye:
    """A camera of splats that looks along the rays of a table."""

    projection: Projection | RayTable
    """What `projected.render_projection` takes: the table itself where no projection describes it."""
    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Where it is in the frame of the rays [m]."""
    behind: float = 0.0
    """What its depths have more than the table's [m]."""

    def rows(self, first: int, last: int) -> Eye:
        """The eye of some rows of the image."""
        if isinstance(self.projection, Pinhole | Fisheye):
            part = replace(self.projection, height=last - first, cy=self.projection.cy - first)
            return replace(self, projection=part)
        if isinstance(self.projection, RayTable):
            table = self.projection
            return replace(self, projection=RayTable(table.directions[first:last], None, table.axis))
        return replace(self, projection=RayTable(self.projection.rays().directions[first:last], None, CAMERA_AXIS))


_EYES: WeakKeyDictionary[RayTable, Eye] = WeakKeyDictionary()


def eye_of(table: RayTable, projection: Projection | None = None) -> Eye:
    """The eye of a table.

    Args:
        table: The rays.
        projection: What they came from, if that is known; it is used where it is that of the table indeed.

    Raises:
        AirworthyError: The rays start at places of their own, and are not parallel.
    """
    found = _EYES.get(table)
    if found is None:
        found = _EYES[table] = _found(table, projection)
    return found


def _found(table: RayTable, projection: Projection | None) -> Eye:
    start = (0.0, 0.0, 0.0)
    if table.origins is not None:
        spread = float(np.ptp(table.origins, axis=(0, 1)).max())
        if _SAME < spread <= _LENS and projection is not None:
            return Eye(projection)
        if spread > _SAME:
            return _parallel(table)
        x, y, z = (float(v) for v in table.origins[0, 0])
        start = (x, y, z)
    fitted = pinhole_of(table.directions)
    if fitted is not None:
        return Eye(Pinhole(table.width, table.height, *fitted), start)
    if projection is not None and _is_of(projection, table):
        return Eye(projection, start)
    return Eye(table if table.origins is None else RayTable(table.directions, None, table.axis), start)


def _is_of(projection: Projection, table: RayTable) -> bool:
    """Whether a projection has the rays of a table; looked up in its corners and middle."""
    if (projection.height, projection.width) != (table.height, table.width) or not projection.optical:
        return False
    rows = np.array([0, 0, table.height - 1, table.height - 1, table.height // 2])
    columns = np.array([0, table.width - 1, 0, table.width - 1, table.width // 2])
    return bool(np.abs(projection.rays().directions[rows, columns] - table.directions[rows, columns]).max() < 1e-5)


def _parallel(table: RayTable) -> Eye:
    """A pinhole far behind the plane from which parallel rays start: what it sees differs by less than a pixel."""
    origins, rays = table.origins, table.directions
    assert origins is not None
    height, width = rays.shape[:2]
    u, v = np.arange(width) + 0.5, np.arange(height) + 0.5
    even = np.abs(rays - CAMERA_AXIS).max() < _SAME and width > 1
    pixel = float(np.ptp(origins[0, :, 0])) / (width - 1) if even else 0.0
    x = origins[0, 0, 0] + pixel * (u - 0.5)
    y = origins[0, 0, 1] + pixel * (v - 0.5)
    plane = np.stack([*np.meshgrid(x, y), np.full((height, width), origins[0, 0, 2])], -1)
    if not pixel > 0.0 or np.abs(plane - origins).max() > 0.01 * pixel:
        raise AirworthyError("Splats cannot be seen by rays that start at places of their own, unless these are parallel.")
    far = _FAR * pixel * max(width, height)
    cx, cy = -float(x[0]) / pixel + 0.5, -float(y[0]) / pixel + 0.5
    return Eye(Pinhole(width, height, far / pixel, far / pixel, cx, cy), (0.0, 0.0, float(origins[0, 0, 2]) - far), far)
