"""Curves of a training as inline SVG; colours are the style sheet's."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array

__all__ = ["TEXT", "Line", "lines", "number", "span"]

# Units of the SVG; two figures fit beside each other on a page.
WIDTH, HEIGHT = 420.0, 230.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 14.0, 12.0, 30.0
TEXT = 'font-size="12.5" fill="var(--muted)" font-family="var(--sans)"'


@dataclass(frozen=True)
class Line:
    """One curve."""

    name: str
    role: str
    """Colour of the style sheet: flown, second, warn, bad."""
    points: Sequence[tuple[float, float]]
    dashed: bool = False


def lines(title: str, across: str, curves: Sequence[Line], logarithmic: bool = True) -> str:
    """Curves over one axis, with a key; empty where no curve has two points.

    Args:
        title: For those who do not see.
        across: What the axis to the right counts.
        curves: Values that are not finite, or not positive on a logarithmic axis, are left out.
        logarithmic: Of the axis upwards.
    """
    kept = [(curve, _usable(curve.points, logarithmic)) for curve in curves]
    kept = [(curve, points) for curve, points in kept if len(points) >= 2]
    if not kept:
        return ""
    every = np.concatenate([points for _, points in kept])
    (x0, x1), (y0, y1) = span(every[:, 0]), span(every[:, 1])
    if not logarithmic:
        y0 = min(0.0, y0)
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
    for value, anchor in ((x0, "start"), (x1, "end")):
        x = float(at(np.array([[value, y0]]))[0, 0])
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - 9}" text-anchor="{anchor}" {TEXT}>{number(value)}</text>')
    middle = (room[0] + room[1]) / 2
    parts.append(f'<text x="{middle:.1f}" y="{HEIGHT - 9}" text-anchor="middle" {TEXT}>{html.escape(across)}</text>')
    offset = room[0]
    for curve, points in kept:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in at(points))
        dash = ' stroke-dasharray="5 4"' if curve.dashed else ""
        stroke = f'stroke="var(--{curve.role})" stroke-width="1.7"{dash}'
        parts.append(f'<polyline points="{path}" fill="none" stroke-linejoin="round" {stroke}/>')
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
    """Up to five; of a logarithmic axis the decades where there are two or more of them."""
    decades = [float(k) for k in range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1)]
    if logarithmic and len(decades) >= 2:
        return decades[:: -(-len(decades) // 5)]
    return np.linspace(low, high, 4).tolist()


def number(value: float) -> str:
    """Write a number at an axis."""
    if value == 0.0:
        return "0"
    if abs(value) >= 1000.0:
        return f"{value:,.0f}"
    return f"{value:.3g}"
