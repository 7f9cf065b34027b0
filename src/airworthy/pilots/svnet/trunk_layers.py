"""Image networks as layers of the native kernel: SqueezeNet 1.1 and EfficientNet-Lite0, each with its classifier."""

from __future__ import annotations

from collections.abc import Mapping

from airworthy.core.arrays import ArrayF32
from airworthy.core.native_kernel import CPU_LANES
from airworthy.pilots.svnet.layers import GROUPS, Area, LayerStack
from airworthy.pilots.svnet.lite0 import BLOCKS, STEM, Bottleneck, same_padding
from airworthy.pilots.svnet.variants import FIRES, POOLS, Trunk

__all__ = ["backbone_layers"]


def backbone_layers(
    weights: Mapping[str, ArrayF32],
    height: int,
    width: int,
    cells: int = 1,
    trunk: Trunk = "squeezenet",
    groups: tuple[int, ...] = GROUPS,
) -> LayerStack:
    """Return a trunk and its classifier on images of a size, from the tensors of `variants.backbone_shapes`.

    Args:
        weights: Tensors by name, float32.
        height: Of the images [px].
        width: Of the images [px].
        cells: Rows and columns of cells over which scores are averaged.
        trunk: Whose tensors they are.
        groups: Vectors of channels that may be computed together, as `LayerStack` has them.
    """
    net = LayerStack(groups=groups)
    (_lite0 if trunk == "lite0" else _squeezenet)(net, weights, height, width, cells)
    return net


def _squeezenet(net: LayerStack, weights: Mapping[str, ArrayF32], height: int, width: int, cells: int) -> None:
    image = net.area(height, width, 3)
    net.normalise(image)
    x = net.area((height - 3) // 2 + 1, (width - 3) // 2 + 1, 64)
    # Two pieces of memory in turn: the first image is the largest, and what the first fire makes of its pooled form the next.
    rooms = [x, net.area(_pooled(x.height), _pooled(x.width), 2 * FIRES["3"][2])]
    net.convolve(image, x, weights["features.0.weight"], weights["features.0.bias"], stride=2)
    for number in sorted((*FIRES, *POOLS), key=int):
        rooms.reverse()
        if number in POOLS:
            y = _within(rooms[0], _pooled(x.height), _pooled(x.width), x.channels)
            net.pool(x, y)
        else:
            y = _within(rooms[0], x.height, x.width, 2 * FIRES[number][2])
            _fire(net, x, y, weights, number)
        x = y
    _classify(net, x, rooms[1], weights, cells)


def _classify(net: LayerStack, x: Area, room: Area, weights: Mapping[str, ArrayF32], cells: int) -> None:
    last = _within(room, x.height, x.width, _lanes(len(weights["classifier.1.bias"])))
    net.convolve(x, last, *_tensors(weights, "classifier.1"))
    net.mean(last, cells)


def _lanes(channels: int) -> int:
    """Return channels rounded up to whole vectors: what is more stays 0."""
    return -(-channels // CPU_LANES) * CPU_LANES


def _lite0(net: LayerStack, weights: Mapping[str, ArrayF32], height: int, width: int, cells: int) -> None:
    rooms = _Rooms(net, height, width, len(weights["classifier.1.bias"]))
    image = net.area(height, width, 3, border=1)
    net.normalise(image)
    x = rooms.bordered(0, STEM, BLOCKS[0].kernel)
    above, left = (same_padding(side, 3, 2)[0] for side in (height, width))
    net.convolve(image, x, *_tensors(weights, "features.stem"), stride=2, rectifier="relu6", padding=(above, left))
    for number, block in enumerate(BLOCKS):
        wide = x if block.expanded == block.given else rooms.bordered(number, block.expanded, block.kernel)
        small, y = rooms.behind(number, block)
        _bottleneck(net, (x, wide, small, y), weights, f"features.{number}", block)
        x = y
    _classify(net, x, rooms.outs[len(BLOCKS) % 2], weights, cells)


class _Rooms:
    """Work memory of EfficientNet-Lite0: what comes out of blocks lies in two pieces in turn, what is filtered in a third."""

    def __init__(self, net: LayerStack, height: int, width: int, classes: int):
        self._net, self._bordered = net, dict[tuple[int, ...], Area]()
        self._sizes = [(-(-height // 2), -(-width // 2))]
        for block in BLOCKS:
            rows, columns = self._sizes[-1]
            self._sizes.append((-(-rows // block.stride), -(-columns // block.stride)))
        pixels = [rows * columns for rows, columns in self._sizes[1:]]
        made = [count * _lanes(block.out) for count, block in zip(pixels, BLOCKS, strict=True)]
        made.append(pixels[-1] * _lanes(classes))
        self._filtered = self._room(max(count * _lanes(b.expanded) for count, b in zip(pixels, BLOCKS, strict=True)))
        self.outs = [self._room(max(made)) for _ in range(2)]

    def _room(self, floats: int) -> Area:
        return self._net.area(1, floats // CPU_LANES, CPU_LANES)

    def bordered(self, number: int, channels: int, kernel: int) -> Area:
        """Return what the filter of a block reads, with a border of zeros: it is written within alone, so that blocks of one
        shape share it.
        """
        key = (*self._sizes[number], _lanes(channels), kernel // 2)
        if key not in self._bordered:
            self._bordered[key] = self._net.area(*key)
        return self._bordered[key]

    def behind(self, number: int, block: Bottleneck) -> tuple[Area, Area]:
        """Return what a block's filter writes, and what the block gives."""
        size = self._sizes[number + 1]
        room = self.outs[number % 2]
        return _within(self._filtered, *size, _lanes(block.expanded)), _within(room, *size, _lanes(block.out))


def _bottleneck(
    net: LayerStack, areas: tuple[Area, Area, Area, Area], weights: Mapping[str, ArrayF32], name: str, block: Bottleneck
) -> None:
    """Expand, filter, project, and add what went in."""
    x, wide, small, y = areas
    if wide is not x:
        net.convolve(x, wide, *_tensors(weights, f"{name}.expand"), rectifier="relu6")
    net.depthwise(wide, small, *_tensors(weights, f"{name}.depthwise"), block.stride)
    net.convolve(small, y, *_tensors(weights, f"{name}.project"), rectifier=None, also=x if block.adds else None)


def _tensors(weights: Mapping[str, ArrayF32], name: str) -> tuple[ArrayF32, ArrayF32]:
    return weights[f"{name}.weight"], weights[f"{name}.bias"]


def _within(room: Area, height: int, width: int, channels: int) -> Area:
    """Return an image where another one was."""
    found = Area(room.offset, height, width, channels)
    assert found.size <= room.size
    return found


def _fire(net: LayerStack, x: Area, y: Area, weights: Mapping[str, ArrayF32], number: str) -> None:
    """Squeeze, and both expansions side by side."""
    _, squeezed, expanded = FIRES[number]
    small = net.area(x.height, x.width, squeezed, border=1)
    name = f"features.{number}"
    for layer, given, into, channel in (
        ("squeeze", x, small, 0),
        ("expand1x1", small, y, 0),
        ("expand3x3", small, y, expanded),
    ):
        net.convolve(given, into, weights[f"{name}.{layer}.weight"], weights[f"{name}.{layer}.bias"], channel=channel)


def _pooled(side: int) -> int:
    return -(-(side - 3) // 2) + 1
