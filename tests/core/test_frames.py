"""Rotations against SciPy's independent implementation, conversions against the matrices that define them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation, Slerp

from airworthy.core import frames

# Products of a few unit-size float64 numbers: some 10 roundings of 1.1e-16 each.
CLOSE = 1e-14

unit_numbers = st.floats(-1.0, 1.0, allow_subnormal=False)
angles = st.floats(-10.0, 10.0)
vectors = st.tuples(*[st.floats(-100.0, 100.0)] * 3).map(np.array)
quaternions = (
    st.tuples(*[unit_numbers] * 4).map(np.array).filter(lambda q: np.linalg.norm(q) > 1e-3).map(lambda q: q / np.linalg.norm(q))
)


def same_rotation(a: np.ndarray, b: np.ndarray, tolerance: float = CLOSE) -> bool:
    """Equal up to the common sign."""
    return min(np.max(np.abs(a - b)), np.max(np.abs(a + b))) <= tolerance


def random_quaternions(*shape: int, seed: int = 1) -> np.ndarray:
    q = np.random.default_rng(seed).normal(size=(*shape, 4))
    return q / np.linalg.norm(q, axis=-1, keepdims=True)


@given(quaternions, quaternions, vectors)
def test_product_and_rotation_equal_scipy(a: np.ndarray, b: np.ndarray, v: np.ndarray) -> None:
    ra, rb = Rotation.from_quat(a), Rotation.from_quat(b)
    assert same_rotation(frames.multiply(a, b), (ra * rb).as_quat())
    np.testing.assert_allclose(frames.rotate(a, v), ra.apply(v), atol=CLOSE * 1000)
    np.testing.assert_allclose(frames.rotate_inverse(a, v), ra.inv().apply(v), atol=CLOSE * 1000)
    np.testing.assert_allclose(frames.to_matrix(a), ra.as_matrix(), atol=CLOSE)


@given(quaternions, quaternions, vectors)
def test_rotations_compose_and_invert(a: np.ndarray, b: np.ndarray, v: np.ndarray) -> None:
    twice = frames.rotate(a, frames.rotate(b, v))
    np.testing.assert_allclose(frames.rotate(frames.multiply(a, b), v), twice, atol=CLOSE * 1000)
    np.testing.assert_allclose(frames.rotate_inverse(a, frames.rotate(a, v)), v, atol=CLOSE * 1000)
    np.testing.assert_allclose(frames.multiply(a, frames.conjugate(a)), frames.IDENTITY, atol=CLOSE)


@given(quaternions)
def test_matrix_round_trip(q: np.ndarray) -> None:
    assert same_rotation(frames.from_matrix(frames.to_matrix(q)), q)


@pytest.mark.parametrize("axis", np.eye(3))
@pytest.mark.parametrize("angle", [0.0, 1e-9, np.pi / 2, np.pi - 1e-9, np.pi])
def test_from_matrix_is_exact_at_half_turns(axis: np.ndarray, angle: float) -> None:
    q = np.append(axis * np.sin(angle / 2), np.cos(angle / 2))
    assert same_rotation(frames.from_matrix(Rotation.from_quat(q).as_matrix()), q)


def test_from_matrix_forgives_rounding_and_survives_nonsense() -> None:
    q = random_quaternions(50)
    noisy = frames.to_matrix(q) + np.random.default_rng(2).normal(scale=1e-6, size=(50, 3, 3))
    found = frames.from_matrix(noisy)
    np.testing.assert_allclose(np.linalg.norm(found, axis=-1), 1.0, atol=CLOSE)
    assert np.max(frames.angle_between(found, q)) < 1e-5  # of the size of the noise
    np.testing.assert_array_equal(frames.from_matrix(np.full((3, 3), np.nan)), frames.IDENTITY)


@given(angles, angles, angles)
def test_euler_angles_are_yaw_pitch_roll(roll: float, pitch: float, yaw: float) -> None:
    q = frames.from_euler(roll, pitch, yaw)
    assert same_rotation(q, Rotation.from_euler("ZYX", [yaw, pitch, roll]).as_quat())
    back = frames.to_euler(q)
    # Within 1e-9 of straight up the roll is folded into the yaw: an error of that size.
    assert same_rotation(frames.from_euler(*back), q, 1e-8)
    assert abs(back[1]) <= np.pi / 2


@given(st.floats(-3.0, 3.0), st.floats(-1.5, 1.5), st.floats(-3.0, 3.0))
def test_euler_round_trip_away_from_the_vertical(roll: float, pitch: float, yaw: float) -> None:
    q = frames.from_euler(roll, pitch, yaw)
    # cos(1.5) = 0.07 magnifies rounding in the arc tangents.
    np.testing.assert_allclose(frames.to_euler(q), [roll, pitch, yaw], atol=1e-13)
    np.testing.assert_allclose(frames.yaw_of(q), yaw, atol=1e-13)


@pytest.mark.parametrize("pitch", [np.pi / 2, -np.pi / 2])
def test_straight_up_and_down_the_roll_is_zero(pitch: float) -> None:
    q = frames.from_euler(0.3, pitch, 0.4)
    roll, found, yaw = frames.to_euler(q)
    assert roll == 0.0
    assert abs(found - pitch) < 1e-7  # the square root of rounding: the sine is flat there
    assert same_rotation(frames.from_euler(roll, found, yaw), q, 1e-7)


@given(vectors.map(lambda v: v * 0.03))
def test_rotation_vector_equals_scipy(vector: np.ndarray) -> None:
    q = frames.from_rotation_vector(vector)
    assert same_rotation(q, Rotation.from_rotvec(vector).as_quat())
    assert same_rotation(frames.from_rotation_vector(frames.to_rotation_vector(q)), q)
    np.testing.assert_allclose(np.linalg.norm(q), 1.0, atol=CLOSE)
    assert same_rotation(frames.from_axis_angle(vector * 7.0, np.linalg.norm(vector)), q)


@pytest.mark.parametrize("size", [0.0, 5e-324, 1e-300, 1e-160, 1e-12, 1e-8, 1e-4, 3.0])
def test_rotation_vector_round_trip_at_every_size(size: float) -> None:
    vector = np.array([0.6, 0.0, -0.8]) * size
    np.testing.assert_allclose(frames.to_rotation_vector(frames.from_rotation_vector(vector)), vector, rtol=1e-13, atol=5e-324)


@given(quaternions, quaternions, st.floats(0.0, 1.0))
def test_slerp_equals_scipy(a: np.ndarray, b: np.ndarray, fraction: float) -> None:
    if frames.angle_between(a, b) > 3.14:
        return  # at half a turn there are two shortest ways
    expected = Slerp([0.0, 1.0], Rotation.from_quat([a, b]))(fraction).as_quat()
    assert same_rotation(frames.slerp(a, b, fraction), expected, 1e-12)  # near half a turn the axis is ill-conditioned


@given(quaternions, quaternions)
def test_angle_between_equals_scipy(a: np.ndarray, b: np.ndarray) -> None:
    expected = (Rotation.from_quat(a).inv() * Rotation.from_quat(b)).magnitude()
    assert abs(frames.angle_between(a, b) - expected) < 1e-13
    assert abs(frames.angle_between(a, -b) - expected) < 1e-13


@pytest.mark.parametrize(
    "q", [(0, 0, 0, 0), (np.nan, 0, 0, 1), (0, np.inf, 0, 1), (0, 0, 0, -np.inf), (1e-200, 0, 0, 0), (0, 5e-324, 0, 0)]
)
def test_degenerate_quaternions_become_the_identity(q: tuple[float, ...]) -> None:
    np.testing.assert_array_equal(frames.normalize(q), frames.IDENTITY)


@pytest.mark.parametrize("scale", [1e-149, 1e-30, 1.0, 1e200, 1.7e308])
def test_normalize_at_every_scale(scale: float) -> None:
    q = np.array([0.5, -0.5, 0.5, 0.5])
    np.testing.assert_allclose(frames.normalize(q * scale), q, rtol=CLOSE)


def test_continuous_starts_with_positive_w_and_never_jumps() -> None:
    t = np.linspace(0.0, 20.0, 400)
    smooth = frames.from_axis_angle([1.0, 2.0, -0.5], t)  # several whole turns: w changes sign
    flips = np.random.default_rng(3).choice([-1.0, 1.0], size=(5, 400, 1))
    np.testing.assert_allclose(frames.continuous(smooth * flips), np.broadcast_to(smooth, (5, 400, 4)), atol=0.0)
    assert frames.continuous(np.empty((2, 0, 4))).shape == (2, 0, 4)


def test_canonical_has_positive_w() -> None:
    q = random_quaternions(100)
    found = frames.canonical(q)
    assert np.all(found[:, 3] >= 0.0)
    np.testing.assert_array_equal(np.abs(found), np.abs(q))


def test_functions_broadcast_their_leading_axes() -> None:
    a, b = random_quaternions(4, 1), random_quaternions(3, seed=2)
    v = np.random.default_rng(4).normal(size=(3, 3))
    product, turned = frames.multiply(a, b), frames.rotate(a, v)
    assert product.shape == (4, 3, 4)
    assert turned.shape == (4, 3, 3)
    np.testing.assert_array_equal(product[2, 1], frames.multiply(a[2, 0], b[1]))
    np.testing.assert_array_equal(turned[2, 1], frames.rotate(a[2, 0], v[1]))
    assert frames.slerp(a, b, np.zeros(3)).shape == (4, 3, 4)
    assert frames.from_matrix(frames.to_matrix(product)).shape == (4, 3, 4)
    assert frames.from_euler(0.0, np.zeros(5), 0.0).shape == (5, 4)


def test_wrap_angle() -> None:
    np.testing.assert_allclose(frames.wrap_angle([0.0, 4.0, -4.0, np.pi]), [0.0, 4.0 - 2 * np.pi, 2 * np.pi - 4.0, -np.pi])


HALF_TURN_X = np.diag([1.0, -1.0, -1.0])
NED_FROM_ENU = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])


@given(quaternions, vectors)
def test_z_down_turns_world_and_body(q: np.ndarray, v: np.ndarray) -> None:
    np.testing.assert_array_equal(frames.z_down_vector(v), HALF_TURN_X @ v)
    np.testing.assert_array_equal(frames.z_down_rates(v), HALF_TURN_X @ v)
    expected = HALF_TURN_X @ frames.to_matrix(q) @ HALF_TURN_X
    np.testing.assert_allclose(frames.to_matrix(frames.z_down_attitude(q)), expected, atol=CLOSE)
    np.testing.assert_array_equal(frames.z_down_attitude(frames.z_down_attitude(q)), q)


def test_z_down_yaw_and_thrust() -> None:
    q = frames.from_euler(0.1, 0.2, 0.3)
    np.testing.assert_allclose(frames.yaw_of(frames.z_down_attitude(q)), frames.z_down_yaw(0.3), atol=CLOSE)
    assert frames.z_down_thrust(-0.40662) == 0.40662  # the hover command of FiGS's drone


@given(quaternions, vectors)
def test_px4_frames(q: np.ndarray, v: np.ndarray) -> None:
    np.testing.assert_array_equal(frames.enu_ned_vector(v), NED_FROM_ENU @ v)
    np.testing.assert_array_equal(frames.flu_frd_vector(v), HALF_TURN_X @ v)
    ned = frames.enu_ned_attitude(q)
    np.testing.assert_allclose(frames.to_matrix(ned), NED_FROM_ENU @ frames.to_matrix(q) @ HALF_TURN_X, atol=CLOSE)
    np.testing.assert_allclose(frames.enu_ned_attitude(ned), q, atol=CLOSE)  # both ways, sign included


@given(st.floats(-3.1, 3.1))
def test_px4_yaw_is_clockwise_from_north(yaw: float) -> None:
    ned = frames.enu_ned_attitude(frames.from_euler(0.0, 0.0, yaw))
    assert abs(frames.wrap_angle(frames.yaw_of(ned) - frames.enu_ned_yaw(yaw))) < 1e-12
    np.testing.assert_allclose(frames.enu_ned_yaw(frames.enu_ned_yaw(yaw)), yaw, atol=1e-14)


def test_w_first_and_back() -> None:
    np.testing.assert_array_equal(frames.to_wxyz([[1.0, 2.0, 3.0, 4.0]]), [[4.0, 1.0, 2.0, 3.0]])
    np.testing.assert_array_equal(frames.from_wxyz(frames.to_wxyz([1.0, 2.0, 3.0, 4.0])), [1.0, 2.0, 3.0, 4.0])


def test_a_camera_looks_where_its_mount_points() -> None:
    camera = frames.camera_attitude(frames.IDENTITY)
    np.testing.assert_allclose(frames.rotate(camera, np.eye(3)), [[0, -1, 0], [0, 0, -1], [1, 0, 0]], atol=CLOSE)
    down = frames.camera_attitude(frames.IDENTITY, frames.from_euler(0.0, np.pi / 2, 0.0))
    np.testing.assert_allclose(frames.rotate(down, [0.0, 0.0, 1.0]), [0.0, 0.0, -1.0], atol=CLOSE)


@given(quaternions, vectors, vectors)
def test_colmap_maps_world_points_to_the_camera(q: np.ndarray, centre: np.ndarray, point: np.ndarray) -> None:
    rotation, translation = frames.colmap_pose(centre, q)
    r = Rotation.from_quat(np.roll(rotation, -1)).as_matrix()
    # Coordinates of 100 m: 1e-12 is a hundred roundings.
    np.testing.assert_allclose(r @ point + translation, frames.to_matrix(q).T @ (point - centre), atol=1e-12)
    found_centre, found_q = frames.pose_from_colmap(rotation, translation)
    np.testing.assert_allclose(found_centre, centre, atol=1e-12)
    np.testing.assert_array_equal(found_q, q)


@given(quaternions, vectors)
def test_opengl_camera_looks_backward_along_z(q: np.ndarray, v: np.ndarray) -> None:
    np.testing.assert_allclose(
        frames.rotate(frames.opengl_attitude(q), frames.flu_frd_vector(v)), frames.rotate(q, v), atol=1e-12
    )
    np.testing.assert_allclose(frames.opengl_attitude(frames.opengl_attitude(q)), -q, atol=CLOSE)


@given(vectors, vectors)
def test_gltf_has_y_up_and_keeps_handedness(a: np.ndarray, b: np.ndarray) -> None:
    np.testing.assert_array_equal(frames.vector_from_gltf(frames.gltf_vector(a)), a)
    np.testing.assert_array_equal(frames.gltf_vector([0.0, 0.0, 1.0]), [0.0, 1.0, 0.0])
    np.testing.assert_allclose(
        frames.gltf_vector(np.cross(a, b)), np.cross(frames.gltf_vector(a), frames.gltf_vector(b)), atol=1e-11
    )
