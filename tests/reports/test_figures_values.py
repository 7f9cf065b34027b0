"""Everything that the figures of a report show, against lines on file: typical, single, lost, stray and many flights."""

from __future__ import annotations

from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fixtures.figures import figure_details
from tests.fixtures.flights import fly, mixed
from tests.fixtures.snapshots import check_snapshot

from airworthy.reports import figures
from airworthy.reports.batch import FlightBatch
from airworthy.reports.svg import PALETTE
from airworthy.simulation.flights import FlightTable
from airworthy.tasks import TrackingProtocol, TrackingReference

SNAPSHOTS = Path(__file__).parent / "snapshots" / "figures.txt"
GATE = np.array([[0.0, -0.5, 1.0], [0.0, 0.5, 1.0], [0.0, 0.5, 2.0]])
PROTOCOL = TrackingProtocol()


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What is handed over to be written as SVG, by the name that it gets."""
    seen: dict[str, Any] = {}

    def keep(figure: Any, name: str, description: str) -> str:
        seen[name] = {"description": description, **figure_details(figure)}
        return f"<svg>{name}</svg>"

    monkeypatch.setattr(figures, "inline_svg", keep)
    return seen


def batch_of(reference: TrackingReference, count: int, failures: bool = False, **more: Any) -> FlightBatch:
    """Flights at 10 Hz."""
    columns, _ = fly(reference, count, rate_hz=10.0)
    columns = mixed(columns, count) if failures else columns
    return FlightBatch(FlightTable.from_columns({**columns, **more}), [reference], {})


def drawn(batch: FlightBatch, outcomes: list[str], typical: int, limits: Any = None) -> None:
    """Draw all figures of flights over time."""
    figures.figure_views(batch, outcomes, range(len(outcomes)), [GATE])
    figures.figure_error(batch, typical, PROTOCOL)
    figures.figure_motion(batch, typical)
    figures.figure_commands(batch, typical, limits)


OUTCOMES = ["success", "diverged", "collision", "off_course", "success_recovered", "partial"]


def test_flights_that_succeed_and_fail(reference: TrackingReference, shown: dict[str, Any]) -> None:
    drawn(batch_of(reference, 6, failures=True), OUTCOMES, 4, (200.0, [1200.0, 1210.0, nan, 1230.0]))
    check_snapshot(SNAPSHOTS, shown, of_means=1e-6, part="of six")


def test_one_flight(reference: TrackingReference, shown: dict[str, Any]) -> None:
    drawn(batch_of(reference, 1), ["success"], 0)
    check_snapshot(SNAPSHOTS, shown, of_means=1e-6, part="of one")


def test_a_flight_that_strays_is_told_of_and_does_not_flatten_the_others(
    reference: TrackingReference, shown: dict[str, Any]
) -> None:
    columns, _ = fly(reference, 24, rate_hz=5.0)
    away = (columns["env"] == 2) & (columns["t"] > 8.0)
    columns["position_y_m"] = np.where(away, columns["position_y_m"] + 25.0, columns["position_y_m"])
    columns |= {f"rotor_{kind}_{k}_rad_s": columns[f"rotor_{kind}_0_rad_s"] for kind in ("command", "speed") for k in (4, 5)}
    turned = TrackingReference(reference.t, reference.position[:, [1, 0, 2]], reference.velocity[:, [1, 0, 2]], reference.yaw)
    batch = FlightBatch(FlightTable.from_columns(columns), [reference, *[turned] * 9], {0: 1})
    drawn(batch, ["success"] * 24, 1, (100.0, 1300.0))
    check_snapshot(SNAPSHOTS, shown, of_means=1e-6, part="of a stray")
    assert "worst 25" in str(shown["error"]["axes 0"]["words"])


def test_flights_of_one_instant(reference: TrackingReference, shown: dict[str, Any]) -> None:
    table = batch_of(reference, 3).table
    first = {name: values[table.starts[:-1]] for name, values in table.columns.items()}
    drawn(FlightBatch(FlightTable.from_columns(first), [reference], {}), ["success"] * 3, 0)
    check_snapshot(SNAPSHOTS, shown, of_means=1e-6, part="of an instant")


def flights(errors: list[float | None], **more: Any) -> list[dict[str, Any]]:
    """Of these tracking errors, every third and fourth of which failed."""
    kinds = ("success", "success_recovered", "partial", "collision")
    rows = [{"outcome": kinds[k % 4], "tracking_error_m": e, "proximity_percent": 100.0 - k} for k, e in enumerate(errors)]
    return [{**row, **more} for row in rows]


ERRORS: dict[str, list[float | None]] = {
    "usual": [0.05, 0.07, 0.2, 0.4, 0.06, None, 0.1, 0.31],
    "small": [0.001, 0.002, 0.0015, 0.0031],
    "equal": [0.25] * 4,
    "with one far off": [0.01 * k for k in range(1, 40)] + [9.0],
    "none lost": [0.1, 0.2],
}


@pytest.mark.parametrize("case", ERRORS)
def test_distributions(case: str, shown: dict[str, Any]) -> None:
    some = flights(ERRORS[case], **({"outcome": "success"} if case == "none lost" else {}))
    figures.figure_distribution(some, PROTOCOL)
    figures.figure_distribution([{**flight, "proximity_percent": 99.0} for flight in some], TrackingProtocol(proximity_m=1.0))
    check_snapshot(SNAPSHOTS, shown, of_means=1e-6, part=f"distribution, {case}")


@pytest.mark.parametrize(("count", "names"), [(5, 1), (40, 4), (201, 11)])
def test_errors_against_parameters(count: int, names: int, shown: dict[str, Any]) -> None:
    rng = np.random.default_rng(4)
    errors = rng.uniform(0.05, 0.2, count)
    errors[0] = 5.0
    parameters = {f"gain_{k}_m_s": 0.1 * k * errors + rng.normal(0.0, 0.02, count) for k in range(names)}
    parameters["gain_0_m_s"][1] = nan
    figures.figure_parameters(flights(errors.tolist()), parameters)
    check_snapshot(SNAPSHOTS, shown, of_means=1e-6, part=f"{names} parameters")


# ---- what can be told without a file ----------------------------------------------------------------------------------------


def lines_of(axes: dict[str, Any], color: str) -> list[np.ndarray]:
    """Points of the lines of a colour of the palette."""
    return [points for words, _, points in axes["lines"] if words.startswith(PALETTE[color])]


def test_the_error_that_is_drawn_is_the_distance_flown_and_one_scale_serves_both_panels(
    reference: TrackingReference, shown: dict[str, Any]
) -> None:
    batch = batch_of(reference, 3)
    figures.figure_error(batch, 2, PROTOCOL)
    path, matched = shown["error"]["axes 0"], shown["error"]["axes 1"]
    assert path["ends"][2:4].tolist() == matched["ends"][2:4].tolist()
    assert path["ends"][3] >= 1.35 * PROTOCOL.proximity_m  # the limit is shown
    true = np.linalg.norm(batch.vector("position") - reference.position_at(batch.table.t), axis=1).reshape(3, -1)
    median, _ = lines_of(matched, "flown")[0], None
    np.testing.assert_allclose(median[:, 1], np.median(true, axis=0), atol=1e-6)
    np.testing.assert_allclose(lines_of(matched, "second")[0][:, 1], true[2], atol=1e-6)
    np.testing.assert_allclose(lines_of(matched, "bad")[0][:, 1], true.max(axis=0), atol=1e-6)
    assert (lines_of(path, "second")[0][:, 1] <= true[2] + 1e-6).all()  # no point of a path is farther than that of its time


def test_bars_of_the_histogram_count_every_flight_once(shown: dict[str, Any]) -> None:
    some = flights(ERRORS["with one far off"])
    figures.figure_distribution(some, PROTOCOL)
    bars, curve = shown["distribution"]["axes 0"], shown["distribution"]["axes 1"]
    # A bar's height over the axis' length is its share of the axis' range.
    ends, box, size = bars["ends"][2:4], bars["ends"][4:], shown["distribution"]["size"]
    high = sum(float(np.ptp(corners[:, 1])) for corners, *_ in bars["patches"]) / (box[3] * size[1]) * (ends[1] - ends[0])
    assert high == pytest.approx(40.0, rel=1e-6)
    (steps,) = lines_of(curve, "flown")
    assert steps[0].tolist() == [0.01, 0.0]
    assert steps[-1].tolist() == [9.0, 100.0]
    np.testing.assert_allclose(np.diff(steps[1:, 1]), 2.5)


@pytest.mark.parametrize(
    ("values", "cap"),
    [([1.0, 1.0, 1.0], 1.0), ([1.0] * 30 + [2.26], 1.5), ([1.0] * 30 + [2.25], 2.25), ([0.0, 0.0], 1e-9)],
)
def test_a_few_values_far_above_the_rest_do_not_set_the_scale(values: list[float], cap: float) -> None:
    assert figures._cap(np.array(values)) == pytest.approx(cap)


@pytest.mark.parametrize(
    ("flown", "top"),
    [([[2.0, 1.0]], 2.16), ([[1.0], [2.99]], 3.2292), ([[1.0], [3.0]], 2.0), ([[nan], [nan]], 1e-6), ([[0.0]], 1e-6)],
)
def test_the_top_of_an_axis(flown: list[list[float]], top: float) -> None:
    assert figures._axis_top(np.array([1.0]), np.array(flown), 1e-6) == pytest.approx(top)


def test_more_paths_are_fainter() -> None:
    assert figures._thin(1) == {"linewidth": 1.1, "alpha": 1.0}
    assert figures._thin(6) == {"linewidth": 0.9, "alpha": 1.0}
    assert figures._thin(12) == {"linewidth": 0.9, "alpha": 0.5}
    assert figures._thin(100) == {"linewidth": 0.9, "alpha": 0.28}
