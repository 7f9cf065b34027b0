"""What acts about a joint: springs, servos, Aerial Gym's compliant arm, given torques, and stops.

Each law returns its torque as explicit + implicit: with step h, the spring kp (r - q) - kd qd at the end of the step is
kp (r - q - h qd) - kd qd - (h kd + h^2 kp) qdd, whose last factor adds to the joint's inertia. h = 0 is the law as it stands.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from airworthy.core.arrays import Scalar, Vector
from airworthy.core.ops import absolute, cos, where
from airworthy.dynamics.articulated.tree import Hinge, TreeNumbers, TreeStructure

__all__ = ["Torque", "slopes", "torques"]


class Torque(NamedTuple):
    """Explicit - implicit * qdd [N m]."""

    explicit: Scalar
    implicit: Scalar
    armature: Scalar
    effort: Scalar | None = None
    """Limit of the drive; None: none."""
    stop: Scalar = 0.0
    """Share of stops in the explicit part."""
    stop_implicit: Scalar = 0.0


def torques(
    structure: TreeStructure, model: TreeNumbers, q: Vector, qd: Vector, target: Vector, h: Scalar, stop_h: Scalar
) -> tuple[Torque, ...]:
    """Return what acts about every joint.

    Args:
        structure: Of the tree.
        model: Its numbers.
        q: Joint angles [rad].
        qd: Joint rates [rad/s].
        target: Angle [rad] of a spring, rate [rad/s] of a servo, torque [N m] of a given one; not read elsewhere.
        h: Step over which laws are taken implicitly [s]; 0: as they stand.
        stop_h: The same for stops, which no explicit step could follow.
    """
    found = []
    for index, (law, hinge) in enumerate(zip(structure.laws, model.hinges, strict=True)):
        explicit, implicit = _law(law, hinge, q[index], qd[index], target[index], h)
        lower, upper = structure.stops[index]
        stop, stiff = _stop(hinge, lower, upper, q[index], qd[index], stop_h)
        effort = hinge.effort if structure.limited[index] else None
        found.append(Torque(explicit + stop, implicit + stiff, hinge.armature, effort, stop, stiff))
    return tuple(found)


def _law(law: str, p: Hinge, q: Scalar, qd: Scalar, target: Scalar, h: Scalar) -> tuple[Scalar, Scalar]:
    if law == "spring":
        return p.kp * (target - q - h * qd) - p.kd * qd, h * (p.kd + h * p.kp)
    if law == "servo":
        return p.kd * (target - qd), h * p.kd
    if law == "torque":
        return target - p.kd * qd, h * p.kd
    # "morphy": sign(e) e^2 = e |e|, whose slope is 2 |e|; the weight that it holds up stays explicit.
    e = q - p.rest
    slope = 2.0 * p.kp * absolute(e)
    return -p.kd * qd - p.kp * (e * absolute(e)) - p.weight * cos(q) - h * slope * qd, h * (p.kd + h * slope)


def _stop(p: Hinge, lower: bool, upper: bool, q: Scalar, qd: Scalar, h: Scalar) -> tuple[Scalar, Scalar]:
    """Spring and damper beyond the stops, by where the joint will be."""
    ahead = q + h * qd
    push: Scalar = 0.0
    stiff: Scalar = 0.0
    if upper:
        depth = ahead - p.upper
        push = push - where(depth > 0.0, p.stop * depth + p.stop_damping * qd, 0.0)
        stiff = stiff + where(depth > 0.0, h * (p.stop_damping + h * p.stop), 0.0)
    if lower:
        depth = ahead - p.lower
        push = push - where(depth < 0.0, p.stop * depth + p.stop_damping * qd, 0.0)
        stiff = stiff + where(depth < 0.0, h * (p.stop_damping + h * p.stop), 0.0)
    return push, stiff


def slopes(structure: TreeStructure, model: TreeNumbers, q: Any) -> tuple[list[Any], list[Any]]:
    """Return stiffness [N m/rad] and damping [N m s/rad] of every joint's law at angles q; stops and the weight left out.

    Args:
        structure: Of the tree.
        model: Its numbers.
        q: Joint angles [rad].
    """
    stiffness, damping = [], []
    for index, (law, hinge) in enumerate(zip(structure.laws, model.hinges, strict=True)):
        steep = {"spring": hinge.kp, "morphy": 2.0 * hinge.kp * absolute(q[index] - hinge.rest)}.get(law, 0.0)
        stiffness.append(steep)
        damping.append(hinge.kd)
    return stiffness, damping
