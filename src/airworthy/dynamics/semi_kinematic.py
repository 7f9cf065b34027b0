"""The semi-kinematic family: a point mass with attitude kinematics, thrust and body rates as inputs (FiGS, SOUS VIDE eq. 1).

    p' = v,   v' = (T / m) z_B(q) - g e3 + F / m,   q' = 1/2 q (w, 0)

No rotational inertia, motor lag or drag. In z-up project frames the thrust T is positive along body z; FiGS writes it, z down,
as a command f in [-1, 0] of a scale k_th (`airworthy.core.frames` converts).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, Vector
from airworthy.core.layout import Layout
from airworthy.core.ops import clip
from airworthy.core.tracing import TracedBlock, trace
from airworthy.core.vectors import add, matrix_columns, quaternion_derivative, scale
from airworthy.dynamics.equations import normalize
from airworthy.dynamics.rigid import native_text
from airworthy.vehicles.links import refuse_links
from airworthy.vehicles.record import Vehicle


def semi_kinematic_state_layout() -> Layout:
    """Return state rows."""
    return Layout(
        {
            "position": (3,),  # world [m]
            "velocity": (3,),  # world [m/s]
            "attitude": (4,),  # x, y, z, w, body to world
            "rate": (3,),  # as commanded in the last step, body [rad/s]
            "thrust": (),  # as commanded in the last step [N]
            "position_residual": (3,),
            "launch_base": (3,),  # of an unfinished launch, as in the rigid family
            "launch_moved": (3,),
            "saturated": (),
            "contact": (),
            "impact_speed": (),
            "held": (),  # as in the rigid family
            "status": (),
            "acceleration": (3,),  # specific force, body [m/s^2]
        }
    )


def semi_kinematic_layout() -> Layout:
    """Return parameter rows."""
    return Layout(
        {
            "gravity": (),
            "mass": (),
            "mass_inverse": (),
            "thrust_limit": (),  # k_th: all rotors at full command [N]
            "rate_limit": (),  # of each commanded body rate [rad/s]
            "noise": (10,),  # standard deviation added per step to position, velocity, attitude
            "limit": (3,),  # distance, speed, body rate beyond which a flight counts as diverged
        }
    )


def semi_kinematic_parameters(vehicle: Vehicle, rate_limit: float) -> Array:
    """Return the column of a vehicle's rows; the thrust limit is that of all rotors at their upper limit, along body z."""
    refuse_links(vehicle, "The semi-kinematic family")
    layout = semi_kinematic_layout()
    column = np.zeros(layout.size)
    thrust = sum((r.thrust[0] + r.thrust[1] * r.speed_max + r.thrust[2] * r.speed_max**2) * r.axis[2] for r in vehicle.rotors)
    values = {
        "gravity": vehicle.gravity,
        "mass": vehicle.mass,
        "mass_inverse": 1.0 / vehicle.mass,
        "thrust_limit": thrust,
        "rate_limit": rate_limit,
        "limit": (1e5, 1e3, 1e3),
    }
    for name, value in values.items():
        column[layout.rows(name)] = value
    return column


def derivative(
    velocity: Vector, attitude: Vector, thrust: Any, body_rate: Vector, force: Vector, p: Any
) -> tuple[Vector, Vector]:
    """Return the acceleration (world) and quaternion derivative.

    Args:
        velocity: World [m/s]; unused, the model has no drag.
        attitude: Quaternion x, y, z, w, body to world.
        thrust: Along body z [N].
        body_rate: Body rates [rad/s].
        force: External force, world [N].
        p: Parameters.
    """
    up = matrix_columns(attitude)[2]
    a = scale(add(scale(up, thrust), force), p.mass_inverse)
    return (a[0], a[1], a[2] - p.gravity), quaternion_derivative(attitude, body_rate)


def limited_input(thrust: Any, body_rate: Vector, p: Any) -> Vector:
    """Return thrust in [0, k_th] and each rate within its limit.

    Args:
        thrust: Along body z [N].
        body_rate: Body rates [rad/s].
        p: Parameters: thrust_limit [N], rate_limit [rad/s].
    """
    return (clip(thrust, 0.0, p.thrust_limit), *(clip(w, -p.rate_limit, p.rate_limit) for w in body_rate))


def semi_kinematic_blocks(layout: Layout) -> list[TracedBlock]:
    """Return traced blocks of the native step."""

    def block(function: Any, name: str, inputs: Mapping[str, int | None], outputs: Mapping[str, int | None]) -> TracedBlock:
        return trace(function, name, inputs, outputs, {"p": (layout, "PAR")}, None, "CONTEXT")

    moving = {"velocity": 3, "attitude": 4, "thrust": None, "body_rate": 3, "force": 3}
    return [
        block(derivative, "derivative", moving, {"dv": 3, "dq": 4}),
        block(limited_input, "limited_input", {"thrust": None, "body_rate": 3}, {"out": 4}),
        trace(normalize, "normalize", {"attitude": 4}, {"out": 4}),
    ]


def semi_kinematic_source() -> str:
    """Return the hand-written loop, with places for traced blocks and control."""
    return native_text("semi_kinematic_step.cpp").replace("BATCH_OPEN", native_text("batch_open.h"))
