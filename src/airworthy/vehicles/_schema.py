"""Plain tables to records and back: one generic, strict translation driven by the records' own type hints."""

from __future__ import annotations

import difflib
import math
import types
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from airworthy.core.errors import AssetError

TEXT_MAX = 4096
LIST_MAX = 64
ENTRIES_MAX = 256


def decode(kind: Any, value: Any, where: str) -> Any:
    """Translate a parsed TOML value into what a type hint asks for.

    Args:
        kind: A dataclass, float, str, Literal, tuple or dict hint of the records.
        value: What the parser gave.
        where: Dotted name for messages.

    Raises:
        AssetError: Wrong type or length, unknown or missing key, a number that is not finite.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is float:
        return _number(value, where)
    if kind is str:
        return _text(value, where)
    if isinstance(kind, type) and is_dataclass(kind):
        return _record(kind, value, where)
    if origin is Literal:
        return _choice(arguments, value, where)
    if origin in (Union, types.UnionType):
        return _union(arguments, value, where)
    if origin is dict:
        return {_text(k, where): decode(arguments[1], v, f"{where}.{_short(k)}") for k, v in _table(value, where).items()}
    if origin is tuple:
        return _tuple(arguments, value, where)
    raise TypeError(f"no translation for {kind!r} at {where}")


def encode(value: Any) -> Any:
    """A record as plain tables, without fields that hold their default."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: encode(getattr(value, f.name)) for f in fields(value) if getattr(value, f.name) != default_of(f)}
    if isinstance(value, tuple):
        if value and all(isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str) for item in value):
            return dict(value)
        return [encode(item) for item in value]
    if isinstance(value, dict):
        return {key: encode(item) for key, item in value.items()}
    return value


def default_of(item: Field[Any]) -> Any:
    """A field's default, or MISSING where it has none."""
    return item.default_factory() if item.default_factory is not MISSING else item.default


@cache
def hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def unknown_key(key: str, known: list[str], where: str) -> AssetError:
    """The error for a key that nothing reads; names the closest one that exists."""
    close = difflib.get_close_matches(_short(key), known, n=1, cutoff=0.5)
    hint = f"closest: {close[0]!r}" if close else f"known: {', '.join(sorted(known))}"
    return AssetError(f"{where} has the unknown key {_short(key)!r} ({hint}).")


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _wrong(where: str, expected: str, value: Any) -> AssetError:
    shown = repr(value)
    if isinstance(value, dict | list):
        shown = f"a {'table' if isinstance(value, dict) else 'list'} of {len(value)}"
    return AssetError(f"{where} must be {expected}, but is {_short(shown)}.")


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or (isinstance(value, int) and abs(value) > 2**53):
        raise _wrong(where, "a number", value)
    if not math.isfinite(value):
        raise _wrong(where, "a finite number", value)
    return float(value)


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or len(value) > TEXT_MAX:
        raise _wrong(where, f"text of at most {TEXT_MAX} characters", value)
    return value


def _table(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict) or len(value) > ENTRIES_MAX:
        raise _wrong(where, f"a table of at most {ENTRIES_MAX} entries", value)
    return value


def _choice(choices: tuple[Any, ...], value: Any, where: str) -> Any:
    if isinstance(value, bool) or not any(type(value) is type(choice) and value == choice for choice in choices):
        raise _wrong(where, "one of " + ", ".join(repr(choice) for choice in choices), value)
    return value


def _union(kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    """Optional records and "number or text"."""
    if str in kinds and isinstance(value, str):
        return _text(value, where)
    kind = next(k for k in kinds if k is not type(None) and k is not str)
    return decode(kind, value, where)


def _tuple(kinds: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        if get_origin(kinds[0]) is tuple:  # named numbers
            return tuple((_text(k, where), _number(v, f"{where}.{_short(k)}")) for k, v in _table(value, where).items())
        if not isinstance(value, list) or len(value) > LIST_MAX:
            raise _wrong(where, f"a list of at most {LIST_MAX} tables", value)
        return tuple(decode(kinds[0], item, f"{where}[{index}]") for index, item in enumerate(value))
    if not isinstance(value, list) or len(value) != len(kinds):
        raise _wrong(where, f"a list of {len(kinds)} numbers", value)
    return tuple(decode(kind, item, f"{where}[{index}]") for index, (kind, item) in enumerate(zip(kinds, value, strict=True)))


def _record(kind: type, value: Any, where: str) -> Any:
    table = _table(value, where)
    known = {f.name: f for f in fields(kind)}
    label = where.removesuffix(": ")
    for key in table:
        if key not in known:
            raise unknown_key(key, list(known), label)
    missing = [name for name, f in known.items() if name not in table and default_of(f) is MISSING]
    if missing:
        raise AssetError(f"{label} lacks {', '.join(repr(name) for name in missing)}.")
    prefix = where if where.endswith(": ") else f"{where}."
    return kind(**{key: decode(hints(kind)[key], item, prefix + key) for key, item in table.items()})
