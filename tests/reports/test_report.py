"""The report: complete in itself, the same for one flight, a thousand or none, and quick."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.fixtures.flights import fly

from airworthy.core.errors import AssetError
from airworthy.evaluation import evaluate_tracking, read_summary, summarize, write_summary
from airworthy.reports.batch import FlightBatch, bands, choose_drawn, reference_of_table
from airworthy.reports.figures import _bins, _saturation_panel
from airworthy.reports.flight_report import _camera_azimuth, _scene, path_scene, write_report
from airworthy.reports.flight_text import _readable, path_notes
from airworthy.reports.page import labelled
from airworthy.simulation.flights import FlightTable, write_flight
from airworthy.tasks import TrackingReference

LABELS = {"vehicle": "flightgoggles", "course": "weave", "pilot": "geometric", "seed": 3}
COMMAND = 'airworthy fly --vehicle flightgoggles --out "runs/<b>&"'
META = {
    "version": "0.1.0",
    "physics_rate_hz": 960,
    "hardware": {"cpu": "test </script><script>alert(1)</script>", "cores": 2},
    "rotor_speed_min_rad_s": 200.0,
    "rotor_speed_max_rad_s": 1200.0,
}


class Page(HTMLParser):
    """Tags and attributes of a page; fails where elements do not nest."""

    VOID = ("meta", "br", "input", "img", "link", "hr")

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def make(folder: Path, table: FlightTable, reference: TrackingReference, parameters: Any = None, **options: Any) -> str:
    results = evaluate_tracking(table, reference)
    summary = summarize(results, command=COMMAND, labels=LABELS, parameters=parameters)
    path = write_report(folder, table=table, summary=summary, meta=META, reference=reference, **options)
    text = path.read_text(encoding="utf-8")
    Page(text)
    assert re.search(r">\s*(nan|inf)|NaN", text.replace("Infinity", "").replace("isNaN", "")) is None
    assert "var(--" in text
    return text


def test_a_batch_with_failures(tmp_path: Path, reference: TrackingReference, make_flights: Callable[..., Any]) -> None:
    table, parameters = make_flights(reference, 12, failures=True)
    gate = [[0.0, -0.5, 1.0], [0.0, 0.5, 1.0], [0.0, 0.5, 2.0]]
    text = make(tmp_path, table, reference, parameters, gates=[gate])
    assert "9 of 12 flights succeeded" in text
    for text_part in ("off course", "collision", "diverged", "success, recovered", "gates in green", "mass [kg]", "Intel" * 0):
        assert text_part in text
    page = Page(text)
    svgs = [attributes for tag, attributes in page.tags if tag == "svg"]
    assert len(svgs) == 7
    assert all(attributes.get("role") == "img" for attributes in svgs)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))


@pytest.fixture(scope="module")
def of_three(reference: TrackingReference, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of three flights whose title is an attack."""
    return make_of_three(tmp_path_factory.mktemp("three"), reference)


def make_of_three(folder: Path, reference: TrackingReference) -> str:
    columns, parameters = fly(reference, 3)
    return make(folder, FlightTable.from_columns(columns), reference, parameters, title="<script>alert(1)</script>")


def test_nothing_is_loaded_and_nothing_injected(of_three: str) -> None:
    text = of_three
    assert "http:" not in text
    assert "https:" not in text
    assert "@import" not in text
    assert "alert(1)</script>" not in text
    assert "<b>&" not in text
    page = Page(text)
    assert not {tag for tag, _ in page.tags} & {"link", "img", "iframe", "object", "embed", "base", "form"}
    for _, attributes in page.tags:
        assert "src" not in attributes
        assert (attributes.get("href") or "#").startswith("#")
        assert not any(name.startswith("on") for name in attributes)
    policy = [a["content"] for tag, a in page.tags if tag == "meta" and a.get("http-equiv") == "Content-Security-Policy"]
    assert policy
    assert policy[0].startswith("default-src 'none'")
    for target in re.findall(r"url\(([^)]*)\)", text):
        assert target.startswith("#")


def test_one_flight(tmp_path: Path, reference: TrackingReference, make_flights: Callable[..., Any]) -> None:
    table, _ = make_flights(reference, 1)
    text = make(tmp_path, table, reference)
    assert "One flight: success." in text
    assert "1 of 1 flight<" in text


def test_no_flights(tmp_path: Path, reference: TrackingReference, make_flights: Callable[..., Any]) -> None:
    table, _ = make_flights(reference, 1)
    text = make(tmp_path, table.select([]), reference)
    assert "There are no flights in this run." in text
    assert 'id="scene"' not in text


def test_all_diverged_at_once(tmp_path: Path, reference: TrackingReference, make_flights: Callable[..., Any]) -> None:
    table, _ = make_flights(reference, 4)
    columns = dict(table.columns)
    columns["status"] = np.ones(table.row_count)
    columns["position_x_m"] = np.full(table.row_count, np.nan)
    text = make(tmp_path, FlightTable.from_columns(columns), reference)
    assert "None of 4 flights succeeded" in text


def test_single_samples_and_no_optional_columns(
    tmp_path: Path, reference: TrackingReference, make_flights: Callable[..., Any]
) -> None:
    table, _ = make_flights(reference, 3)
    keep = {n: v[table.starts[:-1]] for n, v in table.columns.items() if not n.startswith(("rotor", "reference", "saturated"))}
    text = make(tmp_path, FlightTable.from_columns(keep), reference)
    assert "What the rotors were asked to do" not in text
    make(tmp_path, table.select([1]), reference)


def test_a_hover_whose_path_is_a_point(tmp_path: Path, make_flights: Callable[..., Any]) -> None:
    t = np.linspace(0.0, 2.0, 41)
    hover = TrackingReference(t, np.tile([0.0, 0.0, 1.0], (41, 1)), np.zeros((41, 3)), np.zeros(41))
    table, _ = make_flights(hover, 3, quality=np.zeros(3))
    assert "All 3 flights succeeded" in make(tmp_path, table, hover)


def test_same_input_same_bytes(tmp_path: Path, reference: TrackingReference, of_three: str) -> None:
    assert make_of_three(tmp_path / "again", reference) == of_three


def test_made_again_from_its_folder(tmp_path: Path, reference: TrackingReference, make_flights: Callable[..., Any]) -> None:
    table, parameters = make_flights(reference, 5, failures=True)
    write_flight(tmp_path, table, META)
    write_summary(
        tmp_path, summarize(evaluate_tracking(table, reference), command=COMMAND, labels=LABELS, parameters=parameters)
    )
    text = write_report(tmp_path).read_text(encoding="utf-8")
    assert "hash of flights" in text
    assert "2 of 5 flights succeeded" in text
    assert read_summary(tmp_path)["aggregate"]["outcomes"]["diverged"] == 1
    (tmp_path / "summary.json").write_text("{}")
    with pytest.raises(AssetError, match="not a summary"):
        write_report(tmp_path)


def test_reference_read_back_from_a_table(reference: TrackingReference, make_flights: Callable[..., Any]) -> None:
    table, _ = make_flights(reference, 4, failures=True)
    columns = dict(table.columns)
    other = columns["env"] == 3
    columns["reference_position_x_m"] = np.where(
        other, columns["reference_position_x_m"] + 1.0, columns["reference_position_x_m"]
    )
    keep = (columns["env"] != 0) | (columns["t"] < 5.0)
    found, owner = reference_of_table(FlightTable.from_columns({n: v[keep] for n, v in columns.items()}))
    assert len(found) == 2
    assert owner == {0: owner[1], 1: owner[1], 2: owner[1], 3: owner[3]}
    # float32 columns, and 20 Hz samples between which the reference is itself linear.
    np.testing.assert_allclose(found[owner[0]].position_at(reference.t), reference.position, atol=2e-6)


def test_time_axis_and_bands(reference: TrackingReference, make_flights: Callable[..., Any]) -> None:
    table, _ = make_flights(reference, 7, failures=True)
    batch = FlightBatch(table, [reference], {})
    matrix = batch.over_time(table.columns["position_x_m"][batch.flown.rows])
    assert matrix.shape == (7, batch.t.size)
    assert batch.t.size <= 400
    assert np.isnan(matrix[1, batch.t > 7.0]).all()
    flight = table.flight(5)
    np.testing.assert_array_equal(matrix[5], flight.columns["position_x_m"][np.searchsorted(flight.t, batch.t)])
    late = batch.t > 7.0
    expected = np.nanquantile(matrix[:, late], [0.05, 0.5, 0.95], axis=0)
    np.testing.assert_allclose(bands(matrix[:, late], [0.05, 0.5, 0.95]), expected, atol=1e-12)


def test_a_flight_that_runs_away_does_not_shrink_the_picture(
    tmp_path: Path, reference: TrackingReference, make_flights: Callable[..., Any]
) -> None:
    table, _ = make_flights(reference, 3)
    columns = dict(table.columns)
    away = (columns["env"] == 1) & (columns["t"] > 5.0)
    columns["position_z_m"] = np.where(away, -100.0, columns["position_z_m"])
    runaway = FlightTable.from_columns(columns)
    batch = FlightBatch(runaway, [reference], {})
    assert [batch.left_picture(index) for index in range(3)] == [False, True, False]
    assert np.all(batch.path(1, 100)[:, 2] > 0.0)
    assert "Paths stop where they leave" in make(tmp_path, runaway, reference)


def test_share_over_time_counts_every_sample(reference: TrackingReference, make_flights: Callable[..., Any]) -> None:
    table, _ = make_flights(reference, 3)
    batch = FlightBatch(table, [reference], {})
    flags = np.random.default_rng(0).uniform(size=table.row_count) < 0.2
    share = batch.share_over_time(flags)
    counts = np.diff(np.concatenate(([-1], np.searchsorted(table.flight(0).t, batch.t)))) * 3
    assert np.sum(share * counts) == pytest.approx(np.sum(flags))


@pytest.mark.parametrize(("flights", "top"), [((), 5.0), ((1,), 110.0 / 3), ((0, 1, 2), 110.0)])
def test_the_panel_of_rotors_at_a_limit_shows_the_samples_that_were(
    flights: tuple[int, ...], top: float, reference: TrackingReference, make_flights: Callable[..., Any]
) -> None:
    """A tenth of room above the largest share of three flights, and a word where there is none."""
    from matplotlib.figure import Figure

    table, _ = make_flights(reference, 3)
    columns = dict(table.columns)
    columns["saturated"] = np.isin(columns["env"], flights).astype(columns["saturated"].dtype)
    axes = Figure().subplots()
    _saturation_panel(axes, FlightBatch(FlightTable.from_columns(columns), [reference], {}))
    assert axes.get_ylim() == (0.0, pytest.approx(top, rel=1e-9))
    assert [text.get_text() for text in axes.texts] == ([] if flights else ["none"])


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("mass_kg", "mass [kg]"),
        ("wind_speed_m_s", "wind speed [m/s]"),
        ("thrust_to_weight", "thrust to weight"),
        ("m_s", "m [s]"),
    ],
)
def test_names_as_people_write_them(name: str, label: str) -> None:
    assert labelled(name) == label


def test_drawn_flights_are_few_with_failures_among_them() -> None:
    flights = [{"outcome": "success" if k % 50 else "collision", "tracking_error_m": 0.01 * k} for k in range(1000)]
    drawn = choose_drawn(flights, 40)
    assert len(drawn) <= 40
    assert sum(k % 50 == 0 for k in drawn) >= 10
    assert choose_drawn(flights[:12], 40) == list(range(12))


@pytest.mark.slow
def test_a_large_batch_lists_the_worst_and_stays_small(
    tmp_path: Path, reference: TrackingReference, make_flights: Callable[..., Any]
) -> None:
    table, parameters = make_flights(reference, 400, failures=True, rate_hz=20.0)
    columns = dict(table.columns)
    text = make(tmp_path, FlightTable.from_columns(columns), reference, parameters)
    assert len(text.encode()) < 3_000_000
    assert "The 200 flights that went worst, failures first, of 400" in text
    assert text.count("<tr><td") == 200 + 13


def test_matplotlib_is_not_imported_before_a_report_is_written() -> None:
    code = (
        "import sys, airworthy.evaluation, airworthy.reports.flight_report, airworthy.tasks, airworthy.simulation.recorder\n"
        "print([m for m in ('matplotlib', 'pyarrow', 'scipy', 'jinja2', 'torch', 'warp') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_the_picture_in_space_has_a_height_scale_up_to_what_was_flown() -> None:
    """Over nine metres of floor in metres; in thirds of a flight that stays low; at least one step over a point."""
    for top, ticks in ((3.5, ["1", "2", "3", "4"]), (0.5, ["0.2", "0.4", "0.6"]), (0.0, ["5e-07", "1e-06"])):
        scene = path_scene([("good", np.array([[0.0, 0.0, 0.0], [9.0, 1.0, top]]))], [], [], None)
        (pole,) = [points for kind, style, points, _ in scene.items if (kind, style) == ("line", "pole")]
        corner, end = pole
        np.testing.assert_allclose(end - corner, [0.0, 0.0, float(ticks[-1])], rtol=1e-12)
        # The numbers stand beside it, those of the floor on the floor.
        found = [text for kind, style, at, text in scene.items if (kind, style) == ("text", "tick") and at[0, 2] > 0.0]
        assert found == ticks


@pytest.mark.parametrize("direction", [-44.0, -20.0, 0.0, 30.0, 90.0, 134.0])
def test_the_camera_stands_beside_the_way_that_was_flown(direction: float) -> None:
    """62 degrees off it, on the side from which x runs to the right, or y away."""
    away = np.array([np.cos(np.radians(direction)), np.sin(np.radians(direction)), 0.0])
    path = np.array([2.0, -1.0, 3.0]) + np.linspace(0.0, 7.0, 30)[:, None] * away
    # The way has no sense: there and back look alike.
    for points in (path, path[::-1]):
        assert np.degrees(_camera_azimuth(points)) == pytest.approx(direction - 62.0, abs=1e-6)


@pytest.mark.parametrize(("flights", "faint"), [(1, 1.0), (9, 1.0), (10, 0.9), (18, 0.5), (45, 0.3)])
def test_the_more_paths_the_fainter_each(flights: int, faint: float) -> None:
    batch = SimpleNamespace(references=[], path=lambda index, points: np.array([[0.0, 0.0, 1.0], [1.0, 0.1 * index, 1.0]]))
    content = _scene(batch, ["success"] * flights, range(flights), 0, [])  # type: ignore[arg-type]
    assert content["faint"] == faint


def test_a_histogram_of_equal_distances_lies_around_them_and_above_0() -> None:
    for value in (2e-3, 7.6e-5):
        edges = _bins(np.full(5, value))
        assert 0.0 < edges[0] < value < edges[-1] < 2.0 * value
    assert _bins(np.zeros(3))[0] >= 0.0
    spread = _bins(np.array([0.1, 0.2, 0.4]))
    assert (spread[0], spread[-1]) == (0.1, 0.4)


@pytest.mark.parametrize(("value", "shown"), [(5.61e-5, ("0.0561", "mm")), (0.0032, ("3.20", "mm")), (0.05, ("0.0500", "m"))])
def test_tiles_tell_short_lengths_in_millimetres(value: float, shown: tuple[str, str]) -> None:
    assert _readable(value, "m") == shown
    assert _readable(value, "m/s")[1] == "m/s"


@pytest.mark.parametrize(("outcome", "colour"), [("success", "Blue"), ("partial", "Amber"), ("collision", "Red")])
def test_the_caption_names_the_colour_of_the_one_flight(outcome: str, colour: str) -> None:
    batch: Any = SimpleNamespace(left_picture=lambda index: False, rows=np.zeros((1, 2), int))
    assert path_notes(batch, [0], [outcome])["drawn_note"].startswith(f"{colour}: the flight.")
