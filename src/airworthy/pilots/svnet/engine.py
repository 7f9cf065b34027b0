"""Runs layers natively: images through the backbone, rows through chains of linear layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import Launcher, quiet_warp, thread_limit
from airworthy.pilots.svnet.kernel import layers_kernel
from airworthy.pilots.svnet.layers import Layers, backbone_layers, chain_layers
from airworthy.pilots.svnet.squeezenet import CLASSES

__all__ = ["Backbone", "Chain"]

Floats = NDArray[np.float32]
ROWS = 24
"""Rows that a chain handles together: a multiple of every number of pixels in native/layers.h."""
_SINGLE = "#define SCALAR_PATH\n"
_AT_ONCE_GPU = 32
"""Images whose work memory lies on a GPU at once."""


class _Runner:
    """Layers, their weights and work memory on a device.

    Args:
        layers: What to run.
        slots: Pieces of work memory.
        device: `cpu`, or a CUDA device of Warp.
        threads: Most threads of a CPU.
        single: Run the form of a GPU on a CPU (tests).
    """

    def __init__(self, layers: Layers, slots: int, device: str, threads: int | None, single: bool):
        self.layers, self.slots, self.device, self.threads = layers, slots, device, threads
        self.whole = device == "cpu" and not single
        self._kernel = layers_kernel(_SINGLE if single else "")
        self._items = layers.items()
        self.work = np.zeros((slots, layers.size), np.float32)
        self._fixed = [_shared(array, device) for array in (layers.weights(), layers.table(), self.work)]

    def launchers(self, images: Any, colors: Any, scores: Any, count: int, image_stride: int) -> list[Launcher]:
        """Launches over `count` images, in order."""
        weights, table, work = self._fixed
        known = [images, colors, weights, table, work, scores]
        last, size = len(self._items), self.layers.size
        if self.whole:
            blocks = min(self.slots, count)
            arguments = [*known, 0, last, 0, count, blocks, image_stride, size]
            return [Launcher(self._kernel, blocks, arguments, self.device, self.threads)]
        found = []
        for number, items in enumerate(self._items):
            arguments = [*known, number, number + 1, items, count, self.slots, image_stride, size]
            found.append(Launcher(self._kernel, count * items, arguments, self.device, 1))
        return found


class Backbone:
    """SqueezeNet 1.1 on 8-bit images of one size; an image's scores do not depend on the others.

    Args:
        weights: Tensors of `squeezenet.backbone_shapes`.
        size: Rows and columns of the images.
        mean: Of red, green, blue in [0, 1], taken off.
        std: By which they are then divided.
        device: `cpu`, or a CUDA device of Warp.
        threads: Most threads of a CPU; None: as many as the machine allows.
        single: Run the form of a GPU on a CPU (tests).
    """

    def __init__(
        self,
        weights: Mapping[str, Floats],
        size: tuple[int, int],
        mean: Sequence[float],
        std: Sequence[float],
        device: str = "cpu",
        threads: int | None = None,
        single: bool = False,
    ):
        self.size = size
        at_once = thread_limit() if threads is None else threads
        slots = at_once if device == "cpu" and not single else _AT_ONCE_GPU
        self._runner = _Runner(backbone_layers(weights, *size), slots, device, threads, single)
        shades = np.arange(256, dtype=np.float32) / np.float32(255.0)
        table = (shades - np.asarray(mean, np.float32)[:, None]) / np.asarray(std, np.float32)[:, None]
        self._colors = _shared(table, device)
        self._wide = -(-CLASSES // 16) * 16
        self._held: dict[int, tuple[Any, ...]] = {}

    def __call__(self, images: NDArray[np.uint8]) -> Floats:
        """Scores (n, 1000) of images (n, H, W, 3).

        Raises:
            AirworthyError: If they are of another size or kind.
        """
        if images.dtype != np.uint8 or images.shape[1:] != (*self.size, 3):
            raise AirworthyError(
                f"SqueezeNet got images of shape {images.shape} and kind {images.dtype}; expected (n, {self.size[0]},"
                f" {self.size[1]}, 3) of 8 bits."
            )
        most = len(images) if self._runner.whole else _AT_ONCE_GPU
        parts = [self._some(images[first : first + most]) for first in range(0, len(images), most)] if len(images) else []
        return np.concatenate(parts) if parts else np.zeros((0, CLASSES), np.float32)

    def _some(self, images: NDArray[np.uint8]) -> Floats:
        given, seen, found, scores, launchers = self._buffers(len(images))
        given[...] = images
        if self._runner.device != "cpu":
            seen.assign(given.reshape(-1))
        for launcher in launchers:
            launcher.launch()
        if self._runner.device != "cpu":
            found[...] = scores.numpy().reshape(found.shape)
        return np.array(found[:, :CLASSES])

    def _buffers(self, count: int) -> tuple[Any, ...]:
        """Of `count` images; those of the last count are kept."""
        if count not in self._held:
            device = self._runner.device
            given = np.zeros((count, *self.size, 3), np.uint8)
            found = np.zeros((count, self._wide), np.float32)
            seen, scores = _shared(given, device), _shared(found, device)
            launchers = self._runner.launchers(seen, self._colors, scores, count, given[0].size)
            self._held = {count: (given, seen, found, scores, launchers)}
        return self._held[count]


class Chain:
    """Linear layers with rectifiers between them; a row's result does not depend on the others.

    Args:
        weights: Matrices (out, in) and biases (out,), in order.
        rectified: The last one's output, too.
        threads: Most threads of a CPU.
        single: Run the form of a GPU (tests).
    """

    def __init__(
        self,
        weights: Sequence[tuple[Floats, Floats]],
        rectified: bool = False,
        threads: int | None = None,
        single: bool = False,
    ):
        self._layers, self._from, self._into = chain_layers(weights, ROWS, rectified)
        self._out, self._threads, self._single = len(weights[-1][0]), threads, single
        self._held: tuple[int, _Runner, list[Launcher]] | None = None

    def __call__(self, rows: NDArray[np.floating[Any]]) -> Floats:
        """(n, in) -> (n, out)"""
        count, groups = len(rows), -(-len(rows) // ROWS)
        if not count:
            return np.zeros((0, self._out), np.float32)
        runner, launchers = self._ready(groups)
        given, found = self._view(runner, self._from), self._view(runner, self._into)
        filled = np.zeros((groups * ROWS, given.shape[-1]), np.float32)
        filled[:count] = rows
        given[...] = filled.reshape(given.shape)
        for launcher in launchers:
            launcher.launch()
        return np.array(found.reshape(-1, found.shape[-1])[:count, : self._out])

    def _ready(self, groups: int) -> tuple[_Runner, list[Launcher]]:
        if self._held is None or self._held[0] != groups:
            runner = _Runner(self._layers, groups, "cpu", self._threads, self._single)
            none = [_shared(np.zeros(1, kind), "cpu") for kind in (np.uint8, np.float32, np.float32)]
            self._held = (groups, runner, runner.launchers(none[0], none[1], none[2], groups, 0))
        return self._held[1], self._held[2]

    @staticmethod
    def _view(runner: _Runner, area: Any) -> Floats:
        return runner.work[:, area.offset : area.offset + area.size].reshape(runner.slots, area.width, area.channels)


def _shared(array: NDArray[Any], device: str) -> Any:
    wp = quiet_warp()
    kind = {"uint8": wp.uint8, "int32": wp.int32, "float32": wp.float32}[array.dtype.name]
    shared = wp.array(array.reshape(-1), dtype=kind, device="cpu", copy=False)
    return shared if device == "cpu" else shared.to(device)
