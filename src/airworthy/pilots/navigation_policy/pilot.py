"""Flies a navigation policy to a goal: it decides with every image, ten times a second, and holds its command in between.

It knows its velocity, attitude and rate, and where its goal lies; of obstacles it knows what its image shows, and what its
memory kept where it has one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool
from airworthy.core.errors import AirworthyError
from airworthy.pilots.goal_pilot import OwnWayPilot, check_rate
from airworthy.pilots.navigation_policy.network import NavigationPolicy, read_navigation_policy
from airworthy.pilots.navigation_policy.sight import (
    CAMERA,
    RATE,
    SPEED,
    commanded,
    known_state,
    navigation_camera,
    pooled_image,
)
from airworthy.pilots.pilot import SENSOR, Observation
from airworthy.simulation.sensor_state import MountedSensor
from airworthy.simulation.simulator import Simulator
from airworthy.trajectories import Course, Trajectory

__all__ = [
    "FARTHEST_M",
    "NavigationGoalPilot",
    "NavigationPilot",
    "check_speed",
    "navigation_pilot",
    "navigation_sensors",
    "read_flown_policy",
]

FARTHEST_M = 8.0
"""A goal that is farther is shown at this distance on the same line [m]: training's lie 7 to 10 m from the start; ours."""
HOLD_M, FOLLOW_M = 1.0, 1.5
"""Nearer to its goal than the first, which is what training calls there, it holds the place by a plain law, until the goal is
farther than the second [m]; ours."""
_HOLD_GAIN, _HOLD_SPEED = 1.0, 0.5
"""Of that law: velocity per way [1/s], and at most so fast [m/s]; ours."""
AHEAD_S = 3.0
"""By so much a followed path's point lies ahead that is flown to [s], as of policies that avoid."""
_SPEED_SAMPLES = 200


def read_flown_policy(folder: str | Path) -> NavigationPolicy:
    """Return the policy of a folder, if it is one that flies.

    Raises:
        AssetError: The folder holds no policy.
        AirworthyError: It reads what this pilot does not see.
    """
    policy = read_navigation_policy(folder)
    c = policy.contract
    if c.task != "depth_navigation" or c.image != "pooled":
        seen = "a LiDAR" if c.task != "depth_navigation" else "the latent of an encoder"
        raise AirworthyError(
            f"The policy in {str(folder)!r} reads {seen}, and this pilot sees pooled depth alone: give it one of `airworthy"
            " train depth_navigation --image pooled`."
        )
    return policy


def navigation_sensors() -> dict[str, MountedSensor]:
    """Return what the pilot needs mounted, by name."""
    return {CAMERA: MountedSensor(navigation_camera())}


class NavigationPilot:
    """Flies to goals by a navigation policy.

    Args:
        policy: Decides.
        goal: Where to, world [m], (env, 3); a function of times (env,) where it moves.
        speed: Cap, (env,) [m/s]; the policy's own is 2 m/s.
    """

    name = "navigation"
    level = "velocity"
    observes = ("position", "velocity", "attitude", "rate", SENSOR + CAMERA)

    def __init__(self, policy: NavigationPolicy, goal: Any, speed: Array):
        self.policy, self._goal, self.speed = policy, goal, np.asarray(speed, np.float64)
        count = len(self.speed)
        self._memory = policy.begin(count)
        self._wanted = np.zeros((count, 4))
        self._number = np.full(count, -1, np.int64)
        self._arrived = np.zeros(count, bool)
        self._time = np.full(count, np.inf)
        self.decisions = np.zeros(count, np.int64)
        """(env,) since the flight began."""

    def goal(self, time: Array) -> Array:
        """Return goals (env, 3) at times (env,)."""
        return np.asarray(self._goal(time) if callable(self._goal) else self._goal, np.float64)

    def command(self, observation: Observation) -> Array:
        """Return velocities in the level frame [m/s] and yaw rates [rad/s], (env, 4)."""
        sample = observation.sample(CAMERA)
        begun = observation.time < self._time
        self._memory[begun], self._wanted[begun] = 0.0, 0.0
        self._arrived[begun], self.decisions[begun] = False, 0
        new = sample.valid & (begun | (sample.number != self._number))
        self._time, self._number = np.array(observation.time), np.where(sample.valid, sample.number, -1)
        if new.any():
            self._decide(observation, new)
        return self._wanted.copy()

    def _decide(self, observation: Observation, new: ArrayBool) -> None:
        position, velocity, attitude, rate = (
            np.asarray(observation[name], np.float64) for name in ("position", "velocity", "attitude", "rate")
        )
        way = self.goal(np.asarray(observation.time)) - position
        length = np.linalg.norm(way, axis=1)
        self._arrived = length < np.where(self._arrived, FOLLOW_M, HOLD_M)
        shown = position + way * np.minimum(1.0, FARTHEST_M / np.maximum(length, 1e-9))[:, None]
        known = known_state(position, velocity, attitude, rate, shown, self._wanted)
        image = pooled_image(observation.sample(CAMERA).data["depth"][new])
        seen = np.concatenate([known[new].astype(np.float32), image], axis=1)
        action, self._memory[new] = self.policy.act(seen, self._memory[new])
        wanted = commanded(np.asarray(action, np.float64))
        # Slower along the same line; the yaw rate stays, so that it still looks where it flies.
        wanted[:, :3] *= np.minimum(1.0, self.speed[new] / SPEED)[:, None]
        # In the level frame, by the direction that the policy itself is shown.
        near = known[:, :3] * np.minimum(_HOLD_GAIN * length, np.minimum(_HOLD_SPEED, self.speed))[:, None]
        held = np.concatenate([near, np.zeros((len(near), 1))], axis=1)
        self._wanted[new] = np.where(self._arrived[new, None], held[new], wanted)
        self.decisions[new] += 1


class NavigationGoalPilot(OwnWayPilot, NavigationPilot):
    """The same, as the flights of `airworthy fly` to a goal ask whoever finds its own way."""

    rate = RATE


def check_speed(speed: float) -> None:
    """Refuse to fly faster than a policy commands.

    Raises:
        AirworthyError: That would be.
    """
    if speed > SPEED + 1e-9:
        raise AirworthyError(
            f"It is to fly at up to {speed:.1f} m/s, and a navigation policy commands at most {SPEED:g} m/s: give it a --speed"
            " up to that."
        )


def navigation_pilot(policy: str | Path | NavigationPolicy, simulator: Simulator, path: Course | Trajectory) -> NavigationPilot:
    """Return the pilot that flies along a path and around what stands in it: its goal is where the path is three seconds on.

    Args:
        policy: What `read_navigation_policy` gave, or its folder.
        simulator: Whose vehicles fly.
        path: Where to; its largest speed is the cap.

    Raises:
        AssetError: The folder holds no policy.
        AirworthyError: It is one that does not fly, the simulator takes commands more rarely than it decides, or the path is
            faster than what it commands.
    """
    held = policy if isinstance(policy, NavigationPolicy) else read_flown_policy(policy)
    check_rate(simulator.config.control_rate, RATE)
    trajectory = path.trajectory() if isinstance(path, Course) else path
    speeds = np.linalg.norm(trajectory.sample(np.linspace(0.0, trajectory.duration, _SPEED_SAMPLES)).velocity, axis=-1)
    fastest = float(speeds.max())
    check_speed(fastest)
    cap = np.full(simulator.env_count, max(fastest, 0.5))
    return NavigationPilot(held, lambda time: trajectory.sample(time + AHEAD_S).position, cap)
