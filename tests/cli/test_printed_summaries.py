"""What commands print of runs that are over, from summaries written here: numbers in their units, and what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airworthy.benchmarks.navigation.job import Benchmarked
from airworthy.cli.bench import gates, navigation
from airworthy.cli.learning import synthesize
from airworthy.gates.benchmark import GatesBenchmarked
from airworthy.learning.datasets.job import Made

OVAL: dict[str, Any] = {"course": "oval", "gates": 8, "flyable": True, "reason": "", "laps": {"plan": 7.25}}
KNOT: dict[str, Any] = {"course": "knot", "gates": 3, "flyable": False, "reason": "too_fast", "laps": {}}
COURSES = [OVAL | {"limit_used": 0.875, "clearance_m": 0.4}, KNOT | {"limit_used": None, "clearance_m": None}]


def test_gates_tell_limits_in_percent_and_why_a_course_was_not_flown(capsys: pytest.CaptureFixture[str]) -> None:
    flown: dict[str, Any] = {"flights": 5, "successes": 4, "crashes": 1, "skips": 0, "wrong_ways": 0}
    flown |= {"error_mean_m": 0.0625, "error_max_m": None}
    summary = {"courses": COURSES, "aggregate": {"competition": flown}, "random": None, "beside": False, "compared": []}
    gates._show(GatesBenchmarked(Path("out"), summary, 1, 1, False, None))
    said = capsys.readouterr().out
    oval, knot = (next(line.split() for line in said.splitlines() if name in line) for name in ("oval", "knot"))
    assert {"8", "approved", "7.25", "87.5", "0.4"} <= set(oval)
    assert "too_fast" in knot
    assert not {"87.5", "0.4", "None"} & set(knot)
    assert "6.25" in next(line.split() for line in said.splitlines() if "competition" in line)
    assert "None" not in said
    assert said.endswith("Results: out\n")


def test_gates_tell_random_courses_other_predictors_and_broken_certificates(capsys: pytest.CaptureFixture[str]) -> None:
    flown = {"flights": 6, "successes": 3, "crashes": 2, "skips": 1, "wrong_ways": 0, "error_mean_m": None, "error_max_m": 0.5}
    first = {"name": "boundary", "courses_approved": 2, "courses": 4, "lap_mean_s": {"course": 9.5, "random": None}}
    first |= {"random": {"approved": {"value": 0.375}, "untouched": 0.25}, "flights": {"competition": flown}}
    first |= {"dense_broken": 1, "dense_plans": 3}
    other = first | {"name": "theirs", "random": None, "dense_broken": 0, "dense_plans": 1_200}
    random = {"flights": {"competition": flown}, "approved_count": 7, "courses": 20}
    summary = {"courses": [], "aggregate": {}, "random": random, "beside": True, "compared": [first, other]}
    gates._show(GatesBenchmarked(Path("out"), summary, 1, 1, False, Path("out/report.html")))
    said = capsys.readouterr().out
    assert "Random courses: 7 of 20 approved." in said
    assert "Certificates: 1 of 1,203 approved plans broken at 10,000 samples a second." in said
    ours, theirs = (next(line for line in said.splitlines() if name in line) for name in ("boundary", "theirs"))
    assert {"9.5", "37.5", "3/6"} <= set(ours.split())
    assert "2 of 4" in ours
    assert "37.5" not in theirs
    assert "50" in next(line for line in said.splitlines() if "competition" in line and "random" in line).split()
    assert said.endswith("Report: out/report.html\n")


def test_navigation_tells_by_what_pilots_failed() -> None:
    """The exit code is 1 then; a collision is a result like any other."""
    crash = {"pilot": "mine", "scenario": "forest", "outcome": "planner_crash", "cause": "it gave up.", "flights": 2, "of": 9}
    assert navigation.told_crashes([crash | {"outcome": "collision"}, crash]) == [
        "mine, forest: 2 of 9 flights ended as planner_crash: it gave up."
    ]
    lines = navigation.told_crashes([crash] * 20)
    assert len(lines) == 13
    assert lines[-1] == "16 more failed in other ways; summary.json lists them."


def test_navigation_tells_rates_in_percent_per_scenario(capsys: pytest.CaptureFixture[str]) -> None:
    scores = [{"pilot": pilot, "score": 61.5, "variance": 2.25, "final": 59.0, "timed": 40.5} for pilot in ("alpha", "beta")]
    rates = [("alpha", "maze", 0.75), ("alpha", "forest", 0.125), ("beta", "forest", 1.0)]
    scenarios = [{"pilot": pilot, "scenario": scenario, "value": value} for pilot, scenario, value in rates]
    navigation.show_scores({"scores": scores, "scenarios": scenarios})
    said = capsys.readouterr().out.splitlines()
    head, alpha, beta = (next(line for line in said if name in line) for name in ("score", "alpha", "beta"))
    assert head.index("maze") < head.index("forest")
    assert alpha.split() == ["alpha", "61.5", "2.25", "59", "40.5", "75", "12.5"]
    assert beta.split()[:5] == ["beta", *alpha.split()[1:5]]
    assert beta.split()[-1] == "100"
    assert "75" not in beta.split()


@pytest.mark.parametrize("report", [None, Path("out/report.html")])
def test_navigation_names_its_report_where_it_wrote_one(report: Path | None, capsys: pytest.CaptureFixture[str]) -> None:
    done = Benchmarked(Path("out"), {"scenarios": [], "scores": []}, 2, 3, True, report)
    read_back = navigation._json_summary(done)
    assert read_back["report"] == (None if report is None else "out/report.html")
    assert (read_back["folder"], read_back["interrupted"], read_back["scores"]) == ("out", True, [])
    navigation._show(done)
    assert capsys.readouterr().out == ("Results: out\n" if report is None else "Report: out/report.html\n")


@pytest.mark.parametrize(("card", "last"), [(None, "Data set: out"), (Path("out/card.md"), "Data card: out/card.md")])
def test_synthesis_names_the_card_where_it_wrote_one(card: Path | None, last: str, capsys: pytest.CaptureFixture[str]) -> None:
    made = Made(Path("out"), (), 4, {"shards": 0, "pairs": 0}, 1.5, {"flying": 3.0, "writing": 1.0})
    synthesize._show(made, {"pairs_per_second": 0.0, "stages_s": dict(made.stages)}, card)
    said = capsys.readouterr().out
    assert said.splitlines()[-1] == last
    assert "of 4, 0 of them new" in said
    assert "75 %" in next(line for line in said.splitlines() if "flying" in line)


def test_a_stopped_navigation_run_says_how_many_flights_are_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done = Benchmarked(Path("out"), {"scenarios": [], "scores": []}, 500, 1_700, True, None)
    monkeypatch.setattr(navigation, "run_benchmark", lambda *_, **__: done)
    assert navigation._run(navigation.NavigationConfig()) == 130
    said = capsys.readouterr()
    assert said.err == "Interrupted: finished flights are kept; the same command flies the other 1,200.\n"
    assert said.out == "Results: out\n"
