"""Limits from vehicles, proofs that trajectories keep them, stops, headings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from airworthy.core.arrays import Array
from airworthy.planners.common.interface import Airframes, Mission
from airworthy.planners.common.reference import evaluate_polynomial
from airworthy.planners.known_free.candidates import brakes, candidates, route_speeds, stopping_speed, time_left
from airworthy.planners.known_free.config import KnownFreeSettings
from airworthy.planners.known_free.heading import Headings
from airworthy.planners.known_free.limit_proofs import parts_keep_limits
from airworthy.planners.known_free.limits import GRAVITY, MotionLimits, limits_of
from airworthy.planners.known_free.motion import (
    StoppingPlans,
    hulls,
    parts_within_limits,
    pieces,
    quintics,
    stopping,
    within_limits,
)
from airworthy.vehicles import RotorResponse, vehicle

NAMES = ("real_09", "real_12", "virt_05")


def limits(names: tuple[str, ...] = NAMES) -> MotionLimits:
    n = len(names)
    row = np.zeros((n, 3))
    mission = Mission(
        row, row + 5.0, np.full(n, 4.0), np.full(n, 6.0), row - 10.0, row + 10.0, np.arange(n),
        vehicle=Airframes.of([vehicle(name) for name in names]),
    )  # fmt: skip
    return limits_of(mission, KnownFreeSettings())


def test_weak_vehicles_are_asked_for_less() -> None:
    found = limits()
    assert found.acceleration[0] <= found.acceleration[1] <= found.acceleration[2]
    assert found.jerk[0] < found.jerk[1] < found.jerk[2]
    assert found.yaw_acceleration[0] < found.yaw_acceleration[2]
    # What is planned for leaves every rotor a share of its thrust, and the hover itself is within it.
    ratio = Airframes.of([vehicle(name) for name in NAMES]).thrust_to_weight
    np.testing.assert_allclose(found.thrust, 0.8 * GRAVITY * ratio)
    assert (found.thrust > GRAVITY).all()


def test_yaw_has_what_rotors_that_hover_at_little_have_left() -> None:
    """With six times the weight in thrust rotors hover at a sixth of it, and no more than that can be taken from them."""
    found, frames = limits(("real_04",)), Airframes.of([vehicle("real_04")])
    hover = 1.0 / frames.thrust_to_weight[0]
    assert hover < 0.2
    np.testing.assert_allclose(found.yaw_acceleration[0], 0.4 * 2.0 * hover * frames.alpha_z[0])


def test_jerk_is_what_rotors_that_hover_at_much_have_left() -> None:
    """With 1.4 times the weight in thrust rotors hover at 0.71, and can be raised by 0.29 alone."""
    found, frames = limits(("real_09",)), Airframes.of([vehicle("real_09")])
    left = 2.0 * (1.0 - 1.0 / frames.thrust_to_weight[0])
    assert left < 0.6
    alpha = 0.5 * left * frames.alpha_xy[0]
    np.testing.assert_allclose(found.jerk[0], 0.5 * np.sqrt(found.acceleration[0] * GRAVITY * alpha))


def test_nobody_falls_faster_than_rotors_that_still_turn_it() -> None:
    """At 5.6 m/s^2 downwards rotors would carry 0.43 of the weight."""
    one, duration = limits().of(2), np.array([0.4])
    for pull, kept in ((5.2, True), (5.6, False)):
        found = np.zeros((1, 6, 3))
        found[0, 2, 2] = -0.5 * pull
        assert within_limits(found, duration, one)[0][0] == kept


def test_what_turns_slowly_is_told_its_acceleration_earlier() -> None:
    found = limits(("real_09", "real_02", "virt_05")).delay
    alpha = Airframes.of([vehicle(name) for name in ("real_09", "real_02", "virt_05")]).alpha_xy
    np.testing.assert_allclose(found, 0.51 * alpha ** (-1.0 / 3.0))
    # What their flights were nearest to their set-points with, of 0, 0.05, 0.1 and 0.15 s.
    np.testing.assert_allclose(found, [0.15, 0.1, 0.05], atol=0.025)


def test_the_delay_of_what_turns_hardly_or_at_once_is_bounded() -> None:
    row, known = np.zeros((2, 3)), Airframes.of([vehicle("real_12")] * 2)
    turning = replace(known, alpha_xy=np.array([1.0, 1e6]))
    mission = Mission(row, row + 5.0, np.full(2, 4.0), np.full(2, 6.0), row - 10.0, row + 10.0, np.arange(2), vehicle=turning)
    late = np.maximum(known.lag - 1.0 / 30.0, 0.0)
    np.testing.assert_allclose(limits_of(mission, KnownFreeSettings()).delay, np.array([0.2, 0.03]) + late)


@pytest.mark.parametrize("name", ["real_12", "real_09"])
def test_rotors_slower_than_those_that_flew_turn_later_and_longer(name: str) -> None:
    """With 1/30 s, as quick ones, limits are those that were found with it, to the bit; what is beyond it delays a turn's begin
    and its end."""
    lags = (0.01, 1.0 / 30.0, 0.06, 0.1, 0.3)
    base, row = vehicle(name), np.zeros((len(lags), 3))
    flown = [
        replace(base, rotors=tuple(replace(rotor, response=RotorResponse.first_order(lag)) for rotor in base.rotors))
        for lag in lags
    ]
    mission = Mission(
        *(row, row + 5.0, np.full(len(lags), 4.0), np.full(len(lags), 6.0), row - 10.0, row + 10.0, np.arange(len(lags))),
        vehicle=Airframes.of(flown),
    )
    found, usual = limits_of(mission, KnownFreeSettings()), limits((name,))
    for limit in ("acceleration", "jerk", "delay", "braking", "thrust", "least"):
        assert (getattr(found, limit)[:2] == getattr(usual, limit)[0]).all(), limit
    late = np.array(lags[2:]) - 1.0 / 30.0
    np.testing.assert_allclose(found.delay[2:] - found.delay[0], late)
    turn = found.acceleration / found.jerk
    # With 0.3 s jerk is at its least.
    np.testing.assert_allclose(turn[2:4] - turn[0], 2.0 * late[:2])
    np.testing.assert_array_equal(found.acceleration, found.acceleration[0])


def test_near_things_less_is_asked_for_and_nothing_else_changes() -> None:
    found = limits()
    gentle = found.gentle()
    for name in ("acceleration", "jerk", "braking"):
        np.testing.assert_allclose(getattr(gentle, name), 0.85 * getattr(found, name))
    for name in ("speed", "thrust", "least", "yaw_rate", "yaw_acceleration"):
        assert getattr(gentle, name) is getattr(found, name)


def test_hulls_hold_every_derivative() -> None:
    draw = np.random.default_rng(3)
    found, duration = draw.normal(size=(50, 6, 3)), draw.uniform(0.2, 3.0, 50)
    share = np.linspace(0.0, 1.0, 60)
    for order in range(4):
        edge = hulls(found, duration)[order]
        at = np.stack([evaluate_polynomial(found, s * duration, order) for s in share], 1)
        assert (at.max(1) <= edge.max(1) + 1e-9).all()
        assert (at.min(1) >= edge.min(1) - 1e-9).all()
        # A hull begins and ends where the polynomial does.
        np.testing.assert_allclose(edge[:, 0], at[:, 0], atol=1e-9)
        np.testing.assert_allclose(edge[:, -1], at[:, -1], atol=1e-6)


def test_stops_keep_limits_and_end_where_they_say() -> None:
    one = limits().of(0)
    room = np.array([0.05, 0.3, 1.0, 3.0])
    speed = stopping_speed(room, one)
    found, duration = stopping(np.zeros((4, 3)), speed[:, None] * [0.6, 0.8, 0.0], one)
    ends = evaluate_polynomial(found, duration)
    np.testing.assert_allclose(np.linalg.norm(ends, axis=1), room, rtol=1e-6)
    np.testing.assert_allclose(evaluate_polynomial(found, duration, 1), 0.0, atol=1e-9)
    np.testing.assert_allclose(evaluate_polynomial(found, duration, 2), 0.0, atol=1e-9)
    assert (np.linalg.norm(evaluate_polynomial(found, 0.5 * duration, 2), axis=1) <= one.braking + 1e-9).all()


def test_candidates_keep_limits_at_every_instant_and_come_to_rest_within_what_is_free() -> None:
    path = np.stack([np.arange(60) * 0.1, 0.3 * np.sin(np.arange(60) * 0.1), np.full(60, 1.0)], 1)
    for k in range(len(NAMES)):
        one = limits().of(k)
        start = np.array([path[0], [1.0, 0.2, 0.0], [0.3, 0.0, 0.1]])
        found = candidates(start, path, 40, one)
        assert len(found) > 10
        for which in range(len(found)):
            plan = found.trajectory(which, 0.0)
            points = plan.points(0.0, 0.05, found.speed[which])
            assert np.linalg.norm(np.diff(points, axis=0), axis=1).max() < 0.051
            assert points[-1, 0] < path[40, 0] + 0.05
            for part, duration in zip(plan.coefficients, plan.duration, strict=True):
                times = np.linspace(0.0, duration, 40)
                speed, pull, jerk = (
                    np.linalg.norm(evaluate_polynomial(part[None].repeat(40, 0), times, order), axis=1) for order in (1, 2, 3)
                )
                assert speed.max() <= 1.02 * one.speed + 1e-6
                assert pull.max() <= one.acceleration + 1e-6
                assert jerk.max() <= 1.01 * one.jerk
        # What costs least in the end comes first.
        assert (np.diff(found.cost) >= 0.0).all()


def bend(radius: float, before: float = 3.0) -> Array:
    """Points 0.1 m apart: straight along x, then a quarter of a circle, then straight along y; (m, 3) [m]."""
    way = np.arange(0.0, before + 0.5 * np.pi * radius + 2.0, 0.1)
    angle = np.clip((way - before) / radius, 0.0, 0.5 * np.pi)
    rest = np.maximum(way - before - 0.5 * np.pi * radius, 0.0)
    x, y = np.minimum(way, before) + radius * np.sin(angle), radius * (1.0 - np.cos(angle)) + rest
    return np.stack([x, y, np.ones(len(way))], 1)


def test_bends_are_passed_as_fast_as_half_of_the_acceleration_holds_on_a_circle() -> None:
    for k in range(len(NAMES)):
        one = limits().of(k)
        np.testing.assert_allclose(route_speeds(bend(2.0)[:25], one), one.speed)
        for radius in (0.8, 1.5):
            inside = 30 + round(0.25 * np.pi * radius / 0.1)
            wanted = min(np.sqrt(0.5 * one.acceleration * radius), one.speed)
            np.testing.assert_allclose(route_speeds(bend(radius), one)[inside], wanted, rtol=0.02)


def test_before_a_bend_speeds_fall_as_a_smooth_change_may() -> None:
    one = limits().of(2)
    found = route_speeds(bend(0.6), one)
    assert found[0] > 1.7 * found[34]
    assert (found[:-1] ** 2 - found[1:] ** 2 <= 2.0 * 0.6 * one.acceleration * 0.1 + 1e-9).all()
    # A corner counts from where a chord of half a metre reaches it, and speeds rise behind it at once.
    np.testing.assert_allclose(found[-1], one.speed)


def test_a_bend_slows_down_before_it() -> None:
    """Without it a plan flew as fast as its stop allowed, missed the bend by the way of that stop, and turned round."""
    one, path = limits().of(2), bend(0.6, before=2.0)
    straight = np.stack([np.arange(len(path)) * 0.1, np.zeros(len(path)), np.ones(len(path))], 1)
    start = np.array([path[0], [2.5, 0.0, 0.0], [0.0, 0.0, 0.0]])
    slow, fast = (candidates(start, p, 29, one) for p in (path, straight))
    # Among ends behind the first metre and a half.
    ends = [np.linalg.norm(f.coefficients[f.coefficients[:, 1, 0, 0] > 1.4, 1, 1], axis=1).max() for f in (slow, fast)]
    assert ends[0] < ends[1] - 0.1


def test_what_is_left_of_a_route_takes_its_speeds_and_what_is_lost() -> None:
    one = limits().of(2)
    full = np.full(41, float(one.speed))
    place = np.array([0, 20, 40])
    np.testing.assert_allclose(time_left(full, place, 40, full[place], one), np.array([4.0, 2.0, 0.0]) / one.speed)
    half = time_left(full, place, 40, 0.5 * full[place], one) - time_left(full, place, 40, full[place], one)
    np.testing.assert_allclose(half, 0.25 * one.speed / (2.0 * 0.6 * one.acceleration))


def test_parts_prove_turns_that_a_whole_hull_refuses() -> None:
    """From 2 m/s round a quarter of a circle of 0.9 m at 3.5 m/s^2, within 6 m/s^2."""
    one = limits().of(2)
    start, end = np.array([[0.0, 0, 1], [2.0, 0, 0], [0.0, 3.5, 0]]), np.array([[[0.9, 0.9, 1], [0, 1.6, 0], [-1.5, 0, 0]]])
    duration = np.array([0.75])
    found = quintics(start, end, duration)
    parts, time = pieces(found, duration, 4)
    assert within_limits(parts, time, one)[0].all()
    assert not within_limits(found, duration, one)[0].any()


def test_a_stop_from_full_speed_needs_room_that_weak_vehicles_have_not() -> None:
    found = limits()
    speeds = [float(stopping_speed(np.array([2.0]), found.of(k))[0]) for k in range(3)]
    assert speeds[0] < speeds[2]


def test_brakes_come_to_rest() -> None:
    one = limits().of(1)
    start = np.array([[0.0, 0.0, 1.0], [2.5, 0.5, 0.2], [1.0, 0.0, 0.0]])
    found = brakes(start, one, 1.3)
    plans = StoppingPlans(np.zeros((1, 3)))
    plans.put(0, found.trajectory(0, 0.0))
    plans.settle(np.zeros(1))
    position, velocity, _ = plans.state(np.array([0]), np.zeros(1))
    np.testing.assert_allclose([position[0], velocity[0]], start[:2], atol=1e-9)
    end, rest, pull = plans.state(np.array([0]), np.array([99.0]))
    assert 0.5 < end[0, 0] < 4.0
    assert not rest.any()
    assert not pull.any()


def test_parts_are_the_whole_and_their_hulls_are_tighter() -> None:
    rng = np.random.default_rng(3)
    found, duration = rng.normal(size=(5, 6, 3)), rng.uniform(0.5, 2.0, 5)
    parts, time = pieces(found, duration, 4)
    np.testing.assert_allclose(time, np.repeat(duration / 4, 4))
    for k in range(5):
        for part in range(4):
            inside = 0.3 * time[4 * k + part]
            whole = evaluate_polynomial(found[k : k + 1], np.array([part * duration[k] / 4 + inside]), 2)
            alone = evaluate_polynomial(parts[4 * k + part][None], np.array([inside]), 2)
            np.testing.assert_allclose(alone, whole, rtol=1e-9, atol=1e-9)
    # A stop: its acceleration is 6 v / t s (1 - s), of cubic Bernstein coefficients 0, 2, 2, 0 v / t: a third above its most.
    stop, time = stopping(np.zeros((1, 3)), np.array([[3.0, 0.0, 0.0]]), limits(("virt_05",)).of(0))
    peak = 1.5 * 3.0 / time[0]
    np.testing.assert_allclose(np.abs(hulls(stop, time)[2]).max(), peak * 4.0 / 3.0)
    assert peak - 1e-9 <= np.abs(hulls(*pieces(stop, time, 4))[2]).max() < 1.05 * peak


def test_who_is_faster_than_allowed_or_speeds_up_brakes_as_hard_as_who_is_not() -> None:
    one = limits(("virt_05",)).of(0)
    slow, fast = (brakes(np.array([[0, 0, 1], [v, 0, 0], [a, 0, 0]], float), one, 1.3) for v, a in ((3.8, 0.0), (3.9, 1.0)))
    assert fast.duration[0, 0] < 1.1 * slow.duration[0, 0]
    peak = np.abs(
        evaluate_polynomial(np.repeat(slow.coefficients[:1, 0], 50, 0), np.linspace(0, slow.duration[0, 0], 50), 2)
    ).max()
    assert 0.8 * 1.3 * one.acceleration < peak <= 1.3 * one.acceleration + 1e-9


def test_quintics_within_limits_are_told_from_others() -> None:
    one = limits().of(2)
    start, end = np.zeros((3, 3)), np.zeros((1, 3, 3))
    end[0, 0, 0] = 3.0
    keeps = [bool(within_limits(quintics(start, end, np.array([t])), np.array([t]), one)[0][0]) for t in (0.5, 6.0)]
    assert keeps == [False, True]


def test_headings_turn_as_fast_as_yaw_allows_and_stop_there() -> None:
    found = limits(("real_09", "virt_05"))
    headings = Headings(np.zeros(2), found)
    for flight in range(2):
        headings.begin(flight, np.array([0.0, 0.0, 0.0, 1.0]))
        headings.look(flight, 2.5)
    rates, yaws = [], []
    for tick in range(600):
        yaw, rate = headings.turn(np.full(2, 0.01 * tick))
        rates.append(rate)
        yaws.append(yaw)
    np.testing.assert_allclose(yaws[-1], 2.5, atol=0.02)
    assert (np.max(yaws, axis=0) < 2.5 + 0.05).all()
    assert (np.abs(np.diff(rates, axis=0)) <= found.yaw_acceleration * 0.01 + 1e-9).all()
    assert (np.max(rates, axis=0) <= found.yaw_rate + 1e-9).all()
    # The weak one needs longer.
    reached = [int(np.argmax(np.array(yaws)[:, k] > 2.4)) for k in range(2)]
    assert reached[0] > reached[1]


def test_native_proofs_give_the_bits_of_their_twin() -> None:
    """Which keep every limit and which break one each; longest speeds; nothing for nothing; what is no number keeps nothing."""
    rng, found = np.random.default_rng(5), limits()
    for flight, count in ((0, 300), (1, 300), (2, 300), (2, 1)):
        start, end = rng.normal(size=(3, 3)) * [[3.0], [0.5], [0.3]], np.zeros((count, 3, 3))
        end[:, 0], end[:, 1] = start[0] + rng.normal(size=(count, 3)), 0.5 * rng.normal(size=(count, 3))
        duration = rng.uniform(0.3, 8.0, count)
        made, one = quintics(start, end, duration), found.of(flight)
        for share in (1.0, 1.3):
            wanted, got = parts_within_limits(made, duration, one, share), parts_keep_limits(made, duration, one, share)
            np.testing.assert_array_equal(got[0], wanted[0])
            np.testing.assert_array_equal(got[1], wanted[1])
            assert 20 < wanted[0].sum() < 280 or count == 1
    made[0, 3] = np.nan
    keeps, most = parts_keep_limits(made, duration, one)
    assert not keeps[0]
    assert np.isnan(most[0])
    np.testing.assert_array_equal(keeps[1:], parts_within_limits(made, duration, one)[0][1:])
    assert [len(part) for part in parts_keep_limits(made[:0], duration[:0], one)] == [0, 0]


@pytest.mark.parametrize(
    ("name", "order", "axis", "sign"),
    [("speed", 1, 0, 1), ("acceleration", 2, 1, 1), ("thrust", 2, 2, 1), ("least", 2, 2, -1), ("jerk", 3, 0, -1)],
)
def test_native_proofs_know_every_limit(name: str, order: int, axis: int, sign: int) -> None:
    """Of what grows with the fifth power only the last part breaks the one limit that is not out of reach."""
    wide = {"speed": 1e6, "acceleration": 1e6, "thrust": 1e6, "least": -1e6, "jerk": 1e6}
    found = np.zeros((2, 6, 3))
    found[:, 5, axis] = sign * np.array([1.0, 1.3])
    reached = {1: 5.0, 2: 20.0, 3: 60.0}[order]
    held = {"speed": reached / 1.02 * 1.1, "thrust": GRAVITY + 1.1 * reached, "least": GRAVITY - 1.1 * reached}
    tight = wide | {name: held.get(name, 1.1 * reached)}
    one = replace(limits().of(2), **{key: np.array(value) for key, value in tight.items()})
    keeps, most = parts_keep_limits(found, np.ones(2), one)
    assert keeps.tolist() == [True, False]
    np.testing.assert_allclose(most, [5.0, 6.5])
    np.testing.assert_array_equal(keeps, parts_within_limits(found, np.ones(2), one)[0])
