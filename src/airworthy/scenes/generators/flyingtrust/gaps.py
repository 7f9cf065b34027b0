"""Narrow gaps: walls across the map, each with one slit; the number of walls is the index."""

from __future__ import annotations

import numpy as np

from airworthy.scenes.generators.flyingtrust.layout import Layout, goal_of, start_of
from airworthy.scenes.generators.flyingtrust.parameters import (
    GAP_OFFSET,
    GAP_ROOM,
    GAP_SHIFT,
    GAP_WALL,
    GAP_WALL_HEIGHT,
    GAP_WIDTH,
    SCENARIOS,
)


def draw_gaps(index: int, rng: np.random.Generator) -> Layout:
    """`index` walls at even distances; the only slit of configuration 1 lies on the line."""
    layout = Layout("narrow_gap")
    half = 0.5 * SCENARIOS["narrow_gap"].width
    centres, widths = slit_centres(index, rng), GAP_WIDTH[0] + (GAP_WIDTH[1] - GAP_WIDTH[0]) * rng.random(index)
    for number, (x, y, width) in enumerate(zip(wall_places(index), centres, widths.tolist(), strict=True)):
        edges = ((-half, y - 0.5 * width), (y + 0.5 * width, half))
        for (low, high), side in zip(edges, ("right", "left"), strict=True):
            size = (GAP_WALL, high - low, GAP_WALL_HEIGHT)
            center = (x, 0.5 * (low + high), 0.5 * GAP_WALL_HEIGHT)
            layout.box(center, size, "wall", f"plaster~{number % 5}", name=f"wall_{number + 1}_{side}")
    shifts = np.abs(np.diff(centres))
    layout.facts = {"obstacles": float(index), "gaps": float(index), "narrowest_gap_m": float(widths.min())}
    layout.facts |= {"widest_gap_m": float(widths.max()), "least_shift_m": float(shifts.min()) if index > 1 else 0.0}
    return layout


def wall_places(count: int) -> list[float]:
    """Even distances between start and goal; where that leaves less than 4 m between walls, 4 m, in the middle."""
    stated = SCENARIOS["narrow_gap"]
    start, goal = float(start_of(stated)[0]), float(goal_of(stated)[0])
    pitch = max((goal - start) / (count + 1), GAP_ROOM + GAP_WALL)
    return [(k - 0.5 * (count - 1)) * pitch for k in range(count)]


def slit_centres(count: int, rng: np.random.Generator) -> list[float]:
    """Evenly distributed over +-8 m, each at least 3 m from the one before."""
    if count == 1:
        return [0.0]
    centres: list[float] = []
    while len(centres) < count:
        y = GAP_OFFSET * (2.0 * float(rng.random()) - 1.0)
        if not centres or abs(y - centres[-1]) >= GAP_SHIFT:
            centres.append(y)
    return centres
