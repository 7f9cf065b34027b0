"""Who holds a place in an evaluation: the learnt policy, the geometric controller, the MPC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from airworthy.core.arrays import Array, ArrayF32, ArrayFloat
from airworthy.core.frames import multiply
from airworthy.learning.gradient.hover import hover_observation
from airworthy.learning.gradient.trainer import network_action, recurrent_action
from airworthy.pilots.expert import ExpertPilot, expert_for, expert_reference
from airworthy.pilots.motor_policy.contract import commanded_states
from airworthy.pilots.pilot import observe
from airworthy.simulation import Simulator
from airworthy.trajectories import Trajectory

if TYPE_CHECKING:  # trainers come behind what they learn
    from airworthy.learning.gradient.policy import HoverTraining

__all__ = ["Flyer", "GeometricController", "LearntPolicy", "MpcController"]

_ROWS_AT_ONCE = 128
"""Ours: products of more rows are split over threads, which on a machine with other work wait by spinning."""


_RECURRENT_ARRAYS = 8


class Flyer(Protocol):
    """Holds the origin."""

    name: str
    level: str
    """Control level of its commands."""
    rate: float
    """Decisions per second [Hz]."""
    outside: bool
    """It decides outside of the simulator's step: its commands can be late, and what it sees can be noisy."""
    hover: Array
    """Command of hover, where it decides outside."""

    def begin(self, simulator: Simulator) -> None:
        """Begin flights in a simulator."""

    def command(self, simulator: Simulator, noise: Array | None) -> Array:
        """Return commands of now.

        Args:
            simulator: Whose state is seen.
            noise: What is added to what is seen of it: position, velocity, rotation, body rate, (12, env); None: nothing.
        """
        ...


class LearntPolicy:
    """A network that commands rotors, deterministic.

    Args:
        weights: As of `network_action`.
        history: Past actions that it sees.
        hover: Actions of hover, (rotors,).
        limits: Least and largest rotor states, (rotors,) each.
        rate: Decisions per second [Hz].
        law: What actions command, see `motor_policy.contract.ACTIONS`.
    """

    name, level, outside = "learnt policy", "rotor_speed", True

    def __init__(
        self,
        weights: Sequence[ArrayF32],
        history: int,
        hover: Array,
        limits: tuple[Array, Array],
        rate: float,
        law: str = "state",
    ):
        self.rate, self._history, self._action = rate, history, np.asarray(hover, float)
        self._weights: list[ArrayFloat] = list(weights)
        self._low, self._high = (np.asarray(x, float) for x in limits)
        self._law = law
        self.hover = commanded_states(self._action, self._low, self._high, law)
        self._past = np.zeros((0, 0), np.float32)
        # Of a network with a GRU there are four arrays more than of one without.
        self._recurrent = len(self._weights) == _RECURRENT_ARRAYS
        self._memory: ArrayFloat = np.zeros((0, 0), np.float32)

    @classmethod
    def of(cls, training: HoverTraining) -> LearntPolicy:
        """Return the policy that a training has come to."""
        rotors = training.vehicle.rotors
        limits = np.array([r.speed_min for r in rotors]), np.array([r.speed_max for r in rotors])
        # A training that goes on writes over its own.
        weights = [w.copy() for w in training.weights]
        return cls(weights, training.history, training.hover, limits, training.flown_rate, training.law)

    def having(self, weights: Sequence[ArrayF32]) -> LearntPolicy:
        """Return the same policy with other weights, as of `network_action`."""
        return LearntPolicy(weights, self._history, self._action, (self._low, self._high), self.rate, self._law)

    def begin(self, simulator: Simulator) -> None:
        """Begin flights: before them every vehicle was commanded to hover."""
        self._past = np.tile(self._action.astype(np.float32), (simulator.env_count, self._history))
        if self._recurrent:
            self._memory = np.zeros((simulator.env_count, len(self._weights[1])), np.float32)

    def command(self, simulator: Simulator, noise: Array | None) -> Array:
        """Return rotor states, (env, rotors)."""
        names = ("position", "velocity", "attitude", "rate")
        state = np.concatenate([np.asarray(simulator.field(name), float).T for name in names])
        if noise is not None:
            state[:6] += noise[:6]
            # To first order the vector part of a small rotation is half its angles.
            turn = np.concatenate([0.5 * noise[6:9], np.ones((1, noise.shape[1]))])
            turned = multiply(state[6:10].T, turn.T).T
            state[6:10] = turned / np.linalg.norm(turned, axis=0)
            state[10:13] += noise[9:12]
        seen = np.array(np.broadcast_arrays(*hover_observation(tuple(state))), np.float32).T
        seen = np.concatenate([seen, self._past], axis=1)
        action = self._decided(seen)
        self._past = np.concatenate([action, self._past], axis=1)[:, : self._past.shape[1]]
        return commanded_states(action.astype(float), self._low, self._high, self._law)

    def _decided(self, seen: ArrayF32) -> ArrayFloat:
        spans = [slice(k, k + _ROWS_AT_ONCE) for k in range(0, len(seen), _ROWS_AT_ONCE)]
        if not self._recurrent:
            return np.concatenate([network_action(self._weights, seen[span]) for span in spans])
        pairs = [recurrent_action(self._weights, seen[span], self._memory[span]) for span in spans]
        self._memory = np.concatenate([memory for _, memory in pairs])
        return np.concatenate([action for action, _ in pairs])


class GeometricController:
    """Our geometric law on position set-points, inside the simulator's step."""

    name, level, outside = "geometric controller", "position", False
    hover = np.zeros(4)

    def __init__(self, rate: float):
        self.rate = rate

    def begin(self, simulator: Simulator) -> None:
        """Begin flights: nothing is kept."""

    def command(self, simulator: Simulator, noise: Array | None) -> Array:
        """Return the origin, with yaw 0, (4,)."""
        return np.zeros(4)


class MpcController:
    """The MPC of the expert, on a path that stands still."""

    name, level, outside = "MPC", "rate_thrust", False
    hover = np.zeros(4)

    def __init__(self, rate: float, flight_s: float):
        self.rate = rate
        # Behind the end of flights still a horizon.
        still = Trajectory([0.0, flight_s + 5.0], np.zeros((1, 3, 1)), [0.0, flight_s + 5.0], np.zeros((1, 1)))
        self._paths = expert_reference(still)
        self._pilot: Any = None

    def begin(self, simulator: Simulator) -> None:
        """Begin flights: a problem per vehicle, of its own parameters."""
        self._pilot = expert_for(simulator, self._paths)

    def command(self, simulator: Simulator, noise: Array | None) -> Array:
        """Return thrust [N] and body rates [rad/s], (env, 4)."""
        pilot: ExpertPilot = self._pilot
        return pilot.command(observe(simulator, pilot.observes))
