"""What holds exactly at each limit of a protocol, and one number beyond: ends are part of what a benchmark counts."""

from __future__ import annotations

from dataclasses import replace
from math import cos, radians
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.tasks import (
    GoalProtocol,
    HoldProtocol,
    TrackingProtocol,
    classify_goal,
    classify_hold,
    classify_tracking,
    collision_events,
    hold_error,
    time_to_goal,
)
from airworthy.tasks.navigation import RATE_LIMIT, FlightMeter, GoalWatch, NavigationProtocol, SettleWatch, Tick, take_off

GOAL, LOWER, UPPER = (20.0, 0.0, 1.0), (-5.0, -10.0, 0.0), (25.0, 10.0, 3.0)
NAN = float("nan")


def beyond(value: float, towards: float = np.inf) -> float:
    return float(np.nextafter(value, towards))


def judged(place: Any, speed: float = 9.0, upright: float = 1.0, time: float = 1.0, **changes: Any) -> str:
    """Outcome after one tick."""
    watch = GoalWatch([GOAL], [LOWER], [UPPER], [0.3], replace(NavigationProtocol(), **changes))
    watch.update(np.array([time]), np.array([place]), np.array([[speed, 0.0, 0.0]]), [upright], [NAN], [False])
    return str(watch.outcome[0])


def test_an_area_holds_its_faces() -> None:
    for axis, (low, high) in enumerate(zip(LOWER, (*UPPER[:2], UPPER[2] + 0.3), strict=True)):
        for end, way in ((low, -np.inf), (high, np.inf)):
            place = [0.0, 0.0, 1.0]
            place[axis] = end
            assert judged(place) == ""
            place[axis] = beyond(end, way)
            assert judged(place) == "out_of_bounds"


def test_a_solid_ceiling_is_touched_beyond_the_radius_below_it() -> None:
    assert judged((0.0, 0.0, 3.0 - 0.3), ceiling_is_solid=True) == ""
    assert judged((0.0, 0.0, beyond(3.0 - 0.3)), ceiling_is_solid=True) == "collision"


def test_a_tilt_of_just_the_limit_is_none_too_far() -> None:
    steep = cos(radians(100.0))
    assert judged((0.0, 0.0, 1.0), upright=steep) == ""
    assert judged((0.0, 0.0, 1.0), upright=beyond(steep, -1.0)) == "diverged"


@pytest.mark.parametrize(
    ("x", "speed", "outcome"),
    [(18.0, 0.0, "success"), (beyond(18.0, 0.0), 0.0, ""), (18.0, 0.5, ""), (18.0, beyond(0.5, 0.0), "success")],
)
def test_a_goal_is_reached_at_its_radius_below_its_speed(x: float, speed: float, outcome: str) -> None:
    watch = GoalWatch([GOAL], [LOWER], [UPPER], [0.3], NavigationProtocol())
    for time in (1.0, 3.0):
        watch.update(np.array([time]), np.array([[x, 0.0, 1.0]]), np.array([[speed, 0.0, 0.0]]), [1.0], [NAN], [False])
    assert str(watch.outcome[0]) == outcome
    assert np.isnan(watch.arrival[0]) == (x < 18.0)


@pytest.mark.parametrize(("early", "outcome"), [(0.0, "timeout_no_path"), (5e-10, "timeout_no_path"), (5e-9, "")])
def test_time_is_over_at_its_limit_but_for_rounding(early: float, outcome: str) -> None:
    assert judged((0.0, 0.0, 1.0), time=90.0 - early) == outcome


@pytest.mark.parametrize(
    ("away", "speed", "hold", "settled"),
    [
        (beyond(0.5, 0.0), 0.0, 1.0, True),
        (0.5, 0.0, 1.0, False),
        (0.0, beyond(0.2, 0.0), 1.0, True),
        (0.0, 0.2, 1.0, False),
        (0.0, 0.0, 1.0 - 5e-10, True),
        (0.0, 0.0, 1.0 - 5e-9, False),
    ],
)
def test_settled_is_nearer_and_slower_than_its_limits(away: float, speed: float, hold: float, settled: bool) -> None:
    watch = SettleWatch([[0.0, 0.0, 0.0]], NavigationProtocol())
    found = [watch.update([t], [[0.0, away, 0.0]], [[0.0, speed, 0.0]]) for t in (0.0, hold)]
    assert [bool(x[0]) for x in found] == [False, settled]


def test_short_climbs_take_half_a_second() -> None:
    rise = 0.5 / 1.875
    for height, seconds in ((rise, 0.5), (0.5 * rise, 0.5), (-0.5 * rise, 0.5), (2.0 * rise, 1.0), (-2.0 * rise, 1.0)):
        ends = take_off([0.5 * seconds, beyond(seconds, 0.0), seconds, 9.0], [1.0] * 4, [1.0 + height] * 4, 1.0)
        assert ends[0] == pytest.approx([1.0 + 0.5 * height, 1.0 + height, 1.0 + height, 1.0 + height])
        assert ends[1][0] == pytest.approx(1.875 * height / seconds)
        assert ends[1][2] == ends[2][2] == 0.0


def test_a_faster_climb_takes_less_time_for_the_same_height() -> None:
    for speed in (0.5, 2.0, 4.0):
        seconds = 1.875 * 6.0 / speed
        height, climb, _ = take_off([0.5 * seconds, seconds], [0.0] * 2, [6.0] * 2, speed)
        assert [*height, *climb] == pytest.approx([3.0, 6.0, speed, 0.0], abs=1e-12)


def test_a_watch_tells_who_was_decided_at_a_tick_and_not_before() -> None:
    watch = GoalWatch([GOAL] * 3, [LOWER] * 3, [UPPER] * 3, [0.3] * 3, NavigationProtocol())
    place, still = np.array([[0.0, 0.0, 1.0], [99.0, 0.0, 1.0], [0.0, 0.0, 1.0]]), np.zeros((3, 3))
    impact = [NAN, NAN, NAN]
    assert watch.update(np.ones(3), place, still, [1.0] * 3, impact, [False] * 3).tolist() == [False, True, False]
    impact[2] = 1.5
    assert watch.update(2.0 * np.ones(3), place, still, [1.0] * 3, impact, [False] * 3).tolist() == [False, False, True]
    assert watch.active.tolist() == [True, False, False]
    assert watch.end[1:].tolist() == [1.0, 1.5]


@pytest.mark.parametrize(("rate", "share"), [(RATE_LIMIT, 0.0), (beyond(RATE_LIMIT), 1.0), (-beyond(RATE_LIMIT), 1.0)])
def test_a_meter_counts_rates_beyond_their_limit_from_the_second_tick_on(rate: float, share: float) -> None:
    meter, one = FlightMeter(1, 0.01), np.ones(1)
    zero, level = np.zeros((1, 3)), np.array([[0.0, 0.0, 0.0, 1.0]])
    for k, snap in enumerate((0.0, 0.0, 100.0)):
        # Acceleration 0, 0, 1e-4 m/s^2: a jerk of 0.01 in the last tick, and so a snap of 1.
        force = np.array([[1e-6 * snap, 0.0, 9.81]])
        meter.update(Tick(one * 0.01 * k, zero, zero, level, np.array([[0.0, rate, 0.0]]), force, one, 0.5 * one), one > 0)
        assert meter.values(one)["snap_integral"][0] == pytest.approx(0.01 * (snap > 0.0))
        assert meter.values(one)["jerk_integral"][0] == pytest.approx(1e-6 * (snap > 0.0))
    found = meter.values(one)
    assert (found["rate_saturation"][0], found["thrust_saturation"][0]) == (share, pytest.approx(0.5))
    assert found["control_effort"][0] == pytest.approx(0.02)
    meter.near([10.0], one > 0)
    assert meter.clearance[0] == 10.0


def test_a_flight_of_one_tick_has_no_shares_and_of_no_time_no_mean() -> None:
    meter, one = FlightMeter(1, 0.01), np.ones(1)
    zero, level = np.zeros((1, 3)), np.array([[0.0, 0.0, 0.0, 1.0]])
    meter.update(Tick(one, zero, zero, level, zero, zero, one, one, np.full((1, 3), NAN)), one > 0)
    found = meter.values(np.zeros(1))
    assert [found[name][0] for name in ("speed_mean_m_s", "thrust_saturation", "rate_saturation")] == [0.0, 0.0, 0.0]
    assert np.isnan(found["tracking_rmse_m"][0])


GOOD: dict[str, Any] = {
    "diverged": False, "out_of_bounds": False, "collisions": 0, "covered": True, "end_distance": 0.5, "path_distance_max": 1.5,
    "yaw_error_median": radians(30.0), "yaw_error_end": 0.0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "end", "outcome"),
    [
        ("end_distance", 0.5, "off_course"),
        ("path_distance_max", 1.5, "off_course"),
        ("yaw_error_end", radians(30.0), "partial"),
    ],
)
def test_a_course_is_flown_up_to_its_limits(name: str, end: float, outcome: str) -> None:
    assert classify_tracking(TrackingProtocol(), **(GOOD | {name: end})).tolist() == ["success"]
    assert classify_tracking(TrackingProtocol(), **(GOOD | {name: beyond(end)})).tolist() == [outcome]


def test_who_did_not_go_along_is_off_course() -> None:
    assert classify_tracking(TrackingProtocol(), **GOOD, went_along=False).tolist() == ["off_course"]


def test_a_collision_begins_below_its_clearance_and_ends_above_the_other() -> None:
    assert collision_events([1.0, 0.15, beyond(0.15, 0.0)]).tolist() == [False, False, True]
    assert collision_events([0.1, 0.25, 0.1]).tolist() == [True, False, False]
    assert collision_events([0.1, beyond(0.25), 0.1]).tolist() == [True, False, True]
    TrackingProtocol(collision_start_m=0.2, collision_end_m=0.2)
    with pytest.raises(AirworthyError, match="must not be under"):
        TrackingProtocol(collision_start_m=0.2, collision_end_m=beyond(0.2, 0.0))


def test_goals_and_set_points_at_their_limits() -> None:
    assert time_to_goal([1.0, 2.0], [[beyond(0.5), 0, 0], [0.5, 0, 0]], [0.0, 0, 0], 0.5) == 2.0
    same: dict[str, Any] = {"diverged": False, "out_of_bounds": False, "collisions": 0}

    def goal(reached: float, duration: float) -> str:
        return str(classify_goal(GoalProtocol(), **same, goal_time=reached, duration=duration)[0])

    assert [goal(60.0, 60.0), goal(beyond(60.0), 99.0)] == ["success", "timeout"]
    assert [goal(NAN, 60.0), goal(NAN, beyond(60.0, 0.0))] == ["timeout", "not_at_goal"]
    # Half a metre off until the instant at which it has to have settled, counted from the first sample.
    place = np.array([[0.5, 0, 0], [0.1, 0, 0], [0.0, 0, 0]])
    assert hold_error([3.0, 5.0, 6.0], place, [0.0, 0, 0], 2.0) == 0.1
    assert hold_error([3.0, beyond(5.0, 0.0), 6.0], place, [0.0, 0, 0], 2.0) == 0.0
    assert np.isnan(hold_error([3.0, 4.0, beyond(5.0, 0.0)], place, [0.0, 0, 0], 2.0))
    held = [str(classify_hold(HoldProtocol(), **same, error=e)[0]) for e in (0.2, beyond(0.2))]
    assert held == ["success", "not_at_goal"]
    for protocol in (GoalProtocol, HoldProtocol):
        assert protocol(radius_m=0.0).radius_m == 0.0  # of tasks that are judged by time alone
        with pytest.raises(AirworthyError, match="radius_m"):
            protocol(radius_m=-5e-324)
