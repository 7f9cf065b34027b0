"""What sensors see in rooms: one kernel, a task per flight, and its twin in NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayF32, NDArray
from airworthy.core.native_kernel import Launcher, native_kernel, quiet_warp, shared_source
from airworthy.learning.environments.rooms import WALL, RoomForm, draw_rooms, euler_matrices, placed_boxes
from airworthy.pilots.navigation_policy.sight import FIELD_OF_VIEW, IMAGE, REACH

__all__ = ["CAMERA", "LIDAR", "POSE_NUMBERS", "Rays", "RoomSight", "camera_rays", "lidar_rays", "seen_distances"]

POSE_NUMBERS = 22
"""Of `NavigationTask.observe_critic`."""
_TILE = 4
"""Rows and columns of a camera's packet of rays."""


@dataclass(frozen=True, eq=False)
class Rays:
    """Directions of a sensor, sensor frame: x forward, y left, z up."""

    directions: Array
    """(rows, columns, 3); distances are in units of their lengths: camera rays have x = 1, and their distances are depths."""
    reach: float
    """Farther returns are at this distance [m]."""
    order: NDArray[np.int64]
    """Packets: place of each ray in the image, (rows * columns,)."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.directions.shape[0], self.directions.shape[1]


def camera_rays(rows: int, columns: int, field_of_view: float, reach: float) -> Rays:
    """Return rays of a pinhole camera with square pixels, through their middles.

    Args:
        rows: Of the image, a multiple of 4.
        columns: Alike.
        field_of_view: Horizontal [rad].
        reach: Farthest depth [m].
    """
    focal = 0.5 * columns / np.tan(0.5 * field_of_view)
    left = (0.5 * columns - 0.5 - np.arange(columns)) / focal
    up = (0.5 * rows - 0.5 - np.arange(rows)) / focal
    directions = np.stack([np.ones((rows, columns)), *np.meshgrid(left, up)], -1)
    return Rays(directions, reach, _tiles(rows, columns, _TILE, _TILE))


def lidar_rays(rows: int, columns: int, elevation: tuple[float, float], reach: float) -> Rays:
    """Return rays of a LiDAR, turning from +180 degrees of azimuth on, without the doubled last column.

    Args:
        rows: Of the image, from the highest elevation to the lowest; a multiple of 4.
        columns: Around, a multiple of 4.
        elevation: Least and largest [rad].
        reach: Farthest range [m].
    """
    azimuth = np.pi - 2.0 * np.pi * np.arange(columns) / columns
    height = np.linspace(elevation[1], elevation[0], rows)[:, None]
    parts = [np.cos(azimuth) * np.cos(height), np.sin(azimuth) * np.cos(height), np.sin(height) + 0.0 * azimuth]
    return Rays(np.stack(parts, -1), reach, _tiles(rows, columns, _TILE, _TILE))


def _tiles(rows: int, columns: int, high: int, wide: int) -> NDArray[np.int64]:
    place = np.arange(rows * columns).reshape(rows // high, high, columns // wide, wide)
    return np.ascontiguousarray(place.transpose(0, 2, 1, 3)).reshape(-1)


CAMERA = camera_rays(*IMAGE, FIELD_OF_VIEW, REACH)
"""Of `base_depth_camera`, 135 x 240: its angles and aspect at 36 x 64, the size for a CPU."""
LIDAR = lidar_rays(48, 120, (0.0, np.pi / 2.0), 10.0)
"""Of `rslidar_airy`."""


class RoomSight:
    """Distances that `count` sensors see, into an array that stays.

    Args:
        form: Of the rooms.
        rays: Of the sensor.
        count: Most flights at once.
        threads: Most threads; None: all.
    """

    def __init__(self, form: RoomForm, rays: Rays, count: int, threads: int | None = None):
        self.rays, self.count = rays, count
        rows, columns = rays.shape
        self.poses: ArrayF32 = np.zeros((count, POSE_NUMBERS), np.float32)
        self.distance: ArrayF32 = np.zeros((count, rows, columns), np.float32)
        flat = rays.directions.reshape(-1, 3)[rays.order]
        longest = float(np.linalg.norm(flat, axis=1).max())
        wp = quiet_warp()
        held: list[ArrayAny] = [draw_rooms(form), self.poses, flat.T.astype(np.float32).copy(), _cones(flat)]
        held += [rays.order.astype(np.int32), self.distance]
        self._held = held  # Warp's views do not keep them
        self._views = [
            wp.array(np.ascontiguousarray(a).reshape(-1), dtype=wp.dtype_from_numpy(a.dtype), device="cpu", copy=False)
            for a in held
        ]
        self._numbers = [form.boxes, form.panels.count, len(flat), WALL, rays.reach, longest]
        self._threads = threads
        self._launchers: dict[tuple[int, float], Any] = {}

    def look(self, poses: ArrayF32, inflate: float = 0.0) -> ArrayF32:
        """Return distances, (n, rows, columns): a view that the next look writes over.

        Args:
            poses: (n, `POSE_NUMBERS`), n at most `count`.
            inflate: By how much boxes and walls are grown on each side [m]: how far a body of this half width could go.
        """
        n = len(poses)
        self.poses[:n] = poses
        if (n, inflate) not in self._launchers:
            if len(self._launchers) > _LAUNCHERS_MOST:
                self._launchers.clear()
            self._launchers[n, inflate] = Launcher(_kernel(), n, [*self._views, *self._numbers, inflate], "cpu", self._threads)
        self._launchers[n, inflate].launch()
        return self.distance[:n]


_LAUNCHERS_MOST = 256
"""Kept; ours: each is a list of arguments."""


def _cones(flat: Array) -> ArrayF32:
    """Axis, and cosine and sine of the half angle, of each packet of 16 rays, (packet, 5)."""
    unit = (flat / np.linalg.norm(flat, axis=1, keepdims=True)).reshape(-1, 16, 3)
    axis = unit.mean(1)
    axis /= np.linalg.norm(axis, axis=1, keepdims=True)
    # A hair wider, for rounding.
    half = np.arccos(np.clip((unit * axis[:, None]).sum(2).min(1), -1.0, 1.0)) + 1e-4
    return np.column_stack([axis, np.cos(half), np.sin(half)]).astype(np.float32)


@cache
def _kernel() -> Any:
    text = files("airworthy.learning.navigation").joinpath("native", "room_sight.h").read_text()
    return native_kernel("room_sight", "\n".join([shared_source("prelude.h"), text]), _ARGUMENTS)


_ARGUMENTS = """
    pool: float32[]      # (room, box, 15)
    poses: float32[]     # (flight, 22): position, attitude x y z w, mounting 3 + 3, place 9
    rays: float32[]      # directions, in packets of 16, (3, ray)
    cones: float32[]     # axis, cosine and sine of the half angle, (packet, 5)
    place_of: int32[]    # of each ray in the image, (ray,)
    distance: float32[]  # written: (flight, ray)
    boxes: int           # of each room
    panels: int          # of these, those before the objects
    ray_count: int
    wall: float          # half its thickness [m]
    range: float         # farther returns are at this distance
    longest: float       # ray
    inflate: float       # [m]
"""


def seen_distances(form: RoomForm, rays: Rays, pose: Array, inflate: float = 0.0) -> Array:
    """Return distances (rows, columns) of one pose: the kernel's twin, float64.

    Args:
        form: Of the rooms.
        rays: Of the sensor.
        pose: (`POSE_NUMBERS`,).
        inflate: As of `RoomSight.look`.
    """
    pose = np.asarray(pose, float)
    x, y, z, w = pose[3:7]
    body = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    eye, axes = pose[:3] + body @ pose[7:10], body @ euler_matrices(pose[10:13])
    directions = rays.directions @ axes.T
    place = pose[13:]
    found = np.full(rays.shape, rays.reach)
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.minimum(place[3:6] + WALL + inflate - eye, 0.0) / directions
        high = np.maximum(place[6:9] - WALL - inflate - eye, 0.0) / directions
        found = np.minimum(found, np.where(directions > 0.0, high, np.where(directions < 0.0, low, np.inf)).min(2))
        for middle, turned, half in zip(*placed_boxes(form, draw_rooms(form), place), strict=True):
            start, along, grown = (eye - middle) @ turned, directions @ turned, half + inflate
            ends = np.stack([(-grown - start) / along, (grown - start) / along])
            enter, leave = ends.min(0).max(2), ends.max(0).min(2)
            hit = np.where((enter < leave) & (leave > 0.0), np.maximum(enter, 0.0), np.inf)
            found = np.minimum(found, hit)
    return found
