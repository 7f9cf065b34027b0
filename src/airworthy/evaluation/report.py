"""One HTML file that says what a batch of flights did: complete in itself, readable offline, in light, dark and print."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.files import make_folder, write_text
from airworthy.evaluation import _report_words as words
from airworthy.evaluation._scene import path_scene, scene_svg
from airworthy.evaluation.batch import FlightBatch, choose_drawn, reference_of_table, typical_flight
from airworthy.evaluation.figures import (
    REFERENCES_DRAWN,
    figure_commands,
    figure_distribution,
    figure_error,
    figure_motion,
    figure_parameters,
    figure_views,
    outcome_role,
)
from airworthy.evaluation.summary import read_summary
from airworthy.evaluation.video_report import film_content
from airworthy.simulation.flights import META_FILE, FlightTable, read_flight, read_flight_meta
from airworthy.tasks import TrackingProtocol, TrackingReference

__all__ = ["REPORT_FILE", "write_report"]

REPORT_FILE = "report.html"
PATHS_DRAWN = 40
"""Most flown paths drawn; statistics are always over all flights."""
PATH_POINTS = 180

Array = NDArray[np.float64]


def write_report(
    folder: str | Path,
    *,
    table: FlightTable | None = None,
    summary: Mapping[str, Any] | None = None,
    meta: Mapping[str, Any] | None = None,
    reference: TrackingReference | Sequence[TrackingReference] | None = None,
    reference_of_env: Mapping[int, int] | None = None,
    gates: Sequence[ArrayLike] = (),
    rotor_limits: tuple[ArrayLike, ArrayLike] | None = None,
    title: str | None = None,
    notes: Sequence[str] | None = None,
    place: Mapping[str, Any] | None = None,
) -> Path:
    """Write `report.html` into a folder.

    Whatever is not passed is read from the folder (`flight.parquet`, `meta.json`, `summary.json`), so that
    `write_report(folder)` makes the report of a finished run again.

    Args:
        folder: Made if missing.
        table: The flights.
        summary: From `summarize`, its flights in the order of the table. Randomised parameters are drawn where flights have
            them.
        meta: What flew and how, as in `meta.json`; shown as it is.
        reference: What the flights should have followed, one or several; the table's reference columns where None.
        reference_of_env: Index of the reference of each environment id.
        gates: Corners of each gate [m], shape (k, 3).
        rotor_limits: Least and greatest rotor speed [rad/s], each a number or one per rotor; where None, the meta's
            `rotor_speed_min_rad_s` and `rotor_speed_max_rad_s`, if they are there.
        title: Heading; made of vehicle, course and pilot where None.
        notes: What the reader should know, in place of the standard notes on what the simulation leaves out.
        place: Pictures of the scene and of what sensors saw, from `fly_pictures.run_pictures`. The film that the summary names,
            if it lies in the folder, is shown besides.

    Returns:
        The path of the report.

    Raises:
        AssetError: A file to be read is missing or damaged.
        AirworthyError: The file system refused.
    """
    folder = Path(folder)
    if table is None:
        table, read_meta = read_flight(folder)
        meta = read_meta if meta is None else meta
    summary = read_summary(folder) if summary is None else summary
    meta = {**_file_hash(folder, table), **(meta or {})}
    batch = _batch(table, reference, reference_of_env)
    corners = [np.asarray(gate, dtype=np.float64).reshape(-1, 3) for gate in gates]
    limits = _limits(meta) if rotor_limits is None else rotor_limits
    content = words.content(summary, meta, title, notes)
    content |= _pictures(batch, summary, corners, limits) | dict(place or {}) | {"film": film_content(folder, summary)}
    page = _render(content)
    make_folder(folder)
    return write_text(folder / REPORT_FILE, page)


def _file_hash(folder: Path, table: FlightTable) -> dict[str, str]:
    """Hash of the folder's flight file, where it holds this table."""
    if not (folder / META_FILE).is_file():
        return {}
    written = read_flight_meta(folder)
    return {"sha256": written["sha256"]} if written["rows"] == table.row_count else {}


def _batch(
    table: FlightTable, reference: TrackingReference | Sequence[TrackingReference] | None, owner: Mapping[int, int] | None
) -> FlightBatch:
    if reference is None:
        references, found = reference_of_table(table) if table.has_reference else ([], {})
        return FlightBatch(table, references, found if owner is None else owner)
    references = [reference] if isinstance(reference, TrackingReference) else list(reference)
    return FlightBatch(table, references, owner or {})


def _pictures(
    batch: FlightBatch, summary: Mapping[str, Any], gates: list[Array], limits: tuple[ArrayLike, ArrayLike] | None
) -> dict[str, Any]:
    """Every figure that the flights give something to draw for."""
    from markupsafe import Markup

    flights, figures = list(summary["flights"]), dict[str, Any]()
    protocol = words.protocol_of(summary)
    content: dict[str, Any] = {"figures": figures, "gates": bool(gates), "limits": limits is not None, "scene": None}
    if batch.flown.rows.size and len(flights) == batch.table.env_count and batch.references:
        typical = typical_flight(flights)
        drawn = choose_drawn(flights, PATHS_DRAWN)
        outcomes = [flight["outcome"] for flight in flights]
        figures["views"] = figure_views(batch, outcomes, drawn, gates)
        figures["error"] = figure_error(batch, typical, protocol)
        figures["motion"] = figure_motion(batch, typical)
        if batch.table.rotors("rotor_command").shape[1]:
            figures["commands"] = figure_commands(batch, typical, limits)
        content |= _scene(batch, outcomes, drawn, typical, gates)
        content |= words.path_notes(batch, drawn, len(flights))
    figures |= _distributions(flights, protocol)
    content["figures"] = {name: Markup(svg) for name, svg in figures.items()}  # noqa: S704 - made by inline_svg, which escapes
    return content


def _distributions(flights: list[Mapping[str, Any]], protocol: TrackingProtocol) -> dict[str, str]:
    judged = sum(flight.get("tracking_error_m") is not None and np.isfinite(flight["tracking_error_m"]) for flight in flights)
    if judged < 3:
        return {}
    figures = {"distribution": figure_distribution(flights, protocol)}
    parameters = _parameters(flights)
    if parameters:
        figures["parameters"] = figure_parameters(flights, parameters)
    return figures


def _scene(
    batch: FlightBatch, outcomes: Sequence[object], drawn: Sequence[int], typical: int, gates: list[Array]
) -> dict[str, Any]:
    from markupsafe import Markup

    paths = [(outcome_role(outcomes[index]), batch.path(index, PATH_POINTS)) for index in drawn]
    paths = [(role, path) for role, path in paths if len(path) > 1]
    references = [_thin(reference.path, PATH_POINTS) for reference in batch.references[:REFERENCES_DRAWN]]
    typical_path = batch.path(typical, PATH_POINTS) if len(paths) > 1 else None
    svg, data = scene_svg(path_scene(paths, references, gates, typical_path), "Flown paths and reference in space")
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    faint = float(np.clip(9.0 / max(len(paths), 1), 0.3, 1.0))
    return {"scene": Markup(svg), "scene_data": Markup(text), "faint": round(faint, 2)}  # noqa: S704


def _thin(path: Array, points: int) -> Array:
    if len(path) <= points:
        return path
    return path[np.unique(np.round(np.linspace(0, len(path) - 1, points)).astype(int))]


def _parameters(flights: Sequence[Mapping[str, Any]]) -> dict[str, Array]:
    """Randomised parameters that differ between flights."""
    names = list(dict.fromkeys(name for flight in flights for name in flight.get("parameters") or {}))
    drawn = {}
    for name in names:
        values = [(flight.get("parameters") or {}).get(name) for flight in flights]
        column = np.array([np.nan if v is None else v for v in values], dtype=np.float64)
        finite = column[np.isfinite(column)]
        if finite.size >= 3 and np.ptp(finite) > 0.0:
            drawn[name] = column
    return drawn


def _limits(meta: Mapping[str, Any]) -> tuple[ArrayLike, ArrayLike] | None:
    low, high = meta.get("rotor_speed_min_rad_s"), meta.get("rotor_speed_max_rad_s")
    return None if low is None or high is None else (low, high)


def _render(content: Mapping[str, Any]) -> str:
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    here = files("airworthy.evaluation")
    template = Environment(autoescape=True, undefined=StrictUndefined).from_string(
        here.joinpath("report.html.j2").read_text("utf-8")
    )
    css, js = (Markup(here.joinpath(f"report.{kind}").read_text("utf-8")) for kind in ("css", "js"))  # noqa: S704
    known = {"drawn_note": "", "ended_note": "", "scene_data": None, "faint": 1.0, "place": None, "place_note": "", "seen": ()}
    known["film"] = None
    figures = dict.fromkeys(("views", "error", "motion", "commands", "distribution", "parameters"))
    merged = {**known, **content, "figures": {**figures, **content["figures"]}}
    return template.render(**merged, css=css, js=js)
