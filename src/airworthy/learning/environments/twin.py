"""The readable twin of the kernel of a policy step, on float64 NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayIndex
from airworthy.core.random import flight_key, normals, uniforms
from airworthy.core.vectors import matrix_columns
from airworthy.learning.environments.kernel import (
    CONDITIONS_BLOCK,
    JOINT_BLOCK,
    MEMORY_BLOCK,
    PLACE_BLOCK,
    POSTERIOR_BLOCK,
    PUSH_BLOCK,
    STREAM,
)
from airworthy.learning.environments.rooms import draw_rooms, touches
from airworthy.learning.environments.vector_task import VectorTask
from airworthy.simulation.posterior import ATTEMPTS, DRAW_UNIFORMS

__all__ = ["TwinStep", "VectorTwin"]


@dataclass(frozen=True)
class TwinStep:
    """As `StepResult`."""

    observation: Array
    reward: Array
    terminated: ArrayBool
    truncated: ArrayBool
    final_observation: Array
    terms: dict[str, Array]


class VectorTwin:
    """The flights of a `VectorTask` at this instant, stepped by NumPy.

    Args:
        environments: Whose state, vehicles, keys and task are taken.
    """

    def __init__(self, environments: VectorTask):
        self._shape, self._parameters = environments._shape, environments._parameters
        host, count = environments._host, environments.env_count
        self.task, self.seed, self.ids = environments.task, environments.seed, environments._ids
        self.nominal = host["nominal"][:, :count].astype(float)
        self.parameters = host["parameters"][:, :count].astype(float)
        rows, state = self._parameters.rows, host["state"][:, :count].astype(float)
        self.state, self.past = state[: rows.past], state[rows.past : rows.memory]
        self.memory, self.level, self.delays, actions, seen, self.queue = (
            state[first:last].copy()
            for first, last in zip(
                (rows.memory, rows.level, rows.delays, rows.actions, rows.seen, rows.queue),
                (rows.level, rows.delays, rows.actions, rows.seen, rows.queue, rows.place),
                strict=True,
            )
        )
        self.place = state[rows.place : rows.count].copy()
        rooms = self._shape.traits.rooms
        self._pool = None if rooms is None else draw_rooms(rooms)
        self._actions = actions.reshape(-1, self._shape.actions, count)
        self._seen = seen.reshape(-1, self._parameters.observed, count)
        self.episode, self.age = host["keys"][3, :count].astype(np.int64), host["keys"][4, :count].astype(np.int64)

    def _record(self, at: Any = slice(None), touched: Any = 0.0, push: Any = ()) -> Any:
        level = self.level[0, at] if self.level.size else 0.0
        flight = (self.age[at].astype(float), level)
        if self._pool is not None:
            flight = (*flight, touched, *self.place[:, at], *push)
        return self._parameters.of(self.parameters[:, at], tuple(self.past[:, at]), flight, tuple(self.memory[:, at]))

    def step(self, actions: Array) -> TwinStep:
        """Take one policy step; see `VectorTask.step`."""
        fine = np.isfinite(actions).all(axis=1)
        a = np.clip(np.where(np.isfinite(actions), actions, 0.0), -1.0, 1.0).T
        reaching = self._late(np.concatenate([a[None], self._actions]), 1)
        if len(self._actions):
            self._actions = np.concatenate([a[None], self._actions[:-1]])
        p, before = self._record(), tuple(self.state)
        with np.errstate(all="ignore"):
            if self._pool is None and not len(self.queue):
                stepped = self._shape.flown(before, tuple(reaching), p)
            elif self._pool is None:
                stepped = self._flown_late(before, tuple(reaching), p)
            else:
                stepped, p = self._flown_in_rooms(before, tuple(reaching))
            judged = self._shape.judged(before, stepped, tuple(a), p)
            memory = _rows(self._shape.traits.remember(before, stepped, tuple(a), p), len(self.age))
        terms = judged.terms
        after, values = _rows(stepped), _rows(tuple(terms.values()), len(self.age))
        sound = fine & np.isfinite(after).all(axis=0) & np.isfinite(values).all(axis=0) & np.isfinite(memory).all(axis=0)
        self.age += 1
        ended = ~sound | (np.asarray(judged.terminated) > 0.5)
        cut = ~ended & (self.age >= self.task.episode_steps)
        # What is seen last has to be finite (specification, section 4): the last sound state stays.
        self.state, self.memory = np.where(sound, after, self.state), np.where(sound, memory, self.memory)
        self.past = a
        newest = self._observed()
        final = self._late(np.concatenate([newest[None], self._seen[:-1]]), 0).T
        self._learn(ended | cut, sound & (np.asarray(judged.success) > 0.5))
        values = np.where(sound, values, 0.0)
        over = ended | cut
        self.begin(np.flatnonzero(over))
        self._look(over)
        return TwinStep(self.observe(), values.sum(axis=0), ended, cut, final, dict(zip(terms, values, strict=True)))

    def _flown_in_rooms(self, before: Any, action: Any) -> tuple[Any, Any]:
        """State after a policy step, and the record with what was touched on the way."""
        shape, traits, count = self._shape, self._shape.traits, len(self.age)
        key, touched, state = flight_key(self.seed, self.ids, self.episode), np.zeros(count, bool), before
        p = self._record(push=np.zeros((6, count)))
        wanted = self.task.command(action, p)
        for step in range(shape.substeps):
            instant = self.age * traits.physics_steps + step // shape.form.substeps
            u = uniforms(key, instant, STREAM, 4 * (PUSH_BLOCK + 2)).T[4 * PUSH_BLOCK :]
            # In float32, as the kernel compares them.
            pushed = u[6].astype(np.float32) < np.float32(traits.pushes[0])
            p = self._record(push=np.where(pushed, (2.0 * u[:6] - 1.0) * np.array(traits.pushes[1:])[:, None], 0.0))
            command = wanted if traits.by_rotor else shape.controller.commanded(state, wanted, p)
            state = shape.physics(state, self._acting(command), p)
            rows = _rows(state, count)
            axes = np.stack([_rows(column) for column in matrix_columns(tuple(rows[6:10]))], 1)
            assert traits.rooms is not None
            assert self._pool is not None
            touched |= touches(traits.rooms, self._pool, self.place, shape.body, rows[:3], axes)
        return state, self._record(touched=touched.astype(float), push=np.zeros((6, count)))

    def _flown_late(self, state: Any, action: Any, p: Any) -> Any:
        """State after a policy step whose commands reach the rotors late."""
        shape, traits = self._shape, self._shape.traits
        wanted = self.task.command(action, p)
        for _ in range(shape.substeps):
            command = wanted if traits.by_rotor else shape.controller.commanded(state, wanted, p)
            state = shape.physics(state, self._acting(command), p)
        return state

    def _acting(self, command: Any) -> Any:
        """Return what reaches the rotors while a command is given; the command itself without a dead time."""
        if not len(self.queue):
            return command
        n, count = self._shape.form.rotor_count, len(self.age)
        self.queue = np.concatenate([self.queue[n:], _rows(command, count)])
        ages = self.queue.reshape(-1, n, count)[::-1]
        late = self.parameters[self._parameters.place[self._parameters.layout.offsets["command_delay"]]]
        shares = np.maximum(1.0 - np.abs(late - np.arange(len(ages))[:, None]), 0.0)
        return tuple(np.einsum("ke,kre->re", shares, ages))

    def _learn(self, over: ArrayBool, success: ArrayBool) -> None:
        """Levels of environments that have one each; that of a batch is told by the one who counts."""
        c = self._shape.traits.curriculum
        if c is not None and c.each == "environment":
            moved = np.clip(self.level[0] + np.where(success, c.rise, -c.fall), c.least, c.most)
            self.level[0] = np.where(over, moved, self.level[0])

    def _late(self, queue: Array, which: int) -> Array:
        """Return what is as late as each flight's delay in a queue from the newest on, (k, env)."""
        if len(queue) == 1:
            return queue[0]
        return np.asarray(queue[self.delays[which].astype(int), :, np.arange(len(self.age))].T)

    def begin(self, flights: ArrayIndex) -> None:
        """Begin the next flight of some environments."""
        if not flights.size:
            return
        self.episode[flights] += 1
        self.age[flights] = 0
        key, shape, c = flight_key(self.seed, self.ids[flights], self.episode[flights]), self._shape, self._shape.conditions
        # By words of one step: those of the start, a gap that noise has at other steps, of memory, of conditions.
        u = tuple(uniforms(key, 0, STREAM, 4 * JOINT_BLOCK + shape.start_draws - 16).T)
        late, about = u[4 * CONDITIONS_BLOCK :], u[4 * MEMORY_BLOCK : 4 * CONDITIONS_BLOCK]
        if c.staggered:
            first = np.where(
                self.episode[flights] == 0, np.floor(np.float32(late[3]) * np.float32(self.task.episode_steps)), 0.0
            )
            self.age[flights] = first.astype(np.int64)
        for k, (least, most) in enumerate((c.observation_delay, c.action_delay)):
            if len(self.delays):
                self.delays[k, flights] = least + np.floor(np.float32(late[k]) * np.float32(most - least + 1))
        if self._pool is not None and shape.traits.rooms is not None:
            spot = tuple(u[4 * PLACE_BLOCK : 4 * PLACE_BLOCK + 16])
            level = self.level[0, flights] if self.level.size else np.zeros(flights.size)
            self.place[:, flights] = _rows(shape.traits.rooms.place(spot, level), flights.size)
        if shape.posterior is None:
            self.parameters[:, flights] = _rows(self._parameters.drawn(u[16:32], tuple(self.nominal[:, flights])))
        else:
            self._draw_together(flights, key, u[16:32])
        first_row = self._parameters.place[self._parameters.extra["hover_action"].start]
        self.past[:, flights] = self.parameters[first_row : first_row + len(self.past), flights]
        self._actions[:, :, flights] = self.past[:, flights]
        p = self._record(flights)
        state = self._parameters.started((*u[:16], *u[4 * JOINT_BLOCK :]), late[2], p)
        self.state[:, flights] = _rows(state, flights.size)
        if len(self.queue):
            n = shape.form.rotor_count
            self.queue[:, flights] = np.tile(self.state[13 : 13 + n, flights], (len(self.queue) // n, 1))
        self.memory[:, flights] = _rows(shape.traits.begin(about, state, p), flights.size)

    def _draw_together(self, flights: ArrayIndex, key: Any, other: Any) -> None:
        """Draw vehicles from what their identification left open."""
        left = np.arange(flights.size)
        self.parameters[:, flights] = self.nominal[:, flights]
        for attempt in range(ATTEMPTS):
            first = 4 * (POSTERIOR_BLOCK + 4 * attempt)
            chance = tuple(uniforms(key[left], 0, STREAM, DRAW_UNIFORMS, first).T)
            rest = tuple(np.asarray(x)[left] for x in other)
            made, sound = self._parameters.drawn_together(chance, rest, tuple(self.nominal[:, flights[left]]))
            taken = np.broadcast_to(np.asarray(sound) > 0.5, left.shape)
            self.parameters[:, flights[left[taken]]] = _rows(made, left.size)[:, taken]
            left = left[~taken]
            if not left.size:
                return

    def _observed(self) -> Array:
        """Newest observations, (k, env)."""
        key = flight_key(self.seed, self.ids, self.episode)
        drawn = np.zeros((16, len(self.age)))
        if self.task.noise:
            drawn = normals(key, self.age, STREAM, 48).T[32:]  # after the 32 words of a start
        return _rows(self.task.observe(tuple(self.state), tuple(drawn), self._record()), len(self.age))

    def critic_observation(self) -> Array:
        """Return what critics see, (env, k); of most tasks the observation."""
        if not self._shape.traits.privileged:
            return self.observe()
        return _rows(self._shape.traits.observe_critic(tuple(self.state), self._record()), len(self.age)).T

    def _look(self, over: ArrayBool) -> None:
        if len(self._seen):
            newest = self._observed()
            self._seen = np.concatenate([newest[None], self._seen[:-1]])
            self._seen = np.where(over, newest, self._seen)

    def observe(self) -> Array:
        """Return present observations, (env, k)."""
        return self._late(self._seen, 0).T if len(self._seen) else self._observed().T


def _rows(values: tuple[Any, ...], count: int | None = None) -> Array:
    if not values:
        return np.zeros((0, count or 0))
    shape = np.broadcast_shapes(*(np.shape(x) for x in values), () if count is None else (count,))
    return np.array([np.broadcast_to(x, shape) for x in values], float)
