"""Small symmetric systems in closed form: L D L^T without square roots or branches, as kernels and NumPy trace it."""

from __future__ import annotations

from airworthy.core.arrays import Scalar

__all__ = ["factored", "solved"]

Rows = list[list[Scalar]]


def factored(matrix: Rows, held: int = 0) -> tuple[Rows, list[Scalar]]:
    """Return L, whose diagonal of ones is not written, and one over D, of a positive definite matrix.

    Args:
        matrix: Its lower half, (n, n).
        held: So many of the first unknowns stay 0: their rows take no part.
    """
    n = len(matrix)
    lower: Rows = [[0.0] * n for _ in range(n)]
    kept: Rows = [[0.0] * n for _ in range(n)]
    inverse: list[Scalar] = [0.0] * held
    for j in range(held, n):
        pivot = matrix[j][j]
        for k in range(j):
            pivot = pivot - lower[j][k] * kept[j][k]
        inverse.append(1.0 / pivot)
        for i in range(j + 1, n):
            left = matrix[i][j]
            for k in range(j):
                left = left - lower[i][k] * kept[j][k]
            kept[i][j] = left
            lower[i][j] = left * inverse[j]
    return lower, inverse


def solved(lower: Rows, inverse: list[Scalar], right: list[Scalar]) -> list[Scalar]:
    """Return x of L D L^T x = right.

    Args:
        lower: L.
        inverse: One over D.
        right: (n,).
    """
    n, x = len(right), list(right)
    for i in range(n):
        for k in range(i):
            x[i] = x[i] - lower[i][k] * x[k]
    x = [value * inv for value, inv in zip(x, inverse, strict=True)]
    for i in range(n - 2, -1, -1):
        for k in range(i + 1, n):
            x[i] = x[i] - lower[k][i] * x[k]
    return x
