"""Vehicle files: TOML with a version, strict keys and a source for each value. `docs/vehicles.md` walks through one."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import read_toml, write_text
from airworthy.vehicles import _schema, _toml
from airworthy.vehicles.check import check
from airworthy.vehicles.record import Rotor, Vehicle

__all__ = ["VERSION", "read_vehicle", "vehicle_from_table", "vehicle_text", "write_vehicle"]

VERSION = 1
"""Version of the file form; a reader of version n also reads n - 1."""
BYTES_MAX = 256 * 1024
"""A vehicle file is a few kilobytes; larger ones are refused before they are parsed."""

_HEADER = "# A vehicle. SI units, rotor speed in rad/s, body x forward, y left, z up.\n"


def read_vehicle(path: str | Path) -> Vehicle:
    """Read, translate and check a vehicle file.

    Raises:
        AssetError: One sentence: the file, the field, what arrived and what was expected.
    """
    return vehicle_from_table(read_toml(path, BYTES_MAX), Path(path).name)


def write_vehicle(vehicle: Vehicle, path: str | Path) -> None:
    """Check a vehicle and write it atomically; `read_vehicle` returns exactly the same values.

    Raises:
        AirworthyError: The vehicle is not physically possible, or the file cannot be written.
    """
    write_text(path, vehicle_text(check(vehicle)))


def vehicle_from_table(table: dict[str, Any], where: str) -> Vehicle:
    """A checked vehicle from a parsed vehicle file; `where` names the file in messages.

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
            raise _schema.unknown_key(key, known, f"{where}: rotor")
    rotors = body.get("rotors")
    if isinstance(rotors, list) and all(isinstance(rotor, dict) for rotor in rotors):
        body["rotors"] = [{**shared, **rotor} for rotor in rotors]
    vehicle = _schema.decode(Vehicle, body, f"{where}: ")
    try:
        return check(vehicle)
    except AirworthyError as error:
        raise AssetError(f"{where}: {error}") from None


def vehicle_text(vehicle: Vehicle) -> str:
    """The file's text: values at their defaults are left out, values that all rotors share stand once."""
    encoded = _schema.encode(vehicle)
    rotors = encoded.pop("rotors")
    tables = {name: encoded.pop(name) for name in ("sources", "extra") if name in encoded}
    shared = {k: v for k, v in rotors[0].items() if len(rotors) > 1 and all(r.get(k) == v for r in rotors)}
    table = {"version": VERSION, **encoded}
    if shared:
        table["rotor"] = shared
    table["rotors"] = [{k: v for k, v in rotor.items() if k not in shared} for rotor in rotors]
    return _HEADER + _toml.text_of({**table, **tables})
