"""The content of summary.json."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.core.jobs.block_job import describe_machine
from airworthy.evaluation import FlightResult, evaluate_tracking, read_summary, summarize, write_summary
from airworthy.tasks import OUTCOMES, TrackingReference

PROMISED = [
    "vehicle",
    "scene",
    "course",
    "pilot",
    "seed",
    "env",
    "outcome",
    "duration_s",
    "tracking_error_m",
    "proximity_percent",
    "collisions",
    "path_length_m",
    "saturation_percent",
]


def flight(env: int, outcome: str = "success", **values: Any) -> FlightResult:
    numbers = {"tracking_error_m": 0.1 * (env + 1), "path_length_m": 10.0, "duration_s": 5.0, "samples": 500}
    return FlightResult(env, outcome, **(numbers | values))


def test_promised_keys_in_a_stable_order(
    tmp_path: Path, reference: TrackingReference, make_flights: Callable[..., Any]
) -> None:
    table, parameters = make_flights(reference, 6, failures=True)
    results = evaluate_tracking(table, reference)
    summary = summarize(results, command="airworthy fly", labels={"vehicle": "carl", "seed": 3}, parameters=parameters, seed=3)
    write_summary(tmp_path, summary)
    read = read_summary(tmp_path)
    assert list(read) == ["version", "command", "protocol", "statistics", "flights", "aggregate"]
    assert set(PROMISED) <= set(read["flights"][0])
    assert list(read["flights"][0])[:7] == PROMISED[:7]
    assert all(list(f) == list(read["flights"][0]) for f in read["flights"])
    assert read["flights"][2]["parameters"]["mass_kg"] == pytest.approx(parameters["mass_kg"][2])
    assert read["protocol"]["end_radius_m"] == 0.5
    first = (tmp_path / "summary.json").read_bytes()
    write_summary(
        tmp_path,
        summarize(results, command="airworthy fly", labels={"vehicle": "carl", "seed": 3}, parameters=parameters, seed=3),
    )
    assert (tmp_path / "summary.json").read_bytes() == first


def test_aggregate_counts_and_pools() -> None:
    results = [
        flight(0),
        flight(1, "success_recovered", collisions=2),
        flight(2, "collision", collisions=1),
        flight(3, "diverged"),
    ]
    total = summarize(results)["aggregate"]
    assert list(total["outcomes"]) == list(OUTCOMES)
    assert total["flights"] == sum(total["outcomes"].values()) == 4
    assert total["success_rate"]["value"] == 0.5
    assert total["collisions_per_m_pooled"] == pytest.approx(3 / 40)
    # The diverged flight counts in the rate, not in the means.
    assert total["tracking_error_m"]["count"] == 3
    assert total["tracking_error_m"]["mean"] == pytest.approx(0.2)


def test_statistics_do_not_depend_on_what_else_is_described() -> None:
    results = [flight(k) for k in range(9)]
    changed = [flight(k, path_length_m=3.0) for k in range(9)]
    first, second = (summarize(r)["aggregate"]["tracking_error_m"] for r in (results, changed))
    assert first == second
    assert first != summarize(results, seed=1)["aggregate"]["tracking_error_m"]


def test_no_flights_and_nothing_measured_are_valid_json(tmp_path: Path) -> None:
    for results in ([], [FlightResult(0, "diverged"), FlightResult(1, "diverged")]):
        write_summary(tmp_path, summarize(results))
        text = (tmp_path / "summary.json").read_text()
        assert "NaN" not in text
        aggregate = json.loads(text)["aggregate"]
        assert aggregate["tracking_error_m"]["mean"] is None
        assert aggregate["success_rate"]["value"] == (None if not results else 0.0)


def test_labels_of_single_flights_win() -> None:
    summary = summarize(
        [flight(4), flight(8)], labels={"vehicle": "carl"}, flight_labels={8: {"vehicle": "lmf2", "mass_kg": 1.2}}
    )
    assert [f["vehicle"] for f in summary["flights"]] == ["carl", "lmf2"]
    assert summary["flights"][1]["mass_kg"] == 1.2
    assert summary["flights"][0]["scene"] is None


def test_the_machine_is_named() -> None:
    machine = describe_machine()
    assert machine["processor"]
    assert int(machine["cores"]) >= 1


def test_parameters_of_another_length_are_refused() -> None:
    with pytest.raises(AirworthyError, match="mass_kg"):
        summarize([flight(0)], parameters={"mass_kg": np.ones(2)})
