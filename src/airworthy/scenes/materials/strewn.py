"""Things that lie about: stones, leaves and blades strewn over a canvas, the upper ones hiding the lower."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayIndex
from airworthy.scenes.materials.canvas import Canvas


@dataclass(frozen=True)
class Strewn:
    """What is on top at each pixel."""

    there: ArrayBool
    """Whether anything lies there, (size, size)."""
    height: Array
    """Of its top [m]; 0 where nothing lies."""
    thing: ArrayIndex
    """Its number; 0 where nothing lies."""
    along: Array
    """Own coordinate along the thing, -1 to 1."""
    across: Array
    """Own coordinate across it, -1 to 1."""


def strewn(canvas: Canvas, row: Array, column: Array, height: Array, thing: ArrayIndex, along: Array, across: Array) -> Strewn:
    """Return which of many samples is on top at each pixel.

    Args:
        canvas: Where they lie.
        row: Of samples [m], (n,); outside of the square they come in again at the other side.
        column: Of samples [m].
        height: Of samples [m].
        thing: Number of the thing to which a sample belongs.
        along: Own coordinate.
        across: Own coordinate.
    """
    size = canvas.size
    pixel = (
        np.floor(row / canvas.pixel).astype(np.int64) % size * size + np.floor(column / canvas.pixel).astype(np.int64) % size
    )
    # The highest sample of each pixel is the last of its run.
    order = np.lexsort((height, pixel))
    ends = np.flatnonzero(np.diff(pixel[order], append=-1))
    top = order[ends]
    index = np.full(size * size, -1, np.int64)
    index[pixel[top]] = top
    there, safe = index >= 0, np.where(index >= 0, index, 0)

    def laid(values: Any) -> Any:
        return np.where(there, values[safe], 0).reshape(size, size)

    return Strewn(there.reshape(size, size), laid(height), laid(thing), laid(along), laid(across))


def _placed(canvas: Canvas, center: Array, turn: Array, along: Array, across: Array) -> tuple[Array, Array]:
    """Return rows and columns of own coordinates in metres, (things, samples)."""
    c, s = np.cos(turn)[:, None], np.sin(turn)[:, None]
    return (center[:, :1] + c * along - s * across).ravel(), (center[:, 1:] + s * along + c * across).ravel()


def stones(
    canvas: Canvas,
    label: str,
    count: int,
    radius: tuple[float, float],
    flatness: float = 0.6,
    facets: int = 5,
    steep: float = 2.0,
    ground: Array | None = None,
) -> Strewn:
    """Strew stones: rounded blocks cut by random planes, small ones many and large ones few.

    Args:
        canvas: Where.
        label: Of the draw.
        count: Of stones.
        radius: Smallest and largest half length [m].
        flatness: Half height over half width.
        facets: Planes that cut each; 0: rounded.
        steep: Exponent with which large ones become rare.
        ground: Height on which they lie [m], (size, size); None: 0.
    """
    rng = canvas.rng(label)
    size = radius[0] * (radius[1] / radius[0]) ** (rng.random(count) ** steep)
    slim, turn = rng.uniform(0.6, 0.95, count), rng.uniform(0.0, 2.0 * np.pi, count)
    center = rng.random((count, 2)) * canvas.tile
    # As many samples as the largest stone has pixels; the small ones take every few of them.
    pieces = []
    for low, high in ((0.0, 0.25), (0.25, 0.5), (0.5, 1.0)):
        chosen = np.flatnonzero((size > low * radius[1]) & (size <= high * radius[1]))
        n = max(4, int(np.ceil(2.6 * high * radius[1] / canvas.pixel)))
        axis = np.linspace(-1.0, 1.0, n)
        u, v = (grid.ravel() for grid in np.meshgrid(axis, axis, indexing="ij"))
        pieces.append((chosen, u, v))
    parts = []
    for chosen, u, v in pieces:
        if not len(chosen):
            continue
        k = len(chosen)
        top = np.sqrt(np.maximum(1.0 - (np.abs(u) ** 2.5 + np.abs(v) ** 2.5), 0.0))[None].repeat(k, 0)
        inside = (np.abs(u) ** 2.5 + np.abs(v) ** 2.5 < 1.0)[None].repeat(k, 0)
        for _ in range(facets):
            angle, tilt, level = rng.uniform(0, 2 * np.pi, (k, 1)), rng.uniform(0.3, 1.6, (k, 1)), rng.uniform(0.6, 1.0, (k, 1))
            cut = level - tilt * (np.cos(angle) * u + np.sin(angle) * v)
            top = np.minimum(top, cut)
            inside &= cut > 0.0
        height = np.where(inside, (0.35 + top) * (flatness * size[chosen] * slim[chosen])[:, None], -1.0)
        rows, columns = _placed(
            canvas, center[chosen], turn[chosen], u * size[chosen][:, None], v * (size * slim)[chosen][:, None]
        )
        keep = inside.ravel()
        flat = [rows, columns, height.ravel(), np.repeat(chosen, len(u)), np.tile(u, k), np.tile(v, k)]
        parts.append([part[keep] for part in flat])
    rows, columns, height, thing, along, across = (np.concatenate(column) for column in zip(*parts, strict=True))
    if ground is not None:
        at = np.floor(center / canvas.pixel).astype(int) % canvas.size
        height = height + ground[at[:, 0], at[:, 1]][thing]
    return strewn(canvas, rows, columns, height, thing, along, across)


def leaves(canvas: Canvas, label: str, count: int, length: tuple[float, float], lift: float) -> Strewn:
    """Strew leaves: pointed ovals, some lobed, curled, one over the other.

    Args:
        canvas: Where.
        label: Of the draw.
        count: Of leaves.
        length: Shortest and longest [m].
        lift: Height of the heap [m].
    """
    rng = canvas.rng(label)
    half = 0.5 * rng.uniform(*length, count)
    slim, turn = rng.uniform(0.38, 0.62, count), rng.uniform(0.0, 2.0 * np.pi, count)
    center = rng.random((count, 2)) * canvas.tile
    n = int(np.ceil(1.25 * length[1] / canvas.pixel))
    u, v = (g.ravel()[None] for g in np.meshgrid(np.linspace(-1, 1, n), np.linspace(-1, 1, max(n * 2 // 3, 4)), indexing="ij"))
    lobes = np.where(rng.random((count, 1)) < 0.45, rng.uniform(0.15, 0.32, (count, 1)), 0.0)
    outline = (1.0 - u * u) ** 0.75 * (1.0 + 0.25 * u) * (1.0 - lobes * (0.5 + 0.5 * np.cos(16.0 * u)) * (np.abs(u) < 0.85))
    bow = 0.25 * rng.normal(0.0, 1.0, (count, 1)) * u * u
    inside = np.abs(v - bow) < np.maximum(outline, np.where(u < -0.9, 0.06, 0.0)) * 0.95
    curl, fold, roll = rng.normal(0.0, 0.16, (count, 1)), rng.uniform(0.0, 0.22, (count, 1)), rng.normal(0.0, 0.13, (count, 1))
    shape = curl * u * u + fold * np.abs(v) + roll * u * v + 0.03 * rng.normal(0, 1, (count, 1)) * np.sin(5.0 * u)
    height = lift * rng.random((count, 1)) + half[:, None] * shape
    rows, columns = _placed(canvas, center, turn, u * half[:, None], v * (half * slim)[:, None])
    keep = inside.ravel()
    thing = np.repeat(np.arange(count), u.size)
    flat = [rows, columns, height.ravel(), thing, np.tile(u[0], count), (v - bow).ravel()]
    return strewn(canvas, *(part[keep] for part in flat))


def blades(canvas: Canvas, label: str, count: int, length: tuple[float, float], width: float, rise: float) -> Strewn:
    """Strew blades of grass: bent strokes that rise from their root, thin at the tip.

    Args:
        canvas: Where.
        label: Of the draw.
        count: Of blades.
        length: Shortest and longest, seen from above [m].
        width: At the root [m].
        rise: Height of the tallest tip [m].
    """
    rng = canvas.rng(label)
    n = int(np.ceil(1.4 * length[1] / canvas.pixel))
    lanes = max(2, int(np.ceil(1.4 * width / canvas.pixel)))
    # Blades stand in tufts, whose blades lean outwards.
    tufts = rng.random((max(count // 14, 1), 2)) * canvas.tile
    home = rng.integers(0, len(tufts), count)
    center = tufts[home] + rng.normal(0.0, 0.012, (count, 2))
    reach, turn = rng.uniform(*length, count), rng.uniform(0.0, 2.0 * np.pi, count)
    t = np.linspace(0.0, 1.0, n)[None, :, None]
    lane = np.linspace(-1.0, 1.0, lanes)[None, None, :]
    bend = rng.normal(0.0, 0.9, (count, 1, 1)) * t
    along = reach[:, None, None] * t * np.cos(0.5 * bend)
    across = reach[:, None, None] * t * np.sin(0.5 * bend) + 0.5 * width * (1.0 - t) ** 0.7 * lane
    tall = rise * rng.uniform(0.35, 1.0, (count, 1, 1))
    droop = rng.uniform(0.4, 1.1, (count, 1, 1))
    height = tall * (2.0 * t * droop - (droop * t) ** 2) - 0.02 * width * lane**2
    ones = np.ones((count, n, lanes))
    rows, columns = _placed(canvas, center, turn, (along * ones).reshape(count, -1), (across * ones).reshape(count, -1))
    thing = np.repeat(np.arange(count), n * lanes)
    return strewn(
        canvas, rows, columns, (height * ones).ravel(), thing, (2 * t - 1 + 0 * ones).ravel(), (lane + 0 * ones).ravel()
    )
