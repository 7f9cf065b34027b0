"""Scalar operations on NumPy: accuracy of the series against `math`, NaN rules, choices."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airworthy.core import ops

TRUNCATION = 1e-10  # stated in airworthy.core.ops for the series on their reduced ranges

NAN, INF = math.nan, math.inf
numbers = st.floats(-1e3, 1e3)


@given(st.floats(-1e4, 1e4))
def test_sine_and_cosine_equal_math(x: float) -> None:
    sine, cosine = ops.sin_cos(x)
    # Beside the truncation: a reduced angle carries the rounding of the angle itself.
    allowed = TRUNCATION + abs(x) * 2.0**-52
    assert abs(sine - math.sin(x)) <= allowed
    assert abs(cosine - math.cos(x)) <= allowed
    assert ops.sin(x) == sine
    assert ops.cos(x) == cosine


@given(numbers, numbers)
def test_arctan2_equals_math(y: float, x: float) -> None:
    # Adding 0.0 turns -0.0 into 0.0: unlike `math`, ours has one zero.
    assert abs(ops.arctan2(y, x) - math.atan2(y + 0.0, x + 0.0)) <= TRUNCATION


@pytest.mark.parametrize(
    ("y", "x", "angle"),
    [
        (0.0, 0.0, 0.0),
        (0.0, 1.0, 0.0),
        (0.0, -1.0, math.pi),
        (1.0, 0.0, math.pi / 2),
        (-1.0, 0.0, -math.pi / 2),
        (1.0, 1.0, math.pi / 4),
        (-1.0, -1.0, -0.75 * math.pi),
        (1.0, INF, 0.0),
        (INF, -1.0, math.pi / 2),
        (-1e-300, -1e300, -math.pi),
    ],
)
def test_arctan2_in_every_direction(y: float, x: float, angle: float) -> None:
    assert abs(ops.arctan2(y, x) - angle) <= TRUNCATION


@pytest.mark.parametrize(("y", "x"), [(NAN, 1.0), (1.0, NAN), (NAN, 0.0), (0.0, NAN), (NAN, NAN), (INF, INF)])
def test_arctan2_keeps_what_is_not_a_number(y: float, x: float) -> None:
    with np.errstate(invalid="ignore"):
        assert np.isnan(ops.arctan2(np.float64(y), np.float64(x)))


@pytest.mark.parametrize("x", [NAN, INF, -INF])
def test_sine_of_no_number_is_none(x: float) -> None:
    with np.errstate(invalid="ignore"):
        assert np.isnan(ops.sin(np.float64(x)))
        assert np.isnan(ops.cos(np.float64(x)))


def test_truncation_of_the_series_is_what_is_stated() -> None:
    # At the ends of the reduced ranges the first omitted terms are largest: (pi/4)^13 / 13! = 7e-12, tan(pi/8)^23 / 23 = 7e-11.
    x = np.linspace(-np.pi / 4, np.pi / 4, 10_001)
    assert np.abs(ops.sin(x) - np.sin(x)).max() < 1e-11
    assert np.abs(ops.cos(x) - np.cos(x)).max() < 1e-11
    t = np.linspace(-1.0, 1.0, 10_001)
    error = np.abs(ops.arctan2(t, np.ones_like(t)) - np.arctan(t)).max()
    assert 1e-12 < error < TRUNCATION


@pytest.mark.parametrize(("largest", "allowed"), [(200.0, 9e-8), (1e3, 4e-5), (1e4, 6e-4)])
def test_float32_accuracy_by_range(largest: float, allowed: float) -> None:
    """As `sin_cos` states; 9e-8 is one and a half roundings of a number below 1."""
    x = np.linspace(-largest, largest, 200_001).astype(np.float32)
    sine, cosine = ops.sin_cos(x)
    assert sine.dtype == cosine.dtype == np.float32
    exact = x.astype(np.float64)
    assert np.abs(sine - np.sin(exact)).max() <= allowed
    assert np.abs(cosine - np.cos(exact)).max() <= allowed


def test_float32_arctan2_is_right_to_rounding() -> None:
    angle = np.linspace(-np.pi, np.pi, 200_001)
    y, x = np.sin(angle).astype(np.float32), np.cos(angle).astype(np.float32)
    exact = np.arctan2(y.astype(np.float64), x.astype(np.float64))
    # Angles near pi are rounded to 2.4e-7, quarter turns added before to half of that.
    assert np.abs(ops.arctan2(y, x) - exact).max() <= 4e-7


def test_the_half_turn_constant_is_exact_where_it_must_be() -> None:
    high = np.float32(ops._HALF_PI_HIGH)
    assert float(high) == ops._HALF_PI_HIGH
    for k in range(128):
        assert float(np.float32(k) * high) == k * ops._HALF_PI_HIGH
    total = ops._HALF_PI_HIGH + ops._HALF_PI_LOW
    assert total == math.pi / 2


# ---- choices and their NaN rules -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "a", "b", "expected"),
    [
        (ops.minimum, 1.0, 2.0, 1.0),
        (ops.minimum, 2.0, 1.0, 1.0),
        (ops.minimum, NAN, 2.0, 2.0),
        (ops.minimum, 2.0, NAN, NAN),
        (ops.maximum, 1.0, 2.0, 2.0),
        (ops.maximum, 2.0, 1.0, 2.0),
        (ops.maximum, NAN, 2.0, 2.0),
        (ops.maximum, 2.0, NAN, NAN),
    ],
)
def test_minimum_and_maximum_give_the_second_when_the_first_is_no_number(
    function: Callable[[Any, Any], Any], a: float, b: float, expected: float
) -> None:
    np.testing.assert_equal(float(function(a, b)), expected)


def test_equal_zeros_give_the_second() -> None:
    assert np.signbit(ops.minimum(0.0, -0.0))
    assert not np.signbit(ops.minimum(-0.0, 0.0))
    assert np.signbit(ops.maximum(0.0, -0.0))


@pytest.mark.parametrize(("x", "held"), [(-3.0, -1.0), (0.5, 0.5), (3.0, 2.0), (NAN, -1.0), (INF, 2.0), (-INF, -1.0)])
def test_clip_holds_and_takes_the_lower_limit_for_no_number(x: float, held: float) -> None:
    assert float(ops.clip(x, -1.0, 2.0)) == held


def test_sign_absolute_and_floor() -> None:
    x = np.array([-2.5, -0.0, 0.0, 3.5, NAN])
    np.testing.assert_array_equal(ops.sign(x), [-1.0, 0.0, 0.0, 1.0, 0.0])
    np.testing.assert_array_equal(ops.absolute(x), [2.5, 0.0, 0.0, 3.5, NAN])
    np.testing.assert_array_equal(ops.floor(x), [-3.0, 0.0, 0.0, 3.0, NAN])


def test_root_below_zero_is_no_number_and_says_nothing() -> None:
    np.testing.assert_array_equal(ops.sqrt(np.array([4.0, -1.0])), [2.0, NAN])  # a warning would be an error here


@given(st.lists(st.tuples(st.booleans(), numbers, numbers), min_size=1, max_size=8))
def test_where_takes_each_side_where_it_holds(rows: list[tuple[bool, float, float]]) -> None:
    condition, a, b = (np.array(column) for column in zip(*rows, strict=True))
    np.testing.assert_array_equal(ops.where(condition, a, b), [x if c else y for c, x, y in rows])


def test_highest_rank_carries_out_a_mixed_operation() -> None:
    class Higher:
        rank = 5

    class Scalar:
        scalar_ops = Higher

    assert ops.ops_of(1.0, np.ones(2)) is ops.NumpyOps
    assert ops.ops_of(1.0, Scalar(), np.ones(2)) is Higher


def test_every_public_name_is_there() -> None:
    assert all(callable(getattr(ops, name)) for name in ops.__all__)


@pytest.mark.parametrize(
    ("ours", "exact", "low", "high", "allowed"),
    [
        (ops.exp, np.exp, -87.0, 88.7, 1e-10),
        (lambda x: ops.log(np.exp(x)), lambda x: x, -80.0, 80.0, 1e-10),
        (ops.tanh, np.tanh, -20.0, 20.0, 1e-10),
        (ops.softplus, lambda x: np.log1p(np.exp(x)), -80.0, 80.0, 1e-10),
        (ops.arccos, np.arccos, -1.0, 0.999, 2e-10),
    ],
)
def test_functions_of_the_exponential_equal_numpy(
    ours: Callable[[Any], Any], exact: Callable[[Any], Any], low: float, high: float, allowed: float
) -> None:
    x = np.concatenate([np.linspace(low, high, 20_001), np.random.default_rng(0).uniform(-0.9, 0.9, 2000)])
    np.testing.assert_allclose(ours(x), exact(x), rtol=allowed, atol=1e-14)


@pytest.mark.parametrize(
    ("function", "x", "value"),
    [
        (ops.exp, -87.001, 0.0),
        (ops.exp, -INF, 0.0),
        (ops.exp, 88.73, INF),
        (ops.exp, 0.0, 1.0),
        (ops.exp, NAN, NAN),
        (ops.log, 0.0, -INF),
        (ops.log, -1.0, NAN),
        (ops.log, INF, INF),
        (ops.log, 1.0, 0.0),
        (ops.log, NAN, NAN),
        (ops.tanh, -INF, -1.0),
        (ops.tanh, 0.0, 0.0),
        (ops.tanh, NAN, NAN),
        (ops.softplus, -INF, 0.0),
        (ops.softplus, INF, INF),
        (ops.softplus, NAN, NAN),
        (ops.arccos, 2.0, 0.0),
        (ops.arccos, -2.0, math.pi),
        (ops.arccos, NAN, NAN),
    ],
)
def test_ends_and_what_is_not_a_number(function: Callable[[Any], Any], x: float, value: float) -> None:
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(function(np.float64(x)), value)
        np.testing.assert_array_equal(function(np.float32(x)), np.float32(value))


def test_how_to_learn_lists_every_operation_that_a_task_may_use() -> None:
    page = (Path(__file__).parents[2] / "docs" / "howto" / "reinforcement_learning.md").read_text()
    section = page.partition("## A task of one's own")[2].partition("## Gymnasium")[0]
    assert [name for name in ops.__all__ if f"`{name}`" not in section] == []
