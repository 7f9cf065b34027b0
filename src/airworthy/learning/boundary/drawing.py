"""Figures of a training's report as inline SVG; colours are the style sheet's."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.learning.boundary.errors import Skew, loss_minimum, loss_of

__all__ = ["histogram", "journal_chart", "loss_chart"]

Array = NDArray[np.float64]
WIDTH, HEIGHT = 460.0, 250.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 14.0, 26.0, 40.0
BINS_MOST = 80
PERCENT_MOST = 200.0
"""Beyond it errors are counted in the last bar."""
_TEXT = 'font-size="12" fill="var(--muted)" font-family="var(--sans)"'


@dataclass(frozen=True)
class Frame:
    """A plot's axes: values at its edges."""

    x0: float
    x1: float
    y0: float
    y1: float

    def at(self, x: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
        """Place on the page; what is above or below the frame is drawn at its edge."""
        u = (np.asarray(x, np.float64) - self.x0) / (self.x1 - self.x0)
        v = np.clip((np.asarray(y, np.float64) - self.y0) / (self.y1 - self.y0), 0.0, 1.0)
        return LEFT + u * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - v * (HEIGHT - TOP - BOTTOM)


def loss_chart(skew: Skew) -> str:
    """The loss of one error (eq. 9) with its minimum and its second zero marked; beside it the symmetric loss."""
    e = np.linspace(-0.3, 0.3, 241)
    value = loss_of(e, skew)
    at, least, crossing = loss_minimum(skew)
    room = float(np.ptp(value))
    frame = Frame(-0.3, 0.3, float(value.min()) - 0.2 * room, float(value.max()) + 0.05 * room)
    parts = [_axes(frame, [-0.3, -0.2, -0.1, 0.0, 0.1, 0.2, 0.3], "safe error e: too slow, too long to the right")]
    mean = 0.5 * (skew.safe + skew.unsafe)
    if skew.safe != skew.unsafe:
        other = loss_of(e, Skew(mean, mean, skew.alpha, skew.eps))
        parts.append(_path(frame, e, other, "axis", dashed=True))
    parts.append(_path(frame, e, value, "flown"))
    for x, y, colour, label in _marks(at, least, crossing):
        (u,), (v,) = frame.at([x], [y])
        parts.append(f'<circle cx="{u:.1f}" cy="{v:.1f}" r="4" fill="var(--{colour})"/>')
        below = colour == "bad"
        place = f'x="{u + 6:.1f}" y="{v + (20 if below else 15):.1f}" text-anchor="{"end" if below else "start"}"'
        parts.append(f"<text {place} {_TEXT}>{label}</text>")
    key = [(f"W_S {skew.safe:g}, W_U {skew.unsafe:g}", "flown", False)]
    key += [(f"both {mean:g}", "axis", True)] if skew.safe != skew.unsafe else []
    return _svg("Loss against the safe error", [*parts, _key(key)])


def _marks(at: float, least: float, crossing: float) -> list[tuple[float, float, str, str]]:
    if crossing == 0.0:
        return [(0.0, 0.0, "bad", "least: 0 at e = 0")]
    return [(at, least, "bad", f"least: {least:.5f} at e = {at:.4f}"), (crossing, 0.0, "second", f"zero again: {crossing:.4f}")]


def journal_chart(journal: Sequence[Mapping[str, Any]], best_epoch: int) -> str:
    """Loss by epoch, of the rows learnt from (with noise and dropout) and of those watched; the best epoch is marked."""
    if len(journal) < 2:
        return ""
    x = np.array([row["epoch"] for row in journal], np.float64)
    train, held = (np.array([row[key] for row in journal], np.float64) for key in ("train_loss", "held_out_loss"))
    every = np.concatenate([train, held])
    # The first epochs would flatten the rest.
    high, low = float(np.quantile(every, 0.97)), float(every.min())
    room = 0.06 * max(high - low, 1e-6)
    frame = Frame(float(x[0]), float(x[-1]), low - room, high + room)
    parts = [_axes(frame, np.unique(np.round(np.linspace(x[0], x[-1], 5))).tolist(), "epoch")]
    parts += [_path(frame, x, train, "second"), _path(frame, x, held, "flown")]
    if 0 < best_epoch <= len(journal):
        (u,), (v,) = frame.at([best_epoch], [held[best_epoch - 1]])
        parts.append(f'<circle cx="{u:.1f}" cy="{v:.1f}" r="4" fill="var(--bad)"/>')
    return _svg("Loss by epoch", [*parts, _key([("held out", "flown", False), ("learnt from", "second", False)])])


def histogram(title: str, percent: ArrayLike, unsafe_above: bool) -> str:
    """Counts of percent errors on a logarithmic axis, the unsafe side in another colour.

    Args:
        title: For those who do not see.
        percent: Any shape; what is not finite is left out.
        unsafe_above: Whether errors above zero are the unsafe ones (the speed's).
    """
    values = np.asarray(percent, np.float64).ravel()
    values = values[np.isfinite(values)]
    if not len(values):
        return ""
    edges = _edges(values)
    counts = np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0]
    top = max(1.0, math.log10(counts.max()))
    frame = Frame(float(edges[0]), float(edges[-1]), 0.0, top * 1.05)
    parts = [_axes(frame, _nice(edges), "error of the prediction [%]", decades=math.floor(top))]
    for low, high, count in zip(edges, edges[1:], counts, strict=False):
        if not count:
            continue
        # A bar of one is seen, too.
        (u0, u1), (v, _) = frame.at([low, high], [max(math.log10(count), 0.04 * top), 0.0])
        colour = "bad" if (low >= -1e-9) == unsafe_above else "second"
        box = f'x="{u0:.1f}" y="{v:.1f}" width="{max(u1 - u0 - 0.6, 0.6):.1f}" height="{HEIGHT - BOTTOM - v:.1f}"'
        parts.append(f'<rect {box} fill="var(--{colour})"/>')
    (u,), _ = frame.at([0.0], [0.0])
    parts.append(
        f'<line x1="{u:.1f}" x2="{u:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="var(--ink)" stroke-dasharray="3 3"/>'
    )
    return _svg(title, [*parts, _key([("safe", "second", False), ("unsafe", "bad", False)])])


def _edges(values: Array) -> Array:
    """Of bars, zero among them, as narrow as their number allows."""
    low, high = max(-100.0, float(values.min())), min(PERCENT_MOST, float(values.max()))
    low, high = min(low, -1e-6), max(high, 1e-6)
    for width in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0):
        first, last = math.floor(low / width), math.ceil(high / width)
        if last - first <= BINS_MOST:
            break
    edges: Array = np.asarray(np.arange(first, last + 1) * width, np.float64)
    return edges


def _nice(edges: Array) -> list[float]:
    """Up to nine round values between the edges."""
    return _round(float(edges[0]), float(edges[-1]), 8)


def _round(low: float, high: float, most: int) -> list[float]:
    """Round values from low to high, a few."""
    decade = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(s * decade for s in (1.0, 2.0, 5.0, 10.0) if (high - low) / (s * decade) <= most)
    return [k * step for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def _axes(frame: Frame, ticks: Sequence[float], across: str, decades: int = -1) -> str:
    """Grid lines and numbers; with decades, of a logarithmic axis upwards."""
    ups = list(range(decades + 1)) if decades >= 0 else _round(frame.y0, frame.y1, 5)
    parts = []
    for value in ups:
        _, (v,) = frame.at([frame.x0], [value])
        label = f"{10**value:,}" if decades >= 0 else f"{round(value, 9):g}"
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{v:.1f}" y2="{v:.1f}" stroke="var(--grid)"/>')
        parts.append(f'<text x="{LEFT - 7}" y="{v + 4:.1f}" text-anchor="end" {_TEXT}>{label}</text>')
    for value in ticks:
        (u,), _ = frame.at([value], [frame.y0])
        parts.append(f'<text x="{u:.1f}" y="{HEIGHT - BOTTOM + 15}" text-anchor="middle" {_TEXT}>{round(value, 6):g}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle:.1f}" y="{HEIGHT - 7}" text-anchor="middle" {_TEXT}>{html.escape(across)}</text>')
    return "".join(parts)


def _path(frame: Frame, x: Array, y: Array, colour: str, dashed: bool = False) -> str:
    points = " ".join(f"{u:.1f},{v:.1f}" for u, v in zip(*frame.at(x, y), strict=True))
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    return (
        f'<polyline points="{points}" fill="none" stroke="var(--{colour})" stroke-width="1.7" stroke-linejoin="round"{dash}/>'
    )


def _key(entries: Sequence[tuple[str, str, bool]]) -> str:
    parts, beside = [], LEFT
    for name, colour, dashed in entries:
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        line = f'stroke="var(--{colour})" stroke-width="3"{dash}'
        parts.append(f'<line x1="{beside:.1f}" x2="{beside + 18:.1f}" y1="10" y2="10" {line}/>')
        parts.append(f'<text x="{beside + 24:.1f}" y="14" {_TEXT}>{html.escape(name)}</text>')
        beside += 42.0 + 6.6 * len(name)
    return "".join(parts)


def _svg(title: str, parts: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img"><title>{html.escape(title)}</title>{"".join(parts)}</svg>'
