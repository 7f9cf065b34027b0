"""Every word and number of a report of flights, against text written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from airworthy.reports import flight_text
from airworthy.tasks import TrackingProtocol

DESCRIBED = {"count": 3, "mean": 0.25, "low": 0.125, "high": 0.5, "median": 0.2, "interquartile_mean": 0.22}
DESCRIBED |= {"q05": 0.1, "q95": 0.75, "min": 0.0625, "max": 2.0}
FLIGHTS: list[dict[str, Any]] = [
    {
        "env": 0,
        "outcome": "success",
        "vehicle": "carl",
        "course": "oval",
        "tracking_error_m": 0.0625,
        "yaw_error_median_rad": 0.5,
    },
    {"env": 1, "outcome": "collision", "vehicle": "carl", "course": "line", "tracking_error_m": None, "collisions": 12},
    {"env": 2, "outcome": "partial", "vehicle": "carl", "course": "line", "tracking_error_m": 1234.5},
]
TOTAL: dict[str, Any] = {
    "flights": 3,
    "success_rate": {"value": 1.0 / 3.0, "low": 0.0625, "high": 0.75},
    "tracking_error_m": DESCRIBED,
    "tracking_error_max_m": DESCRIBED,
    "proximity_percent": {"mean": 87.5},
    "collisions": 1200,
    "collisions_per_m_pooled": 0.00025,
    "saturation_percent": {"mean": 3.0},
    "speed_max_m_s": {"max": 12.5},
    "tilt_max_rad": {"max": 0.5},
}
SUMMARY = {"flights": FLIGHTS, "aggregate": TOTAL, "version": "1.2"}


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (None, 3, "\N{EN DASH}"),
        (float("nan"), 3, "\N{EN DASH}"),
        (float("inf"), 3, "\N{EN DASH}"),
        (0.0, 3, "0"),
        (0.0625, 3, "0.0625"),
        (-1.5, 3, "\N{MINUS SIGN}1.50"),
        (9.99, 3, "9.99"),
        (10.0, 3, "10.0"),
        (1234.5, 3, "1,234"),
        (999_999.0, 3, "999,999"),
        (1e6, 3, "1.00e+06"),
        (1e-4, 3, "0.000100"),
        (9.9e-5, 3, "9.90e-05"),
        (123.456, 5, "123.46"),
    ],
)
def test_numbers_have_so_many_significant_digits(value: float | None, digits: int, text: str) -> None:
    assert flight_text.number(value, digits) == text


def test_the_head_of_a_report_says_what_was_flown_and_how_well() -> None:
    page = flight_text.content(SUMMARY, {}, None, None)
    assert page["title"] == "carl on 2 courses"
    assert page["verdict"] == ("1 of 3 flights succeeded. The success rate lies between 6.2 % and 75.0 % with 95 % confidence.")
    assert [tuple(card[key] for key in ("label", "value", "unit", "below", "tone")) for card in page["cards"]] == [
        ("Success", "33.3", "%", "1 of 3 flights", "poor"),
        ("Tracking error", "0.250", "m", "mean; 0.125 to 0.500 m", ""),
        ("Worst distance", "2.00", "m", "greatest of any flight to its path", ""),
        ("Within 0.3 m of the path", "87.5", "%", "mean share of samples", ""),
        ("Collisions", "1,200", "", "0.000250 per metre flown", ""),
        ("Rotors saturated", "3.00", "%", "samples with a rotor at a limit", ""),
        ("Top speed", "12.5", "m/s", "greatest tilt 29°", ""),
    ]
    assert [(item["name"], item["count"], item["style"]) for item in page["outcomes"]] == [
        ("success", 1, "success"),
        ("partial", 1, "partial"),
        ("collision", 1, "failure"),
    ]


def test_tables_of_a_report_hold_what_was_measured() -> None:
    page = flight_text.content(SUMMARY, {}, None, None)
    row = next(row for row in page["aggregate"] if row["label"] == "tracking error [m]")
    assert list(row.values())[1:] == [
        "0.250",
        "0.125 \N{EN DASH} 0.500",
        "0.200",
        "0.220",
        "0.100 \N{EN DASH} 0.750",
        "0.0625",
        "2.00",
        "3",
    ]
    heads = [head["label"] for head in page["heads"]]
    assert heads[:3] == ["flight", "outcome", "course"]
    cells = [dict(zip(heads, (cell["text"] for cell in row), strict=True)) for row in page["rows"]]
    assert [cell["error [m]"] for cell in cells] == ["0.0625", "\N{EN DASH}", "1,234"]
    assert [cell["course"] for cell in cells] == ["oval", "line", "line"]
    assert cells[0]["yaw [deg]"] == "28.6"
    assert cells[1]["collisions"] == "12"


@pytest.mark.parametrize(
    ("flights", "said"),
    [
        ([], "There are no flights in this run."),
        (["not_at_goal"], "One flight: not at goal."),
        (["success"] * 2, "All 2 flights succeeded. The success rate lies between 6.2 % and 75.0 % with 90 % confidence."),
        (["timeout"] * 2, "None of 2 flights succeeded. The success rate lies between 6.2 % and 75.0 % with 90 % confidence."),
    ],
)
def test_the_verdict(flights: list[str], said: str) -> None:
    assert flight_text._verdict([{"outcome": outcome} for outcome in flights], TOTAL, 0.9) == said


@pytest.mark.parametrize(
    ("outcomes", "value", "shown", "tone"),
    [
        ([], None, "\N{EN DASH}", ""),
        (["success"], 1.0, "100", "good"),
        (["success", "timeout"], 0.5, "50.0", ""),
        (["timeout"], 0.0, "0", "poor"),
    ],
)
def test_the_card_of_success(outcomes: list[str], value: float | None, shown: str, tone: str) -> None:
    flights = [{"outcome": outcome} for outcome in outcomes]
    card = flight_text._cards(flights, {"success_rate": {"value": value}}, TrackingProtocol())[0]
    assert (card["value"], card["tone"]) == (shown, tone)
    assert card["below"].endswith("of 1 flight" if len(outcomes) == 1 else "flights")
