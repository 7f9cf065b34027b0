"""A vehicle with joints as a model of MuJoCo: the same tree, written by itself from the record, to be compared with."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.vehicles.links import rotation_matrix, rotation_quaternion, snapped
from airworthy.vehicles.record import Joint, Link, Vehicle

__all__ = ["has_mujoco", "mujoco_model", "mujoco_text"]

LEAST = 1e-12
"""Mass and inertia that MuJoCo is given where ours are zero: it refuses bodies without."""


def has_mujoco() -> bool:
    """Tell whether the package is installed."""
    return find_spec("mujoco") is not None


def mujoco_model(vehicle: Vehicle, dt: float, integrator: str, passive: bool = True) -> Any:
    """Return the compiled model; see `mujoco_text`.

    Args:
        vehicle: With joints.
        dt: Step [s].
        integrator: MuJoCo's word.
        passive: Whether joints have their springs and dampers.
    """
    import mujoco

    return mujoco.MjModel.from_xml_string(mujoco_text(vehicle, dt, integrator, passive))


def mujoco_text(vehicle: Vehicle, dt: float, integrator: str, passive: bool = True) -> str:
    """Return the model's XML: a free root, hinges, a motor per rotor whose control is its thrust [N]; no contact, no limits.

    Args:
        vehicle: With joints; its root's centre of mass is its frame's origin, so that both state the same point.
        dt: Step [s].
        integrator: MuJoCo's word.
        passive: Whether joints have their springs and dampers.

    Raises:
        AirworthyError: A law that MuJoCo has not, thrust that is no state, or a root whose centre is elsewhere.
    """
    if any(vehicle.links[0].center_of_mass) or vehicle.motor_state != "thrust" or any(any(k.drag) for k in vehicle.links):
        raise AirworthyError(
            f"{vehicle.name!r} is not compared with MuJoCo: its root's centre of mass, its rotor states or its links' drag"
            " differ."
        )
    children: dict[str, list[Link]] = {link.name: [] for link in vehicle.links}
    for link in vehicle.links[1:]:
        children[link.parent].append(link)
    motors = [
        f'<motor site="rotor{k}" gear="{_text((*r.axis, *(r.spin * r.torque[1] * np.asarray(r.axis))))}"/>'
        for k, r in enumerate(vehicle.rotors)
    ]
    return (
        f'<mujoco><compiler angle="radian" boundmass="{LEAST}" boundinertia="{LEAST}"/>'
        f'<option timestep="{dt!r}" integrator="{integrator}" gravity="0 0 {-vehicle.gravity!r}">'
        '<flag contact="disable" constraint="disable"/></option>'
        f"<worldbody>{_body(vehicle, vehicle.links[0], children, passive)}</worldbody>"
        f"<actuator>{''.join(motors)}</actuator></mujoco>"
    )


def _body(vehicle: Vehicle, link: Link, children: dict[str, list[Link]], passive: bool) -> str:
    # Links without mass whose child turns about the same point become joints of that child: MuJoCo needs no mass for them then.
    hinges, turn, first = [], np.eye(3), link
    while _is_bare(vehicle, link, children):
        hinges.append((link, turn))
        link = children[link.name][0]
        turn = rotation_matrix(_joint(link).rotation).T @ turn
    if link.joint is None:
        place, hinge = "", "<freejoint/>"
    else:
        x, y, z, w = rotation_quaternion(rotation_matrix(_joint(first).rotation) @ turn.T)
        place = f' pos="{_text(_joint(first).position)}" quat="{_text((w, x, y, z))}"'
        # Axes in the frame of the body that they end in, all joints at zero.
        hinge = "".join(_hinge(above, turn @ back.T, passive) for above, back in [*hinges, (link, turn)])
    xx, yy, zz, xy, xz, yz = (max(v, LEAST) if k < 3 else v for k, v in enumerate(link.inertia))
    inertial = (
        f'<inertial pos="{_text(link.center_of_mass)}" mass="{max(link.mass, LEAST)!r}"'
        f' fullinertia="{_text((xx, yy, zz, xy, xz, yz))}"/>'
    )
    own = vehicle.links[0].name
    sites = "".join(
        f'<site name="rotor{k}" pos="{_text(r.position)}"/>'
        for k, r in enumerate(vehicle.rotors)
        if (r.link or own) == link.name
    )
    inner = "".join(_body(vehicle, child, children, passive) for child in children[link.name])
    return f"<body name={quoteattr(link.name)}{place}>{hinge}{inertial}{sites}{inner}</body>"


def _is_bare(vehicle: Vehicle, link: Link, children: dict[str, list[Link]]) -> bool:
    below = children[link.name]
    carries = any(rotor.link == link.name for rotor in vehicle.rotors)
    return (
        link.joint is not None and link.mass == 0.0 and not carries and len(below) == 1 and not any(_joint(below[0]).position)
    )


def _joint(link: Link) -> Joint:
    assert link.joint is not None
    return link.joint


def _hinge(link: Link, turn: Array, passive: bool) -> str:
    joint = _joint(link)
    if passive and (joint.law == "morphy" or joint.rest != 0.0):
        raise AirworthyError(f"MuJoCo has no law {joint.law!r} with rest {joint.rest:g}, as link {link.name!r} has.")
    spring = f' stiffness="{joint.kp!r}" damping="{joint.kd!r}"' if passive else ""
    return f'<joint type="hinge" axis="{_text(snapped(turn @ joint.axis))}" armature="{joint.armature!r}"{spring}/>'


def _text(values: Iterable[float]) -> str:
    return " ".join(repr(float(v)) for v in values)
