"""SV-Net's inputs by hand, by their equations, and alike in training and in flight."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from airworthy.core.errors import AirworthyError
from airworthy.core.files import read_json
from airworthy.pilots.svnet.features import (
    HISTORY_TICKS,
    History,
    from_command,
    history_features,
    observable,
    to_command,
    to_objective,
    vision_state,
)


def rollouts(count: int = 4, ticks: int = 9) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    state = rng.normal(size=(count, ticks, 10))
    state[..., 6:] /= np.linalg.norm(state[..., 6:], axis=-1, keepdims=True)
    return np.cumsum(rng.uniform(0.04, 0.06, (count, ticks)), axis=1), state, rng.uniform(-1, 1, (count, ticks, 4))


def test_lateral_position_is_dropped() -> None:
    """Position x and y change nothing that the network could read."""
    time, state, command = rollouts()
    moved = state + np.array([123.0, -45.0, *[0.0] * 8])
    np.testing.assert_array_equal(observable(state), observable(moved))
    np.testing.assert_array_equal(history_features(time, state, command), history_features(time, moved, command))


def test_order_and_frames() -> None:
    """A drone at 1.5 m, flying left and up, yawed to the left by 0.4 rad: z is down, y right, yaw to the right."""
    half = 0.2
    state = np.array([7.0, 8.0, 1.5, 0.3, 0.6, 0.9, 0.0, 0.0, np.sin(half), np.cos(half)])
    observed = observable(state)
    np.testing.assert_allclose(observed, [-1.5, 0.3, -0.6, -0.9, 0.0, 0.0, -np.sin(half), np.cos(half)], atol=1e-15)
    np.testing.assert_allclose(vision_state(observed), [-1.5, 0.0, 0.0, -np.sin(half), np.cos(half)], atol=1e-15)
    np.testing.assert_array_equal(from_command([0.4, 1.0, 2.0, 3.0]), [-0.4, 1.0, -2.0, -3.0])
    np.testing.assert_array_equal(to_command(from_command([0.4, 1.0, 2.0, 3.0])), [0.4, 1.0, 2.0, 3.0])


@pytest.mark.parametrize("form", ["paper", "code"])
def test_a_row_of_the_history_by_hand(form: str) -> None:
    time, state, command = rollouts(1, 3)
    observed, given = observable(state)[0], from_command(command)[0]
    rows = history_features(time, state, command, form).reshape(3, 15, 5)  # type: ignore[arg-type]
    assert not rows[0].any()  # the first tick adds nothing
    assert not rows[1, :, 1:].any()
    dt = time[0, 2] - time[0, 1]
    newest, older = rows[2, :, 0], rows[2, :, 1]
    np.testing.assert_allclose(newest[0], dt)
    np.testing.assert_allclose(newest[1:4], observed[2, 1:4] * (dt if form == "paper" else 1.0))
    np.testing.assert_allclose(newest[4:7], observed[2, 1:4] - observed[1, 1:4])
    turn = Rotation.from_quat(observed[2, 4:]).inv() * Rotation.from_quat(observed[1, 4:])
    assert abs(np.dot(newest[7:11], turn.as_quat())) == pytest.approx(1.0)
    np.testing.assert_array_equal(newest[11:], given[1])
    np.testing.assert_array_equal(older, rows[1, :, 0])


@pytest.mark.parametrize("form", ["paper", "code"])
def test_training_and_flight_read_the_same(form: str) -> None:
    time, state, command = rollouts(4, 9)
    whole = history_features(time, state, command, form)  # type: ignore[arg-type]
    observed, given = observable(state), from_command(command)
    flights = History(4, form)  # type: ignore[arg-type]
    for k in range(9):
        flights.push(time[:, k], observed[:, k], given[:, k - 1] if k else np.zeros((4, 4)))
        np.testing.assert_array_equal(flights.features(), whole[:, k])
    flights.reset([1])
    flights.push(time[:, 0] + 9.0, observed[:, 0], given[:, 0])
    assert not flights.features()[1].any()
    assert flights.features()[0].any()


def test_a_tick_for_some_leaves_the_others() -> None:
    time, state, command = rollouts(3, 4)
    observed, given = observable(state), from_command(command)
    flights = History(3)
    for k in range(3):
        flights.push(time[:, k], observed[:, k], given[:, k])
    before = flights.features()
    flights.push(time[:, 3], observed[:, 3], given[:, 3], np.array([True, False, True]))
    assert (flights.features()[1] == before[1]).all()
    assert (flights.features()[0] != before[0]).any()


def test_objectives_of_the_published_courses(data_dir: Path) -> None:
    from airworthy.pilots.svnet.pilot import objective_of
    from airworthy.trajectories import course

    courses = read_json(data_dir / "sousvide" / "reference_summary.json")["courses"]
    for name, facts in courses.items():
        if "objective" not in facts:
            continue
        found = to_objective(objective_of(course(name).trajectory()))
        wanted = np.array(facts["objective"])
        if abs(wanted[13]) < 1e-6:  # half a turn: which way is a matter of rounding, and of all that follows
            found[10:] *= np.sign(found[10:14] @ wanted[10:14])
        np.testing.assert_allclose(found, wanted, atol=2e-6)


def test_both_quaternions_of_an_attitude_are_one_to_the_network() -> None:
    """A flight that has turned by more than half a turn carries the one, a roll-out that begins there the other."""
    rng = np.random.default_rng(5)
    state = rng.normal(size=(4, 9, 10))
    state[..., 6:] /= np.linalg.norm(state[..., 6:], axis=-1, keepdims=True)
    turned = state.copy()
    turned[..., 6:] *= rng.choice([-1.0, 1.0], (4, 9, 1))
    assert (observable(state)[..., 7] >= 0.0).all()
    np.testing.assert_array_equal(observable(turned), observable(state))
    command = rng.normal(size=(4, 9, 4))
    times = 0.05 * np.arange(9.0)
    rows = history_features(times, state, command)
    np.testing.assert_array_equal(history_features(times, turned, command), rows)


def test_mistakes() -> None:
    with pytest.raises(AirworthyError, match="shape"):
        observable(np.zeros(9))
    with pytest.raises(AirworthyError, match="shape"):
        to_objective(np.zeros(17))
    with pytest.raises(AirworthyError, match="form"):
        History(1, "other").push([0.0], np.zeros((1, 8)), np.zeros((1, 4)))  # type: ignore[arg-type]


def test_a_turn_past_half_a_turn_is_as_small_as_any() -> None:
    """Yaw from 179 to 181 degrees: quaternions with w >= 0 jump there, the turn between them does not."""
    half = np.radians([179.0, 181.0]) / 2.0
    states = np.zeros((1, 2, 10))
    states[0, :, 8], states[0, :, 9] = np.sin(half), np.cos(half)
    turn = history_features([0.0, 0.05], states, np.zeros((1, 2, 4)))[0, 1].reshape(15, HISTORY_TICKS)[7:11, 0]
    assert turn[3] == pytest.approx(np.cos(np.radians(1.0)), abs=1e-12)
    assert np.linalg.norm(turn[:3]) == pytest.approx(np.sin(np.radians(1.0)), abs=1e-12)
