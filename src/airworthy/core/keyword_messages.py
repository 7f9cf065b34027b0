"""Messages that name a command line's options, said with keyword arguments to those who called from Python."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from airworthy.core.errors import AirworthyError

__all__ = ["in_keywords", "raises_in_keywords"]

_P = ParamSpec("_P")
_R = TypeVar("_R")

_NUMBER = r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.]*\w)"
# A word is an option's value only where the clause ends behind it: "give --course or --waypoints" names two options.
_ARGUMENT = r"(?!out\b)[^\s,;:()`'\"]*[^\s,;:.()`'\"](?= changes nothing|[.,;:]?(?:\s\(|$)|[.,;:]\s)"
_OPTION = re.compile(
    rf"`[^`]*`|(?<![\w-])--(?P<no>no-)?(?P<name>[a-z][a-z0-9]*(?:[-.][a-z0-9]+)*)"
    rf"(?:(?P<numbers>(?: {_NUMBER})+)|(?P<axes> X Y Z)| (?P<word>{_ARGUMENT}))?"
)


def in_keywords(text: str) -> str:
    """Return a message with "--least-distance 5" written as "least_distance=5"; commands in backticks stay as they are."""
    return _OPTION.sub(_keyword, text)


def raises_in_keywords(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorate a function of the Python face: errors that it raises name keyword arguments instead of options."""

    @wraps(function)
    def called(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return function(*args, **kwargs)
        except AirworthyError as error:
            error.args = tuple(in_keywords(item) if isinstance(item, str) else item for item in error.args)
            raise

    return called


def _keyword(match: re.Match[str]) -> str:
    if match["name"] is None:
        return match[0]
    # Fields of a configuration inside another are given like those of the outer one.
    name = match["name"].rpartition(".")[2].replace("-", "_")
    if match["numbers"]:
        numbers = match["numbers"].split()
        return f"{name}={numbers[0] if len(numbers) == 1 else '(' + ', '.join(numbers) + ')'}"
    if match["axes"]:
        return f"{name}=(x, y, z)"
    if match["word"]:
        return f"{name}={match['word']!r}"
    return f"{name}=False" if match["no"] else name
