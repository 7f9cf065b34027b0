"""`report.html` of a benchmark: our simulated flights beside the published ones, readable offline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import read_json, write_text
from airworthy.evaluation.navigation import report_words
from airworthy.evaluation.navigation.config import NavigationConfig
from airworthy.evaluation.navigation.entrants import Entrant, entrant
from airworthy.evaluation.navigation.figures import figure_outcomes, figure_scenarios
from airworthy.evaluation.navigation.figures_vehicles import figure_fleet, figure_grid, figure_heatmap, figure_indicators
from airworthy.evaluation.navigation.score import cells_of
from airworthy.evaluation.navigation.store import read_manifest, read_rows
from airworthy.evaluation.navigation.summing import pilots_of, summarize, vehicles_of
from airworthy.simulation.checks import check_device

__all__ = ["REPORT_FILE", "summary_of", "write_report"]

Row = Mapping[str, Any]
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
    manifest, rows = read_manifest(folder), read_rows(folder)
    if not rows:
        raise AssetError(f"The folder {str(folder)!r} holds no flights yet: run its command again.")
    summary = summary_of(folder, rows) if summary is None else summary
    titles = report_words.titles_of(manifest)
    pilots, vehicles = pilots_of(rows), vehicles_of(rows)
    scenarios = list(dict.fromkeys(row["scenario"] for row in rows))
    words = report_words.content(_plain(summary), manifest, rows, str(folder))
    rates = _plain(summary["vehicles"])
    figures = {
        "fleet": figure_fleet(vehicles),
        "scenarios": figure_scenarios(_plain(summary["scenarios"]), pilots, titles, scenarios),
        "indicators": figure_indicators(rates, vehicles, _plain(summary["correlations"]), pilots, titles),
        "grid": figure_grid(rates, vehicles, pilots, titles),
        "outcomes": figure_outcomes(summary["outcomes_by_scenario"], pilots, titles, scenarios),
    }
    views = _views(manifest, rows, folder, titles, quiet) if pictures else []
    content = {
        **words,
        "figures": {name: _markup(svg) for name, svg in figures.items()},
        "heatmaps": [_markup(svg) for svg in _heatmaps(rows, pilots, scenarios, [v["vehicle"] for v in vehicles], titles)],
        "views": [{"title": v.title, "note": v.note, "above": _markup(v.above), "aboard": v.aboard} for v in views],
    }
    return write_text(folder / REPORT_FILE, _render(content))


def summary_of(folder: str | Path, rows: Sequence[Row]) -> dict[str, Any]:
    """Every number of the report from the rows of a folder; from its summary only what rows do not tell: how much was asked
    for, on which machine, in what time."""
    path = Path(folder) / SUMMARY_FILE
    told = read_json(path, _SUMMARY_MAX) if path.is_file() else {}
    kept = told if isinstance(told, dict) else {}
    machine, state, took = (kept.get(name) for name in ("hardware", "state", "seconds"))
    known = isinstance(machine, dict) and all(isinstance(machine.get(name), str | int) for name in _MACHINE)
    counts = isinstance(state, dict) and all(isinstance(state.get(name), int) for name in ("complete", "flights", "finished"))
    return {
        **summarize(rows),
        "hardware": machine if known else dict.fromkeys(_MACHINE, "unknown"),
        "state": state if counts else {"complete": True, "flights": len(rows), "finished": len(rows)},
        "seconds": _seconds(took),
    }


def _seconds(told: Any) -> dict[str, dict[str, float]]:
    """What pilots took by part, without what is no number."""
    parts = {name: part for name, part in told.items() if isinstance(part, dict)} if isinstance(told, dict) else {}
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


def _views(manifest: Mapping[str, Any], rows: Sequence[Row], folder: Path, titles: Mapping[str, str], quiet: bool) -> list[Any]:
    from airworthy.evaluation.navigation.replay import config_of
    from airworthy.evaluation.navigation.views import scenario_views

    who: dict[str, Entrant] = {}
    for name, word in manifest.get("words", {}).items():
        try:
            who[name] = entrant(word)
        except AirworthyError:  # a file that has moved: its flights stay without pictures
            continue
    return scenario_views(rows, who, _here(config_of(manifest["identity"], folder)), titles, quiet)


def _here(config: NavigationConfig) -> NavigationConfig:
    """The same on a device of this machine: a picture need not have every bit of the flight."""
    try:
        check_device(config.device)
    except AirworthyError:
        return replace(config, device="cpu")
    return config


def _markup(svg: str) -> Any:
    from markupsafe import Markup

    return Markup(svg)  # noqa: S704 - made by inline_svg, which escapes


def _render(content: Mapping[str, Any]) -> str:
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    style, own = files("airworthy.evaluation"), files("airworthy.evaluation.navigation")
    template = Environment(autoescape=True, undefined=StrictUndefined).from_string(
        own.joinpath("report.html.j2").read_text("utf-8")
    )
    css, js = (Markup(style.joinpath(f"report.{kind}").read_text("utf-8")) for kind in ("css", "js"))  # noqa: S704
    return template.render(**content, css=css, js=js)
