"""Plain tables to scene records and back: one strict translation driven by the records' own type hints."""

from __future__ import annotations

import difflib
import math
import types
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from airworthy.core.errors import AssetError

TEXT_MAX = 4096
ENTRIES_MAX = 100_000
"""Of any list or table: a scene may hold that many instances."""

_NUMBER_MAX = 1e15


def decode(kind: Any, value: Any, where: str) -> Any:
    """Translate a parsed TOML value into what a type hint asks for.

    Args:
        kind: A dataclass, float, int, bool, str, Literal, tuple, dict or optional hint of the records.
        value: What the parser gave.
        where: Dotted name for messages.

    Raises:
        AssetError: Wrong type or length, unknown or missing key, a number that is not finite.
    """
    if kind in _PLAIN:
        return _PLAIN[kind](value, where)
    origin, arguments = get_origin(kind), get_args(kind)
    if isinstance(kind, type) and is_dataclass(kind):
        return record(kind, value, where)
    if origin is Literal:
        return _choice(arguments, value, where)
    if origin in (Union, types.UnionType):
        return decode(next(k for k in arguments if k is not type(None)), value, where)
    if origin is dict:
        return {_text(k, where): decode(arguments[1], v, f"{where}.{short(k)}") for k, v in table(value, where).items()}
    if origin is tuple:
        return _tuple(arguments, value, where)
    raise TypeError(f"no translation for {kind!r} at {where}")


def record(kind: type, value: Any, where: str) -> Any:
    """Return a dataclass from a table; raises as `decode`.

    Args:
        kind: A dataclass.
        value: What the parser gave; a table is expected.
        where: Dotted name for messages.
    """
    given = table(value, where)
    known = _fields(kind)
    for key in given:
        if key not in known:
            raise unknown_key(key, list(known), where)
    missing = [name for name, item in known.items() if name not in given and default_of(item) is MISSING]
    if missing:
        raise AssetError(f"{where} lacks {', '.join(repr(name) for name in missing)}.")
    kinds = hints(kind)
    return kind(**{key: decode(kinds[key], item, f"{where}.{key}") for key, item in given.items()})


def encode(value: Any) -> Any:
    """Return a record as plain tables, without fields that hold their default."""
    if is_dataclass(value) and not isinstance(value, type):
        shown = ((item.name, getattr(value, item.name), default_of(item)) for item in fields(value))
        # By their text as well: -0.0 equals 0.0, and both must come back as they were.
        return {name: encode(held) for name, held, default in shown if held != default or repr(held) != repr(default)}
    if isinstance(value, tuple):
        return [encode(item) for item in value]
    if isinstance(value, dict):
        return {key: encode(item) for key, item in value.items()}
    return value


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


def unknown_key(key: str, known: list[str], where: str) -> AssetError:
    """Return the error for a key that nothing reads; names the closest one that exists.

    Args:
        key: As the file has it.
        known: Keys that exist there.
        where: Begins the sentence.
    """
    close = difflib.get_close_matches(short(key), known, n=1, cutoff=0.5)
    hint = f"closest: {close[0]!r}" if close else f"known: {', '.join(sorted(known))}"
    return AssetError(f"{where} has the unknown key {short(key)!r} ({hint}).")


def short(value: Any) -> str:
    """Text of a value, cut so that a message stays one sentence."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def wrong(where: str, expected: str, value: Any) -> AssetError:
    """Return the error for a value of the wrong kind.

    Args:
        where: Dotted name, that begins the sentence.
        expected: What it must be, with its article.
        value: What it is.
    """
    shown = repr(value) if not isinstance(value, dict | list) else ""
    if not shown:
        shown = f"a {'table' if isinstance(value, dict) else 'list'} of {len(value)}"
    return AssetError(f"{where} must be {expected}, but is {short(shown)}.")


def table(value: Any, where: str) -> dict[str, Any]:
    """Return a table of bounded size; raises AssetError."""
    if not isinstance(value, dict) or len(value) > ENTRIES_MAX:
        raise wrong(where, f"a table of at most {ENTRIES_MAX} entries", value)
    return value


def rows(value: Any, where: str) -> list[Any]:
    """Return a list of bounded length; raises AssetError."""
    if not isinstance(value, list) or len(value) > ENTRIES_MAX:
        raise wrong(where, f"a list of at most {ENTRIES_MAX}", value)
    return value


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise wrong(where, "a number", value)
    if not abs(value) <= _NUMBER_MAX or not math.isfinite(value):
        raise wrong(where, f"a finite number up to {_NUMBER_MAX:g}", value)
    return float(value)


def _integer(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _NUMBER_MAX:
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
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        raise wrong(where, "one of " + ", ".join(repr(choice) for choice in choices), value)
    return value


def _tuple(kinds: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        return tuple(decode(kinds[0], item, f"{where}[{index}]") for index, item in enumerate(rows(value, where)))
    if not isinstance(value, list) or len(value) != len(kinds):
        raise wrong(where, f"a list of {len(kinds)} values", value)
    return tuple(decode(kind, item, f"{where}[{index}]") for index, (kind, item) in enumerate(zip(kinds, value, strict=True)))


_PLAIN: dict[Any, Any] = {float: _number, int: _integer, bool: _flag, str: _text}
