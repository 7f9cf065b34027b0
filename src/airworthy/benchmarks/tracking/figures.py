"""Figures of the tracking protocol's report as inline SVG: pilots by colour, families by mark and line.

Green diamonds are published real flights. In plans blue is a success, amber a partial one, red a failure, dashed the course.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np

from airworthy.benchmarks.tracking.conditions import Sweep
from airworthy.benchmarks.tracking.tables import condition_row, select
from airworthy.core.arrays import Array
from airworthy.evaluation.statistics import says_something
from airworthy.reports.drawing import (
    DASHES,
    band,
    mirrored,
    named_lines,
    path_line,
    plan_axes,
    points_key,
    published_mark,
    reference_path,
    sheet,
    top_key,
    whisker,
)
from airworthy.reports.figures import outcome_role
from airworthy.reports.svg import FIGURE_WIDTH, PALETTE, inline_svg
from airworthy.tasks import TrackingProtocol
from airworthy.tasks.declared_metrics import METRICS, PAIRED

__all__ = [
    "EstimatePanel",
    "PlanPanel",
    "Series",
    "figure_distributions",
    "figure_estimates",
    "figure_plans",
    "figure_published",
    "figure_sweep",
    "series_of",
]

COLORS = ("flown", "warn", "ink", "bad", "muted")
"""Of pilots, in turn; green belongs to what was published."""
PLAN_COLUMNS = 3
ESTIMATE_COLORS = ("flown", "warn", "muted", "ink", "bad", "second")
"""Of conditions in a figure of estimates, in turn."""


@dataclass(frozen=True)
class Series:
    """A pilot in a family of dynamics."""

    pilot: str
    family: str
    color: str
    rigid: bool

    @property
    def label(self) -> str:
        """For people."""
        return f"{self.pilot}, {self.family.replace('_', '-')}"

    @property
    def mark(self) -> dict[str, Any]:
        """How a point looks."""
        color = PALETTE[self.color]
        return {"color": color, "marker": "s" if self.rigid else "o", "markerfacecolor": "none" if self.rigid else color}

    @property
    def line(self) -> Any:
        """How a line looks."""
        return DASHES if self.rigid else "-"


@dataclass(frozen=True, eq=False)
class PlanPanel:
    """What one panel of plans shows."""

    title: str
    course: Array
    """(n, 3)"""
    paths: Sequence[tuple[str, Array]]
    """Outcome and positions (k, 3) of each flight."""
    things: Sequence[tuple[Array, Array]]
    """Lower and upper corners of what stands at flying height."""
    box: tuple[Array, Array]
    """What is shown, x and y."""


def series_of(rows: Sequence[Mapping[str, Any]]) -> list[Series]:
    """Return every pilot in every family, in the order of the rows."""
    pilots = list(dict.fromkeys(row["pilot"] for row in rows))
    pairs = dict.fromkeys((row["pilot"], row["family"]) for row in rows)
    order = sorted(pairs, key=lambda pair: (pilots.index(pair[0]), pair[1] == "rigid"))
    return [Series(p, f, COLORS[pilots.index(p) % len(COLORS)], f == "rigid") for p, f in order]


def figure_published(
    entries: Sequence[Mapping[str, Any]], series: Sequence[Series], protocol: TrackingProtocol | None = None
) -> str:
    """Return the tracking error and proximity of each condition, with intervals, and what was published beside it.

    Args:
        entries: Of the aggregate.
        series: Pilots and families, with their colours.
        protocol: Whose thresholds the titles name; None: the defaults.
    """
    names = list(dict.fromkeys((entry["condition"], entry["title"]) for entry in entries))
    with sheet(0.7 + 0.34 * len(names)) as figure:
        panels = figure.subplots(1, len(PAIRED), sharey=True)
        bottom = 0.42 / (0.7 + 0.34 * len(names))
        figure.subplots_adjust(left=0.15, right=0.985, top=1.0 - 1.15 * bottom, bottom=bottom, wspace=0.06)
        for axes, measure in zip(panels, PAIRED, strict=True):
            axes.set_title(_title(measure, protocol))
            for place, (name, _) in enumerate(names):
                _condition(axes, place, name, measure, entries, series)
            _lines(axes, [title for _, title in names], measure)
        _legend(figure, series, published=any(entry["published"] for entry in entries))
        return inline_svg(figure, "beside", "Tracking error and share of samples near the path by condition, with intervals")


def _title(name: str, protocol: TrackingProtocol | None) -> str:
    return METRICS[name].caption(METRICS[name].unit == "%", protocol)


def _lines(axes: Any, names: Sequence[str], measure: str) -> None:
    """Name the lines of a panel, and set the limits that suit a metric."""
    axes.margins(x=0.04)  # or the farthest flight would be cut by the frame
    named_lines(axes, names, 0.55)
    axes.set_xlim(**({"right": 101.5} if METRICS[measure].unit == "%" else {"left": 0.0}))


def _condition(
    axes: Any, place: int, name: str, measure: str, entries: Sequence[Mapping[str, Any]], series: Sequence[Series]
) -> None:
    mine = [entry for entry in entries if entry["condition"] == name]
    step = 0.6 / max(len(series), 1)
    for k, one in enumerate(series):
        found = next((e for e in mine if (e["pilot"], e["family"]) == (one.pilot, one.family)), None)
        if found is None:
            continue
        y, estimate = place + (k - 0.5 * (len(series) - 1)) * step, found[measure]
        look = {"color": PALETTE[one.color], "linewidth": 1.1, "linestyle": one.line}
        whisker(axes, y, estimate["low"], estimate["high"], level=True, **look)
        axes.plot([estimate["mean"]], [y], linestyle="none", markersize=4.2, markeredgewidth=1.0, **one.mark)
    real_flights = next((entry["published"] for entry in mine if entry["published"]), None)
    if real_flights and np.isfinite(real_flights[measure]):
        published_mark(axes, real_flights[measure], place)


def figure_plans(plans: Sequence[PlanPanel], name: str, description: str) -> str:
    """Return flights from above, a panel per condition; courses that are longer along y are turned.

    Args:
        plans: A panel each.
        name: Of the figure, unique on its page.
        description: For those who do not see it.
    """
    across = min(PLAN_COLUMNS, len(plans))
    rows = [plans[k : k + across] for k in range(0, len(plans), across)]
    each = FIGURE_WIDTH / across * 0.93
    heights = [max(_aspect(plan) for plan in row) * each + 0.54 for row in rows]
    tall = sum(heights)
    with sheet(tall) as figure:
        top = tall
        for row, height in zip(rows, heights, strict=True):
            top -= height
            for k, plan in enumerate(row):
                wide, high = each, _aspect(plan) * each
                left = k * FIGURE_WIDTH / across + 0.26
                # Panels hang from the top of their row, so that titles stand in one line.
                place = (left / FIGURE_WIDTH, (top + height - 0.24 - high) / tall, wide / FIGURE_WIDTH * 0.97, high / tall)
                _plan(figure.add_axes(place), plan)
        return inline_svg(figure, name, description)


def _axes_of(plan: PlanPanel) -> tuple[int, int]:
    """World axes to the right and up."""
    return plan_axes(plan.box[1] - plan.box[0])


def _aspect(plan: PlanPanel) -> float:
    """Height over width."""
    span = plan.box[1] - plan.box[0]
    right, up = _axes_of(plan)
    return float(span[up] / span[right])


def _plan(axes: Any, plan: PlanPanel) -> None:
    from matplotlib.patches import Rectangle

    right, up = _axes_of(plan)
    for low, high in plan.things:
        corner, size = (low[right], low[up]), (high - low)[[right, up]]
        axes.add_patch(Rectangle(corner, size[0], size[1], facecolor=PALETTE["grid"]))
    faint = float(np.clip(6.0 / max(len(plan.paths), 1), 0.35, 1.0))
    for outcome, path in sorted(plan.paths, key=lambda item: outcome_role(item[0]) != "flown"):
        role = outcome_role(outcome)
        good = role == "flown"
        path_line(axes, path, right, up, PALETTE[role], linewidth=0.9, alpha=faint if good else 0.9)
        if not good:
            axes.plot(path[-1, right], path[-1, up], "x", color=PALETTE[role], markersize=4.0, markeredgewidth=1.2)
    reference_path(axes, plan.course, right, up, linewidth=0.9, size=3.6)
    axes.set_xlim(plan.box[0][right], plan.box[1][right])
    axes.set_ylim(plan.box[0][up], plan.box[1][up])
    mirrored(axes, right, up)
    axes.set_title(plan.title)


def figure_distributions(
    rows: Sequence[Mapping[str, Any]],
    titles: Mapping[str, str],
    series: Sequence[Series],
    protocol: TrackingProtocol | None = None,
) -> str:
    """Return every flight's tracking error and proximity, a line per condition.

    Args:
        rows: Flights, with "tracking_error_m" and "proximity_percent".
        titles: What conditions are called, by name, from top to bottom.
        series: Pilots and families, with their colours.
        protocol: Whose thresholds the titles name; None: the defaults.
    """
    names = [name for name in titles if any(row["condition"] == name for row in rows)]
    tall = 0.7 + 0.36 * len(names)
    with sheet(tall) as figure:
        panels = figure.subplots(1, len(PAIRED), sharey=True)
        figure.subplots_adjust(left=0.15, right=0.985, top=1.0 - 0.48 / tall, bottom=0.3 / tall, wspace=0.06)
        # Series of one condition lie apart by this share of a line, and conditions by the rest.
        step = 0.62 / max(len(series), 1)
        for axes, measure in zip(panels, PAIRED, strict=True):
            axes.set_title(_title(measure, protocol))
            for place, name in enumerate(names):
                for k, one in enumerate(series):
                    y = place + (k - 0.5 * (len(series) - 1)) * step
                    _strip(axes, y, step, select(rows, condition=name, pilot=one.pilot, family=one.family), measure, one)
            _lines(axes, [titles[name] for name in names], measure)
        _legend(figure, series)
        return inline_svg(figure, "distributions", "Tracking error and share of samples near the path, flight by flight")


def _strip(axes: Any, y: float, step: float, rows: Sequence[Mapping[str, Any]], measure: str, one: Series) -> None:
    # Those that the means leave out have no figures: at its start every flight is near its path.
    rows = [row for row in rows if says_something(row["outcome"], row["samples"])]
    values = np.array([row[measure] for row in rows], float)
    good = np.array([outcome_role(row["outcome"]) == "flown" for row in rows], bool)
    # Spread in a fixed pattern, so that equal values do not hide each other and two runs look the same.
    place = y + 0.5 * step * ((np.arange(len(values)) * 0.618034) % 1.0 - 0.5)
    if good.any():
        axes.plot(values[good], place[good], linestyle="none", markersize=2.6, alpha=0.75, markeredgewidth=0.6, **one.mark)
    if (~good).any():
        axes.plot(values[~good], place[~good], "x", color=PALETTE["bad"], markersize=4.0, markeredgewidth=1.0)


def figure_sweep(
    sweep: Sweep, rows: Sequence[Mapping[str, Any]], series: Sequence[Series], protocol: TrackingProtocol | None = None
) -> str:
    """Return success rate and tracking error over a sweep, with intervals.

    Args:
        sweep: Its conditions and their values.
        rows: Flights.
        series: Pilots and families, with their colours.
        protocol: Whose thresholds the titles name; None: the defaults.
    """
    categorical = isinstance(sweep.values[0], str)
    with sheet(2.35) as figure:
        panels = figure.subplots(1, 1 + len(PAIRED))
        figure.subplots_adjust(left=0.045, right=0.985, top=0.78, bottom=0.19, wspace=0.18)
        for axes, title in zip(panels, ("Success rate [%]", *(_title(name, protocol) for name in PAIRED)), strict=True):
            axes.set_title(title)
            axes.set_xlabel(f"{sweep.title.lower()} [{sweep.unit}]")
        for k, one in enumerate(series):
            _sweep_lines(panels, sweep, rows, one, (k - 0.5 * (len(series) - 1)) * 0.012, categorical)
        for axes, unit in zip(panels, ("%", *(METRICS[name].unit for name in PAIRED)), strict=True):
            axes.set_ylim(*((-4.0, 104.0) if unit == "%" else (0.0, None)))
        if categorical:
            for axes in panels:
                axes.set_xticks(range(len(sweep.values)), sweep.values)
                axes.set_xlim(-0.3, len(sweep.values) - 0.7)
        _legend(figure, series)
        return inline_svg(figure, f"sweep-{sweep.name}", f"Success, tracking error and proximity over {sweep.title.lower()}")


def _sweep_lines(
    panels: Any, sweep: Sweep, rows: Sequence[Mapping[str, Any]], one: Series, shift: float, categorical: bool
) -> None:
    found = []
    for place, (value, name) in enumerate(zip(sweep.values, sweep.conditions, strict=True)):
        mine = select(rows, condition=name, pilot=one.pilot, family=one.family)
        if mine:
            found.append((float(place) if categorical else float(value), condition_row(mine)))
    if not found:
        return
    x = np.array([value for value, _ in found])
    x = x + shift * (np.ptp(x) or 1.0)
    rate = np.array([[100.0 * row["success_rate"][key] for key in ("value", "low", "high")] for _, row in found])
    others = [np.array([[row[measure][key] for key in ("mean", "low", "high")] for _, row in found]) for measure in PAIRED]
    for axes, values in zip(panels, (rate, *others), strict=True):
        axes.vlines(x, values[:, 1], values[:, 2], color=PALETTE[one.color], linewidth=1.0, alpha=0.7)
        axes.plot(x, values[:, 0], linestyle=one.line, linewidth=1.1, markersize=3.6, markeredgewidth=0.9, **one.mark)
        axes.margins(x=0.04)


@dataclass(frozen=True, eq=False)
class EstimatePanel:
    """What pilots of one kind told of their drones, over time."""

    title: str
    lines: Sequence[tuple[str, Array, Array, float]]
    """Condition, times (n,), estimates of force over mass (flights, n) [N/kg], the mean of the true ones."""


def figure_estimates(panels: Sequence[EstimatePanel]) -> str:
    """Return estimates over time: mean and standard deviation over flights, dashed what is true."""
    with sheet(2.5 * (-(-len(panels) // 2))) as figure:
        grid = np.atleast_1d(figure.subplots(-(-len(panels) // 2), min(2, len(panels)), squeeze=False)).ravel()
        figure.subplots_adjust(left=0.05, right=0.985, top=0.88, bottom=0.17, wspace=0.12, hspace=0.5)
        for axes, panel in zip(grid, panels, strict=False):
            axes.set_title(f"{panel.title}: force of a rotor over mass [N/kg]")
            axes.set_xlabel("time [s]")
            for (name, time, values, true), color in zip(panel.lines, cycle(ESTIMATE_COLORS), strict=False):
                mean, spread = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
                band(axes, time, (mean - spread, mean + spread), mean, PALETTE[color], linewidth=1.1, label=name)
                axes.axhline(true, color=PALETTE[color], linewidth=0.8, linestyle=DASHES)
            most = max(true for *_, true in panel.lines)
            axes.set_ylim(0.0, 1.8 * most)  # an estimate that is far off leaves the picture; the table has its numbers
            axes.legend(loc="upper right", ncols=4)
        for axes in grid[len(panels) :]:
            axes.set_visible(False)
        return inline_svg(figure, "told", "Estimated ratio of force to mass over time, by condition")


def _legend(figure: Any, series: Sequence[Series], published: bool = False) -> None:
    entries = [({"linestyle": one.line, "linewidth": 1.1, "markersize": 4.0, **one.mark}, one.label) for one in series]
    if published:
        entries.append((points_key("D", PALETTE["second"], hollow=True), "published, real flights"))
    top_key(figure, entries)
