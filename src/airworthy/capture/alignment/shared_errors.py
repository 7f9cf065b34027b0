"""Least squares where observations share errors: what they share is estimated along with the fit, held by how large it may be.

With shared errors of independent ways, T d with d of deviation 1, the normal equations of numbers x and d together give the
fit by the full covariance N + T T' (generalised least squares, Aitken, 1936; mixed model equations, Henderson, 1950) and need
no matrix as large as the observations squared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayIndex

__all__ = ["CLUSTERS_MIN", "SharedFit", "left_out", "shared_fit"]

CLUSTERS_MIN = 5
"""Groups from which on their disagreement says how sure a fit is; of fewer it is no measure."""


@dataclass(frozen=True, eq=False)
class SharedFit:
    """One step of a fit, and how sure it is."""

    step: Array
    """(p,) by which the numbers move."""
    own: Array
    """(m,) what observations are off by after it, without what they share."""
    noise: float
    """Deviation of `own` against the stated one, with the degrees of freedom that the fit took."""
    freedom: float
    """Degrees of freedom that are left; what is shared takes some, and less where it is held."""
    by_noise: Array
    """(p, p) covariance of the numbers by the observations' own errors, and by what was expected of the numbers."""
    by_ways: Array
    """(p, p) ... by the shared errors."""
    rows: Array
    """(m, p + q) slopes by numbers and ways, in deviations."""
    errors: Array
    """(m,) `own` in deviations."""
    inverse: Array
    """(p + q,) squared: of the normal matrix."""


def shared_fit(residual: Array, slope: Array, ways: Array, weight: Array, expected: tuple[Array, Array]) -> SharedFit:
    """Return the step of Gauss and Newton under shared errors.

    Args:
        residual: (m,) of the observations, as the numbers are.
        slope: (m, p) by the numbers.
        ways: (m, q) by the shared errors, each of deviation 1.
        weight: (m,) of the observations: one over the variance of their own errors.
        expected: (p,) step that each number is expected to make, and one over its variance (0: nothing is expected).
    """
    p, root = slope.shape[1], np.sqrt(weight)
    rows = np.concatenate((slope, ways), axis=1) * root[:, None]
    held = np.concatenate((expected[1], np.ones(ways.shape[1])))
    normal = rows.T @ rows + np.diag(held)
    # Numbers of all sizes: brought to a diagonal of ones before it is inverted.
    size = np.sqrt(np.maximum(np.diagonal(normal), 1e-300))
    inverse = np.linalg.pinv(normal / np.outer(size, size), rcond=1e-14, hermitian=True) / np.outer(size, size)
    pull = -rows.T @ (residual * root)
    pull[:p] += expected[1] * expected[0]
    step = inverse @ pull
    errors = residual * root + rows @ step
    freedom = len(residual) - float((inverse * (rows.T @ rows)).sum())
    gain = inverse[:p] @ (rows.T @ rows[:, p:])
    by_ways = gain @ gain.T
    noise = float(np.sqrt(errors @ errors / max(freedom, 1e-9)))
    own = errors / root
    return SharedFit(step[:p], own, noise, freedom, inverse[:p, :p] - by_ways, by_ways, rows, errors, inverse)


def left_out(rows: Array, errors: Array, inverse: Array, group: ArrayIndex) -> tuple[Array | None, int]:
    """Return the covariance of a fit's numbers from leaving out one group of rows after the other (the jackknife to first
    order, MacKinnon and White, 1985, HC3 for groups), None of too few, and the number of groups.

    Args:
        rows: (m, p) slopes.
        errors: (m,) what is left.
        inverse: (p, p) of the normal matrix.
        group: (m,) number of each row's.
    """
    numbers = np.unique(group)
    if len(numbers) < CLUSTERS_MIN:
        return None, len(numbers)
    moves = []
    for number in numbers:
        part, error = rows[group == number], errors[group == number]
        # What the fit would move by without this group.
        rest = np.eye(len(error)) - part @ inverse @ part.T
        moves.append(inverse @ (part.T @ np.linalg.lstsq(rest, error, rcond=1e-9)[0]))
    moved = np.array(moves)
    return (len(numbers) - 1) / len(numbers) * moved.T @ moved, len(numbers)
