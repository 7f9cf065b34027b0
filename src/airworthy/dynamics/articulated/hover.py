"""What the joints of a hovering vehicle are loaded with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from airworthy.core.arrays import Array
from airworthy.dynamics.articulated.equations import ZERO, accelerations, kinematics, rotor_loads
from airworthy.dynamics.articulated.laws import Torque, torques
from airworthy.dynamics.articulated.parameters import default_target
from airworthy.dynamics.articulated.tree import JointTree
from airworthy.vehicles.trim import Trim

__all__ = ["joint_residual"]


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
