"""Races from above, as figure 10 of the FlightGoggles paper: how fast they were flown where, and where they ended."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from airworthy.core.arrays import Array
from airworthy.race.gate_geometry import GateShape
from airworthy.race.report.crossings import FlownRace
from airworthy.reports.drawing import mirrored, path_line, plan_axes, sheet, top_key
from airworthy.reports.svg import PALETTE, inline_svg

CELL = 0.5
"""Of the grid of speeds [m]; the paper's."""
_MARGIN = 3.0
"""Around gates and paths [m]."""
_MARKS = ("X", "D", "^", "s", "P", "v")
_NAMED = 14
"""Ends that are named by their course beside the mark; more would lie on each other."""


def speed_grid(flights: Sequence[FlownRace], low: Array, shape: tuple[int, int]) -> Array:
    """Return the mean speed in each cell [m/s], (nx, ny); NaN where nobody was.

    Each row of a trace counts once, so that who is slow in a cell counts more often there: the mean is over time, as the
    paper's over its logs.

    Args:
        flights: With traces.
        low: Corner of the grid with the least x and y [m], (2,).
        shape: Cells along x and y.
    """
    total, count = np.zeros(shape), np.zeros(shape)
    for flight in flights:
        cells = np.floor((flight.trace.position[:, :2] - low) / CELL).astype(int)
        inside = np.all((cells >= 0) & (cells < shape), axis=1)
        speed = np.linalg.norm(flight.trace.velocity, axis=1)
        np.add.at(total, tuple(cells[inside].T), speed[inside])
        np.add.at(count, tuple(cells[inside].T), 1.0)
    return np.where(count > 0.0, total / np.maximum(count, 1.0), np.nan)


def _extent(flights: Sequence[FlownRace]) -> tuple[Array, Array]:
    """Return the corners of what is drawn [m], on whole cells."""
    points = [gate.corners[:, :2] for gate in flights[0].gates]
    points += [flight.trace.position[:, :2].astype(np.float64) for flight in flights if len(flight.trace.position)]
    every = np.concatenate(points)
    return np.floor((every.min(axis=0) - _MARGIN) / CELL) * CELL, np.ceil((every.max(axis=0) + _MARGIN) / CELL) * CELL


def figure_speeds(flights: Sequence[FlownRace], name: str) -> str:
    """Return the logarithm of the mean speed from above, of completed flights and of all.

    Args:
        flights: Of one pilot, at least one.
        name: Unique on the page.
    """
    from matplotlib.colors import LogNorm

    done = [flight for flight in flights if flight.completed]
    low, high = _extent(flights)
    shape = (round((high[0] - low[0]) / CELL), round((high[1] - low[1]) / CELL))
    right, up = _axes_of(flights[0].gates)
    grids = [speed_grid(some, low, shape) for some in (done, flights)]
    top = max(2.0, float(np.nanmax(grids[1])) if np.isfinite(grids[1]).any() else 2.0)
    # One scale for both, over a decade and a half: slower than this is as good as standing.
    least = max(0.5, top / 30.0)
    norm = LogNorm(least, top, clip=True)
    wide, tall = float(high[right] - low[right]), float(high[up] - low[up])
    height = min(6.0, 4.55 * tall / wide) + 0.95
    with sheet(height) as figure:
        panels = figure.subplots(1, 2, sharey=True)
        figure.subplots_adjust(left=0.045, right=0.93, top=1.0 - 0.3 / height, bottom=0.5 / height, wspace=0.05)
        drawn = None
        for axes, grid, title in zip(
            panels, grids, (f"Completed flights ({len(done)})", f"All flights ({len(flights)})"), strict=True
        ):
            image = grid.T if (right, up) == (0, 1) else grid
            extent = (low[right], high[right], low[up], high[up])
            drawn = axes.imshow(image, extent=extent, origin="lower", interpolation="nearest", norm=norm, cmap="viridis")
            _gates(axes, flights[0].gates, right, up, named=axes is panels[1])
            _frame(axes, low, high, right, up)
            axes.set_title(title)
            if not np.isfinite(grid).any():
                axes.text(0.5, 0.5, "none", transform=axes.transAxes, color=PALETTE["muted"], ha="center", va="center")
        panels[0].set_ylabel(f"{'xyz'[up]} [m]")
        bar = figure.colorbar(drawn, cax=figure.add_axes((0.945, 0.5 / height, 0.012, 1.0 - 0.8 / height)))
        bar.ax.set_title("m/s", fontsize=7.5, loc="left", fontweight="normal")
        ticks = [value for value in (0.5, 1, 2, 5, 10, 15, 20, 30) if least <= value <= top]
        bar.set_ticks(ticks, labels=[f"{value:g}" for value in ticks])
        bar.minorticks_off()
        bar.outline.set_visible(False)
        return inline_svg(figure, name, "Mean speed from above, of completed and of all flights")


def figure_ends(flights: Sequence[FlownRace], name: str) -> str:
    """Return where flights that were not completed ended, marked by the cause; empty where all were.

    Args:
        flights: Of one pilot.
        name: Unique on the page.
    """
    ended = [flight for flight in flights if not flight.completed]
    if not ended:
        return ""
    low, high = _extent(flights)
    right, up = _axes_of(flights[0].gates)
    counts = Counter(kind_of_cause(flight) for flight in ended)
    causes = [word for word, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    # Rare ones share a mark, as marks that differ are few.
    shown = causes if len(causes) <= len(_MARKS) else [*causes[: len(_MARKS) - 1], "others"]
    wide, tall = float(high[right] - low[right]), float(high[up] - low[up])
    height = min(6.4, 9.8 * tall / wide) + 0.95
    with sheet(height) as figure:
        axes = figure.add_axes((0.055, 0.45 / height, 0.93, 1.0 - 0.85 / height))
        for flight in flights:
            colour = PALETTE["grid"] if flight.completed else PALETTE["axis"]
            path_line(axes, flight.trace.position.astype(np.float64), right, up, colour, linewidth=0.7)
        _gates(axes, flights[0].gates, right, up)
        for flight in ended:
            word = kind_of_cause(flight)
            mark = _MARKS[shown.index(word) if word in shown else len(shown) - 1]
            end = flight.trace.end_position
            axes.plot(end[right], end[up], mark, color=PALETTE["bad"], markersize=6.5, markeredgewidth=0.0, zorder=6)
        if len(ended) <= _NAMED:
            _name_ends(axes, ended, right, up)
        _frame(axes, low, high, right, up)
        look = {"linestyle": "none", "color": PALETTE["bad"], "markersize": 6.0, "markeredgewidth": 0.0}
        count = {word: counts[word] for word in shown} | {"others": len(ended) - sum(counts[word] for word in shown)}
        key = zip(shown, _MARKS, strict=False)
        top_key(figure, [({**look, "marker": mark}, f"{word} ({count[word]})") for word, mark in key])
        return inline_svg(figure, name, "Where flights that were not completed ended, from above")


def _name_ends(axes: Any, ended: Sequence[FlownRace], right: int, up: int) -> None:
    """Name ends by their courses, apart where two lie near each other."""
    taken: list[Array] = []
    for flight in ended:
        end = flight.trace.end_position[[right, up]].astype(np.float64)
        near = sum(bool(np.linalg.norm(end - other) < 2.0) for other in taken)
        taken.append(end)
        axes.annotate(
            flight.course,
            end,
            xytext=(7.0, 4.0 - 9.0 * near),
            textcoords="offset points",
            fontsize=7.0,
            color=PALETTE["ink"],
            zorder=7,
        )


def cause_of(flight: FlownRace) -> str:
    """Return what ended a flight, in a few words: the part that it touched, or the end itself."""
    return str(flight.row["part"]) or str(flight.row["end"]).replace("_", " ")


def kind_of_cause(flight: FlownRace) -> str:
    """Return the kind of what ended a flight: "Gate10, top side" is a gate, "pillar 28" a pillar."""
    return re.sub(r"\s*\d.*", "", cause_of(flight)).lower()


def _axes_of(gates: Sequence[GateShape]) -> tuple[int, int]:
    """Return the axes to the right and up that suit the gates: a stray flight does not turn the map."""
    return plan_axes(np.ptp([gate.center[:2] for gate in gates], axis=0))


def ends_table(flights: Sequence[FlownRace]) -> list[dict[str, Any]]:
    """Return causes by gate: on the way to which gate flights ended, by what, how often, on which courses."""
    ended = [flight for flight in flights if not flight.completed]
    found: dict[tuple[int, str], list[FlownRace]] = {}
    for flight in ended:
        found.setdefault((flight.next_gate, cause_of(flight)), []).append(flight)
    lines = []
    for (gate, cause), mine in sorted(found.items(), key=lambda item: (item[0][0], -len(item[1]), item[0][1])):
        speeds = [float(np.linalg.norm(x.trace.velocity[-1])) for x in mine if len(x.trace.velocity)]
        lines.append(
            {
                "gate": mine[0].row["passages"][gate]["gate"],
                "cause": cause,
                "count": len(mine),
                "courses": ", ".join(flight.course for flight in mine[:8]) + (" ..." if len(mine) > 8 else ""),
                "speed": float(np.median(speeds)) if speeds else float("nan"),
                "reason": next((x.row["reason"] for x in mine if x.row["reason"]), ""),
            }
        )
    return lines


def _gates(axes: Any, gates: Sequence[GateShape], right: int, up: int, named: bool = True) -> None:
    """Draw openings, each with its number in the order of flight."""
    for number, gate in enumerate(gates, 1):
        ends = np.stack([gate.center - gate.half_width * gate.left, gate.center + gate.half_width * gate.left])
        path_line(axes, ends, right, up, "white", linewidth=3.6, solid_capstyle="butt", zorder=4)
        path_line(axes, ends, right, up, PALETTE["ink"], linewidth=2.0, solid_capstyle="butt", zorder=5)
        if named:
            place = gate.center + (gate.half_width + 1.3) * gate.left
            axes.text(
                place[right], place[up], str(number), fontsize=7.5, ha="center", va="center", color=PALETTE["ink"], zorder=7
            )


def _frame(axes: Any, low: Array, high: Array, right: int, up: int) -> None:
    axes.set_xlim(low[right], high[right])
    axes.set_ylim(low[up], high[up])
    axes.set_aspect("equal")
    mirrored(axes, right, up)
    axes.set_xlabel(f"{'xyz'[right]} [m]")
    axes.grid(visible=False)
