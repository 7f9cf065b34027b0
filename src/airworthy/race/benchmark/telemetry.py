"""What a pilot may say of its own belief: the one way out of the wall, for pages and films alone.

A pilot with a method `telemetry()` is asked for it once a frame, behind its command; the runner sets what it says beside the
truth, which the pilot never learns. All keys may be left out. A pilot that fails here flies on: what it said is not there, and
is counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayF32, ArrayIndex
from airworthy.pilots.containment import PilotFailure, contained

PLAN = "plan"
"""Points of the path that the pilot is about to fly, (k, 3), world [m]; how many may change."""
PLAN_POINTS = 2000
"""Of a plan, at most; ours, as a bound on what is taken from a stranger."""
KEYS: Mapping[str, str] = {
    "position": "where it believes to be, world [m], (3,)",
    "position_sigma": "standard deviation of that [m], (3,)",
    "gates": "centres of the openings as it believes them, world [m], (passages, 3)",
    "gate_sigma": "standard deviation of each opening's lateral offset from the vehicle [m], (passages,)",
    "nis": "normalised innovation squared of the last frame, per degree of freedom, ()",
    "next": "number of the passage that it aims at, from 0, ()",
    PLAN: "the path that it is about to fly, world [m], (k, 3)",
}
"""Key -> what it is, and its shape for one flight."""


def telemetry_shape(key: str, passages: int) -> tuple[int, ...]:
    """Return the shape of a key for one flight; that of one point for `PLAN`.

    Args:
        key: Of `KEYS`.
        passages: Of the race.
    """
    return {"gates": (passages, 3), "gate_sigma": (passages,), "nis": (), "next": ()}.get(key, (3,))


def checked_telemetry(given: Any, flights: int, passages: int) -> list[dict[str, ArrayF32]]:
    """Return what a pilot said, of each of its flights by key.

    Args:
        given: By key; arrays have a row per flight, which a pilot of one flight may leave out.
        flights: Of the pilot.
        passages: Of the race.

    Raises:
        ValueError: No mapping, an unknown key, another shape, or infinite numbers.
    """
    if not isinstance(given, Mapping):
        raise ValueError(f"telemetry() returned {type(given).__name__}; expected a dict with some of {', '.join(KEYS)}")
    said: list[dict[str, ArrayF32]] = [{} for _ in range(flights)]
    for key, value in given.items():
        if key not in KEYS:
            raise ValueError(f"telemetry() has the key {str(key)[:40]!r}; expected some of {', '.join(KEYS)}")
        rows = np.asarray(value, np.float64)
        shape: tuple[int, ...] = telemetry_shape(key, passages)
        rank = len(shape) + (key == PLAN)
        if rows.ndim == rank and flights == 1:
            rows = rows[None]
        # Whatever its number of points, a plan is points.
        fits = rows.ndim == rank + 1 and len(rows) == flights and rows.shape[rows.ndim - len(shape) :] == shape
        if not fits or (key == PLAN and rows.shape[1] > PLAN_POINTS):
            raise ValueError(f"telemetry() has {key!r} of shape {np.shape(value)} for {flights} flights; it is {KEYS[key]}")
        if np.isinf(rows).any():
            raise ValueError(f"telemetry() has {key!r} with an infinite number; NaN stands for what is not known")
        for flight, row in enumerate(rows):
            said[flight][key] = row.astype(np.float32)
    return said


class Listener:
    """Asks the pilots of a batch what they believe, and counts those that fail.

    Args:
        flights: Of the batch.
        passages: Of the race.
    """

    def __init__(self, flights: int, passages: int):
        self._passages = passages
        self.errors = np.zeros(flights, np.int64)
        """Answers of each flight that could not be used, (flights,)."""
        self.reason = [""] * flights
        """What was wrong with the first of them."""

    def ask(self, pilot: Any, rows: slice, flying: ArrayIndex) -> dict[int, dict[str, ArrayF32]]:
        """Return what a pilot says, by the number of the flight; nothing where it has no telemetry, or fails.

        Args:
            pilot: One of the crew's.
            rows: Its flights.
            flying: Numbers of the flights that are asked for.
        """
        mine = [int(k) for k in flying if rows.start <= k < rows.stop]
        method = getattr(pilot, "telemetry", None)
        if not mine or not callable(method):
            return {}
        try:
            said = contained(lambda: checked_telemetry(method(), rows.stop - rows.start, self._passages))
        except PilotFailure as failure:
            for flight in mine:
                self.errors[flight] += 1
                self.reason[flight] = self.reason[flight] or str(failure)
            return {}
        return {flight: said[flight - rows.start] for flight in mine}


def thinned(points: Array | ArrayF32, most: int) -> ArrayF32:
    """Return points of a path, evenly chosen, with its first and its last.

    Args:
        points: (k, 3).
        most: That are kept.
    """
    chosen = np.unique(np.round(np.linspace(0, len(points) - 1, min(most, len(points)))).astype(int))
    return np.asarray(points[chosen], np.float32)
