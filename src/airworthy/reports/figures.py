"""The figures of a report: each a function from a batch of flights to inline SVG. Matplotlib is imported where it is used.

Colour has one meaning throughout: blue is what was flown (bands hold 90 % and 50 % of the flights, the line is their median),
a dark dashed line is what was asked for, green is one typical flight, amber a limit, red a failure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayLike
from airworthy.evaluation.statistics import rank_correlation
from airworthy.reports.batch import FlightBatch, bands
from airworthy.reports.drawing import DASHES, DOTS, mirrored, path_line, reference_path, sheet
from airworthy.reports.page import labelled
from airworthy.reports.svg import PALETTE, inline_svg
from airworthy.tasks import SUCCESSES, TrackingProtocol
from airworthy.tasks.declared_metrics import METRICS

__all__ = ["figure_commands", "figure_distribution", "figure_error", "figure_motion", "figure_parameters", "figure_views"]

OUTCOME_ROLES = {"flown": "success", "warn": "partial", "bad": "failure"}
REFERENCES_DRAWN = 8
_ERROR = METRICS["tracking_error_m"].heading()
PANELS_MAX = 9
# Ours: a distance below it is rounding, not flight.
_LEAST_TOP = 1e-6
"""Least top of an axis of distances [m]."""
_NEAR_LIMIT = 0.2
"""Share of the distance that counts as near the path, above which errors are shown beside it."""


def outcome_role(outcome: object) -> str:
    """Return the colour role of an outcome."""
    if outcome in SUCCESSES:
        return "flown"
    return "warn" if outcome == "partial" else "bad"


def figure_views(batch: FlightBatch, outcomes: Sequence[object], drawn: Sequence[int], gates: Sequence[Array]) -> str:
    """Return paths from above and from the side, at the same scale in both directions.

    Args:
        batch: The flights.
        outcomes: Of every flight; it chooses the colour.
        drawn: Numbers of the flights that are drawn.
        gates: Corner loops [m], world frame, each (k, 3).
    """
    with sheet(3.5) as figure:
        views = figure.subplots(1, 2)
        figure.subplots_adjust(left=0.055, right=0.985, top=0.9, bottom=0.14, wspace=0.14)
        along = int(np.ptp(batch.box_of_references[:, 1]) > np.ptp(batch.box_of_references[:, 0]))
        for axes, title, (x, y) in zip(views, ("From above", "From the side"), ((along, 1 - along), (along, 2)), strict=True):
            # Failed flights are drawn last, on top: they are what one looks for.
            for index in sorted(drawn, key=lambda i: outcome_role(outcomes[i]) != "flown"):
                path, role = batch.path(index, 180), outcome_role(outcomes[index])
                path_line(axes, path, x, y, PALETTE[role], **_thin(len(drawn) if role == "flown" else 1))
            for asked in batch.references[:REFERENCES_DRAWN]:
                reference_path(axes, asked.path, x, y)
            for gate in gates:
                path_line(axes, np.vstack((gate, gate[:1])), x, y, PALETTE["second"], linewidth=1.8)
            axes.set_aspect("equal", adjustable="datalim")
            axes.margins(0.06)
            mirrored(axes, x, y)
            axes.set_title(title)
            axes.set_xlabel(f"{'xyz'[x]} [m]")
            axes.set_ylabel(f"{'xyz'[y]} [m]")
        return inline_svg(figure, "views", "Flown paths and reference, from above and from the side")


def figure_error(batch: FlightBatch, typical: int, protocol: TrackingProtocol) -> str:
    """Return the distance to the path, and to where the reference was at the same time, over time.

    Args:
        batch: The flights.
        typical: Number of the flight that is drawn by itself.
        protocol: Has the distance within which a flight counts as near [m].
    """
    with sheet(3.0) as figure:
        panels = figure.subplots(1, 2, sharey=True)
        figure.subplots_adjust(left=0.045, right=0.985, top=0.82, bottom=0.155, wspace=0.07)
        titles = ("Distance to the path [m]", METRICS["time_matched_error_m"].caption())
        matrices = [batch.over_time(batch.signals[name]) for name in ("distance", "matched")]
        # One scale for both panels, or the two distances could not be compared by eye.
        top = max(_axis_top(bands(matrix, [0.95])[0], matrix, _LEAST_TOP) for matrix in matrices)
        # The limit is shown where it is near enough to judge by; millimetres under it would be a flat line.
        if top > _NEAR_LIMIT * protocol.proximity_m:
            top = max(top, 1.35 * protocol.proximity_m)
        for axes, matrix, title in zip(panels, matrices, titles, strict=True):
            _spread(axes, batch, matrix, typical, worst=True)
            axes.set_title(title)
            axes.set_xlabel("time [s]")
            axes.set_ylim(0.0, top)
            if protocol.proximity_m < top:
                axes.axhline(protocol.proximity_m, color=PALETTE["warn"], linewidth=0.9, linestyle=DOTS)
            _note_beyond(axes, matrix, top)
        _note_limit(panels[0], protocol.proximity_m, f"{protocol.proximity_m:g} m")
        _legend(panels[1], batch, worst=True)
        return inline_svg(figure, "error", "Position error over time")


def figure_motion(batch: FlightBatch, typical: int) -> str:
    """Return velocity, speed, tilt and heading over time, flown and asked for."""
    velocity = batch.vector("velocity")
    signals = batch.signals
    flown = [
        *((f"Velocity {axis} [m/s]", velocity[:, k]) for k, axis in enumerate("xyz")),
        ("Speed [m/s]", signals["speed"]),
        ("Tilt [deg]", np.degrees(signals["tilt"])),
        ("Heading [deg]", np.degrees(signals["yaw"])),
    ]
    with sheet(4.7) as figure:
        panels = figure.subplots(2, 3, sharex=True).ravel()
        figure.subplots_adjust(left=0.045, right=0.985, top=0.885, bottom=0.095, wspace=0.14, hspace=0.28)
        for axes, (title, values) in zip(panels, flown, strict=True):
            _spread(axes, batch, batch.over_time(values), typical)
            axes.set_title(title)
        for axes, lines in zip(panels, _asked_for(batch), strict=True):
            for line in lines:
                axes.plot(batch.t, line, color=PALETTE["ink"], linewidth=1.0, linestyle=DASHES)
        for axes in panels[3:]:
            axes.set_xlabel("time [s]")
        _legend(panels[0], batch, reference=True)
        return inline_svg(figure, "motion", "Velocity, speed, tilt and heading over time, flown and asked for")


def figure_commands(batch: FlightBatch, typical: int, limits: tuple[ArrayLike, ArrayLike] | None) -> str:
    """Return rotor speed commands with limits and the typical flight's rotor speeds; share of saturated samples.

    Args:
        batch: The flights.
        typical: Number of the flight whose rotor speeds are drawn.
        limits: Least and largest rotor speeds [rad/s]; None: not known.
    """
    commands = batch.table.rotors("rotor_command")[batch.flown.rows].astype(np.float64)
    speeds = batch.table.rotors("rotor_speed")[batch.flown.rows].astype(np.float64)
    count = min(commands.shape[1], 16)
    # Four rotors fit side by side; more get rows of four.
    columns = 4 if count > 3 else max(count, 1)
    rows = -(-count // columns)
    height = 1.75 * rows + 2.0
    with sheet(height) as figure:
        grid = figure.add_gridspec(rows + 1, columns, height_ratios=[*[1.0] * rows, 0.62])
        figure.subplots_adjust(left=0.045, right=0.985, top=1 - 0.54 / height, bottom=0.44 / height, wspace=0.18, hspace=0.42)
        panels = [figure.add_subplot(grid[i // columns, i % columns]) for i in range(count)]
        for rotor, axes in enumerate(panels):
            _spread(axes, batch, batch.over_time(commands[:, rotor]), -1)
            if speeds.shape[1] > rotor:
                line = batch.over_time(speeds[:, rotor])[typical]
                axes.plot(batch.t, line, color=PALETTE["second"], linewidth=0.9)
            _draw_limits(axes, limits, rotor)
            axes.set_title(f"Rotor {rotor} [rad/s]")
            axes.locator_params(axis="x", nbins=5, integer=True)
        _saturation_panel(figure.add_subplot(grid[rows, :]), batch)
        if panels:
            _legend_commands(panels[0], batch)
        return inline_svg(figure, "commands", "Rotor speed commands, rotor speeds and saturation over time")


def figure_distribution(flights: Sequence[Mapping[str, Any]], protocol: TrackingProtocol) -> str:
    """Return the tracking error over the batch: histogram by outcome, and cumulative share beside proximity."""
    error = _values(flights, "tracking_error_m")
    proximity = _values(flights, "proximity_percent")
    roles = np.array([outcome_role(flight["outcome"]) for flight in flights])
    known = np.isfinite(error)
    cap = _cap(error[known])
    edges = _bins(np.minimum(error[known], cap))
    with sheet(2.6) as figure:
        panels = figure.subplots(1, 3)
        figure.subplots_adjust(left=0.045, right=0.985, top=0.88, bottom=0.18, wspace=0.17)
        present = [role for role in ("flown", "warn", "bad") if np.any(roles[known] == role)]
        stack = [np.minimum(error[known & (roles == role)], cap) for role in present]
        colours, names = [PALETTE[role] for role in present], [OUTCOME_ROLES[role] for role in present]
        panels[0].hist(stack, bins=edges, stacked=True, color=colours, label=names, rwidth=0.92)
        beyond = f"; last bar: {cap:.2g} m and more" if np.any(error[known] > cap) else ""
        panels[0].set_title("Number of flights by tracking error")
        panels[0].set_xlabel(f"{_ERROR}{beyond}")
        panels[0].yaxis.get_major_locator().set_params(integer=True)
        if present != ["flown"]:
            panels[0].legend(loc="upper right")
        _ecdf(panels[1], error[known], "Flights with at most this tracking error [%]", _ERROR)
        near = cap > _NEAR_LIMIT * protocol.proximity_m
        if near:
            panels[1].axvline(protocol.proximity_m, color=PALETTE["warn"], linewidth=0.9, linestyle=DOTS)
        panels[1].set_xlim(left=0.0, right=max(1.15 * protocol.proximity_m, 1.1 * cap) if near else 1.3 * cap)
        for axes in panels[:2]:
            axes.locator_params(axis="x", nbins=6)
        _ecdf(
            panels[2],
            proximity[np.isfinite(proximity)],
            "Flights with at most this share near the path [%]",
            METRICS["proximity_percent"].heading(protocol=protocol),
        )
        panels[2].set_xlim(min(90.0, float(np.nanmin(proximity))) - 1.0, 101.0)
        return inline_svg(figure, "distribution", "Distribution of tracking error and proximity over the flights")


def figure_parameters(flights: Sequence[Mapping[str, Any]], parameters: Mapping[str, Array]) -> str:
    """Return the tracking error against each randomised parameter, the strongest rank correlations first."""
    error = _values(flights, "tracking_error_m")
    colours = np.array([PALETTE[outcome_role(flight["outcome"])] for flight in flights])
    ranked = sorted(parameters, key=lambda name: -abs(np.nan_to_num(rank_correlation(parameters[name], error))))[:PANELS_MAX]
    columns = min(3, len(ranked))
    rows = -(-len(ranked) // columns)
    cap = _cap(error[np.isfinite(error)])
    height = 2.2 * rows + 0.25
    with sheet(height) as figure:
        panels = np.atleast_1d(figure.subplots(rows, columns, sharey=True, squeeze=False).ravel())
        figure.subplots_adjust(left=0.055, right=0.985, top=1 - 0.3 / height, bottom=0.3 / height, wspace=0.1, hspace=0.5)
        for axes, name in zip(panels, ranked, strict=False):
            known = np.isfinite(error) & np.isfinite(parameters[name])
            size = 9.0 if len(flights) <= 200 else 4.0
            for part, marker in ((known & (error <= cap), "o"), (known & (error > cap), "^")):
                values, heights = parameters[name][part], np.minimum(error[part], 1.04 * cap)
                axes.scatter(values, heights, s=size, c=colours[part], alpha=0.7, linewidths=0, marker=marker)
            axes.set_title(_parameter_title(name, rank_correlation(parameters[name], error)))
            axes.margins(x=0.04)
            axes.set_ylim(0.0, 1.1 * cap)
        for axes in panels[len(ranked) :]:
            axes.set_visible(False)
        for axes in panels[::columns]:
            axes.set_ylabel(_ERROR)
        return inline_svg(figure, "parameters", "Tracking error against each randomised parameter")


def _thin(count: int) -> dict[str, float]:
    """Line style of one of many paths: fainter the more there are."""
    return {"linewidth": 0.9 if count != 1 else 1.1, "alpha": float(np.clip(6.0 / max(count, 1), 0.28, 1.0))}


def _spread(axes: Any, batch: FlightBatch, matrix: Array, typical: int, *, worst: bool = False) -> None:
    """Bands and median of many flights, or the line of one."""
    axes.set_xlim(*_span(batch))
    if matrix.shape[0] == 1:
        axes.plot(batch.t, matrix[0], color=PALETTE["flown"])
        return
    q05, q25, q50, q75, q95 = bands(matrix)
    axes.fill_between(batch.t, q05, q95, color=PALETTE["flown"], alpha=0.16)
    axes.fill_between(batch.t, q25, q75, color=PALETTE["flown"], alpha=0.28)
    axes.plot(batch.t, q50, color=PALETTE["flown"])
    if worst:
        axes.plot(batch.t, bands(matrix, [1.0])[0], color=PALETTE["bad"], linewidth=0.8, alpha=0.8)
    if typical >= 0:
        axes.plot(batch.t, matrix[typical], color=PALETTE["second"], linewidth=0.9)


def _span(batch: FlightBatch) -> tuple[float, float]:
    if batch.t.size == 0:
        return 0.0, 1.0
    first, last = float(batch.t[0]), float(batch.t[-1])
    return (first, last) if last > first else (first - 0.5, first + 0.5)


def _asked_for(batch: FlightBatch) -> list[list[Array]]:
    """Return reference lines of the six panels of `figure_motion`; nothing is asked of tilt."""
    lines: list[list[Array]] = [[] for _ in range(6)]
    for reference in batch.references[:REFERENCES_DRAWN]:
        velocity = reference.velocity_at(batch.t)
        for axis in range(3):
            lines[axis].append(velocity[:, axis])
        lines[3].append(np.linalg.norm(velocity, axis=1))
        lines[5].append(np.degrees(reference.yaw_at(batch.t)))
    return lines


def _draw_limits(axes: Any, limits: tuple[ArrayLike, ArrayLike] | None, rotor: int) -> None:
    for side in limits or ():
        values = np.atleast_1d(np.asarray(side, dtype=np.float64))
        value = values[min(rotor, values.size - 1)]
        if np.isfinite(value):
            axes.axhline(value, color=PALETTE["warn"], linewidth=0.9, linestyle=DOTS)


def _saturation_panel(axes: Any, batch: FlightBatch) -> None:
    axes.set_title("Samples with a rotor at a limit [%]")
    axes.set_xlabel("time [s]")
    axes.set_xlim(*_span(batch))
    if "saturated" in batch.table.columns and batch.t.size:
        share = 100.0 * batch.share_over_time(batch.column("saturated") != 0)
        axes.fill_between(batch.t, 0.0, share, color=PALETTE["warn"], alpha=0.55, step="pre")
        axes.set_ylim(0.0, max(5.0, 1.1 * float(np.max(share))))
        if not np.any(share > 0.0):
            axes.text(0.5, 0.45, "none", color=PALETTE["muted"], ha="center", va="center", transform=axes.transAxes)


def _ecdf(axes: Any, values: Array, title: str, label: str) -> None:
    ordered = np.sort(values)
    share = 100.0 * np.arange(1, ordered.size + 1) / max(ordered.size, 1)
    axes.step(np.concatenate((ordered[:1], ordered)), np.concatenate(([0.0], share)), where="post", color=PALETTE["flown"])
    axes.set_title(title)
    axes.set_xlabel(label)
    axes.set_ylim(0.0, 102.0)
    axes.margins(x=0.04)


def _bins(values: Array) -> Array:
    """Edges of a histogram of distances; of equal ones a narrow span around them that does not reach below 0."""
    count = int(np.clip(2 * np.sqrt(values.size), 8, 40))
    low, high = float(values.min()), float(values.max())
    if high - low > 1e-3 * high:
        return np.histogram_bin_edges(values, bins=count)
    return np.linspace(0.5 * low, 1.5 * max(high, _LEAST_TOP), count + 1)


def _cap(values: Array) -> float:
    """Largest value shown to scale: all of them, unless a few lie far above the rest."""
    greatest, usual = float(np.max(values)), 1.5 * float(np.quantile(values, 0.95))
    return usual if greatest > 1.5 * usual > 0.0 else max(greatest, 1e-9)


def _axis_top(usual: Array, matrix: Array, least: float) -> float:
    """Top of an axis that shows most flights well: one stray flight does not flatten the others."""
    if not np.isfinite(matrix).any():
        return least
    greatest, high = float(np.nanmax(matrix)), float(np.nanmax(usual))
    return max(least, 1.08 * greatest if matrix.shape[0] == 1 or greatest < 3.0 * high else 2.0 * high)


def _note_beyond(axes: Any, matrix: Array, top: float) -> None:
    """Say how far the lines go on above the top of the axis."""
    if np.isfinite(matrix).any() and float(np.nanmax(matrix)) > top:
        note = f"\N{UPWARDS ARROW} worst {np.nanmax(matrix):.3g} m"
        axes.text(0.99, 0.985, note, color=PALETTE["bad"], fontsize=7, ha="right", va="top", transform=axes.transAxes)


def _parameter_title(name: str, correlation: float) -> str:
    note = labelled(name)
    return note if np.isnan(correlation) else f"{note},  \N{GREEK SMALL LETTER RHO} = {correlation:+.2f}"


def _note_limit(axes: Any, value: float, text: str) -> None:
    low, high = axes.get_ylim()
    if value >= high:
        note = f"\N{UPWARDS ARROW} near the path: {text}"
        axes.text(0.01, 0.985, note, color=PALETTE["warn"], fontsize=7, ha="left", va="top", transform=axes.transAxes)
    else:
        axes.text(
            0.995,
            value + 0.015 * (high - low),
            text,
            color=PALETTE["warn"],
            fontsize=7,
            ha="right",
            transform=axes.get_yaxis_transform(),
        )


def _legend(axes: Any, batch: FlightBatch, *, worst: bool = False, reference: bool = False) -> None:
    entries: list[tuple[Any, str]] = []
    if batch.table.env_count > 1:
        entries = [
            (_line("flown"), "median"),
            (_patch(0.4), "50 %"),
            (_patch(0.16), "90 % of flights"),
            (_line("second", 0.9), "a typical flight"),
        ]
        if worst:
            entries.append((_line("bad", 0.8), "worst"))
    elif reference:
        entries = [(_line("flown"), "flown")]
    if reference:
        entries.append((_line("ink", 1.0, DASHES), "asked for"))
    _show_legend(axes, entries)


def _legend_commands(axes: Any, batch: FlightBatch) -> None:
    many = batch.table.env_count > 1
    entries = [
        (_line("flown"), "command, median" if many else "command"),
        (_line("second", 0.9), "speed, typical flight" if many else "speed"),
    ]
    _show_legend(axes, entries)


def _show_legend(axes: Any, entries: list[tuple[Any, str]]) -> None:
    if entries:
        handles, labels = zip(*entries, strict=True)
        figure = axes.figure
        figure.legend(handles, labels, loc="upper right", ncols=len(entries), bbox_to_anchor=(0.985, 1.0), columnspacing=1.4)


def _line(role: str, width: float = 1.3, dashes: Any = "-") -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=PALETTE[role], linewidth=width, linestyle=dashes)


def _patch(alpha: float) -> Any:
    from matplotlib.patches import Patch

    return Patch(facecolor=PALETTE["flown"], alpha=alpha)


def _values(flights: Sequence[Mapping[str, Any]], name: str) -> Array:
    """Return one metric of all flights, NaN where it is null."""
    return np.array([np.nan if flight.get(name) is None else flight[name] for flight in flights], dtype=np.float64)
