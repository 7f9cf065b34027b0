"""Learnt policies and trackers in an evaluation: at their own rate and level, under the same ticks as all others."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.benchmarks.tracking_stage import on_stage
from tests.pilots.motor_cases import contract, learnt, weights

from airworthy.benchmarks import FlyConfig, run_fly
from airworthy.benchmarks.tracking.conditions import noise_level
from airworthy.benchmarks.tracking.config import EvaluateConfig, settled
from airworthy.benchmarks.tracking.job import evaluate
from airworthy.benchmarks.tracking.methods import COMMAND_RATES, TICK_RATE, families_of, keys_of, method_of, methods_of
from airworthy.benchmarks.tracking.trial import WatchedPilot
from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.learning.gradient import write_motor_policy
from airworthy.pilots.avoid_policy.contract import AvoidContract, tensor_shapes, write_avoid_folder
from airworthy.pilots.motor_policy.contract import write_motor_folder
from airworthy.pilots.pilot import Observation
from airworthy.simulation import read_flight, read_flight_meta
from airworthy.viewer.subjects import load_subject


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A policy that hovers, learnt in a second; it decides at 100 Hz."""
    return write_motor_policy(tmp_path_factory.mktemp("motor") / "policy", learnt())


def avoiding(folder: Path) -> Path:
    """A policy that sees, of zeros: it asks for nothing, and is held in the air by its pilot's least lift alone."""
    shapes = tensor_shapes(AvoidContract(8))
    return write_avoid_folder(folder, AvoidContract(8), {name: np.zeros(shape, np.float32) for name, shape in shapes.items()})


def test_a_learnt_policy_is_evaluated_like_any_other(folder: Path, tmp_path: Path) -> None:
    config = on_stage(
        tmp_path / "run",
        pilot=(f"policy:{folder}", "mpc", "geometric"),
        vehicle="tinyprop",
        flights=2,
        conditions=("baseline", "payload", "wind", "noise:assisted", "delay:0.02"),
        report=False,
    )
    found = evaluate(config)
    assert found.complete
    rows = found.summary["flights"]
    assert {row["family"] for row in rows} == {"rigid"}  # what a pilot of rotors needs, without being asked for
    assert [row["pilot"] for row in rows[:6:2]] == ["policy", "mpc", "geometric"]
    calm = [row for row in rows if row["condition"] == "baseline"]
    assert {row["outcome"] for row in calm} == {"success"}
    mine = {row["condition"]: row["tracking_error_m"] for row in rows if row["pilot"] == "policy" and row["flight"] == 0}
    # Every condition reaches it: no two flights are alike, and a push and a payload cost a policy that was told of neither.
    assert len(set(mine.values())) == len(mine)
    assert min(mine["payload"], mine["wind"]) > mine["baseline"]


def test_its_flights_are_kept_and_judged_at_the_ticks_of_all(folder: Path, tmp_path: Path) -> None:
    evaluate(
        on_stage(tmp_path, pilot=(f"policy:{folder}", "mpc"), vehicle="tinyprop", flights=1, conditions=("wind",), report=False)
    )
    flights = {path.parent.name.partition("__")[0]: path.parent for path in tmp_path.rglob("flight.parquet")}
    times = {name: read_flight(place)[0].t for name, place in flights.items()}
    assert np.allclose(np.diff(times["policy"]), 1.0 / TICK_RATE)
    assert np.array_equal(times["policy"], times["mpc"])
    # Thrust and rates are the numbers of pilots that command them; rotors say the rest.
    named = {name: set(read_flight(place)[0].columns) for name, place in flights.items()}
    assert "command_thrust_n" in named["mpc"] - named["policy"]
    assert read_flight_meta(flights["policy"])["control_rate_hz"] == 100.0
    assert read_flight_meta(flights["mpc"])["control_rate_hz"] == TICK_RATE


def test_a_policy_that_sees_is_evaluated(tmp_path: Path) -> None:
    place = avoiding(tmp_path / "avoider")
    config = on_stage(tmp_path / "run", pilot=(f"avoid:{place}",), vehicle="flightgoggles", flights=1, conditions=("baseline",))
    found = evaluate(config)
    assert found.complete
    assert [row["pilot"] for row in found.summary["flights"]] == ["avoider"]
    identity = json.loads((tmp_path / "run" / "evaluation.json").read_text(encoding="utf-8"))
    assert set(identity["identity"]["pilots"]["avoider"]) == {"pilot", "contract.json", "weights.safetensors"}


def test_families_and_rates(folder: Path) -> None:
    found = methods_of(["mpc", f"policy:{folder}", "geometric"])
    assert [item.rate for item in found] == [20.0, 100.0, 100.0]
    assert [item.senses for item in found] == [False, True, False]  # a tracker's law acts on the true state
    assert set(COMMAND_RATES) >= {item.rate for item in found}
    assert [families_of(item) for item in found] == [("semi_kinematic", "rigid"), ("rigid",), ("semi_kinematic", "rigid")]
    assert settled(EvaluateConfig(), found[:1]).family == ("semi_kinematic",)
    assert settled(EvaluateConfig(), found).family == ("rigid",)
    assert settled(EvaluateConfig(family=("rigid", "semi_kinematic")), found[:1]).family == ("rigid", "semi_kinematic")
    with pytest.raises(AirworthyError, match="'policy' commands rotor_speed, which the semi-kinematic family does not take"):
        settled(EvaluateConfig(family=("semi_kinematic",)), found)


def test_what_cannot_be_evaluated_is_a_sentence(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fast = contract(rate=1000.0)
    write_motor_folder(tmp_path / "fast", fast, weights(fast))
    cases = {
        f"policy:{tmp_path / 'fast'}": "at up to 500 Hz: fly it with `airworthy fly",
        "policy:": "write svnet:FOLDER, policy:FOLDER",
        f"policy:{tmp_path / 'none'}": "There is no file",
        f"policy:{folder}": "the vehicle 'carl' has",
        "ego": "is a planner, which finds its own way",
        "geometrik": "Closest: 'geometric'",
    }
    for word, says in cases.items():
        assert main(["evaluate", "--pilot", word, "--course", "hover", "--out", str(tmp_path / "run")]) == 2
        said = capsys.readouterr().err
        assert says in said, word
        assert said.count("\n") == 1
        assert not (tmp_path / "run").exists()
    with pytest.raises(AirworthyError, match="are the same policy; name each once"):
        methods_of([f"policy:{folder}", f"policy:{folder.parent}/./policy"])
    assert method_of(f"policy:{folder}").name == "policy"


def test_a_flight_of_a_policy_with_perturbations_is_seen_and_its_folder_says_how(folder: Path, tmp_path: Path) -> None:
    config = FlyConfig(
        ("tinyprop",), course="hover", pilot=f"policy:{folder}", randomize=("default",), wind=(1.0, 0.0, 0.0), turbulence=0.3,
        latency=0.01, physics_rate=1000.0, envs=2, report=False, out=tmp_path / "flown",
    )  # fmt: skip
    run_fly(config)
    shown = load_subject(str(tmp_path / "flown")).flight
    assert shown is not None
    assert len(shown.envs) == 2
    with pytest.raises(AssetError, match=f"holds a policy, of which only flights .* --pilot policy:{folder} --out FOLDER"):
        load_subject(str(folder))


class Reader:
    """Keeps what it is given."""

    name, level, observes = "reader", "rotor_speed", ("position",)

    def __init__(self) -> None:
        self.read: list[Any] = []

    def command(self, observation: Observation) -> Any:
        """Zeros."""
        self.read.append(observation["position"])
        return np.zeros((2, 4))


def test_what_is_sensed_is_drawn_once_a_tick_however_often_a_pilot_decides() -> None:
    keys, level = keys_of(0, np.arange(2)), "assisted"
    rare, often = Reader(), Reader()
    seen = Observation(np.zeros(2), {"position": np.zeros((2, 3))}, {})
    for reader, every in ((rare, 1), (often, 5)):
        watched = WatchedPilot(reader, level, keys, every)
        for _ in range(3 * every):
            watched.command(replace(seen, fields={"position": np.zeros((2, 3))}))
        assert len(watched.commands) == 3
    assert np.array_equal(np.stack(often.read), np.repeat(np.stack(rare.read), 5, axis=0))
    assert np.any(np.stack(rare.read))
    assert noise_level(level).sensor[0] > 0.0
