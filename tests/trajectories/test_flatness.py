"""Flatness maps: integrated open loop, traced, and against the body that they describe."""

from __future__ import annotations

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

from airworthy.core import frames
from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.core.tracing import jacobian, trace
from airworthy.trajectories import (
    Trajectory,
    course,
    kinematic_state,
    rigid_state,
    rotor_thrusts,
    septic,
    vehicle_state,
    yaw_fixed,
)
from airworthy.trajectories.flatness import flat_inputs, flat_motion, half_angle
from airworthy.vehicles import control_effectiveness, hover_speed, rotor_thrust, vehicle

GRAVITY = np.array([0.0, 0.0, 9.81])
INERTIA = (0.010, 0.012, 0.020, 0.001, -0.0005, 0.0008)
MATRIX = np.array([[0.010, 0.001, -0.0005], [0.001, 0.012, 0.0008], [-0.0005, 0.0008, 0.020]])
MASS, DRAG, TWIST, WIND = 1.1, np.array([0.3, 0.5, 0.2]), np.array([0.01, 0.02, 0.03]), np.array([0.5, -1.0, 0.2])


def replay_kinematic(path: Trajectory) -> float:
    """Largest position error when the flat inputs drive the semi-kinematic equations from the first state on [m]."""

    def rate(t: float, x: Array) -> Array:
        state = kinematic_state(path.sample(t))
        pushed = frames.rotate(x[6:], [0.0, 0.0, float(state.thrust)]) - GRAVITY
        return np.concatenate((x[3:6], pushed, 0.5 * frames.multiply(x[6:], np.append(state.body_rate, 0.0))))

    first = path.sample(0.0)
    x, worst = np.concatenate((first.position, first.velocity, kinematic_state(first).attitude)), 0.0
    for begin, end in zip(path.knots[:-1], path.knots[1:], strict=True):
        done = scipy.integrate.solve_ivp(rate, (begin, end), x, method="DOP853", rtol=1e-9, atol=1e-10)
        x = done.y[:, -1]
        worst = max(worst, float(np.max(np.abs(path.sample(done.t).position - done.y[:3].T))))
    return worst


@pytest.mark.parametrize(
    # Hover is exact; a line has no rounding but the integrator's; elsewhere rtol 1e-9 over 30 s of double integration.
    ("name", "tolerance"),
    [("hover", 1e-13), ("line", 1e-11), ("sigmoid", 2e-7), ("robustness", 2e-7), ("extended", 2e-7), ("infinity", 2e-7)],
)
def test_flat_inputs_fly_the_path(name: str, tolerance: float) -> None:
    assert replay_kinematic(course(name).trajectory()) < tolerance


def test_hover_is_hover() -> None:
    state = kinematic_state(course("hover").trajectory().sample(0.3))
    np.testing.assert_allclose(state.attitude, [0.0, 0.0, 0.0, 1.0], atol=1e-14)
    assert state.thrust == pytest.approx(9.81, rel=1e-15)
    np.testing.assert_allclose(state.body_rate, 0.0, atol=1e-13)


def aggressive(seed: int) -> Trajectory:
    """One random degree-7 segment, up to several g, yaw turning throughout."""
    rng = np.random.default_rng(seed)
    ends = rng.normal(size=(2, 3, 4)) * [2.0, 3.0, 4.0, 6.0]
    return Trajectory([0.0, 1.5], septic(ends[0], ends[1], 1.5)[None], [0.0, 1.5], [rng.normal(size=4)])


def free_of_singularities(path: Trajectory) -> bool:
    """Thrust never close to none, body y never close to vertical: where the map is smooth."""
    sample = path.sample(np.linspace(0.0, path.duration, 200))
    state = kinematic_state(sample)
    across = frames.rotate(state.attitude, [0.0, 1.0, 0.0])[:, 2]
    return bool(np.min(state.thrust) > 3.0 and np.max(np.abs(across)) < 0.95)


def replay_rigid(path: Trajectory, begin: float, end: float) -> tuple[float, float]:
    """Largest position and body rate errors of a rigid body with drag in wind, open loop under the computed force and
    moment."""

    def wanted(t: float) -> tuple[Array, Array, Array, Array]:
        state = rigid_state(path.sample(t), MASS, INERTIA, linear_drag=DRAG, angular_drag=TWIST, wind=WIND)
        return state.attitude, state.body_rate, state.force, state.moment

    def rate(t: float, x: Array) -> Array:
        _, _, force, moment = wanted(t)
        q, w = x[6:10], x[10:]
        body = np.array([0.0, 0.0, float(force)]) - DRAG * frames.rotate_inverse(q, x[3:6] - WIND)
        turned = np.linalg.solve(MATRIX, moment - TWIST * w - np.cross(w, MATRIX @ w))
        return np.concatenate(
            (x[3:6], frames.rotate(q, body) / MASS - GRAVITY, 0.5 * frames.multiply(q, np.append(w, 0.0)), turned)
        )

    first = path.sample(begin)
    x = np.concatenate((first.position, first.velocity, *wanted(begin)[:2]))
    done = scipy.integrate.solve_ivp(rate, (begin, end), x, method="DOP853", rtol=1e-10, atol=1e-11)
    positions = path.sample(done.t).position
    rates = np.array([wanted(t)[1] for t in done.t])
    return float(np.max(np.abs(positions - done.y[:3].T))), float(np.max(np.abs(rates - done.y[10:].T)))


SMOOTH = [seed for seed in range(14) if free_of_singularities(aggressive(seed))]


@pytest.mark.parametrize(
    "seed", [seed if k < 3 else pytest.param(seed, marks=pytest.mark.slow) for k, seed in enumerate(SMOOTH)]
)
def test_force_and_moment_fly_a_rigid_body_with_drag(seed: int) -> None:
    # Open loop, errors grow roughly a hundredfold over the segment from the integrator's 1e-10.
    position, rate = replay_rigid(aggressive(seed), 0.0, 1.5)
    assert position < 1e-6
    assert rate < 1e-5


def test_force_and_moment_fly_a_course() -> None:
    path = course("robustness").trajectory()
    for begin, end in zip(path.knots[:-1], path.knots[1:], strict=True):  # snap jumps at knots
        position, _ = replay_rigid(path, begin + 1e-12, end - 1e-12)
        assert position < 1e-8


@settings(max_examples=50)
@given(st.integers(0, 100_000), st.floats(0.0, 1.5))
def test_drag_balances_the_force(seed: int, t: float) -> None:
    # m a = -m g + R (F - D R^T (v - wind)) is the definition; it must hold wherever the map is smooth.
    path = aggressive(seed)
    if not free_of_singularities(path):
        return
    sample = path.sample(t)
    state = rigid_state(sample, MASS, INERTIA, linear_drag=DRAG, wind=WIND)
    body = np.array([0.0, 0.0, float(state.force)]) - DRAG * frames.rotate_inverse(state.attitude, sample.velocity - WIND)
    np.testing.assert_allclose(frames.rotate(state.attitude, body) / MASS - GRAVITY, sample.acceleration, atol=1e-10)


def test_without_drag_both_maps_agree() -> None:
    sample = aggressive(1).sample(np.linspace(0.0, 1.5, 50))
    plain, rigid = kinematic_state(sample), rigid_state(sample, 2.0, INERTIA)
    np.testing.assert_allclose(rigid.attitude, plain.attitude, atol=1e-14)
    np.testing.assert_allclose(rigid.body_rate, plain.body_rate, atol=1e-12)
    np.testing.assert_allclose(rigid.force, 2.0 * plain.thrust, rtol=1e-14)


def test_the_sign_of_attitude_is_continuous_through_whole_turns() -> None:
    path = Trajectory([0.0, 10.0], np.zeros((1, 3, 1)), [0.0, 10.0], [[3.0, 30.0]])
    attitude = kinematic_state(path.sample(np.linspace(0.0, 10.0, 500))).attitude
    assert attitude[0, 3] >= 0.0
    assert np.min(np.sum(attitude[1:] * attitude[:-1], axis=-1)) > 0.9


def test_loops_pass_upside_down() -> None:
    # A vertical circle of 1 m at 8 rad/s: 64 m/s^2 inwards, thrust down at the top, where w of the pitch's half angle vanishes.
    t = np.linspace(0.0, 0.75, 2001)
    angle = 8.0 * t
    zero = np.zeros_like(t)
    circle = [
        np.stack((np.sin(angle + k * np.pi / 2), zero, -np.cos(angle + k * np.pi / 2)), axis=-1) * 8.0**k for k in range(5)
    ]
    sample = Trajectory([0.0, 0.75], np.zeros((1, 3, 1)), *yaw_fixed(0.75, 0.0)).sample(t)
    flat = type(sample)(*circle, sample.yaw, sample.yaw_rate, sample.yaw_acceleration)
    state = kinematic_state(flat)
    assert np.min(frames.rotate(state.attitude, [0.0, 0.0, 1.0])[:, 2]) < -0.9
    turned = np.gradient(np.unwrap(2.0 * np.arctan2(state.attitude[:, 1], state.attitude[:, 3])), t)
    np.testing.assert_allclose(turned[1:-1], state.body_rate[1:-1, 1], rtol=1e-4)


def test_free_fall_stays_finite() -> None:
    state = flat_motion((1.0, 0, 0), (0.0, 0.0, -9.81), (1.0, 2, 3), (1.0, 2, 3), half_angle(0.3), 0.1, 0.2)
    flat = [x for part in state for x in (part if isinstance(part, tuple) else (part,))]
    assert np.all(np.isfinite(flat))


def test_rates_are_the_attitude_s_derivative_by_dual_numbers() -> None:
    # dq/dt = dq/da j + dq/dpsi psi' must equal 1/2 q (w, 0): the map's rates against exact differentiation of its attitude.
    def attitude(ax: object, ay: object, az: object, yaw: object) -> tuple[object, ...]:
        return flat_inputs((0.0,) * 3, (ax, ay, az), (0.0,) * 3, half_angle(yaw), 0.0).attitude

    jerk, yaw_rate = (3.0, -2.0, 1.0), 0.7
    acceleration, yaw = (2.0, -3.0, 1.0), 0.4
    q, slopes = jacobian(attitude, [*acceleration, yaw])
    q_dot = np.array(slopes) @ np.array([*jerk, yaw_rate])
    rate = flat_inputs((0.0,) * 3, acceleration, jerk, half_angle(yaw), yaw_rate).body_rate
    # The polynomials of sine and cosine are good to about 1e-10.
    np.testing.assert_allclose(q_dot, 0.5 * frames.multiply(q, [*map(float, rate), 0.0]), atol=1e-8)


def test_the_maps_can_be_traced() -> None:
    vectors: dict[str, int | None] = dict.fromkeys(("velocity", "acceleration", "jerk"), 3)
    outputs: dict[str, int | None] = {"attitude": 4, "thrust": None, "rate": 3, "rate_dot": 3, "thrust_rate": None}
    block = trace(flat_inputs, "flat_inputs", {**vectors, "half_heading": 2, "yaw_rate": None}, outputs)
    assert block.operation_count < 200
    inputs = {**vectors, "snap": 3, "half_heading": 2, "yaw_rate": None, "yaw_acceleration": None, "drag": 3}
    assert trace(flat_motion, "flat_motion", inputs, outputs).operation_count < 500


@pytest.mark.parametrize("name", ["carl", "lmf2", "virt_05", "base_octarotor"])
def test_rotor_thrusts_make_the_wrench(name: str) -> None:
    airframe = vehicle(name)
    state = vehicle_state(course("robustness").trajectory().sample(np.linspace(0.0, 15.0, 40)), airframe)
    wrench = rotor_thrusts(state, airframe) @ control_effectiveness(airframe).T
    np.testing.assert_allclose(wrench[:, 2], state.force, rtol=1e-9)
    np.testing.assert_allclose(wrench[:, 3:], state.moment, atol=1e-9)


def test_hover_thrusts_are_the_vehicle_s() -> None:
    airframe = vehicle("virt_05")
    thrusts = rotor_thrusts(vehicle_state(course("hover").trajectory().sample(0.5), airframe), airframe)
    expected = [rotor_thrust(rotor, float(w)) for rotor, w in zip(airframe.rotors, hover_speed(airframe), strict=True)]
    np.testing.assert_allclose(thrusts, expected, rtol=1e-6)


def test_a_massless_body_is_refused() -> None:
    with pytest.raises(AirworthyError, match="mass"):
        rigid_state(course("hover").trajectory().sample(0.0), 0.0, INERTIA)
