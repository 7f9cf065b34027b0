"""What surfaces do to vehicles with joints in a step, on NumPy arrays: the readable twin of `native/jointed_contact.h`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool
from airworthy.core.vectors import dot, scale, sub
from airworthy.dynamics.articulated.contact import (
    BOUNCE,
    SWEEPS,
    along,
    carried,
    contact_tree,
    friction_push,
    lift,
    point_velocity,
    rebound,
    response,
    sliding,
    sphere_offsets,
)
from airworthy.dynamics.articulated.step import to_root
from airworthy.dynamics.articulated.tree import TreeNumbers, TreeStructure

__all__ = ["LinkImpact", "Surfaces", "meet", "meet_ground"]


@dataclass(frozen=True)
class Surfaces:
    """What each sphere of a vehicle is at, by the end of a step."""

    depth: Array
    """How far it reaches below its surface [m], (spheres, env); not above zero: it touches nothing."""
    normal: Array
    """Of the surface, towards the sphere, world, (spheres, 3, env)."""
    velocity: Array
    """Of the surface, world [m/s], (spheres, 3, env)."""


@dataclass(frozen=True)
class LinkImpact:
    """What surfaces did."""

    met: ArrayBool
    """Whether a vehicle touches anything, (env,)."""
    change: Array
    """Of the coordinates, (6 + joints, env)."""
    moved: Array
    """By how much the root is moved out of what it is in, world [m], (3, env)."""
    approach: Array
    """The fastest [m/s], (env,)."""
    back: Array
    """Over which time the change counts as way [s], (env,)."""


def meet_ground(
    structure: TreeStructure, model: TreeNumbers, p: Any, carriers: tuple[int, ...], motion: Any, dt: Any, held_share: float
) -> LinkImpact:
    """Return what the ground does to vehicles.

    Args:
        structure: Of the tree.
        model: Its numbers.
        p: Record with sphere, ground_height, friction and restitution.
        carriers: Bodies of the spheres.
        motion: Height of the root [m], velocity (world), attitude, rate, joint, joint_rate after the free step.
        dt: Step [s].
        held_share: Displacement over a step [dt] per change of velocity, as the integrator counts it.
    """
    height, _, attitude, _, q, _ = motion
    at = contact_tree(structure, model, q, p.sphere, carriers)[2]
    up = to_root(attitude, (0.0, 0.0, 1.0))
    zero = np.zeros_like(height)
    depth = [p.ground_height + s[3] - (height + dot(up, at[3 * k : 3 * k + 3])) + zero for k, s in enumerate(p.sphere)]
    normal = np.zeros((len(depth), 3, len(height)))
    normal[:, 2] = 1.0
    surfaces = Surfaces(np.array(depth), normal, np.zeros_like(normal))
    return meet(structure, model, p, carriers, motion[1:], surfaces, dt, held_share)


def meet(
    structure: TreeStructure,
    model: TreeNumbers,
    p: Any,
    carriers: tuple[int, ...],
    motion: Any,
    surfaces: Surfaces,
    dt: Any,
    held_share: float,
) -> LinkImpact:
    """Return what surfaces do to vehicles, one at each sphere.

    Args:
        structure: Of the tree.
        model: Its numbers.
        p: Record with sphere, friction and restitution.
        carriers: Bodies of the spheres.
        motion: Velocity (world), attitude, rate, joint, joint_rate after the free step.
        surfaces: What spheres are at.
        dt: Step [s].
        held_share: Displacement over a step [dt] per change of velocity, as the integrator counts it.
    """
    velocity, attitude, rate, q, qd = motion
    lower, pivots, at, axes, places = contact_tree(structure, model, q, p.sphere, carriers)
    zero = np.zeros(surfaces.depth.shape[1])
    u0 = np.stack([x + zero for x in (*to_root(attitude, velocity), *rate, *qd)])
    u = u0.copy()
    touch, rows, found, stiffness, speed0, approach, points, ups, drifts = [], [], [], [], [], zero, [], [], []
    for k, sphere in enumerate(p.sphere):
        up, drift = to_root(attitude, tuple(surfaces.normal[k])), to_root(attitude, tuple(surfaces.velocity[k]))
        point = sub(at[3 * k : 3 * k + 3], scale(up, sphere[3]))
        row, y, stiff = response(point, up, carried(structure, carriers[k]), axes, places, lower, pivots)
        touch.append(np.where(surfaces.depth[k] > 0.0, 1.0, 0.0))
        rows.append(np.stack([x + zero for x in row]))
        found.append(np.stack([x + zero for x in y]))
        # Where nothing is touched there is no direction to be stiff in.
        stiffness.append(np.where(touch[k] > 0.0, stiff, 1.0))
        own = dot(up, drift)
        speed0.append(along(row, u) - own)
        points.append(point)
        ups.append(up)
        drifts.append((drift, own))
        approach = np.where((touch[k] > 0.0) & (-speed0[k] > approach), -speed0[k], approach)
    push = [zero.copy() for _ in touch]
    owns = [own for _, own in drifts]
    u = _press(u, push, touch, rows, found, stiffness, owns)
    gained = sum(p_k * v for p_k, v in zip(push, speed0, strict=True))
    spent = sum(p_k * (along(row, u) - own - v) for p_k, row, own, v in zip(push, rows, owns, speed0, strict=True))
    share = rebound(approach, gained, spent, p.restitution)
    u = u0 + (u - u0) * share
    lost = -(share * gained + 0.5 * share * share * spent)
    for k, point in enumerate(points):
        mark = carried(structure, carriers[k])
        sideways, slide = sliding(sub(point_velocity(point, mark, axes, places, u), drifts[k][0]), ups[k])
        _, y, stiff = response(point, sideways, mark, axes, places, lower, pivots)
        stop = friction_push(touch[k] * push[k] * share, slide, stiff, p.friction)
        u = u - np.stack([x + zero for x in y]) * stop
        lost = lost + stop * slide - 0.5 * stop * stop * stiff
    # Friction turns links, and so may press others in.
    u = _press(u, [zero.copy() for _ in touch], touch, rows, found, stiffness, owns, 1)
    met = np.sum(touch, axis=0) > 0.0
    deepest = np.maximum(surfaces.depth.max(axis=0), 0.0)
    worst = surfaces.normal[surfaces.depth.argmax(axis=0), :, np.arange(len(zero))].T
    raised = np.where(met, lift(deepest, lost, whole_weight(model), worst[2]), 0.0)
    rests = met & (approach < BOUNCE)
    change = np.where(met, u - u0, 0.0)
    return LinkImpact(met, change, worst * raised, approach, np.where(rests, held_share * dt, 0.0))


def _press(u: Any, push: Any, touch: Any, rows: Any, found: Any, stiffness: Any, owns: Any, sweeps: int = SWEEPS) -> Any:
    """Projected Gauss-Seidel against approach; pushes are changed in place."""
    for _ in range(sweeps):
        for k, mark in enumerate(touch):
            new = np.maximum(push[k] - (along(rows[k], u) - owns[k]) / stiffness[k], 0.0) * mark
            u = u + found[k] * (new - push[k])
            push[k][...] = new
    return u


def whole_weight(model: TreeNumbers) -> Any:
    """Return the weight of all bodies [N]."""
    mass = model.bodies[0].mass
    for body in model.bodies[1:]:
        mass = mass + body.mass
    return mass * model.gravity


def sphere_centers(
    structure: TreeStructure, model: TreeNumbers, p: Any, carriers: tuple[int, ...], position: Array, attitude: Array, q: Any
) -> Array:
    """Return the centres of the spheres, world [m], (env, spheres, 3).

    Args:
        structure: Of the tree.
        model: Its numbers.
        p: Record with sphere.
        carriers: Bodies of the spheres.
        position: Of the root's own centre of mass, world [m], (3, env).
        attitude: Of the root, (4, env).
        q: Joint angles [rad], (joints, env).
    """
    offsets = sphere_offsets(structure, model, tuple(attitude), tuple(q), p.sphere, carriers)
    flat = np.array([x + np.zeros(position.shape[1]) for x in offsets])
    return flat.reshape(len(carriers), 3, -1).transpose(2, 0, 1) + position.T[:, None]
