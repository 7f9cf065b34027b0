"""Vehicles with joints: where their links are, what they weigh together, and the same vehicle with its joints held.

Frames: a link's frame has its joint's axis through its origin; the root link's is the body frame. SI units.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.core.table_schema import number_array
from airworthy.vehicles.record import Drag, Link, Rotor, SensorMount, Vehicle

__all__ = ["articulated", "frozen", "link_poses", "neutral_inertial", "placed_links", "refuse_links"]

_SNAP = 1e-9
"""Entries of a rotation this near to 0, 1 or -1 are meant to be it: CAD files round right angles to nine digits."""


class LinkPose(NamedTuple):
    """A link in the root link's frame."""

    rotation: Array
    """Link to root, (3, 3)."""
    position: Array
    """Of the link's frame [m], (3,)."""


def rotation_matrix(quaternion: Sequence[float]) -> Array:
    """Return the matrix of a unit quaternion x, y, z, w, shape (3, 3), right angles exact."""
    x, y, z, w = np.asarray(quaternion, float) / np.linalg.norm(quaternion)
    matrix = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    return snapped(matrix)


def snapped(matrix: Array) -> Array:
    """Return direction cosines with those near 0, 1 or -1 made exactly so."""
    whole = np.round(matrix)
    return np.where(np.abs(matrix - whole) < _SNAP, whole, matrix) + 0.0


def rotation_quaternion(matrix: Array) -> tuple[float, float, float, float]:
    """Return the unit quaternion x, y, z, w, w >= 0, of a rotation matrix (3, 3)."""
    m = np.asarray(matrix, float)
    # Shepperd: the largest of the four is found first, so that nothing is divided by a small number.
    squares = np.array([m[0, 0], m[1, 1], m[2, 2], np.trace(m)])
    k = int(np.argmax(squares))
    q = np.zeros(4)
    if k == 3:
        q[3] = 1.0 + squares[3]
        q[:3] = m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]
    else:
        i, j, l = k, (k + 1) % 3, (k + 2) % 3  # noqa: E741
        q[i] = 1.0 + m[i, i] - m[j, j] - m[l, l]
        q[j], q[l], q[3] = m[j, i] + m[i, j], m[l, i] + m[i, l], m[l, j] - m[j, l]
    q /= np.linalg.norm(q) * (1.0 if q[3] >= 0.0 else -1.0)
    return tuple(float(v) + 0.0 for v in q)  # type: ignore[return-value]


def turn_about(axis: Sequence[float], angle: float) -> Array:
    """Return the rotation by an angle [rad] about a unit axis, (3, 3): Rodrigues' formula."""
    x, y, z = axis
    k = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.asarray(np.eye(3) + math.sin(angle) * k + (1.0 - math.cos(angle)) * (k @ k))


def full_inertia(inertia: Sequence[float]) -> Array:
    """Return the matrix (3, 3) of xx, yy, zz, xy, xz, yz."""
    xx, yy, zz, xy, xz, yz = inertia
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def six_inertia(matrix: Array) -> tuple[float, float, float, float, float, float]:
    """Return xx, yy, zz, xy, xz, yz of a symmetric matrix (3, 3)."""
    places = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
    return tuple(float(matrix[i, j]) for i, j in places)  # type: ignore[return-value]


def link_poses(links: Sequence[Link], angles: Sequence[float] | None = None) -> dict[str, LinkPose]:
    """Return the pose of every link in the root link's frame, by name.

    Args:
        links: Parents first.
        angles: Of the joints, in the order of their links [rad]; None: zero.
    """
    poses: dict[str, LinkPose] = {}
    for index, link in enumerate(links):
        if link.joint is None:
            poses[link.name] = LinkPose(np.eye(3), np.zeros(3))
            continue
        above = poses[link.parent]
        rotation = above.rotation @ rotation_matrix(link.joint.rotation)
        if angles is not None and angles[index - 1] != 0.0:
            rotation = rotation @ turn_about(link.joint.axis, float(angles[index - 1]))
        poses[link.name] = LinkPose(snapped(rotation), above.position + above.rotation @ np.asarray(link.joint.position))
    return poses


def placed_links(links: Sequence[Link], angles: Sequence[float] | Array) -> tuple[Array, Array]:
    """Return where every link's frame is, from the centre of mass of the whole in root axes [m], (links, 3), and how it is
    turned there, link to root (links, 4) x, y, z, w: what a record of flights, which is of that point, needs to show links.

    Args:
        links: Parents first.
        angles: Of the joints [rad], (joints,).
    """
    given = [float(angle) for angle in angles]
    poses, center = link_poses(links, given), neutral_inertial(links, given)[1]
    return (
        np.array([poses[link.name].position - center for link in links]),
        np.array([rotation_quaternion(poses[link.name].rotation) for link in links]),
    )


def neutral_inertial(links: Sequence[Link], angles: Sequence[float] | None = None) -> tuple[float, Array, Array]:
    """Return mass [kg], centre of mass in the root's frame (3,) [m] and inertia about it (3, 3) [kg m^2] of all links.

    Args:
        links: Parents first.
        angles: Of the joints [rad]; None: zero.
    """
    poses = link_poses(links, angles)
    mass = math.fsum(link.mass for link in links)
    centers = {link.name: poses[link.name].position + poses[link.name].rotation @ link.center_of_mass for link in links}
    moment = sum((link.mass * centers[link.name] for link in links), np.zeros(3))
    center = moment / mass if mass > 0.0 else moment
    total = np.zeros((3, 3))
    for link in links:
        turn, offset = poses[link.name].rotation, centers[link.name] - center
        total += turn @ full_inertia(link.inertia) @ turn.T
        total += link.mass * (offset @ offset * np.eye(3) - np.outer(offset, offset))
    return mass, center, total


def derived_fields(links: Sequence[Link]) -> dict[str, Any]:
    """Return mass, centre of mass and inertia of a record with these links, rounded to twelve digits."""
    mass, center, inertia = neutral_inertial(links)
    inertia = np.where(np.abs(inertia) < 1e-10 * np.abs(inertia).max(initial=1e-300), 0.0, inertia)
    return {
        "mass": _rounded(mass),
        "center_of_mass": tuple(_rounded(v) for v in center),
        "inertia": tuple(_rounded(v) for v in six_inertia(inertia)),
    }


def _rounded(value: float) -> float:
    return 0.0 if abs(value) < 1e-15 else float(f"{value:.12g}")


def articulated(name: str, links: Sequence[Link], rotors: Sequence[Rotor], **fields: Any) -> Vehicle:
    """Return a checked vehicle with joints; what it weighs follows from its links.

    Args:
        name: Of the vehicle.
        links: The root first, and every link behind the one that it hangs on.
        rotors: Each in the frame of its `link`.
        fields: Further fields of the record.

    Raises:
        AirworthyError: No such vehicle can exist, or it cannot be simulated; one sentence.
    """
    from airworthy.vehicles.check import check, check_links

    check_links(tuple(links))
    return check(Vehicle(name=name, rotors=tuple(rotors), links=tuple(links), **derived_fields(links), **fields))


def frozen(vehicle: Vehicle, angles: Sequence[float] | None = None) -> Vehicle:
    """Return the rigid vehicle that one with joints is while they are held; a rigid one as it is.

    Args:
        vehicle: Any.
        angles: At which joints are held, (joint_count,) [rad]; None: zero.

    Raises:
        AirworthyError: Another number of angles.
    """
    if not vehicle.links:
        return vehicle
    if angles is not None and len(angles) != vehicle.joint_count:
        raise AirworthyError(f"{len(angles)} angles were given for the {vehicle.joint_count} joints of {vehicle.name!r}.")
    if angles is not None and not np.isfinite(number_array(list(angles), 1, "angles")).all():
        raise AirworthyError(f"The angles {list(angles)} hold what is not finite; expected radians.")
    poses = link_poses(vehicle.links, angles)
    mass, center, inertia = neutral_inertial(vehicle.links, angles)
    root = vehicle.links[0].name

    def rotor(item: Rotor) -> Rotor:
        pose = poses[item.link or root]
        axis = snapped(pose.rotation @ item.axis)
        return replace(item, link="", position=_triple(pose.position + pose.rotation @ item.position), axis=_triple(axis))

    def sensor(item: SensorMount) -> SensorMount:
        pose = poses[item.link or root]
        turn = rotation_quaternion(pose.rotation @ rotation_matrix(item.orientation))
        return replace(item, link="", position=_triple(pose.position + pose.rotation @ item.position), orientation=turn)

    air = held_drag(vehicle.links, poses)
    return replace(
        vehicle,
        links=(),
        drag=vehicle.drag if air is None else air,
        fixed_base=False,
        mass=mass,
        center_of_mass=_triple(center),
        inertia=six_inertia(np.where(np.abs(inertia) < 1e-10 * np.abs(inertia).max(), 0.0, inertia)),
        rotors=tuple(map(rotor, vehicle.rotors)),
        sensors=tuple(map(sensor, vehicle.sensors)),
        sources={**vehicle.sources, **dict.fromkeys(("mass", "inertia", "center_of_mass"), "links, joints held")},
    )


def held_drag(links: Sequence[Link], poses: Mapping[str, LinkPose]) -> Drag | None:
    """Return the drag of links that are held: what they feel together along the body's axes, at the mean of their centres of
    mass weighted by it; None: they have none. How it turns a vehicle beyond that, and couples axes, is left out.

    Args:
        links: Parents first.
        poses: Of the links.
    """
    total, moment = np.zeros((3, 3)), np.zeros(3)
    for link in links:
        turn = poses[link.name].rotation
        own = turn @ np.diag(link.drag) @ turn.T
        total += own
        moment += np.trace(own) * (poses[link.name].position + turn @ link.center_of_mass)
    if not total.any():
        return None
    return Drag(linear=_triple(np.diag(total)), center=_triple(moment / np.trace(total)))


def _triple(values: Array) -> tuple[float, float, float]:
    x, y, z = (0.0 if abs(v) < 1e-12 else float(v) for v in values)
    return x, y, z


def refuse_links(vehicle: Vehicle, what: str) -> None:
    """Refuse a vehicle with joints where only rigid ones are understood.

    Args:
        vehicle: Any.
        what: Who asks, as the subject of the sentence: "The rigid dynamics".

    Raises:
        AirworthyError: It has joints.
    """
    if vehicle.links:
        raise AirworthyError(
            f"{what} knows rigid vehicles only, but {vehicle.name!r} has {vehicle.joint_count} joints: hold them with"
            ' airworthy.vehicles.frozen(vehicle), or say joints = "frozen" in the rotors TOML of its URDF.'
        )
