"""Playing recorded flights back: poses between rows, and what is held outside them."""

from __future__ import annotations

import numpy as np
import pytest

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import from_euler
from airworthy.simulation import FlightTable, Replay, flight_columns

YAWS = np.array([0.0, 0.4, 1.2, -3.0])  # the last turns on through pi
TIMES = np.array([0.5, 1.0, 2.0, 4.0])
PLACES = np.array([[0.0, 0, 0], [1.0, 0, 0], [1.0, 2.0, 0], [1.0, 2.0, -8.0]])


def table(times: Array = TIMES, env: int = 3) -> FlightTable:
    """One flight of a few rows, and a short one of another environment."""
    count = len(times)
    columns: dict[str, Array] = {name: np.zeros(count + 1) for name in flight_columns(4)}
    columns["env"][:count], columns["env"][count] = env, env + 1
    columns["t"][:count], columns["t"][count] = times, 7.0
    zero = np.zeros(count)
    attitude = from_euler(zero, zero, YAWS[:count])
    for i, axis in enumerate("xyz"):
        columns[f"position_{axis}_m"][:count] = PLACES[:count, i]
    for i, axis in enumerate("xyzw"):
        columns[f"attitude_{axis}"][:count] = attitude[:, i]
    columns["attitude_w"][count] = 1.0
    return FlightTable.from_columns(columns)


def yaw_of(attitude: Array) -> Array:
    return 2.0 * np.arctan2(attitude[..., 2], attitude[..., 3])


def test_rows_come_back_as_recorded() -> None:
    replay = Replay(table(), 3)
    position, attitude = replay.pose(TIMES)
    np.testing.assert_allclose(position, PLACES, atol=1e-7)
    np.testing.assert_allclose(np.abs(np.sum(attitude * replay.attitude, axis=1)), 1.0, atol=1e-7)
    assert replay.duration == 3.5


def test_between_rows_positions_are_linear_and_turns_are_even() -> None:
    replay = Replay(table(), 3)
    position, attitude = replay.pose([0.625, 0.75, 1.5, 3.0])
    np.testing.assert_allclose(position, [[0.25, 0, 0], [0.5, 0, 0], [1, 1, 0], [1, 2, -4]], atol=1e-6)
    # The last turn goes the short way: from 1.2 to -3.0 is 2.083 rad through pi, half of it ends at 2.242.
    wanted = np.array([0.1, 0.2, 0.8, 1.2 + 0.5 * (2.0 * np.pi - 4.2)])
    np.testing.assert_allclose(np.cos(yaw_of(attitude) - wanted), 1.0, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(attitude, axis=1), 1.0, atol=1e-6)


def test_outside_the_record_the_ends_are_held() -> None:
    replay = Replay(table(), 3)
    position, attitude = replay.pose([-1e9, 0.0, 0.5, 4.0, 99.0, np.inf])
    np.testing.assert_allclose(position, PLACES[[0, 0, 0, 3, 3, 3]], atol=1e-7)
    np.testing.assert_allclose(attitude[:2], attitude[[2, 2]], atol=1e-12)
    np.testing.assert_allclose(attitude[4:], attitude[[3, 3]], atol=1e-12)


@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (0,)])
def test_any_shape_of_times(shape: tuple[int, ...]) -> None:
    position, attitude = Replay(table(), 3).pose(np.full(shape, 0.75))
    assert position.shape == (*shape, 3)
    assert attitude.shape == (*shape, 4)
    np.testing.assert_allclose(position[..., 0], 0.5, atol=1e-7)


def test_one_row_is_held_for_ever() -> None:
    replay = Replay(table(), 4)
    assert replay.duration == 0.0
    position, attitude = replay.pose([-1.0, 7.0, 8.0])
    np.testing.assert_array_equal(position, np.zeros((3, 3)))
    np.testing.assert_array_equal(attitude, np.tile([0.0, 0.0, 0.0, 1.0], (3, 1)))


def test_two_rows_of_one_instant_jump() -> None:
    """Neither a division by zero nor a pose in between: before the instant the first side, from it on the second."""
    replay = Replay(table(np.array([0.5, 1.0, 1.0, 4.0])), 3)
    position, _ = replay.pose([0.999999, 1.0])
    np.testing.assert_allclose(position, [[1, 0, 0], [1, 2, 0]], atol=1e-5)


def test_an_environment_that_was_not_recorded() -> None:
    with pytest.raises(AirworthyError, match="There is no environment 9 in this table"):
        Replay(table(), 9)
