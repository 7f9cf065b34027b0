"""Figures of rates and outcomes in the benchmark's report, as inline SVG: F8 of the paper, and how flights end.

Pilots have a colour each. Green diamonds are what was published. Whiskers are 95 % intervals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from airworthy.evaluation._svg import PALETTE, inline_svg
from airworthy.evaluation.navigation.figure_style import (
    OUTCOME_COLORS,
    Entries,
    blank,
    color_of,
    legend,
    rate_bar,
    style,
    words,
)
from airworthy.evaluation.navigation.published import stated_rate
from airworthy.tasks.navigation import NAVIGATION_OUTCOMES

__all__ = ["figure_outcomes", "figure_scenarios"]


def figure_scenarios(entries: Entries, pilots: Sequence[str], titles: Mapping[str, str], scenarios: Sequence[str]) -> str:
    """F8: success by scenario and pilot, with intervals and what is stated."""
    found = {(e["pilot"], e["scenario"]): e for e in entries}
    with style():
        figure = blank(3.4)
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
        axes.set_xticks(range(len(scenarios)), [words(name) for name in scenarios])
        axes.set_xlim(-0.5, len(scenarios) - 0.5)
        axes.set_ylim(0.0, 104.0)
        axes.grid(axis="x", visible=False)
        axes.set_title("Success [%]")
        looks = [(color_of(p, pilots), "s", titles.get(p, p)) for p in pilots]
        legend(figure, looks, published=any(stated_rate(p, s) for p in pilots for s in scenarios))
        return inline_svg(figure, "scenarios", "Success rate by scenario and pilot with intervals, published rates beside")


def _stated(axes: Any, x: float, step: float, pilot: str, scenario: str) -> None:
    """A diamond where a rate is stated, a triangle where only a bound is, a bar where a range is."""
    told = stated_rate(pilot, scenario)
    if told is None:
        return
    mark = {">": "^", "<": "v"}.get(told.relation, "D")
    look = {"color": PALETTE["second"], "markerfacecolor": "white", "markersize": 4.6, "markeredgewidth": 1.2, "clip_on": False}
    if told.relation == "-":
        axes.plot([x, x], [100 * told.low, 100 * told.high], color="white", linewidth=4.4, zorder=4)
        axes.plot([x, x], [100 * told.low, 100 * told.high], color=PALETTE["second"], linewidth=2.4, zorder=5)
        return
    # White behind the mark: it is read on bars of any colour.
    axes.plot([x], [100.0 * told.value], mark, zorder=5, **{**look, "color": "white", "markeredgewidth": 3.2})
    axes.plot([x], [100.0 * told.value], mark, zorder=6, **look)


def figure_outcomes(entries: Entries, pilots: Sequence[str], titles: Mapping[str, str], scenarios: Sequence[str]) -> str:
    """Shares of what became of flights, by scenario and pilot."""
    found = {(e["pilot"], e["scenario"]): e for e in entries}
    with style():
        tall = 0.62 + 0.24 * len(pilots) + 0.2
        figure = blank(tall)
        panels = np.atleast_1d(figure.subplots(1, len(scenarios), sharey=True))
        figure.subplots_adjust(left=0.11, right=0.985, top=1 - 0.62 / tall, bottom=0.24 / tall, wspace=0.1)
        for axes, scenario in zip(panels, scenarios, strict=True):
            for place, pilot in enumerate(pilots):
                entry = found.get((pilot, scenario))
                total = sum(entry[name] for name in NAVIGATION_OUTCOMES) if entry else 0
                left = 0.0
                for name in NAVIGATION_OUTCOMES if total else ():
                    assert entry is not None
                    share = 100.0 * entry[name] / total
                    axes.barh(place, share, 0.7, left=left, color=OUTCOME_COLORS[name])
                    left += share
            axes.set_title(words(scenario))
            axes.set_xlim(0.0, 100.0)
            axes.set_xticks([0, 50, 100], ["0", "50", ""])
            axes.grid(axis="y", visible=False)
        panels[0].set_yticks(range(len(pilots)), [titles.get(p, p) for p in pilots])
        panels[0].set_ylim(len(pilots) - 0.5, -0.5)
        there = [name for name in NAVIGATION_OUTCOMES if any(entry[name] for entry in entries)]
        legend(figure, [(OUTCOME_COLORS[name], "s", words(name)) for name in there])
        return inline_svg(figure, "outcomes", "What became of flights by scenario and pilot [%]")
