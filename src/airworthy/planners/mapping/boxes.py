"""Where the cells of n flights' maps lie, and how they are kept in memory.

Cell (i, j, k) of a flight spans `origin + resolution * (i, j, k)` to one cell further; all numbers of cells are 0 or more. Kept
are those of a window that moves with the vehicle: `side` cells along each axis, of which cell i lies in slot i modulo side, so
that what stays in the window stays where it is in memory. Along z windows begin and end at whole lanes of 16 cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayInt, ArrayLike, NDArray
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.frames import camera_attitude, rotate
from airworthy.core.native_kernel import CPU_LANES
from airworthy.optics.projections import Pinhole
from airworthy.planners.common.interface import MapSettings, Mission

__all__ = [
    "CAMERA_OFFSET",
    "MODES",
    "SHELL",
    "UNIT",
    "MapBoxes",
    "Rules",
    "camera_pose",
    "logit",
    "map_boxes",
    "mapping_camera",
    "pixel_slopes",
    "read_pixels",
]

# ---- The numbers that the update of maps counts with, from settings ---------------------------------------------------------

# Ours, because whole numbers add up to the same sum in any order, which floats under atomics do not.
UNIT = 4096
"""Log-odds are whole numbers of 1 / UNIT in 16 bits: they reach +-8, probabilities of 0.0003 and 0.9997."""
# Source: spec/planners 1.1, step 4: unknown = lower clamp - 0.01.
_UNKNOWN = 0.01
"""Below the least log-odds: never seen."""


def logit(p: float) -> float:
    """Return log-odds of a probability."""
    return math.log(p / (1.0 - p))


@dataclass(frozen=True)
class Rules:
    """Whole numbers of cells and log-odds [1 / UNIT]."""

    reach: int
    """Cells that a ray spans along an axis, at most."""
    radius: int
    """Of inflation."""
    margin: int
    field_margin: int
    hit: int
    miss: int
    least: int
    most: int
    unknown: int
    occupied: int
    """Above it a cell is occupied."""
    field: int
    """1 where a distance field is kept."""
    floor: int
    """Lowest layers of the box that are always inflated: the floor's, all below and as many above as inflation says."""

    @classmethod
    def of(cls, s: MapSettings) -> Rules:
        """Return those of settings."""
        odds = [round(UNIT * logit(p)) for p in (s.hit, s.miss, s.least, s.most)]
        unknown, occupied = round(UNIT * (logit(s.least) - _UNKNOWN)), round(UNIT * logit(s.occupied))
        reach = math.ceil(s.ray_max / s.resolution) + 1
        radius, grown = (math.ceil(length / s.resolution) for length in (s.inflation, s.field_margin))
        hit, miss, least, most = odds
        return cls(reach, radius, s.margin, grown, hit, miss, least, most, unknown, occupied, int(s.field), floor_layers(s))


def floor_layers(s: MapSettings) -> int:
    """Return the lowest layers of cells that a known floor takes, inflation included; 0 where it is not known."""
    below = max(0, math.floor(-s.ground / s.resolution + 1e-6))
    return below + 1 + math.ceil(s.inflation / s.resolution) if s.floor else 0


def lengths(s: MapSettings) -> Array:
    """Return cell, longest and least ray, least and most depth, reach along x, y, z [m]; (8,)."""
    return np.array([s.resolution, s.ray_max, s.ray_min, s.depth_min, s.depth_max, *s.reach])


# ---- The depth camera of the published planners, and the pixels of an image that mapping reads ------------------------------
#
# In mode `fast` the image has 320 x 240 pixels, of which the ray caster needs to cast only those that are read
# (`read_pixels`); its rays are every second of those of mode `full`, 640 x 480. Pixel (j, i) looks along its whole numbers,
# as in the published code.

# Source: spec/planners 1.1, the published intrinsics; "fast" halves every number.
MODES: dict[str, Pinhole] = {
    "full": Pinhole(640, 480, 387.229, 387.229, 321.046, 243.450, integer_pixels=True),
    "fast": Pinhole(320, 240, 193.6145, 193.6145, 160.523, 121.725, integer_pixels=True),
}
"""Whole images by mode; rates are 30 Hz and that of the map (`MapSettings.rate`)."""

# Source: spec/planners 1.1: offset (0, 0, -0.02).
CAMERA_OFFSET = (0.0, 0.0, -0.02)
"""Place of the camera in the body [m]; it looks ahead."""


def mapping_camera(mode: str = "fast") -> Pinhole:
    """Return the camera of a mode.

    Raises:
        AirworthyError: If there is no such mode.
    """
    if mode not in MODES:
        raise unknown_name("mapping mode", mode, MODES)
    return MODES[mode]


def camera_pose(position: ArrayLike, attitude: ArrayLike) -> tuple[Array, Array]:
    """Place (k, 3) and attitude (k, 4) of the camera's optical frame, from those of the body."""
    body = np.asarray(attitude, np.float64)
    return np.asarray(position, np.float64) + rotate(body, CAMERA_OFFSET), camera_attitude(body)


def read_pixels(projection: Pinhole, settings: MapSettings) -> Pinhole:
    """Return a camera that has just the pixels of another that mapping reads: every `skip`-th inside the border.

    Depth images of it are taken by `LocalMaps.update` as well as whole ones, with equal results.

    Raises:
        AirworthyError: If no pixel is left, or it is no pinhole camera.
    """
    if not isinstance(projection, Pinhole):
        raise AirworthyError(f"Only the pixels of a Pinhole can be thinned out; got a {type(projection).__name__}.")
    rows, columns = _read(projection, settings)
    half, skip = 0.0 if projection.integer_pixels else 0.5, settings.skip
    cx, cy = ((c - settings.border - half) / skip + half for c in (projection.cx, projection.cy))
    fx, fy = projection.fx / skip, projection.fy / skip
    return Pinhole(len(columns), len(rows), fx, fy, cx, cy, projection.distortion, projection.integer_pixels)


def pixel_slopes(projection: Any, settings: MapSettings) -> tuple[Array, NDArray[np.int32], tuple[int, int]]:
    """Return what mapping needs of the pixels that it reads, row by row.

    Returns:
        (p, 2) x/z and y/z of their rays in the optical frame; (p,) their numbers in the image of `read_pixels`, row * width +
        column; and that image's (height, width). Pixels without a ray ahead are left out.

    Raises:
        AirworthyError: If no pixel is left, or the projection has no optical frame.
    """
    if not projection.optical:
        raise AirworthyError(f"Maps are made from depth along an optical axis; {type(projection).__name__} has none.")
    rows, columns = _read(projection, settings)
    u, v = np.meshgrid(columns, rows)
    half = 0.0 if getattr(projection, "integer_pixels", False) else 0.5
    ray = projection.unproject(np.stack([u, v], -1) + half).reshape(-1, 3)
    mask = projection.mask()
    fits = ray[:, 2] > 0.0 if mask is None else (ray[:, 2] > 0.0) & mask[np.ix_(rows, columns)].reshape(-1)
    pixel = np.flatnonzero(fits).astype(np.int32)
    return ray[pixel, :2] / ray[pixel, 2:], pixel, (len(rows), len(columns))


def _read(projection: Any, settings: MapSettings) -> tuple[ArrayInt, ArrayInt]:
    """Rows and columns that are read."""
    rows, columns = (
        np.arange(settings.border, size - settings.border, settings.skip) for size in (projection.height, projection.width)
    )
    if not (len(rows) and len(columns)):
        raise AirworthyError(
            f"An image of {projection.width} x {projection.height} pixels with a border of {settings.border} has none to read."
        )
    return rows, columns


# -----------------------------------------------------------------------------------------------------------------------------

# Source: spec/planners 1.1, step 5: a 5-voxel shell outside (local bound + margin).
SHELL = 5
"""Cells beyond local bound and margin that are forgotten with each image."""
# Ours: rounding of a division, in cells.
_TINY = 1e-6
# Numbers of cells are 32-bit integers in the kernels.
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
    origin: Array
    """(n, 3) lower corner [m]."""
    upper: Array
    """(n, 3) upper corner [m]; its z is the virtual ceiling, which lies in the uppermost layer of cells."""
    cells: NDArray[np.int32]
    """(n, 3) cells of the whole box."""
    side: NDArray[np.int32]
    """(n, 3) cells kept in memory; z a multiple of 16, the last of which may lie above the box."""
    base: ArrayInt
    """(n + 1,) first element of each flight in flat arrays, and their length."""

    def __len__(self) -> int:
        return len(self.origin)

    def window(self, camera: Array, flight: ArrayInt) -> NDArray[np.int32]:
        """Return the first cells (k, 3) of windows centred on positions (k, 3) [m], as far as the boxes allow."""
        cell = np.floor((camera - self.origin[flight]) / self.resolution)
        room = np.maximum(self.cells[flight] - self.side[flight], 0)
        room[:, 2] = -(-room[:, 2] // CPU_LANES) * CPU_LANES
        first = np.clip(cell - self.side[flight] // 2, 0, room).astype(np.int32)
        first[:, 2] = first[:, 2] // CPU_LANES * CPU_LANES
        return first

    def inside(self, flight: ArrayInt, points: Array) -> ArrayBool:
        """Tell whether points (k, 3) [m] lie in their flights' boxes, (k,)."""
        inside: ArrayBool = np.all((points >= self.origin[flight]) & (points <= self.upper[flight]), axis=-1)
        return inside


def map_boxes(mission: Mission, settings: MapSettings, *, whole: bool = False) -> MapBoxes:
    """Return boxes of a mission's flights; `whole` keeps all of each in memory.

    Args:
        mission: With the flights' boxes [m], world.
        settings: Of the maps.
        whole: Keep all of each box in memory instead of a window.

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
    """Return cells along an edge of the window: all that one image can touch, what the margin keeps, and the shell, on both
    sides."""
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
