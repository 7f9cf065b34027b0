"""Cost of control points in a distance field, with its gradient: the readable twin of native/spline_costs.h.

Sums run in the order of the compiled text, so both give the same bits. Points are (N, 3), evenly knotted. Source:
spec/planners sections 3.5 and 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from airworthy.pilots.fast.windows import View

__all__ = ["SplineCosts", "ending", "excess", "nearness", "smoothness"]

Array = NDArray[np.float64]


def _total(terms: Array) -> float:
    """Sum from the first to the last."""
    return float(np.add.accumulate(terms.reshape(-1))[-1]) if terms.size else 0.0


def _added(q: Array, gradient: Array | None) -> Array:
    return np.zeros_like(q) if gradient is None else gradient


def smoothness(q: Array, weight: float = 1.0, gradient: Array | None = None) -> tuple[float, Array]:
    """Sum of squared third differences, and the gradient of weight times it, added to `gradient`."""
    j = q[3:] - 3.0 * q[2:-1] + 3.0 * q[1:-2] - q[:-3]
    push, g = weight * 2.0 * j, _added(q, gradient)
    g[3:] += push
    g[2:-1] -= 3.0 * push
    g[1:-2] += 3.0 * push
    g[:-3] -= push
    return _total(j * j), g


def nearness(
    q: Array, view: View, clearance: float, weight: float = 1.0, gradient: Array | None = None, last: int | None = None
) -> tuple[float, Array]:
    """Sum of (D - clearance)^2 over points 3 to `last` nearer than that.

    The gradient is along the field's, but of unit length, as in the source: a trilinear field is steeper or flatter than 1
    where it is kinked, and the push should not depend on it. It is the cost's own gradient where the field's has length 1.
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
    """Sums of (v^2 - speed^2)^2 and (a^2 - most^2)^2 per axis where positive, of the control points of the derivatives."""
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
    """Squared distance of the curve's end to a point (3,)."""
    miss = (q[-3] + 4.0 * q[-2] + q[-1]) / 6.0 - target
    push, g = weight * 2.0 * miss / 6.0, _added(q, gradient)
    g[-3] += push
    g[-2] += 4.0 * push
    g[-1] += push
    return _total(miss * miss), g


@dataclass(frozen=True, eq=False)
class SplineCosts:
    """The whole cost as a function of the free coordinates."""

    view: View
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
        """All control points (N, 3) from the free coordinates."""
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
