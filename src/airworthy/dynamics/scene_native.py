"""Contact with scenes as native code in double precision: traced equations, impulses, sweeps and the passes of a step.

The readable twins are `airworthy.dynamics.scene_contact` (impulses) and, a room above, `simulation.obstacles` and
`simulation.rebound`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from airworthy.core.layout import Layout
from airworthy.core.tracing import Block, trace
from airworthy.core.vectors import rotate, rotate_inverse
from airworthy.dynamics import contact, scene_equations
from airworthy.dynamics import equations as eq
from airworthy.dynamics.body_spheres import SPHERES_MAX
from airworthy.dynamics.rigid import native_text

BODY_LAYOUT = Layout(
    {
        "mass": (),
        "mass_inverse": (),
        "inertia": (6,),
        "inertia_inverse": (6,),
        "gravity": (),
        "reach": (),  # farthest that the body extends from its centre of mass [m]
        "imu_rotation": (9,),
        "imu_position": (3,),
        "imu_limit": (),
        # What follows the native code writes into its copy: what an impact or a contact point has of its own.
        "restitution": (),
        "friction": (),
        "contact_radius": (),
    }
)
"""Numbers per body, in double precision."""

Lengths = dict[str, int | None]

_CONTEXT = "const double* body"


def scene_blocks() -> list[Block]:
    """The traced equations."""
    record = {"p": (BODY_LAYOUT, "BODY")}
    motion: Lengths = {"velocity": 3, "rate": 3}
    after: Lengths = {"next_velocity": 3, "next_rate": 3}
    at_point: Lengths = {"touches": None, "push": None, **motion, "up": 3, "point": 3}
    pose: Lengths = {"position": 3, "velocity": 3, "attitude": 4, "rate": 3}
    ends: Lengths = {f"next_{name}": length for name, length in pose.items()}
    arm: Lengths = {"up": 3, "arm": 3, "turn": 3, "give": None}
    before: Lengths = {"velocity_before": 3, "rate_before": 3, "dt": None}
    table: list[tuple[Callable[..., Any], Lengths, Lengths]] = [
        (contact.contact_push, at_point, {**after, "next_push": None}),
        (contact.contact_rebound, {"approach": None, **motion, **before}, {**after, "share": None}),
        (contact.contact_friction, at_point, {**after, "leaving": None}),
        (contact.contact_lift, {"lift": None, **motion}, after),
        (contact.bounce_speed, {"dt": None}, {"out": None}),
        (scene_equations.lever, {"attitude": 4, "normal": 3, "point": 3}, arm),
        (scene_equations.slip_square, {**motion, "up": 3, "point": 3}, {"out": None}),
        (scene_equations.drift, {**pose, "acceleration": 3, "torque": 3, "time": None}, ends),
        (scene_equations.held_torque, {"rate": 3, "next_rate": 3, "dt": None}, {"out": 3}),
    ]
    blocks = [trace(function, function.__name__, ins, outs, record, None, _CONTEXT) for function, ins, outs in table]
    felt: Lengths = {"specific": 3, "rate_dot": 3, "rotation": 9, "position": 3}
    still = {"rate": (0.0, 0.0, 0.0)}
    return [
        *blocks,
        trace(eq.normalize, "normalize", {"attitude": 4}, {"out": 4}),
        trace(rotate, "rotate", {"q": 4, "v": 3}, {"out": 3}),
        trace(rotate_inverse, "rotate_inverse", {"q": 4, "v": 3}, {"out": 3}),
        trace(eq.accelerometer, "accelerometer", felt, {"out": 3}, constants=still),
    ]


def scene_source(**numbers: float) -> str:
    """Native text of contact with scenes; `geometry.native_source("distance.h", "clearance.h", "sweep.h")` goes before it.

    Args:
        numbers: Constants of the texts by their names in lower case; see `simulation.contact_kernel`.
    """
    constants = {"SPHERES": SPHERES_MAX, **{name.upper(): value for name, value in numbers.items()}}
    text = "".join(native_text(name) for name in ("scene_impact.h", "scene_sweep.h", "scene_rebound.h"))
    text = text.replace("TRACED_BLOCKS", "".join(block.source for block in scene_blocks()))
    return "".join(f"#define {name} {value!r}\n" for name, value in constants.items()) + BODY_LAYOUT.c_enum("B") + "\n" + text
