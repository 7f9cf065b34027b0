"""Time allocation, shortening, and waypoints to trajectories."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from airworthy.core.errors import AirworthyError
from airworthy.trajectories import (
    Limits,
    course,
    from_waypoints,
    prove,
    shorten,
    slow_to,
    time_allocation_trapezoid,
)
from airworthy.trajectories.allocation import shorten_durations
from airworthy.trajectories.polynomial import REST_PEAK_ACCELERATION, REST_PEAK_SPEED
from airworthy.vehicles import vehicle

LINE = [[0.0, 0.0, 1.0], [4.0, 0.0, 1.0]]
BENDS = np.array([[0, 0, 1], [2, 1, 1.5], [3, -1, 1], [5, 0, 2], [6, 2, 1], [4, 4, 1.2]], dtype=np.float64)


def test_trapezoids_have_their_closed_form() -> None:
    # L = 4 m: v/a to speed up, L/v + v/a in all while v^2/a <= L, else 2 sqrt(L/a).
    assert time_allocation_trapezoid(LINE, 2.0, 3.0) == pytest.approx([4.0 / 2.0 + 2.0 / 3.0])
    assert time_allocation_trapezoid(LINE, 10.0, 3.0) == pytest.approx([2.0 * np.sqrt(4.0 / 3.0)])
    # A point on the way, straight on, changes nothing; stopping at it costs; so does a reversal.
    with_middle = [LINE[0], [1.5, 0.0, 1.0], LINE[1]]
    assert np.sum(time_allocation_trapezoid(with_middle, 2.0, 3.0)) == pytest.approx(4.0 / 2.0 + 2.0 / 3.0)
    stops = time_allocation_trapezoid(with_middle, 2.0, 3.0, stop=True)
    assert stops == pytest.approx([1.5 / 2.0 + 2.0 / 3.0, 2.5 / 2.0 + 2.0 / 3.0])
    there_and_back = time_allocation_trapezoid([LINE[0], LINE[1], LINE[0]], 2.0, 3.0)
    assert there_and_back == pytest.approx([4.0 / 2.0 + 2.0 / 3.0] * 2)


@given(st.integers(0, 100_000), st.integers(2, 9))
def test_trapezoids_keep_speed_and_acceleration(seed: int, count: int) -> None:
    points = np.random.default_rng(seed).normal(size=(count, 3)) * 3.0
    legs = np.linalg.norm(np.diff(points, axis=0), axis=1)
    durations = time_allocation_trapezoid(points, 2.0, 3.0)
    assert np.all(durations >= legs / 2.0 * (1 - 1e-12))
    assert np.all(durations <= legs / 2.0 + 2.0 * 2.0 / 3.0 + 1e-12)


def test_one_leg_is_as_fast_as_its_closed_form_allows() -> None:
    path = from_waypoints(LINE, Limits(speed=2.0), "fixed")
    assert path.duration == pytest.approx(REST_PEAK_SPEED * 4.0 / 2.0, rel=1e-3)
    path = from_waypoints(LINE, Limits(acceleration=3.0), "fixed")
    assert path.duration == pytest.approx(np.sqrt(REST_PEAK_ACCELERATION * 4.0 / 3.0), rel=1e-3)


LIMITS = [
    Limits(speed=2.0, acceleration=3.0),
    Limits(speed=5.0, acceleration=6.0, jerk=15.0),
    Limits(envelope=(2.0, 0.3)),
    Limits(speed=8.0, thrust_max=14.0, thrust_min=6.0),
    Limits(speed=3.0, acceleration=5.0, body_rate=2.0, yaw_rate=1.5),
    Limits.for_vehicle(vehicle("carl"), 0.7, speed=6.0, body_rate=6.0),
]


@pytest.mark.parametrize("limits", LIMITS, ids=range(len(LIMITS)))
def test_waypoints_are_passed_within_limits_and_limits_bind(limits: Limits) -> None:
    path = from_waypoints(BENDS, limits, evaluations=150)
    np.testing.assert_allclose(path.sample(path.knots).position, BENDS, atol=1e-9)
    ends = path.sample([0.0, path.duration])
    assert max(np.max(np.abs(getattr(ends, name))) for name in ("velocity", "acceleration", "jerk")) < 1e-9
    proof = prove(path, limits)
    assert proof.proven
    used = [
        check.attained / check.limit if check.sense == "at most" else check.limit / check.attained for check in proof.checks
    ]
    assert max(used) > 0.97


def test_more_search_is_never_slower() -> None:
    limits = Limits(speed=2.0, acceleration=3.0)
    durations = [from_waypoints(BENDS, limits, evaluations=n).duration for n in (1, 60, 600)]
    assert durations[2] <= durations[1] * (1 + 1e-3)
    assert durations[1] <= durations[0] * (1 + 1e-3)
    assert durations[2] < 0.97 * durations[0]


def test_the_search_repeats_itself() -> None:
    start, limits = time_allocation_trapezoid(BENDS, 2.0, 3.0), Limits(speed=2.0, acceleration=3.0)
    np.testing.assert_array_equal(shorten_durations(BENDS, start, limits, 80), shorten_durations(BENDS, start, limits, 80))


def test_yaw_follows_what_was_asked() -> None:
    forward = from_waypoints(BENDS, evaluations=20)
    at = forward.sample(forward.knots[1:-1])
    np.testing.assert_allclose(np.cos(at.yaw - np.arctan2(at.velocity[:, 1], at.velocity[:, 0])), 1.0, atol=1e-9)
    assert not np.any(from_waypoints(BENDS, yaw="fixed", evaluations=20).sample([0.0, 3.0]).yaw)
    assert from_waypoints(BENDS, yaw=0.7, evaluations=20).sample(2.0).yaw == 0.7
    angles = [0.0, 1.0, 2.0, 3.0, -3.0, -2.0]
    turning = from_waypoints(BENDS, yaw=angles, evaluations=20)
    np.testing.assert_allclose(turning.sample(turning.knots).yaw, np.unwrap(angles), atol=1e-9)
    assert from_waypoints([[0, 0, 0], [0, 0, 3]]).sample(1.0).yaw == 0.0


def test_shortening_reaches_the_limit_and_slowing_only_slows() -> None:
    path = course("sigmoid").trajectory()
    limits = Limits(speed=3.0, acceleration=4.0, thrust_max=15.0, body_rate=4.0)
    fast = shorten(path, limits)
    assert fast.duration < path.duration
    checks = prove(fast, limits)
    assert checks.proven
    assert max(check.attained / check.limit for check in checks.checks) > 0.99
    assert slow_to(path, limits) is path
    slow = slow_to(path, Limits(speed=1.0))
    assert slow.duration == pytest.approx(path.duration * 1.7834, rel=2e-3)
    assert prove(slow, Limits(speed=1.0)).proven


@settings(max_examples=15)
@given(st.integers(0, 100_000), st.integers(2, 8))
def test_random_waypoints_give_proven_paths(seed: int, count: int) -> None:
    points = np.random.default_rng(seed).normal(size=(count, 3)) * 2.0
    limits = Limits(speed=3.0, acceleration=4.0, thrust_max=13.0)
    assert prove(from_waypoints(points, limits, evaluations=20), limits).proven


@pytest.mark.parametrize(
    ("points", "options", "message"),
    [
        ([[0, 0, 0]], {}, "2 or more"),
        ([[0, 0], [1, 1]], {}, "2 or more"),
        ([[0, 0, 0], [0, 0, 0], [1, 0, 0]], {}, "same point"),
        ([[0, 0, 0], [np.nan, 0, 0]], {}, "finite"),
        ([[0.0, 0, 0]] * 3000, {}, "same point"),
        (np.arange(9000.0).reshape(-1, 3), {}, "more than"),
        (LINE, {"limits": Limits(yaw_rate=1.0)}, "must bound"),
        (LINE, {"yaw": "backwards"}, "Yaw must be"),
        (LINE, {"yaw": [0.0, 1.0, 2.0]}, "one angle per waypoint"),
        (LINE, {"yaw": [0.0, np.inf]}, "finite"),
    ],
)
def test_mistakes_are_named(points: ArrayLike, options: dict[str, object], message: str) -> None:
    with pytest.raises(AirworthyError, match=message):
        from_waypoints(points, **options)  # type: ignore[arg-type]


def test_what_cannot_be_scaled_is_said() -> None:
    with pytest.raises(AirworthyError, match="No limit binds"):
        shorten(course("hover").trajectory(), Limits(speed=1.0))
    with pytest.raises(AirworthyError, match="must be positive"):
        time_allocation_trapezoid(LINE, 0.0, 1.0)
    with pytest.raises(AirworthyError, match="time scale"):
        course("hover").trajectory().scaled(0.0)
