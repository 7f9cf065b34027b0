"""One flight over time: how far its pilot's belief was off and how sure it was, and which gates it saw when."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny
from airworthy.race.report.crossings import FlownRace, lateral_errors, passage_time, position_errors
from airworthy.reports.drawing import DOTS, named_lines, sheet, top_key
from airworthy.reports.svg import PALETTE, inline_svg

NIS_SPAN = 0.5
"""Over which single frames' NIS are averaged [s]; ours: of 8 to 32 numbers a frame, one frame scatters by a third."""
_MARKERS = 4


def figure_belief(flight: FlownRace, name: str) -> str:
    """Return the error of position with the pilot's own 2 sigma, that of the next gate's lateral offset, and NIS.

    Args:
        flight: With telemetry; empty text where there is none to draw.
        name: Unique on the page.
    """
    said = flight.trace.said
    has_own, has_gate = "position" in said, "position" in said and "gates" in said
    parts = [has_own, has_gate, "nis" in said]
    if not any(parts):
        return ""
    tall = 0.6 + 1.25 * sum(parts)
    with sheet(tall) as figure:
        panels = figure.subplots(sum(parts), 1, sharex=True, squeeze=False)[:, 0]
        figure.subplots_adjust(left=0.055, right=0.985, top=1.0 - 0.32 / tall, bottom=0.38 / tall, hspace=0.42)
        left = iter(panels)
        if has_own:
            _own(next(left), flight)
        if has_gate:
            _to_gate(next(left), flight)
        if "nis" in said:
            _nis(next(left), flight)
        for axes in panels:
            _passages(axes, flight, names=axes is panels[0])
            axes.set_xlim(0.0, max(flight.end_s, 1.0))
        panels[-1].set_xlabel("time since arming [s]")
        top_key(
            figure,
            [
                ({"color": PALETTE["flown"], "linewidth": 1.3}, "error"),
                ({"color": PALETTE["muted"], "alpha": 0.35, "linewidth": 6.0}, "within 2 sigma, as the pilot has it"),
            ],
        )
        return inline_svg(figure, name, f"Errors of the pilot's belief over time, course {flight.course}")


def _own(axes: Any, flight: FlownRace) -> None:
    axes.set_title("Own position: distance between believed and true [cm]")
    error = 100.0 * np.linalg.norm(position_errors(flight), axis=1)
    sigma = flight.trace.said.get("position_sigma")
    if sigma is not None:
        # Of a distance in three axes: the root of their variances together.
        bound = 200.0 * np.linalg.norm(sigma.astype(np.float64), axis=1)
        axes.fill_between(flight.trace.time, 0.0, bound, color=PALETTE["muted"], alpha=0.25)
    axes.plot(flight.trace.time, error, color=PALETTE["flown"], linewidth=1.1)
    axes.set_ylim(0.0, _top(error))


def _to_gate(axes: Any, flight: FlownRace) -> None:
    axes.set_title("Next gate: lateral offset believed minus true [cm]")
    number = legs_of(flight)
    error, sigma = np.full(len(number), np.nan), np.full(len(number), np.nan)
    said = flight.trace.said.get("gate_sigma")
    for k in np.unique(number):
        mine = number == k
        error[mine] = 100.0 * lateral_errors(flight, int(k))[mine]
        if said is not None:
            sigma[mine] = 200.0 * said[mine, k]
    time = flight.trace.time
    # A line from one gate's error to the next one's would be none of either.
    breaks = np.flatnonzero(np.diff(number)) + 1
    for rows in np.split(np.arange(len(number)), breaks):
        axes.fill_between(time[rows], -sigma[rows], sigma[rows], color=PALETTE["muted"], alpha=0.25)
        axes.plot(time[rows], error[rows], color=PALETTE["flown"], linewidth=1.1)
    top = _top(np.abs(error))
    axes.set_ylim(-top, top)


def _nis(axes: Any, flight: FlownRace) -> None:
    axes.set_title(f"NIS per degree of freedom: dots frames, line mean of {NIS_SPAN:g} s; 1 is as sure as it should be")
    time, nis = flight.trace.time.astype(np.float64), flight.trace.said["nis"].astype(np.float64)
    # A frame without a beacon has no innovation; a pilot may go on saying its last one.
    known = np.isfinite(nis) & np.any(flight.trace.visible > 0, axis=1)
    mean = np.array([_mean(nis[(np.abs(time - now) <= 0.5 * NIS_SPAN) & known]) for now in time])
    axes.plot(time[known], nis[known], ".", color=PALETTE["flown"], markersize=2.0, alpha=0.45)
    axes.plot(time, mean, color=PALETTE["flown"], linewidth=1.2)
    axes.axhline(1.0, color=PALETTE["warn"], linewidth=0.9, linestyle=DOTS)
    axes.set_ylim(0.0, max(2.0, min(8.0, 1.1 * float(np.nanmax(mean)) if np.isfinite(mean).any() else 2.0)))


def _mean(values: Array) -> float:
    return float(np.mean(values)) if values.size else math.nan


def _top(error: Array) -> float:
    """Top of an axis of errors [cm] that most of the flight fills."""
    known = error[np.isfinite(error)]
    return max(2.0, 1.15 * float(np.quantile(known, 0.995))) if known.size else 2.0


def legs_of(flight: FlownRace) -> Array:
    """Return the number of the passage that comes next at each row, by the referee, (n,)."""
    counted = np.array([passage_time(item) for item in flight.row["passages"]])
    counted = np.where(np.isfinite(counted), counted, np.inf)
    # Missed ones are over with the passage behind them.
    over = np.minimum.accumulate(counted[::-1])[::-1]
    return np.minimum(np.searchsorted(over, flight.trace.time, side="right"), len(counted) - 1)


def _passages(axes: Any, flight: FlownRace, names: bool) -> None:
    """Mark when gates were passed, with their numbers along the upper edge."""
    for number, item in enumerate(flight.row["passages"], 1):
        time = passage_time(item)
        if math.isfinite(time):
            axes.axvline(time, color=PALETTE["axis"], linewidth=0.7)
            if names:
                axes.text(
                    time,
                    0.97,
                    f"{number} ",
                    transform=axes.get_xaxis_transform(),
                    fontsize=7.0,
                    color=PALETTE["muted"],
                    ha="right",
                    va="top",
                )
    axes.grid(axis="x", visible=False)


def figure_visibility(flight: FlownRace, name: str) -> str:
    """Return a bar per gate: when how many of its beacons were seen, and when it was passed.

    Args:
        flight: The flight.
        name: Unique on the page.
    """
    trace = flight.trace
    names = [f"{number}  {item['gate']}" for number, item in enumerate(flight.row["passages"], 1)]
    tall = 0.55 + 0.19 * len(names)
    with sheet(tall) as figure:
        axes = figure.add_axes((0.075, 0.38 / tall, 0.91, 1.0 - 0.65 / tall))
        for k, item in enumerate(flight.row["passages"]):
            for start, end, count in stretches(trace.time, bridged(trace.visible[:, k])):
                axes.barh(k, end - start, 0.72, left=start, color=PALETTE["flown"], alpha=0.25 * count)
            time = passage_time(item)
            if math.isfinite(time):
                axes.plot([time, time], [k - 0.45, k + 0.45], color=PALETTE["bad"], linewidth=1.6)
        named_lines(axes, names)
        axes.set_xlim(0.0, max(flight.end_s, 1.0))
        axes.set_xlabel("time since arming [s]")
        key: list[Any] = [
            ({"color": PALETTE["flown"], "alpha": 0.25 * count, "linewidth": 6.0}, f"{count} of 4")
            for count in range(1, _MARKERS + 1)
        ]
        top_key(figure, [*key, ({"color": PALETTE["bad"], "linewidth": 1.6}, "passed")])
        return inline_svg(figure, name, f"Beacons of each gate in view over time, course {flight.course}")


def bridged(counts: ArrayAny) -> ArrayAny:
    """Return counts in which no gap of one frame is left: a beacon that drops out of a frame was in view all the same.

    Args:
        counts: Of beacons in each frame, (n,).
    """
    if len(counts) < 3:
        return counts
    out = counts.copy()
    out[1:-1] = np.maximum(counts[1:-1], np.minimum(counts[:-2], counts[2:]))
    return out


def stretches(time: ArrayAny, counts: ArrayAny) -> list[tuple[float, float, int]]:
    """Return from when to when how many beacons were in view, where any were.

    Args:
        time: Of frames [s], (n,).
        counts: Of beacons, (n,).
    """
    if not len(time):
        return []
    cuts = [0, *(np.flatnonzero(np.diff(counts.astype(int))) + 1).tolist(), len(time)]
    # A frame stands for the time until the next one.
    frame = float(np.median(np.diff(time))) if len(time) > 1 else 0.0
    ends = np.append(time, time[-1] + frame)
    return [(float(time[a]), float(ends[b]), min(int(counts[a]), _MARKERS)) for a, b in pairwise(cuts) if counts[a] > 0]
