"""Intervals: published values, and that they hold the truth as often as they say."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from airworthy.core.errors import AirworthyError
from airworthy.evaluation import bootstrap_interval, describe, interquartile_mean, wilson_interval
from airworthy.evaluation.metrics import FlightResult
from airworthy.evaluation.statistics import aggregate, rank_correlation, read_summary


def test_wilson_published_values() -> None:
    # Newcombe, Statistics in Medicine 17 (1998) 857, table I, method 3 (score): 81/263, 15/148, 0/20, 1/29.
    for successes, count, low, high in (
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ):
        estimate = wilson_interval(successes, count)
        assert (estimate.low, estimate.high) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(0, 400), st.integers(0, 400))
def test_wilson_is_symmetric_and_inside(a: int, b: int) -> None:
    if a + b == 0:
        assert np.isnan(wilson_interval(0, 0).value)
        return
    estimate, mirrored = wilson_interval(a, a + b), wilson_interval(b, a + b)
    assert 0.0 <= estimate.low <= estimate.value <= estimate.high <= 1.0
    assert estimate.low == pytest.approx(1.0 - mirrored.high, abs=1e-12)


@pytest.mark.parametrize("rate", [0.05, 0.5, 0.95])
def test_wilson_covers(rate: float) -> None:
    count = 40
    draws = np.random.default_rng(1).binomial(count, rate, 3000)
    known = {int(k): wilson_interval(int(k), count) for k in np.unique(draws)}
    covered = np.mean([known[int(k)].low <= rate <= known[int(k)].high for k in draws])
    # Its actual coverage swings by about 2 % around the nominal 95 % at this count (Brown, Cai, DasGupta 2001, figure 5).
    assert 0.92 <= covered <= 0.985


def test_bootstrap_repeats_and_degenerates() -> None:
    values = np.random.default_rng(0).normal(size=30)
    first, second = (bootstrap_interval(values, np.random.default_rng(7)) for _ in range(2))
    assert first == second
    alike = bootstrap_interval(np.full(4, 0.25), np.random.default_rng(0))
    assert alike.value == 0.25
    assert np.isnan([alike.low, alike.high]).all()
    one, none = (bootstrap_interval(v, np.random.default_rng(0)) for v in ([2.0], [np.nan]))
    assert one.value == 2.0
    assert np.isnan([one.low, one.high, none.value, none.low]).all()
    # Two are the fewest that say how far others may lie: by Student's t with one degree of freedom, 12.7 standard errors.
    two = bootstrap_interval([1.0, 3.0], np.random.default_rng(0))
    assert two.value == 2.0
    assert two.low <= 2.0 - 12.7
    assert two.high >= 2.0 + 12.7


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=60))
def test_interquartile_mean(values: list[float]) -> None:
    result = interquartile_mean(values)
    assert min(values) - 1e-9 <= result <= max(values) + 1e-9
    if len(values) % 4 == 0:
        assert result == pytest.approx(scipy.stats.trim_mean(values, 0.25), abs=1e-9)


def test_interquartile_mean_weighs_the_edges() -> None:
    # Three values: the middle one stands for the share [1/3, 2/3], its neighbours add 1/12 each of the half in the middle.
    assert interquartile_mean([0.0, 1.0, 5.0]) == pytest.approx((0.0 / 12 + 1.0 / 3 + 5.0 / 12) / 0.5)


@given(st.integers(0, 10_000), st.integers(4, 40))
def test_rank_correlation_is_spearman(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 8, count).astype(float), rng.normal(size=count)
    if np.ptp(a) > 0:
        assert rank_correlation(a, b) == pytest.approx(scipy.stats.spearmanr(a, b).statistic, abs=1e-12)


def test_describe_ignores_what_is_not_finite_and_depends_on_name_and_seed_only() -> None:
    values = [0.1, np.nan, 0.3, 0.2, np.inf, 0.5]
    described = describe(values, "tracking_error_m", seed=3)
    assert described["count"] == 4
    assert described["median"] == pytest.approx(0.25)
    assert described == describe([0.1, 0.3, 0.2, 0.5], "tracking_error_m", seed=3)
    assert described["low"] <= described["mean"] <= described["high"]
    empty = describe([], "x")
    assert empty["count"] == 0
    assert np.isnan(empty["mean"])


def test_what_is_no_rate_or_confidence_is_refused() -> None:
    with pytest.raises(AirworthyError, match="0 to 3"):
        wilson_interval(4, 3)
    with pytest.raises(AirworthyError, match="between 0 and 1"):
        wilson_interval(1, 3, confidence=95)


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_interval_of_a_mean_as_its_two_formulas_say(confidence: float) -> None:
    """Student's t and bootstrap-t, computed again; each bound is the farther one."""
    for seed in range(6):
        values = np.random.default_rng(seed).lognormal(size=3 + 4 * seed)
        values[0] = np.inf if seed == 5 else values[0]
        found = bootstrap_interval(values, np.random.default_rng(7), confidence=confidence, resamples=500)
        values = values[np.isfinite(values)]
        n, mean = len(values), values.mean()
        error = values.std(ddof=1) / np.sqrt(n)
        drawn = values[np.random.default_rng(7).integers(n, size=(500, n))]
        own = drawn.std(axis=1, ddof=1) / np.sqrt(n)
        sound = own > 1e-9 * np.abs(values - mean).max()
        ratio = (drawn.mean(axis=1) - mean)[sound] / own[sound]
        below, above = np.quantile(ratio, [0.5 - confidence / 2, 0.5 + confidence / 2])
        student = scipy.stats.t.ppf(0.5 + confidence / 2, n - 1)
        assert found.value == pytest.approx(mean, rel=1e-12)
        assert found.low == pytest.approx(mean - max(student, above) * error, rel=1e-6)
        assert found.high == pytest.approx(mean + max(student, -below) * error, rel=1e-6)


@pytest.mark.parametrize("bounds", [(-np.inf, 1.0), (0.0, np.inf), (-np.inf, np.inf), (0.0, 2.0)])
def test_equal_values_say_nothing_but_at_an_end_of_a_finite_range(bounds: tuple[float, float]) -> None:
    for value in (0.0, 1.0):
        found = bootstrap_interval([value] * 4, np.random.default_rng(0), bounds=bounds)
        assert found.value == value
        if bounds == (0.0, 2.0) and value == 0.0:
            rate = wilson_interval(0, 4)
            assert (found.low, found.high) == pytest.approx((2.0 * rate.low, 2.0 * rate.high))
        else:
            assert np.isnan(found.low)
            assert np.isnan(found.high)


def test_a_summary_of_more_than_256_mebibytes_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "summary.json"
    path.touch()
    os.truncate(path, (256 << 20) + 1)
    with pytest.raises(AirworthyError, match="at most 268,435,456"):
        read_summary(tmp_path)


def test_who_is_out_of_bounds_at_the_start_is_not_near_the_path() -> None:
    results = [
        FlightResult(env=0, outcome="success", tracking_error_m=0.5, proximity_percent=40.0, samples=100),
        FlightResult(env=1, outcome="out_of_bounds", tracking_error_m=0.25, proximity_percent=100.0, samples=1),
        FlightResult(env=2, outcome="diverged", tracking_error_m=0.125, proximity_percent=100.0, samples=50),
        FlightResult(env=3, outcome="out_of_bounds", tracking_error_m=1.5, proximity_percent=20.0, samples=2),
    ]
    found = aggregate(results, confidence=0.95, resamples=20, seed=0)
    assert found["outcomes"]["out_of_bounds"] == 2
    assert found["success_rate"]["value"] == 0.25
    assert found["tracking_error_m"]["mean"] == 1.0
    assert found["proximity_percent"]["mean"] == 30.0


def test_three_pairs_have_a_rank_correlation_and_two_have_none() -> None:
    assert rank_correlation([1.0, 5.0, 2.0], [1.0, 3.0, 2.0]) == pytest.approx(1.0)
    assert rank_correlation([1.0, 5.0, 2.0, np.nan], [3.0, 1.0, 2.0, 0.0]) == pytest.approx(-1.0)
    for a, b in (([1.0, 2.0], [3.0, 5.0]), ([1.0, 2.0, np.inf], [3.0, 5.0, 6.0]), ([], [])):
        assert np.isnan(rank_correlation(a, b))
