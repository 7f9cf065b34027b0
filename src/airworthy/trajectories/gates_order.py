"""Which passages count: the longest common subsequence of what happened and what was asked, earliest passages first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["match_in_order"]


def match_in_order(wanted: Sequence[Any], seen: Sequence[Any]) -> list[tuple[int, int]]:
    """Pairs (place in `wanted`, place in `seen`), both rising, as many as there can be.

    Args:
        wanted: Gates of the course in order, or numbers that stand for them.
        seen: Gates that were passed, alike, in order of time.
    """
    if list(seen) == list(wanted):
        return [(k, k) for k in range(len(wanted))]
    longest = np.zeros((len(wanted) + 1, len(seen) + 1), dtype=np.int64)
    for i in range(len(wanted) - 1, -1, -1):
        for j in range(len(seen) - 1, -1, -1):
            same = longest[i + 1, j + 1] + 1 if wanted[i] == seen[j] else 0
            longest[i, j] = max(same, longest[i + 1, j], longest[i, j + 1])
    pairs, i, j = [], 0, 0
    while i < len(wanted) and j < len(seen):
        if wanted[i] == seen[j] and longest[i, j] == longest[i + 1, j + 1] + 1:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif longest[i, j + 1] == longest[i, j]:
            j += 1
        else:
            i += 1
    return pairs
