"""SV-Net in torch: shapes and counts of the specification's section 7, its twin on NumPy, and what cannot reach it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.pilots.svnet.variants import VARIANTS, parameter_count, tensor_shapes

torch = pytest.importorskip("torch")

from airworthy.learning.svnet.data import training_data  # noqa: E402
from airworthy.learning.svnet.data_loader import DataLoader, normalized  # noqa: E402
from airworthy.learning.svnet.model import Inputs, SvNet, draw_masks, mask_widths  # noqa: E402
from airworthy.pilots.svnet.contract import PolicyContract, PolicyImage  # noqa: E402
from airworthy.pilots.svnet.network import Reading, svnet_twin  # noqa: E402

Make = Callable[..., Any]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Networks here see few small images: a second thread only waits."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def inputs(name: str, count: int = 3, side: int = 40, seed: int = 0) -> tuple[Inputs, Reading]:
    """The same numbers for torch and for NumPy."""
    rng = np.random.default_rng(seed)
    size = VARIANTS[name].state_size
    state, objective, history = (rng.normal(size=(count, n)).astype(np.float32) for n in (size, 18, 75))
    images = rng.integers(0, 256, (count, side, side, 3), dtype=np.uint8) if VARIANTS[name].vision else None
    shown = None if images is None else normalized(torch.from_numpy(images))
    batch = Inputs(*(torch.from_numpy(x) for x in (state, objective, history)), shown)
    return batch, Reading(state.astype(np.float64), objective.astype(np.float64), history.astype(np.float64), images)


def test_parameters_are_as_many_as_published() -> None:
    network = SvNet("sv_net")
    assert sum(p.numel() for p in network.parameters()) == 1_948_822
    counts = {block: parameter_count("sv_net", block) for block in ("history", "vision.backbone", "vision.head", "command")}
    assert counts == {"history": 7_226, "vision.backbone": 1_235_496, "vision.head": 679_296, "command": 26_804}


@pytest.mark.parametrize(
    ("name", "given"), [("sv_net", 162), ("no_rma", 154), ("no_pretrain", 162), ("no_latent", 156), ("hp_net", 37)]
)
def test_each_variant_has_the_tensors_that_its_runner_reads(name: str, given: int) -> None:
    network = SvNet(name)
    assert {key: tuple(value.shape) for key, value in network.state_dict().items()} == tensor_shapes(name)
    assert network.command[0].in_features == given


@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_the_runner_without_torch_gives_the_same(name: str) -> None:
    network = SvNet(name, seed=1)
    batch, reading = inputs(name)
    with torch.no_grad():
        command = network(batch).numpy()
    weights = {key: value.numpy() for key, value in network.state_dict().items()}
    decision = svnet_twin(PolicyContract(name, PolicyImage.of_side(40) if VARIANTS[name].vision else None), weights, reading)
    # Float32, sums of up to 4,608 products in another order: 1e-5 of values around 1.
    np.testing.assert_allclose(command, decision.command, atol=2e-5)


@pytest.mark.parametrize("side", [17, 64, 112, 224])
def test_any_view_will_do(side: int) -> None:
    batch, _ = inputs("sv_net", count=1, side=side)
    with torch.no_grad():
        assert SvNet()(batch).shape == (1, 4)


def test_lateral_position_changes_no_command(pairs_in_memory: Make) -> None:
    network, commands = SvNet(), []
    for moved in (0.0, 250.0):
        pairs = pairs_in_memory(rollouts=4, ticks=6, side=20, held=1)
        pairs.sensed = pairs.sensed + np.array([0.0, moved, -moved, *[0.0] * 8])
        data_loader = DataLoader(training_data(pairs, network.variant), torch.device("cpu"))
        which = np.arange(8)
        for some, images in data_loader.stream([which]):
            assert images is not None
            with torch.no_grad():
                commands.append(network(data_loader.inputs(some, normalized(images))))
    assert torch.equal(*commands)


def test_the_same_seed_gives_the_same_weights_and_leaves_the_global_generator_alone() -> None:
    torch.manual_seed(5)
    wanted = torch.rand(3)
    torch.manual_seed(5)
    first, again, other = SvNet(seed=1), SvNet(seed=1), SvNet(seed=2)
    assert torch.equal(torch.rand(3), wanted)
    key = "vision.backbone.features.3.squeeze.weight"
    assert torch.equal(first.state_dict()[key], again.state_dict()[key])
    assert not torch.equal(first.state_dict()[key], other.state_dict()[key])


def test_a_signal_does_not_fade_in_a_network_on_random_weights() -> None:
    batch, _ = inputs("sv_net", count=8, side=64)
    with torch.no_grad():
        scores = SvNet().vision.backbone(batch.images)
    assert 0.05 < scores.std() < 5.0  # with torch's own rule it is below 0.01


def test_masks_drop_the_share_they_should() -> None:
    widths = mask_widths(VARIANTS["no_pretrain"], "command")
    assert widths == {"history": (64, 32), "vision": (512, 256), "command": (100, 100)}
    assert mask_widths(VARIANTS["sv_net"], "command") == {"vision": (512, 256), "command": (100, 100)}
    drawn = draw_masks(400, [(512, 0.2), (100, 0.0)], torch.Generator().manual_seed(0), "cpu")
    assert drawn is not None
    share = float((drawn[0] == 0.0).float().mean())
    assert abs(share - 0.2) < 0.005  # 204,800 draws: five standard deviations
    assert abs(float(drawn[0].mean()) - 1.0) < 0.01
    assert (drawn[1] == 1.0).all()
    assert draw_masks(4, [(5, 0.0)], None, "cpu") is None


def test_brightness_and_noise_are_drawn_from_a_generator() -> None:
    images = torch.full((2, 8, 8, 3), 100, dtype=torch.uint8)
    plain = normalized(images)
    assert plain.is_contiguous(memory_format=torch.channels_last)
    np.testing.assert_allclose(plain[0, 0, 0, 0], (100 / 255 - 0.485) / 0.229, rtol=1e-5)
    drawn = [normalized(images, torch.Generator().manual_seed(4), 0.3, 2.0) for _ in range(2)]
    assert torch.equal(*drawn)
    assert not torch.equal(drawn[0], plain)
    assert drawn[0].mean(dim=(1, 2, 3)).unique().numel() == 2  # each image its own light


def test_an_unknown_variant_is_named() -> None:
    with pytest.raises(AirworthyError, match="Closest: 'no_latent'"):
        SvNet("no_latents")
