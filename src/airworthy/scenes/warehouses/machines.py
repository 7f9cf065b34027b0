"""Machines and what stands about in a hall: turning centre, press, bench, cabinets, tank, forklift, extinguisher, posts, gates.

Frames: on the floor, z up, the front looks along -y, the middle at the origin, metres. Shapes are drawn by hand after the
proportions of common machines, of no make.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from airworthy.scenes.buildings.patches import PatchMesh
from airworthy.scenes.generators.seeding import generator
from airworthy.scenes.warehouses.labels import LABEL_NUMBERS
from airworthy.scenes.warehouses.parts import (
    CARD,
    COATED,
    GLASS,
    GLOW,
    HAZARD,
    LACQUER,
    MATT,
    METAL,
    PAINT,
    TREAD,
    WOOD,
    Color3,
    bar,
    chamfered,
    facing_quad,
    label,
)

__all__ = ["EQUIPMENT", "equipment"]

_YELLOW: Color3 = (0.62, 0.37, 0.012)
_BLACK: Color3 = (0.02, 0.02, 0.022)
_DARK: Color3 = (0.05, 0.052, 0.055)
_PALE: Color3 = (0.60, 0.61, 0.60)
_STEEL: Color3 = (0.40, 0.40, 0.40)
_RED: Color3 = (0.42, 0.02, 0.016)
_AHEAD = (0.0, -1.0, 0.0)


def _tower(patches: PatchMesh, x: float, y: float, z: float) -> None:
    """Add a signal lamp: red, amber, green on a short post."""
    patches.tube(np.array([[x, y, z], [x, y, z + 0.18]]), 0.015, METAL, _STEEL, 8)
    for k, tone in enumerate(((0.02, 0.28, 0.06), (0.5, 0.25, 0.01), (0.4, 0.02, 0.02))):
        patches.tube(np.array([[x, y, z + 0.18 + 0.08 * k], [x, y, z + 0.25 + 0.08 * k]]), 0.035, LACQUER, tone, 12)


def _cnc() -> PatchMesh:
    """Return a turning centre: a cabin with a sliding door and window, a panel on an arm, a chip conveyor, a signal lamp."""
    p = PatchMesh()
    band: Color3 = (0.035, 0.10, 0.22)
    chamfered(p, (-1.5, -0.85, 0.08), (1.5, 0.95, 0.62), 0.03, COATED, _DARK)
    chamfered(p, (-1.5, -0.75, 0.62), (1.5, 0.95, 1.92), 0.05, COATED, _PALE)
    chamfered(p, (-1.46, -0.70, 1.92), (1.0, 0.9, 2.12), 0.05, COATED, band)
    chamfered(p, (-0.95, -0.80, 0.66), (0.45, -0.74, 1.88), 0.02, LACQUER, (0.50, 0.51, 0.51))
    p.quad(facing_quad((-0.30, -0.803, 1.36), _AHEAD, 0.92, 0.72), MATT, _BLACK)
    p.quad(facing_quad((-0.30, -0.806, 1.36), _AHEAD, 0.84, 0.64), GLASS, (0.045, 0.055, 0.06))
    p.box((0.30, -0.86, 1.0), (0.33, -0.80, 1.65), METAL, _STEEL)
    for x in (-1.2, 0.95):
        p.quad(facing_quad((x, -0.752, 1.25), _AHEAD, 0.004, 1.24), MATT, _BLACK)
    for k in range(7):
        p.quad(facing_quad((-1.22, -0.753, 0.80 + 0.05 * k), _AHEAD, 0.34, 0.018), MATT, _BLACK)
    p.quad(facing_quad((-0.28, -0.705, 2.02), _AHEAD, 1.9, 0.07), PAINT, (0.55, 0.56, 0.55))
    bar(p, (1.2, -0.7, 1.95), (1.2, -1.1, 1.95), 0.06, 0.06, PAINT, _DARK)
    chamfered(p, (0.95, -1.16, 1.05), (1.45, -1.04, 1.98), 0.02, PAINT, _PALE)
    label(p, facing_quad((1.2, -1.163, 1.70), _AHEAD, 0.42, 0.40), LABEL_NUMBERS["screen"], (1.0, 1.0, 1.0), (0.0, 0.5))
    label(p, facing_quad((1.2, -1.163, 1.30), _AHEAD, 0.42, 0.26), LABEL_NUMBERS["screen"], (1.0, 1.0, 1.0), (0.51, 1.0))
    p.tube(np.array([[1.34, -1.16, 1.12], [1.34, -1.19, 1.12]]), 0.03, LACQUER, _RED, 12)
    _tower(p, 1.3, 0.5, 1.92)
    # The conveyor for chips, and their bin.
    chamfered(p, (1.5, -0.35, 0.15), (2.0, 0.15, 0.42), 0.02, COATED, _DARK)
    bar(p, (1.85, -0.1, 0.35), (2.45, -0.1, 1.05), 0.42, 0.16, COATED, _DARK, True)
    chamfered(p, (2.3, -0.4, 0.05), (2.9, 0.2, 0.62), 0.02, COATED, (0.05, 0.16, 0.10))
    for x in (-1.35, -0.45, 0.45, 1.35):
        for y in (-0.72, 0.8):
            p.tube(np.array([[x, y, 0.0], [x, y, 0.08]]), 0.05, METAL, _STEEL, 10)
    label(p, facing_quad((-1.22, -0.754, 1.55), _AHEAD, 0.32, 0.04), LABEL_NUMBERS["code"] + 3)
    p.tube(np.array([[-1.3, 0.7, 2.12], [-1.3, 0.7, 3.2]]), 0.08, METAL, (0.5, 0.5, 0.52), 14)
    return p


def _press() -> PatchMesh:
    """Return a press: two side walls of steel plate, a ram between, a table, a fly-wheel's housing, light curtains."""
    p = PatchMesh()
    green: Color3 = (0.055, 0.15, 0.105)
    for side in (-1.0, 1.0):
        x0, x1 = sorted((side * 0.62, side * 0.80))
        chamfered(p, (x0, -0.7, 0.0), (x1, 0.8, 2.6), 0.03, COATED, green)
    chamfered(p, (-0.95, -0.75, 2.2), (0.95, 0.85, 3.3), 0.06, COATED, green)
    chamfered(p, (-0.80, -0.75, 0.0), (0.80, 0.8, 0.78), 0.03, COATED, green)
    chamfered(p, (-0.60, -0.70, 0.78), (0.60, 0.7, 0.92), 0.01, METAL, (0.34, 0.33, 0.32))
    chamfered(p, (-0.45, -0.55, 1.45), (0.45, 0.55, 2.3), 0.02, COATED, (0.10, 0.11, 0.11))
    chamfered(p, (-0.38, -0.48, 1.20), (0.38, 0.48, 1.45), 0.01, METAL, _STEEL)
    p.box((-0.60, 0.62, 0.9), (0.60, 0.66, 2.2), MATT, _BLACK)
    for side in (-1.0, 1.0):
        p.box((side * 0.70 - 0.03, -0.82, 0.85), (side * 0.70 + 0.03, -0.76, 1.9), LACQUER, _YELLOW)
    p.tube(np.array([[-0.95, 0.1, 2.75], [-1.2, 0.1, 2.75]]), 0.42, COATED, [0.8 * v for v in green], 28)
    chamfered(p, (0.95, -0.3, 2.4), (1.2, 0.5, 3.0), 0.03, PAINT, _PALE)
    for k in range(8):
        uv = np.array([[0.0, 0.25], [1.0, 0.25], [1.0, 0.0], [0.0, 0.0]])
        p.quad(facing_quad((-0.7 + 0.2 * k, -0.753, 0.70), _AHEAD, 0.2, 0.08), HAZARD, (1.0, 1.0, 1.0), uv)
    label(p, facing_quad((0.0, -0.753, 2.85), _AHEAD, 0.9, 0.11), LABEL_NUMBERS["in"] + 1)
    bar(p, (0.95, -0.9, 0.0), (0.95, -0.9, 0.95), 0.08, 0.08, PAINT, _DARK)
    chamfered(p, (0.70, -1.02, 0.92), (1.20, -0.80, 1.08), 0.02, LACQUER, _YELLOW)
    for x in (0.78, 1.12):
        p.tube(np.array([[x, -0.91, 1.08], [x, -0.91, 1.11]]), 0.035, LACQUER, (0.02, 0.22, 0.05), 12)
    p.tube(np.array([[0.95, -0.91, 1.08], [0.95, -0.91, 1.12]]), 0.04, LACQUER, _RED, 12)
    _tower(p, 0.7, 0.6, 3.3)
    return p


def _bench() -> PatchMesh:
    """Return a work bench with drawers, a vice, boxes, and a board of tools behind it."""
    p = PatchMesh()
    rng = generator("hall", "bench")
    chamfered(p, (-1.1, -0.38, 0.84), (1.1, 0.38, 0.90), 0.008, WOOD, (1.0, 0.84, 0.62))
    for x in (-1.02, 0.25):
        for y in (-0.3, 0.3):
            p.box((x - 0.03, y - 0.03, 0.0), (x + 0.03, y + 0.03, 0.84), COATED, _DARK)
    chamfered(p, (0.35, -0.33, 0.10), (1.05, 0.33, 0.84), 0.01, COATED, (0.05, 0.14, 0.30))
    for k in range(4):
        p.quad(facing_quad((0.70, -0.333, 0.20 + 0.17 * k), _AHEAD, 0.64, 0.15), PAINT, (0.07, 0.18, 0.36))
        p.box((0.55, -0.36, 0.235 + 0.17 * k), (0.85, -0.333, 0.25 + 0.17 * k), METAL, _STEEL)
    p.box((-1.1, 0.36, 0.95), (1.1, 0.39, 1.9), COATED, (0.35, 0.36, 0.36))
    for _ in range(26):
        x, z = -1.0 + 2.0 * rng.random(), 1.05 + 0.7 * rng.random()
        long, tone = 0.08 + 0.18 * rng.random(), ((0.3, 0.3, 0.3), _RED, _BLACK, (0.5, 0.3, 0.02))[int(rng.random() * 4)]
        p.box((x - 0.012, 0.335, z - 0.5 * long), (x + 0.012, 0.36, z + 0.5 * long), PAINT, tone)
    chamfered(p, (-0.95, -0.46, 0.90), (-0.70, -0.2, 1.02), 0.02, COATED, (0.04, 0.10, 0.22))
    p.tube(np.array([[-0.82, -0.60, 0.96], [-0.82, -0.2, 0.96]]), 0.022, METAL, _STEEL, 8)
    p.tube(np.array([[-0.92, -0.58, 0.96], [-0.72, -0.58, 0.96]]), 0.008, METAL, _STEEL, 6)
    for k in range(6):
        x = -0.5 + 0.26 * k
        tone = (_RED, (0.02, 0.08, 0.3), (0.5, 0.34, 0.02), _DARK)[int(rng.random() * 4)]
        if rng.random() < 0.8:
            chamfered(p, (x, 0.02, 0.9), (x + 0.2, 0.32, 0.9 + 0.08 + 0.14 * rng.random()), 0.01, LACQUER, tone)
    return p


def _cabinet() -> PatchMesh:
    """Return two doors of a switch cabinet with lamps, a handle, and a plinth."""
    p = PatchMesh()
    chamfered(p, (-0.8, -0.25, 0.1), (0.8, 0.25, 2.05), 0.015, COATED, (0.52, 0.53, 0.52))
    p.box((-0.78, -0.23, 0.0), (0.78, 0.23, 0.1), MATT, _DARK)
    for x in (-0.4, 0.4):
        p.quad(facing_quad((x, -0.253, 1.08), _AHEAD, 0.77, 1.86), PAINT, (0.56, 0.57, 0.56))
        p.box((x + 0.28, -0.29, 1.0), (x + 0.31, -0.253, 1.2), PAINT, _BLACK)
        p.quad(facing_quad((x, -0.256, 0.45), _AHEAD, 0.3, 0.3), MATT, (0.12, 0.12, 0.12))
        for k in range(3):
            tone = (_RED, (0.02, 0.25, 0.05), (0.5, 0.5, 0.48))[k]
            p.tube(np.array([[x - 0.2 + 0.1 * k, -0.25, 1.75], [x - 0.2 + 0.1 * k, -0.275, 1.75]]), 0.02, LACQUER, tone, 10)
    label(p, facing_quad((-0.4, -0.256, 1.45), _AHEAD, 0.3, 0.0375), LABEL_NUMBERS["clear"])
    return p


def _tank() -> PatchMesh:
    """Return a compressor with its vessel."""
    p = PatchMesh()
    blue: Color3 = (0.03, 0.09, 0.24)
    z = np.array([0.12, 0.17, 0.28, 1.55, 1.66, 1.71])
    wide = np.array([0.12, 0.30, 0.38, 0.38, 0.30, 0.12])
    p.tube(np.stack([0.0 * z, 0.0 * z, z], -1), wide, LACQUER, blue, 24)
    for k in range(3):
        a = 2.1 * k
        bar(p, (0.3 * np.cos(a), 0.3 * np.sin(a), 0.0), (0.3 * np.cos(a), 0.3 * np.sin(a), 0.25), 0.06, 0.06, COATED, blue)
    p.tube(np.array([[0.0, -0.36, 1.2], [0.0, -0.46, 1.2]]), 0.06, METAL, _STEEL, 14)
    p.disc(np.array([0.0, -0.462, 1.2]), (0.0, -1.0, 0.0), 0.05, PAINT, (0.6, 0.6, 0.58), 14)
    chamfered(p, (0.55, -0.4, 0.0), (1.55, 0.4, 1.25), 0.04, COATED, _PALE)
    p.quad(facing_quad((1.05, -0.402, 0.45), _AHEAD, 0.7, 0.5), MATT, _BLACK)
    label(p, facing_quad((1.05, -0.404, 1.0), _AHEAD, 0.5, 0.14), LABEL_NUMBERS["screen"])
    p.tube(np.array([[0.0, 0.0, 1.7], [0.0, 0.0, 2.4], [0.0, 0.5, 2.4]]), 0.03, METAL, _STEEL, 10)
    return p


def _shelf() -> PatchMesh:
    """Return a shelf of small parts: sheets on four posts, bins in three colours, some boxes."""
    p = PatchMesh()
    rng = generator("hall", "shelf")
    for x in (-0.98, 0.98):
        for y in (-0.22, 0.22):
            p.box((x - 0.02, y - 0.02, 0.0), (x + 0.02, y + 0.02, 2.1), COATED, (0.30, 0.32, 0.34))
    bins: tuple[Color3, ...] = ((0.02, 0.08, 0.30), (0.40, 0.03, 0.02), (0.55, 0.36, 0.02), (0.03, 0.16, 0.06))
    for level in range(6):
        z = 0.1 + 0.39 * level
        p.box((-1.0, -0.24, z - 0.02), (1.0, 0.24, z), COATED, (0.45, 0.46, 0.46))
        x = -0.95
        while x < 0.78:
            wide = 0.14 + 0.1 * rng.random()
            if rng.random() < 0.84:
                tall = 0.12 + 0.14 * rng.random()
                if rng.random() < 0.65:
                    chamfered(
                        p,
                        (x, -0.23, z),
                        (x + wide - 0.015, 0.18, z + tall),
                        0.012,
                        LACQUER,
                        bins[(level + int(rng.random() * 1.4)) % 4],
                    )
                    p.quad(
                        facing_quad((x + 0.5 * wide, -0.232, z + 0.35 * tall), _AHEAD, 0.5 * wide, 0.035),
                        PAINT,
                        (0.6, 0.6, 0.56),
                    )
                else:
                    tone = 0.8 + 0.3 * rng.random()
                    chamfered(p, (x, -0.22, z), (x + wide - 0.01, 0.2, z + tall), 0.006, CARD, (tone, tone, tone))
            x += wide
    return p


def _forklift() -> PatchMesh:
    """Return a truck with a mast along -y: its forks just above the floor, a guard over the seat, a counterweight behind."""
    p = PatchMesh()
    paint: Color3 = (0.60, 0.24, 0.012)
    chamfered(p, (-0.52, -0.55, 0.22), (0.52, 0.85, 0.72), 0.05, LACQUER, paint)
    chamfered(p, (-0.54, 0.80, 0.16), (0.54, 1.30, 1.02), 0.14, LACQUER, (0.10, 0.10, 0.105))
    chamfered(p, (-0.46, 0.22, 0.70), (0.46, 0.86, 1.00), 0.05, LACQUER, paint)
    chamfered(p, (-0.24, 0.25, 1.00), (0.24, 0.70, 1.12), 0.04, MATT, _BLACK)
    chamfered(p, (-0.22, 0.62, 1.10), (0.22, 0.76, 1.58), 0.05, MATT, _BLACK)
    chamfered(p, (-0.36, -0.55, 0.70), (0.36, -0.35, 1.10), 0.04, MATT, _DARK)
    bar(p, (0.0, -0.38, 1.05), (0.0, -0.22, 1.26), 0.04, 0.04, MATT, _BLACK)
    ring = 2.0 * np.pi * np.arange(17) / 16.0
    wheel = np.stack([0.16 * np.cos(ring), -0.21 + 0.10 * np.sin(ring), 1.28 + 0.12 * np.sin(ring)], -1)
    p.tube(wheel, 0.014, MATT, _BLACK, 6, capped=False)
    for side in (-1.0, 1.0):
        x = side * 0.46
        bar(p, (x, -0.48, 0.72), (x, -0.30, 2.08), 0.06, 0.06, PAINT, _BLACK)
        bar(p, (x, 0.88, 1.0), (x, 0.72, 2.08), 0.06, 0.06, PAINT, _BLACK)
        bar(p, (x, -0.32, 2.08), (x, 0.74, 2.08), 0.06, 0.06, PAINT, _BLACK)
        for y, radius, wide in ((-0.42, 0.29, 0.20), (0.92, 0.23, 0.16)):
            inner, outer = side * (0.56 - wide), side * 0.56
            p.tube(np.array([[inner, y, radius], [outer, y, radius]]), radius, MATT, (0.025, 0.025, 0.026), 22)
            p.disc(np.array([outer + side * 0.004, y, radius]), (side, 0.0, 0.0), 0.55 * radius, PAINT, (0.5, 0.5, 0.48), 16)
            p.disc(np.array([outer + side * 0.008, y, radius]), (side, 0.0, 0.0), 0.22 * radius, MATT, _DARK, 10)
        # The mast's channels, and the inner ones that rise.
        p.box((side * 0.36 - 0.05, -0.74, 0.10), (side * 0.36 + 0.05, -0.60, 2.15), PAINT, _BLACK)
        p.box((side * 0.27 - 0.035, -0.76, 0.10), (side * 0.27 + 0.035, -0.64, 2.10), METAL, (0.20, 0.20, 0.20))
        bar(p, (side * 0.15, -0.68, 0.2), (side * 0.15, -0.68, 2.0), 0.05, 0.05, METAL, _STEEL)
        p.box((side * 0.26 - 0.06, -1.95, 0.05), (side * 0.26 + 0.06, -0.84, 0.085), METAL, (0.28, 0.27, 0.26))
        p.box((side * 0.26 - 0.06, -0.86, 0.05), (side * 0.26 + 0.06, -0.80, 0.75), METAL, (0.28, 0.27, 0.26))
        p.box((side * 0.50 - 0.06, -0.40, 0.55), (side * 0.50 + 0.06, -0.35, 0.66), PAINT, (0.6, 0.6, 0.55))
    for z in (0.22, 0.70):
        p.box((-0.50, -0.82, z), (0.50, -0.76, z + 0.10), PAINT, _BLACK)
    for k in range(6):
        x = -0.42 + 0.168 * k
        p.box((x - 0.012, -0.82, 0.75), (x + 0.012, -0.79, 1.25), PAINT, _BLACK)
    p.box((-0.46, -0.82, 1.22), (0.46, -0.79, 1.26), PAINT, _BLACK)
    for k in range(7):
        y = -0.26 + 0.15 * k
        p.box((-0.46, y - 0.015, 2.07), (0.46, y + 0.015, 2.10), PAINT, _BLACK)
    p.box((-0.4, -0.72, 2.1), (0.4, -0.62, 2.16), PAINT, _BLACK)
    p.tube(np.array([[0.35, 0.70, 2.1], [0.35, 0.70, 2.24]]), 0.05, LACQUER, (0.6, 0.28, 0.01), 12)
    for side in (-1.0, 1.0):
        ahead = (side, 0.0, 0.0)
        label(p, facing_quad((side * 0.523, 0.1, 0.48), ahead, 0.7, 0.0875), LABEL_NUMBERS["in"] + 1, (0.9, 0.9, 0.9))
    for k in range(5):
        uv = np.array([[0.0, 0.5], [0.5, 0.5], [0.5, 0.0], [0.0, 0.0]])
        p.quad(facing_quad((-0.32 + 0.16 * k, 1.303, 0.35), (0.0, 1.0, 0.0), 0.16, 0.14), HAZARD, (1.0, 1.0, 1.0), uv)
    return p


def _extinguisher() -> PatchMesh:
    """Return one that hangs on a wall at y = 0, under its sign, and looks along -y."""
    p = PatchMesh()
    z = np.array([0.55, 0.57, 1.00, 1.06, 1.09])
    p.tube(np.stack([0.0 * z, np.full_like(z, -0.10), z], -1), np.array([0.07, 0.08, 0.08, 0.05, 0.03]), LACQUER, _RED, 16)
    p.tube(np.array([[0.0, -0.1, 1.09], [0.0, -0.1, 1.15]]), 0.025, METAL, _BLACK, 10)
    p.tube(np.array([[0.02, -0.1, 1.13], [0.10, -0.12, 1.05], [0.11, -0.12, 0.7]]), 0.012, MATT, _BLACK, 6)
    p.quad(facing_quad((0.0, -0.182, 0.82), _AHEAD, 0.08, 0.16), PAINT, (0.6, 0.58, 0.5))
    p.box((-0.09, -0.03, 0.5), (0.09, -0.005, 1.2), PAINT, (0.4, 0.4, 0.4))
    p.box((-0.42, -0.02, 1.7), (0.42, -0.005, 1.82), PAINT, (0.3, 0.3, 0.3))
    label(p, facing_quad((0.0, -0.022, 1.76), _AHEAD, 0.8, 0.1), LABEL_NUMBERS["fire"])
    return p


def _post() -> PatchMesh:
    """Return a post that trucks run against, in yellow and black."""
    p = PatchMesh()
    for k in range(6):
        z = np.array([0.18 * k, 0.18 * (k + 1)])
        p.tube(np.stack([0.0 * z, 0.0 * z, z], -1), 0.075, COATED, _BLACK if k % 2 else _YELLOW, 16, capped=k == 5)
    p.box((-0.14, -0.14, 0.0), (0.14, 0.14, 0.012), COATED, _YELLOW)
    return p


def _cone() -> PatchMesh:
    p = PatchMesh()
    p.box((-0.17, -0.17, 0.0), (0.17, 0.17, 0.03), MATT, (0.5, 0.09, 0.01))
    for z0, z1, tone in ((0.03, 0.25, (0.55, 0.10, 0.01)), (0.25, 0.40, (0.65, 0.65, 0.62)), (0.40, 0.56, (0.55, 0.10, 0.01))):
        wide = [0.13 - 0.19 * z for z in (z0, z1)]
        p.tube(np.array([[0.0, 0.0, z0], [0.0, 0.0, z1]]), np.array(wide), MATT, tone, 16)
    return p


def _bin() -> PatchMesh:
    """Return a tilting skip of sheet steel with scrap in it."""
    p = PatchMesh()
    tone: Color3 = (0.30, 0.10, 0.025)
    rng = generator("hall", "skip")
    lower, upper, z0, z1 = (0.55, 0.35), (0.75, 0.6), 0.22, 0.95
    corners = [(-1, -1), (1, -1), (1, 1), (-1, 1)]
    for k in range(4):
        (ax, ay), (bx, by) = corners[k], corners[(k + 1) % 4]
        quad = [
            [ax * lower[0], ay * lower[1], z0], [bx * lower[0], by * lower[1], z0],
            [bx * upper[0], by * upper[1], z1], [ax * upper[0], ay * upper[1], z1],
        ]  # fmt: skip
        p.quad(np.array(quad), COATED, tone)
        bar(p, quad[3], quad[2], 0.05, 0.05, COATED, tone)
    p.quad([[-0.68, -0.52, 0.72], [0.68, -0.52, 0.72], [0.68, 0.52, 0.72], [-0.68, 0.52, 0.72]], MATT, (0.10, 0.09, 0.085))
    for _ in range(30):
        x, y = (2.0 * rng.random(2) - 1.0) * np.array([0.55, 0.4])
        d = (2.0 * rng.random(3) - 1.0) * np.array([0.2, 0.2, 0.08])
        bar(
            p,
            np.array([x, y, 0.78]) - d,
            np.array([x, y, 0.80 + 0.08 * rng.random()]) + d,
            0.05 * rng.random() + 0.01,
            0.02,
            METAL,
            (0.34, 0.33, 0.32),
            True,
        )
    for x in (-0.4, 0.4):
        p.box((x - 0.09, -0.5, 0.05), (x + 0.09, 0.5, 0.2), COATED, (0.08, 0.08, 0.08))
    p.box((-0.6, -0.4, 0.18), (0.6, 0.4, 0.23), COATED, tone)
    return p


def _hand_truck() -> PatchMesh:
    """Return a hand pallet truck, its forks along -y."""
    p = PatchMesh()
    paint: Color3 = (0.42, 0.035, 0.02)
    for x in (-0.18, 0.18):
        chamfered(p, (x - 0.08, -1.15, 0.05), (x + 0.08, 0.0, 0.11), 0.015, LACQUER, paint)
        p.tube(np.array([[x - 0.05, -1.0, 0.04], [x + 0.05, -1.0, 0.04]]), 0.04, MATT, _BLACK, 10)
    chamfered(p, (-0.26, -0.02, 0.05), (0.26, 0.10, 0.45), 0.03, LACQUER, paint)
    p.tube(np.array([[-0.10, 0.2, 0.09], [0.10, 0.2, 0.09]]), 0.09, MATT, (0.2, 0.2, 0.2), 14)
    p.tube(np.array([[0.0, 0.18, 0.2], [0.0, 0.42, 1.15]]), 0.02, PAINT, _BLACK, 8)
    p.tube(
        np.array(
            [
                [0.0, 0.42, 1.15],
                [-0.12, 0.44, 1.2],
                [-0.12, 0.47, 1.32],
                [0.12, 0.47, 1.32],
                [0.12, 0.44, 1.2],
                [0.0, 0.42, 1.15],
            ]
        ),
        0.015,
        PAINT,
        _BLACK,
        8,
    )
    return p


def _dock_plate() -> PatchMesh:
    """Return the plate of a dock leveller: it lies a centimetre over the floor, along x into the hall (-x)."""
    p = PatchMesh()
    p.box((-2.4, -1.1, 0.0), (0.0, 1.1, 0.012), TREAD)
    for side in (-1.0, 1.0):
        for k in range(6):
            x0 = -2.4 + 0.4 * k
            y0, y1 = sorted((side * 1.1, side * 1.22))
            corners = [[x0, y0, 0.006], [x0 + 0.4, y0, 0.006], [x0 + 0.4, y1, 0.006], [x0, y1, 0.006]]
            p.quad(corners, HAZARD, (1.0, 1.0, 1.0), np.array([[0.0, 0.5], [1.0, 0.5], [1.0, 0.2], [0.0, 0.2]]))
    return p


def _exit_sign() -> PatchMesh:
    """Return a lit sign on a wall at y = 0."""
    p = PatchMesh()
    p.box((-0.36, -0.05, -0.06), (0.36, -0.005, 0.06), PAINT, (0.5, 0.5, 0.5))
    label(p, facing_quad((0.0, -0.052, 0.0), _AHEAD, 0.7, 0.0875), LABEL_NUMBERS["exit"])
    p.box((-0.34, -0.045, -0.075), (0.34, -0.015, -0.062), GLOW, (0.5, 0.9, 0.6))
    return p


EQUIPMENT: dict[str, Callable[[], PatchMesh]] = {
    "turning centre": _cnc,
    "press": _press,
    "bench": _bench,
    "cabinet": _cabinet,
    "compressor": _tank,
    "shelf": _shelf,
    "forklift": _forklift,
    "hand truck": _hand_truck,
    "extinguisher": _extinguisher,
    "post": _post,
    "cone": _cone,
    "skip": _bin,
    "dock plate": _dock_plate,
    "exit sign": _exit_sign,
}
"""What there is, by name."""


def equipment(name: str) -> PatchMesh:
    """Return a piece of equipment.

    Raises:
        KeyError: There is none of this name in `EQUIPMENT`.
    """
    return EQUIPMENT[name]()
