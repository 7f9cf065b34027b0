"""A learnt motor policy as a pilot: position, velocity, attitude and body rate in, a command for each rotor out.

A motor policy's network: small layers on NumPy, the same bits alone and in any batch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayF32, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import to_matrix
from airworthy.pilots.decision_clock import DecisionClock
from airworthy.pilots.motor_policy.contract import (
    INPUTS,
    OBSERVED,
    MotorContract,
    check_vehicle,
    commanded_states,
    read_motor_folder,
    vehicle_digest,
)
from airworthy.pilots.motor_policy.quadrotor import QuadrotorTerms
from airworthy.pilots.pilot import Observation
from airworthy.pilots.task_policy.network import network_output, recurrent_output
from airworthy.simulation.simulator import Simulator
from airworthy.trajectories import Course, Trajectory
from airworthy.vehicles import Vehicle

__all__ = ["MotorPilot", "MotorPolicy", "motor_observation", "motor_pilot", "read_motor_policy"]


_SCALES = tuple(port[4] for port in INPUTS)


@dataclass(frozen=True)
class MotorPolicy:
    """A contract and the network that it describes."""

    contract: MotorContract
    weights: tuple[ArrayF32, ...]
    """Weight (rows, columns) and bias (rows,) of each layer, first to last."""

    def action(self, observed: ArrayLike) -> ArrayF32:
        """Return actions within -1 to 1, (env, rotors), float32; of one that remembers, those of a flight's first decision.

        Args:
            observed: (env, `MotorContract.observed`): of `motor_observation`, then past actions, the newest first.

        Raises:
            AirworthyError: It has another shape.
        """
        return self.decide(observed, self.remembered(len(np.asarray(observed))))[0]

    def remembered(self, env_count: int) -> ArrayF32:
        """Return what flights remember before their first decision, (env, memory)."""
        return np.zeros((env_count, self.contract.hidden[0] if self.contract.memory else 0), np.float32)

    def decide(self, observed: ArrayLike, memory: ArrayF32) -> tuple[ArrayF32, ArrayF32]:
        """Return actions within -1 to 1, (env, rotors), float32, and what is remembered then, (env, memory).

        Args:
            observed: As of `action`.
            memory: Before, (env, memory).

        Raises:
            AirworthyError: It has another shape.
        """
        x = np.asarray(observed, np.float32)
        if x.ndim != 2 or x.shape[1] != self.contract.observed:
            raise AirworthyError(f"A policy got observations of shape {x.shape}; expected (env, {self.contract.observed}).")
        return recurrent_output(self.weights, x, memory) if self.contract.memory else (network_output(self.weights, x), memory)

    def fitted(self, vehicle: Vehicle) -> MotorPolicy:
        """Return the policy as one of this vehicle alone; it is the same where it learnt to fly just one.

        Raises:
            AirworthyError: The vehicle is not of the family that the policy flies.
        """
        c = self.contract
        if not c.family:
            return self
        terms = QuadrotorTerms.of(vehicle, c.band)
        limits = tuple(zip(terms.low.tolist(), terms.high.tolist(), strict=True))
        own = replace(
            c, family="", vehicle=vehicle.name, limits=limits, motor_state=vehicle.motor_state, digest=vehicle_digest(vehicle)
        )
        return MotorPolicy(own, tuple(terms.fitted(self.weights)))

    def command(self, action: ArrayLike) -> Array:
        """Return rotor states [unit of the contract] that actions (env, rotors) command."""
        low, high = np.array(self.contract.limits).T
        return commanded_states(np.asarray(action, float), low, high, self.contract.action)


def motor_observation(
    position_error: ArrayLike, velocity_error: ArrayLike, attitude: ArrayLike, rate: ArrayLike, yaw: ArrayLike
) -> Array:
    """Return what a policy sees before its past actions, (env, `OBSERVED`).

    Args:
        position_error: Position minus the target's, world [m], (env, 3).
        velocity_error: Velocity minus the target's, world [m/s], (env, 3).
        attitude: Quaternions x, y, z, w, body to world, (env, 4).
        rate: Body rate, body frame [rad/s], (env, 3).
        yaw: Heading of the target, from world x [rad], (env,).
    """
    c, s = np.cos(yaw), np.sin(yaw)
    # World to target: a turn by minus the heading about z.
    p, v = (_turned(np.asarray(x, float), c, s) for x in (position_error, velocity_error))
    columns = np.swapaxes(to_matrix(attitude), -1, -2)
    axes = [_turned(columns[:, k], c, s) for k in range(3)]
    parts = (p, v, np.concatenate(axes, axis=1), np.asarray(rate, float))
    seen = np.concatenate([scale * part for scale, part in zip(_SCALES, parts, strict=True)], axis=1)
    assert seen.shape[1] == OBSERVED
    return seen


def _turned(x: Array, c: Array, s: Array) -> Array:
    return np.stack([c * x[:, 0] + s * x[:, 1], c * x[:, 1] - s * x[:, 0], x[:, 2]], axis=1)


def read_motor_policy(folder: str | Path) -> MotorPolicy:
    """Return the policy of a folder that `airworthy train hover` wrote.

    Raises:
        AssetError: A file is missing, too large, damaged, of another kind, or not the one that the contract names.
    """
    contract, weights = read_motor_folder(folder)
    return MotorPolicy(contract, tuple(weights))


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
        self._memory = policy.remembered(env_count)
        self._clock = DecisionClock(contract.rate, env_count)
        self.decisions = np.zeros(env_count, np.int64)
        """(env,) since the flight began."""

    @property
    def action(self) -> Array:
        """(env, rotors) in force, within -1 to 1."""
        return np.array(self._past[:, 0])

    def command(self, observation: Observation) -> Array:
        """Return states of the rotors [rad/s; N where the vehicle's motor state is thrust], (env, rotors)."""
        begun, new = self._clock.at(observation.time)
        self._past[begun], self._memory[begun], self.decisions[begun] = self.policy.contract.hover, 0.0, 0
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
        action, self._memory[new] = self.policy.decide(np.concatenate([seen, past], axis=1)[new], self._memory[new])
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
    fleet = list({id(item): item for item in simulator.vehicles}.values())
    for vehicle in fleet:
        check_vehicle(held.contract, vehicle)
    if held.contract.family:
        if any(vehicle != fleet[0] for vehicle in fleet):
            raise AirworthyError("This policy is fitted to the vehicle that flies: fly different vehicles one after the other.")
        held = held.fitted(fleet[0])
    trajectory = path.trajectory() if isinstance(path, Course) else path
    return MotorPilot(held, trajectory, simulator.env_count)
