"""Rotations and frames on NumPy float64, batched over leading axes.

Quaternions are x, y, z, w (Hamilton, unit length) and rotate body vectors into the world: `rotate(q, v_body)` is `v_world`.
World and body have z up; tables: docs/concepts/conventions.md. Every function broadcasts leading axes and returns new arrays.
"""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import Array, ArrayLike

__all__ = [
    "BODY_FROM_CAMERA",
    "IDENTITY",
    "angle_between",
    "camera_attitude",
    "canonical",
    "colmap_pose",
    "conjugate",
    "continuous",
    "enu_ned_attitude",
    "enu_ned_vector",
    "enu_ned_yaw",
    "flu_enu",
    "flu_frd_vector",
    "from_axis_angle",
    "from_euler",
    "from_matrix",
    "from_rotation_vector",
    "from_wxyz",
    "gltf_vector",
    "multiply",
    "normalize",
    "opengl_attitude",
    "pose_from_colmap",
    "rotate",
    "rotate_inverse",
    "slerp",
    "to_euler",
    "to_matrix",
    "to_rotation_vector",
    "to_wxyz",
    "vector_from_gltf",
    "wrap_angle",
    "yaw_of",
    "z_down_attitude",
    "z_down_rates",
    "z_down_thrust",
    "z_down_vector",
    "z_down_yaw",
]

# -----------------------------------------------------------------------------------------------------------------------------
# Quaternions (x, y, z, w; Hamilton; body to world), matrices, Euler angles and rotation vectors, batched, in float64.

IDENTITY: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 1.0)
"""The quaternion that turns nothing."""

_SMALLEST = 1e-150  # components below square to nothing a float64 can hold


def _parts(a: ArrayLike) -> tuple[Array, ...]:
    """Components along the last axis."""
    a = np.asarray(a, dtype=np.float64)
    return tuple(a[..., k] for k in range(a.shape[-1]))


def multiply(a: ArrayLike, b: ArrayLike) -> Array:
    """Return the product a b: the rotation b followed by a, both in the frame that a maps into. Shapes (..., 4)."""
    ax, ay, az, aw = _parts(a)
    bx, by, bz, bw = _parts(b)
    x = aw * bx + ax * bw + ay * bz - az * by
    y = aw * by - ax * bz + ay * bw + az * bx
    z = aw * bz + ax * by - ay * bx + az * bw
    w = aw * bw - ax * bx - ay * by - az * bz
    return np.stack((x, y, z, w), axis=-1)


def conjugate(q: ArrayLike) -> Array:
    """Return the inverse rotation of unit quaternions, shape (..., 4)."""
    return np.asarray(q, dtype=np.float64) * (-1.0, -1.0, -1.0, 1.0)


def normalize(q: ArrayLike) -> Array:
    """Return quaternions scaled to unit length, shape (..., 4).

    Degenerate ones (all components under 1e-150, or one that is not finite) become the identity.
    """
    q = np.asarray(q, dtype=np.float64)
    largest = np.max(np.abs(q), axis=-1, keepdims=True)
    usable = np.isfinite(largest) & (largest > _SMALLEST)
    # Scaled by the largest component first, so that squares neither overflow nor vanish.
    scaled = np.where(usable, q, IDENTITY) / np.where(usable, largest, 1.0)
    return scaled / np.sqrt(np.sum(scaled * scaled, axis=-1, keepdims=True))


def canonical(q: ArrayLike) -> Array:
    """Return the one of q and -q (the same rotation) with w >= 0, shape (..., 4)."""
    q = np.asarray(q, dtype=np.float64)
    return np.where(q[..., 3:] < 0.0, -q, q)


def continuous(q: ArrayLike) -> Array:
    """Return signs chosen so that a sequence starts with w >= 0 and never jumps to the opposite quaternion.

    Args:
        q: Unit quaternions, shape (..., time, 4).
    """
    q = np.array(q, dtype=np.float64)
    if q.shape[-2] == 0:
        return q
    opposed = np.sum(q[..., 1:, :] * q[..., :-1, :], axis=-1) < 0.0
    first = q[..., :1, 3] < 0.0
    flips = np.cumsum(np.concatenate((first, opposed), axis=-1), axis=-1) % 2 == 1
    return np.where(flips[..., None], -q, q)


def rotate(q: ArrayLike, v: ArrayLike) -> Array:
    """Return body vectors in the world: q v q^-1. Unit quaternions (..., 4), vectors (..., 3)."""
    (x, y, z, w), (a, b, c) = _parts(q), _parts(v)
    # v + w t + axis x t with t = 2 axis x v, written out: numpy.cross takes longer over its arguments than over the products.
    tx, ty, tz = 2.0 * (y * c - z * b), 2.0 * (z * a - x * c), 2.0 * (x * b - y * a)
    turned = np.empty((*np.shape(tx), 3))
    turned[..., 0] = a + w * tx + (y * tz - z * ty)
    turned[..., 1] = b + w * ty + (z * tx - x * tz)
    turned[..., 2] = c + w * tz + (x * ty - y * tx)
    return turned


def rotate_inverse(q: ArrayLike, v: ArrayLike) -> Array:
    """Return world vectors in the body: q^-1 v q. Unit quaternions (..., 4), vectors (..., 3)."""
    return rotate(conjugate(q), v)


def to_matrix(q: ArrayLike) -> Array:
    """Return rotation matrices (..., 3, 3) of unit quaternions (..., 4); the columns are the body axes in the world."""
    x, y, z, w = _parts(q)
    rows = (
        (1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w), 2.0 * (x * z + y * w)),
        (2.0 * (x * y + z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - x * w)),
        (2.0 * (x * z - y * w), 2.0 * (y * z + x * w), 1.0 - 2.0 * (x * x + y * y)),
    )
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def from_matrix(matrix: ArrayLike) -> Array:
    """Return quaternions (..., 4), w >= 0, of rotation matrices (..., 3, 3).

    Of the four ways to divide, the one with the largest divisor is taken (Shepperd, 1978), so that half turns are as exact as
    small ones. A matrix that is slightly off a rotation gives a unit quaternion near it; one that is not finite, the identity.
    """
    m = np.asarray(matrix, dtype=np.float64)
    xx, yy, zz = m[..., 0, 0], m[..., 1, 1], m[..., 2, 2]
    x, y, z = m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1]
    xy, xz, yz = m[..., 0, 1] + m[..., 1, 0], m[..., 0, 2] + m[..., 2, 0], m[..., 1, 2] + m[..., 2, 1]
    # Row k is 4 q_k q: every row is parallel to q, the longest is the best conditioned.
    rows = (
        (1.0 + xx - yy - zz, xy, xz, x),
        (xy, 1.0 - xx + yy - zz, yz, y),
        (xz, yz, 1.0 - xx - yy + zz, z),
        (x, y, z, 1.0 + xx + yy + zz),
    )
    candidates = np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
    best = np.argmax(np.diagonal(candidates, axis1=-2, axis2=-1), axis=-1)
    return canonical(normalize(np.take_along_axis(candidates, best[..., None, None], axis=-2)[..., 0, :]))


def from_euler(roll: ArrayLike, pitch: ArrayLike, yaw: ArrayLike) -> Array:
    """Return quaternions x, y, z, w, (..., 4), of yaw about z, then pitch about the new y, then roll about the new x.

    Args:
        roll: About body x [rad], (...).
        pitch: About the y that yaw has turned [rad], (...).
        yaw: About world z [rad], (...).
    """
    half = [np.asarray(angle, dtype=np.float64) * 0.5 for angle in (roll, pitch, yaw)]
    (cr, cp, cy), (sr, sp, sy) = [np.cos(a) for a in half], [np.sin(a) for a in half]
    x = sr * cp * cy - cr * sp * sy
    y = cr * sp * cy + sr * cp * sy
    z = cr * cp * sy - sr * sp * cy
    w = cr * cp * cy + sr * sp * sy
    return np.stack(np.broadcast_arrays(x, y, z, w), axis=-1)


def to_euler(q: ArrayLike) -> Array:
    """Return roll, pitch, yaw [rad], shape (..., 3), of unit quaternions (..., 4); pitch in [-pi/2, pi/2].

    Straight up or down, roll and yaw turn about the same line: roll is then 0 and yaw holds the whole turn.
    """
    m = to_matrix(q)
    level = np.hypot(m[..., 0, 0], m[..., 1, 0])
    vertical = level < 1e-9
    roll = np.where(vertical, 0.0, np.arctan2(m[..., 2, 1], m[..., 2, 2]))
    pitch = np.arctan2(-m[..., 2, 0], level)
    yaw = np.where(vertical, np.arctan2(-m[..., 0, 1], m[..., 1, 1]), np.arctan2(m[..., 1, 0], m[..., 0, 0]))
    return np.stack((roll, pitch, yaw), axis=-1)


def yaw_of(q: ArrayLike) -> Array:
    """Return the heading of the body's x axis in the horizontal plane [rad], shape (...); straight up or down as `to_euler`."""
    return to_euler(q)[..., 2]


def from_rotation_vector(vector: ArrayLike) -> Array:
    """Return quaternions (..., 4) of rotation vectors (axis times angle [rad], shape (..., 3)); w >= 0 for angles up to pi."""
    vector = np.asarray(vector, dtype=np.float64)
    angle = np.linalg.norm(vector, axis=-1, keepdims=True)
    # numpy's sinc(t) is sin(pi t)/(pi t): sin(angle/2)/angle without a division by zero.
    return np.concatenate((vector * 0.5 * np.sinc(angle / (2.0 * np.pi)), np.cos(0.5 * angle)), axis=-1)


def to_rotation_vector(q: ArrayLike) -> Array:
    """Return rotation vectors (axis times angle in [0, pi] [rad], shape (..., 3)) of unit quaternions (..., 4)."""
    q = canonical(q)
    sine = np.linalg.norm(q[..., :3], axis=-1, keepdims=True)
    turned = sine > 0.0
    factor = 2.0 * np.arctan2(sine, q[..., 3:]) / np.where(turned, sine, 1.0)
    return q[..., :3] * np.where(turned, factor, 2.0)


def from_axis_angle(axis: ArrayLike, angle: ArrayLike) -> Array:
    """Return quaternions (..., 4) of turns by `angle` [rad], shape (...), about `axis` of any length, shape (..., 3).

    A zero axis turns nothing.
    """
    axis = np.asarray(axis, dtype=np.float64)
    length = np.linalg.norm(axis, axis=-1, keepdims=True)
    unit = axis / np.where(length > 0.0, length, 1.0)
    half = np.where(length[..., 0] > 0.0, 0.5 * np.asarray(angle, dtype=np.float64), 0.0)[..., None]
    return np.concatenate((unit * np.sin(half), np.cos(half)), axis=-1)


def slerp(a: ArrayLike, b: ArrayLike, fraction: ArrayLike) -> Array:
    """Return the rotation on the shortest way from a (fraction 0) to b (fraction 1) at constant speed.

    Args:
        a: Unit quaternions, shape (..., 4).
        b: Unit quaternions, shape (..., 4).
        fraction: Part of the way, shape (...); outside [0, 1] the turn goes on.
    """
    a = np.asarray(a, dtype=np.float64)
    turn = to_rotation_vector(multiply(conjugate(a), b))
    return multiply(a, from_rotation_vector(turn * np.asarray(fraction, dtype=np.float64)[..., None]))


def angle_between(a: ArrayLike, b: ArrayLike) -> Array:
    """Return the angle of the rotation that leads from a to b [rad], in [0, pi], shape (...)."""
    difference = multiply(conjugate(a), b)
    return 2.0 * np.arctan2(np.linalg.norm(difference[..., :3], axis=-1), np.abs(difference[..., 3]))


def wrap_angle(angle: ArrayLike) -> Array:
    """Return the same angle [rad] in [-pi, pi)."""
    return (np.asarray(angle, dtype=np.float64) + np.pi) % (2.0 * np.pi) - np.pi


# ---- Conversions to and from the frames of others: each happens once, where data enters or leaves ---------------------------
#
# Functions named after one pair of frames (`z_down_*`, `enu_ned_*`, `flu_frd_*`) are their own inverse: they lead both ways.

BODY_FROM_CAMERA: tuple[float, float, float, float] = (-0.5, 0.5, -0.5, 0.5)
"""Attitude in the body of a camera that looks forward: its x is the body's right, its y down, its z forward."""

_HALF_TURN_X = (1.0, 0.0, 0.0, 0.0)
_HALF = np.sqrt(0.5)
_ENU_FROM_NED = (_HALF, _HALF, 0.0, 0.0)


def z_down_vector(v: ArrayLike) -> Array:
    """Return the world or body vectors (..., 3) between z up (forward, left, up) and z down (forward, right, down)."""
    return np.asarray(v, dtype=np.float64) * (1.0, -1.0, -1.0)


def z_down_rates(rates: ArrayLike) -> Array:
    """Return body rates (wx, wy, wz) [rad/s], shape (..., 3), between z up and z down."""
    return z_down_vector(rates)


def z_down_attitude(q: ArrayLike) -> Array:
    """Return attitudes (..., 4), body to world, where both frames turn between z up and z down: (x, -y, -z, w)."""
    return np.asarray(q, dtype=np.float64) * (1.0, -1.0, -1.0, 1.0)


def z_down_yaw(yaw: ArrayLike) -> Array:
    """Return yaw, yaw rate or yaw acceleration between z up and z down: negated."""
    return -np.asarray(yaw, dtype=np.float64)


def z_down_thrust(thrust: ArrayLike) -> Array:
    """Return collective thrust command between [0, 1] along our body z (up) and [-1, 0] along z down (FiGS, PX4): negated."""
    return -np.asarray(thrust, dtype=np.float64)


def enu_ned_vector(v: ArrayLike) -> Array:
    """Return world vectors (..., 3) between east, north, up (ROS) and north, east, down (PX4): (y, x, -z)."""
    v = np.asarray(v, dtype=np.float64)
    return np.stack((v[..., 1], v[..., 0], -v[..., 2]), axis=-1)


def flu_frd_vector(v: ArrayLike) -> Array:
    """Return body vectors and rates (..., 3) between forward, left, up and forward, right, down (PX4): (x, -y, -z)."""
    return z_down_vector(v)


def enu_ned_attitude(q: ArrayLike) -> Array:
    """Return attitudes (..., 4), x, y, z, w, between body FLU in world ENU and body FRD in world NED; PX4 itself writes w
    first."""
    # Both turns square to -1, so that the product is exactly its own inverse, sign included.
    return multiply(multiply(_ENU_FROM_NED, q), _HALF_TURN_X)


FRAMES = ("flu", "frd", "enu", "ned", "flu->enu", "frd->ned", "frd->enu", "flu->ned")
"""Frames that `flu_enu` reads: of body vectors, of world vectors, of attitudes (body->world)."""


def flu_enu(values: ArrayLike, frame: str) -> Array:
    """Return vectors or attitudes of a frame of others in ours: body forward, left, up; world east, north, up.

    Args:
        values: Body vectors ("flu", "frd") or world vectors ("enu", "ned"), (..., 3); attitudes x, y, z, w ("frd->ned" and the
            others with an arrow), (..., 4).
        frame: One of `FRAMES`.

    Raises:
        ValueError: There is no such frame.
    """
    v = np.asarray(values, dtype=np.float64)
    if frame in ("flu", "enu", "flu->enu"):
        return v
    if frame == "frd":
        return flu_frd_vector(v)
    if frame == "ned":
        return np.stack((v[..., 1], v[..., 0], -v[..., 2]), axis=-1)
    if frame == "frd->ned":
        return enu_ned_attitude(v)
    if frame == "frd->enu":
        return multiply(v, _HALF_TURN_X)
    if frame == "flu->ned":
        return multiply(_ENU_FROM_NED, v)
    raise ValueError(f"frame {frame!r} is none of {', '.join(FRAMES)}")


def enu_ned_yaw(yaw: ArrayLike) -> Array:
    """Return the yaw [rad] between counter-clockwise from east and clockwise from north: pi/2 - yaw, in [-pi, pi)."""
    return wrap_angle(0.5 * np.pi - np.asarray(yaw, dtype=np.float64))


def to_wxyz(q: ArrayLike) -> Array:
    """Return quaternions (..., 4) with w first, as PX4, COLMAP, MuJoCo and Eigen's constructor order them."""
    return np.roll(np.asarray(q, dtype=np.float64), 1, axis=-1)


def from_wxyz(q: ArrayLike) -> Array:
    """Return quaternions (..., 4) with w last, from w first."""
    return np.roll(np.asarray(q, dtype=np.float64), -1, axis=-1)


def camera_attitude(q: ArrayLike, mount: ArrayLike = (0.0, 0.0, 0.0, 1.0)) -> Array:
    """Return the camera to world: attitude of the optical frame (x right, y down, z forward) of a camera on a body.

    Args:
        q: Attitudes of the body in the world, shape (..., 4).
        mount: Attitudes of the camera's housing in the body (x where it looks, z its top), shape (..., 4).
    """
    return multiply(multiply(q, mount), BODY_FROM_CAMERA)


def opengl_attitude(q: ArrayLike) -> Array:
    """Return camera attitudes (..., 4) between the optical frame and OpenGL's (x right, y up, z backward).

    A half turn about x: applied twice it gives -q, the same rotation.
    """
    return multiply(q, _HALF_TURN_X)


def colmap_pose(position: ArrayLike, q: ArrayLike) -> tuple[Array, Array]:
    """Return COLMAP's pose of an image, world to camera, of a camera in the world.

    Args:
        position: Optical centres in the world [m], shape (..., 3).
        q: Camera to world (`camera_attitude`), shape (..., 4).

    Returns:
        Rotation (qw, qx, qy, qz), shape (..., 4), and translation [m], shape (..., 3): x_camera = R x_world + t.
    """
    return to_wxyz(conjugate(q)), -rotate_inverse(q, position)


def pose_from_colmap(rotation: ArrayLike, translation: ArrayLike) -> tuple[Array, Array]:
    """Return the optical centre in the world and camera-to-world attitude of COLMAP's (qw, qx, qy, qz) and translation."""
    q = conjugate(from_wxyz(rotation))
    return -rotate(q, translation), q


def gltf_vector(v: ArrayLike) -> Array:
    """Return vectors (..., 3) of our world (z up) in glTF's (y up): (x, z, -y), as most tools with z up export."""
    v = np.asarray(v, dtype=np.float64)
    return np.stack((v[..., 0], v[..., 2], -v[..., 1]), axis=-1)


def vector_from_gltf(v: ArrayLike) -> Array:
    """Return vectors (..., 3) of glTF's world (y up) in ours (z up): (x, -z, y)."""
    v = np.asarray(v, dtype=np.float64)
    return np.stack((v[..., 0], -v[..., 2], v[..., 1]), axis=-1)


# -----------------------------------------------------------------------------------------------------------------------------
