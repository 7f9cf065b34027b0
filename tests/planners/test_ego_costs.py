"""Costs of EGO-Planner: gradients against central differences, values at their branch edges."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airworthy.planners.ego.costs import collision_cost, feasibility_cost, fitness_cost, smooth_cost

Cost = Callable[[np.ndarray], tuple[float, np.ndarray]]
STEP = 1e-7
SEEDS = st.integers(0, 10_000)


def _check(cost: Cost, q: np.ndarray, free: slice = slice(None)) -> None:
    """The gradient is the central difference to 1e-6 of its largest component: at a branch edge its own error is STEP/2 times
    the jump of the second derivative, here below 2e-7 of that."""
    gradient = cost(q)[1]
    found = np.zeros_like(q)
    for index in np.ndindex(q.shape):
        moved = [q.copy(), q.copy()]
        moved[0][index] += STEP
        moved[1][index] -= STEP
        found[index] = (cost(moved[0])[0] - cost(moved[1])[0]) / (2 * STEP)
    assert found[free] == pytest.approx(gradient[free], abs=1e-6 * max(1.0, float(np.abs(gradient).max())))


def _points(seed: int, count: int = 10) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.cumsum(rng.uniform((0.2, -0.2, -0.1), (0.6, 0.2, 0.1), (count, 3)), axis=0)


@given(SEEDS)
def test_smooth(seed: int) -> None:
    _check(smooth_cost, _points(seed))
    # A parabola over the index has no third difference.
    k = np.arange(10.0)[:, None]
    assert smooth_cost(0.3 * k**2 * np.ones(3) + k)[0] == pytest.approx(0.0, abs=1e-20)


@given(SEEDS)
def test_collision(seed: int) -> None:
    rng, q = np.random.default_rng(seed), _points(seed)
    directions = rng.normal(size=(10, 2, 3))
    directions /= np.linalg.norm(directions, axis=-1, keepdims=True)
    pairs = [[(q[i] + rng.normal(scale=0.5, size=3), directions[i, j]) for j in range(2)] for i in range(10)]
    _check(lambda x: collision_cost(x, pairs, 0.5), q)


def test_collision_branches_join() -> None:
    q, v = _points(3), np.array([0.0, 0.6, 0.8])
    for e, value in ((-1e-9, 0.0), (0.0, 0.0), (0.25, 0.25**3), (0.5, 0.125), (1.0, 3 * 0.5 - 3 * 0.25 + 0.125)):
        pairs: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in range(10)]
        pairs[4] = [(q[4] + (e - 0.5) * v, v)]
        assert collision_cost(q, pairs, 0.5)[0] == pytest.approx(value, abs=1e-12)
        _check(lambda x, pairs=pairs: collision_cost(x, pairs, 0.5), q)
    # Fixed points are nobody's to move.
    fixed = [[(p, v)] if i in (0, 1, 2, 7, 8, 9) else [] for i, p in enumerate(q)]
    assert collision_cost(q, fixed, 0.5)[0] == 0.0


@given(SEEDS)
def test_feasibility(seed: int) -> None:
    _check(lambda x: feasibility_cost(x, 0.24, 1.5, 2.0), _points(seed))


def test_feasibility_at_the_limits() -> None:
    # Speed and acceleration exactly at their caps: nothing is over, and the gradient grows from zero on.
    q = np.zeros((10, 3))
    q[:, 0] = 0.5 * np.arange(10)
    assert feasibility_cost(q, 0.25, 2.0, 3.0)[0] == 0.0
    q[5:, 1] += 1.0
    _check(lambda x: feasibility_cost(x, 0.25, 2.0, 3.0), q)


@given(SEEDS)
def test_fitness(seed: int) -> None:
    q = _points(seed)
    rng = np.random.default_rng(seed)
    curve = (q[:-2] + 4 * q[1:-1] + q[2:]) / 6
    reference = curve + rng.normal(scale=0.1, size=curve.shape)
    _check(lambda x: fitness_cost(x, reference), q)
    assert fitness_cost(q, curve)[0] == pytest.approx(0.0, abs=1e-25)
    # Along the way a metre costs a twenty-fifth of what it costs across.
    straight = np.arange(10.0)[:, None] * np.array([1.0, 0.0, 0.0])
    along, across = (fitness_cost(straight + shift, straight[1:-1])[0] for shift in np.eye(3)[:2])
    assert across == pytest.approx(25.0 * along)


@pytest.mark.parametrize("speed", [0.01, 0.05, 1.5])
def test_feasibility_by_its_definition_at_any_limit(speed: float) -> None:
    """Cost and gradient computed again, term by term; limits below 0.1 m/s among them."""
    q, interval, acceleration = np.random.default_rng(2).normal(size=(8, 3)) * speed, 0.3, 0.5 * speed
    expected, gradient = 0.0, np.zeros_like(q)
    for axis in range(3):
        for k in range(7):
            v = (q[k + 1, axis] - q[k, axis]) / interval
            over = max(abs(v) - speed, 0.0)
            expected += (over / interval) ** 2
            slope = 2.0 * over * np.sign(v) / interval**3
            gradient[k + 1, axis] += slope
            gradient[k, axis] -= slope
        for k in range(6):
            a = (q[k + 2, axis] - 2.0 * q[k + 1, axis] + q[k, axis]) / interval**2
            over = max(abs(a) - acceleration, 0.0)
            expected += over**2
            for j, factor in enumerate((1.0, -2.0, 1.0)):
                gradient[k + j, axis] += 2.0 * over * np.sign(a) * factor / interval**2
    cost, found = feasibility_cost(q, interval, speed, acceleration)
    assert cost == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(found, gradient, rtol=1e-9, atol=1e-12 * np.abs(gradient).max())
