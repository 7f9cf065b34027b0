"""The task of holding a place by motor commands, as pure functions of scalars: start, observe, command, cost.

Written like every equation (`airworthy.core.ops`), hence run on NumPy, traced into kernels and derived alike. State rows are
those of `learning.gradient.dynamics`; the target is the origin, heading along world x.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from airworthy.core.arrays import Array, Vector
from airworthy.core.ops import sin_cos, sqrt
from airworthy.core.schema import Bound, check_fields
from airworthy.core.vectors import dot, matrix_columns, quaternion_multiply
from airworthy.learning.gradient.dynamics import BODY

__all__ = ["OBSERVATION", "HoverCost", "HoverStart", "hover_command", "hover_cost", "hover_observation", "hover_start"]

OBSERVATION = 18
"""Position error 3, half the velocity 3, rotation matrix by columns 9, a tenth of the body rate 3."""
START_UNIFORMS = 16


@dataclass(frozen=True)
class HoverStart:
    """Where flights begin; each quantity is uniform within +- its value. Defaults are those of the specification's trial."""

    position: Annotated[float, Bound(0.0, 100.0, "m")] = 1.0
    """Each axis [m]."""
    velocity: Annotated[float, Bound(0.0, 50.0, "m/s")] = 1.0
    """Each axis [m/s]."""
    tilt: Annotated[float, Bound(0.0, 3.2, "rad")] = 0.7
    """Roll and pitch [rad]."""
    rate: Annotated[float, Bound(0.0, 50.0, "rad/s")] = 1.0
    """Each body axis [rad/s]."""
    rotors: Annotated[float, Bound(0.0, 1.0)] = 0.1  # ours: in flight hardly a rotor turns at hover's speed
    """Of their speed in hover, each rotor, as a share."""

    def __post_init__(self) -> None:
        check_fields(self, "HoverStart.")


@dataclass(frozen=True)
class HoverCost:
    """Weights of the cost per policy step; defaults are those of the specification's trial (learning by reward, 6.3)."""

    position: Annotated[float, Bound(0.0, 1e3)] = 1.0
    """Of the distance [1/m], rounded off within `corner`."""
    velocity: Annotated[float, Bound(0.0, 1e3)] = 0.2
    """Of the speed [s/m]."""
    rate: Annotated[float, Bound(0.0, 1e3)] = 0.05
    """Of the body rate [s/rad]."""
    upright: Annotated[float, Bound(0.0, 1e3)] = 0.3
    """Of 1 - cos(tilt)."""
    heading: Annotated[float, Bound(0.0, 1e3)] = 0.3
    """Of 1 - the x component of the body's forward axis."""
    effort: Annotated[float, Bound(0.0, 1e3)] = 0.02
    """Of the squared distance of actions from hover's."""
    corner: Annotated[float, Bound(1e-4, 1.0)] = 0.1
    """Within it norms are rounded off, so that their slope does not jump at the target [m, m/s, rad/s]."""

    def __post_init__(self) -> None:
        check_fields(self, "HoverCost.")


def hover_start(uniforms: Array, hover: Array, lower: Array, upper: Array, spread: HoverStart) -> Array:
    """Return states of new flights.

    Args:
        uniforms: In (0, 1), (START_UNIFORMS, flights); the n-th flight of an environment always gets the same ones.
        hover: Rotor states of hover, (n,) or (n, flights).
        lower: Least rotor states, alike.
        upper: Largest, alike.
        spread: Half widths.

    Returns:
        (13 + n, flights), float64.
    """
    u = 2.0 * uniforms - 1.0
    hover = hover[:, None] if hover.ndim == 1 else hover
    count = len(hover)
    axes = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    turns = []
    # Z-Y-X Euler angles: any heading, then pitch, then roll.
    for axis, angle in zip(reversed(axes), (np.pi * u[8], spread.tilt * u[7], spread.tilt * u[6]), strict=True):
        s, c = sin_cos(0.5 * angle)
        turns.append((*(x * s for x in axis), c))
    attitude = quaternion_multiply(quaternion_multiply(turns[0], turns[1]), turns[2])
    # More than four rotors share draws; each is still off its hover by itself.
    rotors = hover * (1.0 + spread.rotors * u[12 + np.arange(count) % (START_UNIFORMS - 12)])
    bounds = (x[:, None] if x.ndim == 1 else x for x in (lower, upper))
    return np.concatenate(
        [spread.position * u[:3], spread.velocity * u[3:6], np.stack(attitude), spread.rate * u[9:12], np.clip(rotors, *bounds)]
    )


def hover_observation(state: Vector) -> Vector:
    """Return what the policy sees of a state: `OBSERVATION` numbers near 1 in size."""
    # The matrix, since a quaternion has two signs (specification, section 10); factors of 6.3.
    columns = matrix_columns(state[6:10])
    turned = tuple(c for column in columns for c in column)
    return (*state[:3], *(0.5 * v for v in state[3:6]), *turned, *(0.1 * w for w in state[10:BODY]))


def hover_command(action: Vector, p: Any) -> Vector:
    """Return rotor states that actions in [-1, 1] command: from the least to the largest of each rotor."""
    # The network's tanh bounds actions: a clip would end the slope at a limit (specification, 6.1).
    return tuple(
        0.5 * (low + high) + 0.5 * (high - low) * a for a, low, high in zip(action, p.rotor_min, p.rotor_max, strict=True)
    )


def hover_cost(state: Vector, action: Vector, hover: Vector, weights: HoverCost) -> Any:
    """Return the cost of a step that led to `state`.

    Args:
        state: After the step.
        action: That was taken, in [-1, 1].
        hover: Actions of hover.
        weights: Of the terms.
    """
    columns = matrix_columns(state[6:10])

    def norm(vector: Vector) -> Any:
        return sqrt(dot(vector, vector) + weights.corner * weights.corner)

    # From hover's actions, not from 0: to hold still is to cost nothing.
    effort = 0.0
    for a, h in zip(action, hover, strict=True):
        effort = effort + (a - h) * (a - h)
    return (
        weights.position * norm(state[:3])
        + weights.velocity * norm(state[3:6])
        + weights.rate * norm(state[10:BODY])
        + weights.upright * (1.0 - columns[2][2])
        + weights.heading * (1.0 - columns[0][0])
        + weights.effort * effort
    )
