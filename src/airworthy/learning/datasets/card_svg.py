"""Small figures of a data set's card as SVG; colours are the style sheet's."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayLike

__all__ = ["Panel", "histogram", "time_bar"]

WIDTH, HEIGHT = 250.0, 132.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 10.0, 10.0, 26.0, 20.0
# Ours: six units a bar, as fine as the panel shows.
BINS = 40


@dataclass(frozen=True)
class Panel:
    """A histogram to draw."""

    title: str
    unit: str
    values: ArrayLike
    marks: tuple[float, ...] = ()
    """Values marked by a dashed line: nominal ones, limits."""
    bounds: tuple[float, float] | None = None
    """What the axis shows at least."""


def histogram(panel: Panel) -> str:
    """Return one panel, (250 x 132) units."""
    values = np.asarray(panel.values, np.float64)
    values = values[np.isfinite(values)]
    low, high = _range(values, panel)
    counts, edges = np.histogram(np.clip(values, low, high), BINS, (low, high))
    x = _LEFT + (edges - low) / (high - low) * (WIDTH - _LEFT - _RIGHT)
    floor, room = HEIGHT - _BOTTOM, HEIGHT - _BOTTOM - _TOP
    tall = room * counts / max(int(counts.max()), 1)
    bars = "".join(
        f'<rect x="{a:.2f}" y="{floor - h:.2f}" width="{b - a + 0.05:.2f}" height="{h:.2f}"/>'
        for a, b, h in zip(x[:-1], x[1:], tall, strict=True)
        if h > 0.0
    )
    at = {
        value: _LEFT + (value - low) / (high - low) * (WIDTH - _LEFT - _RIGHT) for value in (*panel.marks, *_ticks(low, high))
    }
    dashes = "".join(
        f'<line class="mark" x1="{at[value]:.2f}" x2="{at[value]:.2f}" y1="{_TOP - 4}" y2="{floor}"/>'
        for value in panel.marks
        if low <= value <= high
    )
    ticks = "".join(
        f'<line class="axis" x1="{at[value]:.2f}" x2="{at[value]:.2f}" y1="{floor}" y2="{floor + 3}"/>'
        f'<text x="{at[value]:.2f}" y="{floor + 13}">{_number(value)}</text>'
        for value in _ticks(low, high)
    )
    unit = f' <tspan class="unit">[{html.escape(panel.unit)}]</tspan>' if panel.unit else ""
    label = f"{panel.title}: mean {values.mean():.3g}, {len(values):,} values" if len(values) else panel.title
    return (
        f'<svg class="panel" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img"><title>{html.escape(label)}</title>'
        f'<text class="title" x="{_LEFT}" y="13">{html.escape(panel.title)}{unit}</text>'
        f'<g class="bars">{bars}</g><line class="axis" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{floor}" y2="{floor}"/>'
        f"{dashes}{ticks}</svg>"
    )


def time_bar(seconds: Mapping[str, float]) -> str:
    """Return shares of time as one bar with its key, HTML."""
    total = sum(seconds.values()) or 1.0
    parts = [(name, value) for name, value in seconds.items() if value > 0.0]
    bar = "".join(f'<i class="stage{k % 5}" style="flex:{value / total:.4f}"></i>' for k, (_, value) in enumerate(parts))
    key = "".join(
        f'<li><i class="stage{k % 5}"></i>{html.escape(name)} {value:,.1f} s ({100.0 * value / total:.0f} %)</li>'
        for k, (name, value) in enumerate(parts)
    )
    return f'<div class="bar">{bar}</div><ul class="key">{key}</ul>'


def _range(values: Array, panel: Panel) -> tuple[float, float]:
    """Return what the axis shows: all but the outermost thousandths, which are counted in the outermost bars."""
    shown = [*panel.marks, *(panel.bounds or ())]
    if len(values):
        shown += np.quantile(values, (0.001, 0.999)).tolist()
    low, high = (min(shown), max(shown)) if shown else (0.0, 1.0)
    if high - low < 1e-9 * max(1.0, abs(high)):
        low, high = low - 0.5, high + 0.5
    # So that bars at the ends do not touch the frame.
    room = 0.02 * (high - low)
    return low - room, high + room


def _ticks(low: float, high: float) -> Sequence[float]:
    """Return three to six round numbers."""
    step = 10.0 ** math.floor(math.log10((high - low) / 3.0))
    step *= max((k for k in (1, 2, 5) if (high - low) / (step * k) >= 2.5), default=1)
    first = math.ceil(low / step)
    return [k * step for k in range(first, math.floor(high / step) + 1)]


def _number(value: float) -> str:
    return f"{round(value, 10) + 0.0:.6g}".replace("-", "\N{MINUS SIGN}")
