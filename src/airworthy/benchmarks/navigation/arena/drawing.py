"""Pictures of the arena's page: bars with intervals in tables, and success against speed. SVG whose colours are the page's."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from airworthy.benchmarks.navigation.arena.ranking import Standing
from airworthy.reports.svg import TEXT

__all__ = ["SpeedPoint", "rate_line", "speed_figure"]

_ACROSS = "mean speed of flights that arrived [m/s]"
_BAR = (150.0, 16.0)
"""Width and height of a bar of the table."""
_WIDE, _HIGH = 1040.0, 360.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 52.0, 18.0, 26.0, 42.0


def rate_line(value: float, low: float, high: float, colour: str) -> str:
    """Return a bar of a share of 1 with its interval; bounds that are not finite are left out.

    Args:
        value: 0 to 1.
        low: Lower bound.
        high: Upper bound.
        colour: Name of a colour of the page.
    """
    width, height = _BAR
    middle = 0.5 * height
    parts = [
        f'<rect x="0" y="{middle - 3:g}" width="{width:g}" height="6" rx="3" fill="var(--rule)"/>',
        f'<rect x="0" y="{middle - 3:g}" width="{max(width * value, 1.5):.1f}" height="6" rx="3" fill="var(--{colour})"/>',
    ]
    if isfinite(low) and isfinite(high):
        ends = width * low, width * high
        parts.append(f'<path d="M{ends[0]:.1f} {middle:g}H{ends[1]:.1f}" stroke="var(--ink)" stroke-width="1.4"/>')
        parts += [f'<path d="M{x:.1f} {middle - 4:g}v8" stroke="var(--ink)" stroke-width="1.4"/>' for x in ends]
    words = f"{100 * value:.0f} %"
    return f'<svg class="rate" viewBox="-1 0 {width + 2:g} {height:g}" role="img"><title>{words}</title>{"".join(parts)}</svg>'


@dataclass(frozen=True)
class SpeedPoint:
    """A pilot in the picture."""

    title: str
    colour: str
    speed: Standing
    """Of flights that arrived [m/s]."""
    success: Standing


def speed_figure(points: Sequence[SpeedPoint]) -> str:
    """Return success upwards against the mean speed of flights that arrived, with the intervals of both; "" without a pilot.

    Args:
        points: A pilot each.
    """
    if not points:
        return ""
    most = max(_upper(point.speed) for point in points)
    end = float(max(1, -int(-most // 1)))
    step = 0.5 if end <= 4.0 else 1.0
    parts = []
    for k in range(6):
        y = _y(0.2 * k)
        parts.append(f'<path d="M{_LEFT:g} {y:.1f}H{_WIDE - _RIGHT:g}" stroke="var(--grid)"/>')
        parts.append(f'<text x="{_LEFT - 8:g}" y="{y + 4:.1f}" text-anchor="end" {TEXT}>{20 * k}</text>')
    for k in range(int(end / step) + 1):
        x = _x(step * k, end)
        parts.append(f'<text x="{x:.1f}" y="{_HIGH - _BOTTOM + 18:g}" text-anchor="middle" {TEXT}>{step * k:g}</text>')
    parts.append(f'<text x="{_WIDE - _RIGHT:g}" y="{_HIGH - 6:g}" text-anchor="end" {TEXT}>{_ACROSS}</text>')
    parts.append(f'<text x="{_LEFT:g}" y="{_HIGH - 6:g}" {TEXT}>success [%], upwards</text>')
    for point, label in zip(points, _label_heights(points, end), strict=True):
        parts += _pilot(point, end, label)
    title = "Success against the mean speed of flights that arrived"
    return f'<svg viewBox="0 0 {_WIDE:g} {_HIGH:g}" role="img"><title>{title}</title>{"".join(parts)}</svg>'


def _pilot(point: SpeedPoint, end: float, label: float) -> list[str]:
    """Draw one pilot: its intervals, its dot, its name."""
    x, y = _x(point.speed.value, end), _y(point.success.value)
    line = f'stroke="var(--{point.colour})" stroke-width="1.6"'
    parts = []
    if isfinite(point.speed.low) and isfinite(point.speed.high):
        parts.append(f'<path d="M{_x(point.speed.low, end):.1f} {y:.1f}H{_x(point.speed.high, end):.1f}" {line}/>')
    if isfinite(point.success.low) and isfinite(point.success.high):
        parts.append(f'<path d="M{x:.1f} {_y(point.success.low):.1f}V{_y(point.success.high):.1f}" {line}/>')
    parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5.5" fill="var(--{point.colour})"/>')
    anchor, offset = ("end", -10.0) if x > 0.72 * _WIDE else ("start", 10.0)
    look = 'font-size="12.5" font-weight="600" font-family="var(--sans)"'
    parts.append(
        f'<text x="{x + offset:.1f}" y="{label:.1f}" text-anchor="{anchor}" {look} fill="var(--{point.colour})">'
        f"{html.escape(point.title)}</text>"
    )
    return parts


def _label_heights(points: Sequence[SpeedPoint], end: float) -> list[float]:
    """Return where names stand: beside their dots, moved up where another name would be written over."""
    heights: list[float] = []
    placed: list[tuple[float, float]] = []
    for point in points:
        x, y = _x(point.speed.value, end), _y(point.success.value) - 8.0
        while any(abs(x - other) < 170.0 and abs(y - height) < 15.0 for other, height in placed):
            y -= 15.0
        placed.append((x, y))
        heights.append(y)
    return heights


def _upper(item: Standing) -> float:
    return item.high if isfinite(item.high) else item.value


def _x(speed: float, end: float) -> float:
    return _LEFT + speed / end * (_WIDE - _LEFT - _RIGHT)


def _y(share: float) -> float:
    return _HIGH - _BOTTOM - share * (_HIGH - _TOP - _BOTTOM)
