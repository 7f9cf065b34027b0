import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from airworthy.control import MODES, BodyState, GeometricParameters, Reference, geometric_control, pose_control
from airworthy.control.geometric import LIFT_MIN, limited_force, position_pull
from airworthy.core.tracing import trace

PARAMETERS = GeometricParameters(
    mass=1.3,
    gravity=9.81,
    inertia=(0.012, 0.014, 0.021, 0.001, -0.0005, 0.0008),
    position_gain=(4.0, 5.0, 6.0),
    velocity_gain=(3.0, 2.5, 3.5),
    attitude_gain=(1.0, 1.2, 0.6),
    rate_gain=(0.15, 0.17, 0.11),
)
unit = st.floats(-1.0, 1.0)
triples = st.tuples(unit, unit, unit)
quaternions = st.tuples(unit, unit, unit, unit).filter(lambda q: np.linalg.norm(q) > 0.1)


def state_of(position=(0, 0, 0), velocity=(0, 0, 0), attitude=None, rate=(0, 0, 0)):
    attitude = Rotation.identity() if attitude is None else attitude
    return BodyState(*(tuple(map(float, v)) for v in (position, velocity, attitude.as_quat(), rate)))


def matrix_law(state, reference, p, moving=True):
    """Equations (1) to (5) with 3 x 3 matrices, for a commanded yaw and desired rates zero."""
    x, v = np.array(state.position), np.array(state.velocity)
    r, w = Rotation.from_quat(state.attitude).as_matrix(), np.array(state.body_rate)
    j = np.array(
        [[p.inertia[0], p.inertia[3], p.inertia[4]], [p.inertia[3], p.inertia[1], p.inertia[5]], [*p.inertia[4:], p.inertia[2]]]
    )
    acceleration = np.diag(p.velocity_gain) @ (reference.velocity - v) + reference.acceleration
    if moving:
        acceleration = acceleration + np.diag(p.position_gain) @ (reference.position - x)
    force = p.mass * (acceleration + np.array([0, 0, p.gravity]))
    b3 = force / np.linalg.norm(force)
    chi = np.array([math.cos(reference.yaw), math.sin(reference.yaw), 0.0])
    b2 = np.cross(b3, chi) / np.linalg.norm(np.cross(b3, chi))
    rd = np.column_stack([np.cross(b2, b3), b2, b3])
    skew = 0.5 * (rd.T @ r - r.T @ rd)
    error = np.array([skew[2, 1], skew[0, 2], skew[1, 0]])
    moment = -np.diag(p.attitude_gain) @ error - np.diag(p.rate_gain) @ w + np.cross(w, j @ w)
    return force @ r[:, 2], moment, rd


@given(triples, triples, quaternions, triples, triples, st.floats(-3.0, 3.0))
def test_position_level_is_the_matrix_law(x, v, q, w, target, yaw):
    state = state_of(x, v, Rotation.from_quat(q), w)
    reference = Reference(position=target, yaw=yaw)
    thrust, moment, rd = matrix_law(
        state, Reference(position=np.array(target), velocity=np.zeros(3), acceleration=np.zeros(3), yaw=yaw), PARAMETERS
    )
    out = geometric_control(state, reference, MODES["position"], PARAMETERS)
    # Two evaluations of one formula; the half-turn guard differs within 0.01 rad of a half turn only.
    if np.trace(rd.T @ Rotation.from_quat(q).as_matrix()) > -0.999:
        assert np.allclose(out.moment, moment, atol=1e-8)
    assert out.thrust == pytest.approx(thrust, abs=1e-9)
    assert np.allclose(np.array(out.axes).T, rd, atol=1e-8)


@given(triples, quaternions, triples, triples, st.floats(-3.0, 3.0))
def test_velocity_steering_is_the_matrix_law_in_the_vehicle_frame(v, q, w, target, yaw):
    attitude = Rotation.from_quat(q)
    if np.hypot(*attitude.as_matrix()[:2, 0]) < 0.1:
        return
    heading = math.atan2(attitude.as_matrix()[1, 0], attitude.as_matrix()[0, 0])
    wanted = Rotation.from_euler("z", heading).apply(target)
    state = state_of(velocity=v, attitude=attitude, rate=w)
    thrust, moment, rd = matrix_law(
        state, Reference(velocity=wanted, acceleration=np.zeros(3), yaw=yaw), PARAMETERS, moving=False
    )
    out = geometric_control(state, Reference(velocity=target, yaw=yaw), MODES["velocity_steering"], PARAMETERS)
    assert out.thrust == pytest.approx(thrust, abs=1e-9)
    if np.trace(rd.T @ attitude.as_matrix()) > -0.999:
        assert np.allclose(out.moment, moment, atol=1e-8)


@pytest.mark.parametrize("level", [name for name in MODES if name not in ("attitude_thrust", "rate_thrust")])
@pytest.mark.parametrize("yaw", [0.0, 0.7, -2.9])
def test_hover_needs_the_weight_and_no_moment(level, yaw):
    state = state_of((1.0, -2.0, 3.0), attitude=Rotation.from_euler("z", yaw))
    reference = Reference(position=(1.0, -2.0, 3.0), yaw=yaw)
    out = geometric_control(state, reference, MODES[level], PARAMETERS)
    assert out.thrust == pytest.approx(1.3 * 9.81)
    assert np.allclose(out.moment, 0.0, atol=1e-9)


@given(quaternions, triples, triples)
def test_acceleration_level_with_the_force_of_position_level_agrees(q, x, a):
    """A position command whose feedback equals an acceleration command gives the same thrust and body z."""
    attitude = Rotation.from_quat(q)
    state = state_of(x, attitude=attitude)
    wanted = tuple(xi + ai / k for xi, ai, k in zip(x, a, PARAMETERS.position_gain, strict=True))
    by_position = geometric_control(state, Reference(position=wanted), MODES["position"], PARAMETERS)
    world = MODES["acceleration"]._replace(vehicle_frame=0.0)
    by_acceleration = geometric_control(state, Reference(acceleration=a), world, PARAMETERS)
    assert by_acceleration.thrust == pytest.approx(by_position.thrust, abs=1e-9)
    assert np.allclose(by_acceleration.axes[2], by_position.axes[2], atol=1e-9)


def test_acceleration_and_velocity_commands_turn_with_the_vehicle():
    attitude = Rotation.from_euler("z", np.pi / 2)
    out = geometric_control(
        state_of(attitude=attitude), Reference(acceleration=(2.0, 0.0, 0.0)), MODES["acceleration"], PARAMETERS
    )
    assert np.allclose(np.array(out.axes[2]) / out.axes[2][2], [0.0, 2.0 / 9.81, 1.0], atol=1e-9)
    world = MODES["acceleration"]._replace(vehicle_frame=0.0)
    out = geometric_control(state_of(attitude=attitude), Reference(acceleration=(2.0, 0.0, 0.0)), world, PARAMETERS)
    assert np.allclose(np.array(out.axes[2]) / out.axes[2][2], [2.0 / 9.81, 0.0, 1.0], atol=1e-9)


def test_rate_level_ignores_the_attitude():
    attitude = Rotation.from_euler("xyz", [2.0, 0.4, -1.0])
    out = geometric_control(
        state_of(attitude=attitude, rate=(0.5, 0.0, 0.0)),
        Reference(thrust=7.0, rate=(1.0, 2.0, -0.5)),
        MODES["rate_thrust"],
        PARAMETERS,
    )
    spin = np.cross((0.5, 0.0, 0.0), 0.5 * np.array([0.012, 0.001, -0.0005]))
    assert out.thrust == 7.0
    assert np.allclose(out.moment, spin - np.array(PARAMETERS.rate_gain) * [-0.5, -2.0, 0.5])


def test_attitude_level_holds_the_present_yaw_and_passes_the_thrust():
    attitude = Rotation.from_euler("ZYX", [1.1, 0.3, -0.2])
    reference = Reference(thrust=8.0, roll=-0.2, pitch=0.3)
    out = geometric_control(state_of(attitude=attitude), reference, MODES["attitude_thrust"], PARAMETERS)
    assert out.thrust == 8.0
    assert np.allclose(out.moment, 0.0, atol=1e-9)


@pytest.mark.parametrize("level", ["attitude_thrust", "acceleration", "velocity"])
def test_yaw_rate_is_about_the_vertical_and_clamped(level):
    attitude = Rotation.from_euler("ZYX", [0.4, 0.2, 0.5])
    out = geometric_control(state_of(attitude=attitude), Reference(yaw_rate=5.0), MODES[level], PARAMETERS)
    assert np.allclose(out.body_rate, attitude.inv().apply([0.0, 0.0, np.pi / 3.0]))


def test_tracking_on_the_reference_needs_no_feedback():
    """On a circle at its own attitude and rates the moment is W x J W plus J dW/dt, which `angular` feeds forward."""
    w, radius, t = 2.0, 1.5, 0.4
    c, s = math.cos(w * t), math.sin(w * t)
    p = np.array([c, s, 0.0]) * radius
    v = np.array([-s, c, 0.0]) * radius * w
    reference = Reference(
        position=tuple(p), velocity=tuple(v), acceleration=tuple(-(w**2) * p), jerk=tuple(-(w**2) * v), snap=tuple(w**4 * p)
    )
    first = geometric_control(state_of(p, v), reference, MODES["tracking"], PARAMETERS)
    attitude = Rotation.from_matrix(np.array(first.axes).T)
    target = geometric_control(state_of(p, v, attitude), reference, MODES["tracking"], PARAMETERS)
    exact = geometric_control(
        state_of(p, v, attitude, target.body_rate), reference, MODES["tracking"]._replace(angular=1.0), PARAMETERS
    )
    assert exact.thrust == pytest.approx(1.3 * math.hypot(9.81, w**2 * radius))
    inertia = np.array([[0.012, 0.001, -0.0005], [0.001, 0.014, 0.0008], [-0.0005, 0.0008, 0.021]])
    without = geometric_control(state_of(p, v, attitude, target.body_rate), reference, MODES["tracking"], PARAMETERS)
    spin = np.cross(target.body_rate, inertia @ target.body_rate)
    assert np.allclose(without.moment, spin, atol=1e-9)
    # The rates of the same attitude a little later, by the same function.
    h = 1e-5

    def rates(time):
        c, s = math.cos(w * time), math.sin(w * time)
        p, v = np.array([c, s, 0.0]) * radius, np.array([-s, c, 0.0]) * radius * w
        at = reference._replace(position=tuple(p), velocity=tuple(v), acceleration=tuple(-(w**2) * p), jerk=tuple(-(w**2) * v))
        axes = geometric_control(state_of(p, v), at, MODES["tracking"], PARAMETERS).axes
        now = Rotation.from_matrix(np.array(axes).T)
        return np.array(geometric_control(state_of(p, v, now), at, MODES["tracking"], PARAMETERS).body_rate)

    slope = (rates(t + h) - rates(t - h)) / (2 * h)
    assert np.allclose(exact.moment, spin + inertia @ slope, atol=1e-6)


def test_without_force_the_attitude_is_kept_and_a_force_below_asks_for_negative_thrust():
    attitude = Rotation.from_euler("x", 0.4)
    free = geometric_control(
        state_of(attitude=attitude), Reference(acceleration=(0.0, 0.0, -9.81)), MODES["acceleration"], PARAMETERS
    )
    assert free.thrust == pytest.approx(0.0, abs=1e-9)
    assert np.allclose(free.moment, 0.0, atol=1e-9)
    diving = geometric_control(state_of(), Reference(acceleration=(0.0, 0.0, -19.62)), MODES["acceleration"], PARAMETERS)
    assert diving.thrust == pytest.approx(-1.3 * 9.81)
    # Opposite to body z: the half turn is asked for about one definite axis instead of none.
    assert np.linalg.norm(diving.moment) > 0.01


@given(triples)
def test_limits_keep_height_before_sideways_motion(direction):
    p = PARAMETERS._replace(inclination_tangent=math.tan(math.pi / 3), thrust_max=20.0)
    force = limited_force(tuple(60.0 * d for d in direction), p)
    assert np.linalg.norm(force) <= 20.0 + 1e-9
    assert force[2] >= LIFT_MIN * 1.3 * 9.81 - 1e-9
    assert math.hypot(force[0], force[1]) <= math.tan(math.pi / 3) * force[2] + 1e-9
    wanted = min(max(60.0 * direction[2], LIFT_MIN * 1.3 * 9.81), 20.0)
    assert force[2] == pytest.approx(wanted)


def test_the_pull_of_a_far_goal_is_bounded_and_keeps_its_direction():
    p = PARAMETERS._replace(pull_max=(6.0, 2.0))
    x, y, z = position_pull((30.0, -40.0, -50.0), p)
    assert math.hypot(x, y) == pytest.approx(6.0)
    assert y / x == pytest.approx(5.0 * -40.0 / (4.0 * 30.0))
    assert z == -2.0
    assert position_pull((0.5, 0.3, 0.2), p) == pytest.approx((2.0, 1.5, 1.2))
    assert position_pull((30.0, -40.0, -50.0), PARAMETERS) == pytest.approx((120.0, -200.0, -300.0))
    assert position_pull((0.0, 0.0, 0.0), p) == pytest.approx((0.0, 0.0, 0.0))


def test_limits_leave_small_forces_alone():
    p = PARAMETERS._replace(inclination_tangent=1.7, thrust_max=20.0)
    assert limited_force((1.0, -2.0, 12.0), p) == pytest.approx((1.0, -2.0, 12.0))
    assert limited_force((100.0, -200.0, -12.0), PARAMETERS) == pytest.approx((100.0, -200.0, -12.0))


@given(triples, triples, quaternions, triples, quaternions)
def test_pose_control_is_the_matrix_law(x, v, q, w, qd):
    r, rd = Rotation.from_quat(q), Rotation.from_quat(qd)
    state = state_of(x, v, r, w)
    force, moment = pose_control(state, (1.0, 2.0, 3.0), qd, PARAMETERS)
    kx, kv = np.array(PARAMETERS.position_gain), np.array(PARAMETERS.velocity_gain)
    expected = 1.3 * (kx * (np.array([1.0, 2.0, 3.0]) - x) - kv * np.array(v) + [0, 0, 9.81])
    assert np.allclose(force, r.inv().apply(expected), atol=1e-9)
    skew = 0.5 * (rd.inv() * r).as_matrix()
    skew = skew - skew.T
    if np.trace((rd.inv() * r).as_matrix()) > -0.999:
        i = PARAMETERS.inertia
        inertia = np.array([[i[0], i[3], i[4]], [i[3], i[1], i[5]], [i[4], i[5], i[2]]])
        error = np.array([skew[2, 1], skew[0, 2], skew[1, 0]])
        expected = -np.array(PARAMETERS.attitude_gain) * error - np.array(PARAMETERS.rate_gain) * w + np.cross(w, inertia @ w)
        assert np.allclose(moment, expected, atol=1e-9)


def test_masks_may_differ_within_a_batch():
    modes = [MODES["position"], MODES["velocity"], MODES["rate_thrust"], MODES["attitude_thrust"]]
    batched = type(modes[0])(*(np.array(masks) for masks in zip(*modes, strict=True)))
    state = state_of((0.3, 0.1, -0.2), (1.0, 0.0, 0.5), Rotation.from_euler("xyz", [0.2, 0.3, 0.4]), (0.1, 0.2, 0.3))
    reference = Reference(
        position=(1.0, 2.0, 3.0), velocity=(0.5, 0.0, 0.0), yaw=0.3, yaw_rate=0.2, thrust=9.0, roll=0.1, rate=(1.0, 0.0, 0.0)
    )
    together = geometric_control(state, reference, batched, PARAMETERS)
    for k, mode in enumerate(modes):
        alone = geometric_control(state, reference, mode, PARAMETERS)
        assert np.broadcast_to(together.thrust, 4)[k] == pytest.approx(float(alone.thrust))
        assert np.allclose([np.broadcast_to(m, 4)[k] for m in together.moment], np.array(alone.moment, float))


def test_the_whole_law_with_masks_is_one_traceable_block():
    names = {f: len(v) if isinstance(v, tuple) else None for f, v in PARAMETERS._asdict().items()}

    def law(position, velocity, attitude, rate, numbers, masks, **p):
        reference = Reference(
            numbers[:3], numbers[3:6], numbers[6:9], numbers[9:12], numbers[12:15], *numbers[15:21], rate=numbers[21:]
        )
        out = geometric_control(
            BodyState(position, velocity, attitude, rate),
            reference,
            type(MODES["position"])(*masks),
            GeometricParameters(**p),
        )
        return out.thrust, out.moment, out.axes, out.body_rate

    inputs = {"position": 3, "velocity": 3, "attitude": 4, "rate": 3, "numbers": 24, "masks": 9, **names}
    block = trace(law, "law", inputs, {"thrust": None, "moment": 3, "axes": 9, "target": 3})
    assert block.operation_count < 1000


def test_the_angular_feed_forward_is_the_slope_of_the_rates_in_the_turning_body():
    """J d/dt (R^T R_d W_d) of a body that turns by itself, away from its target: - W x R^T R_d W_d is a part of it."""
    w, radius, t = 2.0, 1.5, 0.4
    mode, turning = MODES["tracking"], np.array([0.7, -1.1, 0.9])
    begin = Rotation.from_euler("ZYX", [0.3, -0.2, 0.4])

    def at(time, mode=mode):
        c, s = math.cos(w * time), math.sin(w * time)
        p, v = np.array([c, s, 0.0]) * radius, np.array([-s, c, 0.0]) * radius * w
        reference = Reference(
            position=tuple(p),
            velocity=tuple(v),
            acceleration=tuple(-(w**2) * p),
            jerk=tuple(-(w**2) * v),
            snap=tuple(w**4 * p),
            yaw=0.5 * time,
            yaw_rate=0.5,
        )
        attitude = begin * Rotation.from_rotvec(turning * (time - t))
        return geometric_control(state_of(p, v, attitude, turning), reference, mode, PARAMETERS)

    h = 1e-5
    slope = (np.array(at(t + h).body_rate) - np.array(at(t - h).body_rate)) / (2 * h)
    inertia = np.array([[0.012, 0.001, -0.0005], [0.001, 0.014, 0.0008], [-0.0005, 0.0008, 0.021]])
    added = np.array(at(t, mode._replace(angular=1.0)).moment) - np.array(at(t).moment)
    assert np.allclose(added, inertia @ slope, atol=1e-7)
    assert np.abs(np.cross(turning, at(t).body_rate)).max() > 1.0
