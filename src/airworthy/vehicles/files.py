"""Vehicle files: TOML with a version, strict keys and a source for each value. `docs/howto/vehicles.md` walks through one."""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
import re
import types
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import read_toml, write_text
from airworthy.vehicles.check import check
from airworthy.vehicles.record import Rotor, Vehicle

__all__ = ["VERSION", "read_vehicle", "vehicle_from_table", "vehicle_text", "write_vehicle"]

# ---- Vehicle tables as TOML text that people read: units in comments, numbers exact, small tables inline --------------------

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
    "hub_drag": "N s^2/(rad m): across and along the axis",
    "flapping": "N s^2/rad",
    "translational_lift": "N s^2/m^2",
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
    "rate": "Hz: spans per second that the probability holds for",
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
    """Return a basic string: JSON's escapes are TOML's, but for DEL, which TOML wants escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, list):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + " }"
    # A NumPy float is a float whose repr no TOML reader knows.
    return repr(float(value)) if isinstance(value, float) else repr(int(value))


def _comment(key: str, path: tuple[str, ...], explained: set[str]) -> str:
    """Return the unit, the first time that a key stands under this heading."""
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
        # TOML wants plain keys before tables: what stands after a table's head belongs to that table.
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


# -----------------------------------------------------------------------------------------------------------------------------
# Plain tables to records and back: one generic, strict translation driven by the records' own type hints.

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
    """Return a record as plain tables, without fields that hold their default."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: encode(getattr(value, f.name)) for f in fields(value) if getattr(value, f.name) != default_of(f)}
    if isinstance(value, tuple):
        # Pairs of a name and a value are how frozen records hold a table.
        if value and all(isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str) for item in value):
            return dict(value)
        return [encode(item) for item in value]
    if isinstance(value, dict):
        return {key: encode(item) for key, item in value.items()}
    return value


def default_of(item: Field[Any]) -> Any:
    """Return a field's default, or MISSING where it has none."""
    return item.default_factory() if item.default_factory is not MISSING else item.default


@cache
def hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def unknown_key(key: str, known: list[str], where: str) -> AssetError:
    """Return the error for a key that nothing reads; names the closest one that exists.

    Args:
        key: As the file has it.
        known: Those that exist there.
        where: The place in the file, that begins the sentence.
    """
    # Half of the letters in common: a slip is found, and a key that is nothing like any lists them all.
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
    # Beyond 2^53 an integer would silently become another number.
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
    # By type too: TOML's 1.0 and true would otherwise pass for the choice 1.
    if isinstance(value, bool) or not any(type(value) is type(choice) and value == choice for choice in choices):
        raise _wrong(where, "one of " + ", ".join(repr(choice) for choice in choices), value)
    return value


def _union(kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    """Return optional records and "number or text"."""
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


# ---- Which values of a vehicle carry no source ------------------------------------------------------------------------------


def missing_sources(vehicle: Vehicle) -> list[str]:
    """Dotted names of the values that differ from their defaults and carry no source."""
    skipped = {"name", "sources", "extra", "rotors", "sensors"}
    names = [f.name for f in dataclasses.fields(vehicle) if f.name not in skipped and getattr(vehicle, f.name) != default_of(f)]
    for f in dataclasses.fields(vehicle.rotors[0]):
        if any(getattr(rotor, f.name) != default_of(f) for rotor in vehicle.rotors):
            names.append(f"rotors.{f.name}")
    names += [f"sensors.{sensor.name}" for sensor in vehicle.sensors]
    return [name for name in names if name not in vehicle.sources and name.split(".")[0] not in vehicle.sources]


# -----------------------------------------------------------------------------------------------------------------------------

VERSION = 1
"""Version of the file form; a reader of version n also reads n - 1."""
BYTES_MAX = 256 * 1024
"""A vehicle file is a few kilobytes; larger ones are refused before they are parsed."""

_HEADER = "# A vehicle. SI units, rotor speed in rad/s, body x forward, y left, z up.\n"


_PLACES = {
    "mesh": (".obj", ".glb", ".gltf", ".stl", ".dae"),
    "mesh or point cloud": (".ply",),
    "point cloud": (".pcd",),
    "cloud of splats": (".splat", ".spz", ".sog", ".ksplat"),
    "place": (".sdf", ".world", ".usd", ".usda", ".usdc", ".usdz"),
}
"""What files are that people give as vehicles, by their suffix; a URDF may be either."""


def refuse_place(name: str | Path) -> None:
    """Refuse the file of a mesh, a cloud or a world, before a parser of vehicles says what it makes of it.

    Raises:
        AssetError: One sentence.
    """
    suffix = Path(name).suffix.lower()
    for kind, suffixes in _PLACES.items():
        if suffix in suffixes:
            raise AssetError(
                f"{str(name)!r} is a {kind}, not a vehicle: expected a vehicle's name, TOML or URDF; what is flown in is the"
                " scene (--scene)."
            )


def read_vehicle(path: str | Path) -> Vehicle:
    """Read, translate and check a vehicle file.

    Raises:
        AssetError: One sentence: the file, the field, what arrived and what was expected.
    """
    refuse_place(path)
    return vehicle_from_table(read_toml(path, BYTES_MAX), Path(path).name)


def write_vehicle(vehicle: Vehicle, path: str | Path) -> None:
    """Check a vehicle and write it atomically; `read_vehicle` returns exactly the same values.

    Raises:
        AirworthyError: The vehicle is not physically possible, or the file cannot be written.
    """
    write_text(path, vehicle_text(check(vehicle)))


def vehicle_from_table(table: dict[str, Any], where: str) -> Vehicle:
    """Return a checked vehicle from a parsed vehicle file; `where` names the file in messages.

    The table `rotor` holds values that all rotors share; each of `rotors` may override them.

    Raises:
        AssetError: As `read_vehicle`.
    """
    body = dict(table)
    version = body.pop("version", None)
    if isinstance(version, bool) or version != VERSION:
        raise AssetError(f"{where} has the file version {str(version)[:40]!r}, but this Airworthy reads version {VERSION}.")
    shared = body.pop("rotor", {})
    known = [f.name for f in fields(Rotor)]
    if not isinstance(shared, dict):
        raise AssetError(f"{where}: rotor must be a table of the values that all rotors share.")
    for key in shared:
        if key not in known:
            raise unknown_key(key, known, f"{where}: rotor")
    rotors = body.get("rotors")
    if isinstance(rotors, list) and all(isinstance(rotor, dict) for rotor in rotors):
        body["rotors"] = [{**shared, **rotor} for rotor in rotors]
    vehicle = decode(Vehicle, body, f"{where}: ")
    try:
        return check(vehicle)
    except AirworthyError as error:
        raise AssetError(f"{where}: {error}") from None


def vehicle_text(vehicle: Vehicle) -> str:
    """Return the file's text: values at their defaults are left out, values that all rotors share stand once."""
    encoded = encode(vehicle)
    rotors = encoded.pop("rotors")
    tables = {name: encoded.pop(name) for name in ("sources", "extra") if name in encoded}
    shared = {k: v for k, v in rotors[0].items() if len(rotors) > 1 and all(r.get(k) == v for r in rotors)}
    table = {"version": VERSION, **encoded}
    if shared:
        table["rotor"] = shared
    table["rotors"] = [{k: v for k, v in rotor.items() if k not in shared} for rotor in rotors]
    return _HEADER + text_of({**table, **tables})
