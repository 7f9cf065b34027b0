"""Minimum-snap splines with degree-7 segments, solved for the derivatives at the nodes: banded, linear in the number of
segments.

Two neighbouring segments share position, velocity, acceleration and jerk at their node, so continuity costs nothing, and
the normal equations are block tridiagonal. The minimum is then continuous to the sixth derivative wherever a node's
derivatives are free.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError
from airworthy.trajectories.polynomial import derivative_factor, septic

Array = NDArray[np.float64]


@cache
def _gram() -> Array:
    """Integral of squared snap over a unit segment as a quadratic form in (p, v, a, j) at its two ends, shape (8, 8)."""
    columns = [septic(row[:4], row[4:], 1.0) for row in np.eye(8)]
    rows = derivative_factor(8, 4) @ np.array(columns).T
    return rows.T @ rows


def hermite_spline(spans: Array, values: Array, fixed: Array) -> Array:
    """Coefficients of the spline of least integrated squared snap.

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
    """Unit of each node derivative, from the durations beside it, so that unknowns are of like size; shape (n + 1, 4)."""
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
