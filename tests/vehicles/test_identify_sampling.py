"""Importance sampling of a fit: it agrees where the distribution is normal, depends on its seed, and says when it failed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.vehicles.flown_logs import fly, quad

from airworthy.vehicles import Identified, Known, identify
from airworthy.vehicles.identification.fitting import importance
from airworthy.vehicles.identification.fitting.importance import sample_fit
from airworthy.vehicles.identification.fitting.refine import FitProblem, curvature_of

TRUTH = quad()


@pytest.fixture(scope="module")
def found() -> Identified:
    log = fly(TRUTH, 12.0, push=3.0, gyro_noise=0.02)
    return identify([log], Known(mass=(TRUTH.mass, 0.002 * TRUTH.mass), vehicle=TRUTH.known()), quick=True)


def test_a_normal_distribution_is_found_normal(found: Identified) -> None:
    fit, sampled = sample_fit(found.fit, 0)
    assert sampled.reached
    parameters = fit.problem.parameters
    for name in ("thrust", "lag", "command_delay", "inertia_xx", "inertia_yy", "center_x"):
        assert sampled.ratio[parameters.place(name)] == pytest.approx(1.0, abs=0.25), name
    told = sampled.ratio <= importance.APART
    assert np.array_equal(fit.sd[told], found.fit.sd[told])


@pytest.mark.slow
def test_the_seed_draws(found: Identified) -> None:
    first, again, other = (sample_fit(found.fit, seed)[1] for seed in (0, 0, 1))
    assert np.array_equal(first.ratio, again.ratio)
    assert not np.array_equal(first.ratio, other.ratio)


def test_samples_that_spread_more_widen_the_deviations(found: Identified, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cost that rises more slowly than its curvature tells, where one value moves and others after it: that one lies 1.3
    times as far out, which draws of the normal distribution still reach."""
    parameters, names = found.fit.problem.parameters, ("inertia_xx",)
    places, whole = [parameters.place(name) for name in names], importance.costs_of

    index, prior = parameters.index, parameters.sd[parameters.index]
    # That one first: what a triangular root makes of it is its alone.
    order = np.array([*np.searchsorted(index, places), *(k for k, place in enumerate(index) if place not in places)])
    share = np.where(np.arange(len(order)) < len(places), 1.0 / 1.3, 1.0)

    def slow(problem: FitProblem, theta: np.ndarray, shared: float) -> np.ndarray:
        data = curvature_of(problem, found.fit.theta) - np.eye(len(index))
        root = np.linalg.cholesky(np.linalg.inv(data / shared + np.eye(len(index)))[np.ix_(order, order)])
        away = (theta - found.fit.theta)[:, index[order]] / prior[order]
        moved = theta.copy()
        moved[:, index[order]] = found.fit.theta[index[order]] + away @ (root * share @ np.linalg.inv(root)).T * prior[order]
        return whole(problem, moved, shared)

    monkeypatch.setattr(importance, "costs_of", slow)
    monkeypatch.setattr(importance, "APART", 1.15)
    fit, sampled = sample_fit(found.fit, 0)
    assert sampled.reached
    assert sampled.ratio[places] == pytest.approx([1.3], rel=0.15)
    wider = sampled.ratio > 1.15
    assert set(np.flatnonzero(wider)) >= set(places)
    assert np.allclose(fit.sd[wider], found.fit.sd[wider] * sampled.ratio[wider])
    assert np.array_equal(fit.sd[~wider], found.fit.sd[~wider])
    assert "not normal: " in sampled.sentence([item.label for item in parameters.items])


def test_too_few_sets_are_told_and_change_nothing(found: Identified, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importance, "EFFECTIVE_MIN", 1e6)
    monkeypatch.setattr(importance, "ROUNDS", 1)
    fit, sampled = sample_fit(found.fit, 0)
    assert fit is found.fit
    said = sampled.sentence(["x"] * len(found.fit.theta))
    assert said.startswith("WARNING: importance sampling, 1 rounds of 256 sets: effective size")
    assert said.endswith("of the 1000000 that are needed; deviations stand as curvature and scatter tell them.")


def test_windows_of_several_flights_share_nothing(found: Identified) -> None:
    problem = found.fit.problem
    twice = replace(problem, windows=problem.windows * 2)
    shared, count = twice.shared(2.0), len(problem.windows[0])
    assert np.array_equal(shared[:count, :count], problem.shared(2.0))
    assert not shared[:count, count:].any()
    assert np.allclose(np.diag(shared), 1.0)
    assert twice.covered == pytest.approx(2.0 * problem.covered)
    assert problem.covered < 12.0
