"""One student of several teachers: what it is shown, how it descends, that it comes to fly, and that a killed one goes on."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.pilots.motor_cases import contract, weights
from tests.pilots.motor_cases import policy as drawn

import airworthy as aw
from airworthy.cli.main import main
from airworthy.core.arrays import ArrayF32
from airworthy.core.errors import AirworthyError
from airworthy.learning.distill import DistillOptions, DistillTraining, train_distill
from airworthy.learning.distill.lessons import Lesson, Tutored, actions_of, lessons_of
from airworthy.learning.distill.training import imitation_gradient
from airworthy.learning.gradient import GradientOptions, GradientTraining, write_motor_policy
from airworthy.learning.gradient.evaluation import HoverProtocol, fly_hover
from airworthy.learning.gradient.hover import HoverStart
from airworthy.pilots import MotorPolicy, read_motor_policy
from airworthy.pilots.motor_policy.contract import OBSERVED, commanded_states, write_motor_folder
from airworthy.vehicles import hover_speed, vehicle

FEW = DistillOptions(hidden=16, history=2, rounds=4, flights=6, flight_s=1.0, samples=200, kept_rounds=2, steps=40, batch=64)


@pytest.fixture(scope="module")
def teachers(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Of two vehicles, which hold their place; learnt in half a second each."""
    found = []
    for name, memory in (("tinyprop", "none"), ("x500", "gru")):
        options = GradientOptions(env_count=32, hidden=16, iterations=400, memory=memory, history=1)  # type: ignore[arg-type]
        made = GradientTraining(vehicle(name), options)
        while not made.finished:
            made.step()
        found.append(write_motor_policy(tmp_path_factory.mktemp(name), made))
    return found


def test_actions_are_states_the_other_way_round() -> None:
    rng = np.random.default_rng(0)
    low, high = np.array([0.0, 10.0, 100.0]), np.array([50.0, 90.0, 900.0])
    actions = rng.uniform(-1.0, 1.0, (20, 3))
    for law in ("state", "square"):
        np.testing.assert_allclose(actions_of(commanded_states(actions, low, high, law), low, high, law), actions, atol=1e-12)
    assert actions_of(np.array([[-5.0, 100.0, 100.0]]), low, high).tolist() == [[-1.0, 1.0, -1.0]]


def test_the_gradient_is_that_of_the_error() -> None:
    """Central differences, a weight of each array."""
    rng = np.random.default_rng(0)
    given: list[Any] = [rng.normal(size=s) * 0.5 for s in ((8, 5), (8,), (6, 8), (6,), (4, 6), (4,))]
    seen, wanted = rng.normal(size=(30, 5)), rng.uniform(-1.0, 1.0, (30, 4))
    _, gradient = imitation_gradient(given, seen, wanted)  # type: ignore[arg-type]
    for k, slope in enumerate(gradient):
        at = tuple(rng.integers(0, n) for n in slope.shape)
        sides = []
        for h in (1e-6, -1e-6):
            moved = [w.copy() for w in given]
            moved[k][at] += h
            sides.append(imitation_gradient(moved, seen, wanted)[0])  # type: ignore[arg-type]
        # The slope is computed in the arrays' precision but for one factor of float32.
        assert (sides[0] - sides[1]) / 2e-6 == pytest.approx(slope[at], rel=1e-5, abs=1e-9)


def test_a_teacher_that_flies_is_heard_as_itself(teachers: list[Path]) -> None:
    """In flights that the teacher flies, what it would have done is what it does: those of the policy alone, with memory."""
    for lesson in lessons_of(teachers):
        training = DistillTraining([lesson], replace(FEW, band=1.0))
        student = training.policy().fitted(lesson.vehicle)
        flyer = Tutored(student, lesson.teacher, np.ones(4, bool))
        protocol = HoverProtocol(flight_s=2.0, seed=3)
        found = fly_hover(lesson.vehicle, flyer, protocol, HoverStart(position=0.1, velocity=0.1, tilt=0.1, rate=0.1), 4)
        assert found.kept.all()
        assert found.error.max() < 0.3
        # Nothing saturated near the target: the student's narrower limits did not matter.
        assert np.abs(np.concatenate(flyer.wanted[50:])).max() < 0.9


def test_samples_are_in_the_terms_of_all_quadrotors(teachers: list[Path]) -> None:
    """A network fitted to them acts on a vehicle's own observation as the student does on the sample."""
    training = DistillTraining(lessons_of(teachers), FEW)
    rng = np.random.default_rng(0)
    for w in training.weights:
        w[:] = rng.normal(size=w.shape).astype(np.float32) * 0.2
    policy = training.policy()
    for lesson, terms in zip(training.lessons, training._terms, strict=True):
        seen = rng.normal(size=(10, policy.contract.observed)).astype(np.float32)
        own = policy.fitted(lesson.vehicle).action(seen)
        whole: ArrayF32 = (seen @ terms.seen(seen.shape[1]).T).astype(np.float32)
        np.testing.assert_allclose(own[:, terms.order], policy.action(whole), rtol=0.0, atol=1e-6)


def test_a_teacher_is_shown_what_was_done_before_the_newest_first() -> None:
    """By hand over several decisions, with two past actions, whoever flew: of other limits, what the student's came to."""
    teacher, student = drawn(history=2), drawn(history=1, limits=((100.0, 700.0),) * 4)
    low, high = np.array(teacher.contract.limits).T
    flyer, rng = Tutored(student, teacher, np.array([True, False, False])), np.random.default_rng(0)
    simulator: Any = SimpleNamespace(env_count=3)
    flyer.begin(simulator)
    past = [np.tile(teacher.contract.hover, (3, 1))] * 2
    for _ in range(5):
        seen = rng.normal(size=(3, student.contract.observed)).astype(np.float32)
        states = teacher.command(teacher.action(np.concatenate([seen[:, :OBSERVED], *past], axis=1)))
        acting = flyer._decided(seen)
        wanted = np.clip((states - 400.0) / 300.0, -1.0, 1.0)
        np.testing.assert_allclose(flyer.wanted[-1], wanted, atol=1e-5)
        np.testing.assert_allclose(acting[0], wanted[0], atol=1e-5)
        np.testing.assert_allclose(acting[1:], student.action(seen)[1:], atol=1e-6)
        done = np.clip((2.0 * (400.0 + 300.0 * acting) - low - high) / (high - low), -1.0, 1.0)
        past = [done, past[0]]


def test_what_a_student_learns_is_what_its_teacher_would_do_with_the_rotor_in_that_place() -> None:
    """Of a vehicle whose rotors the record has in another order; the samples seen, in axes that are not turned."""
    item = vehicle("x500")
    hover, most = np.array(hover_speed(item)), np.array([rotor.speed_max for rotor in item.rotors])
    given = contract(vehicle="x500", limits=tuple(zip(0.9 * hover, 0.5 * (hover + most), strict=True)), hover=(0.0,) * 4)
    teacher = MotorPolicy(given, tuple(weights(given)))
    training = DistillTraining([Lesson(item, teacher)], FEW)
    training.step()
    # Anticlockwise from the left front one, whose reaction torque is upwards: x forward, y left.
    places = [(1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0), (1.0, -1.0)]
    signs = [tuple(np.sign(rotor.position[:2])) for rotor in item.rotors]
    order = [signs.index(place) for place in places]
    assert [item.rotors[k].spin for k in order] == [1, -1, 1, -1]
    assert order != np.argsort(order).tolist()
    rows = slice(0, FEW.samples)
    states = teacher.command(teacher.action(training._seen[rows, :OBSERVED]))
    # Between 80 and 120 % of hover's speed, as no rotor is short of either.
    shares = np.clip((states / hover - 1.0) / FEW.band, -1.0, 1.0)
    assert np.ptp(shares, axis=1).min() > 0.01
    np.testing.assert_allclose(training._wanted[rows], shares[:, order], atol=1e-4)


def test_what_was_saved_goes_on_to_the_same_bits(teachers: list[Path]) -> None:
    lessons = lessons_of(teachers)
    whole, first, second = (DistillTraining(lessons, FEW) for _ in range(3))
    costs = [whole.step() for _ in range(4)]
    first.step()
    first.step()
    second.restore(first.save())
    assert [second.step(), second.step()] == costs[2:]
    for mine, others in zip(second.weights, whole.weights, strict=True):
        np.testing.assert_array_equal(mine, others)
    assert second.finished
    assert second.lost == whole.lost


def test_it_comes_nearer_to_its_teachers(teachers: list[Path]) -> None:
    """On what was flown: where the student flies itself it comes to other places every round."""
    training = DistillTraining(lessons_of(teachers), replace(FEW, rounds=2, steps=600))
    begun = [w.copy() for w in training.weights]
    training.step()
    training.step()
    before, after = (imitation_gradient(w, training._seen, training._wanted)[0] for w in (begun, training.weights))
    assert after < 0.2 * before


def test_a_folder_that_flies_and_says_what_it_is(
    teachers: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--hidden", "16", "--rounds", "2", "--flights", "4", "--flight-s", "1", "--samples", "100", "--steps", "10"]
    asked = ["train", "distill", "--teachers", *map(str, teachers), "--out", str(tmp_path), *options, "--judged", "8"]
    assert main([*asked, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [row["vehicle"] for row in told["vehicles"]] == ["tinyprop", "x500"]
    assert {"kept_percent", "median_error_m", "held"} <= set(told["vehicles"][0]["teacher"])
    policy = read_motor_policy(tmp_path)
    assert policy.contract.family == "quadrotor"
    assert sum(w.size for w in policy.weights) == told["weights"]
    assert (tmp_path / "report.html").read_text().count("teacher</td>") == 2
    assert not (tmp_path / "checkpoints").exists()
    # Once more: it is finished; and other teachers are another training.
    assert main([*asked]) == 0
    assert "finished already" in capsys.readouterr().err
    # Other flights to be judged on are told by the option that was given: --flights are those of a round.
    assert main([*asked[:-1], "6"]) == 0
    assert "judged again (judged was 8, is now 6)" in capsys.readouterr().err
    with pytest.raises(AirworthyError, match="teachers or their vehicles were others"):
        train_distill(teachers[:1], tmp_path, policy_options(told), 8)


def test_from_python(teachers: list[Path], tmp_path: Path) -> None:
    few = {name: getattr(FEW, name) for name in ("hidden", "history", "flights", "flight_s", "samples", "kept_rounds", "steps")}
    done = aw.train("distill", teachers, tmp_path, rounds=1, judged=4, **few)
    assert done.summary["protocol"]["flights"] == 4
    assert len(done.frame()) == 1
    with pytest.raises(AirworthyError, match="folders of motor policies"):
        aw.train("distill")


def policy_options(told: dict[str, Any]) -> DistillOptions:
    return DistillOptions(**told["options"])


def test_what_cannot_be_taught_is_refused(teachers: list[Path], tmp_path: Path) -> None:
    with pytest.raises(AirworthyError, match="no teacher"):
        lessons_of([])
    with pytest.raises(AirworthyError, match="Two teachers fly 'tinyprop'"):
        lessons_of([teachers[0], teachers[0]])
    slow = replace(read_motor_policy(teachers[1]).contract, rate=50.0)
    write_motor_folder(tmp_path / "slow", slow, read_motor_policy(teachers[1]).weights)
    with pytest.raises(AirworthyError, match="decide at 50, 100 Hz"):
        lessons_of([teachers[0], tmp_path / "slow"])
    anyone = contract(family="quadrotor", limits=((0.8, 1.2),) * 4, hover=(0.0,) * 4)
    write_motor_folder(tmp_path / "any", anyone, weights(anyone))
    with pytest.raises(AirworthyError, match="a policy for any quadrotor"):
        lessons_of([tmp_path / "any"])
    eight = vehicle("base_octarotor")
    with pytest.raises(AirworthyError, match="for quadrotors"):
        DistillTraining([Lesson(eight, read_motor_policy(teachers[0]))], FEW)
    with pytest.raises(AirworthyError, match="tutored"):
        DistillOptions(tutored=1.5)
