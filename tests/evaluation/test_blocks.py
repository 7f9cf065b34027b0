"""Intervals of errors that come in blocks."""

from __future__ import annotations

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.evaluation import block_mean, block_rms, block_rms_ratio, block_slope

BLOCKS = np.repeat(np.arange(20), 5)


def correlated(draw: np.random.Generator, spread: float = 1.0) -> np.ndarray:
    """Errors whose size is shared within a block."""
    size = np.exp(spread * draw.normal(size=20))
    return np.repeat(size, 5) * draw.normal(size=100)


def test_values_are_the_plain_ones() -> None:
    draw = np.random.default_rng(0)
    a, b = draw.normal(size=100), draw.normal(size=100)
    assert block_rms(a, BLOCKS).value == pytest.approx(np.sqrt(np.mean(a**2)))
    assert block_mean(a, BLOCKS).value == pytest.approx(a.mean())
    assert block_rms_ratio(a, b, BLOCKS).value == pytest.approx(np.sqrt(np.mean(a**2) / np.mean(b**2)))
    assert block_slope(a, 3.0 * a, BLOCKS).value == pytest.approx(3.0)


def test_what_is_not_finite_is_left_out() -> None:
    a = np.array([1.0, np.nan, 2.0, np.inf, 3.0, 2.0])
    blocks = np.array([0, 0, 1, 1, 2, 3])
    assert block_rms(a, blocks).value == pytest.approx(np.sqrt(np.mean([1.0, 4.0, 9.0, 4.0])))
    ratio = block_rms_ratio(a, np.array([2.0, 1.0, np.nan, 1.0, 6.0, 4.0]), blocks)
    assert ratio.value == pytest.approx(0.5)


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    draw = np.random.default_rng(1)
    # Of exp(s n) the mean square is exp(2 s^2).
    truth, spread, held, paired = np.exp(0.5**2), 0.5, 0, 0
    for _ in range(300):
        a = correlated(draw, spread)
        found = block_rms(a, BLOCKS)
        held += found.low <= truth <= found.high
        ratio = block_rms_ratio(0.8 * a, a + 0.0, BLOCKS)
        paired += ratio.low <= 0.8 + 1e-12 and ratio.high >= 0.8 - 1e-12
    assert 0.82 <= held / 300 <= 0.96
    assert paired == 300


def test_blocks_count_and_not_errors() -> None:
    draw = np.random.default_rng(2)
    a = correlated(draw)
    once, often = block_rms(a, BLOCKS), block_rms(np.repeat(a, 50), np.repeat(BLOCKS, 50))
    assert often.high - often.low == pytest.approx(once.high - once.low)


def test_few_blocks_give_no_interval() -> None:
    found = block_rms(np.ones(30), np.repeat([0, 1, 2], 10))
    assert found.value == 1.0
    assert np.isnan(found.low)
    assert np.isnan(found.high)


def test_nothing_is_not_a_number() -> None:
    assert np.isnan(block_rms(np.full(3, np.nan), np.arange(3)).value)
    assert np.isnan(block_mean([], []).value)
    assert np.isnan(block_slope(np.zeros(8), np.ones(8), np.arange(8)).value)
    assert block_rms(np.zeros(8), np.arange(8)).value == 0.0


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(AirworthyError, match=r"expected \(n,\) both"):
        block_rms(np.ones(3), np.arange(4))
    with pytest.raises(AirworthyError, match="between 0 and 1"):
        block_rms(np.ones(8), np.arange(8), 1.5)
