"""Figures of open-loop predictions: errors over the horizon, responses, single windows, errors along the flight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from airworthy.benchmarks.validation.open_loop.judgement import BASELINES, JUDGED, MODELS, SHORT, response_pairs
from airworthy.benchmarks.validation.open_loop.prediction import CHANNELS
from airworthy.benchmarks.validation.open_loop.validate import LogValidation
from airworthy.reports.drawing import DASHES, DOTS, sheet, top_key, whisker
from airworthy.reports.svg import PALETTE, inline_svg
from airworthy.vehicles.identification.prediction.predict import STEP

__all__ = ["CHANNEL_UNITS", "along_figure", "errors_figure", "responses_figure", "windows_figure"]

LOOKS: dict[str, dict[str, Any]] = {
    MODELS[0]: {"color": PALETTE["flown"], "linewidth": 1.6},
    MODELS[1]: {"color": PALETTE["second"], "linewidth": 1.3},
    BASELINES[0]: {"color": PALETTE["muted"], "linewidth": 1.2, "linestyle": DASHES},
    BASELINES[1]: {"color": PALETTE["warn"], "linewidth": 1.0, "linestyle": DOTS},
}
CHANNEL_UNITS = {
    "rate": ("body rate", "rad/s", 1.0),
    "force": ("specific force along z", "m/s\N{SUPERSCRIPT TWO}", 1.0),
    "attitude": ("attitude", "deg", 180.0 / np.pi),
    "velocity": ("velocity", "m/s", 1.0),
    "position": ("position", "m", 1.0),
}
"""Words, unit and factor of each channel."""


def errors_figure(found: LogValidation, windows: str = "excited", name: str = "errors") -> str:
    """Draw errors over the horizon, one panel for each channel.

    Args:
        found: What was judged.
        windows: "excited" or "all".
        name: Unique on the page.
    """
    channels = [c for c in CHANNELS if c in found.errors]
    with sheet(2.6) as figure:
        panels = figure.subplots(1, len(channels), squeeze=False)[0]
        for axes, channel in zip(panels, channels, strict=True):
            words, unit, factor = CHANNEL_UNITS[channel]
            rows = [r for h in found.windows.horizons if (r := found.row(channel, windows, h)) is not None]
            time = [1e3 * r.horizon for r in rows]
            for model, look in LOOKS.items():
                told = [r.rms[model] for r in rows if model in r.rms]
                if not told:
                    continue
                axes.plot(time, [factor * e.value for e in told], marker="o", markersize=2.6, **look)
                for at, estimate in zip(time, told if model != BASELINES[1] else (), strict=model != BASELINES[1]):
                    whisker(axes, at, factor * estimate.low, factor * estimate.high, color=look["color"], linewidth=0.8)
            # A baseline that runs away must not flatten all others.
            shown = [factor * r.rms[m].value for r in rows for m in (MODELS[0], MODELS[1], BASELINES[0])]
            high = [factor * r.rms[MODELS[0]].high for r in rows]
            top = 1.15 * float(np.nanmax([*shown, *(h for h in high if np.isfinite(h) and h < 3.0 * max(shown))]))
            axes.set_ylim(0.0, top if top > 0.0 else 1.0)
            axes.set_xlim(0.0, 1.05 * max(time))
            axes.set_title(f"{words} [{unit}]")
            axes.set_xlabel("horizon [ms]")
        figure.tight_layout(rect=(0.0, 0.0, 1.0, 0.9))
        top_key(figure, [(look, model) for model, look in LOOKS.items()])
        return inline_svg(figure, name, "Root mean square errors over the horizon, of the vehicle and of what needs none.")


def responses_figure(found: LogValidation, name: str = "responses") -> str:
    """Draw what the log did over what the vehicle does, in a tenth of a second: lift, and turns about each axis.

    Args:
        found: What was judged.
        name: Unique on the page.
    """
    step, good = round(SHORT / STEP), ~found.predictions[MODELS[0]].diverged
    windows, made = found.windows, found.predictions[MODELS[0]]
    pairs = []
    if "force" in windows.measured:
        pairs.append(
            (
                "lift",
                "m/s\N{SUPERSCRIPT TWO}",
                made.force[good, 1 : step + 1, 2].mean(axis=1),
                windows.force[good, 1 : step + 1, 2].mean(axis=1),
            )
        )
    for k, axis in enumerate("xyz"):
        turned, turns = response_pairs(windows, made, found.predictions[MODELS[1]], k)
        pairs.append((f"turn {axis}", "rad/s", turns, turned))
    ratios = {m.quantity: m.ratio for m in found.mismatches}
    with sheet(3.0) as figure:
        for axes, (word, unit, x, y) in zip(figure.subplots(1, len(pairs), squeeze=False)[0], pairs, strict=True):
            axes.scatter(x, y, s=5, color=PALETTE["flown"], alpha=0.45, linewidths=0.0)
            # Of turns both directions count: the middle is in the middle.
            ends = np.percentile(np.concatenate([x, y]), [0.5, 99.5])
            ends = ends if word == "lift" else np.array([-1.0, 1.0]) * np.abs(ends).max()
            reach = max(float(np.ptp(ends)), 1e-3)
            low, high = float(ends[0]) - 0.05 * reach, float(ends[1]) + 0.05 * reach
            axes.plot([low, high], [low, high], color=PALETTE["muted"], linewidth=1.0, linestyle=DASHES)
            ratio = ratios[word].value
            if np.isfinite(ratio):
                axes.plot([low, high], [ratio * low, ratio * high], color=PALETTE["bad"], linewidth=1.1)
            axes.set_xlim(low, high)
            axes.set_ylim(low, high)
            axes.set_aspect("equal")
            axes.set_title(f"{word}: {ratio:.2f}")
            axes.set_xlabel(f"vehicle [{unit}]")
        figure.axes[0].set_ylabel("log")
        figure.tight_layout(rect=(0.0, 0.0, 1.0, 0.97))
        return inline_svg(figure, name, "Lift and turns of the log over those of the vehicle.")


def windows_figure(found: LogValidation, chosen: Sequence[int], name: str = "windows") -> str:
    """Draw single windows: the rate about the axis that turns most, as it was and as it was predicted.

    Args:
        found: What was judged.
        chosen: Windows.
        name: Unique on the page.
    """
    windows = found.windows
    time = 1e3 * STEP * np.arange(windows.steps + 1)
    columns = 4
    rows = -(-len(chosen) // columns)
    with sheet(1.9 * rows + 0.3) as figure:
        grid = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes in grid[len(chosen) :]:
            axes.set_axis_off()
        for axes, k in zip(grid, chosen, strict=False):
            rate = windows.rate[k]
            axis = int(np.argmax(np.ptp(rate, axis=0)))
            for model in MODELS:
                axes.plot(time, found.predictions[model].rate[k, :, axis], **LOOKS[model])
            axes.axhline(rate[0, axis], **LOOKS[BASELINES[0]])
            axes.plot(time, rate[:, axis], color=PALETTE["ink"], linewidth=1.6)
            span = max(float(np.ptp(rate[:, axis])), 0.2)
            axes.set_ylim(rate[:, axis].min() - 0.7 * span, rate[:, axis].max() + 0.7 * span)
            flight = found.flights[int(windows.flight[k])].name
            axes.set_title(f"{flight} {windows.start[k]:.2f} s, about {'xyz'[axis]}", fontsize=7.5)
        for axes in grid[: len(chosen)][-columns:]:
            axes.set_xlabel("ms")
        for axes in grid[::columns]:
            axes.set_ylabel("rad/s")
        figure.tight_layout(rect=(0.0, 0.0, 1.0, 1.0 - 0.22 / (1.9 * rows + 0.3)))
        key = [({"color": PALETTE["ink"], "linewidth": 1.6}, "log"), *((LOOKS[m], m) for m in (*MODELS, BASELINES[0]))]
        top_key(figure, key)
        return inline_svg(figure, name, "Measured and predicted body rates of single windows.")


def typical(found: LogValidation, count: int) -> list[int]:
    """Return windows whose error of the rate is a usual one: evenly between the quartiles, in the order of their starts.

    Args:
        found: What was judged.
        count: Of windows.
    """
    errors = np.nan_to_num(found.errors["rate"][MODELS[0]][:, -1], nan=np.inf)
    order = np.argsort(errors, kind="stable")
    share = np.linspace(0.25, 0.75, min(count, len(order)))
    return sorted({int(order[round(s * (len(order) - 1))]) for s in share})


def along_figure(found: LogValidation, name: str = "along") -> str:
    """Draw the rate's error along the flights, and how errors about each axis are distributed.

    Args:
        found: What was judged.
        name: Unique on the page.
    """
    windows = found.windows
    k = int(np.argmin(np.abs(np.array(windows.horizons) - JUDGED)))
    step = round(windows.horizons[k] / STEP)
    residual = found.predictions[MODELS[0]].rate[:, step] - windows.rate[:, step]
    held = windows.rate[:, 0] - windows.rate[:, step]
    with sheet(2.7) as figure:
        panels = figure.subplots(1, 2, width_ratios=(2.4, 1.0))
        offset = 0.0
        for flight in range(len(found.flights)):
            which = windows.flight == flight
            at = windows.start[which] - windows.start[which].min() + offset
            order = np.argsort(at)
            for name_of, look in ((BASELINES[0], LOOKS[BASELINES[0]]), (MODELS[0], LOOKS[MODELS[0]])):
                values = found.errors["rate"][name_of][which, k]
                panels[0].plot(at[order], values[order], **{**look, "linewidth": 1.0})
            if flight:
                panels[0].axvline(offset, color=PALETTE["axis"], linewidth=0.8)
            panels[0].annotate(
                found.flights[flight].name, (offset, 0.98), xycoords=("data", "axes fraction"), fontsize=7, va="top",
                color=PALETTE["muted"],
            )  # fmt: skip
            offset = float(at.max()) + 1.0
        panels[0].set_ylim(0.0, None)
        panels[0].set_title(f"error of the rate {1e3 * windows.horizons[k]:.0f} ms ahead [rad/s]")
        panels[0].set_xlabel("seconds of what is judged")
        reach = float(np.percentile(np.abs(np.concatenate([residual, held])), 98)) or 1.0
        edges = np.linspace(-reach, reach, 31)
        for axis, color in zip(range(3), ("flown", "second", "warn"), strict=True):
            counts, _ = np.histogram(residual[:, axis], edges, density=True)
            panels[1].step(0.5 * (edges[1:] + edges[:-1]), counts, where="mid", color=PALETTE[color], label="xyz"[axis])
        counts, _ = np.histogram(held.ravel(), edges, density=True)
        panels[1].step(0.5 * (edges[1:] + edges[:-1]), counts, where="mid", label="held", **LOOKS[BASELINES[0]])
        panels[1].set_title("its distribution about each axis")
        panels[1].set_xlabel("vehicle less log [rad/s]")
        panels[1].set_yticks([])
        panels[1].legend(loc="upper right")
        figure.tight_layout(rect=(0.0, 0.0, 1.0, 0.94))
        top_key(figure, [(LOOKS[m], m) for m in (MODELS[0], BASELINES[0])])
        return inline_svg(figure, name, "Errors of the rate along the flights, and their distribution.")
