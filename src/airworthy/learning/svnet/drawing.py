"""Figures of a training's report as inline SVG; colours are the style sheet's."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Line", "lines", "scatter"]

Array = NDArray[np.float64]
WIDTH, HEIGHT = 420.0, 230.0
SIDE = 250.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 14.0, 12.0, 30.0
POINTS_MOST = 600
_TEXT = 'font-size="12.5" fill="var(--muted)" font-family="var(--sans)"'


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
    (x0, x1), (y0, y1) = _span(every[:, 0]), _span(every[:, 1])
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
        label = _number(10.0**value if logarithmic else value)
        parts.append(f'<line x1="{room[0]}" x2="{room[1]}" y1="{y:.1f}" y2="{y:.1f}" stroke="var(--grid)"/>')
        parts.append(f'<text x="{room[0] - 7}" y="{y + 4:.1f}" text-anchor="end" {_TEXT}>{label}</text>')
    for value, anchor in ((x0, "start"), (x1, "end")):
        x = float(at(np.array([[value, y0]]))[0, 0])
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - 9}" text-anchor="{anchor}" {_TEXT}>{_number(value)}</text>')
    middle = (room[0] + room[1]) / 2
    parts.append(f'<text x="{middle:.1f}" y="{HEIGHT - 9}" text-anchor="middle" {_TEXT}>{html.escape(across)}</text>')
    beside = room[0]
    for curve, points in kept:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in at(points))
        dash = ' stroke-dasharray="5 4"' if curve.dashed else ""
        stroke = f'stroke="var(--{curve.role})" stroke-width="1.7"{dash}'
        parts.append(f'<polyline points="{path}" fill="none" stroke-linejoin="round" {stroke}/>')
        parts.append(f'<line x1="{beside:.1f}" x2="{beside + 18:.1f}" y1="{TOP - 2}" y2="{TOP - 2}" {stroke}/>')
        parts.append(f'<text x="{beside + 24:.1f}" y="{TOP + 2}" {_TEXT}>{html.escape(curve.name)}</text>')
        beside += 38.0 + 7.0 * len(curve.name)
    return f'<svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img"><title>{html.escape(title)}</title>{"".join(parts)}</svg>'


def scatter(title: str, true: ArrayLike, told: ArrayLike, role: str = "flown") -> str:
    """Predicted over true values, with the diagonal on which they agree; evenly chosen points where there are many."""
    x, y = np.asarray(true, np.float64), np.asarray(told, np.float64)
    fine = np.isfinite(x) & np.isfinite(y)
    x, y = x[fine], y[fine]
    if len(x) < 2:
        return ""
    some = np.unique(np.linspace(0, len(x) - 1, min(len(x), POINTS_MOST)).astype(int))
    low, high = _span(np.concatenate([np.quantile(v, (0.001, 0.999)) for v in (x, y)]))
    room = (50.0, SIDE - 8.0, SIDE - 26.0, 8.0)

    def at(values: Array, horizontal: bool) -> Array:
        share = np.clip((values - low) / (high - low), 0.0, 1.0)
        return room[0] + share * (room[1] - room[0]) if horizontal else room[2] - share * (room[2] - room[3])

    dots = "".join(
        f'<circle cx="{a:.1f}" cy="{b:.1f}" r="1.6"/>' for a, b in zip(at(x[some], True), at(y[some], False), strict=True)
    )
    x0, x1, y0, y1 = room
    box = f'x="{x0}" y="{y1}" width="{x1 - x0}" height="{y0 - y1}"'
    frame = f'<rect {box} fill="none" stroke="var(--grid)"/>'
    diagonal = f'<line x1="{x0}" y1="{y0}" x2="{x1}" y2="{y1}" stroke="var(--axis)" stroke-dasharray="4 4"/>'
    words = "".join(
        f'<text x="{a}" y="{b}" text-anchor="{anchor}" {_TEXT}>{text}</text>'
        for a, b, anchor, text in (
            (room[0], SIDE - 9.0, "start", _number(low)),
            (room[1], SIDE - 9.0, "end", _number(high)),
            ((room[0] + room[1]) / 2, SIDE - 9.0, "middle", "expert" if role == "flown" else "true"),
            (room[0] - 6.0, room[2], "end", _number(low)),
            (room[0] - 6.0, room[3] + 10.0, "end", _number(high)),
        )
    )
    inside = f'{frame}{diagonal}<g fill="var(--{role})" fill-opacity="0.45">{dots}</g>{words}'
    return f'<svg viewBox="0 0 {SIDE:g} {SIDE:g}" role="img"><title>{html.escape(title)}</title>{inside}</svg>'


def _usable(points: Sequence[tuple[float, float]], logarithmic: bool) -> Array:
    found = np.array([p for p in points if p[1] is not None], np.float64).reshape(-1, 2)
    found = found[np.isfinite(found).all(axis=1) & ((found[:, 1] > 0.0) | (not logarithmic))]
    if logarithmic:
        found[:, 1] = np.log10(found[:, 1])
    return found


def _span(values: Array) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    room = 0.03 * (high - low) if high - low > 1e-9 * max(1.0, abs(high)) else 0.5
    return (low, high) if room != 0.5 else (low - room, high + room)


def _ticks(low: float, high: float, logarithmic: bool) -> list[float]:
    """Up to five; of a logarithmic axis the decades where there are two or more of them."""
    decades = [float(k) for k in range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1)]
    if logarithmic and len(decades) >= 2:
        return decades[:: -(-len(decades) // 5)]
    return np.linspace(low, high, 4).tolist()


def _number(value: float) -> str:
    if value == 0.0:
        return "0"
    if abs(value) >= 1000.0:
        return f"{value:,.0f}"
    return f"{value:.3g}"
