"""`airworthy tasks`: list the tasks that are learnt by reward, show one."""

from __future__ import annotations

import dataclasses
import inspect
import shlex
from dataclasses import dataclass
from typing import Any

from tyro.conf import Positional

from airworthy.cli.common import ListConfig, Subcommands, emit_json, run_subcommand, show_table
from airworthy.core.errors import unknown_name
from airworthy.learning.environments import LearningTask, learning_task, learning_tasks
from airworthy.learning.environments.formulas import RewardFormulas, reward_formulas
from airworthy.learning.environments.traits import traits_of
from airworthy.learning.environments.vector_task import reward_terms
from airworthy.learning.gradient.config import HoverConfig
from airworthy.learning.native_ppo.config import MotorCommandConfig
from airworthy.learning.navigation.environments import SIGHT
from airworthy.learning.navigation.options import NAVIGATION_TASKS, NavigationOptions
from airworthy.learning.task_training.config import settable_options
from airworthy.learning.task_training.own_tasks import is_own_task, made_task

PROG = "airworthy tasks"
_DESCRIPTION = "List the tasks that are learnt by reward. Also: airworthy tasks show NAME."


@dataclass(frozen=True)
class ShowTaskConfig:
    """What to show."""

    name: Positional[str]
    """Name of the task (`airworthy tasks` lists them), or FILE.py:NAME of one's own."""
    json: bool = False
    """Print every field as JSON."""


def main(argv: list[str]) -> int:
    """Run `airworthy tasks`; users' mistakes raise AirworthyError, which the command line prints."""
    commands: Subcommands = {
        "list": (ListConfig, _list, _DESCRIPTION),
        "show": (ShowTaskConfig, _show, "Show one task, and its options with what they are by default."),
    }
    return run_subcommand(PROG, commands, argv)


def _names() -> list[str]:
    """Tasks by their names: those that any trainer takes, and those that are learnt with images beside them."""
    return sorted([*learning_tasks(), *NAVIGATION_TASKS])


def _task(name: str) -> LearningTask:
    if is_own_task(name):
        return made_task(name, {})[0]
    if name not in (names := _names()):
        raise unknown_name("learning task", name, names)
    return NAVIGATION_TASKS[name]() if name in NAVIGATION_TASKS else learning_task(name)


def _terms(task: LearningTask) -> tuple[str, ...]:
    """Names of the parts of its reward; what reads an image is computed beside the task's own."""
    return (*reward_terms(task), *((SIGHT,) if task.name in NAVIGATION_TASKS else ()))


def _head(task: LearningTask) -> dict[str, Any]:
    traits = traits_of(task)
    return {
        "name": task.name,
        "commands": traits.level,
        "vehicle": task.vehicle,
        "rate_hz": task.rate,
        "episode_steps": task.episode_steps,
        "curriculum": traits.curriculum is not None,
        "description": " ".join((inspect.getdoc(type(task)) or "").split("\n\n")[0].split()),
    }


def _options(task: Any) -> dict[str, Any]:
    return dataclasses.asdict(task) if dataclasses.is_dataclass(task) and not isinstance(task, type) else {}


_OWN_COMMANDS: dict[str, type] = {"hover": HoverConfig, "motor_command": MotorCommandConfig} | dict.fromkeys(
    NAVIGATION_TASKS, NavigationOptions
)
"""Tasks whose training has a command of its own, with its options and no --option."""


def _settable(task: Any, word: str) -> set[str]:
    """Names of the options that the command sets which learns the task; one's own may be a shipped one with another judge."""
    if word in _OWN_COMMANDS:
        return set(_options(task)) & {item.name for item in dataclasses.fields(_OWN_COMMANDS[word])}
    return set(settable_options(task))


def _how(word: str) -> str:
    return "--NAME VALUE" if word in _OWN_COMMANDS else "--option NAME=VALUE"


def _list(config: ListConfig) -> int:
    rows = [_head(_task(name)) for name in _names()]
    if config.json:
        emit_json(rows)
        return 0
    columns = {
        "name": "name",
        "commands": "commands",
        "vehicle": "vehicle",
        "rate [Hz]": "rate_hz",
        "steps": "episode_steps",
        "what": "description",
    }
    show_table(f"{len(rows)} tasks", list(columns), [[row[key] for key in columns.values()] for row in rows])
    return 0


def _show(config: ShowTaskConfig) -> int:
    task = _task(config.name)
    found = reward_formulas(task, _terms(task))
    if config.json:
        reward = {} if found is None else {"reward": dataclasses.asdict(found)}
        emit_json({**_head(task), "options": _options(task), "settable": sorted(_settable(task, config.name)), **reward})
        return 0
    for key, value in _head(task).items():
        print(f"{key:24}{value}")
    options, settable, how = _options(task), _settable(task, config.name), _how(config.name)
    for title, names in (
        (f"options, set by airworthy train {shlex.quote(config.name)} {how}", [name for name in options if name in settable]),
        ("options that no command line sets, arguments of the class", [name for name in options if name not in settable]),
    ):
        if names:
            print(title)
        for name in names:
            print(f"  {name:22}{options[name]}")
    if found is None:
        print(f"reward per step, the sum of these, whose code alone says how: {', '.join(_terms(task))}")
    else:
        _show_reward(found)
    return 0


def _show_reward(found: RewardFormulas) -> None:
    """Print formulas so that they can be computed from what is printed."""
    at_end = " these; where the flight ends, crash alone, which is 0 elsewhere" if "crash" in found.terms else " these"
    groups = (
        (f"reward per step, the sum of{at_end}", found.terms),
        ("with", found.parts),
        ("flight", {"ends where": found.ends, "success": found.success}),
        ("symbols; names of options stand for their values", found.symbols),
        ("functions", found.functions),
    )
    for title, rows in groups:
        if rows:
            print(title)
        for name, text in rows.items():
            print(f"  {name:24}{text}")
