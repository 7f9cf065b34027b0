"""PPO (Schulman et al. 2017) for small networks, native: environments, policy and update in lanes, NumPy around them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayF32, ArrayFloat, aligned_zeros
from airworthy.core.errors import AirworthyError
from airworthy.core.jobs.checkpoints import Checkpoint
from airworthy.core.native_kernel import CPU_LANES, Launcher, quiet_warp
from airworthy.learning.environments import VectorTask
from airworthy.learning.native_ppo.kernel import SLICE, TOLD, NetworkSizes, rollout_kernel, scratch_rows, update_kernel
from airworthy.learning.native_ppo.moments import RunningMoments
from airworthy.learning.native_ppo.options import PpoOptions, PpoUpdate
from airworthy.learning.native_ppo.shared import (
    BETA1,
    BETA2,
    EPSILON,
    Rollout,
    adapted_rate,
    check_symmetric,
    generalized_advantages,
    generator_state,
    noise_keys,
    orthogonal,
    restored_generator,
)

__all__ = ["NativePpo"]

_FIRST_LAYERS = (0, 6)
"""Among the arrays of weights, those of policy and critic that observations go into."""
_PARTS = 8
"""Of a minibatch, each summed by itself: as many threads can share it, and its bits do not depend on how many do (ours)."""
_SPLIT_SECONDS = 3e-4
"""A minibatch of 4,096 samples takes 0.8 ms and comes a hundred times per rollout: also a small gain is wanted (ours)."""


class NativePpo:
    """A policy and its critic that learn a task by reward.

    Args:
        environments: To learn in; a multiple of 16 of them.
        options: How.
        threads: Most threads; the numbers are the same.

    Raises:
        AirworthyError: Numbers of environments or samples that do not divide.
    """

    def __init__(self, environments: VectorTask, options: PpoOptions | None = None, threads: int | None = None):
        self.options = o = options or PpoOptions()
        self.environments, n = environments, environments.env_count
        o.check_batch(n)
        k, a = environments.observation_count, environments.action_count
        first, second = o.hidden
        privileged = environments.shape.traits.privileged
        check_symmetric(environments.task.name, o.symmetric, privileged)
        # Of most tasks critics see what policies see: then it is kept once.
        known = environments.critic_observation_count if privileged and not o.symmetric else 0
        self.sizes = NetworkSizes(k, first, second, a, o.clip, o.value_weight, o.entropy_weight, known)
        forward = sum(r * c + r for r, c in self.sizes.forward) + a
        self.parameters = np.zeros(forward, np.float32)
        """Weights of policy and critic, and the logarithms of standard deviations, in this order."""
        self._views = list(self._split())
        # Moments and rewards in float64: long sums in float32 lose what is small (specification, section 10).
        self._first, self._second = np.zeros(forward), np.zeros(forward)
        self._steps = 0
        self.learning_rate, self.env_steps, self.updates = o.learning_rate, 0, 0
        self._seen, self._known, self._expectations = (RunningMoments(n) for n in (k, self.sizes.judged, 1))
        self._begin()
        self._make_arrays(threads)
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
            self._views[2 * layer][:] = orthogonal(self.options.seed, layer, (rows, columns), gain)
        hover = np.clip(self.environments.hover_action, -0.99, 0.99)
        self._views[5][:] = np.arctanh(hover)
        self._views[-1][:] = math.log(self.options.initial_std)

    def _make_arrays(self, threads: int | None) -> None:
        e, s, o = self.environments, self.sizes, self.options
        blocks = e.env_count // CPU_LANES
        pairs = o.rollout * blocks // o.minibatches // 2
        self._parts = min(_PARTS, pairs)
        inner = s.first * s.second
        self._packed = aligned_zeros(self.parameters.size + 2 * inner + s.second * (s.actions + 1))
        # Which parameter stands where: gathered at once, as often as there are minibatches.
        at, firsts = np.arange(self.parameters.size), np.cumsum([0, *(view.size for view in self._views)])
        self._firsts = firsts.tolist()
        turned = [at[firsts[k] : firsts[k + 1]].reshape(self._views[k].shape).T.ravel() for k in (2, 4, 8, 10)]
        self._places = np.concatenate([at, *turned])
        self._deviation = np.zeros(s.actions, np.float32)
        self._first_step = np.zeros(1, np.int32)
        self.samples: ArrayF32 = aligned_zeros((o.rollout, blocks, s.sample, CPU_LANES))
        """What was flown, (step, block, number, lane): observation, action, its log-probability, advantage, target, and what
        the critic alone sees."""
        self.values: ArrayF32 = aligned_zeros((o.rollout + 1, e.env_count))
        """What the critic expected, (step, env)."""
        self._told = aligned_zeros((len(TOLD), o.rollout, e.env_count))
        self._terms = aligned_zeros((len(e.terms), e.env_count))
        self._order = np.zeros(2 * pairs, np.int32)
        self._sums = np.zeros((self._parts, self.parameters.size + 3), np.float32)
        keys = noise_keys(o.seed, e.flight_ids)
        scratch = aligned_zeros((self._parts, scratch_rows(s)["ROWS"], (SLICE + 1) * CPU_LANES))
        wp = quiet_warp()

        def shared(array: ArrayAny) -> Any:
            return wp.array(array.reshape(-1), device="cpu", copy=False)

        packed, flown = shared(self._packed), shared(self.samples)
        lent = [shared(x) for x in e.lend().values()]
        self._lasting = aligned_zeros((s.actions, e.env_count))
        mine = [shared(x) for x in (self._deviation, keys, self._first_step, self._lasting)]
        told = [shared(self.values), shared(self._told), shared(self._terms)]
        arguments = [*lent, e.env_count, e.task.episode_steps, packed, *mine, flown, *told, o.rollout, o.noise_memory]
        self._rollout = Launcher(rollout_kernel(s, e.shape), blocks, arguments, "cpu", threads)
        weight = 1.0 / (2 * pairs * CPU_LANES)
        arguments = [packed, shared(self._order), flown, shared(scratch), shared(self._sums), pairs, self._parts, weight]
        self._update = Launcher(update_kernel(s), self._parts, arguments, "cpu", threads, _SPLIT_SECONDS)

    # ---- learning ----------------------------------------------------------------------------------------------------

    def update(self) -> PpoUpdate:
        """Fly one rollout and learn from it."""
        o, e = self.options, self.environments
        flown = self.fly()
        expected = self._scaled(self.values)
        advantages = generalized_advantages(
            flown.rewards * o.reward_scale, expected[:-1], expected[-1], flown.ended, flown.cut_values, o.gamma, o.lam
        )
        spread = float((advantages + expected[:-1]).var())
        explained = 1.0 - float(advantages.var()) / spread if spread > 0.0 else math.nan
        self.learn_from(advantages)
        blocks = o.rollout * e.env_count // CPU_LANES
        divergence = error = norm = 0.0
        for _ in range(o.epochs):
            divergence = error = 0.0
            # Blocks of environments at one instant are drawn together: their flights know nothing of each other.
            for part in np.split(self._rng.permutation(blocks), o.minibatches):
                gradient, sums = self.gradient(part)
                norm = self._descend(gradient)
                divergence, error = divergence + sums[1], error + sums[2]
            self.learning_rate = adapted_rate(self.learning_rate, divergence / (blocks * CPU_LANES), o.target_divergence)
        if o.normalize_observation:
            # Only now: a rollout and its update read the same numbers.
            for moments, first, count in self._inputs():
                seen = self.samples[:, :, first : first + count]
                moments.learn(np.moveaxis(seen, 2, -1).reshape(-1, count))
        self.updates += 1
        self.env_steps += blocks * CPU_LANES
        return PpoUpdate(
            self.env_steps,
            float(flown.rewards.mean()),
            float(divergence) / (blocks * CPU_LANES),
            math.sqrt(error / (blocks * CPU_LANES)),
            explained,
            float(np.exp(self._views[-1]).mean()),
            self.learning_rate,
            norm,
            int(flown.ended.sum()),
            flown.terminated,
            float(np.mean(flown.returns)) if len(flown.returns) else math.nan,
            flown.terms,
            entropy=float(self._views[-1].sum(dtype=float)) + 0.5 * e.action_count * math.log(2.0 * math.pi * math.e),
            success=flown.succeeded / int(flown.ended.sum()) if flown.ended.any() else math.nan,
            passes=o.epochs,
        )

    def fly(self) -> Rollout:
        """Fly a rollout; what was seen and done lies in `samples`, what the critic expected in `values`."""
        o, e = self.options, self.environments
        self._pack()
        self._first_step[0] = self.updates * o.rollout
        e.lend()
        self._rollout.launch()
        e.advance_curriculum(o.rollout)
        told = dict(zip(TOLD, self._told, strict=True))
        ended = told["ended"] > 0.5
        means = self._terms.mean(axis=1, dtype=float) / o.rollout
        return Rollout(
            told["reward"].astype(float),
            ended,
            np.where(ended & (told["terminated"] < 0.5), self._scaled(told["cut_value"]), 0.0),
            int(told["terminated"].sum()),
            told["return"][ended].astype(float),
            dict(zip(e.terms, means.tolist(), strict=True)),
            int(np.sum(told["success"][ended])),
        )

    def _scaled(self, values: ArrayFloat) -> ArrayFloat:
        """Values in scaled rewards, of what the critic gives."""
        if not self.options.normalize_value:
            return values
        return values.astype(float) * self._expectations.deviation[0] + self._expectations.mean[0]

    def learn_from(self, advantages: Array) -> None:
        """Set advantages of what was flown, (steps, env), and with them the targets of the values."""
        s = self.sizes
        targets = advantages + self._scaled(self.values[:-1])
        if self.options.normalize_value:
            # The targets of this rollout count already, or the first ones would be learnt as they are.
            self._expectations.learn(targets.reshape(-1, 1))
            targets = (targets - self._expectations.mean[0]) / self._expectations.deviation[0]
        shape = self.samples[:, :, 0].shape
        self.samples[:, :, s.observed + s.actions + 1] = ((advantages - advantages.mean()) / (advantages.std() + 1e-8)).reshape(
            shape
        )
        self.samples[:, :, s.observed + s.actions + 2] = targets.reshape(shape)

    def _pack(self) -> None:
        """Weights as the kernels read them: the policy's middle and last matrix and the critic's again, transposed.

        Observations are normalised in the first layers: kernels read them as they are.
        """
        np.take(self.parameters, self._places, out=self._packed)
        if self.options.normalize_observation:
            for first in _FIRST_LAYERS:
                weight, bias = (self._packed[self._firsts[k] : self._firsts[k + 1]] for k in (first, first + 1))
                weight[:], bias[:] = (x.ravel() for x in self._plain(first))
        np.exp(self._views[-1], out=self._deviation)

    def gradient(self, blocks: ArrayAny) -> tuple[Array, Array]:
        """Return the gradient of the mean loss of a minibatch, and its sums of loss, divergence and squared error.

        Args:
            blocks: Which blocks of `samples`, counted through its first two axes.
        """
        self._pack()
        self._order[:] = blocks
        self._update.launch()
        # In one order, whichever thread made them: the same bits with any number of threads.
        whole = self._sums.sum(axis=0, dtype=float)
        if self.options.normalize_observation:
            for first in _FIRST_LAYERS:
                weight, bias = (whole[self._firsts[k] : self._firsts[k + 1]] for k in (first, first + 1))
                # What the kernel summed over observations as they are, over normalised ones.
                slope = weight.reshape(self._views[first].shape)
                moments = self._read_by(first)
                slope[:] = (slope - np.outer(bias, moments.mean)) / moments.deviation
        return whole[:-3], whole[-3:]

    def _plain(self, first: int) -> tuple[ArrayFloat, ArrayFloat]:
        """Weight and bias of a first layer over observations as they are: the same function."""
        if not self.options.normalize_observation:
            return self._views[first], self._views[first + 1]
        moments = self._read_by(first)
        weight = self._views[first] / moments.deviation
        return weight, self._views[first + 1] - weight @ moments.mean

    def _read_by(self, first: int) -> RunningMoments:
        """Of what goes into a first layer."""
        return self._known if self.sizes.known and first else self._seen

    def _inputs(self) -> list[tuple[RunningMoments, int, int]]:
        """Moments of what networks see, and where in a sample it stands: first number and count."""
        s = self.sizes
        own = [(self._known, s.observed + s.actions + 3, s.known)] if s.known else []
        return [(self._seen, 0, s.observed), *own]

    def _descend(self, gradient: Array) -> float:
        """Adam; returns the gradient's norm before it was shortened."""
        # Not by a library of linear algebra, whose threads wait by spinning and take sums in another order.
        norm = math.sqrt(float(np.square(gradient).sum()))
        if not math.isfinite(norm):
            raise AirworthyError("The gradient of PPO is not finite: rewards or observations of the task are too large.")
        gradient = gradient * min(1.0, self.options.gradient_norm / max(norm, 1e-30))
        self._steps += 1
        self._first += (1.0 - BETA1) * (gradient - self._first)
        self._second += (1.0 - BETA2) * (gradient * gradient - self._second)
        size = (
            self.learning_rate
            * self.options.rate_left(self.env_steps)
            * math.sqrt(1.0 - BETA2**self._steps)
            / (1.0 - BETA1**self._steps)
        )
        self.parameters -= (size * self._first / (np.sqrt(self._second) + EPSILON)).astype(np.float32)
        low, high = self.options.bounds_of_std(self.env_steps)
        np.clip(self._views[-1], math.log(low), math.log(high), out=self._views[-1])
        return norm

    @property
    def policy_weights(self) -> list[ArrayF32]:
        """Weight (rows, columns) and bias (rows,) of each layer of the policy, which ends in tanh: views where they can be."""
        first: list[ArrayF32] = [x.astype(np.float32, copy=False) for x in self._plain(0)]
        return [*first, *self._views[2:6]]

    # ---- what was learnt ---------------------------------------------------------------------------------------------

    def action(self, observation: ArrayFloat) -> Array:
        """Return deterministic actions, (env, actions), of observations (env, observed)."""
        return np.asarray(np.tanh(self._forward(observation, 0)))

    def value(self, observation: ArrayFloat) -> ArrayFloat:
        """Return what the critic expects, in scaled rewards, (env,), of what it sees (env, judged)."""
        return self._scaled(self._forward(observation, 6)[:, 0])

    def _forward(self, x: ArrayFloat, first: int) -> ArrayFloat:
        v: list[ArrayFloat] = [*self._views]
        v[first], v[first + 1] = self._plain(first)
        for k in (first, first + 2):
            x = np.tanh(x @ v[k].T + v[k + 1])
        return np.asarray(x @ v[first + 4].T + v[first + 5])

    def save(self) -> Checkpoint:
        """Return everything that the next update depends on."""
        environments = {f"environment_{name}": array for name, array in self.environments.saved().items()}
        arrays = {"parameters": self.parameters, "first": self._first, "second": self._second, **environments}
        if self.options.noise_memory:
            arrays["lasting"] = self._lasting
        for name, moments in self._moments():
            arrays |= {f"{name}_{k}": x for k, x in moments.saved().items()}
        notes = {
            "steps": self._steps,
            "learning_rate": self.learning_rate,
            "env_steps": self.env_steps,
            "generator": generator_state(self._rng),
        }
        return Checkpoint(self.updates, {k: np.array(a) for k, a in arrays.items()}, notes)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from what `save` gave, to the same bits."""
        arrays, notes = checkpoint.arrays, checkpoint.notes
        self.parameters[:] = arrays["parameters"]
        self._first[:], self._second[:] = arrays["first"], arrays["second"]
        prefix = "environment_"
        self.environments.restore({k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)})
        if self.options.noise_memory:
            self._lasting[:] = arrays["lasting"]
        for name, moments in self._moments():
            moments.restore({k.removeprefix(f"{name}_"): v for k, v in arrays.items() if k.startswith(f"{name}_")})
        self._steps, self.learning_rate, self.env_steps = notes["steps"], notes["learning_rate"], notes["env_steps"]
        restored_generator(self._rng, notes["generator"])
        self.updates = checkpoint.number

    def _moments(self) -> list[tuple[str, RunningMoments]]:
        """Of what is normalised."""
        o = self.options
        kept = [
            ("seen", self._seen, o.normalize_observation),
            ("known", self._known, o.normalize_observation and self.sizes.known > 0),
            ("expected", self._expectations, o.normalize_value),
        ]
        return [(name, moments) for name, moments, used in kept if used]
