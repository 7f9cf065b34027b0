"""What the rotors can do to the body: control effectiveness, hover, and the largest accelerations, from geometry alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from airworthy.core.errors import AirworthyError
from airworthy.vehicles.check import inertia_matrix, rotor_thrust, rotor_torque
from airworthy.vehicles.record import Rotor, Vehicle

__all__ = ["Indicators", "control_effectiveness", "hover_speed", "indicators", "rotor_state_for_thrust"]


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
    if c2 == 0.0:
        return (thrust - c0) / c1 if c1 != 0.0 else 0.0
    side = 1.0 if thrust >= c0 else -1.0
    # with w = side * s, s >= 0: c2 s^2 + c1 s = side * (thrust - c0)
    root = math.sqrt(max(c1 * c1 + 4.0 * c2 * side * (thrust - c0), 0.0))
    return side * (root - c1) / (2.0 * c2)


def _columns(vehicle: Vehicle, reference: Sequence[float], ratios: Sequence[float]) -> np.ndarray:
    """Wrench per newton of thrust, rows Fx Fy Fz Mx My Mz, shape (6, rotor_count); `ratios` is torque over thrust [m]."""
    matrix = np.empty((6, vehicle.rotor_count))
    for index, (rotor, ratio) in enumerate(zip(vehicle.rotors, ratios, strict=True)):
        axis = np.array(rotor.axis)
        lever = np.array(rotor.position) - np.array(reference)
        matrix[:3, index] = axis
        matrix[3:, index] = np.cross(lever, axis) + rotor.spin * ratio * axis
    return matrix


def _torque_ratio(rotor: Rotor, thrust: float) -> float:
    """Torque over thrust [m] at a thrust [N] held within the rotor's reach."""
    state = min(max(rotor_state_for_thrust(rotor, thrust), rotor.speed_min), rotor.speed_max)
    force = rotor_thrust(rotor, state)
    if force <= 0.0:
        state = rotor.speed_max
        force = rotor_thrust(rotor, state)
    return rotor_torque(rotor, state) / force


def control_effectiveness(vehicle: Vehicle, reference: Literal["com", "root"] = "com") -> np.ndarray:
    """Body wrench per newton of rotor thrust.

    Column k is [a_k; (p_k - r) x a_k + spin_k kappa_k a_k] (Aerial Gym 3.1, whose direction d is -spin). kappa is torque over
    thrust: exact where both are proportional, else taken where the rotor carries an equal share of the weight.

    Args:
        reference: Point r that moments are taken about: the centre of mass, or the body frame's origin.

    Returns:
        Rows Fx, Fy, Fz [N/N], Mx, My, Mz [N m/N], body frame, shape (6, rotor_count).
    """
    if reference not in ("com", "root"):
        raise AirworthyError(f"Unknown reference {reference!r} for the control effectiveness; use 'com' or 'root'.")
    share = vehicle.mass * vehicle.gravity / vehicle.rotor_count
    ratios = [_torque_ratio(rotor, share) for rotor in vehicle.rotors]
    return _columns(vehicle, vehicle.center_of_mass if reference == "com" else (0.0, 0.0, 0.0), ratios)


def hover_speed(vehicle: Vehicle) -> np.ndarray:
    """Rotor states that hold the vehicle level and at rest, those of least squared thrust, shape (rotor_count,).

    Raises:
        AirworthyError: The rotors cannot hold it (too weak, or no level trim exists).
    """
    weight = vehicle.mass * vehicle.gravity
    target = np.array([0.0, 0.0, weight, 0.0, 0.0, 0.0])
    matrix = control_effectiveness(vehicle)
    # Torque over thrust varies a little with speed for fitted polynomials: settle it where each rotor really runs.
    for _ in range(8):
        thrusts = _bounded_trim(vehicle, matrix, target)
        ratios = [_torque_ratio(rotor, thrust) for rotor, thrust in zip(vehicle.rotors, thrusts, strict=True)]
        matrix = _columns(vehicle, vehicle.center_of_mass, ratios)
    error = matrix @ thrusts - target
    if np.abs(error[:3]).max() > 1e-6 * weight or np.abs(error[3:]).max() > 1e-6 * weight * _reach(vehicle):
        raise AirworthyError(
            f"{vehicle.name} cannot hover level: its rotors leave {error[2]:+.3g} N of lift and "
            f"{np.abs(error[3:]).max():.3g} N m of moment; it needs more thrust or another rotor layout."
        )
    return np.array([rotor_state_for_thrust(rotor, thrust) for rotor, thrust in zip(vehicle.rotors, thrusts, strict=True)])


def _reach(vehicle: Vehicle) -> float:
    """Largest distance of a rotor from the centre of mass [m], at least 1 cm: the scale of moments."""
    offsets = np.array([rotor.position for rotor in vehicle.rotors]) - np.array(vehicle.center_of_mass)
    return max(float(np.linalg.norm(offsets, axis=1).max()), 0.01)


def _bounded_trim(vehicle: Vehicle, matrix: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Thrusts [N] of least norm that give the wrench; bounded least squares where those leave the rotors' limits."""
    thrusts = np.linalg.pinv(matrix, rcond=1e-9) @ target
    lower = np.array([rotor_thrust(rotor, rotor.speed_min) for rotor in vehicle.rotors])
    upper = np.array([rotor_thrust(rotor, rotor.speed_max) for rotor in vehicle.rotors])
    if np.all(thrusts >= lower) and np.all(thrusts <= upper):
        return thrusts
    from scipy.optimize import lsq_linear

    return np.asarray(lsq_linear(matrix, target, bounds=(lower, upper), tol=1e-12).x)


def indicators(vehicle: Vehicle, from_rest: bool = True) -> Indicators:
    """Thrust to weight and the largest roll and yaw accelerations, each from its own best rotor states.

    Every output is a sum over rotors of a function of one rotor's state, so each rotor is put at the end of its range that
    helps (FlyingTrust section 2: rotors between 0 and maximum). Accelerations are J^-1 times the moment about the centre of
    mass; where the two directions differ (irregular airframes), the weaker one counts.

    Args:
        from_rest: Rotors range from standstill (full reverse if reversible), as in the published table; else from `speed_min`.
    """
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
        values = [row[2 * index] * rotor_thrust(rotor, w) + row[2 * index + 1] * rotor_torque(rotor, w) for w in ends]
        low, high = low + min(values), high + max(values)
    return low, high
