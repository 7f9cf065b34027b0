"""SAC and TD3 for small networks, native: environments, replay and updates in one launch, NumPy around it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayF32, ArrayFloat, aligned_zeros
from airworthy.core.errors import AirworthyError
from airworthy.core.jobs.checkpoints import Checkpoint
from airworthy.core.native_kernel import CPU_LANES, Launcher, quiet_warp
from airworthy.core.random import Stream, flight_key, normals
from airworthy.learning.environments import VectorTask
from airworthy.learning.native_ppo.shared import check_symmetric
from airworthy.learning.off_policy.kernel import COUNTERS, SETTINGS, TOLD, LearnerShape, learner_kernel, scratch_rows
from airworthy.learning.off_policy.options import OffPolicyOptions, SacOptions, Td3Options
from airworthy.learning.off_policy.replay import ReplayRecords

__all__ = ["BATCH_FLIGHT", "OffPolicy", "OffPolicyUpdate", "check_batch"]

_WEIGHT_FLIGHT, BATCH_FLIGHT, _NOISE_EPISODE = 0xFFFFFFFF, 0xFFFFFF00, 0xFFFFFFFE
"""Flight ids and an episode of draws that no flight makes: of weights, of batches (one per lane), of actions."""
_SAVED = ("networks", "targets", "moments", "powers", "temperature", "counters")


@dataclass(frozen=True)
class OffPolicyUpdate:
    """What the steps and updates of one launch came to; means, NaN where there was nothing to take one of."""

    env_steps: int
    reward: float
    """Per step, as the task gives it."""
    critic_updates: int
    actor_updates: int
    critic_loss: float
    value: float
    """Of the critics, of what was drawn from the replay."""
    actor_loss: float
    entropy: float
    """Of SAC's actions: less their log-density."""
    temperature: float
    """SAC's weight of the entropy."""
    ended: int
    """Flights that ended."""
    terminated: int
    """Of these, those that were not only cut off."""
    episode_return: float


def check_batch(env_count: int) -> None:
    """Raise AirworthyError where environments do not fill whole vectors of lanes.

    Args:
        env_count: How many are learnt in.
    """
    if env_count % CPU_LANES:
        raise AirworthyError(f"{env_count} environments cannot be learnt from; expected a multiple of {CPU_LANES}.")


class OffPolicy:
    """An actor and two critics that learn a task from a replay of all that was flown.

    Args:
        environments: To learn in; a multiple of 16 of them.
        options: Of SAC or TD3.
        steps: Decisions of all environments together, which the replay has room for; whole steps of all are made.

    Raises:
        AirworthyError: Numbers that do not divide, or a replay that is too large.
    """

    def __init__(self, environments: VectorTask, options: OffPolicyOptions | None = None, steps: int = 200_000):
        self.options = o = options or SacOptions()
        self.environments, n = environments, environments.env_count
        check_batch(n)
        td3 = o if isinstance(o, Td3Options) else None
        noises = (td3.target_noise, td3.target_clip, td3.exploration_noise) if td3 else (0.0, 0.0, 0.0)
        k, a = environments.observation_count, environments.action_count
        # An asymmetric critic sees what a flight can never know: pushes, exact states (Pinto et al. 2018).
        privileged = environments.shape.traits.privileged
        check_symmetric(environments.task.name, o.symmetric, privileged)
        known = environments.critic_observation_count if privileged and not o.symmetric else 0
        self.shape = LearnerShape(o.kind, k, a, *o.hidden, o.batch, known, *noises)
        self.rounds = math.ceil(steps / n)
        """Steps of every environment, in all."""
        traits = environments.shape.traits
        staged = traits.curriculum is not None and traits.curriculum.each == "steps"
        self._weigh = getattr(environments.task, "term_weights", None) if staged else None
        count = len(environments.terms) if self._weigh else 0
        self.replay = ReplayRecords(self.rounds, n, self.shape.record, k + known, environments.task.episode_steps, count)
        end = self.shape.starts[-1]
        self._host: dict[str, ArrayAny] = {
            "settings": np.array([{"steps": steps}.get(name, getattr(o, name, 0.0)) for name in SETTINGS], np.float32),
            "networks": aligned_zeros(end),
            "targets": aligned_zeros(end),
            "moments": aligned_zeros((2, end)),
            "powers": np.ones((4, 2)),
            "temperature": np.zeros(3),
            "counters": np.zeros(len(COUNTERS), np.int32),
            "told": np.zeros(len(TOLD)),
        }
        self.scored = 0
        """Steps of every environment that were scored anew."""
        self._begin()
        self._make_launches()

    def _begin(self) -> None:
        """Layers of normal numbers, the last small, and the actor's biased to hover (specification, section 10)."""
        for network in range(3):
            views = self.views(network)
            for layer, w in enumerate(views[::2]):
                key = flight_key(self.options.seed, _WEIGHT_FLIGHT, 8 * network + layer)
                gain = 0.01 if layer == 2 else 1.0
                w[:] = (normals(key, 0, Stream.RESET, w.size) * (gain / math.sqrt(w.shape[1]))).reshape(w.shape)
        # Instead of normalising inputs: first weights are divided by the size that the task says its inputs have.
        sizes = getattr(self.environments.task, "input_sizes", None)
        if sizes is not None:
            seen, known = (np.array(x, np.float32) for x in sizes)
            for network in range(3):
                x = known if network and self.shape.known else seen
                self.views(network)[0][:, : len(x)] /= x
        a = self.shape.actions
        last = self.views(0)[5]
        # Within 0.99: a hover command at the action's limit has no finite arc.
        last[:a] = np.arctanh(np.clip(self.environments.hover_action, -0.99, 0.99))
        if isinstance(self.options, SacOptions):
            last[a:] = math.log(self.options.initial_std)
            self._host["temperature"][0] = math.log(self.options.initial_temperature)
        # Slow networks begin as the quick ones (Lillicrap et al. 2016).
        self._host["targets"][:] = self._host["networks"]

    def _make_launches(self) -> None:
        e, o, host = self.environments, self.options, self._host
        # Keys that no flight has: noise of actions must not be that of starts.
        keys = flight_key(o.seed, e.flight_ids, _NOISE_EPISODE).T.astype(np.uint32).copy()
        lanes = flight_key(o.seed, BATCH_FLIGHT + np.arange(CPU_LANES), 0).T.astype(np.uint32).copy()
        s = self.shape
        turned = 4 * (s.first * s.second) + s.second * s.raw + 2 * s.actions * s.first
        # Rows of a batch, a gradient, transposed matrices, each filled up to whole vectors.
        scratch = aligned_zeros(scratch_rows(s)["ROWS"] * (s.batch + CPU_LANES) + s.starts[-1] + turned + 4 * CPU_LANES)
        wp = quiet_warp()

        def shared(array: ArrayAny) -> Any:
            return wp.array(array.reshape(-1), device="cpu", copy=False)

        lent = [shared(x) for x in e.lend().values()]
        # An array of no length has no memory to share.
        terms = self.replay.terms if self.replay.terms.size else np.zeros(1, np.float32)
        flown = [shared(x) for x in (self.replay.records, self.replay.finals, terms, keys, lanes, scratch)]
        self._fixed = [*lent, e.env_count, e.task.episode_steps, *map(shared, host.values()), *flown]
        self._launchers: dict[int, Launcher] = {}
        self._kernel = learner_kernel(s, e.shape)
        self._look()

    def _look(self) -> None:
        """Put what is seen now where the next step begins."""
        s, e, record = self.shape, self.environments, self.replay.records[self.time]
        record[:, : s.observed] = e.observation
        if s.known:
            record[:, s.reward_at + 2 :] = e.critic_observation

    def prepare(self) -> None:
        """Build the kernel, where no step has; updates that are due are made: none, unless counters were set back."""
        self._launch(0)

    def _launch(self, rounds: int) -> None:
        if rounds not in self._launchers:
            o = self.options
            numbers = [rounds, o.critic_every, o.actor_every, o.critic_warmup, o.actor_warmup, int(self._weigh is not None)]
            self._launchers[rounds] = Launcher(self._kernel, 1, [*self._fixed, *numbers], "cpu")
        self.environments.lend()
        self._launchers[rounds].launch()

    # ---- learning ----------------------------------------------------------------------------------------------------

    @property
    def time(self) -> int:
        """Steps of every environment so far."""
        return int(self._host["counters"][COUNTERS.index("time")])

    @property
    def env_steps(self) -> int:
        """Decisions so far, over all environments."""
        return self.time * self.environments.env_count

    def advance(self, rounds: int) -> OffPolicyUpdate:
        """Take steps of every environment, and make the updates that they are due.

        Args:
            rounds: Steps of each; fewer where the replay has no more room.

        Raises:
            AirworthyError: A gradient was not finite.
        """
        # Sums of this call alone: the log's rows are means over what lies between them.
        first, told = self.time, self._host["told"]
        # The replay holds every step of the training: nothing is ever overwritten, and what was flown can be scored anew.
        rounds = min(rounds, self.rounds - first)
        told[:] = 0.0
        self._launch(rounds)
        if self._host["counters"][COUNTERS.index("broken")]:
            raise AirworthyError(
                f"A gradient of {self.options.kind} is not finite: rewards or observations of the task are too large."
            )
        self._score(first)
        t = dict(zip(TOLD, told.tolist(), strict=True))

        def mean(name: str, of: float) -> float:
            return t[name] / of if of else math.nan

        steps, sac = (self.time - first) * self.environments.env_count, self.options.kind == "sac"
        return OffPolicyUpdate(
            self.env_steps,
            mean("reward", steps),
            int(t["critic_updates"]),
            int(t["actor_updates"]),
            mean("critic_loss", t["critic_updates"]),
            mean("value", t["critic_updates"]),
            mean("actor_loss", t["actor_updates"]),
            -mean("log_density", t["actor_updates"]) if sac else math.nan,
            math.exp(self._host["temperature"][0]) if sac else 0.0,
            int(t["ended"]),
            int(t["terminated"]),
            mean("returns", t["ended"]),
        )

    def _score(self, first: int) -> None:
        """Move the level on, and where the weights of the reward moved with it, score all that was flown by the new ones."""
        e = self.environments
        if self._weigh is None:
            e.advance_curriculum(self.time - first)
            return
        terms, before = self.replay.terms, self._term_weights()
        # A weight of 0 stays 0 at every level: nothing is lost where its part is.
        units = np.divide(1.0, before, out=np.zeros_like(before), where=before > 0.0)
        terms[first : self.time] *= units.astype(np.float32)[None, :, None]
        e.advance_curriculum(self.time - first)
        after = self._term_weights()
        if np.any(after != before):
            self.scored = self.time
            self.replay.rescore(self.scored, after, self.shape.reward_at)

    def _term_weights(self) -> Array:
        """Return weights of the reward's parts at the present level, (terms,)."""
        e = self.environments
        assert self._weigh is not None
        c = e.shape.traits.curriculum
        assert c is not None
        weights = self._weigh((float(e.level[0]) - c.least) / (c.most - c.least))
        return np.array([weights[name] for name in e.terms])

    # ---- what was learnt ---------------------------------------------------------------------------------------------

    def views(self, network: int, target: bool = False) -> list[ArrayF32]:
        """Return the weight (rows, columns) and bias (rows,) of each layer of the actor (0) or a critic (1, 2): views.

        Args:
            network: Which.
            target: Of the slow one instead.
        """
        at, flat, views = self.shape.starts[network], self._host["targets" if target else "networks"], []
        for rows, columns in self.shape.matrices(network):
            views += [flat[at : at + rows * columns].reshape(rows, columns), flat[at + rows * columns :][:rows]]
            at += rows * columns + rows
        return views

    @property
    def policy_weights(self) -> list[ArrayF32]:
        """Weight and bias of each layer of the policy without noise, which ends in tanh: views."""
        # SAC has no slow actor: its place is that of the mean.
        views, a = self.views(0, target=self.options.kind == "sac"), self.shape.actions
        return [*views[:4], views[4][:a], views[5][:a]]

    def action(self, observation: ArrayFloat) -> ArrayFloat:
        """Return actions without noise, (env, actions), of observations (env, observed)."""
        x, w = observation, self.policy_weights
        for k in (0, 2, 4):
            x = np.tanh(x @ w[k].T + w[k + 1])
        return x

    # ---- stopping and going on ---------------------------------------------------------------------------------------

    def save(self, folder: Path | None = None) -> Checkpoint:
        """Return everything that the next step depends on.

        Args:
            folder: For what was flown, a part each time; None: it goes whole into the checkpoint.
        """
        arrays = {name: self._host[name] for name in _SAVED}
        arrays |= {f"environment_{name}": array for name, array in self.environments.saved().items()}
        if self.shape.known:
            # Environments go on without it: their own next step makes it anew.
            arrays["known"] = self.replay.records[self.time, :, self.shape.reward_at + 2 :]
        count, finals = self.time, int(self._host["counters"][COUNTERS.index("finals")])
        notes: dict[str, Any] = {"scored": self.scored}
        if folder is None:
            arrays |= {"records": self.replay.records[:count], "finals": self.replay.finals[:finals]}
            arrays["terms"] = self.replay.terms[:count]
        else:
            notes["replay"] = self.replay.save(folder, count, finals)
        return Checkpoint(self.time, {k: np.array(a) for k, a in arrays.items()}, notes)

    def restore(self, checkpoint: Checkpoint, folder: Path | None = None) -> None:
        """Go on from what `save` gave, to the same bits.

        Args:
            checkpoint: Of `save`.
            folder: As there.
        """
        arrays, notes = checkpoint.arrays, checkpoint.notes
        for name in _SAVED:
            self._host[name][...] = arrays[name]
        prefix = "environment_"
        held: Mapping[str, ArrayAny] = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
        self.environments.restore(held)
        if folder is None:
            for name in ("records", "finals", "terms"):
                getattr(self.replay, name)[: len(arrays[name])] = arrays[name]
        else:
            self.replay.restore(folder, notes["replay"])
        self.scored = int(notes["scored"])
        if self.scored:
            # Parts were written as they were scored then.
            self.replay.rescore(self.scored, self._term_weights(), self.shape.reward_at)
        self._look()
        if self.shape.known:
            self.replay.records[self.time, :, self.shape.reward_at + 2 :] = arrays["known"]
