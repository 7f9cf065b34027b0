"""Scene tables as TOML text that people read: one line per instance, one section per material, numbers exact."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SECTIONS = ("shapes", "textures", "materials", "skeletons", "clouds")
"""Tables of tables, one section per entry."""
_TABLES = ("semantics", "facts", "sky")
"""One section each."""
_ROWS = ("instances", "splats", "models", "spawn", "gates", "beacons")
"""Lists of one line per entry."""


def text_of(table: dict[str, Any]) -> str:
    """TOML text of a scene's table."""
    later = (*_SECTIONS, *_TABLES, "lights", "actors")
    lines = [_entry(key, value) for key, value in table.items() if key not in later]
    for name in _TABLES:
        if table.get(name):
            lines += ["", f"[{name}]", *(_entry(key, value) for key, value in table[name].items())]
    for name in _SECTIONS:
        for key, value in table.get(name, {}).items():
            lines += ["", f"[{name}.{_key(key)}]", *(_entry(k, v) for k, v in value.items())]
    for name in ("lights", "actors"):
        for row in table.get(name, []):
            lines += ["", f"[[{name}]]", *(_entry(k, v) for k, v in row.items())]
    return "\n".join(lines).strip() + "\n"


def _entry(key: str, value: Any) -> str:
    many = isinstance(value, list) and bool(value) and isinstance(value[0], dict)
    if key in (*_ROWS, "parts", "path") and many:
        return f"{_key(key)} = [\n" + "".join(f"  {_value(item)},\n" for item in value) + "]"
    return f"{_key(key)} = {_value(value)}"


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _string(key)


def _string(value: str) -> str:
    """A basic string: JSON's escapes are TOML's, but for DEL, which TOML wants escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + " }" if value else "{}"
    return repr(int(value)) if isinstance(value, int | np.integer) else repr(float(value))
