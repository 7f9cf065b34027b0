"""The loss of images and its derivative: (1 - l) mean absolute difference + l (1 - structural similarity).

As published for 3D Gaussian splatting (Kerbl et al., 2023, equation 7); the structural similarity with a Gaussian window of
11 x 11, standard deviation 1.5 (Wang, Bovik, Sheikh, Simoncelli: Image quality assessment, 2004), per colour, everything beyond
the image's edge being 0.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayF32, ArrayFloat
from airworthy.core.native_kernel import CPU_LANES, native_kernel, thread_limit
from airworthy.geometry.query_arguments import Repeated, striped
from airworthy.splats.cloud import Buffers, as_warp
from airworthy.splats.native_text import native_source
from airworthy.splats.training.fields import SSIM, step_numbers, window

# ---- Builds the kernel of the loss of images and its derivative -----------------------------------------------------------

_ARGUMENTS = """
    image: float32[]  # (camera, height, width, 3)
    truth: float32[]  # the same
    order: int32[]  # of tasks
    settings: float32[]  # share of the likeness, window (11), one over the count of numbers
    work: float32[]  # five padded rows per task
    maps: float32[]  # work: derivatives with respect to three means (3, camera, height, width, 3)
    sums: float32[]  # output: difference and likeness of each row
    out: float32[]  # output: derivative (camera, height, width, 3)
    width: int
    height: int
    task_count: int
    stage: int
"""


@cache
def train_loss_kernel() -> Any:
    """Return the Warp kernel (on a CPU)."""
    text = native_source("train_loss.h").replace("// The task of", step_numbers() + "\n// The task of", 1)
    return native_kernel("splats_train_loss", text, _ARGUMENTS)


# ---------------------------------------------------------------------------------------------------------------------------

_EDGE = 15
"""Numbers on either side of a row: five pixels."""
_LAUNCHES_KEPT = 8


class ImageLoss:
    """The loss, with its work memory.

    Args:
        likeness: l, the share of the structural similarity.
        threads: Most threads; None: as many as `AIRWORTHY_THREADS` or the machine allows.
    """

    def __init__(self, likeness: float = 0.2, threads: int | None = None):
        self.likeness, self._threads = likeness, threads or thread_limit()
        self._buffers = Buffers("cpu")
        self._launches: dict[tuple[int, ...], list[Repeated]] = {}

    def __call__(self, image: ArrayF32, truth: ArrayF32) -> tuple[float, ArrayF32]:
        """Loss, a mean over all numbers, and its derivative.

        Args:
            image: (c, H, W, 3).
            truth: The same.
        """
        count, height, width, _ = image.shape
        tasks, take = count * height, self._buffers.take
        stride = (3 * width + 2 * _EDGE + 2 * CPU_LANES) // CPU_LANES * CPU_LANES
        slopes = np.empty(image.shape, np.float32)
        order = self._buffers.constant(("order", tasks), lambda: striped(tasks, self._threads))
        key = ("settings", image.size)
        settings = self._buffers.constant(key, lambda: np.array([self.likeness, *window(), 1.0 / image.size], np.float32))
        arrays = [as_warp(image), as_warp(truth), order, settings, take("work", tasks * 5 * stride, np.float32)]
        arrays += [take("maps", 3 * image.size, np.float32), take("sums", 2 * tasks, np.float32), as_warp(slopes)]
        for launch in self._launch(arrays, (width, height, tasks)):
            launch.launch()
        off, alike = self._buffers.host("sums")[: 2 * tasks].reshape(-1, 2).astype(np.float64).sum(axis=0) / image.size
        return float((1.0 - self.likeness) * off + self.likeness * (1.0 - alike)), slopes

    def _launch(self, arrays: list[Any], numbers: tuple[int, int, int]) -> list[Repeated]:
        found = self._launches.get(numbers)
        if found is None:
            while len(self._launches) >= _LAUNCHES_KEPT:
                self._launches.pop(next(iter(self._launches)))
            kernel = train_loss_kernel()
            found = [Repeated(kernel, numbers[2], [*arrays, *numbers, k], "cpu", self._threads) for k in range(2)]
            self._launches[numbers] = found
        for index, array in enumerate(arrays):
            for launch in found:
                launch.exchange(index, array)
        return found


def likeness_map(image: ArrayFloat, truth: ArrayFloat) -> Array:
    """Return the structural similarity (H, W, 3) in float64, zeros beyond the edge: what the kernel is tested against."""
    from scipy.ndimage import correlate1d

    def mean(x: Array) -> Array:
        weights = np.array(window())
        return np.asarray(correlate1d(correlate1d(x, weights, 0, mode="constant"), weights, 1, mode="constant"))

    a, b = np.asarray(image, np.float64), np.asarray(truth, np.float64)
    mu_a, mu_b = mean(a), mean(b)
    spread = mean(a * a) - mu_a**2 + mean(b * b) - mu_b**2
    top = (2.0 * mu_a * mu_b + SSIM[0]) * (2.0 * (mean(a * b) - mu_a * mu_b) + SSIM[1])
    return np.asarray(top / ((mu_a**2 + mu_b**2 + SSIM[0]) * (spread + SSIM[1])))
