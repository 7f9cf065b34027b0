"""A learnt motor policy as a pilot: position, velocity, attitude and body rate in, a command for each rotor out."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from airworthy.core.arrays import Array, ArrayBool
from airworthy.core.errors import AirworthyError
from airworthy.pilots.motor_policy.contract import check_vehicle
from airworthy.pilots.motor_policy.network import MotorPolicy, motor_observation, read_motor_policy
from airworthy.pilots.pilot import Observation
from airworthy.simulation.simulator import Simulator
from airworthy.trajectories import Course, Trajectory

__all__ = ["MotorPilot", "motor_pilot"]

# Ours: the clock is a sum of physics steps, and rounds; a tick missed by rounding would come a whole period late.
_EARLY = 1e-3
"""Of a period: by as much the clock of a tick may be early."""


class MotorPilot:
    """Follows one trajectory in every environment: its target is where the trajectory is at the present time.

    It decides at the policy's rate and holds its command in between. What it remembers, its past actions, is each flight's
    own, and begins anew with the flight.

    Args:
        policy: Decides.
        trajectory: What to follow; its end pose is held.
        env_count: Environments.
    """

    name = "policy"
    level = "rotor_speed"
    observes = ("position", "velocity", "attitude", "rate")

    def __init__(self, policy: MotorPolicy, trajectory: Trajectory, env_count: int):
        self.policy, self.trajectory = policy, trajectory
        contract = policy.contract
        # At least one, so that the action that is held has a place.
        self._past = np.tile(contract.hover, (env_count, max(1, contract.history), 1))
        self._tick = np.full(env_count, -1, np.int64)
        # Any time is earlier: the first call begins a flight everywhere.
        self._time = np.full(env_count, np.inf)
        self.decisions = np.zeros(env_count, np.int64)
        """(env,) since the flight began."""

    @property
    def action(self) -> Array:
        """(env, rotors) in force, within -1 to 1."""
        return np.array(self._past[:, 0])

    def command(self, observation: Observation) -> Array:
        """Return states of the rotors [rad/s; N where the vehicle's motor state is thrust], (env, rotors)."""
        time = observation.time
        begun = time < self._time
        self._past[begun], self.decisions[begun] = self.policy.contract.hover, 0
        tick = np.floor(time * self.policy.contract.rate + _EARLY).astype(np.int64)
        new = begun | (tick != self._tick)
        self._time, self._tick = np.array(time), tick
        if new.any():
            self._decide(observation, new)
        return self.policy.command(self._past[:, 0])

    def _decide(self, observation: Observation, new: ArrayBool) -> None:
        flat = self.trajectory.sample(observation.time)
        seen = motor_observation(
            observation["position"] - flat.position,
            observation["velocity"] - flat.velocity,
            observation["attitude"],
            observation["rate"],
            flat.yaw,
        )
        history = self.policy.contract.history
        past = self._past[:, :history].reshape(len(seen), -1)
        action = self.policy.action(np.concatenate([seen, past], axis=1)[new])
        self._past[new, 1:] = self._past[new, :-1]
        self._past[new, 0] = action
        self.decisions[new] += 1


def motor_pilot(policy: str | Path | MotorPolicy, simulator: Simulator, path: Course | Trajectory) -> MotorPilot:
    """Return the pilot of a policy for a simulator's vehicles.

    Args:
        policy: What `read_motor_policy` gave, or its folder.
        simulator: Whose vehicles fly.
        path: What to follow.

    Raises:
        AssetError: The folder holds no policy.
        AirworthyError: A vehicle has other rotors than the policy's, or the simulator takes commands more rarely than it
            decides.
    """
    held = policy if isinstance(policy, MotorPolicy) else read_motor_policy(policy)
    if (rate := simulator.config.control_rate) < held.contract.rate - 1e-6:
        raise AirworthyError(
            f"The policy decides at {held.contract.rate:g} Hz, the simulator takes commands at {rate:g} Hz: raise it."
        )
    # A fleet is mostly one record many times: each is looked at once.
    for vehicle in {id(item): item for item in simulator.vehicles}.values():
        check_vehicle(held.contract, vehicle)
    trajectory = path.trajectory() if isinstance(path, Course) else path
    return MotorPilot(held, trajectory, simulator.env_count)
