"""Types of arrays and of traced numbers, by what lies in them.

Shapes stand in the docstrings of who takes or returns one; the first axis is the environment. NumPy's own `ArrayLike` and
`NDArray` are taken from here, too: one import for all of these.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "Array",
    "ArrayAny",
    "ArrayBool",
    "ArrayF32",
    "ArrayFloat",
    "ArrayIndex",
    "ArrayInt",
    "ArrayLike",
    "ArrayU8",
    "ArrayU32",
    "NDArray",
    "Scalar",
    "Vector",
    "aligned_zeros",
]

Array = NDArray[np.float64]
"""Double precision: records, twins, everything that is computed once."""
ArrayF32 = NDArray[np.float32]
"""Single precision: what kernels read and write, images."""
ArrayFloat = NDArray[np.floating[Any]]
"""Either precision."""
ArrayInt = NDArray[np.int64]
"""Counts, steps, identities."""
ArrayIndex = NDArray[np.intp]
"""Places in another array."""
ArrayBool = NDArray[np.bool_]
ArrayU8 = NDArray[np.uint8]
"""Images of 8 bits, bytes."""
ArrayU32 = NDArray[np.uint32]
"""Words of random numbers and of packed kernels."""
ArrayAny = NDArray[Any]
Scalar = Any
"""One number of an equation: a float, an array of them, a traced value or a dual number."""
Vector = tuple[Any, ...]
"""Several such numbers."""

_LINE = 64
"""Bytes of a cache line, and of sixteen lanes of float32."""


def aligned_zeros(shape: int | tuple[int, ...], dtype: Any = np.float32) -> ArrayAny:
    """Return zeros that begin at a cache line.

    NumPy's own begin at 16 bytes: every vector of sixteen lanes that a kernel loads would lie across two lines.

    Args:
        shape: Of the array.
        dtype: Of its numbers.
    """
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + _LINE, np.uint8)
    first = -raw.ctypes.data % _LINE
    return raw[first : first + size].view(dtype).reshape(shape)
