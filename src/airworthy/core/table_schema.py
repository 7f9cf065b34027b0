"""Plain tables of TOML and JSON to records and back: one strict translation, driven by the records' own type hints.

A room states with a `TableSchema` what its kind of file allows; sentences about what is wrong are the same everywhere. What the
fields of a record may hold besides their type is `core.schema`'s.
"""

from __future__ import annotations

import difflib
import json
import math
import re
import types
from collections.abc import Iterable
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from airworthy.core.errors import AssetError

TEXT_MAX = 4096
"""Letters of a text in a file; none that anybody means is longer."""
_SHORT = 60
_EXACT_MAX = 2**53
"""Beyond it an integer would silently become another float64."""

# ---- What is wrong, in one sentence -----------------------------------------------------------------------------------------


def unknown_key(key: str, known: Iterable[str], where: str) -> AssetError:
    """Return the error for a key that nothing reads; names the closest one that exists.

    Args:
        key: As the file has it.
        known: Keys that exist there.
        where: The place in the file, that begins the sentence.
    """
    names = sorted(known)
    # Half of the letters in common: a slip is found, and a key that is nothing like any lists them all.
    close = difflib.get_close_matches(short(key), names, n=1, cutoff=0.5)
    hint = f"closest: {close[0]!r}" if close else f"known: {', '.join(names)}"
    return AssetError(f"{where} has the unknown key {short(key)!r} ({hint}).")


def short(value: Any) -> str:
    """Text of a value, cut so that a message stays one sentence."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= _SHORT else text[: _SHORT - 3] + "..."


def wrong(where: str, expected: str, value: Any) -> AssetError:
    """Return the error for a value of the wrong kind.

    Args:
        where: Dotted name, that begins the sentence.
        expected: What it must be, with its article.
        value: What it is.
    """
    if isinstance(value, dict | list):
        shown = f"a {'table' if isinstance(value, dict) else 'list'} of {len(value)}"
    else:
        shown = repr(value)
    return AssetError(f"{where} must be {expected}, but is {short(shown)}.")


# ---- Records and their fields -----------------------------------------------------------------------------------------------


def default_of(item: Field[Any]) -> Any:
    """Return a field's default, or MISSING where it has none."""
    return item.default_factory() if item.default_factory is not MISSING else item.default


@cache
def hints(kind: type) -> dict[str, Any]:
    """Return resolved type hints of a record."""
    return get_type_hints(kind)


@cache
def _fields(kind: type) -> dict[str, Field[Any]]:
    return {item.name: item for item in fields(kind)}


@dataclass(frozen=True)
class TableSchema:
    """What one kind of file may hold, and the translation of its tables to records and back."""

    entries_max: int
    """Of any table."""
    list_max: int
    """Of any list whose length is free."""
    list_noun: str = ""
    """What such a list is of, as messages say it: "tables"."""
    tuple_noun: str = "values"
    """What a list of a fixed length is of."""
    number_max: float = math.inf
    """Largest magnitude of a number."""
    signed_zeros: bool = True
    """Whether -0.0 is written where 0.0 is the default."""

    def decode(self, kind: Any, value: Any, where: str) -> Any:
        """Translate a parsed value into what a type hint asks for.

        Args:
            kind: A dataclass, float, int, bool, str, Literal, tuple, dict or union hint of the records. Of a union, text is
                taken as text where it may be, all else as the first that is not None. Pairs of a name and a value are a table.
            value: What the parser gave.
            where: Dotted name for messages.

        Raises:
            AssetError: Wrong type or length, unknown or missing key, a number that is not finite.
        """
        if kind is float:
            return self._number(value, where)
        if kind in _PLAIN:
            return _PLAIN[kind](value, where)
        origin, arguments = get_origin(kind), get_args(kind)
        if isinstance(kind, type) and is_dataclass(kind):
            return self.record(kind, value, where)
        if origin is Literal:
            return _choice(arguments, value, where)
        if origin in (Union, types.UnionType):
            return self.decode(_member(arguments, value), value, where)
        if origin is dict:
            return dict(self._named(arguments[1], value, where))
        if origin is tuple:
            return self._tuple(arguments, value, where)
        raise TypeError(f"no translation for {kind!r} at {where}")

    def record(self, kind: type, value: Any, where: str) -> Any:
        """Return a dataclass from a table; raises as `decode`.

        Args:
            kind: A dataclass.
            value: What the parser gave; a table is expected.
            where: Dotted name for messages; where it ends in ": ", names of fields follow without a dot.
        """
        given = self.table(value, where)
        known, label = _fields(kind), where.removesuffix(": ")
        for key in given:
            if key not in known:
                raise unknown_key(key, known, label)
        missing = [name for name, item in known.items() if name not in given and default_of(item) is MISSING]
        if missing:
            raise AssetError(f"{label} lacks {', '.join(repr(name) for name in missing)}.")
        kinds, prefix = hints(kind), where if where.endswith(": ") else f"{where}."
        return kind(**{key: self.decode(kinds[key], item, prefix + key) for key, item in given.items()})

    def encode(self, value: Any) -> Any:
        """Return a record as plain tables, without fields that hold their default."""
        if is_dataclass(value) and not isinstance(value, type):
            shown = ((name, getattr(value, name), default_of(item)) for name, item in _fields(type(value)).items())
            return {name: self.encode(held) for name, held, default in shown if not self._equal(held, default)}
        if isinstance(value, tuple):
            # Pairs of a name and a value are how frozen records hold a table.
            if value and all(isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str) for item in value):
                return dict(value)
            return [self.encode(item) for item in value]
        if isinstance(value, dict):
            return {key: self.encode(item) for key, item in value.items()}
        return value

    def _equal(self, held: Any, default: Any) -> bool:
        # By their text as well: -0.0 equals 0.0, and both must come back as they were.
        return bool(held == default) and not (self.signed_zeros and repr(held) != repr(default))

    def table(self, value: Any, where: str) -> dict[str, Any]:
        """Return a table of bounded size; raises AssetError."""
        if not isinstance(value, dict) or len(value) > self.entries_max:
            raise wrong(where, f"a table of at most {self.entries_max} entries", value)
        return value

    def rows(self, value: Any, where: str) -> list[Any]:
        """Return a list of bounded length; raises AssetError."""
        if not isinstance(value, list) or len(value) > self.list_max:
            raise wrong(where, f"a list of at most {self.list_max} {self.list_noun}".rstrip(), value)
        return value

    def _named(self, kind: Any, value: Any, where: str) -> list[tuple[str, Any]]:
        """Return names and values of a table whose keys are free."""
        return [(_text(k, where), self.decode(kind, v, f"{where}.{short(k)}")) for k, v in self.table(value, where).items()]

    def _tuple(self, kinds: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
        if len(kinds) == 2 and kinds[1] is Ellipsis:
            entry = get_args(kinds[0])
            if get_origin(kinds[0]) is tuple and entry[0] is str:
                return tuple(self._named(entry[1], value, where))
            return tuple(self.decode(kinds[0], item, f"{where}[{k}]") for k, item in enumerate(self.rows(value, where)))
        if not isinstance(value, list) or len(value) != len(kinds):
            raise wrong(where, f"a list of {len(kinds)} {self.tuple_noun}", value)
        return tuple(self.decode(kind, item, f"{where}[{k}]") for k, (kind, item) in enumerate(zip(kinds, value, strict=True)))

    def _number(self, value: Any, where: str) -> float:
        # TOML's true is an int to Python.
        known = isinstance(value, int | float) and not isinstance(value, bool)
        if not known or (isinstance(value, int) and _EXACT_MAX < abs(value) <= self.number_max):
            raise wrong(where, "a number", value)
        if not abs(value) <= self.number_max or not math.isfinite(value):
            limit = f" up to {self.number_max:g}" if math.isfinite(self.number_max) else ""
            raise wrong(where, f"a finite number{limit}", value)
        return float(value)


def _member(kinds: tuple[Any, ...], value: Any) -> Any:
    """Return the member of a union that a value is read as."""
    if str in kinds and isinstance(value, str):
        return str
    return next((kind for kind in kinds if kind not in (type(None), str)), str)


def _integer(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _WHOLE_MAX:
        raise wrong(where, "a whole number", value)
    return value


def _flag(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise wrong(where, "true or false", value)
    return value


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or len(value) > TEXT_MAX:
        raise wrong(where, f"text of at most {TEXT_MAX} characters", value)
    return value


def _choice(choices: tuple[Any, ...], value: Any, where: str) -> Any:
    # By type too: TOML's 1.0 and true would otherwise pass for the choice 1.
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        raise wrong(where, "one of " + ", ".join(repr(choice) for choice in choices), value)
    return value


_WHOLE_MAX = 10**15
"""Largest magnitude of a whole number; NumPy's int64 and a float64 hold it and its neighbours."""
_PLAIN: dict[Any, Any] = {int: _integer, bool: _flag, str: _text}

# ---- Values as TOML text ----------------------------------------------------------------------------------------------------

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_key(key: str) -> str:
    """Return a key as TOML has it, quoted where it must be."""
    return key if _BARE.fullmatch(key) else toml_string(key)


def toml_string(value: str) -> str:
    """Return a basic string: JSON's escapes are TOML's, but for DEL, which TOML wants escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_value(value: Any) -> str:
    """Return a string, number, truth value, list or inline table on one line; numbers come back bit for bit."""
    if isinstance(value, str):
        return toml_string(value)
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml_value(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{toml_key(k)} = {toml_value(v)}" for k, v in value.items()) + " }" if value else "{}"
    # A NumPy float is a float whose repr no TOML reader knows.
    return repr(int(value)) if isinstance(value, int | np.integer) else repr(float(value))
