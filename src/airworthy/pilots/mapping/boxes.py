"""Where the cells of n flights' maps lie, and how they are kept in memory.

Cell (i, j, k) of a flight spans `origin + resolution * (i, j, k)` to one cell further; all numbers of cells are 0 or more. Kept
are those of a window that moves with the vehicle: `side` cells along each axis, of which cell i lies in slot i modulo side, so
that what stays in the window stays where it is in memory. Along z windows begin and end at whole lanes of 16 cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import CPU_LANES
from airworthy.pilots.planning.interface import MapSettings, Mission

__all__ = ["SHELL", "MapBoxes", "map_boxes"]

SHELL = 5
"""Cells beyond local bound and margin that are forgotten with each image."""
_TINY = 1e-6
_MOST_CELLS = 1 << 31
_LONGEST = 32000
"""Cells along an edge: their numbers have 16 bits in places."""
_INSIDE = 0.1
"""A box must be at least so high and wide [m]."""


@dataclass(frozen=True, eq=False)
class MapBoxes:
    """The boxes that n flights may map; see the module."""

    resolution: float
    """Edge of a cell [m]."""
    origin: NDArray[np.float64]
    """(n, 3) lower corner [m]."""
    upper: NDArray[np.float64]
    """(n, 3) upper corner [m]; its z is the virtual ceiling, which lies in the uppermost layer of cells."""
    cells: NDArray[np.int32]
    """(n, 3) cells of the whole box."""
    side: NDArray[np.int32]
    """(n, 3) cells kept in memory; z a multiple of 16, the last of which may lie above the box."""
    base: NDArray[np.int64]
    """(n + 1,) first element of each flight in flat arrays, and their length."""

    def __len__(self) -> int:
        return len(self.origin)

    def window(self, camera: NDArray[np.float64], flight: NDArray[np.int64]) -> NDArray[np.int32]:
        """First cells (k, 3) of windows centred on positions (k, 3) [m], as far as the boxes allow."""
        cell = np.floor((camera - self.origin[flight]) / self.resolution)
        room = np.maximum(self.cells[flight] - self.side[flight], 0)
        room[:, 2] = -(-room[:, 2] // CPU_LANES) * CPU_LANES
        first = np.clip(cell - self.side[flight] // 2, 0, room).astype(np.int32)
        first[:, 2] = first[:, 2] // CPU_LANES * CPU_LANES
        return first

    def inside(self, flight: NDArray[np.int64], points: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether points (k, 3) [m] lie in their flights' boxes, (k,)."""
        inside: NDArray[np.bool_] = np.all((points >= self.origin[flight]) & (points <= self.upper[flight]), axis=-1)
        return inside


def map_boxes(mission: Mission, settings: MapSettings, *, whole: bool = False) -> MapBoxes:
    """Boxes of a mission's flights; `whole` keeps all of each in memory.

    Raises:
        AirworthyError: If settings or boxes cannot be used.
    """
    check_settings(settings)
    h = settings.resolution
    lower, upper = (np.array(np.atleast_2d(corner), np.float64) for corner in (mission.lower, mission.upper))
    if lower.shape != upper.shape or lower.shape[1:] != (3,) or not len(lower):
        raise AirworthyError(f"A mission's boxes have corners of shapes {lower.shape} and {upper.shape}; expected (n, 3).")
    origin = lower + np.array([0.0, 0.0, settings.ground])
    if not np.isfinite([origin, upper]).all() or not (upper - origin >= _INSIDE).all():
        raise AirworthyError("A mission's box is empty, thinner than 0.1 m or not finite; give lower < upper for every flight.")
    cells = np.ceil((upper - origin) / h - _TINY)
    cells[:, 2] = np.floor((upper[:, 2] - origin[:, 2]) / h + _TINY) + 1
    side = cells.copy() if whole else np.minimum(cells, window_side(settings))
    # Windows begin at whole lanes, hence up to 15 cells too low: they are so much longer on both sides.
    side[:, 2] = np.ceil(np.minimum(side[:, 2] + 2 * CPU_LANES, cells[:, 2]) / CPU_LANES) * CPU_LANES
    sizes = side.prod(1)
    if sizes.max() >= _MOST_CELLS or cells.max() > _LONGEST:
        raise AirworthyError(
            f"A map of {sizes.max():.3g} kept cells in a box of {cells.max():.0f} along an edge is too large (at most"
            f" {_MOST_CELLS} and {_LONGEST}); use larger cells, a smaller margin or a smaller box."
        )
    base = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return MapBoxes(h, origin, upper, cells.astype(np.int32), side.astype(np.int32), base)


def window_side(settings: MapSettings) -> int:
    """Cells along an edge of the window: all that one image can touch, what the margin keeps, and the shell, on both sides."""
    reach = math.ceil(settings.ray_max / settings.resolution) + 1
    return 2 * (reach + max(settings.margin, math.ceil(settings.field_margin / settings.resolution)) + SHELL) + 1


def check_settings(settings: MapSettings) -> None:
    """Refuse settings that no map can be made with.

    Raises:
        AirworthyError: With the setting that is wrong.
    """
    s = settings
    lengths = [s.resolution, *s.reach, s.depth_max, s.ray_max, s.rate]
    rest = [s.inflation, s.depth_min, s.ray_min, s.field_margin]
    if not (np.isfinite([*lengths, *rest, s.ground]).all() and min(lengths) > 0.0 and min(rest) >= 0.0):
        raise AirworthyError(f"{s} holds a length or rate that is not finite or has the wrong sign; see `MapSettings`.")
    if s.margin < 0 or s.border < 0 or s.skip < 1:
        raise AirworthyError(
            f"Map settings have margin {s.margin}, border {s.border}, skip {s.skip}; expected 0, 0, 1 or more."
        )
    if not 0.0 < s.least < s.occupied < s.most < 1.0 or not 0.0 < s.miss < 0.5 < s.hit < 1.0:
        raise AirworthyError(
            f"Map settings have probabilities least {s.least}, occupied {s.occupied}, most {s.most}, miss {s.miss},"
            f" hit {s.hit}; expected 0 < least < occupied < most < 1 and miss < 0.5 < hit."
        )
    if not (s.least >= 0.001 and s.most <= 0.999):
        raise AirworthyError("Map settings' probabilities `least` and `most` must lie within 0.001 and 0.999.")
    if s.ray_max / s.resolution > 1000 or s.inflation / s.resolution > 14.0:
        raise AirworthyError("Map settings ask for rays of over 1000 cells or inflation of over 14; use larger cells.")
