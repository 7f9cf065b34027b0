"""The readable twin of a learner's updates, on float64 NumPy: what is drawn, the losses' slopes by plain products, Adam."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayFloat
from airworthy.core.native_kernel import CPU_LANES
from airworthy.core.random import flight_key, normals, words
from airworthy.core.tracing import adjoint
from airworthy.learning.off_policy.kernel import ACTOR_DRAWS, ADAM, CRITIC_DRAWS, NOISE_DRAWS, SETTINGS, STREAM
from airworthy.learning.off_policy.trainer import BATCH_FLIGHT, OffPolicy

__all__ = ["UpdateTwin", "drawn_batch", "layer_gradients", "network_layers"]


def network_layers(weights: Sequence[ArrayFloat], x: Array) -> list[Array]:
    """Return the inputs of each layer, then the sums of the last, (samples, width) each.

    Args:
        weights: Matrix (rows, columns) and bias (rows,) of three layers, of which the first two end in tanh.
        x: (samples, columns of the first).
    """
    layers = [x]
    for k in (0, 2):
        layers.append(np.tanh(layers[-1] @ weights[k].T + weights[k + 1]))
    return [*layers, layers[-1] @ weights[4].T + weights[5]]


def layer_gradients(weights: Sequence[Array], layers: Sequence[Array], slope: Array) -> tuple[list[Array], Array]:
    """Return the gradient by weights and biases, and slopes by the inputs.

    Args:
        weights: As of `network_layers`.
        layers: What that gave.
        slope: By the sums of the last layer, (samples, rows).
    """
    parts: list[Array] = []
    for k in (2, 1, 0):
        parts = [slope.T @ layers[k], slope.sum(axis=0), *parts]
        slope = slope @ weights[2 * k]
        if k:
            slope = slope * (1.0 - layers[k] ** 2)
    return parts, slope


def drawn_batch(seed: int, step: int, first: int, count: int, batch: int, actions: int) -> tuple[ArrayAny, Array]:
    """Return which steps of the replay an update draws, (batch,), and its noise, (batch, actions).

    Args:
        seed: Of the training.
        step: Env-step that the update is due at.
        first: `CRITIC_DRAWS` or `ACTOR_DRAWS`.
        count: Steps in the replay.
        batch: Samples.
        actions: Numbers of an action.
    """
    key = flight_key(seed, BATCH_FLIGHT + np.arange(CPU_LANES), 0)
    blocks, each = batch // CPU_LANES, -(-actions // 4)
    found = words(key, step, STREAM, 4 * (first + -(-blocks // 4)))[:, 4 * first :][:, :blocks]
    start = first + NOISE_DRAWS
    noise = normals(key, step, STREAM, 4 * (start + blocks * each))[:, 4 * start :].reshape(CPU_LANES, blocks, 4 * each)
    # Sample 16 b + l is word b of lane l.
    index = (found.T.astype(np.uint64) * np.uint64(count)) >> np.uint64(32)
    return index.ravel().astype(np.int64), noise[..., :actions].transpose(1, 0, 2).reshape(batch, actions)


@dataclass
class _Adam:
    first: Array
    second: Array
    powers: Array

    def step(self, w: Array, gradient: Array, rate: float, settings: dict[str, float]) -> Array:
        """Return weights after a step on a gradient that is shortened.

        Args:
            w: Before it.
            gradient: Of the loss.
            rate: Learning rate of now.
            settings: Of the kernel.
        """
        g = gradient * min(1.0, settings["gradient_norm"] / max(float(np.sqrt(np.sum(gradient**2))), 1e-30))
        self.first = self.first + (1.0 - ADAM[0]) * (g - self.first)
        self.second = self.second + (1.0 - ADAM[1]) * (g * g - self.second)
        self.powers = self.powers * np.array(ADAM[:2])
        size = rate * np.sqrt(1.0 - self.powers[1]) / (1.0 - self.powers[0])
        return np.asarray(w * (1.0 - rate * settings["weight_decay"]) - size * self.first / (np.sqrt(self.second) + ADAM[2]))


class UpdateTwin:
    """The networks of a learner at this instant, updated by NumPy from what its replay holds.

    Args:
        learner: Whose everything is copied.
    """

    def __init__(self, learner: OffPolicy):
        self._shape, self._options, host = learner.shape, learner.options, learner._host
        self.settings = dict(zip(SETTINGS, host["settings"].astype(float).tolist(), strict=True))
        self._rate = self.settings["learning_rate"]
        self._count, self._env_count = learner.env_steps, learner.environments.env_count
        self._records = learner.replay.records.reshape(-1, self._shape.record).astype(float)
        self._finals = learner.replay.finals.astype(float)
        self.networks = [[w.astype(float) for w in learner.views(k)] for k in range(3)]
        self.targets = [[w.astype(float) for w in learner.views(k, target=True)] for k in range(3)]
        s, moments, powers = self._shape.starts, host["moments"].astype(float), host["powers"]
        ends = [s[k] + sum(w.size for w in self.networks[k]) for k in range(3)]
        self._adam = [_Adam(moments[0, s[k] : ends[k]], moments[1, s[k] : ends[k]], powers[k].copy()) for k in range(3)]
        self.temperature, self._temperature_powers = host["temperature"].copy(), powers[3].copy()
        """Logarithm of the temperature, and its two moments."""

    def _known(self, rows: Array) -> Array:
        """Return what critics see, of records."""
        s = self._shape
        return rows[:, s.reward_at + 2 :] if s.known else rows[:, : s.observed]

    def _fall(self, step: int) -> None:
        """Set the learning rate of an env-step."""
        t = self.settings
        self._rate = t["learning_rate"] * (1.0 - (1.0 - t["final_share"]) * step / t["steps"])

    def critics(self, step: int) -> list[list[Array]]:
        """Update both critics and their targets, as the kernel at an env-step; returns the gradients of their losses."""
        s, t = self._shape, self.settings
        self._fall(step)
        index, noise = drawn_batch(self._options.seed, step, CRITIC_DRAWS, self._count, s.batch, s.actions)
        rows = self._records[index]
        reward, way = rows[:, s.reward_at], rows[:, s.reward_at + 1]
        seen = np.concatenate([self._known(rows), rows[:, s.observed : s.reward_at]], axis=1)
        last, following = self._finals[np.maximum(way.astype(int) - 1, 0)], self._records[index + self._env_count]
        cut = way[:, None] > 0.5
        after = np.where(cut, last[:, : s.observed], following[:, : s.observed])
        known = np.where(cut, last[:, s.observed :] if s.known else last, self._known(following))
        policy = self.networks[0] if s.kind == "sac" else self.targets[0]
        raw = network_layers(policy, after)[3]
        *action, density = s.target(tuple(raw.T), tuple(noise.T))
        judged = np.concatenate([known, np.array(action).T], axis=1)
        least = np.minimum(*(network_layers(self.targets[k], judged)[3][:, 0] for k in (1, 2)))
        alpha = np.exp(self.temperature[0]) if s.kind == "sac" else 0.0
        target = t["reward_scale"] * reward + t["gamma"] * np.where(way < -0.5, 0.0, least - alpha * density)
        gradients = []
        for k in (1, 2):
            layers = network_layers(self.networks[k], seen)
            found, _ = layer_gradients(self.networks[k], layers, (layers[3] - target[:, None]) / s.batch)
            gradients.append(found)
            self._descend(k, found)
            self._follow(k, t["follow"])
        return gradients

    def actor(self, step: int) -> list[Array]:
        """Update the actor, and SAC's temperature or TD3's target, as the kernel; returns the gradient of the actor's loss."""
        s = self._shape
        self._fall(step)
        index, noise = drawn_batch(self._options.seed, step, ACTOR_DRAWS, self._count, s.batch, s.actions)
        rows = self._records[index]
        seen = rows[:, : s.observed]
        policy = network_layers(self.networks[0], seen)
        *action, density = s.act(tuple(policy[3].T), tuple(noise.T))
        judged = np.concatenate([self._known(rows), np.array(action).T], axis=1)
        values = [network_layers(self.networks[k], judged) for k in (1, 2)]
        q = np.array([v[3][:, 0] for v in values])
        lower = (
            np.array([q[0] <= q[1], q[0] > q[1]]) if s.kind == "sac" else np.array([[True], [False]]) & np.ones_like(q, bool)
        )
        by_action = np.zeros((s.batch, s.actions))
        for k in (0, 1):
            slope = np.where(lower[k], -1.0 / s.batch, 0.0)[:, None]
            by_action += layer_gradients(self.networks[k + 1], values[k], slope)[1][:, s.judged - s.actions :]
        alpha = np.exp(self.temperature[0]) if s.kind == "sac" else 0.0
        bar = [*by_action.T, np.full(s.batch, alpha / s.batch)]
        slopes = adjoint(lambda *x: s.act(x[: s.raw], x[s.raw :]), [*policy[3].T, *noise.T], bar)[1][: s.raw]
        gradient, _ = layer_gradients(self.networks[0], policy, np.array(np.broadcast_arrays(*slopes)).T)
        self._descend(0, gradient)
        if s.kind == "sac":
            self._follow(0, self.settings["average"])
            self._learn_temperature(-alpha * (float(np.mean(density)) + self.settings["target_entropy"]))
        else:
            self._follow(0, self.settings["follow"])
        return gradient

    def _learn_temperature(self, slope: float) -> None:
        log, first, second = self.temperature
        self._temperature_powers = self._temperature_powers * np.array(ADAM[:2])
        first += (1.0 - ADAM[0]) * (slope - first)
        second += (1.0 - ADAM[1]) * (slope * slope - second)
        ahead, spread = first / (1.0 - self._temperature_powers[0]), np.sqrt(second / (1.0 - self._temperature_powers[1]))
        self.temperature = np.array([log - self._rate * ahead / (spread + ADAM[2]), first, second])

    def _descend(self, network: int, gradient: Sequence[Array]) -> None:
        weights = self.networks[network]
        flat, whole = (np.concatenate([x.ravel() for x in parts]) for parts in (weights, gradient))
        moved = self._adam[network].step(flat, whole, self._rate, self.settings)
        ends = np.cumsum([w.size for w in weights])[:-1]
        self.networks[network] = [p.reshape(w.shape) for p, w in zip(np.split(moved, ends), weights, strict=True)]

    def _follow(self, network: int, share: float) -> None:
        pairs = zip(self.targets[network], self.networks[network], strict=True)
        self.targets[network] = [held + share * (w - held) for held, w in pairs]
