"""Learning tasks of vehicles whose rotors are commanded late: the kernel, its twin, and the simulator fly the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.learning.environments.tasks.motor_command import MotorCommand
from airworthy.learning.environments.tasks.position import PositionByVelocity
from airworthy.learning.environments.twin import VectorTwin
from airworthy.learning.environments.vector_task import VectorTask
from airworthy.learning.gradient import DifferentiableSimulator
from airworthy.learning.gradient.dynamics import surrogate_of
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.vehicles import Vehicle, vehicle


def late(delay: float, name: str = "lmf2") -> Vehicle:
    return replace(vehicle(name), command_delay=delay, name=f"late_{name}")


@pytest.mark.parametrize("task", [MotorCommand(episode_steps=9), PositionByVelocity(episode_steps=9)], ids=["rotors", "law"])
@pytest.mark.parametrize("delay", [0.0043, 0.0307])
def test_the_kernel_is_its_twin(task: Any, delay: float) -> None:
    environments = VectorTask(task, 32, vehicle=late(delay), seed=2)
    draw = np.random.default_rng(1)
    ended = 0
    twin = VectorTwin(environments)
    for k in range(24):
        if k % 4 == 0:
            twin = VectorTwin(environments)
        actions = draw.uniform(-0.3, 0.3, (32, environments.action_count)).astype(np.float32)
        expected, result = twin.step(actions), environments.step(actions)
        np.testing.assert_array_equal(result.terminated, expected.terminated)
        # Rounding of four steps: 6e-5 of a reward without a dead time, too.
        np.testing.assert_allclose(result.observation, expected.observation, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(result.reward, expected.reward, rtol=1e-4, atol=1e-4)
        ended += int(result.ends.ended.sum())
    assert ended >= 32


def test_it_is_what_the_simulator_flies() -> None:
    item = late(0.0137)
    task = MotorCommand(noise=False)
    environments = VectorTask(task, 1, vehicle=item, seed=2)
    rate = task.rate * environments.shape.substeps
    config = SimulatorConfig(
        physics_rate=rate, control_rate=task.rate, level="rotor_speed", wrench_noise=False, disturbance=False
    )
    simulator = Simulator(item, config, 1)
    state = environments.state[:, 0].astype(float)
    simulator.reset(
        position=state[None, :3],
        velocity=state[None, 3:6],
        attitude=state[None, 6:10],
        rate=state[None, 10:13],
        rotor_speed=state[None, 13:],
    )
    draw = np.random.default_rng(3)
    for _ in range(12):
        action = draw.uniform(-0.4, 0.4, (1, 4)).astype(np.float32)
        environments.step(action)
        simulator.step(environments.command(action[0])[None])
        np.testing.assert_allclose(simulator.rotor_speed[0], environments.state[13:, 0], rtol=2e-4, atol=1e-2)
        np.testing.assert_allclose(simulator.rate[0], environments.state[10:13, 0], rtol=1e-3, atol=1e-3)


def test_a_late_flight_depends_on_no_other_and_goes_on_from_what_was_saved() -> None:
    whole = VectorTask("motor_command", 6, vehicle=late(0.012), seed=4)
    alone = VectorTask("motor_command", 1, vehicle=late(0.012), seed=4, flight_ids=[3])
    draw = np.random.default_rng(0)
    for k in range(20):
        actions = draw.uniform(-0.5, 0.5, (6, 4)).astype(np.float32)
        found = whole.step(actions).observation.copy()
        np.testing.assert_array_equal(alone.step(actions[3:4]).observation[0], found[3])
        if k == 10:
            kept = whole.saved()
            again = VectorTask("motor_command", 6, vehicle=late(0.012), seed=9)
            again.restore(kept)
        if k > 10:
            np.testing.assert_array_equal(again.step(actions).observation, found)


def test_gradients_refuse_it() -> None:
    with pytest.raises(AirworthyError, match="dead time of 12 ms from command to rotor, through which no gradient is taken"):
        surrogate_of(late(0.012), SimulatorConfig(control_rate=100.0), 1)
    with pytest.raises(AirworthyError, match="through which no gradient is taken"):
        DifferentiableSimulator(late(0.012), "motor_command", env_count=4)
