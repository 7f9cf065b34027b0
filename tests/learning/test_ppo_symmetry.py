"""Mirror images of flights: the maps by kernels that fly, and what is learnt from them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.learning.environments import VectorTask
from airworthy.learning.environments.tasks import HoverTask, MotorCommand

pytest.importorskip("torch")

from airworthy.learning.ppo import TorchPpo, TorchPpoOptions
from airworthy.learning.ppo.symmetry import mirrors

# Units: m, m/s, 1, rad/s, rad/s of rotors: of a step of float32. tinyprop's products of inertia turn it a little otherwise.
SAME = {"x500": (1e-5, 1e-5, 1e-5, 2e-4, 2e-2), "tinyprop": (1e-5, 1e-5, 1e-4, 5e-3, 2e-2)}


@pytest.mark.parametrize(("task", "name"), [(HoverTask(), "x500"), (MotorCommand(noise=False), "tinyprop")])
def test_the_image_of_a_step_is_the_step_of_the_image(task: Any, name: str) -> None:
    """Mirrored state and action give the mirrored next state, observation and the same reward, by the kernel."""
    env, count = VectorTask(task, 64, name, seed=1), 64
    rng = np.random.default_rng(0)
    start = env.state.copy()
    start[10:13] = rng.uniform(-0.5, 0.5, (3, count))
    action = rng.uniform(-1.0, 1.0, (count, 4))
    images = mirrors(env, "xy")
    assert [list(image.signs) for image in images] == [[1, -1, 1], [-1, 1, 1], [-1, -1, 1]]
    saved = env.saved()

    def stepped(state: Any, taken: Any) -> tuple[Any, Any, Any]:
        env.restore(saved)
        env.state[:] = state
        result = env.step(taken)
        assert not result.ends.ended.any()
        return env.state.astype(float), result.observation.copy(), result.reward.copy()

    after, seen, reward = stepped(start, action)
    for image in images:
        after_image, seen_image, reward_image = stepped(image.state(start), image.action(action))
        apart = np.abs(after_image - image.state(after))
        for rows, most in zip((slice(3), slice(3, 6), slice(6, 10), slice(10, 13), slice(13, 17)), SAME[name], strict=True):
            assert apart[rows].max() < most
        np.testing.assert_allclose(seen_image, seen * image.seen, atol=2e-3)
        np.testing.assert_allclose(reward_image, reward, atol=2e-3)
        assert np.abs(after_image - after).max() > 0.1


def test_images_are_a_group_of_four() -> None:
    """Each undoes itself; left and right, then front and back, is the half turn."""
    env = VectorTask("hover", 16, "lmf2", seed=1)
    y, x, turn = mirrors(env, "xy")
    state, action = np.random.default_rng(0).normal(size=(17, 16)), np.random.default_rng(1).normal(size=(16, 4))
    for image in (y, x, turn):
        np.testing.assert_array_equal(image.state(image.state(state)), state)
        np.testing.assert_array_equal(image.action(image.action(action)), action)
    np.testing.assert_array_equal(x.state(y.state(state)), turn.state(state))
    np.testing.assert_array_equal(x.action(y.action(action)), turn.action(action))
    np.testing.assert_array_equal(x.seen * y.seen, turn.seen)


def test_the_gradient_of_mirrored_samples_is_that_of_samples_flown_so() -> None:
    """By hand: a rollout whose half is the other half's image has the gradient of one half with its image."""
    import torch

    made = TorchPpo(VectorTask("hover", 64, "x500", seed=1), TorchPpoOptions(rollout=8, seed=1, mirror="y"), 1)
    image = made._mirrors[0]
    flown = made.fly()
    samples = made._samples(np.random.default_rng(0).normal(size=flown.rewards.shape))
    seen = made._flown.seen[:-1]
    turned = seen * torch.from_numpy(image.seen).float()
    order = np.arange(made._blocks)
    both, _ = made.gradient(order, samples, [(seen, seen), (turned, turned)])
    from dataclasses import replace

    made._mirrors = []
    plain, _ = made.gradient(order, samples, [(seen, seen)])
    rotors = torch.from_numpy(image.rotors)
    other, _ = made.gradient(order, replace(samples, taken=samples.taken[..., rotors]), [(turned, turned)])
    np.testing.assert_allclose(both, 0.5 * (plain + other), atol=1e-7)
    assert np.abs(np.asarray(other - plain)).max() > 1e-4


def test_what_has_no_image_is_told() -> None:
    with pytest.raises(AirworthyError, match="only tasks by rotors and without memory can"):
        mirrors(VectorTask("position_setpoint_velocity", 16), "y")
    with pytest.raises(AirworthyError, match="no rotor stands and turns as the one at"):
        mirrors(VectorTask("hover", 16, "base_random"), "xy")

    class Sided(HoverTask):
        name = "sided_in_a_test"

        def observe(self, state: Any, noises: Any, p: Any) -> Any:
            return (state[1] + state[2],)

    with pytest.raises(AirworthyError, match="the observation is another"):
        mirrors(VectorTask(Sided(), 16), "y")
    with pytest.raises(AirworthyError, match="expected mirror 'none' here"):
        TorchPpoOptions(mirror="y", recurrent=8)
