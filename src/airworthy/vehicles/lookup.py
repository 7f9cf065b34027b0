"""The catalogue: one data file per vehicle beside this module, read when its name is asked for."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from airworthy.core.errors import AirworthyError, AssetError, unknown_name
from airworthy.core.files import read_toml
from airworthy.core.schema import shown
from airworthy.vehicles.files import BYTES_MAX, read_vehicle, refuse_place, vehicle_from_table
from airworthy.vehicles.record import Vehicle

if TYPE_CHECKING:
    from airworthy.vehicles.urdf_tree import UrdfLink, UrdfTree

__all__ = ["CATALOGUE", "articulated_names", "import_urdf", "named_vehicle", "vehicle", "vehicle_given", "vehicle_names"]

# ---- A vehicle from a URDF and a TOML that says which links are rotors ------------------------------------------------------

_FROM_URDF = ("mass", "inertia", "center_of_mass", "links")


def import_urdf(path: str | Path, rotors: str | Path, joints: str | None = None) -> Vehicle:
    """Build a vehicle from a URDF.

    Links, rotor poses and collision shapes come from the URDF; its root link is the body frame, and what is fixed to a link
    becomes part of it. Everything else comes from the rotors TOML: a vehicle file without mass, inertia, center_of_mass and
    links, in which each of `rotors` names a `link` instead of position and axis. The thrust axis is that link's z axis. `body`
    in the TOML overrides the URDF's collision shapes, and `[joints.NAME]` says what a URDF cannot: law, stiffness, armature;
    `joints.NAME = "frozen"` holds that joint, such as a propeller's own.

    Args:
        path: The URDF.
        rotors: The TOML.
        joints: "free": moving joints move. "frozen": all are held at zero, which makes a rigid vehicle (how many were held is
            noted in `extra`). None: as the TOML's `joints = "frozen"` says, else free.

    Raises:
        AssetError: Either file is broken or does not fit the other; one sentence.
        AirworthyError: `joints` is neither.
    """
    from airworthy.vehicles.urdf_tree import read_urdf

    if joints not in (None, "free", "frozen"):
        raise AirworthyError(f"joints is {shown(joints)}; expected 'free' or 'frozen'.")
    tree = read_urdf(path)
    where = Path(rotors).name
    table = copy.deepcopy(read_toml(rotors, BYTES_MAX))
    for key in _FROM_URDF:
        if key in table:
            raise AssetError(f"{where}: {key} comes from the URDF and must not stand here.")
    settings = table.pop("joints", None)
    asked = joints or (settings if isinstance(settings, str) else "free")
    if asked not in ("free", "frozen"):
        raise AssetError(f'{where}: joints is {shown(settings)}; expected "frozen", "free" or tables [joints.NAME].')
    moving = len(tree.movable_joints)
    if asked == "free":
        from airworthy.vehicles.urdf_links import hold_joints

        tree, settings = hold_joints(tree, settings, where)
    if isinstance(settings, dict) and settings and not tree.movable_joints:
        raise AssetError(f"{where}: joints.{next(iter(settings))[:60]} fits no moving joint; {Path(path).name} has none left.")
    rows = table.get("rotors")
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise AssetError(f"{where}: rotors must be a list of tables, each with the name of its 'link'.")
    links = [_rotor_link(tree, row, f"{where}: rotors[{index}]", Path(path).name) for index, row in enumerate(rows)]
    table.setdefault("body", _body(tree, links))
    if asked == "free" and tree.movable_joints:
        from airworthy.vehicles.urdf_links import link_tables, refuse_propeller_joint

        settings = settings if isinstance(settings, dict) else None
        frames = link_tables(tree, settings, where, Path(path).name)
        table["links"] = frames.tables
        _note_held(table, moving - len(tree.movable_joints))
        for row, link in zip(rows, links, strict=True):
            refuse_propeller_joint(frames, link.name, settings, where, Path(path).name)
            row["link"], position, rotation = frames.placed(link.name, np.zeros(3), np.eye(3))
            row["position"], row["axis"] = position.tolist(), rotation[:, 2].tolist()
        return vehicle_from_table(table, where)
    table.pop("fixed_base", None)  # a rigid vehicle has no joints to be watched on a stand
    for row, link in zip(rows, links, strict=True):
        row["position"], row["axis"] = _clean(link.position), _clean(link.rotation[:, 2])
    table.update(_inertial(tree))
    _note_held(table, moving)
    return vehicle_from_table(table, where)


def _note_held(table: dict[str, Any], count: int) -> None:
    if count and isinstance(table.setdefault("extra", {}), dict):
        table["extra"]["movable_joints_frozen"] = float(count)


def _rotor_link(tree: UrdfTree, row: dict[str, Any], where: str, urdf: str) -> UrdfLink:
    name = row.pop("link", None)
    for key in ("position", "axis"):
        if key in row:
            raise AssetError(f"{where}.{key} comes from the URDF's link and must not stand here.")
    if not isinstance(name, str) or name not in tree.links:
        raise AssetError(f"{where}.link is {str(name)[:60]!r}, which is no link of {urdf}.")
    return tree.links[name]


def _clean(values: np.ndarray) -> list[float]:
    """Twelve significant decimals, so that rotation round-off (1e-17) reads as zero."""
    return [0.0 if abs(v) < 1e-12 else float(f"{v:.12g}") for v in values.tolist()]


def _inertial(tree: UrdfTree) -> dict[str, Any]:
    inertia = tree.inertia()
    inertia[np.abs(inertia) < 1e-10 * np.abs(inertia).max()] = 0.0
    upper = [inertia[0, 0], inertia[1, 1], inertia[2, 2], inertia[0, 1], inertia[0, 2], inertia[1, 2]]
    mass, center = float(f"{tree.mass:.12g}"), _clean(tree.center_of_mass())
    return {"mass": mass, "inertia": [float(f"{v:.12g}") for v in upper], "center_of_mass": center}


def _body(tree: UrdfTree, rotors: list[UrdfLink]) -> dict[str, Any]:
    """Return the collision body: the URDF's own shape if it has one upright primitive, else the box around all of them.

    Without primitives: the sphere about the root that holds every rotor hub, at least 5 cm.
    """
    shapes = [shape for link in tree.links.values() for shape in link.shapes]
    if not shapes:
        radius = max(0.05, *(float(np.linalg.norm(link.position)) for link in rotors))
        return {"shape": "sphere", "size": [radius] * 3}
    if len(shapes) == 1 and (shapes[0].kind == "sphere" or np.allclose(shapes[0].rotation, np.eye(3), atol=1e-9)):
        shape = shapes[0]
        return {"shape": shape.kind, "size": list(shape.half), "center": _clean(shape.position)}
    reach = np.array([np.abs(shape.rotation) @ shape.half for shape in shapes])
    middle = np.array([shape.position for shape in shapes])
    low, high = (middle - reach).min(axis=0), (middle + reach).max(axis=0)
    return {"shape": "box", "size": _clean((high - low) / 2.0), "center": _clean((high + low) / 2.0)}


# -----------------------------------------------------------------------------------------------------------------------------

CATALOGUE = Path(__file__).parent / "catalogue"


def vehicle(name: str) -> Vehicle:
    """Return a catalogue vehicle by its name.

    Raises:
        UnknownNameError: No such vehicle; the message names the closest ones.
        AssetError: It is the file of a mesh, a cloud or a world.
    """
    if name not in _names() and name not in articulated_names():
        refuse_place(name)
        raise unknown_name(
            "vehicle",
            name,
            [*vehicle_names(), *articulated_names()],
            "Run 'airworthy vehicles' to list them; a file of your own ends in .toml (docs/howto/vehicles.md).",
        )
    found = _read(name)
    return replace(found, sources=dict(found.sources), extra=dict(found.extra))  # callers may edit their own dictionaries


@cache
def _names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in CATALOGUE.glob("*.toml")))


def named_vehicle(name: str, rotors: str | Path | None = None, joints: str | None = None) -> Vehicle:
    """Return a vehicle of the catalogue by its name, or of a file by its path: a vehicle TOML, or a URDF.

    Args:
        name: A catalogue name, or a path (what ends in .toml or .urdf, or has a folder).
        rotors: For a URDF: the TOML that says which links are rotors, see `import_urdf`.
        joints: For a URDF: "free" or "frozen", see `import_urdf`.

    Raises:
        AirworthyError: No such vehicle or file, a URDF without rotors, or a file that is not one.
    """
    if name.lower().endswith(".urdf"):
        if rotors is None:
            raise AirworthyError(
                f"{name!r} is a URDF, which names no rotors: give their TOML, --rotors FILE (docs/howto/vehicles.md)."
            )
        return import_urdf(name, rotors, joints)
    return read_vehicle(name) if name.endswith(".toml") or "/" in name else vehicle(name)


def vehicle_given(item: Any, where: str = "vehicle") -> Vehicle:
    """Return the vehicle that a caller from Python gave.

    Args:
        item: A record, a catalogue name or a vehicle file.
        where: Its name in messages.

    Raises:
        AirworthyError: It is something else, or no such vehicle.
    """
    if isinstance(item, Vehicle):
        return item
    if not isinstance(item, str | Path):
        raise AirworthyError(f"{where} is {shown(item)}; expected a Vehicle, a name of the catalogue or a vehicle file.")
    return named_vehicle(str(item))


def vehicle_names() -> list[str]:
    """Return every name of a rigid vehicle in the catalogue, sorted; see `articulated_names` for those with joints."""
    return list(_names())


@cache
def _jointed() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in (CATALOGUE / "articulated").glob("*.toml")))


def articulated_names() -> list[str]:
    """Return every name of a vehicle with joints in the catalogue, sorted."""
    return list(_jointed())


@cache
def _read(name: str) -> Vehicle:
    return read_vehicle(CATALOGUE / ("" if name in _names() else "articulated") / f"{name}.toml")
