"""Clocks: stamps on an even lattice, in whole nanoseconds, and counters that go on."""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import Array, ArrayAny
from airworthy.core.errors import AssetError

NS = 1_000_000_000
TIME_UNITS = {"s": NS, "ms": 1_000_000, "us": 1_000, "ns": 1}
"""Nanoseconds per unit of time."""
_LARGEST = float(2**62)
_PERIODS_MAX = 10.0
"""A longer step than this many periods begins another lattice: counting over it is a guess."""
_LATTICE_MIN = 20
_STEPS_TRIED = 4000
"""Ours: steps of a stream by which its period is sought."""
_EVEN = 0.3
"""Ours: least mean of the cosine of steps in periods; a jitter of 0.17 periods has it, steps at random have 0.03."""


def even_clock(stamps: Array, period: float) -> tuple[Array, float]:
    """Return stamps of an evenly sampled stream with jitter and drop-outs, put on the lattice that fits them best.

    Steps are counted one by one: jitter beyond a tenth of the period is miscounted now and then.

    Args:
        stamps: Increasing times [s], (n,).
        period: Roughly the sample period [s].

    Returns:
        Times on the lattice (n,), and its period.
    """
    # Two passes: the nominal period only has to count the samples that are missing in a gap.
    for _ in range(2):
        steps = np.maximum(np.round(np.diff(stamps) / period), 1.0)
        count = np.concatenate([[0.0], np.cumsum(steps)])
        period, start = np.polyfit(count, stamps, 1)
    return start + period * count, float(period)


def lattice(time: Array) -> tuple[Array, float]:
    """Return stamps without jitter, each run without long gaps on its own even lattice of one period, and their rate [Hz].

    Stamps of a stream that no lattice fits come back as they are, with rate 0.

    Args:
        time: [s], ascending, (n,).
    """
    steps = np.diff(time)
    if len(steps) < _LATTICE_MIN:
        return time, 0.0
    middle = float(np.median(steps))
    short = steps[steps < 5.0 * middle]
    short = short[:: max(1, len(short) // _STEPS_TRIED)]
    # The period whose multiples the steps are: late samples make the median of steps a poor guess.
    trials = middle * np.geomspace(0.8, 1.12, 400)
    fits = [float(np.mean(np.cos(2.0 * np.pi * short / period))) for period in trials]
    period = float(trials[int(np.argmax(fits))])
    if max(fits) < _EVEN:
        return time, 0.0
    cuts = np.flatnonzero(steps > _PERIODS_MAX * period) + 1
    runs, weights, periods = np.split(time, cuts), [], []
    out = []
    for run in runs:
        if len(run) < _LATTICE_MIN:
            out.append(run)
            continue
        even, found = _on_lattice(run, period)
        near = float(np.sqrt(np.mean(np.square(even - run)))) < 0.5 * period
        out.append(even if near else run)
        if near:
            weights.append((run[-1] - run[0]) ** 3)
            periods.append(found)
    if not periods:
        return time, 0.0
    made = np.concatenate(out)
    # Lattices of neighbouring runs may not pass each other.
    made = made if np.all(np.diff(made) > 0.0) else time
    return made, 1.0 / float(np.average(periods, weights=weights))


def _on_lattice(run: Array, period: float) -> tuple[Array, float]:
    """Return stamps on the even lattice that fits them best, and its period; jitter may be a fifth of it.

    Counted is from the start, not step by step: one that is miscounted would shift all that follow.
    """
    distance = 1
    while distance < len(run):
        # Ever longer spans tell the period ever better, and their counts stay certain.
        spans = run[distance:] - run[:-distance]
        count = np.maximum(np.round(spans / period), 1.0)
        period = float(np.median(spans / count))
        distance *= 8
    turns = (run - run[0]) / period
    phase = float(np.angle(np.mean(np.exp(2j * np.pi * turns)))) / (2.0 * np.pi)
    count = np.round(turns - phase)
    if np.any(np.diff(count) < 1.0):
        return even_clock(run, period)
    found, start = np.polyfit(count, run, 1)
    return start + found * count, float(found)


def nanoseconds(stamps: ArrayAny, unit: str, where: str) -> ArrayAny:
    """Return stamps as whole nanoseconds, int64, (n,).

    Args:
        stamps: Numbers of any type, (n,).
        unit: One of `TIME_UNITS`.
        where: File and variable, for the message.

    Raises:
        AssetError: A stamp is not finite, or beyond 146 years.
    """
    factor = TIME_UNITS[unit]
    stamps = np.asarray(stamps)
    if stamps.size and not (np.all(np.isfinite(stamps)) and float(np.abs(stamps.astype(np.float64)).max()) * factor < _LARGEST):
        bad = int(np.argmax(~(np.abs(stamps.astype(np.float64)) * factor < _LARGEST)))
        raise AssetError(f"{where}: stamp {bad} is {stamps[bad]!r} {unit}; expected a time within 146 years.")
    if stamps.dtype.kind in "iu":
        return stamps.astype(np.int64) * factor
    # Whole and broken part apart: seconds since 1970 in float64 have no more than 0.2 us, which is kept.
    whole = np.floor(stamps.astype(np.float64))
    return whole.astype(np.int64) * factor + np.rint((stamps - whole) * factor).astype(np.int64)


def unwrapped(stamps: ArrayAny, bits: int = 32) -> ArrayAny:
    """Return a counter of limited bits as one that goes on: each step back by over half of its range counts as one turn."""
    wide = np.asarray(stamps).astype(np.int64)
    turns = np.cumsum(np.diff(wide, prepend=wide[:1]) < -(1 << (bits - 1)))
    return wide + (turns << bits)
