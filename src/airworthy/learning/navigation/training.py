"""Learns to navigate by sight with PPO in torch: a training that is stopped, gone on with, and judged."""

from __future__ import annotations

import math
import time
from dataclasses import asdict
from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayF32
from airworthy.core.jobs.checkpoints import Checkpoint
from airworthy.learning.native_ppo.options import PpoUpdate
from airworthy.learning.navigation.environments import NavigationEnvironments
from airworthy.learning.navigation.eyes import LidarEye, NavigationEye, PooledEye
from airworthy.learning.navigation.options import LAG_SPREAD, NavigationOptions
from airworthy.learning.ppo.trainer import TorchPpo
from airworthy.pilots.navigation_policy.contract import NavigationContract
from airworthy.pilots.navigation_policy.network import NavigationPolicy
from airworthy.simulation.config import Randomization

__all__ = ["NavigationTraining", "plain_eye"]


def plain_eye(task: str) -> NavigationEye:
    """Return the eye that needs no encoder."""
    return LidarEye() if task == "lidar_navigation" else PooledEye()


class NavigationTraining:
    """A policy that learns a navigation task by reward.

    Args:
        options: How.
        eye: What it reads of images.
        encoder: SHA-256 of the weights of the eye's encoder; empty without one.
        threads: Most threads.
    """

    def __init__(self, options: NavigationOptions, eye: NavigationEye, encoder: str = "", threads: int | None = None):
        self.options, self._encoder = options, encoder
        options.check_batch()
        self.environments = NavigationEnvironments(
            options.learnt_task(),
            options.env_count,
            eye,
            options.seed,
            randomization=Randomization(lag=LAG_SPREAD),
            threads=threads,
            # Flights that all end together would make every rollout one part of a flight.
            staggered=True,
        )
        self.ppo = TorchPpo(self.environments, options.ppo(), threads)
        self.last: PpoUpdate | None = None
        """What the last update came to."""
        self.seconds = dict.fromkeys((*self.environments.seconds, "learning"), 0.0)
        """By the clock, of each part, over the whole training."""

    @property
    def iteration(self) -> int:
        """Updates done."""
        return self.ppo.updates

    @property
    def env_steps(self) -> int:
        """Decisions so far, over all flights."""
        return self.ppo.env_steps

    @property
    def finished(self) -> bool:
        """Whether all is learnt."""
        return self.iteration >= self.options.iterations

    def step(self) -> float:
        """Fly a rollout and learn from it; returns less the mean reward per step."""
        before, begun = dict(self.environments.seconds), time.perf_counter()
        self.last = self.ppo.update()
        # What the parts of the environments did not take is the network's: rollout and gradient.
        whole = time.perf_counter() - begun
        spent = {name: value - before[name] for name, value in self.environments.seconds.items()}
        for name, value in {**spent, "learning": whole - sum(spent.values())}.items():
            self.seconds[name] += value
        return -self.last.reward

    def metrics(self, cost: float) -> dict[str, Any]:
        """Return what is written down of the last update."""
        assert self.last is not None
        row = {name: None if isinstance(x, float) and not math.isfinite(x) else x for name, x in asdict(self.last).items()}
        return {**row, "cost": cost, "level": self.environments.level}

    @property
    def weights(self) -> dict[str, ArrayF32]:
        """Tensors of the policy as it is."""
        model, o = self.ppo.told_model, self.options
        found = {f"layers.{k}.{n}": x for k, layer in enumerate(model.actor.layers) for n, x in layer.named_parameters()}
        if o.recurrent:
            cell: Any = model.actor.cell
            for name, end in (("input", "ih"), ("memory", "hh")):
                found |= {f"{name}.weight": getattr(cell, f"weight_{end}"), f"{name}.bias": getattr(cell, f"bias_{end}")}
        found |= {f"action.{name}": x for name, x in model.mean.named_parameters()}
        moments = self.ppo.moments
        # By the names of the contract, which the pilot reads without torch.
        arrays = {name: x.detach().cpu().numpy().copy() for name, x in found.items()}
        # The running moments are frozen into the policy: it has to see what the network saw last.
        return arrays | {"seen.mean": moments.mean.astype(np.float32), "seen.deviation": moments.deviation.astype(np.float32)}

    @property
    def contract(self) -> NavigationContract:
        """What the policy reads, and how far it came."""
        o, e = self.options, self.environments
        told = {"iterations": self.iteration, "env_steps": self.env_steps, "level": e.level, "options": asdict(o)}
        return NavigationContract(o.task, o.image, e.eye.numbers, e.action_count, o.hidden, o.recurrent, self._encoder, told)

    @property
    def policy(self) -> NavigationPolicy:
        """The policy as it is."""
        return NavigationPolicy(self.contract, self.weights)

    def save(self) -> Checkpoint:
        """Return everything that the next update depends on."""
        inner = self.ppo.save()
        return Checkpoint(inner.number, inner.arrays, {**inner.notes, "seconds": self.seconds})

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from what `save` gave, to the same bits."""
        self.ppo.restore(checkpoint)
        self.seconds = dict(checkpoint.notes["seconds"])
