"""One physics step of bodies that meet scene geometry and rebound, on NumPy float64 arrays.

The readable twin of `dynamics/native/scene_rebound.h`, which flies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from airworthy.dynamics.contact import BOUNCE_SPEED
from airworthy.dynamics.scene_contact import Bodies, Motion, approach_speed, collide, drift, held_torque, lifted
from airworthy.simulation.obstacles import GAP, SHALLOW, Contacts, Obstacles

Array = NDArray[np.float64]

PASSES = 8
"""Impacts of a body within one step; after the last it waits for the next step where it is."""

STEP_OUT = 8e-3
"""Most that a body is moved out of an overlap in a step [m]."""


@dataclass
class Rebound:
    """What a step with contact came to."""

    end: Motion
    """Where the bodies are and how they move, (k,)."""
    met: NDArray[np.bool_]
    """Whether a body met anything, (k,)."""
    first: Contacts
    """The fastest contact of each; its fraction is that of the step."""
    speed: Array
    """Approach there [m/s], (k,)."""


def rebound(
    obstacles: Obstacles,
    bodies: Bodies,
    start: Motion,
    free: Motion,
    dt: float,
    restitution: float,
    friction: float,
    velocity_of: Array | None = None,
) -> Rebound:
    """Motion over one step, from the free motion and what is in its way.

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
        velocity_of: Velocity of each instance that a body may hit, world [m/s], (k, instances, 3); None: all stand still.
    """
    count = len(start.position)
    now, goal, end = start.take(slice(None)), free.take(slice(None)), free.take(slice(None))
    acceleration, torque = (free.velocity - start.velocity) / dt, held_torque(bodies, start, free, dt)
    left, speed = np.full(count, dt), np.full(count, -1.0)
    met = np.zeros(count, bool)
    record = Contacts(
        np.ones(count), np.zeros(count, np.intp), np.zeros((count, 3)), np.full((count, 3), np.nan), _nothing(count)
    )
    rows = np.arange(count)
    for _ in range(PASSES):
        hit = obstacles.take(rows).first(bodies.take(rows), now.take(rows), goal.take(rows))
        touched = hit.instance >= 0
        end.put(rows[~touched], goal.take(rows[~touched]))
        rows, hit = rows[touched], _take(hit, touched)
        if not rows.size:
            return Rebound(end, met, record, np.maximum(speed, 0.0))
        met[rows] = True
        own, sight = bodies.take(rows), obstacles.take(rows)
        at = now.take(rows).between(goal.take(rows), hit.fraction)
        left[rows] *= 1.0 - hit.fraction
        moving = _velocities(velocity_of, rows, hit.instance)
        touch, normal, depth = sight.touching(own, at, hit)
        at.velocity -= moving
        fastest = np.where(touch, approach_speed(own, at, normal), 0.0).max(axis=1)
        rests = fastest < np.maximum(2.0 * own.gravity * dt, BOUNCE_SPEED)
        last = goal.take(rows)
        at.velocity = np.where(rests[:, None], last.velocity - moving, at.velocity)
        at.rate = np.where(rests[:, None], last.rate, at.rate)
        acceleration[rows] = np.where(rests[:, None], 0.0, acceleration[rows])
        torque[rows] = np.where(rests[:, None], 0.0, torque[rows])
        at.velocity, at.rate = collide(own, at, touch, normal, np.where(rests, 0.0, restitution), friction, dt)
        deep = _step_out(own, at, touch, normal, depth)
        at.velocity += moving
        faster = fastest > speed[rows]
        _keep(record, rows[faster], _take(hit, faster), 1.0 - left[rows[faster]] / dt)
        speed[rows] = np.maximum(fastest, speed[rows])
        now.put(rows, at)
        goal.put(rows, drift(own, at, acceleration[rows], torque[rows], left[rows]))
        _wait(end, bodies, now, left, rows[deep])
        rows = rows[~deep]
    _wait(end, bodies, now, left, rows)
    return Rebound(end, met, record, np.maximum(speed, 0.0))


def _wait(end: Motion, bodies: Bodies, now: Motion, left: Array, rows: NDArray[np.intp]) -> None:
    """End the step of some bodies where they are.

    Gravity acted all through the step, and the way down that it would have taken is not made: the motion pays for that.
    """
    waiting = now.take(rows)
    missed = np.maximum(-waiting.velocity * left[rows, None], 0.0)
    waiting.velocity, waiting.rate = lifted(bodies.take(rows), waiting, missed)
    end.put(rows, waiting)


def _step_out(bodies: Bodies, at: Motion, touch: NDArray[np.bool_], normal: Array, depth: Array) -> NDArray[np.bool_]:
    """Bring bodies back to their gap from what they are deepest in, in place, a deep overlap bit by bit; which are deep."""
    worst = np.where(touch, depth, -np.inf).argmax(axis=1)
    which = np.arange(len(worst))
    way = np.clip(depth[which, worst], 0.0, STEP_OUT)
    lift = np.where(np.isfinite(way), way, 0.0)[:, None] * normal[which, worst]
    at.position += lift
    at.velocity, at.rate = lifted(bodies, at, lift)
    return np.asarray(depth[which, worst] > SHALLOW)


def _velocities(velocity_of: Array | None, rows: NDArray[np.intp], instance: NDArray[np.int32]) -> Array:
    return np.zeros((len(rows), 3)) if velocity_of is None else velocity_of[rows, instance]


def _nothing(count: int) -> NDArray[np.int32]:
    return np.full(count, -1, np.int32)


def _take(hit: Contacts, rows: NDArray[np.bool_]) -> Contacts:
    return Contacts(*(getattr(hit, name)[rows] for name in Contacts.__dataclass_fields__))


def _keep(record: Contacts, rows: NDArray[np.intp], hit: Contacts, fraction: Array) -> None:
    for name in ("sphere", "normal", "point", "instance"):
        getattr(record, name)[rows] = getattr(hit, name)
    record.fraction[rows] = fraction


__all__ = ["GAP", "PASSES", "Rebound", "rebound"]
