"""Flights that are copies of one are evidence of one: no interval over them."""

from __future__ import annotations

from typing import Any

import pytest

from airworthy.evaluation import FlightResult, summarize
from airworthy.reports.flight_text import content


def flight(env: int, **values: Any) -> FlightResult:
    return FlightResult(env, "success", **{"tracking_error_m": 0.1, "proximity_percent": 100.0, "samples": 50, **values})


@pytest.mark.parametrize(
    ("errors", "distinct", "says"),
    [
        ((0.1, 0.1, 0.1, 0.1), 1, "All 4 are the same flight"),
        ((0.1, 0.2, 0.1, 0.2), 2, "Only 2 of the 4 flights differ"),
    ],
)
def test_copies_have_no_interval_and_are_said_to_be_copies(errors: tuple[float, ...], distinct: int, says: str) -> None:
    summary = summarize([flight(k, tracking_error_m=error) for k, error in enumerate(errors)])
    total = summary["aggregate"]
    assert total["distinct_flights"] == distinct
    for name in ("success_rate", "tracking_error_m", "proximity_percent"):
        assert total[name]["low"] != total[name]["low"], name  # NaN, null in the file
        assert total[name]["high"] != total[name]["high"], name
    verdict = content(summary, {}, None, None)["verdict"]
    assert verdict.startswith(f"All 4 flights succeeded. {says}: nothing drawn")
    assert "confidence" not in verdict
    assert "--randomize" in verdict


def test_different_flights_keep_their_interval() -> None:
    summary = summarize([flight(k, tracking_error_m=0.1 * (k + 1)) for k in range(4)])
    assert summary["aggregate"]["distinct_flights"] == 4
    assert summary["aggregate"]["success_rate"]["low"] == pytest.approx(0.51011, abs=1e-5)
    assert "with 95 % confidence" in content(summary, {}, None, None)["verdict"]


def test_flights_that_ended_at_once_are_copies_only_where_nothing_is_drawn() -> None:
    fallen = [flight(k, samples=1, tracking_error_m=0.0) for k in range(3)]
    assert summarize(fallen)["aggregate"]["distinct_flights"] == 3
    assert summarize(fallen, drawn=False)["aggregate"]["distinct_flights"] == 1


def test_flights_of_two_instants_are_told_apart() -> None:
    """Only a flight of a single instant has no numbers to differ in."""
    assert summarize([flight(k, samples=2, tracking_error_m=0.0) for k in range(3)])["aggregate"]["distinct_flights"] == 1
