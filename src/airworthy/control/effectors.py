"""The airframe as allocation sees it: pseudo-inverse, collective direction and thrust limits, from a vehicle record."""

from __future__ import annotations

import numpy as np

from airworthy.control.allocation import Allocation
from airworthy.control.spare_rotors import spare_for
from airworthy.core.errors import AirworthyError
from airworthy.vehicles import Vehicle, control_effectiveness, pushes_sideways, thrust_limits

# Ours: on rows of unit size, far above float64's rounding and far below any lever of a rotor that is there.
_RANK_TOLERANCE = 1e-6
_INSIDE = 1e-4
"""Least distance to a rotor's limits, in weights, that leaves room to control with."""
_UNDERACTUATED_ROWS = (2, 3, 4, 5)
"""Collective and moments: what an airframe that cannot push sideways is asked for."""


def pseudo_inverse(effectiveness: np.ndarray) -> np.ndarray:
    """Return thrusts per unit of wrench, shape (n, 6), by Moore-Penrose.

    An airframe that can push sideways gets the inverse of all rows. Any other gets that of collective and moments alone, and
    zeros for sideways force: a least-squares compromise over six rows of different units would spoil the moments. For planar
    rotors both are the same. Where even these four are not independent (a rotor out, or all rotors turning one way), yaw is
    left out for the same reason.

    Args:
        effectiveness: Wrench per newton of thrust, (6, n), rows Fx, Fy, Fz, Mx, My, Mz.
    """
    matrix = np.asarray(effectiveness, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != 6 or not np.isfinite(matrix).all():
        raise AirworthyError(f"A control effectiveness is a finite (6, n) matrix; got shape {matrix.shape}.")
    rows = list(range(6)) if pushes_sideways(matrix) else list(_UNDERACTUATED_ROWS)
    inverse = np.zeros((matrix.shape[1], 6))
    # Rows of one size, so that the cut-off for tiny singular values does not depend on units.
    size = np.linalg.norm(matrix[rows], axis=1)
    size[size == 0.0] = 1.0
    # Two out of four rows that depend on each other would be solved by huge thrusts against each other.
    if len(rows) == 4 and np.linalg.matrix_rank(matrix[rows] / size[:, None], tol=_RANK_TOLERANCE * 2.0) < 4:
        rows, size = rows[:3], size[:3]
    inverse[:, rows] = np.linalg.pinv(matrix[rows] / size[:, None], rcond=_RANK_TOLERANCE) / size
    return inverse


def collective_direction(inverse: np.ndarray) -> np.ndarray:
    """Return thrusts of one newton along body z, (n,); zeros unless those of all rotors that work are positive."""
    shares = inverse[:, 2]
    works = np.any(inverse != 0.0, axis=1)
    return np.where(works, shares, 0.0) if works.any() and np.all(shares[works] > 1e-9) else np.zeros_like(shares)


def working_effectiveness(vehicle: Vehicle) -> np.ndarray:
    """Return the control effectiveness, (6, rotor_count), with zeros for rotors whose thrust no command changes.

    Of an airframe that cannot hold its yaw (`holds_yaw`), yaw is zero, too, and so is left out of allocation.
    """
    matrix = _of_working_rotors(vehicle)
    if not holds_yaw(vehicle):
        matrix[5] = 0.0
    return matrix


YAW_LOST = "its rotors cannot turn it both ways and hover, so yaw is left out of allocation, and it turns while it flies"
"""The rest of a sentence about a vehicle for which `holds_yaw` is false."""


def holds_yaw(vehicle: Vehicle) -> bool:
    """Tell whether yaw can be turned both ways in hover while thrust, roll and pitch are kept, by rotors within their limits.

    That is so where some thrusts strictly within the limits balance the weight: the wrenches around hover are then all within
    reach. False only where it is yaw that stands in the way (a hexarotor of alternating spins with a rotor out, rotors that all
    turn one way, three rotors): without it hover is within reach. What cannot hover in any case, and what pushes sideways, is
    not judged.
    """
    matrix = _of_working_rotors(vehicle)
    if pushes_sideways(matrix):
        return True
    rows = matrix[list(_UNDERACTUATED_ROWS)]
    lower, upper = thrust_limits(vehicle)
    weight = vehicle.mass * vehicle.gravity
    if _rank(rows) < len(rows):
        return _rank(rows[:3]) < len(rows) - 1
    return _reaches_around(rows, weight, lower, upper) or not _reaches_around(rows[:3], weight, lower, upper)


def _of_working_rotors(vehicle: Vehicle) -> np.ndarray:
    lower, upper = thrust_limits(vehicle)
    return np.where(upper > lower, control_effectiveness(vehicle), 0.0)


def _rank(rows: np.ndarray) -> int:
    size = np.linalg.norm(rows, axis=1)
    size[size == 0.0] = 1.0
    # Rows by their length: a rank must not depend on units.
    return int(np.linalg.matrix_rank(rows / size[:, None], tol=_RANK_TOLERANCE * 2.0))


def _reaches_around(rows: np.ndarray, weight: float, lower: np.ndarray, upper: np.ndarray) -> bool:
    """Tell whether thrusts strictly within limits give the weight and no moment; rows of full rank, the first is Fz."""
    target = np.zeros(len(rows))
    # Hover: the weight, and no moment.
    target[0] = weight
    # The least thrusts are inside for nearly every airframe, which saves the linear program.
    least = np.linalg.pinv(rows) @ target
    free = upper > lower
    margin = _INSIDE * weight
    if np.all(least[free] > lower[free] + margin) and np.all(least[free] < upper[free] - margin):
        return True
    from scipy.optimize import linprog

    # Largest distance d to every limit: lower + d <= u <= upper - d.
    count = int(free.sum())
    ones = np.ones((count, 1))
    sides = np.vstack([np.hstack([-np.eye(count), ones]), np.hstack([np.eye(count), ones])])
    room = np.concatenate([-lower[free], upper[free]])
    equal = np.hstack([rows[:, free], np.zeros((len(rows), 1))])
    rest = target - rows[:, ~free] @ lower[~free]
    # Newtons and newton metres differ by orders of magnitude on small airframes, which solvers take for degeneracy.
    scale = np.maximum(np.abs(equal).max(axis=1, keepdims=True), 1e-30)
    cost = np.append(np.zeros(count), -1.0)
    found = linprog(cost, sides, room, equal / scale, rest / scale[:, 0], bounds=[(None, None)] * (count + 1))
    return bool(found.status == 0 and -found.fun > margin)


def allocation_for(vehicle: Vehicle, rotor_count: int | None = None) -> Allocation:
    """Return allocation data of a vehicle, padded with idle rotors.

    Args:
        vehicle: The airframe as the controller believes it to be.
        rotor_count: Length to pad to; the vehicle's own by default.

    Raises:
        AirworthyError: `rotor_count` is below the vehicle's.
    """
    count = vehicle.rotor_count if rotor_count is None else rotor_count
    if count < vehicle.rotor_count:
        raise AirworthyError(f"{vehicle.name} has {vehicle.rotor_count} rotors; it does not fit a kernel for {count}.")
    inverse = pseudo_inverse(working_effectiveness(vehicle))
    lower, upper = thrust_limits(vehicle)
    # Idle rotors have no column and no range: allocation leaves them at zero.
    pad = count - vehicle.rotor_count
    inverse = np.pad(inverse, ((0, pad), (0, 0)))
    collective, lower, upper = collective_direction(inverse), np.pad(lower, (0, pad)), np.pad(upper, (0, pad))
    return Allocation(
        inverse=tuple(tuple(row) for row in inverse.tolist()),
        collective=tuple(collective.tolist()),
        thrust_min=tuple(lower.tolist()),
        thrust_max=tuple(upper.tolist()),
        spare=spare_for(inverse, lower, upper),
    )
