"""Conversions to and from the frames of others: each happens once, where data enters or leaves.

Functions named after one pair of frames (`z_down_*`, `enu_ned_*`, `flu_frd_*`) are their own inverse: they lead both ways.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from airworthy.core._rotations import Array, conjugate, multiply, rotate, rotate_inverse, wrap_angle

BODY_FROM_CAMERA: tuple[float, float, float, float] = (-0.5, 0.5, -0.5, 0.5)
"""Attitude in the body of a camera that looks forward: its x is the body's right, its y down, its z forward."""

_HALF_TURN_X = (1.0, 0.0, 0.0, 0.0)
_HALF = np.sqrt(0.5)
_ENU_FROM_NED = (_HALF, _HALF, 0.0, 0.0)


def z_down_vector(v: ArrayLike) -> Array:
    """World or body vectors (..., 3) between z up (forward, left, up) and z down (forward, right, down)."""
    return np.asarray(v, dtype=np.float64) * (1.0, -1.0, -1.0)


def z_down_rates(rates: ArrayLike) -> Array:
    """Body rates (wx, wy, wz) [rad/s], shape (..., 3), between z up and z down."""
    return z_down_vector(rates)


def z_down_attitude(q: ArrayLike) -> Array:
    """Attitudes (..., 4), body to world, where both frames turn between z up and z down: (x, -y, -z, w)."""
    return np.asarray(q, dtype=np.float64) * (1.0, -1.0, -1.0, 1.0)


def z_down_yaw(yaw: ArrayLike) -> Array:
    """Yaw, yaw rate or yaw acceleration between z up and z down: negated."""
    return -np.asarray(yaw, dtype=np.float64)


def z_down_thrust(thrust: ArrayLike) -> Array:
    """Collective thrust command between [0, 1] along our body z (up) and [-1, 0] along z down (FiGS, PX4): negated."""
    return -np.asarray(thrust, dtype=np.float64)


def enu_ned_vector(v: ArrayLike) -> Array:
    """World vectors (..., 3) between east, north, up (ROS) and north, east, down (PX4): (y, x, -z)."""
    v = np.asarray(v, dtype=np.float64)
    return np.stack((v[..., 1], v[..., 0], -v[..., 2]), axis=-1)


def flu_frd_vector(v: ArrayLike) -> Array:
    """Body vectors and rates (..., 3) between forward, left, up and forward, right, down (PX4): (x, -y, -z)."""
    return z_down_vector(v)


def enu_ned_attitude(q: ArrayLike) -> Array:
    """Attitudes (..., 4), x, y, z, w, between body FLU in world ENU and body FRD in world NED; PX4 itself writes w first."""
    # Both turns square to -1, so that the product is exactly its own inverse, sign included.
    return multiply(multiply(_ENU_FROM_NED, q), _HALF_TURN_X)


def enu_ned_yaw(yaw: ArrayLike) -> Array:
    """Yaw [rad] between counter-clockwise from east and clockwise from north: pi/2 - yaw, in [-pi, pi)."""
    return wrap_angle(0.5 * np.pi - np.asarray(yaw, dtype=np.float64))


def to_wxyz(q: ArrayLike) -> Array:
    """Quaternions (..., 4) with w first, as PX4, COLMAP, MuJoCo and Eigen's constructor order them."""
    return np.roll(np.asarray(q, dtype=np.float64), 1, axis=-1)


def from_wxyz(q: ArrayLike) -> Array:
    """Quaternions (..., 4) with w last, from w first."""
    return np.roll(np.asarray(q, dtype=np.float64), -1, axis=-1)


def camera_attitude(q: ArrayLike, mount: ArrayLike = (0.0, 0.0, 0.0, 1.0)) -> Array:
    """Camera to world: attitude of the optical frame (x right, y down, z forward) of a camera on a body.

    Args:
        q: Attitudes of the body in the world, shape (..., 4).
        mount: Attitudes of the camera's housing in the body (x where it looks, z its top), shape (..., 4).
    """
    return multiply(multiply(q, mount), BODY_FROM_CAMERA)


def opengl_attitude(q: ArrayLike) -> Array:
    """Camera attitudes (..., 4) between the optical frame and OpenGL's (x right, y up, z backward).

    A half turn about x: applied twice it gives -q, the same rotation.
    """
    return multiply(q, _HALF_TURN_X)


def colmap_pose(position: ArrayLike, q: ArrayLike) -> tuple[Array, Array]:
    """COLMAP's pose of an image, world to camera, of a camera in the world.

    Args:
        position: Optical centres in the world [m], shape (..., 3).
        q: Camera to world (`camera_attitude`), shape (..., 4).

    Returns:
        Rotation (qw, qx, qy, qz), shape (..., 4), and translation [m], shape (..., 3): x_camera = R x_world + t.
    """
    return to_wxyz(conjugate(q)), -rotate_inverse(q, position)


def pose_from_colmap(rotation: ArrayLike, translation: ArrayLike) -> tuple[Array, Array]:
    """Optical centre in the world and camera-to-world attitude of COLMAP's (qw, qx, qy, qz) and translation."""
    q = conjugate(from_wxyz(rotation))
    return -rotate(q, translation), q


def gltf_vector(v: ArrayLike) -> Array:
    """Vectors (..., 3) of our world (z up) in glTF's (y up): (x, z, -y), as most tools with z up export."""
    v = np.asarray(v, dtype=np.float64)
    return np.stack((v[..., 0], v[..., 2], -v[..., 1]), axis=-1)


def vector_from_gltf(v: ArrayLike) -> Array:
    """Vectors (..., 3) of glTF's world (y up) in ours (z up): (x, -z, y)."""
    v = np.asarray(v, dtype=np.float64)
    return np.stack((v[..., 0], -v[..., 2], v[..., 1]), axis=-1)
