"""`report.html` of a benchmark: our simulated flights beside the published ones, readable offline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.benchmarks.navigation.aggregation import pilots_of, summarize, vehicles_of
from airworthy.benchmarks.navigation.config import NavigationConfig
from airworthy.benchmarks.navigation.flown_folder import NavigationFolder, read_flown
from airworthy.benchmarks.navigation.methods import NavigationMethod, check_ready, method_of
from airworthy.benchmarks.navigation.missions import scene_of
from airworthy.benchmarks.navigation.replay import fly_row
from airworthy.benchmarks.navigation.report import text as report_text
from airworthy.benchmarks.navigation.report.figures import (
    figure_fleet,
    figure_grid,
    figure_heatmap,
    figure_indicators,
    figure_outcomes,
    figure_scenarios,
)
from airworthy.benchmarks.navigation.score import cells_of
from airworthy.benchmarks.navigation.store import spelled_folder
from airworthy.benchmarks.navigation.takeoff import FlownBatch
from airworthy.core.arrays import Array, ArrayU8
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import read_json, write_json, write_text
from airworthy.core.jobs.progress import progress
from airworthy.geometry.distance import clearance
from airworthy.optics.projections import Pinhole
from airworthy.optics.tone import to_8bit
from airworthy.reports.drawing import DASHES, path_line, sheet
from airworthy.reports.page import markup, page_of
from airworthy.reports.pictures import data_uri
from airworthy.reports.svg import PALETTE, inline_svg
from airworthy.scenes import SceneBatch
from airworthy.sensors.build import make_sensor
from airworthy.sensors.devices import Device
from airworthy.sensors.sampling import SensorView
from airworthy.simulation.start_state import check_device

__all__ = ["REPORT_FILE", "ScenarioView", "scenario_views", "shown_rows", "summary_of", "write_report", "write_summary"]

# -----------------------------------------------------------------------------------------------------------------------------
# F7: each scenario from above and from on board, with start, goal, the straight reference and one flown path.

Row = Mapping[str, Any]
CELL = 0.1
"""Of the picture from above [m]."""
WIDTH = 5.1
CAMERA = Pinhole(560, 320, 340.0, 340.0, 280.0, 160.0)
AHEAD = 0.3
"""The picture from on board is taken at this share of the flight."""


@dataclass(frozen=True)
class ScenarioView:
    """What is shown of a scenario."""

    title: str
    note: str
    above: str
    """Inline SVG."""
    aboard: str
    """Image as a data URI."""


def shown_rows(rows: Sequence[Row]) -> list[Row]:
    """Return one row of each scenario: of the pilot with most successes there the middle one of those that succeeded, else of
    all.
    """
    found = []
    for scenario in dict.fromkeys(row["scenario"] for row in rows):
        mine = [row for row in rows if row["scenario"] == scenario]
        pilots = list(dict.fromkeys(row["pilot"] for row in mine))
        best = max(pilots, key=lambda name: (sum(r["success"] for r in mine if r["pilot"] == name), -pilots.index(name)))
        its = [row for row in mine if row["pilot"] == best]
        good = [row for row in its if row["success"]] or its
        found.append(good[len(good) // 2])
    return found


def scenario_views(
    rows: Sequence[Row],
    who: Mapping[str, NavigationMethod],
    config: NavigationConfig,
    titles: Mapping[str, str],
    quiet: bool = True,
) -> list[ScenarioView]:
    """Fly the shown rows again and draw them; scenarios whose pilot is not to be had are left out.

    Args:
        rows: Of all flights; those that are shown are chosen here.
        who: Methods by name; flights of others are left out.
        config: Of the benchmark.
        titles: What pilots are called, by name.
        quiet: Without a bar of progress.
    """
    shown = shown_rows([row for row in rows if row["pilot"] in who])
    return [_view(row, who[row["pilot"]], config, titles) for row in progress(shown, "drawing scenarios", quiet=quiet)]


def _view(row: Row, who: NavigationMethod, config: NavigationConfig, titles: Mapping[str, str]) -> ScenarioView:
    flown, _ = fly_row(row, who, config, keep_track=True)
    scene = scene_of(flown.flights[0], config)
    batch = SceneBatch(scene, 1)
    assert flown.track is not None
    title = f"{row['scenario'].replace('_', ' ')} {row['configuration']}"
    outcome = row["outcome"].replace("_", " ")
    note = f"{titles.get(row['pilot'], row['pilot'])} on {row['vehicle']}: {outcome} after {row['time_s']:.1f} s"
    return ScenarioView(title, note, _above(flown, batch, row["scenario"]), _aboard(flown, batch))


def _above(flown: FlownBatch, batch: SceneBatch, name: str) -> str:
    assert flown.track is not None
    mission, path = flown.mission, flown.track.path(0)
    low, high = mission.lower[0], mission.upper[0]
    span = high - low
    # Areas of different shape get pictures of one size: what is beyond is left empty.
    with sheet(0.6 * WIDTH, WIDTH) as figure:
        axes = figure.add_axes((0.075, 0.1, 0.915, 0.885))
        axes.imshow(
            _blocked(batch, low, high, float(mission.start[0, 2])),
            extent=(low[0], high[0], low[1], high[1]),
            origin="lower",
            interpolation="nearest",
            zorder=0,
        )
        start, goal = mission.start[0], mission.goal[0]
        axes.plot([start[0], goal[0]], [start[1], goal[1]], color=PALETTE["flown"], linewidth=1.0, linestyle=DASHES)
        path_line(axes, path, 0, 1, PALETTE["bad"], linewidth=1.4)
        axes.plot(*start[:2], "o", color=PALETTE["second"], markersize=6.0)
        axes.plot(*goal[:2], "o", color=PALETTE["bad"], markersize=6.0)
        wide = max(span[0], span[1] / 0.58)
        middle = 0.5 * (low + high)
        axes.set_xlim(middle[0] - 0.5 * wide, middle[0] + 0.5 * wide)
        axes.set_ylim(middle[1] - 0.29 * wide, middle[1] + 0.29 * wide)
        axes.set_aspect("equal")
        axes.grid(visible=False)
        return inline_svg(figure, f"above-{name}", f"{name} from above with a flown path")


def _blocked(batch: SceneBatch, low: Array, high: Array, altitude: float) -> ArrayU8:
    """From above, (ny, nx, 4): dark where something is at the altitude of the start, pale where it is at another height."""
    x = np.arange(low[0] + 0.5 * CELL, high[0], CELL)
    y = np.arange(low[1] + 0.5 * CELL, high[1], CELL)
    gx, gy = np.meshgrid(x, y)
    levels = [altitude, *(low[2] + share * (high[2] - low[2]) for share in (0.2, 0.5, 0.8))]
    inside = []
    for level in levels:
        points = np.stack([gx.ravel(), gy.ravel(), np.full(gx.size, level)], axis=1)
        found = clearance(batch.geometry, points, env=np.zeros(len(points), np.int64), max_distance=0.5 * CELL)
        inside.append((found.distance < 0.4 * CELL).reshape(gx.shape))
    picture = np.zeros((*gx.shape, 4), np.uint8)
    picture[np.any(inside, axis=0)] = (140, 150, 165, 110)
    picture[inside[0]] = (95, 104, 120, 255)
    return picture


def _aboard(flown: FlownBatch, batch: SceneBatch) -> str:
    """Return what a levelled camera on the vehicle would see some way into the flight."""
    assert flown.track is not None
    path, turned = flown.track.path(0), flown.track.attitudes(0)
    if not len(path):  # it never came to rest where it was to start: what it would have seen from there
        path, turned = flown.mission.start[:1], np.array([[0.0, 0.0, 0.0, 1.0]])
    at = min(int(AHEAD * len(path)), len(path) - 1)
    camera = Device("aboard", "camera", CAMERA, channels=("rgb",))
    x, y, z, w = turned[at]
    yaw = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    level = np.array([[0.0, 0.0, np.sin(0.5 * yaw), np.cos(0.5 * yaw)]])  # pitched down at full thrust one sees the floor
    view = SensorView(path[at : at + 1], level, np.zeros(1, np.int32))
    linear = make_sensor(camera).capture(batch, view, ("rgb",))["rgb"]
    return data_uri(to_8bit(linear, np.ones(1))[0])


# -----------------------------------------------------------------------------------------------------------------------------

REPORT_FILE, SUMMARY_FILE = "report.html", "summary.json"
_SUMMARY_MAX = 256 << 20
_MACHINE = ("processor", "cores", "system", "python")


def write_report(
    folder: str | Path, quiet: bool = True, pictures: bool = True, summary: Mapping[str, Any] | None = None
) -> Path:
    """Write it into a benchmark's folder, from what is there.

    Args:
        folder: With a manifest and results.
        quiet: Show no progress.
        pictures: Fly and draw one flight of each scenario.
        summary: Of the results, where it is at hand; None: made from them.

    Raises:
        AssetError: The folder is none, or damaged.
    """
    folder = Path(folder)
    flown = read_flown(folder)
    manifest, rows = flown.manifest, flown.rows
    if not rows:
        raise AssetError(f"The folder {str(folder)!r} holds no flights yet: run its command again.")
    summary = summary_of(flown) if summary is None else summary
    titles = report_text.titles_of(manifest)
    pilots, vehicles = pilots_of(rows), vehicles_of(rows)
    scenarios = list(dict.fromkeys(row["scenario"] for row in rows))
    text_content = report_text.content(_plain(summary), manifest, rows, spelled_folder(folder))
    rates = _plain(summary["vehicles"])
    figures = {
        "fleet": figure_fleet(vehicles),
        "scenarios": figure_scenarios(_plain(summary["scenarios"]), pilots, titles, scenarios),
        "indicators": figure_indicators(rates, vehicles, _plain(summary["correlations"]), pilots, titles),
        "grid": figure_grid(rates, vehicles, pilots, titles),
        "outcomes": figure_outcomes(summary["outcomes_by_scenario"], pilots, titles, scenarios),
    }
    views = _views(flown, titles, quiet) if pictures else []
    content = {
        **text_content,
        "figures": {name: markup(svg) for name, svg in figures.items()},
        "heatmaps": [markup(svg) for svg in _heatmaps(rows, pilots, scenarios, [v["vehicle"] for v in vehicles], titles)],
        "views": [{"title": v.title, "note": v.note, "above": markup(v.above), "aboard": v.aboard} for v in views],
    }
    return write_text(folder / REPORT_FILE, page_of("airworthy.benchmarks.navigation", trim=False, **content))


def summary_of(flown: NavigationFolder) -> dict[str, Any]:
    """Return every number of the report from the rows of a folder; from its manifest how much was asked for, and from its
    summary only what neither tells: on which machine, in what time."""
    path = flown.folder / SUMMARY_FILE
    summary_before = read_json(path, _SUMMARY_MAX) if path.is_file() else {}
    kept = summary_before if isinstance(summary_before, dict) else {}
    machine, state, took = (kept.get(name) for name in ("hardware", "state", "seconds"))
    known = isinstance(machine, dict) and all(isinstance(machine.get(name), str | int) for name in _MACHINE)
    return {
        **summarize(flown.rows, flown.config.protocol),
        "hardware": machine if known else dict.fromkeys(_MACHINE, "unknown"),
        # A summary of before may tell of more rows than are there now.
        "state": {
            **(state if isinstance(state, dict) else {}),
            "complete": not flown.missing,
            "flights": flown.flights,
            "finished": len(flown.rows),
        },
        "seconds": _seconds(took),
    }


def write_summary(folder: str | Path, summary: Mapping[str, Any]) -> Path:
    """Put every number of the report into a folder's summary.json; what else it says of the run stays."""
    path = Path(folder) / SUMMARY_FILE
    summary_before = read_json(path, _SUMMARY_MAX) if path.is_file() else {}
    return write_json(path, {**(summary_before if isinstance(summary_before, dict) else {}), **summary})


def _seconds(summary_before: Any) -> dict[str, dict[str, float]]:
    """Return what pilots took by part, without what is no number."""
    parts = (
        {name: part for name, part in summary_before.items() if isinstance(part, dict)}
        if isinstance(summary_before, dict)
        else {}
    )
    return {
        name: {key: float(value) for key, value in part.items() if isinstance(value, int | float)}
        for name, part in parts.items()
    }


def _plain(value: Any) -> Any:
    """JSON has no NaN: what was not a number comes back as one."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return float("nan") if value is None else value


def _heatmaps(
    rows: Sequence[Row], pilots: Sequence[str], scenarios: Sequence[str], vehicles: Sequence[str], titles: Mapping[str, str]
) -> list[str]:
    found = []
    for pilot in pilots:
        cells = cells_of([row for row in rows if row["pilot"] == pilot], scenarios, vehicles)
        found.append(figure_heatmap(pilot, cells, scenarios, vehicles, titles.get(pilot, pilot)))
    return found


def _views(flown: NavigationFolder, titles: Mapping[str, str], quiet: bool) -> list[Any]:
    who: dict[str, NavigationMethod] = {}
    for name, specifier in flown.manifest.get("words", {}).items():
        try:
            found = method_of(specifier)
            check_ready(found)
        except AirworthyError:  # a file that has moved, weights that are not here: its flights stay without pictures
            continue
        who[name] = found
    return scenario_views(flown.rows, who, _here(flown.config), titles, quiet)


def _here(config: NavigationConfig) -> NavigationConfig:
    """Return the same on a device of this machine: a picture need not have every bit of the flight."""
    try:
        check_device(config.device)
    except AirworthyError:
        return replace(config, device="cpu")
    return config
