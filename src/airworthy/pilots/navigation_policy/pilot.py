"""Flies a navigation policy to a goal: it decides with every image, ten times a second, and holds its command in between.

It knows its velocity, attitude and rate, and where its goal lies; of obstacles it knows what its image shows, be it a depth
camera's or a LiDAR's, and what its memory kept where it has one. Policies of a depth camera command velocities, those of a
LiDAR accelerations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool
from airworthy.core.errors import AirworthyError
from airworthy.pilots.goal_pilot import OwnWayPilot, check_rate
from airworthy.pilots.navigation_policy.eyes import FlownEye, flown_eye
from airworthy.pilots.navigation_policy.network import NavigationPolicy, read_navigation_policy
from airworthy.pilots.navigation_policy.sight import ACCELERATION, RATE, SPEED, accelerated, commanded, known_state
from airworthy.pilots.pilot import SENSOR, Observation
from airworthy.simulation.config import SimulatorConfig
from airworthy.simulation.simulator import Simulator
from airworthy.trajectories import Course, Trajectory

__all__ = [
    "FlownPolicy",
    "NavigationGoalPilot",
    "NavigationPilot",
    "check_speed",
    "navigation_config",
    "navigation_pilot",
    "read_flown_policy",
]

FARTHEST_M = {"depth_navigation": 8.0, "lidar_navigation": 10.0}
"""A goal that is farther is shown at this distance on the same line [m], by task: training's lie 7 to 10 m from the start,
those of the LiDAR's larger rooms 8 to 13 m; ours."""
FASTEST = 3.0
"""Of a policy that commands accelerations, along a path [m/s]: beyond it its reward fell in training (specification, learning
by reward, 3.2)."""
HOLD_M, FOLLOW_M = 1.0, 1.5
"""Nearer to its goal than the first, which is what training calls there, it holds the place by a plain law, until the goal is
farther than the second [m]; ours."""
_HOLD_GAIN, _HOLD_SPEED = 1.0, 0.5
"""Of that law: velocity per way [1/s], and at most so fast [m/s]; of accelerations the square of the first per way [1/s^2] and
twice the first per velocity [1/s], which does not swing; ours."""
AHEAD_S = 3.0
"""By so much a followed path's point lies ahead that is flown to [s], as of policies that avoid."""
_SPEED_SAMPLES = 200


@dataclass(frozen=True, eq=False)
class FlownPolicy:
    """A policy with what it sees by."""

    policy: NavigationPolicy
    eye: FlownEye

    @property
    def level(self) -> str:
        """Control level of its commands."""
        return "acceleration" if self.accelerates else "velocity"

    @property
    def accelerates(self) -> bool:
        """Whether it commands accelerations."""
        return self.policy.contract.task == "lidar_navigation"


def read_flown_policy(folder: str | Path) -> FlownPolicy:
    """Return the policy of a folder, with its eye.

    Raises:
        AssetError: The folder holds no policy, or not its encoder.
        AirworthyError: It learnt what this pilot does not fly.
    """
    policy = read_navigation_policy(folder)
    options = policy.contract.training.get("options")
    if policy.contract.task == "lidar_navigation" and isinstance(options, dict) and options.get("as_published"):
        raise AirworthyError(
            f"The policy in {str(folder)!r} learnt with accelerations in the world's axes, a defect of the published task, and"
            " this pilot commands them where the vehicle heads: give it one that learnt without --as-published."
        )
    return FlownPolicy(policy, flown_eye(policy.contract, folder))


def navigation_config(policy: FlownPolicy, config: SimulatorConfig) -> SimulatorConfig:
    """Return a simulator's configuration in which the policy's commands mean what they did in training.

    Args:
        policy: That flies.
        config: With the gains that are wanted.
    """
    # Training has accelerations turn with the heading; that is the default, which a user's own configuration may lack.
    return replace(config, control=replace(config.control, acceleration_frame="vehicle")) if policy.accelerates else config


class NavigationPilot:
    """Flies to goals by a navigation policy.

    Args:
        policy: Decides, by what it sees.
        goal: Where to, world [m], (env, 3); a function of times (env,) where it moves.
        speed: Cap of policies that command velocities, (env,) [m/s]; their own is 2 m/s.
    """

    name = "navigation"

    def __init__(self, policy: FlownPolicy, goal: Any, speed: Array):
        self.policy, self._goal, self.speed = policy.policy, goal, np.asarray(speed, np.float64)
        self._eye, self._accelerates, self.level = policy.eye, policy.accelerates, policy.level
        self.observes = ("position", "velocity", "attitude", "rate", SENSOR + self._eye.sensor)
        count = len(self.speed)
        self._memory = self.policy.begin(count)
        self._wanted = np.zeros((count, 4))
        self._heading = np.zeros(count)
        self._number = np.full(count, -1, np.int64)
        self._arrived = np.zeros(count, bool)
        self._time = np.full(count, np.inf)
        self.decisions = np.zeros(count, np.int64)
        """(env,) since the flight began."""

    def goal(self, time: Array) -> Array:
        """Return goals (env, 3) at times (env,)."""
        return np.asarray(self._goal(time) if callable(self._goal) else self._goal, np.float64)

    def command(self, observation: Observation) -> Array:
        """Return velocities [m/s] or accelerations [m/s^2] in the level frame, and yaw rates [rad/s], (env, 4)."""
        sample = observation.sample(self._eye.sensor)
        begun = observation.time < self._time
        self._memory[begun], self._wanted[begun] = 0.0, 0.0
        if begun.any():
            # A heading is asked for by the LiDAR's task alone: here where the goal lay when the flight began.
            way = self.goal(np.asarray(observation.time)) - np.asarray(observation["position"], np.float64)
            self._heading[begun] = np.arctan2(way[begun, 1], way[begun, 0])
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
        farthest = FARTHEST_M[self.policy.contract.task]
        shown = position + way * np.minimum(1.0, farthest / np.maximum(length, 1e-9))[:, None]
        heading = self._heading if self._accelerates else None
        known = known_state(position, velocity, attitude, rate, shown, self._wanted, heading)
        samples = {name: values[new] for name, values in observation.sample(self._eye.sensor).data.items()}
        seen = np.concatenate([known[new].astype(np.float32), self._eye.read(samples)], axis=1)
        action, self._memory[new] = self.policy.act(seen, self._memory[new])
        wanted = np.asarray(action, np.float64)
        if self._accelerates:
            wanted = accelerated(wanted)
        else:
            wanted = commanded(wanted)
            # Slower along the same line; the yaw rate stays, so that it still looks where it flies.
            wanted[:, :3] *= np.minimum(1.0, self.speed[new] / SPEED)[:, None]
        held = self._held(known, length)
        self._wanted[new] = np.where(self._arrived[new, None], held[new], wanted)
        self.decisions[new] += 1

    def _held(self, known: Array, length: Array) -> Array:
        """Return what holds the place near a goal, (env, 4), in the level frame, by what the policy itself is shown."""
        if not self._accelerates:
            near = known[:, :3] * np.minimum(_HOLD_GAIN * length, np.minimum(_HOLD_SPEED, self.speed))[:, None]
            return np.concatenate([near, np.zeros((len(near), 1))], axis=1)
        # Body velocity stands for the level frame's: near a goal the vehicle hardly leans.
        pull = _HOLD_GAIN**2 * known[:, :3] * length[:, None] - 2.0 * _HOLD_GAIN * known[:, 7:10]
        pull *= np.minimum(1.0, ACCELERATION / np.maximum(np.linalg.norm(pull, axis=1), 1e-9))[:, None]
        return np.concatenate([pull, np.clip(_HOLD_GAIN * known[:, 6:7], -_HOLD_SPEED, _HOLD_SPEED)], axis=1)


class NavigationGoalPilot(OwnWayPilot, NavigationPilot):
    """The same, as the flights of `airworthy fly` to a goal ask whoever finds its own way."""

    rate = RATE

    def __init__(self, policy: FlownPolicy, goal: Array, speed: Array):
        super().__init__(policy, goal, speed)
        self._flown = policy

    def configured(self, config: SimulatorConfig) -> SimulatorConfig:
        """Return the simulator that it needs: any that takes commands often enough, in its axes."""
        return navigation_config(self._flown, super().configured(config))


def check_speed(policy: FlownPolicy, speed: float, asked: bool = False) -> None:
    """Refuse to fly faster than a policy flies, or to cap one that commands no speed.

    Args:
        policy: That would fly.
        speed: Largest [m/s].
        asked: It is a cap that was asked for, not a path's own speed.

    Raises:
        AirworthyError: That would be.
    """
    if policy.accelerates and asked:
        raise AirworthyError(
            f"A policy that reads a LiDAR commands accelerations, and a speed of {speed:g} m/s changes nothing: leave --speed"
            " out."
        )
    most = FASTEST if policy.accelerates else SPEED
    if speed > most + 1e-9:
        raise AirworthyError(
            f"It is to fly at up to {speed:.1f} m/s, and a navigation policy commands at most {most:g} m/s: give it a --speed"
            " up to that."
        )


def navigation_pilot(policy: str | Path | FlownPolicy, simulator: Simulator, path: Course | Trajectory) -> NavigationPilot:
    """Return the pilot that flies along a path and around what stands in it: its goal is where the path is three seconds on.

    Args:
        policy: What `read_flown_policy` gave, or its folder.
        simulator: Whose vehicles fly.
        path: Where to; its largest speed is the cap.

    Raises:
        AssetError: The folder holds no policy.
        AirworthyError: It is one that does not fly, the simulator takes commands more rarely than it decides or in other axes,
            or the path is faster than what it flies.
    """
    held = policy if isinstance(policy, FlownPolicy) else read_flown_policy(policy)
    check_rate(simulator.config.control_rate, RATE)
    if navigation_config(held, simulator.config) != simulator.config:
        raise AirworthyError(
            "A policy that reads a LiDAR commands accelerations where the vehicle heads: build the simulator with"
            ' ControlConfig(acceleration_frame="vehicle").'
        )
    trajectory = path.trajectory() if isinstance(path, Course) else path
    speeds = np.linalg.norm(trajectory.sample(np.linspace(0.0, trajectory.duration, _SPEED_SAMPLES)).velocity, axis=-1)
    fastest = float(speeds.max())
    check_speed(held, fastest)
    cap = np.full(simulator.env_count, max(fastest, 0.5))
    return NavigationPilot(held, lambda time: trajectory.sample(time + AHEAD_S).position, cap)
