"""Impulses of a rigid body against surfaces of any direction, on NumPy float64 arrays over a batch of bodies.

The equations are those of ground contact (`airworthy.dynamics.contact`), with a normal for each point: pushes that stop what
approaches, the rebound, friction. No part of it adds energy in the frame of what was hit. Bodies are rows: shapes are (k, ...).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.vectors import add, cross, dot, rotate, rotate_inverse, scale, sub, symmetric_multiply
from airworthy.dynamics import contact
from airworthy.dynamics.equations import normalize, quaternion_exponential

Array = NDArray[np.float64]
Vector = tuple[Any, ...]

SWEEPS = 12
"""Passes over the points of a body that touches with several."""


@dataclass
class Motion:
    """Where bodies are and how they move."""

    position: Array
    """Centre of mass, world [m], (k, 3)."""
    velocity: Array
    """World [m/s], (k, 3)."""
    attitude: Array
    """Quaternion x, y, z, w, body to world, (k, 4)."""
    rate: Array
    """Body [rad/s], (k, 3)."""

    def take(self, rows: Any) -> Motion:
        """Some of the bodies; a copy."""
        return Motion(*(np.array(value[rows]) for value in self._arrays()))

    def put(self, rows: Any, other: Motion) -> None:
        """Overwrite some of the bodies."""
        for mine, value in zip(self._arrays(), other._arrays(), strict=True):
            mine[rows] = value

    def between(self, other: Motion, share: Array) -> Motion:
        """On the straight way to another motion; share (k,) from 0 to 1. Attitudes: the straight way, brought to unit length."""
        s = share[:, None]
        position, velocity, attitude, rate = (
            a + s * (b - a) for a, b in zip(self._arrays(), other._arrays(), strict=True)
        )
        return Motion(position, velocity, stacked(normalize(split(attitude))), rate)

    def finite(self) -> NDArray[np.bool_]:
        """Whether a body's numbers are numbers, (k,)."""
        return np.asarray(np.all([np.isfinite(value).all(axis=1) for value in self._arrays()], axis=0))

    def _arrays(self) -> tuple[Array, Array, Array, Array]:
        return self.position, self.velocity, self.attitude, self.rate


@dataclass(frozen=True)
class Bodies:
    """What the equations need of each body."""

    center: Array
    """Spheres from the centre of mass, body frame [m], (k, m, 3)."""
    radius: Array
    """(k, m) [m]; negative: no sphere, so that bodies may have different numbers of them."""
    mass: Array
    """[kg], (k,)."""
    inertia: Array
    """xx, yy, zz, xy, xz, yz about the centre of mass [kg m^2], (k, 6); zero where impulses do not turn a body."""
    inertia_inverse: Array
    """(k, 6)."""
    gravity: Array
    """[m/s^2], (k,)."""

    def take(self, rows: Any) -> Bodies:
        """Some of the bodies."""
        return Bodies(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))

    def centers_at(self, position: Array, attitude: Array) -> Array:
        """World positions of the spheres, (k, m, 3)."""
        q = tuple(c[:, None] for c in split(attitude))
        return position[:, None] + np.stack(np.broadcast_arrays(*rotate(q, split(self.center))), axis=-1)

    def parameters(self, restitution: float, friction: float, radius: Array) -> SimpleNamespace:
        """As the equations of `dynamics.contact` read them."""
        return SimpleNamespace(
            mass=self.mass,
            mass_inverse=1.0 / self.mass,
            inertia=split(self.inertia),
            inertia_inverse=split(self.inertia_inverse),
            gravity=self.gravity,
            restitution=restitution,
            friction=friction,
            contact_radius=radius,
        )


def split(array: Array) -> Vector:
    """Components along the last axis."""
    return tuple(np.moveaxis(array, -1, 0))


def stacked(vector: Vector) -> Array:
    """Components as the last axis."""
    return np.stack(np.broadcast_arrays(*vector), axis=-1)


def approach_speed(bodies: Bodies, motion: Motion, normal: Array) -> Array:
    """Speed at which each sphere's contact point moves against its normal [m/s], (k, m)."""
    q, u, w = split(motion.attitude), split(motion.velocity), split(motion.rate)
    speeds = []
    for m, n in _points(normal):
        up = rotate_inverse(q, n)
        lever = sub(split(bodies.center[:, m]), scale(up, bodies.radius[:, m]))
        speeds.append(-(dot(n, u) + dot(up, cross(w, lever))))
    return np.stack(speeds, axis=1)


def collide(
    bodies: Bodies, motion: Motion, touch: NDArray[np.bool_], normal: Array, restitution: float, friction: float, dt: float
) -> tuple[Array, Array, Array]:
    """Velocities after an impact of bodies on what is at rest.

    Args:
        bodies: The bodies.
        motion: At the impact.
        touch: Which spheres touch, (k, m).
        normal: World normal of the surface at each, from it to the body, (k, m, 3).
        restitution: Newton's coefficient.
        friction: Coulomb's coefficient.
        dt: Physics step [s]; slow approaches, for which see `contact.bounce_speed`, do not rebound.

    Returns:
        Velocity, world [m/s], (k, 3), rate, body [rad/s], (k, 3), and the fastest approach before [m/s], (k,).
    """
    q = split(motion.attitude)
    u = u0 = rotate_inverse(q, split(motion.velocity))
    w = w0 = split(motion.rate)
    inside = touch.astype(float)
    ups = {m: rotate_inverse(q, n) for m, n in _points(normal) if touch[:, m].any()}
    points = {m: (split(bodies.center[:, m]), bodies.parameters(restitution, friction, bodies.radius[:, m])) for m in ups}
    fastest = np.max(np.where(touch, approach_speed(bodies, motion, normal), 0.0), axis=1, initial=0.0)
    push = {m: np.zeros(len(fastest)) for m in ups}
    share: Any = 0.0
    for turn in range(2):
        if turn == 1:  # friction turned the body, and so pressed points into the surface: those pushes count anew
            push = {m: np.zeros(len(fastest)) for m in ups}
        for _ in range(SWEEPS if len(ups) > 1 else 1):
            for m, (point, p) in points.items():
                u, w, push[m] = contact.contact_push(inside[:, m], push[m], u, w, ups[m], point, p)
        if turn == 0:
            p = bodies.parameters(restitution, friction, bodies.radius[:, 0])
            u, w, share = contact.contact_rebound(fastest, u, w, u0, w0, dt, p)
        for m, (point, p) in points.items():
            u, w, _ = contact.contact_friction(inside[:, m], push[m] * (1.0 + share), u, w, ups[m], point, p)
        share = 0.0
    met = touch.any(axis=1)[:, None]
    velocity = np.where(met, stacked(rotate(q, u)), motion.velocity)
    return velocity, np.where(met, stacked(w), motion.rate), fastest


def lifted(bodies: Bodies, motion: Motion, lift: Array) -> tuple[Array, Array]:
    """Velocity and rate after being moved by `lift` (world [m], (k, 3)): what goes up is paid for by the motion."""
    p = bodies.parameters(0.0, 0.0, bodies.radius[:, 0])
    velocity, rate = contact.contact_lift(np.maximum(lift[:, 2], 0.0), split(motion.velocity), split(motion.rate), p)
    return stacked(velocity), stacked(rate)


def drift(bodies: Bodies, now: Motion, acceleration: Array, torque: Array, time: Array) -> Motion:
    """Free motion over a part of a physics step.

    Args:
        bodies: The bodies.
        now: At its begin.
        acceleration: World [m/s^2], (k, 3), held.
        torque: Body [N m], (k, 3), held; the gyroscopic one is added.
        time: Its length [s], (k,).
    """
    w, q = split(now.rate), split(now.attitude)
    inertia, inverse = split(bodies.inertia), split(bodies.inertia_inverse)
    spin = symmetric_multiply(inverse, sub(split(torque), cross(w, symmetric_multiply(inertia, w))))
    rate = stacked(add(w, scale(spin, time)))
    velocity = now.velocity + acceleration * time[:, None]
    turned = quaternion_exponential(q, split(0.5 * (now.rate + rate)), time)
    position = now.position + 0.5 * (now.velocity + velocity) * time[:, None]
    return Motion(position, velocity, stacked(normalize(turned)), rate)


def held_torque(bodies: Bodies, start: Motion, end: Motion, dt: float) -> Array:
    """Torque (body [N m], (k, 3)) that turned bodies over a step, besides the gyroscopic one."""
    inertia = split(bodies.inertia)
    w = split(0.5 * (start.rate + end.rate))
    change = split((end.rate - start.rate) / dt)
    return stacked(add(symmetric_multiply(inertia, change), cross(w, symmetric_multiply(inertia, w))))


def _points(normal: Array) -> Iterator[tuple[int, Vector]]:
    for m in range(normal.shape[1]):
        yield m, split(normal[:, m])
