"""One physics step of bodies that meet scene geometry and rebound, on NumPy float64 arrays.

The readable twin of `dynamics/native/scene_rebound.h`, which flies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayIndex, NDArray
from airworthy.dynamics.contact import BOUNCE_SPEED
from airworthy.dynamics.scene_contact import (
    BodyMotion,
    ContactBodies,
    approach_speed,
    bounded,
    collide,
    drift,
    held_torque,
    kinetic_energy,
    lifted,
)
from airworthy.simulation.obstacles import GAP, SHALLOW, Contacts, Obstacles

# Ours: a corner of three walls takes three; bouncing between two for ever must end.
PASSES = 8
"""Impacts of a body within one step; after the last it waits for the next step where it is."""

# Ours: out of a deep overlap a body glides bit by bit instead of leaping.
STEP_OUT = 8e-3
"""Most that a body is moved out of an overlap in a step [m]."""


@dataclass
class Rebound:
    """What a step with contact came to."""

    end: BodyMotion
    """Where the bodies are and how they move, (k,)."""
    met: ArrayBool
    """Whether a body met anything, (k,)."""
    first: Contacts
    """The fastest contact of each; its fraction is that of the step."""
    speed: Array
    """Approach there [m/s], (k,)."""


def rebound(
    obstacles: Obstacles,
    bodies: ContactBodies,
    start: BodyMotion,
    free: BodyMotion,
    dt: float,
    restitution: float,
    friction: float,
    rolling: float,
    velocity_of: Array | None = None,
) -> Rebound:
    """Return the motion over one step, from the free motion and what is in its way.

    Bodies go along the free motion to their first contact, rebound there, and go on for what is left of the step, until they
    meet nothing more. A fast impact is taken at its instant, with the velocity of that instant, and what is left is flown under
    the step's acceleration. A slow one is a rest: the support acts all through the step, so it is the velocity at its end
    that loses its part into the surface, and nothing accelerates afterwards.

    Args:
        obstacles: Geometry, of k bodies.
        bodies: The bodies.
        start: At the begin of the step.
        free: At its end, had nothing been there.
        dt: Physics step [s].
        restitution: Newton's coefficient.
        friction: Coulomb's coefficient.
        rolling: Share of a sphere's radius that resists rolling.
        velocity_of: Velocity of each instance that a body may hit, world [m/s], (k, instances, 3); None: all stand still.
    """
    count = len(start.position)
    now, goal, end = start.take(slice(None)), free.take(slice(None)), free.take(slice(None))
    acceleration, torque = (free.velocity - start.velocity) / dt, held_torque(bodies, start, free, dt)
    # Kept aside for the balance of energy at the end: what acted before contact changed anything.
    held, twist, work = acceleration.copy(), torque.copy(), np.zeros(count)
    frame, alike = np.zeros((count, 3)), np.ones(count, bool)
    left, speed = np.full(count, dt), np.full(count, -1.0)
    met = np.zeros(count, bool)
    none = np.zeros((count, 3))
    record = Contacts(np.ones(count), np.zeros(count, np.intp), none, none + np.nan, _nothing(count), none, np.zeros(count))
    rows = np.arange(count)
    # Only bodies that still meet something stay in `rows`, so later passes are small.
    for _ in range(PASSES):
        hit = obstacles.take(rows).first(bodies.take(rows), now.take(rows), goal.take(rows))
        touched = hit.instance >= 0
        done = rows[~touched]
        end.put(done, goal.take(done))
        work[done] += _turned(twist[done], now.body_rate[done], goal.body_rate[done], left[done])
        rows, hit = rows[touched], _take(hit, touched)
        if not rows.size:
            break
        own, sight = bodies.take(rows), obstacles.take(rows)
        at = now.take(rows).between(goal.take(rows), hit.fraction)
        work[rows] += _turned(twist[rows], now.body_rate[rows], at.body_rate, left[rows] * hit.fraction)
        left[rows] *= 1.0 - hit.fraction
        moving = _velocities(velocity_of, rows, hit.instance)
        # Energy is bounded in the frame of what was hit; with two frames in a step there is none to bound it in.
        alike[rows] &= ~met[rows] | (moving == frame[rows]).all(axis=1)
        frame[rows], met[rows] = moving, True
        own, touch, normal, depth = sight.touching(own, at, hit)
        # In the frame of what is hit, surfaces stand still.
        at.velocity -= moving
        fastest = np.where(touch, approach_speed(own, at, normal), 0.0).max(axis=1)
        # Twice the speed that gravity gives in a step: slower than that, an impact cannot be told from lying there.
        rests = fastest < np.maximum(2.0 * own.gravity * dt, BOUNCE_SPEED)
        last = goal.take(rows)
        at.velocity = np.where(rests[:, None], last.velocity - moving, at.velocity)
        at.body_rate = np.where(rests[:, None], last.body_rate, at.body_rate)
        acceleration[rows] = np.where(rests[:, None], 0.0, acceleration[rows])
        torque[rows] = np.where(rests[:, None], 0.0, torque[rows])
        at.velocity, at.body_rate = collide(own, at, touch, normal, np.where(rests, 0.0, restitution), friction, rolling, dt)
        deep = _step_out(own, at, touch, normal, depth)
        at.velocity += moving
        # Of several impacts in a step the fastest is told.
        faster = fastest > speed[rows]
        _keep(record, rows[faster], _take(hit, faster), 1.0 - left[rows[faster]] / dt)
        speed[rows] = np.maximum(fastest, speed[rows])
        now.put(rows, at)
        goal.put(rows, drift(own, at, acceleration[rows], torque[rows], left[rows]))
        _wait(end, bodies, now, left, rows[deep])
        rows = rows[~deep]
    _wait(end, bodies, now, left, rows)
    some = np.flatnonzero(met & alike)
    _bound(end, bodies, start, held, work, frame, dt, some)
    return Rebound(end, met, record, np.maximum(speed, 0.0))


def _bound(
    end: BodyMotion,
    bodies: ContactBodies,
    start: BodyMotion,
    held: Array,
    work: Array,
    frame: Array,
    dt: float,
    rows: ArrayIndex,
) -> None:
    """Slow down bodies that would gain by contact, in place.

    In the frame of what was hit, what acted on a body (`held` [m/s^2], and the `work` of its torque [J]) worked along the path
    that it took, and contact did not. A body that rests at one point and hits with another in the same step would gain
    otherwise.
    """
    own, moving = bodies.take(rows), frame[rows]
    before, after = start.velocity[rows] - moving, end.velocity[rows] - moving
    displacement = end.position[rows] - start.position[rows] - moving * dt
    allowed = kinetic_energy(own, before, start.body_rate[rows]) + work[rows]
    allowed += own.mass * np.sum(held[rows] * displacement, axis=1)
    after, end.body_rate[rows] = bounded(own, allowed, after, end.body_rate[rows])
    end.velocity[rows] = after + moving


def _turned(torque: Array, body_rate: Array, following: Array, time: Array) -> Array:
    """Work of torques over parts of a step [J], (k,)."""
    return np.asarray(0.5 * time * np.sum(torque * (body_rate + following), axis=1))


def _wait(end: BodyMotion, bodies: ContactBodies, now: BodyMotion, left: Array, rows: ArrayIndex) -> None:
    """End the step of some bodies where they are.

    Gravity acted all through the step, and the way down that it would have taken is not made: the motion pays for that.
    """
    waiting = now.take(rows)
    missed = np.maximum(-waiting.velocity * left[rows, None], 0.0)
    waiting.velocity, waiting.body_rate = lifted(bodies.take(rows), waiting, missed)
    end.put(rows, waiting)


def _step_out(bodies: ContactBodies, at: BodyMotion, touch: ArrayBool, normal: Array, depth: Array) -> ArrayBool:
    """Bring bodies back to their gap from what they are deepest in, in place, a deep overlap bit by bit; which are deep."""
    worst = np.where(touch, depth, -np.inf).argmax(axis=1)
    which = np.arange(len(worst))
    distance = np.clip(depth[which, worst], 0.0, STEP_OUT)
    lift = np.where(np.isfinite(distance), distance, 0.0)[:, None] * normal[which, worst]
    at.position += lift
    at.velocity, at.body_rate = lifted(bodies, at, lift)
    return np.asarray(depth[which, worst] > SHALLOW)


def _velocities(velocity_of: Array | None, rows: ArrayIndex, instance: NDArray[np.int32]) -> Array:
    return np.zeros((len(rows), 3)) if velocity_of is None else velocity_of[rows, instance]


def _nothing(count: int) -> NDArray[np.int32]:
    return np.full(count, -1, np.int32)


def _take(hit: Contacts, rows: ArrayBool) -> Contacts:
    return Contacts(*(getattr(hit, name)[rows] for name in Contacts.__dataclass_fields__))


def _keep(record: Contacts, rows: ArrayIndex, hit: Contacts, fraction: Array) -> None:
    for name in ("sphere", "normal", "point", "instance"):
        getattr(record, name)[rows] = getattr(hit, name)
    record.fraction[rows] = fraction


__all__ = ["GAP", "PASSES", "Rebound", "rebound"]
