"""One recorded flight as a function of time, for cameras that follow it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from airworthy.core import frames
from airworthy.core.errors import AirworthyError
from airworthy.simulation import FlightTable

__all__ = ["FlightTrack"]

Floats = NDArray[np.float64]

LINGER = 1.0
"""How long a film goes on after a flight has ended before its time [s]."""
_JUMP = 3.0
"""A vehicle that moves more than this many times what its speed allows was put somewhere else (it started again)."""
_JUMP_MIN = 0.3
"""And at least this far [m]."""


@dataclass(frozen=True, eq=False)
class FlightTrack:
    """Rows of one environment in order of time."""

    times: Floats
    """(n,) [s], rising."""
    position: Floats
    """(n, 3) of the centre of mass, world [m]."""
    velocity: Floats
    """(n, 3) world [m/s]; zero where the flight has ended."""
    attitude: Floats
    """(n, 4) body to world, signs continuous."""
    jumps: NDArray[np.bool_]
    """(n - 1,) whether the vehicle was put somewhere else between a row and the next."""

    @classmethod
    def of(cls, table: FlightTable, env: int | None = None) -> FlightTrack:
        """The flight of an environment; None: of the first that the table has.

        Raises:
            AirworthyError: The table has no such flight, or no finite pose of it.
        """
        if not table.env_count:
            raise AirworthyError("There is no flight to film: the table has no rows.")
        number = int(table.envs[0]) if env is None else env
        one = table.flight(number)
        where, turned, speed = (one.vector(name).astype(np.float64) for name in ("position", "attitude", "velocity"))
        keep = np.isfinite(where).all(1) & np.isfinite(turned).all(1) & np.isfinite(speed).all(1)
        flying = np.flatnonzero(keep & (one.status == 0))
        end = one.t[flying[-1]] if len(flying) else -np.inf
        keep &= one.t <= end + LINGER + 1e-9
        if not keep.any():
            raise AirworthyError(f"The flight of environment {number} has no finite pose to film.")
        speed = np.where((one.status == 0)[:, None], speed, 0.0)[keep]
        times, where = one.t[keep].astype(np.float64), where[keep]
        return cls(times, where, speed, frames.continuous(frames.normalize(turned[keep])), _jumps(times, where, speed))

    @property
    def duration(self) -> float:
        """From the first row to the last [s]."""
        return float(self.times[-1] - self.times[0])

    def frame_times(self, rate: float) -> Floats:
        """Times of the frames of a film [s]: every 1 / rate from the first row on."""
        return self.times[0] + np.arange(int(np.floor(self.duration * rate + 1e-6)) + 1) / rate

    def takes(self, times: Floats) -> list[slice]:
        """Runs of frames between which the vehicle was put somewhere else."""
        row = np.clip(np.searchsorted(self.times, times, side="right") - 1, 0, len(self.times) - 1)
        past = np.concatenate([[0], np.cumsum(self.jumps)])[row]
        cuts = [0, *(np.flatnonzero(np.diff(past)) + 1).tolist(), len(times)]
        return [slice(first, last) for first, last in pairwise(cuts)]

    def pose(self, times: Floats) -> tuple[Floats, Floats, Floats]:
        """Position (k, 3), attitude (k, 4) and velocity (k, 3) at times (k,) [s], held before the first row and after the last.

        Positions are cubic between rows, through their velocities (Hermite); attitudes turn at constant speed on the
        shortest way. Where the vehicle was put somewhere else it stays until it is there.
        """
        if len(self.times) == 1:
            only = np.zeros(len(times), int)
            return self.position[only], self.attitude[only], self.velocity[only]
        row = np.clip(np.searchsorted(self.times, times, side="right") - 1, 0, len(self.times) - 2)
        span = self.times[row + 1] - self.times[row]
        share = np.clip((times - self.times[row]) / span, 0.0, 1.0)
        share = np.where(self.jumps[row], np.floor(share), share)[:, None]
        position = _hermite(self.position[row], self.velocity[row], self.position[row + 1], self.velocity[row + 1], span, share)
        attitude = frames.slerp(self.attitude[row], self.attitude[row + 1], share[:, 0])
        return position, attitude, (1.0 - share) * self.velocity[row] + share * self.velocity[row + 1]


def _hermite(p0: Floats, v0: Floats, p1: Floats, v1: Floats, span: Floats, s: Floats) -> Floats:
    """Cubic with given positions and velocities at both ends of spans (k,) [s], at shares s (k, 1)."""
    h = span[:, None]
    return np.asarray(
        (1.0 + 2.0 * s) * (1.0 - s) ** 2 * p0
        + s * (1.0 - s) ** 2 * h * v0
        + s**2 * (3.0 - 2.0 * s) * p1
        - s**2 * (1.0 - s) * h * v1
    )


def _jumps(times: Floats, position: Floats, velocity: Floats) -> NDArray[np.bool_]:
    moved = np.linalg.norm(np.diff(position, axis=0), axis=1)
    speed = np.linalg.norm(velocity, axis=1)
    return np.asarray(moved > _JUMP_MIN + _JUMP * np.maximum(speed[:-1], speed[1:]) * np.diff(times))
