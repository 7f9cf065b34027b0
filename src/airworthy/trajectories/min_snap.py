"""Minimum-snap splines with degree-7 segments, solved for the derivatives at the nodes: banded, linear in the number of
segments.

Two neighbouring segments share position, velocity, acceleration and jerk at their node, so continuity costs nothing, and
the normal equations are block tridiagonal. The minimum is then continuous to the sixth derivative wherever a node's
derivatives are free.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.trajectories.polynomial import basis_row, derivative_factor, septic
from airworthy.trajectories.trajectory import Trajectory


class IllConditionedError(AirworthyError):
    """Durations so different that double precision cannot find the minimum."""


@cache
def _gram() -> Array:
    """Integral of squared snap over a unit segment as a quadratic form in (p, v, a, j) at its two ends, shape (8, 8)."""
    columns = [septic(row[:4], row[4:], 1.0) for row in np.eye(8)]
    rows = derivative_factor(8, 4) @ np.array(columns).T
    return rows.T @ rows


def hermite_spline(spans: Array, values: Array, fixed: Array) -> Array:
    """Return coefficients of the spline of least integrated squared snap.

    Args:
        spans: Segment durations [s], shape (n,).
        values: Position, velocity, acceleration, jerk at the nodes; those not fixed are ignored, shape (n + 1, 4, axes).
        fixed: Which of them are prescribed, the same for all axes, shape (n + 1, 4).

    Returns:
        Ascending coefficients of normalised time, shape (n, axes, 8).

    Raises:
        AirworthyError: Too little is fixed for the minimum to be unique.
    """
    from scipy.linalg import LinAlgError, cho_solve_banded, cholesky_banded

    spans = np.asarray(spans, dtype=np.float64)
    node_scale = _node_scale(spans)
    known = np.where(fixed[..., None], values, 0.0) / node_scale[:, :, None]
    blocks = _blocks(spans, node_scale)
    band = _banded(blocks, fixed)
    try:
        factor = cholesky_banded(band)
    except LinAlgError as error:
        if fixed[:, 0].all() and fixed[0, 1] and fixed[-1, 1]:  # then the minimum is unique, and it is rounding that fails
            ratio = float(np.max(spans) / np.min(spans))
            raise IllConditionedError(
                f"The longest segment lasts {ratio:.3g} times as long as the shortest: too different for one spline."
            ) from error
        raise AirworthyError("Too little is fixed for one minimum: fix positions, and velocity at both ends.") from error
    unknown = known.reshape(-1, known.shape[-1])
    free = np.logical_not(fixed.reshape(-1))
    # A second pass removes what rounding in the normal equations left: they square the condition number.
    for _ in range(2):
        gradient = _times(blocks, unknown) * free[:, None]
        unknown = unknown - cho_solve_banded((factor, False), gradient)
    nodes = np.moveaxis(unknown.reshape(known.shape) * node_scale[:, :, None], 2, 1)
    return septic(nodes[:-1], nodes[1:], spans[:, None])


def _node_scale(spans: Array) -> Array:
    """Return unit of each node derivative, from the durations beside it, so that unknowns are of like size; shape (n + 1,
    4).
    """
    padded = np.concatenate((spans[:1], spans, spans[-1:]))
    local = np.sqrt(padded[:-1] * padded[1:])
    return local[:, None] ** -np.arange(4.0)


def _blocks(spans: Array, node_scale: Array) -> Array:
    """Quadratic form of each segment in its scaled node derivatives, shape (n, 8, 8)."""
    powers = spans[:, None] ** np.arange(4.0)
    units = np.concatenate((powers * node_scale[:-1], powers * node_scale[1:]), axis=1)
    shares = (spans / np.max(spans)) ** -7.0
    return shares[:, None, None] * units[:, :, None] * _gram() * units[:, None, :]


def _banded(blocks: Array, fixed: Array) -> Array:
    """Upper band of the assembled form, fixed rows and columns replaced by the identity; shape (8, 4 (n + 1))."""
    size = 4 * (len(blocks) + 1)
    band = np.zeros((8, size))
    for row in range(8):
        for column in range(row, 8):
            band[7 - column + row, column : size - (8 - column) + 1 : 4] += blocks[:, row, column]
    known = fixed.reshape(-1)
    for offset in range(8):
        band[7 - offset, known] = 0.0
        if offset:
            band[7 - offset, offset:][known[:-offset]] = 0.0
    band[7, known] = 1.0
    return band


def _times(blocks: Array, nodes: Array) -> Array:
    """Assembled form times node derivatives (4 (n + 1), axes)."""
    by_node = nodes.reshape(-1, 4, nodes.shape[-1])
    product = blocks @ np.concatenate((by_node[:-1], by_node[1:]), axis=1)
    result = np.zeros_like(by_node)
    result[:-1] += product[:, :4]
    result[1:] += product[:, 4:]
    return result.reshape(nodes.shape)


# -----------------------------------------------------------------------------------------------------------------------------
# Minimum-snap trajectories through keyframes, any derivative fixed or free: the exact solution of an equality-constrained
# QP.
#
# Source: spec/sousvide section 3 (Mellinger & Kumar 2011). Integrated squared snap of x, y, z and squared acceleration of
# yaw, each axis by itself. Every segment has its own normalised time, and the constraints are removed through an orthonormal
# basis of their null space, so that the solve stays well conditioned where the textbook KKT matrix does not.

Derivatives = tuple[float | None, ...]

# The papers' own keyframe courses have 6 (spec/sousvide section 3), gates 8 (spec/boundary_predictor section 3).
COEFFICIENTS = 8
"""Degree 7: continuous to the sixth derivative where nothing else is asked."""
UNKNOWNS_MAX = 1600
"""Most coefficients per axis of the dense solve, which takes about 4 s then; longer paths need `hermite_spline`'s
conditions."""
# Source: spec/sousvide section 3, [R] FiGS src/tsplines/min_snap.py: 4th derivative of position, 2nd of yaw.
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
    """Return the trajectory through keyframes with the least integrated squared snap (yaw: squared acceleration).

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
    # The banded solve takes time in proportion to the segments, the dense one to their third power.
    if count == COEFFICIENTS and order == _SPACE_ORDER and _fits_hermite(fixed):
        return _through_hermite(spans, fixed)
    if count == COEFFICIENTS and all(len(d) == 4 and None not in d for d in fixed):
        # Both ends of every piece give all of its coefficients: nothing is left to minimise.
        nodes = np.array(fixed, dtype=np.float64)
        return septic(nodes[:-1], nodes[1:], spans)
    return solve_dense(spans, fixed, count, order, axis)


def solve_dense(spans: Array, fixed: Sequence[Derivatives], count: int, order: int, axis: str = "an axis") -> Array:
    """Return coefficients of one axis in normalised time, shape (segments, count), whatever is fixed or free.

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
    """Tell whether the banded solve answers the same question, and is positive definite."""
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
        # Rows of unit size, so that the rank below does not depend on durations.
        size = max(float(np.max(np.abs(row))), 1.0)
        rows.append(row / size)
        right.append(value / size)

    for node, derivatives in enumerate(fixed):
        for d, value in enumerate(derivatives):
            if value is None and 0 < node < last:
                # Derivatives by normalised time become those by seconds: T^d of one side over that of the other.
                ratio = (spans[node] / spans[node - 1]) ** d
                add([(node - 1, at_end[d] * ratio), (node, -at_start[d])], 0.0)
            if value is not None and node > 0:
                add([(node - 1, at_end[d])], value * spans[node - 1] ** d)
            if value is not None and node < last:
                add([(node, at_start[d])], value * spans[node] ** d)
    return np.reshape(rows, (-1, last * count)), np.array(right)


def _affine(matrix: Array, right: Array, axis: str) -> tuple[Array, Array]:
    """Return all solutions of A c = b as particular + null y, `null` with orthonormal columns."""
    from scipy.linalg import qr, solve_triangular

    if len(matrix) == 0:
        return np.zeros(matrix.shape[1]), np.eye(matrix.shape[1])
    q, r, order = qr(matrix.T, pivoting=True)
    diagonal = np.abs(np.diag(r))
    # Ours: far above rounding (1e-16), far below conditions that say something of their own.
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
