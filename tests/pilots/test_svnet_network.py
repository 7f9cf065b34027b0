"""SV-Net without torch: the specification's sizes, the readable twin, torch, and independence of what flies beside."""

from __future__ import annotations

import numpy as np
import pytest
from tests.pilots.svnet_cases import contract, part, reading, weights

from airworthy.core.errors import AirworthyError
from airworthy.pilots.svnet.features import vision_state
from airworthy.pilots.svnet.network import Reading, SvNetwork, svnet_twin
from airworthy.pilots.svnet.variants import VARIANTS, parameter_count, variant

TOLERANCE = 2e-6
"""Of commands of order 0.1 whose sums have up to 1,005 terms of order 1e-2, in float32: some 2^-23 of their largest part, 1."""


def test_sizes_are_those_of_the_specification() -> None:
    """Section 7: parameters of each block, and what the command network of each variant reads."""
    blocks = {"history": 7_226, "vision.head": 679_296, "command": 26_804, "vision.backbone": 1_235_496}
    assert {block: parameter_count("sv_net", block) for block in blocks} == blocks
    assert parameter_count("sv_net") == 1_948_822
    reads = {name: kind.command_input for name, kind in VARIANTS.items()}
    # Of HP-Net 11 + 18 + 8: the whole state, objective, latent.
    told = {"sv_net": 162, "no_rma": 154, "no_pretrain": 162, "no_latent": 156, "hp_net": 37}
    assert reads == {**told, "sv_grid": 162, "sv_lite": 162}


@pytest.mark.parametrize("name", VARIANTS)
def test_as_the_twin(name: str) -> None:
    given, numbers = reading(name), weights(name)
    found, wanted = SvNetwork(contract(name), numbers)(given), svnet_twin(contract(name), numbers, given)
    assert 0.01 < np.abs(wanted.command).max() < 10.0
    np.testing.assert_allclose(found.command, wanted.command, atol=TOLERANCE, rtol=0)
    assert (found.estimate is None) == (VARIANTS[name].history == "none")
    if found.estimate is not None and wanted.estimate is not None:
        np.testing.assert_allclose(found.estimate, wanted.estimate, atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("side", [17, 24, 35, 51, 96])
def test_images_of_any_size(side: int) -> None:
    """17 leaves one pixel after three poolings; the others end in windows over the edge at one pooling or another."""
    given, numbers = reading(count=2, side=side), weights()
    found = SvNetwork(contract(side=side), numbers)(given)
    wanted = svnet_twin(contract(side=side), numbers, given)
    np.testing.assert_allclose(found.command, wanted.command, atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("name", VARIANTS)
def test_as_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    from airworthy.learning.svnet.model import Inputs, SvNet

    given, numbers = reading(name), weights(name)
    model = SvNet(name)
    model.load_state_dict({key: torch.from_numpy(array) for key, array in numbers.items()})
    images = None
    if given.images is not None:
        shades = torch.from_numpy(given.images.astype(np.float32) / np.float32(255.0)).permute(0, 3, 1, 2)
        mean, std = (torch.tensor(v)[:, None, None] for v in (contract(name).image_mean, contract(name).image_std))
        images = (shades - mean) / std
    state, objective, history = (torch.from_numpy(a).float() for a in (given.state, given.objective, given.history))
    with torch.no_grad():
        wanted = model.eval()(Inputs(state, objective, history, images)).numpy()
    np.testing.assert_allclose(SvNetwork(contract(name), numbers)(given).command, wanted, atol=TOLERANCE, rtol=0)


def test_a_flight_decides_alike_alone_and_among_many() -> None:
    """Same bits, whatever the batch, the number of threads and the order."""
    given, numbers = reading(count=29, side=24), weights()
    whole = SvNetwork(contract(side=24), numbers, threads=2)(given)
    single = SvNetwork(contract(side=24), numbers, threads=1)
    for which in (slice(0, 1), slice(7, 8), slice(3, 29), slice(28, 29)):
        np.testing.assert_array_equal(single(part(given, which)).command, whole.command[which])
    turned = single(part(given, slice(None, None, -1)))
    np.testing.assert_array_equal(turned.command, whole.command[::-1])
    assert turned.estimate is not None
    assert whole.estimate is not None
    np.testing.assert_array_equal(turned.estimate, whole.estimate[::-1])


def test_a_flight_whose_numbers_are_not_finite_disturbs_no_other() -> None:
    given, numbers = reading(count=5), weights()
    network = SvNetwork(contract(), numbers)
    clean = network(given)
    state = given.state.copy()
    state[2, 3] = np.nan
    found = network(Reading(state, given.objective, given.history, given.images))
    assert np.isnan(found.command[2]).any()
    np.testing.assert_array_equal(np.delete(found.command, 2, 0), np.delete(clean.command, 2, 0))


def test_what_is_seen_is_told_by_height_and_attitude() -> None:
    """The feature extractor reads p_z and the quaternion, not the velocity."""
    given = reading(count=1)
    np.testing.assert_array_equal(given.vision, vision_state(given.state))


def test_no_flights_no_decisions() -> None:
    found = SvNetwork(contract(), weights())(part(reading(), slice(0, 0)))
    assert found.command.shape == (0, 4)


def test_mistakes() -> None:
    network, given = SvNetwork(contract(), weights()), reading()
    with pytest.raises(AirworthyError, match="no images for 3 flights"):
        network(Reading(given.state, given.objective, given.history))
    with pytest.raises(AirworthyError, match="state of shape"):
        network(Reading(given.state[:, :7], given.objective, given.history, given.images))
    with pytest.raises(AirworthyError, match="32, 32, 3"):
        network(Reading(given.state, given.objective, given.history, np.zeros((3, 40, 40, 3), np.uint8)))
    with pytest.raises(AirworthyError, match="Unknown variant"):
        variant("sv_nett")
