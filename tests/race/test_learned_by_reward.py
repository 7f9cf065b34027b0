"""Learning a race by reward: what a flight earns, environments of PPO, and the stage behind imitation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError
from airworthy.race.learned.batch import FlightNoise
from airworthy.race.learned.config import JUDGED_SEED, RacePolicyOptions
from airworthy.race.learned.environments import CourseEnvironments
from airworthy.race.learned.reward import RaceReward, close_share, plan_progress
from airworthy.race.learned.training import course_flights

TINY = RacePolicyOptions(
    trainer="ppo", hidden=8, rounds=1, flights=4, flight_s=0.2, kept=40, steps=6, batch=16,
    updates=3, env_count=16, rollout=8, warm_up=1,
)  # fmt: skip


@pytest.fixture(scope="module")
def course() -> Any:
    """Flights of AlphaPilot."""
    return course_flights(RacePolicyOptions())


def environments(course: Any, **changes: Any) -> CourseEnvironments:
    asked = {"env_count": 16, "hold": 4, "from_start": 1.0, "seed": 3, **changes}
    return CourseEnvironments(course, RaceReward(), FlightNoise(), **asked)


# ---- What a flight earns ----------------------------------------------------------------------------------------------------


def test_closeness_costs_by_the_square_of_what_is_lacking() -> None:
    margin = np.array([np.inf, 0.4, 0.3, 0.15, 0.0, -1.0])
    # (1 - 0.15 / 0.3)^2 = 0.25; beyond the edge no more than at it.
    np.testing.assert_allclose(close_share(margin, 0.3), [0.0, 0.0, 0.0, 0.25, 1.0, 1.0], atol=1e-15)


def test_progress_is_the_plans_own_seconds() -> None:
    """At 10 m/s along x: 0.5 m ahead are 0.05 s, whatever lies beside; where the plan stands nothing is ahead of it."""
    place = np.array([[0.5, 7.0, -2.0], [-1.0, 0.0, 0.0], [3.0, 0.0, 0.0], [0.1, 0.0, 0.0]])
    velocity = np.array([[10.0, 0.0, 0.0], [10.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.1, 0.0, 0.0]])
    # The last is slower than 0.5 m/s: 0.1 m x 0.1 m/s / 0.25 m^2/s^2.
    np.testing.assert_allclose(plan_progress(place, np.zeros((4, 3)), velocity), [0.05, -0.1, 0.0, 0.04], atol=1e-15)


def test_a_decision_earns_the_sum_of_its_terms() -> None:
    reward = RaceReward(margin=0.2, margin_cost=0.5, crash_cost=4.0, smoothness_cost=0.01)
    terms = reward.terms(
        np.array([0.02, 0.0]),
        1.0 / 60.0,
        np.array([0.1, np.inf]),
        np.array([False, True]),
        np.array([[0.0] * 4, [1.0, -2.0, 0.0, 0.0]]),
    )
    assert {name: [round(float(x), 6) for x in values] for name, values in terms.items()} == {
        "progress": [round(0.02 - 1.0 / 60.0, 6), round(-1.0 / 60.0, 6)],
        "margin": [-0.125, 0.0],  # 0.5 (1 - 0.1 / 0.2)^2
        "lost": [0.0, -4.0],
        "smooth": [0.0, -0.05],  # 0.01 (1 + 4)
    }
    with pytest.raises(AirworthyError, match="margin"):
        RaceReward(margin=0.0)


# ---- Environments -----------------------------------------------------------------------------------------------------------


def test_who_stands_loses_time_and_falls(course: Any) -> None:
    """No thrust from 5.3 m: the floor is reached after a second and some, and the flight is over, and begins anew."""
    fall = environments(course)
    nothing = np.tile(np.float32([-1.0, 0.0, 0.0, 0.0]), (16, 1))
    number = 0
    while number < 90:
        number += 1
        result = fall.step(nothing)
        if result.terminated.any():
            break
    # sqrt(2 x 5.3 / 9.81) = 1.04 s, and the rotors' lag and least thrust; 60 decisions a second.
    assert 62 <= number <= 70
    assert result.terminated.all()
    assert not result.truncated.any()
    assert not result.ends.success.any()
    assert result.terms["lost"].tolist() == [-3.0] * 16
    # All of its time, and what it fell of the plan's way, which climbs nowhere near as steeply.
    assert np.all(result.ends.returns < -3.0 - 0.5 * number / 60.0)
    assert fall.lost == 16
    np.testing.assert_array_equal(result.ends.length, np.full(16, number, np.float32))


@pytest.mark.slow
def test_the_sum_of_progress_is_how_far_a_flight_is_along_the_plan(course: Any) -> None:
    """The expert keeps to the plan: at its pace progress is time, and what it earns is nothing but what it is smooth."""
    batch = environments(course, hold=1)
    earned, flying = np.zeros(16), batch._batch
    for _ in range(480):
        believed, _ = flying.believed()
        earned += batch.step(flying.label(believed)).terms["progress"]
    # Both clocks follow the racer. What begins with the first 0.05 s has not flown them; the label's clock follows with a lag
    # of 0.2 s, over which a pace that is off by a tenth is 0.02 s.
    np.testing.assert_allclose(earned, flying.phase - 2.0 - 0.05, atol=0.03)


def test_flights_of_environments_go_on_to_the_same_bits(course: Any) -> None:
    def made() -> CourseEnvironments:
        return environments(course, from_start=0.5)

    rng = np.random.default_rng(0)
    actions = rng.uniform(-0.3, 0.3, (20, 16, 4)).astype(np.float32)
    whole, parts = made(), made()
    whole.draw_by(0)
    for action in actions[:10]:
        whole.step(action)
    held = {name: np.array(x) for name, x in whole.saved().items()}
    whole.draw_by(1)
    found = [whole.step(action) for action in actions[10:]]
    parts.restore(held)
    parts.draw_by(1)
    for action, other in zip(actions[10:], found, strict=True):
        again = parts.step(action)
        np.testing.assert_array_equal(again.reward, other.reward)
        np.testing.assert_array_equal(again.observation, other.observation)


def test_a_command_that_is_none_ends_a_flight_and_no_other(course: Any) -> None:
    both = [environments(course) for _ in range(2)]
    actions = np.zeros((16, 4), np.float32)
    spoilt = actions.copy()
    spoilt[3] = np.nan
    fine, other = both[0].step(actions), both[1].step(spoilt)
    assert np.isfinite(other.reward).all()
    rest = np.arange(16) != 3
    np.testing.assert_array_equal(fine.observation[rest], other.observation[rest])


# ---- Learning ---------------------------------------------------------------------------------------------------------------


def test_options_that_go_together() -> None:
    with pytest.raises(AirworthyError, match="multiple of 16"):
        replace(TINY, env_count=17)
    with pytest.raises(AirworthyError, match="multiple of 16"):
        replace(TINY, rollout=9)
    with pytest.raises(AirworthyError, match="warm_up is 3 of 3 updates"):
        replace(TINY, warm_up=3)
    with pytest.raises(AirworthyError, match="--hold 2 changes nothing for the trainer imitation"):
        RacePolicyOptions(hold=2)
    assert replace(TINY).iterations == 4
    assert RacePolicyOptions(rounds=5).iterations == 5


def test_the_seed_of_judged_flights_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AirworthyError, match=f"The seed {JUDGED_SEED} is that of the flights on which policies are judged"):
        RacePolicyOptions(seed=JUDGED_SEED)
    assert main(["train", "race", "--seed", str(JUDGED_SEED), "--out", str(tmp_path / "none")]) == 2
    assert str(JUDGED_SEED) in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_updates_that_were_stopped_go_on_to_the_same_bits() -> None:
    pytest.importorskip("torch")
    from airworthy.race.learned.training import RacePolicyTraining

    whole = RacePolicyTraining(TINY)
    for _ in range(2):
        whole.step()
    held = whole.save()
    costs = [whole.step() for _ in range(2)]
    parts = RacePolicyTraining(TINY)
    parts.restore(held)
    assert [parts.step() for _ in range(2)] == costs
    assert whole.finished
    assert parts.finished
    for mine, others in zip(parts.weights, whole.weights, strict=True):
        np.testing.assert_array_equal(mine, others)
    for mine, others in zip(parts.imitated, whole.imitated, strict=True):
        np.testing.assert_array_equal(mine, others)


def test_only_the_critic_learns_at_first() -> None:
    pytest.importorskip("torch")
    from airworthy.race.learned.training import RacePolicyTraining

    training = RacePolicyTraining(TINY)
    moved = []
    for _ in range(3):
        training.step()
        moved.append(any(np.any(a != b) for a, b in zip(training.weights, training.imitated, strict=True)))
    # The round of imitation, the update in which the critic learns, and one of both.
    assert moved == [False, False, True]


@pytest.mark.slow
def test_a_training_that_is_stopped_between_stages_ends_in_the_same_file(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from airworthy.race.learned.run import train_race

    whole = train_race(tmp_path / "whole", TINY, 1)
    parts = train_race(tmp_path / "parts", TINY, 1, minutes=1e-6)
    runs = 0
    while not parts.finished:
        parts, runs = train_race(tmp_path / "parts", TINY, 1, minutes=1e-6), runs + 1
    assert runs == 3
    both = [(done.folder / "weights.safetensors").read_bytes() for done in (whole, parts)]
    assert both[0] == both[1]
    stages = [found.figures["stages"] for found in (whole, parts)]
    assert [row["stage"] for row in stages[0]] == ["imitation", "ppo"]
    assert [row["gates_passed"] for row in stages[0]] == [row["gates_passed"] for row in stages[1]]
    page = (whole.folder / "report.html").read_text()
    assert "Stage by stage" in page
    assert "by reward" in page


@pytest.mark.slow
def test_it_learns_to_earn_more(course: Any) -> None:
    """Outputs of nothing are half of all thrust, twice the weight: such a policy leaves the plan upwards, flight after flight.
    After some 8,000 decisions it earns more, in flights that it did not learn from and without noise."""
    pytest.importorskip("torch")
    from airworthy.race.learned.descent import outputs
    from airworthy.race.learned.improvement import RaceImprovement

    def earned(weights: Any) -> float:
        flights = environments(course, env_count=32, seed=77)
        return float(np.mean([flights.step(outputs(weights, flights.observation)).reward.mean() for _ in range(120)]))

    much = {"updates": 8, "env_count": 32, "rollout": 32, "ppo_learning_rate": 1e-2, "initial_std": 0.2, "from_start": 1.0}
    options = replace(TINY, **much)  # type: ignore[arg-type]
    blank = [np.zeros(s, np.float32) for s in ((8, 77), (8,), (8, 8), (8,), (4, 8), (4,))]
    improving = RaceImprovement(course, options, blank)
    before = earned(improving.weights)
    for _ in range(options.updates):
        improving.update()
    assert earned(improving.weights) > before
