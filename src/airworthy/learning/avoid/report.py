"""The page of a policy that avoids: what it took, flights through one forest from above, and what became of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.files import write_text
from airworthy.evaluation import wilson_interval
from airworthy.learning.avoid.evaluation import CONTROL_RATE, ForestFlights
from airworthy.learning.avoid.flights import SLOWEST
from airworthy.learning.avoid.forests import AROUND, FOREST_LENGTH, FOREST_WIDTH
from airworthy.learning.gradient.report import flat_options
from airworthy.reports.page import card, fixed, interval, page_of
from airworthy.reports.svg import Line, lines

__all__ = ["COLUMNS", "FILM_FLIGHTS", "FilmedForest", "became_of", "forest_cells", "forest_svg", "write_avoid_report"]

FILM_FLIGHTS = 12
"""Ours: on film; more would hide one another."""
COLUMNS = (
    "top speed [m/s]",
    "m\N{SUPERSCRIPT TWO} per tree",
    "flights",
    "success [%]",
    "95 % interval",
    "touched [%]",
    "left [%]",
    "late [%]",
    "mean speed [m/s]",
)
_ROLES = ("flown", "second", "warn", "bad")
"""Of curves, from the slowest quarter of flights to the fastest."""
# Ours: a metre is 20 units of the view box, which whole units then draw to within 5 cm; 12 pictures a second look smooth.
_UNITS_PER_M, _PICTURES_PER_S = 20.0, 12.0
_TEXT = 'fill="var(--muted)" font-family="var(--sans)"'
_HIT = 7
"""Half a cross where something was touched, in units of the view box."""


@dataclass(frozen=True, eq=False)
class FilmedForest:
    """Flights of the film, and where."""

    speed: float
    """Top speed [m/s]."""
    area: float
    """Per tree [m^2]."""
    trunks: Array
    """x, y, radius [m], (trees, 3)."""
    flown: ForestFlights


def write_avoid_report(path: Path, found: Mapping[str, Any], metrics: Sequence[Mapping[str, Any]], film: FilmedForest) -> Path:
    """Write the page.

    Args:
        path: Of the page.
        found: What `summary.json` holds.
        metrics: Of the training log.
        film: Flights through one forest.
    """
    flown, protocol = film.flown, found["protocol"]
    blind = " Its image is blanked: it is the baseline of what seeing is worth." if found["options"]["blind"] else ""
    page = page_of(
        "airworthy.reports",
        "training.html.j2",
        brand="Airworthy flight through forests",
        title=f"Avoid, seed {found['seed']}",
        verdict="A policy that sees a depth image of 12 x 16 pixels and commands accelerations, learnt from nothing by the"
        " gradient of flights of a point mass. It is judged as a full rigid body at 1,000 Hz, with noisy depth, in forests that"
        f" no training has.{blind}",
        found=found,
        cards=_cards(found),
        curves=_curves(found, metrics),
        film={
            "title": "Through one forest, from above",
            "lede": f"{len(flown.success)} flights from left to right through the first forest of a tree per {film.area:g}"
            f" m\N{SUPERSCRIPT TWO}, top speed {film.speed:g} m/s, at true speed: {became_of(flown)}. Vehicles are drawn at"
            " twice their size. One forest is kinder than another: the"
            " figures below are over as many forests as flights.",
            "svg": forest_svg(film),
        },
        table_title="In unseen forests",
        lede="Success: within a metre of the goal behind the forest, nothing touched, never out of the forest's box, in 30 s."
        " Left: flew out of the box. Late: under way when time was over. Mean speed: through the forest, of those that came"
        f" through. {protocol['flights']:,} flights of each speed and density, every one in a forest of its own.",
        columns=COLUMNS,
        rows=[forest_cells(row) for row in found["flights"]],
        split=[
            (
                "learning",
                f"{fixed(found['training_wall_s'], 0)} s by the clock, {found['training_cpu_s']:.0f} s of processor time",
            ),
            ("judging", f"{fixed(found['seconds']['evaluate_s'], 0)} s by the clock"),
        ],
        options=flat_options(found["options"]),
    )
    return write_text(path, page)


def became_of(flown: ForestFlights) -> str:
    """Return how many flights of a film came to which end, and by which colour that is drawn; no end is told that none had.

    Args:
        flown: They.
    """
    late = ~(flown.success | flown.touched | flown.left)
    ends = (
        (flown.success, "came through (blue)"),
        (flown.touched, "touched something (red, a cross where)"),
        (flown.left, "flew out of the forest's box (orange)"),
        (late, "came too late (orange)"),
    )
    return ", ".join(f"{int(ended.sum())} {said}" for ended, said in ends if ended.any())


def forest_cells(row: Mapping[str, Any]) -> list[str]:
    """Write what became of flights of one speed and density as the cells of `COLUMNS`."""
    shares = [fixed(100.0 * row[name] / row["flights"], 1) for name in ("success", "touched", "left", "late")]
    low, high = row["success_interval_percent"]
    head = [f"{row['speed_m_s']:g}", f"{row['area_m2']:g}", f"{row['flights']:,}"]
    return [*head, shares[0], interval(low, high, 1), *shares[1:], fixed(row["mean_speed_m_s"], 2)]


def _cards(found: Mapping[str, Any]) -> list[dict[str, str]]:
    cards = [
        card(
            "learning took",
            fixed(found["training_wall_s"] / 60.0, 1),
            "min",
            f"{found['training_cpu_s']:.0f} s of processor time",
        )
    ]
    for speed in dict.fromkeys(row["speed_m_s"] for row in found["flights"]):
        rows = [row for row in found["flights"] if row["speed_m_s"] == speed]
        good, count = (sum(row[name] for row in rows) for name in ("success", "flights"))
        rate = wilson_interval(good, count)
        below = f"{good} of {count:,} flights, all densities; {interval(100.0 * rate.low, 100.0 * rate.high, 1)} %"
        cards.append(card(f"success at {speed:g} m/s", fixed(100.0 * good / count, 1), "%", below))
    return [*cards, card("decisions", fixed(1e-6 * found["env_steps"], 2), "million", "of all flights together")]


def _curves(found: Mapping[str, Any], metrics: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    minutes = [row["wall_s"] / 60.0 for row in metrics]

    def drawn(title: str, curves: Sequence[Line], logarithmic: bool = False) -> tuple[str, str]:
        return title, lines(title, "wall time [min]", curves, logarithmic)

    cost = Line("cost", "flown", [(x, row["cost"]) for x, row in zip(minutes, metrics, strict=True)])
    touched = [(x, 100.0 * row["touched_share"]) for x, row in zip(minutes, metrics, strict=True)]
    parts = len(metrics[0]["level"]) if metrics else 0
    # Top speeds are spread evenly from the slowest to half a metre per second above the fastest.
    step = (found["options"]["fastest"] + 0.5 - SLOWEST) / max(1, parts)
    levels = [
        Line(
            f"to {SLOWEST + step * (k + 1):.3g}",
            _ROLES[k % len(_ROLES)],
            [(x, 100.0 * row["level"][k]) for x, row in zip(minutes, metrics, strict=True)],
        )
        for k in range(parts)
    ]
    return [
        drawn("Cost per decision", [cost], True),
        drawn("Densities mastered, by top speed [m/s]; 100 % is the densest", levels),
        drawn("Flights that touched something in a window [%]", [Line("touched", "bad", touched)]),
    ]


def forest_svg(film: FilmedForest) -> str:
    """Draw flights from above, which move again and again at true speed, and their ways.

    Args:
        film: The flights.
    """
    flown, every = film.flown, max(1, round(CONTROL_RATE / _PICTURES_PER_S))
    # Of a decided flight the track stays where it was; the last instant is on film whatever the step.
    picked = np.unique(np.r_[np.arange(0, len(flown.track), every), len(flown.track) - 1])
    x, y = (_UNITS_PER_M * v for v in (flown.track[picked, :, 0] + AROUND, 0.5 * FOREST_WIDTH - flown.track[picked, :, 1]))
    across, along = np.rint(y).astype(int), np.rint(x).astype(int)
    wide, high = round(_UNITS_PER_M * (FOREST_LENGTH + 2.0 * AROUND)), round(_UNITS_PER_M * FOREST_WIDTH)
    seconds = max(1, len(flown.track) - 1) / CONTROL_RATE
    body = [
        f'<circle cx="{_UNITS_PER_M * (tx + AROUND):.0f}" cy="{_UNITS_PER_M * (0.5 * FOREST_WIDTH - ty):.0f}"'
        f' r="{_UNITS_PER_M * r:.1f}" fill="var(--axis)"/>'
        for tx, ty, r in film.trunks.tolist()
    ]
    for k in range(len(flown.success)):
        role = "bad" if flown.touched[k] else "flown" if flown.success[k] else "warn"
        moved = np.r_[True, (np.diff(along[:, k]) != 0) | (np.diff(across[:, k]) != 0)]
        way = " ".join(f"{a},{b}" for a, b in zip(along[moved, k], across[moved, k], strict=True))
        body.append(f'<path class="trail" d="M{way}" stroke="var(--{role})"/>')
        if flown.touched[k]:
            end = f"M{along[-1, k] - _HIT} {across[-1, k] - _HIT}"
            cross = f"{end}l{2 * _HIT} {2 * _HIT}m0 {-2 * _HIT}l{-2 * _HIT} {2 * _HIT}"
            body.append(f'<path d="{cross}" stroke="var(--bad)" stroke-width="2.5"/>')
        moves = "".join(
            f'<animate attributeName="{name}" dur="{seconds:g}s" repeatCount="indefinite"'
            f' values="{";".join(map(str, places[:, k].tolist()))}"/>'
            for name, places in (("cx", along), ("cy", across))
        )
        start = f'cx="{along[0, k]}" cy="{across[0, k]}"'
        body.append(f'<circle class="drone" {start} r="6" fill="var(--{role})">{moves}</circle>')
    # On the open ground before the forest, where no tree hides it.
    metre = f'<path d="M10 {high - 20}v4h{4 * _UNITS_PER_M:.0f}v-4" fill="none" stroke="var(--muted)" stroke-width="1.5"/>'
    words = f'<text x="10" y="{high - 26}" font-size="15" {_TEXT}>4 m</text>'
    told = escape(f"{len(flown.success)} flights through a forest from above, {int(flown.success.sum())} came through")
    return f'<svg class="top" viewBox="0 0 {wide} {high}" role="img"><title>{told}</title>{"".join(body)}{metre}{words}</svg>'
