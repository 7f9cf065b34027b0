"""From a vehicle record to its canonical tree: what is structure, what is a parameter row.

Canonical frames: the root's origin is its own centre of mass; every other body's frame is turned so that its joint's axis is
its z axis, with the joint at its origin. Numbers that are exactly zero, and direction cosines that are 0, 1 or -1, are
*structure*: constants of the kernel, whose terms vanish while tracing. All others are parameter rows, in a fixed order.
Vehicles share a kernel when their `TreeStructure` is equal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from airworthy.core.arrays import Array, Scalar, Vector
from airworthy.core.errors import AirworthyError
from airworthy.core.ops import packed, scalars_of
from airworthy.vehicles.links import full_inertia, rotation_matrix, six_inertia, snapped
from airworthy.vehicles.record import Drag, Joint, Rotor, Vehicle

__all__ = ["Hinge", "JointTree", "Propeller", "TreeBody", "TreeNumbers", "TreeStructure", "tree_of"]

_ROUND = 1e-12
"""Products of rotations leave this much where nothing should be [m, or as a share of the largest entry]."""
STOP_DEPTH = 1e-3
"""Angle by which the drive and the rotors together may press a joint into its stop [rad]."""
STOP_DAMPING = 1e-3
"""Damping of a stop over its stiffness [s]."""


class TreeBody(NamedTuple):
    """Numbers of a body in canonical frames."""

    rotation: tuple[Vector, Vector, Vector]
    """Body to parent at q = 0, rows."""
    offset: Vector
    """Joint in the parent's frame [m]."""
    mass: Scalar
    center: Vector
    """Centre of mass [m]."""
    inertia: Vector
    """About the centre of mass: xx, yy, zz, xy, xz, yz."""
    drag: Vector = (0.0,) * 6
    """Linear, at the centre of mass: the same six places [N s/m]."""


class Hinge(NamedTuple):
    """Numbers of a joint; those that its law does not use are zero."""

    kp: Scalar
    kd: Scalar
    rest: Scalar
    weight: Scalar
    armature: Scalar
    effort: Scalar
    lower: Scalar
    upper: Scalar
    stop: Scalar
    """Stiffness of both stops [N m/rad]."""
    stop_damping: Scalar


class Propeller(NamedTuple):
    """Numbers of a rotor, in its body's frame."""

    position: Vector
    axis: Vector
    thrust: Vector
    torque: Vector
    """Positive along the axis: the spin is in it."""
    inertia: Scalar
    """Times spin."""
    rise: Vector
    fall: Vector
    least: Scalar
    most: Scalar


class TreeNumbers(NamedTuple):
    """All numbers of a tree: floats, arrays, traced values."""

    gravity: Scalar
    bodies: tuple[TreeBody, ...]
    hinges: tuple[Hinge, ...]
    """One per body but the root."""
    propellers: tuple[Propeller, ...]


@dataclass(frozen=True)
class TreeStructure:
    """What a kernel is built for: the key under which vehicles share one."""

    parents: tuple[int, ...]
    """Of every body but the root, the number of the one it hangs on."""
    carriers: tuple[int, ...]
    """Per rotor its body."""
    laws: tuple[str, ...]
    """Per joint: "spring", "servo" (a spring of rate alone), "morphy", "torque"."""
    limited: tuple[bool, ...]
    """Per joint whether its drive's torque is limited."""
    stops: tuple[tuple[bool, bool], ...]
    """Per joint whether it has a lower and an upper stop."""
    turning: tuple[bool, ...]
    """Per joint whether its angle is wrapped: it has no stops, and no law that depends on the angle."""
    fixed_base: bool
    template: TreeNumbers
    """Structural numbers where they stand, None where a row is."""

    @property
    def joint_count(self) -> int:
        return len(self.parents)

    @property
    def rotor_count(self) -> int:
        return len(self.carriers)

    @cached_property
    def row_count(self) -> int:
        """Parameter rows."""
        return sum(x is None for x in scalars_of(self.template))

    def model(self, row: Callable[[int], Any]) -> TreeNumbers:
        """Return all numbers, rows from `row(index)`."""
        rows = iter(range(self.row_count))
        filled: TreeNumbers = packed(self.template, (row(next(rows)) if x is None else x for x in scalars_of(self.template)))
        return filled


@dataclass(frozen=True)
class JointTree:
    """A vehicle's canonical tree."""

    structure: TreeStructure
    values: tuple[float, ...]
    """Parameter rows."""
    row_names: tuple[str, ...]
    """Of the rows, e.g. "bodies[3].mass"."""
    names: tuple[str, ...]
    """Of the bodies: their links."""
    frames: tuple[Array, ...]
    """Per body, canonical axes in its link's frame (3, 3): a point r of the link is frames^T (r - origins)."""
    origins: tuple[Array, ...]
    """Per body, the canonical origin in its link's frame [m]."""

    @cached_property
    def model(self) -> TreeNumbers:
        """The numbers as floats."""
        return self.structure.model(lambda row: self.values[row])


def tree_of(vehicle: Vehicle) -> JointTree:
    """Return the canonical tree of a vehicle with joints.

    Raises:
        AirworthyError: It has none, or something of it is not simulated with joints; one sentence.
    """
    _refuse_unknown(vehicle)
    links = vehicle.links
    place = {link.name: index for index, link in enumerate(links)}
    parents = tuple(place[link.parent] for link in links[1:])
    frames = [np.eye(3), *(_axis_frame(_joint(link).axis) for link in links[1:])]
    origins = [np.asarray(links[0].center_of_mass, float), *(np.zeros(3) for _ in links[1:])]
    bodies = []
    for index, link in enumerate(links):
        turn = frames[index]
        rotation, offset = np.eye(3), np.zeros(3)
        if index:
            above, joint = parents[index - 1], _joint(link)
            rotation = snapped(frames[above].T @ rotation_matrix(joint.rotation) @ turn)
            offset = frames[above].T @ (np.asarray(joint.position) - origins[above])
        inertia = six_inertia(turn.T @ full_inertia(link.inertia) @ turn)
        center = turn.T @ (np.asarray(link.center_of_mass) - origins[index])
        drag = _inertia(six_inertia(turn.T @ np.diag(link.drag) @ turn))
        bodies.append(TreeBody(_rows(rotation), _length(offset), link.mass, _length(center), _inertia(inertia), drag))
    carriers = tuple(place[rotor.link or links[0].name] for rotor in vehicle.rotors)
    loads = _stop_loads(vehicle, parents, carriers)
    hinges = tuple(_hinge(_joint(link), load) for link, load in zip(links[1:], loads, strict=True))
    propellers = tuple(
        _propeller(rotor, frames[body], origins[body]) for rotor, body in zip(vehicle.rotors, carriers, strict=True)
    )
    joints = [_joint(link) for link in links[1:]]
    model = TreeNumbers(vehicle.gravity, tuple(bodies), hinges, propellers)
    template = _template(model)
    structure = TreeStructure(
        parents,
        carriers,
        tuple(_law(joint) for joint in joints),
        tuple(joint.active and joint.effort is not None for joint in joints),
        tuple((joint.lower is not None, joint.upper is not None) for joint in joints),
        tuple(joint.lower is None and joint.upper is None and _law(joint) in ("servo", "torque") for joint in joints),
        vehicle.fixed_base,
        template,
    )
    pairs = zip(scalars_of(model), scalars_of(template), _names_of(model, ""), strict=True)
    kept = [(float(value), name) for value, mark, name in pairs if mark is None]
    names = tuple(link.name for link in links)
    return JointTree(structure, tuple(v for v, _ in kept), tuple(n for _, n in kept), names, tuple(frames), tuple(origins))


def _joint(link: Any) -> Joint:
    joint = link.joint
    assert joint is not None
    return joint


def _refuse_unknown(vehicle: Vehicle) -> None:
    """Refuse what would be left out silently."""
    if not vehicle.links:
        raise AirworthyError(f"{vehicle.name!r} has no joints: the rigid family flies it.")
    given = {
        "drag": vehicle.drag != Drag(),
        "drag or lift at its hubs": any(any(r.hub_drag) or r.flapping or r.translational_lift for r in vehicle.rotors),
    }
    for what, there in given.items():
        if there:
            more = ", or give it to its links" if what == "drag" else ""
            raise AirworthyError(
                f"{vehicle.name!r} has {what}, which is not simulated for vehicles with joints: leave it out{more}."
            )


def _law(joint: Joint) -> str:
    return "servo" if joint.law == "spring" and joint.kp == 0.0 else joint.law


def _axis_frame(axis: Sequence[float]) -> Array:
    """Return a rotation (3, 3) whose third column is the axis; a permutation where that is a coordinate axis."""
    z = snapped(np.asarray(axis, float) / np.linalg.norm(axis))
    # The coordinate axis that is most nearly across becomes the first column.
    across = np.eye(3)[int(np.argmin(np.abs(z)))]
    x = across - (across @ z) * z
    x = x / np.linalg.norm(x)
    return snapped(np.column_stack([x, np.cross(z, x), z]))


def _rows(matrix: Array) -> tuple[Vector, Vector, Vector]:
    a, b, c = (tuple(float(v) for v in row) for row in matrix)
    return a, b, c


def _length(vector: Array) -> Vector:
    return tuple(0.0 if abs(v) < _ROUND else float(v) for v in vector)


def _inertia(six: Sequence[float]) -> Vector:
    largest = max(map(abs, six))
    return tuple(0.0 if abs(v) <= _ROUND * largest else float(v) for v in six)


def _hinge(joint: Joint, load: float) -> Hinge:
    stop = 0.0 if joint.lower is None and joint.upper is None else max(load, 1e-3) / STOP_DEPTH
    return Hinge(
        joint.kp,
        joint.kd,
        joint.rest if joint.law != "torque" and _law(joint) != "servo" else 0.0,
        joint.weight if joint.law == "morphy" else 0.0,
        joint.armature,
        joint.effort if joint.active and joint.effort is not None else 0.0,
        joint.lower or 0.0,
        joint.upper or 0.0,
        stop,
        STOP_DAMPING * stop,
    )


def _propeller(rotor: Rotor, frame: Array, origin: Array) -> Propeller:
    axis = snapped(frame.T @ rotor.axis)
    return Propeller(
        _length(frame.T @ (np.asarray(rotor.position) - origin)),
        tuple(float(v) for v in axis),
        tuple(map(float, rotor.thrust)),
        tuple(rotor.spin * float(v) for v in rotor.torque),
        rotor.spin * rotor.inertia,
        tuple(map(float, rotor.response.rise)),
        tuple(map(float, rotor.response.fall)),
        rotor.speed_min,
        rotor.speed_max,
    )


def _stop_loads(vehicle: Vehicle, parents: tuple[int, ...], carriers: tuple[int, ...]) -> list[float]:
    """Return, per joint, what can press it into its stop [N m]: its drive, and all rotors beyond it at full speed."""
    from airworthy.vehicles.check import rotor_thrust, rotor_torque
    from airworthy.vehicles.links import link_poses

    poses = link_poses(vehicle.links)
    loads = []
    for index, link in enumerate(vehicle.links[1:], start=1):
        joint, pose = _joint(link), poses[link.name]
        load = joint.effort if joint.active and joint.effort is not None else 0.0
        for rotor, body in zip(vehicle.rotors, carriers, strict=True):
            above = body
            while above > index:
                above = parents[above - 1]
            if above == index:
                at = poses[vehicle.links[body].name]
                arm = at.position + at.rotation @ np.asarray(rotor.position) - pose.position
                load += rotor_thrust(rotor, rotor.speed_max) * float(np.linalg.norm(arm)) + rotor_torque(rotor, rotor.speed_max)
        loads.append(load)
    return loads


def _template(model: TreeNumbers) -> TreeNumbers:
    """Return the model with its structural numbers kept and None for rows."""

    def direction(x: float) -> float | None:
        return x if x in (0.0, 1.0, -1.0) else None

    def quantity(x: float) -> float | None:
        return 0.0 if x == 0.0 else None

    def walk(item: Any, rule: Callable[[float], float | None]) -> Any:
        if isinstance(item, TreeBody):
            kept = [walk(value, direction if name == "rotation" else quantity) for name, value in item._asdict().items()]
            return TreeBody(*kept)
        if isinstance(item, Propeller):
            kept = [walk(value, direction if name == "axis" else quantity) for name, value in item._asdict().items()]
            return Propeller(*kept)
        if isinstance(item, tuple):
            parts = [walk(part, rule) for part in item]
            return type(item)(*parts) if hasattr(item, "_fields") else tuple(parts)
        return rule(float(item))

    found: TreeNumbers = walk(model, quantity)
    return found


def _names_of(item: Any, where: str) -> list[str]:
    if hasattr(item, "_fields"):
        parts = item._asdict().items()
        return [n for key, part in parts for n in _names_of(part, f"{where}.{key}" if where else key)]
    if isinstance(item, tuple):
        return [n for index, part in enumerate(item) for n in _names_of(part, f"{where}[{index}]")]
    return [where]
