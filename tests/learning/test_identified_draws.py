"""Learning environments draw vehicles from what an identification left open."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
from tests.fixtures.identified import STATE, identified

from airworthy.benchmarks.fly.config import FlyConfig, check_spread, randomization
from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import native_kernel
from airworthy.learning.environments import vector_task
from airworthy.learning.environments.kernel import KERNEL_ARGUMENTS, environment_source, parameters_of
from airworthy.learning.environments.tasks.motor_command import MotorCommand
from airworthy.learning.environments.tasks.position import PositionByVelocity
from airworthy.learning.environments.twin import VectorTwin
from airworthy.learning.environments.vector_task import VectorTask
from airworthy.learning.gradient.config import randomization_of
from airworthy.learning.native_ppo import PpoTrainingOptions
from airworthy.simulation import Randomization
from airworthy.vehicles import Vehicle, vehicle

TOGETHER = Randomization(posterior=True)


@pytest.fixture(scope="module")
def craft() -> Vehicle:
    return identified()


@pytest.mark.parametrize("task", [MotorCommand(episode_steps=5), PositionByVelocity(episode_steps=5)], ids=["rotors", "law"])
def test_the_kernel_draws_as_its_twin(craft: Vehicle, task: Any) -> None:
    spread = replace(TOGETHER, rotor=0.02)
    environments = VectorTask(task, 64, vehicle=craft, seed=2, randomization=spread)
    twin = VectorTwin(environments)
    draw = np.random.default_rng(1)
    for _ in range(12):
        actions = draw.uniform(-0.1, 0.1, (64, environments.action_count)).astype(np.float32)
        expected, result = twin.step(actions), environments.step(actions)
        np.testing.assert_array_equal(result.truncated, expected.truncated)
        np.testing.assert_allclose(environments._host["parameters"][:, :64], twin.parameters, rtol=2e-5, atol=1e-9)
    assert int(environments.episode.min()) == 2


def test_drawn_vehicles_have_the_deviations_of_the_distribution(craft: Vehicle) -> None:
    environments = VectorTask("motor_command", 16384, vehicle=craft, seed=2, randomization=TOGETHER)
    told = craft.uncertainty
    assert told is not None
    sd = dict(zip(told.names, told.sd, strict=True))
    mass, curve = -np.log(environments.parameter("mass_inverse")[0]), environments.parameter("rotor_thrust")[1:3]
    thrust = np.log(curve[0] * STATE + curve[1] * STATE**2)
    assert mass.std() == pytest.approx(sd["mass"], rel=0.03)
    assert thrust.std() == pytest.approx(sd["thrust"], rel=0.03)
    # Together: what hover needs is known far better than either.
    assert np.corrcoef(mass, thrust)[0, 1] == pytest.approx(0.95, abs=0.01)
    delay = environments.parameter("command_delay")[0]
    assert delay.std() / delay.mean() == pytest.approx(sd["command_delay"] / craft.command_delay, rel=0.03)


def test_flights_are_the_same_alone_and_in_any_batch(craft: Vehicle) -> None:
    ids = np.array([7, 3, 900])
    whole = VectorTask(MotorCommand(episode_steps=6), 3, vehicle=craft, flight_ids=ids, randomization=TOGETHER, seed=9)
    alone = VectorTask(MotorCommand(episode_steps=6), 1, vehicle=craft, flight_ids=ids[[2]], randomization=TOGETHER, seed=9)
    draw = np.random.default_rng(0)
    for _ in range(20):
        a = draw.uniform(-0.3, 0.3, (3, 4)).astype(np.float32)
        found = whole.step(a).observation.copy()
        np.testing.assert_array_equal(alone.step(a[[2]]).observation[0], found[2])
    again = VectorTask(MotorCommand(episode_steps=6), 3, vehicle=craft, flight_ids=ids, randomization=TOGETHER, seed=9)
    assert again._host["parameters"].tobytes() != whole._host["parameters"].tobytes()
    assert np.any(again.parameter("mass_inverse") != again.parameter("mass_inverse")[:, :1])


def test_rejected_draws_find_others() -> None:
    wide = identified(wide=6.0)
    environments = VectorTask("motor_command", 2048, vehicle=wide, seed=2, randomization=TOGETHER)
    first = environments._host["parameters"][:, :2048]
    # None flies as recorded, though a tenth of the first draws were no vehicles.
    assert np.all(np.any(first != environments._host["nominal"][:, :2048], axis=0))
    p = parameters_of(environments.shape)
    assert environments.shape.posterior is not None
    lift = environments.parameter("rotor_max")[:4]
    curve = environments.parameter("rotor_thrust").reshape(4, 3, -1)
    push = (curve[:, 0] + curve[:, 1] * lift + curve[:, 2] * lift**2).sum(axis=0)
    assert np.all(push > wide.gravity / environments.parameter("mass_inverse")[0])
    assert p.layout is not None


def test_the_gpu_form_gives_the_bytes_of_the_lanes(monkeypatch: pytest.MonkeyPatch, craft: Vehicle) -> None:
    """One environment after the other, with late rotors and drawn vehicles, run here without a GPU."""
    task = MotorCommand(episode_steps=7)
    lanes = VectorTask(task, 32, vehicle=craft, randomization=TOGETHER, seed=4)
    scalar = native_kernel(
        "environment_scalar_late", "#define SCALAR_PATH\n" + environment_source(lanes.shape), KERNEL_ARGUMENTS
    )
    monkeypatch.setattr(vector_task, "environment_kernel", lambda shape: scalar)
    monkeypatch.setattr(vector_task, "CPU_LANES", 1)
    single = VectorTask(task, 32, vehicle=craft, randomization=TOGETHER, seed=4)
    draw = np.random.default_rng(0)
    for _ in range(16):
        actions = draw.uniform(-0.3, 0.3, (32, 4)).astype(np.float32)
        np.testing.assert_array_equal(single.step(actions).observation, lanes.step(actions).observation)
    for name in ("parameters", "state"):
        np.testing.assert_array_equal(single._host[name][:, :32], lanes._host[name][:, :32], err_msg=name)


def test_vehicles_that_tell_nothing_are_refused() -> None:
    with pytest.raises(AirworthyError, match="lmf2 tells no uncertainty, from which identified vehicles are drawn"):
        VectorTask("motor_command", 16, vehicle=vehicle("lmf2"), randomization=TOGETHER)


def test_trainings_of_before_go_on() -> None:
    options = PpoTrainingOptions(randomization=Randomization(mass=0.1))
    before = json.loads(json.dumps(asdict(options)))
    for name in ("posterior", "widen"):
        del before["randomization"][name]
    assert options.differences(before) == []
    told = replace(options, randomization=TOGETHER).differences(before)
    assert len(told) == 1
    assert told[0].startswith("randomize was mass=0.1")


def test_words_of_a_command_line() -> None:
    wide = Randomization(posterior=True, widen=1.5, rotor=0.02)
    for parse in (randomization_of, randomization):
        assert parse(("identified", "widen=1.5", "rotor=0.02")) == wide
        assert parse(("identified",)) == TOGETHER
        with pytest.raises(AirworthyError, match=r"--randomize: mass is 0\.1, which an identified vehicle"):
            parse(("identified mass=0.1",))
        with pytest.raises(AirworthyError, match="Unknown quantity to randomize 'posterior'"):
            parse(("posterior=1",))
    with pytest.raises(AirworthyError, match="lmf2 tells no uncertainty"):
        check_spread(FlyConfig(vehicle=("lmf2",), randomize=("identified",)), [vehicle("lmf2")])
