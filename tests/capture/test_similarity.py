"""Similarities between two sets of points: exact cases, least squares, outliers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airworthy.capture.alignment.similarity import best_similarity, find_similarity
from airworthy.core import frames
from airworthy.core.errors import AirworthyError


def random_turn(rng: np.random.Generator) -> np.ndarray:
    return frames.normalize(rng.normal(size=4))


@given(st.integers(0, 10**6), st.integers(3, 40), st.floats(1e-3, 1e3))
def test_exact_points_give_the_exact_similarity(seed: int, count: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    source, turn, offset = rng.normal(size=(count, 3)), random_turn(rng), rng.normal(size=3)
    target = scale * frames.rotate(turn, source) + offset
    found = best_similarity(source, target)
    # Three random points may be nearly on a line, which costs digits; 1e-7 of 1e-16 allows a spread of 1e-4.
    assert found.scale == pytest.approx(scale, rel=1e-7)
    assert found.points(source) == pytest.approx(target, abs=1e-9 * (1.0 + scale))
    assert found.inverse.points(target) == pytest.approx(source, abs=1e-9 * (1.0 + 1.0 / scale))


def test_the_fit_is_that_of_least_squares() -> None:
    """No similarity nearby is better, along all seven directions."""
    rng = np.random.default_rng(0)
    source = rng.normal(size=(20, 3))
    target = 2.5 * frames.rotate(random_turn(rng), source) + rng.normal(size=3) + 0.1 * rng.normal(size=(20, 3))
    found = best_similarity(source, target)

    def cost(change: np.ndarray) -> float:
        turn = frames.multiply(frames.from_rotation_vector(change[:3]), found.rotation)
        moved = found.scale * np.exp(change[6]) * frames.rotate(turn, source) + found.translation + change[3:6]
        return float(np.square(moved - target).sum())

    best = cost(np.zeros(7))
    for axis in np.eye(7):
        assert cost(1e-4 * axis) > best
        assert cost(-1e-4 * axis) > best


def test_mirrored_points_give_a_rotation_all_the_same() -> None:
    rng = np.random.default_rng(1)
    source = rng.normal(size=(10, 3))
    found = best_similarity(source, source * (1.0, 1.0, -1.0))
    assert np.linalg.det(frames.to_matrix(found.rotation)) == pytest.approx(1.0)
    assert found.scale < 1.0


@pytest.mark.parametrize("seed", range(10))
def test_thirty_percent_outliers(seed: int) -> None:
    """Places exact to 0.3 mm but for 30 %, which are up to 3 m off: within 1 mm and 0.1 degrees over the set's extent."""
    rng = np.random.default_rng(seed)
    source, turn, offset, scale = rng.normal(size=(60, 3)), random_turn(rng), rng.normal(size=3), float(rng.uniform(0.2, 5.0))
    exact = scale * frames.rotate(turn, source) + offset
    target = exact + 3e-4 * rng.normal(size=(60, 3))
    wrong = rng.permutation(60)[:18]
    target[wrong] += rng.uniform(-3.0, 3.0, (18, 3))
    found = find_similarity(source, target, seed=seed)
    assert np.abs(found.similarity.points(source) - exact).max() < 1e-3
    assert np.degrees(frames.angle_between(found.similarity.rotation, turn)) < 0.1
    assert found.similarity.scale == pytest.approx(scale, rel=1e-3)
    assert found.inlier_ratio == pytest.approx(0.7, abs=0.05)  # an outlier may land nearby by chance
    assert found.residual < 2e-3
    again = find_similarity(source, target, seed=seed)
    assert (again.similarity.rotation == found.similarity.rotation).all()


def test_too_many_outliers_fail() -> None:
    rng = np.random.default_rng(2)
    source = rng.normal(size=(40, 3))
    target = source.copy()
    target[:21] += rng.uniform(1.0, 4.0, (21, 3))
    with pytest.raises(AirworthyError, match=r"Only \d+ of 40 places agree on a similarity within 0.05 m, and 50% are needed"):
        find_similarity(source, target)
    assert find_similarity(source, target, least=0.4).inlier_ratio == pytest.approx(19 / 40, abs=0.03)


@pytest.mark.parametrize(
    "points", [np.zeros((5, 3)), np.outer(np.arange(5.0), (1.0, 2.0, 3.0)), np.zeros((2, 3)), np.full((4, 3), np.nan)]
)
def test_points_that_determine_nothing(points: np.ndarray) -> None:
    with pytest.raises(AirworthyError):
        find_similarity(points, points)
    with pytest.raises(AirworthyError):
        best_similarity(points, points)


def test_three_pairs_are_enough_and_two_are_not() -> None:
    rng = np.random.default_rng(9)
    source = rng.normal(size=(3, 3))
    found = find_similarity(source, 2.0 * source + (1.0, 2.0, 3.0), trials=5)
    assert found.similarity.scale == pytest.approx(2.0, rel=1e-9)
    with pytest.raises(AirworthyError, match="3 or more pairs"):
        find_similarity(source[:2], source[:2])
