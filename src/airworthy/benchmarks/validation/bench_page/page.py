"""The page of a thrust stand: levels and curves with their bands, what is left of them, and what was found in words."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.files import make_folder, write_text
from airworthy.reports.drawing import sheet
from airworthy.reports.page import card, fixed, markup, page_of
from airworthy.reports.svg import PALETTE, inline_svg
from airworthy.vehicles.bench.levels import Levels
from airworthy.vehicles.bench.result import BenchFit

__all__ = ["write_bench_page"]

WIDE = 1.645
"""Deviations on either side that hold 90 %."""
MANY = 60
"""Levels from which on dots are small."""


def write_bench_page(folder: str | Path, fit: BenchFit, levels: Levels, command: str) -> Path:
    """Write report.html.

    Args:
        folder: Made if missing.
        fit: Of the stand.
        levels: That it was fitted to.
        command: That makes it again.

    Returns:
        The page.
    """
    if fit.sag is not None:
        levels = levels.at_voltage(fit.sag)
    figures = []
    over = "speed [rad/s]" if fit.state == "speed" else "command [1]"
    for name, curve, values, unit in (
        ("thrust", fit.thrust, levels.thrust, "N"),
        ("torque", fit.torque, levels.torque, "N m"),
    ):
        if curve is not None and values is not None:
            figures.append(
                (_curve(name, unit, levels.state, values, levels.rising, over, curve.at, curve.sd), f"{name} of a motor")
            )
            left = values - np.array([curve.at(float(s)) for s in levels.state])
            share = 100.0 * left / float(curve.at(curve.high))
            figures.append((_left(name, levels.state, share, levels.rising, over), "what is left, of the largest"))
    if fit.speed is not None and levels.command is not None and levels.speed is not None:
        speed = fit.speed
        factors = 1.0 if levels.voltage is None else np.array([speed.factor(float(v)) for v in levels.voltage])
        at_one = levels.speed / factors
        said = f"speed over command, taken to {speed.voltage:.3g} V" if speed.voltage else "speed over command"
        figures.append(
            (_curve("speed", "rad/s", levels.command, at_one, levels.rising, "command [1]", speed.at, speed.sd), said)
        )
    page = page_of(
        "airworthy.benchmarks.validation.bench_page",
        title=f"{fit.source.partition('[')[0]}: what a stand tells of a motor",
        verdict=f"{fit.levels} levels with motors on; errors are by groups of neighbouring levels.",
        cards=_cards(fit),
        figures=[(markup(figure), caption) for figure, caption in figures],
        transfer=f"{100.0 * fit.scale_error:.2g}",
        found=fit.sentences(),
        notes=list(fit.notes),
        command=command,
    )
    return write_text(make_folder(folder) / "report.html", page)


def _cards(fit: BenchFit) -> list[dict[str, str]]:
    cards = []
    if fit.thrust is not None:
        top = fit.thrust.high
        wide = 100.0 * math.hypot(fit.thrust.sd(top) / fit.thrust.at(top), fit.scale_error)
        cards.append(card("largest thrust", _digits(fit.thrust.at(top)), "N", f"+- {fixed(wide, 1)} % on a vehicle"))
    if fit.thrust is not None and fit.torque is not None:
        at = 0.7 * fit.thrust.high
        cards.append(card("torque over thrust", fixed(1e3 * fit.torque.at(at) / fit.thrust.at(at), 2), "mm"))
    if fit.speed is not None:
        below = f"at {fit.speed.voltage:.3g} V" if fit.speed.voltage else ""
        cards.append(card("full command", f"{fit.speed.at(1.0):.0f}", "rad/s", below))
    if fit.lag is not None:
        lag, sd = fit.lag.both
        cards.append(card("lag", fixed(1e3 * lag, 1), "ms", f"+- {fixed(1e3 * sd, 1)}, {fit.lag.steps} steps"))
    return cards


def _digits(value: float) -> str:
    return f"{value:.3g}"


def _dots(axes: Any, state: Array, values: Array, rising: Array) -> None:
    size = 3.4 if len(state) < MANY else 2.0
    edge = 0.03 * float(np.ptp(state))
    axes.set_xlim(float(state.min()) - edge, float(state.max()) + edge)
    for way, filled in ((1.0, True), (-1.0, False)):
        at = rising == way
        face = PALETTE["flown"] if filled else "none"
        axes.plot(state[at], values[at], "o", markersize=size, markeredgecolor=PALETTE["flown"], markerfacecolor=face)


def _curve(
    name: str,
    unit: str,
    state: Array,
    values: Array,
    rising: Array,
    over: str,
    at: Callable[[float], float],
    sd: Callable[[float], float],
) -> str:
    """Draw levels, the curve and its band."""
    line = np.linspace(float(state.min()), float(state.max()), 60)
    middle, wide = (np.array([f(float(s)) for s in line]) for f in (at, sd))
    with sheet(2.7, 4.4) as figure:
        axes = figure.subplots()
        axes.fill_between(line, middle - WIDE * wide, middle + WIDE * wide, color=PALETTE["second"], alpha=0.3, linewidth=0)
        axes.plot(line, middle, color=PALETTE["second"], linewidth=1.4)
        _dots(axes, state, values, rising)
        axes.set_title(f"{name} [{unit}]")
        axes.set_xlabel(over)
        axes.set_ylim(min(0.0, float(values.min())), None)
        figure.tight_layout()
        return inline_svg(figure, f"bench-{name}", f"{name} over {over}, with a 90 % band.")


def _left(name: str, state: Array, share: Array, rising: Array, over: str) -> str:
    """Draw what a curve leaves, in percent of its largest value."""
    with sheet(2.7, 4.4) as figure:
        axes = figure.subplots()
        axes.axhline(0.0, color=PALETTE["axis"], linewidth=0.8)
        _dots(axes, state, share, rising)
        axes.set_title(f"{name}: left over [%]")
        axes.set_xlabel(over)
        figure.tight_layout()
        return inline_svg(figure, f"bench-{name}-left", f"What is left of {name}, in percent of its largest.")
