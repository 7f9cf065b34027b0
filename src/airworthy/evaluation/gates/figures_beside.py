"""Figures of predictors: their errors between the grid's points, and several of them beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.evaluation._svg import PALETTE, STYLE, inline_svg

__all__ = ["COLORS", "figure_beside", "figure_errors", "short_name"]

Array = NDArray[np.float64]
Content = Mapping[str, Any]

WIDTH = 10.6
COLORS = ("flown", "second", "warn", "bad", "muted", "ink")
"""Of contestants, in order; then from the first again."""
_MARKS = "osD^vP"
_LEAST, _MOST, _BINS = -100.0, 100.0, 81


def short_name(word: str, most: int = 26) -> str:
    """The end of a long name, which tells more than its begin."""
    return word if len(word) <= most else "..." + word[-most + 3 :]


def figure_errors(content: Content, name: str) -> str:
    """Figure 2 of the paper, off the grid: percent errors of speed and time, logarithmic counts; labels of 0 left out."""
    rows = [[np.nan if x is None else x for x in row] for row in content["percent"]]
    percent = np.array(rows, dtype=float).reshape(-1, 2)
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(dict(STYLE)):
        figure = Figure(figsize=(WIDTH, 2.3))
        panels = figure.subplots(1, 2, sharey=True)
        figure.subplots_adjust(left=0.05, right=0.985, top=0.85, bottom=0.19, wspace=0.08)
        for k, (axes, what, safe) in enumerate(zip(panels, ("speed", "time"), ("left", "right"), strict=True)):
            _histogram(axes, percent[np.isfinite(percent[:, k]), k], unsafe=(0.0, _MOST) if k == 0 else (_LEAST, 0.0))
            axes.set_title(f"Error of the {what} [%]; safe is to the {safe}")
            axes.set_xlabel("(predicted - label) / label [%]")
        panels[0].set_ylabel("situations")
        return inline_svg(figure, name, "Percent errors of predicted speed and time, counts on a logarithmic scale")


def _histogram(axes: Any, values: Array, unsafe: tuple[float, float]) -> None:
    edges = np.linspace(_LEAST, _MOST, _BINS)
    counts, _ = np.histogram(np.clip(values, _LEAST, _MOST), edges)
    # Bars down to a half: a bin with one situation is seen on a logarithmic scale.
    some = counts > 0
    axes.bar(edges[:-1][some], counts[some] - 0.5, np.diff(edges)[some], bottom=0.5, align="edge", color=PALETTE["flown"])
    axes.set_yscale("log")
    axes.set_ylim(0.5, 2.0 * max(1, int(counts.max(initial=1))))
    axes.set_xlim(_LEAST, _MOST)
    axes.axvspan(*unsafe, color=PALETTE["bad"], alpha=0.07)
    axes.axvline(0.0, color=PALETTE["ink"], linewidth=0.8)
    if values.size:
        median = float(np.median(values))
        axes.axvline(median, color=PALETTE["warn"], linewidth=1.2)
        axes.text(median, 0.98, f" median {median:.1f} %", transform=axes.get_xaxis_transform(), va="top", fontsize=7.5)


def figure_beside(rows: Sequence[Content], courses: Sequence[Sequence[Content]]) -> str:
    """Contestants beside each other: laps by course, random courses approved, flights that were clean.

    Args:
        rows: Of `airworthy.evaluation.gates.summary.compared`.
        courses: Rows of every course, by contestant.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    count, places = len(rows), [row["course"] for row in courses[0]] if courses else []
    tall = max(1.5, 0.32 * len(places), 0.34 * count * 2.0) + 1.0 + 0.2 * count
    with mpl.rc_context(dict(STYLE)):
        figure = Figure(figsize=(WIDTH, tall))
        panels = figure.subplots(1, 3, width_ratios=(1.35, 1.0, 1.0))
        top = 1.0 - (0.42 + 0.19 * count) / tall
        figure.subplots_adjust(left=0.135, right=0.985, top=top, bottom=0.28 / tall, wspace=0.14)
        _draw_laps(panels[0], courses, places)
        _draw_approved(panels[1], rows)
        _draw_clean(panels[2], rows)
        for k, row in enumerate(rows):
            panels[0].plot([], [], _MARKS[k % 6], color=PALETTE[COLORS[k % 6]], label=short_name(row["name"], 80))
        figure.legend(loc="upper left", ncols=1, bbox_to_anchor=(0.135, 1.0), handletextpad=0.4, labelspacing=0.25)
        return inline_svg(figure, "beside", "Predictors beside each other: laps, approved courses, clean flights")


def _draw_laps(axes: Any, courses: Sequence[Sequence[Content]], places: Sequence[str]) -> None:
    axes.set_title("Lap of the approved plan [s]")
    most = 1.0
    for k, own in enumerate(courses):
        # A little apart, so that equal laps do not hide one another.
        shift = 0.13 * (k - 0.5 * (len(courses) - 1))
        for place, row in enumerate(own):
            if row["flyable"]:
                time = row["laps"]["plan"]
                most = max(most, time)
                axes.plot(time, place + shift, _MARKS[k % 6], color=PALETTE[COLORS[k % 6]], markersize=5.0)
    axes.set_yticks(range(len(places)), places)
    axes.set_ylim(max(len(places), 1) - 0.5, -0.5)
    axes.set_xlim(0.0, 1.05 * most)


def _draw_approved(axes: Any, rows: Sequence[Content]) -> None:
    """Shares of random courses: approved as predicted, after stretching, after lowering; the rest was refused."""
    axes.set_title("Random courses approved [%]")
    for place, row in enumerate(rows):
        random, color = row["random"], PALETTE[COLORS[place % 6]]
        if random is None:
            continue
        begin = 0.0
        for name, alpha in (("untouched", 1.0), ("stretched", 0.6), ("lowered", 0.3)):
            share = 100.0 * random[name] / max(random["courses"], 1)
            axes.barh(place, share, left=begin, height=0.5, color=color, alpha=alpha)
            begin += share
        low, high = 100.0 * random["approved"]["low"], 100.0 * random["approved"]["high"]
        axes.plot([low, high], [place, place], color=PALETTE["ink"], linewidth=1.0)
    _lines_of(axes, len(rows))


def _draw_clean(axes: Any, rows: Sequence[Content]) -> None:
    """Clean flights of the courses' plans, one mark per family, with 95 % intervals."""
    axes.set_title("Flights without crash or skip [%]")
    for place, row in enumerate(rows):
        for k, item in enumerate(row["flights"].values()):
            at, rate = place + 0.2 * (k - 0.5 * (len(row["flights"]) - 1)), item["success"]
            color = PALETTE[COLORS[place % 6]]
            axes.plot([100.0 * rate["low"], 100.0 * rate["high"]], [at, at], color=color, linewidth=1.4)
            axes.plot(100.0 * rate["value"], at, "o", color=color, markersize=4.0)
    _lines_of(axes, len(rows))


def _lines_of(axes: Any, count: int) -> None:
    axes.set_yticks([])
    axes.set_ylim(count - 0.5, -0.5)
    axes.set_xlim(0.0, 101.0)
