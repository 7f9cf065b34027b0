"""A policy of any learning task as a pilot: it holds the target where the reference is now, or follows the path ahead."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayF32, ArrayFloat, ArrayIndex
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import multiply, to_matrix
from airworthy.pilots.decision_clock import DecisionClock
from airworthy.pilots.pilot import Observation
from airworthy.pilots.task_policy.contract import TaskContract, check_task_vehicle, read_task_folder
from airworthy.pilots.task_policy.network import network_output
from airworthy.simulation.simulator import Simulator
from airworthy.trajectories import Course, Trajectory

__all__ = ["TaskPilot", "TaskPolicy", "read_task_policy", "task_pilot"]


@dataclass(frozen=True)
class TaskPolicy:
    """A contract and the network that it describes."""

    contract: TaskContract
    weights: tuple[ArrayF32, ...]
    """Weight (rows, columns) and bias (rows,) of each layer, first to last."""

    def action(self, seen: ArrayFloat) -> ArrayF32:
        """Return actions within [-1, 1], (env, actions), float32, of observations (env, observed).

        Raises:
            AirworthyError: They have another shape.
        """
        x = np.asarray(seen, np.float32)
        if x.ndim != 2 or x.shape[1] != self.contract.widths[0]:
            raise AirworthyError(f"A policy got observations of shape {x.shape}; expected (env, {self.contract.widths[0]}).")
        return network_output(self.weights, x, self.contract.activation, self.contract.output)


def read_task_policy(folder: str | Path) -> TaskPolicy:
    """Return the policy of a folder that `airworthy train TASK` wrote.

    Raises:
        AssetError: A file is missing, too large, damaged, of another kind, or not the one that the contract names.
    """
    contract, weights = read_task_folder(folder)
    return TaskPolicy(contract, tuple(weights))


class TaskPilot:
    """Flies a task's policy along one trajectory in every environment.

    A task that holds a place sees the state relative to the reference's position, velocity and heading of now, as if that were
    at rest at the origin; what it commands as a velocity is added to the reference's. A task that follows a path sees the
    reference's points ahead. What it remembers is each flight's own and begins anew with the flight.

    Args:
        policy: Decides.
        trajectory: What to follow; its end pose is held.
        env_count: Environments.
        rotor_count: Of the vehicles.
    """

    name = "policy"

    def __init__(self, policy: TaskPolicy, trajectory: Trajectory, env_count: int, rotor_count: int):
        self.policy, self.trajectory = policy, trajectory
        c = policy.contract
        self.level = c.level
        self._root = "root_" if c.joints else ""
        own = (f"{self._root}position", f"{self._root}velocity", "attitude", "rate")
        joints = ("joint", "joint_rate") if c.joints else ()
        self.observes = (*own, *(("rotor_speed",) if c.reads_rotors else ()), *joints)
        self._clock = DecisionClock(c.rate, env_count)
        state = 13 + rotor_count + 2 * c.joints
        self._rotors = rotor_count
        self._past, self._memory = np.zeros((c.actions, env_count)), np.zeros((len(c.memory), env_count))
        self._before, self._age = np.zeros((state, env_count)), np.zeros(env_count)
        self._wanted = np.zeros((env_count, len(c.command.results)))

    @property
    def joint_rates(self) -> Array | None:
        """Rates that joints are to turn at, (env, joints) [rad/s]; None of a policy that moves none."""
        return self._wanted[:, self.policy.contract.wanted :].copy() if self.policy.contract.moves_joints else None

    @property
    def action(self) -> Array:
        """(env, actions) in force, within -1 to 1."""
        return self._past.T.copy()

    def command(self, observation: Observation) -> Array:
        """Return commands of the level, (env, numbers)."""
        begun, due = self._clock.at(observation.time)
        c = self.policy.contract
        self._past[:, begun] = np.array(c.hover)[:, None]
        self._memory[:, begun] = np.array(c.memory)[:, None]
        self._age[begun] = 0.0
        if due.any():
            self._decide(observation, begun, due)
        return self._wanted[:, : c.wanted].copy()

    def _decide(self, observation: Observation, begun: ArrayBool, due: ArrayBool) -> None:
        c, at = self.policy.contract, np.flatnonzero(due)
        state, moving = self._state(observation, at)
        points = self._points(observation.time[at])
        nothing = np.zeros((c.actions, len(at)))

        def read(first: Array, after: Array, action: Array) -> dict[str, ArrayFloat]:
            held = {"past": self._past[:, at], "memory": self._memory[:, at], "age": self._age[None, at]}
            return {"before": first, "state": after, "action": action, "points": points, **held}

        going = ~begun[at]
        if going.any() and len(c.memory):
            # What is remembered of the decision before: the action in force took the flight from there to here.
            kept = c.remember.run(**read(self._before[:, at], state, self._past[:, at]))
            self._memory[:, at] = np.where(going, kept, self._memory[:, at])
        self._age[at] += going
        seen = c.observe.run(**read(state, state, nothing))
        action = self.policy.action(seen.T).T.astype(float)
        wanted = c.command.run(**read(state, state, action))
        if c.level == "velocity" and not c.path:
            wanted[:3] += moving
        self._past[:, at], self._before[:, at], self._wanted[at] = action, state, wanted.T

    def _state(self, observation: Observation, at: ArrayIndex) -> tuple[Array, Array]:
        """State as the task has it, (13 + rotors, flights), and the target's velocity in the vehicle's frame, (3, flights)."""
        names = (f"{self._root}position", f"{self._root}velocity", "attitude", "rate")
        position, velocity, attitude, rate = (np.asarray(observation[name], float)[at] for name in names)
        rotors = np.zeros((len(at), self._rotors))
        if "rotor_speed" in self.observes:
            rotors = np.asarray(observation["rotor_speed"], float)[at]
        joints = [np.asarray(observation[name], float)[at] for name in ("joint", "joint_rate")] if self._root else []
        moving = np.zeros((3, len(at)))
        if not self.policy.contract.path:
            flat = self.trajectory.sample(observation.time[at])
            # World to target: a turn by minus the heading about z.
            turn = np.zeros_like(attitude)
            turn[:, 2], turn[:, 3] = -np.sin(0.5 * flat.yaw), np.cos(0.5 * flat.yaw)
            forward = to_matrix(attitude)[:, :, 0]
            heading = np.arctan2(forward[:, 1], forward[:, 0])
            moving = _turned(flat.velocity, -heading).T
            position = _turned(position - flat.position, -flat.yaw)
            velocity = _turned(velocity - flat.velocity, -flat.yaw)
            attitude = multiply(turn, attitude)
        return np.concatenate([position, velocity, attitude, rate, rotors, *joints], axis=1).T, moving

    def _points(self, time: ArrayFloat) -> Array:
        """Points of the reference ahead, (3 points, flights)."""
        ahead = [np.asarray(self.trajectory.sample(time + t).position, float) for t in self.policy.contract.path]
        return np.concatenate(ahead, axis=1).T if ahead else np.zeros((0, len(time)))


def _turned(x: ArrayFloat, angle: ArrayFloat) -> Array:
    """Vectors (flights, 3) turned about z by angles [rad] (flights,)."""
    c, s = np.cos(angle), np.sin(angle)
    return np.stack([c * x[:, 0] - s * x[:, 1], s * x[:, 0] + c * x[:, 1], x[:, 2]], axis=1)


def task_pilot(policy: str | Path | TaskPolicy, simulator: Simulator, path: Course | Trajectory) -> TaskPilot:
    """Return the pilot of a task's policy for a simulator's vehicles.

    Args:
        policy: What `read_task_policy` gave, or its folder.
        simulator: Whose vehicles fly, built for the policy's level and controller.
        path: What to follow.

    Raises:
        AssetError: The folder holds no policy.
        AirworthyError: A vehicle is not one to which its commands mean the same, or the simulator takes commands more rarely
            than it decides, or of another level.
    """
    held = policy if isinstance(policy, TaskPolicy) else read_task_policy(policy)
    config, c = simulator.config, held.contract
    if config.level != c.level:
        raise AirworthyError(f"The policy commands {c.level!r}, the simulator takes {config.level!r}: build it for that level.")
    if config.control_rate < c.rate - 1e-6:
        raise AirworthyError(
            f"The policy decides at {c.rate:g} Hz, the simulator takes commands at {config.control_rate:g} Hz: raise it."
        )
    for vehicle in {id(item): item for item in simulator.vehicles}.values():
        check_task_vehicle(c, vehicle)
    trajectory = path.trajectory() if isinstance(path, Course) else path
    return TaskPilot(held, trajectory, simulator.env_count, simulator.rotor_count)
