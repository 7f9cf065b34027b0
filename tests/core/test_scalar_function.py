"""A traced function on single floats gives what NumPy gives, in every operation it knows, and refuses the others."""

from __future__ import annotations

import math

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.core.ops import absolute, arctan2, clip, exp, floor, log, sin_cos, sqrt, where
from airworthy.core.tracing.scalar import ScalarFunction


def everything(x: tuple, y: tuple) -> tuple:
    a, b = x
    sine, cosine = sin_cos(a)
    either = where((a > b) | (b >= 2.0), a / b, -b)
    both = where((a < 1.0) & ~(b <= 0.5), sqrt(absolute(a)), floor(b))
    return (
        sine,
        cosine,
        either,
        (both, exp(clip(y[0], -3.0, 3.0)), arctan2(a, b)),
        where(a == b, 1.0, where(a != 0.0, 2.0, 3.0)),
    )


def flat(result: tuple) -> list[float]:
    return [x for item in result for x in (flat(item) if isinstance(item, tuple) else [float(item)])]


def test_floats_give_what_numpy_gives() -> None:
    traced = ScalarFunction(everything, {"x": 2, "y": 1})
    for a, b, c in np.random.default_rng(0).normal(size=(50, 3)) * 3.0:
        np.testing.assert_allclose(traced(x=(a, b), y=(c,)), flat(everything((a, b), (c,))), rtol=1e-13, atol=1e-15)


def test_what_divides_by_zero_is_infinite_or_none() -> None:
    traced = ScalarFunction(lambda x: (x[0] / x[1], sqrt(x[0])), {"x": 2})
    assert traced(x=(1.0, 0.0))[0] == math.inf
    assert traced(x=(-1.0, 0.0))[0] == -math.inf
    assert all(math.isnan(value) for value in (traced(x=(0.0, 0.0))[0], traced(x=(-1.0, 1.0))[1]))


def test_bits_of_numbers_are_refused() -> None:
    with pytest.raises(AirworthyError, match="is not computed on single floats"):
        ScalarFunction(lambda x: (log(x[0]),), {"x": 1})
