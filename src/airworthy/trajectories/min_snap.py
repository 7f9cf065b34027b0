"""Minimum-snap trajectories through keyframes, any derivative fixed or free: the exact solution of an equality-constrained QP.

Source: spec/sousvide section 3 (Mellinger & Kumar 2011). Integrated squared snap of x, y, z and squared acceleration of
yaw, each axis by itself. Every segment has its own normalised time, and the constraints are removed through an orthonormal
basis of their null space, so that the solve stays well conditioned where the textbook KKT matrix does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError
from airworthy.trajectories.hermite import hermite_spline
from airworthy.trajectories.polynomial import basis_row, derivative_factor
from airworthy.trajectories.trajectory import Trajectory

Array = NDArray[np.float64]
Derivatives = tuple[float | None, ...]

COEFFICIENTS = 8
"""Degree 7: continuous to the sixth derivative where nothing else is asked."""
UNKNOWNS_MAX = 1600
"""Most coefficients per axis of the dense solve, which takes about 4 s then; longer paths need `hermite_spline`'s
conditions."""
_SPACE_ORDER, _YAW_ORDER = 4, 2
_AXES = ("x", "y", "z", "yaw")


@dataclass(frozen=True)
class Keyframe:
    """What is prescribed at one time: per flat output its value and derivatives, None where free but continuous.

    Derivatives that are not listed are left alone: unconstrained at the first and last keyframe, and free to jump inside.
    """

    time: float
    """[s]"""
    x: Derivatives = (None, None, None, None)
    """[m], [m/s], [m/s^2], [m/s^3]; at most four."""
    y: Derivatives = (None, None, None, None)
    z: Derivatives = (None, None, None, None)
    yaw: Derivatives = (None, None, None, None)
    """[rad] and time derivatives."""
    name: str = ""


def minimum_snap(keyframes: Sequence[Keyframe], coefficient_count: int = COEFFICIENTS) -> Trajectory:
    """Trajectory through keyframes with the least integrated squared snap (yaw: squared acceleration).

    Where the minimum is not unique (too little is prescribed), the one with the least lower derivatives is taken, highest
    first.

    Args:
        keyframes: At least two, times increasing from 0.
        coefficient_count: Polynomial coefficients per segment and axis, 2 to 12.

    Raises:
        AirworthyError: Times that do not increase from 0, values that are not finite, constraints that contradict each other or
            that polynomials of this degree cannot meet.
    """
    times = _check(keyframes, coefficient_count)
    pieces = [_solve_axis(times, [getattr(k, axis) for k in keyframes], coefficient_count, axis) for axis in _AXES]
    return Trajectory(times, np.stack(pieces[:3], axis=1), times, pieces[3])


def _check(keyframes: Sequence[Keyframe], count: int) -> Array:
    if len(keyframes) < 2:
        raise AirworthyError(f"A trajectory needs at least 2 keyframes, but {len(keyframes)} arrived.")
    if not 2 <= count <= 12:
        raise AirworthyError(f"A segment can have 2 to 12 coefficients, but {count!r} were asked for.")
    times = np.array([k.time for k in keyframes], dtype=np.float64)
    if not np.all(np.isfinite(times)) or times[0] != 0.0 or np.any(np.diff(times) <= 0.0):
        raise AirworthyError(f"Keyframe times must increase from 0 s, but are {', '.join(f'{t:g}' for t in times[:8])}.")
    for keyframe in keyframes:
        for axis in _AXES:
            values = getattr(keyframe, axis)
            if len(values) > 4 or not all(v is None or np.isfinite(v) for v in values):
                raise AirworthyError(f"Keyframe at {keyframe.time:g} s: {axis} must hold at most 4 finite numbers or None.")
    return times


def _solve_axis(times: Array, fixed: Sequence[Derivatives], count: int, axis: str) -> Array:
    """Coefficients of one axis, shape (segments, count)."""
    order = _YAW_ORDER if axis == "yaw" else _SPACE_ORDER
    spans = np.diff(times)
    if count == COEFFICIENTS and order == _SPACE_ORDER and _fits_hermite(fixed):
        return _through_hermite(spans, fixed)
    return solve_dense(spans, fixed, count, order, axis)


def solve_dense(spans: Array, fixed: Sequence[Derivatives], count: int, order: int, axis: str = "an axis") -> Array:
    """Coefficients of one axis in normalised time, shape (segments, count), whatever is fixed or free.

    Args:
        spans: Segment durations [s], shape (segments,).
        fixed: Per keyframe the derivatives prescribed, see `Keyframe`.
        count: Coefficients per segment.
        order: Derivative whose integrated square is least.
        axis: What to call it in messages.
    """
    if len(spans) * count > UNKNOWNS_MAX:
        raise AirworthyError(
            f"{len(spans)} segments of {count} coefficients are more than the {UNKNOWNS_MAX} unknowns solved at once: "
            "prescribe every position, and velocity at both ends, or split the path."
        )
    matrix, right = _constraints(spans, fixed, count)
    particular, null = _affine(matrix, right, axis)
    return _least(particular, null, spans, count, order).reshape(len(spans), count)


def _fits_hermite(fixed: Sequence[Derivatives]) -> bool:
    """Whether the banded solve answers the same question, and is positive definite."""
    ends = all(len(d) >= 2 and d[1] is not None for d in (fixed[0], fixed[-1]))
    return ends and all(len(d) >= 1 and d[0] is not None for d in fixed) and all(len(d) == 4 for d in fixed[1:-1])


def _through_hermite(spans: Array, fixed: Sequence[Derivatives]) -> Array:
    padded = [[*d, *[None] * (4 - len(d))] for d in fixed]
    known = np.array([[v is not None for v in d] for d in padded])
    values = np.array([[0.0 if v is None else v for v in d] for d in padded])
    return hermite_spline(spans, values[:, :, None], known)[:, 0]


def _constraints(spans: Array, fixed: Sequence[Derivatives], count: int) -> tuple[Array, Array]:
    """Rows A and right side b of A c = b, in normalised time, each row scaled to about unit size."""
    rows: list[Array] = []
    right: list[float] = []
    last = len(spans)
    at_start = [basis_row(count, d, 0.0) for d in range(4)]
    at_end = [basis_row(count, d, 1.0) for d in range(4)]

    def add(parts: list[tuple[int, Array]], value: float) -> None:
        row = np.zeros(last * count)
        for segment, entries in parts:
            row[segment * count : (segment + 1) * count] += entries
        size = max(float(np.max(np.abs(row))), 1.0)
        rows.append(row / size)
        right.append(value / size)

    for node, derivatives in enumerate(fixed):
        for d, value in enumerate(derivatives):
            if value is None and 0 < node < last:
                ratio = (spans[node] / spans[node - 1]) ** d
                add([(node - 1, at_end[d] * ratio), (node, -at_start[d])], 0.0)
            if value is not None and node > 0:
                add([(node - 1, at_end[d])], value * spans[node - 1] ** d)
            if value is not None and node < last:
                add([(node, at_start[d])], value * spans[node] ** d)
    return np.reshape(rows, (-1, last * count)), np.array(right)


def _affine(matrix: Array, right: Array, axis: str) -> tuple[Array, Array]:
    """All solutions of A c = b as particular + null y, `null` with orthonormal columns."""
    from scipy.linalg import qr, solve_triangular

    if len(matrix) == 0:
        return np.zeros(matrix.shape[1]), np.eye(matrix.shape[1])
    q, r, order = qr(matrix.T, pivoting=True)
    diagonal = np.abs(np.diag(r))
    rank = int(np.sum(diagonal > 1e-11 * max(diagonal[0], 1.0)))
    coordinates = solve_triangular(r[:rank, :rank], right[order[:rank]], trans="T")
    particular = q[:, :rank] @ coordinates
    residual = float(np.max(np.abs(matrix @ particular - right)))
    if residual > 1e-8 * (1.0 + float(np.max(np.abs(right)))):
        raise AirworthyError(
            f"The keyframes' conditions on {axis} contradict each other (left over: {residual:.2g}): "
            "free a derivative or raise the number of coefficients."
        )
    return particular, q[:, rank:]


def _least(particular: Array, null: Array, spans: Array, count: int, order: int) -> Array:
    """Minimise the integral of the squared derivative; what that leaves open is closed by lower derivatives in turn."""
    solution = particular
    for derivative in range(order, -1, -1):
        if null.shape[1] == 0:
            break
        factor = derivative_factor(count, derivative)
        # The integral over a segment of duration T carries T^(1 - 2 d).
        weights = (spans / np.max(spans)) ** (0.5 - derivative)
        cost = _by_segment(factor, weights, null)
        u, sizes, v = np.linalg.svd(cost, full_matrices=True)
        rank = int(np.sum(sizes > 1e-11 * max(float(sizes[0]), 1e-300)))
        gap = _by_segment(factor, weights, solution[:, None])[:, 0]
        solution = solution - null @ (v[:rank].T @ ((u[:, :rank].T @ gap) / sizes[:rank]))
        null = null @ v[rank:].T
    return solution


def _by_segment(factor: Array, weights: Array, columns: Array) -> Array:
    """Block-diagonal factor times columns, shape (segments * count, columns)."""
    blocks = columns.reshape(len(weights), factor.shape[1], -1)
    return (weights[:, None, None] * (factor @ blocks)).reshape(columns.shape[0], -1)
