"""What an evaluation's report shows of what was asked for."""

from __future__ import annotations

from typing import Any

from airworthy.benchmarks.tracking import job, report_text
from airworthy.benchmarks.tracking.conditions import expanded, sweeps
from airworthy.benchmarks.tracking.endings import endings, told_endings


def flown(*names: str) -> list[dict[str, Any]]:
    return [{"condition": name} for name in names]


def test_single_points_of_sweeps_are_conditions_and_whole_sweeps_are_lines() -> None:
    assert job.drawn_sweeps(flown("baseline", "payload:1.4", "delay:0.03", "wind:2.1")) == []
    (line,) = job.drawn_sweeps(flown("payload:1.4", "payload:1.5", "delay:0.03"))
    assert line in sweeps()
    assert line.name == "payload"


def test_what_figures_leave_out_is_said() -> None:
    conditions = expanded(("baseline", "payload:1.4", "payload:1.5"))
    assert job.left_out(conditions, conditions) == ""
    said = job.left_out(conditions[:1], conditions)
    assert "payload:1.4, payload:1.5" in said
    assert "How much it bears" in said
    many = expanded(("baseline", "sweeps"))
    assert many[job.PLANS_MAX].title in job.left_out(many, many)


def test_every_pilot_has_a_headline_of_its_own() -> None:
    rows = [{"pilot": p, "family": "rigid", "outcome": o} for p, o in (("a", "success"), ("b", "success"), ("b", "collision"))]
    cards = report_text._success_cards(rows)
    assert [(one["label"], one["value"], one["tone"]) for one in cards] == [
        ("success, a", "100", "good"),
        ("success, b", "50", "poor"),
    ]


def test_flights_that_succeeded_in_spite_of_something_are_counted_apart() -> None:
    outcomes = (("success", ""), ("collision", "touched"), ("success_recovered", "touched"))
    rows = [{"outcome": outcome, "cause": cause} for outcome, cause in outcomes]
    assert report_text._failures_note(rows) == (
        "1 of 3 flights failed. 1 more is listed that succeeded in spite of what is named."
    )
    assert report_text._failures_note(rows[:1]) == "No flight failed."


def test_a_point_of_a_payload_sweep_has_its_step() -> None:
    numbers = {"baseline": (6.0, 6.0), "payload:1.4": (5.0, 4.0), "delay:0.03": (6.0, 6.0)}
    told = {word: {"flights": 1, "mean": mean, "std": 0.0, "true": true} for word, (mean, true) in numbers.items()}
    published = [{"name": "x", "mean": 1.0 + k, "std": 0.0, "true": 1.0 + k} for k in range(3)]
    entry = {"pilot": "a", "family": "rigid", "estimate": "ratio_flown", "conditions": told, "payload_step": float("nan")}
    shown = report_text._adaptation({"estimates": [entry], "published": published, "formula": []})
    assert {row["condition"]: row["step"] for row in shown["estimates"]} == {
        "baseline": "",
        "payload:1.4": "50 %",
        "delay:0.03": "",
    }
    assert shown["stepped"]


def _ended(*flights: tuple[str, str, str]) -> list[dict[str, Any]]:
    named = [{"pilot": pilot, "outcome": outcome, "cause": cause} for pilot, outcome, cause in flights]
    return [{**one, "condition": "baseline", "flight": k} for k, one in enumerate(named)]


def test_what_ended_flights_is_counted_by_cause() -> None:
    """Times and distances apart one cause is one; what a pilot raised is told as it is, and successes are not told."""
    raised = ("b", "pilot_error", "the pilot failed: ValueError: no battery (own.py, line 9)")
    rows = _ended(
        ("a", "collision", "touched the ground at 0.5 s"),
        ("a", "off_course", "more than 1.5 m from the path at 3.1 s"),
        ("a", "collision", "touched the ground at 1.2 s"),
        ("a", "success", ""),
        raised,
        raised,
        ("b", "pilot_error", "the pilot failed: ValueError: no battery (own.py, line 12)"),
        ("b", "aborted", ""),
    )
    found = endings(rows)
    assert [(one["pilot"], one["flights"], one["of"], one["flight"]) for one in found] == [
        ("a", 2, 4, 0), ("a", 1, 4, 1), ("b", 2, 4, 4), ("b", 1, 4, 6), ("b", 1, 4, 7)
    ]  # fmt: skip
    assert sum(one["flights"] for one in found) == len(rows) - 1
    assert told_endings(found) == [
        "a: 2 of 4 flights ended as collision: the first touched the ground at 0.5 s.",
        "a: 1 of 4 flights ended as off course: more than 1.5 m from the path at 3.1 s.",
        "b: 2 of 4 flights ended as pilot error: the pilot failed: ValueError: no battery (own.py, line 9).",
        "b: 1 of 4 flights ended as pilot error: the pilot failed: ValueError: no battery (own.py, line 12).",
        "b: 1 of 4 flights ended as aborted.",
    ]
    assert told_endings(found, 2)[2] == "4 more failed in other ways; the report lists them."
    assert told_endings(endings(_ended(("a", "success", "")))) == []


def test_an_evaluation_in_which_nothing_succeeded_says_first_why() -> None:
    ended = endings(
        _ended(("a", "collision", "touched the ground at 0.5 s"), ("a", "collision", "touched the ground at 0.6 s"))
    )
    state = {"complete": True}
    classes = {"success": 0, "success_recovered": 0}
    entry = {"condition": "baseline", "pilot": "a", "flights": 2, "classes": classes, "distinct_flights": 2}
    assert report_text._verdict([entry], state, ended) == (
        "0 of 2 simulated flights succeeded. a: 2 of 2 flights ended as collision: the first touched the ground at 0.5 s."
    )
    one = {**entry, "classes": {"success": 1, "success_recovered": 0}}
    assert report_text._verdict([one], state, ended) == "1 of 2 simulated flights succeeded."


def test_headline_and_outcomes_do_not_pool_a_policy_and_the_expert() -> None:
    def entry(pilot: str, condition: str, success: int, partial: int) -> dict[str, Any]:
        classes = {**dict.fromkeys(report_text.CLASSES, 0), "success": success, "partial": partial}
        return {"condition": condition, "pilot": pilot, "flights": 5, "classes": classes, "distinct_flights": 5}

    entries = [entry("mine", "baseline", 5, 0), entry("mine", "wind", 1, 4), entry("mpc", "baseline", 5, 0)]
    entries.append({**entry("mine", "baseline", 6, 4), "condition": "all:mine"})
    said = report_text._verdict(entries, {"complete": True})
    assert said == "Simulated flights that succeeded: mine 6 of 10, mpc 5 of 5."
    bars = report_text._bars(entries)
    assert [(bar["pilot"], [part["count"] for part in bar["parts"]]) for bar in bars] == [("mine", [6, 4]), ("mpc", [5])]


def test_flights_that_ended_at_their_start_have_no_error_beside_their_cause() -> None:
    """Their distance would be that of the start; the means leave them out, too."""
    told = {"condition": "baseline", "pilot": "a", "family": "rigid", "flight": 0, "tracking_error_m": 0.05}
    rows = [{**told, "outcome": outcome, "cause": "x", "samples": n} for outcome, n in (("pilot_error", 1), ("collision", 9))]
    shown = [row["error"] for row in report_text._failures(rows, {})]
    assert [error == "0.050" for error in shown] == [False, True]
