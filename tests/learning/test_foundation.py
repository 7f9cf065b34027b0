"""One policy for all quadrotors: vehicles drawn from nothing, a training on them, and the program that flies the catalogue."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import airworthy as aw
from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError
from airworthy.dynamics.state import padded_rotor_count
from airworthy.learning import timed_training, train_hover
from airworthy.learning.foundation import FoundationConfig, FoundationProtocol, evaluation, train_foundation
from airworthy.learning.foundation import run as run_module
from airworthy.learning.foundation import training as foundation
from airworthy.learning.foundation.report import fleet_cells
from airworthy.learning.foundation.training import FOUNDATION, FoundationTraining, drawn_quadrotor, write_foundation_policy
from airworthy.learning.gradient import GradientOptions
from airworthy.learning.timed_training import TimedTraining, Trained
from airworthy.pilots import read_motor_policy
from airworthy.pilots.motor_policy.quadrotor import QuadrotorTerms
from airworthy.simulation import SimulatorConfig
from airworthy.simulation.parameters import rigid_column
from airworthy.vehicles import check, hover_speed, indicators, vehicle
from benchmarks import foundation as program
from benchmarks import hardware

SMALL = GradientOptions(env_count=16, window=20, hidden=16, iterations=6, flight_s=0.5)
# A kernel that other tests have, too.


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foundation, "_POOL", 24)


def test_drawn_vehicles_are_sound_and_as_wide_apart_as_they_are_said_to_be() -> None:
    fleet = [check(drawn_quadrotor(3, k)) for k in range(200)]
    mass, ratio, turn, rise = np.array(
        [
            (v.mass, (i := indicators(v)).thrust_to_weight, i.thrust_to_weight / i.alpha_xy_max, v.rotors[0].response.rise[0])
            for v in fleet
        ]
    ).T
    for values, low, high in ((mass, 0.02, 5.0), (ratio, 1.5, 5.0), (turn, 0.001, 0.1), (1.0 / rise, 0.01, 0.15)):
        assert low * (1 - 1e-9) <= values.min() < low * 1.6
        assert high / 1.6 < values.max() <= high * (1 + 1e-9)
    for item in fleet[:20]:
        terms = QuadrotorTerms.of(item, 0.15)
        assert (terms.order.tolist(), terms.turn) == ([0, 1, 2, 3], 0.0)
        np.testing.assert_allclose(hover_speed(item), 1000.0, rtol=1e-9)
    assert drawn_quadrotor(3, 7) == fleet[7]
    assert drawn_quadrotor(4, 7).mass != fleet[7].mass


def test_each_flight_has_a_vehicle_of_its_own_and_a_stopped_training_the_same() -> None:
    whole, stopped = FoundationTraining(SMALL), FoundationTraining(SMALL)
    first = {row: values.copy() for row, values in whole.window.parameters.items()}
    for _ in range(6):
        whole.step()
    for _ in range(3):
        stopped.step()
    other = FoundationTraining(SMALL)
    other.restore(stopped.save())
    while not other.finished:
        other.step()
    for a, b in zip(whole.weights, other.weights, strict=True):
        np.testing.assert_array_equal(a, b)
    layout = whole.surrogate.layout
    row = layout.offsets["mass_inverse"]
    flown = whole.window.parameters[row]
    assert np.any(flown != first[row])
    mine = [drawn_quadrotor(0, int(k)) for k in (np.arange(16) + whole.episode * 16) % 24]
    np.testing.assert_allclose(flown, [1.0 / v.mass for v in mine], rtol=1e-6)
    # Everything that the step reads of a vehicle is of the same one, and rotors keep to the band.
    column = rigid_column(mine[5], SimulatorConfig(), layout, padded_rotor_count(4))
    for name in ("inertia", "rotor_position", "rotor_thrust", "rotor_torque", "rotor_rise"):
        for at in range(*layout.rows(name).indices(layout.size)):
            if at in whole.window.parameters:
                assert whole.window.parameters[at][5] == pytest.approx(column[at], rel=1e-6)
    np.testing.assert_allclose(whole.window.parameters[layout.offsets["rotor_max"]], 1150.0)
    np.testing.assert_allclose(whole.hover, 0.0, atol=1e-12)


def test_the_policy_is_small_and_of_any_quadrotor(tmp_path: Path) -> None:
    training = FoundationTraining(SMALL)
    policy = read_motor_policy(write_foundation_policy(tmp_path, training))
    assert policy.contract.band == pytest.approx(0.15)
    assert (policy.contract.family, policy.contract.history) == ("quadrotor", 0)
    own = policy.fitted(vehicle("virt_01"))
    # A policy that has learnt nothing yet hovers, whatever it is fitted to.
    seen = np.random.default_rng(0).normal(size=(4, own.contract.observed))
    np.testing.assert_allclose(own.command(own.action(seen)), np.tile(hover_speed(vehicle("virt_01")), (4, 1)), rtol=0.01)
    widths = 18 + 4 * FOUNDATION.history, FOUNDATION.hidden, FOUNDATION.hidden, 4
    assert sum((a + 1) * b for a, b in pairwise(widths)) <= 3000


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fleet of two, of which the policy refuses one."""
    refused = replace(vehicle("x500"), name="odd", rotors=tuple(replace(r, spin=1) for r in vehicle("x500").rotors))
    for place in (run_module, program):
        monkeypatch.setattr(place, "quadrotors", lambda: [vehicle("carl"), refused])


@pytest.mark.slow
def test_the_program_flies_each_quadrotor_and_the_fleet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], two: None
) -> None:
    monkeypatch.setattr(hardware, "use_cores", lambda count: [0])  # the other tests keep theirs
    monkeypatch.setattr(FoundationConfig, "options", lambda self, seed: replace(SMALL, seed=seed, iterations=self.iterations))
    words = ["--out", str(tmp_path / "p"), "--iterations", "1", "--flights", "16", "--json", str(tmp_path / "f.json")]
    assert program.main(words) == 0
    found = json.loads((tmp_path / "f.json").read_text())
    assert found["trained"]["env_steps"] == 320
    assert [(row["vehicle"], row["held"]) for row in found["rows"]] == [("carl", False), ("odd", False)]
    assert "turn against each other" in found["rows"][1]["refused"]
    told = capsys.readouterr().out
    assert "held within 10 cm: 0 of 2" in told
    assert "odd: refused: The policy is for quadrotors" in told
    monkeypatch.setattr(program, "FLEET", ("virt_01",))
    assert program.main(["--policy", str(tmp_path / "p"), "--fleet", "--flights", "16"]) == 0
    told = capsys.readouterr().out
    # A policy that has learnt nothing flies nothing; the known controller does.
    assert "fly the tour: 0 of 1" in told
    assert re.search(r"geometric controller: [01] held, 1 fly the tour", told)
    assert re.search(r"the geometric controller (holds|does not hold) it", told)
    with pytest.raises(SystemExit):
        program.main([])


def test_the_catalogue_has_52_quadrotors_and_the_tour_is_slow() -> None:
    assert [v.rotor_count for v in evaluation.quadrotors()] == [4] * 52
    path = evaluation.tour()
    flat = path.sample(np.linspace(0.0, path.duration, 400))
    assert np.linalg.norm(flat.velocity, axis=1).max() <= 1.0 + 1e-9
    np.testing.assert_allclose(path.sample(path.duration).position, evaluation.TOUR[-1], atol=1e-9)
    np.testing.assert_array_equal(flat.yaw, 0.0)


QUICK = FoundationProtocol(flights=16, tour_flights=2)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trained]:
    """A small training, finished and judged; its folder is read only."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(foundation, "_POOL", 24)
        patch.setattr(run_module, "quadrotors", lambda: [vehicle("carl"), vehicle("real_05")])
        yield train_foundation(tmp_path_factory.mktemp("f") / "run", SMALL, QUICK, command="airworthy train foundation <x>")


def test_a_training_leaves_policy_figures_log_and_page(done: Trained) -> None:
    found = json.loads((done.folder / "summary.json").read_text())
    assert found == json.loads(json.dumps(dict(done.figures)))
    assert (found["kind"], found["quadrotors"], found["env_steps"]) == ("foundation", 2, 6 * 20 * 16)
    assert [row["vehicle"] for row in found["vehicles"]] == ["carl", "real_05"]
    rows = [json.loads(line) for line in (done.folder / "metrics.jsonl").read_text().splitlines()]
    assert [row["iteration"] for row in rows] == list(range(1, 7))
    page = done.report.read_text()
    assert "airworthy train foundation &lt;x&gt;" in page
    for row in found["vehicles"]:
        for cell in fleet_cells(row):
            assert f"<td>{cell}</td>" in page
    policy = read_motor_policy(done.folder)
    assert policy.contract.family == "quadrotor"
    assert policy.fitted(vehicle("real_05")).contract.vehicle == "real_05"
    assert not (done.folder / "checkpoints").exists()


def test_finished_or_other_trainings_are_not_written_over(done: Trained, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FoundationTraining, "step", lambda self: pytest.fail("it learns again"))
    assert train_foundation(done.folder, SMALL, QUICK).figures == json.loads(json.dumps(dict(done.figures)))
    with pytest.raises(AirworthyError, match=r"holds another training \(seed was 0, not 1\)"):
        train_foundation(done.folder, replace(SMALL, seed=1), QUICK)
    with pytest.raises(AirworthyError, match=r"holds a training of foundation, not of hover: choose another folder\."):
        train_hover(vehicle("carl"), done.folder, SMALL)


def test_a_finished_training_is_judged_again(done: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(shutil.copytree(done.folder, tmp_path / "run"))
    monkeypatch.setattr(FoundationTraining, "step", lambda self: pytest.fail("it learns again"))
    monkeypatch.setattr(run_module, "quadrotors", lambda: [vehicle("carl")])
    again = train_foundation(folder, SMALL, replace(QUICK, flights=3))
    assert [row["vehicle"] for row in again.figures["vehicles"]] == ["carl"]
    assert again.figures["protocol"]["flights"] == 3
    assert again.figures["training_wall_s"] == done.figures["training_wall_s"]
    assert "carl" in again.report.read_text()


@pytest.mark.parametrize("after", [0, 3])
def test_a_killed_training_goes_on_to_the_same_bits(
    done: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    monkeypatch.setattr(timed_training, "_SAID_EVERY_S", 0.0)
    monkeypatch.setattr(run_module, "quadrotors", lambda: [vehicle("carl"), vehicle("real_05")])
    steps = TimedTraining.steps

    def dies(self: TimedTraining[Any], stopped: Any) -> Iterator[int]:
        for k in steps(self, stopped):
            if k == after + 1:
                raise MemoryError
            yield k

    monkeypatch.setattr(TimedTraining, "steps", dies)
    with pytest.raises(MemoryError):
        train_foundation(tmp_path / "run", SMALL, QUICK)
    monkeypatch.setattr(TimedTraining, "steps", steps)
    again = train_foundation(tmp_path / "run", SMALL, QUICK)
    for a, b in zip(read_motor_policy(again.folder).weights, read_motor_policy(done.folder).weights, strict=True):
        np.testing.assert_array_equal(a, b)
    assert json.loads(json.dumps(again.figures["vehicles"])) == json.loads(json.dumps(done.figures["vehicles"]))


@pytest.mark.slow
def test_command_and_call_train_alike(tmp_path: Path, capsys: pytest.CaptureFixture[str], two: None) -> None:
    given: dict[str, Any] = {"env_count": 16, "window": 20, "hidden": 16, "history": 0, "iterations": 2, "flights": 16}
    words = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
    assert main(["train", "foundation", *words, "--seeds", "2", "--out", str(tmp_path / "c")]) == 0
    told = capsys.readouterr().out
    assert "One policy for all quadrotors" in told
    assert "Not held: carl, odd." in told
    several = json.loads((tmp_path / "c" / "summary.json").read_text())
    assert [row["seed"] for row in several["seeds"]] == [0, 1]
    called = aw.train("foundation", None, tmp_path / "p", seed=1, **given)
    for a, b in zip(read_motor_policy(called.folder).weights, read_motor_policy(tmp_path / "c/seed_1").weights, strict=True):
        np.testing.assert_array_equal(a, b)
    assert called.summary["quadrotors"] == 2
    assert len(called.frame()) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--hidden", "33"], "--hidden is 33; expected 16, 32, 64"),
        (["--env-count", "17"], "--env-count is 17; expected a multiple of 16"),
        (["--history", "9"], "--history is 9; expected 0 to 8"),
        (["--flights", "0"], "--flights is 0; expected 1 to"),
        (["--seeds", "0"], "--seeds is 0; expected 1 to"),
    ],
)
def test_wrong_options_are_one_sentence(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "foundation", *words]) == 2
    assert message in capsys.readouterr().err


def test_the_tour_may_be_left_out_of_the_judging(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], two: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes nine tenths of the time; neither table nor page has a column of it then."""
    monkeypatch.setattr(evaluation, "fly_tour", lambda *_: pytest.fail("it flies the tour"))
    words = [
        "--hidden",
        "16",
        "--iterations",
        "2",
        "--env-count",
        "16",
        "--window",
        "5",
        "--flights",
        "4",
        "--tour-flights",
        "0",
    ]
    assert main(["train", "foundation", "--out", str(tmp_path), *words]) == 0
    assert "fly the tour" not in capsys.readouterr().out
    found = json.loads((tmp_path / "summary.json").read_text())
    assert "tour_flown" not in found
    assert (found["protocol"]["flights"], found["protocol"]["tour_flights"]) == (4, 0)
    assert "tour flown" not in (tmp_path / "report.html").read_text()
    assert "--tour-flights 0" in found["command"]


def test_a_vehicle_is_not_asked_for() -> None:
    with pytest.raises(AirworthyError, match=r"foundation learns on vehicles that it draws itself, and 'carl' was given"):
        aw.train("foundation", "carl")
