"""The roadmap in plain Python: the readable twin of native/roadmap.h and roadmap_task.h, for tests."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from airworthy.core.arrays import Array
from airworthy.planners.fast.windows import WindowTwin
from airworthy.planners.pgo.records import MOST_CORNERS, MOST_DEPTH, RoadmapSettings
from airworthy.planners.pgo.roadmap import Question, RoadmapPaths, sample_numbers
from airworthy.planners.pgo.visibility import Visibility

__all__ = ["roadmap_twin"]


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
                if self.sight.length(one) < self.sight.length(other):
                    middle.position = point
                return False
        return True

    def prune(self) -> None:
        """Take away what leads nowhere, until nothing does."""
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
    fewest = sorted(raw, key=len)[: s.most_paths]
    distinct = _distinct(sight, [sight.shortcut(np.array([n.position for n in path]), 1) for path in fewest])
    order = sorted(zip([sight.length(p) for p in distinct], count(), distinct, strict=False))[: s.reserve]
    chosen = [p for length, k, p in order if k == order[0][1] or length / order[0][0] < s.ratio]
    whole = [np.concatenate([question.head, p, question.tail]) for p in chosen]
    ends = [sight.shortcut(p, 5) for p in whole if len(p) <= MOST_CORNERS]
    return RoadmapPaths(_distinct(sight, ends), len(roadmap.nodes), len(raw), len(distinct))
