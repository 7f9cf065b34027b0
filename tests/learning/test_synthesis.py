"""Roll-outs of the expert: counts, draws, closing of offsets, noise, delay, and the same numbers whatever the batch."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.core.files import read_json
from airworthy.core.frames import angle_between, z_down_attitude, z_down_vector
from airworthy.learning.synthesis import (
    NOISE_LEVELS,
    RolloutPlan,
    Rollouts,
    SynthesisConfig,
    evaluation_set,
    noise_level,
    objective_of,
    roll_out,
)
from airworthy.trajectories import course

GRAVITY = 9.81


@pytest.fixture(scope="module")
def plan() -> RolloutPlan:
    """The published set of the 15 s course."""
    return RolloutPlan(SynthesisConfig())


@pytest.fixture(scope="module")
def flown(plan: RolloutPlan) -> Rollouts:
    """Roll-outs from all over the course."""
    return roll_out(plan, np.arange(3, plan.count, 23))


def derivative(state: Array, command: Array, full: Array, mass: Array) -> Array:
    """Point mass with attitude kinematics (eq. 1 of the specification), z up; written without the package."""
    x, y, z, w = state[:, 6], state[:, 7], state[:, 8], state[:, 9]
    p, q, r = command[:, 1], command[:, 2], command[:, 3]
    pull = full * command[:, 0] / mass
    up = np.stack([2 * (x * z + y * w), 2 * (y * z - x * w), w * w - x * x - y * y + z * z], axis=1)
    turn = 0.5 * np.stack(
        [w * p - z * q + y * r, z * p + w * q - x * r, -y * p + x * q + w * r, -x * p - y * q - z * r], axis=1
    )
    return np.concatenate([state[:, 3:6], pull[:, None] * up - [0.0, 0.0, GRAVITY], turn], axis=1)


def advanced(state: Array, command: Array, full: Array, mass: Array, seconds: float) -> Array:
    """RK4 in steps of 1 ms."""
    for _ in range(round(seconds * 1000)):
        h = 1e-3
        a = derivative(state, command, full, mass)
        b = derivative(state + 0.5 * h * a, command, full, mass)
        c = derivative(state + 0.5 * h * b, command, full, mass)
        d = derivative(state + h * c, command, full, mass)
        state = state + h / 6.0 * (a + 2 * b + 2 * c + d)
    return state


def steps_of(flown: Rollouts, skip: int = 0) -> tuple[Array, Array, Array, Array, Array, Array]:
    """State and command of every tick from `skip` on, thrust and mass, the state of the next tick, the command before."""
    ticks = flown.command.shape[1] - skip
    before, after = flown.state[:, skip:-1].reshape(-1, 10), flown.state[:, skip + 1 :].reshape(-1, 10)
    command = flown.command[:, skip:].reshape(-1, 4)
    last = flown.command[:, skip - 1 : -1].reshape(-1, 4) if skip else command
    full, mass = np.repeat(4.0 * flown.force, ticks), np.repeat(flown.mass, ticks)
    return before, command, full, mass, after, last


@pytest.mark.parametrize(("name", "pairs"), [("robustness", 180_000), ("cluttered", 240_000), ("extended", 360_000)])
def test_counts_are_those_of_section_5(name: str, pairs: int) -> None:
    config = SynthesisConfig(courses=(name,))
    assert config.ticks == 40
    assert RolloutPlan(config).count * config.ticks == pairs


def test_several_courses_are_numbered_one_after_the_other() -> None:
    plan = RolloutPlan(SynthesisConfig(courses=("robustness", "line"), per_second=1.0, repetitions=2))
    assert plan.counts.tolist() == [30, 12]
    starts = plan.starts(np.arange(plan.count))
    assert np.bincount(starts.course).tolist() == [30, 12]
    assert (starts.time <= np.array([15.0, 6.0])[starts.course]).all()


@pytest.mark.slow
def test_draws_are_uniform_independent_and_in_range(plan: RolloutPlan) -> None:
    starts = plan.starts(np.arange(plan.count))
    mass, force = starts.mass / 1.144, starts.force / 6.9
    share = np.stack([mass, force], axis=1)
    assert np.abs(share - 1.0).max() <= 0.3
    # Of a uniform variable of half-width a: deviation a / sqrt(3); that of its mean over 4,500 is 0.0026, five of them here.
    assert np.abs(share.mean(axis=0) - 1.0).max() < 5 * 0.3 / np.sqrt(3 * 4500)
    assert share.std(axis=0) == pytest.approx([0.3 / np.sqrt(3)] * 2, rel=0.04)
    assert abs(np.corrcoef(mass, force)[0, 1]) < 5 / np.sqrt(4500)
    grid = np.arange(plan.count) // 30 / 10.0
    assert np.abs(starts.time - grid).max() <= 0.1
    assert starts.time.min() >= 0.0
    sample = course("robustness").trajectory().sample(starts.time)
    for drawn, wanted in ((starts.state[:, :3], sample.position), (starts.state[:, 3:6], sample.velocity)):
        off = drawn - wanted
        assert np.abs(off).max() <= 0.4 + 1e-12
        assert off.std(axis=0) == pytest.approx([0.4 / np.sqrt(3)] * 3, rel=0.04)
    assert np.linalg.norm(starts.state[:, 6:], axis=1) == pytest.approx(1.0, abs=1e-12)


def test_a_roll_out_is_a_function_of_seed_and_number(plan: RolloutPlan) -> None:
    whole, some = plan.starts(np.arange(100)), plan.starts([77, 3])
    other = RolloutPlan(SynthesisConfig(seed=1)).starts([77, 3])
    for item in fields(whole):
        np.testing.assert_array_equal(getattr(whole, item.name)[[77, 3]], getattr(some, item.name))
    assert not np.isclose(other.mass, some.mass).any()


@pytest.mark.parametrize("noise", ["baseline", "extreme"])
def test_the_same_bytes_whatever_is_flown_beside(noise: str) -> None:
    """Other batches, other places in them, other numbers of lanes and threads."""
    plan = RolloutPlan(SynthesisConfig(noise=noise, length=0.5))
    many = roll_out(plan, np.arange(4000, 4100))
    for numbers, threads in (([4007], 1), ([4099, 4000, 4051], 2), (np.arange(4040, 4090), None)):
        few = roll_out(plan, numbers, threads=threads)
        rows = np.asarray(numbers) - 4000
        for item in fields(many):
            np.testing.assert_array_equal(getattr(many, item.name)[rows], getattr(few, item.name), err_msg=item.name)


def test_the_expert_closes_offsets_in_two_seconds(flown: Rollouts) -> None:
    path = course("robustness").trajectory().sample(np.linspace(0.0, 15.0, 3001)).position
    near = [np.linalg.norm(flown.state[:, k, None, :3] - path, axis=-1).min(axis=1) for k in (0, -1)]
    assert near[0].max() > 0.4
    # Half the grid of 5 mm that the path is sampled by is 0.7 mm at 1.32 m/s.
    assert np.quantile(near[1], 0.9) < 0.02
    assert near[1].max() < 0.07
    assert flown.failures.sum() == 0


def test_kept_is_what_ends_near_the_course(plan: RolloutPlan) -> None:
    """Too short to close in, so that both sides of the rule occur; against the rule written out."""
    short = RolloutPlan(SynthesisConfig(length=1.0))
    flown = roll_out(short, np.arange(0, short.count, 15))
    grid = course("robustness").trajectory().sample(np.arange(151) / 10.0).position
    error = np.array([min(np.linalg.norm(end - point) for point in grid) for end in flown.state[:, -1, :3]])
    np.testing.assert_allclose(flown.end_error, error, atol=1e-9)
    np.testing.assert_array_equal(flown.kept, error <= 0.07)
    assert 0.1 < flown.kept.mean() < 0.9
    every = roll_out(RolloutPlan(SynthesisConfig(length=1.0, keep_within=0.0)), np.arange(50))
    assert every.kept.all()


def test_commands_lead_from_each_state_to_the_next(flown: Rollouts) -> None:
    """So state k and command k are of the same instant: an independent integration of 50 ms arrives at state k + 1."""
    before, command, full, mass, after, _ = steps_of(flown)
    reached = advanced(before, command, full, mass, 0.05)
    # float32: positions to 1e-6 at 8 m, five steps of RK4 at 100 Hz to 1e-7.
    assert np.abs(reached - after).max() < 5e-6
    late = advanced(before[:-1], command[1:], full[:-1], mass[:-1], 0.05)
    assert np.abs(late - after[:-1]).max() > 1e-3


def test_commands_are_within_their_bounds(flown: Rollouts) -> None:
    assert flown.command[..., 0].min() >= 0.0
    assert flown.command[..., 0].max() <= 1.0 + 1e-6
    assert np.abs(flown.command[..., 1:]).max() <= 5.0 + 1e-6


def test_a_delay_holds_the_command_before(plan: RolloutPlan) -> None:
    late = RolloutPlan(SynthesisConfig(delay=0.03, length=0.5))
    flown = roll_out(late, np.arange(20))
    before, command, full, mass, after, last = steps_of(flown, skip=1)
    reached = advanced(advanced(before, last, full, mass, 0.03), command, full, mass, 0.02)
    assert np.abs(reached - after).max() < 5e-6
    hover = np.outer(flown.mass * GRAVITY / (4.0 * flown.force), [1.0, 0.0, 0.0, 0.0])
    drones = (4.0 * flown.force, flown.mass)
    reached = advanced(advanced(flown.state[:, 0], hover, *drones, 0.03), flown.command[:, 0], *drones, 0.02)
    assert np.abs(reached - flown.state[:, 1]).max() < 5e-6


@pytest.mark.parametrize("name", ["assisted", "challenged", "extreme"])
def test_what_is_sensed_has_the_noise_of_its_level(name: str) -> None:
    flown = roll_out(RolloutPlan(SynthesisConfig(noise=name)), np.arange(300))
    off = (flown.sensed - flown.state[:, :-1])[..., :6].reshape(-1, 6)
    level = np.array(noise_level(name).sensor)
    # Of 12,000 draws a deviation is known to 1/sqrt(24,000) = 0.65 %; five of them.
    assert off.std(axis=0) == pytest.approx(level[:6], rel=0.033)
    assert np.abs(off.mean(axis=0) / level[:6]).max() < 5 / np.sqrt(12_000)
    assert np.abs(np.linalg.norm(flown.sensed[..., 6:], axis=-1) - 1.0).max() < 1e-12
    turn = angle_between(flown.sensed[..., 6:], flown.state[:, :-1, 6:])
    # A quaternion that is off by e across turns by 2 |e|: three components of e remain of four.
    assert np.sqrt((turn**2).mean()) == pytest.approx(2.0 * np.sqrt(3.0) * np.sqrt(np.mean(level[6:] ** 2)), rel=0.1)


def test_the_baseline_is_sensed_as_it_is(flown: Rollouts) -> None:
    np.testing.assert_array_equal(flown.sensed, flown.state[:, :-1])


def test_model_noise_is_divided_over_the_steps_of_a_tick() -> None:
    """Added in five steps, each of a fifth: a tick's deviation is the level's over sqrt(5), as published."""
    plan = RolloutPlan(SynthesisConfig(noise="extreme", length=1.0))
    before, command, full, mass, after, _ = steps_of(roll_out(plan, np.arange(200)))
    off = after - advanced(before, command, full, mass, 0.05)
    level = np.array(NOISE_LEVELS["extreme"].model)
    # 4,000 ticks: 1.1 % of a deviation. What attitude noise does to velocity, and that to position, comes on top.
    assert off[:, :3].std(axis=0) == pytest.approx(level[:3] / np.sqrt(5.0), rel=0.05)
    assert off[:, 5].std() == pytest.approx(level[5] / np.sqrt(5.0), rel=0.06)
    assert np.abs(off[:, :6].mean(axis=0)).max() < 5 * 0.0095 / np.sqrt(4000)


def test_objectives_are_the_published_numbers(data_dir: Path) -> None:
    summary = read_json(data_dir / "sousvide" / "reference_summary.json")
    for name in ("robustness", "extended", "cluttered", "infinity", "sigmoid"):
        objective = objective_of(course(name).trajectory())
        parts = [objective[:1], *(z_down_vector(objective[k : k + 3]) for k in (1, 4, 7))]
        wanted = np.array((summary.get("courses") or summary)[name]["objective"])
        np.testing.assert_allclose(np.concatenate(parts), wanted[:10], atol=1e-4)
        for k in (10, 14):
            assert angle_between(z_down_attitude(objective[k : k + 4]), wanted[k : k + 4]) < 1e-4


def test_the_evaluation_set_is_thirty_whole_courses() -> None:
    plan = RolloutPlan(evaluation_set("robustness", seed=5))
    assert (plan.count, plan.config.ticks, plan.config.noise) == (30, 300, "challenged")
    starts = plan.starts(np.arange(30))
    assert not starts.time.any()
    assert np.abs(starts.mass / 1.144 - 1.0).max() <= 0.15
    assert np.abs(starts.state[:, :3] - course("robustness").trajectory().sample(np.zeros(1)).position).max() <= 0.2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"courses": ()}, "without a course"),
        ({"noise": "loud"}, "Unknown noise level 'loud'"),
        ({"mpc": "kitchen"}, "Unknown MPC preset 'kitchen'"),
        ({"position": -0.1}, "position -0.1"),
        ({"jitter": float("nan")}, "jitter is nan"),
        ({"repetitions": 0}, "0 repetitions"),
        ({"length": 0.0}, "roll-outs of 0.0 s"),
        ({"mass": 1.0}, "shares of mass 1.0"),
        ({"physics_rate": 30.0}, "physics_rate of 30.0 Hz"),
        ({"physics_rate": 0.0}, "physics_rate of 0.0 Hz"),
        ({"delay": 0.06}, "delay of 0.06 s"),
    ],
)
def test_what_cannot_be_synthesised_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(AirworthyError, match=message):
        SynthesisConfig(**changes)  # type: ignore[arg-type]


def test_unknown_courses_and_vehicles_are_named() -> None:
    for changes in ({"courses": ("robustnes",)}, {"vehicle": "karl"}):
        with pytest.raises(AirworthyError, match="Closest"):
            RolloutPlan(SynthesisConfig(**changes))
