"""Rendering on a CPU: three launches of tasks that each take 16 Gaussians or pixels at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.native_kernel import thread_limit
from airworthy.geometry.launching import Repeated, striped
from airworthy.sensors.splats.arrange_kernel import arrange_kernel
from airworthy.sensors.splats.buffers import Buffers, as_warp
from airworthy.sensors.splats.cloud import Cloud
from airworthy.sensors.splats.native_text import CHUNK, RECORD_WORDS, STAGES, TILE
from airworthy.sensors.splats.project_kernel import project_kernel
from airworthy.sensors.splats.raster_kernel import raster_kernel
from airworthy.sensors.splats.views import Shot

Arrays = dict[str, NDArray[np.float32]]
_LAUNCHES_KEPT = 24
_BAND_TASKS = 16
"""Bands of all cameras together, at least, where images are high enough: work to share between threads."""


class Lanes:
    """One cloud on the CPU; renders shots of as many cameras as its memory holds at once."""

    def __init__(self, cloud: Cloud, threads: int | None):
        self._threads = threads or thread_limit()
        self.capacity, self._entries = 0, 0
        self.band_rows = 1
        self.buffers = Buffers("cpu")
        self._launches: dict[tuple[Any, ...], Repeated] = {}
        self.take(cloud)

    def take(self, cloud: Cloud) -> None:
        """Render this cloud from now on."""
        self.chunk_stride = cloud.chunk_stride
        self.sent = [as_warp(array) for array in (cloud.geometry, cloud.harmonics, cloud.chunks)]

    def render(self, shot: Shot, out: Arrays) -> None:
        """Fill the arrays of `out`, one per channel."""
        self.project(shot)
        self.arrange(shot)
        self.raster(shot, out)

    def project(self, shot: Shot) -> None:
        """Every Gaussian into every image."""
        count, stride = shot.count, shot.stride
        take, tasks = self.buffers.take, count * stride
        self.cameras = as_warp(shot.cameras)
        self.records = take("records", tasks * CHUNK * RECORD_WORDS, np.float32)
        self.tags = take("tags", tasks * 4 * CHUNK, np.int32)
        self.counts = take("counts", tasks * 2, np.int32)
        arrays = [*self.sent, self.cameras, self.order(tasks), self.records, self.tags, self.counts]
        self.launch(project_kernel, tasks, arrays, [stride, shot.width, shot.height, shot.flags, shot.near, shot.dilation])

    def arrange(self, shot: Shot, stage: str = "lists") -> None:
        """Lists per tile; where they turn out longer than what is reserved, more is reserved and they are made again."""
        count, stride = shot.count, shot.stride
        columns, rows = -(-shot.width // TILE), -(-shot.height // TILE)
        self.band_rows = max(1, rows * count // _BAND_TASKS)
        tasks = count * -(-rows // self.band_rows)
        take = self.buffers.take
        seen = self.buffers.host("counts")[: count * stride * 2].reshape(count, stride, 2)[..., 0].sum(axis=1)
        # Never less than before: launches are recorded per set of numbers, and a new one runs on one thread at first.
        self._entries = entries = max(self._entries, _round_up(int(seen.max(initial=0))))
        scratch, heads = take("scratch", tasks * 4 * entries, np.int32), take("heads", count * rows * columns, np.int32)
        self.tiles, needed = take("tiles", 2 * count * rows * columns, np.int32), take("needed", tasks, np.int32)
        self.capacity = max(self.capacity, _round_up(entries // max(1, tasks // count) * 2))
        while True:
            self.lists = take("lists", tasks * self.capacity, np.int32)
            arrays = [self.cameras, self.order(tasks), self.records, self.tags, self.counts, scratch, heads]
            arrays += [take("keys", 1, np.int64), self.tiles, self.lists, needed]
            numbers = [stride, columns, rows, self.band_rows, entries, self.capacity, STAGES[stage]]
            self.launch(arrange_kernel, tasks, arrays, numbers)
            longest = int(self.buffers.host("needed")[:tasks].max(initial=0)) if stage == "lists" else 0
            if longest <= self.capacity:
                return
            self.capacity = _round_up(longest)

    def raster(self, shot: Shot, out: Arrays) -> None:
        """Pixels from the lists."""
        tasks = shot.count * -(-shot.width // TILE) * -(-shot.height // TILE)
        nothing = self.buffers.take("nothing", 1, np.float32)
        images = [as_warp(out[name]) if name in out else nothing for name in ("rgb", "depth", "alpha")]
        arrays = [self.cameras, self.order(tasks), self.records, self.tiles, self.lists]
        arrays += [nothing if shot.limit is None else as_warp(shot.limit), *images]
        numbers = [shot.stride, shot.width, shot.height, self.band_rows, self.capacity, shot.flags]
        self.launch(raster_kernel, tasks, arrays, numbers)

    def order(self, tasks: int) -> Any:
        """An order of tasks in which each thread's share is spread over all."""
        return self.buffers.constant(("order", tasks), lambda: striped(tasks, self._threads))

    def launch(self, kernel: Callable[[], Any], tasks: int, arrays: list[Any], numbers: list[Any]) -> None:
        """Run a kernel over tasks, split over threads where that gains time."""
        key = (kernel, tasks, *numbers)
        launch = self._launches.pop(key, None)
        if launch is None:
            launch = Repeated(kernel(), tasks, [*arrays, *numbers], "cpu", self._threads)
        self._launches[key] = launch
        while len(self._launches) > _LAUNCHES_KEPT:
            self._launches.pop(next(iter(self._launches)))
        for index, array in enumerate(arrays):
            launch.exchange(index, array)
        launch.launch()


def _round_up(count: int) -> int:
    """To one of few sizes, so that launches and memory stay when counts change a little: a quarter of a power of two."""
    step = max(1024, 1 << max(count.bit_length() - 3, 0))
    return max(1, -(-count // step)) * step
