"""What is to be known of a vehicle's joints before it flies, for people: the tree, the fastest pole, the step."""

from __future__ import annotations

import math
from typing import Any

from airworthy.dynamics.articulated.joint_angles import start_angles
from airworthy.dynamics.articulated.spheres import widest_gap
from airworthy.dynamics.articulated.stiffness import EXPLICIT_MAX, advised_step, default_integrator, fastest_pole
from airworthy.dynamics.articulated.tree import tree_of
from airworthy.vehicles.links import frozen
from airworthy.vehicles.record import Joint, Link, Vehicle

__all__ = ["at_start", "joint_lines", "joint_notes", "joint_summary"]

_TURN = 4.0 * math.pi
"""Stops farther than this [rad] are more likely given in degrees."""
_GAP = 0.05
"""Between spheres of a link [m]: twigs and cables are thinner, trunks, posts and people are not."""


def at_start(vehicle: Vehicle) -> Vehicle:
    """Return a vehicle as it is while its joints are held at the angles that flights start from; a rigid one as it is.

    Args:
        vehicle: Any.

    Raises:
        AirworthyError: Its springs find no balance.
    """
    return frozen(vehicle, start_angles(vehicle)) if vehicle.links else vehicle


def joint_notes(vehicle: Vehicle) -> list[str]:
    """Return what a vehicle with joints may not be meant to be, a sentence each without its end.

    Args:
        vehicle: With joints.
    """
    notes = []
    bare = [link.name for link in vehicle.links if link.mass > 0.0 and not link.shapes]
    if len(bare) == len([link for link in vehicle.links if link.mass > 0.0]):
        notes.append("no link has shapes, so that it meets things with its body's sphere, on the root")
    elif bare:
        notes.append(f"{', '.join(bare)} have no shapes (sphere, box, cylinder; no meshes), so that they meet nothing")
    gaps = {link.name: max(map(widest_gap, link.shapes), default=0.0) for link in vehicle.links}
    wide = [name for name, gap in gaps.items() if gap > _GAP]
    if wide:
        notes.append(
            f"{', '.join(wide)} meet things with a sphere at each end and one in the middle: what is thinner than"
            f" {max(gaps.values()):.2g} m may pass between; give them more, shorter shapes"
        )
    joints = [(link.name, link.joint) for link in vehicle.links if link.joint is not None]
    free = [name for name, joint in joints if joint.law == "spring" and joint.kp == 0.0 and joint.kd == 0.0]
    if free:
        notes.append(f"nothing holds or damps the joints of {', '.join(free)}: give them stiffness (kp) or damping (kd)")
    far = [name for name, joint in joints if any(abs(end) > _TURN for end in (joint.lower, joint.upper) if end is not None)]
    if far:
        notes.append(f"the joints of {', '.join(far)} stop after more than two turns; angles are in radians")
    return notes


def joint_summary(vehicle: Vehicle) -> dict[str, Any]:
    """Return degrees of freedom, fastest pole [1/s], advised step [ms] and integrator, and the longest step of rk4 [ms].

    Args:
        vehicle: With joints.

    Raises:
        AirworthyError: Something of it is not simulated with joints.
    """
    tree = tree_of(vehicle)
    pole, step = fastest_pole(tree), advised_step(tree)
    return {
        "dof": vehicle.joint_count + (0 if vehicle.fixed_base else 6),
        "pole_per_s": pole,
        "step_ms": 1e3 * step,
        "integrator": default_integrator(tree, step),
        "rk4_up_to_ms": 1e3 * EXPLICIT_MAX / pole if pole > 0.0 else None,
        "tree": [link.name for link in vehicle.links],
    }


def joint_lines(vehicle: Vehicle) -> list[str]:
    """Return the tree, one line a link: its mass, its rotors, and its joint's law and stops.

    Args:
        vehicle: With joints.
    """
    depth: dict[str, int] = {}
    lines = []
    for number, link in enumerate(vehicle.links):
        depth[link.name] = depth[link.parent] + 1 if number else 0
        own = [str(k) for k, rotor in enumerate(vehicle.rotors) if (rotor.link or vehicle.links[0].name) == link.name]
        carried = f", rotor {', '.join(own)}" if own else ""
        weight = f"{1e3 * link.mass:g} g" if link.mass else "no mass"
        lines.append(f"{'  ' * depth[link.name]}{link.name}: {weight}{carried}{_joint(link)}")
    return lines


def _joint(link: Link) -> str:
    joint = link.joint
    if joint is None:
        return ""
    if joint.lower is None and joint.upper is None:
        stops = "no stops"
    else:
        ends = ["" if end is None else f"{math.degrees(end):.4g}" for end in (joint.lower, joint.upper)]
        stops = f"{ends[0]} to {ends[1]} degrees"
    return f"; joint {_law(joint)}, {stops}"


def _law(joint: Joint) -> str:
    if joint.law == "torque":
        return "driven by torques"
    if joint.law == "morphy":
        return f"compliant, {joint.kp:.3g} N m/rad^2 about {math.degrees(joint.rest):.3g} degrees"
    if joint.kp == 0.0:
        return f"servo of rate, {joint.kd:.3g} N m s/rad" if joint.kd else "free"
    return f"spring, {joint.kp:.3g} N m/rad{', driven' if joint.active else ''}"
