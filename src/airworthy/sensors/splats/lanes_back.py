"""Derivatives on a CPU: from pixels to Gaussians in the image, and on to Gaussians in space and cameras."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.native_kernel import CPU_LANES, quiet_warp
from airworthy.sensors.splats.buffers import as_warp
from airworthy.sensors.splats.cloud import Cloud
from airworthy.sensors.splats.lanes import Arrays, Lanes
from airworthy.sensors.splats.native_text import CHUNK, FLAGS, SLOPE_ROWS, TILE
from airworthy.sensors.splats.project_back_kernel import project_back_kernel
from airworthy.sensors.splats.raster_back_kernel import raster_back_kernel
from airworthy.sensors.splats.views import Shot

PART_WORDS = 16
"""Numbers between rows of sums: of a place in a list, a record, a camera's pose."""
BACK_STAGES = {"tiles": 0, "cameras": 1, "records": 2}
POSE_PLACES = [int(f"{k:04b}"[::-1], 2) for k in range(12)]
"""Where a row of sums holds position (3) and rotation matrix (9): lanes tell their sums apart bit by bit, from the top."""
_IMAGES = ("rgb", "depth", "alpha")


class Slopes:
    """Derivatives of a loss, summed over the groups of cameras of one call.

    Where `touched` is false nothing was seen: there all is zero, and there is nothing to read.
    """

    def __init__(self, cloud: Cloud):
        wp = quiet_warp()
        self._cloud = cloud
        self.gaussians = np.zeros((len(cloud.geometry), SLOPE_ROWS, CPU_LANES), np.float32)
        """(block, SLOPE_ROWS, 16), as `Cloud.geometry`."""
        self.harmonics = np.zeros_like(cloud.harmonics)
        """As `Cloud.harmonics`."""
        self.touched = np.zeros(len(cloud.chunks), np.bool_)
        """(chunks,) whether a Gaussian of the chunk was in an image."""
        self.poses: list[NDArray[np.float64]] = []
        """Per group: position (3) and rotation matrix (9) of each camera, (c, 12)."""
        self._sent = [as_warp(self.gaussians), as_warp(self.harmonics)]
        self._touched = wp.array(self.touched, dtype=wp.bool, device="cpu", copy=False)

    def clear(self) -> None:
        """Forget everything, at the cost of what was touched."""
        for chunk in np.flatnonzero(self.touched):
            self.gaussians[chunk * CHUNK // CPU_LANES : (chunk + 1) * CHUNK // CPU_LANES] = 0.0
            row = self._cloud.chunks[chunk]
            first = int(row["harmonics"]) * CPU_LANES
            self.harmonics[first : first + CHUNK * 3 * int(row["coefficients"])] = 0.0
        self.touched[:] = False
        self.poses.clear()

    def add(self, engine: Lanes, shot: Shot, images: Arrays, slopes: Arrays) -> None:
        """Carry back what a loss says of the images that the engine has just rendered.

        Args:
            engine: What rendered them, its cloud still the one that these are of.
            shot: What was rendered; depth `expected`.
            images: As they were rendered: the channels that the loss depends on, and for its `depth` also `alpha`.
            slopes: Derivatives with respect to some of the channels, in their shapes; of a fisheye with respect to distances.
        """
        found = self._to_records(engine, shot, images, slopes)
        chunks = len(self.touched)
        pose = np.zeros((shot.count, shot.stride, PART_WORDS), np.float32)
        arrays = [*engine.sent, engine.cameras, engine.order(chunks), engine.tags, engine.counts, found]
        arrays += [*self._sent, as_warp(pose), self._touched]
        numbers = [shot.stride, shot.count, shot.width, shot.height, shot.flags, 1, shot.near, shot.dilation]
        engine.launch(project_back_kernel, chunks, arrays, numbers)
        self.poses.append(pose_sums(shot, pose[..., POSE_PLACES].astype(np.float64)))

    def _to_records(self, engine: Lanes, shot: Shot, images: Arrays, slopes: Arrays) -> Any:
        take, tiles = engine.buffers.take, shot.count * -(-shot.width // TILE) * -(-shot.height // TILE)
        partials = take("partials", engine.lists.size * PART_WORDS, np.float32)
        found = take("record slopes", shot.count * shot.stride * CHUNK * PART_WORDS, np.float32)
        nothing, owners = take("nothing", 1, np.float32), take("owners", 1, np.int32)
        given = [as_warp(array) if array is not None else nothing for array in back_arrays(shot, images, slopes)]
        work = [owners, owners, *given, take("used", tiles, np.int32), partials, found]
        flags = back_flags(shot, slopes)
        numbers = [shot.stride, shot.width, shot.height, engine.band_rows, engine.capacity, flags]
        for stage, tasks in (("tiles", tiles), ("cameras", shot.count)):
            arrays = [engine.cameras, engine.order(tasks), engine.records, engine.counts, engine.tiles, engine.lists]
            engine.launch(raster_back_kernel, tasks, [*arrays, *work], [*numbers, BACK_STAGES[stage]])
        return found


def back_flags(shot: Shot, slopes: Arrays) -> int:
    """What `raster_back` is to read: the channels that a loss depends on, and whether there is a limit."""
    return sum(FLAGS[name] for name in slopes) | shot.flags & FLAGS["limit"]


def back_arrays(shot: Shot, images: Arrays, slopes: Arrays) -> list[NDArray[np.float32] | None]:
    """Limits, images and derivatives, where there are any, as `raster_back` takes them."""
    arrays = [shot.limit, *(images.get(name) for name in _IMAGES), *(slopes.get(name) for name in _IMAGES)]
    return [None if array is None else np.ascontiguousarray(array, np.float32) for array in arrays]


def pose_sums(shot: Shot, parts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Derivatives with respect to the cameras' positions and rotation matrices (c, 12) from those of each slot (c, stride, 12).

    A mover is seen by a camera of its own, in the frame of its cloud: position A^T (p - q), rotation R A where A is the mover's
    attitude and q its position. So derivatives g with respect to these are A g and G A^T with respect to p and R.
    """
    images = shot.cameras[: shot.count]
    if not images["more_count"].any():
        return parts.sum(axis=1)
    sums = np.concatenate([np.zeros((shot.count, 1, 12)), np.cumsum(parts, axis=1)], axis=1)
    own = np.arange(shot.count)
    owner = np.concatenate([own, np.repeat(own, images["more_count"])])
    begin = shot.cameras["slot"].astype(np.int64)
    rows = sums[owner, begin + shot.cameras["chunk_count"]] - sums[owner, begin]
    turn = shot.cameras["rotation"].reshape(-1, 3, 3).astype(np.float64)
    attitude = turn[owner].swapaxes(1, 2) @ turn  # of the mover; of the scene itself none
    position = np.einsum("nij,nj->ni", attitude, rows[:, :3])
    matrix = (rows[:, 3:].reshape(-1, 3, 3) @ attitude.swapaxes(1, 2)).reshape(-1, 9)
    found = np.zeros((shot.count, 12))
    np.add.at(found, owner, np.concatenate([position, matrix], axis=1))
    return found
