"""Derivatives as a GPU finds them: half a warp per tile, then per Gaussian in an image, then per sixteen Gaussians of a cloud.

The kernels' texts are those of the CPU, a lane there being a thread here; only the lists are others: one for all tiles. So a
second radix sort brings the places in it together that belong to one Gaussian, and nothing is added in an order that threads
decide.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.native_kernel import CPU_LANES, quiet_launch, quiet_warp
from airworthy.sensors.splats.buffers import as_warp
from airworthy.sensors.splats.cloud import Cloud
from airworthy.sensors.splats.lanes import Arrays
from airworthy.sensors.splats.lanes_back import BACK_STAGES, PART_WORDS, POSE_PLACES, back_arrays, back_flags, pose_sums
from airworthy.sensors.splats.native_text import CHUNK, SLOPE_ROWS, TILE
from airworthy.sensors.splats.project_back_kernel import project_back_kernel
from airworthy.sensors.splats.raster_back_kernel import raster_back_kernel
from airworthy.sensors.splats.single import Single
from airworthy.sensors.splats.views import Shot


class SingleSlopes:
    """As `lanes_back.Slopes`, on the device of a `Single`; on a CPU (tests) a lane vector does what half a warp does."""

    def __init__(self, cloud: Cloud, device: str):
        wp = quiet_warp()
        self._device = device
        self._shape = (len(cloud.geometry), SLOPE_ROWS, CPU_LANES)
        self._threads, self._pose_rows = (1, 1) if device == "cpu" else (CPU_LANES, CHUNK // CPU_LANES)
        self._gaussians = wp.zeros(int(np.prod(self._shape)), dtype=wp.float32, device=device)
        self._harmonics = wp.zeros(cloud.harmonics.size, dtype=wp.float32, device=device)
        self._touched = wp.zeros(len(cloud.chunks), dtype=wp.bool, device=device)
        self.poses: list[NDArray[np.float64]] = []

    @property
    def gaussians(self) -> NDArray[np.float32]:
        """(block, SLOPE_ROWS, 16); from a GPU a copy."""
        return np.asarray(self._gaussians.numpy().reshape(self._shape))

    @property
    def harmonics(self) -> NDArray[np.float32]:
        """As `Cloud.harmonics`; from a GPU a copy."""
        return np.asarray(self._harmonics.numpy())

    @property
    def touched(self) -> NDArray[np.bool_]:
        """(chunks,) whether a Gaussian of the chunk was in an image."""
        return np.asarray(self._touched.numpy())

    def add(self, engine: Single, shot: Shot, images: Arrays, slopes: Arrays) -> None:
        """Carry back what a loss says of the images that the engine has just rendered; arguments as of `Slopes.add`."""
        cameras = as_warp(shot.cameras, self._device)
        found = self._to_records(engine, cameras, shot, images, slopes)
        take, slots, chunks = engine._buffers.take, shot.count * shot.stride, self._touched.size
        rows = slots * self._pose_rows
        pose = take("pose slopes", rows * PART_WORDS, np.float32)
        pose.zero_()
        nothing = take("nothing", 1, np.int32)
        arrays = [*engine._sent, cameras, nothing, take("tags", 1, np.int32), take("ends", 1, np.int32), found]
        arrays += [self._gaussians, self._harmonics, pose, self._touched]
        numbers = [shot.stride, shot.count, shot.width, shot.height, shot.flags, 0, shot.near, shot.dilation]
        groups = chunks if self._device == "cpu" else chunks * (CHUNK // CPU_LANES)
        self._launch(project_back_kernel, groups, arrays, numbers)
        parts = pose.numpy()[: rows * PART_WORDS].reshape(shot.count, shot.stride, self._pose_rows, PART_WORDS)
        self.poses.append(pose_sums(shot, parts[..., POSE_PLACES].astype(np.float64).sum(axis=2)))

    def _to_records(self, engine: Single, cameras: Any, shot: Shot, images: Arrays, slopes: Arrays) -> Any:
        """Derivatives with respect to every Gaussian in every image."""
        take, slots = engine._buffers.take, shot.count * shot.stride * CHUNK
        tiles = shot.count * -(-shot.width // TILE) * -(-shot.height // TILE)
        ends = take("ends", slots, np.int32)
        total = int(ends[slots - 1 : slots].numpy()[0])
        room = max(1024, 1 << (2 * total).bit_length())
        owners, places = take("owners", room, np.int32), take("places", room, np.int32)
        nothing, used = take("no image", 1, np.float32), take("nothing", 1, np.int32)
        given = [as_warp(a, self._device) if a is not None else nothing for a in back_arrays(shot, images, slopes)]
        partials = take("partials", room // 2 * PART_WORDS, np.float32)
        found = take("record slopes", slots * PART_WORDS, np.float32)
        arrays = [cameras, used, take("records", 1, np.float32), ends, take("tiles", 1, np.int32), take("lists", 1, np.int32)]
        arrays += [owners, places, *given, used, partials, found]
        numbers = [shot.stride, shot.width, shot.height, 0, 0, back_flags(shot, slopes)]
        self._launch(raster_back_kernel, tiles, arrays, [*numbers, BACK_STAGES["tiles"]])
        if total:
            quiet_warp().utils.radix_sort_pairs(owners, places, total, end_bit=slots.bit_length())
            self._launch(raster_back_kernel, slots, arrays, [*numbers, BACK_STAGES["records"]])
        return found

    def _launch(self, kernel: Any, groups: int, arrays: list[Any], numbers: list[Any]) -> None:
        quiet_launch(kernel(), groups * self._threads, [*arrays, *numbers, 0], self._device)
