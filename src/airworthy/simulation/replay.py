"""Plays recorded flights back: poses at any time, as external pose streams are consumed."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError
from airworthy.core.frames import slerp
from airworthy.simulation.flights import FlightTable

Array = NDArray[np.float64]


class Replay:
    """Poses of one recorded flight between its rows.

    Args:
        table: Recorded flights.
        env: Which of them.

    Raises:
        AirworthyError: If the flight has no rows.
    """

    def __init__(self, table: FlightTable, env: int):
        flight = table.flight(env)
        self.t = np.array(flight.t)
        """Times of the rows [s], shape (rows,)."""
        self.position = flight.vector("position").astype(np.float64)
        """World [m], shape (rows, 3)."""
        self.attitude = flight.vector("attitude").astype(np.float64)
        """Quaternions x, y, z, w, shape (rows, 4)."""
        if self.t.size == 0:
            raise AirworthyError(f"Environment {env} has no recorded rows to play back.")

    @property
    def duration(self) -> float:
        """Time between the first row and the last [s]."""
        return float(self.t[-1] - self.t[0])

    def pose(self, t: ArrayLike) -> tuple[Array, Array]:
        """Position (..., 3) and attitude (..., 4) at times (...): linear and spherical between rows, held outside them."""
        times = np.asarray(t, float)
        last = max(self.t.size - 2, 0)
        index = np.clip(np.searchsorted(self.t, times, side="right") - 1, 0, last)
        after = np.minimum(index + 1, self.t.size - 1)
        span = self.t[after] - self.t[index]
        share = np.clip((times - self.t[index]) / np.where(span > 0.0, span, 1.0), 0.0, 1.0)
        position = self.position[index] + share[..., None] * (self.position[after] - self.position[index])
        return position, slerp(self.attitude[index], self.attitude[after], share)
