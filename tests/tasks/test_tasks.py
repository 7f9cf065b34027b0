"""Outcome rules, collision events and references, as pure functions."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airworthy.core.errors import AirworthyError, UnknownNameError
from airworthy.tasks import (
    OUTCOMES,
    SUCCESSES,
    GoalProtocol,
    HoldProtocol,
    TrackingProtocol,
    TrackingReference,
    classify_goal,
    classify_hold,
    classify_tracking,
    collision_events,
    hold_error,
    time_to_goal,
)
from airworthy.tasks.outcomes import check_outcome

GOOD = {
    "diverged": False,
    "out_of_bounds": False,
    "collisions": 0,
    "covered": True,
    "end_distance": 0.1,
    "path_distance_max": 0.2,
    "yaw_error_median": 0.0,
    "yaw_error_end": 0.0,
}


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({}, "success"),
        ({"collisions": 2}, "success_recovered"),
        ({"collisions": 2, "yaw_error_end": 1.0}, "partial"),
        ({"yaw_error_median": np.nan, "yaw_error_end": np.nan}, "success"),
        ({"yaw_error_median": np.nan, "yaw_error_end": 1.0}, "partial"),
        ({"end_distance": 0.51}, "off_course"),
        ({"path_distance_max": 1.51}, "off_course"),
        ({"path_distance_max": np.nan, "end_distance": np.nan}, "off_course"),
        ({"collisions": 1, "end_distance": 0.51}, "collision"),
        ({"collisions": 1, "covered": False}, "collision"),
        ({"covered": False}, "aborted"),
        ({"covered": False, "path_distance_max": 2.0}, "off_course"),
        ({"out_of_bounds": True}, "out_of_bounds"),
        ({"out_of_bounds": True, "collisions": 1}, "collision"),
        ({"diverged": True, "collisions": 1, "out_of_bounds": True}, "diverged"),
    ],
)
def test_tracking_rules(changes: dict[str, object], outcome: str) -> None:
    assert classify_tracking(TrackingProtocol(), **(GOOD | changes)).tolist() == [outcome]  # type: ignore[arg-type]


@given(
    st.lists(
        st.tuples(st.booleans(), st.booleans(), st.integers(0, 2), st.booleans(), *[st.floats(allow_nan=True)] * 4),
        min_size=1,
        max_size=8,
    )
)
def test_batch_equals_one_by_one_and_failures_never_succeed(rows: list[tuple[object, ...]]) -> None:
    columns = dict(zip(GOOD, map(np.array, zip(*rows, strict=True)), strict=True))
    together = classify_tracking(TrackingProtocol(), **columns)
    alone = [classify_tracking(TrackingProtocol(), **dict(zip(GOOD, row, strict=True)))[0] for row in rows]  # type: ignore[arg-type]
    assert together.tolist() == alone
    for outcome, row in zip(together, rows, strict=True):
        assert outcome in OUTCOMES
        if outcome in SUCCESSES:
            assert not row[0]
            assert not row[1]
            assert row[3]
            assert row[4] <= 0.5  # type: ignore[operator]


def test_outcome_names_are_checked() -> None:
    assert len(OUTCOMES) == 11
    with pytest.raises(UnknownNameError, match="'success'"):
        check_outcome("succes")


def test_collision_events_have_hysteresis() -> None:
    clearance = [1.0, 0.14, 0.2, 0.14, 0.24, 0.26, 0.2, 0.1, 0.3, np.nan, 0.1, np.nan, 0.2, 0.12]
    assert np.flatnonzero(collision_events(clearance)).tolist() == [1, 7, 10]
    assert collision_events([]).shape == (0,)
    assert collision_events([0.1, 0.1]).tolist() == [True, False]


def state_machine(clearance: list[float], start: float, end: float) -> list[bool]:
    """The definition, sample by sample."""
    inside, events = False, []
    for value in clearance:
        before = inside
        if value < start:
            inside = True
        elif value > end:
            inside = False
        events.append(inside and not before)
    return events


@given(st.lists(st.floats(0.0, 0.4) | st.just(float("nan")), max_size=60))
def test_collision_events_equal_the_state_machine(clearance: list[float]) -> None:
    assert collision_events(clearance).tolist() == state_machine(clearance, 0.15, 0.25)


def test_goal_rules() -> None:
    protocol = GoalProtocol(radius_m=0.5, timeout_s=60.0)
    outcomes = classify_goal(
        protocol,
        diverged=[0, 0, 0, 0, 0, 0, 1],
        out_of_bounds=[0, 0, 0, 1, 0, 0, 0],
        collisions=[0, 1, 0, 0, 0, 1, 0],
        goal_time=[12.0, 12.0, np.nan, np.nan, np.nan, np.nan, 3.0],
        duration=[12.0, 12.0, 60.0, 5.0, 20.0, 5.0, 3.0],
    )
    assert outcomes.tolist() == ["success", "collision", "timeout", "out_of_bounds", "not_at_goal", "collision", "diverged"]
    lenient = GoalProtocol(collision_ends=False)
    same = {"diverged": False, "out_of_bounds": False, "duration": 12.0}
    assert classify_goal(lenient, collisions=1, goal_time=12.0, **same)[0] == "success_recovered"  # type: ignore[arg-type]
    assert classify_goal(lenient, collisions=1, goal_time=np.nan, **same)[0] == "collision"  # type: ignore[arg-type]


def test_time_to_goal() -> None:
    t = np.arange(5.0)
    position = np.stack((t, 0 * t, 0 * t), axis=-1)
    position[1] = np.nan
    assert time_to_goal(t, position, [3.0, 0.2, 0.0], 0.5) == 3.0
    assert np.isnan(time_to_goal(t, position, [9.0, 0.0, 0.0], 0.5))
    with pytest.raises(AirworthyError, match="timeout_s"):
        GoalProtocol(timeout_s=float("nan"))


def test_hold_rules() -> None:
    t = np.linspace(0.0, 10.0, 101)
    position = np.zeros((101, 3))
    position[:15, 0] = 1.0
    assert hold_error(t, position, [0.0, 0.0, 0.1], 2.0) == pytest.approx(0.1)
    assert np.isnan(hold_error(t[:10], position[:10], [0.0, 0.0, 0.0], 2.0))
    assert np.isnan(hold_error([], np.zeros((0, 3)), [0.0, 0.0, 0.0], 2.0))
    position[50] = np.nan
    assert hold_error(t, position, [0.0, 0.0, 0.0], 2.0) == np.inf
    outcomes = classify_hold(
        HoldProtocol(radius_m=0.2),
        diverged=[0, 0, 0, 0, 1],
        out_of_bounds=[0, 0, 1, 0, 0],
        collisions=[0, 0, 0, 1, 0],
        error=[0.1, 0.3, np.inf, 0.1, np.nan],
    )
    assert outcomes.tolist() == ["success", "not_at_goal", "out_of_bounds", "collision", "diverged"]
    assert classify_hold(HoldProtocol(), diverged=0, out_of_bounds=0, collisions=0, error=np.nan)[0] == "aborted"


def line(**changes: np.ndarray) -> TrackingReference:
    t = np.linspace(0.0, 4.0, 5)
    values = {"t": t, "position": np.stack((t, 0 * t, 0 * t), -1), "velocity": np.tile([1.0, 0, 0], (5, 1)), "yaw": 0 * t}
    return TrackingReference(**(values | changes))


def test_reference_between_and_beyond_its_samples() -> None:
    reference = line(yaw=np.array([3.0, -3.0, -2.0, -1.0, 0.0]))
    np.testing.assert_allclose(reference.position_at([0.5, 9.0]), [[0.5, 0, 0], [4.0, 0, 0]])
    np.testing.assert_allclose(reference.velocity_at([0.5, 4.0, 9.0]), [[1, 0, 0], [1, 0, 0], [0, 0, 0]])
    # From 3 rad on to -3 + 2 pi, not back through 0.
    assert reference.yaw_at(0.5) == pytest.approx(np.pi)
    assert (reference.duration, reference.length) == (4.0, 4.0)


def test_reference_path_leaves_out_repetitions() -> None:
    held = line(position=np.array([[0.0, 0, 0], [0, 0, 0], [1, 0, 0], [1, 0, 0], [1, 0, 0]]))
    np.testing.assert_array_equal(held.path, [[0, 0, 0], [1, 0, 0]])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"t": np.zeros(0)}, "at least one sample"),
        ({"t": np.array([0.0, 1, 1, 2, 3])}, "rise"),
        ({"yaw": np.zeros(4)}, "yaw has shape"),
        ({"velocity": np.full((5, 3), np.nan)}, "not finite"),
    ],
)
def test_a_reference_that_is_none_is_refused(changes: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(AirworthyError, match=message):
        line(**changes)


def test_reference_of_a_trajectory() -> None:
    def sample(t: np.ndarray) -> SimpleNamespace:
        return SimpleNamespace(position=np.stack((t**2, t, 0 * t), -1), velocity=np.stack((2 * t, 1 + 0 * t, 0 * t), -1), yaw=t)

    reference = TrackingReference.from_trajectory(SimpleNamespace(duration=2.02, sample=sample))
    assert reference.t[[0, -1]].tolist() == [0.0, 2.02]
    assert reference.t.size == 41
    brief = TrackingReference.from_trajectory(SimpleNamespace(duration=0.01, sample=sample))
    assert brief.t.tolist() == [0.0, 0.01]
    still = TrackingReference.from_trajectory(SimpleNamespace(duration=0.0, sample=sample))
    assert still.t.tolist() == [0.0]
