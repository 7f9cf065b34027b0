"""The native layers: one by one against plain sums in float64, the form of a GPU, and their compilation for one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.pilots.svnet_cases import contract, reading, weights

from airworthy.core.arrays import Array, ArrayF32, ArrayU8
from airworthy.core.native_kernel import quiet_warp
from airworthy.pilots.svnet.features import IMAGE_MEAN, IMAGE_STD
from airworthy.pilots.svnet.layers import layers_kernel
from airworthy.pilots.svnet.network import Backbone, LinearChain, SvNetwork
from airworthy.pilots.svnet.trunk_layers import backbone_layers
from airworthy.pilots.svnet.variants import CLASSES, FIRES, POOLS, Trunk, backbone_scores, feature_side, prepared

ROUNDING = 2e-6
"""Relative: float32 sums of up to 576 taps in 12 layers, against float64."""


def backbone() -> dict[str, ArrayF32]:
    first = "vision.backbone."
    return {name.removeprefix(first): array for name, array in weights().items() if name.startswith(first)}


def convolved(x: Array, weight: Array, bias: Array, stride: int = 1, padding: int = 0) -> Array:
    """A convolution (rows, columns, channels) by its definition, and its rectifier."""
    x = np.pad(x, ((padding, padding), (padding, padding), (0, 0)))
    side = weight.shape[-1]
    rows, columns = ((n - side) // stride + 1 for n in x.shape[:2])
    y = np.zeros((rows, columns, len(weight)))
    for i in range(rows):
        for j in range(columns):
            window = x[i * stride : i * stride + side, j * stride : j * stride + side]
            y[i, j] = np.tensordot(weight, window, ([1, 2, 3], [2, 0, 1])) + bias
    return np.maximum(y, 0.0)


def pooled(x: Array) -> Array:
    rows, columns = (-(-(n - 3) // 2) + 1 for n in x.shape[:2])
    return np.array([[x[2 * i : 2 * i + 3, 2 * j : 2 * j + 3].max((0, 1)) for j in range(columns)] for i in range(rows)])


def by_definition(image: ArrayU8, numbers: dict[str, ArrayF32]) -> Array:
    def layer(x: Array, name: str, **options: int) -> Array:
        return convolved(x, numbers[f"{name}.weight"].astype(float), numbers[f"{name}.bias"].astype(float), **options)

    x = layer((image / 255.0 - IMAGE_MEAN) / IMAGE_STD, "features.0", stride=2)
    for number in sorted((*FIRES, *POOLS), key=int):
        if number in POOLS:
            x = pooled(x)
            continue
        small = layer(x, f"features.{number}.squeeze")
        wide = layer(small, f"features.{number}.expand1x1"), layer(small, f"features.{number}.expand3x3", padding=1)
        x = np.concatenate(wide, axis=-1)
    return layer(x, "classifier.1")


@pytest.mark.parametrize("single", [False, True])
def test_squeezenet_by_its_definition(single: bool) -> None:
    """Rows and columns differ; one of them ends in a window over the edge."""
    numbers = backbone()
    images = np.random.default_rng(3).integers(0, 256, (2, 37, 44, 3), np.uint8)
    found = Backbone(numbers, (37, 44), IMAGE_MEAN, IMAGE_STD, single=single)(images)
    wanted = np.stack([by_definition(image, numbers).mean((0, 1)) for image in images])
    assert found.shape == (2, CLASSES)
    assert np.abs(wanted).max() > 0.1
    np.testing.assert_allclose(found, wanted, atol=ROUNDING * np.abs(wanted).max(), rtol=0)


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize(("size", "cells"), [((112, 112), 6), ((112, 96), 2), ((37, 51), 3)])
def test_scores_of_cells_by_their_definition(size: tuple[int, int], cells: int, single: bool) -> None:
    """As many pixels as cells, more (6 x 5 pixels in two columns, which share one), and fewer (2 x 3 pixels)."""
    torch = pytest.importorskip("torch")
    numbers = {name: array[:32] if name.startswith("classifier") else array for name, array in backbone().items()}
    images = np.random.default_rng(4).integers(0, 256, (2, *size, 3), np.uint8)
    found = Backbone(numbers, size, IMAGE_MEAN, IMAGE_STD, single=single, cells=cells)(images)
    pixels = np.stack([by_definition(image, numbers) for image in images])
    wanted = torch.nn.functional.adaptive_avg_pool2d(torch.from_numpy(pixels).permute(0, 3, 1, 2), cells).permute(0, 2, 3, 1)
    assert pixels.shape[1:3] == tuple(map(feature_side, size))
    np.testing.assert_allclose(found, wanted.reshape(2, -1), atol=ROUNDING * pixels.max(), rtol=0)


def test_the_form_of_a_gpu_gives_the_same_bits() -> None:
    given = reading(count=5, side=35)
    lanes, single = (SvNetwork(contract(side=35), weights(), single=alone)(given) for alone in (False, True))
    np.testing.assert_array_equal(lanes.command, single.command)


@pytest.mark.parametrize("size", [(112, 112), (37, 44)])
def test_lite0_in_lanes_and_in_the_form_of_a_gpu_gives_the_twins_numbers(size: tuple[int, int]) -> None:
    """Rows and columns differ; odd sides have their padding on both sides at one stride and behind at another."""
    first = "vision.backbone."
    numbers = {name.removeprefix(first): array for name, array in weights("sv_lite").items() if name.startswith(first)}
    images = np.random.default_rng(6).integers(0, 256, (3, *size, 3), np.uint8)
    lanes, single = (
        Backbone(numbers, size, IMAGE_MEAN, IMAGE_STD, single=alone, cells=2, trunk="lite0")(images) for alone in (False, True)
    )
    np.testing.assert_array_equal(lanes, single)
    shades = (images.astype(np.float32) / np.float32(255.0) - np.float32(IMAGE_MEAN)) / np.float32(IMAGE_STD)
    laid = {name: prepared(array) if array.ndim == 4 else array for name, array in numbers.items()}
    wanted = backbone_scores(shades, laid, 2, "lite0")
    assert np.abs(wanted).max() > 0.1
    # 33 layers, where SqueezeNet has 18.
    np.testing.assert_allclose(lanes, wanted, atol=2.0 * ROUNDING * np.abs(wanted).max(), rtol=0)


@pytest.mark.parametrize("trunk", ["lite0", "squeezenet"])
def test_scores_have_the_same_bits_on_any_number_of_threads(trunk: Trunk) -> None:
    """Eight images take milliseconds, so that from the third call on they are handed to threads."""
    first = "vision.backbone."
    drawn = weights("sv_lite" if trunk == "lite0" else "sv_grid")
    numbers = {name.removeprefix(first): array for name, array in drawn.items() if name.startswith(first)}
    images = np.random.default_rng(7).integers(0, 256, (8, 112, 112, 3), np.uint8)

    def network(threads: int) -> Backbone:
        return Backbone(numbers, (112, 112), IMAGE_MEAN, IMAGE_STD, threads=threads, cells=6, trunk=trunk)

    wanted = np.concatenate([network(1)(image[None]) for image in images])
    for threads in (1, 2, 3):
        split = network(threads)
        for _ in range(4):
            np.testing.assert_array_equal(split(images), wanted)


def test_more_images_than_a_gpu_holds_at_once() -> None:
    images = np.random.default_rng(4).integers(0, 256, (35, 17, 17, 3), np.uint8)
    many = Backbone(backbone(), (17, 17), IMAGE_MEAN, IMAGE_STD, single=True)(images)
    one = Backbone(backbone(), (17, 17), IMAGE_MEAN, IMAGE_STD)(images)
    np.testing.assert_array_equal(many, one)


def test_linear_layers() -> None:
    """Widths that are no multiple of 16, more rows than are handled together."""
    rng = np.random.default_rng(5)
    layers = [(rng.normal(size=(out, given)), rng.normal(size=out)) for given, out in ((75, 100), (100, 33), (33, 3))]
    rows = rng.normal(size=(50, 75))
    x = rows
    for number, (matrix, bias) in enumerate(layers):
        x = x @ matrix.T + bias
        x = np.maximum(x, 0.0) if number < 2 else x
    single = [(matrix.astype(np.float32), bias.astype(np.float32)) for matrix, bias in layers]
    np.testing.assert_allclose(LinearChain(single)(rows), x, atol=ROUNDING * np.abs(x).max(), rtol=0)
    np.testing.assert_allclose(
        LinearChain(single, rectified=True)(rows), np.maximum(x, 0.0), atol=ROUNDING * np.abs(x).max(), rtol=0
    )


def test_memory_of_an_image_is_bounded() -> None:
    """Two images in turn and the squeezed ones: of the policy's view some 6 MB."""
    assert backbone_layers(backbone(), 224, 224).size * 4 < 7e6


@pytest.mark.skipif(sys.platform == "darwin", reason="Warp has no CUDA compiler on macOS")
def test_the_kernel_compiles_for_cuda(tmp_path: Path) -> None:
    wp: Any = quiet_warp()
    with wp.ScopedLogLevel(wp.LOG_ERROR):
        wp.compile_aot_module(layers_kernel().module, device=None, arch=90, module_dir=tmp_path, use_ptx=True)
    (path,) = tmp_path.glob("*.ptx")
    text = path.read_text(errors="replace")
    assert ".target sm_90" in text
    assert "fma.rn.f32" in text  # asked for by name; nothing else may be contracted
    assert ".local" not in text.partition(".visible .entry")[2]  # sums and pointers stay in registers
