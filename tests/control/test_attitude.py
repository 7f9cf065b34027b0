import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from airworthy.control.attitude import (
    attitude_direction,
    attitude_error,
    desired_axes,
    flat_angular_acceleration,
    flat_rates,
    heading,
    into_body,
    rotation_difference,
)

unit = st.floats(-1.0, 1.0)
vectors = st.tuples(unit, unit, unit).filter(lambda v: np.linalg.norm(v) > 0.05)
quaternions = st.tuples(unit, unit, unit, unit).filter(lambda q: np.linalg.norm(q) > 0.05)


def axes_of(rotation):
    matrix = rotation.as_matrix()
    return tuple(tuple(matrix[:, i]) for i in range(3))


def normal(v):
    return tuple(np.asarray(v) / np.linalg.norm(v))


@given(vectors, st.floats(-np.pi, np.pi), st.sampled_from([0.0, 1.0]), quaternions)
def test_desired_axes_are_always_a_rotation(direction, yaw, hold, q):
    axes = axes_of(Rotation.from_quat(q))
    chi = heading(axes) if hold else (np.cos(yaw), np.sin(yaw), 0.0)
    target = np.array(desired_axes(normal(direction), chi, hold, axes)).T
    # Orthonormal and right-handed to rounding; near-parallel directions (sine down to 1e-3) magnify it.
    assert np.allclose(target.T @ target, np.eye(3), atol=1e-9)
    assert np.linalg.det(target) == pytest.approx(1.0, abs=1e-9)
    assert np.allclose(target[:, 2], normal(direction))


@pytest.mark.parametrize("hold", [0.0, 1.0])
@pytest.mark.parametrize("direction", [(1.0, 0.0, 0.0), (-1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, -1.0), (0.0, 0.0, 1.0)])
@pytest.mark.parametrize("present", [(0, 0, 0), (0, 90, 0), (0, -90, 0), (90, 0, 0), (180, 0, 0)])
def test_degenerate_directions_still_give_a_rotation(direction, present, hold):
    axes = axes_of(Rotation.from_euler("xyz", present, degrees=True))
    target = np.array(desired_axes(direction, (1.0, 0.0, 0.0), hold, axes)).T
    assert np.allclose(target.T @ target, np.eye(3), atol=1e-9)
    assert np.linalg.det(target) == pytest.approx(1.0)


@given(quaternions)
def test_an_attitude_with_the_right_z_is_its_own_target_when_yaw_is_held(q):
    axes = axes_of(Rotation.from_quat(q))
    target = desired_axes(axes[2], heading(axes), 1.0, axes)
    # A nose within 1e-3 of the vertical has no heading: right of body y stands for it, which tilts as much as the nose does and
    # so misses by no more than the nose's horizontal part. Elsewhere to rounding.
    level = np.hypot(*axes[0][:2])
    assert np.abs(np.array(target) - np.array(axes)).max() < 1e-6 + (level if level <= 1e-3 else 0.0)


@given(st.floats(-1.4, 1.4), st.floats(-1.4, 1.4), st.floats(-3.1, 3.1))
def test_attitude_command_is_roll_pitch_and_present_yaw(roll, pitch, yaw):
    present = axes_of(Rotation.from_euler("ZYX", [yaw, 0.2, -0.3]))
    chi = heading(present)
    target = desired_axes(attitude_direction(roll, pitch, chi), chi, 1.0, present)
    expected = Rotation.from_euler("ZYX", [yaw, pitch, roll]).as_matrix()
    # Sine and cosine are polynomials good to 1e-10; the axes divide by cos(roll) >= 0.17.
    assert np.allclose(np.array(target).T, expected, atol=1e-8)


@given(st.tuples(unit, unit, unit), st.floats(-3.0, 3.0))
def test_acceleration_level_has_the_printed_closed_form(force, yaw):
    # pitch = atan2(Fx, Fz), roll = atan2(-Fy, sqrt(Fx^2 + Fz^2)), F in the vehicle frame, Fz > 0.
    fx, fy, fz = force[0], force[1], abs(force[2]) + 0.2
    pitch, roll = np.arctan2(fx, fz), np.arctan2(-fy, np.hypot(fx, fz))
    expected = Rotation.from_euler("ZYX", [yaw, pitch, roll]).as_matrix()
    present = axes_of(Rotation.from_euler("ZYX", [yaw, 0.1, 0.1]))
    world = Rotation.from_euler("z", yaw).apply([fx, fy, fz])
    target = desired_axes(normal(world), heading(present), 1.0, present)
    assert np.allclose(np.array(target).T, expected, atol=1e-8)


@given(quaternions, quaternions)
def test_attitude_error_is_the_half_vee(q, qd):
    r, rd = Rotation.from_quat(q).as_matrix(), Rotation.from_quat(qd).as_matrix()
    skew = rd.T @ r - r.T @ rd
    vee = np.array([skew[2, 1], skew[0, 2], skew[1, 0]])
    axes, desired = axes_of(Rotation.from_quat(q)), axes_of(Rotation.from_quat(qd))
    assert np.allclose(rotation_difference(axes, desired), vee, atol=1e-12)
    if 1.0 + np.trace(rd.T @ r) > 1e-3:
        assert np.allclose(attitude_error(axes, desired), 0.5 * vee, atol=1e-12)


@pytest.mark.parametrize("axis", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0.6, 0.0, 0.8), (-0.5, 0.7, 0.1)])
def test_a_half_turn_is_not_an_equilibrium(axis):
    n = np.array(normal(axis))
    error = attitude_error(axes_of(Rotation.from_rotvec(np.pi * n)), axes_of(Rotation.identity()))
    assert np.linalg.norm(error) == pytest.approx(0.02)
    assert abs(np.dot(error, n)) == pytest.approx(0.02)


def _lissajous(t):
    """Position derivatives 2 to 4 and yaw derivatives 0 to 2 of an analytic path."""
    w = np.array([1.3, 0.9, 1.7])
    a, phase = np.array([1.5, 2.0, 0.8]), np.array([0.2, 1.1, 0.5])
    acceleration, jerk, snap = (
        -a * w**2 * np.sin(w * t + phase),
        -a * w**3 * np.cos(w * t + phase),
        a * w**4 * np.sin(w * t + phase),
    )
    return acceleration, jerk, snap, 0.8 * np.sin(t), 0.8 * np.cos(t), -0.8 * np.sin(t)


def _flat_attitude(t):
    acceleration, *_, yaw, _, _ = _lissajous(t)
    force = acceleration + np.array([0.0, 0.0, 9.81])
    level = axes_of(Rotation.identity())
    return desired_axes(normal(force), (np.cos(yaw), np.sin(yaw), 0.0), 0.0, level), np.linalg.norm(force)


@pytest.mark.parametrize("t", [0.0, 0.7, 2.3, 5.1])
def test_flat_rates_and_accelerations_are_the_derivatives_of_the_attitude(t):
    def rates(t):
        _, jerk, _, yaw, yaw_rate, _ = _lissajous(t)
        axes, thrust = _flat_attitude(t)
        return np.array(flat_rates(axes, thrust, tuple(jerk), (np.cos(yaw), np.sin(yaw), 0.0), yaw_rate))

    h = 1e-5
    before, after = (Rotation.from_matrix(np.array(_flat_attitude(t + s)[0]).T) for s in (-h, h))
    assert np.allclose(rates(t), (before.inv() * after).as_rotvec() / (2 * h), atol=1e-8)

    _, jerk, snap, yaw, yaw_rate, yaw_acceleration = _lissajous(t)
    axes, thrust = _flat_attitude(t)
    chi = (np.cos(yaw), np.sin(yaw), 0.0)
    angular = flat_angular_acceleration(
        axes, thrust, tuple(rates(t)), tuple(jerk), tuple(snap), chi, yaw_rate, yaw_acceleration
    )
    assert np.allclose(angular, (rates(t + h) - rates(t - h)) / (2 * h), atol=1e-7)


def test_flat_rates_vanish_without_thrust():
    axes = axes_of(Rotation.identity())
    assert flat_rates(axes, 0.0, (1.0, 2.0, 3.0), (1.0, 0.0, 0.0), 0.0) == pytest.approx((0.0, 0.0, 0.0))


def test_into_body():
    r = Rotation.from_rotvec([0.3, -0.2, 0.9])
    assert np.allclose(into_body(axes_of(r), (1.0, 2.0, 3.0)), r.inv().apply([1.0, 2.0, 3.0]))


@given(vectors, st.floats(-np.pi, np.pi), st.sampled_from([0.0, 1.0]), quaternions)
def test_desired_axes_by_their_definition(direction, yaw, hold, q):
    axes = axes_of(Rotation.from_quat(q))
    z, chi = np.array(normal(direction)), np.array((np.cos(yaw), np.sin(yaw), 0.0))
    left = np.array([-chi[1], chi[0], 0.0])
    candidate = np.cross(z, chi)
    if hold:
        candidate = left - (left @ z) * z
        candidate *= -1.0 if np.cross(left, z) @ axes[0] + candidate @ axes[1] < 0.0 else 1.0
    if np.linalg.norm(candidate) < 1e-3:
        return
    y = candidate / np.linalg.norm(candidate)
    target = np.array(desired_axes(tuple(z), tuple(chi), hold, axes))
    assert np.allclose(target, [np.cross(y, z), y, z], atol=1e-9)


@pytest.mark.parametrize("hold", [0.0, 1.0])
def test_where_the_direction_gives_no_heading_the_present_attitude_does(hold):
    chi = (1.0, 0.0, 0.0)
    along = (0.0, 1.0, 0.0) if hold else chi  # parallel to the left of chi with `hold`, else to chi
    axes = axes_of(Rotation.from_euler("xyz", [0.3, -0.4, 0.9]))
    y = np.cross(along, axes[0])
    y /= np.linalg.norm(y)
    assert np.allclose(desired_axes(along, chi, hold, axes)[1], y, atol=1e-12)
    # Parallel to body x as well: body y stays.
    turned = (along, axes_of(Rotation.from_euler("z", np.pi / 2 if hold else 0.0))[1], (0.0, 0.0, 1.0))
    assert np.allclose(desired_axes(along, chi, hold, turned)[1], turned[1], atol=1e-12)
