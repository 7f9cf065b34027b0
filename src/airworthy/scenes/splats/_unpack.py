"""Packed quaternions and ranges, as several containers have them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
SQRT_HALF = np.float32(np.sqrt(0.5))
_OTHERS = np.array([[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]])


def from_smallest_three(largest: NDArray[np.integer], three: NDArray[np.floating]) -> Floats:
    """(n, 4) unit quaternions of the place of the largest component, (n,), and the three others in order, (n, 3).

    The largest is taken as positive, which q and -q being the same rotation allows.
    """
    result = np.zeros((len(three), 4), np.float32)
    rest = np.sqrt(np.maximum(1.0 - np.einsum("ij,ij->i", three, three), 0.0))
    for place, others in enumerate(_OTHERS):
        rows = np.flatnonzero(largest == place)
        result[rows, place] = rest[rows]
        for column, other in enumerate(others):
            result[rows, other] = three[rows, column]
    return result


def smallest_three(rotation: NDArray[np.floating]) -> tuple[NDArray[np.int64], Floats]:
    """Inverse of `from_smallest_three`."""
    largest = np.abs(rotation).argmax(1)
    rows = np.arange(len(rotation))
    sign = np.where(rotation[rows, largest] < 0, -1.0, 1.0)
    three = np.take_along_axis(rotation, _OTHERS[largest], 1) * sign[:, None]
    return largest, three.astype(np.float32)


def wxyz_to_xyzw(rotation: NDArray[np.floating]) -> Floats:
    """(n, 4) with the real part last."""
    return np.ascontiguousarray(rotation[:, [1, 2, 3, 0]], np.float32)
