"""PPO (Schulman et al. 2017) in torch, to read and to change: whatever network, the same update as `NativePpo`.

From the same options and seed both draw the same first weights, noise of actions and order of samples: their parameters agree
(tests/learning/test_ppo_parity.py).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from airworthy.core.arrays import Array, ArrayAny, ArrayF32, ArrayFloat
from airworthy.core.errors import AirworthyError
from airworthy.core.jobs.checkpoints import Checkpoint
from airworthy.core.native_kernel import thread_limit
from airworthy.learning.machine import COUNT_MAX
from airworthy.learning.native_ppo.moments import RunningMoments, WeightAverage
from airworthy.learning.native_ppo.options import PpoUpdate
from airworthy.learning.native_ppo.shared import (
    ActionNoise,
    Rollout,
    adapted_rate,
    check_symmetric,
    generalized_advantages,
    generator_state,
    restored_generator,
)
from airworthy.learning.ppo.adam import Adam
from airworthy.learning.ppo.loss import Samples, batch_loss
from airworthy.learning.ppo.model import ActorCritic, Trunk
from airworthy.learning.ppo.options import TorchPpoOptions
from airworthy.learning.ppo.rollout import Flown, PpoEnvironments
from airworthy.learning.ppo.symmetry import Mirror, mirrors
from airworthy.learning.ppo.threads import one_thread, share_alone

__all__ = ["TorchPpo"]

_PART = 2048
"""Samples of a minibatch whose layers stay in a core's second cache; threads share such parts (measured: 1.4 times as fast as
32,768 at once)."""
_SKIPPED_MOST = 10
"""Minibatches in a row without a number; more are no accident (ours)."""


class TorchPpo:
    """A policy and its critic that learn a task by reward.

    Args:
        environments: To learn in.
        options: How.
        threads: Most threads; the numbers are the same.
        device: cpu or cuda:N, of networks; environments are on the CPU.

    Raises:
        AirworthyError: Numbers of environments or samples that do not divide, or an image that is no part of observations.
    """

    def __init__(
        self,
        environments: PpoEnvironments,
        options: TorchPpoOptions | None = None,
        threads: int | None = None,
        device: str = "cpu",
    ):
        self.options = o = options or TorchPpoOptions()
        self.environments, self.device = environments, torch.device(device)
        on_cpu = self.device.type == "cpu"
        # A GPU takes a minibatch whole, and from one thread.
        self._threads, self._part = ((threads or thread_limit()), _PART) if on_cpu else (1, COUNT_MAX)
        e, count = environments, environments.env_count
        own = not np.shares_memory(e.critic_observation, e.observation)
        # Of most tasks critics see what policies see: then it is kept once.
        check_symmetric(str(getattr(getattr(e, "task", None), "name", "this")), o.symmetric, own)
        self._critic_count = e.critic_observation.shape[1] if own and not o.symmetric else 0
        self._check(count)
        sizes = e.observation_count, self._critic_count or e.observation_count, e.action_count
        self.model = ActorCritic(sizes, o, e.hover_action, o.seed).to(self.device)
        self._adam = Adam(self.model.ordered_parameters())
        self._noise = ActionNoise(o.seed, e.flight_ids, e.action_count, o.rollout)
        self._told_in_flight: list[Tensor] = []
        self._flown = Flown((o.rollout, count, e.observation_count, self._critic_count, e.action_count), self.device)
        self._seen, self._critic_seen, self._values = (RunningMoments(n) for n in (*sizes[:2], 1))
        self._memory, self._critic_memory = (self.model.memory(count, self.device) for _ in range(2))
        self._begun_with = self._memory, self._critic_memory
        self._lasting = torch.zeros((count, e.action_count), device=self.device)
        self.learning_rate, self.env_steps, self.updates = o.learning_rate, 0, 0
        self._mirrors = mirrors(e, o.mirror) if o.mirror != "none" else []
        # Of each image, what policy and critic that flew it would remember by now.
        nothing = self.model.memory(count, self.device)
        self._mirror_memories = [(nothing, nothing) for _ in self._mirrors]
        self._average = WeightAverage(o.average_updates)
        self._told: tuple[int, ActorCritic] = (0, self.model)
        self._rng = np.random.Generator(np.random.Philox(key=o.seed & (2**64 - 1)))
        self._skipped = 0

    def _check(self, count: int) -> None:
        o, e = self.options, self.environments
        o.check_batch(count)
        self._blocks, self._block = o.blocks(count)
        if math.prod(o.image) > e.observation_count and o.image:
            raise AirworthyError(
                f"An image of {' x '.join(map(str, o.image))} cannot be part of {e.observation_count} observed numbers."
            )
        if o.shared and self._critic_count:
            raise AirworthyError("The critic sees more than the policy in this task: its layers cannot be shared with it.")

    # ---- learning ----------------------------------------------------------------------------------------------------

    def update(self) -> PpoUpdate:
        """Fly one rollout and learn from it."""
        o = self.options
        with one_thread():
            flown = self.fly()
            advantages = generalized_advantages(
                flown.rewards * o.reward_scale, self._expected[:-1], self._expected[-1], flown.ended, flown.cut_values,
                o.gamma, o.lam,
            )  # fmt: skip
            samples = self._samples(advantages)
            spread = float((advantages + self._expected[:-1]).var())
            explained = 1.0 - float(advantages.var()) / spread if spread > 0.0 else math.nan
            told = self._learn(samples)
            self._remember_moments()
            if o.average_updates:
                self._average.learn(self._adam.flat.double().cpu().numpy())
        self.updates += 1
        self.env_steps += flown.rewards.size
        std, entropy = self._spread()
        return replace(
            told,
            env_steps=self.env_steps,
            reward=float(flown.rewards.mean()),
            explained=explained,
            std=std,
            learning_rate=self.learning_rate,
            ended=int(flown.ended.sum()),
            terminated=flown.terminated,
            episode_return=float(np.mean(flown.returns)) if len(flown.returns) else math.nan,
            terms=flown.terms,
            entropy=entropy,
            success=flown.succeeded / int(flown.ended.sum()) if flown.ended.any() else math.nan,
        )

    @torch.no_grad()
    def fly(self) -> Rollout:
        """Fly a rollout; what was seen and done is kept for the update."""
        o, e, f = self.options, self.environments, self._flown
        f.begin()
        f.noise.copy_(torch.from_numpy(self._noise.draw(self.updates * o.rollout)))
        self._begun_with, self._told_in_flight = (self._memory, self._critic_memory), []
        totals = dict.fromkeys(e.terms, 0.0)
        for t in range(o.rollout):
            self._look(t)
            x, self._memory = self.model.actor(self._normal(f.seen[t]), self._memory)
            self._told_in_flight.append(x)
            policy = self.model.policy(x)
            f.taken[t] = policy.mean + policy.log_std.exp() * f.noise[t]
            f.log_probability[t] = policy.log_probability(f.taken[t])
            flown = policy.action(f.taken[t] + self._lasting)
            # What earlier actions left of their noise is a part of the environment to the policy; new flights have none.
            self._lasting = (self._lasting + policy.log_std.exp() * f.noise[t]) * o.noise_memory
            result = e.step(flown.cpu().numpy())
            f.note(t, result, e.final_critic_observation if self._critic_count else result.final_observation)
            self._memory, self._lasting = (torch.where(f.ended[t, :, None], 0.0, x) for x in (self._memory, self._lasting))
            for name, values in result.terms.items():
                totals[name] += float(values.mean(dtype=float))
        self._look(o.rollout)
        cut_values = self._expect()
        returns = np.concatenate(f.returns) if f.returns else np.zeros(0)
        means = {name: total / o.rollout for name, total in totals.items()}
        return Rollout(f.rewards, f.ended.cpu().numpy(), cut_values, f.terminated, returns.astype(float), means, f.succeeded)

    def _look(self, t: int) -> None:
        """Keep what is seen now."""
        self._flown.seen[t] = torch.from_numpy(self.environments.observation)
        if self._critic_count:
            self._flown.critic_seen[t] = torch.from_numpy(self.environments.critic_observation)

    def _normal(self, seen: Tensor, critic: bool = False) -> Tensor:
        """Observations as networks read them."""
        if not self.options.normalize_observation:
            return seen
        moments = self._critic_seen if critic and self._critic_count else self._seen
        shift, scale = moments.mean.copy(), 1.0 / moments.deviation
        if self.options.image:
            # Pixels are alike among themselves: scaled one by one, an edge that never changes would be blown up.
            first = len(shift) - math.prod(self.options.image)
            shift[first:], scale[first:] = 0.0, 1.0
        shift, scale = (torch.from_numpy(x).float().to(self.device) for x in (shift, scale))
        return (seen - shift) * scale

    def _expect(self) -> Array:
        """Ask the critic for all of the rollout; returns what it expects of flights that were cut off, (steps, env)."""
        f, o = self._flown, self.options
        self._weight = f.sound()
        x = self._normal(f.critic_seen, critic=True)
        if o.recurrent:
            told, self._critic_memory = self._remembered(x)
        else:
            told = torch.empty((*x.shape[:2], 1), device=self.device)
            rows, found = x.flatten(0, 1), told.view(-1)

            def part(at: int) -> None:
                with torch.no_grad():
                    some = rows[at : at + self._part]
                    found[at : at + len(some)] = self.model.value(self.model.critic.features(some))

            share_alone(part, range(0, len(rows), self._part), self._threads)
        self._raw_values = told[..., 0] if not o.recurrent else self.model.value(told)
        self._expected = self._scaled(self._raw_values)
        cuts = np.zeros(f.rewards.shape)
        for cut in f.cuts:
            at = torch.from_numpy(cut.where).to(self.device)
            seen = self._normal(torch.nan_to_num(cut.seen, 0.0, 0.0, 0.0), critic=True)
            # The memory of this very flight: what it held before the new one began.
            memory = told[cut.step, at] if o.recurrent else self._critic_memory
            cuts[cut.step, cut.where] = self._scaled(self.model.value(self.model.critic(seen, memory)[0]))
        return cuts

    def _remembered(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return what the critic's trunk makes of each instant, and its memory for the next rollout."""
        before, ended = self._begun_with[1], self._flown.ended
        if self.options.shared and bool((self._weight > 0.0).all()):
            # The critic reads what the policy's trunk made of the same instants, by the same weights; of a rollout with numbers
            # that are none it is made anew, without them.
            told, after = self._told_in_flight, self._memory
        else:
            found, after = self.model.critic.sequence(x[:-1], before, ended)
            told = list(found)
        last, _ = self.model.critic(x[-1], after)
        return torch.stack([*told, last]), after

    def _scaled(self, values: Tensor) -> Array:
        """Values in scaled rewards, of what the critic gives."""
        found = values.double().cpu().numpy()
        return found * self._values.deviation[0] + self._values.mean[0] if self.options.normalize_value else found

    def _samples(self, advantages: Array) -> Samples:
        f, o = self._flown, self.options
        old = self._expected[:-1]
        targets = advantages + old
        if o.normalize_value:
            # The targets of this rollout count already, or the first ones would be learnt as they are.
            self._values.learn(targets.reshape(-1, 1))
            old, targets = ((x - self._values.mean[0]) / self._values.deviation[0] for x in (old, targets))
        normal = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        gain, target, value = (torch.from_numpy(x.astype(np.float32)).to(self.device) for x in (normal, targets, old))
        return Samples(f.taken, f.noise, f.log_probability, gain, target, value, self._weight)

    def _learn(self, samples: Samples) -> PpoUpdate:
        o = self.options
        divergence = error = norm = 0.0
        passes = skipped = 0
        count = samples.weight.numel()
        seen = self._normal(self._flown.seen[:-1])
        # Most critics see what their policies see: then it is brought to one scale once.
        inputs = [(seen, self._normal(self._flown.critic_seen[:-1], critic=True) if self._critic_count else seen)]
        for image in self._mirrors:
            signs = torch.from_numpy(image.seen).float().to(self.device)
            plain = self._flown.seen[:-1]
            if image.seen_order is not None:
                plain = plain[..., torch.from_numpy(image.seen_order).to(self.device)]
            inputs.append((x := self._normal(plain * signs), x))
        memories = [self._begun_with, *self._remembered_images(inputs[1:])]
        if o.anneal_updates:
            self.learning_rate = o.learning_rate * max(0.0, 1.0 - self.updates / o.anneal_updates)
        for _ in range(o.epochs):
            divergence = error = 0.0
            # Blocks of environments at one instant are drawn together: their flights know nothing of each other.
            for order in np.split(self._rng.permutation(self._blocks), o.minibatches):
                gradient, sums = self.gradient(order, samples, inputs, memories)
                length = self._descend(gradient)
                skipped += length is None
                norm = norm if length is None else length
                divergence, error = divergence + sums[1], error + sums[2]
            passes += 1
            self.learning_rate = adapted_rate(self.learning_rate, divergence / count, o.target_divergence)
            if o.stop_divergence and divergence / count > o.stop_divergence:
                break
        told = (float(divergence) / count, math.sqrt(max(float(error), 0.0) / count))
        return PpoUpdate(0, 0.0, *told, 0.0, 0.0, 0.0, norm, 0, 0, 0.0, passes=passes, skipped=skipped)

    @torch.no_grad()
    def _remembered_images(self, inputs: Sequence[tuple[Tensor, Tensor]]) -> list[tuple[Tensor, Tensor]]:
        """Return what policy and critic remembered when each image of the rollout began, and keep what they do behind it.

        Args:
            inputs: Of policy and critic, (steps, env, seen), of each image.
        """
        begun, model = self._mirror_memories, self.model
        if self.options.recurrent:
            after = []
            for (seen, judged), (memory, other) in zip(inputs, begun, strict=True):
                mine = self._behind(model.actor, seen, memory)
                after.append((mine, mine if self.options.shared else self._behind(model.critic, judged, other)))
            self._mirror_memories = after
        return begun

    def _behind(self, trunk: Trunk, seen: Tensor, memory: Tensor) -> Tensor:
        """Return what a trunk remembers behind the rollout, (env, width), of instants seen (steps, env, seen)."""
        after, rows = torch.empty_like(memory), max(1, self._part // len(seen))

        def part(at: int) -> None:
            with torch.no_grad():
                some = slice(at, at + rows)
                after[some] = trunk.sequence(seen[:, some], memory[some], self._flown.ended[:, some])[1]

        share_alone(part, range(0, len(memory), rows), self._threads)
        return after

    def gradient(
        self,
        order: ArrayAny,
        samples: Samples,
        inputs: Sequence[tuple[Tensor, Tensor]],
        memories: Sequence[tuple[Tensor, Tensor]] | None = None,
    ) -> tuple[Tensor, Array]:
        """Return the gradient of the mean loss of a minibatch, (parameters,) float64, and its sums of loss, divergence, squared
        error.

        Args:
            order: Which blocks of samples; of networks with memory, which environments.
            samples: Of the rollout.
            inputs: Of policy and critic, (steps, env, seen), as flown and of each mirror image.
            memories: Of policy and critic when the rollout began, (env, width), alike; None: those of the flights.
        """
        begun = [self._begun_with] * len(inputs) if memories is None else memories
        recurrent = bool(self.options.recurrent)
        rows = max(1, self._part // (self.options.rollout if recurrent else self._block))
        parts = [order[k : k + rows] for k in range(0, len(order), rows)]
        # Flights and their images are learnt apart: minibatches of networks with memory are too small to be parted otherwise.
        items = [(rows, which) for rows in parts for which in range(len(inputs))]
        found: list[Any] = [None] * len(items)
        size = len(order) * (self.options.rollout if recurrent else self._block)

        def part(k: int) -> None:
            rows, which = items[k]
            taken, seen = self._chosen(rows, samples, inputs[which])
            if which:
                # As if the policy had been alike mirrored: an image has its flight's probability and advantage (Mittal et al.).
                image = self._mirrors[which - 1]
                taken = replace(taken, taken=_turned(taken.taken, image), noise=_turned(taken.noise, image))
            at = torch.from_numpy(rows).to(self.device)
            held = tuple(x[at] for x in begun[which]) if recurrent else None
            loss, *told = self._loss(taken, seen, held, rows)
            slopes = torch.autograd.grad(loss / (size * len(inputs)), self._adam.parameters)
            # What divergence and error say is of the flights alone.
            sums = [float(loss.detach()), *(0.0 if which else float(x.detach()) for x in told)]
            found[k] = torch.cat([x.reshape(-1) for x in slopes]).double(), sums

        share_alone(part, range(len(items)), self._threads)
        # In one order, whichever thread made them: the same bits with any number of threads.
        gradient = found[0][0]
        for more, _ in found[1:]:
            gradient = gradient + more
        return gradient, np.sum([sums for _, sums in found], axis=0)

    def _chosen(self, part: ArrayAny, samples: Samples, inputs: Sequence[Tensor]) -> tuple[Samples, list[Tensor]]:
        """Of a part of a minibatch: blocks of samples in one row, or (steps, env) of some environments."""
        at = torch.from_numpy(part).to(self.device)

        def pick(x: Tensor) -> Tensor:
            if self.options.recurrent:
                return x[:, at]
            rest = x.shape[2:]
            return x.reshape(self._blocks, self._block, *rest)[at].reshape(-1, *rest)

        o, held = self.options, vars(samples)
        # What the loss does not read is not gathered: noise but for squashed actions, old values but for clipped ones.
        unread = {"noise"} if not o.squash else set()
        unread |= {"value"} if not o.value_clip else set()
        taken = Samples(**{name: x if name in unread else pick(x) for name, x in held.items()})
        seen = pick(inputs[0])
        return taken, [seen, seen if inputs[1] is inputs[0] else pick(inputs[1])]

    def _loss(
        self, samples: Samples, seen: Sequence[Tensor], memories: Sequence[Tensor] | None, part: ArrayAny
    ) -> tuple[Tensor, Tensor, Tensor]:
        model = self.model
        if memories is None:
            actor = model.actor.features(seen[0])
            critic = actor if self.options.shared else model.critic.features(seen[1])
        else:
            ended = self._flown.ended[:, torch.from_numpy(part).to(self.device)]
            actor, _ = model.actor.sequence(seen[0], memories[0], ended)
            critic = actor if self.options.shared else model.critic.sequence(seen[1], memories[1], ended)[0]
        return batch_loss(model.policy(actor), model.value(critic), samples, self.options)

    def _descend(self, gradient: Tensor) -> float | None:
        """Adam; returns the gradient's norm before it was shortened, None where it was no number and nothing changed."""
        norm = float(gradient.square().sum().sqrt())
        if not math.isfinite(norm):
            self._skipped += 1
            if self._skipped > _SKIPPED_MOST:
                raise AirworthyError(
                    f"The gradients of {self._skipped} minibatches of PPO in a row are not finite: rewards or observations of"
                    " the task are too large."
                )
            return None
        self._skipped = 0
        self._adam.step(
            gradient * min(1.0, self.options.gradient_norm / max(norm, 1e-30)),
            self.learning_rate * self.options.rate_left(self.env_steps),
        )
        if self.options.deviation == "parameter":
            low, high = self.options.bounds_of_std(self.env_steps)
            self.model.log_std.data.clamp_(min=math.log(low), max=math.log(high))
        return norm

    def _remember_moments(self) -> None:
        """Count what was seen; only now, so that a rollout and its update read the same numbers."""
        if not self.options.normalize_observation:
            return
        f = self._flown
        # Of a critic that sees the same the policy's moments are read.
        own = ((self._critic_seen, f.critic_seen),) if self._critic_count else ()
        for moments, rows in ((self._seen, f.seen), *own):
            moments.learn(rows[:-1].flatten(0, 1).cpu().numpy())

    # ---- what was learnt ---------------------------------------------------------------------------------------------

    @torch.no_grad()
    def _spread(self) -> tuple[float, float]:
        """Mean deviation and entropy of actions, by the policy as it is now, at the rollout's first instant."""
        seen = self._normal(self._flown.seen[0])
        policy = self.model.policy(self.model.actor(seen, self._begun_with[0])[0])
        return float(policy.log_std.exp().mean()), float(policy.entropy(self._flown.noise[0]))

    @property
    def told_model(self) -> ActorCritic:
        """Networks as they are written down and fly: with their weights averaged where `average_updates` says so."""
        if not self._average.count:
            return self.model
        if self._told[0] != self.updates:
            found = copy.deepcopy(self.model)
            mean = torch.from_numpy(self._average.mean).float().to(self.device)
            torch.nn.utils.vector_to_parameters(mean, found.ordered_parameters())
            self._told = self.updates, found
        return self._told[1]

    @torch.no_grad()
    def action(self, observation: ArrayFloat, memory: Tensor | None = None) -> Array:
        """Return deterministic actions, (env, actions), of observations (env, observed); without recurrent layers.

        Args:
            observation: As the task gives it.
            memory: Of a recurrent policy, (env, width), which is changed in place; see `ActorCritic.memory`.
        """
        seen = self._normal(torch.from_numpy(np.asarray(observation, np.float32)).to(self.device))
        held = self.told_model.memory(len(seen), self.device) if memory is None else memory
        features, after = self.told_model.actor(seen, held)
        if memory is not None:
            memory.copy_(after)
        policy = self.told_model.policy(features)
        return policy.action(policy.mean).double().cpu().numpy()

    @torch.no_grad()
    def value(self, observation: ArrayFloat) -> Array:
        """Return what the critic expects, in scaled rewards, (env,), of flights that begin with what it sees."""
        seen = self._normal(torch.from_numpy(np.asarray(observation, np.float32)).to(self.device), critic=True)
        return self._scaled(self.model.value(self.model.critic(seen, self.model.memory(len(seen), self.device))[0]))

    @property
    def policy_weights(self) -> list[ArrayF32]:
        """Weight (rows, columns) and bias (rows,) of each layer of the policy, which ends in tanh.

        Raises:
            AirworthyError: The policy has other layers than these.
        """
        o = self.options
        if o.recurrent or o.image:
            raise AirworthyError("Only policies of tanh layers alone are held as weights and biases; this one has others.")
        model = self.told_model
        layers = [*model.actor.layers, model.mean]
        found = [x.detach().double().cpu().numpy() for layer in layers for x in (layer.weight, layer.bias)]
        if o.normalize_observation:
            # (x - mean) / deviation, written into the first layer: the policy needs nothing beside it.
            found[0] = found[0] / self._seen.deviation
            found[1] = found[1] - found[0] @ self._seen.mean
        return [x.astype(np.float32) for x in found]

    @property
    def moments(self) -> RunningMoments:
        """Of observations so far, by which policies read them where they are normalised."""
        return self._seen

    def save(self) -> Checkpoint:
        """Return everything that the next update depends on."""
        arrays: dict[str, ArrayAny] = {f"environment_{k}": x for k, x in self.environments.saved().items()}
        arrays |= self._adam.saved()
        for name, moments in self._moments():
            arrays |= {f"{name}_{k}": x for k, x in moments.saved().items()}
        if self.options.noise_memory:
            arrays["lasting"] = self._lasting.cpu().numpy()
        if self.options.recurrent:
            arrays |= {"memory": self._memory.cpu().numpy(), "critic_memory": self._critic_memory.cpu().numpy()}
            for k, pair in enumerate(self._mirror_memories):
                arrays |= {f"image_{k}_{j}": x.cpu().numpy() for j, x in enumerate(pair)}
        arrays |= {f"average_{name}": x for name, x in self._average.saved().items()}
        notes = {
            "steps": self._adam.steps,
            "learning_rate": self.learning_rate,
            "env_steps": self.env_steps,
            "skipped": self._skipped,
            "generator": generator_state(self._rng),
        }
        return Checkpoint(self.updates, {k: np.array(a) for k, a in arrays.items()}, notes)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from what `save` gave, on a CPU to the same bits."""
        arrays, notes = checkpoint.arrays, checkpoint.notes
        self._adam.restore(arrays, int(notes["steps"]))
        self.environments.restore(_under(arrays, "environment_"))
        for name, moments in self._moments():
            moments.restore(_under(arrays, f"{name}_"))
        if self.options.noise_memory:
            self._lasting = torch.from_numpy(np.array(arrays["lasting"])).to(self.device)
        if self.options.recurrent:
            self._memory, self._critic_memory = (
                torch.from_numpy(np.array(arrays[name])).to(self.device) for name in ("memory", "critic_memory")
            )
            first, other = (
                [torch.from_numpy(np.array(arrays[f"image_{k}_{j}"])).to(self.device) for k in range(len(self._mirrors))]
                for j in range(2)
            )
            self._mirror_memories = list(zip(first, other, strict=True))
        self._average.restore(_under(arrays, "average_"))
        self.learning_rate, self.env_steps = float(notes["learning_rate"]), int(notes["env_steps"])
        self._skipped = int(notes["skipped"])
        restored_generator(self._rng, notes["generator"])
        self.updates = checkpoint.number

    def _moments(self) -> list[tuple[str, RunningMoments]]:
        return [("seen", self._seen), ("critic_seen", self._critic_seen), ("values", self._values)]


def _turned(actions: Tensor, image: Mirror) -> Tensor:
    """Actions of an image, (..., actions)."""
    found = actions[..., torch.from_numpy(image.rotors).to(actions.device)]
    return found if image.acted is None else found * torch.from_numpy(image.acted).to(found)


def _under(arrays: Any, head: str) -> dict[str, ArrayAny]:
    return {name.removeprefix(head): x for name, x in arrays.items() if name.startswith(head)}
