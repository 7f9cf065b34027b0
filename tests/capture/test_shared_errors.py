"""Fits under shared errors: against the full covariance written out, and against fits without a group."""

from __future__ import annotations

import numpy as np

from airworthy.capture.alignment.shared_errors import left_out, shared_fit


def problem(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=30), rng.normal(size=(30, 3)), rng.normal(size=(30, 7)), rng.uniform(0.5, 4.0, 30)


def test_the_step_is_that_of_generalised_least_squares() -> None:
    residual, slope, ways, weight = problem()
    found = shared_fit(residual, slope, ways, weight, (np.zeros(3), np.zeros(3)))
    full = np.linalg.inv(np.diag(1.0 / weight) + ways @ ways.T)
    covariance = np.linalg.inv(slope.T @ full @ slope)
    gain = covariance @ slope.T @ full
    np.testing.assert_allclose(found.step, -gain @ residual, rtol=1e-9)
    np.testing.assert_allclose(found.by_noise + found.by_ways, covariance, rtol=1e-9)
    np.testing.assert_allclose(found.by_ways, gain @ ways @ ways.T @ gain.T, rtol=1e-9)
    np.testing.assert_allclose(found.by_noise, gain / weight @ gain.T, rtol=1e-9)
    np.testing.assert_allclose(found.own, (full @ (residual + slope @ found.step)) / weight, rtol=1e-9)


def test_the_noise_is_that_which_was_drawn() -> None:
    rng = np.random.default_rng(4)
    _, slope, ways, weight = problem()
    found = []
    for _ in range(400):
        drawn = ways @ rng.normal(size=7) + rng.normal(size=30) / np.sqrt(weight)
        found.append(shared_fit(drawn, slope, ways, weight, (np.zeros(3), np.zeros(3))).noise ** 2)
    # 400 times 20 degrees of freedom: a standard error of 1.6 %.
    assert abs(np.mean(found) - 1.0) < 0.05


def test_what_is_expected_of_a_number_is_one_more_observation() -> None:
    residual, slope, ways, weight = problem()
    found = shared_fit(residual, slope, ways, weight, (np.array([0.0, 0.0, 0.7]), np.array([0.0, 0.0, 5.0])))
    more = shared_fit(
        np.append(residual, -0.7), np.vstack((slope, np.eye(3)[2])), np.vstack((ways, np.zeros(7))), np.append(weight, 5.0),
        (np.zeros(3), np.zeros(3)),
    )  # fmt: skip
    np.testing.assert_allclose(found.step, more.step, rtol=1e-9)


def test_leaving_a_group_out_is_a_fit_without_it() -> None:
    residual, slope, ways, weight = problem()
    group = np.repeat(np.arange(6), 5)
    nothing = (np.zeros(3), np.zeros(3))
    found = shared_fit(residual, slope, ways, weight, nothing)
    by_group, count = left_out(found.rows, found.errors, found.inverse, group)
    assert by_group is not None
    assert count == 6
    rests = []
    for number in range(6):
        rest = group != number
        rests.append(shared_fit(residual[rest], slope[rest], ways[rest], weight[rest], nothing).step - found.step)
    moves = np.array(rests)
    np.testing.assert_allclose(by_group[:3, :3], 5 / 6 * moves.T @ moves, rtol=1e-9)
    assert left_out(found.rows, found.errors, found.inverse, np.minimum(group, 3)) == (None, 4)
