"""Navigation learnt from mirror images: what the image sees, does and remembers; and weights averaged over updates."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.learning.native_ppo.moments import WeightAverage
from airworthy.learning.navigation.eyes import LidarEye
from airworthy.learning.navigation.tasks import DepthNavigation
from airworthy.pilots.navigation_policy.sight import CELLS, cell_inputs

pytest.importorskip("torch")

import torch

from airworthy.learning.navigation.environments import NavigationEnvironments
from airworthy.learning.navigation.options import NavigationOptions
from airworthy.learning.navigation.training import NavigationTraining, plain_eye
from airworthy.learning.ppo import TorchPpoOptions
from airworthy.learning.ppo.symmetry import mirrors

SMALL = {"env_count": 16, "rollout": 8, "minibatches": 2, "epochs": 2, "hidden": (16, 8), "recurrent": 8}


def image_of(eye: str = "depth_navigation") -> Any:
    return mirrors(NavigationEnvironments(DepthNavigation(), 16, plain_eye(eye)), "y")[0]


def mirrored_quaternion(q: Any) -> Any:
    """S R S with S = diag(1, -1, 1): the axis, which is axial, turns the other way about x and z."""
    return np.array([-q[0], q[1], -q[2], q[3]])


def test_an_image_sees_and_commands_what_its_flight_would_with_left_and_right_changed() -> None:
    image, task, rng = image_of(), DepthNavigation(noise=False), np.random.default_rng(0)
    for _ in range(8):
        attitude = rng.normal(size=4)
        state = [*rng.normal(size=6), *(attitude / np.linalg.norm(attitude)), *rng.normal(size=3)]
        target, past = rng.normal(size=3), rng.uniform(-1.0, 1.0, 3)
        seen = np.array(task.observe(tuple(state), (0.0,) * 16, SimpleNamespace(memory=tuple(target), past=tuple(past))), float)
        left = np.array([1.0, -1.0, 1.0])
        turned = [*(left * state[:3]), *(left * state[3:6]), *mirrored_quaternion(state[6:10]), *(-left * state[10:13])]
        past = image.action(past[None])[0]
        given = SimpleNamespace(memory=tuple(left * target), past=tuple(past))
        expected = np.array(task.observe(tuple(turned), (0.0,) * 16, given), float)
        cells = np.zeros(np.prod(CELLS))
        np.testing.assert_allclose(image.observation(np.concatenate([seen, cells]))[: len(seen)], expected, atol=1e-12)
        action = rng.uniform(-1.0, 1.0, 3)
        x, y, z, turn = task.commanded(tuple(action), None)
        np.testing.assert_allclose(task.commanded(tuple(image.action(action[None])[0]), None), (x, -y, z, -turn))


def test_cells_of_an_image_are_those_of_the_picture_turned_round() -> None:
    picture = np.random.default_rng(1).uniform(0.3, 10.0, (3, 36, 64)).astype(np.float32)
    seen = np.concatenate([np.zeros((3, 17)), cell_inputs(picture)], 1)
    np.testing.assert_array_equal(image_of().observation(seen)[:, 17:], cell_inputs(picture[:, :, ::-1]))


def made(**options: Any) -> NavigationTraining:
    return NavigationTraining(NavigationOptions(**(SMALL | options)), plain_eye("depth_navigation"), "", 1)


@pytest.mark.parametrize("shared", [True, False])
def test_images_remember_what_was_seen_of_them_from_the_beginning(shared: bool) -> None:
    """With weights and scales that stay: three rollouts, and then all of them at once, by the trunks themselves."""
    training = made(mirror="y", shared=shared, learning_rate=1e-30, target_divergence=0.0)
    ppo, seen, ended = training.ppo, [], []
    ppo._remember_moments = lambda: None  # type: ignore[method-assign]
    for _ in range(3):
        training.step()
        seen.append(ppo._flown.seen[:-1].clone())
        ended.append(ppo._flown.ended.clone())
    image = ppo._mirrors[0]
    turned = ppo._normal(torch.from_numpy(image.observation(torch.cat(seen).numpy())).float())
    with torch.no_grad():
        for trunk, memory in zip((ppo.model.actor, ppo.model.critic), ppo._mirror_memories[0], strict=True):
            expected = trunk.sequence(turned, ppo.model.memory(16, torch.device("cpu")), torch.cat(ended))[1]
            np.testing.assert_allclose(memory, expected, atol=1e-6)
            assert np.abs(memory.numpy()).max() > 0.01
    assert torch.cat(ended).any()


def test_the_gradient_with_memory_is_that_of_flights_and_of_images_with_theirs() -> None:
    ppo = made(mirror="y").ppo
    ppo.update()
    flown, image = ppo.fly(), ppo._mirrors[0]
    with torch.no_grad():
        ppo._expect()
    samples = ppo._samples(np.random.default_rng(0).normal(size=flown.rewards.shape))
    seen = ppo._normal(ppo._flown.seen[:-1])
    other = ppo._normal(torch.from_numpy(image.observation(ppo._flown.seen[:-1].numpy())).float())
    order, begun, theirs = np.arange(16), ppo._begun_with, ppo._mirror_memories[0]
    both, _ = ppo.gradient(order, samples, [(seen, seen), (other, other)], [begun, theirs])
    ppo._mirrors = []
    plain, _ = ppo.gradient(order, samples, [(seen, seen)], [begun])
    signs = torch.tensor([1.0, 1.0, -1.0])
    turned = replace(samples, taken=samples.taken * signs, noise=samples.noise * signs)
    mirrored, _ = ppo.gradient(order, turned, [(other, other)], [theirs])
    np.testing.assert_allclose(both, 0.5 * (plain + mirrored), atol=1e-6)
    assert np.abs(np.asarray(mirrored - plain)).max() > 1e-4


def test_images_are_learnt_with_what_was_remembered_of_them_before_the_rollout() -> None:
    """An update passes its gradient each image's own memory: what trunks make of the image of all rollouts before."""
    training, told = made(mirror="y", shared=False, learning_rate=1e-30, target_divergence=0.0), []
    ppo, seen, ended = training.ppo, [], []
    ppo._remember_moments = lambda: None  # type: ignore[method-assign]
    gradient = ppo.gradient

    def noted(order: Any, samples: Any, inputs: Any, memories: Any = None) -> Any:
        told.append(memories)
        return gradient(order, samples, inputs, memories)

    ppo.gradient = noted  # type: ignore[method-assign]
    for _ in range(3):
        told.clear()
        training.step()
        # Two epochs of two minibatches, all with memories of one beginning.
        assert len(told) == 4
        for flights, images in told:
            assert flights is ppo._begun_with
            for k, trunk in enumerate((ppo.model.actor, ppo.model.critic)):
                nothing = ppo.model.memory(16, torch.device("cpu"))
                if not seen:
                    np.testing.assert_array_equal(images[k], nothing)
                    continue
                turned = ppo._normal(torch.from_numpy(ppo._mirrors[0].observation(torch.cat(seen).numpy())).float())
                with torch.no_grad():
                    expected = trunk.sequence(turned, nothing, torch.cat(ended))[1]
                np.testing.assert_allclose(images[k], expected, atol=1e-6)
                assert np.abs((flights[k] - expected).numpy()).max() > 1e-3
        seen.append(ppo._flown.seen[:-1].clone())
        ended.append(ppo._flown.ended.clone())


def test_a_mirrored_and_averaged_training_goes_on_to_the_same_bits() -> None:
    first = made(mirror="y", average_updates=3)
    for _ in range(3):
        first.step()
    second = made(mirror="y", average_updates=3)
    kept = first.save()
    second.restore(kept)
    for training in (first, second):
        training.step()
    for name, weight in first.weights.items():
        np.testing.assert_array_equal(second.weights[name], weight)


def test_weights_that_are_written_are_the_mean_of_those_that_learnt() -> None:
    """Of the first updates each counts alike; then the newest counts one in `average_updates`."""
    training, kept = made(average_updates=3), []
    for k in range(5):
        training.step()
        kept.append(training.ppo.model.mean.weight.detach().double().numpy().copy())
        expected = np.mean(kept[:3], 0)
        for later in kept[3:]:
            expected = expected + (later - expected) / 3.0
        np.testing.assert_allclose(training.weights["action.weight"], expected, atol=1e-7, err_msg=str(k))
    assert np.abs(kept[-1] - expected).max() > 1e-5
    last = made(average_updates=0)
    for _ in range(5):
        last.step()
    # What learns is the same, averaged or not.
    np.testing.assert_array_equal(last.weights["action.weight"], kept[-1].astype(np.float32))


def test_the_deterministic_action_is_of_the_weights_that_are_written() -> None:
    training = made(average_updates=50)
    for _ in range(4):
        training.step()
    seen = training.environments.observation
    memory = training.ppo.model.memory(16, torch.device("cpu"))
    mine, _ = training.policy.act(seen, training.policy.begin(16))
    np.testing.assert_allclose(training.ppo.action(seen, memory), mine, atol=2e-6)


def test_an_average_of_nothing_keeps_nothing() -> None:
    average = WeightAverage(0)
    average.learn(np.ones(3))
    assert average.count == 0
    assert average.saved() == {}


@pytest.mark.parametrize("options", [{"task": "lidar_navigation"}, {"image": "latent"}])
def test_what_cannot_be_mirrored_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(AirworthyError, match="Only flights with pooled depth can be mirrored"):
        NavigationOptions(mirror="y", **options)


def test_environments_refuse_images_that_they_do_not_have() -> None:
    flights = NavigationEnvironments(DepthNavigation(), 16, plain_eye("depth_navigation"))
    with pytest.raises(AirworthyError, match="not 'xy' with PooledEye"):
        mirrors(flights, "xy")
    with pytest.raises(AirworthyError, match="not 'y' with LidarEye"):
        mirrors(NavigationEnvironments(DepthNavigation(), 16, LidarEye()), "y")
    with pytest.raises(AirworthyError, match="do not know what mirrors them"):
        mirrors(SimpleNamespace(), "y")
    with pytest.raises(AirworthyError, match="without convolutions"):
        TorchPpoOptions(mirror="y", image=(1, 12, 16))


def test_navigation_mirrors_by_itself_what_can_be() -> None:
    assert NavigationOptions().ppo().mirror == "y"
    assert NavigationOptions(mirror="none").ppo().mirror == "none"
    assert NavigationOptions(image="latent").ppo().mirror == "none"
    assert NavigationOptions(task="lidar_navigation").ppo().mirror == "none"
