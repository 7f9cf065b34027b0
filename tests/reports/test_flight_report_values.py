"""What a report of flights says and draws besides its figures, against lines on file and against the flights."""

from __future__ import annotations

import re
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fixtures.flights import fly, mixed
from tests.fixtures.recording import text_values
from tests.fixtures.snapshots import check_snapshot

from airworthy.evaluation import evaluate_tracking, summarize
from airworthy.reports import batch as batches
from airworthy.reports import figures, flight_report, flight_text
from airworthy.reports.batch import FlightBatch, bands, choose_drawn, typical_flight
from airworthy.simulation.flights import FlightTable
from airworthy.tasks import TrackingProtocol, TrackingReference

SNAPSHOTS = Path(__file__).parent / "snapshots" / "flight_report.txt"
META: dict[str, Any] = {
    "version": "0.1.0",
    "physics_rate_hz": 960,
    "step_s": 0.0010416667,
    "wind": "",
    "gusts": True,
    "nothing": None,
    "rows": 7,
    "command": "airworthy fly",
    "hardware": {"cpu": "one", "cores": 2, "memory_gb": 8.5, "gpu": None, "board": ""},
    "hashes": {"vehicle": "ab12", "scene": "cd34"},
    "sha256": "ef56",
    "rotor_speed_min_rad_s": 200.0,
    "rotor_speed_max_rad_s": 1200.0,
}


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the template is given; figures by their name and what is read out of them."""
    given: dict[str, Any] = {}
    monkeypatch.setattr(figures, "inline_svg", lambda figure, name, description: f"{name}: {description}")
    monkeypatch.setattr(flight_report, "page_of", lambda package, trim, **content: given.update(content) or package)
    return given


def lines(given: dict[str, Any]) -> dict[str, Any]:
    """Of a page, what a snapshot holds: numbers of the picture in space as an array, tables row by row."""
    shown = {key: value for key, value in given.items() if key not in ("version", "scene", "scene_data", "rows", "aggregate")}
    shown["scene"] = text_values(str(given["scene"] or ""))
    shown["scene_data"] = text_values(str(given["scene_data"] or ""))
    shown["rows"] = " || ".join(" | ".join(" ".join(map(str, cell.values())) for cell in row) for row in given["rows"])
    shown["aggregate"] = " || ".join(" | ".join(row.values()) for row in given["aggregate"])
    shown["notes"], shown["figures"] = " ".join(given["notes"]), " ".join(f"{k}={v}" for k, v in given["figures"].items())
    for name in ("cards", "outcomes", "facts", "protocol", "heads"):
        shown[name] = " || ".join(" | ".join(map(str, entry.values())) for entry in given[name])
    return shown


CASES: dict[str, dict[str, Any]] = {
    "seven": {"count": 7, "failures": True, "gates": [[[0.0, -0.5, 1.0], [0.0, 0.5, 1.0], [0.0, 0.5, 2.0]]]},
    "one": {"count": 1, "title": "A title", "notes": ["One note."]},
    "two": {"count": 2, "rotor_limits": (100.0, 900.0)},
}


@pytest.mark.parametrize("case", CASES)
def test_what_a_report_is_made_of(case: str, tmp_path: Path, reference: TrackingReference, page: dict[str, Any]) -> None:
    options = dict(CASES[case])
    count, failures = options.pop("count"), options.pop("failures", False)
    columns, parameters = fly(reference, count, rate_hz=10.0)
    table = FlightTable.from_columns(mixed(columns, count) if failures else columns)
    labels = {"vehicle": "carl", "course": "weave", "scene": "hall", "pilot": "expert", "seed": 3}
    summary = summarize(evaluate_tracking(table, reference), command="fly it", labels=labels, parameters=parameters)
    meta = META if case == "seven" else {}
    flight_report.write_report(
        tmp_path, table=table, summary={**summary, "version": "1.2"}, meta=meta, reference=reference, **options
    )
    check_snapshot(SNAPSHOTS, lines(page), of_means=1e-6, part=f"report of {case}")


def test_a_report_of_nothing(tmp_path: Path, reference: TrackingReference, page: dict[str, Any]) -> None:
    table = FlightTable.from_columns(fly(reference, 1, rate_hz=10.0)[0]).select([])
    summary = {**summarize(evaluate_tracking(table, reference), command=""), "version": ""}
    flight_report.write_report(tmp_path, table=table, summary=summary, meta={}, reference=reference)
    check_snapshot(SNAPSHOTS, lines(page), part="report of nothing")


# ---- the picture in space ---------------------------------------------------------------------------------------------------

WAY = np.array([[0.0, 0.0, 1.0], [4.0, 1.0, 2.0], [6.0, -2.0, 1.5], [0.05, 0.0, 1.0]])
PLACES: dict[str, tuple[Any, ...]] = {
    "one closed way": ([("flown", WAY)], [WAY], [], None),
    "two ways and gates": ([("flown", WAY), ("bad", WAY[:3] + 1.0)], [WAY[:3], WAY[1:]], [WAY[:3]], WAY[:2]),
    "along y, far below the ground": ([("warn", WAY[:, [1, 0, 2]] * (1.0, 40.0, 1.0) - (0.0, 0.0, 300.0))], [], [], None),
    "just below the ground": ([("flown", WAY - (0.0, 0.0, 1.08))], [WAY - (0.0, 0.0, 1.09)], [], None),
    "high above": ([("flown", WAY - (0.0, 0.0, -77.0))], [], [], None),
    "tiny": ([("flown", 1e-3 * WAY)], [1e-3 * WAY], [], None),
    "back to the left": ([("flown", WAY * (-1.0, 0.1, 1.0))], [], [], None),
    "nothing": ([], [], [], None),
}


@pytest.mark.parametrize("place", PLACES)
def test_what_stands_in_the_picture(place: str) -> None:
    scene = flight_report.path_scene(*PLACES[place])
    svg, turned = flight_report.scene_svg(scene, "Paths <in> space")
    kinds: dict[str, Any] = {}
    for kind, style, points, words in scene.items:
        entry = kinds.setdefault(f"{kind} {style}", {"points": [], "words": ""})
        entry["points"].append(points)
        entry["words"] += f"{words} | "
    shown = {key: {"points": np.concatenate(entry["points"]), "words": entry["words"]} for key, entry in kinds.items()}
    order = " ".join(f"{kind}.{style.replace(' ', '-')}" for kind, style, _, _ in scene.items)
    view = {
        "azimuth": scene.azimuth,
        "order": order,
        "svg": text_values(svg),
        "turned": {**turned, "points": len(turned["points"])},
    }
    flat = np.concatenate([np.array(points, float) for points in turned["points"]] or [np.zeros(0)])
    check_snapshot(SNAPSHOTS, {**shown, **view, "flat": flat}, part=f"in space, {place}")


def test_nothing_of_the_picture_in_space_is_cut_off() -> None:
    scene = flight_report.path_scene(*PLACES["two ways and gates"])
    svg, data = flight_report.scene_svg(scene, "Paths")
    wide, tall, margin = data["view"]
    pairs = [tuple(map(float, pair)) for pair in re.findall(r"(-?\d+\.\d),(-?\d+\.\d)", svg)]
    u, v = np.array(pairs).T
    assert u.min() >= margin - 0.05
    assert u.max() <= wide - margin + 0.05
    assert v.min() >= margin - 0.05
    assert v.max() <= tall - margin + 0.05
    # As large as fits: one of both directions is filled.
    assert max(np.ptp(u) / (wide - 2 * margin), np.ptp(v) / (tall - 2 * margin)) > 0.9


@pytest.mark.parametrize(
    ("value", "nice"),
    [(1.0, 1.0), (1.01, 2.0), (2.0, 2.0), (3.0, 5.0), (5.1, 10.0), (0.07, 0.1), (0.02, 0.02), (640.0, 1000.0)],
)
def test_steps_of_a_grid_are_round(value: float, nice: float) -> None:
    assert flight_report._nice(value) == pytest.approx(nice, rel=1e-12)


def test_points_at_equal_distances() -> None:
    path = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 3.0, 0.0]])
    found = flight_report._evenly(path, 5)
    np.testing.assert_allclose(found, [[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 2, 0], [1, 3, 0]], atol=1e-12)


def test_parameters_count_from_three_different_values_on() -> None:
    rows = [{"parameters": {"mass": m, "same": 1.0, "two": t}} for m, t in ((1.0, 1.0), (2.0, 2.0), (3.0, None))]
    found = flight_report._parameters([*rows, {"parameters": None}])
    assert list(found) == ["mass"]
    np.testing.assert_array_equal(found["mass"], [1.0, 2.0, 3.0, nan])
    assert flight_report._limits({"rotor_speed_min_rad_s": 1.0}) is None
    assert flight_report._limits({"rotor_speed_min_rad_s": 1.0, "rotor_speed_max_rad_s": 2.0}) == (1.0, 2.0)
    assert flight_report._thin(np.arange(30.0).reshape(10, 3), 4)[:, 0].tolist() == [0.0, 9.0, 18.0, 27.0]
    assert len(flight_report._thin(np.zeros((4, 3)), 4)) == 4


# ---- sentences --------------------------------------------------------------------------------------------------------------


def test_flights_are_listed_the_worst_first_where_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flight_text, "ROWS_MAX", 3)
    errors = [0.1, None, 0.3, 0.2, inf]
    kinds = ["success", "success", "collision", "partial", "success"]
    rows = [{"env": k, "outcome": o, "tracking_error_m": e} for k, (o, e) in enumerate(zip(kinds, errors, strict=True))]
    assert [row[0]["text"] for row in flight_text._rows(rows)] == ["2", "3", "1"]
    assert [row[0]["text"] for row in flight_text._rows(rows[:3])] == ["0", "1", "2"]
    assert flight_text._rows_note(4).startswith("The 3 flights")


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.001, 0.002, "mean; 1.00 to 2.00 mm"),
        (0.001, 0.01, "mean; 0.00100 to 0.0100 m"),
        (-0.001, 0.002, "mean; \N{MINUS SIGN}0.00100 to 0.00200 m"),
        (0.0, 0.5, "mean; 0 to 0.500 m"),
        (None, 0.5, "mean distance to the path"),
        (0.1, nan, "mean distance to the path"),
    ],
)
def test_an_interval_below_a_card(low: float | None, high: float, said: str) -> None:
    assert flight_text._between({"low": low, "high": high}, "m") == said


@pytest.mark.parametrize(
    ("count", "distinct", "said"),
    [
        (3, 3, ""),
        (2, 1, "Both are the same"),
        (1200, 1, "All 1,200 are the same"),
        (1200, 7, "Only 7 of the 1,200 flights differ"),
    ],
)
def test_copies_are_told_of(count: int, distinct: int, said: str) -> None:
    note = flight_text.copies_note({"flights": count, "distinct_flights": distinct})
    assert note.startswith(said)
    assert bool(note) == bool(said)
    assert flight_text.copies_note({"flights": 2}) == ""


@pytest.mark.parametrize(
    ("flights", "title"),
    [
        ([], "Flights"),
        ([{"vehicle": "a", "pilot": "p"}], "a, flown by p"),
        ([{"vehicle": "a", "course": "c"}, {"vehicle": "b", "course": "c", "scene": "s"}], "2 vehicles on c in s"),
        ([{"vehicle": "a", "scene": "s"}, {"scene": "t", "pilot": ""}], "a in 2 scenes"),
    ],
)
def test_titles(flights: list[dict[str, Any]], title: str) -> None:
    assert flight_text._title(flights) == title


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        (0.0099, "m", ("9.90", "mm")),
        (0.01, "m", ("0.0100", "m")),
        (0.0, "m", ("0", "m")),
        (-0.005, "m", ("\N{MINUS SIGN}5.00", "mm")),
        (0.005, "s", ("0.00500", "s")),
        (None, "m", ("\N{EN DASH}", "m")),
    ],
)
def test_lengths_under_a_centimetre_are_told_in_millimetres(value: float | None, unit: str, said: tuple[str, str]) -> None:
    assert flight_text._readable(value, unit) == said


@pytest.mark.parametrize(
    ("name", "value", "text", "sort"),
    [
        ("env", 12, "12", "12"),
        ("seed", True, "True", "True"),
        ("vehicle", "carl", "carl", "carl"),
        ("tracking_error_m", 0.25, "0.250", "0.25"),
        ("yaw_error_median_rad", 0.5, "28.6", "28.6478898"),
        ("tracking_error_m", inf, "\N{EN DASH}", ""),
        ("tracking_error_m", None, "\N{EN DASH}", ""),
    ],
)
def test_cells(name: str, value: Any, text: str, sort: str) -> None:
    assert flight_text._cell(name, value) == {"text": text, "sort": sort, "words": False, "style": ""}


def test_notes_under_paths(reference: TrackingReference) -> None:
    columns, _ = fly(reference, 3, rate_hz=10.0)
    keep = (columns["env"] != 1) | (columns["t"] < 7.0)
    short = FlightBatch(FlightTable.from_columns({name: values[keep] for name, values in columns.items()}), [reference], {})
    notes = flight_text.path_notes(short, [0, 1], ["success", "partial", "collision"])
    assert notes["drawn_note"].startswith("2 of 3 flights are drawn, from the best to the worst. Blue: succeeded")
    assert notes["ended_note"] == " 1 of 3 flights end before the last instant and count up to their end."
    assert flight_text.path_notes(short, [0, 1, 2], ["success"] * 3)["drawn_note"].startswith("All 3 flights are drawn. Blue")
    for outcome, color in (("success_recovered", "Blue"), ("partial", "Amber"), ("timeout", "Red")):
        assert flight_text.path_notes(short, [0], [outcome])["drawn_note"] == f"{color}: the flight. Dashed: the reference."


# ---- a batch on one time axis -----------------------------------------------------------------------------------------------


def test_a_time_axis_has_no_more_instants_than_are_drawn(reference: TrackingReference) -> None:
    columns, _ = fly(reference, 1, rate_hz=50.0)
    long = FlightBatch(FlightTable.from_columns(columns), [reference], {})
    assert long.table.row_count == 801
    np.testing.assert_allclose(long.t, 0.02 * np.round(np.linspace(0.0, 800.0, 400)), atol=1e-9)
    few = FlightBatch(long.table.select([0]), [reference], {})
    assert few.path(0, 9).shape == (9, 3)
    np.testing.assert_array_equal(few.path(0, 9)[[0, -1]], few.vector("position")[[0, -1]])


def test_signals_by_their_definitions(reference: TrackingReference) -> None:
    columns, _ = fly(reference, 2, rate_hz=10.0)
    turned = TrackingReference(reference.t, reference.position - (0.0, -3.0, 0.0), reference.velocity, reference.yaw + 1.0)
    batch = FlightBatch(FlightTable.from_columns(columns), [reference, turned], {1: 1})
    signals, t, p = batch.signals, batch.table.t, batch.vector("position")
    mine = np.repeat([0, 1], len(t) // 2) == 0
    wanted = np.where(mine[:, None], reference.position_at(t), turned.position_at(t))
    np.testing.assert_allclose(signals["matched"], np.linalg.norm(p - wanted, axis=1), atol=1e-9)
    np.testing.assert_allclose(signals["speed"], np.linalg.norm(batch.vector("velocity"), axis=1))
    x, y, z, w = batch.vector("attitude").T
    heading = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    np.testing.assert_allclose(np.exp(1j * signals["yaw"]), np.exp(1j * heading), atol=1e-6)
    np.testing.assert_allclose(np.cos(signals["tilt"]), 1 - 2 * (x * x + y * y), atol=1e-6)
    asked = np.where(mine, reference.yaw_at(t), turned.yaw_at(t))
    np.testing.assert_allclose(signals["yaw"] - signals["yaw_error"], asked, atol=1e-9)
    assert np.abs(signals["yaw_error"][~mine]).min() > 0.5
    dense = np.concatenate([turned.position_at(np.linspace(0, 15, 3001))])
    least = np.linalg.norm(p[~mine][:, None] - dense[None], axis=-1).min(axis=1)
    np.testing.assert_allclose(signals["distance"][~mine], least, atol=3e-3)


def test_the_space_that_is_shown(reference: TrackingReference) -> None:
    columns, _ = fly(reference, 1, rate_hz=10.0)
    batch = FlightBatch(FlightTable.from_columns(columns), [reference], {})
    low, high = reference.path.min(axis=0), reference.path.max(axis=0)
    np.testing.assert_allclose(batch.box_of_references, [low, high])
    np.testing.assert_allclose(batch.box, [low - 4.5, high + 4.5], atol=1e-3)  # half of 9 m
    small = TrackingReference(reference.t, 0.1 * reference.position, reference.velocity, reference.yaw)
    np.testing.assert_allclose(FlightBatch(batch.table, [small], {}).box[0], 0.1 * low - 2.0, atol=1e-9)  # at least 2 m


def test_quantiles_leave_out_what_has_ended() -> None:
    values = np.array([[1.0, 5.0, nan], [3.0, nan, nan], [2.0, 7.0, nan]])
    np.testing.assert_allclose(bands(values, [0.0, 0.5, 1.0]), [[1.0, 5.0, nan], [2.0, 6.0, nan], [3.0, 7.0, nan]])
    assert bands(np.zeros((0, 4))).shape == (5, 4)
    assert np.isnan(bands(np.zeros((0, 4)))).all()


def test_which_flights_are_drawn_and_which_is_typical() -> None:
    kinds = ["success"] * 8 + ["collision"] * 4
    some = [{"outcome": kind, "tracking_error_m": 0.1 * (12 - k)} for k, kind in enumerate(kinds)]
    # Two failures of six, the first and the last; four of the others from the best to the worst.
    assert choose_drawn(some, 6) == [0, 3, 6, 8, 10, 11]
    assert choose_drawn(some, 12) == list(range(12))
    assert typical_flight(some) == 4
    assert typical_flight(some[8:]) == 2
    assert typical_flight([{"outcome": "success", "tracking_error_m": e} for e in (None, 0.3, 0.1)]) == 1
    assert batches._evenly(5, 3) == [0, 2, 4]
    assert batches._evenly(2, 3) == [0, 1]
    assert batches._evenly(0, 3) == batches._evenly(3, 0) == []


def test_references_of_a_table_are_thinned_to_their_rate(reference: TrackingReference) -> None:
    columns, _ = fly(reference, 2, rate_hz=100.0)
    columns["reference_yaw_rad"] = np.where(columns["t"] < 10.0, 3.1, -3.1)
    (found,), owner = batches.reference_of_table(FlightTable.from_columns(columns))
    assert owner == {0: 0, 1: 0}
    np.testing.assert_allclose(found.t, np.arange(0.0, 16.0 + 1e-9, 0.05), atol=1e-9)
    assert float(np.ptp(found.yaw)) == pytest.approx(2 * np.pi - 6.2, abs=1e-6)  # no jump of a turn, in float32
    np.testing.assert_allclose(found.velocity, reference.velocity_at(found.t), atol=1e-6)


def test_thresholds_of_a_summary() -> None:
    assert flight_text.protocol_of({}) == TrackingProtocol()
    assert flight_text.protocol_of({"protocol": {"proximity_m": 0.5, "unknown": 3}}) == TrackingProtocol(proximity_m=0.5)
