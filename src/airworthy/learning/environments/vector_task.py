"""Thousands of environments of one task: one launch per policy step, on memory that learners read without a copy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayF32, ArrayIndex, ArrayLike, aligned_zeros
from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import CPU_LANES, Launcher, quiet_warp
from airworthy.core.random import flight_key
from airworthy.core.schema import Bound, checked_value, number, shown
from airworthy.learning.environments.conditions import CurriculumState, FlightConditions
from airworthy.learning.environments.kernel import RESULTS, EnvironmentShape, environment_kernel, parameters_of
from airworthy.learning.environments.nominal import nominal_row, shape_of
from airworthy.learning.environments.rooms import draw_rooms
from airworthy.learning.environments.task import LearningTask, task_given
from airworthy.learning.environments.traits import told_by_member, traits_of
from airworthy.simulation.config import Randomization
from airworthy.simulation.start_state import whole_number
from airworthy.vehicles import Vehicle
from airworthy.vehicles.lookup import vehicle_given

__all__ = ["EpisodeEnds", "StepResult", "VectorTask", "reward_terms"]

_SAVED = ("parameters", "state", "keys", "result", "observation")
"""Arrays that steps depend on."""
_LARGEST = 1 << 20
"""Environments; more would not fit 32-bit counts of their memory."""

_THREADS_MAX = 4096
"""Ours: more than any machine has."""


@dataclass(frozen=True)
class EpisodeEnds:
    """Of flights that ended in a step; numbers of others are those of their last end, or 0."""

    ended: ArrayBool
    """(env,)."""
    returns: ArrayF32
    """Sum of rewards, (env,)."""
    length: ArrayF32
    """Policy steps, (env,)."""
    success: ArrayBool
    """Whether the last state was what the task asks for, (env,)."""
    diverged: ArrayBool
    """Whether the flight left the numbers, or was commanded what is none, (env,)."""


@dataclass(frozen=True)
class StepResult:
    """Of one policy step; arrays are views of memory that the next step writes over, observations the one after it."""

    observation: ArrayF32
    """(env, k): of the new flight where one ended. Learners keep it over one step, to store it with what came of it."""
    reward: ArrayF32
    """(env,)."""
    terminated: ArrayBool
    """Flights that ended by what happened in them, (env,)."""
    truncated: ArrayBool
    """Flights that were only cut off, (env,); never both."""
    final_observation: ArrayF32
    """(env, k): what ended flights saw last; of others, whatever stood there."""
    ends: EpisodeEnds
    """Of the flights that ended."""
    terms: dict[str, ArrayF32] = field(default_factory=dict)
    """Named parts of the reward, each (env,)."""


class VectorTask:
    """Environments of a learning task.

    Every number of a flight depends on (seed, flight id, episode) and its own actions alone: not on the batch, its order, or
    threads. A flight that leaves the numbers ends as `terminated` with `diverged` and a finite reward; no other feels it.

    Args:
        task: Name of a registered task, or a task.
        env_count: Environments.
        vehicle: Whose rotors are commanded: a record, a catalogue name or a vehicle file; default: the task's own.
        seed: Of all that is drawn.
        randomization: How vehicles differ, drawn anew for each flight; position and yaw are the task's and stay 0.
        least_thrust_to_weight: Drawn vehicles with less have their thrust raised to it; not those of an identification.
        flight_ids: Identity of each environment's flights, (env,); default 0, 1, 2 ...
        threads: Most threads on a CPU.
        conditions: Delays, starts at the goal, and first ages; default: none.

    Raises:
        AirworthyError: A number out of range, a vehicle that cannot hover, or an unknown task.
    """

    def __init__(
        self,
        task: str | LearningTask = "motor_command",
        env_count: int = 1024,
        vehicle: Vehicle | str | Path | None = None,
        seed: int = 0,
        randomization: Randomization | None = None,
        least_thrust_to_weight: float = 1.2,
        flight_ids: ArrayLike | None = None,
        threads: int | None = None,
        conditions: FlightConditions | None = None,
    ):
        if isinstance(env_count, bool) or not isinstance(env_count, int | np.integer) or not 1 <= env_count <= _LARGEST:
            raise AirworthyError(f"env_count is {env_count!r}; expected a whole number from 1 to {_LARGEST:,}.")
        self.task, threads = task_given(task), threads_given(threads)
        self.env_count = int(env_count)
        self.vehicle = vehicle_given(traits_of(self.task).airframe if vehicle is None else vehicle)
        least_thrust_to_weight = number(least_thrust_to_weight, "least_thrust_to_weight", Bound(0.0))
        self.randomization = checked_value(Randomization | None, randomization, "randomization") or Randomization()
        if self.randomization.position or self.randomization.yaw:
            raise AirworthyError("Randomization of position and yaw has no effect here: the task says where flights begin.")
        calm = replace(self.randomization, position=0.0, yaw=0.0)
        traits = traits_of(self.task)
        self.conditions = checked_value(FlightConditions | None, conditions, "conditions") or FlightConditions()
        self._shape, columns = shape_of(self.task, [self.vehicle], calm, least_thrust_to_weight, self.conditions)
        self._curriculum = CurriculumState(traits.curriculum) if traits.curriculum else None
        with told_by_member(self.task):
            self._parameters = parameters_of(self._shape)
        self.action_count, self.observation_count = self._shape.actions, self._parameters.observed
        self.terms = self._parameters.terms
        """Names of the reward's parts."""
        with told_by_member(self.task):
            self._make_arrays(nominal_row(self._shape, self.vehicle, columns[:, 0]), threads)
        self._ids = np.arange(self.env_count) if flight_ids is None else np.asarray(flight_ids)
        if self._ids.shape != (self.env_count,) or not np.issubdtype(self._ids.dtype, np.integer):
            raise AirworthyError(
                f"flight_ids has shape {self._ids.shape}; expected whole numbers, one for each of {env_count}."
            )
        self.reset(seed)

    def _make_arrays(self, used: ArrayF32, threads: int | None) -> None:
        n, count = self.action_count, self.env_count
        # Whole vectors: lanes behind the last environment fly along, and nobody looks at them.
        padded = -(-count // CPU_LANES) * CPU_LANES
        known = self._parameters.critic_observed
        rows: dict[str, ArrayAny] = {
            "parameters": aligned_zeros((len(used), padded)),
            "nominal": aligned_zeros((len(used), padded)),
            "state": aligned_zeros((self._parameters.rows.count, padded)),
            "keys": aligned_zeros((5, padded), np.uint32),
            "actions": aligned_zeros((padded, n)),
            "mask": aligned_zeros(padded, np.int32),
            "result": aligned_zeros((len(RESULTS) + len(self.terms), padded)),
            "observation": aligned_zeros((2, padded, self.observation_count)),  # written in turn
            "final_observation": aligned_zeros((padded, self.observation_count)),
            # An array of no length has no memory to share.
            **{name: aligned_zeros((padded, max(1, known))) for name in ("critic_observation", "final_critic_observation")},
        }
        rows["parameters"][:] = rows["nominal"][:] = used[:, None]
        rooms = self._shape.traits.rooms
        # Read, and never written: as wide as it is, it is no part of what is saved.
        self._pool = [] if rooms is None else [draw_rooms(rooms)]
        wp = quiet_warp()
        self._host: dict[str, Any] = rows
        # Two launchers, one per turn: observations of a step stay readable while the next one is made.
        kernel, blocks = environment_kernel(self._shape), padded // CPU_LANES
        self._turn, self._launchers = 0, []
        for turn in range(2):
            mine = {**rows, "observation": rows["observation"][turn]}
            arrays = [wp.array(a.ravel(), device="cpu", copy=False) for a in (*mine.values(), *self._pool)]
            self._launchers.append(
                [
                    Launcher(kernel, blocks, [*arrays, padded, stepping, self.task.episode_steps], "cpu", threads)
                    for stepping in (0, 1)
                ]
            )
        self._result: dict[str, ArrayF32] = {
            name: self._host["result"][k, :count] for k, name in enumerate((*RESULTS, *self.terms))
        }

    def command(self, action: Array) -> Array:
        """Return rotor states that an action commands of the vehicle as it is recorded, (rotors,).

        Args:
            action: (actions,).

        Raises:
            AirworthyError: The task commands a controller.
        """
        if not self._shape.traits.by_rotor:
            raise AirworthyError(f"The task {self.task.name!r} commands {self._shape.traits.level}, and no rotors.")
        p = self._parameters.of(self._host["nominal"][:, 0].astype(float))
        return np.asarray(self.task.command(tuple(action), p), float)

    # ---- stepping ----------------------------------------------------------------------------------------------------

    def reset(self, seed: int | None = None, mask: ArrayLike | None = None) -> ArrayF32:
        """Begin new flights.

        Args:
            seed: All flights begin with their first episode of this seed; None goes on to the next episode.
            mask: Where, (env,); None: everywhere. Not together with a seed.

        Returns:
            Observations, (env, k): a view of memory that the step after the next writes over.

        Raises:
            AirworthyError: A mask of another shape, or together with a seed; a seed that is no whole number of 64 bits.
        """
        host = self._host
        chosen = np.ones(self.env_count, bool) if mask is None else np.asarray(mask)
        if chosen.shape != (self.env_count,) or chosen.dtype != bool:
            raise AirworthyError(f"mask is {chosen.dtype} of shape {chosen.shape}; expected bool, ({self.env_count},).")
        if seed is not None:
            if mask is not None:
                raise AirworthyError("reset got a seed and a mask; a seed begins all flights anew: leave one of them out.")
            self.seed = whole_number("seed", seed, -(2**63))
            # One before the first: each reset goes on by one.
            host["keys"][:4, : self.env_count] = flight_key(self.seed, self._ids, 0xFFFFFFFF).T
            if self._curriculum is not None:
                self._curriculum = CurriculumState(self._curriculum.curriculum)
                self.level[:] = self._curriculum.curriculum.least
        host["mask"][: self.env_count] = chosen
        # Returns of flights that are cut off here are of no flight: they are not told as ended.
        host["result"][RESULTS.index("return"), : self.env_count][chosen] = 0.0
        self._launch(stepping=0)
        return self.observation

    def _launch(self, stepping: int) -> None:
        self._turn ^= 1
        self._launchers[self._turn][stepping].launch()

    def step(self, actions: ArrayLike, held: ArrayBool | None = None) -> StepResult:
        """Take one policy step everywhere; where a flight ends the next begins at once.

        Args:
            actions: Within [-1, 1], clipped to it, (env, actions); an entry that is no finite number ends its flight.
            held: Flights that wait this step out as they are, with reward 0, (env,): for learners that begin them later.

        Raises:
            AirworthyError: Another shape.
        """
        try:
            # One copy into memory that the kernel reads; what learners pass may be theirs to change.
            given = np.asarray(actions, np.float32)
        except (TypeError, ValueError):
            raise AirworthyError(
                f"Actions are {shown(actions)}; expected numbers of shape {(self.env_count, self.action_count)}."
            ) from None
        if given.shape != (self.env_count, self.action_count):
            raise AirworthyError(f"Actions have shape {given.shape}; expected {(self.env_count, self.action_count)}.")
        self._host["actions"][: self.env_count] = given
        if held is None or not held.any():
            self._launch(stepping=1)
        else:
            self._launch_around(np.flatnonzero(held))
        r = self._result
        terminated, truncated = r["terminated"] > 0.5, r["truncated"] > 0.5
        ends = EpisodeEnds(terminated | truncated, r["last_return"], r["length"], r["success"] > 0.5, r["diverged"] > 0.5)
        self.advance_curriculum()
        final = self._host["final_observation"][: self.env_count]
        terms = {name: r[name] for name in self.terms}
        return StepResult(self.observation, r["reward"], terminated, truncated, final, ends, terms)

    def advance_curriculum(self, steps: int = 1) -> None:
        """Move the level of the batch by the flights that ended since the last call; each `step` does it by itself.

        Kernels that step these environments (`lend`) leave it to whoever launches them. Nothing happens without a curriculum.

        Args:
            steps: Policy steps since the last call.
        """
        if self._curriculum is None or self._curriculum.curriculum.each == "environment":
            return
        # By decisions, as some published tasks count, or by what flights came to.
        if self._curriculum.curriculum.each == "steps":
            finished, succeeded = steps * self.env_count, 0
        else:
            counts = [self._result[name] for name in ("finished", "succeeded")]
            # Counted by the kernel per environment, since a launch may make many steps.
            finished, succeeded = (int(row.sum(dtype=float)) for row in counts)
            for row in counts:
                row[:] = 0.0
        if self._curriculum.count(finished, succeeded):
            self.level[:] = self._curriculum.counts[0]

    def _launch_around(self, held: ArrayIndex) -> None:
        """Step all but those held, which get everything back that a flight is made of."""
        host = self._host
        # Ours: few wait, and seldom, so they are put back here, and no step of other learners pays for a test in the kernel.
        kept = {name: host[name][:, held].copy() for name in ("parameters", "state", "keys", "result")}
        seen, known = self.observation[held], self._known("critic_observation")[held]
        self._launch(stepping=1)
        for name, values in kept.items():
            host[name][:, held] = values
        self.observation[held], self._known("critic_observation")[held] = seen, known
        for name in ("reward", "terminated", "truncated", *self.terms):
            self._result[name][held] = 0.0

    # ---- what there is -----------------------------------------------------------------------------------------------

    @property
    def observation(self) -> ArrayF32:
        """Present observations, (env, k): a view of memory that the step after the next writes over."""
        return self._host["observation"][self._turn, : self.env_count]

    @property
    def critic_observation(self) -> ArrayF32:
        """What critics see, (env, k): a view of memory that the next step writes over; of most tasks the observation."""
        return self._known("critic_observation") if self._shape.traits.privileged else self.observation

    @property
    def final_critic_observation(self) -> ArrayF32:
        """What they would have seen where flights ended with the last step, alike."""
        return self._known("final_critic_observation" if self._shape.traits.privileged else "final_observation")

    def _known(self, name: str) -> ArrayF32:
        return self._host[name][: self.env_count]

    @property
    def critic_observation_count(self) -> int:
        """Numbers that critics see."""
        return self._parameters.critic_observed or self.observation_count

    @property
    def state(self) -> ArrayF32:
        """Position, velocity, attitude, body rate, rotor states of each, (13 + rotors, env): a view."""
        return self._host["state"][: self._shape.state, : self.env_count]

    @property
    def age(self) -> ArrayAny:
        """Policy steps since each flight began, (env,): a view; learners that stagger episodes write it."""
        return self._host["keys"][4, : self.env_count]

    @property
    def level(self) -> ArrayF32:
        """Level of each environment's curriculum, (env,): a view; what is written holds from the next flight or step on.

        Raises:
            AirworthyError: The task has none.
        """
        if self._curriculum is None:
            raise AirworthyError(f"The task {self.task.name!r} has no curriculum.")
        return self._host["state"][self._parameters.rows.level, : self.env_count]

    @property
    def delays(self) -> ArrayF32:
        """Policy steps by which each flight's observations and actions are late, (2, env)."""
        first = self._parameters.rows.delays
        late = self.conditions.observation_delay[1] or self.conditions.action_delay[1]
        return self._host["state"][first : first + 2, : self.env_count] if late else np.zeros((2, self.env_count), np.float32)

    @property
    def memory(self) -> ArrayF32:
        """What each flight remembers by its task, (k, env): a view."""
        first = self._parameters.rows.memory
        return self._host["state"][first : first + self._parameters.memory, : self.env_count]

    @property
    def episode(self) -> ArrayAny:
        """Number of each environment's flight, (env,)."""
        return self._host["keys"][3, : self.env_count]

    @property
    def flight_ids(self) -> ArrayAny:
        """Identity of each environment's flights, (env,)."""
        return self._ids

    @property
    def hover_action(self) -> ArrayF32:
        """Actions that command hover of the vehicle as it is recorded, (actions,): where policies begin."""
        first = self._parameters.place[self._parameters.extra["hover_action"].start]
        return self._host["nominal"][first : first + self.action_count, 0]

    @property
    def shape(self) -> EnvironmentShape:
        """Of which kernels that step these environments are made."""
        return self._shape

    @property
    def nominal(self) -> ArrayF32:
        """Parameter rows of the vehicle as it is recorded, as `parameters_of_flight` reads them, (k,)."""
        return self._host["nominal"][:, 0]

    def parameters_of_flight(self, values: Any, past: Any = (), flight: Any = (0.0, 0.0), memory: Any = ()) -> SimpleNamespace:
        """Record `p` that the task's functions read, over numbers, arrays or traced values.

        Args:
            values: As of `nominal`, (k,) or (k, env).
            past: Action before.
            flight: Age [policy steps] and level of the curriculum.
            memory: What the flight remembers.
        """
        return self._parameters.of(values, past, flight, memory)

    @property
    def place(self) -> ArrayF32:
        """Place of each flight in its room, (`PLACE`, env): a view; no rows of tasks without rooms."""
        return self._host["state"][self._parameters.rows.place : self._parameters.rows.count, : self.env_count]

    def lend(self) -> dict[str, ArrayAny]:
        """Lend all memory, by names of the kernel's arguments, to a kernel that steps these environments itself.

        The present observations lie in `observation` (padded env, k), and are to be left there.

        Raises:
            AirworthyError: The task has rooms, which only its own kernel knows.
        """
        if self._pool:
            raise AirworthyError(
                f"Flights of {self.task.name!r} go through rooms, which this trainer does not know: learn it by PPO in torch."
            )
        return self._memory_of_all()

    def _memory_of_all(self) -> dict[str, ArrayAny]:
        if self._turn:
            self._host["observation"][0] = self._host["observation"][1]
            self._turn = 0
        return {**self._host, "observation": self._host["observation"][0]}

    def saved(self) -> dict[str, ArrayAny]:
        """Return everything that the next step depends on, by name."""
        found = self._memory_of_all()
        kept = {name: found[name].copy() for name in self._saved_names}
        return kept if self._curriculum is None else {**kept, "curriculum": self._curriculum.counts.copy()}

    @property
    def _saved_names(self) -> tuple[str, ...]:
        """Arrays that steps and learners depend on."""
        # A critic's own observation is made by a step, and read before the next one.
        return (*_SAVED, "critic_observation") if self._shape.traits.privileged else _SAVED

    def restore(self, saved: Mapping[str, ArrayAny]) -> None:
        """Go on from what `saved` gave, to the same bits.

        Raises:
            AirworthyError: It is of other environments.
        """
        lent = self._memory_of_all()
        mine: dict[str, ArrayAny] = {name: lent[name] for name in self._saved_names}
        if self._curriculum is not None:
            mine["curriculum"] = self._curriculum.counts
        for name, array in mine.items():
            if name not in saved or saved[name].shape != array.shape:
                raise AirworthyError("What was saved is of another task or of another number of environments.")
        for name, array in mine.items():
            array[:] = saved[name]

    def parameter(self, name: str) -> ArrayF32:
        """Return parameter rows of the present flights' vehicles, (k, env); those that the task reads.

        `hover` and `hover_action` are rotor states of hover, and actions that command them.
        """
        p = self._parameters
        if name in p.extra:
            return self._host["parameters"][[p.place[row] for row in range(p.extra[name].start, p.extra[name].stop)]][
                :, : self.env_count
            ]
        if name not in p.layout:
            raise AirworthyError(f"Unknown parameter {name!r}; see airworthy.dynamics.state.rigid_layout.")
        rows = [p.place[row] for row in range(*p.layout.rows(name).indices(p.layout.size)) if row in p.place]
        return self._host["parameters"][rows, : self.env_count]


def threads_given(threads: Any) -> int | None:
    """Return the most threads of a launch that a caller gave; None, as many as there are, stays.

    Raises:
        AirworthyError: It is no whole number of 1 or more.
    """
    return None if threads is None else int(number(threads, "threads", Bound(1, _THREADS_MAX), whole=True))


def reward_terms(task: LearningTask) -> tuple[str, ...]:
    """Return names of the parts of a task's reward, found by tracing it with its own vehicle; no kernel is built."""
    vehicle = vehicle_given(traits_of(task).airframe)
    return parameters_of(shape_of(task, [vehicle], Randomization(), 1.0, FlightConditions())[0]).terms
