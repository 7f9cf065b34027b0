"""`--randomize identified`: flights of every benchmark draw their vehicles, the same for every pilot, and say so."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fixtures.identified import identified

from airworthy.benchmarks.fly.job import FlyConfig, run_fly
from airworthy.benchmarks.navigation.config import Flight, NavigationConfig, Perturbation
from airworthy.benchmarks.navigation.flight_records import DRAWN, vehicle_digest
from airworthy.benchmarks.navigation.fly_batch import simulator_of, stage_of
from airworthy.benchmarks.navigation.job import flown_rows, run_benchmark, track_of
from airworthy.benchmarks.navigation.methods import method_of
from airworthy.benchmarks.navigation.replay import replay_row
from airworthy.benchmarks.navigation.sensitivity.study import SensitivityConfig, _ideal, points_of, run_study
from airworthy.benchmarks.navigation.store import read_rows
from airworthy.benchmarks.navigation.takeoff import begin
from airworthy.benchmarks.tracking.conditions import expanded
from airworthy.benchmarks.tracking.config import EvaluateConfig
from airworthy.benchmarks.tracking.job import evaluate
from airworthy.benchmarks.tracking.methods import VehicleSpread
from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError
from airworthy.tasks.navigation import NavigationProtocol
from airworthy.vehicles import write_vehicle

BRIEF = NavigationConfig(
    protocol=NavigationProtocol(time_limit_s=3.0), randomize="identified", scenarios=("forest",), report=False
)


@pytest.fixture
def mine(tmp_path: Path) -> str:
    """The file of a vehicle whose Izz may be of no body."""
    made = identified()
    told = made.uncertainty
    assert told is not None
    sd = tuple(0.13 if name == "inertia_zz_ratio" else value for name, value in zip(told.names, told.sd, strict=True))
    write_vehicle(replace(made, uncertainty=replace(told, sd=sd)), tmp_path / "mine.toml")
    return str(tmp_path / "mine.toml")


def drawn_of(rows: list[dict[str, Any]]) -> list[dict[str, float]]:
    return [json.loads(row[DRAWN]) for row in rows]


def test_flights_tell_what_their_draws_left_out(mine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["fly", "--vehicle", mine, "--envs", "12", "--randomize", "identified", "--no-report", "--out", str(tmp_path / "a")]
    assert main(asked) == 0
    assert "10.5 % of the draws from the uncertainty of cf2x_L250 are no vehicles" in capsys.readouterr().out
    summary = json.loads((tmp_path / "a" / "summary.json").read_text())
    (told,) = summary["identified_draws"]
    assert told["narrowed"]["inertia_zz_ratio"] == {"told": pytest.approx(0.13), "drawn": pytest.approx(0.108, abs=1e-3)}
    assert 0 <= summary["rejected_draws"] < 8
    run_fly(FlyConfig(vehicle=("cf2x_L250",), out=tmp_path / "b", report=False))
    assert "identified_draws" not in json.loads((tmp_path / "b" / "summary.json").read_text())


def test_navigation_draws_the_same_vehicle_for_every_pilot(mine: str) -> None:
    flights = [Flight("forest", 1, mine), Flight("forest", 2, mine)]
    config = replace(BRIEF, vehicles=(mine,))
    rows, _ = flown_rows(flights, method_of("straight"), config)
    others, _ = flown_rows(flights[1:], method_of("oracle"), config)
    drawn = drawn_of(rows)
    assert drawn[0]["mass"] != drawn[1]["mass"]
    assert drawn_of(others) == drawn[1:]
    # What flew is the draw; what planners and tables take it for is the record.
    assert {row["mass_kg"] for row in rows} == {identified().mass}
    assert rows[0]["vehicle_sha256"] == vehicle_digest(mine, "sphere")
    plain, _ = flown_rows(flights, method_of("straight"), replace(config, randomize=None))
    assert DRAWN not in plain[0]
    assert [row["trace"] for row in rows] != [row["trace"] for row in plain]
    assert [row["take_off_s"] for row in rows] != [row["take_off_s"] for row in plain]
    other_seed, _ = flown_rows(flights[:1], method_of("straight"), replace(config, seed=1))
    assert drawn_of(other_seed)[0]["mass"] != drawn[0]["mass"]


def test_drawn_rotors_wear_too(mine: str) -> None:
    flights = [Flight("forest", 1, mine)] * 3
    config = replace(BRIEF, vehicles=(mine,), perturb=Perturbation(motor_degradation=0.2))
    stage = stage_of(flights, config)
    pilot: Any = type("Guide", (), {"level": "tracking", "configured": staticmethod(lambda base: base)})
    worn, plain = simulator_of(stage, pilot, config), simulator_of(stage, pilot, config)
    state = {"position": stage.takeoff.state["position"]}
    begin(worn, stage.draws, state)
    begin(plain, replace(stage.draws, thrust=np.ones_like(stage.draws.thrust)), state)
    left = worn.parameter("rotor_thrust")[:, 2::3] / plain.parameter("rotor_thrust")[:, 2::3]
    np.testing.assert_allclose(left, stage.draws.thrust[:, :4])
    assert np.array_equal(worn.parameter("mass"), plain.parameter("mass"))


def test_a_run_tells_its_draws_and_is_flown_again(mine: str, tmp_path: Path) -> None:
    config = replace(BRIEF, vehicles=(mine,), trials=2, out=tmp_path / "nav")
    done = run_benchmark(config)
    assert [entry["vehicle"] for entry in done.summary["identified_draws"]] == ["cf2x_L250"]
    rows = read_rows(tmp_path / "nav")
    assert all(math.isfinite(item["thrust"]) and item["rejected"] >= 0 for item in drawn_of(rows))
    assert "--randomize identified" in done.summary["command"]
    assert replay_row(tmp_path / "nav", 1, keep=False).equal
    assert track_of(NavigationConfig(randomize="identified"), [])["because"] == ["--randomize differs from the benchmark's"]
    with pytest.raises(AirworthyError, match="holds"):
        run_benchmark(replace(config, randomize=None))


def test_studies_of_sensitivity_draw_them_at_every_point(mine: str, tmp_path: Path) -> None:
    config = SensitivityConfig(
        pilots=("oracle",), axes=("motor_degradation:0.1",), vehicles=(mine,), scenarios=("forest",), configurations=(1,),
        randomize="identified", out=tmp_path / "study", report=False,
    )  # fmt: skip
    points = points_of(config.axes)
    assert {_ideal(config, point).randomize for point in points} == {"identified"}
    with pytest.raises(AirworthyError, match="virt_05 tells no uncertainty, from which identified vehicles are drawn"):
        run_study(replace(config, vehicles=("virt_05",)))


def test_navigation_refuses_vehicles_that_tell_no_uncertainty(tmp_path: Path) -> None:
    with pytest.raises(AirworthyError, match="virt_05 tells no uncertainty, from which identified vehicles are drawn"):
        run_benchmark(replace(BRIEF, vehicles=("virt_05",), out=tmp_path / "nav"))
    with pytest.raises(AirworthyError, match=r"Unknown randomize 'mass=0\.1'. Known: identified\."):
        replace(BRIEF, randomize="mass=0.1")  # type: ignore[arg-type]


@pytest.mark.slow
def test_evaluations_draw_the_same_vehicle_for_every_pilot_and_condition(mine: str, tmp_path: Path) -> None:
    config = EvaluateConfig(
        pilot=("mpc", "position"), vehicle=mine, course="line", conditions=("baseline", "payload"), flights=2,
        randomize="identified", out=tmp_path / "evaluation", report=False,
    )  # fmt: skip
    done = evaluate(config)
    rows = done.summary["flights"]
    assert len(rows) == 8
    assert {row["family"] for row in rows} == {"rigid"}
    for flight in (0, 1):
        told = {row["drawn"] for row in rows if row["flight"] == flight}
        (drawn,) = (json.loads(text) for text in told)
        for row in (row for row in rows if row["flight"] == flight):
            # A payload comes on top of what was drawn.
            factor = expanded((row["condition"],))[0].mass
            assert row["mass_kg"] == pytest.approx(factor * drawn["mass"], rel=1e-9)
            assert (factor > 1.0) == (row["condition"] == "payload")
    assert len({row["mass_kg"] for row in rows}) == 4
    assert done.summary["identified_draws"][0]["narrowed"].keys() == {"inertia_zz_ratio"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"family": ("semi_kinematic",)}, "the semi-kinematic family has no rotors to draw: give --family rigid"),
        ({"spread": VehicleSpread(mass=0.1)}, r"--spread\.mass 0\.1 draws by itself what an identified vehicle's uncertainty"),
        ({"vehicle": "carl"}, "carl tells no uncertainty, from which identified vehicles are drawn"),
    ],
)
def test_evaluations_refuse_what_cannot_be_drawn(given: dict[str, Any], said: str, mine: str, tmp_path: Path) -> None:
    asked = {"vehicle": mine, "randomize": "identified", "conditions": ("baseline",), "out": tmp_path / "e"} | given
    with pytest.raises(AirworthyError, match=said):
        evaluate(EvaluateConfig(**asked))
