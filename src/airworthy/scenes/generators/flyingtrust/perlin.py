"""Perlin noise: floating clutter, the 3 % of 0.1 m voxels in which improved Perlin noise is highest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from airworthy.scenes.generators.flyingtrust.layout import Layout, goal_of, start_of
from airworthy.scenes.generators.flyingtrust.parameters import CLEAR_RADIUS, NOISE_FILL, NOISE_FREQUENCY, SCENARIOS, VOXEL
from airworthy.scenes.generators.flyingtrust.voxels import Voxels

Floats = NDArray[np.float64]

_EDGES = np.array(
    [
        *[(a, b, 0) for b in (1, -1) for a in (1, -1)],
        *[(a, 0, c) for c in (1, -1) for a in (1, -1)],
        *[(0, b, c) for c in (1, -1) for b in (1, -1)],
        (1, 1, 0), (0, -1, 1), (-1, 1, 0), (0, -1, -1),
    ],
    float,
)  # fmt: skip
"""Gradients towards the edges of a cube, picked by the low four bits of a hash (Perlin, "Improving noise", 2002)."""


def draw_perlin(index: int, rng: np.random.Generator) -> Layout:
    """One field of clutter, with the cylinders around start and goal left out of it."""
    stated = SCENARIOS["perlin"]
    size = np.rint(np.array([stated.length, stated.width, stated.ceiling]) / VOXEL).astype(int)
    permutation = np.argsort(rng.random(256), kind="stable")
    field = noise_grid(permutation, tuple(size.tolist()), NOISE_FREQUENCY)
    lower = np.array([-0.5 * stated.length, -0.5 * stated.width, 0.0])
    x = lower[0] + (np.arange(size[0]) + 0.5) * VOXEL
    y = lower[1] + (np.arange(size[1]) + 0.5) * VOXEL
    for end in (start_of(stated), goal_of(stated)):  # 0.08 m: a voxel's corner is up to 0.071 m nearer than its centre
        near = np.hypot(x[:, None] - end[0], y[None] - end[1]) < CLEAR_RADIUS + 0.08
        field[near] = -np.inf
    wanted = round(NOISE_FILL * field.size)
    threshold = np.partition(field, field.size - wanted, axis=None)[field.size - wanted]
    occupied = field >= threshold
    layout = Layout("perlin")
    layout.voxels = Voxels(occupied, lower, VOXEL)
    layout.facts = {"fill": float(occupied.mean()), "threshold": float(threshold), "frequency": NOISE_FREQUENCY}
    layout.facts["voxels"] = float(occupied.sum())
    return layout


def noise_grid(permutation: NDArray[np.integer], shape: tuple[int, ...], frequency: float) -> Floats:
    """Improved Perlin noise in [0, 1] at (2 f i, 2 f j, 2 f k) for every voxel index.

    Voxels between two lattice points have the same fractions in every cell, so a cell's voxels are its corners' gradients times
    one table. Needs 1 / (2 f) to be a whole number.
    """
    per_cell = round(1.0 / (2.0 * frequency))
    assert abs(per_cell * 2.0 * frequency - 1.0) < 1e-12, frequency
    cells = [-(-n // per_cell) for n in shape]
    hashed = _hash(permutation, [n + 1 for n in cells])
    gradient = _EDGES[hashed & 15]
    fraction = np.arange(per_cell) / per_cell
    fade = fraction**3 * (fraction * (fraction * 6.0 - 15.0) + 10.0)
    total = np.zeros((cells[0], per_cell, cells[1], per_cell, cells[2], per_cell))
    for corner in np.ndindex(2, 2, 2):
        g = gradient[tuple(slice(c, c + n) for c, n in zip(corner, cells, strict=True))]
        weight = [fade if c else 1.0 - fade for c in corner]
        away = [fraction - c for c in corner]
        w = weight[0][:, None, None] * weight[1][:, None] * weight[2]
        for axis in range(3):
            along = [1, 1, 1]
            along[axis] = per_cell
            table = w * away[axis].reshape(along)
            total += g[:, None, :, None, :, None, axis] * table[None, :, None, :, None, :]
    full = total.reshape([n * per_cell for n in cells])
    return np.asarray(0.5 * (1.0 + full[tuple(slice(n) for n in shape)]))


def _hash(permutation: NDArray[np.integer], shape: list[int]) -> NDArray[np.integer]:
    """Hash of every lattice point: p[p[p[x] + y] + z], indices modulo 256."""
    p = np.asarray(permutation)
    x, y, z = (np.arange(n) & 255 for n in shape)
    first = (p[x][:, None] + y) & 255
    second = (p[first][:, :, None] + z) & 255
    return np.asarray(p[second])
