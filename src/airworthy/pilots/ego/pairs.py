"""Where a control polygon meets obstacles, the ways around them, and the pairs that push control points there.

Readable twin of the second half of `native/problem.h`. Source: spec/planners sections 3.4 and 3.6.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from airworthy.pilots.ego.costs import Pair
from airworthy.pilots.ego.ego_kernel import PAIRS
from airworthy.pilots.planning.search import shortest_way
from airworthy.pilots.planning.search_cells import Cells

__all__ = ["PairBook", "new_obstacles", "scan"]

Array = NDArray[np.float64]
Segment = tuple[int, int]


def dot(a: Array, b: Array) -> float:
    """Sum of three products, from the first."""
    return float(a[0] * b[0] + a[1] * b[1] + a[2] * b[2])


def length(a: Array) -> float:
    """Of a vector (3,)."""
    return float(np.sqrt(dot(a, a)))


def scan(q: Array, cells: Cells) -> list[Segment]:
    """Where the nearest two thirds of the polygon enter and leave obstacles; contacts shorter than 3 steps are ignored."""
    count, found = len(q), []
    step = cells.resolution / (length(q[0] - q[-1]) / (count - 1)) / 2.0
    if not step > 1e-4:
        return []
    into = out = 0
    same, before, started, maybe = 3, False, False, False
    for i in range(3, count - 3 - (count - 6) // 3 + 1):
        shares = _down(1.0, step)
        for occupied in cells.taken(shares[:, None] * q[i - 1] + (1.0 - shares)[:, None] * q[i]):
            if occupied and not before:
                if same > 2 or i == 3:
                    into, started = i - 1, True
                same, maybe = 0, False
            elif not occupied and before:
                out, maybe, same = i, True, 0
            else:
                same += 1
            ended = maybe and (same > 2 or i == count - 3)
            maybe = maybe and not ended
            before = bool(occupied)
            if started and ended:
                found.append((into, out))
                started = False
    return found


def _down(start: float, step: float) -> Array:
    """Numbers from `start` down to 0 as repeated subtraction gives them."""
    count = int(start / step) + 2
    values = np.subtract.accumulate(np.concatenate([[start], np.full(count, step)]))
    return np.asarray(values[values >= 0.0])


def new_obstacles(q: Array, cells: Cells, pairs: list[list[Pair]]) -> list[Segment] | None:
    """Free control points around those in obstacles from which they are not pushed yet; None: the end is taken."""
    taken, found, i = cells.taken(q), [], 2
    last = len(q) - 3 - (len(q) - 6) // 3
    while i <= last:
        known = any(dot(q[i] - base, direction) < cells.resolution for base, direction in pairs[i])
        if taken[i] and not known:
            a, b = i - 1, i + 1
            while a > 0 and taken[a]:
                a -= 1
            while b < len(q) and taken[b]:
                b += 1
            if b >= len(q):
                return None
            found.append((a, b))
            i = b
        i += 1
    return found


@dataclass
class PairBook:
    """The pairs of all control points, and what finding them cost."""

    cells: Cells
    budget: int
    pairs: list[list[Pair]]
    expansions: int = 0

    def pair_up(self, q: Array, segments: list[Segment]) -> None:
        """Find ways around segments, then pairs of the control points between."""
        for segment in segments:
            way = shortest_way(self.cells, q[segment[0]], q[segment[1]], self.budget)
            self.expansions += way.expansions
            if len(way.points):
                self._pair_segment(q, segment, way.points)

    def _pair_segment(self, q: Array, segment: Segment, way: Array) -> None:
        first, second = segment
        paired: set[int] = set()
        got = -1
        for j in range(first + 1, second):
            x = crossing(way, q[j], q[j + 1] - q[j - 1])
            base = None if x is None else self._surface(x, q[j])
            if x is not None and base is not None:
                self._add(j, base, x - q[j])
                paired.add(j)
                got = j
        if second - first == 1:
            middle = (q[second] + q[first]) / 2.0
            x = crossing(way, middle, q[second] - q[first])
            if x is not None and length(x - middle) > 0.01:
                self._add(first, q[first].copy(), x - middle)
                paired.add(first)
                got = first
        if got < 0:
            return
        for j in range(got + 1, second + 1):
            self._inherit(j, j - 1, paired)
        for j in range(got - 1, first - 1, -1):
            self._inherit(j, j + 1, paired)

    def _surface(self, x: Array, at: Array) -> Array | None:
        """From x towards `at`: the last free point before an obstacle, or `at`; None where both are one."""
        whole, step = length(x - at), self.cells.resolution
        if not whole > 1e-5:
            return None
        for a in _down(whole, step):
            occupied = bool(self.cells.taken(a / whole * x + (1.0 - a / whole) * at))
            if occupied or a < step:
                a = a + step if occupied else a
                return np.asarray(a / whole * x + (1.0 - a / whole) * at)
        return None

    def _add(self, j: int, base: Array, away: Array) -> None:
        if len(self.pairs[j]) < PAIRS:
            self.pairs[j].append((base, away / length(away)))

    def _inherit(self, j: int, source: int, paired: set[int]) -> None:
        if j not in paired and self.pairs[source] and len(self.pairs[j]) < PAIRS:
            self.pairs[j].append(self.pairs[source][-1])


def crossing(way: Array, at: Array, normal: Array) -> Array | None:
    """Where the plane through `at` meets a way (k, 3), walked from its middle; None where it does not."""
    here = len(way) // 2
    began = side = dot(way[here] - at, normal)
    while True:
        before = way[here]
        here += -1 if side >= 0.0 else 1
        if not 0 <= here < len(way):
            return None
        side = dot(way[here] - at, normal)
        if side * began <= 0.0 and (abs(side) > 0.0 or abs(began) > 0.0):
            edge = way[here] - before
            across = dot(normal, edge)
            return None if across == 0.0 else np.asarray(way[here] + edge * (dot(normal, at - way[here]) / across))
