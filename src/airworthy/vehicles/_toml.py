"""Vehicle tables as TOML text that people read: units in comments, numbers exact, small tables inline."""

from __future__ import annotations

import json
import re
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_UNITS = {
    "mass": "kg",
    "inertia": "kg m^2 about the centre of mass: xx, yy, zz, xy, xz, yz",
    "center_of_mass": "m",
    "gravity": "m/s^2",
    "position": "m",
    "thrust": "N: c0, c1, c2 of c0 + c1 w + c2 w|w|",
    "torque": "N m: c0, c1, c2",
    "response": "a [1/s], b [1/rad] of dw/dt = a (c - w) + b (c|c| - w|w|)",
    "radius": "m",
    "rotor.inertia": "kg m^2 about the axis",
    "speed_max": "rad/s, or N where motor_state is thrust",
    "spin": "+1: reaction torque along the axis",
    "linear": "N s/m",
    "quadratic_norm": "N s^2/m^2",
    "quadratic_axis": "N s^2/m^2",
    "rotor_speed": "N s^2/(rad m)",
    "angular_linear": "N m s/rad",
    "angular_norm": "N m s^2/rad^2",
    "angular_axis": "N m s^2/rad^2",
    "force": "N^2 s",
    "moment": "N^2 m^2 s",
    "force_max": "N",
    "torque_max": "N m",
    "size": "m, half extents",
    "center": "m",
}
_PLAIN = ("sources", "extra", "parameters")


def text_of(table: dict[str, Any]) -> str:
    """TOML text of a table of numbers, strings, lists, tables and lists of tables."""
    lines: list[str] = []
    _section(table, (), lines, set())
    return "\n".join(lines).strip() + "\n"


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _string(key)


def _string(value: str) -> str:
    """A basic string: JSON's escapes are TOML's, but for DEL, which TOML wants escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, list):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + " }"
    return repr(value)


def _comment(key: str, path: tuple[str, ...], explained: set[str]) -> str:
    """The unit, the first time that a key stands under this heading."""
    group = "rotor" if path[:1] == ("rotors",) else ".".join(path)
    name = f"{group}.{key}" if group else key
    unit = _UNITS.get(name) or _UNITS.get(key)
    if unit is None or name in explained or (path and path[-1] in _PLAIN):
        return ""
    explained.add(name)
    return f"  # {unit}"


def _section(table: dict[str, Any], path: tuple[str, ...], lines: list[str], explained: set[str]) -> None:
    nested: list[tuple[str, Any]] = []
    for key, value in table.items():
        is_rows = isinstance(value, list) and bool(value) and isinstance(value[0], dict)
        if is_rows or (isinstance(value, dict) and key != "response" and not (path and path[-1] == "sensors")):
            nested.append((key, value))
            continue
        lines.append(f"{_key(key)} = {_value(value)}{_comment(key, path, explained)}")
    for key, value in nested:
        name = ".".join(_key(part) for part in (*path, key))
        for row in value if isinstance(value, list) else [value]:
            lines += ["", f"[[{name}]]" if isinstance(value, list) else f"[{name}]"]
            _section(row, (*path, key), lines, explained)
