"""Aerial Gym's position set-points: published formulas written out once more, the twin, and the controllers in the launch."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.learning import VectorTask
from airworthy.learning.environments import learning_task
from airworthy.learning.environments.tasks import PositionByAcceleration, PositionByAttitude, PositionByVelocity
from airworthy.learning.environments.twin import VectorTwin
from airworthy.simulation import Randomization, Simulator, SimulatorConfig

SPREAD = Randomization(mass=0.2, inertia=0.3, thrust=0.1, lag=0.3)


def moments(count: int, seed: int = 0) -> tuple[Array, Array, Array, Array]:
    """States before and after a step, actions and those before; some far off, most close by."""
    rng = np.random.default_rng(seed)
    reach = 10.0 ** rng.uniform(-2.0, 1.2, count)
    states = []
    for _ in range(2):
        q = rng.normal(size=(4, count))
        parts = [reach * rng.normal(size=(3, count)), rng.normal(size=(3, count)), q / np.linalg.norm(q, axis=0)]
        states.append(np.concatenate([*parts, rng.normal(size=(3, count)), np.ones((4, count))]))
    states[1][:3] = states[0][:3] * (1.0 + 0.02 * rng.normal(size=count))
    return states[0], states[1], *rng.uniform(-1.0, 1.0, (2, 4, count))


def axes_of(q: Array) -> Array:
    """Rotation matrices by the axis and angle of a quaternion x, y, z, w, (3, 3, n)."""
    v, w = q[:3], q[3]
    k = np.zeros((3, 3, q.shape[1]))
    k[0, 1], k[0, 2], k[1, 0], k[1, 2], k[2, 0], k[2, 1] = -v[2], v[1], v[2], -v[0], -v[1], v[0]
    eye = np.eye(3)[:, :, None]
    return np.asarray(eye + 2.0 * w * k + 2.0 * np.einsum("ijn,jkn->ikn", k, k))


def e(x: Array, m: float, a: float) -> Array:
    return np.asarray(m * np.exp(-a * x**2))


def a_(x: Array, m: float, a: float) -> Array:
    return np.asarray(m * np.exp(-a * np.abs(x)))


def ap(x: Array, m: float, a: float) -> Array:
    return np.asarray(m * (np.exp(-a * np.abs(x)) - 1.0))


def judged(task: Any, given: tuple[Array, Array, Array, Array]) -> tuple[dict[str, Array], Array]:
    before, after, action, past = (tuple(x) for x in given)
    found = task.judge(before, after, action, past, SimpleNamespace(touched=0.0))
    return found.terms, sum(np.asarray(x) for x in found.terms.values())


def test_velocity_reward_is_the_published_one() -> None:
    given = before, after, action, past = moments(500)
    terms, total = judged(PositionByVelocity(), given)
    d, d0 = (np.linalg.norm(x[:3], axis=0) for x in (after, before))
    r = axes_of(after[6:10])
    pos = e(d, 2, 1) + e(d, 3, 10) + a_(d, 3, 50)
    speed = e(np.linalg.norm(after[3:6], axis=0), 1, 3)
    act, diff, closer = ap(action, 0.2, 4).sum(0), ap(action - past, 0.3, 6).sum(0), 400 * (d0 - d)
    yaw = a_(np.arctan2(r[1, 0], r[0, 0]), 2, 3)
    expected = pos + (20 - d) / 40 + pos * (speed + act + closer / 10) + act + diff + closer + yaw
    lost = d > 10
    assert 20 < lost.sum() < 250
    np.testing.assert_allclose(total, np.where(lost, -50.0, expected), rtol=1e-6, atol=1e-6)
    parts = {"position": pos, "effort": act, "change": diff, "closer": closer, "yaw": yaw, "distance": (20 - d) / 40}
    for name, value in parts.items():
        np.testing.assert_allclose(terms[name], np.where(lost, 0.0, value), rtol=1e-6, atol=1e-6, err_msg=name)
    slower, _ = judged(PositionByVelocity(rate=50.0), given)
    np.testing.assert_allclose(slower["closer"], 2.0 * terms["closer"], rtol=1e-12)  # dt / 0.01 s


@pytest.mark.parametrize("published", [False, True])
def test_acceleration_reward_is_the_published_one(published: bool) -> None:
    before, after, action, past = moments(500, 1)
    terms, total = judged(PositionByAcceleration(as_published=published), (before, after, action, past))
    d, d0 = (np.linalg.norm(x[:3], axis=0) for x in (after, before))
    commands = []
    for out, state in ((action, after), (past, before)):
        command = np.concatenate([2.0 * out[:3], out[3:]])
        if published:  # world to vehicle frame, by yaw alone
            r = axes_of(state[6:10])
            yaw = np.arctan2(r[1, 0], r[0, 0])
            c, s = np.cos(yaw), np.sin(yaw)
            command[:2] = c * command[0] + s * command[1], -s * command[0] + c * command[1]
        commands.append(command)
    r = axes_of(after[6:10])
    pos = e(d, 2, 1) + e(d, 3, 10) + a_(d, 3, 50)
    speed = e(np.linalg.norm(after[3:6], axis=0), 2, 2.5)
    act, diff = ap(commands[0], 0.3, 4).sum(0), ap(commands[0] - commands[1], 0.4, 6).sum(0)
    closer = np.where(d0 > d, 400 * (d0 - d), 1200 * (d0 - d))
    yaw_term = a_(np.arctan2(r[1, 0], r[0, 0]), 3, 5)
    expected = pos + pos * (closer / 9 + act / 3 + speed / 1.5) + act + diff + closer + yaw_term + e(d, 2, 1) + 0.2 * speed
    np.testing.assert_allclose(total, np.where(d > 10, -50.0, expected), rtol=1e-6, atol=1e-6)
    near = d <= 10
    parts = {"effort": act, "change": diff, "closer": closer, "yaw": yaw_term, "speed": 0.2 * speed, "near": e(d, 2, 1)}
    for name, value in parts.items():
        np.testing.assert_allclose(terms[name][near], value[near], rtol=1e-6, atol=1e-6, err_msg=name)


def test_attitude_reward_is_the_published_one() -> None:
    given = moments(500, 2)
    after = given[1]
    _, total = judged(PositionByAttitude(), given)
    d, r = np.linalg.norm(after[:3], axis=0), axes_of(after[6:10])
    pos, t = e(d, 3, 8) + e(d, 2, 4), np.abs(1 - r[2, 2])
    up, spin = 0.2 / (0.1 + t**2), 3 / (1 + (after[10:13] ** 2).sum(0))
    expected = pos + (20 - d) / 40 + pos * (up + spin)
    np.testing.assert_allclose(total, np.where(d > 8, -20.0, expected), rtol=1e-6, atol=1e-6)


def test_observations_are_the_published_ones() -> None:
    _, state, action, _ = moments(300, 3)
    r, zeros = axes_of(state[6:10]), np.zeros((16, 300))
    p = SimpleNamespace(past=tuple(action))
    seen = np.array(PositionByVelocity().observe(tuple(state), tuple(zeros), p))
    np.testing.assert_allclose(seen[:3], -state[:3])
    q = state[6:10] * np.sign(state[9])
    np.testing.assert_allclose(seen[3:7], q, atol=1e-9)  # through Euler angles and back
    np.testing.assert_allclose(seen[7:10], np.einsum("jin,jn->in", r, state[3:6]), atol=1e-9)
    np.testing.assert_allclose(seen[10:], np.concatenate([state[10:13], action]))
    noisy = np.array(PositionByVelocity().observe(tuple(state), tuple(zeros + 1.0), p)) - seen
    np.testing.assert_allclose(noisy[:3], 0.03)
    np.testing.assert_allclose(noisy[7:13], 0.02)
    assert (np.abs(noisy[3:7]).max(axis=0) > 5e-3).all()
    np.testing.assert_allclose(PositionByVelocity().observe_critic(tuple(state), p), [*seen[:3], *q, *seen[7:]], atol=1e-12)


@pytest.mark.parametrize("name", ["position_setpoint_velocity", "position_setpoint_acceleration", "position_setpoint"])
def test_equals_its_twin_with_resets(name: str) -> None:
    against_twin(name, 17, steps=30, episode=12)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 17, 1024])
@pytest.mark.parametrize("name", ["position_setpoint_velocity", "position_setpoint_acceleration", "position_setpoint"])
def test_equals_its_twin_over_200_steps_with_resets(name: str, count: int) -> None:
    against_twin(name, count, steps=200, episode=60)


def against_twin(name: str, count: int, steps: int, episode: int) -> None:
    """On one vehicle: base_quadrotor's published gains ask for tens of times its thrust, and that times float32's rounding
    differs by more than 1e-5 rad/s."""
    environments = VectorTask(learning_task(name, episode_steps=episode), count, vehicle="lmf2", randomization=SPREAD, seed=5)
    rng, ended = np.random.default_rng(1), 0
    twin = VectorTwin(environments)
    for k in range(steps):
        actions = rng.uniform(-1.2, 1.2, (count, 4)).astype(np.float32)
        expected, result = twin.step(actions), environments.step(actions)
        np.testing.assert_array_equal(result.truncated, expected.truncated)
        np.testing.assert_allclose(result.observation, expected.observation, rtol=1e-5, atol=1e-5)
        # A metre of progress counts up to 1200 (1 + 7 / 9), and float32 tells distances below 4 m apart by 2.4e-7.
        np.testing.assert_allclose(result.reward, expected.reward, rtol=1e-5, atol=2200.0 * 2.4e-7)
        ended += int(result.ends.ended.sum())
        if k % 5 == 4:  # a flight doubles any rounding
            twin = VectorTwin(environments)
    assert ended >= steps // episode * count


def test_the_launch_flies_as_the_simulator_with_the_published_controller() -> None:
    """The same vehicle, gains, command and rate in the project's simulator."""
    task = PositionByVelocity(noise=False)
    environments = VectorTask(task, 16, seed=1)
    rate = 1.0 / environments._shape.dt
    config = SimulatorConfig(
        level="velocity", physics_rate=rate, control_rate=100.0, control=task.control_for(environments.vehicle),
        wrench_noise=False, disturbance=False,
    )  # fmt: skip
    simulator = Simulator(environments.vehicle, config, 16)
    for field, rows in (
        ("position", (0, 3)),
        ("velocity", (3, 6)),
        ("attitude", (6, 10)),
        ("rate", (10, 13)),
        ("rotor_speed", (13, 17)),
    ):
        simulator.field(field)[:] = environments.state[rows[0] : rows[1]].T
    command = np.tile([0.5, -0.3, 0.2, 0.4], (16, 1)).astype(np.float32)
    for _ in range(100):
        environments.step(command)
        simulator.step(command)
    np.testing.assert_allclose(environments.state[:3].T, simulator.field("position"), atol=2e-4)
    np.testing.assert_allclose(environments.state[3:6].T, simulator.field("velocity"), atol=2e-4)


@pytest.mark.parametrize("task", [PositionByVelocity(noise=False), PositionByAcceleration(noise=False), PositionByAttitude()])
def test_a_proportional_policy_arrives_and_is_rewarded(task: Any) -> None:
    """Commands mean what they say: towards the target in the vehicle frame, nose along world x."""
    environments = VectorTask(task, 64)
    for _ in range(480):
        s = environments.state.astype(float)
        r = axes_of(s[6:10])
        yaw = np.arctan2(r[1, 0], r[0, 0])
        c, d = np.cos(yaw), np.sin(yaw)
        level = np.array([[c, d, 0 * c], [-d, c, 0 * c], [0 * c, 0 * c, 1 + 0 * c]])
        place, velocity = (np.einsum("ijn,jn->in", level, s[rows]) for rows in (slice(0, 3), slice(3, 6)))
        pull = -place - 1.6 * velocity  # [m/s^2]
        actions = {
            "velocity": [*(-1.2 * place), -yaw],
            "acceleration": [*(0.5 * pull), -yaw],
            "attitude_thrust": [pull[2] / 9.81, -pull[1] / 9.81, pull[0] / 9.81, -yaw],
        }
        result = environments.step(np.array(actions[task.level]).T)
        assert not result.ends.ended.any()
    assert np.linalg.norm(environments.state[:3], axis=0).max() < 0.05
    assert result.reward.min() > 15.0


def test_other_vehicles_get_gains_of_their_own_and_unstable_ones_are_told() -> None:
    environments = VectorTask(PositionByVelocity(noise=False), 16, vehicle="x500")
    for _ in range(300):
        environments.step(np.zeros((16, 4)))
    assert np.abs(environments.state[3:6]).max() < 0.05
    with pytest.raises(AirworthyError, match="commands velocity, and no rotors"):
        environments.command(np.zeros(4))
    with pytest.raises(AirworthyError, match="unstable at 100 steps of physics a second: give the task more"):
        VectorTask(PositionByAttitude(physics_steps=1), 16)
