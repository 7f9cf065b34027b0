"""What a learning task is: pure functions of scalars, written like every equation, and the numbers beside them.

They are called with NumPy arrays (the twin), traced into the kernel that steps thousands of environments, and derived alike. A
state is position, velocity (world), attitude x y z w, body rate and rotor states: 13 + n scalars, as in
`airworthy.learning.gradient.dynamics`; `p` is the record of parameters, with `hover` (rotor states of hover) and
`nominal_weight` [N] of the vehicle before it was drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from airworthy.core.arrays import Scalar, Vector
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.ops import absolute, clip, exp, maximum, sqrt, where
from airworthy.core.schema import shown

__all__ = [
    "REQUIRED",
    "Judgement",
    "LearningTask",
    "crashed_terms",
    "cusp",
    "cusp_penalty",
    "learning_task",
    "learning_tasks",
    "peak",
    "penalty",
    "register_task",
    "task_given",
    "thrust_command",
]


@dataclass(frozen=True)
class Judgement:
    """Of one step."""

    terms: dict[str, Scalar]
    """Named parts of the reward, whose sum is the reward."""
    terminated: Scalar
    """1 where the flight ended by what happened in it, else 0."""
    success: Scalar
    """1 where the state is what the task asks for, else 0."""


class LearningTask(Protocol):
    """A task; frozen dataclasses of this shape can be registered."""

    @property
    def name(self) -> str:
        """In the registry."""
        ...

    @property
    def vehicle(self) -> str:
        """Catalogue name of the vehicle it was published with, or the path of a vehicle file."""
        ...

    @property
    def rate(self) -> float:
        """Decisions per second."""
        ...

    @property
    def episode_steps(self) -> int:
        """Decisions after which a flight is truncated."""
        ...

    @property
    def noise(self) -> bool:
        """Whether observations are disturbed."""
        ...

    def start(self, uniforms: Vector, p: Any) -> Vector:
        """Return the state of a new flight from 16 uniform numbers in (0, 1)."""
        ...

    def command(self, action: Vector, p: Any) -> Vector:
        """Return rotor states commanded by an action, whose entries are within [-1, 1]."""
        ...

    def observe(self, state: Vector, noises: Vector, p: Any) -> Vector:
        """Return what the policy sees; `noises` are 16 standard normal numbers, zeros where `noise` is not set.

        Args:
            state: Of the flight.
            noises: 16 standard normal numbers.
            p: Parameters.
        """
        ...

    def judge(self, before: Vector, after: Vector, action: Vector, past: Vector, p: Any) -> Judgement:
        """Return reward of a step from state `before` to `after` by `action`, after the action `past`.

        Args:
            before: State before the step.
            after: State after it.
            action: That was taken, within [-1, 1].
            past: The action before.
            p: Parameters.
        """
        ...


REQUIRED = ("name", "vehicle", "rate", "episode_steps", "noise", "start", "command", "observe", "judge")
"""Members that every task has."""


def peak(x: Scalar, height: float, sharpness: float) -> Scalar:
    """Return E(x; m, a) = m exp(-a x^2) of Aerial Gym's rewards.

    Args:
        x: What is measured.
        height: m.
        sharpness: a.
    """
    return height * exp(-sharpness * x * x)


def penalty(x: Scalar, height: float, sharpness: float) -> Scalar:
    """Return P(x; m, a) = m (exp(-a x^2) - 1), 0 at best.

    Args:
        x: What is measured.
        height: m.
        sharpness: a.
    """
    return peak(x, height, sharpness) - height


def cusp(x: Scalar, height: float, sharpness: float) -> Scalar:
    """Return A(x; m, a) = m exp(-a |x|).

    Args:
        x: What is measured.
        height: m.
        sharpness: a.
    """
    return height * exp(-sharpness * absolute(x))


def cusp_penalty(x: Scalar, height: float, sharpness: float) -> Scalar:
    """Return AP(x; m, a) = m (exp(-a |x|) - 1), 0 at best.

    Args:
        x: What is measured.
        height: m.
        sharpness: a.
    """
    return cusp(x, height, sharpness) - height


def crashed_terms(terms: dict[str, Scalar], crashed: Any, value: float) -> dict[str, Scalar]:
    """Return terms of a reward that is `value` in a crash, whatever they are.

    Args:
        terms: By name.
        crashed: A comparison.
        value: Of the term `crash`.
    """
    # All terms stay, at zero: a log of terms has the same columns at every step.
    return {**{name: where(crashed, 0.0, x) for name, x in terms.items()}, "crash": where(crashed, value, 0.0)}


def thrust_command(thrusts: Vector, p: Any) -> Vector:
    """Return rotor states whose steady thrust is asked for, within their limits: the polynomial's root where it rises.

    Args:
        thrusts: Of each rotor [N].
        p: Parameters: rotor_thrust (c0 + c1 w + c2 w^2, with c2 > 0, or c2 = 0 and c1 > 0), rotor_min, rotor_max.
    """
    speeds = []
    for u, c, low, high in zip(thrusts, p.rotor_thrust, p.rotor_min, p.rotor_max, strict=True):
        # Below the thrust of a rotor at rest there is no root: its state is then the polynomial's lowest point, for the clip.
        root = sqrt(maximum(c[1] * c[1] + 4.0 * c[2] * (u - c[0]), 0.0))
        # The same root over its conjugate where c1 > 0: nothing cancels, and without a square it is (u - c0) / c1.
        rising = c[1] > 0.0
        above, below = where(rising, 2.0 * (u - c[0]), root - c[1]), where(rising, c[1] + root, 2.0 * c[2])
        speeds.append(clip(above / below, low, high))
    return tuple(speeds)


_TASKS: dict[str, Callable[..., LearningTask]] = {}


def register_task(name: str, make: Callable[..., LearningTask]) -> None:
    """Make a task known by name.

    Args:
        name: As in `VectorTask("NAME")`.
        make: Called with the task's own options.

    Raises:
        AirworthyError: Another task has this name.
    """
    # Registering the very same again harms nothing.
    if _TASKS.get(name, make) is not make:
        raise AirworthyError(f"A learning task {name!r} is registered already; choose another name.")
    _TASKS[name] = make


def learning_task(name: str, **options: Any) -> LearningTask:
    """Return a registered task.

    Args:
        name: One of `learning_tasks`.
        options: Of the task.

    Raises:
        UnknownNameError: There is none of this name.
        AirworthyError: An option that it does not have.
    """
    from airworthy.learning.environments import tasks

    _ = tasks  # those that are shipped register themselves
    if name not in _TASKS:
        raise unknown_name("learning task", name, sorted(_TASKS))
    try:
        return _TASKS[name](**options)
    except TypeError as error:
        raise AirworthyError(f"The learning task {name!r} does not take these options: {error}.") from None


def task_given(task: Any) -> LearningTask:
    """Return the task that a caller from Python gave: a name, or a task.

    Raises:
        AirworthyError: It is neither, or there is none of this name.
    """
    if isinstance(task, str):
        return learning_task(task)
    missing = [name for name in REQUIRED if not hasattr(task, name)]
    if missing or isinstance(task, type):
        why = f"which has no {missing[0]!r}" if missing else "a class: call it"
        raise AirworthyError(f"task is {shown(task)}, {why}; expected the name of a learning task, or a task.")
    found: LearningTask = task
    return found


def learning_tasks() -> Iterator[str]:
    """Return names of all that are registered."""
    from airworthy.learning.environments import tasks

    _ = tasks
    return iter(sorted(_TASKS))
