"""Trackers: pilots that follow a trajectory through one of the built-in control laws.

They look at nothing but the clock; the law inside the simulator's step closes the loop on the true state, as the low-level
autopilot of a vehicle with good state estimation does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayFloat, ArrayLike
from airworthy.core.errors import unknown_name
from airworthy.core.frames import multiply, rotate, rotate_inverse
from airworthy.pilots.pilot import Observation
from airworthy.trajectories import Trajectory
from airworthy.vehicles import Vehicle, hover_trim

__all__ = ["HoverFrame"]

# ---- The frame that is level in hover, for pilots that command thrust and body rates or rotor thrusts -----------------------
#
# A vehicle whose rotors are tilted alike hovers leaning. Laws inside the simulator's step steer the frame that is level then
# (`control.kernel.TRIMMED_LEVELS`); a pilot that decides outside of it reads that frame here, and has its commands turned
# back.


class HoverFrame:
    """Of n vehicles.

    Args:
        vehicles: As their pilot believes them to be.
    """

    def __init__(self, vehicles: Sequence[Vehicle]):
        trims = [hover_trim(item) for item in vehicles]
        self.leans = any(trim.hovers and trim.tilt > 0.0 for trim in trims)
        """Whether any of them does; where none does, nothing here changes a bit."""
        level = (0.0, 0.0, 0.0, 1.0)
        self._turn = np.array([trim.attitude if trim.hovers else level for trim in trims])
        self.up = np.array([trim.up if trim.hovers else (0.0, 0.0, 1.0) for trim in trims])
        """Direction of the rotors' force in the body frame, (n, 3)."""

    def attitude(self, body: ArrayLike) -> Array:
        """Return the attitude of the frame, of the body's: quaternions x, y, z, w, frame to world, (n, 4)."""
        body = np.asarray(body, float)
        return multiply(body, self._turn * [-1.0, -1.0, -1.0, 1.0]) if self.leans else body

    def rate(self, body: ArrayLike) -> Array:
        """Return the angular velocity in the frame, of that in the body [rad/s], (n, 3)."""
        body = np.asarray(body, float)
        return rotate(self._turn, body) if self.leans else body

    def to_body(self, command: Array) -> Array:
        """Return thrust along body z [N] and body rates [rad/s], of force along the frame's z and rates in the frame, (n,
        4)."""
        if not self.leans:
            return command
        return np.concatenate([command[:, :1] * self.up[:, 2:], rotate_inverse(self._turn, command[:, 1:])], axis=1)


# -----------------------------------------------------------------------------------------------------------------------------

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

    def command(self, observation: Observation) -> ArrayFloat:
        """Return the reference at each environment's time, (env, width)."""
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
    """Return built-in pilots and what they do."""
    return {name: text for name, (_, text) in _LAWS.items()}


def tracker_level(name: str) -> str:
    """Return the control level of a tracker's law."""
    return _LAWS[name][0]


def tracker(name: str, trajectory: Trajectory) -> TrackerPilot:
    """Return a tracker by name.

    Raises:
        UnknownNameError: If there is none of this name.
    """
    return TrackerPilot(trajectory, name)
