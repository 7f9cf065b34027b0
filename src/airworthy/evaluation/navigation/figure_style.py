"""What the figures of the benchmark's report share: a colour for each pilot and outcome, bars, legends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from airworthy.evaluation._svg import PALETTE, STYLE

__all__ = ["OUTCOME_COLORS", "WIDTH", "Entries", "blank", "color_of", "legend", "rate_bar", "style", "words"]

WIDTH = 10.6
_KNOWN = {
    "ego": PALETTE["flown"],
    "fast": PALETTE["warn"],
    "pgo": "#8a63c9",
    "navrl": "#c2557f",
    "navrl_full_3d": "#d99ab4",
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
Entries = Sequence[Mapping[str, Any]]


def color_of(pilot: str, pilots: Sequence[str]) -> str:
    """A pilot's colour: its own, or one of the others in turn."""
    if pilot in _KNOWN:
        return _KNOWN[pilot]
    others = [name for name in pilots if name not in _KNOWN]
    return _OTHERS[others.index(pilot) % len(_OTHERS)]


def words(name: str) -> str:
    """A scenario or outcome for people."""
    return name.replace("_", " ")


def rate_bar(axes: Any, x: float, width: float, entry: Mapping[str, Any], color: str) -> None:
    """A bar of a rate in percent with its interval; a stroke where it is 0."""
    axes.bar(x, 100.0 * entry["value"], width, color=color)
    if entry["value"] == 0.0:
        axes.plot([x - 0.5 * width, x + 0.5 * width], [0.4, 0.4], color=color, linewidth=1.6, solid_capstyle="butt")
    if np.isfinite(entry["low"]) and entry["high"] > entry["low"]:
        axes.plot([x, x], [100.0 * entry["low"], 100.0 * entry["high"]], color=PALETTE["ink"], linewidth=0.9)


def legend(figure: Any, looks: Sequence[tuple[str, str, str]], published: bool = False) -> None:
    """Colours, marks and words above a figure, at the right."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], linestyle="none", marker=m, color=c, markersize=5.0, markeredgewidth=0.0) for c, m, _ in looks]
    labels = [label for *_, label in looks]
    if published:
        more: dict[str, Any] = {"linestyle": "none", "color": PALETTE["second"], "markerfacecolor": "none", "markersize": 4.6}
        handles += [Line2D([], [], marker="D", **more), Line2D([], [], marker="^", **more), Line2D([], [], marker="v", **more)]
        labels += ["published", "published: above", "below"]
    figure.legend(handles, labels, loc="upper right", ncols=len(labels), bbox_to_anchor=(0.985, 0.995), columnspacing=1.3)


def style() -> AbstractContextManager[Any]:
    """The look of reports' figures, for as long as one is drawn."""
    import matplotlib as mpl

    context: AbstractContextManager[Any] = mpl.rc_context(dict(STYLE))
    return context


def blank(height: float, width: float = WIDTH) -> Any:
    """An empty figure of a size in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height))
