"""Interval arithmetic: whatever numbers of intervals are put in, the result holds, and no bound is wider than it must be."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from airworthy.core import ops
from airworthy.core.intervals import Interval, Maybe

CASES = 400
RNG = np.random.default_rng(5)
# Whole and half numbers, so that intervals often end at 0, at each other, or in one point.
ENDS = np.sort(RNG.integers(-6, 7, size=(2, 2, CASES)) * 0.5, axis=1)
A, B = Interval(*ENDS[0]), Interval(*ENDS[1])
SHARES = np.linspace(0.0, 1.0, 13)[:, None]
X, Y = A.low + SHARES * (A.high - A.low), B.low + SHARES * (B.high - B.low)
"""Numbers (13, case) of both, their ends among them."""


def tight(found: Interval, values: np.ndarray) -> None:
    """The interval is from the least to the greatest of the values, (n, case)."""
    np.testing.assert_allclose(found.low, values.min(axis=0), rtol=1e-15, atol=1e-15)
    np.testing.assert_allclose(found.high, values.max(axis=0), rtol=1e-15, atol=1e-15)


def pairs(function: Callable[..., Any]) -> np.ndarray:
    return np.asarray(function(X[:, None], Y[None])).reshape(-1, CASES)


@pytest.mark.parametrize("function", [operator.add, operator.sub, operator.mul])
def test_sums_and_products_end_where_those_of_their_numbers_end(function: Callable[..., Any]) -> None:
    tight(function(A, B), pairs(function))
    for number in (-1.5, 0.0, 2.5):
        tight(function(A, number), function(X, number))
        tight(function(number, A), function(number, X))


def test_quotients() -> None:
    through = (B.low <= 0.0) & (B.high >= 0.0)
    for found, over in ((A / B, pairs), (2.0 / B, lambda f: f(2.0, Y))):
        assert np.all(np.isneginf(found.low[through]) | (found.low[through] == 0.0) | np.isnan(found.low[through]))
        with np.errstate(divide="ignore", invalid="ignore"):
            values = over(operator.truediv)[:, ~through]
        tight(Interval(found.low[~through], found.high[~through]), values)


def test_a_square_is_never_negative() -> None:
    tight(A * A, np.vstack([X * X, np.where((A.low <= 0.0) & (A.high >= 0.0), 0.0, X[:1] ** 2)]))


@pytest.mark.parametrize("function", [operator.lt, operator.le, operator.gt, operator.ge])
def test_a_comparison_is_sure_where_it_holds_for_all_numbers_or_none(function: Callable[..., Any]) -> None:
    found, values = function(A, B), pairs(function)
    np.testing.assert_array_equal(found.true, values.all(axis=0))
    np.testing.assert_array_equal(found.false, ~values.any(axis=0))
    one = function(A, 1.0)
    np.testing.assert_array_equal(one.true, function(X, 1.0).all(axis=0))
    np.testing.assert_array_equal(one.false, ~function(X, 1.0).any(axis=0))


def test_conditions_and_what_they_choose() -> None:
    three = [(True, False), (False, True), (False, False)]
    for one in three:
        for other in three:
            both, either = Maybe(*one) & Maybe(*other), Maybe(*one) | Maybe(*other)
            assert (bool(both.true), bool(both.false)) == (one[0] and other[0], one[1] or other[1])
            assert (bool(either.true), bool(either.false)) == (one[0] or other[0], one[1] and other[1])
    for known in (True, False):
        both, either = known & Maybe(False, False), known | Maybe(False, False)
        assert (bool(both.true), bool(both.false)) == (False, not known)
        assert (bool(either.true), bool(either.false)) == (known, False)
    condition = A < B
    chosen = ops.where(condition, A, B)
    low, high = np.minimum(A.low, B.low), np.maximum(A.high, B.high)
    np.testing.assert_array_equal(chosen.low, np.where(condition.true, A.low, np.where(condition.false, B.low, low)))
    np.testing.assert_array_equal(chosen.high, np.where(condition.true, A.high, np.where(condition.false, B.high, high)))
    with pytest.raises(TypeError, match="truth value"):
        bool(condition)
    assert repr(Interval(1.0, 2.0)) == "Interval(array(1.), array(2.))"


def test_functions_end_where_those_of_their_numbers_end() -> None:
    tight(ops.absolute(A), np.vstack([np.abs(X), np.where((A.low <= 0.0) & (A.high >= 0.0), 0.0, np.abs(X[:1]))]))
    tight(ops.floor(A), np.floor(X[[0, -1]]))
    tight(ops.sqrt(A), np.sqrt(np.maximum(X, 0.0)))
    tight(-A, -X)


def test_around_takes_the_last_axis_and_the_slack() -> None:
    found = Interval.around(np.array([[1.0, -2.0, 3.0], [0.5, 0.5, 0.5]]), 0.25)
    np.testing.assert_array_equal(found.low, [-2.25, 0.25])
    np.testing.assert_array_equal(found.high, [3.25, 0.75])
    np.testing.assert_array_equal(found.magnitude, [3.25, 0.75])
