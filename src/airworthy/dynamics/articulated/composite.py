"""The vehicle as a whole at given joint angles: centre of mass, inertia about it, what rotors can do, energy and momentum."""

from __future__ import annotations

from collections.abc import Sequence

from airworthy.core.arrays import Scalar, Vector
from airworthy.core.vectors import add, cross, dot, scale, sub, symmetric_multiply
from airworthy.dynamics.articulated.equations import (
    ZERO,
    BodyFrame,
    kinematics,
    matrix_vector,
    positions,
    rotor_frames,
    turned_inertia,
    velocities,
)
from airworthy.dynamics.articulated.tree import TreeNumbers, TreeStructure

__all__ = ["center_of_mass", "composite", "effectiveness", "is_out", "momentum_and_energy", "whole_inertia"]


def body_centers(structure: TreeStructure, model: TreeNumbers, frames: Sequence[BodyFrame]) -> tuple[Vector, ...]:
    """Return every body's own centre of mass from the root's point of reference, root axes [m].

    Args:
        structure: Of the tree.
        model: Its numbers.
        frames: Of `kinematics`.
    """
    found = zip(positions(structure, frames), frames, model.bodies, strict=True)
    return tuple(add(place, matrix_vector(frame.rotation, body.center)) for place, frame, body in found)


def _mass(model: TreeNumbers) -> Scalar:
    total: Scalar = 0.0
    for body in model.bodies:
        total = total + body.mass
    return total


def mean_by_mass(model: TreeNumbers, vectors: Sequence[Vector]) -> Vector:
    """Return the mean of vectors, one per body, weighted by mass.

    Args:
        model: Numbers of the tree.
        vectors: One per body.
    """
    total: Vector = ZERO
    for body, vector in zip(model.bodies, vectors, strict=True):
        total = add(total, scale(vector, body.mass))
    return scale(total, 1.0 / _mass(model))


def center_of_mass(structure: TreeStructure, model: TreeNumbers, q: Vector) -> Vector:
    """Return the centre of mass of the whole from the root's own [m], root axes.

    Args:
        structure: Of the tree.
        model: Its numbers.
        q: Joint angles [rad].
    """
    return mean_by_mass(model, body_centers(structure, model, kinematics(structure, model, q)))


def composite(structure: TreeStructure, model: TreeNumbers, q: Vector) -> tuple[Scalar, Vector, Vector]:
    """Return mass [kg], centre of mass from the root's own [m] and inertia about it [kg m^2] of the whole, root axes.

    Args:
        structure: Of the tree.
        model: Its numbers.
        q: Joint angles [rad].
    """
    frames = kinematics(structure, model, q)
    centers = body_centers(structure, model, frames)
    center = mean_by_mass(model, centers)
    return _mass(model), center, _inertia_about(model, frames, centers, center)


def whole_inertia(structure: TreeStructure, model: TreeNumbers, q: Vector) -> Vector:
    """Return the inertia of the whole about its centre of mass, root axes: xx, yy, zz, xy, xz, yz [kg m^2].

    Args:
        structure: Of the tree.
        model: Its numbers.
        q: Joint angles [rad].
    """
    return composite(structure, model, q)[2]


def _inertia_about(model: TreeNumbers, frames: Sequence[BodyFrame], centers: Sequence[Vector], center: Vector) -> Vector:
    total: Vector = (0.0,) * 6
    for body, frame, place in zip(model.bodies, frames, centers, strict=True):
        x, y, z = sub(place, center)
        own = (y * y + z * z, x * x + z * z, x * x + y * y, -(x * y), -(x * z), -(y * z))
        turned = turned_inertia(frame.rotation, body.inertia)
        total = tuple(t + i + body.mass * o for t, i, o in zip(total, turned, own, strict=True))
    return total


def effectiveness(structure: TreeStructure, model: TreeNumbers, q: Vector, about: Vector | None = None) -> tuple[Vector, ...]:
    """Return, per rotor, the wrench in root axes per newton of its thrust: [a; (p - r) x a + kappa a].

    kappa is torque over thrust at the largest state, exact where both are proportional. Of a rotor that is out all is zero.

    Args:
        structure: Of the tree.
        model: Its numbers.
        q: Joint angles [rad].
        about: Point r from the root's own centre of mass [m]; None: the centre of mass of the whole.
    """
    frames = kinematics(structure, model, q)
    point = mean_by_mass(model, body_centers(structure, model, frames)) if about is None else about
    places = positions(structure, frames)
    found = []
    for item, (body, arm, axis) in zip(model.propellers, rotor_frames(structure, model, frames), strict=True):
        if is_out(item.thrust):
            found.append((0.0,) * 6)
            continue
        thrust = item.thrust[0] + item.most * (item.thrust[1] + item.thrust[2] * item.most)
        torque = item.torque[0] + item.most * (item.torque[1] + item.torque[2] * item.most)
        lever = sub(add(places[body], arm), point)
        found.append((*axis, *add(cross(lever, axis), scale(axis, torque / thrust))))
    return tuple(found)


def is_out(numbers: Vector) -> bool:
    """Tell whether all numbers are zero by structure, as the thrust is of a rotor that is out.

    Args:
        numbers: Floats, arrays or traced values.
    """
    return all(isinstance(part, float) and part == 0.0 for part in numbers)


def momentum_and_energy(
    structure: TreeStructure, model: TreeNumbers, q: Vector, qd: Vector, velocity: Vector, rate: Vector
) -> tuple[Vector, Vector, Scalar]:
    """Return linear momentum [N s], angular momentum about the whole's centre of mass [N m s], both in root axes, and kinetic
    energy [J]; rotors turn with their bodies, and armatures count as drives that turn with the joint.

    Args:
        structure: Of the tree.
        model: Its numbers.
        q: Joint angles [rad].
        qd: Joint rates [rad/s].
        velocity: Of the root's own centre of mass, root axes [m/s].
        rate: Of the root [rad/s].
    """
    frames = kinematics(structure, model, q)
    turning, moving = velocities(structure, frames, velocity, rate, qd)
    centers = body_centers(structure, model, frames)
    center = mean_by_mass(model, centers)
    places = positions(structure, frames)
    linear, angular, energy = ZERO, ZERO, 0.0
    for body, frame, place, middle, w, v in zip(model.bodies, frames, places, centers, turning, moving, strict=True):
        speed = add(v, cross(w, sub(middle, place)))
        push = scale(speed, body.mass)
        spin = symmetric_multiply(turned_inertia(frame.rotation, body.inertia), w)
        linear = add(linear, push)
        angular = add(angular, add(spin, cross(sub(middle, center), push)))
        energy = energy + 0.5 * (dot(push, speed) + dot(spin, w))
    for hinge, speed in zip(model.hinges, qd, strict=True):
        energy = energy + 0.5 * hinge.armature * speed * speed
    return linear, angular, energy
