"""Matplotlib figures as inline SVG. Colours and fonts come from the page's style sheet: one figure suits light and dark."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

__all__ = ["FIGURE_WIDTH", "PALETTE", "STYLE", "figure_style", "inline_svg", "themed"]

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
