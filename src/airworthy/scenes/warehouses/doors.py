"""Gates of loading docks, open and closed, and doors for people.

Frames: in the plane y = 0 of a wall, whose inside lies at -y; on the floor, z up, the middle at the origin, metres.
"""

from __future__ import annotations

import numpy as np

from airworthy.scenes.buildings.patches import PatchMesh
from airworthy.scenes.warehouses.labels import LABEL_NUMBERS
from airworthy.scenes.warehouses.parts import (
    COATED,
    GLASS,
    GLOW,
    HAZARD,
    LACQUER,
    MATT,
    METAL,
    PAINT,
    Color3,
    chamfered,
    facing_quad,
    label,
)

__all__ = ["GATE", "door", "gate"]

GATE = (3.4, 3.8)
"""Width and height of a gate's opening [m]."""
_AHEAD = (0.0, -1.0, 0.0)
_PANELS = 7


def gate(number: int, is_open: bool, paint: Color3) -> PatchMesh:
    """Return a sectional gate with its frame, rails, sign and signal; an open one hangs under the rails in the hall.

    Args:
        number: Of the dock, from 1 to 3.
        is_open: Whether one can fly through.
        paint: Colour of its panels.
    """
    p = PatchMesh()
    wide, high = GATE
    half, panel = 0.5 * wide, high / _PANELS
    for side in (-1.0, 1.0):
        x0, x1 = sorted((side * half, side * (half + 0.16)))
        p.box((x0, -0.20, 0.0), (x1, 0.05, high + 0.16), COATED, (0.30, 0.31, 0.32))
        for k in range(4):
            uv = np.array([[0.0, 0.5], [0.25, 0.5], [0.25, 0.0], [0.0, 0.0]])
            p.quad(facing_quad((side * (half + 0.08), -0.203, 0.2 + 0.4 * k), _AHEAD, 0.14, 0.4), HAZARD, (1.0, 1.0, 1.0), uv)
        # Rails: up at the side, then level into the hall.
        rail = side * (half - 0.03)
        p.box((rail - 0.03, -0.10, 0.0), (rail + 0.03, -0.06, high + 0.2), METAL, (0.42, 0.43, 0.44))
        p.box((rail - 0.03, -3.9, high + 0.25), (rail + 0.03, -0.1, high + 0.31), METAL, (0.42, 0.43, 0.44))
        p.box((rail - 0.012, -3.85, high + 0.31), (rail + 0.012, -3.80, high + 2.2), METAL, (0.38, 0.38, 0.38))
        p.box((side * (half + 0.16) - 0.09, 0.05, 0.2), (side * (half + 0.16) + 0.09, 0.22, 0.7), MATT, (0.02, 0.02, 0.02))
    p.box((-half - 0.16, -0.20, high), (half + 0.16, 0.05, high + 0.16), COATED, (0.30, 0.31, 0.32))
    shaft = np.array([[-half, -0.22, high + 0.42], [half, -0.22, high + 0.42]])
    p.tube(shaft, 0.035, METAL, (0.35, 0.35, 0.35), 10)
    for x in (-0.7, 0.7):
        p.tube(shaft[:1] * [0.0, 1.0, 1.0] + np.array([[x - 0.3, 0, 0], [x + 0.3, 0, 0]]), 0.08, METAL, (0.15, 0.15, 0.15), 12)
    for k in range(_PANELS):
        if is_open:
            y1 = -0.25 - panel * k
            chamfered(p, (-half + 0.02, y1 - panel + 0.01, high + 0.20), (half - 0.02, y1, high + 0.245), 0.006, COATED, paint)
        else:
            z0 = panel * k
            chamfered(p, (-half + 0.01, -0.05, z0 + 0.004), (half - 0.01, -0.005, z0 + panel - 0.004), 0.006, COATED, paint)
            for x in np.linspace(-half + 0.1, half - 0.1, 4):
                p.box((x - 0.025, -0.065, z0 + 0.05), (x + 0.025, -0.05, z0 + panel - 0.05), METAL, (0.42, 0.43, 0.44))
            if k == 3:
                for x in (-0.85, 0.0, 0.85):
                    p.quad(facing_quad((x, -0.053, z0 + 0.5 * panel), _AHEAD, 0.56, 0.30), MATT, (0.02, 0.02, 0.02))
                    p.quad(facing_quad((x, -0.056, z0 + 0.5 * panel), _AHEAD, 0.50, 0.24), GLASS, (0.30, 0.36, 0.42))
    p.box((-0.66, -0.24, high + 0.62), (0.66, -0.20, high + 0.82), PAINT, (0.3, 0.3, 0.3))
    label(p, facing_quad((0.0, -0.243, high + 0.72), _AHEAD, 1.28, 0.16), LABEL_NUMBERS["dock"] + (number - 1) % 3)
    x = half + 0.40
    chamfered(p, (x - 0.12, -0.24, 1.9), (x + 0.12, -0.14, 2.4), 0.02, PAINT, (0.05, 0.05, 0.05))
    for z, tone, glows in ((2.27, (0.5, 0.03, 0.02), not is_open), (2.03, (0.04, 0.5, 0.10), is_open)):
        p.disc(
            np.array([x, -0.243, z]), _AHEAD, 0.08, GLOW if glows else LACQUER, tone if glows else [0.15 * v for v in tone], 16
        )
    chamfered(p, (x - 0.14, -0.22, 1.1), (x + 0.14, -0.12, 1.5), 0.02, PAINT, (0.5, 0.5, 0.5))
    for k, tone in enumerate(((0.02, 0.3, 0.05), (0.4, 0.02, 0.02), (0.02, 0.02, 0.02))):
        p.disc(np.array([x, -0.223, 1.4 - 0.1 * k]), _AHEAD, 0.03, LACQUER, tone, 10)
    return p


def door() -> PatchMesh:
    """Return a closed steel door with a small window, a bar to push, its frame and a light above."""
    p = PatchMesh()
    for side in (-1.0, 1.0):
        p.box((side * 0.52 - 0.05, -0.16, 0.0), (side * 0.52 + 0.05, 0.0, 2.15), PAINT, (0.25, 0.26, 0.27))
    p.box((-0.57, -0.16, 2.1), (0.57, 0.0, 2.2), PAINT, (0.25, 0.26, 0.27))
    chamfered(p, (-0.47, -0.14, 0.01), (0.47, -0.08, 2.1), 0.006, COATED, (0.26, 0.33, 0.36))
    p.quad(facing_quad((0.1, -0.143, 1.55), _AHEAD, 0.34, 0.5), MATT, (0.02, 0.02, 0.02))
    p.quad(facing_quad((0.1, -0.146, 1.55), _AHEAD, 0.28, 0.44), GLASS, (0.12, 0.14, 0.15))
    p.tube(np.array([[-0.38, -0.19, 1.02], [0.38, -0.19, 1.02]]), 0.02, METAL, (0.42, 0.42, 0.42), 10)
    p.quad(facing_quad((0.0, -0.143, 0.18), _AHEAD, 0.86, 0.28), METAL, (0.36, 0.36, 0.36))
    return p
