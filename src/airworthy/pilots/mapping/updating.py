"""Launches of the update over the flights of a batch, with the work memory that they share."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.native_kernel import CPU_LANES, quiet_launch, quiet_warp
from airworthy.pilots.mapping.occupancy_kernel import update_kernel
from airworthy.pilots.mapping.rules import lengths

if TYPE_CHECKING:
    from airworthy.pilots.mapping.local import LocalMaps

__all__ = ["CLOUD", "FIELD", "IMAGE", "SLIDE", "Updater"]

Array = NDArray[np.float64]
SLIDE, TRACE, APPLY, DILATE, WRITE, POINTS, SWEEP, ENVELOPE = (1 << k for k in range(8))
IMAGE = SLIDE | TRACE | APPLY | DILATE | WRITE
CLOUD = SLIDE | POINTS
FIELD = SWEEP | ENVELOPE
_WHOLE = TRACE | POINTS
"""Stages in which one thread of a GPU takes a whole flight, so that the order of rays is that of a CPU."""
_GPU_PARTS = 64
_GPU_FLIGHTS = 256
"""Flights of one launch on a GPU: each has its own work memory there."""


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="airworthy-maps")


class Updater:
    """Runs `update_kernel` for the maps of a batch.

    Args:
        maps: Whose layers are changed.
        rays: (p, 2) slopes of the pixels that are read.
        pixel: (p,) their numbers in an image.
        threads: Of a CPU.
    """

    def __init__(self, maps: LocalMaps, rays: Array, pixel: NDArray[np.int32], threads: int) -> None:
        self.maps, self.kernel, self._pixels = maps, update_kernel(), len(pixel)
        self._cpu = maps.device == "cpu"
        self._tasks = min(threads, len(maps)) if self._cpu else min(_GPU_FLIGHTS, len(maps))
        counts, work = _sizes(maps)
        rules = maps.rules
        self._numbers = np.array([0, self._tasks, 1, 0, 0, 0, counts, *vars(rules).values()], np.int32)
        self._fixed = [maps._send(a) for a in (np.array([work]), lengths(maps.settings))]
        self._lines = [maps._send(a) for a in (rays, pixel)]
        device = maps.device
        wp = quiet_warp()
        self._memory = [
            wp.zeros(self._tasks * counts, dtype=wp.int32, device=device),
            wp.zeros(self._tasks * work, dtype=wp.int16, device=device),
        ]
        self._nothing = maps._send(np.zeros(1, np.float32)), maps._send(np.zeros(1))

    def run(
        self,
        flight: NDArray[np.int64],
        pose: Array,
        before: NDArray[np.int32],
        after: NDArray[np.int32],
        seen: NDArray[Any],
        stages: int,
    ) -> NDArray[np.int32]:
        """Update flights (k,) from images (k, h, w) float32 or clouds (k, m, 3) float64; their bounds (k, 6)."""
        boxes, step = self.maps.boxes, len(flight) if self._cpu else self._tasks
        bounds = np.full((len(flight), 6), -1, np.int32)
        for a in range(0, len(flight), step):
            part = slice(a, a + step)
            chosen = flight[part]
            rows = np.concatenate([pose[part], boxes.origin[chosen], boxes.upper[chosen]], 1)
            words = np.concatenate([boxes.cells[chosen], boxes.side[chosen], before[part], after[part]], 1)
            frames = [self.maps._send(x) for x in (rows, words.astype(np.int32), boxes.base[chosen])]
            bounds[part] = self._launch(frames, seen[part], stages)
        return bounds

    def _launch(self, frames: list[Any], seen: NDArray[Any], stages: int) -> NDArray[np.int32]:
        send, count = self.maps._send, len(seen)
        is_cloud = bool(stages & POINTS)
        images = (self._nothing[0], send(seen)) if is_cloud else (send(seen), self._nothing[1])
        words = self._numbers.copy()
        words[0], words[3] = count, stages
        words[4] = seen.shape[1] if is_cloud else self._pixels
        words[5] = seen[0].size
        bounds = send(np.full(6 * count, -1, np.int32))
        rest = [*self._fixed, *frames, *self._lines, *images, self.maps._odds, self.maps._inflated, self.maps._squared, bounds]
        if self._cpu:
            self._on_cpu(words, rest)
        else:
            self._on_gpu(words, rest, count)
        return np.array(bounds.numpy()).reshape(count, 6)

    def _on_cpu(self, words: NDArray[np.int32], rest: list[Any]) -> None:
        arguments = [self.maps._send(words), *rest, *self._memory]
        tasks = min(self._tasks, int(words[0]))
        words[1] = tasks
        if tasks == 1:
            quiet_launch(self.kernel, 1, [*arguments, 0], "cpu")
            return
        shares = [quiet_launch(self.kernel, 1, [*arguments, task], "cpu", record=True) for task in range(tasks)]
        waiting = [_pool(tasks - 1).submit(share.launch) for share in shares[1:]]
        shares[0].launch()
        for future in waiting:
            future.result()

    def _on_gpu(self, words: NDArray[np.int32], rest: list[Any], count: int) -> None:
        for stage in (1 << k for k in range(8)):
            if words[3] & stage:
                parts = 1 if stage & _WHOLE else _GPU_PARTS
                one = words.copy()
                one[1:4] = count, parts, stage
                arguments = [self.maps._send(one), *rest, *self._memory, 0]
                quiet_launch(self.kernel, count * parts, arguments, self.maps.device)


def _sizes(maps: LocalMaps) -> tuple[int, int]:
    """Words for the counts and 16-bit numbers for the work of one flight, the largest."""
    rules, cells = maps.rules, maps.boxes.cells.astype(np.int64)
    wide = 2 * rules.reach + 1
    near = np.minimum(cells, wide + np.array([0, 0, CPU_LANES]))
    counts = near[:, 0] * near[:, 1] * _whole(near[:, 2])
    reach = np.ceil(np.array(maps.settings.reach) / maps.settings.resolution).astype(np.int64) + 1
    grown = max(rules.radius, rules.field_margin)
    around = np.minimum(cells, np.maximum(2 * reach + 1, wide) + 2 * grown + np.array([0, 0, CPU_LANES]))
    x, y, z = around[:, 0], around[:, 1], _whole(around[:, 2])
    field = 2 * x * y * z + x * (y * CPU_LANES + 3 * z)
    inflation = x * y * z + x * (z // 2 + CPU_LANES)
    return int(counts.max()), int((field if rules.field else inflation).max()) + CPU_LANES


def _whole(count: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rounded up to whole lanes."""
    return -(-count // CPU_LANES) * CPU_LANES
