"""A URDF's moving joints as links of a vehicle record: what is fixed to a link becomes part of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AssetError
from airworthy.core.schema import shown
from airworthy.core.table_schema import unknown_key, wrong
from airworthy.vehicles.links import rotation_quaternion, six_inertia, snapped
from airworthy.vehicles.urdf_tree import UrdfJoint, UrdfLink, UrdfTree

__all__ = ["LinkFrames", "hold_joints", "link_tables", "refuse_propeller_joint"]

_WORDS = {
    "law": "law", "stiffness": "kp", "damping": "kd", "rest": "rest", "weight": "weight", "armature": "armature",
    "lower": "lower", "upper": "upper", "effort": "effort", "rate_max": "rate_max", "active": "active", "initial": "initial",
    "friction": "",
}  # fmt: skip
"""What `[joints.NAME]` may say, and the record's word for it; friction can only be left out."""
HELD = "frozen"
"""What `joints.NAME` says of a joint that is held at zero."""
_PARALLEL = 1.0 - 1e-6
"""Least cosine of two axes that are one."""
_NEAR = 1e-3
"""Farthest that a propeller's hub is from its own axis [m]."""


@dataclass(frozen=True)
class LinkFrames:
    """Links of the record, and where every link of the URDF went."""

    tables: list[dict[str, Any]]
    """As a vehicle file would say them."""
    carrier: dict[str, str]
    """Per URDF link the record's link that it belongs to."""
    tree: UrdfTree

    def placed(self, link: str, position: Array, rotation: Array) -> tuple[str, Array, Array]:
        """Return the record's link, and position and rotation in it, of something placed in a URDF link's frame.

        Args:
            link: Of the URDF.
            position: In its frame [m], (3,).
            rotation: To its frame, (3, 3).
        """
        own, group = self.tree.links[link], self.tree.links[self.carrier[link]]
        turn = snapped(group.rotation.T @ own.rotation)
        offset = group.rotation.T @ (own.position - group.position)
        return self.carrier[link], _clean(offset + turn @ position), snapped(turn @ rotation)


def hold_joints(tree: UrdfTree, settings: Any, where: str) -> tuple[UrdfTree, Any]:
    """Return a URDF with the joints fixed at zero that the settings say "frozen" of, and the settings of the others.

    Args:
        tree: The URDF.
        settings: As of `link_tables`.
        where: The rotors TOML in messages.

    Raises:
        AssetError: Such a word fits no joint that moves.
    """
    if not isinstance(settings, dict):
        return tree, settings
    movable = [joint for joint in tree.joints.values() if joint.kind != "fixed"]
    said: dict[str, Any] = {}
    for pattern, word in settings.items():
        met = [joint.name for joint in movable if fnmatchcase(joint.name, pattern)]
        if word == HELD and not met:
            raise _fits_none(where, pattern, [joint.name for joint in movable])
        said.update((name, word) for name in met if name != pattern)
    said.update((joint.name, settings[joint.name]) for joint in movable if joint.name in settings)
    held = {name for name, word in said.items() if word == HELD}
    joints = {link: replace(joint, kind="fixed") if joint.name in held else joint for link, joint in tree.joints.items()}
    moving = tuple(name for name in tree.movable_joints if name not in held)
    others = {pattern: word for pattern, word in settings.items() if word != HELD}
    return replace(tree, joints=joints, movable_joints=moving), others


def _fits_none(where: str, pattern: str, names: list[str]) -> AssetError:
    return AssetError(f"{where}: joints.{pattern[:60]} fits no moving joint; there are {', '.join(names) or 'none'}.")


def refuse_propeller_joint(frames: LinkFrames, link: str, settings: Any, where: str, urdf: str) -> None:
    """Refuse a rotor whose link spins on a joint of its own that nothing drives: its torque would turn the propeller alone.

    Args:
        frames: Of the URDF.
        link: That the rotor names.
        settings: As of `link_tables`.
        where: The rotors TOML in messages.
        urdf: The URDF in messages.

    Raises:
        AssetError: One sentence with the joint's name.
    """
    tree = frames.tree
    joint = tree.joints.get(frames.carrier[link])
    if joint is None or joint.kind != "continuous":
        return
    own, carrier = tree.links[link], tree.links[joint.child]
    axis = carrier.rotation @ np.asarray(joint.axis) / np.linalg.norm(joint.axis)
    chosen = _settings(settings, [joint.name for joint in tree.joints.values() if joint.kind != "fixed"], where)[joint.name]
    along = (
        abs(axis @ own.rotation[:, 2]) > _PARALLEL and np.linalg.norm(np.cross(axis, own.position - carrier.position)) < _NEAR
    )
    if along and not chosen.get("active") and not chosen.get("stiffness"):
        raise AssetError(
            f"{urdf}: joint {joint.name[:60]!r} is a propeller's own, so that the torque of the rotor on {link[:60]!r} would"
            f' reach nothing else: rotors here spin by themselves, so say joints.{joint.name[:60]} = "{HELD}" in {where}.'
        )


def link_tables(tree: UrdfTree, settings: Any, where: str, urdf: str) -> LinkFrames:
    """Return the links of a URDF with its joints free.

    Args:
        tree: The URDF.
        settings: The table `joints` of the rotors TOML: per joint name, or pattern with * and ?, what a URDF cannot say.
        where: The rotors TOML in messages.
        urdf: The URDF in messages.

    Raises:
        AssetError: A joint that cannot be simulated, or settings that fit none; one sentence with the joint's name.
    """
    carrier: dict[str, str] = {}
    for name in tree.links:
        joint = tree.joints.get(name)
        moves = joint is None or joint.kind != "fixed"
        carrier[name] = name if moves or joint is None else carrier[joint.parent]
    movable = [joint for name in tree.links if (joint := tree.joints.get(name)) is not None and joint.kind != "fixed"]
    chosen = _settings(settings, [joint.name for joint in movable], where)
    for joint in movable:
        _refuse(joint, chosen[joint.name], urdf, where)
    frames = LinkFrames([], carrier, tree)
    for name in tree.links:
        if carrier[name] == name:
            joint = tree.joints.get(name)
            parts = [tree.links[part] for part in tree.links if carrier[part] == name]
            table = _inertial(name, parts, frames)
            if joint is not None:
                above = tree.links[carrier[joint.parent]]
                table["parent"] = above.name
                table["joint"] = _joint(joint, above, tree.links[name], chosen[joint.name], f"{where}: joints.{joint.name}")
            frames.tables.append(table)
    return frames


def _refuse(joint: UrdfJoint, chosen: dict[str, Any], urdf: str, where: str) -> None:
    who = f"{urdf}: joint {joint.name[:60]!r}"
    mend = f'say joints.{joint.name[:60]} = "{HELD}" in {where} to hold it, or --joints frozen to hold all'
    if joint.kind == "prismatic":
        raise AssetError(f"{who} is prismatic, but only revolute and continuous joints can move here: {mend}.")
    if joint.mimics:
        raise AssetError(f"{who} mimics another, but every joint moves by its own here: {mend}.")
    friction = chosen.get("friction", joint.friction)
    if friction != 0:
        raise AssetError(
            f"{who} has the friction {shown(friction)}, but only damping is simulated: say friction = 0 of it in {where}, or"
            f" {mend}."
        )
    if joint.kind == "revolute" and not joint.limit.get("lower", 0.0) < joint.limit.get("upper", 0.0):
        raise AssetError(f"{who} is revolute, but its <limit> has no lower below an upper: state them, or make it continuous.")
    if not any(joint.axis):
        raise AssetError(f"{who} has the axis 0 0 0, which is no direction.")


def _settings(settings: Any, names: list[str], where: str) -> dict[str, dict[str, Any]]:
    """Return what is said of each joint: patterns in their order, then its own name."""
    if settings is None:
        settings = {}
    if not isinstance(settings, dict):
        raise AssetError(f'{where}: joints is {shown(settings)}; expected "frozen", "free" or tables [joints.NAME].')
    chosen: dict[str, dict[str, Any]] = {name: {} for name in names}
    for pattern, table in settings.items():
        if not isinstance(table, dict):
            raise wrong(f"{where}: joints.{pattern[:60]}", f'a table, or "{HELD}"', table)
        for key in table:
            if key not in _WORDS:
                raise unknown_key(key, _WORDS, f"{where}: joints.{pattern[:60]}")
        met = [name for name in names if fnmatchcase(name, pattern)]
        if not met:
            raise _fits_none(where, pattern, names)
        for name in met:
            if pattern != name:
                chosen[name].update(table)
    for name in names:
        chosen[name].update(settings.get(name, {}))
    return chosen


def _joint(joint: UrdfJoint, above: UrdfLink, link: UrdfLink, chosen: dict[str, Any], where: str) -> dict[str, Any]:
    """Return the table of a joint: its place from the poses of both links, its law from the file and from what is chosen."""
    axis = np.asarray(joint.axis) / np.linalg.norm(joint.axis)
    table: dict[str, Any] = {
        "position": _clean(above.rotation.T @ (link.position - above.position)).tolist(),
        "axis": snapped(axis).tolist(),
        "rotation": list(rotation_quaternion(snapped(above.rotation.T @ link.rotation))),
        "kd": joint.damping,
    }
    if joint.kind == "revolute":
        table |= {"lower": joint.limit.get("lower", 0.0), "upper": joint.limit.get("upper", 0.0)}
    for key, word in (("effort", "effort"), ("velocity", "rate_max")):
        # Zero is what drawing programs write where nobody knew.
        if joint.limit.get(key, 0.0) != 0.0:
            table[word] = joint.limit[key]
    for key, value in chosen.items():
        if key == "initial":
            if not isinstance(value, list) or len(value) != 2:
                raise wrong(f"{where}.initial", "a list of the lowest and the highest angle", value)
            table["initial_low"], table["initial_high"] = value
        elif key != "friction":
            table[_WORDS[key]] = value
    if "initial" not in chosen:
        low, high = table.get("lower"), table.get("upper")
        # Zero may lie beyond the stops; what starts there would be thrown out by them.
        if isinstance(low, float) and low > 0.0:
            table["initial_low"] = table["initial_high"] = low
        elif isinstance(high, float) and high < 0.0:
            table["initial_low"] = table["initial_high"] = high
    return table


def _inertial(name: str, parts: list[UrdfLink], frames: LinkFrames) -> dict[str, Any]:
    """Return name, mass, centre of mass, inertia and shapes of a link and all that is fixed to it, in its frame."""
    own = frames.tree.links[name]
    mass = sum(part.mass for part in parts)
    centers = [own.rotation.T @ (part.center - own.position) for part in parts]
    center = sum((part.mass * c for part, c in zip(parts, centers, strict=True)), np.zeros(3)) / (mass or 1.0)
    total = np.zeros((3, 3))
    for part, place in zip(parts, centers, strict=True):
        offset = place - center
        total += own.rotation.T @ part.inertia @ own.rotation
        total += part.mass * (offset @ offset * np.eye(3) - np.outer(offset, offset))
    total[np.abs(total) < 1e-9 * np.abs(total).max(initial=1e-300)] = 0.0
    shapes = [
        {
            "shape": shape.kind,
            "size": list(shape.half),
            "position": _clean(own.rotation.T @ (shape.position - own.position)).tolist(),
            "rotation": list(rotation_quaternion(snapped(own.rotation.T @ shape.rotation))),
        }
        for part in parts
        for shape in part.shapes
    ]
    table = {
        "name": name,
        "mass": float(f"{mass:.12g}"),
        "center_of_mass": _clean(center).tolist(),
        "inertia": [float(f"{v:.12g}") for v in six_inertia(total)],
    }
    return {**table, "shapes": shapes} if shapes else table


def _clean(values: Array) -> Array:
    """Ten decimals of a metre: angles of CAD files have eleven, so that what should be zero comes out as some 1e-12."""
    return np.round(np.asarray(values, float), 10) + 0.0
