"""`report.html` of an evaluation: our simulated flights beside the published real ones, readable offline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.files import write_text
from airworthy.evaluation.tracking_protocol import report_words as words
from airworthy.evaluation.tracking_protocol.block import CONTROL_RATE, Block, Setting
from airworthy.evaluation.tracking_protocol.conditions import Condition, sweeps
from airworthy.evaluation.tracking_protocol.config import EvaluateConfig
from airworthy.evaluation.tracking_protocol.figures import (
    Plan,
    Series,
    Told,
    figure_beside,
    figure_distributions,
    figure_plans,
    figure_sweep,
    figure_told,
    series_of,
)
from airworthy.evaluation.tracking_protocol.places import ROOM, extent
from airworthy.evaluation.tracking_protocol.store import Store
from airworthy.scenes import Scene, scene
from airworthy.simulation import FlightTable

__all__ = ["REPORT_FILE", "write_report"]

Array = NDArray[np.float64]
REPORT_FILE = "report.html"
PLANS_MAX = 12
"""Conditions drawn from above, per pilot and family."""
PATH_POINTS = 120
FLYING = (0.3, 2.0)
"""Things between these heights are drawn [m]."""
AROUND = 1.2
"""Round a course, in plans [m]."""
JPEG_QUALITY = 82
TOLD = ("baseline", "payload", "wind")
"""Conditions whose estimates are drawn over time."""


def write_report(
    config: EvaluateConfig, conditions: Sequence[Condition], blocks: Sequence[Block], store: Store, summary: Mapping[str, Any]
) -> Path:
    """Write it into the store's folder.

    Args:
        config: Of the run.
        conditions: In order.
        blocks: Those that are finished.
        store: Where they lie.
        summary: Content of summary.json.

    Returns:
        The path of the report.
    """
    rows = summary["flights"]
    series = series_of(rows)
    swept = {name for sweep in sweeps() for name in sweep.conditions}
    main = [item for item in conditions if item.name not in swept]
    content = words.content(summary, config, conditions, store.identity)
    content |= {
        "figures": _figures(summary, main, series),
        "plans": _plans(config, main, blocks, store, series),
        "sweeps": [
            {"title": sweep.title, "svg": _markup(figure_sweep(sweep, rows, series))}
            for sweep in sweeps()
            if sum(any(row["condition"] == name for row in rows) for name in sweep.conditions) > 1
        ],
        "told": _told(main, blocks, store, series),
        "seen": _seen(main or list(conditions), blocks, store),
    }
    return write_text(store.folder / REPORT_FILE, _render(content))


def _figures(summary: Mapping[str, Any], main: Sequence[Condition], series: Sequence[Series]) -> dict[str, Any]:
    named = {item.name for item in main}
    shown = [entry for entry in summary["aggregate"] if entry["condition"] in named or entry["condition"].startswith("all:")]
    rows, titles = summary["flights"], {item.name: item.title for item in main}
    found = {}
    if shown:
        found["beside"] = _markup(figure_beside(shown, series))
        found["distributions"] = _markup(figure_distributions(rows, titles, series))
    return found


def _plans(
    config: EvaluateConfig, main: Sequence[Condition], blocks: Sequence[Block], store: Store, series: Sequence[Series]
) -> list[dict[str, Any]]:
    """A figure per pilot and family: flights from above, a panel per condition."""
    known: dict[str, Scene] = {}
    settings = {item.name: _bare_setting(item, config, known) for item in main[:PLANS_MAX]}
    figures = []
    for index, one in enumerate(series):
        plans = []
        for item in main[:PLANS_MAX]:
            mine = [b for b in blocks if (b.entrant, b.family, b.condition.name) == (one.pilot, one.family, item.name)]
            if mine:
                plans.append(_plan(item, settings[item.name], mine, store))
        if plans:
            svg = figure_plans(plans, f"plans-{index}", f"Flights of {one.label} from above")
            figures.append({"title": one.label, "svg": _markup(svg)})
    return figures


def _bare_setting(condition: Condition, config: EvaluateConfig, known: dict[str, Scene]) -> Setting:
    """A setting without splats and people, for where things stand."""
    name = condition.scene or config.scene
    if name not in known:
        known[name] = replace(scene(name), clouds={}, splats=())
    return Setting(replace(condition, light=1.0, people=0), config.course, config.scene, known)


def _plan(condition: Condition, setting: Setting, blocks: Sequence[Block], store: Store) -> Plan:
    course = np.asarray(setting.points.position)
    low, high = course.min(0)[:2] - AROUND, course.max(0)[:2] + AROUND
    paths = []
    for block in blocks:
        table, rows = store.flights(block.name), store.rows(block.name)
        place = table.vector("position").astype(float)
        for k, row in enumerate(rows):
            one = place[table.starts[k] : table.starts[k + 1]][: max(int(row["samples"]), 1)]
            paths.append((row["outcome"], one[np.unique(np.linspace(0, len(one) - 1, PATH_POINTS).astype(int))]))
    things = []
    for item in setting.scene.instances:
        lower, upper = extent(setting.scene, item)
        at_height = lower[2] < FLYING[1] and upper[2] > FLYING[0]
        if item.semantic not in ROOM and at_height and (lower[:2] < high).all() and (upper[:2] > low).all():
            things.append((lower, upper))
    return Plan(condition.title, course, paths, things, (low, high))


def _told(main: Sequence[Condition], blocks: Sequence[Block], store: Store, series: Sequence[Series]) -> Any:
    """What pilots with a history network told over time; nothing where none did."""
    panels = []
    for one in series:
        lines = []
        for item in (item for item in main if item.name in TOLD):
            mine = [b for b in blocks if (b.entrant, b.family, b.condition.name) == (one.pilot, one.family, item.name)]
            tables = [table for b in mine if "estimate_mass_kg" in (table := store.flights(b.name)).columns]
            if tables:
                true = float(np.mean([row["ratio_true"] for b in mine for row in store.rows(b.name)]))
                lines.append((item.title.lower(), *_over_time(tables), true))
        if lines and any(np.isfinite(values).any() for _, _, values, _ in lines):
            panels.append(Told(one.label, [line for line in lines if np.isfinite(line[2]).any(axis=0).all()]))
    return _markup(figure_told(panels)) if panels else None


def _over_time(tables: Sequence[FlightTable]) -> tuple[Array, Array]:
    """Times (n,) and estimates (flights, n), NaN where a flight had ended, from the second tick on."""
    rows = []
    for table in tables:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = table.columns["estimate_force_n"].astype(float) / table.columns["estimate_mass_kg"].astype(float)
        rows += [ratio[first:last] for first, last in zip(table.starts[:-1], table.starts[1:], strict=True)]
    longest = max(map(len, rows))
    padded = np.stack([np.pad(row, (0, longest - len(row)), constant_values=np.nan) for row in rows])[:, 1:-1]
    known = np.isfinite(padded).any(axis=0)
    return (np.arange(1, longest - 1) / CONTROL_RATE)[known], padded[:, known]


def _seen(conditions: Sequence[Condition], blocks: Sequence[Block], store: Store) -> list[dict[str, Any]]:
    """What the first flight of the first pilot saw under each condition."""
    shown = []
    for item in conditions:
        path = next((found for b in blocks if b.condition.name == item.name and (found := store.seen(b.name))), None)
        if path is not None:
            shown.append({"title": item.title, "says": item.says, "image": _jpeg(path)})
    return shown


def _jpeg(path: Path) -> str:
    import base64
    import io

    from PIL import Image

    stream = io.BytesIO()
    with Image.open(path) as image:
        image.convert("RGB").save(stream, "JPEG", quality=JPEG_QUALITY)
    return f"data:image/jpeg;base64,{base64.b64encode(stream.getvalue()).decode()}"


def _markup(svg: str) -> Any:
    from markupsafe import Markup

    return Markup(svg)  # noqa: S704 - made by inline_svg, which escapes


def _render(content: Mapping[str, Any]) -> str:
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    style, own = files("airworthy.evaluation"), files("airworthy.evaluation.tracking_protocol")
    template = Environment(autoescape=True, undefined=StrictUndefined).from_string(
        own.joinpath("report.html.j2").read_text("utf-8")
    )
    css, js = (Markup(style.joinpath(f"report.{kind}").read_text("utf-8")) for kind in ("css", "js"))  # noqa: S704
    return template.render(**content, css=css, js=js)
