"""Which of the corners seen in a frame is which, where names are exchanged: the assignment of least Mahalanobis distances.

The names reported are those of the corners that are seen, each once, so corners and pixels are matched one to one (Kuhn 1955;
SciPy's solver). A gate of which only the place is unknown moves all its corners alike, and the sum of squares of a one-to-one
match of its own corners does not care for a common shift: it is matched however far off it stands.
"""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import Array, ArrayIndex

__all__ = ["match_corners"]

_FAR = 1e6
"""Largest squared distance that counts: behind it all are alike, and sums keep their digits."""


def match_corners(expected: Array, spread: Array, seen: Array) -> ArrayIndex:
    """Return for each corner the number of its pixel, (m,).

    Args:
        expected: Where corners should be seen [px], (m, 2).
        spread: Covariance of the innovation of each [px^2], (m, 2, 2).
        seen: Where something was seen [px], (m, 2), in any order.
    """
    from scipy.optimize import linear_sum_assignment

    off = seen[None] - expected[:, None]
    distance = np.einsum("ija,iab,ijb->ij", off, np.linalg.inv(spread), off)
    _, order = linear_sum_assignment(np.minimum(distance, _FAR))
    return np.asarray(order)
