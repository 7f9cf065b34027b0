"""Sudden drop: slabs that hang from 14 m down to 1.5 m across the whole map; the number of slabs is the index."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from airworthy.scenes.generators.flyingtrust.layout import Layout, goal_of, start_of
from airworthy.scenes.generators.flyingtrust.parameters import (
    GAP_WALL,
    LOW_WALL,
    SCENARIOS,
    SLAB_BOTTOM,
    SLAB_THICKNESS,
    SLAB_TOP,
)


def draw_drop(index: int, rng: np.random.Generator) -> Layout:
    """Hanging slabs only, as stated by the paper."""
    layout = Layout("sudden_drop")
    _slabs(layout, index, rng)
    return layout


def draw_drop_plus(index: int, rng: np.random.Generator) -> Layout:
    """The same, and every second configuration adds a low wall between two slabs, so that one has to climb again."""
    layout = Layout("sudden_drop_plus")
    edges = _slabs(layout, index, rng)
    between = list(pairwise(edges))
    order = np.argsort(rng.random(len(between)), kind="stable")[: index // 2].tolist()
    for k in sorted(order):
        height = LOW_WALL[0] + (LOW_WALL[1] - LOW_WALL[0]) * float(rng.random())
        size = (GAP_WALL, layout.stated.width, height)
        layout.box((0.5 * (between[k][0][1] + between[k][1][0]), 0.0, 0.5 * height), size, "wall", "brick")
    layout.facts["low_walls"] = float(len(order))
    return layout


def _slabs(layout: Layout, count: int, rng: np.random.Generator) -> list[tuple[float, float]]:
    """Adds slabs with their middles at even distances; returns where each begins and ends along x."""
    stated = SCENARIOS["sudden_drop"]
    start, goal = float(start_of(stated)[0]), float(goal_of(stated)[0])
    thickness = SLAB_THICKNESS[0] + (SLAB_THICKNESS[1] - SLAB_THICKNESS[0]) * rng.random(count)
    edges = []
    for number, thick in enumerate(thickness.tolist()):
        x = start + (goal - start) * (number + 1) / (count + 1)
        size = (thick, stated.width, SLAB_TOP - SLAB_BOTTOM)
        layout.box((x, 0.0, 0.5 * (SLAB_TOP + SLAB_BOTTOM)), size, "slab", f"concrete~{number % 5}", name=f"slab_{number + 1}")
        edges.append((x - 0.5 * thick, x + 0.5 * thick))
    layout.facts = {"obstacles": float(count), "slabs": float(count), "lowest_point_m": SLAB_BOTTOM}
    layout.facts |= {"thinnest_slab_m": float(thickness.min()), "thickest_slab_m": float(thickness.max())}
    return edges
