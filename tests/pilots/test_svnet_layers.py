"""Layers of the native kernel one by one: each against its definition in float64, and to the bit in its other forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from airworthy.core.arrays import Array, ArrayF32
from airworthy.core.native_kernel import on_cache_line, quiet_warp
from airworthy.pilots.svnet.layers import GROUPS, GROUPS_ALONE, Area, LayerStack, layers_kernel
from airworthy.pilots.svnet.lite0 import same_padding
from airworthy.pilots.svnet.network import ROWS, LinearChain, _Runner

# Ours: a sum of n float32 products rounds n times by at most 2^-24 of the sum of their sizes.
ROUND = 2.0**-24
Build = Callable[[LayerStack], tuple[Area, Area, Area | None]]
Case = tuple[Array, Array, Array]
"""An image (rows, columns, channels), weights (out, in, side, side), bias (out,)."""


def case(size: tuple[int, int], given: int, out: int, side: int, seed: int = 0) -> Case:
    """Numbers of both signs, whose sums reach beyond 6."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(*size, given)), rng.normal(size=(out, given, side, side)), rng.normal(size=out)
    image, weight, bias = (part.astype(np.float32).astype(float) for part in numbers)
    return image, weight, 3.0 * bias


def windows(image: Array, side: int, stride: int, padding: tuple[tuple[int, int], tuple[int, int]]) -> Array:
    """(rows, columns, channels, side, side)"""
    padded = np.pad(image, (*padding, (0, 0)))
    return np.lib.stride_tricks.sliding_window_view(padded, (side, side), axis=(0, 1))[::stride, ::stride]


def run(build: Build, image: ArrayF32, also: ArrayF32 | None = None) -> ArrayF32:
    """Return what a layer writes, the same to the bit in all forms; what is not written is no number."""
    found = [in_form(form, build, image, also) for form in ("lanes", "narrow", "gpu")]
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])
    return found[0]


def in_form(form: str, build: Build, image: ArrayF32, also: ArrayF32 | None) -> ArrayF32:
    net = LayerStack(groups=GROUPS_ALONE if form == "gpu" else GROUPS)
    given, into, other = build(net)
    runner = _Runner(net, 1, "cpu", 1, form == "gpu")
    if form == "narrow":
        runner._kernel = layers_kernel("#define NARROW_PATH\n")
    runner.work[...] = np.nan
    for area, content in ((given, image), (other, also)):
        if area is not None and content is not None:
            seen = view(runner.work[0], area)
            seen[...] = 0.0
            rows, columns = (slice(area.border, area.border + side) for side in (area.height, area.width))
            seen[rows, columns, : content.shape[-1]] = content
    wp: Any = quiet_warp()
    none = [wp.zeros(1, dtype=kind, device="cpu") for kind in (wp.uint8, wp.float32, wp.float32)]
    for launcher in runner.launchers(none[0], none[1], none[2], 1, 0):
        launcher.launch()
    return np.array(view(runner.work[0], into))


def view(work: ArrayF32, area: Area) -> ArrayF32:
    shape = area.height + 2 * area.border, area.width + 2 * area.border, area.channels
    return work[area.offset : area.offset + area.size].reshape(shape)


def lanes(channels: int) -> int:
    return -(-channels // 16) * 16


SIZES = [(1, 1), (1, 24), (7, 7), (5, 13), (9, 8)]
"""One pixel, fewer than a tile, whole tiles, and tiles that end in the middle of a row."""


@pytest.mark.parametrize("out", [16, 24, 40, 64, 80, 112, 176])
@pytest.mark.parametrize("size", SIZES)
def test_a_convolution_of_one_pixel_by_its_definition(size: tuple[int, int], out: int) -> None:
    """Every group of vectors (1, 2, 3, 4, 5, 7, 1 eleven times), channels nobody reads, and another image added at last."""
    image, weight, bias = case(size, 21, out, 1)
    other = np.random.default_rng(1).normal(size=(*size, out)).astype(np.float32)

    def build(net: LayerStack) -> tuple[Area, Area, Area]:
        areas = net.area(*size, 32), net.area(*size, lanes(out)), net.area(*size, lanes(out))
        net.convolve(areas[0], areas[1], weight.astype(np.float32), bias.astype(np.float32), rectifier="relu6", also=areas[2])
        return areas

    found = run(build, image.astype(np.float32), other)[..., :out]
    wanted = np.clip(image @ weight[:, :, 0, 0].T + bias, 0.0, 6.0) + other
    sizes = np.abs(image) @ np.abs(weight[:, :, 0, 0].T) + np.abs(bias) + np.abs(other)
    np.testing.assert_array_less(np.abs(found - wanted), 23 * ROUND * sizes)


@pytest.mark.parametrize(("rectifier", "least", "most"), [(None, -np.inf, np.inf), ("relu", 0.0, np.inf), ("relu6", 0.0, 6.0)])
@pytest.mark.parametrize(("side", "stride"), [(3, 1), (3, 2), (5, 2)])
@pytest.mark.parametrize("size", [(7, 7), (8, 11), (3, 20)])
def test_a_convolution_with_a_border_by_its_definition(
    size: tuple[int, int], side: int, stride: int, rectifier: Any, least: float, most: float
) -> None:
    """Into a part of the channels of an image that has a border itself: nothing else of it is written."""
    image, weight, bias = case(size, 3, 48, side, seed=2)
    before = side // 2
    padding = (before, before), (before, before)
    rows, columns = (-(-n // stride) for n in size)

    def build(net: LayerStack) -> tuple[Area, Area, None]:
        given, into = net.area(*size, 3, border=before), net.area(rows, columns, 80, border=1)
        tensors = weight.astype(np.float32), bias.astype(np.float32)
        net.convolve(given, into, *tensors, stride=stride, channel=16, rectifier=rectifier)
        return given, into, None

    found = run(build, image.astype(np.float32))
    seen = windows(image, side, stride, padding)
    wanted = np.clip(np.einsum("yxcij,ocij->yxo", seen, weight) + bias, least, most)
    sizes = np.einsum("yxcij,ocij->yxo", np.abs(seen), np.abs(weight)) + np.abs(bias)
    written = found[1:-1, 1:-1, 16:64]
    np.testing.assert_array_less(np.abs(written - wanted), (3 * side**2 + 1) * ROUND * sizes)
    assert np.isnan(found).sum() == found.size - written.size


@pytest.mark.parametrize(("side", "stride"), [(3, 1), (3, 2), (5, 1), (5, 2), (7, 1), (3, 3)])
@pytest.mark.parametrize("size", [(1, 1), (2, 6), (7, 7), (5, 8), (14, 15), (9, 29), (28, 14)])
def test_a_filter_of_each_channel_by_its_definition(size: tuple[int, int], side: int, stride: int) -> None:
    """Rows shorter than what is filtered together, as long, and longer by every remainder; two filters of other sizes."""
    image, weight, bias = case(size, 40, 40, side, seed=3)
    taps = weight[:, :1]
    paddings = tuple(same_padding(n, side, stride) for n in size)
    rows, columns = (-(-n // stride) for n in size)

    def build(net: LayerStack) -> tuple[Area, Area, None]:
        given, into = net.area(*size, 48, border=side // 2), net.area(rows, columns, 48)
        net.depthwise(given, into, taps.astype(np.float32), bias.astype(np.float32), stride)
        return given, into, None

    found = run(build, image.astype(np.float32))
    seen = windows(image, side, stride, (paddings[0], paddings[1]))[:rows, :columns]
    wanted = np.clip(np.einsum("yxcij,cij->yxc", seen, taps[:, 0]) + bias, 0.0, 6.0)
    sizes = np.einsum("yxcij,cij->yxc", np.abs(seen), np.abs(taps[:, 0])) + np.abs(bias)
    np.testing.assert_array_less(np.abs(found[..., :40] - wanted), (side**2 + 1) * ROUND * sizes)


@pytest.mark.parametrize("size", [(3, 3), (4, 9), (13, 6)])
def test_a_pooling_by_its_definition(size: tuple[int, int]) -> None:
    """The largest is one of the numbers: to the bit, the windows that reach over the edge as well."""
    image = np.random.default_rng(4).normal(size=(*size, 32)).astype(np.float32)
    rows, columns = (-(-(n - 3) // 2) + 1 for n in size)

    def build(net: LayerStack) -> tuple[Area, Area, None]:
        given, into = net.area(*size, 32), net.area(rows, columns, 32)
        net.pool(given, into)
        return given, into, None

    wanted = [[image[2 * y : 2 * y + 3, 2 * x : 2 * x + 3].max((0, 1)) for x in range(columns)] for y in range(rows)]
    np.testing.assert_array_equal(run(build, image), np.array(wanted))


def test_what_is_no_number_stays_so() -> None:
    """Through the rectifiers of a convolution and of a filter, in the pixels that see it and in no other one."""
    image = np.ones((9, 9, 16), np.float32)
    image[4, 4, 0] = np.nan

    def build(net: LayerStack) -> tuple[Area, Area, None]:
        given, between, into = (net.area(9, 9, 16, border=1) for _ in range(3))
        net.depthwise(given, between, np.ones((16, 1, 3, 3), np.float32), np.zeros(16, np.float32), 1)
        net.convolve(between, into, np.ones((16, 16, 1, 1), np.float32), np.zeros(16, np.float32), rectifier="relu6")
        return given, into, None

    lost = np.isnan(run(build, image)[1:-1, 1:-1])
    assert lost[3:6, 3:6].all()
    assert lost.sum() == 9 * 16


@pytest.mark.parametrize("out", [33, 112])
def test_a_row_has_the_same_bits_whatever_stands_beside_it(out: int) -> None:
    """As many rows as are handled together, fewer and more, in whatever order the counts come."""
    rng = np.random.default_rng(5)
    drawn = [(rng.normal(size=(to, given)), rng.normal(size=to)) for given, to in ((75, 64), (64, out))]
    layers = [(matrix.astype(np.float32), bias.astype(np.float32)) for matrix, bias in drawn]
    rows, chain = rng.normal(size=(2 * ROWS + 3, 75)), LinearChain(layers)
    wanted = chain(rows)
    for count in (1, ROWS + 1, 5, ROWS, 2, 2 * ROWS + 3, ROWS - 1):
        np.testing.assert_array_equal(chain(rows[:count]), wanted[:count])
    np.testing.assert_array_equal(LinearChain(layers, single=True)(rows), wanted)


def test_what_lanes_read_begins_on_a_cache_line() -> None:
    for count in (1, 5, 1000, 300_000):
        array = np.arange(2 * count, dtype=np.float32).reshape(2, count)
        found = on_cache_line(array)
        assert found.ctypes.data % 64 == 0
        np.testing.assert_array_equal(found, array)
