"""Routes to the goal through what is known to be free, and through what nobody has seen: `find_routes`, and its readable twin.

A* on nodes of 2 x 2 x 1 cells, 26 neighbours. A metre costs more near things, more where only part of a node has room, more in
the unknown, still more where that is so near that a camera that looks ahead will not show it from here, and most where the
unknown lies above or below something that was seen. Where a body reaches into the unknown a
route neither climbs nor sinks by more than one layer per node along, since no camera that looks ahead sees steeper. So the way
to a frontier and from there, straight, to the goal is weighed against that by every other frontier; what turned out to be
blocked stays so.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayInt, NDArray
from airworthy.core.native_kernel import native_kernel, quiet_launch, quiet_load
from airworthy.planners.known_free.config import RouteSettings
from airworthy.planners.known_free.known_space import BLOCKED, KNOWN, REFUSED, TAKEN, KnownSpace, _send, task_source

__all__ = ["Route", "RouteSearches", "route_twin"]

_LONGEST = 8192
"""Nodes of a route at most."""
_WAITING = 1 << 22
"""Entries of the open set at most; a search that needs more has failed."""
_NODE_BYTES, _ITEM_BYTES = 16, 16
_OPEN_STEPS = 1 << 16
"""Lists of the open set, 64 for each cell's edge of its estimates: a detour of 100 m in the open."""


@dataclass(frozen=True, eq=False)
class Route:
    """What a search found."""

    nodes: ArrayInt
    """Numbers of its nodes from start to goal, (k,); none where there is no way."""
    expansions: int
    """Nodes taken from the open set: the work."""
    cost: float
    """Of the route [m in the open]."""


_ARGUMENTS = """
    address: uint64[]  # (k, 4) of each memory
    sizes: int32[]  # (k, 3)
    numbers: float64[]  # (k, 4)
    ends: int32[]  # (k, 2, 3) nodes of start and goal
    limits: int32[]  # (k, 2, 3) lowest and last node
    prices: float64[]  # (11,) see `RouteSettings`
    # work memory
    nodes: uint8[]
    heap: uint8[]  # (2 waiting) items
    steps: int32[]  # (_OPEN_STEPS,) lists of the open set
    round: int
    waiting: int
    budget: int
    longest: int
    # output
    path: int32[]  # (k, longest)
    costs: float64[]  # (k,) [m]
    result: int32[]  # (k, 2) nodes of the route, expansions
"""


@cache
def route_kernel() -> Any:
    """Return the searches as a Warp kernel, one after the other in one memory; compiled at first launch, then cached."""
    source = f"enum {{ OPEN_STEPS = {_OPEN_STEPS} }};\n" + task_source("route_task.h")
    return native_kernel("known_free_route", source, _ARGUMENTS, first=False)


class RouteSearches:
    """Searches of routes; owns the work memory.

    Args:
        settings: What a metre costs.
    """

    def __init__(self, settings: RouteSettings):
        self.settings = settings
        self._round = 0
        self._nodes = np.zeros(0, np.uint8)
        self._heap = np.empty(2 * _WAITING * _ITEM_BYTES, np.uint8)
        self._steps = np.empty(_OPEN_STEPS, np.int32)
        # Before the first flight, whose first decision would wait for it.
        quiet_load(route_kernel(), "cpu")

    def prices(self, resolution: float, goal_radius: float) -> Array:
        """Return what kernels ask: prices, and squares [cells^2] of the radii of escape, blindness and goal; (11,)."""
        s = self.settings
        squares = [(radius / resolution) ** 2 for radius in (s.escape_radius, s.blind_radius, goal_radius)]
        return np.array([s.near, s.wide, s.partly, s.unknown, s.column, s.escape, s.weight, s.blind, *squares])

    def find(self, space: KnownSpace, start: Array, goal: Array, box: Array, goal_radius: float) -> Route:
        """Find the cheapest route of one flight.

        Args:
            space: What it knows.
            start: (3,) [m]
            goal: (3,) [m]
            box: Where middles may be, (2, 3) [m].
            goal_radius: The goal is reached within it [m].
        """
        ends, limits = ends_of(space, start, goal, box)
        size = int(np.prod(space.nodes, dtype=np.int64)) * _NODE_BYTES
        if size > len(self._nodes):
            self._nodes, self._round = np.zeros(size, np.uint8), 0
        self._round += 1
        path, cost, result = np.zeros(_LONGEST, np.int32), np.zeros(1), np.zeros(2, np.int32)
        given: list[ArrayAny] = [
            space.address,
            space.cells,
            space.numbers,
            ends,
            limits,
            self.prices(space.resolution, goal_radius),
        ]
        numbers = [self._round, _WAITING, self.settings.expansions, _LONGEST]
        arrays = [_send(a) for a in [*given, self._nodes, self._heap, self._steps]]
        quiet_launch(route_kernel(), 1, [*arrays, *numbers, _send(path), _send(cost), _send(result)], "cpu")
        return Route(path[: result[0]].astype(np.int64), int(result[1]), float(cost[0]))


def ends_of(space: KnownSpace, start: Array, goal: Array, box: Array) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return nodes (2, 3) of start and goal, held inside of the box, and the lowest and last nodes (2, 3) inside it.

    Args:
        space: What the flight knows.
        start: (3,) [m]
        goal: (3,) [m]
        box: Where middles may be, (2, 3) [m].
    """
    inside = space.cell_at(np.stack([box[0], box[1]]))
    per = np.array([2, 2, 1])
    limits = (inside // per).astype(np.int32)
    ends = (space.cell_at(np.stack([start, goal])) // per).astype(np.int32)
    return np.clip(ends, limits[0], limits[1]), limits


# ---- The same, readable ------------------------------------------------------------------------------------------------------

_STEPS = [(d // 9 - 1, d // 3 % 3 - 1, d % 3 - 1) for d in range(27)]


def route_twin(space: KnownSpace, settings: RouteSettings, start: Array, goal: Array, box: Array, goal_radius: float) -> Route:
    """Return the route that `RouteSearches.find` finds.

    Args:
        space: What the flight knows.
        settings: What a metre costs.
        start: (3,) [m]
        goal: (3,) [m]
        box: Where middles may be, (2, 3) [m].
        goal_radius: The goal is reached within it [m].
    """
    ends, limits = ends_of(space, start, goal, box)
    first, last = (tuple(int(x) for x in end) for end in ends)
    rates, dim = _rates(space, settings, first)
    shape, square = tuple(int(m) for m in space.nodes), (goal_radius / space.resolution) ** 2

    def number(node: tuple[int, ...]) -> int:
        return (node[0] * shape[1] + node[1]) * shape[2] + node[2]

    def gap(node: tuple[int, ...]) -> float:
        dx, dy, dz = 2.0 * (node[0] - last[0]), 2.0 * (node[1] - last[1]), float(node[2] - last[2])
        return dx * dx + dy * dy + dz * dz

    cost, came = {first: 0.0}, {first: first}
    closed: set[tuple[int, ...]] = set()
    queue = [(0.0, number(first), first)]
    while queue and len(closed) < settings.expansions:
        _, _, node = heapq.heappop(queue)
        if node in closed:
            continue
        closed.add(node)
        if gap(node) <= square:
            way = [node]
            while way[-1] != first:
                way.append(came[way[-1]])
            return Route(np.array([number(n) for n in way[::-1]], np.int64), len(closed), cost[node] * space.resolution)
        for step in _STEPS:
            there = (node[0] + step[0], node[1] + step[1], node[2] + step[2])
            if (
                step == (0, 0, 0)
                or there in closed
                or not all(a <= x <= b for a, x, b in zip(*limits[:1], there, *limits[1:], strict=True))
            ):
                continue
            if rates[there] < 0.0 or (step[:2] == (0, 0) and dim[there]):
                continue
            length = np.sqrt(4.0 * (step[0] ** 2 + step[1] ** 2) + float(step[2] ** 2))
            through = cost[node] + rates[there] * length
            if through < cost.get(there, np.inf):
                cost[there], came[there] = through, node
                heapq.heappush(queue, (through + settings.weight * np.sqrt(gap(there)), number(there), there))
    return Route(np.zeros(0, np.int64), len(closed), 0.0)


def _rates(space: KnownSpace, s: RouteSettings, first: tuple[int, ...]) -> tuple[Array, Any]:
    """Return what a metre costs in every node, below 0 where nobody flies, and whether a body reaches into the unknown."""
    node, crowd = space.node, space.crowd
    blocked, known, taken = (node >> shift & 7 for shift in (BLOCKED, KNOWN, TAKEN))
    unknown = (known < 2) & (taken == 0)
    dim = unknown.copy()
    for axis, far in enumerate((2, 2, 4)):
        for sign in (-far, far):
            beside = np.roll(unknown, -sign, axis)
            beside[(*(slice(None),) * axis, slice(-sign, None) if sign > 0 else slice(None, -sign))] = False
            dim |= beside
    index = np.stack(np.meshgrid(*(np.arange(m) for m in node.shape), indexing="ij"), -1) - np.array(first)
    square = ((index * np.array([2, 2, 1])) ** 2).sum(-1)
    away, distant = (square > (radius / space.resolution) ** 2 for radius in (s.escape_radius, s.blind_radius))
    open_rate = np.where(crowd & 0xFFFF, s.near, np.where(crowd > 0, s.wide, 1.0))
    rate = np.where(blocked >= 4, s.escape, np.where(blocked > 0, s.partly, open_rate))
    unseen = rate * np.where(unknown & (space.column[..., None] > 0), s.column, s.unknown) + np.where(distant, 0.0, s.blind)
    rate = np.where(dim, unseen, rate)
    shut = ((node & REFUSED) > 0) | ((blocked >= 4) & (away | (taken > 0)))
    return np.where(shut, -1.0, rate), dim
