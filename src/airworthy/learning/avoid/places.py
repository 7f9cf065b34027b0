"""Places to learn in: squares that repeat themselves, with trunks, balls and boxes, of which any first few are a place, too.

Trunks are set one after the other at random where they leave a gap to all before (random sequential addition). The first n of
them are therefore a forest of n trunks of the same kind: one number says how dense a place is, and a curriculum turns it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayF32
from airworthy.core.native_kernel import native_kernel, quiet_launch, quiet_warp

__all__ = ["BALLS", "BOXES", "GAP", "RADII", "SIDE", "TRUNKS", "Places", "draw_places"]

SIDE = 32.0
"""Edge of a place [m]: twice as far as its images see, so that no obstacle is seen twice."""
RADII = (0.08, 0.4)
"""Of trunks [m]; specification learning_by_reward 7.2 has 0.05 to 0.4."""
GAP = 0.6
"""Least gap between trunks [m]: twice what the vehicle that is flown is wide."""
TRUNKS = 460
"""Of the densest place: one per 2.2 square metres."""
BALLS, BOXES = 32, 32
"""Most per place; ours, few beside the trunks."""
BALL_RADII, BOX_HALVES, HEIGHTS = (0.4, 0.6), (0.2, 0.3), (0.3, 3.5)
"""Radii and half edges [m] are the specification's, 7.2; heights [m] are ours, where flights pass."""
_TRIES = 8000
"""Ours: candidates per place, three times as many as it takes."""


@dataclass(frozen=True, eq=False)
class Places:
    """Obstacles of many places; see `draw_places`."""

    trunks: ArrayF32
    """(place, n, 3): x, y, radius [m]."""
    balls: ArrayF32
    """(place, n, 4): x, y, z, radius [m]."""
    boxes: ArrayF32
    """(place, n, 6): middle, half edges [m]."""
    side: float = SIDE


def draw_places(count: int, seed: int) -> Places:
    """Return places of a seed.

    Args:
        count: How many.
        seed: Of all that is drawn.
    """
    rng = np.random.default_rng([seed, 1])

    def somewhere(n: int, heights: tuple[float, float]) -> list[Any]:
        return [rng.uniform(0.0, SIDE, (count, n, 2)), rng.uniform(*heights, (count, n, 1))]

    # In float32 from here on: what is set is compared in the numbers that rays will meet.
    trunks = set_trunks(np.concatenate(somewhere(_TRIES, RADII), 2).astype(np.float32), TRUNKS)
    balls = np.concatenate([*somewhere(BALLS, HEIGHTS), rng.uniform(*BALL_RADII, (count, BALLS, 1))], 2)
    boxes = np.concatenate([*somewhere(BOXES, HEIGHTS), rng.uniform(*BOX_HALVES, (count, BOXES, 3))], 2)
    return Places(trunks, balls.astype(np.float32), boxes.astype(np.float32))


def set_trunks(candidates: ArrayF32, room: int, gap: float = GAP) -> ArrayF32:
    """Return trunks (place, room, 3) that leave gaps, of candidates in their order.

    Args:
        candidates: x, y, radius [m], (place, tried, 3).
        room: Most trunks of a place; where fewer fit, the last have radius -1000 m, which nothing meets.
        gap: Least distance between two surfaces [m].
    """
    count, tried, _ = candidates.shape
    # What is never set lies inside out, so that neither rays nor clearance find it.
    found = np.zeros((count, room, 3), np.float32)
    set_count = np.zeros(count, np.int32)
    wp = quiet_warp()
    views = [
        wp.array(np.ascontiguousarray(a).reshape(-1), dtype=wp.dtype_from_numpy(a.dtype), device="cpu", copy=False)
        for a in (candidates, found, set_count)
    ]
    quiet_launch(_kernel(), count, [*views, tried, room, SIDE, gap, 0], "cpu")
    # A radius far below 0: the kernel needs no count of those that are there.
    found[np.arange(room)[None] >= set_count[:, None]] = (0.0, 0.0, -1e3)
    return found


@cache
def _kernel() -> Any:
    text = files("airworthy.learning.avoid").joinpath("native", "set_trunks.h").read_text()
    return native_kernel("set_trunks", text, _ARGUMENTS)


_ARGUMENTS = """
    candidates: float32[]  # x, y, radius [m], (place, try_count, 3)
    trunks: float32[]      # written: those that fit, (place, room, 3)
    set_count: int32[]     # written: how many, (place,)
    try_count: int
    room: int
    side: float            # of the square that repeats itself [m]
    gap: float             # between surfaces [m]
"""
