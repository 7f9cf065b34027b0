"""The protocol of the navigation benchmark: what ends a flight, when, and as what; what is measured on the way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airworthy.core.errors import AirworthyError
from airworthy.tasks.navigation import (
    NAVIGATION_OUTCOMES,
    FlightMeter,
    GoalWatch,
    NavigationProtocol,
    SettleWatch,
    Tick,
    acceleration_limit,
    take_off,
)

DT = 0.01
GOAL, LOWER, UPPER = (20.0, 0.0, 1.0), (-5.0, -10.0, 0.0), (25.0, 10.0, 3.0)


def watch(count: int = 1, **changes: Any) -> GoalWatch:
    corners = [np.tile(corner, (count, 1)) for corner in (GOAL, LOWER, UPPER)]
    return GoalWatch(*corners, np.full(count, 0.3), NavigationProtocol(**changes))


def outcome_of(position: Any, velocity: Any = (0.0, 0.0, 0.0), *, dt: float = DT, **overrides: Any) -> tuple[str, float]:
    """Outcome and time of one flight with positions (n, 3) at ticks 1 .. n, and constant or given velocities."""
    place = np.atleast_2d(np.asarray(position, float))
    speed = np.broadcast_to(np.asarray(velocity, float), place.shape)
    watcher = watch(**overrides.pop("protocol", {}))
    values = {"upright": 1.0, "impact": np.nan, "diverged": False, "searching": False} | overrides
    for k, (p, v) in enumerate(zip(place, speed, strict=True)):
        at = {name: np.atleast_1d(value[k] if np.ndim(value) else value) for name, value in values.items()}
        watcher.update(np.array([(k + 1) * dt]), p[None], v[None], **at)
        if not watcher.active[0]:
            break
    return str(watcher.outcome[0]), float(watcher.end[0])


def still(seconds: float, place: Any = GOAL, dt: float = DT) -> Any:
    return np.tile(place, (round(seconds / dt), 1))


def test_success_is_two_seconds_slow_and_inside() -> None:
    # The first tick that is inside is at 0.01 s, so that 2 s have been held at 2.01 s.
    assert outcome_of(still(3.0)) == ("success", pytest.approx(2.01))
    assert outcome_of(still(3.0, (18.1, 0.0, 1.0)))[0] == "success"
    assert outcome_of(still(3.0, (17.9, 0.0, 1.0)))[0] == ""
    assert outcome_of(still(3.0), (0.6, 0.0, 0.0))[0] == ""
    assert outcome_of(still(1.9))[0] == ""


def test_a_break_begins_the_hold_anew() -> None:
    place = still(4.0)
    place[150] = (17.0, 0.0, 1.0)  # outside for one tick, at 1.51 s; inside again from 1.52 s
    assert outcome_of(place) == ("success", pytest.approx(3.52))


def test_arrival_is_the_first_time_inside() -> None:
    watcher = watch()
    for k, x in enumerate(np.linspace(10.0, 20.0, 101)):
        watcher.update(np.array([k * 0.1]), np.array([[x, 0.0, 1.0]]), np.array([[4.0, 0, 0]]), [1.0], [np.nan], [False])
    assert watcher.arrival[0] == pytest.approx(8.0)
    assert watcher.active[0]


@pytest.mark.parametrize(
    ("overrides", "outcome"),
    [
        ({"position": still(1.0, (0, 0, 1)), "impact": 0.004}, "collision"),
        ({"position": still(1.0, (0, 0, 1)), "upright": -0.18}, "diverged"),  # 100.4 degrees
        ({"position": still(1.0, (0, 0, 1)), "upright": -0.17}, ""),  # 99.8 degrees
        ({"position": still(1.0, (0, 0, 1)), "diverged": True}, "diverged"),
        ({"position": still(1.0, (np.nan, 0, 1))}, "diverged"),
        ({"position": still(1.0, (25.1, 0, 1))}, "out_of_bounds"),
        ({"position": still(1.0, (0, -10.1, 1))}, "out_of_bounds"),
        ({"position": still(1.0, (0, 0, 3.29))}, ""),
        ({"position": still(1.0, (0, 0, 3.31))}, "out_of_bounds"),
        ({"position": still(1.0, (0, 0, 2.71)), "protocol": {"ceiling_is_solid": True}}, "collision"),
        ({"position": still(1.0, (0, 0, 2.69)), "protocol": {"ceiling_is_solid": True}}, ""),
    ],
)
def test_failures(overrides: dict[str, Any], outcome: str) -> None:
    assert outcome_of(**overrides)[0] == outcome


def test_a_collision_ends_at_the_impact() -> None:
    assert outcome_of(still(1.0), impact=0.0042) == ("collision", pytest.approx(0.0042))


def test_the_limit_tells_stable_from_under_way() -> None:
    away, dt = still(91.0, (5, 0, 1), 0.1), 0.1
    assert outcome_of(away, dt=dt) == ("not_at_goal", pytest.approx(90.0))
    assert outcome_of(away, (1.0, 0, 0), dt=dt) == ("timeout_no_path", pytest.approx(90.0))
    assert outcome_of(away, dt=dt, searching=True)[0] == "timeout_no_path"
    late = np.concatenate([still(89.0, (5, 0, 1), dt), still(2.0, GOAL, dt)])
    assert outcome_of(late, dt=dt)[0] == "timeout_no_path"  # at the goal, but not for two seconds


def test_what_is_decided_stays() -> None:
    watcher = watch()
    watcher.update([1.0], [[0, 0, 1]], [[0, 0, 0]], [1.0], [0.9], [False])
    for k in range(400):
        watcher.update([2.0 + k * DT], [GOAL], [[0, 0, 0]], [1.0], [np.nan], [False])
    assert (watcher.outcome[0], watcher.end[0]) == ("collision", 0.9)
    assert not watcher.fail([True], "planner_crash", 9.0).any()


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1), st.integers(2, 6))
def test_a_flight_is_judged_the_same_alone_and_in_a_batch(seed: int, count: int) -> None:
    rng, ticks = np.random.default_rng(seed), 120
    place = np.cumsum(rng.normal(0.0, 0.6, (ticks, count, 3)), axis=0) + np.array([17.0, 0.0, 1.5])
    speed = rng.normal(0.0, 0.4, (ticks, count, 3))
    upright, impact = rng.uniform(-0.2, 1.0, (ticks, count)), np.where(rng.random((ticks, count)) < 0.01, 0.1, np.nan)
    whole = watch(count, goal_hold_s=0.05)
    alone = [watch(1, goal_hold_s=0.05) for _ in range(count)]
    for k in range(ticks):
        time = np.full(count, (k + 1) * DT)
        whole.update(time, place[k], speed[k], upright[k], impact[k], np.zeros(count, bool))
        for i, watcher in enumerate(alone):
            one = slice(i, i + 1)
            watcher.update(time[one], place[k, one], speed[k, one], upright[k, one], impact[k, one], np.zeros(1, bool))
    assert [str(watcher.outcome[0]) for watcher in alone] == list(whole.outcome)
    assert np.array_equal([watcher.end[0] for watcher in alone], whole.end, equal_nan=True)
    assert set(whole.outcome) <= {"", *NAVIGATION_OUTCOMES}


def test_settling_needs_a_calm_second_at_the_start() -> None:
    watcher = SettleWatch([[0.0, 0.0, 1.0]], NavigationProtocol())
    found = []
    for k in range(400):
        z = min(1.0, 0.5 + k * DT)  # at the start, within 0.5 m, from the first tick; fast until 0.5 s
        climb = 1.0 if z < 1.0 else 0.0
        found.append(bool(watcher.update([k * DT], [[0, 0, z]], [[0, 0, climb]])[0]))
    assert np.flatnonzero(found).tolist() == [150]  # slow from tick 50 on, held for a second
    assert watcher.settled[0]


def test_acceleration_limit() -> None:
    # 0.8 g sqrt(1.4^2 - 1) = 7.69 m/s^2: above the common limit, as the specification says.
    assert acceleration_limit([1.4, 1.0, 0.5], common=100.0) == pytest.approx([7.6894, 0.0, 0.0], abs=1e-3)
    assert acceleration_limit([1.4, 6.0]).tolist() == [6.0, 6.0]
    assert acceleration_limit([1.1])[0] == pytest.approx(0.8 * 9.81 * np.sqrt(0.21))


def test_take_off_is_smooth_and_no_faster_than_asked() -> None:
    time = np.linspace(0.0, 5.0, 5001)
    height, climb, push = take_off(time, 0.32, 2.5, 1.0)
    assert (height[0], height[-1], climb[0], climb[-1]) == pytest.approx((0.32, 2.5, 0.0, 0.0))
    assert climb.max() == pytest.approx(1.0, abs=1e-6)
    # Central differences of a quintic over 1 ms: error below h^2 / 6 times its fifth derivative, 1e-6 here.
    assert np.gradient(height, time)[1:-1] == pytest.approx(climb[1:-1], abs=2e-5)
    assert np.gradient(climb, time)[1:-1] == pytest.approx(push[1:-1], abs=2e-3)


@pytest.mark.parametrize("name", ["time_limit_s", "goal_radius_m", "speed_m_s"])
def test_a_protocol_refuses_what_is_no_limit(name: str) -> None:
    for value in (0.0, -1.0, float("nan")):
        with pytest.raises(AirworthyError, match=name):
            NavigationProtocol(**{name: value})


def meter_of(position: Any, velocity: Any, acceleration: Any, count: int = 1, **more: Any) -> FlightMeter:
    """A meter that was told a level flight, tick by tick; accelerations (n, 3) in the world."""
    made = FlightMeter(count, DT)
    for k in range(len(position)):
        arrays = {
            "position": np.tile(position[k], (count, 1)),
            "velocity": np.tile(velocity[k], (count, 1)),
            "attitude": np.tile((0.0, 0.0, 0.0, 1.0), (count, 1)),
            "body_rate": np.zeros((count, 3)),
            "force": np.tile(acceleration[k] + np.array([0, 0, 9.81]), (count, 1)),
            "effort": np.full(count, 0.25),
            "saturated": np.full(count, 0.5),
        }
        made.update(Tick(np.full(count, k * DT), **(arrays | {n: v[k] for n, v in more.items()})), np.ones(count, bool))
    return made


def test_a_meter_measures_a_swing() -> None:
    # x = a sin(w t): jerk a w^3 cos, snap a w^4 sin; over whole periods the mean squares are half the squared amplitudes.
    a, w = 2.0, 2.0 * np.pi
    t = np.arange(0, 400 + 1) * DT
    zero = np.zeros_like(t)
    place = np.stack([a * np.sin(w * t), zero, zero + 1.0], 1)
    speed = np.stack([a * w * np.cos(w * t), zero, zero], 1)
    push = np.stack([-a * w**2 * np.sin(w * t), zero, zero], 1)
    found = meter_of(place, speed, push, wanted=place[:, None] + np.array([0.3, 0.0, 0.4])).values(np.array([4.0]))
    assert found["path_length_m"][0] == pytest.approx(8 * 4 * a / 2, rel=1e-3)
    assert found["speed_max_m_s"][0] == pytest.approx(a * w)
    assert found["speed_mean_m_s"][0] == pytest.approx(8.0, rel=1e-3)
    # Differences over a tick damp a sine of w dt = 0.063 by sin(x/2)/(x/2): 0.02 % in each derivative.
    assert found["jerk_integral"][0] == pytest.approx(0.5 * (a * w**3) ** 2 * 4.0, rel=2e-3)
    assert found["snap_integral"][0] == pytest.approx(0.5 * (a * w**4) ** 2 * 4.0, rel=1e-2)
    assert found["control_effort"][0] == pytest.approx(0.25 * 4.0)
    assert found["tracking_rmse_m"][0] == pytest.approx(0.5)
    assert found["thrust_saturation"][0] == pytest.approx(0.5)
    assert found["rate_saturation"][0] == 0.0


def test_a_meter_stops_with_its_flight() -> None:
    made = FlightMeter(2, DT)
    unit, zero = np.tile((0.0, 0.0, 0.0, 1.0), (2, 1)), np.zeros((2, 3))
    for k in range(101):
        place = np.tile((k * 0.04, 0.0, 1.0), (2, 1))
        tick = Tick(np.full(2, k * DT), place, zero, unit, zero, zero + np.array([0, 0, 9.81]), np.ones(2), np.zeros(2))
        made.update(tick, np.array([True, k <= 50]))
    made.near([0.7, 0.1], np.array([True, False]))
    found = made.values(np.array([1.0, 0.5]))
    assert found["path_length_m"].tolist() == pytest.approx([4.0, 2.0])
    assert made.clearance.tolist() == [0.7, 10.0]
    assert np.isnan(found["tracking_rmse_m"]).all()


@pytest.mark.parametrize(("short", "outcome"), [(5e-10, "success"), (5e-7, "")])
def test_a_hold_may_be_short_by_what_times_are_rounded_and_no_more(short: float, outcome: str) -> None:
    watcher = watch()
    for time in (0.0, 2.0 - short):
        watcher.update(np.array([time]), np.array([GOAL]), np.zeros((1, 3)), [1.0], [np.nan], [False])
    assert str(watcher.outcome[0]) == outcome


@pytest.mark.parametrize(("short", "outcome"), [(5e-10, "not_at_goal"), (5e-7, "timeout_no_path")])
def test_rest_elsewhere_may_be_short_by_what_times_are_rounded_and_no_more(short: float, outcome: str) -> None:
    """At the limit of time, slow since two seconds before it but for less or more than a billionth."""
    watcher = watch()
    for time in (88.0 + short, 90.0):
        watcher.update(np.array([time]), np.array([(5.0, 0.0, 1.0)]), np.zeros((1, 3)), [1.0], [np.nan], [False])
    assert str(watcher.outcome[0]) == outcome


@pytest.mark.parametrize(("rate", "share"), [((0.0, 0.0, 50.0), 0.0), ((50.0, 0.0, 0.0), 1.0), ((0.0, -50.0, 0.0), 1.0)])
def test_saturated_rates_are_those_of_roll_and_pitch(rate: tuple[float, ...], share: float) -> None:
    made = FlightMeter(1, DT)
    unit, zero = np.array([[0.0, 0.0, 0.0, 1.0]]), np.zeros((1, 3))
    for k in range(11):
        tick = Tick(
            np.full(1, k * DT), zero, zero, unit, np.array([rate]), zero + np.array([0, 0, 9.81]), np.ones(1), np.zeros(1)
        )
        made.update(tick, np.ones(1, bool))
    assert made.values(np.array([0.1]))["rate_saturation"][0] == pytest.approx(share)
