"""Gates, passages, and trajectories through them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airworthy.core.errors import AirworthyError
from airworthy.trajectories import (
    TRACKING_ENVELOPE,
    Gate,
    Limits,
    course,
    course_names,
    gate_crossing,
    gate_passages,
    prove,
    prove_clearance,
    through_gates,
)

GATE_COURSES = [name for name in course_names() if course(name).kind == "gates"]
BODY_RADIUS = 0.06


def test_a_gate_s_frame() -> None:
    # Spec/boundary_predictor section 11: bars 0.05 m, centre lines 0.45 m apart, outer edge 0.50 m.
    left, right, top, bottom = Gate((1.0, 2.0, 0.525), np.pi / 2).bars()
    np.testing.assert_allclose(left.center, [0.775, 2.0, 0.525], atol=1e-12)
    np.testing.assert_allclose(right.center, [1.225, 2.0, 0.525], atol=1e-12)
    np.testing.assert_allclose([top.center[2], bottom.center[2]], [0.75, 0.3])
    assert top.half_size == (0.025, 0.25, 0.025)
    assert left.half_size == (0.025, 0.025, 0.2)


@given(st.floats(-0.6, 0.6), st.floats(-0.6, 0.6), st.floats(0.01, 1.0), st.floats(0.01, 1.0), st.floats(-3.0, 3.0))
def test_crossings(left: float, up: float, before: float, after: float, yaw: float) -> None:
    gate = Gate((1.0, -2.0, 1.0), yaw)
    sideways = np.array([-np.sin(yaw), np.cos(yaw), 0.0])
    point = np.array(gate.position) + left * sideways + [0.0, 0.0, up]
    found = gate_crossing(gate, point - before * gate.normal, point + after * gate.normal)
    assert bool(found.crossed)
    if max(abs(abs(left) - 0.2), abs(abs(up) - 0.2)) > 1e-9:
        assert bool(found.inside) == (abs(left) <= 0.2 and abs(up) <= 0.2)
    assert found.share == pytest.approx(before / (before + after), abs=1e-9)
    np.testing.assert_allclose(found.offset, [left, up], atol=1e-9)
    assert not gate_crossing(gate, point + after * gate.normal, point - before * gate.normal).crossed


def test_crossings_are_batched() -> None:
    gate = Gate((0.0, 0.0, 0.0), 0.0)
    steps = gate_crossing(gate, np.array([[[-1.0, 0, 0], [1.0, 0, 0]]]), np.array([[[1.0, 0, 0], [2.0, 0, 0]]]))
    np.testing.assert_array_equal(steps.inside, [[True, False]])


def test_passages_are_matched_in_order() -> None:
    a, b, c = (Gate((x, 0.0, 0.0), 0.0) for x in (1.0, 2.0, 3.0))
    lap = np.array([[0.0, 0, 0], [1.5, 0, 0], [1.5, 1.0, 0], [2.5, 1.0, 0], [2.5, 0, 0], [3.5, 0, 0]])
    back = np.array([[3.5, 5.0, 0], [0.0, 5.0, 0], [0.0, 0, 0]])
    path = np.concatenate((lap, back, [[3.5, 0, 0]]))
    times = np.arange(len(path), dtype=np.float64)
    once = gate_passages([a, b, c], times[:6], path[:6])
    assert [p.passed for p in once] == [True, False, True]
    assert once[0].time == pytest.approx(2.0 / 3.0)
    assert once[2].time == pytest.approx(4.5)
    assert np.isnan(once[1].time)
    # Missed on the first lap, flown on the second: only that one passage is lost.
    twice = gate_passages([a, b, c] * 2, times, path)
    assert [p.passed for p in twice] == [True, False, True, True, True, True]
    assert all(x.time < y.time for x, y in pairwise(twice[2:]))
    assert [p.passed for p in gate_passages([c, a], times[:6], path[:6])].count(True) == 1
    assert not any(p.passed for p in gate_passages([a], times[:1], path[:1]))


@pytest.mark.parametrize("name", GATE_COURSES)
def test_gate_courses_are_flown_clean(name: str) -> None:
    item = course(name)
    path = item.trajectory()
    assert prove(path, TRACKING_ENVELOPE).proven
    times = np.linspace(0.0, path.duration, 5001)
    passages = gate_passages(item.gates, times, path.sample(times).position)
    assert all(p.passed and max(map(abs, p.offset)) < 1e-6 for p in passages)
    bars = [bar for gate in item.gates for bar in gate.bars()]
    assert prove_clearance(path, bars, BODY_RADIUS).verdict == "proven"
    ends = path.sample([0.0, path.duration])
    np.testing.assert_allclose(ends.velocity, 0.0, atol=1e-12)
    np.testing.assert_allclose(ends.position[0], item.start, atol=1e-12)
    # Velocity normal to each gate, acceleration and jerk zero there (spec/boundary_predictor section 5).
    at = path.sample(path.knots[1:-1])
    normals = np.array([gate.normal for gate in item.gates])
    np.testing.assert_allclose(np.cross(at.velocity, normals), 0.0, atol=1e-12)
    assert np.max(np.abs(at.acceleration)) < 1e-9
    # Nose along the course by the end of each ramp; one heading throughout without it.
    np.testing.assert_allclose(np.cos(at.yaw - [gate.yaw for gate in item.gates]), 1.0, atol=1e-9)
    still = item.trajectory(yaw_ramp=False).sample(times).yaw
    np.testing.assert_array_equal(still, np.full_like(times, item.start_yaw))


def test_straight_flight_is_near_its_bound() -> None:
    # 10.4 m and more from rest to rest; eq. 3 admits 1.882 m/s at best: ours must be within 45 % of flying at that throughout.
    assert course("straight_8").trajectory().duration < 1.45 * 10.4 / 1.882


@pytest.mark.parametrize("push", [1.0, 2.0, 6.0])
def test_a_flight_stops_twice_its_braking_way_and_never_less_than_80_cm_beyond_its_last_gate(push: float) -> None:
    """2 v^2 / a on from the last gate along its normal, v the speed in it."""
    gates = (Gate((3.0, 0.0, 1.0), 0.0), Gate((8.0, 1.0, 1.5), 0.4))
    path = through_gates((0.0, 0.0, 1.0), 0.0, gates, Limits(speed=3.0, acceleration=push))
    speed = float(np.linalg.norm(path.sample(path.knots[-2:-1]).velocity))
    # The last step of the search slows the whole flight alike, which shortens no way.
    beyond = path.sample([path.duration]).position[0] - gates[-1].position
    along = float(beyond @ gates[-1].normal)
    np.testing.assert_allclose(beyond, along * gates[-1].normal, atol=1e-9)
    assert along >= max(0.8, 2.0 * speed**2 / push) - 1e-9
    assert along <= 1.1 * max(0.8, 2.0 * speed**2 / push)


def test_laps_and_offsets() -> None:
    item = course("circle_8")
    path = item.trajectory(lap_count=2, yaw_offset=-np.pi / 2)
    assert len(path.knots) == 2 * 8 + 2
    assert path.sample(0.0).yaw == pytest.approx(item.start_yaw - np.pi / 2)
    times = np.linspace(0.0, path.duration, 5001)
    assert all(p.passed for p in gate_passages(item.gates * 2, times, path.sample(times).position))


@pytest.mark.parametrize(
    "limits",
    [
        Limits(speed=4.0, thrust_max=14.0, body_rate=8.0),
        Limits(speed=3.0, acceleration=6.0, jerk=60.0, yaw_rate=3.0),
        Limits(speed=1.0),
    ],
)
def test_other_limits_are_kept(limits: Limits) -> None:
    assert prove(course("snake_8").trajectory(limits), limits).proven


def test_no_way_through_is_said() -> None:
    with pytest.raises(AirworthyError, match="at least one gate"):
        through_gates((0, 0, 0), 0.0, [])
    with pytest.raises(AirworthyError, match="less than 1 cm"):
        through_gates((0, 0, 0), 0.0, [Gate((0, 0, 0), 0.0)])
    with pytest.raises(AirworthyError, match="must bound"):
        through_gates((0, 0, 0), 0.0, [Gate((1, 0, 0), 0.0)], Limits(yaw_rate=1.0))


def test_yaw_turns_only_in_the_first_quarter() -> None:
    path = course("circle_8").trajectory()
    spans = np.diff(path.knots)
    assert np.all(path.sample(path.knots[1:-2] + 0.2 * spans[1:-1]).yaw_rate != 0.0)
    assert not np.any(path.sample(path.knots[:-1] + 0.3 * spans).yaw_rate)


def test_soft_turns_take_the_leg_they_need_and_no_more() -> None:
    limits = Limits(thrust_max=11.3, body_rate=3.0, yaw_rate=2.3, yaw_acceleration=6.0)
    circle = course("circle_8")
    path = through_gates(circle.start, circle.start_yaw, circle.gates, limits)
    assert prove(path, limits).proven
    # Within a quarter of each leg, as even turns are flown, eight turns of 45 degrees would take eight times 3.5 s.
    assert path.knots[-2] < 10.0
