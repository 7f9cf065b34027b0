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
    figure_laps,
    figure_limit,
    figure_path,
    figure_random,
)
from airworthy.evaluation.gates.figures_beside import figure_beside, figure_errors
from airworthy.evaluation.gates.store import Store

__all__ = ["REPORT_FILE", "write_report"]

REPORT_FILE = "report.html"
SHOWN = 3
"""Most courses whose flights are drawn: hard ones first, then those with most gates."""
HARD = ("mixed_10", "snake_10_hard")
"""Courses with frequent changes of direction and height, as the paper's one in simulation and reality."""


def write_report(
    config: GatesConfig, blocks: Sequence[Block], contents: Mapping[str, Any], store: Store, summary: Mapping[str, Any]
) -> Path:
    """Write it into the store's folder.

    Args:
        config: Of the run.
        blocks: Those that are finished.
        contents: Of them, by name.
        store: Where they lie.
        summary: Content of summary.json.

    Returns:
        The path of the report.
    """
    own = [(block, contents[block.name]) for block in blocks if block.who == 0]
    courses = [content for block, content in own if block.kind == "course"]
    flown = [content for block, content in own if block.kind == "flights" and content["rows"]]
    randoms = [row for block, content in own if block.kind == "random" for row in content["plans"]]
    everyone = [summary, *summary["beside"]]
    told = {
        "title": "Gates: planned, proved, flown",
        "verdict": verdict(summary),
        "cards": cards(summary),
        "summary": summary,
        "promises": promises(summary["certificate"]),
        "families": [FAMILIES[name] for name in config.families],
        "others": OTHERS,
        "config": json_text(store.identity),
        "command": command_line("airworthy bench gates", config, leave_out=("json",)),
        "laps": _markup(figure_laps(summary["courses"])) if summary["courses"] else None,
        "shown": _shown(courses, flown),
        "random": _markup(figure_random(randoms)) if any(row["flyable"] for row in randoms) else None,
        "beside": _markup(figure_beside(summary["compared"], [item["courses"] for item in everyone])) if everyone[1:] else None,
        "errors": _errors(blocks, contents, everyone),
        "hardware": summary["hardware"],
    }
    return write_text(store.folder / REPORT_FILE, _render(told))


def _errors(
    blocks: Sequence[Block], contents: Mapping[str, Any], everyone: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Figure and numbers of every network that was held against a fresh search."""
    found = []
    for block in blocks:
        if block.kind == "errors" and contents[block.name]["percent"]:
            row = everyone[block.who]
            figure = _markup(figure_errors(contents[block.name], f"errors-{block.who}"))
            found.append({"name": row["name"], "figure": figure, **row["errors"]})
    return found


def promises(certificate: Mapping[str, Any]) -> list[str]:
    """What every approved plan keeps, for people."""
    told = []
    if "envelope" in certificate:
        most, cubic = certificate["envelope"]
        told.append(f"acceleration + {cubic:g} v^3 at most {most:g} m/s^2")
    if "thrust_max" in certificate:
        told.append(f"thrust over mass from {certificate['thrust_min']:.2f} to {certificate['thrust_max']:.2f} m/s^2")
    for name, words in (("body_rate", "body rates at most"), ("yaw_rate", "yaw rate at most")):
        if name in certificate:
            told.append(f"{words} {certificate[name]:g} rad/s")
    told.append(f"{certificate['clearance']:g} m to every gate frame")
    return [*told, f"{certificate['floor']:g} m above the floor"]


def _shown(courses: Sequence[Mapping[str, Any]], flown: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Figures of the hardest courses that were approved."""
    able = [item for item in courses if item["plan"]["flyable"]]
    able.sort(key=lambda item: (item["course"] not in HARD, -item["plan"]["gates"]))
    shown = []
    for k, item in enumerate(able[:SHOWN]):
        mine = [one for one in flown if one["course"] == item["course"]]
        figures = [figure_path(item, mine, f"path-{k}"), figure_limit(item, f"limit-{k}")]
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
        made.append(
            {
                "label": "random courses",
                "value": f"{100.0 * random['approved']['value']:.1f}",
                "unit": "% approved",
                "below": f"{random['untouched']} of {random['courses']} as predicted",
                "tone": "",
            }
        )
    dense = summary["dense"]
    if dense["plans"]:
        made.append(
            {
                "label": "certificates broken",
                "value": f"{dense['broken']:,}",
                "unit": f"of {dense['plans']:,}",
                "below": "looked at 10,000 times a second",
                "tone": "poor" if dense["broken"] else "good",
            }
        )
    took = summary["prediction_us_per_gate"]
    made.append(
        {"label": "prediction", "value": f"{took:,.0f}", "unit": "us", "below": "per gate of a course, one core", "tone": ""}
    )
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
        {
            "number": _number,
            "percent": _percent,
            "cm": lambda x: _number(None if x is None else 100.0 * x),
            "hundred": lambda x: _number(None if x is None else 100.0 * x, 1),
        }
    )
    template = environment.from_string(own.joinpath("report.html.j2").read_text("utf-8"))
    css = Markup(style.joinpath("report.css").read_text("utf-8"))  # noqa: S704
    return template.render(**content, css=css)


def _number(value: Any, digits: int = 2) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _percent(told: Mapping[str, Any]) -> str:
    if told["value"] is None or told["value"] != told["value"]:
        return ""
    return f"{100.0 * told['value']:.1f} ({100.0 * told['low']:.1f} to {100.0 * told['high']:.1f})"
