"""The airframe as allocation sees it: pseudo-inverse, collective direction and thrust limits, from a vehicle record."""

from __future__ import annotations

import numpy as np

from airworthy.control.allocation import Allocation
from airworthy.core.errors import AirworthyError
from airworthy.vehicles import Vehicle, control_effectiveness, rotor_thrust

_RANK_TOLERANCE = 1e-6
_UNDERACTUATED_ROWS = (2, 3, 4, 5)
"""Collective and moments: what an airframe that cannot push sideways is asked for."""


def scaled_rank(effectiveness: np.ndarray) -> int:
    """Rank of a (6, n) effectiveness, moments measured against their largest lever so that units do not matter."""
    lever = max(float(np.abs(effectiveness[3:]).max()), 1e-12)
    scaled = effectiveness / np.array([1.0, 1.0, 1.0, lever, lever, lever])[:, None]
    return int(np.linalg.matrix_rank(scaled, tol=_RANK_TOLERANCE * np.linalg.norm(scaled, 2)))


def pseudo_inverse(effectiveness: np.ndarray) -> np.ndarray:
    """Thrusts per unit of wrench, shape (n, 6), by Moore-Penrose.

    An airframe of rank 6 gets the inverse of all rows. One of lower rank gets that of collective and moments alone, and zeros
    for sideways force: a least-squares compromise over six rows of different units would spoil the moments. For planar
    rotors both are the same.

    Args:
        effectiveness: Wrench per newton of thrust, (6, n), rows Fx, Fy, Fz, Mx, My, Mz.
    """
    matrix = np.asarray(effectiveness, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != 6 or not np.isfinite(matrix).all():
        raise AirworthyError(f"A control effectiveness is a finite (6, n) matrix; got shape {matrix.shape}.")
    rows = list(range(6)) if scaled_rank(matrix) == 6 else list(_UNDERACTUATED_ROWS)
    inverse = np.zeros((matrix.shape[1], 6))
    # Rows of one size, so that the cut-off for tiny singular values does not depend on units.
    size = np.linalg.norm(matrix[rows], axis=1)
    size[size == 0.0] = 1.0
    inverse[:, rows] = np.linalg.pinv(matrix[rows] / size[:, None], rcond=_RANK_TOLERANCE) / size
    return inverse


def collective_direction(inverse: np.ndarray) -> np.ndarray:
    """Thrusts of one newton along body z, (n,); zeros unless all are positive."""
    shares = inverse[:, 2]
    return shares.copy() if np.all(shares > 1e-9) else np.zeros_like(shares)


def thrust_limits(vehicle: Vehicle) -> tuple[np.ndarray, np.ndarray]:
    """Least and largest thrust of each rotor [N], at its speed limits."""
    ends = np.array([[rotor_thrust(r, r.speed_min), rotor_thrust(r, r.speed_max)] for r in vehicle.rotors])
    return ends.min(axis=1), ends.max(axis=1)


def allocation_for(vehicle: Vehicle, rotor_count: int | None = None) -> Allocation:
    """Allocation data of a vehicle, padded with idle rotors.

    Args:
        vehicle: The airframe as the controller believes it to be.
        rotor_count: Length to pad to; the vehicle's own by default.

    Raises:
        AirworthyError: `rotor_count` is below the vehicle's.
    """
    count = vehicle.rotor_count if rotor_count is None else rotor_count
    if count < vehicle.rotor_count:
        raise AirworthyError(f"{vehicle.name} has {vehicle.rotor_count} rotors; it does not fit a kernel for {count}.")
    inverse = pseudo_inverse(control_effectiveness(vehicle))
    lower, upper = thrust_limits(vehicle)
    pad = count - vehicle.rotor_count
    return Allocation(
        inverse=tuple(tuple(row) for row in np.pad(inverse, ((0, pad), (0, 0))).tolist()),
        collective=tuple(np.pad(collective_direction(inverse), (0, pad)).tolist()),
        thrust_min=tuple(np.pad(lower, (0, pad)).tolist()),
        thrust_max=tuple(np.pad(upper, (0, pad)).tolist()),
    )
