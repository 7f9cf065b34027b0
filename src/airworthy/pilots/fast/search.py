"""Kinodynamic A*: `KinoSearch(settings).run(problems, windows)`, many flights in one launch.

States are positions and velocities of a double integrator; from each, 125 accelerations are held for a while. One node is
kept per cell of position. The readable twin is search_twin.py. Source: spec/planners section 4.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.pilots.fast.kernel import Task
from airworthy.pilots.fast.records import FOUND, NODE_BYTES, PROBLEM, SEARCH_SETTINGS, Outcome
from airworthy.pilots.fast.settings import KinoSettings
from airworthy.pilots.fast.windows import Windows
from airworthy.pilots.fast.work import Work

__all__ = ["KinoPath", "KinoSearch", "path_of", "problem"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class KinoPath:
    """Accelerations held one after the other, then, perhaps, a cubic to the goal."""

    outcome: Outcome
    states: Array
    """Where each step begins, (k, 6): position [m] and velocity [m/s]."""
    inputs: Array
    """Acceleration of each step [m/s^2], (k, 3)."""
    durations: Array
    """Of each step [s], (k,)."""
    curve: Array
    """Ascending coefficients of the connection, (3, 4)."""
    curve_time: float
    """[s]; 0 without a connection."""
    expansions: int
    """Nodes taken from the open set, of all attempts."""
    nodes: int
    """Nodes made, of all attempts."""

    @property
    def duration(self) -> float:
        """[s]"""
        return float(self.durations.sum()) + self.curve_time

    def sample(self, times: Array) -> Array:
        """Positions [m] at times (m,) since its beginning [s], (m, 3)."""
        ends = np.cumsum(self.durations)
        total = float(ends[-1]) if len(ends) else 0.0
        points = np.empty((len(times), 3))
        on_curve = (times >= total) & (self.curve_time > 0.0) if len(ends) else np.ones(len(times), bool)
        u = (times[on_curve] - total)[:, None]
        c = self.curve.T
        points[on_curve] = ((c[3] * u + c[2]) * u + c[1]) * u + c[0]
        if len(ends):
            t = times[~on_curve]
            step = np.minimum(np.searchsorted(ends, t, side="right"), len(ends) - 1)
            u = (t - (ends - self.durations)[step])[:, None]
            state = self.states[step]
            points[~on_curve] = state[:, :3] + state[:, 3:] * u + 0.5 * self.inputs[step] * u * u
        return points

    def boundary(self) -> Array:
        """Velocities at start and end, then accelerations, (2, 2, 3)."""
        t, c = self.curve_time, self.curve
        first = self.states[0, 3:] if len(self.states) else c[:, 1]
        first_acceleration = self.inputs[0] if len(self.states) else 2.0 * c[:, 2]
        if t > 0.0:
            last = (3.0 * c[:, 3] * t + 2.0 * c[:, 2]) * t + c[:, 1]
            last_acceleration = 6.0 * c[:, 3] * t + 2.0 * c[:, 2]
        else:
            last_acceleration = self.inputs[-1]
            last = self.states[-1, 3:] + last_acceleration * self.durations[-1]
        return np.array([[first, last], [first_acceleration, last_acceleration]])


class KinoSearch:
    """Searches of many flights; owns the work memory.

    Args:
        settings: See `KinoSettings`.
    """

    def __init__(self, settings: KinoSettings):
        self.settings = settings
        record = np.zeros(1, SEARCH_SETTINGS)
        for name in SEARCH_SETTINGS.names or ():
            record[name] = getattr(settings, name)
        self._work = Work(settings.capacity * (NODE_BYTES + 4), 1 << (2 * settings.capacity - 1).bit_length(), record)

    def run(self, problems: NDArray[Any], windows: Windows) -> list[KinoPath]:
        """Search for every flight: `records.PROBLEM` (k,), with what is known around each."""
        found = np.zeros(len(problems), FOUND)
        self._work.launch(Task.SEARCH, windows, problems, found)
        return [path_of(row) for row in found]


def path_of(row: Any) -> KinoPath:
    """The path that compiled code has written down, the last step first."""
    steps = row["path"].reshape(-1, 10)[: row["steps"]][::-1]
    outcome = Outcome(int(row["status"]))
    joined = outcome is Outcome.REACH_END
    return KinoPath(
        outcome,
        steps[:, :6].copy(),
        steps[:, 6:9].copy(),
        steps[:, 9].copy(),
        row["curve"].reshape(3, 4).copy() if joined else np.zeros((3, 4)),
        float(row["curve_time"]) if joined else 0.0,
        int(row["expansions"]),
        int(row["nodes"]),
    )


def problem(
    start: Array, velocity: Array, acceleration: Array, goal: Array, speed: float, most: float, held: bool = True
) -> NDArray[Any]:
    """One problem, (1,): states of start and goal (at rest), limits per component, whether to begin with `acceleration`."""
    record = np.zeros(1, PROBLEM)
    record["start"][0] = np.concatenate([start, velocity])
    record["acceleration"], record["goal"][0, :3] = acceleration, goal
    record["speed"], record["most"], record["held"] = speed, most, held
    return record
