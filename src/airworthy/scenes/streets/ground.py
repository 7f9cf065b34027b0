"""What lies on the ground of a town: roads with markings, kerbs, pavements, covers and drains."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from airworthy.scenes.buildings.patches import PatchMesh

__all__ = ["GROUND_SURFACES", "StreetGround"]

GROUND_SURFACES = ("asphalt", "slabs", "kerb", "paint", "iron", "setts", "grass", "asphalt_old", "soil", "matt")
"""Materials of a ground's faces, in the order of their numbers."""
ASPHALT, SLABS, KERB, PAINT, IRON, SETTS, GRASS, OLD, SOIL, MATT = range(len(GROUND_SURFACES))
_CELL = 1.6
"""Of ground whose shade may change [m]."""
_KERB = 0.14
"""Width of kerb stones [m]."""
_LIFT = 0.004
"""What is painted on a road or let into it lies this much higher: over what rays need to tell the two apart [m]."""
_YELLOW = (1.0, 0.78, 0.16)

Rect = tuple[float, float, float, float]
"""x0, y0, x1, y1 [m]"""


class StreetGround:
    """Ground that is put together of rectangles along the axes.

    Args:
        road: Height of roads [m].
        walk: Height of pavements [m].
    """

    def __init__(self, road: float, walk: float) -> None:
        self.road, self.walk = road, walk
        self.patches = PatchMesh()

    def area(self, rect: Rect, slot: int, z: float, color: Sequence[float] = (1.0, 1.0, 1.0), cell: float = _CELL) -> None:
        """Lay a surface in cells.

        Args:
            rect: Where.
            slot: Number of its material in `GROUND_SURFACES`.
            z: Height [m].
            color: Linear RGB, multiplied into the material's.
            cell: Largest side of a cell [m].
        """
        x0, y0, x1, y1 = rect
        if x1 - x0 < 1e-6 or y1 - y0 < 1e-6:
            return
        x = np.linspace(x0, x1, max(int(np.ceil((x1 - x0) / cell)), 1) + 1)
        y = np.linspace(y0, y1, max(int(np.ceil((y1 - y0) / cell)), 1) + 1)
        grid = np.stack([*np.meshgrid(x, y, indexing="ij"), np.full((len(x), len(y)), z)], -1)
        i, j = np.meshgrid(np.arange(len(x) - 1), np.arange(len(y) - 1), indexing="ij")
        a = (i * len(y) + j).reshape(-1)
        b, c, d = a + len(y), a + len(y) + 1, a + 1
        faces = np.concatenate([np.stack([a, b, c], -1), np.stack([a, c, d], -1)])
        points = grid.reshape(-1, 3)
        self.patches.add(points, faces, np.repeat([[0.0, 0.0, 1.0]], len(points), 0), slot, color)

    def mark(self, rect: Rect, slot: int = PAINT, color: Sequence[float] = (1.0, 1.0, 1.0), z: float | None = None) -> None:
        """Paint a rectangle on the road, or let a plate into it."""
        x0, y0, x1, y1 = rect
        level = (self.road if z is None else z) + _LIFT
        self.patches.quad(np.array([[x0, y0, level], [x1, y0, level], [x1, y1, level], [x0, y1, level]]), slot, color)

    def dashes(
        self, start: tuple[float, float], end: tuple[float, float], width: float = 0.12, on: float = 2.0, off: float = 3.0
    ) -> None:
        """Paint a broken line along an axis; `off` 0: a whole one."""
        (x0, y0), (x1, y1) = start, end
        length = max(abs(x1 - x0), abs(y1 - y0))
        along = np.array([np.sign(x1 - x0), np.sign(y1 - y0)])
        side = 0.5 * width * np.abs(along[::-1])
        at = 0.0
        while at < length - 0.3:
            stretch = on if off > 0.0 else 3.0
            a = np.array(start) + at * along
            b = np.array(start) + min(at + stretch, length) * along
            low, high = np.minimum(a, b) - side, np.maximum(a, b) + side
            self.mark((low[0], low[1], high[0], high[1]))
            at += stretch + off

    def zebra(self, rect: Rect, along_x: bool) -> None:
        """Paint a crossing: bars of half a metre, lying along the way of the cars."""
        x0, y0, x1, y1 = rect
        low, high = (y0, y1) if along_x else (x0, x1)
        count = max(int((high - low) / 1.0), 1)
        for k in range(count):
            a = low + (high - low) * (k + 0.25) / count
            b = a + 0.5 * (high - low) / count
            self.mark((x0, a, x1, b) if along_x else (a, y0, b, y1))

    def raised(
        self, rect: Rect, slot: int = SLABS, color: Sequence[float] = (1.0, 1.0, 1.0), inner: Rect | None = None
    ) -> None:
        """Lay a pavement with kerb stones around it.

        Args:
            rect: Its outer edge.
            slot: Its surface.
            color: Factor of its colour.
            inner: A rectangle inside that is left out, for grass or a house.
        """
        x0, y0, x1, y1 = rect
        k = min(_KERB, 0.3 * (x1 - x0), 0.3 * (y1 - y0))
        ring = [(x0, y0, x1, y0 + k), (x0, y1 - k, x1, y1), (x0, y0 + k, x0 + k, y1 - k), (x1 - k, y0 + k, x1, y1 - k)]
        for part in ring:
            self.area(part, KERB, self.walk)
        p = [np.array(c) for c in ([x0, y0], [x1, y0], [x1, y1], [x0, y1])]
        for a, b in zip(p, [*p[1:], p[0]], strict=True):
            count = max(int(np.linalg.norm(b - a) / 3.0), 1)
            for n in range(count):
                c, d = a + (b - a) * n / count, a + (b - a) * (n + 1) / count
                corners = [[*c, self.road], [*d, self.road], [*d, self.walk], [*c, self.walk]]
                self.patches.quad(np.array(corners), KERB, (0.8, 0.8, 0.8))
        whole = (x0 + k, y0 + k, x1 - k, y1 - k)
        if inner is None:
            self.area(whole, slot, self.walk, color)
            return
        a0, b0, a1, b1 = inner
        for part in (
            (whole[0], whole[1], whole[2], b0),
            (whole[0], b1, whole[2], whole[3]),
            (whole[0], b0, a0, b1),
            (a1, b0, whole[2], b1),
        ):
            self.area(part, slot, self.walk, color)

    def cover(self, x: float, y: float, radius: float = 0.32, on_walk: bool = False) -> None:
        """Let a round cover into the ground: a rim, a lid with its pattern."""
        z = (self.walk if on_walk else self.road) + _LIFT
        up = (0.0, 0.0, 1.0)
        self.patches.disc(np.array([x, y, z]), up, radius + 0.06, MATT, (0.05, 0.05, 0.05), 24)
        self.patches.disc(np.array([x, y, z + 0.003]), up, radius, IRON, (0.75, 0.72, 0.70), 24)

    def drain(self, x: float, y: float, along_x: bool) -> None:
        """Let a grid into the gutter."""
        wide, deep = (0.5, 0.34) if along_x else (0.34, 0.5)
        self.mark((x - 0.5 * wide, y - 0.5 * deep, x + 0.5 * wide, y + 0.5 * deep), IRON, (0.7, 0.68, 0.66))
        for k in range(6):
            share = (k + 0.5) / 6.0 - 0.5
            if along_x:
                slot = (x + share * wide - 0.022, y - 0.4 * deep, x + share * wide + 0.022, y + 0.4 * deep)
            else:
                slot = (x - 0.4 * wide, y + share * deep - 0.022, x + 0.4 * wide, y + share * deep + 0.022)
            self.mark(slot, MATT, (0.008, 0.008, 0.008), self.road + _LIFT)

    def patch(self, rect: Rect) -> None:
        """Lay a mended place into the road: newer asphalt, a seam of tar around."""
        x0, y0, x1, y1 = rect
        self.mark((x0 - 0.03, y0 - 0.03, x1 + 0.03, y1 + 0.03), MATT, (0.02, 0.02, 0.021))
        self.mark(rect, OLD, (0.72, 0.72, 0.73), self.road + _LIFT)
