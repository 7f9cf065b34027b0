"""The square on which a surface is drawn: periodic noise, cells, strokes and cracks, all in metres and closed at the edge.

Every draw is named: its numbers come from (material, seed, name), so that one feature changes without moving the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.ndimage import gaussian_filter, map_coordinates
from scipy.spatial import cKDTree

from airworthy.core.arrays import Array, ArrayFloat, ArrayIndex
from airworthy.scenes.generators.seeding import generator

Rgb = Sequence[float]


@dataclass(frozen=True)
class CellPattern:
    """A division of the square by the nearest of scattered points (Worley, A cellular texture basis function, 1996)."""

    nearest: Array
    """Distance to the nearest point [m], (size, size); along a stretched axis in its shortened metre."""
    second: Array
    """Distance to the second nearest."""
    index: ArrayIndex
    """Number of the nearest point."""
    point: Array
    """(count, 2): row and column of the points [m]."""

    @property
    def border(self) -> Array:
        """0 on the border between two cells, growing inwards [m]."""
        return self.second - self.nearest


@dataclass(frozen=True)
class Trace:
    """Nearest point of a set of drawn lines, for every pixel."""

    distance: Array
    """[m]; `reach` where no line is nearer."""
    width: Array
    """Of the line there [m]; 0 where none is."""
    along: Array
    """0 at its beginning, 1 at its end."""


class Canvas:
    """A periodic square of `size` pixels and `tile` metres a side. Rows run down, columns to the right.

    Args:
        name: Of the material: part of every random number.
        seed: Variant.
        size: Side [px].
        tile: Side [m].
        wear: 0 (new) to 1 (worn out).
    """

    def __init__(self, name: str, seed: int, size: int, tile: float, wear: float) -> None:
        self.name, self.seed, self.size, self.tile, self.wear = name, seed, size, tile, wear
        self.pixel = tile / size

    @cached_property
    def row(self) -> Array:
        """Distance of pixel centres from the upper edge [m], (size, size)."""
        return np.repeat(((np.arange(self.size) + 0.5) * self.pixel)[:, None], self.size, 1)

    @cached_property
    def column(self) -> Array:
        """Distance of pixel centres from the left edge [m], (size, size)."""
        return np.ascontiguousarray(self.row.T)

    def rng(self, label: str) -> np.random.Generator:
        """Return the generator of one named draw."""
        return generator("material", self.name, self.seed, label)

    # ---- noise --------------------------------------------------------------------------------------------------------------

    def noise(
        self, label: str, slope: float = 2.0, low: float = 2.0, high: float = 1e9, stretch: tuple[float, float] = (1.0, 1.0)
    ) -> Array:
        """Return periodic noise of mean 0 and deviation 1 whose power falls with frequency.

        Args:
            label: Of the draw.
            slope: Power per area of the frequency plane is frequency^-slope.
            low: Cycles per tile below which there is none: what is slower would show the tiling.
            high: Cycles per tile above which there is none.
            stretch: Features are this much longer along rows' axis (down) and columns' axis (right).
        """
        white = np.fft.rfft2(self.rng(label).standard_normal((self.size, self.size)))
        down = np.fft.fftfreq(self.size, 1.0 / self.size)[:, None] * stretch[0]
        right = np.fft.rfftfreq(self.size, 1.0 / self.size)[None, :] * stretch[1]
        frequency = np.hypot(down, right)
        # The mean is set apart; a power of 0 would be infinite.
        frequency[0, 0] = 1.0
        # Soft ends: a sharp one rings.
        gate = 1.0 / (1.0 + (low / frequency) ** 8) / (1.0 + (frequency / high) ** 8)
        weight = frequency ** (-0.5 * slope) * gate
        weight[0, 0] = 0.0
        field = np.fft.irfft2(white * weight, s=(self.size, self.size))
        return np.asarray(field / max(float(field.std()), 1e-12))

    def rank(self, field: Array) -> Array:
        """Return the share of pixels that lie below each one, (0, 1): a threshold of it covers just that share."""
        order = np.argsort(field, axis=None, kind="stable")
        out = np.empty(field.size)
        out[order] = (np.arange(field.size) + 0.5) / field.size
        return out.reshape(field.shape)

    def blurred(self, field: Array, sigma: float) -> Array:
        """Return a field smoothed over sigma metres, around the edge."""
        return np.asarray(gaussian_filter(field, sigma / self.pixel, mode="wrap"))

    def warped(self, field: Array, down: Array | float, right: Array | float) -> Array:
        """Return a field read this many metres further down and right."""
        at = np.broadcast_arrays((self.row + down) / self.pixel - 0.5, (self.column + right) / self.pixel - 0.5)
        return np.asarray(map_coordinates(field, at, order=1, mode="grid-wrap"))

    # ---- cells --------------------------------------------------------------------------------------------------------------

    def cells(
        self, label: str, count: int, stretch: float = 1.0, bend: tuple[Array, Array] | None = None, jitter: float = 1.0
    ) -> CellPattern:
        """Return cells around about `count` points, each jittered within a grid's field.

        Args:
            label: Of the draw.
            count: Of points.
            stretch: Cells are this much longer down than across.
            bend: Displacement of the places that are asked for, down and right [m].
            jitter: 0: a grid; 1: anywhere within its field.
        """
        across = max(2, round(float(np.sqrt(count * stretch))))
        down = max(2, round(count / across))
        rng = self.rng(label)
        grid = np.stack(np.meshgrid(np.arange(down), np.arange(across), indexing="ij"), -1).reshape(-1, 2)
        point = (grid + 0.5 + jitter * (rng.random((len(grid), 2)) - 0.5)) / (down, across) * self.tile
        place = np.stack([self.row, self.column], -1).reshape(-1, 2)
        if bend is not None:
            place = place + np.stack(bend, -1).reshape(-1, 2)
        scale = np.array([self.tile / stretch, self.tile])
        squeeze = np.array([1.0 / stretch, 1.0])
        tree = cKDTree(np.mod(point * squeeze, scale), boxsize=scale)
        distance, index = tree.query(np.mod(place * squeeze, scale), k=2)
        shape = (self.size, self.size)
        return CellPattern(distance[:, 0].reshape(shape), distance[:, 1].reshape(shape), index[:, 0].reshape(shape), point)

    # ---- lines --------------------------------------------------------------------------------------------------------------

    def traced(self, points: Array, width: ArrayFloat, along: ArrayFloat, reach: float) -> Trace:
        """Return how far each pixel lies from points (n, 2) of lines.

        Args:
            points: Row and column [m]; outside of the square they come in again at the other side.
            width: Of the line at each point [m].
            along: Share of the line's way at each point.
            reach: Farther is not looked for [m].
        """
        shape = (self.size, self.size)
        if not len(points):
            return Trace(np.full(shape, reach), np.zeros(shape), np.zeros(shape))
        place = np.stack([self.row, self.column], -1).reshape(-1, 2)
        tree = cKDTree(np.mod(points, self.tile), boxsize=self.tile)
        distance, index = tree.query(place, distance_upper_bound=reach)
        found = index < len(points)
        safe = np.where(found, index, 0)
        return Trace(
            np.where(found, distance, reach).reshape(shape),
            np.where(found, np.asarray(width)[safe], 0.0).reshape(shape),
            np.where(found, np.asarray(along)[safe], 0.0).reshape(shape),
        )

    def cracks(self, label: str, count: int, length: float, width: float, reach: float, wander: float = 1.0) -> Trace:
        """Return branching cracks: walks whose heading wanders, thinner towards their ends.

        Args:
            label: Of the draw.
            count: Of cracks that are not branches.
            length: Typical [m].
            width: Where it begins [m].
            reach: Farther from a crack is not looked for [m].
            wander: How crooked they are; 0: straight scratches, which do not branch.
        """
        rng = self.rng(label)
        step = 0.7 * self.pixel
        todo = []
        for _ in range(count):
            turn = rng.uniform(-np.pi, np.pi)
            todo.append((rng.random(2) * self.tile, turn, length * rng.uniform(0.6, 1.4), width))
        rows: list[Array] = []
        widths: list[Array] = []
        along: list[Array] = []
        while todo and len(rows) < 400:
            start, turn, reach_of, wide = todo.pop()
            n = max(int(reach_of / step), 2)
            # Kinks of many sizes: a crack goes round stones.
            kinks = np.cumsum(rng.normal(0.0, 0.055, n)) + 0.8 * np.repeat(rng.normal(0.0, 0.5, n // 12 + 1), 12)[:n]
            angle = turn + wander * (kinks - 0.5 * np.cumsum(kinks) / np.arange(1, n + 1))
            path = start + np.cumsum(step * np.stack([np.cos(angle), np.sin(angle)], -1), 0)
            share = np.linspace(0.0, 1.0, n)
            rows.append(path)
            widths.append(wide * (1.0 - 0.75 * share) * rng.uniform(0.7, 1.2))
            along.append(share)
            if wander > 0.3 and wide > 0.4 * width:
                for at in rng.integers(n // 5, n, rng.integers(0, 3)):
                    side = rng.choice((-1.0, 1.0)) * rng.uniform(0.5, 1.2)
                    todo.append((path[at], float(angle[at]) + side, 0.5 * reach_of * rng.uniform(0.4, 1.0), 0.6 * wide))
        if not rows:
            return self.traced(np.zeros((0, 2)), np.zeros(0), np.zeros(0), reach)
        return self.traced(np.concatenate(rows), np.concatenate(widths), np.concatenate(along), reach)

    def streaks(self, label: str, source: ArrayFloat, length: float, spread: float = 0.004) -> Array:
        """Return what runs down from a source (size, size) in [0, 1]: thinning over `length` metres, swerving a little."""
        swerve = spread * self.noise(f"{label} swerve", 2.0, 3.0, 40.0, (6.0, 1.0))
        gain = np.exp(-self.pixel / length)
        # A recursive filter down the rows, twice around: the second pass knows what comes in over the edge.
        out = np.zeros((self.size, self.size))
        level = np.zeros(self.size)
        for k in (*range(self.size), *range(self.size)):
            level = np.maximum(level * gain, source[k])
            out[k] = level
        return self.warped(out, 0.0, swerve)


# ---- mixing -----------------------------------------------------------------------------------------------------------------


def smooth(low: float, high: float, value: Array) -> Array:
    """Return 0 below `low`, 1 above `high`, a smooth cubic between (falling where `low` is the greater)."""
    # Equal ends, as of what no wear has touched, are a step.
    t = np.clip((value - low) / ((high - low) or 1e-9), 0.0, 1.0)
    return np.asarray(t * t * (3.0 - 2.0 * t))


def color(rgb: Rgb) -> Array:
    """Return a colour (1, 1, 3) that mixes with images."""
    return np.asarray(rgb, float).reshape(1, 1, 3)


def over(below: Array, above: Array, share: Array | float) -> Array:
    """Return `above` laid over `below` by its share; colours (h, w, 3) or fields (h, w)."""
    weight = np.asarray(share, float)
    if np.ndim(below) == 3 and weight.ndim == 2:
        weight = weight[..., None]
    return np.asarray(below * (1.0 - weight) + above * weight)


def ramp(colors: Sequence[Rgb], value: Array) -> Array:
    """Return colours (h, w, 3) at values in [0, 1] along evenly spaced stops."""
    stops = np.asarray(colors, float)
    at = np.clip(value, 0.0, 1.0) * (len(stops) - 1)
    return np.stack([np.interp(at, np.arange(len(stops)), stops[:, k]) for k in range(3)], -1)


def shaded(image: Array, factor: ArrayFloat) -> Array:
    """Return colours times a field."""
    return np.asarray(image * factor[..., None])
