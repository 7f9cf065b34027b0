"""Rendering with one Gaussian or pixel per thread, as a GPU does it: Warp's scan and radix sort between four kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayF32
from airworthy.core.native_kernel import CPU_LANES, quiet_launch, quiet_warp
from airworthy.splats.cameras import CameraView, image_shape
from airworthy.splats.cloud import Buffers, Cloud, as_warp
from airworthy.splats.kernels import arrange_kernel, project_back_kernel, project_kernel, raster_back_kernel, raster_kernel
from airworthy.splats.lanes import (
    BACK_STAGES,
    IMAGE_NAMES,
    PART_SIZE,
    POSE_PLACES,
    Arrays,
    back_arrays,
    back_flags,
    has_planes,
    pose_sums,
)
from airworthy.splats.native_text import CHUNK, PLANE_SIZE, RECORD_SIZE, SLOPE_ROWS, TILE

_DEPTH_BITS = 32
_EMIT, _FIND = 0, 1


class Single:
    """One cloud on a device; renders shots of as many cameras as its memory holds at once.

    Args:
        cloud: What is seen.
        device: Warp device name.
        prefix: Before the kernels' text; with `#define SCALAR_PATH` the same runs on a CPU (tests do).
    """

    def __init__(self, cloud: Cloud, device: str, prefix: str = ""):
        self._device, self._prefix = device, prefix
        self._buffers = Buffers(device)
        self.take(cloud)

    def take(self, cloud: Cloud) -> None:
        """Render this cloud from now on."""
        self._sent = [as_warp(array, self._device) for array in (cloud.geometry, cloud.harmonics, cloud.chunks)]

    def render(self, view: CameraView, out: dict[str, Any]) -> None:
        """Fill the arrays of `out`, one per channel, of NumPy or on the device."""
        take = self._buffers.take
        count, stride = view.count, view.stride
        slots, tile_count = count * stride * CHUNK, count * -(-view.width // TILE) * -(-view.height // TILE)
        cameras = as_warp(view.cameras, self._device)
        records, tags = take("records", slots * RECORD_SIZE, np.float32), take("tags", slots * 4, np.int32)
        counts, nothing = take("counts", slots, np.int32)[:slots], take("nothing", 1, np.int32)
        planes = take("planes", slots * PLANE_SIZE if has_planes(view) else 1, np.float32)
        arrays = [*self._sent, cameras, nothing, records, planes, tags, counts]
        self._launch(project_kernel, slots, arrays, [stride, view.width, view.height, view.flags, view.near, view.dilation])
        tiles, lists = self._lists(view, cameras, records, tags, counts, slots, tile_count)
        images = self._images(out)
        limits = take("no limit", 1, np.float32) if view.limit is None else as_warp(view.limit, self._device)
        arrays = [cameras, nothing, records, planes, tiles, lists, limits, *images.values()]
        self._launch(raster_kernel, tile_count * TILE * TILE, arrays, [stride, view.width, view.height, 1, 1, view.flags])
        if self._device != "cpu":
            for name, image in out.items():
                if isinstance(image, np.ndarray):
                    image[...] = images[name].numpy()[: image.size].reshape(image.shape)

    def images(self, view: CameraView) -> dict[str, Any]:
        """Return new arrays on the device, one per channel."""
        wp, shape = quiet_warp(), (view.count, view.height, view.width)
        return {name: wp.empty(image_shape(name, shape), dtype=wp.float32, device=self._device) for name in view.channels}

    def _lists(self, view: CameraView, cameras: Any, records: Any, tags: Any, counts: Any, slots: int, tile_count: int) -> Any:
        """Tiles' places in the lists, and the lists."""
        wp = quiet_warp()
        take = self._buffers.take
        ends = take("ends", slots, np.int32)[:slots]
        wp.utils.array_scan(counts, ends, inclusive=True)
        total = int(ends[slots - 1 : slots].numpy()[0])
        room = max(1024, 1 << (2 * total).bit_length())
        keys, lists = take("keys", room, np.int64), take("lists", room, np.int32)
        tiles, nothing = take("tiles", 2 * tile_count, np.int32), take("nothing", 1, np.int32)
        # Tiles without an entry are not written, and must be empty spans.
        tiles.zero_()
        columns, rows = -(-view.width // TILE), -(-view.height // TILE)
        arrays = [cameras, nothing, records, tags, ends, nothing, nothing, keys, tiles, lists, nothing]
        numbers = [view.stride, columns, rows, 1, 0, total]
        self._launch(arrange_kernel, slots, arrays, [*numbers, _EMIT])
        if total:
            # Only as many bits as tiles have: each pass of a radix sort over eight of them takes time.
            wp.utils.radix_sort_pairs(keys, lists, total, end_bit=_DEPTH_BITS + tile_count.bit_length())
            self._launch(arrange_kernel, total, arrays, [*numbers, _FIND])
        return tiles, lists

    def _images(self, out: dict[str, Any]) -> dict[str, Any]:
        nothing = self._buffers.take("no image", 1, np.float32)
        images = {}
        for name in IMAGE_NAMES:
            if name not in out:
                images[name] = nothing
            elif not isinstance(out[name], np.ndarray):
                images[name] = out[name].flatten()
            else:
                images[name] = (
                    as_warp(out[name]) if self._device == "cpu" else self._buffers.take(name, out[name].size, np.float32)
                )
        return images

    def _launch(self, kernel: Any, tasks: int, arrays: list[Any], numbers: list[Any]) -> None:
        quiet_launch(kernel(self._prefix), tasks, [*arrays, *numbers, 0], self._device)


# -----------------------------------------------------------------------------------------------------------------------------
# Derivatives as a GPU finds them: half a warp per tile, then per Gaussian in an image, then per sixteen Gaussians of a
# cloud.
#
# The kernels' texts are those of the CPU, a lane there being a thread here; only the lists are others: one for all tiles. So a
# second radix sort brings the places in it together that belong to one Gaussian, and nothing is added in an order that threads
# decide.


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
        self.poses: list[Array] = []

    @property
    def gaussians(self) -> ArrayF32:
        """(block, SLOPE_ROWS, 16); from a GPU a copy."""
        return np.asarray(self._gaussians.numpy().reshape(self._shape))

    @property
    def harmonics(self) -> ArrayF32:
        """As `Cloud.harmonics`; from a GPU a copy."""
        return np.asarray(self._harmonics.numpy())

    @property
    def touched(self) -> ArrayBool:
        """(chunks,) whether a Gaussian of the chunk was in an image."""
        return np.asarray(self._touched.numpy())

    def add(self, engine: Single, view: CameraView, images: Arrays, slopes: Arrays) -> None:
        """Carry back what a loss says of the images that the engine has just rendered; arguments as of `Slopes.add`.

        Args:
            engine: That has just rendered.
            view: What was rendered.
            images: By channel.
            slopes: Derivatives of the loss with respect to them.
        """
        cameras = as_warp(view.cameras, self._device)
        found = self._to_records(engine, cameras, view, images, slopes)
        take, slots, chunks = engine._buffers.take, view.count * view.stride, self._touched.size
        rows = slots * self._pose_rows
        pose = take("pose slopes", rows * PART_SIZE, np.float32)
        # Chunks that nobody sees write nothing.
        pose.zero_()
        nothing = take("nothing", 1, np.int32)
        arrays = [*engine._sent, cameras, nothing, take("tags", 1, np.int32), take("ends", 1, np.int32), found]
        arrays += [self._gaussians, self._harmonics, pose, self._touched]
        numbers = [view.stride, view.count, view.width, view.height, view.flags, 0, view.near, view.dilation]
        # On a GPU half a warp takes sixteen Gaussians, on a CPU a task takes a chunk.
        groups = chunks if self._device == "cpu" else chunks * (CHUNK // CPU_LANES)
        self._launch(project_back_kernel, groups, arrays, numbers)
        parts = pose.numpy()[: rows * PART_SIZE].reshape(view.count, view.stride, self._pose_rows, PART_SIZE)
        self.poses.append(pose_sums(view, parts[..., POSE_PLACES].astype(np.float64).sum(axis=2)))

    def _to_records(self, engine: Single, cameras: Any, view: CameraView, images: Arrays, slopes: Arrays) -> Any:
        """Return derivatives with respect to every Gaussian in every image."""
        take, slots = engine._buffers.take, view.count * view.stride * CHUNK
        tiles = view.count * -(-view.width // TILE) * -(-view.height // TILE)
        ends = take("ends", slots, np.int32)
        total = int(ends[slots - 1 : slots].numpy()[0])
        room = max(1024, 1 << (2 * total).bit_length())
        owners, positions = take("owners", room, np.int32), take("places", room, np.int32)
        nothing, used = take("no image", 1, np.float32), take("nothing", 1, np.int32)
        given = [as_warp(a, self._device) if a is not None else nothing for a in back_arrays(view, images, slopes)]
        partials = take("partials", room // 2 * PART_SIZE, np.float32)
        found = take("record slopes", slots * PART_SIZE, np.float32)
        arrays = [
            cameras,
            used,
            take("records", 1, np.float32),
            take("planes", 1, np.float32),
            ends,
            take("tiles", 1, np.int32),
            take("lists", 1, np.int32),
        ]
        arrays += [owners, positions, *given, used, partials, found]
        numbers = [view.stride, view.width, view.height, 0, 0, back_flags(view, slopes)]
        self._launch(raster_back_kernel, tiles, arrays, [*numbers, BACK_STAGES["tiles"]])
        if total:
            quiet_warp().utils.radix_sort_pairs(owners, positions, total, end_bit=slots.bit_length())
            self._launch(raster_back_kernel, slots, arrays, [*numbers, BACK_STAGES["records"]])
        return found

    def _launch(self, kernel: Any, groups: int, arrays: list[Any], numbers: list[Any]) -> None:
        quiet_launch(kernel(), groups * self._threads, [*arrays, *numbers, 0], self._device)
