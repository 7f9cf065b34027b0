"""Angles of joints by name, and those at which a vehicle hovers with its springs in balance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.dynamics.articulated.equations import ZERO, accelerations, kinematics, rotor_loads
from airworthy.dynamics.articulated.laws import Torque, torques
from airworthy.dynamics.articulated.parameters import default_target
from airworthy.dynamics.articulated.tree import JointTree, tree_of
from airworthy.vehicles.links import frozen, link_poses
from airworthy.vehicles.record import Joint, Vehicle
from airworthy.vehicles.trim import Trim, control_effectiveness, hover_trim

__all__ = ["JOINT_ANGLES", "joint_angles", "joint_residual", "start_angles"]

JOINT_ANGLES = ("hover", "neutral", "ring")
"""Names that `joint_angles` knows."""
_RESIDUAL = 1e-9
"""Of the balance of joints [N m]."""
_INDEPENDENT = 2e-6
"""Least singular value of rows of unit length, as of `control.effectors`."""


def joint_angles(vehicle: Vehicle, given: str | Sequence[float]) -> tuple[float, ...]:
    """Return the angle of every joint [rad], (joint_count,).

    Args:
        vehicle: With joints.
        given: Angles; or "neutral" (all zero), "ring" (joints that turn about the vertical bend alike, until the links close a
            regular polygon), "hover" (as neutral, springs bent until they balance what hover loads them with).

    Raises:
        AirworthyError: Another name, another number of angles, or angles beyond the stops.
    """
    if isinstance(given, str):
        if given not in JOINT_ANGLES:
            raise unknown_name("set of joint angles", given, JOINT_ANGLES)
        makers = {"neutral": _neutral, "ring": _ring, "hover": lambda item: _balanced(item, _neutral(item))}
        return makers[given](vehicle)
    angles = tuple(float(angle) for angle in given)
    joints = _joints(vehicle)
    if len(angles) != len(joints) or not all(map(math.isfinite, angles)):
        raise AirworthyError(
            f"{vehicle.name!r} has {len(joints)} joints; expected as many angles in radians, or one of"
            f" {', '.join(JOINT_ANGLES)}; got {len(angles)}."
        )
    for index, (angle, joint) in enumerate(zip(angles, joints, strict=True)):
        low, high = _stops(joint)
        if not low <= angle <= high:
            raise AirworthyError(
                f"Joint {index} of {vehicle.name!r} was given {angle:.4g} rad; its stops are at {low:.4g} and {high:.4g} rad."
            )
    return angles


@lru_cache(maxsize=256)
def start_angles(vehicle: Vehicle) -> tuple[float, ...]:
    """Return the angles that flights start from unless others are given: a ring of a chain whose rotors lie on one line when it
    is straight, else the balance of hover."""
    if vehicle.fixed_base:
        return _neutral(vehicle)
    straight = _neutral(vehicle)
    # A chain's motors on one line give no moment about it, so it cannot hover straight.
    if _hovers(vehicle, straight):
        return _balanced(vehicle, straight)
    ring = _ring(vehicle) if _upright(vehicle).count(True) >= 2 else straight
    return ring if _hovers(vehicle, ring) else straight


def _hovers(vehicle: Vehicle, angles: Sequence[float]) -> bool:
    held = frozen(vehicle, angles)
    # Thrust, roll and pitch have to be independent: motors on one line give no moment about it.
    rows = control_effectiveness(held)[2:5]
    size = np.linalg.norm(rows, axis=1)
    independent = np.linalg.matrix_rank(rows / np.where(size > 0.0, size, 1.0)[:, None], tol=_INDEPENDENT) == len(rows)
    return hover_trim(held).hovers and bool(independent)


def _joints(vehicle: Vehicle) -> list[Joint]:
    return [link.joint for link in vehicle.links if link.joint is not None]


def _neutral(vehicle: Vehicle) -> tuple[float, ...]:
    return (0.0,) * vehicle.joint_count


def _upright(vehicle: Vehicle) -> list[bool]:
    """Whether the axis of each joint is vertical at neutral."""
    poses = link_poses(vehicle.links)
    axes = [poses[link.name].rotation @ np.asarray(link.joint.axis) for link in vehicle.links if link.joint is not None]
    return [abs(float(axis[2])) > 0.999 for axis in axes]


def _ring(vehicle: Vehicle) -> tuple[float, ...]:
    """Joints whose axis is vertical at neutral turn by 2 pi / (their number + 1) each."""
    upright = _upright(vehicle)
    count = sum(upright)
    if count < 2:
        raise AirworthyError(f"{vehicle.name!r} has {count} joints that turn about the vertical; a ring needs two at least.")
    angles = tuple(2.0 * math.pi / (count + 1) if turns else 0.0 for turns in upright)
    return joint_angles(vehicle, angles)


def _balanced(vehicle: Vehicle, angles: Sequence[float]) -> tuple[float, ...]:
    """Angles at which springs hold what hover loads them with; servos and given torques stay where they are."""
    free = [
        k for k, joint in enumerate(_joints(vehicle)) if joint.law == "morphy" or (joint.law == "spring" and joint.kp > 0.0)
    ]
    q: Array = np.array(angles, float)
    if not free or not _hovers(vehicle, angles):
        return tuple(float(angle) for angle in angles)
    tree = tree_of(vehicle)

    def held_at(x: Array) -> Array:
        held = q.copy()
        held[free] = x
        return held

    x, step = q[free], 1e-6
    for _ in range(60):
        trim = hover_trim(frozen(vehicle, held_at(x).tolist()))
        now = joint_residual(tree, trim, held_at(x))[free]
        if np.abs(now).max() < _RESIDUAL:
            break
        moved = [joint_residual(tree, trim, held_at(x + step * unit))[free] for unit in np.eye(len(x))]
        slope = (np.stack(moved, axis=1) - now[:, None]) / step
        full = np.linalg.lstsq(slope, -now, rcond=None)[0]
        # A law that is flat at its rest would send the first step far away.
        x = x + full * min(1.0, 0.1 / max(float(np.abs(full).max()), 1e-12))
    joints = _joints(vehicle)
    for k, value in zip(free, x, strict=True):
        low, high = _stops(joints[k])
        q[k] = min(max(float(value), low), high)
    return tuple(float(angle) for angle in q)


def _stops(joint: Joint) -> tuple[float, float]:
    """Angles between which a joint turns [rad]."""
    low = -math.inf if joint.lower is None else joint.lower
    return low, math.inf if joint.upper is None else joint.upper


def joint_residual(tree: JointTree, trim: Trim, q: Sequence[float] | Array) -> Array:
    """Return how joints would begin to move in hover with the root held, per unit of their torque's own response; zero where
    springs balance what they carry.

    Args:
        tree: Of the vehicle.
        trim: Its hover with the joints held.
        q: Joint angles [rad].
    """
    structure, model, n = tree.structure, tree.model, tree.structure.joint_count
    angles, still = tuple(float(angle) for angle in q), (0.0,) * n
    frames = kinematics(structure, model, angles)
    turning = [ZERO] * (n + 1)
    states = tuple(float(state) for state in trim.states)
    loads = rotor_loads(structure, model, frames, turning, states, (0.0,) * len(states))
    target = tuple(float(x) for x in default_target(tree))
    acting = torques(structure, model, angles, still, target, 0.0, 0.0)
    # All that turns about a joint, with the others locked: an armature of a million times what they carry.
    heavy = [Torque(torque.explicit, 0.0, 1e6) for torque in acting]
    x, y, z, w = trim.attitude
    up = (2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y))
    held = tuple(axis * model.gravity for axis in up)
    found = accelerations(structure, model, frames, ZERO, still, heavy, loads, held)
    return 1e6 * np.array([float(value) for value in found.joint])
