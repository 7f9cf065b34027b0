"""Layers of PPO in torch whose gradients are written by hand: by differences, by torch's own, and by their twin in NumPy."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from airworthy.learning.ppo.twin import GatedWeights, gated_sequence, gated_slopes

pytest.importorskip("torch")

import torch

from airworthy.learning.environments import VectorTask
from airworthy.learning.environments.tasks import MotorCommand
from airworthy.learning.ppo import TorchPpo, TorchPpoOptions, layers
from airworthy.learning.ppo.layers import GatedSequence, TanhLayer, product


def drawn(dtype: Any = torch.float64, steps: int = 7, count: int = 5, inputs: int = 4, width: int = 3) -> tuple[Any, ...]:
    """A unit, inputs, first memory, and ends within the sequence and at its end."""
    torch.manual_seed(0)
    cell = torch.nn.GRUCell(inputs, width, dtype=dtype)
    x, memory = torch.randn(steps, count, inputs, dtype=dtype), torch.randn(count, width, dtype=dtype)
    ended = torch.rand(steps, count) < 0.3
    ended[-1, 0] = ended[0, 1] = True
    return cell, x.requires_grad_(), memory.requires_grad_(), ended


def by_cell(cell: Any, x: Any, memory: Any, ended: Any) -> tuple[Any, Any]:
    """One instant after the other, by torch's own unit and automatic differentiation."""
    told = []
    for now, end in zip(x, ended, strict=True):
        told.append(cell(now, memory))
        memory = torch.where(end[:, None], torch.zeros((), dtype=x.dtype), told[-1])
    return torch.stack(told), memory


def slopes(found: tuple[Any, Any], by: tuple[Any, Any], inputs: list[Any]) -> list[Any]:
    whole = (found[0] * by[0]).sum() + (found[1] * by[1]).sum()
    return [x.detach().numpy() for x in torch.autograd.grad(whole, inputs)]


def test_the_unit_has_the_slopes_of_differences() -> None:
    cell, x, memory, ended = drawn()
    assert torch.autograd.gradcheck(lambda x, h, *w: GatedSequence.apply(x, h, ended, *w), (x, memory, *cell.parameters()))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_unit_is_that_of_torch(dtype: Any) -> None:
    """Values and slopes by everything; in float32 to rounding of sums of some hundred terms of order 1."""
    cell, x, memory, ended = drawn(dtype, steps=32, count=16, inputs=24, width=16)
    by = torch.randn(32, 16, 16, dtype=dtype), torch.randn(16, 16, dtype=dtype)
    mine, plain = GatedSequence.apply(x, memory, ended, *cell.parameters()), by_cell(cell, x, memory, ended)
    close = {"rtol": 1e-10, "atol": 1e-10} if dtype == torch.float64 else {"rtol": 1e-4, "atol": 1e-4}
    for one, two in zip(mine, plain, strict=True):
        np.testing.assert_allclose(one.detach(), two.detach(), **close)
    inputs = [x, memory, *cell.parameters()]
    for one, two in zip(slopes(mine, by, inputs), slopes(plain, by, inputs), strict=True):
        np.testing.assert_allclose(one, two, **close)


def test_the_twin_is_the_unit() -> None:
    cell, x, memory, ended = drawn()
    w = GatedWeights(*(p.detach().numpy() for p in cell.parameters()))
    by = torch.randn(7, 5, 3, dtype=torch.float64), torch.randn(5, 3, dtype=torch.float64)
    given = x.detach().numpy(), memory.detach().numpy(), ended.numpy(), w
    told, held = gated_sequence(*given)
    found = GatedSequence.apply(x, memory, ended, *cell.parameters())
    np.testing.assert_allclose(found[0].detach(), told, atol=1e-12)
    np.testing.assert_allclose(found[1].detach(), held[-1], atol=1e-12)
    by_x, by_memory, weights = gated_slopes(*given, by[0].numpy(), by[1].numpy())
    expected = [by_x, by_memory, *vars(weights).values()]
    for one, two in zip(slopes(found, by, [x, memory, *cell.parameters()]), expected, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-12)


def test_a_flight_that_ended_leaves_nothing_not_even_what_is_no_number() -> None:
    cell, x, memory, ended = drawn()
    ended[:] = False
    ended[2, 1] = True
    with torch.no_grad():
        x[1, 1] = torch.nan
        told, last = GatedSequence.apply(x, memory, ended, *cell.parameters())
        alone, _ = GatedSequence.apply(x[3:, 1:2], torch.zeros(1, 3, dtype=x.dtype), ended[3:, 1:2], *cell.parameters())
    assert torch.isnan(told[1:3, 1]).all()
    np.testing.assert_allclose(told[3:, 1:2], alone, atol=1e-14)
    assert torch.isfinite(last).all()
    assert torch.isfinite(told[:, [0, 2, 3, 4]]).all()


def test_a_tanh_layer_has_the_slopes_of_differences() -> None:
    x, weight, bias = (torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in ((6, 5), (4, 5), (4,)))
    assert torch.autograd.gradcheck(TanhLayer.apply, (x, weight, bias))


@pytest.mark.parametrize("one_dnn", [True, False])
def test_products_are_those_of_float64(one_dnn: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With and without what torch was built with; to the rounding of a sum of 209 terms of order 1."""
    if one_dnn and not layers._ONE_DNN:
        pytest.skip("torch was built without oneDNN")
    monkeypatch.setattr(layers, "_ONE_DNN", one_dnn)
    rng = np.random.default_rng(0)
    x, weight, bias = rng.normal(size=(300, 209)), rng.normal(size=(64, 209)) / 15.0, rng.normal(size=64)
    expected = x @ weight.T + bias
    given = [torch.from_numpy(part).float() for part in (x, weight, bias)]
    # 209 terms of 1/15 each, rounded to 6e-8 of the largest sum: 1e-6 on average, 1e-5 at most.
    np.testing.assert_allclose(product(*given), expected, atol=1e-5)
    np.testing.assert_allclose(product(*given, tanh=True), np.tanh(expected), atol=1e-5)
    np.testing.assert_allclose(product(*given[:2]), expected - bias, atol=1e-5)
    np.testing.assert_allclose(product(given[0].t(), given[0].t()), x.T @ x, atol=1e-3)


def test_products_of_another_thread_are_the_same_bits() -> None:
    """OpenMP counts its threads anew in each of ours; the numbers must not depend on how many there are."""
    x, weight = torch.randn(2048, 209), torch.randn(256, 209)
    before, found = torch.get_num_threads(), []
    torch.set_num_threads(1)
    try:
        thread = threading.Thread(target=lambda: found.append(product(x, weight, tanh=True)))
        thread.start()
        thread.join()
        np.testing.assert_array_equal(found[0], product(x, weight, tanh=True))
    finally:
        torch.set_num_threads(before)


def test_a_shared_critic_reads_what_was_told_in_flight() -> None:
    """It is what its own trunk makes of the rollout, in numbers and where some are none."""
    o: dict[str, Any] = {"hidden": (16, 8), "rollout": 8, "minibatches": 2, "epochs": 2, "recurrent": 8, "shared": True}
    one = TorchPpo(VectorTask(MotorCommand(episode_steps=20), 32, seed=3), TorchPpoOptions(**o), 1)
    for _ in range(3):
        one.update()
    one.fly()
    assert bool((one._weight > 0.0).all())
    x = one._normal(one._flown.critic_seen, critic=True)
    with torch.no_grad():
        told, after = one._remembered(x)
        expected, last = one.model.critic.sequence(x[:-1], one._begun_with[1], one._flown.ended)
        np.testing.assert_allclose(told[:-1], expected, atol=1e-6)
        np.testing.assert_allclose(after, last, atol=1e-6)
        for x_then in one._told_in_flight:
            x_then.fill_(torch.nan)
        one._weight[3, 5] = 0.0
        np.testing.assert_allclose(one._remembered(x)[0][:-1], expected, atol=1e-6)
