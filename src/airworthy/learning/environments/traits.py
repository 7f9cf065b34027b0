"""What a task may have besides the functions of `LearningTask`, each with what holds where it has none."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from airworthy.control.levels import MODES, ControlConfig
from airworthy.core.arrays import Vector
from airworthy.core.errors import AirworthyError
from airworthy.core.vectors import norm
from airworthy.learning.environments.conditions import Curriculum
from airworthy.learning.environments.rooms import RoomForm
from airworthy.learning.environments.task import LearningTask
from airworthy.vehicles import Vehicle

__all__ = ["TaskTraits", "told_by_member", "traits_of"]

_PHYSICS_STEPS_MAX = 100
"""Ours: physics at 1,000 Hz under decisions at 10 Hz; more is a mistake of units."""


@dataclass(frozen=True)
class TaskTraits:
    """Optional members of a task, looked up once.

    Functions read what belongs to the flight from the record of parameters: `p.past` is the last action, `p.age` how many
    policy steps the flight has behind it in the (earlier) state, `p.progress` its curriculum's from 0 to 1, `p.memory` what
    it remembers, and in `judge` `p.touched` is 1 where the body touched the ground, else 0.
    """

    task: Any
    level: str
    """`level`: control level of what `command` returns, "rotor_speed" or one of `airworthy.control.levels.MODES`."""
    actions: int | None
    """`action_count`: numbers of an action; None: one per rotor."""
    physics_steps: int
    """`physics_steps`: least steps of physics and controller per policy step."""
    curriculum: Curriculum | None
    """`curriculum`."""
    remembers: bool
    """`begin(uniforms, state, p)` gives what a new flight remembers, from 16 uniform numbers of its own;
    `remember(before, after, action, p)` what it remembers after a step."""
    pushed: bool
    """`wrench(state, p)` gives force (world) [N] and moment (body) [N m] that act from outside."""
    rooms: RoomForm | None
    """`rooms`: flights go through rooms with boxes; `p.place` is the flight's, `p.touched` 1 where its body met something."""
    pushes: tuple[float, ...]
    """`pushes`: in rooms, share of the steps of physics at which the vehicle is pushed, and most force (body) 3 [N] and moment
    (body) 3 [N m], each uniform either way: `p.push`, for `wrench`."""
    jointed: bool
    """`jointed`: vehicles with joints fly it. States then have joint angles and joint rates behind the rotors, `start` is given
    48 uniform numbers, `command` returns a target for each joint behind the rotors' states, or none, and `p.model` and
    `p.structure` are the tree's."""
    privileged: bool
    """`observe_critic(state, p)` gives what critics see instead of the policy's observation: exact, never late."""

    @property
    def airframe(self) -> Vehicle | str:
        """Vehicle that the task was published with: `airframe()`, where no catalogue has it, or `vehicle`."""
        make = getattr(self.task, "airframe", None)
        return self.task.vehicle if make is None else make()

    @property
    def by_rotor(self) -> bool:
        """Whether actions become rotor states without a controller."""
        return self.level == "rotor_speed"

    def control(self, vehicle: Vehicle) -> ControlConfig:
        """Return gains of the controller between command and rotors: `control_for(vehicle)`, or the vehicle's own."""
        chosen = getattr(self.task, "control_for", None)
        return ControlConfig() if chosen is None else chosen(vehicle)

    def begin(self, uniforms: Vector, state: Vector, p: Any) -> Vector:
        """Return the memory of a new flight.

        Args:
            uniforms: 16 numbers in (0, 1).
            state: In which it begins.
            p: Parameters.
        """
        return tuple(self.task.begin(uniforms, state, p)) if self.remembers else ()

    def remember(self, before: Vector, after: Vector, action: Vector, p: Any) -> Vector:
        """Return the memory after a step.

        Args:
            before: State before it.
            after: State after it.
            action: That was taken.
            p: Parameters, with the memory before.
        """
        return tuple(self.task.remember(before, after, action, p)) if self.remembers else ()

    def wrench(self, state: Vector, p: Any) -> tuple[Vector, Vector] | None:
        """Return force and moment from outside; None where the task has none."""
        return self.task.wrench(state, p) if self.pushed else None

    def observe_critic(self, state: Vector, p: Any) -> Vector:
        """Return what critics see, where it is not what the policy sees.

        Args:
            state: Of the flight.
            p: Parameters, with the memory.
        """
        return tuple(self.task.observe_critic(state, p)) if self.privileged else ()

    def goal(self, p: Any) -> Vector:
        """Return the state in which guided flights begin: `goal(p)`, or hover at the origin."""
        # Most tasks hold the origin: only those whose goal is drawn need to say where it is.
        if hasattr(self.task, "goal"):
            return tuple(self.task.goal(p))
        nothing = (0.0,) * 3
        return (*nothing, *nothing, *nothing, 1.0, *nothing, *p.hover)

    def error(self, state: Vector, p: Any) -> Any:
        """Return how far the flight is from what the task asks for [m]: `error(state, p)`, or the distance from the origin.

        None where the task has `error = None`, there being no such distance.

        Args:
            state: Of the flight.
            p: Parameters, with memory and the age of the state.
        """
        if not hasattr(self.task, "error"):
            return norm(state[:3])
        own = self.task.error
        return None if own is None else own(state, p)

    def hover(self, p: Any, affine: Vector) -> Vector:
        """Return the action that commands hover: `hover_action(p)`, or rotor speeds `affine` in actions, or nothing commanded.

        Args:
            p: Parameters.
            affine: Actions of hover where they reach from the least to the largest rotor state.
        """
        if hasattr(self.task, "hover_action"):
            return tuple(self.task.hover_action(p))
        return affine if self.by_rotor else (0.0,) * (self.actions or 0)


@contextmanager
def told_by_member(task: Any) -> Iterator[None]:
    """Let what fails in a member of a task while it is traced be told in one sentence that names the member.

    Raises:
        AirworthyError: In place of whatever was raised; it names the member in which, if it was in one.
    """
    try:
        yield
    # A user's code may raise anything.
    except Exception as error:
        found = _member(task, error)
        if found is None and isinstance(error, AirworthyError):
            raise
        where = f"in {found[0]}, line {found[1]}" if found else "where its results are taken"
        said = (str(error).splitlines() or [""])[0][:200].rstrip(".")
        kind = "" if isinstance(error, AirworthyError) else f"{type(error).__name__}: "
        raise AirworthyError(
            f"The task {task.name!r} fails {where}: {kind}{said}. Its functions compute with the scalars that they are given"
            " and with airworthy.core.ops (where, sqrt, maximum, ...), not with math, NumPy or `if`, and give as many as"
            " docs/howto/reinforcement_learning.md says; a state is 13 scalars and one per rotor."
        ) from error


def _member(task: Any, error: BaseException) -> tuple[str, int] | None:
    """Return the last member of a task that an error came through, and its line; None where it came through none."""
    codes = {}
    for name in dir(type(task)):
        function = getattr(inspect.getattr_static(type(task), name), "__func__", inspect.getattr_static(type(task), name))
        if inspect.isfunction(function) and not name.startswith("__"):
            codes[function.__code__] = name
    found: tuple[str, int] | None = None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in codes:
            found = codes[trace.tb_frame.f_code], trace.tb_lineno
        trace = trace.tb_next
    return found


def traits_of(task: LearningTask) -> TaskTraits:
    """Return what a task has.

    Raises:
        AirworthyError: Optional members that do not fit together.
    """
    return _traits(cast(Any, task))


@cache
def _traits(task: Any) -> TaskTraits:
    level = getattr(task, "level", "rotor_speed")
    actions = getattr(task, "action_count", None)
    steps = getattr(task, "physics_steps", 1)
    if level != "rotor_speed" and level not in MODES:
        raise AirworthyError(f"The task {task.name!r} commands {level!r}; expected rotor_speed or one of {', '.join(MODES)}.")
    if level != "rotor_speed" and actions is None:
        raise AirworthyError(f"The task {task.name!r} commands {level!r}, and so has to say its `action_count`.")
    if getattr(task, "jointed", False) and (level != "rotor_speed" or hasattr(task, "rooms")):
        raise AirworthyError(f"The task {task.name!r} is of vehicles with joints: it commands rotor_speed, without rooms.")
    if not 1 <= steps <= _PHYSICS_STEPS_MAX:
        raise AirworthyError(f"physics_steps of {task.name!r} is {steps!r}; expected 1 to {_PHYSICS_STEPS_MAX}.")
    if hasattr(task, "begin") != hasattr(task, "remember"):
        raise AirworthyError(f"The task {task.name!r} has one of begin and remember; a task that remembers has both.")
    return TaskTraits(
        task,
        level,
        actions,
        steps,
        getattr(task, "curriculum", None),
        hasattr(task, "begin"),
        hasattr(task, "wrench"),
        getattr(task, "rooms", None),
        tuple(getattr(task, "pushes", (0.0,) * 7)),
        bool(getattr(task, "jointed", False)),
        hasattr(task, "observe_critic"),
    )
