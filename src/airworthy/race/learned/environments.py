"""Flights of a race as PPO learns in them: observations, decisions held for some commands, rewards, ends, beginnings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayF32, ArrayInt
from airworthy.learning.environments import StepResult
from airworthy.learning.environments.vector_task import EpisodeEnds
from airworthy.race.learned.batch import COMMAND_HZ, FRAME, LOST_M, CourseBatch, FlightNoise
from airworthy.race.learned.observing import observed_numbers
from airworthy.race.learned.reward import RaceReward, plan_progress
from airworthy.race.learned.surrogate import CourseFlights

__all__ = ["CourseEnvironments"]

_FIRST_S = 0.05
"""Where progress begins at the start: at rest the plan points nowhere [s]; it has flown 2 cm by then."""
_MOST = 5.0
"""A decision is worth so many of its own durations of progress at most, and as much backwards: nobody jumps (ours)."""
_REWARDING = 1 << 33
"""Number of the draws of flights that are rewarded, beside that of the update; rounds of imitation are fewer."""


class CourseEnvironments:
    """Environments of one race, as `TorchPpo` takes them; each has a course of its own draw, and another behind every end.

    Args:
        course: What is flown.
        reward: What it earns.
        noise: Disturbances.
        env_count: Flights at once.
        hold: Commands that a decision is held for: 1, 2 or 4.
        from_start: Share of flights that begin at the start, the others somewhere on the course.
        seed: Of all that is drawn, with the number of the rollout.
    """

    def __init__(
        self,
        course: CourseFlights,
        reward: RaceReward,
        noise: FlightNoise,
        env_count: int,
        hold: int,
        from_start: float,
        seed: int,
    ) -> None:
        self.course, self.reward, self.env_count, self.hold = course, reward, env_count, hold
        self.action_count = 4
        self.terms: tuple[str, ...] = ("progress", "margin", "lost", "smooth")
        self.observation_count = observed_numbers(course.passages)
        self.hover_action = np.zeros(4, np.float32)
        self.flight_ids = np.arange(env_count)
        self._from_start, self._seed = from_start, seed
        self._batch = CourseBatch(course, np.random.default_rng([seed, _REWARDING]), env_count, 1.0, noise)
        self._ticks = np.zeros(1, np.int64)
        self._along, self._returns, self._length = np.zeros(env_count), np.zeros(env_count), np.zeros(env_count)
        self._before = np.zeros((env_count, 4), np.float32)
        self.observation: ArrayF32 = np.zeros((env_count, self.observation_count), np.float32)
        self._begin(np.arange(env_count))
        self._see()

    @property
    def critic_observation(self) -> ArrayF32:
        """What critics see: what policies see."""
        return self.observation

    @property
    def final_critic_observation(self) -> ArrayF32:
        """No flight is cut off: nobody asks what it saw last."""
        return self.observation

    @property
    def lost(self) -> int:
        """Flights that ended before their course, so far in this process."""
        return self._batch.lost

    @property
    def counts(self) -> tuple[int, int, int]:
        """Gates crossed, of these outside, and flights lost, so far in this process."""
        return self._batch.crossed, self._batch.hit, self._batch.lost

    def draw_by(self, update: int) -> None:
        """Draw from here on by the number of an update: what was drawn before does not matter."""
        self._batch.rng = np.random.default_rng([self._seed, _REWARDING, update])

    def step(self, actions: Any) -> StepResult:
        """Hold actions within -1 and 1, (env, 4), for a decision, in all flights; those that end begin anew."""
        batch, count = self._batch, self.env_count
        bounded = np.clip(np.nan_to_num(np.asarray(actions, np.float32)), -1.0, 1.0)
        margin = np.full(count, np.inf)
        for _ in range(self.hold):
            believed, before = batch.believed()[0], batch.state
            batch.move(bounded)
            margin = np.minimum(margin, batch.judge(before).margin)
            batch.progress(believed)
            self._ticks += 1
            if self._ticks[0] % FRAME == 0:
                batch.look()
        progress, away = self._advance()
        # Of what is no number, too: it is far off.
        low = ~((away < LOST_M) & (batch.state[:, 2] > 0.0))
        through = (batch.judged >= self.course.passages) & (margin >= 0.0)
        over = (low | (margin < 0.0)) & ~through
        terms = self.reward.terms(progress, self.hold / COMMAND_HZ, margin, over, bounded - self._before)
        reward = np.sum(list(terms.values()), axis=0)
        self._before = bounded.copy()
        self._returns, self._length = self._returns + reward, self._length + 1.0
        ended = over | through
        batch.lost += int(over.sum())
        ends = EpisodeEnds(
            ended, self._returns.astype(np.float32), self._length.astype(np.float32), through, ~np.isfinite(away)
        )
        if ended.any():
            self._begin(np.flatnonzero(ended))
        self._see()
        return StepResult(self.observation, reward, ended, np.zeros(count, bool), self.observation, ends, terms)

    def _advance(self) -> tuple[Array, Array]:
        """Progress along the plan [s] and distance from it [m], (env,) each."""
        batch, most = self._batch, _MOST * self.hold / COMMAND_HZ
        shifts = batch.true_center - self.course.nominal
        point, velocity, _, _ = self.course.reference.path(self._along, shifts)
        ahead = plan_progress(batch.state[:, :3], point, velocity)
        away = np.linalg.norm(batch.state[:, :3] - point - ahead[:, None] * velocity, axis=1)
        before = self._along
        self._along = np.maximum(before + np.clip(np.nan_to_num(ahead), -most, most), _FIRST_S)
        return self._along - before, away

    def _begin(self, rows: ArrayInt) -> None:
        batch = self._batch
        batch.begin_anew(rows, self._from_start)
        self._along[rows] = np.maximum(batch.phase[rows], _FIRST_S)
        self._returns[rows], self._length[rows], self._before[rows] = 0.0, 0.0, 0.0
        batch.believe()

    def _see(self) -> None:
        believed, axes = self._batch.believed()
        self.observation = self._batch.observe(believed, axes)

    def saved(self) -> dict[str, ArrayAny]:
        """Return everything that the next step depends on beside `draw_by`."""
        mine = {"ticks": self._ticks, "along": self._along, "returns": self._returns, "length": self._length}
        return {**self._batch.saved(), **mine, "before": self._before}

    def restore(self, saved: Mapping[str, ArrayAny]) -> None:
        """Go on from what `saved` gave."""
        self._batch.restore(saved)
        self._ticks, self._along, self._returns = (np.array(saved[k]) for k in ("ticks", "along", "returns"))
        self._length, self._before = np.array(saved["length"]), np.array(saved["before"])
        self._see()
