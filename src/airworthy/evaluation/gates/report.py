"""`report.html` of a gates benchmark, readable offline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from airworthy.core.commands import command_line
from airworthy.core.files import json_text, write_text
from airworthy.evaluation.gates.blocks import Block
from airworthy.evaluation.gates.comparing import OTHERS
from airworthy.evaluation.gates.config import GatesConfig
from airworthy.evaluation.gates.families import FAMILIES
from airworthy.evaluation.gates.figures import (
    figure_error,
    figure_errors,
    figure_laps,
    figure_limit,
    figure_path,
    figure_random,
)
from airworthy.evaluation.gates.store import Store

__all__ = ["REPORT_FILE", "write_report"]

REPORT_FILE = "report.html"
SHOWN = 3
"""Most courses whose flights are drawn: hard ones first, then those with most gates."""
HARD = ("mixed_10", "snake_10_hard")
"""Courses with frequent changes of direction and height, as the paper's one in simulation and reality."""


def write_report(config: GatesConfig, blocks: Sequence[Block], store: Store, summary: Mapping[str, Any]) -> Path:
    """Write it into the store's folder.

    Args:
        config: Of the run.
        blocks: Those that are finished.
        store: Where they lie.
        summary: Content of summary.json.

    Returns:
        The path of the report.
    """
    contents = [(block, store.content(block.name)) for block in blocks]
    courses = [content for block, content in contents if block.kind == "course"]
    flown = [content for block, content in contents if block.kind == "flights" and content["rows"]]
    randoms = [row for block, content in contents if block.kind == "random" for row in content["plans"]]
    errors = next((content for block, content in contents if block.kind == "errors"), None)
    told = {
        "title": "Gates: planned, proved, flown",
        "verdict": verdict(summary),
        "cards": cards(summary),
        "summary": summary,
        "families": [FAMILIES[name] for name in config.families],
        "others": OTHERS,
        "config": json_text(store.identity),
        "command": command_line("airworthy bench gates", config, leave_out=("json",)),
        "laps": _markup(figure_laps(summary["courses"])) if summary["courses"] else None,
        "shown": _shown(courses, flown, config.limit[0]),
        "random": _markup(figure_random(randoms)) if any(row["flyable"] for row in randoms) else None,
        "errors": _markup(figure_errors(errors)) if errors and errors["percent"] else None,
        "hardware": summary["hardware"],
    }
    return write_text(store.folder / REPORT_FILE, _render(told))


def _shown(courses: Sequence[Mapping[str, Any]], flown: Sequence[Mapping[str, Any]], top: float) -> list[dict[str, Any]]:
    """Figures of the hardest courses that were approved."""
    able = [item for item in courses if item["plan"]["flyable"]]
    able.sort(key=lambda item: (item["course"] not in HARD, -item["plan"]["gates"]))
    shown = []
    for k, item in enumerate(able[:SHOWN]):
        mine = [one for one in flown if one["course"] == item["course"]]
        figures = [figure_path(item, mine, f"path-{k}"), figure_limit(item, top, f"limit-{k}")]
        if mine:
            figures.append(figure_error(mine, f"error-{k}"))
        shown.append(
            {
                "name": item["course"],
                "figures": [_markup(svg) for svg in figures],
                "sentences": item["plan"]["certificate"]["sentences"],
            }
        )
    return shown


def verdict(summary: Mapping[str, Any]) -> str:
    """One sentence on top."""
    courses = summary["courses"]
    approved = [row for row in courses if row["flyable"]]
    flights = sum(row["flights"] for row in summary["aggregate"].values())
    clean = sum(row["successes"] for row in summary["aggregate"].values())
    words = [f"{len(approved)} of {len(courses)} courses approved with a certificate"]
    if flights:
        words.append(f"{clean:,} of {flights:,} randomised flights of them passed every gate without touching")
    random = summary["random"]
    if random:
        words.append(f"{random['approved_count']:,} of {random['courses']:,} random courses approved")
    return "; ".join(words) + "."


def cards(summary: Mapping[str, Any]) -> list[dict[str, str]]:
    """Large numbers under the title."""
    made = []
    for name, row in summary["aggregate"].items():
        good = row["successes"] == row["flights"]
        made.append(
            {
                "label": f"flights, {name.replace('_', '-')}",
                "value": f"{100.0 * row['success']['value']:.1f}",
                "unit": "%",
                "below": f"{row['crashes']} crashes, {row['skips']} skips of {row['flights']}",
                "tone": "good" if good else "poor",
            }
        )
    random = summary["random"]
    if random:
        broken = random["approved_but_not_proven"]
        made.append(
            {
                "label": "random courses",
                "value": f"{100.0 * random['approved']['value']:.1f}",
                "unit": "% approved",
                "below": f"{broken} approved ones break their certificate",
                "tone": "good" if not broken else "poor",
            }
        )
    took = summary["prediction_us_per_gate"]
    made.append({"label": "one prediction", "value": f"{took:,.0f}", "unit": "us", "below": "per gate", "tone": ""})
    return made


def _markup(svg: str) -> Any:
    from markupsafe import Markup

    return Markup(svg)  # noqa: S704 - made by inline_svg, which escapes


def _render(content: Mapping[str, Any]) -> str:
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    style, own = files("airworthy.evaluation"), files("airworthy.evaluation.gates")
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    environment.filters.update(
        {"number": _number, "percent": _percent, "cm": lambda x: _number(None if x is None else 100.0 * x)}
    )
    template = environment.from_string(own.joinpath("report.html.j2").read_text("utf-8"))
    css = Markup(style.joinpath("report.css").read_text("utf-8"))  # noqa: S704
    return template.render(**content, css=css)


def _number(value: Any, digits: int = 2) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _centimetres(value: Any) -> str:
    return "" if value is None else _number(100.0 * value)


def _percent(told: Mapping[str, Any]) -> str:
    if told["value"] is None or told["value"] != told["value"]:
        return ""
    return f"{100.0 * told['value']:.1f} ({100.0 * told['low']:.1f} to {100.0 * told['high']:.1f})"
