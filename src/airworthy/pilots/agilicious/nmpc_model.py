"""The models that the predictive controllers look ahead with, their exact steps and their derivatives.

A state is position, velocity, attitude (quaternion x, y, z, w) and, of the full model, body rates; differences of states are
position, velocity, a small turn in the body frame, rates. Inputs are rotor thrusts, or thrust over mass and body rates.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from airworthy.core.frames import multiply, rotate, to_matrix

__all__ = ["Model", "RateModel", "RotorModel", "added", "difference", "exponential"]

Array = NDArray[np.float64]
GRAVITY = np.array([0.0, 0.0, -9.81])
_UNIT_Z = np.array([0.0, 0.0, 1.0])
_SMALL = 1e-8


def exponential(turn: Array) -> Array:
    """Quaternions of small or large turns (..., 3) [rad]."""
    angle = np.linalg.norm(turn, axis=-1, keepdims=True)
    half = 0.5 * angle
    share = np.where(angle > _SMALL, np.sin(half) / np.where(angle > _SMALL, angle, 1.0), 0.5)
    return np.concatenate([share * turn, np.cos(half)], axis=-1)


def logarithm(q: Array) -> Array:
    """Turns (..., 3) of quaternions, of the shorter way [rad]."""
    q = np.where(q[..., 3:] < 0.0, -q, q)
    size = np.linalg.norm(q[..., :3], axis=-1, keepdims=True)
    angle = 2.0 * np.arctan2(size, q[..., 3:])
    return np.where(size > _SMALL, angle / np.where(size > _SMALL, size, 1.0), 2.0) * q[..., :3]


def _conjugate(q: Array) -> Array:
    return q * [-1.0, -1.0, -1.0, 1.0]


def difference(state: Array, other: Array) -> Array:
    """What has to be added to `other` to be at `state`, (..., 9 or 12)."""
    turn = logarithm(multiply(_conjugate(other[..., 6:10]), state[..., 6:10]))
    return np.concatenate([state[..., :6] - other[..., :6], turn, state[..., 10:] - other[..., 10:]], axis=-1)


def added(state: Array, change: Array) -> Array:
    """A state moved by a difference."""
    q = multiply(state[..., 6:10], exponential(change[..., 6:9]))
    q = q / np.linalg.norm(q, axis=-1, keepdims=True)
    return np.concatenate([state[..., :6] + change[..., :6], q, state[..., 10:] + change[..., 9:]], axis=-1)


def skew(v: Array) -> Array:
    """Matrices (..., 3, 3) of the cross product with v."""
    x, y, z = np.moveaxis(v, -1, 0)
    zero = np.zeros_like(x)
    return np.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=-1).reshape(*v.shape, 3)


@dataclass(frozen=True, eq=False)
class Model(ABC):
    """Common to both models."""

    size: int
    """Of a difference of states."""

    @abstractmethod
    def slope(self, state: Array, inputs: Array) -> tuple[Array, Array, Array]:
        """Acceleration, body rates and their slope of states (..., n, 10 or 13)."""

    def step(self, state: Array, inputs: Array, dt: float) -> Array:
        """States a step later, inputs held: midpoint rule, the turn by the exponential of the mean rate."""
        a, w, s = self.slope(state, inputs)
        middle = self._moved(state, 0.5 * dt, state[..., 3:6], a, w, s)
        a2, w2, s2 = self.slope(middle, inputs)
        return self._moved(state, dt, middle[..., 3:6], a2, w2, s2)

    def _moved(self, state: Array, dt: float, v: Array, a: Array, w: Array, s: Array) -> Array:
        q = multiply(state[..., 6:10], exponential(dt * w))
        q = q / np.linalg.norm(q, axis=-1, keepdims=True)
        parts = [state[..., :3] + dt * v, state[..., 3:6] + dt * a, q]
        return np.concatenate([*parts, state[..., 10:] + dt * s] if state.shape[-1] > 10 else parts, axis=-1)

    @abstractmethod
    def linear(self, state: Array, inputs: Array) -> tuple[Array, Array]:
        """Derivatives of the slope of differences: by states (..., n, s, s) and by inputs (..., n, s, m)."""

    def discrete(self, state: Array, inputs: Array, dt: float) -> tuple[Array, Array]:
        """Derivatives of a step: series of the exponential up to dt^3, about the middle of the step."""
        a, w, s = self.slope(state, inputs)
        ac, bc = self.linear(self._moved(state, 0.5 * dt, state[..., 3:6], a, w, s), inputs)
        one = np.broadcast_to(np.eye(self.size), ac.shape)
        half = ac @ ac
        series = dt * one + (dt * dt / 2.0) * ac + (dt**3 / 6.0) * half
        return one + ac @ series, series @ bc


@dataclass(frozen=True, eq=False)
class RotorModel(Model):
    """Rotor thrusts [N] of n vehicles."""

    mass: Array
    """(n,)"""
    inertia: Array
    """(n, 3, 3)"""
    inverse: Array
    """Of the inertia (n, 3, 3)."""
    effect: Array
    """Force along body z and moments per newton of each rotor, (n, 4, m)."""

    def slope(self, state: Array, inputs: Array) -> tuple[Array, Array, Array]:
        wrench = _apply(self.effect, inputs)
        w = state[..., 10:]
        lift = (wrench[..., 0] / self.mass)[..., None] * _UNIT_Z
        spin = np.cross(w, _apply(self.inertia, w))
        return rotate(state[..., 6:10], lift) + GRAVITY, w, _apply(self.inverse, wrench[..., 1:] - spin)

    def linear(self, state: Array, inputs: Array) -> tuple[Array, Array]:
        shape = state.shape[:-1]
        a, b = np.zeros((*shape, 12, 12)), np.zeros((*shape, 12, inputs.shape[-1]))
        turn, w = to_matrix(state[..., 6:10]), state[..., 10:]
        push = (self.effect[:, 0] / self.mass[:, None])[..., None, :]
        lift = _apply(self.effect, inputs)[..., :1] / self.mass[:, None]
        a[..., 0:3, 3:6] = np.eye(3)
        a[..., 3:6, 6:9] = -turn @ skew(lift * _UNIT_Z)
        a[..., 6:9, 6:9], a[..., 6:9, 9:12] = -skew(w), np.eye(3)
        a[..., 9:12, 9:12] = self.inverse @ (skew(_apply(self.inertia, w)) - skew(w) @ self.inertia)
        b[..., 3:6, :] = turn[..., :, 2:] * push
        b[..., 9:12, :] = self.inverse @ self.effect[:, 1:]
        return a, b


@dataclass(frozen=True, eq=False)
class RateModel(Model):
    """Thrust over mass [m/s^2] and body rates [rad/s]."""

    def slope(self, state: Array, inputs: Array) -> tuple[Array, Array, Array]:
        lift = inputs[..., :1] * _UNIT_Z
        return rotate(state[..., 6:10], lift) + GRAVITY, inputs[..., 1:], np.zeros_like(state[..., 10:])

    def linear(self, state: Array, inputs: Array) -> tuple[Array, Array]:
        shape = state.shape[:-1]
        a, b = np.zeros((*shape, 9, 9)), np.zeros((*shape, 9, 4))
        turn = to_matrix(state[..., 6:10])
        a[..., 0:3, 3:6] = np.eye(3)
        a[..., 3:6, 6:9] = -turn @ skew(inputs[..., :1] * _UNIT_Z)
        a[..., 6:9, 6:9] = -skew(inputs[..., 1:])
        b[..., 3:6, 0], b[..., 6:9, 1:] = turn[..., :, 2], np.eye(3)
        return a, b


def _apply(matrix: Array, vector: Array) -> Array:
    return np.asarray(np.matmul(matrix, vector[..., None])[..., 0])
