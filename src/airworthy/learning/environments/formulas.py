"""The reward of a task as formulas that anyone can compute, as data beside the code that computes it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from airworthy.learning.environments.task import LearningTask

__all__ = ["FUNCTIONS", "RewardFormulas", "reward_formulas"]

FUNCTIONS = {
    "E(x, m, a)": "m exp(-a x^2)",
    "P(x, m, a)": "m (exp(-a x^2) - 1)",
    "A(x, m, a)": "m exp(-a |x|)",
    "AP(x, m, a)": "m (exp(-a |x|) - 1)",
    "sum(x)": "over the components of a vector, each of which the functions above take by itself",
    "norm(x)": "length of a vector",
    "max(x)": "largest component of a vector",
    "min(x, y)": "the smaller of two numbers",
    "abs(x)": "without the sign, of a vector of each component",
    "sqrt(x)": "square root",
    "exp(x)": "e^x",
    "cos(x)": "cosine",
    "where(condition, a, b)": "a where the condition holds, else b",
    "(x, y, z)": "a vector, which multiplies another component by component",
    "x**y": "x to the power of y",
    "x | y": "where either holds",
}
"""What formulas are written with, besides + - * / and comparisons, which nobody needs to be told."""
_WORD = re.compile(r"[A-Za-z_]\w*")
_QUOTED = re.compile(r"`([^`]*)`")
"""Formulas in the meaning of a symbol."""
_SIGNS = {"(x, y, z)": re.compile(r"(?<!\w)\([^()]*,[^()]*\)"), "x**y": re.compile(r"\*\*"), "x | y": re.compile(r"\|")}
"""How those of the functions are found that have no name."""


@dataclass(frozen=True)
class RewardFormulas:
    """Of one task; names of its options stand for their values."""

    terms: dict[str, str]
    """Formula of each named term; the reward is their sum."""
    parts: dict[str, str]
    """What terms have in common, by the name that they call it."""
    ends: str
    """Where the flight ends by what happened in it. Of a task with a term `crash` all others are then 0, and that one is
    elsewhere."""
    success: str
    """Where the state is what the task asks for."""
    symbols: dict[str, str]
    """Meaning of the symbols that occur."""
    functions: dict[str, str] = field(default_factory=dict)
    """Meaning of the functions and signs that occur."""


@cache
def _table() -> dict[str, dict[str, str]]:
    place = files("airworthy.learning.environments.tasks").joinpath("formulas.toml")
    return tomllib.loads(place.read_text(encoding="utf-8"))


def reward_formulas(task: LearningTask, terms: tuple[str, ...]) -> RewardFormulas | None:
    """Return the formulas of a shipped task, or those that a task of one's own has as `formulas`; None: it has none.

    Args:
        task: Of which; `formulas` of one's own is a mapping like the entries of the table.
        terms: Names of its reward's parts.
    """
    own: Any = getattr(task, "formulas", None)
    table = dict(own) if own is not None else _table().get(task.name)
    if table is None:
        return None
    parts = {name: text for name, text in table.items() if name not in (*terms, "ends", "success")}
    found = {name: table[name] for name in terms if name in table}
    known = _table()["symbols"]
    symbols = _symbols(table, known)
    written = [*table.values(), *(part for text in symbols.values() for part in _QUOTED.findall(text))]
    return RewardFormulas(found, parts, table.get("ends", ""), table.get("success", ""), symbols, _functions(written))


def _symbols(table: Mapping[str, str], known: Mapping[str, str]) -> dict[str, str]:
    """Symbols of formulas, and those by which these are explained."""
    # A name that stands in its own formula is no reference to itself: there it is the symbol ("yaw" = A(yaw, 2, 3)).
    named = {name for name, text in table.items() if name not in _WORD.findall(text)}
    wanted = [word for text in table.values() for word in _WORD.findall(text)]
    found: set[str] = set()
    while wanted:
        word = wanted.pop()
        if word in known and word not in named and word not in found:
            found.add(word)
            wanted += [inner for part in _QUOTED.findall(known[word]) for inner in _WORD.findall(part)]
    return {name: known[name] for name in known if name in found}


def _functions(written: Sequence[str]) -> dict[str, str]:
    """Functions and signs of formulas."""
    words = {word for text in written for word in _WORD.findall(text)}
    signs = {head for head, sign in _SIGNS.items() if any(sign.search(text) for text in written)}
    return {
        head: text
        for head, text in FUNCTIONS.items()
        if head in signs or (head not in _SIGNS and head.partition("(")[0] in words)
    }
