"""Random cylinders: 67 logs at any angle, sunk into the floor where they reach below it."""

from __future__ import annotations

import numpy as np

from airworthy.core.frames import from_axis_angle, multiply, to_matrix
from airworthy.geometry import Cylinder
from airworthy.scenes.generators.flyingtrust.layout import Layout, goal_of, start_of
from airworthy.scenes.generators.flyingtrust.parameters import (
    CLEAR_RADIUS,
    CYLINDER_CENTRE,
    CYLINDER_COUNT,
    CYLINDER_LENGTH,
    CYLINDER_RADIUS,
    CYLINDER_TILT,
    SCENARIOS,
)
from airworthy.scenes.generators.flyingtrust.solids import Solids
from airworthy.scenes.record import Instance

_SURFACES = ("rust", "concrete", "wood", "metal")


def draw_cylinders(index: int, rng: np.random.Generator) -> Layout:
    """Cylinders whose centres are spread evenly over the area; none reaches through an outer wall or into a cleared end."""
    layout = Layout("random_cylinder")
    stated = SCENARIOS["random_cylinder"]
    ends = np.stack([start_of(stated), goal_of(stated)])
    half = 0.5 * np.array([stated.length, stated.width])
    tilts: list[float] = []
    while len(layout.instances) < CYLINDER_COUNT:
        u = rng.random(7)
        radius, length, tilt = (
            a + (b - a) * x for (a, b), x in zip((CYLINDER_RADIUS, CYLINDER_LENGTH, CYLINDER_TILT), u[:3].tolist(), strict=True)
        )
        low, high = CYLINDER_CENTRE
        centre = np.array([*(2.0 * u[3:5] - 1.0) * half, low + (high - low) * u[5]])
        turn = multiply(from_axis_angle((0, 0, 1), 2.0 * np.pi * u[6]), from_axis_angle((1, 0, 0), np.radians(tilt)))
        log = Cylinder(radius, 0.5 * length)
        if not _fits(log, centre, turn, half, ends):
            continue
        place = (float(centre[0]), float(centre[1]), float(centre[2]))
        attitude = (float(turn[0]), float(turn[1]), float(turn[2]), float(turn[3]))
        surface = f"{_SURFACES[len(tilts) % len(_SURFACES)]}~{len(tilts) % 5}"
        layout.add(log, place, "cylinder", surface, attitude)
        tilts.append(tilt)
    layout.facts = {"obstacles": float(CYLINDER_COUNT), "least_tilt_deg": min(tilts), "largest_tilt_deg": max(tilts)}
    return layout


def _fits(log: Cylinder, centre: np.ndarray, turn: np.ndarray, half: np.ndarray, ends: np.ndarray) -> bool:
    axis = to_matrix(turn)[:, 2]
    reach = np.abs(axis) * log.half_length + np.sqrt(np.maximum(1.0 - axis * axis, 0.0)) * log.radius
    if (np.abs(centre[:2]) + reach[:2] > half).any():
        return False
    if (np.hypot(*(ends[:, :2] - centre[:2]).T) > CLEAR_RADIUS + log.half_length + log.radius).all():
        return True
    item = Instance("log", tuple(centre.tolist()), tuple(turn.tolist()))
    heights = np.linspace(0.0, SCENARIOS["random_cylinder"].ceiling, 31)
    points = np.repeat(ends, len(heights), axis=0)
    points[:, 2] = np.tile(heights, len(ends))
    return bool(Solids.of({"log": log}, [item]).distance(points).min() >= CLEAR_RADIUS + 1e-3)
