"""Environments of the navigation tasks: a launch of the policy step, images of where it led, and terms that read them."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayF32, ArrayFloat, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.core.random import Stream, flight_key, uniforms
from airworthy.learning.environments import FlightConditions, StepResult, VectorTask
from airworthy.learning.environments.rooms import euler_matrices
from airworthy.learning.navigation.eyes import NavigationEye, PooledEye
from airworthy.learning.navigation.sight import POSE_NUMBERS, RoomSight
from airworthy.learning.navigation.tasks import LidarNavigation, NavigationTask
from airworthy.learning.ppo.symmetry import Mirror
from airworthy.pilots.navigation_policy.sight import CELLS, STATE_NUMBERS
from airworthy.simulation.config import Randomization
from airworthy.vehicles import Vehicle

__all__ = ["SIGHT", "NavigationEnvironments", "sight_term", "time_to_collision"]

SIGHT = "sight"
"""Name of the term of the reward that reads the image."""
_VELOCITY = slice(7, 10)
"""Of an observation: body velocity, which has no noise."""
_MIRRORED_STATE = np.array([1, -1, 1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1], float)
"""Signs of an observation's first numbers (`NavigationTask.observe`) where left is right: of what points to the left, of roll
and heading, and of body rates, which are axial, about the other axes."""
_NOISE_INDEX = 32
"""First word of an image's noise, of those of its instant: behind what the step draws (`environments.kernel`)."""


class NavigationEnvironments:
    """Many flights of a navigation task, as learners of PPO in torch know environments.

    Every number of a flight depends on (seed, flight id, episode) and its own actions alone.

    Args:
        task: Which.
        env_count: Flights at once.
        eye: What becomes of images.
        seed: Of all that is drawn.
        vehicle: That is flown; None: the task's own.
        randomization: How vehicles differ.
        flight_ids: Identity of each environment's flights, (env,); default 0, 1, 2 ...
        threads: Most threads.
        staggered: First flights begin at drawn ages.
    """

    def __init__(
        self,
        task: NavigationTask,
        env_count: int,
        eye: NavigationEye,
        seed: int = 0,
        vehicle: Vehicle | str | None = None,
        randomization: Randomization | None = None,
        flight_ids: ArrayLike | None = None,
        threads: int | None = None,
        staggered: bool = False,
    ):
        self.task, self.eye, self.seed = task, eye, seed
        conditions = FlightConditions(staggered=staggered)
        self.flights = VectorTask(
            task, env_count, vehicle, seed, randomization, flight_ids=flight_ids, threads=threads, conditions=conditions
        )
        self.env_count, self.action_count = env_count, self.flights.action_count
        self.observation_count = STATE_NUMBERS + eye.numbers
        self.terms = (*self.flights.terms, SIGHT)
        self.sight = RoomSight(task.rooms, eye.rays, env_count, threads)
        self._seen: ArrayF32 = np.zeros((env_count, self.observation_count), np.float32)
        self._last: ArrayF32 = np.zeros_like(self._seen)
        self._returns = np.zeros(env_count, np.float32)
        self._last_returns = np.zeros(env_count, np.float32)
        self.seconds = dict.fromkeys(("flight", "images", "eye"), 0.0)
        """Of the clock, by part, so far."""
        self.images = 0
        """Taken so far."""
        self._observe_all()

    # ---- stepping --------------------------------------------------------------------------------------------------

    def reset(self, seed: int | None = None) -> ArrayF32:
        """Begin all flights anew; returns observations (env, k).

        Args:
            seed: Flights begin with their first episode of this seed; None: the next episode.
        """
        self.seed = self.seed if seed is None else seed
        self.flights.reset(seed)
        self._returns[:] = 0.0
        self._observe_all()
        return self._seen

    def step(self, actions: ArrayLike) -> StepResult:
        """Take a policy step everywhere; where a flight ends the next begins at once.

        Args:
            actions: Within [-1, 1], (env, actions); what is no finite number ends its flight.
        """
        at = time.perf_counter()
        result = self.flights.step(actions)
        at = self._spent("flight", at)
        # Before the images of new flights: what those that were cut off saw last.
        over, cut = result.ends.ended, np.flatnonzero(result.truncated)
        self._last[:, :STATE_NUMBERS] = result.final_observation
        term = np.zeros(self.env_count)
        if cut.size:
            poses, keys = self.flights.final_critic_observation[cut], self._keys(cut, before=True)
            features, told = self._look(poses, self._last[cut, _VELOCITY], keys, result.ends.length[cut])
            self._last[cut, STATE_NUMBERS:], term[cut] = features, told
        told = self._observe_all()
        term = np.where(over, term, told)
        if self.flights.shape.traits.curriculum is not None and isinstance(self.task, LidarNavigation):
            c = self.task.curriculum
            term = term * (1.0 + 2.0 * (self.flights.level - c.least) / (c.most - c.least))
        seen: ArrayF32 = np.where(result.terminated, 0.0, term).astype(np.float32)
        reward: ArrayF32 = result.reward + seen
        self._returns += reward
        self._last_returns[over] = self._returns[over]
        self._returns[over] = 0.0
        ends = replace(result.ends, returns=self._last_returns)
        return StepResult(
            self._seen, reward, result.terminated, result.truncated, self._last, ends, {**result.terms, SIGHT: seen}
        )

    def _spent(self, part: str, since: float) -> float:
        now = time.perf_counter()
        self.seconds[part] += now - since
        return now

    def _keys(self, which: Any = slice(None), before: bool = False) -> tuple[ArrayAny, ArrayAny]:
        """Ids and episodes of flights; `before`: of those that ended with the last step."""
        return self.flights.flight_ids[which], self.flights.episode[which].astype(np.int64) - int(before)

    def _look(
        self, poses: ArrayF32, velocity: ArrayFloat, keys: tuple[ArrayAny, ArrayAny], age: ArrayAny
    ) -> tuple[ArrayF32, Array]:
        """Numbers of the images of some poses, (n, numbers), and the term of the reward that reads them, (n,)."""
        at = time.perf_counter()
        distance = self.sight.look(poses)
        at = self._spent("images", at)
        noise = None
        if self.eye.uniforms and self.task.noise:
            key = flight_key(self.seed, *keys)
            count = 4 * _NOISE_INDEX + self.eye.uniforms
            noise = uniforms(key, np.asarray(age).astype(np.int64), Stream.RESET, count)[:, 4 * _NOISE_INDEX :]
        found = self.eye.see(distance, noise)
        self.images += len(poses)
        told = sight_term(self.task, distance, self.eye.rays.directions, velocity, poses)
        self._spent("eye", at)
        return found, told

    def _observe_all(self) -> Array:
        """Fill what is seen now; returns the term of the reward that reads it, (env,)."""
        self._seen[:, :STATE_NUMBERS] = self.flights.observation
        poses = self.flights.critic_observation
        features, term = self._look(poses, self._seen[:, _VELOCITY], self._keys(), self.flights.age)
        self._seen[:, STATE_NUMBERS:] = features
        return term

    # ---- what there is ---------------------------------------------------------------------------------------------

    @property
    def observation(self) -> ArrayF32:
        """(env, observed): a view that the next step writes over."""
        return self._seen

    @property
    def critic_observation(self) -> ArrayF32:
        """The same: critics see what policies see."""
        return self._seen

    @property
    def final_critic_observation(self) -> ArrayF32:
        """What flights saw last that were cut off with the last step, (env, observed)."""
        return self._last

    @property
    def hover_action(self) -> ArrayF32:
        """Where policies begin, (actions,): the middle of each action, which of depth navigation is 1 m/s straight on.

        Hover is at the end of its first action, where the tanh of a policy has no slope: what began there was still crawling
        after two million decisions.
        """
        return np.zeros(self.action_count, np.float32)

    def mirror_images(self, which: str) -> list[Mirror]:
        """Return the image of flights in which left is right: rooms, targets, starts and pushes are as likely mirrored.

        The camera is not quite: it is mounted up to 6 cm to the right and 3 to the left of the middle.

        Args:
            which: "y"; there is no other.

        Raises:
            AirworthyError: Flights do not look alike so, or what becomes of their images is not known mirrored.
        """
        if which != "y" or not isinstance(self.eye, PooledEye):
            raise AirworthyError(
                f"Only left and right of flights with pooled depth can be mirrored ('y'), not {which!r} with"
                f" {type(self.eye).__name__}; leave mirror at 'none'."
            )
        cells = np.arange(math.prod(CELLS)).reshape(CELLS)[:, ::-1].ravel()
        order = np.concatenate([np.arange(STATE_NUMBERS), STATE_NUMBERS + cells])
        seen = np.concatenate([_MIRRORED_STATE, np.ones(cells.size)])
        return [Mirror(np.array([1.0, -1.0, 1.0]), np.arange(3), seen, order, np.array([1.0, 1.0, -1.0]))]

    @property
    def flight_ids(self) -> ArrayAny:
        """(env,)."""
        return self.flights.flight_ids

    @property
    def level(self) -> int:
        """Level of the curriculum."""
        return int(self.flights.level[0])

    def saved(self) -> dict[str, ArrayAny]:
        """Return everything that the next step depends on."""
        return {**self.flights.saved(), **{name: x.copy() for name, x in self._kept().items()}}

    def _kept(self) -> dict[str, ArrayF32]:
        return {"seen": self._seen, "returns": self._returns, "last_returns": self._last_returns}

    def restore(self, saved: Mapping[str, ArrayAny]) -> None:
        """Go on from what `saved` gave, to the same bits."""
        mine = self._kept()
        self.flights.restore({name: x for name, x in saved.items() if name not in mine})
        for name, array in mine.items():
            array[:] = saved[name]


def sight_term(task: NavigationTask, distance: ArrayF32, directions: Array, velocity: ArrayFloat, poses: ArrayF32) -> Array:
    """Return the term of the reward that reads the image, (n,), before the curriculum's factor.

    Args:
        task: Whose.
        distance: (n, rows, columns) [m].
        directions: Of the rays, (rows, columns, 3), sensor frame.
        velocity: Body [m/s], (n, 3).
        poses: (n, `POSE_NUMBERS`).
    """
    if isinstance(task, LidarNavigation):
        # Source: specification, learning by reward, 3.2.
        return -3.0 * np.exp(-2.0 * time_to_collision(distance, directions, velocity, poses) ** 4)
    if task.as_published:
        # Published it is written, and never applied: its mask asks for terminations below 0.
        return np.zeros(len(distance))
    nearest = distance.reshape(len(distance), -1).min(1).astype(float)
    return -4.0 * np.exp(-nearest * nearest)


def time_to_collision(distance: ArrayF32, directions: Array, velocity: ArrayFloat, poses: ArrayF32) -> Array:
    """Return the least range over approach [s], of rays that approach, within 0 and 10, (n,).

    Args:
        distance: (n, rows, columns) [m].
        directions: (rows, columns, 3), unit vectors, sensor frame.
        velocity: Body [m/s], (n, 3).
        poses: (n, `POSE_NUMBERS`).
    """
    assert poses.shape[1] == POSE_NUMBERS
    mount = euler_matrices(poses[:, 10:13].astype(float))
    seen = np.einsum("nji,nj->ni", mount, velocity.astype(float))
    rays = directions.reshape(-1, 3).T.astype(np.float32)
    flat, found = distance.reshape(len(distance), -1), np.zeros(len(distance))
    for k in range(0, len(found), _ROWS):
        part = slice(k, k + _ROWS)
        # The least time is one over the largest approach per metre: no ray has to be left out.
        rates = (seen[part].astype(np.float32) @ rays) / np.maximum(flat[part], np.float32(1e-3))
        found[part] = rates.max(1)
    return 1.0 / np.maximum(found, 1.0 / _LONGEST_S)


_ROWS = 16
"""Ours: images at once, so that what is computed of them stays in a core's cache."""
# Source: specification, learning by reward, 3.2: clamped to [0, 10] s.
_LONGEST_S = 10.0
"""Time to collision that stands for all longer ones [s]."""
