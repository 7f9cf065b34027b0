"""Vectors, quaternions and symmetric matrices as tuples, against NumPy and SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from airworthy.core import vectors as v

# Some ten roundings of 1.1e-16 each, for numbers of the sizes drawn below.
CLOSE = 1e-13

components = st.floats(-10.0, 10.0)
triples = st.tuples(*[components] * 3)
unit_quaternions = (
    st.tuples(*[st.floats(-1.0, 1.0, allow_subnormal=False)] * 4)
    .filter(lambda q: np.linalg.norm(q) > 1e-3)
    .map(lambda q: tuple(np.array(q) / np.linalg.norm(q)))
)


def close(actual: Any, expected: Any) -> None:
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=CLOSE * 100)


@given(triples, triples, components)
def test_vector_algebra_equals_numpy(a: tuple[float, ...], b: tuple[float, ...], s: float) -> None:
    x, y = np.array(a), np.array(b)
    close(v.add(a, b), x + y)
    close(v.sub(a, b), x - y)
    close(v.scale(a, s), s * x)
    close(v.dot(a, b), x @ y)
    close(v.cross(a, b), np.cross(x, y))
    close(v.norm(a), np.linalg.norm(x))


@given(triples)
def test_normalized_has_unit_length(a: tuple[float, ...]) -> None:
    length = np.linalg.norm(a)
    unit = v.normalized(a)
    if length > 1e-9:
        close(np.linalg.norm(unit), 1.0)
        close(np.array(unit) * length, a)
    else:
        assert np.linalg.norm(unit) <= 1.0


def test_normalized_leaves_zero_at_zero_and_divides_the_tiny_by_the_smallest() -> None:
    assert v.normalized((0.0, 0.0, 0.0)) == (0.0, 0.0, 0.0)
    close(v.normalized((0.0, 5e-10, 0.0)), (0.0, 0.5, 0.0))
    close(v.normalized((0.0, 0.5, 0.0), smallest=1.0), (0.0, 0.5, 0.0))


@given(unit_quaternions, unit_quaternions, triples)
def test_rotations_equal_scipy(p: tuple[float, ...], q: tuple[float, ...], a: tuple[float, ...]) -> None:
    rp, rq = Rotation.from_quat(p), Rotation.from_quat(q)
    close(v.rotate(q, a), rq.apply(a))
    close(v.rotate_inverse(q, a), rq.inv().apply(a))
    close(np.transpose(v.matrix_columns(q)), rq.as_matrix())
    product, expected = np.array(v.quaternion_multiply(p, q)), (rp * rq).as_quat()
    close(product * np.sign(product @ expected), expected)


@given(unit_quaternions, triples)
def test_quaternion_derivative_is_the_slope_of_the_turn(q: tuple[float, ...], rate: tuple[float, ...]) -> None:
    h = 1e-4  # central difference: error h^2/6 |w/2|^3 < 2e-6 for |w| <= 17.4
    ahead, behind = (v.quaternion_multiply(q, tuple(Rotation.from_rotvec(s * np.array(rate)).as_quat())) for s in (h, -h))
    slope = (np.array(ahead) - np.array(behind)) / (2.0 * h)
    np.testing.assert_allclose(v.quaternion_derivative(q, rate), slope, rtol=0.0, atol=3e-6)


@given(st.tuples(*[components] * 6), triples)
def test_symmetric_multiply_equals_numpy(m: tuple[float, ...], a: tuple[float, ...]) -> None:
    xx, yy, zz, xy, xz, yz = m
    close(v.symmetric_multiply(m, a), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ np.array(a))


def test_choose_takes_whole_vectors_per_environment() -> None:
    a, b = tuple(np.ones((3, 4))), tuple(np.zeros((3, 4)))
    chosen = v.choose(np.array([True, False, True, False]), a, b)
    np.testing.assert_array_equal(chosen, np.tile([1.0, 0.0, 1.0, 0.0], (3, 1)))


def test_functions_broadcast_over_environments() -> None:
    rng = np.random.default_rng(3)
    q, a = rng.normal(size=(4, 5, 7)), rng.normal(size=(3, 5, 7))
    q /= np.linalg.norm(q, axis=0)
    expected = Rotation.from_quat(q.reshape(4, -1).T).apply(a.reshape(3, -1).T).T.reshape(3, 5, 7)
    close(v.rotate(tuple(q), tuple(a)), expected)


def test_vectors_of_unequal_length_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        v.add((1.0, 2.0), (1.0, 2.0, 3.0))


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
def test_sums_and_multiples_of_any_length(size: int) -> None:
    a, b = tuple(range(1, size + 1)), tuple(10.0 * k for k in range(size))
    assert v.add(a, b) == tuple(np.add(a, b))
    assert v.sub(a, b) == tuple(np.subtract(a, b))
    assert v.scale(a, 3.0) == tuple(np.multiply(a, 3.0))
