"""Vectors, quaternions and symmetric matrices as tuples of scalars, for equations (see `airworthy.core.ops`).

A vector is three scalars, a quaternion four (x, y, z, w; Hamilton, body to world), a symmetric matrix six (xx, yy, zz, xy,
xz, yz). Every function works on numbers, NumPy arrays, traced values and duals.
"""

from __future__ import annotations

from typing import Any

from airworthy.core.arrays import Scalar, Vector
from airworthy.core.ops import maximum, sqrt, where

__all__ = [
    "add",
    "choose",
    "cross",
    "dot",
    "matrix_columns",
    "norm",
    "normalized",
    "quaternion_derivative",
    "quaternion_multiply",
    "rotate",
    "rotate_inverse",
    "scale",
    "sub",
    "symmetric_multiply",
]


def add(a: Vector, b: Vector) -> Vector:
    """Return the sum of two vectors."""
    if len(a) == 3 == len(b):  # the usual length written out, here and below: half the time of a generator
        return (a[0] + b[0], a[1] + b[1], a[2] + b[2])
    return tuple(x + y for x, y in zip(a, b, strict=True))


def sub(a: Vector, b: Vector) -> Vector:
    """Return the difference of two vectors."""
    if len(a) == 3 == len(b):
        return (a[0] - b[0], a[1] - b[1], a[2] - b[2])
    return tuple(x - y for x, y in zip(a, b, strict=True))


def scale(a: Vector, s: Scalar) -> Vector:
    """Return the vector times scalar."""
    if len(a) == 3:
        return (a[0] * s, a[1] * s, a[2] * s)
    return tuple(x * s for x in a)


def dot(a: Vector, b: Vector) -> Scalar:
    """Return the inner product of two vectors."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a: Vector, b: Vector) -> Vector:
    """Return the cross product a x b."""
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def choose(condition: Any, a: Vector, b: Vector) -> Vector:
    """Return the vector `a` where the condition holds, else `b`; both are evaluated.

    Args:
        condition: A comparison, of one element per lane.
        a: Where it holds.
        b: Elsewhere, as long as `a`.
    """
    return tuple(where(condition, x, y) for x, y in zip(a, b, strict=True))


def norm(a: Vector) -> Scalar:
    """Return the Euclidean length of a vector."""
    return sqrt(dot(a, a))


def normalized(a: Vector, smallest: float = 1e-9) -> Vector:
    """Return the unit vector; one shorter than `smallest` is divided by `smallest`, so zero stays zero."""
    return scale(a, 1.0 / maximum(norm(a), smallest))


def rotate(q: Vector, v: Vector) -> Vector:
    """Return the body vector in the world frame: v + 2 w (u x v) + 2 u x (u x v), u the vector part; q of unit length."""
    u, w = q[:3], q[3]
    t = scale(cross(u, v), 2.0)
    return add(v, add(scale(t, w), cross(u, t)))


def rotate_inverse(q: Vector, v: Vector) -> Vector:
    """Return the world vector in the body frame."""
    u, w = q[:3], q[3]
    t = scale(cross(u, v), 2.0)
    return add(v, sub(cross(u, t), scale(t, w)))


def matrix_columns(q: Vector) -> tuple[Vector, Vector, Vector]:
    """Return body axes x, y, z in the world frame, the columns of the rotation matrix."""
    x, y, z, w = q
    return (
        (1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + w * z), 2.0 * (x * z - w * y)),
        (2.0 * (x * y - w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z + w * x)),
        (2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y)),
    )


def quaternion_multiply(a: Vector, b: Vector) -> Vector:
    """Return the Hamilton product a b: first b, then a."""
    ax, ay, az, aw = a
    bx, by, bz, bw = b
    return (
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
        aw * bw - ax * bx - ay * by - az * bz,
    )


def quaternion_derivative(q: Vector, rate: Vector) -> Vector:
    """Return dq/dt = 1/2 q (w, 0), w the body rate [rad/s] in the body frame."""
    x, y, z, w = q
    a, b, c = scale(rate, 0.5)
    return (w * a + y * c - z * b, w * b - x * c + z * a, w * c + x * b - y * a, -(x * a + y * b + z * c))


def symmetric_multiply(m: Vector, v: Vector) -> Vector:
    """Return the symmetric matrix (xx, yy, zz, xy, xz, yz) times vector."""
    xx, yy, zz, xy, xz, yz = m
    return (xx * v[0] + xy * v[1] + xz * v[2], xy * v[0] + yy * v[1] + yz * v[2], xz * v[0] + yz * v[1] + zz * v[2])
