"""How fast a vehicle's joints are: the largest pole of their linearised motion, and what steps and integrators follow it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.dynamics.articulated.equations import ZERO, accelerations, kinematics
from airworthy.dynamics.articulated.laws import Torque, slopes
from airworthy.dynamics.articulated.tree import JointTree

__all__ = ["advised_step", "check_step", "default_integrator", "fastest_pole", "joint_response"]

EXPLICIT_MAX = 2.5
"""Largest step times pole of RK4, whose real limit is 2.785: a tenth is kept for parameters that are randomised."""
COMPLIANT_MAX = 1.5
"""Step times pole up to which the midpoint step is advised: the published 2 ms for Aerial Gym's compliant arms has 1.4."""
STEP_MAX = 2e-3
"""Longest advised step [s]."""


def joint_response(tree: JointTree, q: Sequence[float]) -> Array:
    """Return the joints' accelerations per torque about each, (joints, joints) [1/(kg m^2)], with the base free or held.

    Args:
        tree: The vehicle.
        q: Joint angles [rad].
    """
    n = tree.structure.joint_count
    unit = np.eye(n)
    frames = kinematics(tree.structure, tree.model, tuple(np.full(n, float(angle)) for angle in q))
    still = tuple(np.zeros(n) for _ in range(n))
    acting = [Torque(unit[k], 0.0, hinge.armature) for k, hinge in enumerate(tree.model.hinges)]
    held = ZERO if tree.structure.fixed_base else None
    found = accelerations(tree.structure, tree.model, frames, ZERO, still, acting, [], held)
    return np.stack([np.broadcast_to(row, (n,)) for row in found.joint])


def fastest_pole(tree: JointTree, q: Sequence[float] | None = None) -> float:
    """Return the largest magnitude of a pole of the linearised joints [1/s]; stops are left out.

    Args:
        tree: The vehicle.
        q: Joint angles [rad]; None: the largest of all at zero, all at their lower and all at their upper stops.
    """
    if q is None:
        ends = [[0.0] * tree.structure.joint_count]
        for side, name in enumerate(("lower", "upper")):
            pairs = zip(tree.structure.stops, tree.model.hinges, strict=True)
            ends.append([float(getattr(hinge, name)) if there[side] else 0.0 for there, hinge in pairs])
        return max(fastest_pole(tree, end) for end in ends)
    response = joint_response(tree, q)
    stiffness, damping = slopes(tree.structure, tree.model, tuple(float(angle) for angle in q))
    n = len(response)
    system = np.block(
        [[np.zeros((n, n)), np.eye(n)], [-response * np.array(stiffness, float), -response * np.array(damping, float)]]
    )
    return float(np.abs(np.linalg.eigvals(system)).max())


def has_servo(tree: JointTree) -> bool:
    """Tell whether a joint is driven to a rate."""
    return "servo" in tree.structure.laws


def default_integrator(tree: JointTree, dt: float) -> str:
    """Return the integrator for a step [s]: midpoint for compliant joints up to 2 ms, extrapolated for servos and longer steps,
    which the midpoint step would let ring."""
    return "extrapolated" if has_servo(tree) or dt > STEP_MAX else "midpoint"


def advised_step(tree: JointTree) -> float:
    """Return the step to fly at with the default integrator [s]: 1, 2 or 5 times a power of ten, at most 2 ms.

    Servos are damped at any step, so that their poles do not count.
    """
    if has_servo(tree):
        return STEP_MAX
    wanted = min(STEP_MAX, COMPLIANT_MAX / max(fastest_pole(tree), 1e-9))
    tenth = 10.0 ** np.floor(np.log10(wanted * (1.0 + 1e-9)))
    return float(max(k for k in (1.0, 2.0, 5.0) if k * tenth <= wanted * (1.0 + 1e-9)) * tenth)


def check_step(tree: JointTree, dt: float, integrator: str, name: str) -> None:
    """Refuse an explicit integrator for joints that are too fast for its step.

    Args:
        tree: The vehicle.
        dt: Step [s].
        integrator: Asked for.
        name: Of the vehicle.

    Raises:
        AirworthyError: With the longest step that it can take.
    """
    if integrator != "rk4":
        return
    pole = fastest_pole(tree)
    if dt * pole > EXPLICIT_MAX:
        raise AirworthyError(
            f"The joints of {name!r} have a pole at {pole:.4g} 1/s, too fast for rk4 at a step of {1e3 * dt:.4g} ms: take"
            f" at most {1e3 * EXPLICIT_MAX / pole:.2g} ms, or the integrator {default_integrator(tree, dt)!r}."
        )
