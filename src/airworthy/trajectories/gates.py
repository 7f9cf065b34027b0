"""Gates: where they are, what they are made of, and whether a flight passed them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayLike
from airworthy.trajectories.proof import YawedBox

__all__ = ["match_in_order"]

# -----------------------------------------------------------------------------------------------------------------------------
# Which passages count: the longest common subsequence of what happened and what was asked, earliest passages first.


def match_in_order(wanted: Sequence[Any], passed: Sequence[Any]) -> list[tuple[int, int]]:
    """Return pairs (place in `wanted`, place in `passed`), both rising, as many as there can be.

    Args:
        wanted: Gates of the course in order, or numbers that stand for them.
        passed: Gates that were passed, alike, in order of time.
    """
    if list(passed) == list(wanted):
        return [(k, k) for k in range(len(wanted))]
    longest = np.zeros((len(wanted) + 1, len(passed) + 1), dtype=np.int64)
    for i in range(len(wanted) - 1, -1, -1):
        for j in range(len(passed) - 1, -1, -1):
            same = longest[i + 1, j + 1] + 1 if wanted[i] == passed[j] else 0
            longest[i, j] = max(same, longest[i + 1, j], longest[i, j + 1])
    pairs, i, j = [], 0, 0
    while i < len(wanted) and j < len(passed):
        if wanted[i] == passed[j] and longest[i, j] == longest[i + 1, j + 1] + 1:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif longest[i, j + 1] == longest[i, j]:
            j += 1
        else:
            i += 1
    return pairs


# -----------------------------------------------------------------------------------------------------------------------------

# Source: spec/boundary_predictor section 11: bars of 0.05 m, centre lines 0.45 m apart, opening 0.40 m.
OPENING = (0.4, 0.4)
"""Width and height of the opening of the IROS 2022 competition's gates [m]."""
BAR = 0.05
"""Side of their square bars [m]."""


@dataclass(frozen=True)
class Gate:
    """A square frame, upright."""

    position: tuple[float, float, float]
    """Centre of the opening, world [m]."""
    yaw: float
    """Heading of the direction of flight through it [rad], counter-clockwise from world x."""
    opening: tuple[float, float] = OPENING
    """Width and height [m]."""
    bar: float = BAR
    """Side of the bars' square section [m]."""

    @property
    def normal(self) -> Array:
        """Direction of flight, world, unit length, shape (3,)."""
        return np.array([np.cos(self.yaw), np.sin(self.yaw), 0.0])

    def bars(self) -> tuple[YawedBox, YawedBox, YawedBox, YawedBox]:
        """Return the frame's boxes: left, right, top, bottom as seen in flight; the top and bottom ones include the corners."""
        width, height = self.opening
        half = 0.5 * self.bar
        side, up = 0.5 * width + half, 0.5 * height + half
        left = np.array([-np.sin(self.yaw), np.cos(self.yaw), 0.0])
        upright, level = (half, half, 0.5 * height), (half, 0.5 * width + self.bar, half)
        above = np.array([0.0, 0.0, up])
        offsets = ((side * left, upright), (-side * left, upright), (above, level), (-above, level))
        centers = [(np.asarray(self.position) + offset, size) for offset, size in offsets]
        a, b, c, d = (YawedBox((float(p[0]), float(p[1]), float(p[2])), size, self.yaw) for p, size in centers)
        return a, b, c, d


@dataclass(frozen=True)
class GateCrossing:
    """Where flight steps of shape (...) met a gate's plane."""

    crossed: ArrayBool
    """The plane was met, in the direction of flight."""
    inside: ArrayBool
    """And within the opening."""
    share: Array
    """Part of the step flown when the plane was met; 0 where it was not."""
    offset: Array
    """To the left and up from the centre, there [m], shape (..., 2)."""


def gate_crossing(gate: Gate, before: ArrayLike, after: ArrayLike) -> GateCrossing:
    """Test flight steps against a gate: the signed distance to its plane turns from negative to positive.

    Args:
        gate: The gate.
        before: Positions at the beginning of steps [m], shape (..., 3).
        after: Positions at their end, shape (..., 3).
    """
    centre = np.asarray(gate.position)
    first, last = np.asarray(before, dtype=np.float64) - centre, np.asarray(after, dtype=np.float64) - centre
    ahead_first, ahead_last = first @ gate.normal, last @ gate.normal
    crossed = (ahead_first < 0.0) & (ahead_last >= 0.0)
    share = np.where(crossed, -ahead_first / np.where(crossed, ahead_last - ahead_first, 1.0), 0.0)
    met = first + share[..., None] * (last - first)
    left = np.array([-np.sin(gate.yaw), np.cos(gate.yaw), 0.0])
    offset = np.stack((met @ left, met[..., 2]), axis=-1)
    inside = crossed & np.all(np.abs(offset) <= 0.5 * np.asarray(gate.opening), axis=-1)
    return GateCrossing(crossed, inside, share, offset)


@dataclass(frozen=True)
class GatePassage:
    """What a flight did at one gate of its course."""

    index: int
    passed: bool
    """False: crossed outside its opening, out of order, or never."""
    time: float
    """[s]; NaN where it was not passed."""
    offset: tuple[float, float]
    """To the left and up from the centre [m]; NaN where it was not passed."""


def gate_passages(gates: Sequence[Gate], times: ArrayLike, position: ArrayLike) -> tuple[GatePassage, ...]:
    """Return which gates a flight passed, in the course's order: the most that can be matched, earliest first.

    Args:
        gates: In the order to be flown; a gate flown on two laps stands there twice.
        times: [s], shape (n,).
        position: [m], shape (n, 3).
    """
    t, path = np.asarray(times, dtype=np.float64), np.asarray(position, dtype=np.float64)
    kinds = list(dict.fromkeys(gates))
    events = [event for kind in kinds for event in _events(kind, t, path)]
    events.sort(key=lambda event: event[0])
    matched = match_in_order(gates, [event[1] for event in events])
    missed = (np.nan, (np.nan, np.nan))
    found = {wanted: events[event] for wanted, event in matched}
    results = []
    for index in range(len(gates)):
        time, offset = (found[index][0], found[index][2]) if index in found else missed
        results.append(GatePassage(index, index in found, time, offset))
    return tuple(results)


def _events(gate: Gate, t: Array, path: Array) -> list[tuple[float, Gate, tuple[float, float]]]:
    crossing = gate_crossing(gate, path[:-1], path[1:])
    rows = np.flatnonzero(crossing.inside)
    return [
        (
            float(t[i] + crossing.share[i] * (t[i + 1] - t[i])),
            gate,
            (float(crossing.offset[i, 0]), float(crossing.offset[i, 1])),
        )
        for i in rows
    ]
