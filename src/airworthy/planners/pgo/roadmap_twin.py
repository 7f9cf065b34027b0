"""The roadmap in plain Python: the readable twin of native/roadmap.h and roadmap_task.h, for tests.

Lines of sight and paths in a distance field: the readable twin of native/sight.h.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import count, pairwise

import numpy as np

from airworthy.core.arrays import Array
from airworthy.planners.fast.records import FAR
from airworthy.planners.fast.windows import WindowTwin, trilinear_in
from airworthy.planners.pgo.records import MOST_CORNERS, MOST_DEPTH, RoadmapSettings
from airworthy.planners.pgo.roadmap import Question, RoadmapPaths, sample_numbers

__all__ = ["Visibility", "roadmap_twin"]


def _apart(a: Array, b: Array) -> float:
    # By hand, in this order: the native text adds so, and the twin is compared bit for bit.
    return math.sqrt(sum(float(d) * float(d) for d in b - a))


class Visibility:
    """What sees what, in one window."""

    def __init__(self, view: WindowTwin):
        self.resolution, self._corner = view.resolution, view.corner
        self._field, self._lower, self._upper = view.field, view.lower, view.upper

    def cell_distance(self, cell: tuple[int, ...]) -> float:
        """Return the distance at a cell by its number; outside the box in which to fly nothing is free, what is not known
        is."""
        middle = self._corner + self.resolution * (np.array(cell) + 0.5)
        # A cell on the very edge of the box is inside, however its middle was rounded.
        if ((middle < self._lower - 1e-9) | (middle > self._upper + 1e-9)).any():
            return -1.0
        known = all(0 <= cell[k] < self._field.shape[k] for k in range(3))
        return float(self._field[cell]) if known else FAR

    def coarse(self, point: Array) -> float:
        """Return the distance at the cell of a point (3,)."""
        return self.cell_distance(tuple(np.floor((point - self._corner) / self.resolution).astype(int).tolist()))

    def met(self, start: Array, end: Array, least: float) -> Array | None:
        """Return the middle of the first cell between two points that is not farther than `least` from something; None: all
        are.

        Args:
            start: (3,) [m], world.
            end: (3,) [m], world.
            least: Distance that every cell between must exceed [m].
        """
        per_metre = 1.0 / self.resolution
        u, v = (start - self._corner) * per_metre, (end - self._corner) * per_metre
        cell, last = np.floor(u).astype(int), np.floor(v).astype(int)
        step = np.sign(last - cell)
        # Amanatides and Woo, 1987: an axis along which the ray does not move never comes next.
        with np.errstate(divide="ignore"):
            across = np.where(step == 0, 1e300, 1.0 / np.abs(v - u))
        following = np.where(step == 0, 1e300, np.where(step > 0, cell + 1.0 - u, u - cell) * across)
        for _ in range(int(np.abs(last - cell).sum()) + 1):
            if self.cell_distance(tuple(cell.tolist())) <= least:
                return self._corner + self.resolution * (cell + 0.5)
            axis = int(np.argmin(following))
            cell[axis] += step[axis]
            following[axis] += across[axis]
        return None

    @staticmethod
    def length(path: Array) -> float:
        """Return the length of corners (k, 3) [m]."""
        total = 0.0
        for a, b in pairwise(path):
            total += _apart(a, b)
        return total

    def _along(self, path: Array, lengths: list[float]) -> Array:
        """Points at rising lengths of a path."""
        found, at, before, edge = [], 0, 0.0, _apart(path[0], path[1])
        for length in lengths:
            while at + 2 < len(path) and length > before + edge:
                before, at = before + edge, at + 1
                edge = _apart(path[at], path[at + 1])
            share = min(max((length - before) / edge if edge > 0.0 else 0.0, 0.0), 1.0)
            found.append((1.0 - share) * path[at] + share * path[at + 1])
        return np.array(found)

    def equivalent(self, a: Array, b: Array) -> bool:
        """Return whether two paths are equivalent by uniform visibility deformation: points at the same share of both lengths
        see each other; symmetric."""
        lengths = self.length(a), self.length(b)
        count = max(math.ceil(max(lengths) / self.resolution), 2)
        first, second = (
            self._along(path, [total * i / (count - 1) for i in range(count)])
            for path, total in zip((a, b), lengths, strict=True)
        )
        for p, q in zip(first, second, strict=True):
            # A walk from p to q may round to other cells than from q to p: sorted ends make the answer symmetric.
            low, high = sorted((p.tolist(), q.tolist()))
            if self.met(np.array(low), np.array(high), 0.0) is not None:
                return False
        return True

    def shortcut(self, path: Array, rounds: int) -> Array:
        """Return the shorter by lines of sight; where sight is lost the path is pushed off what is in the way."""
        for _ in range(rounds):
            shorter = self._shortened(path)
            # Pushing can make a path longer; then the one before was better.
            if shorter is None or self.length(shorter) > self.length(path):
                return path
            path = shorter
        return path

    def _shortened(self, path: Array) -> Array | None:
        out = [path[0]]
        for at in self._discretised(path)[1:]:
            met = self.met(out[-1], at, self.resolution)
            if met is not None:
                point = self._pushed(out[-1], at, met)
                # The native text has so much room, and gives up alike.
                if len(out) + 2 > MOST_CORNERS:
                    return None
                out.append(point)
        return np.array([*out, path[-1]])

    def _discretised(self, path: Array) -> list[Array]:
        points = []
        for a, b in pairwise(path):
            pieces = math.ceil(_apart(a, b) / self.resolution)
            points += [a + (b - a) * s / pieces for s in range(pieces)]
        return [*points, path[-1]]

    def _pushed(self, start: Array, end: Array, point: Array) -> Array:
        _, slope = trilinear_in(self._field, self._corner, self.resolution, point[None])
        steep, distance = _apart(np.zeros(3), slope[0]), _apart(start, end)
        # Far from everything the field is flat: there is no way to push.
        if not (steep > 1e-3 and distance > 0.0):
            return point
        unit, line = slope[0] / steep, (end - start) / distance
        along = 0.0
        for k in range(3):
            along += float(unit[k] * line[k])
        across = unit - along * line
        size = _apart(np.zeros(3), across)
        return point + self.resolution * (across / size) if size > 1e-9 else point


@dataclass(eq=False)
class _Node:
    position: Array
    guard: bool
    neighbours: list[_Node] = field(default_factory=list)


class _Roadmap:
    def __init__(self, sight: Visibility, start: Array, end: Array):
        self.sight = sight
        self.start, self.end = _Node(start, True), _Node(end, True)
        self.nodes = [self.start, self.end]

    def sample(self, point: Array) -> None:
        """Add a guard where nothing sees the point; a connector where two guards do and the way over it is new."""
        h = self.sight.resolution
        visible: list[_Node] = []
        for node in self.nodes:
            # A third guard settles it: such a point is neither guard nor connector.
            if node.guard and len(visible) < 3 and self.sight.met(point, node.position, h) is None:
                visible.append(node)
        if not visible:
            self.nodes.append(_Node(point, True))
        if len(visible) != 2 or not self._is_new(visible[0], visible[1], point):
            return
        node = _Node(point, False, list(visible))
        self.nodes.append(node)
        for guard in visible:
            guard.neighbours.append(node)

    def _is_new(self, a: _Node, b: _Node, point: Array) -> bool:
        one = np.array([a.position, point, b.position])
        for middle in a.neighbours:
            if not any(n is b for n in middle.neighbours):
                continue
            other = np.array([a.position, middle.position, b.position])
            if self.sight.equivalent(one, other):
                # Of two alike the shorter connector stays, at the place of the longer one.
                if self.sight.length(one) < self.sight.length(other):
                    middle.position = point
                return False
        return True

    def prune(self) -> None:
        """Take away what leads nowhere, until nothing does."""
        # The first two are the ends, which stay even alone.
        while dead := [n for n in self.nodes[2:] if len(n.neighbours) <= 1]:
            self.nodes = [n for n in self.nodes if not any(n is d for d in dead)]
            for node in self.nodes:
                node.neighbours = [n for n in node.neighbours if not any(n is d for d in dead)]

    def paths(self, most: int) -> list[list[_Node]]:
        """Depth first, all ways between the ends without turning back."""
        found: list[list[_Node]] = []

        def visit(path: list[_Node]) -> None:
            if len(found) < most and any(n is self.end for n in path[-1].neighbours):
                found.append([*path, self.end])
            for node in path[-1].neighbours:
                if (
                    node is not self.end
                    and not any(node is n for n in path)
                    and len(path) + 1 < MOST_DEPTH
                    and len(found) < most
                ):
                    visit([*path, node])

        visit([self.start])
        return found


def _frame(start: Array, end: Array) -> Array:
    """Axes of the box of samples, rows: along the line, level across it, and upright to both."""
    distance = math.sqrt(float(((end - start) ** 2).sum()))
    x = (end - start) / distance if distance > 0.0 else np.array([1.0, 0.0, 0.0])
    flat = math.hypot(x[0], x[1])
    y = np.array([-x[1] / flat, x[0] / flat, 0.0]) if flat > 1e-9 else np.array([0.0, 1.0, 0.0])
    return np.array([x, y, np.cross(x, y)])


def _distinct(sight: Visibility, paths: list[Array]) -> list[Array]:
    kept: list[Array] = []
    for path in paths:
        if not any(sight.equivalent(path, other) for other in kept):
            kept.append(path)
    return kept


def roadmap_twin(settings: RoadmapSettings, view: WindowTwin, question: Question) -> RoadmapPaths:
    """Return what `Roadmaps` finds for one question.

    Args:
        settings: Numbers of the roadmap.
        view: Distances around the question.
        question: Its ends and the key of its draws.
    """
    s, sight = settings, Visibility(view)
    start, end = question.start, question.end
    half = np.array([0.5 * math.sqrt(float(((end - start) ** 2).sum())) + s.beyond, s.sideways, s.upright])
    axes, roadmap = _frame(start, end), _Roadmap(sight, start, end)
    for u in sample_numbers(question.key, question.attempt, s.samples):
        a, b, c = (2.0 * u - 1.0) * half
        point = 0.5 * (start + end) + a * axes[0] + b * axes[1] + c * axes[2]
        if sight.coarse(point) > s.clearance:
            roadmap.sample(point)
    roadmap.prune()
    raw = roadmap.paths(s.most_raw)
    # Python's sort is stable: paths of equal length stay in the order in which they were found, as natively.
    fewest = sorted(raw, key=len)[: s.most_paths]
    distinct = _distinct(sight, [sight.shortcut(np.array([n.position for n in path]), 1) for path in fewest])
    order = sorted(zip([sight.length(p) for p in distinct], count(), distinct, strict=False))[: s.reserve]
    chosen = [p for length, k, p in order if k == order[0][1] or length / order[0][0] < s.ratio]
    whole = [np.concatenate([question.head, p, question.tail]) for p in chosen]
    ends = [sight.shortcut(p, 5) for p in whole if len(p) <= MOST_CORNERS]
    return RoadmapPaths(_distinct(sight, ends), len(roadmap.nodes), len(raw), len(distinct))
