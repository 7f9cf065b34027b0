"""What a user chooses about learning a task; what is left open stands in the table of settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Annotated, Any

from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.idle_options import IdleRule, refuse_idle
from airworthy.core.schema import Bound, check_fields
from airworthy.learning.gradient.config import randomization_of
from airworthy.learning.l2f_position.gradient import L2fGradientOptions
from airworthy.learning.machine import SEED_MAX
from airworthy.learning.off_policy.training import OFF_POLICY, OffPolicyTrainingOptions
from airworthy.learning.task_training.evaluation import TaskProtocol
from airworthy.learning.task_training.jointed_options import JOINTED_BY_GRADIENT, jointed_gradient_options
from airworthy.learning.task_training.options import TaskOptions, TaskTrainingOptions
from airworthy.learning.task_training.own_tasks import made_task
from airworthy.learning.task_training.path_options import PathGradientOptions
from airworthy.learning.task_training.recovery import RecoveryGradientOptions

__all__ = ["IDLE_RULES", "TASK_TRAINERS", "TaskConfig", "settable_options"]

TASK_TRAINERS = {
    "native_ppo": "by reward, on environments of the learning task",
    "ppo": "the same in torch: slower, and to read and to change",
    "sac": "by reward, from a replay of all that was flown",
    "td3": "alike, with a policy that is not random",
    "gradient": "by the gradient of flights, of the tasks l2f_position, recovery, track, motor_track and those of joints",
}
"""Those there are."""
_BY_GRADIENT: Mapping[str, Callable[..., TaskOptions]] = {
    "l2f_position": L2fGradientOptions,
    "recovery": RecoveryGradientOptions,
    "track": partial(PathGradientOptions, "track"),
    "motor_track": partial(PathGradientOptions, "motor_track"),
    **{name: partial(jointed_gradient_options, name) for name in JOINTED_BY_GRADIENT},
}
"""The tasks that the gradient learns here, each in one form."""


@dataclass(frozen=True)
class TaskConfig:
    """How to learn a task, and on how many flights it is judged.

    Raises:
        AirworthyError: One sentence, if something cannot be learnt so.
    """

    trainer: str = "native_ppo"
    """What learns: "native_ppo", or "ppo", the same in torch; "sac" or "td3", of small networks and short trainings; of
    l2f_position, recovery, track, motor_track, morphy_hover, chain_hover and gap "gradient", too."""
    option: tuple[str, ...] = ()
    """Options of the task, NAME=VALUE, as `airworthy tasks show TASK` lists them: rate_max=5 as_published=true."""
    seed: Annotated[int, Bound(0, SEED_MAX)] = 0
    """Of weights, starts, drawn vehicles and noise."""
    # As of the trainers' options: other fields of these are made from it, and would be named first.
    steps: Annotated[int | None, Bound(1, 10**12)] = None
    """Decisions of all flights together; left out: as usual for task and trainer, like all that follows."""
    env_count: int | None = None
    """Flights at once, a multiple of 16."""
    hidden: tuple[int, int] | None = None
    """Widths of the two hidden layers, each 1 to 128."""
    episode_steps: int | None = None
    """Decisions after which a flight of the training is cut off; 0: as many as the task has."""
    learning_rate: float | None = None
    """At the beginning."""
    randomize: tuple[str, ...] = ()
    """How vehicles differ from flight to flight, +- share: mass=0.2 inertia=0.3 thrust=0.1 lag=0.3 rotor=0.02 drag=0.3;
    "default" stands for the first four; "identified": what an identification left open of the vehicle, widen=1.5 times as
    wide."""
    flights: int = 1024
    """On which it is judged."""
    mpc_flights: int = 64
    """Of the MPC beside it, where the task holds a place; 0: without it."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.trainer not in TASK_TRAINERS:
            raise unknown_name("trainer", self.trainer, TASK_TRAINERS)
        # An option that nothing reads would look as if it had been tried.
        refuse_idle(self, IDLE_RULES)

    def training(self, task: str, seed: int) -> TaskOptions:
        """Return the trainer's options for a task and a seed.

        Args:
            task: Name of a registered task, or FILE.py:NAME.
            seed: Of weights, starts and noise.

        Raises:
            AirworthyError: An option of the task that it does not have, or a number out of range.
        """
        usual, _ = made_task(task, {})
        chosen = {item: getattr(self, item) for item in ("steps", "env_count", "hidden", "episode_steps", "learning_rate")}
        spread = randomization_of(self.randomize)
        if self.trainer == "gradient":
            return self._gradient(task, seed)
        options = self._options(usual)
        if self.trainer in OFF_POLICY:
            return OffPolicyTrainingOptions.usual(self.trainer, task, seed, options=options, randomization=spread, **chosen)
        return TaskTrainingOptions.usual(task, seed, self.trainer, options=options, randomization=spread, **chosen)

    def check_options(self, task: str) -> None:
        """Refuse an --option that the task does not take, by the word that said it; raises AirworthyError."""
        options = self._options(made_task(task, {})[0])
        with _told_as_options():
            made_task(task, options)

    def _gradient(self, task: str, seed: int) -> TaskOptions:
        # Flights are differentiated with a cost made for them; a reward of any task may have steps that no slope shows.
        if task not in _BY_GRADIENT:
            known = ", ".join(_BY_GRADIENT)
            raise AirworthyError(
                f"The gradient learns {known} and hover, not the task {task!r}: learn it with --trainer native_ppo."
            )
        chosen = {name: x for name in ("env_count", "learning_rate") if (x := getattr(self, name)) is not None}
        made: Any = _BY_GRADIENT[task](seed=seed, **chosen)
        # Whole gradient steps, each of a window of all flights, as whole updates are made by reward.
        return made if self.steps is None else replace(made, iterations=-(-self.steps // (made.window * made.env_count)))

    def _options(self, task: Any) -> Mapping[str, Any]:
        plain, found = settable_options(task), dict[str, Any]()
        for text in self.option:
            name, equals, value = text.partition("=")
            if name not in plain and name in getattr(task, "__dataclass_fields__", ()):
                raise AirworthyError(
                    f"--option cannot say {name!r} of the task {task.name!r}, which is a record: set it from Python, as an"
                    " argument of its class."
                )
            if name not in plain:
                raise unknown_name(f"option of the task {task.name!r}", name, sorted(plain), "Write --option NAME=VALUE.")
            if not equals or name in found:
                raise AirworthyError(f"--option got {text!r}; write each as {name}=VALUE, once.")
            found[name] = _value(name, value, plain[name])
            # An option without effect is refused, as everywhere.
            if found[name] == plain[name]:
                raise AirworthyError(f"--option {text} changes nothing: the task has it so; leave it out.")
        return found

    @property
    def protocol(self) -> TaskProtocol:
        """How it is judged."""
        return TaskProtocol(flights=self.flights, mpc_flights=self.mpc_flights)


def settable_options(task: Any) -> dict[str, Any]:
    """Return the options of a task that --option sets, with what they are now: what a word of a command line can say.

    Args:
        task: That is learnt by `airworthy train TASK`; of one that is no dataclass nothing can be set. Records inside it, as
            a curriculum, are for Python.
    """
    if not is_dataclass(task) or isinstance(task, type):
        return {}
    known = {item.name: getattr(task, item.name) for item in fields(task)}
    return {name: now for name, now in known.items() if isinstance(now, _PLAIN) or _numbers(now)}


@contextmanager
def _told_as_options() -> Iterator[None]:
    """Let a task that refuses its field name the --option that said it: "--option rate is 0", of "Recovery.rate is 0"."""
    try:
        yield
    except AirworthyError as error:
        error.args = (re.sub(r"^(?:[A-Z]\w*\.)?(?=[a-z]\w*(?:\[\d+\])? (?:is|has|must) )", "--option ", str(error)),)
        raise


_PLAIN = (bool, int, float, str)


def _numbers(now: Any) -> bool:
    return isinstance(now, tuple) and all(isinstance(one, int | float) for one in now)


def _value(name: str, text: str, now: Any) -> Any:
    """Return a value of the kind that an option has now."""
    try:
        # First: a bool is an int, and `bool("false")` is true.
        if isinstance(now, bool):
            return {"true": True, "false": False}[text.lower()]
        if isinstance(now, tuple):
            return tuple(float(word) for word in text.split(",") if word)
        # As every count of a command line: 1e6 is a whole number, too.
        if isinstance(now, int) and (number := float(text)).is_integer():
            return int(number)
        return type(now)(text)
    except (KeyError, ValueError, OverflowError):
        kinds = {bool: "true or false", int: "a whole number", tuple: "numbers with commas between, as 0,0.5"}
        expected = kinds.get(type(now), "a number")
        shown = ",".join(map(str, now)) if isinstance(now, tuple) else now
        as_now = f", as {name}={shown} is" if shown != "" else ""
        raise AirworthyError(f"--option got {name}={text}; expected {expected}{as_now}.") from None


IDLE_RULES = (
    IdleRule(
        ("option", "hidden", "episode_steps", "randomize"),
        lambda asked: asked.trainer == "gradient",
        "for the trainer gradient, which learns each of its tasks in one form",
        "learn by reward, without --trainer gradient",
    ),
)
"""What only trainers by reward read."""
