"""Mirror images of flights: the maps by kernels that fly, and what is learnt from them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.learning.environments import VectorTask
from airworthy.learning.environments.tasks import HoverTask, MotorCommand
from airworthy.vehicles import vehicle

pytest.importorskip("torch")

from airworthy.learning.ppo import TorchPpo, TorchPpoOptions
from airworthy.learning.ppo.symmetry import _rotors, mirrors

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
    made._mirrors = []
    plain, _ = made.gradient(order, samples, [(seen, seen)])
    rotors = torch.from_numpy(image.rotors)
    other, _ = made.gradient(order, replace(samples, taken=samples.taken[..., rotors]), [(turned, turned)])
    np.testing.assert_allclose(both, 0.5 * (plain + other), atol=1e-7)
    assert np.abs(np.asarray(other - plain)).max() > 1e-4


def _with_law(env: VectorTask, flown: Any = None, judged: Any = None) -> Any:
    """The environments with another motion or judgement."""
    shape = SimpleNamespace(
        traits=env.shape.traits, task=env.task, flown=flown or env.shape.flown, judged=judged or env.shape.judged
    )
    names = ("vehicle", "task", "observation_count", "action_count", "nominal", "parameters_of_flight", "state")
    return SimpleNamespace(shape=shape, **{name: getattr(env, name) for name in names})


# A row that keeps its sign mirrored by y, one that changes it (rotors: that has a partner), and how far its image is then.
KINDS = {
    "position": (2, 1, 2.0),
    "velocity": (5, 4, 2.0),
    "attitude": (9, 6, 2.0),
    "rate": (11, 10, 2.0),
    "rotors": (14, 13, 1.0),
}


@pytest.mark.parametrize("kind", KINDS)
def test_how_much_a_vehicle_may_differ_from_its_image(kind: str) -> None:
    """A hundredth of the largest change of its kind in a step, and a millionth: just within is taken, just beyond is not."""
    env = VectorTask("hover", 16, "x500", seed=1)
    same, turned, images = KINDS[kind]

    def law(step: float, apart: float) -> Any:
        def flown(state: Any, action: Any, p: Any) -> Any:
            rows = [np.asarray(x, float) + 0.0 for x in state]
            for row in range(13, 17) if kind == "rotors" else (same,):
                rows[row] = rows[row] + step
            rows[turned] = rows[turned] + apart / images
            return tuple(rows)

        return _with_law(env, flown)

    for step in (0.0, 1.0, 100.0):
        # The odd row changes as well: that moves the limit by a hundredth at most.
        most = 0.01 * step + 1e-6
        assert len(mirrors(law(step, 0.98 * most), "y")) == 1
        with pytest.raises(AirworthyError, match="the vehicle flies another"):
            mirrors(law(step, 1.02 * most), "y")


def test_how_much_a_reward_may_differ_from_its_image() -> None:
    """A millionth, and a millionth of it."""
    env = VectorTask("hover", 16, "x500", seed=1)

    def law(size: float, apart: float) -> Any:
        def judged(before: Any, after: Any, action: Any, p: Any) -> Any:
            return SimpleNamespace(terms={"a": size + 0.5 * apart * np.sign(np.asarray(after[1]))}, terminated=0.0)

        return _with_law(env, judged=judged)

    for size in (0.0, 1.0, 1000.0):
        most = 1e-6 * (1.0 + size)
        mirrors(law(size, 0.999 * most), "y")
        with pytest.raises(AirworthyError, match="the reward is another"):
            mirrors(law(size, 1.001 * most), "y")


def test_how_far_a_rotor_may_stand_from_its_image() -> None:
    """A thousandth of the farthest rotor's place."""
    item = vehicle("x500")
    far = np.abs([np.subtract(rotor.position, item.center_of_mass) for rotor in item.rotors]).max()
    for share, good in ((0.99e-3, True), (1.01e-3, False)):
        x, y, z = item.rotors[0].position
        moved = replace(item, rotors=(replace(item.rotors[0], position=(x, y, z - share * far)), *item.rotors[1:]))
        if good:
            assert sorted(_rotors(moved, np.array([1.0, -1.0, 1.0]))) == [0, 1, 2, 3]
            continue
        with pytest.raises(AirworthyError, match="no rotor stands and turns as the one at"):
            _rotors(moved, np.array([1.0, -1.0, 1.0]))


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
        TorchPpoOptions(mirror="y", image=(1, 12, 16))
