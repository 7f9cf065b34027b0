"""Names of what can become of a flight, and the events that decide it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import unknown_name

OUTCOMES: tuple[str, ...] = (
    "success",
    "success_recovered",
    "partial",
    "collision",
    "off_course",
    "not_at_goal",
    "timeout",
    "out_of_bounds",
    "diverged",
    "pilot_error",
    "aborted",
)
"""Every outcome, spelled the same everywhere, best first."""

SUCCESSES: frozenset[str] = frozenset({"success", "success_recovered"})
"""The outcomes that count as success."""


class FlightStatus(IntEnum):
    """Status code of one recorded step."""

    FLYING = 0
    DIVERGED = 1
    COLLISION = 2
    OUT_OF_BOUNDS = 3


def check_outcome(name: str) -> str:
    """The name itself; raises UnknownNameError where it is not an outcome."""
    if name not in OUTCOMES:
        raise unknown_name("outcome", name, OUTCOMES)
    return name


def first_match(rules: Sequence[tuple[ArrayLike, str]], otherwise: str) -> NDArray[np.str_]:
    """Outcome of each flight: the first rule that holds.

    Args:
        rules: Masks (flights,) and the outcome that each stands for.
        otherwise: Where none holds.
    """
    masks = np.broadcast_arrays(*(np.atleast_1d(np.asarray(mask, dtype=bool)) for mask, _ in rules))
    names = [np.asarray(check_outcome(name)) for _, name in rules]
    return np.select(list(masks), names, default=np.asarray(check_outcome(otherwise))).astype(np.str_)


def collision_events(clearance: ArrayLike, start: float = 0.15, end: float = 0.25) -> NDArray[np.bool_]:
    """Samples at which a collision event starts.

    An event starts when the clearance drops below `start` and ends when it rises above `end`, so that sliding along a wall
    counts once. A sample without a clearance (NaN) changes nothing.

    Args:
        clearance: Distance from the vehicle's centre to the scene over the time of one flight [m], shape (samples,).
        start: The vehicle's radius [m].
        end: Clearance at which it counts as free again [m], not under `start`.
    """
    clearance = np.asarray(clearance, dtype=np.float64)
    # +1 where an event must be on, -1 where it must be off, 0 in the band between, which keeps what was before.
    mark = np.where(clearance < start, 1, np.where(clearance > end, -1, 0))
    last = np.maximum.accumulate(np.where(mark != 0, np.arange(mark.size), -1)) if mark.size else mark
    inside = np.where(last >= 0, mark[last] == 1, False) if mark.size else np.zeros(0, dtype=bool)
    return inside & ~np.concatenate(([False], inside[:-1]))[: inside.size]
