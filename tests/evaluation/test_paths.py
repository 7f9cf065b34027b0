"""Distance to a polyline: closed forms, and the plain search over every segment as the independent twin."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airworthy.evaluation import path_distance


def every_segment(points: np.ndarray, path: np.ndarray) -> np.ndarray:
    """Distance by trying all segments, one by one, from the definition."""
    best = np.linalg.norm(points - path[0], axis=1)
    for a, b in pairwise(path):
        length = np.dot(b - a, b - a)
        share = np.clip((points - a) @ (b - a) / length, 0.0, 1.0) if length > 0.0 else np.zeros(len(points))
        best = np.minimum(best, np.linalg.norm(points - (a + share[:, None] * (b - a)), axis=1))
    return best


def test_closed_forms_on_one_segment() -> None:
    path = np.array([[0.0, 0, 0], [2.0, 0, 0]])
    points = np.array([[1.0, 0.5, 0], [-3.0, 0, 4.0], [5.0, 0, 0], [0.5, 0, 0], [1.3, 3.0, 4.0]])
    np.testing.assert_allclose(path_distance(points, path), [0.5, 5.0, 3.0, 0.0, 5.0], atol=1e-15)


def test_nearest_point_lies_between_corners_not_on_them() -> None:
    path = np.array([[0.0, 0, 0], [10.0, 0, 0], [10.0, 10.0, 0]])
    assert path_distance([[5.0, 1.0, 0]], path)[0] == pytest.approx(1.0, abs=1e-15)


def test_a_path_of_one_point_and_no_points() -> None:
    assert path_distance([[3.0, 4.0, 0]], [[0.0, 0, 0]])[0] == 5.0
    assert path_distance(np.zeros((0, 3)), [[0.0, 0, 0], [1.0, 0, 0]]).shape == (0,)


@given(st.integers(0, 2**32 - 1), st.integers(2, 60), st.sampled_from(["walk", "uneven", "repeated", "cloud"]))
def test_equals_the_search_over_every_segment(seed: int, corners: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    if kind == "cloud":
        path = rng.normal(size=(corners, 3))
    else:
        # Uneven: segments from millimetres to tens of metres, the case for which midpoints alone would mislead.
        size = 10.0 ** rng.uniform(-3, 1.5, (corners, 1)) if kind == "uneven" else 1.0
        path = np.cumsum(size * rng.normal(size=(corners, 3)), axis=0)
    if kind == "repeated":
        path = np.repeat(path, 2, axis=0)
    points = path[rng.integers(len(path), size=40)] + 10.0 ** rng.uniform(-4, 1, (40, 1)) * rng.normal(size=(40, 3))
    # Both compute in float64 on coordinates of at most about 1e2 m: 1e-12 relative to them.
    np.testing.assert_allclose(path_distance(points, path), every_segment(points, path), rtol=1e-9, atol=1e-10)
