"""Layers as the native kernel reads them: a table, weights in blocks of 16 channels, and where each image lies in memory.

Builds the kernel that runs layers of a network: 16 channels at a time on a CPU, one per thread on a GPU, from one text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import numpy as np

from airworthy.core.arrays import ArrayF32, NDArray
from airworthy.core.native_kernel import CPU_LANES, native_kernel, shared_source
from airworthy.pilots.svnet.lite0 import same_padding

__all__ = [
    "COUNT",
    "GROUPS",
    "GROUPS_ALONE",
    "PIXELS_ALONE",
    "Area",
    "LayerStack",
    "chain_layers",
    "layers_kernel",
    "layers_source",
]


# Ours, because accumulators of six pixels still fit the registers of a thread.
PIXELS_ALONE = 6
"""Pixels that a thread of a GPU computes together; see PIXELS_1 in layers.h."""
GROUPS = (4, 3, 5, 7, 2, 1)
"""Vectors of 16 channels that a CPU may compute together, best ones first: the first that divides all is taken."""
GROUPS_ALONE = (4, 3, 2, 1)
"""The same of a GPU: a thread of more sums would leave too many threads idle."""


def layers_source(prefix: str = "") -> str:
    """Return the native text of the kernel."""
    folder = files("airworthy.pilots.svnet").joinpath("native")
    names = ("convolve.h", "filter.h", "layers.h", "channelwise.h", "task.h")
    convolve, filtered, layers, channelwise, task = (folder.joinpath(name).read_text() for name in names)
    convolutions = {number: convolve.replace("VECTORS", str(number)) for number in GROUPS}
    filters = [filtered.replace("KERNEL", str(side)).replace("STRIDE", str(stride)) for side in (3, 5) for stride in (1, 2)]
    shared = [convolutions[number] for number in GROUPS_ALONE if number > 1]
    wide = [convolutions[number] for number in GROUPS if number not in GROUPS_ALONE]
    # Forms that a device does not call are not compiled for it.
    groups = ["#if !NARROW", *shared, "#endif", "#if !NARROW && LANES != 1", *wide, "#endif"]
    parts = [layers, convolutions[1], *groups, "#if LANES != 1", *filters, "#endif", channelwise, task]
    return "\n".join([prefix, shared_source("prelude.h"), *parts])


_ARGUMENTS = """
    images: uint8[]  # (image, H, W, 3)
    colors: float32[]  # normalised, (3, 256)
    weights: float32[]
    table: int32[]  # Layer
    # output
    work: float32[]  # (slot or image, work_stride)
    scores: float32[]  # (image, channels)
    first_layer: int
    last_layer: int
    items: int
    count: int
    slots: int
    image_stride: int
    work_stride: int
"""


@cache
def layers_kernel(prefix: str = "") -> Any:
    """Return the Warp kernel.

    Args:
        prefix: `#define SCALAR_PATH`, and a CPU runs the form of a GPU; `#define NARROW_PATH`, and it runs that of a CPU whose
            registers hold fewer than 16 lanes.
    """
    return native_kernel("layers", layers_source(prefix), _ARGUMENTS)


# Kinds of layers as native/layers.h numbers them.
NORMALISE, CONVOLVE, POOL, MEAN, DEPTHWISE = range(5)
RECTIFIED = {None: 0, "relu": 1, "relu6": 2}
Rectifier = Literal["relu", "relu6"] | None
_FIELDS = (
    *("kind", "from", "from_row", "from_pixel", "into", "into_row", "into_pixel", "columns", "count", "stride", "height"),
    *("width", "rows", "length", "weights", "bias", "vectors", "blocks", "rectified", "adds", "also"),
)
"""`Layer` of native/layers.h."""
COUNT = _FIELDS.index("count")
"""Column of the table that tells how many pixels a layer writes."""


@dataclass(frozen=True)
class Area:
    """An image of floats in work memory, channels last."""

    offset: int
    height: int
    width: int
    channels: int
    border: int = 0
    """Pixels of zeros around it, counted in `offset` but not in height and width."""

    @property
    def row(self) -> int:
        """Floats from row to row."""
        return (self.width + 2 * self.border) * self.channels

    @property
    def size(self) -> int:
        """Floats, with the border."""
        return (self.height + 2 * self.border) * self.row

    @property
    def inside(self) -> int:
        """Offset of the first pixel within the border."""
        return self.offset + self.border * (self.row + self.channels)


@dataclass
class LayerStack:
    """Layers one after the other, and their weights."""

    rows: list[dict[str, int]] = field(default_factory=list)
    parts: list[ArrayF32] = field(default_factory=list)
    """Of the weights."""
    weight_count: int = 0
    size: int = 0
    """Floats of work memory for an image."""
    groups: tuple[int, ...] = GROUPS
    """Vectors that may be computed together."""

    def area(self, height: int, width: int, channels: int, border: int = 0) -> Area:
        """Return the room for an image, on a cache line.

        Args:
            height: [px]
            width: [px]
            channels: Numbers per pixel.
            border: Zeros around the image [px].
        """
        made = Area(self.size, height, width, channels, border)
        self.size += -(-made.size // CPU_LANES) * CPU_LANES
        return made

    def normalise(self, into: Area) -> None:
        """Turn colours of 8 bits to floats."""
        self._add(kind=NORMALISE, into=into.inside, into_row=into.row, height=into.height, width=into.width)

    def convolve(
        self,
        given: Area,
        into: Area,
        weight: ArrayF32,
        bias: ArrayF32,
        *,
        stride: int = 1,
        channel: int = 0,
        rectifier: Rectifier = "relu",
        padding: tuple[int, int] | None = None,
        also: Area | None = None,
    ) -> None:
        """Add a convolution (out, in, side, side).

        Args:
            given: What it reads.
            into: What it writes, `channel` being the first.
            weight: As torch has it; of `given`'s channels, 1 x 1 may read the first ones alone.
            bias: (out,)
            stride: Pixels of `given` from one to the next.
            channel: Of `into`.
            rectifier: Negative sums become 0, and with "relu6" those above 6 become 6; None: sums stay.
            padding: Pixels of the border before the first row and column that are read; None: all of it, by a convolution of
                more than 1 x 1.
            also: An image of the shape of `into` that is added at last.
        """
        side = weight.shape[-1]
        assert side == 1 or weight.shape[1] == given.channels
        above, left = padding or ((given.border, given.border) if side > 1 else (0, 0))
        start = given.inside - above * given.row - left * given.channels
        vectors, blocks, packed, offsets = self._pack(weight, bias)
        taps = {"rows": side, "length": side * weight.shape[1], "weights": offsets[0], "bias": offsets[1]}
        where = _between(given, into) | {"from": start, "into": into.inside + channel}
        rest = {"stride": stride, "rectified": RECTIFIED[rectifier]}
        if also is not None:
            rest |= {"adds": 1, "also": also.inside + channel}
        self.parts += packed
        self._add(
            kind=CONVOLVE, vectors=vectors, blocks=blocks, height=given.height, width=given.width, **where, **taps, **rest
        )

    def depthwise(self, given: Area, into: Area, weight: ArrayF32, bias: ArrayF32, stride: int) -> None:
        """Add a filter (channels, 1, side, side) of each channel alone, padded as `same_padding` says, rectified up to 6.

        Args:
            given: What it reads; its border is at least the padding.
            into: What it writes, as many channels.
            weight: As torch has it.
            bias: (channels,)
            stride: Pixels of `given` from one to the next.
        """
        side, channels = weight.shape[-1], given.channels
        above, left = (same_padding(n, side, stride)[0] for n in (given.height, given.width))
        taps = np.zeros((side * side, channels), np.float32)
        taps[:, : len(weight)] = weight.reshape(len(weight), -1).T
        shift = np.zeros(channels, np.float32)
        shift[: len(bias)] = bias
        laid = np.ascontiguousarray(taps.reshape(side * side, -1, CPU_LANES).swapaxes(0, 1)).reshape(-1)
        where = _between(given, into) | {"from": given.inside - above * given.row - left * channels}
        size = {"stride": stride, "rows": side, "length": side}
        offsets = {"weights": self.weight_count, "bias": self.weight_count + laid.size}
        self.weight_count += laid.size + shift.size
        self.parts += [laid, shift]
        self._add(kind=DEPTHWISE, blocks=channels // CPU_LANES, rectified=RECTIFIED["relu6"], **where, **size, **offsets)

    def pool(self, given: Area, into: Area) -> None:
        """Add a pooling: the largest of 3 x 3, every second pixel, windows over the edge included."""
        size = {"height": given.height, "width": given.width}
        self._add(kind=POOL, blocks=given.channels // CPU_LANES, **_between(given, into), **size)

    def mean(self, given: Area, cells: int = 1) -> None:
        """Average over all pixels of each cell, to the scores, cell by cell.

        Args:
            given: What it reads.
            cells: Rows and columns of them.
        """
        where = {"from": given.inside, "from_row": given.row, "from_pixel": given.channels}
        size = {"height": given.height, "width": given.width, "columns": cells, "count": cells**2}
        self._add(kind=MEAN, blocks=given.channels // CPU_LANES, **where, **size)

    def table(self) -> NDArray[np.int32]:
        """Return what the kernel reads."""
        return np.array([[row.get(name, 0) for name in _FIELDS] for row in self.rows], np.int32)

    def weights(self) -> ArrayF32:
        """Return all of them, in blocks."""
        return np.concatenate(self.parts) if self.parts else np.zeros(0, np.float32)

    def items(self) -> list[int]:
        """Return parts of each layer that a GPU computes apart; see `Layer::items` of native/layers.h."""
        found = []
        for row in self.rows:
            kind, count, lanes = row["kind"], row.get("count", 0), row.get("blocks", 0) * CPU_LANES
            tiles = -(-count // PIXELS_ALONE) if kind == CONVOLVE else count
            found.append(row["height"] if kind == NORMALISE else tiles * lanes)
        return found

    def _pack(self, weight: ArrayF32, bias: ArrayF32) -> tuple[int, int, list[ArrayF32], tuple[int, int]]:
        """Vectors computed together, groups of so many, the weights laid by group, tap and channel, and their offsets."""
        out = len(weight)
        vectors = next(v for v in self.groups if -(-out // CPU_LANES) % v == 0 or v == 1)
        wide = vectors * CPU_LANES
        blocks = -(-out // wide)
        taps = np.moveaxis(weight, (0, 1), (3, 2)).reshape(-1, out)  # row, column, channel; out
        packed = np.zeros((len(taps), blocks * wide), np.float32)
        packed[:, :out] = taps
        shift = np.zeros(blocks * wide, np.float32)
        shift[:out] = bias
        laid = np.ascontiguousarray(packed.reshape(len(taps), blocks, wide).swapaxes(0, 1)).reshape(-1)
        offsets = self.weight_count, self.weight_count + laid.size
        self.weight_count += laid.size + shift.size
        return vectors, blocks, [laid, shift], offsets

    def _add(self, **row: int) -> None:
        self.rows.append(row)


def _between(given: Area, into: Area) -> dict[str, int]:
    """Return where a layer reads and writes, and how many pixels."""
    read = {"from": given.inside, "from_row": given.row, "from_pixel": given.channels}
    written = {"into": into.inside, "into_row": into.row, "into_pixel": into.channels}
    return {**read, **written, "columns": into.width, "count": into.height * into.width}


def chain_layers(
    weights: Sequence[tuple[ArrayF32, ArrayF32]], rows: int, rectified: bool = False, groups: tuple[int, ...] = GROUPS
) -> tuple[LayerStack, Area, Area]:
    """Return linear layers with a rectifier between them, on `rows` rows at once; work memory of what goes in and of what comes
    out.

    Args:
        weights: Matrices (out, in) and biases (out,).
        rows: Handled together.
        rectified: The last one's output, too.
        groups: Vectors of outputs that may be computed together, as `LayerStack` has them.
    """
    net = LayerStack(groups=groups)
    first = x = net.area(1, rows, weights[0][0].shape[1])
    for number, (matrix, bias) in enumerate(weights):
        wide = -(-len(matrix) // CPU_LANES) * CPU_LANES
        y = net.area(1, rows, wide)
        behind: Rectifier = "relu" if rectified or number < len(weights) - 1 else None
        padded = np.zeros((len(matrix), x.channels), np.float32)
        padded[:, : matrix.shape[1]] = matrix
        net.convolve(x, y, padded[:, :, None, None], bias, rectifier=behind)
        x = y
    return net, first, x
