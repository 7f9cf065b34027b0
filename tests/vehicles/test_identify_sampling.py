"""Importance sampling of a fit: it agrees where the distribution is normal, depends on its seed, and says when it failed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.vehicles.flown_logs import fly, quad

from airworthy.vehicles import Identified, Known, identify
from airworthy.vehicles.identification import importance
from airworthy.vehicles.identification.importance import sample_fit

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


def test_the_seed_draws(found: Identified) -> None:
    first, again, other = (sample_fit(found.fit, seed)[1] for seed in (0, 0, 1))
    assert np.array_equal(first.ratio, again.ratio)
    assert not np.array_equal(first.ratio, other.ratio)


def test_samples_that_spread_more_widen_the_deviations(found: Identified, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cost that is flat about its least: curvature there says nothing of how far values may lie."""
    index, sd = found.fit.problem.parameters.index, found.fit.sd[found.fit.problem.parameters.index]

    def flat(problem: object, theta: np.ndarray, shared: float) -> np.ndarray:
        over = (theta - found.fit.theta)[:, index] / sd
        return np.asarray(0.5 * (np.maximum(np.abs(over) - 1.5, 0.0) ** 2).sum(axis=1))

    monkeypatch.setattr(importance, "costs_of", flat)
    monkeypatch.setattr(importance, "APART", 1.15)
    monkeypatch.setattr(importance, "EFFECTIVE_MIN", 10.0)
    fit, sampled = sample_fit(found.fit, 0)
    wider = sampled.ratio > 1.15
    assert wider.sum() >= 3
    assert np.allclose(fit.sd[wider], found.fit.sd[wider] * sampled.ratio[wider])
    assert "not normal: " in sampled.sentence([item.label for item in found.fit.problem.parameters.items])


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
