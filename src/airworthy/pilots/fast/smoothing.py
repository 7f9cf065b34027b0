"""Control points of cubic B-splines that are smooth and near to what is wanted: a banded linear system, solved exactly.

Bits do not depend on how many threads linear algebra uses: the matrices are made of whole numbers, and a system of so narrow a
band is solved by one thread.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solveh_banded

__all__ = ["smoothed"]

Array = NDArray[np.float64]

_BAND = 3
"""Side diagonals: third differences reach so far."""


def smoothed(control: Array, wanted: Array, stencil: tuple[int, ...], first: int, *, smooth: float, weight: float) -> Array:
    """Minimise smooth * sum |third differences|^2 + weight * sum |c_i - w_i|^2 over all but the first and last three points.

    c_i is the mean of control points i + first and following with the whole numbers of `stencil` as weights: (1,) is the point
    itself, (1, 4, 1) the curve at a knot.

    Args:
        control: (N, d); the three at each end stay.
        wanted: w_i, (m, d).
        stencil: At most four numbers.
        first: Control point at which the mean of w_0 begins.
        smooth, weight: See above.
    """
    count, m = len(control), len(wanted)
    if count <= 6:
        return control.copy()
    bends, means = _grams(count, stencil, first, m)
    scale = float(sum(stencil))
    gram = smooth * bends + (weight / (scale * scale)) * means
    right = np.zeros_like(control)
    for j, share in enumerate(stencil):
        right[first + j : first + j + m] += weight / scale * share * wanted
    for end in (0, 1, 2, -3, -2, -1):
        right -= gram[:, end, None] * control[end]
    free, result = gram[3:-3, 3:-3], control.copy()
    band = np.zeros((_BAND + 1, count - 6))
    for k in range(min(_BAND + 1, count - 6)):
        band[_BAND - k, k:] = np.diagonal(free, k)
    result[3:-3] = solveh_banded(band, right[3:-3])
    return result


@lru_cache(maxsize=512)
def _grams(count: int, stencil: tuple[int, ...], first: int, m: int) -> tuple[Array, Array]:
    """Matrices (N, N) of whole numbers: of the third differences, and of the means times their scale."""
    return _gram(count, (-1, 3, -3, 1), 0, count - 3), _gram(count, stencil, first, m)


def _gram(count: int, stencil: tuple[int, ...], first: int, m: int) -> Array:
    rows = np.zeros((m, count))
    for j, share in enumerate(stencil):
        rows[np.arange(m), first + j + np.arange(m)] = share
    return rows.T @ rows
