"""One HTML file that says what a batch of flights did: complete in itself, readable offline, in light, dark and print."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from math import cos, floor, log10, pi, radians, sin
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.files import make_folder, write_text
from airworthy.evaluation.statistics import read_summary
from airworthy.reports import flight_text
from airworthy.reports.batch import FlightBatch, choose_drawn, reference_of_table, typical_flight
from airworthy.reports.figures import (
    REFERENCES_DRAWN,
    figure_commands,
    figure_distribution,
    figure_error,
    figure_motion,
    figure_parameters,
    figure_views,
    outcome_role,
)
from airworthy.reports.film.flight_track import film_content
from airworthy.reports.page import page_of
from airworthy.simulation.flights import META_FILE, FlightTable, read_flight, read_flight_meta
from airworthy.tasks import TrackingProtocol, TrackingReference

__all__ = ["REPORT_FILE", "write_report"]

# -----------------------------------------------------------------------------------------------------------------------------
# The 3-D view of a report: an SVG that is complete without a script, and the data with which a script turns it.
#
# Orthographic, so that lengths compare anywhere in the picture. The projection is written here and, line for line, in
# `report.js`.

WIDTH = 1060
"""Width of the view box."""
TALL = (300, 560)
"""Least and greatest height of the view box."""
MARGIN = 34
ELEVATION = radians(24.0)


@dataclass
class ScenePlot:
    """Lines, dots and words in space, in drawing order."""

    azimuth: float
    """Direction in which the camera stands at first [rad]."""
    items: list[tuple[str, str, Array, str]] = field(default_factory=list)
    """Kind (`line`, `dot`, `text`), style class, points [m] (n, 3), words."""

    def line(self, style: str, points: ArrayLike) -> None:
        """Add a polyline; fewer than two points are left out."""
        points = np.asarray(points, dtype=np.float64).reshape(-1, 3)
        if len(points) > 1:
            self.items.append(("line", style, points, ""))

    def dot(self, style: str, point: ArrayLike) -> None:
        """Add a round mark."""
        self.items.append(("dot", style, np.asarray(point, dtype=np.float64).reshape(1, 3), ""))

    def text(self, style: str, point: ArrayLike, text: str) -> None:
        """Add words centred on a point.

        Args:
            style: Class of the page's style sheet.
            point: In the middle of the words [m], (3,).
            text: What is written.
        """
        self.items.append(("text", style, np.asarray(point, dtype=np.float64).reshape(1, 3), text))


def path_scene(
    paths: Sequence[tuple[str, Array]], references: Sequence[Array], gates: Sequence[Array], typical: Array | None
) -> ScenePlot:
    """Return flown paths (role, points), reference paths, gates as corner loops, one typical flight, a floor with a metre grid.

    Args:
        paths: Role of the outcome and points [m], world frame, (k, 3), of each flight.
        references: Points of reference paths [m], each (k, 3).
        gates: Corner loops [m], each (k, 3).
        typical: Points of a flight that stands out [m], (k, 3); None: none does.
    """
    everything = [points for _, points in paths] + [*references, *gates]
    points = np.concatenate([p.reshape(-1, 3) for p in everything if p.size] or [np.zeros((1, 3))])
    low, high = points.min(axis=0), points.max(axis=0)
    scene = ScenePlot(_camera_azimuth(points))
    level = _floor(scene, low, high)
    for reference in references:
        scene.line("shadow", np.column_stack((reference[:, :2], np.full(len(reference), level))))
    for reference in references[:1]:
        for point in _evenly(reference, 16):
            scene.line("drop", [point, (point[0], point[1], level)])
    for role, path in paths:
        scene.line(f"path {role}" if len(paths) > 1 else f"path {role} only", path)
    if typical is not None:
        scene.line("typical", typical)
    for reference in references:
        scene.line("reference", reference)
    for gate in gates:
        scene.line("gate", np.vstack((gate, gate[:1])))
    for reference in references[:1]:
        lift = 0.035 * float(np.max(high - low)) + 0.02
        closed = float(np.linalg.norm(reference[0] - reference[-1])) < lift
        scene.dot("mark", reference[0])
        scene.text("name", reference[0] + (0, 0, lift), "start, end" if closed else "start")
        if not closed:
            scene.dot("mark", reference[-1])
            scene.text("name", reference[-1] + (0, 0, lift), "end")
    return scene


def scene_svg(scene: ScenePlot, description: str) -> tuple[str, dict[str, Any]]:
    """Return the picture, and the data with which the page's script turns it."""
    points = np.concatenate([item[2] for item in scene.items] or [np.zeros((1, 3))])
    centre = 0.5 * (points.min(axis=0) + points.max(axis=0))
    flat = _turn(points - centre, scene.azimuth, ELEVATION)
    wide, high = np.maximum(np.ptp(flat, axis=0), 1e-3)
    tall = int(np.clip(2 * MARGIN + (WIDTH - 2 * MARGIN) * high / wide, *TALL))
    placed = np.split(_fit(flat, tall), np.cumsum([len(item[2]) for item in scene.items])[:-1])
    body = [_element(kind, style, p, words) for (kind, style, _, words), p in zip(scene.items, placed, strict=True)]
    svg = (
        f'<svg id="scene" viewBox="0 0 {WIDTH} {tall}" role="img" tabindex="0"><title>{escape(description)}</title>'
        f"<g>{''.join(body)}</g></svg>"
    )
    data = {
        "view": [WIDTH, tall, MARGIN],
        "azimuth": round(scene.azimuth, 4),
        "elevation": round(ELEVATION, 4),
        "points": [np.round(1000.0 * (p - centre)).astype(int).ravel().tolist() for _, _, p, _ in scene.items],
    }
    return svg, data


def _turn(points: Array, azimuth: float, elevation: float) -> Array:
    """Right and up [m] as a camera at an azimuth and elevation sees points (n, 3), shape (n, 2)."""
    right = points[:, 1] * cos(azimuth) - points[:, 0] * sin(azimuth)
    depth = points[:, 0] * cos(azimuth) + points[:, 1] * sin(azimuth)
    return np.column_stack((right, points[:, 2] * cos(elevation) - depth * sin(elevation)))


def _fit(flat: Array, tall: int) -> Array:
    """Right and up [m] to the view box, as large as fits, shape (n, 2)."""
    low, high = flat.min(axis=0), flat.max(axis=0)
    room = np.array([WIDTH, tall]) - 2 * MARGIN
    scale = float(np.min(room / np.maximum(high - low, 1e-3)))
    middle = 0.5 * (low + high)
    return np.array([WIDTH, tall]) / 2 + scale * (flat - middle) * (1.0, -1.0)


def _element(kind: str, style: str, points: Array, text: str) -> str:
    if kind == "line":
        return f'<polyline class="{style}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>'
    x, y = points[0]
    if kind == "dot":
        return f'<circle class="{style}" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>'
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'


def _floor(scene: ScenePlot, low: Array, high: Array) -> float:
    """Grid under everything, at the ground where that is near; returns its height."""
    extent = float(np.max(high - low))
    step = _nice(max(extent, 0.5) / 9.0)
    # A little below the ground is still at the ground: contact gives way.
    level = 0.0 if -0.1 <= low[2] <= max(extent, 2.0) else step * floor(low[2] / step)
    first = step * np.floor((low[:2] - 0.25 * step) / step)
    last = step * np.ceil((high[:2] + 0.25 * step) / step)
    xs, ys = (np.arange(a, b + 0.5 * step, step) for a, b in zip(first, last, strict=True))
    for x in xs:
        scene.line("floor", [(x, ys[0], level), (x, ys[-1], level)])
    for y in ys:
        scene.line("floor", [(xs[0], y, level), (xs[-1], y, level)])
    _floor_labels(scene, xs, ys, level, step)
    _pole(scene, xs, ys, level, float(high[2]), step)
    return level


def _floor_labels(scene: ScenePlot, xs: Array, ys: Array, level: float, step: float) -> None:
    """Numbers along the two edges that face the camera."""
    outward_x, outward_y = np.sign(cos(scene.azimuth)) * step, np.sign(sin(scene.azimuth)) * step
    edge_x, edge_y = xs[-1] if outward_x > 0 else xs[0], ys[-1] if outward_y > 0 else ys[0]
    for x in xs[:: 1 if xs.size <= 10 else 2]:
        scene.text("tick", (x, edge_y + 0.4 * outward_y, level), f"{x + 0.0:g}")
    for y in ys[:: 1 if ys.size <= 10 else 2]:
        if y != edge_y:
            scene.text("tick", (edge_x + 0.4 * outward_x, y, level), f"{y + 0.0:g}")
    scene.text("axis", (0.5 * (xs[0] + xs[-1]), edge_y + 0.95 * outward_y, level), "x [m]")
    scene.text("axis", (edge_x + 0.95 * outward_x, 0.5 * (ys[0] + ys[-1]), level), "y [m]")


def _pole(scene: ScenePlot, xs: Array, ys: Array, level: float, top: float, step: float) -> None:
    """Height scale on the corner of the floor farthest to the left."""
    corners = np.array([(x, y, level) for x in (xs[0], xs[-1]) for y in (ys[0], ys[-1])])
    corner = corners[np.argmin(_turn(corners, scene.azimuth, ELEVATION)[:, 0])]
    left = 0.3 * step * np.array([sin(scene.azimuth), -cos(scene.azimuth), 0.0])
    rise = max(top - level, 1e-6)
    step = min(step, _nice(rise / 3.0))
    count = max(1, int(np.ceil(rise / step - 1e-9)))
    up = np.array([0.0, 0.0, step])
    scene.line("pole", [corner, corner + count * up])
    for k in range(1, count + 1):
        scene.text("tick", corner + left + k * up, f"{level + k * step:g}")
    scene.text("axis", corner + (count + 0.55) * up, "z [m]")


def _nice(value: float) -> float:
    """Return the nearest 1, 2 or 5 times a power of ten not under a value."""
    power = 10.0 ** floor(log10(value))
    return float(next(power * m for m in (1.0, 2.0, 5.0, 10.0) if power * m >= value * (1 - 1e-9)))


def _camera_azimuth(points: Array) -> float:
    """Return where the camera stands [rad]: mostly beside the direction in which points spread most, a little before it."""
    away = points[:, :2] - points[:, :2].mean(axis=0)
    covariance = away.T @ away
    along = 0.5 * float(np.arctan2(2.0 * covariance[0, 1], covariance[0, 0] - covariance[1, 1]))
    # Of its two senses the one between -45 and 135 degrees: x then runs to the right, or y away.
    return (along + pi / 4) % pi - pi / 4 - radians(62.0)


def _evenly(path: Array, count: int) -> Array:
    """Points at equal distances along a path, shape (count, 3)."""
    along = np.concatenate(([0.0], np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1))))
    at = np.linspace(0.0, along[-1], count)
    return np.column_stack([np.interp(at, along, path[:, k]) for k in range(3)])


# -----------------------------------------------------------------------------------------------------------------------------

REPORT_FILE = "report.html"
PATHS_DRAWN = 40
"""Most flown paths drawn; statistics are always over all flights."""
PATH_POINTS = 180


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
        place: Pictures of the scene and of what sensors saw, from `fly_pictures.place_pictures`. The film that the summary
            names, if it lies in the folder, is shown besides.

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
    content = flight_text.content(summary, meta, title, notes)
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
    """Return every figure that the flights give something to draw for."""
    from markupsafe import Markup

    flights, figures = list(summary["flights"]), dict[str, Any]()
    protocol = flight_text.protocol_of(summary)
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
        content |= flight_text.path_notes(batch, drawn, outcomes)
    figures |= _distributions(flights, protocol)
    content["figures"] = {name: Markup(svg) for name, svg in figures.items()}  # noqa: S704 - made by inline_svg, which escapes
    return content


def _distributions(flights: list[Mapping[str, Any]], protocol: TrackingProtocol) -> dict[str, str]:
    scored = sum(flight.get("tracking_error_m") is not None and np.isfinite(flight["tracking_error_m"]) for flight in flights)
    if scored < 3:
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
    known = {"drawn_note": "", "ended_note": "", "scene_data": None, "faint": 1.0, "place": None, "place_note": "", "seen": ()}
    known["film"] = None
    figures = dict.fromkeys(("views", "error", "motion", "commands", "distribution", "parameters"))
    merged = {**known, **content, "figures": {**figures, **content["figures"]}}
    return page_of("airworthy.reports", trim=False, **merged)
