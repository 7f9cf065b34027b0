"""How much of a place lies under trees."""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import ArrayBool
from airworthy.geometry import Mesh, bounds
from airworthy.scenes.record import Instance, Scene

__all__ = ["CLOSED_FOREST", "canopy_cover"]

CLOSED_FOREST = 0.4
"""Share of the ground under crowns above which a forest is closed (FAO, Global Forest Resources Assessment 2000)."""
_CELL = 1.0
"""Of the grid that cover is counted on [m]."""
_CROWN = 1.0
"""Least radius of a crown [m]; ferns and grass are none."""


def canopy_cover(scene: Scene) -> float:
    """Return the share of the ground within a scene's bounds that lies under crowns, 0 to 1: things with leaves that let light
    through (`Material.translucency`), as wide as the boxes around them."""
    leafy = {name for name, material in scene.materials.items() if material.translucency > 0.0}
    low, high = (np.array(corner[:2]) for corner in (scene.bounds.lower, scene.bounds.upper))
    if not leafy or not np.isfinite([low, high]).all():
        return 0.0
    x, y = (np.arange(a + 0.5 * _CELL, max(b, a + _CELL), _CELL) for a, b in zip(low, high, strict=True))
    under = np.zeros((len(x), len(y)), bool)
    reach: dict[str, float] = {}
    for item in (*scene.instances, *scene.looks):
        radius = item.scale * _radius(scene, item, leafy, reach)
        if radius >= _CROWN:
            under |= _disc(x, y, item, radius)
    return float(under.mean())


def _radius(scene: Scene, item: Instance, leafy: set[str], reach: dict[str, float]) -> float:
    """Return the radius of what stands upright and has leaves, 0 of everything else [m]."""
    if not leafy.intersection(item.materials):
        return 0.0
    if item.shape not in reach:
        shape = scene.shapes[item.shape]
        size = np.zeros(3) if not isinstance(shape, Mesh) else np.subtract(*reversed(bounds(shape)))
        # Patches of litter and grass are wide, and flat.
        reach[item.shape] = 0.25 * float(size[0] + size[1]) if size[2] > _CROWN else 0.0
    return reach[item.shape]


def _disc(x: np.ndarray, y: np.ndarray, item: Instance, radius: float) -> ArrayBool:
    return np.asarray((x[:, None] - item.position[0]) ** 2 + (y[None] - item.position[1]) ** 2 < radius * radius)
