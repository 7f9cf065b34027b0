"""Collision bodies as contact with scene geometry needs them.

A sphere is itself. A box or cylinder is met exactly (`airworthy.geometry.sweep`), but for edges that are rounded by `MARGIN`;
what carries it on a surface are a few points of it: the corners of a box, points on the rims of a cylinder.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, Scalar, Vector
from airworthy.core.layout import Layout
from airworthy.core.tracing import TracedBlock, trace
from airworthy.core.vectors import add, cross, dot, rotate, rotate_inverse, scale, sub, symmetric_multiply
from airworthy.dynamics import contact
from airworthy.dynamics import equations as eq
from airworthy.dynamics.equations import normalize, quaternion_exponential
from airworthy.dynamics.rigid import native_text
from airworthy.vehicles.record import CollisionBody

# -----------------------------------------------------------------------------------------------------------------------------
# Equations of bodies that meet surfaces of any direction, as plain functions of scalars (see `airworthy.core.ops`).
#
# Together with those of `airworthy.dynamics.contact` they are all the arithmetic of contact with scenes: on NumPy arrays in
# `airworthy.dynamics.scene_contact`, as traced double precision code in `airworthy.dynamics.scene_native`.


def lever(attitude: Vector, normal: Vector, point: Vector, p: Any) -> tuple[Vector, Vector, Vector, Scalar]:
    """Return how a push at a contact point acts on a body.

    Args:
        attitude: Of the body.
        normal: Of the surface, towards the body, world.
        point: Centre of the sphere that touches, body, from the centre of mass [m].
        p: Parameters: mass_inverse, inertia_inverse, contact_radius.

    Returns:
        The normal in the body frame; the arm of the push: the point leaves at `normal . velocity + arm . body_rate`; the change
        of the rate per unit of impulse; the change of the point's own speed per unit of impulse, positive.
    """
    up = rotate_inverse(attitude, normal)
    arm = cross(sub(point, scale(up, p.contact_radius)), up)
    turn = symmetric_multiply(p.inertia_inverse, arm)
    return up, arm, turn, p.mass_inverse + dot(arm, turn)


def slip_square(velocity: Vector, body_rate: Vector, up: Vector, point: Vector, p: Any) -> Scalar:
    """Return the square of the speed at which a contact point moves along the surface [m^2/s^2].

    Args:
        velocity: Of the centre of mass, body [m/s].
        body_rate: Body rate [rad/s].
        up: Normal of the surface, body.
        point: As in `lever`.
        p: Parameters: contact_radius.
    """
    at_point = add(velocity, cross(body_rate, sub(point, scale(up, p.contact_radius))))
    slip = sub(at_point, scale(up, dot(up, at_point)))
    return dot(slip, slip)


def drift(
    position: Vector,
    velocity: Vector,
    attitude: Vector,
    body_rate: Vector,
    acceleration: Vector,
    torque: Vector,
    time: Scalar,
    p: Any,
) -> tuple[Vector, Vector, Vector, Vector]:
    """Return free motion over a part of a physics step: position, velocity, attitude and rate at its end.

    Args:
        position: World [m].
        velocity: World [m/s].
        attitude: Body to world.
        body_rate: Body [rad/s].
        acceleration: World [m/s^2], held.
        torque: Body [N m], held; the gyroscopic one is added.
        time: Length of the part [s].
        p: Parameters: inertia, inertia_inverse.
    """
    spin = symmetric_multiply(p.inertia_inverse, sub(torque, cross(body_rate, symmetric_multiply(p.inertia, body_rate))))
    next_rate, next_velocity = add(body_rate, scale(spin, time)), add(velocity, scale(acceleration, time))
    turned = quaternion_exponential(attitude, scale(add(body_rate, next_rate), 0.5), time)
    moved = scale(add(velocity, next_velocity), 0.5 * time)
    return add(position, moved), next_velocity, normalize(turned), next_rate


def held_torque(body_rate: Vector, next_rate: Vector, dt: Scalar, p: Any) -> Vector:
    """Return the torque (body [N m]) that turned a body over a step, besides the gyroscopic one.

    Args:
        body_rate: Body rate at its begin [rad/s].
        next_rate: At its end.
        dt: Its length [s].
        p: Parameters: inertia.
    """
    middle = scale(add(body_rate, next_rate), 0.5)
    change = scale(sub(next_rate, body_rate), 1.0 / dt)
    return add(symmetric_multiply(p.inertia, change), cross(middle, symmetric_multiply(p.inertia, middle)))


# -----------------------------------------------------------------------------------------------------------------------------

POINTS_MAX = 24
"""Contact points of an impact at most: 16 on the rims of a cylinder, the nearest one, and four at the ends of where it lies."""
RIM = 8
"""Points on each rim of a cylinder."""
MARGIN = 2.5e-3
"""Radius of the edges of boxes and cylinders [m]; a quarter of the least half length where that is less."""


def body_points(body: CollisionBody, center_of_mass: tuple[float, float, float]) -> tuple[Array, Array]:
    """Return points of a collision body that carry it on a surface, each the centre of a ball that touches the surface from
    inside.

    Returns:
        Centres from the centre of mass, body frame [m], (m, 3), and radii [m], (m,): a sphere, 8 corners or 16 points of rims.
    """
    middle = np.asarray(body.center, float) - np.asarray(center_of_mass, float)
    if body.shape == "sphere":
        return middle[None], np.array([float(body.size[0])])
    half, margin = _core(body)
    if body.shape == "box":
        points = half * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    else:
        turns = 2.0 * np.pi * np.arange(RIM) / RIM
        points = np.array([[half[0] * np.cos(a), half[0] * np.sin(a), z] for z in (-half[2], half[2]) for a in turns])
    return middle + points, np.full(len(points), margin)


def body_core(body: CollisionBody, center_of_mass: tuple[float, float, float]) -> Array:
    """Return its numbers as `airworthy.geometry.sweep.CORE` says, (9,); of a sphere the kind is 0."""
    middle = np.asarray(body.center, float) - np.asarray(center_of_mass, float)
    if body.shape == "sphere":
        return np.array([0.0, 0.0, 0.0, 0.0, *middle, body.size[0], np.linalg.norm(middle) + body.size[0]])
    half, margin = _core(body)
    farthest = np.linalg.norm(half if body.shape == "box" else half[1:])
    kind = 1.0 if body.shape == "box" else 2.0
    return np.array([kind, *half, *middle, margin, np.linalg.norm(middle) + farthest + margin])


def _core(body: CollisionBody) -> tuple[Array, float]:
    """Half lengths without the margin, and the margin."""
    size = np.asarray(body.size, float)
    margin = min(MARGIN, 0.25 * float(size.min()))
    return size - margin, margin


# -----------------------------------------------------------------------------------------------------------------------------
# Contact with scenes as native code in double precision: traced equations, impulses, sweeps and the passes of a step.
#
# The readable twins are `airworthy.dynamics.scene_contact` (impulses) and, a room above, `simulation.obstacles` and
# `simulation.rebound`.

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
        "rolling": (),
        "contact_radius": (),
    }
)
"""Numbers per body, in double precision."""

Lengths = dict[str, int | None]

_CONTEXT = "const double* body"


def scene_blocks() -> list[TracedBlock]:
    """Return the traced equations."""
    record = {"p": (BODY_LAYOUT, "BODY")}
    motion: Lengths = {"velocity": 3, "body_rate": 3}
    after: Lengths = {"next_velocity": 3, "next_rate": 3}
    at_point: Lengths = {"touches": None, "push": None, **motion, "up": 3, "point": 3}
    pose: Lengths = {"position": 3, "velocity": 3, "attitude": 4, "body_rate": 3}
    ends: Lengths = {f"next_{name}": length for name, length in pose.items()}
    arm: Lengths = {"up": 3, "arm": 3, "turn": 3, "give": None}
    before: Lengths = {"velocity_before": 3, "rate_before": 3, "dt": None}
    table: list[tuple[Callable[..., Any], Lengths, Lengths]] = [
        (contact.contact_push, at_point, {**after, "next_push": None}),
        (contact.contact_rebound, {"approach": None, **motion, **before}, {**after, "share": None}),
        (contact.contact_friction, at_point, {**after, "leaving": None}),
        (contact.contact_holds, {**motion, "up": 3, "point": 3}, {"out": None}),
        (contact.contact_rolling, {"push": None, **motion, "up": 3, "point": 3}, after),
        (contact.contact_lift, {"lift": None, **motion}, after),
        (contact.kinetic_energy, motion, {"out": None}),
        (contact.bounded_motion, {"allowed": None, **motion}, after),
        (contact.bounce_speed, {"dt": None}, {"out": None}),
        (lever, {"attitude": 4, "normal": 3, "point": 3}, arm),
        (slip_square, {**motion, "up": 3, "point": 3}, {"out": None}),
        (drift, {**pose, "acceleration": 3, "torque": 3, "time": None}, ends),
        (held_torque, {"body_rate": 3, "next_rate": 3, "dt": None}, {"out": 3}),
    ]
    blocks = [trace(function, function.__name__, ins, outs, record, None, _CONTEXT) for function, ins, outs in table]
    felt: Lengths = {"specific": 3, "rate_dot": 3, "rotation": 9, "position": 3}
    still = {"body_rate": (0.0, 0.0, 0.0)}
    return [
        *blocks,
        trace(eq.normalize, "normalize", {"attitude": 4}, {"out": 4}),
        trace(rotate, "rotate", {"q": 4, "v": 3}, {"out": 3}),
        trace(rotate_inverse, "rotate_inverse", {"q": 4, "v": 3}, {"out": 3}),
        trace(eq.accelerometer, "accelerometer", felt, {"out": 3}, constants=still),
    ]


def scene_source(**numbers: float) -> str:
    """Return the native text of contact with scenes; before it goes that of the geometry's distance.h, clearance.h, sweep.h and
    convex.h.

    Args:
        numbers: Constants of the texts by their names in lower case; see `simulation.scene_contact`.
    """
    constants = {"SPHERES": POINTS_MAX, "RIM": RIM, **{name.upper(): value for name, value in numbers.items()}}
    text = "".join(native_text(name) for name in ("scene_impact.h", "scene_sweep.h", "scene_rebound.h"))
    text = text.replace("TRACED_BLOCKS", "".join(block.source for block in scene_blocks()))
    return "".join(f"#define {name} {value!r}\n" for name, value in constants.items()) + BODY_LAYOUT.c_enum("B") + "\n" + text
