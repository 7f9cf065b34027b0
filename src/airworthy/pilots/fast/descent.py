"""Many splines fitted, optimised in distance fields and slowed to their limits, in one launch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.pilots.fast.kernel import Task
from airworthy.pilots.fast.records import DESCENT, MOST_POINTS
from airworthy.pilots.fast.windows import NO_WINDOWS, Windows
from airworthy.pilots.fast.work import Work
from airworthy.pilots.planning.lbfgs import MEMORY, lbfgs_work

__all__ = ["Descended", "Fit", "SplineDescent", "put_control", "put_points"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Descended:
    """A spline after optimisation."""

    control: Array
    """(N, 3) [m]"""
    knots: Array
    """(N + 4,) [s]; the valid time begins at the fourth."""
    evaluations: int
    value: float


@dataclass(frozen=True, eq=False)
class Fit:
    """Points that a spline is to go through."""

    points: Array
    """At its knots, (K, 3) [m]."""
    ends: Array
    """Velocities at start and end, then accelerations, (2, 2, 3)."""
    interval: float
    """[s]"""


class SplineDescent:
    """Optimises control points; owns the work memory.

    Args:
        smooth, distance, feasible, end: Weights; see `FastSettings`.
        clearance: [m]
        evaluations: Of the cost, per spline.
        step_tolerance: Share of every coordinate below which a step is the last.
    """

    def __init__(
        self,
        smooth: float,
        distance: float,
        feasible: float,
        end: float,
        clearance: float,
        evaluations: int,
        step_tolerance: float,
    ):
        self._constants = {
            "smooth": smooth,
            "distance": distance,
            "feasible": feasible,
            "end": end,
            "clearance": clearance,
            "evaluations": evaluations,
            "step_tolerance": step_tolerance,
            "gradient_tolerance": 1e-9,
            "memory": MEMORY,
        }
        self._work = Work(8 * (6 * MOST_POINTS + lbfgs_work(3 * MOST_POINTS)))

    def fresh(self, count: int) -> NDArray[Any]:
        """Records to be filled: window, interval, limits, and points with ends (`put_points`) or `put_control`."""
        records = np.zeros(count, DESCENT)
        for name, value in self._constants.items():
            records[name] = value
        return records

    def fitted(self, fits: list[Fit]) -> list[Array]:
        """Control points (K + 2, 3) of splines through points, nothing optimised; in one launch."""
        records = np.zeros(len(fits), DESCENT)
        for record, fit in zip(records, fits, strict=True):
            put_points(record, fit.points, fit.ends)
            record["interval"] = fit.interval
        return [r.control for r in self.run(records, NO_WINDOWS)]

    def run(self, records: NDArray[Any], windows: Windows) -> list[Descended]:
        """Fit, optimise and slow down each spline."""
        self._work.launch(Task.DESCEND, windows, records)
        return [_result(r) for r in records]


def put_points(record: Any, points: Array, ends: Array) -> None:
    """Let a record begin with the spline through points (K, 3) at its knots; `ends`
    (2, 2, 3) as `KinoPath.boundary`."""
    record["fit"], record["count"] = len(points), len(points) + 2
    record["points"][: points.size] = points.reshape(-1)
    record["ends"] = ends.reshape(-1)


def put_control(record: Any, control: Array) -> None:
    """Let a record begin with control points (N, 3)."""
    record["count"] = len(control)
    record["control"][: control.size] = control.reshape(-1)


def _result(record: Any) -> Descended:
    count = int(record["count"])
    control = record["control"][: 3 * count].reshape(count, 3).copy()
    return Descended(control, record["knots"][: count + 4].copy(), int(record["evaluations_done"]), float(record["value"]))
