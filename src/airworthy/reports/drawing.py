"""What figures of all reports are drawn with: sheets in one size and style, bars and marks with intervals, paths, bands, keys.

A function of a figure stands where its numbers are known; how a bar, an interval, a path or a band looks stands here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayLike
from airworthy.reports.svg import FIGURE_WIDTH, PALETTE, figure_style

__all__ = [
    "DASHES",
    "DOTS",
    "band",
    "mirrored",
    "named_lines",
    "path_line",
    "plan_axes",
    "points_key",
    "published_mark",
    "rate_bar",
    "reference_path",
    "shares_bar",
    "sheet",
    "top_key",
    "whisker",
]

DASHES, DOTS = (0, (4, 2)), (0, (1, 1.6))
"""Of lines: what was asked for, and limits."""


@contextmanager
def sheet(height: float, width: float = FIGURE_WIDTH) -> Iterator[Any]:
    """Open an empty figure in the style of reports; what is drawn inside looks like every other figure.

    Args:
        height: [inch]
        width: [inch]
    """
    from matplotlib.figure import Figure

    with figure_style():
        yield Figure(figsize=(width, height))


# ---- Rates and values with intervals ----------------------------------------------------------------------------------------


def whisker(axes: Any, at: float, low: float, high: float, *, level: bool = False, **look: Any) -> None:
    """Draw an interval as a line; nothing unless both of its bounds are finite.

    Args:
        axes: Of matplotlib.
        at: Where it stands on the other axis.
        low: Lower bound.
        high: Upper bound.
        level: Along x instead of y.
        look: Of the line, such as its color.
    """
    if np.isfinite(low) and np.isfinite(high):
        ends, place = [low, high], [at, at]
        axes.plot(*((ends, place) if level else (place, ends)), **{"color": PALETTE["ink"], "linewidth": 1.0, **look})


def rate_bar(axes: Any, x: float, width: float, entry: Mapping[str, Any], color: str) -> None:
    """Draw a bar of a rate in percent with its interval; a stroke where it is 0.

    Args:
        axes: Of matplotlib, in percent.
        x: Middle of the bar, in the axes' units.
        width: Of the bar, likewise.
        entry: With "value", "low" and "high", shares of 1; bounds may be NaN.
        color: Of the bar.
    """
    axes.bar(x, 100.0 * entry["value"], width, color=color)
    # A bar without height would look like one that was left out.
    if entry["value"] == 0.0:
        axes.plot([x - 0.5 * width, x + 0.5 * width], [0.4, 0.4], color=color, linewidth=1.6, solid_capstyle="butt")
    if entry["high"] > entry["low"]:
        whisker(axes, x, 100.0 * entry["low"], 100.0 * entry["high"], linewidth=0.9)


def shares_bar(axes: Any, y: float, parts: Sequence[tuple[float, str, float]], height: float) -> None:
    """Draw parts of a whole as one level bar, one behind another.

    Args:
        axes: Of matplotlib, in percent along x.
        y: Middle of the bar.
        parts: Share [%], color and opacity of each.
        height: Of the bar.
    """
    left = 0.0
    for share, color, alpha in parts:
        axes.barh(y, share, height, left=left, color=color, **({"alpha": alpha} if alpha < 1.0 else {}))
        left += share


def published_mark(axes: Any, x: float, y: float, mark: str = "D", size: float = 4.6, halo: bool = False) -> None:
    """Draw the mark of something that was published: hollow, green, never cut by the frame.

    Args:
        axes: Of matplotlib.
        x: Place, in the axes' units.
        y: Likewise.
        mark: "D" for a number; "^" and "v" for a bound from below and above.
        size: Of the mark [points].
        halo: White around and inside, so that it is read on bars of any colour.
    """
    look: dict[str, Any] = {"markersize": size, "clip_on": False, "linestyle": "none", "marker": mark}
    if not halo:
        axes.plot([x], [y], color=PALETTE["second"], markerfacecolor="none", **look)
        return
    axes.plot([x], [y], color="white", markerfacecolor="white", markeredgewidth=3.2, zorder=5, **look)
    axes.plot([x], [y], color=PALETTE["second"], markerfacecolor="white", markeredgewidth=1.2, zorder=6, **look)


def band(axes: Any, x: ArrayLike, bounds: tuple[ArrayLike, ArrayLike], middle: ArrayLike, color: str, **look: Any) -> None:
    """Draw values over x as a line within a band.

    Args:
        axes: Of matplotlib.
        x: (n,)
        bounds: Lower and upper, each (n,).
        middle: (n,)
        color: Of both.
        look: Of the line.
    """
    axes.fill_between(x, *bounds, color=color, alpha=0.2)
    axes.plot(x, middle, color=color, **look)


def named_lines(axes: Any, names: Sequence[str], room: float = 0.5) -> None:
    """Name the lines of a figure from top to bottom, and take their grid away.

    Args:
        axes: Of matplotlib; lines lie at y = 0, 1 and so on.
        names: Of the lines.
        room: Beyond the first and the last, in lines.
    """
    axes.set_yticks(range(len(names)), names)
    # Upside down: the first name is on top.
    axes.set_ylim(max(len(names), 1) - 1.0 + room, -room)
    axes.grid(axis="y", visible=False)


# ---- Paths from above -------------------------------------------------------------------------------------------------------


def plan_axes(span: ArrayLike) -> tuple[int, int]:
    """Return the world axes to the right and up of a plan: what is longer along y is turned.

    Args:
        span: Along x and y [m], (2,).
    """
    x, y = np.asarray(span, np.float64)[:2]
    return (1, 0) if y > 1.2 * x else (0, 1)


def mirrored(axes: Any, right: int, up: int) -> None:
    """Let x run downwards where y runs to the right: otherwise the view would be a mirror image.

    Args:
        axes: Of matplotlib, with limits.
        right: World axis to the right.
        up: World axis upwards.
    """
    if (right, up) == (1, 0):
        axes.invert_yaxis()


def path_line(axes: Any, path: Array, right: int, up: int, color: str, **look: Any) -> None:
    """Draw a flown path.

    Args:
        axes: Of matplotlib.
        path: World [m], (n, 3).
        right: World axis to the right.
        up: World axis upwards.
        color: Of the line.
        look: Of the line: its width, its opacity.
    """
    axes.plot(path[:, right], path[:, up], color=color, **look)


def reference_path(axes: Any, path: Array, right: int, up: int, linewidth: float = 1.1, size: float = 4.5) -> None:
    """Draw what was to be flown: dashed, from a dot to a square.

    Args:
        axes: Of matplotlib.
        path: World [m], (n, 3).
        right: World axis to the right.
        up: World axis upwards.
        linewidth: [points]
        size: Of dot and square [points].
    """
    path_line(axes, path, right, up, PALETTE["ink"], linewidth=linewidth, linestyle=DASHES)
    for end, mark in ((0, "o"), (-1, "s")):
        axes.plot(path[end, right], path[end, up], mark, color=PALETTE["ink"], markersize=size)


# ---- Keys -------------------------------------------------------------------------------------------------------------------


def top_key(figure: Any, entries: Sequence[tuple[Mapping[str, Any], str]]) -> None:
    """Draw lines or marks with their words above a figure, at the right.

    Args:
        figure: Of matplotlib.
        entries: How a line or mark looks, and what it stands for.
    """
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], **look) for look, _ in entries]
    place = {"loc": "upper right", "bbox_to_anchor": (0.985, 0.995), "columnspacing": 1.3}
    figure.legend(handles, [label for _, label in entries], ncols=len(entries), **place)


def points_key(mark: str, color: str, hollow: bool = False) -> dict[str, Any]:
    """Return how a mark of a key looks.

    Args:
        mark: Of matplotlib.
        color: Of the mark.
        hollow: Only its edge.
    """
    look: dict[str, Any] = {"linestyle": "none", "marker": mark, "color": color}
    return look | ({"markerfacecolor": "none", "markersize": 4.6} if hollow else {"markersize": 5.0, "markeredgewidth": 0.0})
