"""Degree-7 segments against the published vectors and closed forms; Bernstein form."""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airworthy.trajectories.polynomial import (
    BASIS_END_SPEED,
    BASIS_START_SPEED,
    BASIS_STEP,
    REST_PEAK_ACCELERATION,
    REST_PEAK_JERK,
    REST_PEAK_SNAP,
    REST_PEAK_SPEED,
    derivative_factor,
    differentiate,
    evaluate,
    in_seconds,
    septic,
    septic_coasting,
    substitute,
    to_bernstein,
)

NUMBERS = st.floats(-10.0, 10.0)
STATES = st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS)


def test_segments_match_the_reference(vectors: dict[str, Any]) -> None:
    # Printed with 12 significant digits.
    for segment in vectors["segments"]:
        span = segment["T"]
        c = septic(segment["b0"], segment["bf"], span)
        np.testing.assert_allclose(in_seconds(c, span)[::-1], segment["coefficients_p7_to_p0"], rtol=1e-9, atol=1e-9)
        for sample in segment["samples"]:
            for order, name in enumerate("xvaj"):
                value = evaluate(differentiate(c, order), sample["t"] / span) / span**order
                assert value == pytest.approx(sample[name], abs=1e-9)


def test_the_basis_matches_the_reference(vectors: dict[str, Any]) -> None:
    basis = vectors["unit_basis"]
    for name, ours in (("h", BASIS_STEP), ("g0", BASIS_START_SPEED), ("g1", BASIS_END_SPEED)):
        np.testing.assert_array_equal(ours, basis[name])


def test_rest_to_rest_peaks_are_exact() -> None:
    # spec/boundary_predictor section 3, D = 3, T = 2; peaks where the next derivative vanishes: tau = 1/2, (5 -+ sqrt
    # 5)/10, 1/2, 0.
    c = septic_coasting(0.0, 3.0, 0.0, 0.0, 2.0)
    for order, tau, peak in (
        (1, 0.5, REST_PEAK_SPEED),
        (2, 0.5 - 0.1 * 5.0**0.5, REST_PEAK_ACCELERATION),
        (3, 0.5, -REST_PEAK_JERK),
        (4, 0.0, REST_PEAK_SNAP),
    ):
        scale = 3.0 / 2.0**order
        assert evaluate(differentiate(c, order), tau) / 2.0**order == pytest.approx(peak * scale, rel=1e-13)
        dense = np.abs(evaluate(differentiate(c, order), np.linspace(0.0, 1.0, 1001))) / 2.0**order
        assert np.max(dense) <= abs(peak) * scale * (1.0 + 1e-12)


@given(STATES, STATES, st.floats(0.05, 20.0))
def test_ends_are_met(start: tuple[float, ...], end: tuple[float, ...], span: float) -> None:
    c = septic(start, end, span)
    for order in range(4):
        scale = span**order
        values = [float(evaluate(differentiate(c, order), tau)) / scale for tau in (0.0, 1.0)]
        # Rounding of the coefficients, which are about 100 times the largest scaled derivative at the ends.
        size = max(abs(x) * span**k for state in (start, end) for k, x in enumerate(state))
        assert values == pytest.approx([start[order], end[order]], abs=1e-12 * max(size, 1.0) * 1e3 / scale)


@given(NUMBERS, NUMBERS, NUMBERS, NUMBERS, st.floats(0.05, 20.0))
def test_both_forms_agree(p0: float, p1: float, v0: float, v1: float, span: float) -> None:
    general = septic([p0, v0, 0.0, 0.0], [p1, v1, 0.0, 0.0], span)
    np.testing.assert_allclose(septic_coasting(p0, p1, v0, v1, span), general, rtol=1e-9, atol=1e-9)


def test_a_batch_gives_the_bits_of_single_segments() -> None:
    rng = np.random.default_rng(1)
    start, end, span = rng.normal(size=(5, 3, 4)), rng.normal(size=(5, 3, 4)), rng.uniform(0.2, 3.0, size=(5, 1))
    batch = septic(start, end, span)
    assert batch.shape == (5, 3, 8)
    for i in range(5):
        for j in range(3):
            np.testing.assert_array_equal(batch[i, j], septic(start[i, j], end[i, j], span[i, 0]))


def test_no_other_polynomial_has_less_snap() -> None:
    # Any change that keeps the eight conditions is a multiple of tau^4 (1 - tau)^4 times something: snap can only grow.
    c = np.concatenate((septic([0.3, -0.2, 0.5, 1.0], [-0.4, 0.8, -1.0, 2.0], 0.9), np.zeros(1)))
    bump = np.polynomial.polynomial.polymul([0.0] * 4 + [1.0], np.polynomial.polynomial.polypow([1.0, -1.0], 4))
    cost = derivative_factor(9, 4)
    least = np.sum((cost @ c) ** 2)
    for size in (-0.1, 0.1, 1.0):
        assert np.sum((cost @ (c + size * bump)) ** 2) > least


def test_the_derivative_factor_integrates_exactly() -> None:
    # integral of (d^2/dtau^2 tau^3)^2 = 36/3 = 12
    c = np.array([0.0, 0.0, 0.0, 1.0])
    assert np.sum((derivative_factor(4, 2) @ c) ** 2) == pytest.approx(12.0, rel=1e-14)
    assert np.sum((derivative_factor(4, 3) @ c) ** 2) == pytest.approx(factorial(3) ** 2, rel=1e-14)


@given(st.lists(NUMBERS, min_size=1, max_size=12), st.floats(0.0, 1.0))
def test_bernstein_coefficients_enclose(coefficients: list[float], tau: float) -> None:
    hull = to_bernstein(coefficients)
    value = evaluate(coefficients, tau)
    slack = 1e-12 * (1.0 + np.sum(np.abs(coefficients)))
    assert np.min(hull) - slack <= value <= np.max(hull) + slack
    assert hull[0] == coefficients[0]
    assert hull[-1] == pytest.approx(sum(coefficients), abs=slack)


@given(st.lists(NUMBERS, min_size=1, max_size=8), st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_substitution_is_composition(coefficients: list[float], a: float, b: float, tau: float) -> None:
    inner = evaluate(substitute(coefficients, a, b), tau)
    assert inner == pytest.approx(evaluate(coefficients, a + tau * (b - a)), abs=1e-9)
