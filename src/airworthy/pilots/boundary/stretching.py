"""Giving a segment more time where a plan fails its checks: times 1.1, at most ten times, else the plan is refused.

Source: spec/boundary_predictor section 8. Speeds at the gates stay, so that neighbours are untouched and each segment can be
mended by itself. More time does not always help: a segment flown much more slowly than its ends must brake and hurry again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

FACTOR = 1.1
TRIES = 10
"""Most stretches of one segment."""


@dataclass(frozen=True)
class Stretched:
    """What became of a plan's segments, shapes (segments,)."""

    durations: Array
    """[s]"""
    counts: Counts
    """How often each was stretched."""
    kept: NDArray[np.bool_]
    """Whether its checks are proven now."""


def stretch(durations: Array, passes: Callable[[int, Array], bool], factor: float = FACTOR, tries: int = TRIES) -> Stretched:
    """Stretch each segment until it passes.

    Args:
        durations: To begin from [s].
        passes: Whether segment i passes with these durations; it may look at its own only.
        factor: Of one stretch.
        tries: Most stretches of one segment. One that never passes keeps its first duration: no other was better.
    """
    times, counts = durations.copy(), np.zeros(len(durations), np.int64)
    kept = np.zeros(len(durations), dtype=bool)
    for index in range(len(durations)):
        trial = durations.copy()
        for count in range(tries + 1):
            trial[index] = durations[index] * factor**count
            if passes(index, trial):
                times[index], counts[index], kept[index] = trial[index], count, True
                break
        else:
            counts[index] = tries
    return Stretched(times, counts, kept)
