"""Impulses of a rigid body against surfaces of any direction, on NumPy float64 arrays over a batch of bodies: the readable twin
of `native/scene_impact.h`, which flies.

The equations are those of ground contact (`airworthy.dynamics.contact`), with a normal for each point: pushes that stop what
approaches, the rebound, friction. No part of it adds energy in the frame of what was hit. Bodies are rows: shapes are (k, ...).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, Vector
from airworthy.core.vectors import rotate, rotate_inverse, scale
from airworthy.dynamics import contact, scene_native
from airworthy.dynamics.equations import normalize

SWEEPS = 12
"""Passes over the points of a body that touches with several."""
SETTLED = 1e-9
"""Change of velocity by a push below which a body's passes end, and slip that friction leaves [m/s]."""


@dataclass
class BodyMotion:
    """Where bodies are and how they move."""

    position: Array
    """Centre of mass, world [m], (k, 3)."""
    velocity: Array
    """World [m/s], (k, 3)."""
    attitude: Array
    """Quaternion x, y, z, w, body to world, (k, 4)."""
    body_rate: Array
    """Body [rad/s], (k, 3)."""

    def take(self, rows: Any) -> BodyMotion:
        """Return some of the bodies; a copy."""
        return BodyMotion(*(np.array(value[rows]) for value in self._arrays()))

    def put(self, rows: Any, other: BodyMotion) -> None:
        """Overwrite some of the bodies."""
        for mine, value in zip(self._arrays(), other._arrays(), strict=True):
            mine[rows] = value

    def between(self, other: BodyMotion, share: Array) -> BodyMotion:
        """Return the motion on the straight way to another motion, attitudes brought to unit length; share (k,) from 0 to 1."""
        s = share[:, None]
        position, velocity, attitude, body_rate = (
            a + s * (b - a) for a, b in zip(self._arrays(), other._arrays(), strict=True)
        )
        return BodyMotion(position, velocity, stacked(normalize(split(attitude))), body_rate)

    def finite(self) -> ArrayBool:
        """Tell whether a body's numbers are numbers, (k,)."""
        return np.asarray(np.all([np.isfinite(value).all(axis=1) for value in self._arrays()], axis=0))

    def _arrays(self) -> tuple[Array, Array, Array, Array]:
        return self.position, self.velocity, self.attitude, self.body_rate


@dataclass(frozen=True)
class ContactBodies:
    """What the equations need of each body."""

    center: Array
    """Spheres from the centre of mass, body frame [m], (k, m, 3)."""
    radius: Array
    """(k, m) [m]; negative: no sphere, so that bodies may have different numbers of them."""
    core: Array
    """As `airworthy.geometry.sweep.CORE`, kind 0 for a sphere, (k, 9)."""
    mass: Array
    """[kg], (k,)."""
    inertia: Array
    """xx, yy, zz, xy, xz, yz about the centre of mass [kg m^2], (k, 6); zero where impulses do not turn a body."""
    inertia_inverse: Array
    """(k, 6)."""
    gravity: Array
    """[m/s^2], (k,)."""

    def take(self, rows: Any) -> ContactBodies:
        """Return some of the bodies."""
        return ContactBodies(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))

    def centers_at(self, position: Array, attitude: Array) -> Array:
        """Return world positions of the spheres, (k, m, 3)."""
        q = tuple(c[:, None] for c in split(attitude))
        return position[:, None] + np.stack(np.broadcast_arrays(*rotate(q, split(self.center))), axis=-1)

    def parameters(self, restitution: float, friction: float, radius: Array, rolling: float = 0.0) -> SimpleNamespace:
        """Return the parameters as the equations of `dynamics.contact` read them.

        Args:
            restitution: Newton's coefficient.
            friction: Coulomb's coefficient.
            radius: Of the sphere in contact on each body [m], (k,).
            rolling: Share of the radius that resists rolling.
        """
        return SimpleNamespace(
            mass=self.mass,
            mass_inverse=1.0 / self.mass,
            inertia=split(self.inertia),
            inertia_inverse=split(self.inertia_inverse),
            gravity=self.gravity,
            restitution=restitution,
            friction=friction,
            contact_radius=radius,
            rolling=rolling,
        )


def split(array: Array) -> Vector:
    """Return components along the last axis."""
    return tuple(np.moveaxis(array, -1, 0))


def stacked(vector: Vector) -> Array:
    """Return components as the last axis."""
    return np.stack(np.broadcast_arrays(*vector), axis=-1)


def approach_speed(bodies: ContactBodies, motion: BodyMotion, normal: Array) -> Array:
    """Return the speed at which each sphere's contact point moves against its normal [m/s], (k, m).

    Args:
        bodies: The bodies, k of them with m spheres each.
        motion: Their motion.
        normal: World normal of the surface at each sphere, from it to the body, (k, m, 3).
    """
    return -_Levers(bodies, motion, normal).leaving(_twist(motion))


class _Levers:
    """How pushes along the normals of all spheres act on the twists (velocity and rate, body frame, (k, 6)) of their bodies."""

    def __init__(self, bodies: ContactBodies, motion: BodyMotion, normal: Array):
        q = tuple(c[:, None] for c in split(motion.attitude))
        p = SimpleNamespace(
            mass_inverse=1.0 / bodies.mass[:, None],
            inertia_inverse=tuple(c[:, None] for c in split(bodies.inertia_inverse)),
            contact_radius=bodies.radius,
        )
        self.up, arm, turn, self.give = scene_native.lever(q, split(normal), split(bodies.center), p)
        self.row = stacked((*self.up, *arm))
        """(k, m, 6): its product with a twist is the speed at which the point leaves."""
        self.act = stacked((*scale(self.up, p.mass_inverse), *turn))
        """(k, m, 6): change of the twist per unit of impulse."""

    def leaving(self, twist: Array) -> Array:
        """Speed at which each contact point moves along its normal, (k, m)."""
        return np.asarray(np.sum(self.row * twist[:, None], axis=2))

    def push(self, m: int, wanted: ArrayBool, push: Array, twist: Array) -> tuple[Array, Array]:
        """Return the push of sphere m and the twist after it was corrected so that the point does not approach.

        As `contact.contact_push`: corrections may take a push back, but never below zero.
        """
        leaving = np.sum(self.row[:, m] * twist, axis=1)
        change = np.where(wanted, np.maximum(push - leaving / self.give[:, m], 0.0) - push, 0.0)
        return push + change, twist + self.act[:, m] * change[:, None]


def _twist(motion: BodyMotion) -> Array:
    """Velocity and rate in the body frame, (k, 6)."""
    return stacked((*rotate_inverse(split(motion.attitude), split(motion.velocity)), *split(motion.body_rate)))


def collide(
    bodies: ContactBodies,
    motion: BodyMotion,
    touch: ArrayBool,
    normal: Array,
    restitution: Any,
    friction: float,
    rolling: float,
    dt: float,
) -> tuple[Array, Array]:
    """Return velocities after an impact of bodies on what is at rest.

    Args:
        bodies: The bodies.
        motion: At the impact.
        touch: Which spheres touch, (k, m).
        normal: World normal of the surface at each, from it to the body, (k, m, 3).
        restitution: Newton's coefficient, a number or (k,).
        friction: Coulomb's coefficient.
        rolling: Share of a sphere's radius that resists rolling.
        dt: Physics step [s]; slow approaches, for which see `contact.bounce_speed`, do not rebound.

    Returns:
        Velocity, world [m/s], (k, 3), and rate, body [rad/s], (k, 3).
    """
    levers = _Levers(bodies, motion, normal)
    before = twist = _twist(motion)
    used = [int(m) for m in np.flatnonzero(touch.any(axis=0))]
    fastest = np.where(touch, -levers.leaving(twist), 0.0).max(axis=1)
    even = _even_points(bodies, touch, normal)
    share: Any = 0.0
    for turn in range(2):  # friction turns a body, and so presses points into the surface that had come to rest
        twist, push = _pushed(bodies, levers, touch, used, even, motion, twist)
        u, w = split(twist)[:3], split(twist)[3:]
        if turn == 0:
            p = bodies.parameters(restitution, friction, bodies.radius[:, 0])
            u, w, share = contact.contact_rebound(fastest, u, w, split(before)[:3], split(before)[3:], dt, p)
        for m in used:
            p = bodies.parameters(restitution, friction, bodies.radius[:, m])
            up, point = tuple(c[:, m] for c in levers.up), split(bodies.center[:, m])
            slips = touch[:, m] & (scene_native.slip_square(u, w, up, point, p) > SETTLED * SETTLED)
            u, w, _ = contact.contact_friction(slips.astype(float), push[m] * (1.0 + share), u, w, up, point, p)
        for m in used:
            p = bodies.parameters(restitution, friction, bodies.radius[:, m], rolling)
            up, point = tuple(c[:, m] for c in levers.up), split(bodies.center[:, m])
            u, w = contact.contact_rolling(push[m] * (1.0 + share), u, w, up, point, p)
        twist, share = stacked((*u, *w)), 0.0
    twist, _ = _pushed(bodies, levers, touch, used, even, motion, twist)  # what friction pressed in would hit at once again
    one, which = touch.sum(axis=1) == 1, np.arange(len(touch))
    only = touch.argmax(axis=1)
    p = bodies.parameters(0.0, friction, bodies.radius[which, only], rolling)
    up, point = tuple(c[which, only] for c in levers.up), split(bodies.center[which, only])
    holds = np.asarray(contact.contact_holds(split(before)[:3], split(before)[3:], up, point, p))
    stands = one & (holds > 0.0) & (fastest < contact.bounce_speed(dt, p))
    twist = np.where(stands[:, None], 0.0, twist)
    met = np.asarray(touch.any(axis=1))[:, None]
    velocity = stacked(rotate(split(motion.attitude), split(twist)[:3]))
    # Adding 0 makes zeros positive: pushes of nothing, which others in the batch cause, would change their sign.
    return np.where(met, velocity, motion.velocity) + 0.0, np.where(met, twist[:, 3:], motion.body_rate) + 0.0


def _pushed(
    bodies: ContactBodies, levers: _Levers, touch: ArrayBool, used: Any, even: Any, motion: BodyMotion, twist: Array
) -> tuple[Array, dict[int, Array]]:
    """Twist after pushes that stop what approaches, and the pushes: projected Gauss-Seidel over the points."""
    twist, each = _push_together(bodies, even, motion, twist, touch)
    push = {m: np.where(touch[:, m], each, 0.0) for m in used}
    unsettled = np.ones(len(twist), bool)
    for _ in range(SWEEPS):
        change = np.zeros(len(twist))
        for m, old in list(push.items()):
            push[m], twist = levers.push(m, touch[:, m] & unsettled, old, twist)
            change = np.maximum(change, np.abs(push[m] - old) / bodies.mass)
        # Each body by itself: its impulses must not depend on who else is in the batch.
        unsettled = unsettled & (change > SETTLED)
        if not unsettled.any():
            break
    return twist, push


def _even_points(bodies: ContactBodies, touch: ArrayBool, normal: Array) -> tuple[ArrayBool, Array, Array, Array]:
    """Return where several spheres touch one plane: whether, (k,), its normal, (k, 3), their mean centre, (k, 3), and radius,
    (k,).
    """
    which, first = np.arange(len(touch)), touch.argmax(axis=1)
    plane = normal[which, first]
    same = np.abs(normal - plane[:, None]).max(axis=2) < 1e-9
    count = touch.sum(axis=1)
    weight = touch / np.maximum(count, 1)[:, None]
    middle, radius = np.zeros_like(plane), np.zeros(len(touch))
    for m in range(touch.shape[1]):  # in order: a sum must not depend on how many bodies there are
        middle = middle + weight[:, m, None] * bodies.center[:, m]
        radius = radius + weight[:, m] * bodies.radius[:, m]
    alike = np.abs(bodies.radius - radius[:, None]) < 1e-12
    return (count > 1) & ((same & alike) | ~touch).all(axis=1), plane, middle, radius


def _push_together(
    bodies: ContactBodies, even: tuple[ArrayBool, Array, Array, Array], motion: BodyMotion, twist: Array, touch: ArrayBool
) -> tuple[Array, Array]:
    """Return all points of a plane at once, and the push of each: exact where a body stands evenly, a good start elsewhere."""
    flat, plane, middle, radius = even
    if not flat.any():
        return twist, np.zeros(len(flat))
    p = bodies.parameters(0.0, 0.0, radius)
    up = rotate_inverse(split(motion.attitude), split(plane))
    u, w = split(twist)[:3], split(twist)[3:]
    u, w, together = contact.contact_push(flat.astype(float), np.zeros(len(flat)), u, w, up, split(middle), p)
    each = np.where(flat, together, 0.0) / np.maximum(touch.sum(axis=1), 1.0)
    return np.where(flat[:, None], stacked((*u, *w)), twist), each


def lifted(bodies: ContactBodies, motion: BodyMotion, lift: Array) -> tuple[Array, Array]:
    """Return velocity and rate after being moved: what goes up is paid for by the motion.

    Args:
        bodies: The bodies.
        motion: Before.
        lift: Displacement, world [m], (k, 3); only its upward part costs anything.
    """
    p = bodies.parameters(0.0, 0.0, bodies.radius[:, 0])
    velocity, body_rate = contact.contact_lift(np.maximum(lift[:, 2], 0.0), split(motion.velocity), split(motion.body_rate), p)
    return stacked(velocity), stacked(body_rate)


def bounded(bodies: ContactBodies, allowed: Array, velocity: Array, body_rate: Array) -> tuple[Array, Array]:
    """Return velocity and rate slowed alike to a kinetic energy.

    Args:
        bodies: The bodies.
        allowed: Most kinetic energy [J], (k,).
        velocity: World [m/s], (k, 3).
        body_rate: Body [rad/s], (k, 3).
    """
    p = bodies.parameters(0.0, 0.0, bodies.radius[:, 0])
    slowed, turned = contact.bounded_motion(allowed, split(velocity), split(body_rate), p)
    return stacked(slowed), stacked(turned)


def kinetic_energy(bodies: ContactBodies, velocity: Array, body_rate: Array) -> Array:
    """Return the kinetic energy of each body [J], (k,).

    Args:
        bodies: The bodies.
        velocity: World [m/s], (k, 3).
        body_rate: Body [rad/s], (k, 3).
    """
    return np.asarray(
        contact.kinetic_energy(split(velocity), split(body_rate), bodies.parameters(0.0, 0.0, bodies.radius[:, 0]))
    )


def drift(bodies: ContactBodies, now: BodyMotion, acceleration: Array, torque: Array, time: Array) -> BodyMotion:
    """Return free motion over a part of a physics step.

    Args:
        bodies: The bodies.
        now: At its begin.
        acceleration: World [m/s^2], (k, 3), held.
        torque: Body [N m], (k, 3), held; the gyroscopic one is added.
        time: Its length [s], (k,).
    """
    p = bodies.parameters(0.0, 0.0, bodies.radius[:, 0])
    x, v, q, w = (split(part) for part in (now.position, now.velocity, now.attitude, now.body_rate))
    end = scene_native.drift(x, v, q, w, split(acceleration), split(torque), time, p)
    return BodyMotion(*(stacked(part) for part in end))


def held_torque(bodies: ContactBodies, start: BodyMotion, end: BodyMotion, dt: float) -> Array:
    """Return the torque (body [N m], (k, 3)) that turned bodies over a step, besides the gyroscopic one.

    Args:
        bodies: The bodies.
        start: At the begin of the step; of it, the rate.
        end: At its end; of it, the rate.
        dt: Step [s].
    """
    p = bodies.parameters(0.0, 0.0, bodies.radius[:, 0])
    return stacked(scene_native.held_torque(split(start.body_rate), split(end.body_rate), dt, p))
