"""How far to trust the rates of a benchmark: stratified bootstrap, paired differences, rank correlation, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from statistics import NormalDist
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayInt, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.evaluation.statistics import Estimate, rank_correlation
from airworthy.scenes.generators.seeding import generator

__all__ = ["RESAMPLES", "layout_difference", "paired_difference", "spearman", "stratified_rate"]

Row = Mapping[str, Any]
RESAMPLES, CONFIDENCE = 1000, 0.95
FEW = 30
"""Fewer layouts than these, and a bootstrap over them alone is too narrow."""
CORRELATED_MIN = 8
"""Fewer pairs than these, and a rank correlation has no interval worth printing."""
NAN = float("nan")


def stratified_rate(
    rows: Sequence[Row],
    stratum: str,
    *,
    shared_layouts: bool = False,
    seed: int = 0,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> Estimate:
    """Return the mean success over strata, each of the same weight, with its bootstrap percentile interval.

    Strata are kept; within each, configurations are drawn with replacement (the second level), and within each of these its
    repeats. Drawing n of n makes the spread of a stratum's mean too small by sqrt((n - 1) / n); the tails are widened by as
    much. Where there are few layouts, or all succeeded or failed, resampling cannot show what was not seen: there the interval
    is at least Wilson's for as many flights as there are layouts, so that five of five is 57 to 100 %.

    Args:
        rows: With the columns `stratum`, "scenario", "configuration", "success".
        stratum: "vehicle" for the rate of a scenario, "scenario" for that of a vehicle.
        shared_layouts: Draw the configurations once for all strata: they were flown by all vehicles, and what is asked is how
            the rate would move with other layouts. Wider.
        seed: Of the drawing.
        resamples: B.
        confidence: Of the interval.

    Returns:
        NaN bounds where there is too little.
    """
    table, repeats = _layout_means(rows, stratum)
    if not table.size:
        return Estimate(NAN, NAN, NAN)
    with np.errstate(invalid="ignore"):
        value = float(np.mean(np.nanmean(table, axis=1)))
    sizes = np.sum(np.isfinite(table), axis=1)
    if sizes.min() < 2:
        return Estimate(value, NAN, NAN)
    independent = int(np.sum(np.isfinite(table).any(axis=0)) if shared_layouts else sizes.sum())
    wilson = _wilson(value, independent, confidence)
    if np.all(table[np.isfinite(table)] == value) and (value in (0.0, 1.0) or repeats.max() <= 1):
        return wilson
    rng = generator("benchmark bootstrap", stratum, seed)
    draws = _means(table, repeats, rng, resamples, shared_layouts)
    tail = NormalDist().cdf(-NormalDist().inv_cdf(0.5 + 0.5 * confidence) * sqrt(sizes.mean() / (sizes.mean() - 1.0)))
    low, high = (float(bound) for bound in np.quantile(draws, [tail, 1.0 - tail]))
    return Estimate(value, min(low, wilson.low), max(high, wilson.high)) if independent < FEW else Estimate(value, low, high)


def _wilson(rate: float, count: int, confidence: float) -> Estimate:
    """Wilson's interval about a rate of whole or parted successes; the number of independent trials is `count`."""
    z = NormalDist().inv_cdf(0.5 + 0.5 * confidence)
    centre = (rate + z * z / (2 * count)) / (1.0 + z * z / count)
    half = z / (1.0 + z * z / count) * sqrt(rate * (1.0 - rate) / count + z * z / (4 * count * count))
    return Estimate(rate, 0.0 if rate == 0.0 else max(0.0, centre - half), 1.0 if rate == 1.0 else min(1.0, centre + half))


def _layout_means(rows: Sequence[Row], stratum: str) -> tuple[Array, Array]:
    """Mean success (strata, layouts) and how many flights it is of; NaN where there are none. Layouts of a vehicle are told
    apart by scenario, too, those of a scenario by their number."""
    strata = {name: k for k, name in enumerate(dict.fromkeys(row[stratum] for row in rows))}
    layouts = {key: k for k, key in enumerate(sorted({(row["scenario"], row["configuration"]) for row in rows}))}
    total, count = np.zeros((len(strata), len(layouts))), np.zeros((len(strata), len(layouts)))
    for row in rows:
        cell = strata[row[stratum]], layouts[row["scenario"], row["configuration"]]
        total[cell] += row["success"]
        count[cell] += 1
    return np.where(count > 0, total / np.maximum(count, 1), np.nan), count


def _means(table: Array, repeats: Array, rng: np.random.Generator, resamples: int, shared: bool) -> Array:
    """Resampled means over strata (resamples,)."""
    total = np.zeros(resamples)
    common: dict[bytes, ArrayInt] = {}
    for values, counts in zip(table, repeats, strict=True):
        there = np.isfinite(values)
        mine, flights = values[there], counts[there].astype(np.int64)
        key = there.tobytes()
        if not shared or key not in common:
            common[key] = rng.integers(len(mine), size=(resamples, len(mine)))
        chosen = common[key]
        drawn = mine[chosen]
        if (flights > 1).any():
            # Drawing r of r flights with replacement, k of them good: binomial.
            drawn = rng.binomial(flights[chosen], drawn) / flights[chosen]
        total += drawn.mean(axis=1)
    return total / len(table)


def paired_difference(
    rows: Sequence[Row], others: Sequence[Row], *, seed: int = 0, resamples: int = RESAMPLES, confidence: float = CONFIDENCE
) -> dict[str, Any]:
    """Return success of one pilot minus another's on the same vehicles, configurations, repeats and draws.

    Args:
        rows: Flights of the one.
        others: Flights of the other; those that have no counterpart are left out.
        seed: Of the bootstrap.
        resamples: How many.
        confidence: Share that the interval holds, 0 to 1.

    Returns:
        "pairs", "difference" with "low" and "high" (bootstrap over pairs within each scenario), and in how many pairs only the
        one or only the other succeeded.
    """
    there = {_pair_key(row): row["success"] for row in others}
    by_scenario: dict[str, list[int]] = {}
    for row in rows:
        if _pair_key(row) in there:
            by_scenario.setdefault(row["scenario"], []).append(row["success"] - there[_pair_key(row)])
    pairs = [np.asarray(found, float) for found in by_scenario.values()]
    count = sum(map(len, pairs))
    if not count:
        return {"pairs": 0, "difference": NAN, "low": NAN, "high": NAN, "only_first": 0, "only_second": 0}
    rng = generator("benchmark pairs", seed)
    sums = np.zeros(resamples)
    for found in pairs:
        share = [np.mean(found == v) for v in (1.0, -1.0, 0.0)]
        # Pairs have three outcomes: a multinomial draws a resample of them all at once, by their counts.
        drawn = rng.multinomial(len(found), np.asarray(share) / np.sum(share), size=resamples)
        sums += drawn[:, 0] - drawn[:, 1]
    low, high = np.quantile(sums / count, [0.5 - 0.5 * confidence, 0.5 + 0.5 * confidence])
    whole = np.concatenate(pairs)
    if count < FEW or np.all(whole == whole[0]):
        # Of pairs that went another way than all of these, there may be as many as Wilson's interval for none of n has.
        unobserved = _wilson(0.0, count, confidence).high
        low, high = min(low, max(-1.0, whole.mean() - unobserved)), max(high, min(1.0, whole.mean() + unobserved))
        low, high = (-1.0 if whole.mean() == -1.0 else low), (1.0 if whole.mean() == 1.0 else high)
    return {
        "pairs": count,
        "difference": float(whole.mean()),
        "low": float(low),
        "high": float(high),
        "only_first": int(np.sum(whole > 0)),
        "only_second": int(np.sum(whole < 0)),
    }


def layout_difference(
    rows: Sequence[Row], others: Sequence[Row], *, seed: int = 0, resamples: int = RESAMPLES, confidence: float = CONFIDENCE
) -> Estimate:
    """Return success of one pilot minus another's on the same flights, with the interval over other layouts.

    A cluster bootstrap: within each scenario the layouts are drawn with replacement, each with all its vehicles and repeats,
    for flights in one layout stand and fall together. Tails are widened for few layouts as in `stratified_rate`. It is what
    tells whether a difference would stand in ten new layouts; that of `paired_difference` tells of these ten only.

    Args:
        rows: Of the one pilot.
        others: Of the other; pairs are of one scenario, configuration, vehicle, repeat, seed and layouts.
        seed: Of the drawing.
        resamples: B.
        confidence: Of the interval.

    Returns:
        NaN without pairs; NaN bounds where every scenario has a single layout.
    """
    there = {_pair_key(row): row["success"] for row in others}
    clusters: dict[str, dict[tuple[Any, ...], list[int]]] = {}
    for row in rows:
        if _pair_key(row) in there:
            mine = clusters.setdefault(row["scenario"], {})
            mine.setdefault((row["configuration"], row["layouts"]), []).append(row["success"] - there[_pair_key(row)])
    if not clusters:
        return Estimate(NAN, NAN, NAN)
    tables = [np.array([(sum(found), len(found)) for found in mine.values()], float) for mine in clusters.values()]
    value = float(sum(table[:, 0].sum() for table in tables) / sum(table[:, 1].sum() for table in tables))
    sizes = np.array([len(table) for table in tables], float)
    if sizes.min() < 2:
        return Estimate(value, NAN, NAN)
    rng = generator("benchmark layout pairs", seed)
    total = np.zeros((resamples, 2))
    for table in tables:
        total += table[rng.integers(len(table), size=(resamples, len(table)))].sum(axis=1)
    tail = NormalDist().cdf(-NormalDist().inv_cdf(0.5 + 0.5 * confidence) * sqrt(sizes.mean() / (sizes.mean() - 1.0)))
    low, high = np.quantile(total[:, 0] / total[:, 1], [tail, 1.0 - tail])
    return Estimate(value, float(low), float(high))


def _pair_key(row: Row) -> tuple[Any, ...]:
    return row["scenario"], row["configuration"], row["vehicle"], row["repeat"], row["seed"], row["layouts"]


def spearman(
    a: ArrayLike, b: ArrayLike, *, seed: int = 0, resamples: int = RESAMPLES, confidence: float = CONFIDENCE
) -> Estimate:
    """Return Spearman's rank correlation of two samples (n,) with the bootstrap percentile interval over pairs.

    NaN where it is undefined; the bounds are NaN for fewer than `CORRELATED_MIN` pairs, too.

    Args:
        a: One sample, (n,); pairs with NaN are left out.
        b: The other, (n,).
        seed: Of the bootstrap.
        resamples: How many.
        confidence: Share that the interval holds, 0 to 1.

    Raises:
        AirworthyError: The samples are of different lengths.
    """
    x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise AirworthyError(f"A rank correlation needs two samples of one length; got {x.shape} and {y.shape}.")
    value = rank_correlation(x, y)
    if not np.isfinite(value):
        return Estimate(NAN, NAN, NAN)
    if np.sum(np.isfinite(x) & np.isfinite(y)) < CORRELATED_MIN:
        return Estimate(value, NAN, NAN)
    rng = generator("benchmark spearman", seed)
    found = [rank_correlation(x[chosen], y[chosen]) for chosen in rng.integers(len(x), size=(resamples, len(x)))]
    kept = np.asarray([v for v in found if np.isfinite(v)])
    # Where most resamples have no correlation (equal values), an interval of the rest would be of a selection.
    if kept.size < resamples // 2:
        return Estimate(value, NAN, NAN)
    low, high = np.quantile(kept, [0.5 - 0.5 * confidence, 0.5 + 0.5 * confidence])
    return Estimate(value, float(low), float(high))
