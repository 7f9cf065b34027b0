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


@pytest.mark.parametrize("report", [None, Path("out/report.html")])
def test_navigation_names_its_report_where_it_wrote_one(report: Path | None, capsys: pytest.CaptureFixture[str]) -> None:
    done = Benchmarked(Path("out"), {"scenarios": [], "scores": []}, 2, 3, True, report)
    told = navigation._json_summary(done)
    assert told["report"] == (None if report is None else "out/report.html")
    assert (told["folder"], told["interrupted"], told["scores"]) == ("out", True, [])
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
