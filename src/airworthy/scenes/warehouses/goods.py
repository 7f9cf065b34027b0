"""Goods on pallets: cartons with tape and labels, wrapped stacks, drums, crates, sacks; and pallets without any.

Frames: the pallet's foot at z = 0, its middle at the origin, 1.2 m along y and 0.8 m along x.
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
    FILM,
    MATT,
    METAL,
    PAINT,
    WOOD,
    Color3,
    chamfered,
    facing_quad,
    label,
)

__all__ = ["LOADS", "PALLET", "load", "pallet", "pallet_stack"]

PALLET = (0.8, 1.2, 0.144)
"""Along x, y, z: a Euro pallet [m] (EN 13698-1)."""
_TAPE: Color3 = (0.30, 0.19, 0.085)
_DRUMS: tuple[Color3, ...] = ((0.016, 0.065, 0.20), (0.02, 0.02, 0.022), (0.30, 0.03, 0.022), (0.02, 0.12, 0.06))


def _pallet(patches: PatchMesh, z: float = 0.0, tone: float = 1.0) -> None:
    """Add a pallet: three skids on nine blocks, three boards across, five on top."""
    color = (0.95 * tone, 0.86 * tone, 0.74 * tone)
    x, y, _ = (0.5 * side for side in PALLET)
    for at, wide in ((-x + 0.05, 0.1), (0.0, 0.145), (x - 0.05, 0.1)):
        patches.box((at - 0.5 * wide, -y, z), (at + 0.5 * wide, y, z + 0.022), WOOD, color)
        for block in (-y + 0.0725, 0.0, y - 0.0725):
            patches.box((at - 0.5 * wide, block - 0.0725, z + 0.022), (at + 0.5 * wide, block + 0.0725, z + 0.1), WOOD, color)
    for across in (-y + 0.0725, 0.0, y - 0.0725):
        patches.box((-x, across - 0.0725, z + 0.1), (x, across + 0.0725, z + 0.122), WOOD, color)
    for number, at in enumerate(np.linspace(-x + 0.0725, x - 0.0725, 5)):
        shade = 0.86 + 0.07 * ((number * 7) % 3)
        patches.box(
            (at - 0.0615, -y, z + 0.122), (at + 0.0615, y, z + PALLET[2]), WOOD, (color[0] * shade, color[1] * shade, color[2])
        )


def pallet() -> PatchMesh:
    """Return an empty pallet."""
    patches = PatchMesh()
    _pallet(patches)
    return patches


def pallet_stack(count: int) -> PatchMesh:
    """Return pallets on top of each other, not quite in line."""
    patches = PatchMesh()
    rng = generator("pallet stack", count)
    for k in range(count):
        layer = PatchMesh()
        _pallet(layer, k * PALLET[2], 0.72 + 0.36 * rng.random())
        mesh = layer.mesh()
        shift = np.array([0.03 * (rng.random() - 0.5), 0.05 * (rng.random() - 0.5), 0.0])
        normals, uv, colors, slots = mesh.normals, mesh.uv, mesh.colors, mesh.face_material
        assert normals is not None
        assert colors is not None
        assert slots is not None
        patches.add(mesh.vertices + shift, np.asarray(mesh.faces), normals, int(slots[0]), colors[:, :3], uv)
    return patches


def _carton(
    patches: PatchMesh, low: tuple[float, float, float], high: tuple[float, float, float], rng: np.random.Generator
) -> None:
    """Add a carton: taped along its middle, a label on two sides at times, its flaps a line on top."""
    tone = 0.78 + 0.34 * rng.random()
    color = (tone, tone * (0.96 + 0.05 * rng.random()), tone * (0.90 + 0.1 * rng.random()))
    chamfered(patches, low, high, 0.008, CARD, color)
    (x0, y0, z0), (x1, y1, z1) = low, high
    x, out = 0.5 * (x0 + x1), 0.0015
    wide, fall = 0.025, min(0.09, 0.3 * (z1 - z0))
    tape = (_TAPE[0] * tone, _TAPE[1] * tone, _TAPE[2] * tone)
    patches.quad(
        np.array([[x - wide, y0, z1 + out], [x + wide, y0, z1 + out], [x + wide, y1, z1 + out], [x - wide, y1, z1 + out]]),
        FILM,
        tape,
    )
    for ahead, at in ((-1.0, y0 - out), (1.0, y1 + out)):
        patches.quad(facing_quad((x, at, z1 - 0.5 * fall), (0.0, ahead, 0.0), 2.0 * wide, fall), FILM, tape)
        if rng.random() < 0.6:
            size = min(0.12, 0.4 * (x1 - x0))
            place = (
                x + (x1 - x0) * 0.22 * (1.0 if rng.random() < 0.5 else -1.0),
                at,
                z0 + (0.3 + 0.3 * rng.random()) * (z1 - z0),
            )
            slip = int(rng.random() * 8) / 8.0
            label(
                patches,
                facing_quad(place, (0.0, ahead, 0.0), size, 0.62 * size),
                LABEL_NUMBERS["code"],
                (1.0, 1.0, 1.0),
                (slip, slip + 0.125),
            )
        elif rng.random() < 0.5:
            kind = "fragile" if rng.random() < 0.5 else "up"
            long = min(0.32, 0.8 * (x1 - x0))
            label(
                patches, facing_quad((x, at, z0 + 0.35 * (z1 - z0)), (0.0, ahead, 0.0), long, long / 8.0), LABEL_NUMBERS[kind]
            )


def _cartons(seed: int, across: int, along: int, layers: int, tall: float) -> PatchMesh:
    patches = PatchMesh()
    rng = generator("load", "cartons", seed)
    _pallet(patches, 0.0, 0.8 + 0.3 * rng.random())
    wide, long = PALLET[0] / across, PALLET[1] / along
    for layer in range(layers):
        for i in range(across):
            for j in range(along):
                if layer == layers - 1 and rng.random() < 0.25 and layers > 1:
                    continue
                slack = 0.012 * rng.random(4)
                x0, y0 = -0.5 * PALLET[0] + i * wide, -0.5 * PALLET[1] + j * long
                z0 = PALLET[2] + layer * tall
                _carton(
                    patches, (x0 + slack[0], y0 + slack[1], z0), (x0 + wide - slack[2], y0 + long - slack[3], z0 + tall), rng
                )
    return patches


def _wrapped(seed: int, tall: float) -> PatchMesh:
    """Return a stack in stretched film: bands of it, bulges and folds over what is inside."""
    patches = PatchMesh()
    rng = generator("load", "wrapped", seed)
    _pallet(patches, 0.0, 0.85)
    body = ((0.52, 0.53, 0.54), (0.40, 0.37, 0.32), (0.035, 0.036, 0.04), (0.50, 0.55, 0.58))[seed % 4]
    steps, rows = 40, 14
    turn = 2.0 * np.pi * np.arange(steps) / steps
    c, s = np.cos(turn), np.sin(turn)
    power = 0.18
    plan = np.stack([0.40 * np.sign(c) * np.abs(c) ** power, 0.60 * np.sign(s) * np.abs(s) ** power], -1)
    z = PALLET[2] - 0.05 + (tall + 0.05) * np.linspace(0.0, 1.0, rows)
    bulge = np.sin(np.linspace(0.0, np.pi, rows) * 3.0 + rng.random())[:, None] * 0.010
    shift = 1.0 - 0.02 * rng.random((rows, steps)) + bulge
    points = np.concatenate([plan[None] * shift[..., None], np.broadcast_to(z[:, None, None], (rows, steps, 1))], -1)
    i, j = np.meshgrid(np.arange(rows - 1), np.arange(steps), indexing="ij")
    a = (i * steps + j).reshape(-1)
    b, up = (i * steps + (j + 1) % steps).reshape(-1), steps
    faces = np.concatenate([np.stack([a, b, b + up], -1), np.stack([a, b + up, a + up], -1)])
    flat = points.reshape(-1, 3)
    normals = np.zeros_like(flat)
    normal = np.cross(flat[faces[:, 1]] - flat[faces[:, 0]], flat[faces[:, 2]] - flat[faces[:, 0]])
    for k in range(3):
        np.add.at(normals, faces[:, k], normal)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    streak = 0.86 + 0.22 * rng.random((rows, steps)) - 0.10 * (np.arange(rows)[:, None] % 4 == 0)
    patches.add(flat, faces, normals, FILM, np.clip(streak.reshape(-1, 1) * np.array(body), 0.0, 1.0))
    top = 0.97 * plan
    lid = np.concatenate([top, np.full((steps, 1), z[-1] + 0.004)], 1)
    patches.add(
        lid,
        np.array([[0, k, k + 1] for k in range(1, steps - 1)]),
        np.repeat([[0.0, 0.0, 1.0]], steps, 0),
        FILM,
        [0.9 * v for v in body],
    )
    for ahead in (-1.0, 1.0):
        at = (0.08, ahead * 0.615, PALLET[2] + 0.6 * tall)
        label(patches, facing_quad(at, (0.0, ahead, 0.0), 0.19, 0.12), LABEL_NUMBERS["code"], (1.0, 1.0, 1.0), (0.25, 0.375))
    return patches


def _drums(seed: int) -> PatchMesh:
    patches = PatchMesh()
    _pallet(patches, 0.0, 0.7)
    rng = generator("load", "drums", seed)
    paint = _DRUMS[seed % len(_DRUMS)]
    foot, tall, radius = PALLET[2], 0.88, 0.285
    rings = [
        (0.0, 1.03),
        (0.02, 1.03),
        (0.021, 1.0),
        (0.29, 1.0),
        (0.30, 1.03),
        (0.32, 1.0),
        (0.57, 1.0),
        (0.58, 1.03),
        (0.6, 1.0),
    ]
    rings += [(tall - 0.021, 1.0), (tall - 0.02, 1.03), (tall, 1.03)]
    height, wide = np.array(rings).T
    for x, y in ((-0.11, -0.3), (0.11, 0.3)) if seed % 3 == 2 else ((0.0, -0.3), (0.0, 0.3)):
        tone = 0.85 + 0.3 * rng.random()
        points = np.stack([np.full_like(height, x), np.full_like(height, y), foot + height], -1)
        patches.tube(points, radius * wide, PAINT, [min(v * tone, 1.0) for v in paint], 20)
        patches.tube(
            np.array([[x + 0.17, y, foot + tall], [x + 0.17, y, foot + tall + 0.02]]), 0.035, METAL, (0.4, 0.4, 0.4), 10
        )
        for ahead in (-1.0, 1.0):
            patches.quad(
                facing_quad((x, y + ahead * 0.292, foot + 0.44), (0.0, ahead, 0.0), 0.2, 0.16), PAINT, (0.62, 0.6, 0.55)
            )
            patches.quad(
                facing_quad((x, y + ahead * 0.294, foot + 0.48), (0.0, ahead, 0.0), 0.17, 0.03), PAINT, (0.5, 0.12, 0.02)
            )
    return patches


def _crate(seed: int, tall: float) -> PatchMesh:
    """Return a closed crate of boards with battens."""
    patches = PatchMesh()
    rng = generator("load", "crate", seed)
    _pallet(patches, 0.0, 0.9)
    x, y, z0 = 0.385, 0.585, PALLET[2]
    tone = 0.8 + 0.25 * rng.random()
    wood = (0.98 * tone, 0.86 * tone, 0.70 * tone)
    boards = max(int(tall / 0.13), 2)
    for k in range(boards):
        shade = 0.85 + 0.22 * rng.random()
        patches.box(
            (-x, -y, z0 + tall * k / boards + 0.003),
            (x, y, z0 + tall * (k + 1) / boards - 0.003),
            WOOD,
            [min(v * shade, 1.0) for v in wood],
        )
    for sx in (-1.0, 1.0):
        for sy in (-1.0, 1.0):
            cx, cy = sx * (x - 0.03), sy * (y + 0.011)
            patches.box((cx - 0.045, cy - 0.012, z0), (cx + 0.045, cy + 0.012, z0 + tall), WOOD, wood)
    for sy in (-1.0, 1.0):
        label(
            patches,
            facing_quad((0.0, sy * (y + 0.002), z0 + 0.55 * tall), (0.0, sy, 0.0), 0.44, 0.055),
            LABEL_NUMBERS["fragile"],
        )
    patches.box((-x - 0.01, -y - 0.025, z0 + tall), (x + 0.01, y + 0.025, z0 + tall + 0.02), WOOD, wood)
    return patches


def _sacks(seed: int) -> PatchMesh:
    patches = PatchMesh()
    rng = generator("load", "sacks", seed)
    _pallet(patches, 0.0, 0.85)
    tone = ((0.58, 0.57, 0.54), (0.46, 0.36, 0.24))[seed % 2]
    for layer in range(6):
        for j in range(3):
            shift = 0.02 * (rng.random(2) - 0.5)
            y0 = -0.6 + 0.4 * j + shift[1]
            z0 = PALLET[2] + 0.135 * layer
            chamfered(patches, (-0.38 + shift[0], y0 + 0.005, z0), (0.38 + shift[0], y0 + 0.395, z0 + 0.145), 0.05, PAINT, tone)
            for ahead in (-1.0, 1.0):
                if (j, ahead) in ((0, -1.0), (2, 1.0)):
                    at = (shift[0], y0 + 0.2 + ahead * 0.1975, z0 + 0.075)
                    patches.quad(facing_quad(at, (0.0, ahead, 0.0), 0.3, 0.035), MATT, (0.03, 0.08, 0.2))
    return patches


def _box_pallet(seed: int) -> PatchMesh:
    """Return a box of sheet steel on feet, with castings in it."""
    patches = PatchMesh()
    rng = generator("load", "box pallet", seed)
    paint = ((0.05, 0.13, 0.30), (0.22, 0.24, 0.24), (0.06, 0.2, 0.11))[seed % 3]
    x, y, z0, z1 = 0.39, 0.58, 0.11, 0.75
    for sx in (-1.0, 1.0):
        for sy in (-1.0, 1.0):
            patches.box(
                (sx * (x - 0.05) - 0.05, sy * (y - 0.06) - 0.06, 0.0),
                (sx * (x - 0.05) + 0.05, sy * (y - 0.06) + 0.06, z0),
                COATED,
                paint,
            )
            patches.box((sx * x - 0.025, sy * y - 0.025, z0), (sx * x + 0.025, sy * y + 0.025, z1 + 0.05), COATED, paint)
    patches.box((-x, -y, z0), (x, y, z0 + 0.02), COATED, paint)
    for sx in (-1.0, 1.0):
        patches.box((sx * x - 0.008, -y, z0), (sx * x + 0.008, y, z1), COATED, paint)
        for k in range(3):
            patches.box(
                (sx * (x + 0.012) - 0.012, -y, z0 + 0.12 + 0.2 * k),
                (sx * (x + 0.012) + 0.012, y, z0 + 0.15 + 0.2 * k),
                COATED,
                paint,
            )
    for sy in (-1.0, 1.0):
        patches.box((-x, sy * y - 0.008, z0), (x, sy * y + 0.008, z1), COATED, paint)
        for k in range(3):
            patches.box(
                (-x, sy * (y + 0.012) - 0.012, z0 + 0.12 + 0.2 * k),
                (x, sy * (y + 0.012) + 0.012, z0 + 0.15 + 0.2 * k),
                COATED,
                paint,
            )
    for _ in range(14):
        px, py = (2.0 * rng.random(2) - 1.0) * np.array([0.28, 0.46])
        patches.tube(
            np.array([[px, py, z0 + 0.02], [px, py, z1 - 0.22 + 0.2 * rng.random()]]),
            0.06 + 0.03 * rng.random(),
            METAL,
            (0.32, 0.31, 0.3),
            10,
        )
    return patches


def load(name: str) -> PatchMesh:
    """Return a loaded pallet.

    Raises:
        KeyError: There is none of this name in `LOADS`.
    """
    maker, arguments = LOADS[name]
    return maker(*arguments)


LOADS: dict[str, tuple[Callable[..., PatchMesh], tuple[float, ...]]] = {
    "cartons 1": (_cartons, (1, 2, 3, 3, 0.32)),
    "cartons 2": (_cartons, (2, 2, 2, 2, 0.42)),
    "cartons 3": (_cartons, (3, 2, 4, 4, 0.24)),
    "cartons 4": (_cartons, (4, 1, 2, 2, 0.5)),
    "cartons 5": (_cartons, (5, 2, 3, 2, 0.28)),
    "wrapped 1": (_wrapped, (0, 1.0)),
    "wrapped 2": (_wrapped, (1, 0.8)),
    "wrapped 3": (_wrapped, (2, 1.05)),
    "wrapped 4": (_wrapped, (3, 0.6)),
    "drums 1": (_drums, (0,)),
    "drums 2": (_drums, (1,)),
    "drums 3": (_drums, (3,)),
    "crate 1": (_crate, (1, 0.72)),
    "crate 2": (_crate, (2, 0.95)),
    "sacks 1": (_sacks, (0,)),
    "sacks 2": (_sacks, (1,)),
    "box 1": (_box_pallet, (0,)),
    "box 2": (_box_pallet, (1,)),
    "box 3": (_box_pallet, (2,)),
}
"""Loads by name: none is higher than 1.3 m, none wider than its pallet by more than 3 cm."""
