"""`airworthy tasks show`, of every task: formulas of which all is explained, options that can be set or are said not to be."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from airworthy.cli.learning.tasks import _OWN_COMMANDS
from airworthy.cli.learning.train import KINDS
from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError
from airworthy.learning.environments import learning_tasks
from airworthy.learning.navigation.options import NAVIGATION_TASKS
from airworthy.learning.task_training.config import TaskConfig

TASKS = sorted({*learning_tasks(), *NAVIGATION_TASKS})


def _printed(name: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["tasks", "show", name, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def _dotted(options: dict[str, Any], head: str = "") -> set[str]:
    """Names of options, those of records inside them with dots, too."""
    names = {f"{head}{name}" for name in options}
    for name, value in options.items():
        names |= _dotted(value, f"{head}{name}.") if isinstance(value, dict) else set()
    return names


@pytest.mark.parametrize("name", TASKS)
def test_every_symbol_of_a_formula_is_explained_and_nothing_else_is(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = _printed(name, capsys)
    reward, options = found["reward"], _dotted(found["options"])
    symbols, functions = reward["symbols"], reward["functions"]
    formulas = {**reward["terms"], **reward["parts"], "ends": reward["ends"], "success": reward["success"]}
    quoted = [part for meaning in symbols.values() for part in re.findall(r"`([^`]*)`", meaning)]
    called, named = set[str](), set[str]()
    for text in (*formulas.values(), *quoted):
        called |= set(re.findall(r"([A-Za-z_]\w*)\(", text))
        named |= set(re.findall(r"(?<![\w.])([A-Za-z_]\w*(?:\.\w+)*)(?![\w(])", text))
    # A name that stands for itself, or in its own formula, is no reference to that formula.
    own = {key for key, text in formulas.items() if re.search(rf"\b{key}\b", text)}
    explained = {*symbols, *options, *(set(formulas) - own - {"ends", "success"})}
    assert named <= explained, f"not explained: {named - explained}"
    heads = {head.partition("(")[0]: head for head in functions if re.match(r"\w+\(", head)}
    assert called == set(heads), f"called {called}, explained {set(heads)}"
    assert set(symbols) <= named, f"explained, and used nowhere: {set(symbols) - named}"
    for sign, head in (("**", "x**y"), ("|", "x | y")):
        assert any(sign in text for text in formulas.values()) == (head in functions)


@pytest.mark.parametrize("name", TASKS)
def test_every_option_can_be_set_or_is_listed_as_not(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each that is listed as settable is set to another value, and each other refused; so says the list for people, too."""
    found = _printed(name, capsys)
    options, settable = found["options"], set(found["settable"])
    if name in _OWN_COMMANDS:
        assert settable == set(options) & {item.name for item in fields(_OWN_COMMANDS[name])}
    else:
        for option, value in options.items():
            config = TaskConfig(option=(f"{option}={_other(option, value)}",))
            if option in settable:
                assert option in config.training(name, 0).options
            else:
                with pytest.raises(AirworthyError, match=f"--option cannot say '{option}' .* a record: set it from Python"):
                    config.training(name, 0)
    assert main(["tasks", "show", name]) == 0
    text = capsys.readouterr().out
    apart = "options that no command line sets"
    assert (apart in text) == (settable != set(options))
    listed = text.partition(apart)[0] if apart in text else text.partition("reward per step")[0]
    assert {option for option in options if re.search(rf"^  {option} ", listed, re.MULTILINE)} == settable


def _other(option: str, value: Any) -> str:
    """Another value of the kind that an option has."""
    if isinstance(value, bool):
        return str(not value).lower()
    if isinstance(value, list):
        return "0,0.5"
    if isinstance(value, str):
        return {"start_attitude": "uniform"}.get(option, "nothing")
    if option in ("fit", "history"):
        return {"fit": "2024", "history": "4"}[option]
    if not isinstance(value, int | float):
        return "1"
    return str(value + 1 if isinstance(value, int) else 0.9 * value or 0.5)


def test_tasks_with_commands_of_their_own_are_known() -> None:
    assert set(_OWN_COMMANDS) == set(TASKS) & set(KINDS)


def test_counts_and_lists_are_taken_as_written() -> None:
    def options(*words: str) -> Any:
        return TaskConfig(option=words).training("l2f_position", 0).options

    assert options("episode_steps=4e2", "start_rotors=0,0.5") == {"episode_steps": 400, "start_rotors": (0.0, 0.5)}
    for word, said in (("episode_steps=1.5", "a whole number, as episode_steps=500 is"), ("start_rotors=a", "commas between")):
        with pytest.raises(AirworthyError, match=said):
            options(word)


OWN = """
from airworthy.core import ops
from airworthy.learning import HoverTask, Judgement


class Climb(HoverTask):
    name = "climb"
    error = None

    def judge(self, before, after, action, past, p):
        return Judgement({"climb": after[5]}, ops.where(after[2] < -3.0, 1.0, 0.0), ops.where(after[2] > 2.0, 1.0, 0.0))
"""


def test_a_task_of_ones_own_is_shown_as_it_is_trained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the word that `train` takes; of a reward without formulas the parts are named."""
    (tmp_path / "own tasks.py").write_text(OWN, encoding="utf-8")
    word = f"{tmp_path / 'own tasks.py'}:Climb"
    assert main(["tasks", "show", word]) == 0
    told = capsys.readouterr().out
    assert f"options, set by airworthy train '{word}' --option NAME=VALUE" in told
    assert re.search(r"^  reach_m +4\.0$", told, re.MULTILINE)
    assert told.endswith("whose code alone says how: climb\n")
    assert TaskConfig(option=("reach_m=3",)).training(word, 0).options == {"reach_m": 3.0}
    assert main(["tasks", "show", f"{tmp_path / 'nothing.py'}:Climb"]) == 2
    assert "is no file" in capsys.readouterr().err
