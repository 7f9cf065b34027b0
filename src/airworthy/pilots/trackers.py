"""Trackers: pilots that follow a trajectory through one of the built-in control laws.

They look at nothing but the clock; the law inside the simulator's step closes the loop on the true state, as the low-level
autopilot of a vehicle with good state estimation does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airworthy.core.errors import unknown_name
from airworthy.pilots.pilot import Array, Observation
from airworthy.trajectories import Trajectory

_LAWS = {
    "geometric": ("tracking", "geometric control on SE(3) with flatness feed-forward, any airframe"),
    "mellinger": ("tracking:mellinger", "the Mellinger law in SI at the airframe's own bandwidth, any airframe"),
    "crazyflie": ("tracking:crazyflie", "the Mellinger law as the Crazyflie firmware runs it, motor commands and all"),
    "position": ("position", "position set-points and yaw only, no feed-forward"),
    "velocity": ("velocity_steering", "the trajectory's velocity and yaw only: drifts, a lower bound"),
}


@dataclass(frozen=True)
class TrackerPilot:
    """Follows one trajectory in every environment.

    Attributes:
        trajectory: What to follow; its end pose is held.
        name: Law, see `pilot_names`.
    """

    trajectory: Trajectory
    name: str = "geometric"
    observes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.name not in _LAWS:
            raise unknown_name("pilot", self.name, _LAWS)

    @property
    def level(self) -> str:
        """Control level of the law."""
        return tracker_level(self.name)

    def command(self, observation: Observation) -> Array:
        """The reference at each environment's time, (env, width)."""
        flat = self.trajectory.sample(observation.time)
        yaw = flat.yaw[:, None]
        if self.level == "position":
            return np.concatenate([flat.position, yaw], axis=1)
        if self.level == "velocity_steering":
            c, s = np.cos(flat.yaw), np.sin(flat.yaw)
            vx, vy, vz = flat.velocity.T
            return np.stack([c * vx + s * vy, c * vy - s * vx, vz, flat.yaw], axis=1)
        parts = (flat.position, flat.velocity, flat.acceleration, flat.jerk, yaw, flat.yaw_rate[:, None])
        return np.concatenate(parts, axis=1)


def pilot_names() -> dict[str, str]:
    """Built-in pilots and what they do."""
    return {name: text for name, (_, text) in _LAWS.items()}


def tracker_level(name: str) -> str:
    """Control level of a tracker's law."""
    return _LAWS[name][0]


def tracker(name: str, trajectory: Trajectory) -> TrackerPilot:
    """A tracker by name.

    Raises:
        UnknownNameError: If there is none of this name.
    """
    return TrackerPilot(trajectory, name)
