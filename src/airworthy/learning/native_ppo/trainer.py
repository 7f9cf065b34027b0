"""PPO (Schulman et al. 2017) for small networks, native: environments, policy and update in lanes, NumPy around them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayF32, ArrayFloat
from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import CPU_LANES, Launcher, quiet_launch, quiet_warp
from airworthy.core.random import Stream, flight_key, normals
from airworthy.core.runs.checkpoints import Checkpoint
from airworthy.core.schema import Bound, check_fields
from airworthy.core.threads import run_at_once
from airworthy.learning.environments import VectorTask
from airworthy.learning.native_ppo.kernel import NetworkSizes, act_kernel, rows_of, update_kernel

__all__ = ["NativePpo", "PpoOptions", "PpoUpdate", "generalized_advantages"]

_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-5
"""Adam's; the epsilon is the one usual with PPO (Huang et al., 37 implementation details, 2022)."""
_CHUNK = 2048
"""Samples of a launch: what it leaves stays in the second cache for the products."""
_RATE_MIN, _RATE_MAX = 1e-5, 1e-2
"""Of the adaptive learning rate (specification, learning by reward, section 5)."""
_WEIGHT_FLIGHT = 0xFFFFFFFF
"""Flight id of the draws of weights, which no environment has."""


@dataclass(frozen=True)
class PpoOptions:
    """How to learn. Defaults are the published ones of Aerial Gym's motor-command task (specification aerial_gym, 9.3).

    `least_std` and `reward_scale` are ours. With the published clip of 0.05 the adaptive rate soon reaches its bound and
    learns slowly; 0.2 learns faster.
    """

    hidden: tuple[int, int] = (32, 24)
    """Widths of the two hidden layers, of policy and critic each."""
    rollout: Annotated[int, Bound(1, 4096)] = 32
    """Policy steps between updates."""
    minibatches: Annotated[int, Bound(1, 1024)] = 2
    """Parts of a rollout that are learnt one after the other."""
    epochs: Annotated[int, Bound(1, 100)] = 5
    """Passes over a rollout."""
    learning_rate: Annotated[float, Bound(0.0, 1.0)] = 3e-4
    """At the beginning."""
    target_divergence: Annotated[float, Bound(0.0, 10.0)] = 0.016
    """Of old and new policy per pass: above twice of it the learning rate falls, below half of it it rises; 0: it stays."""
    gamma: Annotated[float, Bound(0.0, 1.0)] = 0.99
    """Discount of a step."""
    lam: Annotated[float, Bound(0.0, 1.0)] = 0.95
    """Of generalised advantages."""
    clip: Annotated[float, Bound(1e-3, 1.0)] = 0.05
    """By how much a ratio of probabilities counts away from 1."""
    value_weight: Annotated[float, Bound(0.0, 100.0)] = 2.0
    """Of half the squared error of the value."""
    entropy_weight: Annotated[float, Bound(0.0, 1.0)] = 0.01
    """Of the policy's entropy."""
    gradient_norm: Annotated[float, Bound(1e-6, 1e6)] = 1.0
    """A longer gradient is shortened."""
    initial_std: Annotated[float, Bound(1e-3, 10.0)] = 0.4
    """Of actions."""
    least_std: Annotated[float, Bound(1e-4, 10.0)] = 0.05
    """Of actions, below which exploration would be lost."""
    reward_scale: Annotated[float, Bound(1e-6, 1e6)] = 0.1
    """Factor on rewards, so that values are near 1 in size."""
    seed: int = 0
    """Of weights, starts, vehicles, and noise."""

    def __post_init__(self) -> None:
        check_fields(self, "PpoOptions.")


@dataclass(frozen=True)
class PpoUpdate:
    """What one update came to."""

    env_steps: int
    reward: float
    """Mean per step, as the task gives it."""
    divergence: float
    value_error: float
    """Root of the mean squared error of the critic, in scaled rewards, over the last pass."""
    explained: float
    """Share of the variance of the targets that the critic knew before the update."""
    std: float
    """Mean of the actions' standard deviations."""
    learning_rate: float
    gradient_norm: float
    ended: int
    """Flights that ended."""
    terminated: int
    """Of these, those that were not only cut off."""
    episode_return: float
    """Mean of ended flights; NaN where none did."""


def generalized_advantages(
    rewards: Array, values: ArrayFloat, last: ArrayFloat, ended: ArrayBool, cut_values: Array, gamma: float, lam: float
) -> Array:
    """Generalised advantages (Schulman et al. 2016), right at time limits.

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


class NativePpo:
    """A policy and its critic that learn a task by reward.

    Set OPENBLAS_NUM_THREADS=1 before NumPy is imported: its threads wait by spinning beside the two of an update, and halve
    the speed.

    Args:
        environments: To learn in; a multiple of 16 of them.
        options: How.
        threads: 1 or 2 threads of the update; the numbers are the same.

    Raises:
        AirworthyError: Numbers of environments or samples that do not divide.
    """

    def __init__(self, environments: VectorTask, options: PpoOptions | None = None, threads: int = 2):
        self.options = o = options or PpoOptions()
        self.environments, n = environments, environments.env_count
        samples = n * o.rollout
        self._chunk = min(_CHUNK, samples // o.minibatches // 2)
        if n % CPU_LANES or samples % o.minibatches or not self._chunk or samples // o.minibatches % (2 * self._chunk):
            raise AirworthyError(
                f"{n} environments x {o.rollout} steps in {o.minibatches} minibatches cannot be learnt from; expected a"
                f" multiple of {CPU_LANES} environments, minibatches of a multiple of {2 * _CHUNK} samples (or fewer, even)."
            )
        k, a = environments.observation_count, environments.action_count
        self.sizes = NetworkSizes(k, *o.hidden, a, o.clip, o.value_weight, o.entropy_weight)
        self._threads = threads
        forward = sum(r * c + r for r, c in self.sizes.forward) + a
        self.parameters = np.zeros(forward, np.float32)
        """Weights of policy and critic, and the logarithms of standard deviations, in this order."""
        self._views = list(self._split())
        # Moments and rewards in float64: long sums in float32 lose what is small (specification, section 10).
        self._first, self._second = np.zeros(forward), np.zeros(forward)
        self._steps = 0
        self.learning_rate, self.env_steps, self.updates = o.learning_rate, 0, 0
        self._begin()
        self._make_arrays(samples)
        self._rng = np.random.Generator(np.random.Philox(key=o.seed & (2**64 - 1)))

    def _split(self) -> Iterator[ArrayF32]:
        """Yield views: a matrix and its bias of each layer, then the logarithms."""
        at = 0
        for rows, columns in self.sizes.forward:
            yield self.parameters[at : at + rows * columns].reshape(rows, columns)
            at += rows * columns
            yield self.parameters[at : at + rows]
            at += rows
        yield self.parameters[at:]

    def _begin(self) -> None:
        """Orthogonal layers, the last of the policy small and biased to hover (specification, section 10)."""
        # Specification, section 5; 1 for the critic's last, as usual with PPO (Huang et al.).
        gains = (math.sqrt(2.0), math.sqrt(2.0), 0.01, math.sqrt(2.0), math.sqrt(2.0), 1.0)
        for layer, (gain, (rows, columns)) in enumerate(zip(gains, self.sizes.forward, strict=True)):
            size = max(rows, columns)
            drawn = normals(flight_key(self.options.seed, _WEIGHT_FLIGHT, layer), 0, Stream.RESET, size * size)
            # A QR decomposition is free to choose signs; fixed by r's diagonal, the basis is uniform over all (Mezzadri 2007).
            basis, r = np.linalg.qr(drawn.reshape(size, size))
            self._views[2 * layer][:] = gain * (basis * np.sign(np.diag(r)))[:rows, :columns]
        hover = np.clip(self.environments.hover_action, -0.99, 0.99)
        self._views[5][:] = np.arctanh(hover)
        self._views[-1][:] = math.log(self.options.initial_std)

    def _make_arrays(self, samples: int) -> None:
        e, s, o = self.environments, self.sizes, self.options
        inner = s.first * s.second
        self._packed = np.zeros(self.parameters.size + 2 * inner + s.second * (s.actions + 1), np.float32)
        self._deviation = np.zeros(s.actions, np.float32)
        steps = o.rollout
        self._seen = np.zeros((steps, e.env_count, s.observed), np.float32)
        self._taken = np.zeros((steps, e.env_count, s.actions), np.float32)
        self._log = np.zeros((steps, e.env_count), np.float32)
        self._values = np.zeros((steps + 1, e.env_count), np.float32)
        self._about = np.zeros((samples, 3), np.float32)
        # An episode that no flight comes to: noise of actions shares no number with starts or observations.
        self._noise_keys = flight_key(o.seed, e.flight_ids, 0xFFFFFFFE).T.astype(np.uint32).copy()
        self._now = np.zeros((e.env_count, s.observed), np.float32)
        self._action = np.zeros((e.env_count, s.actions), np.float32)
        self._log_now, self._value_now = np.zeros(e.env_count, np.float32), np.zeros(e.env_count, np.float32)
        inputs, slopes = rows_of(s)
        # A row longer than a chunk: at 8 kB apart rows would share a few places of the first cache.
        self._stride = self._chunk + CPU_LANES
        self._parts = [
            (
                np.zeros(self._chunk, np.int32),
                np.zeros((inputs["END"], self._stride), np.float32),
                np.zeros((slopes["END"], self._stride), np.float32),
            )
            for _ in range(2)
        ]
        for _, x, _d in self._parts:
            for first, _, _, columns in self._layers():
                x[first + columns] = 1.0
        wp = quiet_warp()

        def shared(array: ArrayAny) -> Any:
            return wp.array(array.reshape(-1), device="cpu", copy=False)

        self._act_arguments = [
            shared(x)
            for x in (self._packed, self._deviation, self._now, self._noise_keys, self._action, self._log_now, self._value_now)
        ]
        weight = 1.0 / (samples // o.minibatches)
        common = [shared(self._seen), shared(self._taken), shared(self._about)]
        packed = self._act_arguments[0]
        self._update_launchers = [
            Launcher(
                update_kernel(s),
                self._chunk // CPU_LANES,
                [packed, shared(index), *common, shared(x), shared(d), self._stride, weight],
                "cpu",
                threads=1,
            )
            for index, x, d in self._parts
        ]

    # ---- learning ----------------------------------------------------------------------------------------------------

    def update(self) -> PpoUpdate:
        """Fly one rollout and learn from it."""
        o, e = self.options, self.environments
        self._pack()
        rewards, ended, cut_values, told = self._fly()
        advantages = generalized_advantages(rewards, self._values[:-1], self._values[-1], ended, cut_values, o.gamma, o.lam)
        targets = advantages + self._values[:-1]
        spread = float(targets.var())
        explained = 1.0 - float((targets - self._values[:-1]).var()) / spread if spread > 0.0 else math.nan
        self._about[:, 0] = self._log.ravel()
        self._about[:, 1] = ((advantages - advantages.mean()) / (advantages.std() + 1e-8)).ravel()
        self._about[:, 2] = targets.ravel()
        divergence = error = norm = 0.0
        samples = o.rollout * e.env_count
        for _ in range(o.epochs):
            divergence = error = 0.0
            for part in np.split(self._rng.permutation(samples).astype(np.int32), o.minibatches):
                gradient, sums = self._gradient(part)
                norm = self._descend(gradient)
                self._pack()
                divergence, error = divergence + sums[1] / samples, error + sums[2] / samples
            self._adapt(divergence)
        self.updates += 1
        self.env_steps += samples
        returns = told["returns"]
        return PpoUpdate(
            self.env_steps,
            told["reward"],
            divergence,
            math.sqrt(error),
            explained,
            float(np.exp(self._views[-1]).mean()),
            self.learning_rate,
            norm,
            int(ended.sum()),
            told["terminated"],
            float(np.mean(returns)) if len(returns) else math.nan,
        )

    def _fly(self) -> tuple[Array, ArrayBool, Array, dict[str, Any]]:
        o, e = self.options, self.environments
        steps, n = o.rollout, e.env_count
        rewards, cut = np.zeros((steps, n)), np.zeros((steps, n))
        ended = np.zeros((steps, n), bool)
        terminated, returns, total = 0, [], 0.0
        for t in range(steps):
            self._now[:] = e.observation
            self._act(self.updates * steps + t)
            self._seen[t], self._taken[t], self._log[t], self._values[t] = (
                self._now,
                self._action,
                self._log_now,
                self._value_now,
            )
            result = e.step(self._action)
            total += float(result.reward.mean())
            rewards[t] = result.reward * o.reward_scale
            ended[t] = result.ends.ended
            terminated += int(result.terminated.sum())
            if (over := result.truncated).any():
                cut[t, over] = self.value(result.final_observation[over])
            if ended[t].any():
                returns.extend(result.ends.returns[ended[t]])
        self._now[:] = e.observation
        self._values[steps] = self.value(self._now)
        return rewards, ended, cut, {"terminated": terminated, "returns": returns, "reward": total / steps}

    def _act(self, step: int) -> None:
        blocks = self.environments.env_count // CPU_LANES
        numbers = [self.environments.env_count, step]
        quiet_launch(act_kernel(self.sizes), blocks, [*self._act_arguments, *numbers, 0], "cpu")

    def _pack(self) -> None:
        """Weights as the kernels read them: the policy's middle and last matrix and the critic's again, transposed."""
        v = self._views
        parts = [self.parameters, v[2].T, v[4].T, v[8].T, v[10].T]
        np.concatenate([part.ravel() for part in parts], out=self._packed)
        np.exp(v[-1], out=self._deviation)

    def _gradient(self, samples: ArrayAny) -> tuple[Array, Array]:
        """Gradient of the mean loss of a minibatch, and its sums of loss, divergence and squared error."""
        halves = np.split(samples, 2)
        found: list[tuple[Array, Array]] = [(np.zeros(0), np.zeros(0))] * 2

        def work(k: int) -> None:
            found[k] = self._half(k, halves[k])

        if self._threads > 1:
            run_at_once([lambda: work(0), lambda: work(1)])
        else:
            work(0)
            work(1)
        # Halves are summed in order whichever thread made them: the same bits with one thread and with two.
        return found[0][0] + found[1][0], found[0][1] + found[1][1]

    def _half(self, k: int, samples: ArrayAny) -> tuple[Array, Array]:
        index, inputs, slopes = self._parts[k]
        s, used = self.sizes, slice(0, self._chunk)
        layers = [(inputs[x : x + columns + 1, used].T, slopes[d : d + rows, used]) for x, d, rows, columns in self._layers()]
        rest = slopes[rows_of(s)[1]["ACTION"] + s.actions : rows_of(s)[1]["ACTION"] + 2 * s.actions, used]
        told = slopes[rows_of(s)[1]["TOLD"] : rows_of(s)[1]["TOLD"] + 3, used]
        sums = [np.zeros((len(d), x.shape[1])) for x, d in layers]
        by_std, totals = np.zeros(s.actions), np.zeros(3)
        for start in range(0, len(samples), self._chunk):
            index[:] = samples[start : start + self._chunk]
            self._update_launchers[k].launch()
            for total, (x, d) in zip(sums, layers, strict=True):
                total += d @ x
            by_std += rest.sum(axis=1)
            totals += told.sum(axis=1)
        parts = [part for total in sums for part in (total[:, :-1].ravel(), total[:, -1])]
        return np.concatenate([*parts, by_std]), totals

    def _layers(self) -> Iterator[tuple[int, int, int, int]]:
        """Tell first row of inputs, first row of slopes, rows and columns of each matrix, in the order of `forward`."""
        x, d = rows_of(self.sizes)
        names = (("POLICY", "ACTION"), ("VALUE", "VALUE"))
        for k, (rows, columns) in enumerate(self.sizes.forward):
            prefix, last = names[k // 3]
            read = (0, x[f"{prefix}1"], x[f"{prefix}2"])[k % 3]
            yield read, d[(f"{prefix}1", f"{prefix}2", last)[k % 3]], rows, columns

    def _descend(self, gradient: Array) -> float:
        """Adam; returns the gradient's norm before it was shortened."""
        norm = float(np.linalg.norm(gradient))
        if not math.isfinite(norm):
            raise AirworthyError("The gradient of PPO is not finite: rewards or observations of the task are too large.")
        gradient = gradient * min(1.0, self.options.gradient_norm / max(norm, 1e-30))
        self._steps += 1
        self._first += (1.0 - _BETA1) * (gradient - self._first)
        self._second += (1.0 - _BETA2) * (gradient * gradient - self._second)
        size = self.learning_rate * math.sqrt(1.0 - _BETA2**self._steps) / (1.0 - _BETA1**self._steps)
        self.parameters -= (size * self._first / (np.sqrt(self._second) + _EPSILON)).astype(np.float32)
        np.maximum(self._views[-1], math.log(self.options.least_std), out=self._views[-1])
        return norm

    def _adapt(self, divergence: float) -> None:
        target = self.options.target_divergence
        # Factors and bounds: specification, section 5.
        if target > 0.0 and divergence > 2.0 * target:
            self.learning_rate = max(_RATE_MIN, self.learning_rate / 1.5)
        elif target > 0.0 and divergence < 0.5 * target:
            self.learning_rate = min(_RATE_MAX, self.learning_rate * 1.5)

    # ---- what was learnt ---------------------------------------------------------------------------------------------

    def action(self, observation: ArrayFloat) -> Array:
        """Deterministic actions, (env, actions), of observations (env, observed)."""
        return np.asarray(np.tanh(self._forward(observation, 0)))

    def value(self, observation: ArrayFloat) -> ArrayFloat:
        """Return what the critic expects, in scaled rewards, (env,)."""
        return self._forward(observation, 6)[:, 0]

    def _forward(self, x: ArrayFloat, first: int) -> ArrayFloat:
        v = self._views
        for k in (first, first + 2):
            x = np.tanh(x @ v[k].T + v[k + 1])
        return np.asarray(x @ v[first + 4].T + v[first + 5])

    def save(self) -> Checkpoint:
        """Everything that the next update depends on."""
        environments = {f"environment_{name}": array for name, array in self.environments.saved().items()}
        arrays = {"parameters": self.parameters, "first": self._first, "second": self._second, **environments}
        notes = {
            "steps": self._steps,
            "learning_rate": self.learning_rate,
            "env_steps": self.env_steps,
            "generator": _plain(self._rng.bit_generator.state),
        }
        return Checkpoint(self.updates, {k: np.array(a) for k, a in arrays.items()}, notes)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from what `save` gave, to the same bits."""
        arrays, notes = checkpoint.arrays, checkpoint.notes
        self.parameters[:] = arrays["parameters"]
        self._first[:], self._second[:] = arrays["first"], arrays["second"]
        prefix = "environment_"
        self.environments.restore({k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)})
        self._steps, self.learning_rate, self.env_steps = notes["steps"], notes["learning_rate"], notes["env_steps"]
        state = dict(notes["generator"])
        state["state"] = {k: np.array(v, np.uint64) for k, v in state["state"].items()}
        state["buffer"] = np.array(state["buffer"], np.uint64)
        self._rng.bit_generator.state = state
        self.updates = checkpoint.number


def _plain(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a generator's state as JSON takes it."""
    inner = {k: [int(x) for x in v] for k, v in state["state"].items()}
    return {**state, "state": inner, "buffer": [int(x) for x in state["buffer"]]}
