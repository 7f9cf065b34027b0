"""Pallet racks: uprights with bracing and feet, beams, boards, and guards where trucks pass.

Frames: on the floor, bays along x, y across; the origin at the first upright, in the middle of its depth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airworthy.scenes.buildings.patches import PatchMesh
from airworthy.scenes.warehouses.labels import LABEL_NUMBERS
from airworthy.scenes.warehouses.parts import COATED, METAL, PAINT, WOOD, Color3, bar, facing_quad, label

__all__ = ["BAY", "DEPTH", "LEVELS", "SLOTS", "RackPaint", "bay_level", "guard", "upright"]

BAY = 2.8
"""From upright to upright [m]."""
DEPTH = 1.1
"""Of a rack [m]."""
LEVELS = (0.0, 1.65, 3.25, 4.85)
"""Heights on which pallets stand [m]."""
_TOP = 6.1
SLOTS = (-0.88, 0.0, 0.88)
"""Middles of three pallets in a bay, from its middle [m]."""
_YELLOW: Color3 = (0.62, 0.37, 0.012)
_BLACK: Color3 = (0.02, 0.02, 0.022)


@dataclass(frozen=True)
class RackPaint:
    """Colours of a rack."""

    upright: Color3
    beam: Color3


def upright(paint: RackPaint) -> PatchMesh:
    """Return a frame of two posts with bracing and feet; posts are open channels with rows of holes."""
    patches = PatchMesh()
    for side in (-1.0, 1.0):
        y = side * (0.5 * DEPTH - 0.045)
        patches.box((-0.05, y - 0.035, 0.0), (0.05, y + 0.035, _TOP), COATED, paint.upright, bottom=False)
        # The slot along a post, with its holes.
        out = y + side * 0.0365
        patches.quad(
            facing_quad((0.0, out, 0.5 * _TOP), (0.0, side, 0.0), 0.028, _TOP - 0.1), PAINT, [0.45 * v for v in paint.upright]
        )
        for x in (-0.034, 0.034):
            for z in np.arange(0.15, _TOP - 0.1, 0.3):
                patches.quad(facing_quad((x, out, float(z)), (0.0, side, 0.0), 0.012, 0.05), PAINT, _BLACK)
        patches.box((-0.075, y - 0.06, 0.0), (0.075, y + 0.06, 0.012), METAL, (0.35, 0.35, 0.35))
        for x in (-0.055, 0.055):
            patches.box((x - 0.01, y - 0.01, 0.012), (x + 0.01, y + 0.01, 0.035), METAL, (0.3, 0.3, 0.3))
    inner = 0.5 * DEPTH - 0.08
    heights = np.arange(0.25, _TOP - 0.4, 0.72)
    for number, z in enumerate(heights):
        a, b = (-inner, inner) if number % 2 else (inner, -inner)
        bar(patches, (0.0, a, z), (0.0, b, min(z + 0.72, _TOP - 0.2)), 0.03, 0.03, COATED, paint.upright)
    for z in (0.2, _TOP - 0.15):
        bar(patches, (0.0, -inner, z), (0.0, inner, z), 0.03, 0.03, COATED, paint.upright)
    return patches


def bay_level(paint: RackPaint, seed: int) -> PatchMesh:
    """Return two beams with their connectors, and boards on them; pallets stand at z = 0."""
    patches = PatchMesh()
    for side in (-1.0, 1.0):
        y = side * (0.5 * DEPTH - 0.035)
        patches.box((0.05, y - 0.025, -0.145), (BAY - 0.05, y + 0.025, -0.025), COATED, paint.beam)
        # A step in the beam, where boards lie in.
        patches.quad(
            facing_quad((0.5 * BAY, y + side * 0.0265, -0.04), (0.0, side, 0.0), BAY - 0.12, 0.012),
            PAINT,
            [0.6 * v for v in paint.beam],
        )
        for x in (0.055, BAY - 0.055):
            patches.box((x - 0.008, y - 0.03, -0.2), (x + 0.008, y + 0.032, 0.02), COATED, paint.beam)
        for k, slot in enumerate(SLOTS):
            slip = ((seed + 3 * k) % 8) / 8.0
            label(
                patches,
                facing_quad((0.5 * BAY + slot, y + side * 0.027, -0.095), (0.0, side, 0.0), 0.10, 0.055),
                LABEL_NUMBERS["code"],
                (1.0, 1.0, 1.0),
                (slip, slip + 0.125),
            )
    for k in range(6):
        x = 0.12 + (BAY - 0.24) * (k + 0.5) / 6.0
        tone = 0.82 + 0.05 * ((k * 5 + seed) % 4)
        patches.box(
            (x - 0.2, -0.5 * DEPTH + 0.03, -0.025),
            (x + 0.2, 0.5 * DEPTH - 0.03, -0.002),
            WOOD,
            (tone, tone * 0.93, tone * 0.82),
        )
    return patches


def guard() -> PatchMesh:
    """Return what keeps trucks off the end of a rack: a low beam across on two posts, yellow with black bands."""
    patches = PatchMesh()
    half = 0.5 * DEPTH + 0.06
    for side in (-1.0, 1.0):
        for k in range(4):
            z0, z1 = 0.12 * k, 0.12 * (k + 1)
            patches.box((-0.05, side * half - 0.05, z0), (0.05, side * half + 0.05, z1), COATED, _BLACK if k % 2 else _YELLOW)
        patches.box((-0.09, side * half - 0.09, 0.0), (0.09, side * half + 0.09, 0.012), COATED, _YELLOW)
    count = 8
    for k in range(count):
        y0, y1 = -half + 0.05 + (2.0 * half - 0.1) * k / count, -half + 0.05 + (2.0 * half - 0.1) * (k + 1) / count
        patches.box((-0.03, y0, 0.26), (0.03, y1, 0.42), COATED, _BLACK if k % 2 else _YELLOW)
    return patches
