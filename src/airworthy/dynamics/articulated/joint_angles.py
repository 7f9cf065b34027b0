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
_LONGEST = 0.1
"""Step of a joint in search of its balance [rad]."""
_INDEPENDENT = 2e-6
"""Least singular value of rows of unit length, as of `control.effectors`."""


def joint_angles(vehicle: Vehicle, given: str | Sequence[float]) -> tuple[float, ...]:
    """Return the angle of every joint [rad], (joint_count,).

    Args:
        vehicle: With joints.
        given: Angles; or "neutral" (all zero), "ring" (joints that turn about the vertical bend alike, until the links close a
            regular polygon), "hover" (as their records have them start, springs bent until they balance what hover loads them
            with).

    Raises:
        AirworthyError: Another name, another number of angles, or angles beyond the stops.
    """
    if isinstance(given, str):
        if given not in JOINT_ANGLES:
            raise unknown_name("set of joint angles", given, JOINT_ANGLES)
        makers = {"neutral": _neutral, "ring": _ring, "hover": lambda item: _balanced(item, _initial(item))}
        return _within_stops(vehicle, makers[given](vehicle), f" by {given!r}")
    angles = tuple(float(angle) for angle in given)
    joints = _joints(vehicle)
    if len(angles) != len(joints) or not all(map(math.isfinite, angles)):
        raise AirworthyError(
            f"{vehicle.name!r} has {len(joints)} joints; expected as many angles in radians, or one of"
            f" {', '.join(JOINT_ANGLES)}; got {len(angles)}."
        )
    return _within_stops(vehicle, angles, "")


def _within_stops(vehicle: Vehicle, angles: tuple[float, ...], how: str) -> tuple[float, ...]:
    """Return angles, refusing those beyond the stops, as given `how`."""
    for index, (angle, joint) in enumerate(zip(angles, _joints(vehicle), strict=True)):
        low, high = _stops(joint)
        if not low <= angle <= high:
            raise AirworthyError(
                f"Joint {index} of {vehicle.name!r} was given {angle:.4g} rad{how}; its stops are at {low:.4g} and"
                f" {high:.4g} rad: give angles between them."
            )
    return angles


@lru_cache(maxsize=256)
def start_angles(vehicle: Vehicle) -> tuple[float, ...]:
    """Return the angles that flights start from unless others are given: where its record has joints start, springs in the
    balance of hover; a ring, as far as stops allow, of a chain whose rotors lie on one line there."""
    given = _initial(vehicle)
    if vehicle.fixed_base:
        return given
    # A chain's motors on one line give no moment about it, so it cannot hover straight.
    if _hovers(vehicle, given):
        return _balanced(vehicle, given)
    if _upright(vehicle).count(True) < 2:
        return given
    stops = map(_stops, _joints(vehicle))
    ring = tuple(min(max(angle, low), high) for angle, (low, high) in zip(_ring(vehicle), stops, strict=True))
    # Three rotors in a ring cannot hold their heading, but what lies on one line cannot even stay level.
    return ring if _hovers(vehicle, ring) or _tilts(vehicle, ring) > _tilts(vehicle, given) else given


def _hovers(vehicle: Vehicle, angles: Sequence[float]) -> bool:
    return _tilts(vehicle, angles) and hover_trim(frozen(vehicle, angles)).hovers


def _tilts(vehicle: Vehicle, angles: Sequence[float]) -> bool:
    """Whether thrust, roll and pitch are independent: motors on one line give no moment about it."""
    rows = control_effectiveness(frozen(vehicle, angles))[2:5]
    size = np.linalg.norm(rows, axis=1)
    return bool(np.linalg.matrix_rank(rows / np.where(size > 0.0, size, 1.0)[:, None], tol=_INDEPENDENT) == len(rows))


def _joints(vehicle: Vehicle) -> list[Joint]:
    return [link.joint for link in vehicle.links if link.joint is not None]


def _neutral(vehicle: Vehicle) -> tuple[float, ...]:
    return (0.0,) * vehicle.joint_count


def _initial(vehicle: Vehicle) -> tuple[float, ...]:
    """Return the middle of where its record has each joint start, which lies between its stops."""
    return tuple(0.5 * (joint.initial_low + joint.initial_high) for joint in _joints(vehicle))


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
    return tuple(2.0 * math.pi / (count + 1) if turns else 0.0 for turns in upright)


def _balanced(vehicle: Vehicle, angles: Sequence[float]) -> tuple[float, ...]:
    """Angles at which springs hold what hover loads them with; servos and given torques stay where they are."""
    free = [
        k for k, joint in enumerate(_joints(vehicle)) if joint.law == "morphy" or (joint.law == "spring" and joint.kp > 0.0)
    ]
    q: Array = np.array(angles, float)
    if not free or not _hovers(vehicle, angles):
        return tuple(float(angle) for angle in angles)
    tree = tree_of(vehicle)

    low, high = np.array([_stops(_joints(vehicle)[k]) for k in free]).T

    def held_at(x: Array) -> list[float]:
        held = q.copy()
        held[free] = x
        return [float(angle) for angle in held]

    def residual(x: Array) -> Array | None:
        """Also of the thrusts, which follow the angles; None: it cannot hover so."""
        trim = hover_trim(frozen(vehicle, held_at(x)))
        return joint_residual(tree, trim, held_at(x))[free] if trim.hovers else None

    x, step = q[free], 1e-6
    for _ in range(100):
        now = residual(x)
        if now is None:
            break
        # What lies on a stop and is pressed against it is held there, and the others balance beside it.
        loose = ~(((x <= low) & (now < 0.0)) | ((x >= high) & (now > 0.0)))
        if np.abs(now[loose]).max(initial=0.0) < _RESIDUAL:
            return tuple(held_at(x))
        moved = [there for unit in np.eye(len(x))[loose] if (there := residual(x + step * unit)) is not None]
        if len(moved) < loose.sum():
            break
        slope = (np.stack(moved, axis=1) - now[:, None])[loose] / step
        full = np.linalg.lstsq(slope, -now[loose], rcond=None)[0]
        # Newton's step, unless it leads to a balance that joints would leave: they go where their torques turn them.
        if full @ now[loose] <= 0.0:
            full = now[loose] * (_LONGEST / float(np.abs(now[loose]).max()))
        # A law that is flat at its rest would send the first step far away.
        x[loose] += full * min(1.0, _LONGEST / max(float(np.abs(full).max()), 1e-12))
        x = np.clip(x, low, high)
    raise AirworthyError(
        f"The springs of {vehicle.name!r} find no angles at which they balance its hover: give angles (joint_angles, --joints),"
        " stiffer springs or stops."
    )


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
