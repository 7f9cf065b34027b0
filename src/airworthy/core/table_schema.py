"""Plain tables of TOML and JSON to records and back: one strict translation, driven by the records' own type hints.

A room states with a `TableSchema` what its kind of file allows; sentences about what is wrong are the same everywhere. What a
field may hold besides its type stands beside it, as in a configuration: `Annotated[float, Bound(...)]`, `Length`.
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
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AssetError
from airworthy.core.schema import ANY, TEXT_MAX, Bound, Length, entries_noun, limits_of

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
    """Return the text of a value, cut so that a message stays one sentence."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= _SHORT else text[: _SHORT - 3] + "..."


def wrong(where: str, expected: str, value: Any) -> AssetError:
    """Return the error for a value of the wrong kind.

    Args:
        where: Dotted name, that begins the sentence.
        expected: What it must be, with its article.
        value: What it is.
    """
    return AssetError(f"{where} must be {expected}, but is {_seen(value)}.")


def _seen(value: Any) -> str:
    if isinstance(value, dict | list):
        return f"a {'table' if isinstance(value, dict) else 'list'} of {len(value)}"
    return short(repr(value))


def check_header(table: Any, where: str, what: str, head: tuple[str, str], version: int) -> None:
    """Refuse a file of another kind, or of another version of it.

    Args:
        table: What was parsed.
        where: Names the file in messages.
        what: It should be, with its article ("a contract of SV-Net").
        head: Key that says what kind of file it is, and the kind that is expected.
        version: That is read here.

    Raises:
        AssetError: It is not that kind, or not that version.
    """
    key, kind = head
    found = table.get(key) if isinstance(table, dict) else None
    if found != kind:
        raise AssetError(f"{where} is not {what}: its {key} must be {kind!r}, but is {_seen(found)}.")
    # True equals 1, and is no version.
    if table.get("version") != version or isinstance(table.get("version"), bool):
        raise wrong(f"{where}: version", f"{version}, the one that is read here", table.get("version"))


def check_same(given: Any, wanted: Any, where: str, exact: bool = True) -> None:
    """Refuse plain tables and lists that differ from those which they have to repeat; says where they differ first.

    Args:
        given: What was parsed.
        wanted: What it must be.
        where: Dotted name for messages.
        exact: Whether a table may have no other entries than the wanted ones.

    Raises:
        AssetError: They differ.
    """
    if isinstance(wanted, dict) and isinstance(given, dict):
        for key, value in wanted.items():
            if key not in given:
                raise AssetError(f"{where} lacks {key!r}.")
            check_same(given[key], value, f"{where}.{key}", exact)
        for key in given if exact else ():
            if key not in wanted:
                raise unknown_key(key, wanted, where)
    elif isinstance(wanted, list) and isinstance(given, list) and len(given) == len(wanted):
        for index, (a, b) in enumerate(zip(given, wanted, strict=True)):
            check_same(a, b, f"{where}[{index}]", exact)
    elif given != wanted:
        raise wrong(where, _seen(wanted), given)


def number_array(value: Any, depth: int, where: str) -> Array:
    """Return numbers nested as many lists deep, float64; for lists too long to be looked at one by one.

    Args:
        value: As it was parsed.
        depth: How many lists stand in one another.
        where: Begins messages.

    Raises:
        AssetError: The lists are ragged or of another depth, or hold what is no number.
    """
    try:
        array = np.array(value)
    except (TypeError, ValueError, OverflowError):
        array = np.array(None)
    # Text, booleans and integers too large for a float have other kinds.
    if array.ndim != depth or array.dtype.kind not in "if":
        raise wrong(where, f"a {depth}-dimensional list of numbers", value)
    return array.astype(np.float64)


# ---- Records and their fields -----------------------------------------------------------------------------------------------


def default_of(item: Field[Any]) -> Any:
    """Return a field's default, or MISSING where it has none."""
    return item.default_factory() if item.default_factory is not MISSING else item.default


@cache
def hints(kind: type) -> dict[str, Any]:
    """Return resolved type hints of a record."""
    return get_type_hints(kind, include_extras=True)


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
    text_max: int = TEXT_MAX
    """Letters of a text."""
    complete: bool = False
    """Whether a table must have all fields of its record, those with a default too."""

    def decode(self, kind: Any, value: Any, where: str, bound: Bound = ANY) -> Any:
        """Translate a parsed value into what a type hint asks for.

        Args:
            kind: A dataclass, float, int, bool, str, Literal, tuple, dict, union or Any hint of the records, perhaps
                `Annotated` with a `Bound` or a `Length`. Of a union, the member is taken that a value looks like. Pairs of a
                name and a value are a table.
            value: What the parser gave.
            where: Dotted name for messages.
            bound: Of numbers, where the hint states none.

        Raises:
            AssetError: Wrong type or length, unknown or missing key, a number that is not finite or out of its bound.
        """
        origin, arguments = get_origin(kind), get_args(kind)
        if origin is Annotated:
            inside, length = limits_of(arguments[1:])
            value = value if length is None else _counted(length, arguments[0], value, where)
            return self.decode(arguments[0], value, where, inside or bound)
        if kind is float:
            return self._number(value, where, bound)
        if kind is int:
            return _integer(value, where, bound)
        if kind is str:
            return self._text(value, where)
        if kind is bool:
            return _flag(value, where)
        if kind is Any:
            return value
        if isinstance(kind, type) and is_dataclass(kind):
            return self.record(kind, value, where)
        if origin is Literal:
            return _choice(arguments, value, where)
        if origin in (Union, types.UnionType):
            return self.decode(_member(arguments, value, where), value, where, bound)
        if origin is dict:
            return dict(self._named(arguments[1], value, where, bound))
        if origin is tuple:
            return self._tuple(arguments, value, where, bound)
        raise TypeError(f"no translation for {kind!r} at {where}")

    def entry(self, table: Any, name: str, kind: Any, where: str, default: Any = MISSING) -> Any:
        """Translate one entry of a table in which others may stand that are not read here.

        Args:
            table: What the parser gave.
            name: Of the entry; dots lead through tables.
            kind: As `decode`.
            where: As `record`.
            default: What it is where it is absent; without one it must be there.

        Raises:
            AssetError: As `decode`.
        """
        *heads, last = name.split(".")
        prefix = where if where.endswith(": ") else f"{where}."
        held = self.entry(table, ".".join(heads), dict[str, Any], where) if heads else table
        label = prefix + ".".join(heads) if heads else where.removesuffix(": ")
        if last in self.table(held, label):
            return self.decode(kind, held[last], prefix + name)
        if default is MISSING:
            raise AssetError(f"{label} lacks {last!r}.")
        return default

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
        missing = [n for n, item in known.items() if n not in given and (self.complete or default_of(item) is MISSING)]
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
        if not isinstance(value, dict):
            raise wrong(where, "a table", value)
        if len(value) > self.entries_max:
            raise wrong(where, f"a table of at most {self.entries_max} entries", value)
        return value

    def rows(self, value: Any, where: str) -> list[Any]:
        """Return a list of bounded length; raises AssetError."""
        if not isinstance(value, list):
            raise wrong(where, f"a list of {self.list_noun}" if self.list_noun else "a list", value)
        if len(value) > self.list_max:
            raise wrong(where, f"a list of at most {self.list_max} {self.list_noun}".rstrip(), value)
        return value

    def _named(self, kind: Any, value: Any, where: str, bound: Bound) -> list[tuple[str, Any]]:
        """Return names and values of a table whose keys are free."""
        given = self.table(value, where)
        return [(self._text(k, where), self.decode(kind, v, f"{where}.{short(k)}", bound)) for k, v in given.items()]

    def _tuple(self, kinds: tuple[Any, ...], value: Any, where: str, bound: Bound) -> tuple[Any, ...]:
        if len(kinds) == 2 and kinds[1] is Ellipsis:
            entry = get_args(kinds[0])
            if get_origin(kinds[0]) is tuple and entry[0] is str:
                return tuple(self._named(entry[1], value, where, bound))
            # JSON's null is a value only here: a field that has none is left out.
            free = type(None) in entry
            return tuple(
                None if free and item is None else self.decode(kinds[0], item, f"{where}[{k}]", bound)
                for k, item in enumerate(self.rows(value, where))
            )
        if not isinstance(value, list) or len(value) != len(kinds):
            raise wrong(where, f"a list of {len(kinds)} {self.tuple_noun}", value)
        return tuple(
            self.decode(kind, item, f"{where}[{k}]", bound) for k, (kind, item) in enumerate(zip(kinds, value, strict=True))
        )

    def _number(self, value: Any, where: str, bound: Bound) -> float:
        # TOML's true is an int to Python.
        known = isinstance(value, int | float) and not isinstance(value, bool)
        if not known or (isinstance(value, int) and _EXACT_MAX < abs(value) <= self.number_max):
            raise wrong(where, bound.of("a number"), value)
        if not abs(value) <= self.number_max or not math.isfinite(value):
            limit = f" up to {self.number_max:g}" if math.isfinite(self.number_max) else ""
            raise wrong(where, bound.of(f"a finite number{limit}"), value)
        if not bound.holds(value):
            raise wrong(where, bound.of("a number"), value)
        return float(value)

    def _text(self, value: Any, where: str) -> str:
        if not isinstance(value, str):
            raise wrong(where, "text", value)
        if len(value) > self.text_max:
            raise wrong(where, f"text of at most {self.text_max} characters", value)
        return value


def _member(kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    """Return the member of a union that a value looks like; raises AssetError where it looks like none of several."""
    named = [kind for kind in kinds if kind is not type(None)]
    looks = named if len(named) == 1 else [kind for kind in named if _looks_like(kind, value)]
    if not looks:
        described = list(dict.fromkeys(word for kind in named for word in _described(kind)))
        raise wrong(where, f"{', '.join(described[:-1])} or {described[-1]}", value)
    return looks[0]


def _looks_like(kind: Any, value: Any) -> bool:
    plain = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    origin = get_origin(plain)
    if isinstance(value, dict):
        return origin is dict or (isinstance(plain, type) and is_dataclass(plain))
    if isinstance(value, list):
        return origin is tuple
    if isinstance(value, str):
        return plain is str or (origin is Literal and value in get_args(plain))
    return plain is bool if isinstance(value, bool) else plain in (float, int) and isinstance(value, float | int)


def _described(kind: Any) -> list[str]:
    """Return what a member of a union is, in words: each choice alone."""
    plain = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    if get_origin(plain) is Literal:
        return [repr(choice) for choice in get_args(plain)]
    if get_origin(plain) is tuple:
        return ["a list"]
    return [{float: "a number", int: "a whole number", bool: "true or false", str: "text"}.get(plain, "a table")]


def _counted(length: Length, kind: Any, value: Any, where: str) -> Any:
    """Return a list or text of a length that it may have."""
    text = kind is str
    if not isinstance(value, str if text else list) or not length.holds(len(value)):
        what = f"text of {length.expected} characters" if text else f"a list of {length.expected} {_noun(get_args(kind)[0])}"
        raise wrong(where, what, value)
    return value


def _noun(kind: Any) -> str:
    """Return what the entries of a list are called, by their type."""
    if get_origin(kind) in (Union, types.UnionType):
        return f"{_noun(get_args(kind)[0])} or null"
    return "tables" if isinstance(kind, type) and is_dataclass(kind) else entries_noun(kind)


def _integer(value: Any, where: str, bound: Bound) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _WHOLE_MAX or not bound.holds(value):
        raise wrong(where, bound.of("a whole number"), value)
    return value


def _flag(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise wrong(where, "true or false", value)
    return value


def _choice(choices: tuple[Any, ...], value: Any, where: str) -> Any:
    # By type too: TOML's 1.0 and true would otherwise pass for the choice 1.
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        raise wrong(where, ("one of " if len(choices) > 1 else "") + ", ".join(repr(choice) for choice in choices), value)
    return value


_WHOLE_MAX = 10**15
"""Largest magnitude of a whole number; NumPy's int64 and a float64 hold it and its neighbours."""

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
