"""The search of gate-to-gate labels: counts of the whole grid, pruning, kernel and twin, speed (sections 5, 6 and 10)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import fields, replace

import numpy as np
from numpy.typing import NDArray

from airworthy.evaluation.verification.figure import Figure, below, zero
from airworthy.learning.gates.candidates import candidates, fastest, segment_admissible
from airworthy.learning.gates.craft import craft_for
from airworthy.learning.gates.draws import draw
from airworthy.learning.gates.kernel import fly_lanes
from airworthy.learning.gates.labels import Labels, label
from airworthy.learning.gates.lanes import Lanes, make_lanes
from airworthy.learning.gates.options import RANDOMISATIONS, Choices, SearchOptions
from airworthy.learning.gates.rollouts import fly, second_duration
from airworthy.learning.gates.situations import PAPER

__all__ = ["grid_figures", "oracle", "pruning_figures", "search_figures", "segment_figures", "speed_figures", "twin_figures"]

Array = NDArray[np.float64]

ADMISSIBLE, WITHOUT, SATURATED = 3_035_608, 912, 2_688
"""Of the published grid by the limit alone: candidates, situations without any, situations whose fastest takes over 2 s."""
FIRST, FIRST_KEPT, SECOND = 189_000, 73_553, 540
"""Distinct first segments, how many of them keep the limit, distinct second ones."""
T_MAX = 2.0
"""[s]"""
CHUNK = 12_960
"""Situations at once."""
PRUNED, ALL_PRUNED = 200, 2_000
"""Random situations that are searched both ways."""
SHORT = np.array(
    [
        [1.0, 0.3, 0.8, 0.4, 0.525, 0.8, -0.3, 0.3],
        [0.6, 0.525, 0.9, -0.5, 0.525, 0.8, 0.6, 0.525],
        [1.0, 0.3, 0.8, 0.0, 0.3, 0.8, 0.0, 0.3],
    ]
)
SHORT_SPEED, SHORT_TIME = np.array([1.4, 1.2, 1.6]), np.array([0.7, 1.0, 0.65])
"""Fast pairs over short legs: few steps, for the twin takes milliseconds for each [m/s, s]."""
ROLLOUTS = 4_096
"""Of the speed's measurement."""


def search_figures(everything: bool = False) -> Iterator[Figure]:
    """All of them.

    Args:
        everything: 2,000 situations are searched both ways instead of 200.
    """
    yield from grid_figures()
    yield from segment_figures()
    yield from pruning_figures(ALL_PRUNED if everything else PRUNED)
    yield from twin_figures()
    yield from speed_figures(8 * ROLLOUTS if everything else ROLLOUTS)


def oracle(situations: Array) -> Array:
    """Speed and duration of the fastest pair that the limit admits, (k, 2); NaN where there is none."""
    found = candidates(situations)
    choice = fastest(found)
    at = np.maximum(choice, 0)[:, None]
    pair = np.concatenate([np.take_along_axis(part, at, axis=1) for part in (found.v, found.t0)], axis=1)
    return np.where((choice >= 0)[:, None], pair, np.nan)


def _exactly(name: str, measured: int, wanted: int) -> Figure:
    return Figure(name, float(measured), f"{wanted:,}", measured == wanted)


# ---- the limit ------------------------------------------------------------------------------------------------------------


def grid_figures() -> Iterator[Figure]:
    """The whole published grid, 129,600 situations of 70 candidates, without simulation."""
    admissible = without = saturated = 0
    for at in range(0, PAPER.size, CHUNK):
        found = candidates(PAPER.situations(np.arange(at, min(at + CHUNK, PAPER.size))))
        times = np.where(found.admissible, found.t0, np.inf).min(axis=1)
        admissible += int(found.admissible.sum())
        without += int(np.isinf(times).sum())
        saturated += int((np.isfinite(times) & (times > T_MAX)).sum())
    yield _exactly("Gates 6: candidates of the grid that keep the limit", admissible, ADMISSIBLE)
    yield _exactly("Gates 6: situations without any", without, WITHOUT)
    yield _exactly("Gates 6: situations whose fastest takes more than 2 s", saturated, SATURATED)


def segment_figures() -> Iterator[Figure]:
    """Distinct segments of the grid, each judged once: first by (v_prev, d0, theta0, rise, candidate), second by (df, thetaf,
    rise, speed)."""
    c = Choices()
    v_prev, low, d0, theta0, high, df, thetaf, _ = (np.array(values) for values in PAPER.values)
    rises = np.unique(np.round(high[:, None] - low[None], 12))
    speeds, ratios = np.linspace(0.0, c.speed_max, c.speeds), np.linspace(c.ratio_min, c.ratio_max, c.ratios)
    v, d, turn, rise, speed, ratio = (x.ravel() for x in np.meshgrid(v_prev, d0, theta0, rises, speeds, ratios, indexing="ij"))
    total = v + speed
    pace = np.where(total > 0.0, 2.0 * d / np.where(total > 0.0, total, 1.0), 1.5) * ratio
    first = _kept(d, turn, rise, np.stack([v, 0.0 * v], 1), speed[:, None] * _along(turn), pace, c)
    yield _exactly("Gates 6: distinct first segments", first.size, FIRST)
    yield _exactly("Gates 6: distinct first segments that keep the limit", int(first.sum()), FIRST_KEPT)
    d, turn, rise, speed = (x.ravel() for x in np.meshgrid(df, thetaf, rises, speeds, indexing="ij"))
    second = _kept(d, turn, rise, np.stack([speed, 0.0 * speed], 1), np.zeros((len(d), 2)), second_duration(d, speed), c)
    yield _exactly("Gates 6: distinct second segments", second.size, SECOND)


def _along(turn: Array) -> Array:
    """Unit vectors of clockwise bearings, seen from a heading along x."""
    return np.stack([np.cos(turn), -np.sin(turn)], axis=1)


def _kept(d: Array, turn: Array, rise: Array, start: Array, end: Array, times: Array, c: Choices) -> NDArray[np.bool_]:
    leg = np.concatenate([d[:, None] * _along(turn), rise[:, None]], axis=1)
    parts = [slice(at, at + 16_384) for at in range(0, len(d), 16_384)]
    return np.concatenate([segment_admissible(leg[k], start[k], end[k], times[k], c) for k in parts])


# ---- the flights ----------------------------------------------------------------------------------------------------------


def pruning_figures(count: int) -> Iterator[Figure]:
    """Random situations of the grid, searched with pruning and exhaustively.

    Args:
        count: Of situations.
    """
    numbers = np.random.default_rng(1).choice(PAPER.size, count, replace=False)
    situations, options = PAPER.situations(numbers), SearchOptions()
    pruned = label(situations, options, numbers)
    full = label(situations, replace(options, exhaustive=True), numbers)
    other = np.zeros(count, bool)
    for item in fields(Labels):
        if item.name not in ("tried", "steps"):
            a, b = getattr(pruned, item.name), getattr(full, item.name)
            other |= (a != b) & ~((a != a) & (b != b))  # NaN is NaN
    yield zero(f"Gates 6: of {count:,} situations, other labels by pruning than exhaustively", int(other.sum()))
    share = 100.0 * float(pruned.tried.sum() / max(full.tried.sum(), 1))
    yield Figure("Gates 6: candidates that pruning still flew", share, "below 20", share < 20.0, "%")


def twin_figures() -> Iterator[Figure]:
    """The compiled flight beside its float64 twin, under strong randomisation."""
    options = SearchOptions(randomisation=RANDOMISATIONS["strong"])
    drawn = draw(craft_for(options), options.randomisation, 3, np.arange(len(SHORT)))
    ours, slow = (fly(SHORT, SHORT_SPEED, SHORT_TIME, options, draws=drawn, twin=twin) for twin in (False, True))
    gap = float(np.abs(ours.error_mean - slow.error_mean).max())
    # Positions in float32 lie within 1e-7 m; the loop damps what they add up to.
    yield below(f"Gates 10: mean errors of {len(SHORT)} flights off their float64 twin, worst", gap, 1e-5, "m")
    other = sum(int(np.sum(getattr(ours, name) != getattr(slow, name))) for name in ("steps", "crashed", "skipped"))
    yield zero("Gates 10: the same, steps, crashes and skipped gates that differ", other)


def speed_figures(rollouts: int) -> Iterator[Figure]:
    """How fast the fused flight is here: rollouts of the search's own mix of lengths, Table I's randomisation.

    Args:
        rollouts: How many.
    """
    options = SearchOptions()
    craft, lanes = craft_for(options), _lanes(options, rollouts)
    limit, walls, cores, steps = np.full(len(lanes), np.inf), [], [], 0
    for _ in range(2):
        begun, spent = time.perf_counter(), time.process_time()
        steps = int(fly_lanes(lanes, craft, options, limit)[1].sum())
        walls.append(time.perf_counter() - begun)
        cores.append(time.process_time() - spent)
    wall, core = max(min(walls), 1e-9), max(min(cores), 1e-9)
    asked = "not judged; asked for: over 5e7 on two cores"
    yield Figure("Gates: steps of the control loop per second, all cores by the clock", steps / wall, asked, True, "1/s")
    yield Figure("Gates: the same, per second of processor time", steps / core, "not judged", True, "1/s")
    yield Figure("Gates: rollouts per second, by the clock", len(lanes) / wall, "not judged", True, "1/s")


def _lanes(options: SearchOptions, count: int) -> Lanes:
    rng = np.random.default_rng(0)
    numbers = np.sort(rng.choice(PAPER.size, count, replace=False))
    situations = PAPER.situations(numbers)
    found = candidates(situations, options.choices)
    rows, choice = np.nonzero(found.admissible)
    kept = np.sort(rng.choice(len(rows), min(count, len(rows)), replace=False))
    rows, choice = rows[kept], choice[kept]
    craft = craft_for(options)
    drawn = draw(craft, options.randomisation, options.seed, numbers[rows])
    v, t0, tf = (getattr(found, name)[rows, choice] for name in ("v", "t0", "tf"))
    return make_lanes(situations[rows], v, t0, tf, drawn, craft, options)
