"""A small URDF reader: links, joints, inertias and primitive collision shapes, in the neutral pose.

Trust nothing: bounded XML without entities (`urdf_xml`), no other files (meshes are ignored), finite numbers, one tree.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

import numpy as np

from airworthy.core.errors import AssetError
from airworthy.core.files import read_bytes

__all__ = ["BYTES_MAX", "BrokenXmlError", "Shape", "UrdfJoint", "UrdfLink", "UrdfTree", "numbers", "parse", "read_urdf"]

# -----------------------------------------------------------------------------------------------------------------------------
# XML of a URDF, read with every doorway shut: no document type, no entities, bounded size, depth and element count.

BYTES_MAX = 4 * 1024 * 1024
DEPTH_MAX = 32
ELEMENTS_MAX = 50_000
LENGTH_MAX = 1e6
"""No number of a drone's URDF is larger."""


class BrokenXmlError(Exception):
    """What is wrong, without the file's name; the reader of the file adds that."""


def parse(data: bytes) -> Element:
    """Return the outermost element; raises BrokenXmlError on anything but plain XML within the limits."""
    builder, depth, count = TreeBuilder(), 0, 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth, count
        depth, count = depth + 1, count + 1
        if depth > DEPTH_MAX or count > ELEMENTS_MAX:
            raise BrokenXmlError(f"nested deeper than {DEPTH_MAX} or more than {ELEMENTS_MAX} elements")
        builder.start(tag, attributes)

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(tag)

    def refuse(*_: object) -> NoReturn:
        raise BrokenXmlError("a document type or entities are not allowed in a URDF")

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = parser.ExternalEntityRefHandler = refuse
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, LookupError, ValueError) as error:  # the last two: unknown or unsuited encodings
        raise BrokenXmlError(f"not readable XML ({error})") from None
    return builder.close()


def numbers(element: Element | None, attribute: str, count: int, default: str | None = None) -> np.ndarray:
    """Return `count` finite numbers of an attribute, shape (count,); raises BrokenXmlError on anything else.

    Args:
        element: None: it is missing, and the default holds.
        attribute: Its name.
        count: How many numbers there must be.
        default: Text for an attribute that is missing; None: it must be there.
    """
    text = default if element is None else element.get(attribute, default)
    if text is None:
        raise BrokenXmlError(
            f"an element with {attribute!r} is missing" if element is None else f"<{element.tag[:40]}> lacks {attribute!r}"
        )
    parts = text.split()
    try:
        # Python reads 1_000 as a number; XML schema's double does not.
        values = [float(part) for part in parts if "_" not in part]
    except ValueError:
        values = []
    if len(values) != count or len(parts) != count or not all(math.isfinite(v) and abs(v) <= LENGTH_MAX for v in values):
        raise BrokenXmlError(
            f"{attribute}={text[:60]!r} must be {count} finite number{'s' if count > 1 else ''} up to {LENGTH_MAX:g}"
        )
    return np.array(values)


# -----------------------------------------------------------------------------------------------------------------------------

LINKS_MAX = 1_000

_MOVABLE = ("revolute", "continuous", "prismatic")


@dataclass(frozen=True)
class Shape:
    """A primitive collision shape in its link's frame."""

    kind: str
    """"sphere", "box" or "cylinder"."""
    half: tuple[float, float, float]
    """Half extents along its own axes [m]."""
    rotation: np.ndarray
    position: np.ndarray


@dataclass(frozen=True)
class UrdfLink:
    """A link posed in the root frame."""

    name: str
    rotation: np.ndarray
    """Link axes in the root frame, (3, 3)."""
    position: np.ndarray
    """Link origin in the root frame [m], (3,)."""
    mass: float
    """[kg]"""
    center: np.ndarray
    """Centre of mass in the root frame [m], (3,)."""
    inertia: np.ndarray
    """About its own centre of mass, root axes [kg m^2], (3, 3)."""
    shapes: tuple[Shape, ...]
    """Collision primitives, in the root frame."""


@dataclass(frozen=True)
class UrdfJoint:
    """What holds a link to another; where it is follows from the poses of both."""

    name: str
    kind: str
    """"fixed", "revolute", "continuous" or "prismatic"."""
    parent: str
    child: str
    axis: tuple[float, float, float]
    """In the child's frame, as the file has it."""
    limit: dict[str, float]
    """Of lower, upper [rad], effort [N m] and velocity [rad/s] those that are there."""
    damping: float
    """[N m s/rad]"""
    friction: float
    """[N m]"""
    mimics: bool
    """Whether it follows another joint."""


@dataclass(frozen=True)
class UrdfTree:
    """Every link in the root frame at the neutral joint positions, parents first."""

    name: str
    links: dict[str, UrdfLink]
    joints: dict[str, UrdfJoint]
    """By the name of the link that hangs on it."""
    movable_joints: tuple[str, ...]

    @property
    def mass(self) -> float:
        """Total mass [kg]."""
        return math.fsum(link.mass for link in self.links.values())

    def center_of_mass(self) -> np.ndarray:
        """Return the centre of mass in the root frame [m], (3,)."""
        total = self.mass
        # `sum` starts from an array: a tree of massless links must give zeros, not the number 0.
        moment = sum((link.mass * link.center for link in self.links.values()), np.zeros(3))
        return moment / total if total > 0.0 else moment

    def inertia(self) -> np.ndarray:
        """Return the inertia about the total centre of mass, root axes [kg m^2], (3, 3): parallel axes, J + m (d.d I - d
        d^T)."""
        center = self.center_of_mass()
        total = np.zeros((3, 3))
        for link in self.links.values():
            offset = link.center - center
            total += link.inertia + link.mass * (offset @ offset * np.eye(3) - np.outer(offset, offset))
        return total


def read_urdf(path: str | Path) -> UrdfTree:
    """Read a URDF file.

    Raises:
        AssetError: Not a URDF of one tree with finite numbers, or beyond the limits above; one sentence with the file's name.
    """
    name = Path(path).name
    try:
        return _tree(parse(read_bytes(path, BYTES_MAX)))
    except BrokenXmlError as error:
        raise AssetError(f"{name}: {error}.") from None


def _origin(parent: Element) -> tuple[np.ndarray, np.ndarray]:
    """Rotation (3, 3) and position [m] of an <origin>; identity where there is none."""
    origin = parent.find("origin")
    roll, pitch, yaw = numbers(origin, "rpy", 3, "0 0 0")
    # URDF's convention: fixed axes, roll about x first, then pitch about y, then yaw about z.
    cr, sr, cp, sp, cy, sy = math.cos(roll), math.sin(roll), math.cos(pitch), math.sin(pitch), math.cos(yaw), math.sin(yaw)
    rotation = np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )
    return rotation, numbers(origin, "xyz", 3, "0 0 0")


def _named(root: Element, tag: str) -> dict[str, Element]:
    found: dict[str, Element] = {}
    for element in root.findall(tag):
        name = element.get("name")
        if not name or name in found:
            raise BrokenXmlError(f"a <{tag}> has no name of its own ({str(name)[:60]!r})")
        found[name] = element
    return found


def _end(joint: Element, tag: str, links: dict[str, Element]) -> str:
    element = joint.find(tag)
    name = None if element is None else element.get("link")
    if name not in links:
        raise BrokenXmlError(
            f"joint {str(joint.get('name'))[:60]!r} has the {tag} link {str(name)[:60]!r}, which does not exist"
        )
    return str(name)


def _tree(root: Element) -> UrdfTree:
    if root.tag != "robot":
        raise BrokenXmlError(f"the outermost element is <{root.tag[:40]}>, but a URDF's is <robot>")
    if any("xacro" in element.tag for element in root):
        raise BrokenXmlError("it holds xacro macros, which nobody has expanded: write what `xacro FILE > robot.urdf` prints")
    links, joints = _named(root, "link"), _named(root, "joint")
    if not 1 <= len(links) <= LINKS_MAX:
        raise BrokenXmlError(f"it has {len(links)} links, but 1 to {LINKS_MAX} can be read")
    children: dict[str, list[tuple[str, Element]]] = {name: [] for name in links}
    orphans = set(links)
    for joint in joints.values():
        parent, child = _end(joint, "parent", links), _end(joint, "child", links)
        # Each link may be taken once: with one root left, what is not a tree can then only be a loop.
        if child not in orphans:
            raise BrokenXmlError(f"link {child[:60]!r} hangs on two joints, so this is no tree")
        orphans.remove(child)
        children[parent].append((child, joint))
    if len(orphans) != 1:
        raise BrokenXmlError(f"it has {len(orphans)} root links, but a tree has 1")
    posed = {link.name: link for link in _walk(orphans.pop(), links, children)}
    if len(posed) != len(links):
        raise BrokenXmlError(f"{len(links) - len(posed)} links hang in a loop that the root does not reach")
    movable = tuple(name for name, joint in joints.items() if joint.get("type") in _MOVABLE)
    found = [_joint(name, joint, links) for name, joint in joints.items()]
    return UrdfTree(root.get("name", ""), posed, {joint.child: joint for joint in found}, movable)


def _joint(name: str, element: Element, links: dict[str, Element]) -> UrdfJoint:
    limit, dynamics = element.find("limit"), element.find("dynamics")
    given = {} if limit is None else {key for key in ("lower", "upper", "effort", "velocity") if key in limit.attrib}
    x, y, z = numbers(element.find("axis"), "xyz", 3, "1 0 0").tolist()
    return UrdfJoint(
        name,
        str(element.get("type")),
        _end(element, "parent", links),
        _end(element, "child", links),
        (x, y, z),
        {key: float(numbers(limit, key, 1)[0]) for key in sorted(given)},
        float(numbers(dynamics, "damping", 1, "0")[0]),
        float(numbers(dynamics, "friction", 1, "0")[0]),
        element.find("mimic") is not None,
    )


def _walk(root: str, links: dict[str, Element], children: dict[str, list[tuple[str, Element]]]) -> Iterator[UrdfLink]:
    # A stack, not recursion: a hostile file's chain of a thousand links is as deep as Python allows.
    waiting = [(root, np.eye(3), np.zeros(3))]
    while waiting:
        name, rotation, position = waiting.pop()
        yield _link(name, links[name], rotation, position)
        # Last on the stack is read first: links come in the file's order, as joints of a command do.
        for child, joint in reversed(children[name]):
            if joint.get("type") not in ("fixed", *_MOVABLE):
                kind = f"is of type {joint.attrib['type'][:40]!r}" if "type" in joint.attrib else "has no type"
                raise BrokenXmlError(
                    f"joint {str(joint.get('name'))[:60]!r} {kind}, which cannot be flown: expected one of"
                    f" {', '.join(('fixed', *_MOVABLE))}; make it fixed to hold it"
                )
            turn, offset = _origin(joint)
            waiting.append((child, rotation @ turn, position + rotation @ offset))


def _link(name: str, element: Element, rotation: np.ndarray, position: np.ndarray) -> UrdfLink:
    mass, center, inertia = 0.0, np.zeros(3), np.zeros((3, 3))
    # A link without mass is legal, and usual for frames that only name a place.
    inertial = element.find("inertial")
    if inertial is not None:
        turn, center = _origin(inertial)
        mass = float(numbers(inertial.find("mass"), "value", 1)[0])
        if mass < 0.0:
            raise BrokenXmlError(f"link {name[:60]!r} has the mass {mass:g} kg")
        moments = inertial.find("inertia")
        xx, yy, zz, xy, xz, yz = (float(numbers(moments, key, 1, "0")[0]) for key in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz"))
        axes = rotation @ turn
        # The file's axes are those of <inertial>, not the link's; about the centre of mass, so nothing is shifted.
        inertia = axes @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ axes.T
    shapes = tuple(_shapes(element, rotation, position))
    return UrdfLink(name, rotation, position, mass, position + rotation @ center, inertia, shapes)


def _shapes(link: Element, rotation: np.ndarray, position: np.ndarray) -> Iterator[Shape]:
    for collision in link.findall("collision"):
        geometry = collision.find("geometry")
        turn, offset = _origin(collision)
        for element in () if geometry is None else geometry:
            half = _half_extents(element)
            if half is not None:
                yield Shape(element.tag, half, rotation @ turn, position + rotation @ offset)


def _half_extents(element: Element) -> tuple[float, float, float] | None:
    """Half extents of a primitive; None for meshes, which would be other files."""
    if element.tag == "sphere":
        radius = float(numbers(element, "radius", 1)[0])
        half = (radius, radius, radius)
    elif element.tag == "box":
        x, y, z = (numbers(element, "size", 3) / 2.0).tolist()
        half = (x, y, z)
    elif element.tag == "cylinder":
        radius = float(numbers(element, "radius", 1)[0])
        half = (radius, radius, float(numbers(element, "length", 1)[0]) / 2.0)
    else:
        return None
    if min(half) <= 0.0:
        raise BrokenXmlError(f"a collision <{element.tag}> has the half extents {half}, but they must be positive")
    return half
