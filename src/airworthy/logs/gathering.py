"""Records of one layout that lie scattered over a file, put side by side without a copy per record."""

from __future__ import annotations

from array import array

import numpy as np

from airworthy.core.arrays import ArrayAny

_ROWS = 4096
"""Ours: records that are gathered at once, so that indices stay small beside the file."""


def gathered(data: bytes | memoryview, offsets: array, row: np.dtype) -> ArrayAny:
    """Return records as one structured array, (n,).

    Args:
        data: The file.
        offsets: First byte of each record, all of them within the file.
        row: Packed layout of a record.
    """
    source = np.frombuffer(data, np.uint8)
    starts = np.frombuffer(offsets, np.int64) if len(offsets) else np.zeros(0, np.int64)
    out = np.empty((len(starts), row.itemsize), np.uint8)
    within = np.arange(row.itemsize)
    rows = max(1, min(_ROWS, (1 << 22) // max(row.itemsize, 1)))
    for first in range(0, len(starts), rows):
        out[first : first + rows] = source[starts[first : first + rows, None] + within]
    return out.view(row)[:, 0] if row.itemsize else np.zeros(len(starts), row)
