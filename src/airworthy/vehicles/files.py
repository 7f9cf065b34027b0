"""Vehicle files: TOML with a version, strict keys and a source for each value. `docs/howto/vehicles.md` walks through one."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import read_toml, write_text
from airworthy.core.table_schema import TableSchema, default_of, toml_key, toml_value, unknown_key
from airworthy.vehicles.check import check, check_links
from airworthy.vehicles.links import derived_fields
from airworthy.vehicles.record import Link, Rotor, SensorMount, Vehicle

__all__ = ["VERSION", "read_vehicle", "vehicle_from_table", "vehicle_text", "write_vehicle"]

# ---- Vehicle tables as TOML text that people read: units in comments, numbers exact, small tables inline --------------------

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
    "command_delay": "s",
    "command_map": "rad/s, and rad/s per full command",
    "command_sag": "exponent, and V at which a command acts as it is",
    "rotor_range": "rad/s, or N where motor_state is thrust",
    "links.mass": "kg",
    "links.center_of_mass": "m in the link's frame",
    "links.inertia": "kg m^2 about the link's centre of mass: xx, yy, zz, xy, xz, yz",
    "links.drag": "N s/m along the link's axes",
    "links.joint.position": "m in the parent's frame",
    "links.joint.axis": "in the link's frame",
    "links.joint.rotation": "link to parent at zero: x, y, z, w",
    "links.joint.kp": "N m/rad; morphy: N m/rad^2",
    "links.joint.kd": "N m s/rad",
    "links.joint.rest": "rad",
    "links.joint.weight": "N m",
    "links.joint.armature": "kg m^2",
    "links.joint.lower": "rad",
    "links.joint.upper": "rad",
    "links.joint.effort": "N m",
    "links.joint.rate_max": "rad/s",
    "links.joint.initial_low": "rad",
    "links.joint.initial_high": "rad",
}
_PLAIN = ("sources", "extra", "parameters")


def text_of(table: dict[str, Any]) -> str:
    """Return TOML text of a table of numbers, strings, lists, tables and lists of tables."""
    lines: list[str] = []
    _section(table, (), lines, set())
    return "\n".join(lines).strip() + "\n"


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
        lines.append(f"{toml_key(key)} = {toml_value(value)}{_comment(key, path, explained)}")
    for key, value in nested:
        name = ".".join(toml_key(part) for part in (*path, key))
        for row in value if isinstance(value, list) else [value]:
            lines += ["", f"[[{name}]]" if isinstance(value, list) else f"[{name}]"]
            _section(row, (*path, key), lines, explained)


# ---- Which values of a vehicle carry no source ------------------------------------------------------------------------------


def missing_sources(vehicle: Vehicle) -> list[str]:
    """Return dotted names of the values that differ from their defaults and carry no source."""
    skipped = {"name", "sources", "extra", "uncertainty", "rotors", "sensors"} | (
        {*DERIVED, "fixed_base"} if vehicle.links else set()
    )
    names = [f.name for f in dataclasses.fields(vehicle) if f.name not in skipped and getattr(vehicle, f.name) != default_of(f)]
    for f in dataclasses.fields(vehicle.rotors[0]):
        if any(getattr(rotor, f.name) != default_of(f) for rotor in vehicle.rotors):
            names.append(f"rotors.{f.name}")
    names += [f"sensors.{sensor.name}" for sensor in vehicle.sensors]
    return [name for name in names if name not in vehicle.sources and name.split(".")[0] not in vehicle.sources]


# -----------------------------------------------------------------------------------------------------------------------------

DERIVED = ("mass", "center_of_mass", "inertia")
"""Of a vehicle with links they follow from these, and stand in no file."""
VERSION = 1
"""Version of the file form; a reader of version n also reads n - 1."""
# DOTALL: paths may hold line breaks; the file's ending is the last one.
_DEVICE_FILE = re.compile(r"(?P<file>.+\.toml)(?::(?P<name>[^:]*))?", re.DOTALL)
BYTES_MAX = 256 * 1024
"""A vehicle file is a few kilobytes; larger ones are refused before they are parsed."""

_SCHEMA = TableSchema(256, 64, "tables", "numbers", signed_zeros=False)
"""No vehicle has more, and numbers are bounded by `check` in its own words."""
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
    if suffix == ".xacro":
        raise AssetError(
            f"{str(name)!r} holds macros of xacro: give the URDF that `xacro {Path(name).name} > robot.urdf` writes."
        )
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
    table = read_toml(path, BYTES_MAX)
    if isinstance(table, dict) and "bounds" in table and not {"mass", "rotor", "rotors"} & set(table):
        raise AssetError(f"{str(path)!r} is the record of a scene, not of a vehicle: `airworthy scenes validate` reads it.")
    found = vehicle_from_table(table, Path(path).name)
    sensors = tuple(_with_device(item, Path(path)) for item in found.sensors)
    return found if sensors == found.sensors else dataclasses.replace(found, sensors=sensors)


def _with_device(mount: SensorMount, path: Path) -> SensorMount:
    """Return a mount with the table of a device that a file beside the vehicle's holds."""
    asked = _DEVICE_FILE.fullmatch(mount.device)
    if asked is None or mount.device_table:
        return mount
    who = f"{path.name}: the device of sensor {mount.name!r}"
    place = path.parent / asked["file"]
    if not place.is_file():
        raise AssetError(f"{who}, {mount.device!r}, is no file beside it: there is no {str(place)!r}.")
    tables = {name: entry for name, entry in read_toml(place, BYTES_MAX).items() if isinstance(entry, dict)}
    name = asked["name"] or (next(iter(tables)) if len(tables) == 1 else "")
    if name not in tables:
        known = ", ".join(tables) or "none"
        raise AssetError(f"{who} must be one of the tables of {str(place)!r} ({known}): write {asked['file']}:NAME.")
    try:
        text = "".join(f"{toml_key(key)} = {toml_value(value)}\n" for key, value in tables[name].items())
    except (TypeError, AirworthyError) as error:
        raise AssetError(f"{who}, {mount.device!r}, holds what no device has: {error}.") from None
    return dataclasses.replace(mount, device=f"{asked['file']}:{name}", device_table=text)


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
    if version is None:
        raise AssetError(f"{where} says no file version: begin it with the line version = {VERSION}.")
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
    if "links" in body:
        body.update(_of_links(body, where))
    vehicle = _SCHEMA.decode(Vehicle, body, f"{where}: ")
    try:
        return check(vehicle)
    except AirworthyError as error:
        raise AssetError(f"{where}: {error}") from None


def _of_links(body: dict[str, Any], where: str) -> dict[str, Any]:
    """Return what the links of a vehicle table weigh together, as the table would say it."""
    for key in DERIVED:
        if key in body:
            raise AssetError(f"{where}: {key} follows from the links and must not stand here.")
    links = _SCHEMA.decode(tuple[Link, ...], body["links"], f"{where}: links")
    if not links:
        raise AssetError(f"{where}: links is empty: leave it out of a rigid vehicle's file.")
    try:
        check_links(links)
    except AirworthyError as error:
        raise AssetError(f"{where}: {error}") from None
    return {key: list(value) if isinstance(value, tuple) else value for key, value in derived_fields(links).items()}


def vehicle_text(vehicle: Vehicle) -> str:
    """Return the file's text: values at their defaults are left out, values that all rotors share stand once."""
    encoded = _SCHEMA.encode(vehicle)
    if vehicle.links:
        encoded = {key: value for key, value in encoded.items() if key not in DERIVED}
    rotors = encoded.pop("rotors")
    tables = {name: encoded.pop(name) for name in ("sources", "extra", "uncertainty") if name in encoded}
    shared = {k: v for k, v in rotors[0].items() if len(rotors) > 1 and all(r.get(k) == v for r in rotors)}
    table = {"version": VERSION, **encoded}
    if shared:
        table["rotor"] = shared
    table["rotors"] = [{k: v for k, v in rotor.items() if k not in shared} for rotor in rotors]
    if "links" in table:  # behind the rotors: they are long
        table["links"] = table.pop("links")
    return _HEADER + text_of({**table, **tables})
