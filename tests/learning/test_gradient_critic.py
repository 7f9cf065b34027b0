"""Windows with a critic at their end, and with a GRU in the policy: against twins, differences, and torch's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import native_kernel
from airworthy.learning.gradient import GradientOptions, GradientTraining, kernel
from airworthy.learning.gradient.critic import fit_twin
from airworthy.learning.gradient.kernel import KERNEL_ARGUMENTS, Ahead, window_source
from airworthy.learning.gradient.twin import flown_twin, gru_twin, loss_twin, returns_twin, value_twin, window_twin
from airworthy.vehicles import vehicle

KINDS: dict[str, dict[str, Any]] = {"critic": {"critic": True}, "gru": {"memory": "gru", "history": 1, "delay": 1}}


def training(**options: Any) -> GradientTraining:
    """Few flights and short windows."""
    return GradientTraining(vehicle("tinyprop"), GradientOptions(**{"env_count": 16, "window": 12, "hidden": 16, **options}))


def learnt(kind: str, flights: int = 16) -> GradientTraining:
    """Some steps in, so that weights and memory are not their small beginnings."""
    made = training(iterations=40, env_count=flights, **KINDS[kind])
    for _ in range(20):
        made.step()
    return made


def ahead_of(made: GradientTraining) -> Ahead | None:
    return made._critic.ahead if made._critic else None


@pytest.mark.parametrize("kind", KINDS)
def test_cost_states_and_gradient_equal_the_twins(kind: str) -> None:
    made = learnt(kind)
    window, begun, memory = made.window, made.window.state.copy(), made.window.memory.copy()
    flown, gradient = window_twin(window, made.weights, begun.astype(float), 0.97, ahead_of(made), memory)
    ours, slopes = window.run(made.weights, 0.97, ahead_of(made))
    np.testing.assert_allclose(ours, flown.costs.sum(axis=0), rtol=2e-6)
    np.testing.assert_allclose(window.state, flown.state, rtol=2e-5, atol=2e-5)
    if kind == "gru":
        assert np.abs(memory).max() > 0.05
        np.testing.assert_allclose(window.memory, flown.memory, rtol=0.0, atol=2e-5)
    for mine, twins in zip(slopes, gradient, strict=True):
        # float32 through 12 steps: a few 1e-7 of the largest.
        np.testing.assert_allclose(mine, twins, rtol=0.0, atol=5e-6 * np.abs(twins).max())


@pytest.mark.parametrize("kind", KINDS)
def test_the_twins_gradient_is_that_of_its_loss(kind: str) -> None:
    """Central differences in float64, a weight of each array."""
    made = learnt(kind)
    window, begun, memory = made.window, made.window.state.astype(float), made.window.memory.astype(float)
    weights, ahead = [np.asarray(w, float) for w in made.weights], ahead_of(made)
    _, gradient = window_twin(window, weights, begun, 1.0, ahead, memory)
    rng = np.random.default_rng(0)
    for k, slope in enumerate(gradient):
        at = tuple(rng.integers(0, n) for n in slope.shape)
        sides = []
        for h in (1e-6, -1e-6):
            moved = [w.copy() for w in weights]
            moved[k][at] += h
            sides.append(loss_twin(window, flown_twin(window, moved, begun, memory), ahead))
        assert abs((sides[0] - sides[1]) / 2e-6 - slope[at]) <= 2e-6 * np.abs(slope).max()


@pytest.mark.parametrize("flights", [16, 48])
def test_returns_and_the_critics_gradient_equal_the_twins(flights: int) -> None:
    """Of one block of flights and of three, each of which learns from its own rows."""
    made = learnt("critic", flights)
    critic, window = made._critic, made.window
    assert critic is not None
    begun = window.state.astype(float)
    flown = flown_twin(window, [np.asarray(w, float) for w in made.weights], begun)
    window.run(made.weights, 1.0, critic.ahead)
    wanted = returns_twin(critic.ahead, flown.costs, flown.seen)
    seen, told = window.samples
    # Block by block, in each step by step.
    observed = np.array(flown.seen[:-1]).swapaxes(0, 1)
    by_block = (np.stack(np.split(x, flights // 16, axis=-1), axis=-3) for x in (wanted, observed))
    for ours, twins in zip((told, seen), by_block, strict=True):
        np.testing.assert_allclose(ours.ravel(), twins.ravel(), rtol=1e-4, atol=2e-5)
    of_quick = Ahead(critic.weights, critic.discount, critic.blend)
    for ours, twins in zip(critic.gradient(), fit_twin(of_quick, seen, told), strict=True):
        np.testing.assert_allclose(ours, twins, rtol=0.0, atol=5e-6 * np.abs(twins).max())
    # And that is the slope of half the mean squared error.
    weights: list[Array] = [np.asarray(w, float) for w in critic.weights]
    slope = fit_twin(of_quick, seen, told)
    for k in range(6):
        at = np.unravel_index(np.abs(slope[k]).argmax(), slope[k].shape)
        sides = []
        for h in (1e-5, -1e-5):
            moved = [w.copy() for w in weights]
            moved[k][at] += h
            sides.append(0.5 * np.mean((value_twin(Ahead(moved, 0.99, 0.95), seen)[0] - told) ** 2))  # type: ignore[arg-type]
        assert (sides[0] - sides[1]) / 2e-5 == pytest.approx(slope[k][at], rel=1e-4)


def test_constant_costs_are_told_as_they_are() -> None:
    """Scaled by 1 - discount, returns of flights that always cost c are c, whatever lambda."""
    weights = [np.zeros((4, 3)), np.zeros(4), np.zeros((4, 4)), np.zeros(4), np.zeros((1, 4)), np.full(1, 1.7)]
    seen = [np.ones((3, 2))] * 6
    for blend in (0.0, 0.5, 1.0):
        told = returns_twin(Ahead(weights, 0.9, blend), np.full((5, 2), 1.7), seen)  # type: ignore[arg-type]
        np.testing.assert_allclose(told, 1.7, rtol=1e-12)


def test_a_flight_that_left_the_numbers_spoils_no_other() -> None:
    for kind in KINDS:
        sick, well = learnt(kind), learnt(kind)
        sick.window.state[3, 2] = np.nan
        (costs, gradient), (others, _) = (made.window.run(made.weights, 1.0, ahead_of(made)) for made in (sick, well))
        lost = np.arange(16) == 2
        np.testing.assert_array_equal(costs[~lost], others[~lost])
        assert all(np.isfinite(g).all() for g in gradient)
        if sick._critic is not None:
            assert all(np.isfinite(g).all() for g in sick._critic.gradient())
            # Of no flight but the lost one, and of it in all its steps; the rest is learnt from as if it were not there.
            seen, told = sick.window.samples
            np.testing.assert_array_equal(np.isnan(told.reshape(-1, 16)), np.tile(lost, (sick.window.steps, 1)))
            quick = Ahead(sick._critic.weights, sick._critic.discount, sick._critic.blend)
            for ours, twins in zip(sick._critic.gradient(), fit_twin(quick, seen, told), strict=True):
                np.testing.assert_allclose(ours, twins, rtol=0.0, atol=5e-6 * np.abs(twins).max())
        sick.step()
        sick.step()
        assert np.isfinite(sick.window.state).all()
        assert np.isfinite(sick.window.memory).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_gpu_form_gives_the_bytes_of_the_lanes(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One environment after the other, with a GPU's order of rows; run here without a GPU."""
    lanes, single = learnt(kind), learnt(kind)
    text = "#define SCALAR_PATH\n" + window_source(single.shape)
    scalar = native_kernel(f"policy_gradient_scalar_{kind}", text, KERNEL_ARGUMENTS)
    single.window._launchers.clear()
    monkeypatch.setattr(kernel, "_kernel", lambda shape: scalar)
    monkeypatch.setattr(single.window, "_lanes", 1)
    theirs, gradient = single.window.run(single.weights, 1.0, ahead_of(single))
    monkeypatch.undo()
    ours, expected = lanes.window.run(lanes.weights, 1.0, ahead_of(lanes))
    np.testing.assert_array_equal(theirs, ours)
    np.testing.assert_array_equal(single.window.state, lanes.window.state)
    np.testing.assert_array_equal(single.window.memory, lanes.window.memory)
    for mine, others in zip(gradient, expected, strict=True):
        # Sums over flights and steps are the host's, in another order.
        np.testing.assert_allclose(mine, others, rtol=0.0, atol=1e-6 * np.abs(others).max())


def test_the_gru_is_torchs() -> None:
    made = learnt("gru")
    cell = torch.nn.GRUCell(16, 16, dtype=torch.float64)
    given = [torch.from_numpy(np.asarray(w, float)) for w in made.weights[2:6]]
    for name, values in zip(("weight_ih", "bias_ih", "weight_hh", "bias_hh"), given, strict=True):
        getattr(cell, name).data = values
    rng = np.random.default_rng(0)
    x, memory = rng.normal(size=(16, 5)), rng.normal(size=(16, 5))
    ours, _ = gru_twin([np.asarray(w, float) for w in made.weights[2:6]], x, memory)
    theirs = cell(torch.from_numpy(x.T.copy()), torch.from_numpy(memory.T.copy())).detach().numpy().T
    np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_saved_goes_on_to_the_same_bits(kind: str) -> None:
    whole, first = training(iterations=8, **KINDS[kind]), training(iterations=8, **KINDS[kind])
    for _ in range(4):
        whole.step()
        first.step()
    second = training(iterations=8, **KINDS[kind])
    second.restore(first.save())
    for _ in range(4):
        whole.step()
        second.step()
    for mine, others in zip(second.weights, whole.weights, strict=True):
        np.testing.assert_array_equal(mine, others)
    np.testing.assert_array_equal(second.window.state, whole.window.state)


def test_the_slow_copy_keeps_four_fifths_of_itself_in_each_window() -> None:
    made = learnt("critic")
    critic = made._critic
    assert critic is not None
    slow, quick = ([np.asarray(w, float) for w in held] for held in (critic.ahead.weights, critic.weights))
    assert any(np.abs(a - b).max() > 1e-3 for a, b in zip(slow, quick, strict=True))
    critic.follow()
    for now, a, b in zip(critic.ahead.weights, slow, quick, strict=True):
        np.testing.assert_allclose(now, 0.8 * a + 0.2 * b, rtol=0.0, atol=1e-6)


def test_the_critics_steps_are_counted_one_by_one_also_behind_a_stop() -> None:
    """Adam takes its first steps for larger than they are: a count that stands still or leaps would take others so, too."""
    made = training(iterations=8, critic=True, critic_steps=3, critic_rate=0.02)
    for _ in range(2):
        made.step()
    again = training(iterations=8, critic=True, critic_steps=3, critic_rate=0.02)
    again.restore(made.save())
    critic, told = again._critic, list[tuple[float, int]]()
    assert critic is not None
    fit = critic.fit

    def noted(rate: float, done: int) -> None:
        told.append((rate, done))
        fit(rate, done)

    critic.fit = noted  # type: ignore[method-assign]
    for _ in range(2):
        again.step()
    assert [done for _, done in told] == [6, 7, 8, 9, 10, 11]
    shares = [0.03 + 0.97 * 0.5 * (1.0 + np.cos(np.pi * k / 8)) for k in (2, 3)]
    np.testing.assert_allclose([rate for rate, _ in told], np.repeat(0.02 * np.array(shares), 3))


def test_memory_begins_anew_with_a_flight() -> None:
    made = learnt("gru")
    made._restart(np.array([1, 5]))
    assert not made.window.memory[:, [1, 5]].any()
    assert made.window.memory[:, [0, 2]].any()


def test_a_critic_and_memory_together_are_refused() -> None:
    with pytest.raises(AirworthyError, match="one of the two"):
        GradientOptions(critic=True, memory="gru")
