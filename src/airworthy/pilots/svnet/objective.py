"""What SV-Net is told of its course."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from airworthy.trajectories import Trajectory, kinematic_state

__all__ = ["objective_of"]

RATE = 20.0
"""Samples of a path per second, between which its quaternions keep their sign."""


def objective_of(path: Trajectory, gravity: float = 9.81) -> NDArray[np.float64]:
    """What the policy is told of its course, (18,): duration, displacement, velocities and quaternions of start and end; z up.

    Source: StanfordMSL/SousVide, synthesize_helper.py, by way of the specification's section 5.
    """
    # All of the path, so that the sign of the last quaternion is the one that is reached by flying it.
    sample = path.sample(np.linspace(0.0, path.duration, max(2, round(path.duration * RATE) + 1)))
    attitude = kinematic_state(sample, gravity).attitude
    moved = sample.position[-1] - sample.position[0]
    return np.concatenate([[path.duration], moved, sample.velocity[0], sample.velocity[-1], attitude[0], attitude[-1]])
