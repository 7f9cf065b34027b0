"""What the rotors can do to the body: control effectiveness and the largest accelerations, from geometry alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from airworthy.core.errors import AirworthyError
from airworthy.vehicles.check import inertia_matrix, rotor_thrust, rotor_torque
from airworthy.vehicles.record import Rotor, Vehicle

__all__ = [
    "Indicators",
    "columns",
    "control_effectiveness",
    "indicators",
    "linear_drag",
    "pushes_sideways",
    "rotor_state_for_thrust",
    "torque_ratio",
]

SIDEWAYS_SHARE = 0.02
"""Least over largest singular value of an airframe that is meant to push sideways: rotors canted by 2 degrees have it, arms
bent by one degree do not, and to hold such an airframe level would set its rotors against each other."""


@dataclass(frozen=True)
class Indicators:
    """Kinodynamic indicators (FlyingTrust, eqs 2, 9 and 11)."""

    thrust_to_weight: float
    """Largest upward force over weight [-]."""
    alpha_xy_max: float
    """Largest roll acceleration [rad/s^2]."""
    alpha_z_max: float
    """Largest yaw acceleration [rad/s^2]."""


def rotor_state_for_thrust(rotor: Rotor, thrust: float) -> float:
    """Rotor state [rad/s, or N] that gives a thrust [N], on the outer branch of c0 + c1 w + c2 w|w|; not clipped."""
    c0, c1, c2 = rotor.thrust
    # A linear law, as where the rotor state is thrust itself.
    if c2 == 0.0:
        return (thrust - c0) / c1 if c1 != 0.0 else 0.0
    side = 1.0 if thrust >= c0 else -1.0
    # with w = side * s, s >= 0: c2 s^2 + c1 s = side * (thrust - c0)
    root = math.sqrt(max(c1 * c1 + 4.0 * c2 * side * (thrust - c0), 0.0))
    return side * (root - c1) / (2.0 * c2)


def columns(vehicle: Vehicle, reference: Sequence[float], ratios: Sequence[float]) -> np.ndarray:
    """Wrench per newton of thrust, rows Fx Fy Fz Mx My Mz [N / N, N m / N], body frame, shape (6, rotor_count).

    Args:
        vehicle: Its rotors, in order.
        reference: Point that moments are about, body [m], (3,).
        ratios: Torque over thrust of each rotor [m], without the sign of its spin.
    """
    matrix = np.empty((6, vehicle.rotor_count))
    for index, (rotor, ratio) in enumerate(zip(vehicle.rotors, ratios, strict=True)):
        axis = np.array(rotor.axis)
        # The hub stands for the whole rotor: a force along its axis has the same moment from anywhere on it.
        lever = np.array(rotor.position) - np.array(reference)
        matrix[:3, index] = axis
        matrix[3:, index] = np.cross(lever, axis) + rotor.spin * ratio * axis
    return matrix


def torque_ratio(rotor: Rotor, thrust: float) -> float:
    """Torque over thrust [m] at a thrust [N] held within the rotor's reach; 0 for a rotor that gives no thrust."""
    state = min(max(rotor_state_for_thrust(rotor, thrust), rotor.speed_min), rotor.speed_max)
    force = rotor_thrust(rotor, state)
    # A range that begins at or below standstill may hold no thrust at the share asked for: full speed is tried.
    if force <= 0.0:
        state = rotor.speed_max
        force = rotor_thrust(rotor, state)
    return rotor_torque(rotor, state) / force if force > 0.0 else 0.0


def control_effectiveness(vehicle: Vehicle, reference: Literal["com", "root"] = "com") -> np.ndarray:
    """Body wrench per newton of rotor thrust.

    Column k is [a_k; (p_k - r) x a_k + spin_k kappa_k a_k] (Aerial Gym 3.1, whose direction d is -spin). kappa is torque over
    thrust: exact where both are proportional, else taken where the rotor carries an equal share of the weight.

    Args:
        vehicle: Its rotors, mass and gravity.
        reference: Point r that moments are taken about: the centre of mass, or the body frame's origin.

    Returns:
        Rows Fx, Fy, Fz [N/N], Mx, My, Mz [N m/N], body frame, shape (6, rotor_count).
    """
    if reference not in ("com", "root"):
        raise AirworthyError(f"Unknown reference {reference!r} for the control effectiveness; use 'com' or 'root'.")
    share = vehicle.mass * vehicle.gravity / vehicle.rotor_count
    ratios = [torque_ratio(rotor, share) for rotor in vehicle.rotors]
    return columns(vehicle, vehicle.center_of_mass if reference == "com" else (0.0, 0.0, 0.0), ratios)


def linear_drag(vehicle: Vehicle, states: ArrayLike) -> np.ndarray:
    """Drag per velocity along each body axis at given rotor states [N s/m], (3,), without turning: body, rotors and hubs."""
    sizes = np.abs(np.asarray(states, float))
    total = np.add(vehicle.drag.linear, np.multiply(vehicle.drag.rotor_speed, sizes.sum()))
    for rotor, size in zip(vehicle.rotors, sizes, strict=True):
        along = np.square(rotor.axis)
        total = total + size * (rotor.hub_drag[0] * (1.0 - along) + rotor.hub_drag[1] * along)
    return np.asarray(total)


def pushes_sideways(effectiveness: np.ndarray) -> bool:
    """Tell whether rotors can push any way while they hold a moment: rank 6, and by design, not by an arm that is slightly
    bent.

    Args:
        effectiveness: Wrench per newton of thrust, shape (6, rotor_count); moments are measured against their largest lever.
    """
    lever = max(float(np.abs(effectiveness[3:]).max()), 1e-12)
    scaled = effectiveness / np.array([1.0, 1.0, 1.0, lever, lever, lever])[:, None]
    # Singular values of mixed units mean nothing, so moments were divided by their largest lever.
    sizes = np.linalg.svd(scaled, compute_uv=False)
    return len(sizes) == 6 and bool(sizes[5] > SIDEWAYS_SHARE * sizes[0])


def indicators(vehicle: Vehicle, from_rest: bool = True) -> Indicators:
    """Thrust to weight and the largest roll and yaw accelerations, each from its own best rotor states.

    Every output is a sum over rotors of a function of one rotor's state, so each rotor is put at the end of its range that
    helps (FlyingTrust section 2: rotors between 0 and maximum). Accelerations are J^-1 times the moment about the centre of
    mass; where the two directions differ (irregular airframes), the weaker one counts.

    Args:
        vehicle: Its rotors, mass and inertia.
        from_rest: Rotors range from standstill (full reverse if reversible), as in the published table; else from `speed_min`.
    """
    # All of it, products of inertia too: an irregular airframe that rolls also yaws.
    inverse = np.linalg.inv(inertia_matrix(vehicle))
    matrix = np.zeros((3, 2 * vehicle.rotor_count))  # (upward force, roll, yaw acceleration) per newton, then per newton metre
    for index, rotor in enumerate(vehicle.rotors):
        axis = np.array(rotor.axis)
        lever = np.array(rotor.position) - np.array(vehicle.center_of_mass)
        turn = inverse @ np.column_stack([np.cross(lever, axis), rotor.spin * axis])
        matrix[:, 2 * index : 2 * index + 2] = [[axis[2], 0.0], turn[0], turn[2]]
    up, roll, yaw = (_range_of(vehicle, row, from_rest) for row in matrix)
    weight = vehicle.mass * vehicle.gravity
    return Indicators(up[1] / weight if weight > 0.0 else math.inf, min(-roll[0], roll[1]), min(-yaw[0], yaw[1]))


def _range_of(vehicle: Vehicle, row: np.ndarray, from_rest: bool) -> tuple[float, float]:
    """Least and largest value of sum over rotors of row . (thrust, torque)."""
    low = high = 0.0
    for index, rotor in enumerate(vehicle.rotors):
        ends = {min(rotor.speed_min, 0.0) if from_rest else rotor.speed_min, rotor.speed_max}
        if rotor.speed_min < 0.0:
            ends.add(0.0)
        # Thrust and torque of one state together: their extremes may lie at different ends.
        values = [row[2 * index] * rotor_thrust(rotor, w) + row[2 * index + 1] * rotor_torque(rotor, w) for w in ends]
        low, high = low + min(values), high + max(values)
    return low, high
