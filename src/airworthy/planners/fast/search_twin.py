"""The kinodynamic search in plain Python: the readable twin of native/kino_search.h, for tests.

It keeps the order of every operation, so that paths and counts are the same.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from airworthy.core.arrays import Array
from airworthy.planners.fast.records import Outcome
from airworthy.planners.fast.search import KinoPath, connection, least_cost
from airworthy.planners.fast.settings import KinoSettings
from airworthy.planners.fast.windows import WindowTwin

__all__ = ["search_twin"]

State = tuple[float, ...]
Cell = tuple[int, ...]

_NONE = (0.0, 0.0, 0.0)


@dataclass(eq=False)
class _Node:
    number: int
    cell: Cell
    state: State
    input: State
    duration: float
    parent: _Node | None
    cost: float
    estimate: float
    closed: bool = False


def _moved(state: State, push: State, t: float) -> State:
    position = tuple(state[k] + state[k + 3] * t + 0.5 * push[k] * t * t for k in range(3))
    return position + tuple(state[k + 3] + push[k] * t for k in range(3))


class _Search:
    def __init__(self, settings: KinoSettings, view: WindowTwin, problem: Any):
        self.set, self.problem = settings, problem
        self._cells, self._view = view.cells, view
        self.goal: State = tuple(problem["goal"].tolist())
        self.speed, self.most = float(problem["speed"]), float(problem["most"])
        self.nodes: dict[Cell, _Node] = {}
        self.heap: list[tuple[float, int, int, _Node]] = []
        self._pushes = 0

    def cell(self, position: State) -> Cell:
        v = self._view
        # `floor`, not `int`: cells below the window's corner are -1 and less, not 0.
        return tuple(math.floor((position[k] - v.corner[k]) / v.resolution) for k in range(3))

    def blocked(self, position: State) -> bool:
        v = self._view
        if any(not v.lower[k] <= position[k] <= v.upper[k] for k in range(3)):
            return True
        cell = self.cell(position)
        return all(0 <= cell[k] < self._cells.shape[k] for k in range(3)) and bool(self._cells[cell])

    def ahead(self, state: State) -> float:
        return self.set.greed * least_cost(state, self.goal, self.set.weight, self.speed)[0]

    def push(self, node: _Node) -> None:
        """Also for a node whose estimate has changed: its older entries no longer fit and are passed over."""
        self._pushes += 1
        heapq.heappush(self.heap, (node.estimate, node.number, self._pushes, node))

    def best(self) -> _Node | None:
        while self.heap and (self.heap[0][3].closed or self.heap[0][0] != self.heap[0][3].estimate):
            heapq.heappop(self.heap)
        return self.heap[0][3] if self.heap else None

    def offer(self, parent: _Node, born: int, push: State, duration: float) -> bool:
        state = _moved(parent.state, push, duration)
        cell = self.cell(state)
        known = self.nodes.get(cell)
        if known is not None and known.closed:
            return True
        # Too fast, or still in the parent's cell: nothing new is reached.
        if max(abs(v) for v in state[3:]) > self.speed or cell == parent.cell:
            return True
        checks = self.set.checks
        if any(self.blocked(_moved(parent.state, push, duration * k / checks)) for k in range(1, checks + 1)):
            return True
        effort = push[0] * push[0] + push[1] * push[1] + push[2] * push[2]
        cost = parent.cost + (effort + self.set.weight) * duration
        estimate = cost + self.ahead(state)
        if known is None:
            node = _Node(len(self.nodes), cell, state, push, duration, parent, cost, estimate)
            self.nodes[cell] = node
            self.push(node)
            return len(self.nodes) < self.set.capacity
        # Born of this very parent: the lower estimate counts; reached before: the lower cost. As in native/kino_search.h.
        if estimate < known.estimate if known.number >= born else cost < known.cost:
            known.state, known.input, known.duration, known.parent = state, push, duration, parent
            known.cost, known.estimate = cost, estimate
            self.push(known)
        return True

    def expand(self, node: _Node, held: bool) -> bool:
        born = len(self.nodes)
        if held and node.parent is None:
            push = tuple(self.problem["acceleration"].tolist())
            return all(self.offer(node, born, push, self.set.first_time * k / 20) for k in range(1, 21))
        inputs = product(*3 * [[self.most * k / 2 for k in (-2, -1, 0, 1, 2)]])
        return all(self.offer(node, born, push, self.set.step_time) for push in inputs)

    def connected(self, state: State) -> tuple[Array, float] | None:
        _, t = least_cost(state, self.goal, self.set.weight, self.speed)
        if not t > 0.0:
            return None
        curve = connection(state, self.goal, t)
        for s in range(1, 11):
            u = t * s / 10
            # Horner's rule: the native text evaluates so, and other orders round otherwise.
            if self.blocked(tuple(((c[3] * u + c[2]) * u + c[1]) * u + c[0] for c in curve.tolist())):
                return None
        return curve, t

    def run(self, held: bool) -> tuple[Outcome, _Node | None, tuple[Array, float] | None, int]:
        """Outcome, last node, connection, expansions."""
        start: State = tuple(self.problem["start"].tolist())
        root = _Node(0, self.cell(start), start, _NONE, 0.0, None, 0.0, self.ahead(start))
        self.nodes[root.cell] = root
        self.push(root)
        goal_cell, tolerance, expansions = self.cell(self.goal), math.ceil(1.0 / self._view.resolution), 0
        while (node := self.best()) is not None:
            far = math.sqrt(sum((node.state[k] - start[k]) ** 2 for k in range(3))) >= self.set.horizon
            near = all(abs(node.cell[k] - goal_cell[k]) <= tolerance for k in range(3))
            if far or near:
                curve = self.connected(node.state) if near else None
                if curve is not None:
                    return Outcome.REACH_END, node, curve, expansions
                outcome = Outcome.REACH_HORIZON if far else Outcome.NEAR_END if node.parent else Outcome.NO_PATH
                return outcome, node, None, expansions
            heapq.heappop(self.heap)
            node.closed = True
            expansions += 1
            if not self.expand(node, held):
                break
        return Outcome.NO_PATH, None, None, expansions


def search_twin(settings: KinoSettings, view: WindowTwin, problem: Any) -> KinoPath:
    """Return what `KinoSearch` finds for one problem.

    Args:
        settings: Numbers of the search.
        view: Occupancy around the vehicle.
        problem: A record of `PROBLEM`.
    """
    expansions = nodes = 0
    for held in [True, False] if problem["held"] else [False]:
        search = _Search(settings, view, problem)
        outcome, node, curve, count = search.run(held)
        expansions, nodes = expansions + count, nodes + len(search.nodes)
        if outcome is not Outcome.NO_PATH:
            break
    steps = []
    while outcome is not Outcome.NO_PATH and node is not None and node.parent is not None:
        steps.append((*node.parent.state, *node.input, node.duration))
        node = node.parent
    rows = np.array(steps[::-1]).reshape(-1, 10)
    cubic, time = curve if curve is not None else (np.zeros((3, 4)), 0.0)
    return KinoPath(outcome, rows[:, :6], rows[:, 6:9], rows[:, 9], cubic, time, expansions, nodes)
