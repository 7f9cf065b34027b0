"""Exit codes of what flies: 0 whatever became of the flights, 1 where a pilot failed, 2 where it cannot be flown."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airworthy.benchmarks.tracking.job import Evaluated
from airworthy.cli import evaluate
from airworthy.cli.bench import race
from airworthy.cli.common import flown_exit
from airworthy.cli.main import COMMANDS, main

OWN = """
class Sulking:
    name, level, observes = "sulking", "velocity", ("position",)

    def command(self, observation):
        if observation.time[0] > 0.1:
            raise RuntimeError("no more")
        return [[0.0, 0.0, 0.0, 0.0]] * len(observation.time)


class Falling(Sulking):
    name = "falling"

    def command(self, observation):
        return [[0.0, 0.0, -2.0, 0.0]] * len(observation.time)
"""


@pytest.fixture
def pilot(tmp_path: Path) -> Callable[[str], str]:
    (tmp_path / "own.py").write_text(OWN)
    return lambda name: f"{tmp_path / 'own.py'}:{name}"


def test_fly_ends_with_1_where_its_pilot_failed(
    pilot: Callable[[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["fly", "--waypoints", "0,0,1", "0,0,2", "--hold", "0.1", "--no-report", "--out", str(tmp_path / "run")]
    assert main([*words, "--pilot", pilot("Sulking"), "--envs", "2", "--json"]) == 1
    said = capsys.readouterr()
    assert json.loads(said.out)["outcomes"]["pilot_error"] == 2
    assert "2 of 2 flights ended as pilot_error: exit code 1." in said.err
    # A flight that ended badly is what was to be found out.
    assert main([*words, "--pilot", pilot("Falling"), "--ground", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outcomes"]["success"] == 0
    assert main([*words, "--pilot", "nobody"]) == 2
    # Judging flies nothing: it has done what it was asked for.
    assert main([*words, "--pilot", pilot("Sulking")]) == 1
    assert "The flight ended as pilot_error" in capsys.readouterr().err
    assert main(["judge", str(tmp_path / "run")]) == 0


def test_the_navigation_benchmark_ends_with_1_where_a_pilot_failed(
    pilot: Callable[[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["bench", "navigation", "--vehicles", "real_01", "--scenarios", "forest", "--configurations", "1", "--repeats", "1"]
    words += ["--no-report", "--warm-up", "0", "--protocol.time-limit-s", "1", "--out", str(tmp_path / "nav"), "--pilots"]
    assert main([*words, pilot("Sulking"), pilot("Falling"), "--json"]) == 1
    said = capsys.readouterr()
    assert "1 of 2 flights ended as planner_crash: exit code 1." in said.err
    assert json.loads(said.out)["outcomes"]["sulking"]["planner_crash"] == 1


def test_an_evaluation_ends_with_1_where_a_pilot_failed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def ended(pilot: str, outcome: str, flights: int, of: int) -> dict[str, Any]:
        return {"pilot": pilot, "outcome": outcome, "cause": "it was so", "flights": flights, "of": of}

    def run(*endings: dict[str, Any]) -> int:
        names = (
            "command",
            "state",
            "changes",
            "left_out",
            "aggregate",
            "against_first_pilot",
            "against_baseline",
            "adaptation",
        )
        summary = {**{name: {} for name in names}, "aggregate": [], "endings": list(endings)}
        monkeypatch.setattr(evaluate, "evaluate", lambda *_, **__: Evaluated(Path("out"), summary, 4, 4, False, None))
        return main(["evaluate", "--json"])

    assert run() == 0
    assert run(ended("mpc", "collision", 3, 8)) == 0
    assert run(ended("mpc", "collision", 3, 8), ended("own", "pilot_error", 2, 8), ended("own", "collision", 1, 8)) == 1
    assert "2 of 16 flights ended as pilot_error: exit code 1." in capsys.readouterr().err


def test_a_race_ends_with_1_where_a_pilot_failed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*outcomes: str) -> int:
        flights = [{"outcome": outcome, "end": "bad_command"} for outcome in outcomes]
        done = SimpleNamespace(
            folder=Path("out"), interrupted=False, timing=(), summary={"flights": flights}, flights=len(flights)
        )
        monkeypatch.setattr(race, "run_race_bench", lambda *_, **__: done)
        return race.main(["--json"])

    assert (run("success", "collision"), run("success", "pilot_error")) == (0, 1)
    assert "1 of 2 flights ended as pilot_error" in capsys.readouterr().err


def test_nothing_flown_is_no_failure_of_a_pilot() -> None:
    assert flown_exit({}) == 0


# ---- One word for a protocol ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", ["", "--as ros2", "--as=zenoh", "--as lcm", "--poses udp"])
def test_help_of_serve_says_the_word_that_it_takes(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", *words.split(), "--help"]) == 0
    said = capsys.readouterr().out
    assert "--as {" in said
    assert not [word for word in ("--autopilot", "--transport", "--publish") if word in said]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--autopilot px4", "does not know for whom: --as px4, ardupilot, betaflight, ros2, zenoh, lcm, or --poses SOURCE"),
        ("--transport ros2", "does not know for whom"),
        ("--as px5", "Unknown program to serve 'px5'. Closest: 'px4'"),
        ("--as=ros", "Unknown program to serve 'ros'. Closest: 'ros2'"),
        ("--as ros2 --publish ros2", "Unrecognized options: --publish"),
        ("--as px4 --autopilot px4", "Unrecognized options: --autopilot"),
        ("--poses udp --publish ros2", "Unrecognized options: --publish"),
        ("--poses udp --as lcm", "invalid choice 'lcm' for argument '--as'"),
        ("--as", "does not know for whom"),
    ],
)
def test_other_words_are_refused_with_those_there_are(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", *words.split()]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_every_command_that_flies_documents_its_codes() -> None:
    text = (Path(__file__).parents[2] / "docs/concepts/runs.md").read_text()
    section = text.partition("## Exit codes")[2]
    assert all(f"| {code} |" in section for code in (0, 1, 2, 130, 143, 141))
    assert "fly" in COMMANDS
