"""The reward of a task as formulas that anyone can compute, as data beside the code that computes it."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
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
    "sum(x)": "over the components of a vector",
    "norm(x)": "length of a vector",
    "where(condition, a, b)": "a where the condition holds, else b",
}
"""What formulas are written with, besides + - * / **, comparisons, |, and exp, sqrt, abs, min, max."""
_WORD = re.compile(r"[A-Za-z_]\w*")


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
    used = {word for text in table.values() for word in _WORD.findall(text)}
    known = _table()["symbols"]
    # A term may be a symbol by itself.
    symbols = {name: known[name] for name in known if name in used and table.get(name, name) == name}
    return RewardFormulas(found, parts, table.get("ends", ""), table.get("success", ""), symbols)
