"""What the native and the torch form of PPO share: first weights, noise of actions, advantages, the rule of the learning rate.

Both draw the same numbers by the same keys, so that the same options and seed learn the same policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayF32, ArrayFloat, ArrayU32, aligned_zeros
from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import CPU_LANES, Launcher, native_kernel, quiet_warp, shared_source
from airworthy.core.random import Stream, flight_key, normals

__all__ = [
    "ACTION_STREAM",
    "BETA1",
    "BETA2",
    "EPSILON",
    "ActionNoise",
    "Rollout",
    "adapted_rate",
    "check_symmetric",
    "generalized_advantages",
    "generator_state",
    "noise_keys",
    "orthogonal",
    "restored_generator",
]

ACTION_STREAM = Stream.RESET
"""Of the noise of actions, at the training's step, index 16 and on: starts and observations take those below."""
FIRST_INDEX = 16
"""Of those draws, of four numbers each."""
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-5
"""Adam's; the epsilon is the one usual with PPO (Huang et al., 37 implementation details, 2022)."""
_RATE_MIN, _RATE_MAX = 1e-5, 1e-2
"""Of the adaptive learning rate (specification, learning by reward, section 5)."""
_WEIGHT_FLIGHT = 0xFFFFFFFF
"""Flight id of the draws of weights, which no environment has."""
_NOISE_EPISODE = 0xFFFFFFFE
"""An episode that no flight comes to: noise of actions shares no number with starts or observations."""


@dataclass(frozen=True)
class Rollout:
    """What was flown between two updates."""

    rewards: Array
    """As the task gives them, (steps, env)."""
    ended: ArrayBool
    """Where a flight ended with the step, for whatever reason, (steps, env)."""
    cut_values: Array
    """The critic's of the final observation where a flight was only cut off, else 0, (steps, env)."""
    terminated: int
    """Flights that ended, and were not only cut off."""
    returns: Array
    """Of flights that ended."""
    terms: dict[str, float]
    """Mean per step of the named parts of the reward."""
    succeeded: int = 0
    """Flights whose last state was what the task asks for."""


def generalized_advantages(
    rewards: Array, values: ArrayFloat, last: ArrayFloat, ended: ArrayBool, cut_values: Array, gamma: float, lam: float
) -> Array:
    """Return generalised advantages (Schulman et al. 2016), right at time limits.

    Args:
        rewards: (steps, env).
        values: The critic's of the states that were acted in, (steps, env).
        last: Of the states after the last step, (env,).
        ended: Where a flight ended with the step, for whatever reason, (steps, env).
        cut_values: The critic's of the final observation where a flight was only cut off, else 0, (steps, env).
        gamma: Discount.
        lam: Of the exponential mean.

    Returns:
        (steps, env).
    """
    advantages = np.zeros_like(rewards)
    running = np.zeros(last.shape)
    following = last
    for t in range(len(rewards) - 1, -1, -1):
        # After an end there is nothing, but for a flight that was only cut off: it would have gone on from where it was.
        beyond = np.where(ended[t], cut_values[t], following)
        running = rewards[t] + gamma * beyond - values[t] + gamma * lam * np.where(ended[t], 0.0, running)
        advantages[t], following = running, values[t]
    return advantages


def orthogonal(seed: int, layer: int, shape: tuple[int, int], gain: float) -> Array:
    """Return the first weights of a layer, (rows, columns): orthogonal, drawn for (seed, layer).

    Args:
        seed: Of the training.
        layer: Its number.
        shape: Rows and columns.
        gain: Length of rows or columns, whichever are fewer.
    """
    size = max(shape)
    drawn = normals(flight_key(seed, _WEIGHT_FLIGHT, layer), 0, Stream.RESET, size * size)
    # A QR decomposition is free to choose signs; fixed by r's diagonal, the basis is uniform over all (Mezzadri 2007).
    basis, r = np.linalg.qr(drawn.reshape(size, size))
    return np.asarray(gain * (basis * np.sign(np.diag(r)))[: shape[0], : shape[1]])


def adapted_rate(rate: float, divergence: float, target: float) -> float:
    """Return the learning rate after a pass: lower where the policy moved too far, higher where too little.

    Args:
        rate: Of the pass.
        divergence: Of old and new policy over it.
        target: Wanted; 0: the rate stays.
    """
    # Factors and bounds: specification, section 5.
    if target > 0.0 and divergence > 2.0 * target:
        return max(_RATE_MIN, rate / 1.5)
    if target > 0.0 and divergence < 0.5 * target:
        return min(_RATE_MAX, rate * 1.5)
    return rate


def check_symmetric(task: str, symmetric: bool, more: bool) -> None:
    """Refuse to take from critics what they do not have.

    Args:
        task: Name of the task.
        symmetric: Whether critics are to see what policies see.
        more: Whether the task has more for them.

    Raises:
        AirworthyError: It has not.
    """
    if symmetric and not more:
        raise AirworthyError(f"symmetric has no effect: critics of the task {task!r} see what the policy sees anyway.")


# ---- random numbers --------------------------------------------------------------------------------------------------


def noise_keys(seed: int, flight_ids: ArrayAny) -> ArrayU32:
    """Return keys of the noise of actions, (4, env)."""
    return np.ascontiguousarray(flight_key(seed, flight_ids, _NOISE_EPISODE).T.astype(np.uint32))


class ActionNoise:
    """Standard normal noise of actions by its counters, in lanes: the numbers that the native rollout draws for itself.

    The twin is `airworthy.core.random.normals`, of `ACTION_STREAM` from its 64th number on.

    Args:
        seed: Of the training.
        flight_ids: Of the environments, (env,).
        actions: Numbers of an action.
        steps: Of a rollout.
    """

    def __init__(self, seed: int, flight_ids: ArrayAny, actions: int, steps: int):
        self._count = len(flight_ids)
        padded = -(-self._count // CPU_LANES) * CPU_LANES
        keys = np.zeros((4, padded), np.uint32)
        keys[:, : self._count] = noise_keys(seed, flight_ids)
        self._first: ArrayAny = np.zeros(1, np.int32)
        self._drawn: ArrayF32 = aligned_zeros((steps, padded, actions))
        wp = quiet_warp()
        shared = [wp.array(x.reshape(-1), device="cpu", copy=False) for x in (keys, self._first, self._drawn)]
        self._held = keys
        self._launcher = Launcher(_noise_kernel(actions), padded // CPU_LANES, [*shared, padded, steps], "cpu", 1)

    def draw(self, first: int) -> ArrayF32:
        """Return the noise of the steps from `first` of the training on, (steps, env, actions): a view that the next call
        writes over."""
        self._first[0] = first
        self._launcher.launch()
        return self._drawn[:, : self._count]


@cache
def _noise_kernel(actions: int) -> Any:
    numbers = f"enum {{ ACTIONS = {actions}, STREAM = {int(ACTION_STREAM)}, FIRST = {FIRST_INDEX} }};"
    source = "\n".join([shared_source("prelude.h"), numbers, shared_source("random.h"), _NOISE])
    return native_kernel("ppo_noise", source, _NOISE_ARGUMENTS)


_NOISE = """
const int at0 = task * LANES;
U key[5];
for (int k = 0; k < 4; ++k) key[k] = N::load_u(noise_keys.data + k * env_count + at0);
Threefry::expand(key);
for (int t = 0; t < steps; ++t) {
  F noise[(ACTIONS + 3) / 4 * 4];
  for (int k = 0; k < (ACTIONS + 3) / 4; ++k)
    Threefry::normals(key, N::u((unsigned int)(first_step.data[0] + t)), STREAM, FIRST + k, noise + 4 * k);
  for (int k = 0; k < ACTIONS; ++k) {
#if LANES == 1
    drawn.data[((long long)t * env_count + at0) * ACTIONS + k] = noise[k];
#else
    for (int lane = 0; lane < LANES; ++lane) drawn.data[((long long)t * env_count + at0 + lane) * ACTIONS + k] = noise[k][lane];
#endif
  }
}
"""
_NOISE_ARGUMENTS = """
    noise_keys: uint32[]   # (4, env)
    first_step: int32[]    # (1,): of the training
    drawn: float32[]       # (steps, env, actions): written
    env_count: int
    steps: int
"""


def generator_state(generator: np.random.Generator) -> dict[str, Any]:
    """Return the state of a generator by Philox as JSON takes it."""
    state: Mapping[str, Any] = generator.bit_generator.state
    inner = {k: [int(x) for x in v] for k, v in state["state"].items()}
    return {**state, "state": inner, "buffer": [int(x) for x in state["buffer"]]}


def restored_generator(generator: np.random.Generator, state: Mapping[str, Any]) -> None:
    """Set a generator to what `generator_state` gave."""
    inner = {k: np.array(v, np.uint64) for k, v in state["state"].items()}
    generator.bit_generator.state = {**state, "state": inner, "buffer": np.array(state["buffer"], np.uint64)}
