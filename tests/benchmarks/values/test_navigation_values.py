"""What the navigation benchmark says of a table of flights that is drawn here: statistics, tables, texts, figures, pages.

Modules: airworthy.benchmarks.navigation.aggregation, .intervals, .score, .report.tables, .report.text, .report.figures,
.report.page.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.fixtures.figures import figure_values
from tests.fixtures.snapshots import check_snapshot, condensed
from tests.fixtures.transcripts import Transcript, check_text, plain

from airworthy import __version__
from airworthy.benchmarks.navigation import aggregation, intervals, score
from airworthy.benchmarks.navigation.report import figures, page, tables, text
from airworthy.geometry import Box
from airworthy.planners.common.interface import Mission
from airworthy.scenes import Instance, Scene, SceneBatch, scene
from airworthy.scenes.record import Region
from airworthy.tasks.navigation import NAVIGATION_OUTCOMES, NavigationProtocol

FILES = Path(__file__).parent / "snapshots" / "navigation"
PILOTS, SCENARIOS = ("ego", "fast", "mine"), ("forest", "maze", "sudden_drop")
VEHICLES = (*(f"real_{k:02d}" for k in range(1, 10)), "virt_01", "virt_02")
TITLES = {"ego": "EGO-Planner", "fast": "Fast-Planner"}


def flown(pilot: str, scenario: str, vehicle: str, configuration: int, repeat: int, k: int) -> dict[str, Any]:
    """A row whose values follow from its number."""
    share = 0.5 + 0.5 * np.sin(1.7 * k + 0.3 * configuration)
    outcome = "success" if share > {"ego": 0.3, "fast": 0.5, "mine": 0.65}[pilot] else NAVIGATION_OUTCOMES[1 + k % 5]
    v = VEHICLES.index(vehicle)
    row: dict[str, Any] = {"pilot": pilot, "scenario": scenario, "configuration": configuration, "vehicle": vehicle}
    row |= {"repeat": repeat, "number": k, "outcome": outcome, "success": int(outcome == "success"), "seed": 0, "layouts": 0}
    row |= {"cause": "" if outcome == "success" else f"reason {k % 3}", "time_s": 10.0 + k % 7 + 0.25 * v}
    row |= {"goal_distance_m": 60.0 * (1.0 - share), "end_z_m": 1.0 + 0.1 * (k % 4), "speed_max_m_s": 2.0 + 0.2 * (k % 5)}
    row |= {"tracking_rmse_m": float("nan") if k % 11 == 0 else 0.1 + 0.01 * (k % 6), "thrust_saturation": 0.02 * (k % 9)}
    row |= {"category": "real" if vehicle.startswith("real") else "virtual", "mass_kg": 0.5 + 0.2 * v, "twr": 2.0 + 0.3 * v}
    row |= {"alpha_xy": 50.0 * 1.3**v, "alpha_z": 40.0 - 3.0 * v, "a_max_m_s2": 6.0, "latency_median_s": 1e-3 * (1 + k % 3)}
    return row | {name: 0.5 + 0.1 * (k % 8) for name in aggregation._MEANS if name not in row}


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for pilot in PILOTS:
        for scenario in SCENARIOS[: 3 if pilot == "ego" else 2]:
            for vehicle in VEHICLES:
                for configuration in (1, 2, 3):
                    for repeat in range(2 if scenario == "maze" else 1):
                        found.append(flown(pilot, scenario, vehicle, configuration, repeat, len(found)))
    return found


@pytest.fixture(scope="module")
def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    found = aggregation.summarize(rows, NavigationProtocol())
    took = {"ego": {"thinking": 0.5, "calls": 250.0, "flying": 3.0, "setup": 1.0, "planning": 90.0, "asked": 1e5}, "mine": {}}
    machine = {"processor": "one", "cores": 2, "system": "Linux", "python": "3.11"}
    return {**found, "hardware": machine, "seconds": took, "state": {"complete": False, "flights": 1234, "finished": 1000}}


def by_line(value: Any, name: str = "") -> list[str]:
    """A line for each record of nested mappings and lists."""
    if isinstance(value, dict) and any(isinstance(part, dict | list | tuple) for part in value.values()):
        return [line for key, part in value.items() for line in by_line(part, f"{name}.{key}".strip("."))]
    if isinstance(value, list | tuple) and any(isinstance(part, dict | list | tuple) for part in value):
        return [line for k, part in enumerate(value) for line in by_line(part, f"{name}[{k}]")]
    return [f"{name} = {plain(value)}"]


def test_summaries(rows: list[dict[str, Any]], summary: dict[str, Any]) -> None:
    check_text(FILES / "summary.txt", "\n".join(by_line(summary)) + "\n")
    timed = score.timed_scores(rows, NavigationProtocol(goal_radius_m=2.0))
    check_snapshot(FILES / "timed.txt", {"scores": timed, "differences": score.differences(rates())})


def rates() -> dict[tuple[str, str], float]:
    found = score._data()["rates"]
    return {(pilot, scenario): 0.1 + 0.13 * k for pilot, part in found.items() for k, scenario in enumerate(part)}


def test_intervals(rows: list[dict[str, Any]]) -> None:
    values: dict[str, Any] = {}
    one, two = ([row for row in rows if row["pilot"] == pilot] for pilot in ("ego", "fast"))
    sure = [{**row, "success": 1} for row in one]
    single = [row for row in one if row["configuration"] == 1 and row["repeat"] == 0]
    once = [row for row in one if row["repeat"] == 0]
    parts = {
        "all": one,
        "sure": sure,
        "single": single,
        "none": [],
        "once": once,
        "few": one[:4],
        "failed": [{**r, "success": 0} for r in one[:6]],
    }
    for name, part in parts.items():
        for stratum in ("vehicle", "scenario"):
            for shared in (False, True):
                found = intervals.stratified_rate(part, stratum, shared_layouts=shared, resamples=200, confidence=0.9)
                values[f"{name} {stratum} {shared}"] = [found.value, found.low, found.high]
        for other, rivals in (("two", two), ("itself", one), ("sure", sure)):
            values[f"pairs {name} {other}"] = intervals.paired_difference(part, rivals, resamples=200, confidence=0.9)
            wide = intervals.layout_difference(part, rivals, resamples=200, confidence=0.9)
            values[f"layouts {name} {other}"] = [wide.value, wide.low, wide.high]
    x = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 9.0, 8.0])
    for name, (a, b) in {
        "up": (x, x**2),
        "mixed": (x, np.array([3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0, 5.0])),
        "seven": (x[:7], np.cos(x[:7])),
        "eight": (x[:8], np.cos(x[:8])),
        "gaps": (x, np.where(x == 3.0, np.nan, np.sin(x))),
        "flat": (x, np.ones(9)),
        "nearly flat": (x, (x == 9.0) * 1.0),
    }.items():
        found = intervals.spearman(a, b, resamples=200)
        values[f"rank {name}"] = [found.value, found.low, found.high]
    for count in (1, 5, 40):
        for rate in (0.0, 0.3, 1.0):
            found = intervals._wilson(rate, count, 0.95)
            values[f"wilson {rate} of {count}"] = [found.low, found.high]
    check_snapshot(FILES / "intervals.txt", values)


def manifest(**config: Any) -> dict[str, Any]:
    from dataclasses import asdict

    given = {"seed": 3, "layouts": 0, "compute": "fixed", "a_max": "common", "body": "sphere", "sensing": "fast"}
    given |= {"protocol": asdict(NavigationProtocol()), "perturb": {"depth_noise": 0.02, "drift": 0.0, "moving_speed": 2.0}}
    pilots = {"ego": {"title": "EGO-Planner"}, "fast": {"title": "Fast-Planner"}, "mine": {"title": ""}}
    return {"identity": {"version": "1.0", "config": given | config}, "pilots": pilots, "digest": "0123456789abcdef" * 4}


def test_the_text_of_the_page(rows: list[dict[str, Any]], summary: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    told = Transcript(capsys, {__version__: "VERSION"})
    whole = {**summary, "state": {"complete": True, "flights": 1, "finished": 1}}
    division = {"division": "closed", "because": ["one", "two"]}
    cases: dict[str, tuple[Any, Any, Any]] = {
        "all": (summary, manifest(), rows),
        "finished": (whole, {**manifest(), "division": division, "command": "airworthy", "system": {"cpu": "x"}}, rows),
        "held out": (whole, manifest(layouts=7), [{**row, "layouts": 7} for row in rows]),
    }
    alone = [row for row in rows if row["pilot"] == "ego"]
    only = {**aggregation.summarize(alone), **{name: summary[name] for name in ("hardware", "seconds")}}
    cases["one pilot"] = ({**only, "state": {"complete": True, "flights": 1, "finished": 1}}, manifest(), alone)
    first = alone[:1]
    bare = {**aggregation.summarize(first), **{name: summary[name] for name in ("hardware", "seconds", "state")}}
    cases["one flight"] = ({**bare, "seconds": {}}, manifest(), first)
    for name, (found, head, flights) in cases.items():
        made = text.content(found, head, flights, "out")
        for key in ("notes", "config"):
            made.pop(key)
        told.run(name, lambda made=made: print("\n".join(by_line(made))))
    told.check(FILES / "text.txt")


def test_words_and_numbers(rows: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> None:
    told = Transcript(capsys)
    for seconds in (0.0, 89.4, 89.6, 90.0, 5399.0, 5400.0, 90000.0):
        told.run(f"{seconds} s", lambda seconds=seconds: tables.span(seconds))
    for value in (1234.567, float("nan"), 0.0):
        told.run(f"{value}", lambda value=value: tables.number(value, 1))
    for ends in ([0.1, 0.2, 0.3], [0.2, 0.2, 0.2], [float("nan")] * 3):
        told.run(f"range {ends}", lambda ends=ends: tables._range(ends, 1, 10.0))
    nan = float("nan")
    for low, high in ((0.1, 0.2), (-0.2, -0.1), (-0.1, 0.1), (0.0, 0.1), (-0.1, 0.0), (nan, 0.1), (0.1, nan)):
        entry = {"value": 0.05, "low": low, "high": high, "pairs": 3, "layout_low": low, "layout_high": high, "difference": low}
        told.run(f"{low} to {high}", lambda e=entry: (tables._rho(e), tables._report_tables_says(e), figures._rho(e)))
        told.run("points", lambda low=low, high=high: tables._points(low, high))
        for tied in (True, False):
            told.run(f"tied: {tied}", lambda e=entry, tied=tied: tables._says({**e, "tied": tied}, ["A", "B"]))
    told.run("no pairs", lambda: tables.pair_row({**pair(), "pairs": 0}, {}))
    told.run("pairs", lambda: tables.pair_row(pair(), TITLES))
    for seconds in (0.0, 0.00123456, nan, -1.0):
        told.run(f"{seconds} s in ms", lambda seconds=seconds: tables._ms(seconds))
    part = {"planning": 100.0, "asked": 5e4, "flying": 100.0, "setup": 50.0}
    for took in (part, {**part, "asked": 0.0}, {}):
        told.run(f"took {took}", lambda took=took: text._took(took))
    for own in (True, False):
        mine = [{**row, "scenario": "own_place" if own else row["scenario"]} for row in rows[:3]]
        told.run(f"own: {own}", lambda mine=mine: tables.coverage(mine))
    told.run("rules", lambda: text.protocol(manifest()["identity"]["config"]))
    told.run("shown", lambda: [row["number"] for row in page.shown_rows(rows)])
    told.run("failed", lambda: [row["number"] for row in page.shown_rows([{**row, "success": 0} for row in rows])])
    told.run("cells", lambda: figures.grid_cells(aggregation.vehicles_of(rows)))
    told.run(
        "colours", lambda: [figures.color_of(name, ["a", "ego", "b", "c", "d", "e", "f"]) for name in ("a", "ego", "b", "f")]
    )
    told.check(FILES / "words.txt")


def pair() -> dict[str, Any]:
    found = {"first": "ego", "second": "mine", "pairs": 4, "difference": -0.25, "low": -0.5, "high": 0.125, "tied": False}
    return found | {"layout_low": -0.375, "layout_high": -0.125, "only_first": 2, "only_second": 1}


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def keep(figure: Any, name: str, title: str) -> str:
        found[name] = [title, *figure_values(figure)]
        return f"<svg>{name}</svg>"

    for module in (figures, page):
        monkeypatch.setattr(module, "inline_svg", keep)
    return found


def test_figures(rows: list[dict[str, Any]], summary: dict[str, Any], drawn: dict[str, Any]) -> None:
    vehicles = aggregation.vehicles_of(rows)
    figures.figure_fleet(vehicles)
    figures.figure_indicators(summary["vehicles"], vehicles, summary["correlations"][:7], PILOTS, TITLES)
    figures.figure_grid(summary["vehicles"], vehicles, PILOTS, TITLES)
    figures.figure_scenarios(summary["scenarios"], PILOTS, TITLES, SCENARIOS)
    figures.figure_outcomes(summary["outcomes_by_scenario"], PILOTS, TITLES, SCENARIOS)
    mine = [row for row in rows if row["pilot"] == "mine"]
    figures.figure_heatmap("mine", score.cells_of(mine, SCENARIOS, VEHICLES), SCENARIOS, VEHICLES, "Mine")
    check_snapshot(FILES / "figures.txt", {name: condensed(parts) for name, parts in drawn.items()}, rtol=1e-7, of_means=1e-7)


def test_a_place_from_above_and_from_on_board(drawn: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    batch = SceneBatch(scene("maze:1"))
    low, high = np.array([-12.0, -6.0, 0.0]), np.array([12.0, 6.0, 3.0])
    given = dict.fromkeys(("speed", "acceleration", "flight", "seed", "vehicle"))
    mission = Mission(
        start=np.array([[-10.0, 0.0, 1.5]]), goal=np.array([[10.0, 1.0, 1.5]]), lower=low[None], upper=high[None], **given
    )
    path = np.stack([np.linspace(-10.0, 10.0, 20), np.zeros(20), np.full(20, 1.5)], axis=1)
    half = np.linspace(0.0, 0.5, 20)
    turned = np.stack([0.1 * np.ones(20), np.zeros(20), np.sin(half), np.cos(half)], axis=1)
    track = SimpleNamespace(path=lambda k: path, attitudes=lambda k: turned)
    batch_flown: Any = SimpleNamespace(mission=mission, track=track)
    blocked = page._blocked(batch, low, high, 1.5)
    page._above(batch_flown, batch, "maze")
    seen: list[Any] = []

    def capture(batch: Any, view: Any, channels: Any) -> dict[str, Any]:
        seen.extend([view.position, view.attitude])
        return {"rgb": np.linspace(0.0, 1.0, 24).reshape(1, 2, 4, 3)}

    monkeypatch.setattr(page, "make_sensor", lambda device: SimpleNamespace(capture=capture))
    monkeypatch.setattr(page, "data_uri", lambda image: seen.append(image.astype(int)) or "uri")
    assert page._aboard(batch_flown, batch) == "uri"
    values: dict[str, Any] = {"blocked": [blocked.shape, [int((blocked[..., k] > 0).sum()) for k in range(4)]], "aboard": seen}
    values["of blocked"] = [int((blocked[..., 3] == alpha).sum()) for alpha in (0, 110, 255)]
    values["above"] = condensed(drawn["above-maze"])
    check_snapshot(FILES / "places.txt", values, rtol=1e-7, of_means=1e-7)


def test_pages_are_made_of_folders(
    rows: list[dict[str, Any]],
    summary: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = Transcript(capsys, {str(tmp_path): "HERE"})
    head = manifest()
    # Of each of its pilots so many flights were asked for.
    flown = SimpleNamespace(folder=tmp_path, manifest=head, rows=rows, config=SimpleNamespace(protocol=NavigationProtocol()))
    flown.flights = 110 * len(head["pilots"])
    flown.missing = {"ego": flown.flights - len(rows)} if len(rows) < flown.flights else {}
    monkeypatch.setattr(page, "read_flown", lambda folder: flown)
    kept: dict[str, Any] = {}
    monkeypatch.setattr(page, "page_of", lambda package, trim, **content: kept.update(content) or f"{package} {trim}")
    for name in ("fleet", "grid", "heatmap", "indicators", "outcomes", "scenarios"):
        monkeypatch.setattr(page, f"figure_{name}", lambda *given, name=name: f"<svg>{name} {len(given)}</svg>")
    monkeypatch.setattr(
        page,
        "_views",
        lambda *given: told.fake("views")(given[-1]) or [page.ScenarioView("a view", "a note", "<svg>above</svg>", "aboard")],
    )
    for pictures in (True, False):
        told.run(f"pictures: {pictures}", lambda pictures=pictures: page.write_report(tmp_path, True, pictures, summary))
        told.run(
            "made",
            lambda: print("\n".join(line for key in sorted(kept) if key not in OMITTED for line in by_line(kept[key], key))),
        )
    for name, before in (
        ("nothing", None),
        ("a list", []),
        (
            "a part",
            {"hardware": {"processor": "x", "cores": 1, "system": "y", "python": "z"}, "seconds": {"ego": {"a": 1, "b": "c"}}},
        ),
        ("a wrong part", {"hardware": {"processor": "x"}, "state": {"complete": "no"}, "seconds": []}),
        ("a state", {"state": {"complete": False, "flights": 9, "finished": 3}, "seconds": {"ego": 1}}),
    ):
        (tmp_path / "summary.json").unlink(missing_ok=True)
        if before is not None:
            (tmp_path / "summary.json").write_text(json.dumps(before))
        monkeypatch.setattr(page, "summarize", lambda rows, protocol: {"rows": len(rows)})
        told.run(f"before: {name}", lambda: page.summary_of(flown))
    page.write_summary(tmp_path, {"new": 1})
    told.run("written", lambda: json.loads((tmp_path / "summary.json").read_text()))
    told.run("plain", lambda: page._plain({"a": [None, {"b": None}], "c": 1}))
    told.check(FILES / "pages.txt")


OMITTED = {
    "notes",
    "config",
    "version",
    "protocol",
    "facts",
    "why",
    "layouts",
    "looks",
    "scores",
    "differences",
    "planning",
    "motion",
}


def test_what_is_dark_from_above() -> None:
    """A cell is dark where its middle is within four tenths of a cell of something, at the start's altitude or at another."""
    cell = page.CELL
    # The walls begin 0.38 and 0.42 of a cell behind the middle of the fifth cell of their row, and at different heights.
    near, far = ((4.5 + gap) * cell + 0.5 for gap in (0.38, 0.42))
    shapes = {"wall": Box((0.5, 0.04, 1.0))}
    places = {"near": (near, 0.05, 1.0), "far": (far, 0.25, 1.0), "above": (near, 0.45, 3.4)}
    instances = tuple(Instance("wall", place) for place in places.values())
    low, high = np.array([0.0, 0.0, 0.0]), np.array([0.8, 0.6, 5.0])
    plan = Scene("walls", shapes, {}, {}, instances, bounds=Region(tuple(low), tuple(high)))
    found = page._blocked(SceneBatch([plan], 1), low, high, 1.0)
    assert found.shape == (6, 8, 4)
    dark, pale = (95, 104, 120, 255), (140, 150, 165, 110)
    assert [tuple(x) for x in found[0]] == [(0,) * 4] * 4 + [dark] * 4
    assert [tuple(x) for x in found[2]] == [(0,) * 4] * 5 + [dark] * 3
    assert [tuple(x) for x in found[4]] == [(0,) * 4] * 4 + [pale] * 4
