"""The sentence beside a table of controllers: by what it was decided, with which interval, on which flights; ties are ties."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.learning.gradient.evaluation import HoverFlights
from airworthy.learning.gradient.evaluation import compare as compare_hover
from airworthy.learning.task_training.evaluation import TaskFlights
from airworthy.learning.task_training.evaluation import compare as compare_task
from airworthy.learning.verdicts import JudgedFlights, beside_controller

RNG = np.random.default_rng(5)
ERROR = 0.01 + 0.001 * RNG.random(1024)


def _measured(lost: int, error: float | None, count: int = 100, phase: int = 0) -> JudgedFlights:
    """Flights, every so many of which are lost; errors a fixed way above those of `ERROR`."""
    kept = np.ones(count, bool)
    kept[phase : phase + lost] = False
    return JudgedFlights(kept, kept, None if error is None else ERROR[:count] + error)


def _said(mine: JudgedFlights, other: JudgedFlights) -> Any:
    return beside_controller(mine, other, "law", "flights kept")


def test_more_flights_may_turn_a_verdict_and_it_says_by_what() -> None:
    """Of 100 flights the shares are a tie and the error decides; of 1,000 the same shares decide the other way."""
    few = _said(_measured(2, 0.01), _measured(6, 0.0, phase=3))
    assert few["verdict"] == (
        "The learnt policy loses to the law by error, on the same 100 starts: flights kept 98.0 % against 94.0 %, difference"
        " +4.0 % (95 % interval -2.0 to +10.7 %), a tie; error flight by flight, median of the 92 that neither lost: +1.00 cm"
        " (95 % interval +1.00 to +1.00 cm)."
    )
    many = _said(_measured(20, 0.01, 1000), _measured(60, 0.0, 1000, phase=30))
    assert many["verdict"].startswith("The learnt policy wins against the law by flights kept, on the same 1,000 starts: ")
    assert "98.0 % against 94.0 %, difference +4.0 % (95 % interval +2" in many["verdict"]
    assert (few["comparison"]["decided_by"], many["comparison"]["decided_by"]) == ("error", "flights kept")


@pytest.mark.parametrize(
    ("mine", "other", "said", "decided"),
    [
        ((0, 0.0), (40, 0.0), "wins against the law by flights kept,", "flights kept"),
        ((40, -0.005), (0, 0.0), "loses to the law by flights kept,", "flights kept"),
        ((0, -0.005), (1, 0.0), "wins against the law by error,", "error"),
        ((0, 0.0), (0, 0.0), "ties with the law,", None),
        ((0, None), (1, None), "ties with the law,", None),
    ],
)
def test_what_decides(mine: Any, other: Any, said: str, decided: str | None) -> None:
    found = _said(_measured(*mine), _measured(*other))
    assert found["verdict"].startswith(f"The learnt policy {said} on the same 100 starts: flights kept ")
    assert found["comparison"]["decided_by"] == decided


@pytest.mark.parametrize("error", [0.0, None])
def test_two_shares_of_nothing_are_no_tie(error: float | None) -> None:
    """As of a task of one's own that neither did: a controller may not even try."""
    found = _said(_measured(100, error), _measured(100, error))
    assert found["verdict"] == (
        "Nothing says whether the learnt policy or the law is better, on the same 100 starts: flights kept 0.0 % of either,"
        " which compares nothing."
    )
    assert found["comparison"]["decided_by"] is None


def test_nearer_decides_where_neither_did_it() -> None:
    kept, good = np.ones(100, bool), np.zeros(100, bool)
    near, far = (JudgedFlights(good, kept, ERROR[:100] + error) for error in (0.0, 0.01))
    found = beside_controller(near, far, "law", "success")
    assert found["verdict"].startswith(
        "The learnt policy wins against the law by error, on the same 100 starts: success 0.0 % of either, which compares"
    )
    tied = beside_controller(near, near, "law", "success")["verdict"]
    assert tied.startswith("Nothing says whether the learnt policy or the law is better, on")
    assert tied.endswith(", a tie.")


def test_a_tie_is_a_difference_whose_interval_holds_0_and_the_sentence_shows_both() -> None:
    """Whatever the flights: verb, measure and the printed intervals say the same."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        count = int(rng.integers(1, 200))
        sides = []
        for _ in range(2):
            kept = rng.random(count) < rng.choice([0.2, 0.9, 1.0])
            kept[0] = True  # without any flight there is nothing to tie
            sides.append(JudgedFlights(kept, kept, rng.random(count) * 10.0 ** -rng.integers(1, 7)))
        found = _said(*sides)
        verdict = found["verdict"]
        # Ahead: kept more, or nearer; an interval of too few flights is not printed.
        signs = []
        for part, ahead in zip(verdict.split(" starts: ", 1)[1].split("; "), (1, -1), strict=False):
            shown = re.findall(r"interval ([-+][\d.]+) to ([-+][\d.]+)", part)
            bounds = [float(x) for x in shown[0]] if shown else [-1.0, 1.0]
            holds = "too few" in part or bounds[0] <= 0.0 <= bounds[1]
            assert holds == ("a tie" in part), verdict
            signs.append(0 if holds else ahead * int(np.sign(bounds[0])))
        decided = next((sign for sign in signs if sign), 0)
        assert {1: " wins against ", -1: " loses to ", 0: " ties with "}[decided] in verdict


@pytest.mark.parametrize(
    ("apart", "bounds"),
    [(4e-6, "+0.0004 to +0.0004 cm"), (4e-8, "+0.000004 to +0.000004 cm"), (4e-10, "+0.000000 to +0.000000 cm")],
)
def test_bounds_near_0_are_written_with_up_to_six_digits(apart: float, bounds: str) -> None:
    """A difference that decides is seen not to be 0, but where six digits do not show it."""
    ones = np.ones(100)
    mine, other = (JudgedFlights(ones > 0.0, ones > 0.0, 0.01 * ones + more) for more in (apart, 0.0))
    assert _said(mine, other)["verdict"].endswith(f": +0.00 cm (95 % interval {bounds}).")


def test_another_number_of_starts_is_refused() -> None:
    with pytest.raises(AirworthyError, match="100 flights cannot be set beside 64 of the law; expected the same starts"):
        _said(_measured(0, 0.0), _measured(0, 0.0, 64))


def test_flights_of_hover_and_of_tasks_are_set_beside_one_another_alike() -> None:
    ones, kept = np.ones(50), np.ones(50, bool)
    hover = HoverFlights(kept, 0.02 * ones, ones, ones, ones, ones, ones, 2.0)
    better = replace(hover, error=0.01 * ones)
    assert compare_hover(better, hover, "MPC")["verdict"].startswith(
        "The learnt policy wins against the MPC by error, on the same 50"
    )
    assert compare_hover(hover, better, "MPC")["comparison"]["error_difference_m"] == pytest.approx([0.01] * 3)
    # Success is what a task is judged by; where nothing succeeds, errors of flights that were not lost still tell.
    task = TaskFlights(np.zeros(50, bool), np.zeros(50, bool), 0.3 * ones, None)
    found = compare_task(task, replace(task, error=0.2 * ones), "MPC")
    assert found["verdict"].startswith(
        "The learnt policy loses to the MPC by error, on the same 50 starts: success 0.0 % of either"
    )
    lost = replace(task, lost=kept)
    # Wilson's bound of none of 50 is 7.1 %.
    wide = [0.0, pytest.approx(-7.1, abs=0.1), pytest.approx(7.1, abs=0.1)]
    numbers = compare_task(lost, task, "MPC")["comparison"]
    assert numbers == {"decided_by": None, "flights": 50, "difference_percent": wide}
