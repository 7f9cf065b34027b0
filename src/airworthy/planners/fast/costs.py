"""Cost of control points in a distance field, with its gradient: the readable twin of native/spline_costs.h.

Sums run in the order of the compiled text, so both give the same bits. Points are (N, 3), evenly knotted. Source:
spec/planners sections 3.5 and 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny
from airworthy.planners.common.lbfgs import MEMORY, lbfgs_work
from airworthy.planners.fast.records import DESCENT, MOST_POINTS
from airworthy.planners.fast.windows import NO_WINDOWS, MapWindows, WindowTwin
from airworthy.planners.fast.work import PlannerWork, PlanTask

__all__ = [
    "Descended",
    "FitPoints",
    "SplineCosts",
    "SplineDescent",
    "ending",
    "excess",
    "nearness",
    "put_control",
    "put_points",
    "smoothness",
]

# ---- Many splines fitted, optimised in distance fields and slowed to their limits, in one launch ----------------------------


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
class FitPoints:
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
        self._work = PlannerWork(8 * (6 * MOST_POINTS + lbfgs_work(3 * MOST_POINTS)))

    def fresh(self, count: int) -> ArrayAny:
        """Return records to be filled: window, interval, limits, and points with ends (`put_points`) or `put_control`."""
        records = np.zeros(count, DESCENT)
        for name, value in self._constants.items():
            records[name] = value
        return records

    def fitted(self, fits: list[FitPoints]) -> list[Array]:
        """Return control points (K + 2, 3) of splines through points, nothing optimised; in one launch."""
        records = np.zeros(len(fits), DESCENT)
        for record, fit in zip(records, fits, strict=True):
            put_points(record, fit.points, fit.ends)
            record["interval"] = fit.interval
        return [r.control for r in self.run(records, NO_WINDOWS)]

    def run(self, records: ArrayAny, windows: MapWindows) -> list[Descended]:
        """Fit, optimise and slow down each spline."""
        self._work.launch(PlanTask.DESCEND, windows, records)
        return [_result(r) for r in records]


def put_points(record: Any, points: Array, ends: Array) -> None:
    """Let a record begin with the spline through points (K, 3) at its knots; `ends`

    Args:
        record: Of `DESCENT`, filled in place.
        points: (K, 3) [m], world.
        ends: Velocity and acceleration at both ends, (2, 2, 3) [m/s, m/s^2].
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


# -----------------------------------------------------------------------------------------------------------------------------


def _total(terms: Array) -> float:
    """Sum from the first to the last."""
    return float(np.add.accumulate(terms.reshape(-1))[-1]) if terms.size else 0.0


def _added(q: Array, gradient: Array | None) -> Array:
    return np.zeros_like(q) if gradient is None else gradient


def smoothness(q: Array, weight: float = 1.0, gradient: Array | None = None) -> tuple[float, Array]:
    """Return the sum of squared third differences, and the gradient of weight times it, added to `gradient`.

    Args:
        q: Control points (N, d) [m or rad], world.
        weight: Factor on the gradient alone.
        gradient: (N, d), to which the cost's is added; None: a new one.
    """
    j = q[3:] - 3.0 * q[2:-1] + 3.0 * q[1:-2] - q[:-3]
    push, g = weight * 2.0 * j, _added(q, gradient)
    g[3:] += push
    g[2:-1] -= 3.0 * push
    g[1:-2] += 3.0 * push
    g[:-3] -= push
    return _total(j * j), g


def nearness(
    q: Array, view: WindowTwin, clearance: float, weight: float = 1.0, gradient: Array | None = None, last: int | None = None
) -> tuple[float, Array]:
    """Return the sum of (D - clearance)^2 over points 3 to `last` nearer than that.

    The gradient is along the field's, but of unit length, as in the source: a trilinear field is steeper or flatter than 1
    where it is kinked, and the push should not depend on it. It is the cost's own gradient where the field's has length 1.

    Args:
        q: Control points (N, d) [m or rad], world.
        view: Distances around the vehicle.
        clearance: Wanted distance d0 [m].
        weight: Factor on the gradient alone.
        gradient: (N, d), to which the cost's is added; None: a new one.
        last: End of the points that may move; None: all from 3 on.
    """
    g = _added(q, gradient)
    value, slope = view.distance(q[3:last])
    d = value - clearance
    near = d < 0.0
    length = np.sqrt(slope[:, 0] * slope[:, 0] + slope[:, 1] * slope[:, 1] + slope[:, 2] * slope[:, 2])
    unit = np.divide(1.0, length, out=np.ones_like(length), where=length > 1e-4)
    g[3:last] += np.where(near[:, None], (weight * 2.0 * d)[:, None] * (slope * unit[:, None]), 0.0)
    return _total((d * d)[near]), g


def excess(
    q: Array, interval: float, speed: float, most: float, weight: float = 1.0, gradient: Array | None = None
) -> tuple[float, Array]:
    """Return sums of (v^2 - speed^2)^2 and (a^2 - most^2)^2 per axis where positive, of the control points of the
    derivatives.

    Args:
        q: Control points (N, d) [m or rad], world.
        interval: Between knots [s].
        speed: Limit per axis [m/s].
        most: Limit of acceleration per axis [m/s^2].
        weight: Factor on the gradient alone.
        gradient: (N, d), to which the cost's is added; None: a new one.
    """
    rate, g = 1.0 / interval, _added(q, gradient)
    rate2 = rate * rate
    v = (q[1:] - q[:-1]) * rate
    e = np.maximum(v * v - speed * speed, 0.0)
    push = weight * 4.0 * e * v * rate
    g[1:] += push
    g[:-1] -= push
    a = (q[2:] - 2.0 * q[1:-1] + q[:-2]) * rate2
    b = np.maximum(a * a - most * most, 0.0)
    pull = weight * 4.0 * b * a * rate2
    g[2:] += pull
    g[1:-1] -= 2.0 * pull
    g[:-2] += pull
    return _total((e * e)[e > 0.0]) + _total((b * b)[b > 0.0]), g


def ending(q: Array, target: Array, weight: float = 1.0, gradient: Array | None = None) -> tuple[float, Array]:
    """Return the squared distance of the curve's end to a point (3,).

    Args:
        q: Control points (N, d) [m or rad], world.
        target: Where the curve should end, (3,) [m].
        weight: Factor on the gradient alone.
        gradient: (N, d), to which the cost's is added; None: a new one.
    """
    miss = (q[-3] + 4.0 * q[-2] + q[-1]) / 6.0 - target
    push, g = weight * 2.0 * miss / 6.0, _added(q, gradient)
    g[-3] += push
    g[-2] += 4.0 * push
    g[-1] += push
    return _total(miss * miss), g


@dataclass(frozen=True, eq=False)
class SplineCosts:
    """The whole cost as a function of the free coordinates."""

    view: WindowTwin
    start: Array
    """Control points before (N, 3): those at the ends stay as they are."""
    interval: float
    smooth: float
    distance: float
    feasible: float
    end: float
    clearance: float
    speed: float
    most: float
    free_end: bool
    """The last three points move as well, held by the end term."""

    @property
    def last(self) -> int:
        """Number of the first point behind the free ones."""
        return len(self.start) if self.free_end else len(self.start) - 3

    def points(self, x: Array) -> Array:
        """Return all control points (N, 3) from the free coordinates."""
        q = self.start.copy()
        q[3 : self.last] = x.reshape(-1, 3)
        return q

    def __call__(self, x: Array) -> tuple[float, Array]:
        q, s = self.points(x), self.start
        value, g = smoothness(q, self.smooth)
        total = self.smooth * value
        total += self.distance * nearness(q, self.view, self.clearance, self.distance, g, self.last)[0]
        if self.feasible > 0.0:
            total += self.feasible * excess(q, self.interval, self.speed, self.most, self.feasible, g)[0]
        if self.free_end:
            target = (s[-3] + 4.0 * s[-2] + s[-1]) / 6.0
            total += self.end * ending(q, target, self.end, g)[0]
        return total, g[3 : self.last].reshape(-1)
