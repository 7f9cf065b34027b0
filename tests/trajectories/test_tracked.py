"""What the tracking laws ask of a body: against differences of the law's own attitude, and bounded by its own equations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from tests.trajectories.test_proof import random_path

from airworthy.control.attitude import desired_axes
from airworthy.core.errors import AirworthyError
from airworthy.core.intervals import Interval
from airworthy.core.ops import absolute, maximum, sin_cos, sqrt, where
from airworthy.trajectories import Limits, RotorBound, Trajectory, kinematic_state, prove, rigid_state, yaw_fixed
from airworthy.trajectories.flatness import rotor_thrusts
from airworthy.trajectories.limits import usage
from airworthy.trajectories.tracked import rotor_shares, rotor_use, tracked_samples
from airworthy.trajectories.yaw import turn_duration, yaw_ramp
from airworthy.vehicles import vehicle

LEVEL = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
UP = np.array([0.0, 0.0, 9.81])


def soft_path(seed: int) -> Trajectory:
    """Far from free fall, with a soft yaw."""
    path = random_path(seed, energy=0.05)
    headings = np.random.default_rng(seed).uniform(-1.0, 1.0, len(path.knots))
    return Trajectory(path.knots, path.coefficients, *yaw_ramp(path.knots, headings, acceleration=6.0))


def law_attitudes(path: Trajectory, t: np.ndarray) -> Rotation:
    """What the laws hold: their own function, one instant after the other."""
    s = path.sample(t)
    rows = []
    for a, yaw in zip(s.acceleration + UP, s.yaw, strict=True):
        axes = desired_axes(tuple(a / np.linalg.norm(a)), (np.cos(yaw), np.sin(yaw), 0.0), 0.0, LEVEL)
        rows.append(np.array(axes).T)
    return Rotation.from_matrix(np.array(rows))


@settings(max_examples=20)
@given(st.integers(0, 10_000))
def test_rates_and_their_slopes_are_those_of_the_attitude_that_the_laws_hold(seed: int) -> None:
    path, h = soft_path(seed), 1e-4
    t = np.linspace(0.01, path.duration - 0.01, 23)
    t = t[np.min(np.abs(t[:, None] - np.concatenate((path.knots, path.yaw_knots))), axis=1) > 2 * h]
    state = tracked_samples(path.sample(t))

    def rates(at: np.ndarray) -> np.ndarray:
        turn = law_attitudes(path, at - 0.5 * h).inv() * law_attitudes(path, at + 0.5 * h)
        return np.asarray(turn.as_rotvec() / h)

    # Rates in the frame of the middle: a central difference is right to h^2.
    assert np.allclose(np.stack(state.body_rate, axis=-1), rates(t), atol=1e-5)
    slopes = (rates(t + 0.5 * h) - rates(t - 0.5 * h)) / h
    assert np.allclose(np.stack(state.rate_dot, axis=-1), slopes, atol=2e-3)


def test_the_other_convention_is_another_body_once_it_rolls() -> None:
    """Z-Y-X yaw and y along z x heading agree with the nose ahead and level, not in a rolling turn."""
    path = soft_path(0)
    s = path.sample(np.linspace(0.0, path.duration, 2001))
    held, other = np.stack(tracked_samples(s).body_rate, axis=-1), kinematic_state(s).body_rate
    assert np.abs(np.linalg.norm(held, axis=-1) - np.linalg.norm(other, axis=-1)).max() > 0.1
    # What tilts the thrust is the same; what turns about it is not.
    assert np.allclose(np.hypot(held[:, 0], held[:, 1]), np.hypot(other[:, 0], other[:, 1]), atol=1e-9)


@settings(max_examples=8)
@given(st.integers(0, 10_000))
def test_bounds_hold_and_meet_what_samples_find(seed: int) -> None:
    path = soft_path(seed)
    bounds = (RotorBound.of(vehicle("cf2x_L250"), 0.1, 0.9), RotorBound.of(vehicle("cf2x_scg_iros2022"), 0.05, 0.95))
    breaks = np.nextafter(np.concatenate((path.knots[1:], path.yaw_knots[1:])), 0.0)
    s = path.sample(np.concatenate((np.linspace(0.0, path.duration, 20_001), path.knots, path.yaw_knots, breaks)))
    state = tracked_samples(s, 9.81)
    found = {
        "body_rate": float(np.linalg.norm(np.stack(state.body_rate), axis=0).max()),
        "rotor_thrust": float(np.max(rotor_use(state, bounds))),
        "yaw_acceleration": float(np.abs(s.yaw_acceleration).max()),
    }
    limits = Limits(body_rate=found["body_rate"], rotors=bounds, yaw_acceleration=6.0)
    for check in prove(path, limits).checks:
        assert found[check.quantity] <= check.bound * (1 + 1e-9)
        # The proofs' own tolerances are 1e-3 and 5e-3 of the limit; samples 0.2 ms apart miss a maximum by little.
        assert check.bound <= check.attained + 5.1e-3 * check.limit
        assert found[check.quantity] - 5.1e-3 * check.limit <= check.attained <= 1.002 * found[check.quantity]
    # A segment may be too short for its turn.
    used = max(1.0, found["rotor_thrust"], found["yaw_acceleration"] / 6.0)
    assert usage(limits, s) == pytest.approx(used, rel=1e-9)


def test_rotor_shares_are_those_of_the_rigid_body_where_both_conventions_agree() -> None:
    # Straight ahead without yaw: pitch alone.
    body = vehicle("cf2x_L250")
    knots, c = np.array([0.0, 1.5]), np.zeros((1, 3, 8))
    c[0, 0, 4:] = [35.0, -84.0, 70.0, -20.0]
    s = Trajectory(knots, c, *yaw_fixed(1.5, 0.0)).sample(np.linspace(0.0, 1.5, 50))
    bound = RotorBound.of(body)
    wanted = rotor_thrusts(rigid_state(s, body.mass, body.inertia), body) / np.array(bound.thrust_max)
    assert np.allclose(rotor_shares(tracked_samples(s), [bound]), wanted.T, atol=1e-12)
    assert 0.5 < wanted.max() < 1.0
    for bad in ({"least": 0.9, "most": 0.5}, {"mass": -1.0}, {"inertia_factor": 0.0}):
        with pytest.raises(AirworthyError, match="rotor bound"):
            RotorBound.of(body, **bad)  # type: ignore[arg-type]


def test_a_jump_of_the_yaw_rate_or_of_the_jerk_has_no_bounded_torque() -> None:
    knots, headings = np.array([0.0, 1.0, 2.0]), np.array([0.0, 0.5, 0.0])
    still = np.zeros((2, 3, 8))
    bound = RotorBound.of(vehicle("cf2x_L250"))
    even = Trajectory(knots, still, *yaw_ramp(knots, headings))
    for limits, quantity in ((Limits(yaw_acceleration=1e6), "yaw_acceleration"), (Limits(rotors=(bound,)), "rotor_thrust")):
        check = prove(even, limits).check(quantity)
        assert (check.verdict, check.bound) == ("violated", np.inf)
        soft = Trajectory(knots, still, *yaw_ramp(knots, headings, acceleration=20.0))
        assert prove(soft, limits).proven
    kinked = still.copy()
    kinked[1, 0, 3] = 0.01
    path = Trajectory(knots, kinked, *yaw_fixed(2.0, 0.0))
    assert prove(path, Limits(rotors=(bound,))).verdict == "violated"
    assert prove(path, Limits(yaw_acceleration=1.0)).proven


@pytest.mark.parametrize(("angle", "rate", "acceleration"), [(0.8, None, 6.0), (0.8, 0.5, 6.0), (3.0, 2.3, 50.0)])
def test_a_soft_turn_just_keeps_its_bounds(angle: float, rate: float | None, acceleration: float) -> None:
    whole = 20.0
    knots, rows = yaw_ramp([0.0, whole], [0.2, 0.2 + angle], 0.01, rate, acceleration)
    path = Trajectory([0.0, whole], np.zeros((1, 3, 8)), knots, rows)
    s = path.sample(np.linspace(0.0, knots[1], 100_001))
    used = max(np.abs(s.yaw_acceleration).max() / acceleration, np.abs(s.yaw_rate).max() / (rate or np.inf))
    assert used == pytest.approx(1.0, abs=1e-6)
    assert used <= 1.0
    assert knots[1] == pytest.approx(turn_duration(angle, rate, acceleration), rel=1e-6)
    assert (s.yaw[0], s.yaw[-1]) == (pytest.approx(0.2), pytest.approx(0.2 + angle))
    assert (s.yaw_rate[0], s.yaw_acceleration[0]) == (0.0, 0.0)


NUMBERS = st.floats(-3.0, 3.0)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=3, max_size=3), st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3))
def test_intervals_hold_every_value_of_an_equation(ends: list[tuple[float, float]], shares: list[float]) -> None:
    def equation(x: object, y: object, z: object) -> object:
        s, c = sin_cos(x)  # type: ignore[arg-type]
        root = sqrt(absolute(x * y - z) + 0.1)  # type: ignore[operator]
        return where(x > y, s * z / root, c - maximum(y, z) * x * x) + 1.0 / (2.0 + x * x)  # type: ignore[operator]

    boxes = [Interval(np.array([min(a, b)]), np.array([max(a, b)])) for a, b in ends]
    inside = [float(box.low[0] + s * (box.high[0] - box.low[0])) for box, s in zip(boxes, shares, strict=True)]
    found, value = equation(*boxes), float(equation(*inside))  # type: ignore[arg-type]
    assert isinstance(found, Interval)
    assert found.low[0] - 1e-9 <= value <= found.high[0] + 1e-9
    points = [Interval(np.array([x]), np.array([x])) for x in inside]
    exact = equation(*points)
    assert isinstance(exact, Interval)
    assert exact.low[0] - 1e-9 <= value <= exact.high[0] + 1e-9


def test_an_interval_through_zero_has_no_bounded_inverse_and_no_truth_value() -> None:
    through = Interval(np.array([-1.0]), np.array([2.0]))
    assert (1.0 / through).low[0] == -np.inf
    assert (through * through).low[0] == 0.0
    assert (0.0 * (1.0 / through)).magnitude[0] in (0.0, np.inf)
    with pytest.raises(TypeError, match="truth value"):
        bool(through > 0.0)
