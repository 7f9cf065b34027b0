"""Figures of rates and outcomes in the benchmark's report, as inline SVG: F8 of the paper, and how flights end.

Pilots have a colour each. Green diamonds are what was published. Whiskers are 95 % intervals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from airworthy.benchmarks.navigation.score import stated_rate
from airworthy.core.arrays import Array
from airworthy.reports.drawing import named_lines, points_key, published_mark, rate_bar, shares_bar, sheet, top_key, whisker
from airworthy.reports.svg import FIGURE_WIDTH, PALETTE, inline_svg
from airworthy.tasks.navigation import NAVIGATION_OUTCOMES

__all__ = [
    "OUTCOME_COLORS",
    "Entries",
    "color_of",
    "figure_fleet",
    "figure_grid",
    "figure_heatmap",
    "figure_indicators",
    "figure_outcomes",
    "figure_scenarios",
    "grid_cells",
    "legend",
    "spaced",
]

# ---- What the figures of the benchmark's report share: a colour for each pilot and outcome, bars, legends -------------------

_KNOWN = {
    "ego": PALETTE["flown"],
    "fast": PALETTE["warn"],
    "pgo": "#8a63c9",
    "navrl": "#c2557f",
    "navrl_full_3d": "#d99ab4",
    "known_free": "#3f8f5b",
    "straight": PALETTE["muted"],
}
_OTHERS = ("#3f9ca8", "#9a7b4f", "#5d6f9e", "#7a9a3a")
OUTCOME_COLORS = {
    "success": PALETTE["flown"],
    "collision": PALETTE["bad"],
    "not_at_goal": "#d9a441",
    "timeout_no_path": "#e3c88f",
    "out_of_bounds": "#8a63c9",
    "diverged": "#5b3a86",
    "planner_crash": PALETTE["ink"],
}
_LETTER = 0.0051
"""Of a line's name, as a share of the sheet's width."""
Entries = Sequence[Mapping[str, Any]]


def color_of(pilot: str, pilots: Sequence[str]) -> str:
    """Return a pilot's colour: its own, or one of the others in turn."""
    if pilot in _KNOWN:
        return _KNOWN[pilot]
    others = [name for name in pilots if name not in _KNOWN]
    return _OTHERS[others.index(pilot) % len(_OTHERS)]


def spaced(name: str) -> str:
    """Return a scenario or outcome for people."""
    return name.replace("_", " ")


def legend(figure: Any, styles: Sequence[tuple[str, str, str]], published: bool = False) -> None:
    """Draw colours, marks and words above a figure, at the right.

    Args:
        figure: Of matplotlib.
        styles: Colour, mark and label of each entry.
        published: Also the marks of published rates, and of bounds to them.
    """
    entries = [(points_key(mark, color), label) for color, mark, label in styles]
    if published:
        labels = {"D": "published", "^": "published: above", "v": "below"}
        entries += [(points_key(mark, PALETTE["second"], hollow=True), label) for mark, label in labels.items()]
    top_key(figure, entries)


# -----------------------------------------------------------------------------------------------------------------------------
# Figures of vehicles in the benchmark's report, as inline SVG, numbered as in the paper: F6, and F9 to F15.

LABELS = {"twr": "thrust to weight", "alpha_xy": "roll acceleration [rad/s²]", "alpha_z": "yaw acceleration [rad/s²]"}


def figure_fleet(vehicles: Entries) -> str:
    """Return F6: mass against each indicator."""
    with sheet(2.6) as figure:
        panels = figure.subplots(1, 3)
        figure.subplots_adjust(left=0.045, right=0.985, top=0.82, bottom=0.17, wspace=0.2)
        styles = {"real": (PALETTE["flown"], "o", "real"), "virtual": (PALETTE["warn"], "s", "virtual")}
        for axes, name in zip(panels, LABELS, strict=True):
            for category, (color, mark, label) in styles.items():
                mine = [item for item in vehicles if (item["category"] == "real") == (category == "real")]
                x, y = [item["mass_kg"] for item in mine], [item[name] for item in mine]
                axes.plot(x, y, mark, color=color, markersize=4.4, alpha=0.85, markeredgewidth=0.0, label=label)
            axes.set_title(LABELS[name][0].upper() + LABELS[name][1:])
            axes.set_xlabel("mass [kg]")
            axes.margins(0.06)
            if name == "alpha_xy":
                axes.set_yscale("log")
                axes.set_title(axes.get_title(loc="left") + ", log")
                axes.grid(which="minor", visible=False)
        legend(figure, [(c, m, label) for c, m, label in styles.values()])
        return inline_svg(figure, "fleet", "Mass of the vehicles against their indicators")


def figure_indicators(
    rates: Entries, vehicles: Entries, correlations: Entries, pilots: Sequence[str], titles: Mapping[str, str]
) -> str:
    """Return F9: success of each vehicle against its indicators, Spearman's rho beside the names.

    Args:
        rates: By pilot and vehicle, success as a share of 1.
        vehicles: By vehicle, its indicators: thrust to weight [1], angular accelerations [rad/s^2].
        correlations: By pilot and indicator, Spearman's rho with its interval.
        pilots: Names, in the order of their colours.
        titles: What pilots are called, by name.
    """
    facts = {item["vehicle"]: item for item in vehicles}
    tall = 2.75 + 0.125 * len(pilots)
    with sheet(tall) as figure:
        panels = figure.subplots(1, 3, sharey=True)
        top = 1.0 - (0.1 + 0.125 * len(pilots)) / tall
        figure.subplots_adjust(left=0.055, right=0.985, top=top, bottom=0.42 / tall, wspace=0.06)
        for axes, name in zip(panels, LABELS, strict=True):
            for k, pilot in enumerate(pilots):
                mine = [e for e in rates if e["pilot"] == pilot]
                x = [facts[e["vehicle"]][name] for e in mine]
                color = color_of(pilot, pilots)
                axes.plot(
                    x, [100.0 * e["value"] for e in mine], "o", color=color, markersize=3.8, alpha=0.8, markeredgewidth=0.0
                )
                rho = next((c for c in correlations if c["pilot"] == pilot and c["indicator"] == name), None)
                if rho is not None:
                    text = f"{titles.get(pilot, pilot)} \N{GREEK SMALL LETTER RHO} {_rho(rho)}"
                    above = 1.015 + 0.056 * (len(pilots) - 1 - k)
                    axes.text(0.0, above, text, transform=axes.transAxes, color=color, fontsize=6.8)
            axes.set_xlabel(LABELS[name])
            axes.set_ylim(-3.0, 103.0)
            axes.margins(x=0.05)
            if name == "alpha_xy":
                axes.set_xscale("log")
                axes.set_xlabel(LABELS[name] + ", log")
                axes.grid(which="minor", visible=False)
        panels[0].set_ylabel("success, mean over scenarios [%]")
        return inline_svg(figure, "indicators", "Success of vehicles against their indicators, with rank correlations")


def _rho(entry: Mapping[str, Any]) -> str:
    if not np.isfinite(entry["value"]):
        return "is not defined"
    if not (np.isfinite(entry["low"]) and np.isfinite(entry["high"])):
        return f"{entry['value']:+.2f}"
    return f"{entry['value']:+.2f} ({entry['low']:+.2f} to {entry['high']:+.2f})"


def grid_cells(vehicles: Entries) -> dict[str, tuple[int, int]]:
    """Return row and column of each vehicle in F10: six rows by roll acceleration, lowest first, each sorted by thrust to
    weight."""
    order = sorted(vehicles, key=lambda item: (item["alpha_xy"], item["vehicle"]))
    across = max(1, int(np.ceil(np.sqrt(len(order)))))
    found = {}
    for row in range(0, len(order), across):
        part = sorted(order[row : row + across], key=lambda item: (item["twr"], item["vehicle"]))
        found.update({item["vehicle"]: (row // across, column) for column, item in enumerate(part)})
    return found


def figure_grid(rates: Entries, vehicles: Entries, pilots: Sequence[str], titles: Mapping[str, str]) -> str:
    """Return F10: a small chart per vehicle; to the right more thrust, upwards more agility.

    Args:
        rates: By pilot and vehicle, success as a share of 1.
        vehicles: By vehicle, its indicators: thrust to weight [1], angular accelerations [rad/s^2].
        pilots: Names, in the order of their bars.
        titles: What pilots are called, by name.
    """
    places = grid_cells(vehicles)
    rows, columns = 1 + max(r for r, _ in places.values()), 1 + max(c for _, c in places.values())
    found = {(e["pilot"], e["vehicle"]): e for e in rates}
    facts = {item["vehicle"]: item for item in vehicles}
    tall = 0.5 + 1.28 * rows
    with sheet(tall) as figure:
        grid = figure.subplots(rows, columns, squeeze=False, sharey=True)
        figure.subplots_adjust(left=0.045, right=0.985, top=1 - 0.62 / tall, bottom=0.16 / tall, wspace=0.1, hspace=0.52)
        for axes in grid.ravel():
            axes.set_visible(False)
        for name, (row, column) in places.items():
            axes = grid[rows - 1 - row, column]
            axes.set_visible(True)
            for k, pilot in enumerate(pilots):
                if (pilot, name) in found:
                    rate_bar(axes, float(k), 0.8, found[pilot, name], color_of(pilot, pilots))
            item = facts[name]
            axes.set_title(f"{name}  {item['twr']:.1f} / {item['alpha_xy']:.0f}", fontsize=6.8, fontweight="normal", pad=3.0)
            axes.set_xticks([])
            axes.set_xlim(-0.7, len(pilots) - 0.3)
            axes.set_ylim(0.0, 100.0)
            axes.set_yticks([0, 50, 100])
        legend(figure, [(color_of(p, pilots), "s", titles.get(p, p)) for p in pilots])
        return inline_svg(figure, "grid", "Success of each vehicle, arranged by thrust to weight and roll acceleration")


def figure_heatmap(pilot: str, cells: Array, scenarios: Sequence[str], vehicles: Sequence[str], title: str) -> str:
    """Return F11 to F15: success by vehicle and scenario, 0 dark purple to 1 bright yellow, hatched where nothing was flown.

    Args:
        pilot: Name, for the figure's.
        cells: (scenarios, vehicles).
        scenarios: Their names.
        vehicles: Theirs.
        title: Of the panel.
    """
    from matplotlib.patches import Rectangle

    count = len(vehicles)
    tall = 0.95 + 0.135 * count
    with sheet(tall, 0.49 * FIGURE_WIDTH) as figure:
        axes = figure.subplots()
        figure.subplots_adjust(left=0.13, right=0.87, top=1 - 0.3 / tall, bottom=0.62 / tall)
        image = axes.pcolormesh(
            np.ma.masked_invalid(cells.T), cmap="viridis", vmin=0.0, vmax=1.0, edgecolors="face", linewidth=0.4
        )
        for s in range(len(scenarios)):
            for v in range(count):
                if not np.isfinite(cells[s, v]):
                    box = Rectangle((s, v), 1, 1, facecolor="none", edgecolor=PALETTE["axis"], hatch="////", linewidth=0.0)
                    axes.add_patch(box)
        axes.set_xticks(np.arange(len(scenarios)) + 0.5, [spaced(name) for name in scenarios], rotation=32, ha="right")
        axes.set_yticks(np.arange(count) + 0.5, vehicles, fontsize=6.2)
        axes.set_ylim(count, 0)
        axes.grid(visible=False)
        axes.set_title(title)
        bar = figure.colorbar(image, cax=figure.add_axes((0.89, 0.62 / tall, 0.022, 1 - 0.92 / tall)))
        bar.outline.set_visible(False)
        return inline_svg(figure, f"heat-{pilot}", f"Success of {title} by vehicle and scenario")


# -----------------------------------------------------------------------------------------------------------------------------


def figure_scenarios(entries: Entries, pilots: Sequence[str], titles: Mapping[str, str], scenarios: Sequence[str]) -> str:
    """Return F8: success by scenario and pilot, with intervals and what is stated.

    Args:
        entries: By pilot and scenario, success as a share of 1 with its interval.
        pilots: Names, in the order of their bars.
        titles: What pilots are called, by name.
        scenarios: Names, from left to right.
    """
    found = {(e["pilot"], e["scenario"]): e for e in entries}
    with sheet(3.4) as figure:
        axes = figure.subplots()
        figure.subplots_adjust(left=0.045, right=0.985, top=0.87, bottom=0.1)
        step = 0.82 / max(len(pilots), 1)
        for k, pilot in enumerate(pilots):
            for place, scenario in enumerate(scenarios):
                x = place + (k - 0.5 * (len(pilots) - 1)) * step
                entry = found.get((pilot, scenario))
                if entry is not None:
                    rate_bar(axes, x, step * 0.88, entry, color_of(pilot, pilots))
                else:
                    axes.text(x, 1.5, "none", rotation=90, ha="center", va="bottom", fontsize=6, color=PALETTE["muted"])
                _stated(axes, x, step, pilot, scenario)
        axes.set_xticks(range(len(scenarios)), [spaced(name) for name in scenarios])
        axes.set_xlim(-0.5, len(scenarios) - 0.5)
        axes.set_ylim(0.0, 104.0)
        axes.grid(axis="x", visible=False)
        axes.set_title("Success [%]")
        styles = [(color_of(p, pilots), "s", titles.get(p, p)) for p in pilots]
        legend(figure, styles, published=any(stated_rate(p, s) for p in pilots for s in scenarios))
        return inline_svg(figure, "scenarios", "Success rate by scenario and pilot with intervals, published rates beside")


def _stated(axes: Any, x: float, step: float, pilot: str, scenario: str) -> None:
    """Draw a diamond where a rate is stated, a triangle where only a bound is, a bar where a range is."""
    stated = stated_rate(pilot, scenario)
    if stated is None:
        return
    mark = {">": "^", "<": "v"}.get(stated.relation, "D")
    if stated.relation == "-":
        for color, linewidth, zorder in (("white", 4.4, 4), (PALETTE["second"], 2.4, 5)):
            whisker(axes, x, 100 * stated.low, 100 * stated.high, color=color, linewidth=linewidth, zorder=zorder)
        return
    published_mark(axes, x, 100.0 * stated.value, mark, halo=True)


def figure_outcomes(entries: Entries, pilots: Sequence[str], titles: Mapping[str, str], scenarios: Sequence[str]) -> str:
    """Return shares of what became of flights, by scenario and pilot.

    Args:
        entries: By pilot and scenario, the number of flights of every outcome.
        pilots: Names, a line each.
        titles: What pilots are called, by name.
        scenarios: Names, a panel each.
    """
    found = {(e["pilot"], e["scenario"]): e for e in entries}
    tall = 0.62 + 0.24 * len(pilots) + 0.2
    longest = max(len(titles.get(pilot, pilot)) for pilot in pilots)
    left = max(0.11, 0.014 + _LETTER * longest)
    with sheet(tall) as figure:
        panels = np.atleast_1d(figure.subplots(1, len(scenarios), sharey=True))
        figure.subplots_adjust(left=left, right=0.985, top=1 - 0.62 / tall, bottom=0.24 / tall, wspace=0.1)
        for axes, scenario in zip(panels, scenarios, strict=True):
            for place, pilot in enumerate(pilots):
                entry = found.get((pilot, scenario))
                total = sum(entry[name] for name in NAVIGATION_OUTCOMES) if entry else 0
                if entry and total:
                    parts = [(100.0 * entry[name] / total, OUTCOME_COLORS[name], 1.0) for name in NAVIGATION_OUTCOMES]
                    shares_bar(axes, place, parts, 0.7)
            axes.set_title(spaced(scenario))
            axes.set_xlim(0.0, 100.0)
            axes.set_xticks([0, 50, 100], ["0", "50", ""])
            named_lines(axes, [titles.get(p, p) for p in pilots])
        there = [name for name in NAVIGATION_OUTCOMES if any(entry[name] for entry in entries)]
        legend(figure, [(OUTCOME_COLORS[name], "s", spaced(name)) for name in there])
        return inline_svg(figure, "outcomes", "What became of flights by scenario and pilot [%]")
