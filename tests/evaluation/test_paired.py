"""Differences of pairs: by other formulas, and how often their intervals hold the truth, computed and not sampled."""

from __future__ import annotations

from itertools import product
from math import comb, inf, isnan, sqrt

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.evaluation import paired_median_difference, paired_rate_difference, wilson_interval


def _of(both: int, first: int, second: int, neither: int) -> tuple[list[bool], list[bool]]:
    rows = [(True, True)] * both + [(True, False)] * first + [(False, True)] * second + [(False, False)] * neither
    return [a for a, _ in rows], [b for _, b in rows]


def test_a_rate_that_is_always_1_is_set_beside_another_by_wilsons_bounds_alone() -> None:
    """Nothing correlates with what is always so: the interval is Newcombe's for samples that have nothing in common."""
    found = paired_rate_difference(*_of(9, 1, 0, 0))
    rate = wilson_interval(9, 10)
    assert found.value == pytest.approx(0.1)
    # Of ten in ten Wilson's lower bound is 1 / (1 + z^2 / n).
    down = 1.0 - 1.0 / (1.0 + 1.959963984540054**2 / 10)
    assert found.low == pytest.approx(0.1 - sqrt(down**2 + (rate.high - 0.9) ** 2))
    assert found.high == pytest.approx(0.1 + (0.9 - rate.low))


# Source: Newcombe, Statistics in Medicine 17, 1998, table III, method 10: both, first alone, second alone, neither. The last
# four are positively correlated, where the continuity correction tells.
_PUBLISHED = [
    ((36, 12, 2, 0), (0.0569, 0.3404)),
    ((36, 14, 0, 0), (0.1528, 0.4167)),
    ((2, 97, 1, 0), (0.8721, 0.9854)),
    ((20, 12, 2, 16), (0.0562, 0.3292)),
    ((18, 12, 2, 18), (0.0562, 0.3290)),
    ((35, 14, 0, 1), (0.1461, 0.4175)),
    ((18, 14, 0, 18), (0.1441, 0.3963)),
]


@pytest.mark.parametrize(("table", "limits"), _PUBLISHED)
def test_rates_have_the_published_limits(table: tuple[int, int, int, int], limits: tuple[float, float]) -> None:
    found = paired_rate_difference(*_of(*table))
    # Half of the last printed digit.
    assert (found.low, found.high) == pytest.approx(limits, rel=0.0, abs=5e-5)


def test_rates_change_sign_with_the_order_and_are_surer_where_pairs_agree() -> None:
    one, other = paired_rate_difference(*_of(40, 8, 2, 14)), paired_rate_difference(*_of(40, 2, 8, 14))
    assert (one.value, one.low, one.high) == pytest.approx((-other.value, -other.high, -other.low))
    apart = paired_rate_difference(*_of(36, 12, 6, 10))  # as many successes each, fewer of them together
    assert apart.value == pytest.approx(one.value)
    assert apart.high - apart.low > one.high - one.low


def test_more_of_the_same_flights_decide_what_fewer_left_open() -> None:
    few, many = paired_rate_difference(*_of(92, 5, 1, 2)), paired_rate_difference(*_of(920, 50, 10, 20))
    assert few.value == many.value
    assert few.low < 0.0 < many.low


def test_rates_hold_the_truth_as_often_as_they_say() -> None:
    """Every outcome of 12 pairs, with its probability: coverage is a sum, not a draw. At worst 91 %, on average 95 %."""
    n, shares = 12, []
    tables = [(a, b, c, n - a - b - c) for a, b, c in product(range(n + 1), repeat=3) if a + b + c <= n]
    found = [paired_rate_difference(*_of(*table)) for table in tables]
    ways = [comb(n, a) * comb(n - a, b) * comb(n - a - b, c) for a, b, c, _ in tables]
    for p in ((0.4, 0.2, 0.2, 0.2), (0.7, 0.2, 0.05, 0.05), (0.3, 0.4, 0.1, 0.2), (0.85, 0.05, 0.05, 0.05), (0.25,) * 4):
        chance = [w * np.prod([q**k for q, k in zip(p, table, strict=True)]) for w, table in zip(ways, tables, strict=True)]
        truth = p[1] - p[2]
        shares.append(sum(c for c, f in zip(chance, found, strict=True) if f.low <= truth <= f.high))
        assert sum(chance) == pytest.approx(1.0)
    assert min(shares) > 0.91
    assert np.mean(shares) == pytest.approx(0.96, abs=0.02)


@pytest.mark.parametrize(("count", "outside"), [(6, 0), (9, 1), (12, 2), (20, 5), (30, 9)])
def test_medians_lie_between_the_values_that_the_sign_test_names(count: int, outside: int) -> None:
    """Of 6, 9, 12, 20 and 30 differences tables of the sign test name the 1st, 2nd, 3rd, 6th and 10th at 95 %."""
    apart = np.arange(count, dtype=float) ** 2
    found = paired_median_difference(apart + 3.0, np.full(count, 3.0))
    assert (found.low, found.high) == (apart[outside], apart[count - 1 - outside])
    assert found.value == np.median(apart)
    # By the sum over outcomes: with one value more on either side it would leave out more than a tail.
    tail = [sum(comb(count, k) for k in range(m + 1)) / 2**count for m in (outside, outside + 1)]
    assert tail[0] <= 0.025 < tail[1]


def test_few_pairs_say_nothing() -> None:
    assert paired_median_difference([1.0] * 5, [0.0] * 5).low == -inf
    assert isnan(paired_median_difference([], []).value)
    assert isnan(paired_rate_difference([], []).value)
    with pytest.raises(AirworthyError, match=r"got shapes \(2,\) and \(3,\)"):
        paired_rate_difference([True, False], [True, False, True])
