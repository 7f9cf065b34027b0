"""What is under the roof: frames with lattice girders, purlins, ducts, pipes with sprinklers, trays with cables, lamps."""

from __future__ import annotations

import itertools

import numpy as np

from airworthy.scenes.buildings.patches import PatchMesh
from airworthy.scenes.warehouses.parts import COATED, GLOW, METAL, PAINT, Color3, bar, chamfered
from airworthy.scenes.warehouses.shell import HallMeasures

__all__ = ["cable_tray", "column", "duct", "girder", "lamp", "purlins", "rails", "sprinklers", "wall_pipes"]

_GALVANISED: Color3 = (0.50, 0.51, 0.52)
_RED: Color3 = (0.33, 0.022, 0.016)
_DROP = 0.42
"""Of the lower chord under the eave [m]."""


def column(measures: HallMeasures, paint: Color3) -> PatchMesh:
    """Return a column of I-section at x = 0, y = 0, with its foot and a guard towards -y, where the hall lies."""
    patches = PatchMesh()
    top = measures.roof(measures.half_width - 0.30) - 0.22
    for off in (-0.15, 0.15):
        patches.box((-0.11, off - 0.011, 0.02), (0.11, off + 0.011, top), COATED, paint)
    patches.box((-0.007, -0.14, 0.02), (0.007, 0.14, top), COATED, paint)
    patches.box((-0.17, -0.24, 0.0), (0.17, 0.24, 0.025), COATED, paint)
    for sx, sy in itertools.product((-0.13, 0.13), (-0.2, 0.2)):
        patches.box((sx - 0.018, sy - 0.018, 0.025), (sx + 0.018, sy + 0.018, 0.07), METAL, (0.3, 0.3, 0.3))
    for k in range(5):
        color = (0.62, 0.37, 0.012) if k % 2 == 0 else (0.02, 0.02, 0.022)
        patches.box((-0.14, -0.22, 0.2 * k), (0.14, -0.20, 0.2 * k + 0.2), COATED, color)
    return patches


def girder(measures: HallMeasures, paint: Color3) -> PatchMesh:
    """Return the lattice girder of a frame at x = 0: upper chords under the slopes, a level lower chord, members between."""
    patches = PatchMesh()
    half = measures.half_width
    low = measures.eave - _DROP
    bar(patches, (0.0, -half + 0.15, low), (0.0, half - 0.15, low), 0.14, 0.14, COATED, paint)
    for side in (-1.0, 1.0):
        ends = (0.0, side * (half - 0.1), measures.roof(half) - 0.24), (0.0, 0.0, measures.ridge - 0.24)
        bar(patches, *ends, 0.14, 0.14, COATED, paint)
        marks = np.linspace(half - 0.3, 0.0, 8)
        for k, (a, b) in enumerate(itertools.pairwise(marks)):
            za, zb = measures.roof(a) - 0.24, measures.roof(b) - 0.24
            p, q = ((a, za), (b, low)) if k % 2 else ((a, low), (b, zb))
            bar(patches, (0.0, side * p[0], p[1]), (0.0, side * q[0], q[1]), 0.07, 0.07, COATED, paint)
            if k % 2 == 0:
                bar(patches, (0.0, side * b, low), (0.0, side * b, zb), 0.06, 0.06, COATED, paint)
    return patches


def purlins(measures: HallMeasures, paint: Color3) -> PatchMesh:
    """Return the beams that carry the roof, along the hall."""
    patches = PatchMesh()
    lx, half = measures.half_length, measures.half_width
    for side in (-1.0, 1.0):
        for y in np.linspace(0.35, half - 0.35, 8):
            z = measures.roof(float(y)) - 0.10
            patches.box((-lx, side * y - 0.03, z - 0.08), (lx, side * y + 0.03, z + 0.05), COATED, paint)
    return patches


def rails(measures: HallMeasures, paint: Color3, side: float) -> PatchMesh:
    """Return the rails that carry the sheet of a long wall, and crossed rods in its first and last bay.

    Args:
        measures: Of the hall.
        paint: Their colour.
        side: Of the wall: -1 or 1 times y.
    """
    patches = PatchMesh()
    lx, half = measures.half_length, measures.half_width
    for z in (1.6, 3.2, 6.15):
        y0, y1 = sorted((side * (half - 0.07), side * (half - 0.13)))
        patches.box((-lx, y0, z - 0.06), (lx, y1, z + 0.06), COATED, paint)
    for a, b in ((measures.frames[0], measures.frames[1]), (measures.frames[-2], measures.frames[-1])):
        for p, q in (((a, 0.4), (b, 6.4)), ((b, 0.4), (a, 6.4))):
            bar(patches, (p[0], side * (half - 0.17), p[1]), (q[0], side * (half - 0.17), q[1]), 0.024, 0.024, COATED, paint)
    return patches


def duct(length: float, radius: float) -> PatchMesh:
    """Return a round duct along x, seamed, with outlets below and hangers to 1.2 m above."""
    patches = PatchMesh()
    x = np.array([0.0, length])
    patches.tube(np.stack([x, 0.0 * x, 0.0 * x], -1), radius, METAL, _GALVANISED, 24)
    for at in np.arange(0.9, length, 1.5):
        ring = np.array([at - 0.02, at + 0.02])
        patches.tube(np.stack([ring, 0.0 * ring, 0.0 * ring], -1), radius + 0.012, METAL, (0.42, 0.43, 0.44), 24)
    for at in np.arange(2.5, length - 1.0, 4.0):
        chamfered(patches, (at - 0.35, -0.14, -radius - 0.12), (at + 0.35, 0.14, -radius + 0.04), 0.01, METAL, _GALVANISED)
        for k in range(5):
            u = at - 0.28 + 0.14 * k
            patches.box((u - 0.05, -0.11, -radius - 0.125), (u + 0.05, 0.11, -radius - 0.119), PAINT, (0.02, 0.02, 0.02))
    for at in np.arange(0.4, length, 2.5):
        for side in (-1.0, 1.0):
            bar(
                patches,
                (at, side * (radius + 0.01), 0.0),
                (at, side * (radius + 0.01), 0.9),
                0.012,
                0.012,
                METAL,
                (0.35, 0.35, 0.35),
            )
        bar(
            patches,
            (at, -radius - 0.03, -radius - 0.015),
            (at, radius + 0.03, -radius - 0.015),
            0.04,
            0.02,
            METAL,
            (0.35, 0.35, 0.35),
        )
    return patches


def cable_tray(length: float, seed: int) -> PatchMesh:
    """Return a tray along x with rungs, and cables that lie in it, not quite straight."""
    patches = PatchMesh()
    for side in (-0.2, 0.2):
        patches.box((0.0, side - 0.01, 0.0), (length, side + 0.01, 0.08), METAL, (0.44, 0.45, 0.46))
    for at in np.arange(0.15, length, 0.3):
        patches.box((at - 0.015, -0.2, 0.005), (at + 0.015, 0.2, 0.02), METAL, (0.40, 0.41, 0.42))
    rng = np.random.Generator(np.random.Philox(key=1000 + seed))
    tones: tuple[Color3, ...] = (
        (0.02, 0.02, 0.022),
        (0.02, 0.02, 0.022),
        (0.20, 0.20, 0.21),
        (0.35, 0.10, 0.02),
        (0.02, 0.05, 0.16),
    )
    for k in range(7):
        x = np.linspace(0.05, length - 0.05, max(int(length / 2.0), 3))
        y = -0.15 + 0.05 * k + 0.018 * (rng.random(len(x)) - 0.5)
        radius = 0.010 + 0.010 * rng.random()
        patches.tube(
            np.stack([x, y, np.full_like(x, 0.02 + radius)], -1), radius, PAINT, tones[int(rng.random() * 5)], 6, capped=False
        )
    for at in np.arange(0.5, length, 2.5):
        for side in (-0.22, 0.22):
            bar(patches, (at, side, 0.0), (at, side, 0.8), 0.012, 0.012, METAL, (0.35, 0.35, 0.35))
    return patches


def sprinklers(measures: HallMeasures, y: float) -> PatchMesh:
    """Return red pipes: a main along the hall, branches across it in every bay, with heads."""
    patches = PatchMesh()
    z, lx = measures.eave - _DROP - 0.18, measures.half_length
    x = np.array([-lx + 0.3, lx - 0.3])
    patches.tube(np.stack([x, np.full(2, y), np.full(2, z)], -1), 0.055, PAINT, _RED, 12)
    for at in measures.frames[:-1] + 0.5 * measures.bay + 0.9:
        across = np.array([-measures.half_width + 1.0, measures.half_width - 1.0])
        patches.tube(np.stack([np.full(2, at), across, np.full(2, z + 0.09)], -1), 0.025, PAINT, _RED, 8)
        for head in np.arange(-measures.half_width + 1.6, measures.half_width - 1.0, 3.2):
            patches.tube(np.array([[at, head, z + 0.07], [at, head, z - 0.03]]), 0.012, METAL, (0.45, 0.38, 0.2), 6)
            patches.disc(np.array([at, head, z - 0.03]), (0.0, 0.0, -1.0), 0.022, METAL, (0.45, 0.38, 0.2), 8)
        ring = np.array([at - 0.06, at + 0.06])
        patches.tube(np.stack([ring, np.full(2, y), np.full(2, z)], -1), 0.07, PAINT, [0.8 * v for v in _RED], 12)
    return patches


def wall_pipes(height: float) -> PatchMesh:
    """Return pipes that rise along a wall at y = 0, away from it along +y: two of water, one with a valve, one for cables."""
    patches = PatchMesh()
    for k, (x, radius, tone) in enumerate(
        ((0.0, 0.045, (0.05, 0.16, 0.08)), (0.18, 0.03, (0.03, 0.09, 0.26)), (0.34, 0.022, (0.5, 0.5, 0.5)))
    ):
        z = np.array([0.0, height])
        patches.tube(np.stack([np.full(2, x), np.full(2, 0.12), z], -1), radius, PAINT, tone, 10)
        for at in np.arange(0.6, height, 1.8):
            patches.box((x - radius - 0.015, 0.0, at - 0.02), (x + radius + 0.015, 0.12, at + 0.02), METAL, (0.4, 0.4, 0.4))
        if k == 1:
            patches.tube(np.array([[x, 0.12, 1.1], [x, 0.25, 1.1]]), 0.015, METAL, (0.3, 0.3, 0.3), 8)
            patches.tube(np.array([[x, 0.25, 1.1], [x, 0.27, 1.1]]), 0.09, PAINT, _RED, 14)
    return patches


def lamp(burning: bool) -> PatchMesh:
    """Return a lamp of 1.5 m that hangs on two wires; its glass at z = 0, its upper end 0.7 m higher."""
    patches = PatchMesh()
    chamfered(patches, (-0.75, -0.15, 0.012), (0.75, 0.15, 0.09), 0.02, PAINT, (0.55, 0.56, 0.56))
    for side in (-0.072, 0.072):
        patches.box(
            (-0.70, side - 0.05, 0.0),
            (0.70, side + 0.05, 0.014),
            GLOW if burning else PAINT,
            (1.0, 1.0, 1.0) if burning else (0.42, 0.43, 0.42),
        )
    for x in (-0.6, 0.6):
        bar(patches, (x, 0.0, 0.08), (x, 0.0, 0.8), 0.006, 0.006, METAL, (0.35, 0.35, 0.35))
    patches.box((-0.12, -0.08, 0.09), (0.12, 0.08, 0.15), PAINT, (0.2, 0.2, 0.2))
    return patches
