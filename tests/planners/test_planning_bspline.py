"""B-splines of planners against SciPy, least squares and finite differences; quintics against their conditions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from airworthy.core.errors import AirworthyError
from airworthy.planners.common import bspline
from airworthy.planners.common.reference import (
    References,
    evaluate_polynomial,
    least_jerk,
    local_targets,
    quintic,
    quintic_pair,
)


def _splines(seed: int, flights: int = 3, count: int = 12) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    knots = np.cumsum(rng.uniform(0.05, 0.4, (flights, count + 4)), axis=1)
    return rng.normal(size=(flights, count, 3)), knots - knots[:, 3:4]


@given(st.integers(0, 1000))
def test_any_knots_as_scipy(seed: int) -> None:
    control, knots = _splines(seed)
    time = np.linspace(0.0, 1.0, 23) * bspline.duration(knots)[:, None]
    slopes, fewer = bspline.derivative(control, knots)
    bends, fewest = bspline.derivative(slopes, fewer, 2)
    for i in range(3):
        curve = scipy.interpolate.BSpline(knots[i], control[i], 3)
        # Sums of a few products of numbers near one; second derivatives carry factors of up to 1 / 0.05^2.
        assert bspline.evaluate(control, knots, time)[i] == pytest.approx(curve(time[i]), abs=1e-12)
        assert bspline.evaluate(slopes, fewer, time, degree=2)[i] == pytest.approx(curve(time[i], 1), abs=1e-10)
        assert bspline.evaluate(bends, fewest, time, degree=1)[i] == pytest.approx(curve(time[i], 2), abs=1e-8)


def test_even_knots_are_a_case_of_any_and_flights_of_other_lengths_do_not_matter() -> None:
    control, _ = _splines(5)
    interval, count = np.array([0.1, 0.25, 1.0]), np.array([12, 7, 9])
    time = np.linspace(-0.2, 3.0, 40) * np.ones((3, 1))
    knots = bspline.uniform_knots(12, interval)
    anywhere = bspline.evaluate(control, knots, time, count)
    assert bspline.duration(knots, count) == pytest.approx((count - 3) * interval)
    assert bspline.evaluate_uniform(control, interval, time, 0, count) == pytest.approx(anywhere, abs=1e-12)
    for order in (1, 2, 3):
        points = bspline.differences(control[:1], interval[:1], order)
        inside = np.linspace(0.013, 0.87, 12)[None]
        curve = scipy.interpolate.BSpline(knots[0], control[0], 3)
        assert bspline.evaluate_uniform(control, interval, inside, order)[0] == pytest.approx(curve(inside[0], order), abs=1e-7)
        assert points.shape == (1, 12 - order, 3)


def test_fit_is_least_squares() -> None:
    rng = np.random.default_rng(1)
    points, dt = rng.normal(size=(2, 9, 3)), np.array([0.12, 0.4])
    v, a = rng.normal(size=(2, 2, 3)), rng.normal(size=(2, 2, 3))
    found = bspline.fit(points, dt, v, a)
    for i in range(2):
        rows, values = np.zeros((13, 11)), np.concatenate([points[i], v[i], a[i]])
        for k in range(9):
            rows[k, k : k + 3] = np.array([1, 4, 1]) / 6
        for k, at in ((0, 0), (1, 8)):
            rows[9 + k, at : at + 3] = np.array([-1, 0, 1]) / (2 * dt[i])
            rows[11 + k, at : at + 3] = np.array([1, -2, 1]) / dt[i] ** 2
        # The normal equations square a condition of about 100.
        assert found[i] == pytest.approx(np.linalg.lstsq(rows, values)[0], abs=1e-9)


def test_a_fit_gives_back_a_spline() -> None:
    control, _ = _splines(2)
    dt = np.full(3, 0.2)
    knots = np.arange(10) * 0.2 * np.ones((3, 1))
    sampled = [bspline.evaluate_uniform(control, dt, knots, order) for order in range(3)]
    found = bspline.fit(sampled[0], 0.2, sampled[1][:, [0, -1]], sampled[2][:, [0, -1]])
    assert found == pytest.approx(control, abs=1e-9)
    with pytest.raises(AirworthyError, match="3 or more"):
        bspline.fit(sampled[0][:, :2], 0.2, np.zeros((3, 2, 3)), np.zeros((3, 2, 3)))


def test_limits_and_lengthening() -> None:
    control = np.zeros((1, 14, 3))
    control[0, :, 0] = 0.5 * np.arange(14)
    feasible, ratio = bspline.limits_ratio(control, [0.1], [2.0], [3.0])
    assert not feasible[0]
    assert ratio[0] == pytest.approx(2.5)
    knots = bspline.uniform_knots(14, 0.1)
    longer = bspline.lengthen(knots, ratio)
    # Knots 5 to 12 (seven intervals) take 2.5 times as long, the others keep theirs.
    assert np.diff(longer[0]) == pytest.approx([0.1] * 5 + [0.25] * 7 + [0.1] * 5)
    assert bspline.duration(longer)[0] == pytest.approx(1.1 + 7 * 0.15 - 0.0)
    assert bspline.limits_ratio(control, [0.25], [2.0], [3.0])[0][0]
    with pytest.raises(AirworthyError, match="8 or more"):
        bspline.lengthen(knots[:, :9], ratio)


def test_quintics_keep_their_ends_and_chains_are_least() -> None:
    rng = np.random.default_rng(3)
    start, end, t = rng.normal(size=(3, 3)), rng.normal(size=(3, 3)), 1.7
    c = quintic(start, end, t)
    for order in range(3):
        assert evaluate_polynomial(c, 0.0, order) == pytest.approx(start[order], abs=1e-12)
        assert evaluate_polynomial(c, t, order) == pytest.approx(end[order], abs=1e-9)
    points, times = rng.normal(size=(4, 3)), np.array([0.8, 1.3, 0.6])
    v, a = rng.normal(size=(2, 3)), rng.normal(size=(2, 3))

    def cost(free: np.ndarray) -> float:
        states = np.zeros((4, 3, 3))
        states[:, 0], states[0, 1:], states[-1, 1:] = points, (v[0], a[0]), (v[1], a[1])
        states[1:-1, 1:] = free.reshape(2, 2, 3)
        pieces = quintic(states[:-1], states[1:], times)
        # Three nodes are exact for the square of a parabola.
        nodes, weights = np.polynomial.legendre.leggauss(3)
        jerk = evaluate_polynomial(pieces[:, None], 0.5 * times[:, None] * (nodes + 1.0), 3)
        return float(np.sum(0.5 * times[:, None] * weights * np.sum(jerk**2, axis=-1)))

    chain = least_jerk(points, times, v, a)
    inner = np.stack([evaluate_polynomial(chain[1:], 0.0, order) for order in (1, 2)], axis=1).reshape(-1)
    best = scipy.optimize.minimize(cost, np.zeros(12), method="BFGS")
    assert cost(inner) <= best.fun * (1 + 1e-9)
    # The pair of equal halves is the same chain.
    pair = quintic_pair(start, points[1], end, 0.9)
    whole = least_jerk(np.stack([start[0], points[1], end[0]]), [0.9, 0.9], (start[1], end[1]), (start[2], end[2]))
    assert pair == pytest.approx(whole, abs=1e-8)


def test_reference_and_targets() -> None:
    references = References(2)
    references.aim(0, (0, 0, 1), (21, 0, 1), 2.0)
    references.aim(1, (0, 0, 1), (0, 3, 1), 1.0)
    # 6 pieces of 3.5 m, the outer ones in twice the time; a single piece is first and last.
    assert references.duration == pytest.approx([8 * 1.75, 12.0])
    assert references.sample([0], [[0.0, 14.0]])[0] == pytest.approx(np.array([[0, 0, 1], [21, 0, 1]]), abs=1e-9)
    assert references.sample([0], [[14.0]], 1)[0] == pytest.approx(np.zeros((1, 3)), abs=1e-9)
    found = local_targets(references, [0, 1], np.zeros(2), np.array([[1.0, 0.5, 1.0], [0, 0, 1]]), 7.5, [2.0, 1.0], [3.0, 3.0])
    gap = np.linalg.norm(found.position[0] - [1.0, 0.5, 1.0])
    assert 7.5 <= gap < 7.5 + 2 * 7.5 / 20
    assert references.sample([0], found.progress[:1, None])[0, 0, 0] == pytest.approx(1.0, abs=0.2)
    assert np.linalg.norm(found.velocity[0]) > 1.0
    assert found.position[1] == pytest.approx([0, 3, 1])
    assert found.velocity[1] == pytest.approx(np.zeros(3))
