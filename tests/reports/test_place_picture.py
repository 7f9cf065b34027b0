"""Paths over the picture of a place: from where to where, how strongly, and how each flight ended."""

from __future__ import annotations

import numpy as np
import pytest

from airworthy.core.arrays import ArrayAny, ArrayU8
from airworthy.reports.pictures import ENDS, SIZE, _with_paths
from airworthy.scenes.viewpoints import Viewpoint
from airworthy.simulation.flights import FlightTable, flight_columns

# From 10 m above, x to the right and y downwards in the image: 20 pixels a metre, the origin in the middle.
ABOVE = Viewpoint(np.array([0.0, 0.0, 10.0]), np.array([1.0, 0.0, 0.0, 0.0]), span=(SIZE[0] / 20.0, SIZE[1] / 20.0))

NEAR = 24
"""Lanczos, with which the picture is reduced, overshoots by up to a tenth of a step."""


def drawn(x: list[float], status: list[int], depth: float = 20.0) -> ArrayU8:
    """Picture of one flight along x, over black."""
    count = len(x)
    columns: dict[str, ArrayAny] = {name: np.zeros(count) for name in flight_columns(0)}
    columns |= {"t": 0.1 * np.arange(count), "position_x_m": np.array(x), "status": np.array(status)}
    columns |= {"env": np.zeros(count, int), "attitude_w": np.ones(count)}
    black = np.zeros((SIZE[1], SIZE[0], 3), np.uint8)
    return _with_paths(black, np.full((SIZE[1], SIZE[0]), depth), ABOVE, FlightTable.from_columns(columns))


def level(picture: ArrayU8, x: float) -> ArrayAny:
    """Colour of the middle row at x [m]."""
    return picture[SIZE[1] // 2, int(SIZE[0] // 2 + 20 * x)].astype(int)


def test_a_path_reaches_from_its_first_row_to_its_last() -> None:
    picture = drawn([0.0, 2.0, 5.0], [0, 0, 0])
    for x in (0.1, 1.0, 2.0, 4.9):
        assert level(picture, x) == pytest.approx((255, 92, 40), abs=NEAR)
    for x in (-0.5, 5.5):
        assert not level(picture, x).any()


@pytest.mark.parametrize("status", sorted(ENDS))
def test_a_path_ends_with_a_dot_at_the_first_row_that_does_not_fly(status: int) -> None:
    picture = drawn([0.0, 2.0, 5.0, 9.0], [0, 0, status, status])
    assert level(picture, 3.5) == pytest.approx((255, 92, 40), abs=NEAR)
    assert level(picture, 5.0) == pytest.approx(ENDS[status][:3], abs=NEAR)
    assert not level(picture, 7.0).any()


def test_a_flight_that_never_flew_is_a_dot_where_it_stood() -> None:
    picture = drawn([0.0, 4.0, 8.0], [2, 2, 2])
    assert level(picture, 0.0) == pytest.approx(ENDS[2][:3], abs=NEAR)
    for x in (2.0, 4.0):
        assert not level(picture, x).any()


def test_what_is_hidden_is_fainter() -> None:
    """The path is 10 m from the camera; a surface 0.12 m nearer still counts as that it lies on."""
    seen, hidden = (level(drawn([0.0, 2.0], [0, 0], depth), 1.0)[0] for depth in (9.9, 9.8))
    assert seen == pytest.approx(255, abs=NEAR)
    assert hidden == pytest.approx(255 * 90 / 255, abs=NEAR)
