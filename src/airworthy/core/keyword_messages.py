"""Messages in the words of who asked: options said with keyword arguments to callers from Python, fields of a configuration
said as options on a command line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

from airworthy.core.errors import AirworthyError, telling_refusals

__all__ = ["in_keywords", "in_options", "raises_in_keywords", "raises_in_options", "raises_without_class"]

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
    """Decorate a function of the Python face: errors that it raises name keyword arguments instead of options.

    What the file system refuses of a path is one of them, as on the command line.
    """

    @wraps(function)
    def called(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            with telling_refusals():
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


# ---- The other way: fields said as options ----------------------------------------------------------------------------------

_INNER = r"(?<![\w.])[A-Z]\w*\."
"""Class of an inner record, before its field ("GradientOptions.")."""


def in_options(text: str, names: Iterable[str]) -> str:
    """Return a message whose subject is a field with the option instead: "--delay is -1", of "GradientOptions.delay is -1".

    Args:
        text: The message.
        names: Fields that have an option, or the option of each ("perturb.delay"); others stay, without the class that they
            are of.
    """
    options = names if isinstance(names, Mapping) else {name: name for name in names}
    names = tuple(options)
    known = "|".join(sorted(map(re.escape, names), key=len, reverse=True)) or "(?!)"
    field = re.compile(rf"(?:{_INNER}|^)(?P<name>{known})(?=(?:\[\d+\])? (?:is|has|must|does)\b)")
    said = field.sub(lambda match: f"--{options[match['name']].replace('_', '-')}", text)
    return re.sub(rf"{_INNER}(?=[a-z]\w*(?:\[\d+\])? (?:is|has|must|does)\b)", "", said)


@contextmanager
def raises_without_class() -> Iterator[None]:
    """Let errors that are raised within leave out the class of a field: its owner has fields of the same names."""
    with raises_in_options(()):
        yield


@contextmanager
def raises_in_options(names: Iterable[str]) -> Iterator[None]:
    """Let errors that are raised within name options instead of the fields, also inner ones, of which they are made."""
    known = names if isinstance(names, Mapping) else tuple(names)
    try:
        yield
    except AirworthyError as error:
        error.args = tuple(in_options(item, known) if isinstance(item, str) else item for item in error.args)
        raise
