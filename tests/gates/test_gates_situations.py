"""Situations: the published grid, and the way to gates in the world and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airworthy.core.errors import AirworthyError
from airworthy.gates.labels.situations import EXTENDED, PAPER, RACING, RANGES, clamp, corners, encode, grid_named, outside


def test_the_grids_have_their_published_sizes_and_order() -> None:
    assert PAPER.shape == (10, 2, 6, 15, 2, 6, 3, 2)
    assert (PAPER.size, EXTENDED.size, RACING.size) == (129_600, 220_320, 142_560)
    assert RACING.ranges[0].tolist() == [0.0, 20.0 / 9.0]  # and otherwise those of the paper
    np.testing.assert_array_equal(RACING.ranges[1:], RANGES[1:])
    np.testing.assert_array_equal(PAPER.ranges, RANGES)
    first = PAPER.situations([0, 1, 2, PAPER.size // 10, PAPER.size - 1])
    np.testing.assert_array_equal(first[0], RANGES[:, 0])
    assert first[1, 7] == 0.525  # the last field turns fastest
    assert first[2, 6] == 0.0
    assert first[3, 0] == pytest.approx(1.0 / 9.0, abs=1e-15)  # v_prev slowest
    np.testing.assert_array_equal(first[4], RANGES[:, 1])


def test_bearings_are_clockwise_and_headings_are_not() -> None:
    # A quarter turn to the right: from heading 0 (x) the next gate lies at -y.
    e = np.array([[0.5, 0.3, 1.0, np.pi / 4, 0.525, 1.2, np.pi / 4, 0.3]])
    positions, headings = corners(e)
    np.testing.assert_allclose(headings[0], [0.0, -np.pi / 4, -np.pi / 2], atol=1e-15)
    np.testing.assert_allclose(positions[0, 1], [np.sqrt(0.5), -np.sqrt(0.5), 0.525], atol=1e-15)
    np.testing.assert_allclose(positions[0, 2] - positions[0, 1], [0.0, -1.2, -0.225], atol=1e-15)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, PAPER.size - 1), st.floats(-7.0, 7.0), st.floats(-50.0, 50.0), st.floats(-50.0, 50.0))
def test_wherever_three_gates_stand_their_situation_is_the_same(number: int, turn: float, x: float, y: float) -> None:
    e = PAPER.situations(number)
    positions, headings = corners(e)
    c, s = np.cos(turn), np.sin(turn)
    moved = positions @ np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]) + (x, y, 0.0)
    found, beyond = encode(moved, headings + turn, e[:, 0])
    # Rounding of coordinates up to 52 m.
    np.testing.assert_allclose(found, e, atol=1e-12)
    assert np.abs(beyond).max() < 1e-12


def test_what_lies_outside_is_told_with_its_sign() -> None:
    e = PAPER.situations(0)
    e[0, 0], e[0, 2] = 1.3, 0.5
    np.testing.assert_allclose(outside(e)[0, [0, 2]], [0.3, -0.3], atol=1e-15)
    np.testing.assert_array_equal(clamp(e)[0, [0, 2]], [1.0, 0.8])


def test_a_number_or_a_grid_that_is_not_there_is_refused() -> None:
    with pytest.raises(AirworthyError, match="situations 0 to 129599"):
        PAPER.situations([PAPER.size])
    with pytest.raises(AirworthyError, match="Unknown grid 'papr'"):
        grid_named("papr")
