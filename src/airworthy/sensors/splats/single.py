"""Rendering with one Gaussian or pixel per thread, as a GPU does it: Warp's scan and radix sort between four kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from airworthy.core.native_kernel import quiet_launch, quiet_warp
from airworthy.sensors.splats.arrange_kernel import arrange_kernel
from airworthy.sensors.splats.buffers import Buffers, as_warp
from airworthy.sensors.splats.cloud import Cloud
from airworthy.sensors.splats.native_text import CHUNK, RECORD_WORDS, TILE
from airworthy.sensors.splats.project_kernel import project_kernel
from airworthy.sensors.splats.raster_kernel import raster_kernel
from airworthy.sensors.splats.views import Shot

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

    def render(self, shot: Shot, out: dict[str, Any]) -> None:
        """Fill the arrays of `out`, one per channel, of NumPy or on the device."""
        take = self._buffers.take
        count, stride = shot.count, shot.stride
        slots, tile_count = count * stride * CHUNK, count * -(-shot.width // TILE) * -(-shot.height // TILE)
        cameras = as_warp(shot.cameras, self._device)
        records, tags = take("records", slots * RECORD_WORDS, np.float32), take("tags", slots * 4, np.int32)
        counts, nothing = take("counts", slots, np.int32)[:slots], take("nothing", 1, np.int32)
        arrays = [*self._sent, cameras, nothing, records, tags, counts]
        self._launch(project_kernel, slots, arrays, [stride, shot.width, shot.height, shot.flags, shot.near, shot.dilation])
        tiles, lists = self._lists(shot, cameras, records, tags, counts, slots, tile_count)
        images = self._images(out)
        limits = take("no limit", 1, np.float32) if shot.limit is None else as_warp(shot.limit, self._device)
        arrays = [cameras, nothing, records, tiles, lists, limits, *images.values()]
        self._launch(raster_kernel, tile_count * TILE * TILE, arrays, [stride, shot.width, shot.height, 1, 1, shot.flags])
        if self._device != "cpu":
            for name, image in out.items():
                if isinstance(image, np.ndarray):
                    image[...] = images[name].numpy()[: image.size].reshape(image.shape)

    def images(self, shot: Shot) -> dict[str, Any]:
        """New arrays on the device, one per channel."""
        wp, shape = quiet_warp(), (shot.count, shot.height, shot.width)
        return {
            name: wp.empty((*shape, 3) if name == "rgb" else shape, dtype=wp.float32, device=self._device)
            for name in shot.channels
        }

    def _lists(self, shot: Shot, cameras: Any, records: Any, tags: Any, counts: Any, slots: int, tile_count: int) -> Any:
        """Tiles' places in the lists, and the lists."""
        wp = quiet_warp()
        take = self._buffers.take
        ends = take("ends", slots, np.int32)[:slots]
        wp.utils.array_scan(counts, ends, inclusive=True)
        total = int(ends[slots - 1 : slots].numpy()[0])
        room = max(1024, 1 << (2 * total).bit_length())
        keys, lists = take("keys", room, np.int64), take("lists", room, np.int32)
        tiles, nothing = take("tiles", 2 * tile_count, np.int32), take("nothing", 1, np.int32)
        tiles.zero_()
        columns, rows = -(-shot.width // TILE), -(-shot.height // TILE)
        arrays = [cameras, nothing, records, tags, ends, nothing, nothing, keys, tiles, lists, nothing]
        numbers = [shot.stride, columns, rows, 1, 0, total]
        self._launch(arrange_kernel, slots, arrays, [*numbers, _EMIT])
        if total:
            wp.utils.radix_sort_pairs(keys, lists, total, end_bit=_DEPTH_BITS + tile_count.bit_length())
            self._launch(arrange_kernel, total, arrays, [*numbers, _FIND])
        return tiles, lists

    def _images(self, out: dict[str, Any]) -> dict[str, Any]:
        nothing = self._buffers.take("no image", 1, np.float32)
        images = {}
        for name in ("rgb", "depth", "alpha"):
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
