"""`report.html` of a benchmark: our simulated flights beside the published ones, readable offline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from airworthy.core.errors import AirworthyError
from airworthy.core.files import read_json, write_text
from airworthy.evaluation.navigation import report_words
from airworthy.evaluation.navigation.entrants import Entrant, entrant
from airworthy.evaluation.navigation.figures import (
    figure_fleet,
    figure_grid,
    figure_heatmap,
    figure_indicators,
    figure_outcomes,
    figure_scenarios,
)
from airworthy.evaluation.navigation.score import cells_of
from airworthy.evaluation.navigation.store import read_manifest, read_rows
from airworthy.evaluation.navigation.summing import pilots_of, vehicles_of

__all__ = ["REPORT_FILE", "write_report"]

Row = Mapping[str, Any]
REPORT_FILE, SUMMARY_FILE = "report.html", "summary.json"
_SUMMARY_MAX = 256 << 20


def write_report(folder: str | Path, quiet: bool = True, pictures: bool = True) -> Path:
    """Write it into a benchmark's folder, from what is there.

    Args:
        folder: With results and summary.
        quiet: Show no progress.
        pictures: Fly and draw one flight of each scenario.

    Raises:
        AssetError: The folder is none, or damaged.
    """
    folder = Path(folder)
    manifest, rows = read_manifest(folder), read_rows(folder)
    summary = read_json(folder / SUMMARY_FILE, _SUMMARY_MAX)
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
    return scenario_views(rows, who, config_of(manifest["identity"], folder), titles, quiet)


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
