"""Vehicles drawn anew for each flight, as scalars: what the kernel does in the lane where a flight ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from airworthy.core.arrays import Scalar, Vector
from airworthy.core.layout import Layout
from airworthy.core.ops import absolute, exp, log, maximum, sqrt
from airworthy.simulation.config import Randomization

__all__ = ["drawn_rows"]

_PAIRS = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
"""Of the six numbers of an inertia."""
_DRAG = ("drag_linear", "drag_norm", "drag_axis", "drag_rotor", "angular_linear", "angular_norm", "angular_axis")
_HUBS = ("rotor_hub_drag", "rotor_flapping", "rotor_translational_lift")


def drawn_rows(
    rows: Mapping[int, Scalar], uniforms: Vector, layout: Layout, rotor_count: int, spread: Randomization, least: float
) -> dict[int, Scalar]:
    """Draw the parameter rows of one flight, as `airworthy.simulation.parameters.randomize` does, from 16 uniform numbers.

    Rotors beyond the eighth share draws. If thrust to weight falls below `least`, the thrust of all rotors is raised to it:
    what can hardly hover teaches nothing.

    Args:
        rows: Nominal rows by number; those that are not asked for may be missing.
        uniforms: In (0, 1).
        layout: Of the rows.
        rotor_count: Rotors that the vehicle has.
        spread: Relative half widths.
        least: Thrust to weight.
    """
    if not spread.any:
        return dict(rows)
    u = tuple(2.0 * x - 1.0 for x in uniforms)
    mass = 1.0 + spread.mass * u[0]
    axes = [mass * (1.0 + spread.inertia * u[1 + i]) for i in range(3)]
    lag = 1.0 + spread.lag * u[14]
    drag = 1.0 + spread.drag * u[13]
    rotors = [(1.0 + spread.thrust * u[4]) * (1.0 + spread.rotor * u[5 + i % 8]) for i in range(rotor_count)]
    rotors = _raised(rows, layout, rotors, mass, least)
    change: dict[str, Callable[[int, Scalar], Scalar]] = {
        "mass": lambda k, x: x * mass,
        "mass_inverse": lambda k, x: x / mass,
        # Products of inertia by the geometric mean of both axes: the matrix stays positive definite.
        "inertia": lambda k, x: x * sqrt(axes[_PAIRS[k][0]] * axes[_PAIRS[k][1]]),
        "inertia_inverse": lambda k, x: x / sqrt(axes[_PAIRS[k][0]] * axes[_PAIRS[k][1]]),
        "rotor_thrust": lambda k, x: x * rotors[k // 3],
        "rotor_torque": lambda k, x: x * rotors[k // 3],
        # All 16 numbers are given out: the second axis shares that of the eighth rotor.
        "wind": lambda k, x: x + spread.wind * u[15 if k == 0 else 12] if k < 2 else x,
        **{f"rotor_{way}": (lambda k, x: x / lag) for way in ("rise", "fall")},
        # exp(-t / tau) with tau times the factor.
        **{f"rotor_{way}_keep{half}": (lambda k, x: exp(log(x) / lag)) for way in ("rise", "fall") for half in ("", "_half")},
        **dict.fromkeys((*_DRAG, *_HUBS), lambda k, x: x * drag),
    }
    drawn = dict(rows)
    for name, function in change.items():
        first = layout.rows(name).start
        for row in range(*layout.rows(name).indices(layout.size)):
            if row in rows:
                drawn[row] = function(row - first, rows[row])
    return drawn


def _raised(rows: Mapping[int, Scalar], layout: Layout, rotors: list[Any], mass: Scalar, least: float) -> list[Any]:
    thrust: Any = 0.0
    first, full = layout.offsets["rotor_thrust"], layout.offsets["rotor_max"]
    for i, factor in enumerate(rotors):
        w = rows[full + i]
        c0, c1, c2 = (rows.get(first + 3 * i + k, 0.0) for k in range(3))
        thrust = thrust + factor * (c0 + w * (c1 + c2 * absolute(w)))
    # By the inverse, which every step reads: the mass itself may not be among the rows.
    weight = mass * rows[layout.offsets["gravity"]] / rows[layout.offsets["mass_inverse"]]
    raised = maximum(least * weight / maximum(thrust, 1e-9), 1.0)
    return [factor * raised for factor in rotors]
