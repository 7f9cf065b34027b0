"""What a configuration's fields may hold, declared once beside each field, checked for Python and the command line alike.

A frozen dataclass gives a field its bound by its type, `mass: Annotated[float, Bound(0.0, 10.0, "kg")]`, and calls
`check_fields` in `__post_init__`. Numbers without a bound must be finite, unless their default is infinite. Whatever else a
hint says (optional, literals, tuples, other configurations) is checked as it says; arrays and callables are left to whoever
uses them.
"""

from __future__ import annotations

import math
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from airworthy.core._atomic import path_given
from airworthy.core.errors import AirworthyError, unknown_name

TEXT_MAX = 4096
"""Letters of a text; none that anybody means is longer."""
WHOLE_MAX = 2**63 - 1
_TEXT_MAX = 80
_VARIABLE = 65536
_NUMBERS = (float, int)


@dataclass(frozen=True)
class Bound:
    """Between which numbers a field lies; of a field that holds several, each of them."""

    low: float = -math.inf
    high: float = math.inf
    unit: str = ""
    """As messages write it: "m/s"."""
    above: bool = False
    """Whether `low` itself is excluded."""
    below: bool = False
    """Whether `high` itself is excluded."""
    infinite: bool = False
    """Whether infinity means something besides ("no limit"), on a side where no number is excluded by its sign."""

    def holds(self, value: float) -> bool:
        """Tell whether a number lies inside; NaN never does."""
        if not math.isfinite(value):
            return self.infinite and not math.isnan(value) and (self.high > 0.0 if value > 0.0 else self.low < 0.0)
        over = value > self.low if self.above else value >= self.low
        under = value < self.high if self.below else value <= self.high
        return over and under

    @property
    def expected(self) -> str:
        """What is expected."""
        low, high = shown(self.low), shown(self.high)
        if math.isinf(self.low) and math.isinf(self.high):
            return "a number" if self.infinite else "a finite number"
        if math.isinf(self.high):
            return f"more than {low}" if self.above else f"{low} or more"
        if math.isinf(self.low):
            return f"less than {high}" if self.below else f"at most {high}"
        if not (self.above or self.below):
            return f"{low} to {high}"
        return f"{'more than' if self.above else 'at least'} {low} and {'less than' if self.below else 'at most'} {high}"

    def of(self, noun: str) -> str:
        """Say what is expected, with what it is: "a number, 0 to 10 kg"."""
        if math.isinf(self.low) and math.isinf(self.high):
            return noun
        return f"{noun}, {self.expected} {self.unit}".rstrip()


@dataclass(frozen=True)
class Length:
    """How many entries a list has, or letters a text."""

    least: int
    most: int

    def holds(self, count: int) -> bool:
        """Tell whether there may be as many."""
        return self.least <= count <= self.most

    @property
    def expected(self) -> str:
        """What is expected."""
        return f"{self.least}" if self.least == self.most else f"{self.least} to {self.most}"


ANY = Bound()
SHARE = Bound(0.0, 1.0)
"""A part of a whole."""
SEED = Bound(0, WHOLE_MAX)
"""A key of random numbers."""


def shown(value: Any) -> str:
    """Return a value as messages show it, on one line and not too long."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not isinstance(value, bool):
        return f"{value:.12g}"
    if isinstance(value, int) and value == WHOLE_MAX:
        return "2^63 - 1"
    text = repr(value).replace("\n", " ")
    return text if len(text) <= _TEXT_MAX else text[: _TEXT_MAX - 3] + "..."


def check_fields(config: Any, label: str = "") -> None:
    """Check every field of a frozen dataclass against its type and `Bound`; numbers of NumPy become Python's, lists tuples.

    Args:
        config: An instance, usually from its `__post_init__`.
        label: Set before a field's name in messages, as "Wind."; empty for the configuration that a command is made of.

    Raises:
        AirworthyError: One sentence: the field, what arrived, what was expected.
    """
    kind: Any = type(config)
    for name, hint in _hints(kind).items():
        value = getattr(config, name)
        checked = checked_value(hint, value, label + name)
        # Frozen dataclasses are only written where a value changed its type.
        if checked is not value:
            object.__setattr__(config, name, checked)


def check_signs(config: Any, whose: str, zero: bool = True) -> None:
    """Check that no number of a dataclass is negative, behind `check_fields`, which has found them finite.

    Args:
        config: An instance, usually from its `__post_init__`; truth values are passed over.
        whose: Set before a field's name in messages, as "The protocol's".
        zero: Whether 0 is allowed.

    Raises:
        AirworthyError: One sentence: the field, what arrived, what was expected.
    """
    for item in fields(config):
        value = getattr(config, item.name)
        if isinstance(value, bool) or value > 0.0 or (zero and value == 0.0):
            continue
        least = "of at least" if zero else "above"
        raise AirworthyError(f"{whose} {item.name} is {value!r}; expected a finite number {least} 0.")


def checked_value(hint: Any, value: Any, where: str) -> Any:
    """Return a value as its type hint wants it.

    Args:
        hint: A type, perhaps `Annotated` with a `Bound`.
        value: What arrived.
        where: Its name in messages.

    Raises:
        AirworthyError: One sentence.
    """
    return _checked(hint, value, where, ANY)


def number(value: Any, where: str, bound: Bound = ANY, whole: bool = False) -> float | int:
    """Return a number inside its bound, as Python's own.

    Args:
        value: What arrived: a number of Python or NumPy, but no truth value and no text.
        where: Its name in messages.
        bound: What it may be.
        whole: Whether it counts something.

    Raises:
        AirworthyError: One sentence.
    """
    unit = f" {bound.unit}" if bound.unit else ""
    kind = "whole number" if whole else "number"
    # What indexing an array with () leaves counts as the number it is.
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    taken = isinstance(value, (int, np.integer) if whole else (int, float, np.integer, np.floating))
    # True is an int to Python, and a slip of the keyboard to everybody else.
    if not taken or isinstance(value, bool | np.bool_):
        if whole and isinstance(value, float | np.floating) and float(value).is_integer():
            # "is 1000000; expected a whole number" would say that it is none.
            raise AirworthyError(f"{where} is {float(value)!r}; expected {bound.of(f'a {kind}')}, written without a point.")
        raise AirworthyError(f"{where} is {shown(value)}; expected {bound.of(f'a {kind}')}.")
    if whole:
        found: float | int = int(value)
        if abs(found) > WHOLE_MAX:
            bounds = bound.expected if math.isfinite(bound.low) or math.isfinite(bound.high) else "-2^63 to 2^63 - 1"
            raise AirworthyError(f"{where} is {shown(found)}{unit}; expected {bounds}.")
    else:
        try:
            found = float(value)
        # An int beyond the largest float: the bound's sentence says what is wrong, not this exception.
        except OverflowError:
            found = math.inf
    if not bound.holds(found):
        raise AirworthyError(f"{where} is {shown(found)}{unit}; expected {bound.expected}.")
    return found


@cache
def _hints(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    return {item.name: _allowing(hints[item.name], item.default) for item in fields(kind) if item.init}


def _allowing(hint: Any, default: Any) -> Any:
    """Return a hint that lets numbers be infinite where "no limit" is what they are without being asked."""
    held = default if isinstance(default, tuple) else (default,)
    infinite = any(isinstance(x, float) and math.isinf(x) for x in held) and get_origin(hint) is not Annotated
    return Annotated[hint, Bound(infinite=True)] if infinite else hint


def _checked(hint: Any, value: Any, where: str, bound: Bound) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        inside, length = limits_of(arguments[1:])
        checked = _checked(arguments[0], value, where, inside or bound)
        return checked if length is None else _counted(length, arguments[0], checked, where)
    if hint in _NUMBERS:
        return number(value, where, bound, whole=hint is int)
    if hint is bool:
        return _truth(value, where)
    if hint is str:
        return _text(value, where)
    if hint is Path:
        if not isinstance(value, Path):
            return path_given(_text(value, where), where)
        return value
    if origin is Literal:
        return _choice(arguments, value, where)
    if origin in (Union, types.UnionType):
        return _union(arguments, value, where, bound)
    if origin is tuple:
        return _several(arguments, value, where, bound)
    if origin in (dict, Mapping):
        return _table(arguments, value, where, bound)
    if isinstance(hint, type) and is_dataclass(hint) and not isinstance(value, hint):
        raise AirworthyError(f"{where} is {shown(value)}; expected {_article(hint.__name__)}(...).")
    return value


def limits_of(annotations: Sequence[Any]) -> tuple[Bound | None, Length | None]:
    """Return the bound and the length among what annotates a hint; other annotations are other people's."""
    bound = next((item for item in annotations if isinstance(item, Bound)), None)
    return bound, next((item for item in annotations if isinstance(item, Length)), None)


def _counted(length: Length, kind: Any, value: Any, where: str) -> Any:
    """Return a list or text of a length that it may have."""
    if value is None or length.holds(len(value)):
        return value
    what = "letters" if isinstance(value, str) else entries_noun(get_args(kind)[0])
    got = shown(value) if len(value) < 12 or isinstance(value, str) else f"a list of {len(value)}"
    raise AirworthyError(f"{where} is {got}; expected {length.expected} {what}.")


def _article(noun: str) -> str:
    return f"{'an' if noun[:1] in 'AEIOU' else 'a'} {noun}"


def _truth(value: Any, where: str) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise AirworthyError(f"{where} is {shown(value)}; expected True or False.")
    return bool(value)


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or len(value) > TEXT_MAX:
        raise AirworthyError(f"{where} is {shown(value)}; expected text of at most {TEXT_MAX} letters.")
    return value


def _choice(choices: Sequence[Any], value: Any, where: str) -> Any:
    for choice in choices:
        if type(choice) is type(value) and choice == value:
            return choice
    if isinstance(value, str) and all(isinstance(choice, str) for choice in choices):
        raise unknown_name(where.replace("_", " "), value[:_TEXT_MAX], choices)
    raise AirworthyError(f"{where} is {shown(value)}; expected one of {', '.join(repr(choice) for choice in choices)}.")


def _union(kinds: Sequence[Any], value: Any, where: str, bound: Bound) -> Any:
    """Return the first kind that fits; where none does, what the first that is not None says."""
    if value is None and type(None) in kinds:
        return None
    first: AirworthyError | None = None
    for kind in kinds:
        if kind is type(None):
            continue
        try:
            return _checked(kind, value, where, bound)
        except AirworthyError as error:
            first = first or error
    assert first is not None
    raise first


def _several(kinds: Sequence[Any], value: Any, where: str, bound: Bound) -> tuple[Any, ...]:
    """Return a tuple from a tuple, list or array of one axis, each entry checked."""
    variable = len(kinds) == 2 and kinds[1] is Ellipsis
    entries = list(value) if isinstance(value, tuple | list) or (isinstance(value, np.ndarray) and value.ndim > 0) else None
    if entries is None or (len(entries) > _VARIABLE if variable else len(entries) != len(kinds)):
        count = "" if variable else f"{len(kinds)} "
        what = entries_noun(kinds[0])
        got = f"{shown(value)}" if entries is None or len(entries) < 12 else f"a list of {len(entries)}"
        raise AirworthyError(f"{where} is {got}; expected {'a list of ' if variable else ''}{count}{what}.")
    wanted = [kinds[0]] * len(entries) if variable else kinds
    found = []
    for index, (kind, entry) in enumerate(zip(wanted, entries, strict=True)):
        found.append(_checked(kind, entry, f"{where}[{index}]", bound))
    done = tuple(found)
    return value if isinstance(value, tuple) and all(a is b for a, b in zip(done, value, strict=True)) else done


def _table(kinds: Sequence[Any], value: Any, where: str, bound: Bound) -> Any:
    """Return the same mapping, its entries checked."""
    if not isinstance(value, Mapping):
        raise AirworthyError(f"{where} is {shown(value)}; expected a dictionary.")
    for key, entry in value.items():
        _checked(kinds[0], key, f"A key of {where}", ANY)
        _checked(kinds[1], entry, f"{where}[{shown(key)}]", bound)
    return value


def entries_noun(kind: Any) -> str:
    """Return what the entries of a list are called, by their type."""
    plain = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    return {float: "numbers", int: "whole numbers", str: "texts", bool: "truth values"}.get(plain, "entries")
