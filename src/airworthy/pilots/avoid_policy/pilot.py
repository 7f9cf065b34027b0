"""Flies an avoiding policy: its network on NumPy, and the pilot around it.

The pilot decides when its camera gives an image, 15 times a second, and holds the acceleration in between. It knows its
velocity and attitude, and where its goal lies; of obstacles it knows what its image shows and what its memory kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayF32
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import to_matrix, wrap_angle
from airworthy.pilots.avoid_policy.contract import GAIN, AvoidContract, read_avoid_folder, tensor_shapes
from airworthy.pilots.avoid_policy.fleet import (
    FEATURES,
    HISTORY,
    HISTORY_ROW,
    KnownVehicles,
    given_by_throttle,
    history_row,
    identified,
    ratio_of,
)
from airworthy.pilots.avoid_policy.sight import CAMERA, RATE, image_input, pooled, turned
from airworthy.pilots.goal_pilot import OwnWayPilot, check_rate
from airworthy.pilots.pilot import SENSOR, Observation
from airworthy.simulation.sensor_state import Sample
from airworthy.simulation.simulator import Simulator
from airworthy.trajectories import Course, Trajectory
from airworthy.vehicles import Vehicle

__all__ = [
    "GRAVITY",
    "LEAST_LIFT",
    "THRUST_MAX",
    "TURN",
    "AvoidPilot",
    "AvoidPolicy",
    "avoid_pilot",
    "limited",
    "read_avoid_policy",
    "towards",
]

GRAVITY = 9.81
THRUST_MAX = 30.0
"""Longest thrust that is asked for, per mass [m/s^2]: of the vehicle that is flown, four fifths of what it has."""
LEAST_LIFT = 3.0
"""Least vertical part of it [m/s^2]: nobody flies head down."""
TURN = 5.0
"""Weight of the present heading against the wish, each decision: it turns to the goal within about six (specification 7.2)."""
_SLOPE = np.float32(0.05)
"""Of the leaky rectifier."""
HOLD_M, FOLLOW_M = 1.0, 2.0
"""Nearer to its goal than the first it holds the place by a plain law, until the goal is farther than the second: flights of
training are given the next goal at 2 m, and nobody learnt to stop; ours [m]."""
_HOLD_GAINS = 2.0, 2.8
"""Of that law: of the way to the goal [1/s^2] and of velocity [1/s], critically damped."""
_YAW_GAIN, _YAW_RATE_MAX = 6.0, 6.0
"""Of the loop that turns the vehicle to the heading [1/s], and its largest rate [rad/s]; ours."""


def limited(asked: Any, ops: Any) -> Any:
    """Return an acceleration [m/s^2], (env, 3), whose thrust a vehicle gives: at most `THRUST_MAX`, at least `LEAST_LIFT` up.

    Args:
        asked: Net of gravity, world, (env, 3).
        ops: The module of arrays: torch or NumPy.
    """
    lift = ops.clip(asked[:, 2:3] + GRAVITY, LEAST_LIFT, THRUST_MAX)
    across = asked[:, 0:2]
    length = ops.sqrt((across * across).sum(1, keepdims=True) + 1e-12)
    # Height first: what is left of the thrust goes sideways.
    room = ops.sqrt(ops.clip(THRUST_MAX * THRUST_MAX - lift * lift, 1e-6, THRUST_MAX * THRUST_MAX))
    kept = across * ops.clip(room / length, 0.0, 1.0)
    return ops.concatenate([kept, lift - GRAVITY], 1)


def towards(goal: Array, position: Array, speed: Array) -> tuple[Array, Array]:
    """Return wanted velocity [m/s] and direction, (env, 3) each: to the goal, at most so fast.

    Args:
        goal: World [m], (env, 3).
        position: World [m], (env, 3).
        speed: Cap [m/s], (env,).
    """
    way = goal - position
    length = np.sqrt((way * way).sum(1, keepdims=True))
    direction = way / np.maximum(length, 0.1)
    return direction * np.minimum(length, speed[:, None]), direction


@dataclass(frozen=True)
class AvoidPolicy:
    """A contract and the network that it describes."""

    contract: AvoidContract
    weights: Mapping[str, ArrayF32]
    """By the names of `tensor_shapes`."""

    def __post_init__(self) -> None:
        for name, shape in tensor_shapes(self.contract).items():
            if name not in self.weights or self.weights[name].shape != shape:
                raise AirworthyError(f"An avoiding policy lacks the tensor {name!r} of shape {shape}.")

    def told(self) -> AvoidPolicy:
        """Return the same policy, told its vehicle instead of identifying it; what is told nothing, or is told, as it is."""
        fleet = self.contract.fleet
        if fleet is None or fleet.condition != "identified":
            return self
        return AvoidPolicy(replace(self.contract, fleet=replace(fleet, condition="told")), self.weights)

    def decide(self, depth: ArrayF32, state: Array, memory: ArrayF32) -> tuple[ArrayF32, ArrayF32]:
        """Return outputs (env, 6) and the memory after them (env, hidden).

        Args:
            depth: Of `sight.pooled`, (env, 192) [m].
            state: (env, 10), see `contract.STATE`; with features of the vehicles behind it, where the policy has them.
            memory: Before, (env, hidden); zero at a flight's beginning.
        """
        w, n = self.weights, self.contract.hidden
        image = image_input(depth, np.clip).astype(np.float32)
        if self.contract.blind:
            image = np.zeros_like(image)
        seen = _leaky(_product(w["image.weight"], image, w["image.bias"]) + _product(w["state.weight"], state, None))
        new, old = _product(w["input.weight"], seen, w["input.bias"]), _product(w["memory.weight"], memory, w["memory.bias"])
        gates = 1.0 / (1.0 + np.exp(-(new[:, : 2 * n] + old[:, : 2 * n])))
        candidate = np.tanh(new[:, 2 * n :] + gates[:, :n] * old[:, 2 * n :])
        after = candidate + gates[:, n:] * (memory - candidate)
        return _product(w["out.weight"], _leaky(after), w["out.bias"]), after.astype(np.float32)


def _leaky(x: ArrayF32) -> ArrayF32:
    return np.where(x > 0.0, x, _SLOPE * x)


def _product(weight: ArrayF32, x: Any, bias: ArrayF32 | None) -> ArrayF32:
    """x W' + b, one input after the other: the order of a matrix product's sums depends on how many rows there are."""
    rows = np.ascontiguousarray(np.asarray(x, np.float32).T)
    total = np.zeros((len(weight), rows.shape[1]), np.float32) if bias is None else np.repeat(bias[:, None], rows.shape[1], 1)
    for column, row in zip(np.ascontiguousarray(weight.T), rows, strict=True):
        total += column[:, None] * row
    return np.ascontiguousarray(total.T)


def read_avoid_policy(folder: str | Path) -> AvoidPolicy:
    """Return the policy of a folder that `airworthy train avoid` wrote.

    Raises:
        AssetError: A file is missing, too large, damaged, of another kind, or not the one that the contract names.
    """
    return AvoidPolicy(*read_avoid_folder(folder))


class AvoidPilot:
    """Flies to goals by an avoiding policy.

    Args:
        policy: Decides.
        goal: Where to, world [m], (env, 3); a function of times (env,) where it moves.
        speed: Cap, (env,) [m/s].
        vehicles: Flown, for a policy of a fleet, which commands shares of their thrust; None: a policy of none.

    Raises:
        AirworthyError: A policy of a fleet is not told what is flown.
    """

    name = "avoid"
    level = "acceleration"
    observes = ("position", "velocity", "attitude", SENSOR + CAMERA)

    def __init__(self, policy: AvoidPolicy, goal: Any, speed: Array, vehicles: Sequence[Vehicle] | KnownVehicles | None = None):
        self.policy, self._goal, self.speed = policy, goal, np.asarray(speed, np.float64)
        self._throttle = _throttle(policy, vehicles, len(self.speed))
        count, hidden = len(self.speed), policy.contract.hidden
        self._memory = np.zeros((count, hidden), np.float32)
        self._heading = np.tile([1.0, 0.0], (count, 1))
        self._asked = np.zeros((count, 3))
        self._number = np.full(count, -1, np.int64)
        self._arrived = np.zeros(count, bool)
        self._time = np.full(count, np.inf)
        self.decisions = np.zeros(count, np.int64)
        """(env,) since the flight began."""

    def goal(self, time: Array) -> Array:
        """Return goals (env, 3) at times (env,)."""
        return np.asarray(self._goal(time) if callable(self._goal) else self._goal, np.float64)

    def command(self, observation: Observation) -> Array:
        """Return accelerations of the heading's frame [m/s^2] and yaw rates [rad/s], (env, 4)."""
        sample = self._sample(observation)
        axes = to_matrix(observation["attitude"])
        nose = axes[:, :2, 0] / np.maximum(np.linalg.norm(axes[:, :2, 0], axis=1, keepdims=True), 1e-9)
        begun = observation.time < self._time
        self._memory[begun], self._heading[begun], self._asked[begun] = 0.0, nose[begun], 0.0
        self._arrived[begun], self.decisions[begun] = False, 0
        if self._throttle is not None:
            self._throttle.begin(begun)
        new = sample.valid & (begun | self._due(observation, sample))
        self._time, self._number = np.array(observation.time), np.where(sample.valid, sample.number, -1)
        if new.any():
            self._decide(observation, axes, nose, new)
        wish = np.arctan2(self._heading[:, 1], self._heading[:, 0]) - np.arctan2(nose[:, 1], nose[:, 0])
        rate = np.clip(_YAW_GAIN * wrap_angle(wish), -_YAW_RATE_MAX, _YAW_RATE_MAX)
        return np.concatenate([turned(self._asked, nose), rate[:, None]], axis=1)

    def _sample(self, observation: Observation) -> Sample:
        """Return the images that it sees."""
        return observation.sample(CAMERA)

    def _due(self, observation: Observation, sample: Sample) -> ArrayBool:
        """Return who has a new image to decide by, (n,)."""
        return np.asarray(sample.number != self._number)

    def _seen(self, depth: Array) -> ArrayF32:
        """Return what the network sees, (k, 192) [m], of images (k, H, W) of its camera."""
        return pooled(depth)

    def _decide(self, observation: Observation, axes: Array, nose: Array, new: ArrayBool) -> None:
        wanted, direction = towards(
            self.goal(np.asarray(observation.time)), np.asarray(observation["position"], np.float64), self.speed
        )
        parts = [turned(np.asarray(v, np.float64), nose) for v in (observation["velocity"], wanted, axes[:, :, 2])]
        known = np.zeros((len(nose), 0))
        if self._throttle is not None:
            known = self._throttle.known(np.asarray(observation["velocity"], np.float64), parts[2], nose, new)
        state = np.concatenate([*parts, np.full((len(nose), 1), self.policy.contract.margin), known], axis=1)[new]
        depth = self._seen(self._sample(observation).data["depth"][new])
        out, self._memory[new] = self.policy.decide(depth, state, self._memory[new])
        asked = turned(np.asarray(GAIN * out[:, :3] - out[:, 3:], np.float64), nose[new], back=True)
        way = self.goal(np.asarray(observation.time)) - observation["position"]
        self._arrived = np.linalg.norm(way, axis=1) < np.where(self._arrived, FOLLOW_M, HOLD_M)
        held = _HOLD_GAINS[0] * way - _HOLD_GAINS[1] * observation["velocity"]
        given = limited(asked, np) if self._throttle is None else self._throttle.given(asked, new)
        # To hold a place is the vehicle's own: it is asked for an acceleration, whatever the policy commands.
        self._asked[new] = np.where(self._arrived[new, None], limited(held[new], np), given)
        # The heading follows the goal as in training, one share per decision.
        turning = TURN * self._heading[new] + direction[new, :2]
        self._heading[new] = turning / np.maximum(np.linalg.norm(turning, axis=1, keepdims=True), 1e-9)
        self.decisions[new] += 1


class _Throttle:
    """What a policy of a fleet knows of n vehicles, and what its shares of thrust come to.

    Args:
        policy: Of a fleet.
        vehicles: What is flown.
    """

    def __init__(self, policy: AvoidPolicy, vehicles: KnownVehicles):
        assert policy.contract.fleet is not None
        self._fleet, self._weights, self._true = policy.contract.fleet, policy.weights, vehicles
        count = len(vehicles.features)
        self._history, self._begun = np.zeros((count, HISTORY * HISTORY_ROW)), np.zeros(count, bool)
        self._sent, self._velocity = np.zeros((count, 3)), np.zeros((count, 3))
        self.believed = np.zeros((count, len(FEATURES)))
        """Features that it reckons with, (n, 3)."""

    def begin(self, flights: ArrayBool) -> None:
        """Forget what was before, of flights that begin, (n,)."""
        for kept in (self._history, self._begun, self._sent, self._velocity, self.believed):
            kept[flights] = 0

    def known(self, velocity: Array, up: Array, nose: Array, new: ArrayBool) -> Array:
        """Return what the network is given beside its state, (n, 3) or (n, 0).

        Args:
            velocity: World [m/s], (n, 3).
            up: Of the body, heading frame, (n, 3).
            nose: Headings, (n, 2).
            new: Who decides, (n,).
        """
        change = turned(velocity - self._velocity, nose) * (RATE * self._begun[:, None])
        row = history_row(turned(self._sent, nose), change, up, np)
        self._history[new] = np.concatenate([self._history[:, HISTORY_ROW:], row], 1)[new]
        self._velocity[new], self._begun[new] = velocity[new], True
        if not self._fleet.sees:
            return np.zeros((len(nose), 0))
        found = self._true.features
        if self._fleet.condition == "identified":
            found = identified(self._weights, self._history)
        # Decoded is by what is believed; the network is told nothing beyond what it learnt with.
        self.believed[new] = found[new]
        return np.clip(found, self._fleet.least, self._fleet.most)

    def given(self, asked: Array, new: ArrayBool) -> Array:
        """Return accelerations (k, 3) that k vehicles give by the throttle for what is asked of them (k, 3) [m/s^2]."""
        given, self._sent[new] = given_by_throttle(asked, ratio_of(self.believed[new], np), self._true.ratio[new], np)
        return np.asarray(given)


def _throttle(policy: AvoidPolicy, vehicles: Sequence[Vehicle] | KnownVehicles | None, count: int) -> _Throttle | None:
    if policy.contract.fleet is None:
        return None
    if isinstance(vehicles, KnownVehicles):
        return _Throttle(policy, vehicles)
    if vehicles is None or len(vehicles) != count:
        raise AirworthyError(
            f"A policy of a fleet commands shares of a vehicle's thrust: give AvoidPilot the {count} vehicles that are flown."
        )
    return _Throttle(policy, KnownVehicles.of(vehicles))


class GoalPilot(OwnWayPilot, AvoidPilot):
    """The same, as the flights of `airworthy fly` to a goal ask whoever finds its own way."""

    rate = RATE


def check_speed(contract: AvoidContract, speed: float) -> None:
    """Refuse to fly faster than was learnt.

    Raises:
        AirworthyError: That would be.
    """
    if speed > contract.speed + 0.5:
        raise AirworthyError(
            f"It is to fly at up to {speed:.1f} m/s, and the policy learnt to avoid at up to {contract.speed:g} m/s: give it a"
            " lower --speed."
        )


AHEAD_S = 3.0
"""By so much a followed path's point lies ahead that is flown to [s]: as far as a policy learnt to look for its way; ours."""
_SPEED_SAMPLES = 200


def avoid_pilot(policy: str | Path | AvoidPolicy, simulator: Simulator, path: Course | Trajectory) -> AvoidPilot:
    """Return the pilot that flies along a path and avoids what stands in it: its goal is where the path is three seconds on.

    Args:
        policy: What `read_avoid_policy` gave, or its folder.
        simulator: Whose vehicles fly.
        path: Where to; its largest speed is the cap.

    Raises:
        AssetError: The folder holds no policy.
        AirworthyError: The simulator takes commands more rarely than it decides, or the path is faster than what it learnt.
    """
    held = policy if isinstance(policy, AvoidPolicy) else read_avoid_policy(policy)
    check_rate(simulator.config.control_rate, RATE)
    trajectory = path.trajectory() if isinstance(path, Course) else path
    speeds = np.linalg.norm(trajectory.sample(np.linspace(0.0, trajectory.duration, _SPEED_SAMPLES)).velocity, axis=-1)
    fastest = float(speeds.max())
    check_speed(held.contract, fastest)
    cap = np.full(simulator.env_count, max(fastest, 0.5))
    return AvoidPilot(held, lambda time: trajectory.sample(time + AHEAD_S).position, cap, simulator.vehicles)
