"""What a plan keeps off: posts, the frames of gates that a leg does not fly through, and the limits of the race.

    post     |xy - post| >= radius + clearance
    frame    (a / A)^4 + (l / L)^4 + (u / U)^4 >= 1, with a, l, u from the gate's centre along its normal, left and up
    limits   lower + clearance <= position <= upper - clearance

All are smooth, as a solver needs them. The superellipsoid of a frame holds the whole gate, opening included: a leg that is not
through it has no business there (the exponent is ours: 4 comes to 84 % of a box's corners, 2 to 58 %). Posts are taken as
endless: nobody flies over one, for those of the races that come with the package end above all gates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from airworthy.core.arrays import Array
from airworthy.race.gate_bars import frames_of
from airworthy.race.gate_geometry import GateShape, gate_shape
from airworthy.race.record import GateFrames, Race

__all__ = ["AROUND", "SHARE", "Frame", "KeepOff", "obstacles_of"]

_NEAR = 0.4
"""Frames farther from the straight leg than this share of its length are left out: each costs four rows at each node, and
curves of plans keep within it."""
_SHORT = 3.0
"""Who is within so many half depths of its gate's frame, before the opening, is too near to keep off it first."""
SHARE = 1.0 / 3.0
"""Part of a leg next to its own gate on which that gate's frame is the cone's business (`RacePlanOptions.cone`)."""


AROUND = 2.2
"""Beside its opening a first guess leads so far round a gate that is flown again [m]: its bar, the vehicle, and what solvers
need to see that the way is free. Ours."""


@dataclass(frozen=True)
class Frame:
    """One gate as an obstacle."""

    name: str
    shape: GateShape
    half: Array
    """Half sizes along normal, left and up, clearance included [m], (3,)."""

    def level(self, position: Any) -> Any:
        """Return the left side of the inequality: below 1 inside.

        Args:
            position: 3 components, numbers, arrays or symbols.
        """
        total: Any = 0.0
        for axis, half in zip((self.shape.normal, self.shape.left, self.shape.up), self.half, strict=True):
            along = sum(float(axis[k]) * (position[k] - float(self.shape.center[k])) for k in range(3))
            total = total + (along / float(half)) ** 4
        return total

    def is_before(self, point: Array) -> bool:
        """Tell whether a point lies right before or behind the opening, within 45 degrees of its edges, (3,)."""
        away, shape = point - self.shape.center, self.shape
        depth = abs(float(away @ shape.normal))
        if depth > _SHORT * float(self.half[0]):
            return False
        return (
            abs(float(away @ shape.left)) < shape.half_width + depth and abs(float(away @ shape.up)) < shape.half_height + depth
        )


@dataclass(frozen=True)
class KeepOff:
    """Those of one course."""

    posts: Array
    """x, y and least distance of the path from there [m], (posts, 3)."""
    frames: tuple[Frame, ...]
    passes: tuple[str, ...]
    """Gate of each passage: leg k leads from passage k - 1 to passage k."""
    lower: Array | None
    """Of the path [m], (3,); None: no limit."""
    upper: Array | None

    behind: str = ""
    """Gate of the passage before the first leg, if there was one."""
    reverse: tuple[bool, ...] = ()
    """Of each passage: whether the gate is flown against its direction; empty: none is."""
    behind_reverse: bool = False
    """The same of the passage before the first leg."""

    def after(self, passed: int) -> KeepOff:
        """Return the same for the legs behind so many passages."""
        if not passed:
            return replace(self, behind="", behind_reverse=False)
        return replace(
            self, passes=self.passes[passed:], behind=self.passes[passed - 1], reverse=self.reverse[passed:],
            behind_reverse=self._is_reverse(passed - 1),
        )  # fmt: skip

    def is_back(self, leg: int) -> bool:
        """Tell whether a leg leads back to the gate that it begins in."""
        return self.passes[leg] == (self.passes[leg - 1] if leg else self.behind)

    def is_round(self, leg: int) -> bool:
        """Tell whether a leg leads back to the gate that it begins in, through which it goes the same way again."""
        before = self._is_reverse(leg - 1) if leg else self.behind_reverse
        return self.is_back(leg) and self._is_reverse(leg) == before

    def _is_reverse(self, leg: int) -> bool:
        return bool(self.reverse) and self.reverse[leg]

    def is_behind(self, leg: int, point: Array) -> bool:
        """Tell whether a point lies behind the plane of the gate that a leg ends in, as it is flown, or in it, (3,)."""
        side = -1.0 if self._is_reverse(leg) else 1.0
        return any(
            frame.name == self.passes[leg] and side * float((point - frame.shape.center) @ frame.shape.normal) >= -1e-9
            for frame in self.frames
        )

    def is_before(self, leg: int, point: Array) -> bool:
        """Tell whether a point lies right before the gate that a leg ends in, (3,)."""
        return any(frame.name == self.passes[leg] and frame.is_before(point) for frame in self.frames)

    def blocking(self, leg: int, begin: Array, end: Array) -> Iterator[tuple[Frame, float, float]]:
        """Yield frames that stand in a leg's way, and on which part of it they count, 0 to 1.

        Args:
            leg: Its number.
            begin: Where it begins [m], (3,).
            end: Where it ends [m], (3,).
        """
        before = self.passes[leg - 1] if leg else self.behind
        length = float(np.linalg.norm(end - begin))
        for frame in self.frames:
            # In flight a plan may begin right before its gate, within what is kept off: there the cone alone guides.
            # But who flies through it again has to go round it.
            again = self.is_round(leg) and self.is_behind(leg, begin)
            if frame.name == self.passes[leg] and frame.is_before(begin) and not again:
                continue
            reach = _NEAR * length + float(np.max(frame.half))
            if self.is_round(leg):
                # Round its gate it leads beside it, wherever it begins and ends.
                reach += max(float(np.max(own.half)) for own in self.frames if own.name == self.passes[leg]) + AROUND
            if _beside(frame.shape.center, begin, end) > reach:
                continue
            low = SHARE if frame.name == before else 0.0
            high = 1.0 - SHARE if frame.name == self.passes[leg] else 1.0
            yield frame, low, high


def obstacles_of(race: Race, clearance: float, wall: float) -> KeepOff:
    """Return what plans through a course keep off.

    Args:
        race: The course.
        clearance: Of the path from posts and frames [m]: the vehicle's radius and what flying errs.
        wall: Of the path from the limits [m].
    """
    posts = np.array([[*post.position, post.radius + clearance] for post in race.posts]).reshape(-1, 3)
    bars = frames_of(race)
    frames = [] if bars is None else [_frame(gate.name, gate_shape(gate), bars, clearance) for gate in race.gates]
    lower, upper = race.limits.lower, race.limits.upper
    return KeepOff(
        posts,
        tuple(frames),
        tuple(name for name, _ in race.passes),
        None if lower is None else np.asarray(lower) + wall,
        None if upper is None else np.asarray(upper) - wall,
        reverse=tuple(back for _, back in race.passes),
    )


def _frame(name: str, shape: GateShape, bars: GateFrames, clearance: float) -> Frame:
    sizes = np.array([0.5 * bars.depth, shape.half_width + bars.width, shape.half_height + bars.width])
    return Frame(name, shape, sizes + clearance)


def _beside(point: Array, a: Array, b: Array) -> float:
    """Distance of a point from a straight line between two [m]."""
    along = b - a
    share = float(np.clip((point - a) @ along / max(float(along @ along), 1e-9), 0.0, 1.0))
    return float(np.linalg.norm(point - a - share * along))


def node_range(nodes: int, low: float, high: float) -> Sequence[int]:
    """Return numbers of a leg's nodes within a part of it, from 1 to `nodes` at most.

    Args:
        nodes: Of each leg.
        low: Where the part begins, 0 to 1.
        high: Where it ends.
    """
    return range(max(1, round(low * nodes)), min(nodes, round(high * nodes)) + 1)
