"""Conditions that change nothing, or less than they say, are told before anything flies."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.benchmarks.tracking_stage import EXPERT, PLACE, on_stage

from airworthy.benchmarks.tracking.conditions import condition, condition_names, expanded
from airworthy.benchmarks.tracking.config import EvaluateConfig
from airworthy.benchmarks.tracking.idle_conditions import idle_reasons
from airworthy.benchmarks.tracking.job import evaluate
from airworthy.benchmarks.tracking.methods import TrackingMethod, method_of
from airworthy.cli.evaluate import main
from airworthy.core.errors import AssetWarning
from airworthy.scenes import scene
from airworthy.vehicles import vehicle

SEEING = replace(EXPERT, name="seeing", senses=True, sensors=lambda _: {"camera": None})


def _idle(names: tuple[str, ...], course: str, place: str, *methods: TrackingMethod) -> dict[str, list[str]]:
    conditions = expanded(names)
    scenes: dict[str, Any] = {name: scene(name) for name in {item.scene or place for item in conditions}}
    return idle_reasons(conditions, course, place, scenes, methods or (SEEING,), vehicle("carl"))


def test_whoever_sees_and_senses_is_told_of_nothing_on_the_published_course() -> None:
    """Nor on any course with a gust from 48 % of it that has ended before the flight has: 1.92 s and longer."""
    assert _idle(("all",), "robustness", "hall") == {}
    assert _idle(("wind", "wind_sweep"), "line", "hall") == {}


PUSH = "the push lasts 1 s from 48 % of the course 'hover', which ends 0.52 s later; choose a longer --course"


def test_what_does_nothing_is_told_with_the_conditions_that_it_holds_of() -> None:
    on_stage(Path())
    names = ("baseline", "wind", "wind:3", "static", "lighting", "noise:assisted", "noise:extreme")
    assert _idle(names, "hover", PLACE, EXPERT) == {
        PUSH: ["wind", "wind:3"],
        "light is nothing to mpc, without a camera": ["lighting"],
        # That of `extreme` acts on the motion, too.
        "noise of what is sensed is nothing to mpc, told the true state": ["noise:assisted"],
    }
    # One of two who sees is enough.
    assert _idle(("lighting", "noise:assisted", "blindfold"), "hover", PLACE, EXPERT, SEEING) == {}
    assert _idle(("blindfold", "frozen"), "line", "empty_room", EXPERT) == {
        "images are nothing to mpc, without a camera": ["blindfold", "frozen"]
    }


def test_a_tracker_carries_no_camera() -> None:
    assert _idle(("lighting",), "line", "hall", method_of("geometric")) == {
        "light is nothing to geometric, without a camera": ["lighting"]
    }


def test_the_run_warns_once_and_counts(tmp_path: Path) -> None:
    config = on_stage(tmp_path / "out", conditions=("baseline", "wind", "wind:2"), flights=1, report=False)
    with pytest.warns(AssetWarning) as told:
        evaluate(config, methods=[EXPERT])
    (warning,) = [str(one.message) for one in told if "less than said" in str(one.message)]
    assert warning == f"2 of 3 conditions change less than said: wind, wind:2: {PUSH}."


def test_the_guides_example_flies_conditions_that_do_something() -> None:
    """Its course lasts longer than its gust; both of its pilots feel all of its conditions, one of them the noise."""
    guide = (Path(__file__).parents[2] / "docs/howto/evaluate.md").read_text(encoding="utf-8")
    (line,) = [line for line in guide.splitlines() if "policy:runs/hover_carl geometric --course" in line]
    words = line.split()
    course = words[words.index("--course") + 1]
    names = tuple(words[words.index("--conditions") + 1 :])
    assert set(names) < {*condition_names(), "noise:assisted"}
    assert all(condition(name) for name in names)
    policy = TrackingMethod("policy", EXPERT.make)
    assert _idle(names, course, EvaluateConfig().scene, policy, method_of("geometric")) == {}


OWN = """
class Raises:
    name, level, observes = "raises", "rate_thrust", ("velocity",)

    def command(self, observation):
        raise ValueError("no battery")
"""


def test_the_terminal_and_the_page_say_what_ended_all_flights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    on_stage(tmp_path)
    (tmp_path / "own.py").write_text(OWN, encoding="utf-8")
    out = tmp_path / "out"
    asked = [
        "--pilot",
        f"{tmp_path / 'own.py'}:Raises",
        "--course",
        "hover",
        "--scene",
        PLACE,
        "--flights",
        "3",
        "--out",
        str(out),
    ]
    assert main([*asked, "--conditions", "baseline"]) == 1  # a pilot that failed is not a success of the command
    line = "raises: 3 of 3 flights ended as pilot error: the pilot failed: ValueError: no battery (own.py, line 6)."
    assert line in capsys.readouterr().out
    assert line in (out / "report.html").read_text(encoding="utf-8")
    (ending,) = json.loads((out / "summary.json").read_text(encoding="utf-8"))["endings"]
    assert (ending["flights"], ending["of"], ending["outcome"]) == (3, 3, "pilot_error")
