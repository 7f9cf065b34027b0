"""SV-Net and its variants without torch: what they read in, a command out, for many flights at once.

Natively on a CPU or, the images' part, on a GPU (`SvNetwork`), and on NumPy as the specification writes it (`svnet_twin`).
A flight's command has the same bits whatever flies beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayF32, ArrayFloat, ArrayU8, NDArray
from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import Launcher, on_cache_line, quiet_warp, thread_limit
from airworthy.pilots.svnet.contract import PolicyContract
from airworthy.pilots.svnet.features import HISTORY_SIZE, OBJECTIVE_SIZE
from airworthy.pilots.svnet.layers import COUNT, GROUPS, GROUPS_ALONE, LayerStack, chain_layers, layers_kernel
from airworthy.pilots.svnet.trunk_layers import backbone_layers
from airworthy.pilots.svnet.variants import (
    COMMAND_HIDDEN,
    HEAD_HIDDEN,
    HISTORY_HIDDEN,
    Trunk,
    backbone_scores,
    prepared,
    variant,
)

__all__ = ["Backbone", "Decision", "LinearChain", "Reading", "SvNetwork", "normalised", "svnet_twin"]

# ---- Runs layers natively: images through the backbone, rows through chains of linear layers --------------------------------

ROWS = 24
"""Most rows that a chain handles together: a multiple of most numbers of pixels in native/layers.h."""
_SINGLE = "#define SCALAR_PATH\n"
# Ours: bounds the work memory; a batch of more is done in parts, which the results do not show.
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

    def __init__(self, layers: LayerStack, slots: int, device: str, threads: int | None, single: bool):
        self.layers, self.slots, self.device, self.threads = layers, slots, device, threads
        self.whole = device == "cpu" and not single
        self._kernel = layers_kernel(_SINGLE if single else "")
        self._items = layers.items()
        self.work = on_cache_line(np.zeros((slots, layers.size), np.float32))
        self._table = layers.table()
        weights = on_cache_line(layers.weights())
        self._fixed = [_shared(array, device) for array in (weights, self._table, self.work)]

    def handle(self, rows: int) -> int:
        """Have a chain's layers compute `rows` rows and no more; return how many they do."""
        if not self.whole:
            return ROWS
        self._table[:, COUNT] = rows
        return rows

    def launchers(self, images: Any, colors: Any, scores: Any, count: int, image_stride: int) -> list[Launcher]:
        """Return launches over `count` images, in order."""
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
    """A trunk and its classifier on 8-bit images of one size; an image's scores do not depend on the others.

    Args:
        weights: Tensors of `variants.backbone_shapes`.
        size: Rows and columns of the images.
        mean: Of red, green, blue in [0, 1], taken off.
        std: By which they are then divided.
        device: `cpu`, or a CUDA device of Warp.
        threads: Most threads of a CPU; None: as many as the machine allows.
        single: Run the form of a GPU on a CPU (tests).
        cells: Rows and columns of cells over which scores are averaged.
        trunk: Whose tensors they are.
    """

    def __init__(
        self,
        weights: Mapping[str, ArrayF32],
        size: tuple[int, int],
        mean: Sequence[float],
        std: Sequence[float],
        device: str = "cpu",
        threads: int | None = None,
        single: bool = False,
        cells: int = 1,
        trunk: Trunk = "squeezenet",
    ):
        self.size = size
        self._classes, self._cells = len(weights["classifier.1.bias"]), cells**2
        at_once = thread_limit() if threads is None else threads
        whole = device == "cpu" and not single
        layers = backbone_layers(weights, *size, cells, trunk, GROUPS if whole else GROUPS_ALONE)
        self._runner = _Runner(layers, at_once if whole else _AT_ONCE_GPU, device, threads, single)
        # 8-bit images have 256 values: a table per channel normalises them exactly, without a division per pixel.
        shades = np.arange(256, dtype=np.float32) / np.float32(255.0)
        table = (shades - np.asarray(mean, np.float32)[:, None]) / np.asarray(std, np.float32)[:, None]
        self._colors = _shared(table, device)
        # The native layers write whole groups of 16 channels.
        self._wide = -(-self._classes // 16) * 16
        self._held: dict[int, tuple[Any, ...]] = {}

    def __call__(self, images: ArrayU8) -> ArrayF32:
        """Scores (n, cells^2 classes) of images (n, H, W, 3), cell by cell, row by row.

        Raises:
            AirworthyError: If they are of another size or kind.
        """
        if images.dtype != np.uint8 or images.shape[1:] != (*self.size, 3):
            raise AirworthyError(
                f"The image network got images of shape {images.shape} and kind {images.dtype}; expected (n, {self.size[0]},"
                f" {self.size[1]}, 3) of 8 bits."
            )
        most = len(images) if self._runner.whole else _AT_ONCE_GPU
        parts = [self._some(images[first : first + most]) for first in range(0, len(images), most)] if len(images) else []
        return np.concatenate(parts) if parts else np.zeros((0, self._cells * self._classes), np.float32)

    def _some(self, images: ArrayU8) -> ArrayF32:
        given, device_images, found, scores, launchers = self._buffers(len(images))
        given[...] = images
        if self._runner.device != "cpu":
            device_images.assign(given.reshape(-1))
        for launcher in launchers:
            launcher.launch()
        if self._runner.device != "cpu":
            found[...] = scores.numpy().reshape(found.shape)
        return np.array(found[..., : self._classes]).reshape(len(images), -1)

    def _buffers(self, count: int) -> tuple[Any, ...]:
        """Of `count` images; those of the last count are kept."""
        if count not in self._held:
            device = self._runner.device
            given = np.zeros((count, *self.size, 3), np.uint8)
            found = np.zeros((count, self._cells, self._wide), np.float32)
            device_images, scores = _shared(given, device), _shared(found, device)
            launchers = self._runner.launchers(device_images, self._colors, scores, count, given[0].size)
            self._held = {count: (given, device_images, found, scores, launchers)}
        return self._held[count]


class LinearChain:
    """Linear layers with rectifiers between them; a row's result does not depend on the others.

    Args:
        weights: Matrices (out, in) and biases (out,), in order.
        rectified: The last one's output, too.
        threads: Most threads of a CPU.
        single: Run the form of a GPU (tests).
    """

    def __init__(
        self,
        weights: Sequence[tuple[ArrayF32, ArrayF32]],
        rectified: bool = False,
        threads: int | None = None,
        single: bool = False,
    ):
        groups = GROUPS_ALONE if single else GROUPS
        self._layers, self._from, self._into = chain_layers(weights, ROWS, rectified, groups)
        self._out, self._threads, self._single = len(weights[-1][0]), threads, single
        self._held: tuple[int, _Runner, list[Launcher]] | None = None

    def __call__(self, rows: ArrayFloat) -> ArrayF32:
        """(n, in) -> (n, out)"""
        count, groups = len(rows), -(-len(rows) // ROWS)
        if not count:
            return np.zeros((0, self._out), np.float32)
        runner, launchers = self._ready(groups)
        each = runner.handle(-(-count // groups))
        given, found = (self._view(runner, area)[:, :each] for area in (self._from, self._into))
        filled = np.zeros((groups * each, given.shape[-1]), np.float32)
        filled[:count] = rows
        given[...] = filled.reshape(given.shape)
        for launcher in launchers:
            launcher.launch()
        return found.reshape(-1, found.shape[-1])[:count, : self._out].copy()

    def _ready(self, groups: int) -> tuple[_Runner, list[Launcher]]:
        if self._held is None or self._held[0] != groups:
            runner = _Runner(self._layers, groups, "cpu", self._threads, self._single)
            none = [_shared(np.zeros(1, kind), "cpu") for kind in (np.uint8, np.float32, np.float32)]
            self._held = (groups, runner, runner.launchers(none[0], none[1], none[2], groups, 0))
        return self._held[1], self._held[2]

    @staticmethod
    def _view(runner: _Runner, area: Any) -> ArrayF32:
        return runner.work[:, area.offset : area.offset + area.size].reshape(runner.slots, area.width, area.channels)


def _shared(array: ArrayAny, device: str) -> Any:
    wp = quiet_warp()
    kind = {"uint8": wp.uint8, "int32": wp.int32, "float32": wp.float32}[array.dtype.name]
    shared = wp.array(array.reshape(-1), dtype=kind, device="cpu", copy=False)
    return shared if device == "cpu" else shared.to(device)


# -----------------------------------------------------------------------------------------------------------------------------

Weights = Mapping[str, ArrayF32]


@dataclass(frozen=True, eq=False)
class Reading:
    """What the network reads of n flights; see `features` for frames and order."""

    state: Array
    """(n, 8) observable state; (n, 11) time, position, velocity, quaternion of the variant that is told everything."""
    objective: Array
    """(n, 18)"""
    history: Array
    """(n, 75)"""
    images: ArrayU8 | None = None
    """(n, H, W, 3) red, green, blue; None of a variant that does not see."""

    @property
    def vision(self) -> Array:
        """(n, 5) height and quaternion, which the feature extractor reads."""
        return np.concatenate([self.state[:, :1], self.state[:, 4:]], axis=1)


@dataclass(frozen=True, eq=False)
class Decision:
    """What it gives."""

    command: ArrayF32
    """(n, 4) thrust in [-1, 0] and body rates [rad/s], z down, not clipped."""
    estimate: ArrayF32 | None
    """(n, 2) mass [kg] and force of one rotor at full command [N]; None without a history network."""


class SvNetwork:
    """A policy's network, ready to run.

    Args:
        contract: What its numbers mean.
        weights: Tensors of `variants.tensor_shapes`.
        device: Of the images' part; the rest is small and runs on the CPU.
        threads: Most threads of a CPU; None: as many as the machine allows.
        single: Run the form of a GPU on a CPU (tests).
    """

    def __init__(
        self, contract: PolicyContract, weights: Weights, device: str = "cpu", threads: int | None = None, single: bool = False
    ):
        self.contract, self.kind = contract, variant(contract.variant)

        def chain(name: str, count: int, rectified: bool = False) -> LinearChain:
            return LinearChain(_linears(weights, name, count), rectified, threads, single)

        if self.kind.history != "none":
            self._body = chain("history.body", len(HISTORY_HIDDEN) + 1, rectified=True)
            self._estimate = LinearChain([_linear(weights, "history.estimate")], False, threads, single)
        if contract.view is not None and self.kind.vision:
            size = (contract.view.height, contract.view.width)
            tensors = _backbone(weights)
            color = contract.image_mean, contract.image_std
            self._backbone = Backbone(tensors, size, *color, device, threads, single, self.kind.cells, self.kind.trunk)
            self._head = chain("vision.head", len(HEAD_HIDDEN) + 1)
        self._command = chain("command", len(COMMAND_HIDDEN) + 1)

    def __call__(self, reading: Reading) -> Decision:
        """Decide for n flights.

        Raises:
            AirworthyError: Shapes do not fit, or a variant that sees got no images.
        """
        _check(self, reading)
        inputs: list[NDArray[np.floating]] = [reading.state, reading.objective]
        estimate = None
        if self.kind.history != "none":
            latent = self._body(reading.history)
            estimate = self._estimate(latent)
            inputs.append(latent if self.kind.history == "latent" else estimate)
        if self.kind.vision:
            inputs.append(self.features(reading))
        return Decision(self._command(np.concatenate(inputs, axis=1)), estimate)

    def features(self, reading: Reading) -> ArrayF32:
        """Return what is seen, (n, 128)."""
        assert reading.images is not None
        scores = self._backbone(reading.images)
        return self._head(np.concatenate([scores, reading.vision], axis=1))


def _check(network: SvNetwork, reading: Reading) -> None:
    kind, count = network.kind, len(reading.state)
    wanted = {"state": kind.state_size, "objective": OBJECTIVE_SIZE, "history": HISTORY_SIZE}
    for name, size in wanted.items():
        if getattr(reading, name).shape != (count, size):
            raise AirworthyError(f"SV-Net got {name} of shape {getattr(reading, name).shape}; expected ({count}, {size}).")
    if kind.vision and (reading.images is None or len(reading.images) != count):
        given = "no images" if reading.images is None else f"{len(reading.images)} images"
        raise AirworthyError(f"SV-Net got {given} for {count} flights; expected one of each.")


# ---- the readable twin ------------------------------------------------------------------------------------------------------


def svnet_twin(contract: PolicyContract, weights: Weights, reading: Reading) -> Decision:
    """Return the same on NumPy, in float32.

    Args:
        contract: Names the variant, and scales its images.
        weights: Tensors by name, float32.
        reading: Of n flights.
    """
    kind = variant(contract.variant)
    inputs: list[NDArray[np.floating]] = [reading.state, reading.objective]
    estimate = None
    if kind.history != "none":
        latent = np.maximum(_chained(_linears(weights, "history.body", len(HISTORY_HIDDEN) + 1), reading.history), 0.0)
        matrix, bias = _linear(weights, "history.estimate")
        estimate = latent @ matrix.T + bias
        inputs.append(latent if kind.history == "latent" else estimate)
    if kind.vision:
        assert reading.images is not None
        tensors = {name: prepared(array) if array.ndim == 4 else array for name, array in _backbone(weights).items()}
        scores = backbone_scores(normalised(contract, reading.images), tensors, kind.cells, kind.trunk)
        vision = np.concatenate([scores, reading.vision], axis=1)
        inputs.append(_chained(_linears(weights, "vision.head", len(HEAD_HIDDEN) + 1), vision))
    command = _chained(_linears(weights, "command", len(COMMAND_HIDDEN) + 1), np.concatenate(inputs, axis=1))
    return Decision(command, estimate)


def normalised(contract: PolicyContract, images: ArrayU8) -> ArrayF32:
    """Return 8-bit images (n, H, W, 3) as the network reads them."""
    mean, std = np.asarray(contract.image_mean, np.float32), np.asarray(contract.image_std, np.float32)
    return (images.astype(np.float32) / np.float32(255.0) - mean) / std


def _chained(layers: list[tuple[ArrayF32, ArrayF32]], rows: NDArray[np.floating]) -> ArrayF32:
    x = np.asarray(rows, np.float32)
    for number, (matrix, bias) in enumerate(layers):
        x = x @ matrix.T + bias
        if number < len(layers) - 1:
            x = np.maximum(x, 0.0)
    return x


def _linear(weights: Weights, name: str) -> tuple[ArrayF32, ArrayF32]:
    return weights[f"{name}.weight"], weights[f"{name}.bias"]


def _linears(weights: Weights, name: str, count: int) -> list[tuple[ArrayF32, ArrayF32]]:
    return [_linear(weights, f"{name}.{number}") for number in range(count)]


def _backbone(weights: Weights) -> dict[str, ArrayF32]:
    first = "vision.backbone."
    return {name.removeprefix(first): array for name, array in weights.items() if name.startswith(first)}
