"""Matplotlib figures as inline SVG. Colours and fonts come from the page's style sheet: one figure suits light and dark.

Curves of a training as inline SVG; colours are the style sheet's.
"""

from __future__ import annotations

import html
import io
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.core.arrays import Array

__all__ = [
    "FIGURE_WIDTH",
    "PALETTE",
    "PERCENT",
    "STYLE",
    "TEXT",
    "Line",
    "figure_style",
    "inline_svg",
    "lines",
    "number",
    "span",
    "themed",
]


PALETTE: Mapping[str, str] = {
    "ink": "#1b2431",
    "muted": "#677184",
    "grid": "#e3e6eb",
    "axis": "#a9b1bd",
    "flown": "#2b6cb0",
    "second": "#0e8a7d",
    "warn": "#b9770e",
    "bad": "#c23b32",
}
"""Colour by role. In the SVG each becomes `var(--role)`; no two may be equal."""

STYLE: Mapping[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "airworthy",
    "font.size": 8.0,
    "axes.titlesize": 8.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 7.0,
    "axes.titlecolor": PALETTE["ink"],
    "axes.labelsize": 8.0,
    "axes.labelcolor": PALETTE["muted"],
    "axes.edgecolor": PALETTE["axis"],
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.facecolor": "none",
    "axes.xmargin": 0.0,
    "axes.formatter.useoffset": False,
    "figure.facecolor": "none",
    "grid.color": PALETTE["grid"],
    "grid.linewidth": 0.6,
    "xtick.color": PALETTE["axis"],
    "ytick.color": PALETTE["axis"],
    "xtick.labelcolor": PALETTE["muted"],
    "ytick.labelcolor": PALETTE["muted"],
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "xtick.major.size": 2.5,
    "ytick.major.size": 0.0,
    "lines.solid_capstyle": "round",
    "lines.linewidth": 1.3,
    "patch.linewidth": 0.0,
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "legend.labelcolor": PALETTE["muted"],
    "legend.handlelength": 1.8,
    "legend.borderaxespad": 0.0,
    "path.simplify": True,
    "path.simplify_threshold": 0.2,
    "text.color": PALETTE["ink"],
}


FIGURE_WIDTH = 10.6
"""Of a figure as wide as the page [inch at 72 points]."""


def figure_style() -> AbstractContextManager[Any]:
    """Return the look of reports' figures, for as long as one is drawn."""
    import matplotlib as mpl

    context: AbstractContextManager[Any] = mpl.rc_context(dict(STYLE))
    return context


def inline_svg(figure: Any, name: str, description: str) -> str:
    """Draw a figure and make it part of a page.

    Args:
        figure: A `matplotlib.figure.Figure` made under `figure_style`.
        name: Unique on the page; prefixes every id.
        description: Read out where the figure cannot be seen.

    Returns:
        An `<svg>` element without any address, fixed size or colour of its own.
    """
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    stream = io.StringIO()
    with figure_style():
        FigureCanvasSVG(figure).print_svg(stream, metadata={"Date": None})
    return themed(stream.getvalue(), name, description)


def themed(svg: str, name: str, description: str) -> str:
    """Turn a matplotlib SVG file into an inline element; see `inline_svg`.

    Args:
        svg: Text of the file.
        name: In front of every id, so that figures on one page do not share any.
        description: For those who do not see it.
    """
    svg = svg[svg.index("<svg") :]
    # matplotlib's date and version: a report must have the same bytes tomorrow.
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->\n?", "", svg, flags=re.DOTALL)
    view = re.search(r'viewBox="([^"]+)"', svg)
    title = f"<title>{_escape(description)}</title>"
    svg = re.sub(r"<svg[^>]*>", f'<svg viewBox="{view[1] if view else "0 0 1 1"}" role="img">{title}', svg, count=1)
    svg = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", svg, count=1, flags=re.DOTALL)
    # Inline SVG needs no xlink; a rotation by -0 is one text that says nothing.
    svg = svg.replace("xlink:href", "href").replace(' transform="rotate(-0 ', ' data-r="(')
    svg = re.sub(r'<g id="[^"]+">', "<g>", svg)
    # Ids are of the whole page: two figures with the same would share clip paths and markers.
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", svg)
    svg = re.sub(r"font-family: [^;\"]+", "font-family: var(--sans)", svg)
    svg = re.sub(r' data-r="[^"]*"', "", svg)
    # Hundredths of a point are enough to draw; text between the tags keeps its digits.
    svg = re.sub(r"<[^>]+>", lambda tag: re.sub(r"(\d+\.\d{2})\d+", r"\1", tag[0]), svg)
    # Colours of the palette become variables, so that a page's dark style recolours its figures.
    for role, colour in PALETTE.items():
        svg = svg.replace(colour, f"var(--{role})")
    return re.sub(r"\n\s*", "\n", svg)


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


# Units of the SVG; two figures fit beside each other on a page.
WIDTH, HEIGHT = 420.0, 230.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 14.0, 12.0, 30.0
MARKED = 2
"""Points of a curve that are drawn as marks: a line needs more of them to be seen as one."""
_NEAR_ZERO = 0.05
"""Ours: share of the last place across, below which the first one counts as 0."""
_STEPS = 5
"""Ours: most steps between labels upwards; they are 14 pixels high, and the axis has room for eight."""
TEXT = 'font-size="12.5" fill="var(--muted)" font-family="var(--sans)"'


@dataclass(frozen=True)
class Line:
    """One curve."""

    name: str
    role: str
    """Colour of the style sheet: flown, second, warn, bad."""
    points: Sequence[tuple[float, float]]
    dashed: bool = False


PERCENT = (0.0, 100.0)
"""Ends of an axis of shares: a curve that never leaves 25 % is to look like it."""


def lines(
    title: str, across: str, curves: Sequence[Line], logarithmic: bool = True, holds: tuple[float, float] | None = None
) -> str:
    """Return curves over one axis, with a key; empty where no curve has a point. Few points are marks, too.

    Args:
        title: For those who do not see.
        across: What the axis to the right counts.
        curves: Values that are not finite, or not positive on a logarithmic axis, are left out.
        logarithmic: Of the axis upwards, which says "log"; where nothing is positive it is linear.
        holds: Two values that a linear axis upwards reaches in any case.
    """
    logarithmic = logarithmic and any(len(_usable(curve.points, True)) for curve in curves)
    kept = [(curve, _usable(curve.points, logarithmic)) for curve in curves]
    kept = [(curve, points) for curve, points in kept if len(points)]
    if not kept:
        return ""
    every = np.concatenate([points for _, points in kept])
    (x0, x1), (y0, y1) = span(every[:, 0]), span(every[:, 1])
    # What begins near 0 begins at 0: the first update or second is no number of anybody's.
    x0 = 0.0 if 0.0 < x0 < _NEAR_ZERO * x1 else x0
    if not logarithmic:
        y0 = 0.0 if every[:, 1].min() >= 0.0 else min(0.0, y0)
        y0, y1 = (y0, y1) if holds is None else (min(y0, holds[0]), max(float(every[:, 1].max()), holds[1]))
    ticks = _ticks(y0, y1, logarithmic)
    room = (LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM, TOP + 18.0)

    def at(points: Array) -> Array:
        y = (points[:, 1] - y0) / (y1 - y0)
        return np.stack([room[0] + (points[:, 0] - x0) / (x1 - x0) * (room[1] - room[0]), room[2] - y * (room[2] - room[3])], 1)

    parts = []
    for value in ticks:
        y = float(at(np.array([[x0, value]]))[0, 1])
        label = number(10.0**value if logarithmic else value)
        parts.append(f'<line x1="{room[0]}" x2="{room[1]}" y1="{y:.1f}" y2="{y:.1f}" stroke="var(--grid)"/>')
        parts.append(f'<text x="{room[0] - 7}" y="{y + 4:.1f}" text-anchor="end" {TEXT}>{label}</text>')
    if logarithmic:
        parts.append(f'<text x="{room[0] - 7}" y="{TOP + 2}" text-anchor="end" {TEXT}>log</text>')
    single = float(every[0, 0]) if np.ptp(every[:, 0]) == 0.0 else None
    # One place to the right is told where it lies: the ends that make room around it are no numbers of anybody's.
    for value, anchor in ((x0, "start"), (x1, "end")) if single is None else ((single, "middle"),):
        x = float(at(np.array([[value, y0]]))[0, 0])
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - 9}" text-anchor="{anchor}" {TEXT}>{number(value)}</text>')
    x, anchor = ((room[0] + room[1]) / 2, "middle") if single is None else (room[1], "end")
    parts.append(f'<text x="{x:.1f}" y="{HEIGHT - 9}" text-anchor="{anchor}" {TEXT}>{html.escape(across)}</text>')
    offset = room[0]
    for curve, points in kept:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in at(points))
        dash = ' stroke-dasharray="5 4"' if curve.dashed else ""
        stroke = f'stroke="var(--{curve.role})" stroke-width="1.7"{dash}'
        parts.append(f'<polyline points="{path}" fill="none" stroke-linejoin="round" {stroke}/>')
        if len(points) <= MARKED:
            parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="var(--{curve.role})"/>' for x, y in at(points)]
        parts.append(f'<line x1="{offset:.1f}" x2="{offset + 18:.1f}" y1="{TOP - 2}" y2="{TOP - 2}" {stroke}/>')
        parts.append(f'<text x="{offset + 24:.1f}" y="{TOP + 2}" {TEXT}>{html.escape(curve.name)}</text>')
        offset += 38.0 + 7.0 * len(curve.name)
    return f'<svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img"><title>{html.escape(title)}</title>{"".join(parts)}</svg>'


def _usable(points: Sequence[tuple[float, float]], logarithmic: bool) -> Array:
    found = np.array([p for p in points if p[1] is not None], np.float64).reshape(-1, 2)
    found = found[np.isfinite(found).all(axis=1) & ((found[:, 1] > 0.0) | (not logarithmic))]
    if logarithmic:
        found[:, 1] = np.log10(found[:, 1])
    return found


def span(values: Array) -> tuple[float, float]:
    """Return the ends of an axis that holds the values."""
    low, high = float(values.min()), float(values.max())
    room = 0.03 * (high - low) if high - low > 1e-9 * max(1.0, abs(high)) else 0.5
    return (low, high) if room != 0.5 else (low - room, high + room)


def _ticks(low: float, high: float, logarithmic: bool) -> list[float]:
    """Up to six; of a logarithmic axis the decades where there are two or more of them, else round numbers."""
    decades = [float(k) for k in range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1)]
    if logarithmic and len(decades) >= 2:
        return decades[:: -(-len(decades) // 5)]
    if logarithmic:
        return np.linspace(low, high, 4).tolist()
    step = _round_step((high - low) / _STEPS)
    return [step * k for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def _round_step(least: float) -> float:
    """Return the smallest of 1, 2, 2.5, 5 times a power of ten that is not below a number."""
    decade = 10.0 ** math.floor(math.log10(least))
    return next(decade * factor for factor in (1.0, 2.0, 2.5, 5.0, 10.0) if decade * factor >= least * (1.0 - 1e-9))


def number(value: float) -> str:
    """Write a number at an axis."""
    if value == 0.0:
        return "0"
    if abs(value) >= 1000.0:
        return f"{value:,.0f}"
    return f"{value:.3g}"
