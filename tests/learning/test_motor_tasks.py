"""px4_motor_command, l2f_position, recovery and track: published formulas written out once more, twins, starts, memory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import to_matrix
from airworthy.learning import VectorTask
from airworthy.learning.environments import learning_task, thrust_command
from airworthy.learning.environments.tasks import L2fPosition, PathTracking, Px4MotorCommand, Recovery
from airworthy.learning.environments.tasks.l2f_position import l2f_crazyflie
from airworthy.learning.environments.tasks.track import PATHS
from airworthy.learning.environments.twin import VectorTwin
from airworthy.simulation import Randomization
from airworthy.vehicles import hover_speed

SPREAD = Randomization(mass=0.2, inertia=0.3, thrust=0.1, lag=0.3)
NAMES = ("px4_motor_command", "l2f_position", "recovery", "track", "motor_track")


def against_twin(name: str, count: int, steps: int, episode: int) -> None:
    environments = VectorTask(learning_task(name, episode_steps=episode), count, randomization=SPREAD, seed=5)
    rng, ended = np.random.default_rng(1), 0
    twin = VectorTwin(environments)
    for k in range(steps):
        noise = 0.2 * rng.normal(size=(count, environments.action_count))
        actions = (np.asarray(environments.hover_action) + noise).astype(np.float32)
        expected, result = twin.step(actions), environments.step(actions)
        np.testing.assert_array_equal(result.truncated, expected.truncated)
        np.testing.assert_array_equal(result.terminated, expected.terminated)
        np.testing.assert_allclose(result.observation, expected.observation, rtol=1e-5, atol=1e-5)
        # A metre of progress counts up to 100, and float32 tells distances below 8 m apart by 4.8e-7.
        np.testing.assert_allclose(result.reward, expected.reward, rtol=1e-5, atol=1e-5 + 200.0 * 4.8e-7)
        np.testing.assert_allclose(environments.memory, twin.memory, rtol=1e-5, atol=1e-5)
        ended += int(result.ends.ended.sum())
        if twin.level.size:  # of all steps of the batch, which its twin does not count
            twin.level[0] = environments.level
        if k % 5 == 4:  # a flight doubles any rounding
            twin = VectorTwin(environments)
    assert ended >= steps // episode * count


@pytest.mark.parametrize("name", NAMES)
def test_equals_its_twin_with_resets(name: str) -> None:
    against_twin(name, 17, steps=40, episode=15)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 17, 1024])
@pytest.mark.parametrize("name", NAMES)
def test_equals_its_twin_over_200_steps_with_resets(name: str, count: int) -> None:
    against_twin(name, count, steps=200, episode=60)


# ---- thrusts that are asked for ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "c", [(0.0, 0.0, 2e-8), (0.0, -5e-6, 2.2e-8), (0.1, 1.0, 0.0), (0.0, 0.004, 0.0), (0.0, 1.0, 1e-9), (0.2, 3e-5, 1e-8)]
)
def test_rotor_states_give_the_thrust_that_is_asked_for(c: tuple[float, float, float]) -> None:
    """The polynomial of the state is the thrust, to float32 also where its square hardly counts, and is cut at both ends."""
    low, high = 200.0, 3000.0
    ends = [c[0] + c[1] * w + c[2] * w * w for w in (low, high)]
    wanted = np.linspace(*ends, 101)
    for kind, close in ((np.float64, 1e-12), (np.float32, 2e-6)):
        p = SimpleNamespace(rotor_thrust=(tuple(map(kind, c)),), rotor_min=(kind(low),), rotor_max=(kind(high),))
        (w,) = thrust_command((wanted.astype(kind),), p)
        assert w.dtype == kind
        np.testing.assert_allclose(c[0] + c[1] * w + c[2] * w.astype(float) ** 2, wanted, rtol=close)
        (w,) = thrust_command((np.array([-1.0, 2.0 * ends[1]], kind),), p)
        np.testing.assert_array_equal(w, [low, high])


def test_a_vehicle_whose_thrust_is_linear_hovers_by_the_action_of_hover() -> None:
    """As the task's own vehicle does: rotors at hover, and nothing but the fall that the start's tilt gives both alike."""
    fallen = []
    for name in ("x500", "carl"):
        environments = VectorTask("px4_motor_command", 16, vehicle=name)
        hover = np.tile(environments.hover_action, (16, 1)).astype(np.float32)
        wanted = environments.command(hover[0])
        np.testing.assert_allclose(wanted, hover_speed(environments.vehicle), rtol=1e-2)
        begun = environments.state[5].copy()
        for _ in range(10):
            environments.step(hover)
        fallen.append(environments.state[5] - begun)
    np.testing.assert_allclose(fallen[1], fallen[0], atol=2e-3)


# ---- rewards ---------------------------------------------------------------------------------------------------------


def moments(count: int, seed: int, spread: float) -> tuple[Array, Array, Array, Array]:
    """States before and after a step, actions and those before."""
    rng, states = np.random.default_rng(seed), []
    for _ in range(2):
        q = rng.normal(size=(4, count))
        parts = [spread * rng.normal(size=(3, count)), rng.normal(size=(3, count)), q / np.linalg.norm(q, axis=0)]
        states.append(np.concatenate([*parts, 0.3 * rng.normal(size=(3, count)), np.ones((4, count))]))
    return states[0], states[1], *rng.uniform(-1.0, 1.0, (2, 4, count))


def e(x: Array, m: float, a: float) -> Array:
    return np.asarray(m * np.exp(-a * x**2))


def total(task: Any, given: tuple[Array, ...], p: Any) -> tuple[Array, Any]:
    found = task.judge(*(tuple(x) for x in given), p)
    return np.asarray(sum(np.asarray(x) for x in found.terms.values())), found


def test_the_px4_reward_is_the_published_one() -> None:
    given = before, after, action, past = moments(400, 1, 0.1)
    x, y, z = after[6:9]
    up, forward = 1 - 2 * (x**2 + y**2), 1 - 2 * (y**2 + z**2)
    error = after[:3] * np.array([[1.0], [1.0], [13.0]])
    u, u0 = 4.0 * (action + 1.0), 4.0 * (past + 1.0)
    pos = (e(error, 10, 10) + e(error, 2, 2)).sum(0)
    upright = e(1 - up, 2.5, 5) + e(1 - up, 2.5, 2)
    align = e(1 - forward, 4, 5) + e(1 - forward, 2, 2)
    ang, vel = e(after[10:13], 0.75, 10).sum(0), e(after[3:6], 1, 5).sum(0)
    effort = (e(u - 9.81 * 1.6559999883174896 / 4, 0.01, 10) - 0.01).sum(0)
    diff = (e(u - u0, 0.5, 6) - 0.5).sum(0)
    nearer = np.linalg.norm(before[:3], axis=0) - np.linalg.norm(after[:3], axis=0)
    toward = np.where(nearer >= 0, 50 * nearer, 100 * nearer)
    expected = toward + (pos * (align + vel + ang + diff) + ang + vel + upright + pos + effort) / 100
    found, _ = total(Px4MotorCommand(), given, SimpleNamespace())
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def l2f_record(progress: float = 0.0) -> Any:
    vehicle = l2f_crazyflie()
    return SimpleNamespace(
        hover=hover_speed(vehicle),
        rotor_min=(0.0,) * 4,
        rotor_max=(vehicle.rotors[0].speed_max,) * 4,
        progress=progress,
        touched=0.0,
    )


@pytest.mark.parametrize("stage", [0, 1, 5, 14])
def test_the_l2f_reward_of_2024_with_its_growing_weights(stage: int) -> None:
    given = _, after, action, _ = moments(400, 2, 0.3)
    wp, wv, wa = 5.0, 0.01, 0.01
    for _ in range(stage):
        wp, wv, wa = min(1.2 * wp, 40.0), min(1.4 * wv, 1.0), min(1.4 * wa, 1.0)
    p2, v2 = (after[:3] ** 2).sum(0), (after[3:6] ** 2).sum(0)
    expected = 2 - 0.5 * (wp * p2 + 5 * (1 - after[9] ** 2) + wv * v2 + wa * ((action - 0.334) ** 2).sum(0))
    lost = (np.abs(after[:3]) > 0.6).any(axis=0)
    found, judged = total(L2fPosition(as_published=True), given, l2f_record(stage / 14))
    assert 20 < lost.sum() < 200
    np.testing.assert_allclose(found, np.where(lost, 0.0, expected), rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(np.asarray(judged.terminated) > 0.5, lost)


def test_the_l2f_reward_of_the_zoo() -> None:
    given = _, after, action, _ = moments(400, 3, 0.5)
    # Steady thrust of a quarter of the weight, from the published polynomial.
    u = np.roots([0.09223048, 0.01437313, 0.00352526 - 0.0306 * 9.81 / 4]).max()
    angle = 2 * np.arccos(1 - np.abs(after[8]))
    effort = ((0.5 * (action + 1) - u) ** 2).sum(0)
    p, v = np.linalg.norm(after[:3], axis=0), np.linalg.norm(after[3:6], axis=0)
    expected = 1 - 0.1 * (10 * p + 2.5 * angle + 0.05 * v + 0.1 * effort)
    lost = (np.abs(after[:3]) > 1.0).any(axis=0)
    found, _ = total(L2fPosition.newer(), given, l2f_record())
    np.testing.assert_allclose(found, np.where(lost, 0.0, expected), rtol=1e-6, atol=1e-6)


def test_the_track_reward_is_the_published_one() -> None:
    given = _, after, action, past = moments(400, 4, 0.4)
    task = PathTracking(path="eight_normal")
    p = SimpleNamespace(
        age=np.full(400, 37.0), memory=(1.0 + 0.0 * after[0], *(0.0 * after[0] + 1.5 for _ in range(13)), 0.0, 0.0, 0.0)
    )
    w = 2 * np.pi / 5.5 * 0.38
    reference = np.array([np.sin(w), np.sin(w) * np.cos(w), 0.0])
    d = np.linalg.norm(after[:3] - reference[:, None], axis=0)
    tilt = 2 * (after[6] ** 2 + after[7] ** 2)
    near, spin = 5 * np.exp(-d), np.linalg.norm(after[10:13], axis=0)
    smooth = 2 * np.exp(-np.linalg.norm(action - past, axis=0))
    expected = near + near * (0.5 / (1 + tilt**2) + 0.5 / (1 + spin**2)) + smooth
    found, judged = total(task, given, p)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(np.asarray(judged.terminated) > 0.5, d > 1.0)


# ---- starts and memory -----------------------------------------------------------------------------------------------


def test_l2f_flights_begin_and_are_pushed_as_published() -> None:
    environments = VectorTask("l2f_position", 4000, seed=1)
    s, m = environments.state, environments.memory
    at_goal = (s[:3] == 0.0).all(axis=0)
    assert at_goal.mean() == pytest.approx(0.1, abs=0.015)
    free = ~at_goal
    assert np.abs(s[:3]).max() <= 0.2
    assert np.abs(s[[3, 4, 5, 10, 11, 12]]).max() <= 1.0
    angle = 2 * np.arccos(np.clip(s[9, free], -1, 1))
    assert angle.max() <= np.pi / 2 + 1e-3
    assert angle.mean() == pytest.approx(np.pi / 4, rel=0.03)
    weight = 0.0306 * 9.81
    np.testing.assert_allclose(m[-6:-3].std(axis=1), weight / 20, rtol=0.05)
    np.testing.assert_allclose(m[-3:].std(axis=1), weight / 10_000, rtol=0.05)
    push = m[-6:].copy()
    first, second = (np.full((4000, 4), x, np.float32) for x in (0.5, 0.7))
    environments.step(first)
    seen = environments.step(second).observation[free]
    assert environments.observation_count == 18 + 32 * 4
    np.testing.assert_array_equal(seen[:, 18:22], second[free])
    np.testing.assert_array_equal(seen[:, 22:26], first[free])
    np.testing.assert_allclose(seen[:, 26:], environments.hover_action[0], rtol=1e-6)
    np.testing.assert_array_equal(environments.memory[-6:], push)


def test_l2f_flights_begin_as_the_programs_draw_them() -> None:
    """RLtools' zoo: angles up to 1 rad, rotors up to half speed, past actions that hold them; neither noise nor push."""
    environments = VectorTask(L2fPosition.newer(), 4000, seed=1)
    s, at_goal = environments.state, (environments.state[:3] == 0.0).all(axis=0)
    share = s[13:] / 2272.6
    assert 0.0 <= share.min() < 0.01 < 0.49 < share.max() <= 0.5
    for some in (at_goal, ~at_goal):
        # Each rotor by itself, also where the draw has told that a flight is guided.
        np.testing.assert_allclose(share[:, some].mean(axis=1), 0.25, atol=0.03)
        assert np.abs(np.corrcoef(share[:, some]) - np.eye(4)).max() < 0.2
    angle = 2 * np.arccos(np.clip(s[9, ~at_goal], -1, 1))
    assert angle.max() <= 1.0 + 1e-3
    assert angle.mean() == pytest.approx(0.5, rel=0.03)
    np.testing.assert_array_equal(environments.memory[-6:], 0.0)
    seen = environments.observation
    np.testing.assert_allclose(seen[:, 18:22], 2 * share.T - 1, atol=1e-6)
    np.testing.assert_array_equal(seen[:, 18:22], seen[:, -4:])
    np.testing.assert_array_equal(seen[:, :3], s[:3].T)


def test_l2f_of_2024_flies_its_own_vehicle() -> None:
    """Hover at the action that the published reward counts from; attitudes uniform among rotations of up to 90 degrees."""
    environments = VectorTask(L2fPosition.published(), 4000, seed=2)
    assert environments.hover_action == pytest.approx(0.334, abs=1e-3)
    free = (environments.state[:3] != 0.0).any(axis=0)
    rng = np.random.default_rng(0)
    q = rng.normal(size=(4, 200_000))
    drawn = 2 * np.arccos(np.abs(q[3] / np.linalg.norm(q, axis=0)))
    drawn = drawn[drawn <= np.pi / 2]
    angle = 2 * np.arccos(np.clip(environments.state[9, free], -1, 1))
    for percent in (10, 50, 90):
        assert np.percentile(angle, percent) == pytest.approx(np.percentile(drawn, percent), abs=0.03)
    np.testing.assert_allclose(environments.state[13:], 0.5 * 2272.6, rtol=1e-6)
    with pytest.raises(AirworthyError, match="least and the largest share"):
        L2fPosition(start_rotors=(0.5, 0.2))


def test_critics_of_l2f_see_the_exact_state_and_the_push() -> None:
    """Without noise, not the past actions but the rotors' states; of a flight that ends, what it was before the next began."""
    environments = VectorTask(L2fPosition(episode_steps=3), 32, seed=4)
    actions = np.random.default_rng(0).uniform(-1.0, 1.0, (3, 32, 4)).astype(np.float32)
    weight = 0.0306 * 9.81

    def expected() -> Any:
        s, m = environments.state.astype(float), environments.memory[-6:].astype(float)
        matrix = to_matrix(s[6:10].T).reshape(32, 9)
        spun = 2.0 * s[13:] / 2272.6 - 1.0
        return np.concatenate(
            [s[:3].T, matrix, s[3:6].T, s[10:13].T, spun.T, m[:3].T * 20 / weight, m[3:].T * 1e4 / weight], axis=1
        )

    before = expected()
    np.testing.assert_allclose(environments.critic_observation, before, atol=2e-6)
    for step in range(3):
        twin = VectorTwin(environments)
        result = environments.step(actions[step])
        twin.step(actions[step].astype(float))
        np.testing.assert_allclose(environments.critic_observation, expected(), atol=2e-6)
        np.testing.assert_allclose(environments.critic_observation, twin.critic_observation(), atol=1e-5)
    assert result.truncated.any()
    cut, final = result.truncated, environments.final_critic_observation
    # What policies see last differs from it by their noise alone, a few thousandths of each number.
    np.testing.assert_allclose(final[cut, :18], result.final_observation[cut, :18], atol=0.03)
    assert np.abs(final[cut, :3] - environments.critic_observation[cut, :3]).max() > 0.05
    assert VectorTask("hover", 16).critic_observation_count == 18


def test_a_push_moves_what_hovers() -> None:
    task = L2fPosition(start_m=0.0, start_angle=0.0, start_velocity=0.0, noise=False, history=1)
    environments = VectorTask(task, 32)
    hover = np.tile(environments.hover_action, (32, 1))
    force = environments.memory[-6:-3].copy()
    environments.memory[-3:] = 0.0
    for _ in range(10):
        environments.step(hover)
    np.testing.assert_allclose(environments.state[3:6], force / 0.0306 * 0.1, rtol=1e-3, atol=1e-4)


def test_throws_are_recovered_only_in_time_and_for_long_enough() -> None:
    environments = VectorTask("recovery", 3000, seed=2)
    speed, rate = (np.linalg.norm(environments.state[rows], axis=0) for rows in (slice(3, 6), slice(10, 13)))
    assert (4.9 < speed.max() <= 5.0 + 1e-5) & (9.8 < rate.max() <= 10.0 + 1e-5)
    x, y = environments.state[6], environments.state[7]
    assert abs(float((1 - 2 * (x * x + y * y)).mean())) < 0.03  # upside down as often as upright
    task = Recovery()
    calm, wild = np.zeros(17), np.zeros(17)
    calm[9] = wild[9] = 1.0
    wild[3] = 3.0

    def held(begin: int, end: int) -> float:
        memory: tuple[Any, ...] = (0.0, 0.0)
        for age in range(300):
            state = calm if begin <= age < end else wild
            memory = task.remember((), tuple(state), (), SimpleNamespace(memory=memory, age=float(age)))
        return float(memory[1])

    assert held(200, 300) == 1.0
    assert held(201, 300) == 0.0  # too late
    assert held(50, 149) == 0.0  # one step too short
    assert held(50, 150) == 1.0


def test_paths_begin_where_flights_do_and_are_what_their_names_say() -> None:
    environments = VectorTask("track", 3000, seed=3)
    memory = tuple(environments.memory.astype(float))
    assert (np.bincount(memory[0].astype(int), minlength=6) > 400).all()
    task, p = PathTracking(), SimpleNamespace(memory=memory, age=0.0)
    steps = np.arange(0, 1600)
    np.testing.assert_allclose(np.array(task.reference(0.0, p)), 0.0, atol=1e-6)
    np.testing.assert_allclose(
        environments.observation[:, :3], (np.array(task.reference(5.0, p)) - environments.state[:3]).T, atol=1e-5
    )
    speeds = {}
    for k, name in enumerate(PATHS):
        one = tuple(float(row[np.flatnonzero(memory[0] == k)[0]]) for row in memory)
        path = np.array([np.broadcast_to(x, steps.shape) for x in task.reference(steps, SimpleNamespace(memory=one))])
        speed = np.linalg.norm(np.diff(path, axis=1), axis=0) * 100.0
        assert speed.max() < 4.0, name  # nowhere a jump
        speeds[name] = speed
    assert speeds["eight_fast"].max() == pytest.approx(speeds["eight_slow"].max() * 15.0 / 3.5, rel=1e-3)
    assert np.median(speeds["pentagram"]) == pytest.approx(speeds["pentagram"].max(), rel=1e-3)  # straight edges, one speed
    assert speeds["polynomial"].min() < 0.01  # rests at each place
    assert len(np.unique(np.round(speeds["zigzag"], 3))) < 60
