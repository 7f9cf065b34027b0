"""Environments of learning tasks: against their twin and published formulas, in any batch, and what must not spread."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from airworthy.core.arrays import Array, ArrayF32
from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import native_kernel
from airworthy.core.random import Stream, flight_key, uniforms
from airworthy.learning.environments import (
    FlightConditions,
    VectorTask,
    learning_task,
    learning_tasks,
    register_task,
    vector_task,
)
from airworthy.learning.environments.drawn import drawn_rows
from airworthy.learning.environments.kernel import KERNEL_ARGUMENTS, environment_source
from airworthy.learning.environments.tasks import HoverTask, L2fPosition, MotorCommand, PositionByVelocity
from airworthy.learning.environments.twin import VectorTwin
from airworthy.learning.gradient import surrogate_of
from airworthy.simulation import Randomization, SimulatorConfig
from airworthy.simulation.parameters import randomize
from airworthy.vehicles import vehicle, write_vehicle

SPREAD = Randomization(mass=0.2, inertia=0.3, thrust=0.1, rotor=0.05, lag=0.3)


def actions_for(count: int, steps: int, width: int = 4, seed: int = 0) -> ArrayF32:
    """About hover, so that some flights last; (steps, count, width)."""
    return (0.4 + 0.4 * np.random.default_rng(seed).normal(size=(steps, count, width))).astype(np.float32)


@pytest.mark.parametrize(
    ("task", "count"), [("motor_command", 1), ("motor_command", 17), ("motor_command", 300), ("hover", 40)]
)
def test_equals_its_twin_over_many_steps_with_resets(task: str, count: int) -> None:
    against_twin(task, count, steps=60, episode=25)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 17, 1024])
@pytest.mark.parametrize("task", ["motor_command", "hover"])
def test_equals_its_twin_over_200_steps_with_resets(task: str, count: int) -> None:
    against_twin(task, count, steps=200, episode=60)


def against_twin(task: str, count: int, steps: int, episode: int) -> None:
    """The twin is set to the kernel's state every 5 steps, since a chaotic flight doubles any rounding."""
    environments = VectorTask(learning_task(task, episode_steps=episode), count, randomization=SPREAD, seed=5)
    ended = 0
    for k, actions in enumerate(actions_for(count, steps)):
        if k % 5 == 0:
            twin = VectorTwin(environments)
        expected = twin.step(actions)
        result = environments.step(actions)
        np.testing.assert_array_equal(result.terminated, expected.terminated)
        np.testing.assert_array_equal(result.truncated, expected.truncated)
        np.testing.assert_allclose(result.reward, expected.reward, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(result.observation, expected.observation, rtol=1e-5, atol=1e-5)
        for name, value in expected.terms.items():
            np.testing.assert_allclose(result.terms[name], value, rtol=1e-5, atol=1e-5, err_msg=name)
        over = result.ends.ended
        np.testing.assert_allclose(result.final_observation[over], expected.final_observation[over], rtol=1e-5, atol=1e-5)
        ended += int(over.sum())
    assert ended >= steps // episode * count


def test_the_published_reward_computed_by_hand() -> None:
    """Formulas of the specification (aerial_gym, 9.3), written out once more, on the states before and after a step."""
    environments = VectorTask(MotorCommand(noise=False, as_published=True), 64, seed=3)
    before, past = environments.state.astype(float), None
    rng = np.random.default_rng(1)
    for _ in range(3):
        actions = rng.uniform(-1.0, 1.0, (64, 4)).astype(np.float32)
        before = environments.state.astype(float).copy()
        result = environments.step(actions)
        after, alive = environments.state.astype(float), ~result.ends.ended
        if past is not None:
            reward = published_reward(before, after, actions.astype(float), past)
            np.testing.assert_allclose(result.reward[alive], reward[alive], rtol=1e-5, atol=2e-6)
        past = actions.astype(float)
    assert alive.sum() > 40


def published_reward(before: Array, after: Array, actions: Array, past: Array) -> Array:
    def peak(x: Array, m: float, a: float) -> Array:
        return m * np.exp(-a * x * x)

    x, y, z = after[6:9]
    up_z, forward_x = 1 - 2 * (x * x + y * y), 1 - 2 * (y * y + z * z)
    u, u_before = 0.7 + 0.5 * actions, 0.7 + 0.5 * past
    e = after[:3] * np.array([[1.0], [1.0], [11.0]])
    pos = (peak(e, 10, 10) + peak(e, 2, 2)).sum(0)
    upright, align = peak(1 - up_z, 2.5, 5), peak(1 - forward_x, 6, 5)
    ang, vel = peak(after[10:13], 0.3, 10).sum(0), peak(after[3:6], 1, 5).sum(0)
    effort = (peak(u - 0.372 * 9.81 / 4, 0.01, 10) - 0.01).sum(1)
    diff = (peak(u - u_before, 1.3, 6) - 1.3).sum(1)
    nearer = np.linalg.norm(before[:3], axis=0) - np.linalg.norm(after[:3], axis=0)
    toward = np.where(nearer >= 0, 10 * nearer, 15 * nearer)
    return np.asarray(toward + (pos * (align + vel + ang + diff) + ang + vel + upright + pos + effort) / 100)


def test_flights_are_the_same_alone_in_any_batch_order_and_threads() -> None:
    ids, task = np.array([7, 3, 900, 41, 2, 11]), MotorCommand(episode_steps=12)
    actions = actions_for(6, 50)
    whole = VectorTask(task, 6, flight_ids=ids, randomization=SPREAD, seed=9)
    order = np.array([4, 0, 5, 2, 1, 3])
    turned = VectorTask(task, 6, flight_ids=ids[order], randomization=SPREAD, seed=9, threads=1)
    alone = [VectorTask(task, 1, flight_ids=ids[[k]], randomization=SPREAD, seed=9) for k in range(6)]
    ended = 0
    for a in actions:
        result = whole.step(a)
        observation, reward = result.observation.copy(), result.reward.copy()
        other = turned.step(a[order])
        np.testing.assert_array_equal(other.observation, observation[order])
        np.testing.assert_array_equal(other.reward, reward[order])
        for k, single in enumerate(alone):
            mine = single.step(a[[k]])
            np.testing.assert_array_equal(mine.observation[0], observation[k])
            np.testing.assert_array_equal(mine.reward[0], reward[k])
        ended += int(result.ends.ended.sum())
    assert ended >= 6 * 4


@pytest.mark.parametrize(
    ("task", "conditions"),
    [
        (MotorCommand(episode_steps=12), FlightConditions()),
        # Memory, a push, a level, late observations and actions, starts at the goal, first ages, the ground.
        (L2fPosition(episode_steps=12, history=2), FlightConditions((0, 2), (1, 3), 0.2, True, -0.5)),
        (PositionByVelocity(episode_steps=12), FlightConditions()),
    ],
    ids=["rotors", "memory", "controller"],
)
def test_the_gpu_form_gives_the_bytes_of_the_lanes(
    monkeypatch: pytest.MonkeyPatch, task: Any, conditions: FlightConditions
) -> None:
    """One environment after the other, run here without a GPU."""
    lanes = VectorTask(task, 32, randomization=SPREAD, seed=4, conditions=conditions)
    source = "#define SCALAR_PATH\n" + environment_source(lanes._shape)
    scalar = native_kernel("environment_scalar", source, KERNEL_ARGUMENTS)
    monkeypatch.setattr(vector_task, "environment_kernel", lambda shape: scalar)
    monkeypatch.setattr(vector_task, "CPU_LANES", 1)
    single = VectorTask(task, 32, randomization=SPREAD, seed=4, conditions=conditions)
    for actions in actions_for(32, 30):
        ours, theirs = lanes.step(actions), single.step(actions)
        for name in ("observation", "reward", "terminated", "truncated"):
            np.testing.assert_array_equal(getattr(theirs, name), getattr(ours, name), err_msg=name)
        np.testing.assert_array_equal(single.memory, lanes.memory)


def test_what_is_no_number_stays_in_its_environment() -> None:
    sick, well = (VectorTask("motor_command", 64, randomization=SPREAD) for _ in range(2))
    bad = np.array([0, 17, 63])
    for k, a in enumerate(actions_for(64, 30)):
        poisoned = a.copy()
        if k == 3:
            poisoned[bad[0], 1] = np.nan
            poisoned[bad[1]] = np.inf
        if k == 5:
            sick.state[4, bad[2]] = np.nan
        mine, others = sick.step(poisoned), well.step(a)
        rest = ~np.isin(np.arange(64), bad)
        np.testing.assert_array_equal(mine.observation[rest], others.observation[rest])
        np.testing.assert_array_equal(mine.reward[rest], others.reward[rest])
        assert np.isfinite(mine.observation).all()
        assert np.isfinite(mine.reward).all()
        if k == 3:
            assert mine.terminated[bad[:2]].all()
            assert mine.ends.diverged[bad[:2]].all()
            assert not mine.ends.diverged[rest].any()
        if k == 5:
            assert mine.ends.diverged[bad[2]]


def test_each_flight_gets_another_vehicle_within_the_spread_and_none_too_weak() -> None:
    environments = VectorTask("motor_command", 2000, randomization=SPREAD, seed=2)
    masses = 1.0 / environments.parameter("mass_inverse")[0]
    nominal = vehicle("tinyprop").mass
    assert abs(masses / nominal - 1.0).max() <= 0.2 + 1e-5
    assert abs(np.mean(masses) / nominal - 1.0) < 0.01
    assert np.std(masses) / nominal == pytest.approx(0.2 / np.sqrt(3.0), rel=0.05)
    full = environments.parameter("rotor_max") ** 2
    thrust = (environments.parameter("rotor_thrust")[2::3] * full).sum(axis=0)  # tinyprop's are pure squares
    assert (thrust / (masses * 9.81)).min() > 1.2 - 1e-3
    environments.reset()
    assert (1.0 / environments.parameter("mass_inverse")[0] != masses).mean() > 0.99


@pytest.mark.parametrize("name", ["x500", "tinyprop"])
def test_vehicles_are_drawn_as_the_simulator_draws_them(name: str) -> None:
    """From the same uniform numbers the same rows; whatever is drawn, torque over thrust is a property of the propeller."""
    spread = Randomization(mass=0.2, inertia=0.3, thrust=0.1, rotor=0.05, drag=0.4, lag=0.3)
    surrogate = surrogate_of(vehicle(name), SimulatorConfig(), 64)
    layout, rows, keys = surrogate.layout, surrogate.rows, flight_key(7, np.arange(64), 0)
    expected = randomize(rows, layout, SimulatorConfig(randomization=spread), keys)
    draws = tuple(uniforms(keys, 0, Stream.PARAMETERS, 16).T)
    torque, thrust = layout.rows("rotor_torque"), layout.rows("rotor_thrust")
    assert (rows[torque] != 0.0).any(axis=1).sum() == 4
    full, weight = rows[layout.rows("rotor_max")] ** 2, 9.81 * expected[layout.offsets["mass"]]  # thrusts are pure squares
    before = (expected[thrust][2::3] * full).sum(axis=0) / weight
    for least in (0.0, float(np.median(before))):  # as drawn, and with thrust raised where it is too little
        made = drawn_rows(dict(enumerate(rows)), draws, layout, 4, spread, least)
        drawn = np.array([made[row] for row in range(len(rows))])
        factors = [drawn[part][2::3] / rows[part][2::3] for part in (torque, thrust)]
        np.testing.assert_allclose(*factors, rtol=1e-12)
        assert np.std(factors[0], axis=1).min() > 0.03
        if least:
            after = (drawn[thrust][2::3] * full).sum(axis=0) / weight
            np.testing.assert_allclose(after, np.maximum(before, least), rtol=1e-12)
        else:
            # `core.ops` has exp and log to 1e-10 each, and the exponent of a share kept is near 1.
            np.testing.assert_allclose(drawn, expected, rtol=3e-10)


def test_products_of_inertia_are_drawn_by_both_axes() -> None:
    """J becomes D J D with D^2 the factors of its axes; the drawn inverse stays the inverse, by NumPy's."""
    lopsided = replace(vehicle("tinyprop"), inertia=(0.003, 0.004, 0.005, -0.0004, 0.0007, 0.0009))
    surrogate = surrogate_of(lopsided, SimulatorConfig(), 32)
    layout, rows = surrogate.layout, surrogate.rows.astype(float)
    draws = tuple(uniforms(flight_key(3, np.arange(32), 0), 0, Stream.PARAMETERS, 16).T)
    made = drawn_rows(dict(enumerate(rows)), draws, layout, 4, Randomization(mass=0.2, inertia=0.3), 0.0)

    def matrices(held: Any, name: str) -> Array:
        xx, yy, zz, xy, xz, yz = (np.broadcast_to(held[row], 32) for row in range(*layout.rows(name).indices(layout.size)))
        return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], float).transpose(2, 0, 1)

    u = 2.0 * np.array(draws) - 1.0
    d = np.sqrt((1.0 + 0.2 * u[0]) * (1.0 + 0.3 * u[1:4])).T
    np.testing.assert_allclose(matrices(made, "inertia"), d[:, :, None] * matrices(rows, "inertia") * d[:, None, :], rtol=1e-9)
    # Nominal rows are float32 numbers, one by one.
    np.testing.assert_allclose(
        matrices(made, "inertia_inverse") @ matrices(made, "inertia"), np.tile(np.eye(3), (32, 1, 1)), atol=1e-6
    )
    assert np.abs(np.linalg.inv(matrices(made, "inertia"))[:, 0, 1]).min() > 1.0


def test_returns_lengths_and_ages() -> None:
    environments = VectorTask(MotorCommand(episode_steps=10, crash_m=100.0), 5)
    environments.age[:] = [0, 2, 4, 6, 8]  # as learners stagger episodes
    total, lengths = np.zeros(5), []
    for k, a in enumerate(actions_for(5, 10)):
        result = environments.step(a)
        total += result.reward
        over = result.truncated
        assert not result.terminated.any()
        if over.any():
            assert over.sum() == 1
            np.testing.assert_allclose(result.ends.returns[over], total[over], rtol=1e-5)
            assert result.ends.length[over] == 10
            total[over] = 0.0
            lengths.append(k + 1)
    assert lengths == [2, 4, 6, 8, 10]
    assert (environments.episode == 1).all()


def test_a_reset_of_some_leaves_the_others() -> None:
    environments = VectorTask("hover", 20)
    for a in actions_for(20, 5):
        environments.step(a)
    before, mask = environments.observation.copy(), np.arange(20) < 7
    after = environments.reset(mask=mask)
    np.testing.assert_array_equal(after[~mask], before[~mask])
    assert (after[mask] != before[mask]).any(axis=1).all()
    np.testing.assert_array_equal(environments.age, np.where(mask, 0, 5))
    first = environments.reset(seed=0).copy()
    np.testing.assert_array_equal(first, VectorTask("hover", 20, seed=0).observation)


def test_a_flight_begun_by_a_reset_is_owed_nothing_of_the_one_before() -> None:
    """Returns of the ends: of those that were begun anew from there, of the others from their beginning."""
    environments = VectorTask(MotorCommand(episode_steps=10, crash_m=100.0), 20)
    flown, mask = actions_for(20, 14), np.arange(20) < 7
    rewards = np.array([environments.step(a).reward.copy() for a in flown[:4]])
    environments.reset(mask=mask)
    results = []
    for a in flown[4:]:
        result = environments.step(a)
        rewards = np.concatenate([rewards, result.reward[None]])
        results.append((result.truncated.copy(), result.ends.returns.copy()))
    # What was cut off by the reset is of no flight, and not told as an end.
    assert not results[0][1].any()
    # The others are cut off 6 steps on, those 10.
    for step, chosen, first in ((5, ~mask, 0), (9, mask, 4)):
        ended, returns = results[step]
        np.testing.assert_array_equal(ended, chosen)
        np.testing.assert_allclose(returns[chosen], rewards[first : step + 5, chosen].sum(axis=0), rtol=1e-5)


def test_flights_that_wait_a_step_out_are_as_they_were() -> None:
    """Every array that a flight is made of, also where its own action would have ended it and drawn another vehicle."""
    environments = VectorTask(MotorCommand(), 32, seed=4, randomization=SPREAD)
    for a in actions_for(32, 3):
        environments.step(a)
    before, held = environments.saved(), np.arange(32) % 3 == 0
    result = environments.step(np.full((32, 4), np.nan), held=held)
    assert result.terminated[~held].all()
    assert not result.terminated[held].any()
    assert not result.reward[held].any()
    after = environments.saved()
    for name in ("parameters", "state", "keys"):
        mine = [lane[:, :32] for lane in (before[name], after[name])]
        np.testing.assert_array_equal(mine[1][:, held], mine[0][:, held], err_msg=name)
        assert (mine[1][:, ~held] != mine[0][:, ~held]).any(axis=0).all(), name
    np.testing.assert_array_equal(after["observation"][:32][held], before["observation"][:32][held])
    # And they go on as if the step had not been: returns, too.
    alone = VectorTask(MotorCommand(), 32, seed=4, randomization=SPREAD)
    alone.restore(before)
    for a in actions_for(32, 40, seed=2):
        one, other = environments.step(a), alone.step(a)
        np.testing.assert_array_equal(one.observation[held], other.observation[held])
        np.testing.assert_array_equal(one.ends.returns[held], other.ends.returns[held])
        np.testing.assert_array_equal(one.ends.length[held], other.ends.length[held])


def test_any_vehicle_can_be_commanded() -> None:
    for name, width in (("base_octarotor", 8), ("cf2x_L250", 4), ("x500", 4)):
        environments = VectorTask("hover", 16, vehicle=name)
        assert environments.action_count == width
        hover = environments.parameter("hover_action").T
        for _ in range(20):
            result = environments.step(hover)
        assert np.isfinite(result.observation).all()
        # Commanded its hover, a vehicle that began level on average neither climbs nor falls.
        assert abs(float(np.mean(environments.state[5]))) < 1.0


def test_a_vehicle_is_a_name_a_file_or_a_record_as_everywhere(tmp_path: Path) -> None:
    made = replace(vehicle("x500"), name="of_my_own", mass=2.5)
    write_vehicle(made, tmp_path / "own.toml")
    of_record = VectorTask("hover", 16, vehicle=made)
    for item in (str(tmp_path / "own.toml"), tmp_path / "own.toml"):
        environments = VectorTask("hover", 16, vehicle=item)
        assert environments.vehicle.name == "of_my_own"
        np.testing.assert_array_equal(environments.observation, of_record.observation)
    with pytest.raises(AirworthyError, match=r"other\.toml"):
        VectorTask("hover", 4, vehicle=tmp_path / "other.toml")


@dataclass(frozen=True)
class Climb:
    """A user's own task, in ten lines."""

    name: ClassVar[str] = "climb_in_a_test"
    vehicle: ClassVar[str] = "lmf2"
    rate: ClassVar[float] = 50.0
    episode_steps: ClassVar[int] = 30
    noise: ClassVar[bool] = False

    start: ClassVar[Callable[..., Any]] = HoverTask.start
    spread: ClassVar[Any] = HoverTask().spread
    command: ClassVar[Callable[..., Any]] = HoverTask.command

    def observe(self, state: Any, noises: Any, p: Any) -> Any:
        return state[2:6]

    def judge(self, before: Any, after: Any, action: Any, past: Any, p: Any) -> Any:
        from airworthy.learning.environments import Judgement

        return Judgement({"climb": after[5]}, 0.0 * after[2], 0.0 * after[2])


def test_an_own_task() -> None:
    register_task(Climb.name, Climb)
    assert Climb.name in list(learning_tasks())
    environments = VectorTask("climb_in_a_test", 16)
    for _ in range(29):
        result = environments.step(np.ones((16, 4)))
    np.testing.assert_array_equal(result.reward, environments.state[5])
    assert np.median(result.reward) > 1.0  # full thrust
    with pytest.raises(AirworthyError, match="registered already"):
        register_task(Climb.name, HoverTask)


def test_mistakes_are_told() -> None:
    with pytest.raises(AirworthyError, match="Unknown learning task 'motor_comand'"):
        VectorTask("motor_comand", 4)
    with pytest.raises(AirworthyError, match="env_count is 0"):
        VectorTask("hover", 0)
    environments = VectorTask("hover", 4)
    with pytest.raises(AirworthyError, match=r"Actions have shape \(4, 3\); expected \(4, 4\)"):
        environments.step(np.zeros((4, 3)))
    with pytest.raises(AirworthyError, match="a seed and a mask"):
        environments.reset(seed=1, mask=np.ones(4, bool))
    with pytest.raises(AirworthyError, match="cannot hover"):
        VectorTask("hover", 4, vehicle=replace(vehicle("tinyprop"), mass=9.0))
    with pytest.raises(AirworthyError, match="no effect here"):
        VectorTask("hover", 4, randomization=Randomization(yaw=1.0))
    with pytest.raises(AirworthyError, match="does not take these options"):
        learning_task("hover", speed=3.0)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"task": None}, "task is None, which has no 'name'"),
        ({"task": HoverTask}, "task is .*, a class: call it; expected"),
        ({"vehicle": 3}, "vehicle is 3; expected a Vehicle"),
        ({"threads": "x"}, "threads is 'x'; expected a whole number, 1 to 4096"),
        ({"least_thrust_to_weight": "x"}, "least_thrust_to_weight is 'x'; expected a number, 0 or more"),
        ({"randomization": 3}, r"randomization is 3; expected a Randomization\(\.\.\.\)"),
        ({"conditions": 3}, r"conditions is 3; expected a FlightConditions\(\.\.\.\)"),
    ],
)
def test_an_argument_of_another_kind_is_told_by_its_name(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(AirworthyError, match=f"^{said}"):
        VectorTask(**{"task": "hover", "env_count": 16, **wrong})


@pytest.mark.parametrize("seed", ["a", 1.5, True, 2**64 - 1])
def test_a_seed_is_a_whole_number(seed: Any) -> None:
    """1.5 and 1 would else begin the same flights."""
    with pytest.raises(AirworthyError, match="seed"):
        VectorTask("hover", 16, seed=seed)


def _with(member: str, body: Any) -> Any:
    """A task of one's own, one of whose members does something else."""
    return type("Mine", (HoverTask,), {"name": "mine", member: body})()


@pytest.mark.parametrize(
    ("task", "said"),
    [
        (
            _with("observe", lambda self, state, noises, p: (state[99],)),
            r"in observe, line \d+: IndexError: tuple index out of",
        ),
        (_with("observe", lambda self, state, noises, p: (math.sqrt(state[0]),)), "in observe, .* was turned into a number"),
        (_with("observe", lambda self, state, noises, p: (np.sqrt(state[0]),)), "in observe, line .*: TypeError: "),
        (_with("observe", lambda self, state, noises, p: np.array(state)[:3].mean()), "The task 'mine' fails "),
        (_with("command", lambda self, action, p: [a if a > 0 else 0.0 for a in action]), "in command, .* truth value"),
        (_with("start", lambda self, uniforms, p: p.nothing), "in start, line .*: AttributeError: "),
        (_with("judge", lambda self, before, after, action, past, p: after[99]), "in judge, line .*: IndexError: "),
        (_with("judge", lambda self, before, after, action, past, p: None), "where its results are taken: AttributeError: "),
    ],
)
def test_a_member_of_an_own_task_that_fails_is_named(task: Any, said: str) -> None:
    with pytest.raises(AirworthyError, match=said) as caught:
        VectorTask(task, 16)
    assert "airworthy.core.ops (where, sqrt" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("actions", ["x", None, [[1.0], [1.0, 2.0]], {"a": 1}])
def test_actions_that_are_no_numbers_are_told(actions: Any) -> None:
    with pytest.raises(AirworthyError, match=r"^Actions (are|have shape) .*; expected (numbers of shape )?\(16, 4\)\.$"):
        VectorTask("hover", 16).step(actions)
