"""The bars around the opening of a gate: what stands there, for the scene that is flown in and for the check of a race."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array
from airworthy.race.gate_geometry import GateShape
from airworthy.race.record import GateFrames, Race

__all__ = ["GateBar", "frames_of", "gate_bars"]

_SIDES = (("left", "left", 1.0), ("right", "left", -1.0), ("top", "up", 1.0), ("bottom", "up", -1.0))


def frames_of(race: Race) -> GateFrames | None:
    """Return the bars around a race's gates: its own, or those that the scene built from its file has; None of one in a scene
    that has its gates itself."""
    return race.frames or (None if race.scene else GateFrames())


@dataclass(frozen=True)
class GateBar:
    """One bar, a box."""

    side: str
    """Of the opening: left, right, top or bottom."""
    center: Array
    """World [m], (3,)."""
    along: Array
    """Unit vector of its length, (3,)."""
    half: Array
    """Half of its depth along the flight, of its width across the opening's edge, and of its length [m], (3,)."""

    def axes(self, shape: GateShape) -> Array:
        """Return the directions of `half`, as rows, (3, 3).

        Args:
            shape: The opening that it belongs to.
        """
        return np.stack([shape.normal, np.cross(self.along, shape.normal), self.along])


def gate_bars(shape: GateShape, frames: GateFrames, others: Sequence[GateShape]) -> Iterator[GateBar]:
    """Yield four bars outside an opening, each along one of its sides.

    Args:
        shape: The opening.
        frames: Sizes of the bars.
        others: Openings of the other gates, which bars are not to close.
    """
    axes = {"left": (shape.left, shape.half_width), "up": (shape.up, shape.half_height)}
    for side, across, sign in _SIDES:
        axis, half = axes[across]
        beside, reach = axes["up" if across == "left" else "left"]
        out = sign * axis
        middle = shape.center + (half + 0.5 * frames.width) * out
        if any(_inside(other, middle) for other in others):
            # Stacked gates share this side: one bar stands on the edge, half of it in each opening.
            middle = shape.center + half * out
        # Uprights are as long as the whole frame, level bars fill in between: corners are closed once.
        length = reach + (frames.width if across == "left" else 0.0)
        yield GateBar(side, middle, beside, np.array([0.5 * frames.depth, 0.5 * frames.width, length]))


def _inside(shape: GateShape, point: Array) -> bool:
    """Tell whether a point lies in an opening, and near its plane."""
    away = point - shape.center
    near = abs(float(away @ shape.normal)) < 0.1
    return near and abs(float(away @ shape.left)) < shape.half_width and abs(float(away @ shape.up)) < shape.half_height
