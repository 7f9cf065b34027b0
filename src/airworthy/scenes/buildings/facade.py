"""What stands in the pieces of a façade: walls, windows with sills and frames, doors, shops, balconies, cornices."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from airworthy.core.arrays import Array
from airworthy.scenes.buildings.grammar import Piece
from airworthy.scenes.buildings.panes import ROOMS, SHOPS, WORDS, room_uv
from airworthy.scenes.buildings.patches import PatchMesh
from airworthy.scenes.buildings.relief import BASE, GLASS, IRON, LAMP, PAINT, ROOM, TRIM, TRIM_TINT, WALL, FacadeRelief
from airworthy.scenes.buildings.shopfront import name_board, painted_slab, shop_door, shop_window
from airworthy.scenes.buildings.styles import BuildingStyle

__all__ = ["Facade"]

Rgb = tuple[float, float, float]
_FRAME = 0.065
"""Width of a window's frame [m]."""
_BAR = 0.035
_CELL = 2.2
"""Walls are cut into pieces of at most this, so that shade can change over them [m]."""
_LIT = 0.38
"""Share of rooms whose lamps burn at night."""
_DOORS: tuple[Rgb, ...] = (
    (0.05, 0.10, 0.07),
    (0.22, 0.03, 0.03),
    (0.03, 0.05, 0.12),
    (0.16, 0.09, 0.05),
    (0.03, 0.03, 0.03),
    (0.35, 0.33, 0.28),
)
_AWNINGS: tuple[Rgb, ...] = ((0.45, 0.07, 0.05), (0.06, 0.20, 0.12), (0.50, 0.42, 0.28), (0.06, 0.10, 0.25))


class Facade:
    """One side of a building.

    Args:
        patches: What the mesh is made of.
        origin: Its lower left corner seen from outside [m], (3,).
        along: Unit vector to the right, level, (3,).
        style: Of the building.
        relief: How deep.
        tint: Of the wall.
        frame: Colour of window frames.
        rng: Draws rooms and doors.
    """

    def __init__(
        self,
        patches: PatchMesh,
        origin: Array,
        along: Array,
        style: BuildingStyle,
        relief: FacadeRelief,
        tint: Rgb,
        frame: Rgb,
        rng: np.random.Generator,
    ) -> None:
        self.patches, self.origin, self.along = patches, np.asarray(origin, float), np.asarray(along, float)
        # Seen from outside: right, up, outward are right-handed.
        outward = np.cross(self.along, [0.0, 0.0, 1.0])
        self._frame = (self.origin.tolist(), self.along[:2].tolist(), outward[:2].tolist())
        self.style, self.relief, self.tint, self.frame, self.rng = style, relief, tint, frame, rng
        self.shop, self.word = int(rng.random() * SHOPS), int(rng.random() * len(WORDS))
        self.door = _DOORS[int(rng.random() * len(_DOORS))]
        self.board = _muted_dark(rng)
        self.awning = _AWNINGS[int(rng.random() * len(_AWNINGS))] if rng.random() < 0.55 else None
        self.shuttered = rng.random() < style.shutters
        self.shutter_color = _DOORS[int(rng.random() * len(_DOORS))]
        self.lamps: list[tuple[float, float, float]] = []
        """Where lamps over doors are."""

    def build(self, pieces: Sequence[Piece]) -> None:
        """Build every piece.

        Raises:
            KeyError: A piece has a symbol that no façade knows; grammars come from `facade_rules`.
        """
        for piece in pieces:
            _BUILDERS[piece.symbol](self, piece)

    # ---- Flat parts ---------------------------------------------------------------------------------------------------------

    def point(self, s: float, z: float, out: float) -> tuple[float, float, float]:
        """Return a point: along the façade, above its foot, out of its wall [m]."""
        (x, y, foot), (ax, ay), (ox, oy) = self._frame
        return (x + s * ax + out * ox, y + s * ay + out * oy, foot + z)

    def face(
        self,
        span: tuple[float, float, float, float],
        out: float,
        slot: int,
        color: Sequence[float] | Array,
        uv: Array | None = None,
    ) -> None:
        """Add a quad in the façade's plane: left, right, low, high [m], and how far out."""
        a, b, low, high = span
        corners = [self.point(a, low, out), self.point(b, low, out), self.point(b, high, out), self.point(a, high, out)]
        self.patches.quad(corners, slot, color, uv)

    def wall(self, piece: Piece, slot: int = WALL, out: float = 0.0, color: Rgb | None = None) -> None:
        """Add a wall in cells, darker where rain splashes and under the eaves."""
        tint = np.array(self.tint if color is None else color)
        columns = max(int(np.ceil(piece.width / _CELL)), 1)
        rows = max(int(np.ceil(piece.height / _CELL)), 1)
        s, z = np.linspace(piece.left, piece.right, columns + 1), np.linspace(piece.low, piece.high, rows + 1)
        for i in range(columns):
            for j in range(rows):
                shade = np.array([_splashed(z[j]), _splashed(z[j]), _splashed(z[j + 1]), _splashed(z[j + 1])])[:, None]
                corners = [self.point(s[i], z[j], out), self.point(s[i + 1], z[j], out)]
                corners += [self.point(s[i + 1], z[j + 1], out), self.point(s[i], z[j + 1], out)]
                self.patches.quad(corners, slot, shade * tint)

    def slab(
        self, span: tuple[float, float, float, float], out: float, slot: int, color: Sequence[float] | Array, back: float = 0.0
    ) -> None:
        """Add what stands out of the wall: its front and four sides."""
        a, b, low, high = span
        self.face(span, out, slot, color)
        p = self.point
        under = 0.8 * np.asarray(color, float)
        self.patches.quad([p(a, low, back), p(a, low, out), p(a, high, out), p(a, high, back)], slot, color)
        self.patches.quad([p(b, low, out), p(b, low, back), p(b, high, back), p(b, high, out)], slot, color)
        self.patches.quad([p(a, high, out), p(b, high, out), p(b, high, back), p(a, high, back)], slot, color)
        self.patches.quad([p(a, low, back), p(b, low, back), p(b, low, out), p(a, low, out)], slot, under)

    def recess(self, piece: Piece, depth: float, slot: int, color: Sequence[float] | Array) -> None:
        """Add the four sides of a hole in the wall."""
        a, b, low, high = piece.left, piece.right, piece.low, piece.high
        p, tone = self.point, 0.86 * np.asarray(color, float)
        self.patches.quad([p(a, low, 0.0), p(a, low, -depth), p(a, high, -depth), p(a, high, 0.0)], slot, tone)
        self.patches.quad([p(b, low, -depth), p(b, low, 0.0), p(b, high, 0.0), p(b, high, -depth)], slot, tone)
        self.patches.quad([p(a, low, 0.0), p(b, low, 0.0), p(b, low, -depth), p(a, low, -depth)], slot, color)
        self.patches.quad([p(a, high, -depth), p(b, high, -depth), p(b, high, 0.0), p(a, high, 0.0)], slot, 0.7 * tone)

    def bars(self, span: tuple[float, float, float, float], out: float, across: int, up: int, frame: float = _FRAME) -> None:
        """Add a frame around a pane, and bars that divide it."""
        a, b, low, high = span
        for part in ((a, a + frame, low, high), (b - frame, b, low, high)):
            self.face(part, out, PAINT, self.frame)
        for part in ((a + frame, b - frame, low, low + frame), (a + frame, b - frame, high - frame, high)):
            self.face(part, out, PAINT, self.frame)
        for k in range(1, across):
            at = a + (b - a) * k / across
            self.face((at - 0.5 * _BAR, at + 0.5 * _BAR, low + frame, high - frame), out - 0.004, PAINT, self.frame)
        for k in range(1, up):
            at = low + (high - low) * k / up
            self.face((a + frame, b - frame, at - 0.5 * _BAR, at + 0.5 * _BAR), out - 0.006, PAINT, self.frame)

    # ---- Pieces -------------------------------------------------------------------------------------------------------------

    def window(self, piece: Piece) -> None:
        """Add a window: hole, pane with a room behind it, frame, sill, and what its style has around it."""
        style, relief = self.style, self.relief
        self._glazed(piece, style.panes)
        a, b, low, high = piece.left, piece.right, piece.low, piece.high
        trim = TRIM_TINT
        self.slab((a - 0.06, b + 0.06, low - 0.07, low), relief.sill, TRIM, trim)
        if low > 1.5:
            self._streaks(piece)
        if style.lintel > 0.0:
            self.slab((a - 0.12, b + 0.12, high, high + style.lintel), 0.35 * relief.surround, TRIM, trim)
        if style.surround > 0.0:
            self._surround((a, b, low, high))
        if self.shuttered:
            wide = 0.48 * (b - a)
            for left, right in ((a - wide - 0.03, a - 0.03), (b + 0.03, b + wide + 0.03)):
                self._shutter((left, right, low, high))

    def _surround(self, span: tuple[float, float, float, float]) -> None:
        (a, b, low, high), w, out = span, self.style.surround, self.relief.surround
        self.slab((a - w, a, low, high + w), out, TRIM, TRIM_TINT)
        self.slab((b, b + w, low, high + w), out, TRIM, TRIM_TINT)
        self.slab((a, b, high, high + w), out, TRIM, TRIM_TINT)

    def _shutter(self, span: tuple[float, float, float, float]) -> None:
        a, b, low, high = span
        color = np.array(self.shutter_color)
        self.slab(span, self.relief.shutter, PAINT, color)
        slats = 9
        edges = np.linspace(low + 0.06, high - 0.06, slats + 1)
        for k in range(slats):
            self.face(
                (a + 0.05, b - 0.05, edges[k], edges[k] + 0.5 * (edges[1] - edges[0])),
                self.relief.shutter + 0.002,
                PAINT,
                0.45 * color,
            )

    def _glazed(self, piece: Piece, panes: tuple[int, int]) -> None:
        relief, rng = self.relief, self.rng
        self.recess(
            piece,
            relief.pane,
            WALL if self.style.surround == 0.0 else TRIM,
            self.tint if self.style.surround == 0.0 else TRIM_TINT,
        )
        span = (piece.left, piece.right, piece.low, piece.high)
        # A wide window is looked through at several places, each as wide as a room's picture.
        count, lit = max(round(piece.width / 1.35), 1), bool(rng.random() < _LIT)
        edges = np.linspace(piece.left, piece.right, count + 1)
        for a, b in itertools.pairwise(edges):
            uv = room_uv(int(rng.random() * ROOMS), lit, bool(rng.random() < 0.5))
            self.face((a, b, piece.low, piece.high), -relief.pane, ROOM, (1.0, 1.0, 1.0), uv)
        self.bars(span, -relief.pane + relief.frame, *panes)

    def balcony_door(self, piece: Piece) -> None:
        """Add a glazed door behind a rail, or on a balcony."""
        relief = self.relief
        self._glazed(piece, (2, 2))
        if self.style.surround > 0.0:
            self._surround((piece.left, piece.right, piece.low, piece.high))
        a, b, z = piece.left - 0.35, piece.right + 0.35, piece.low
        if relief.balcony < 0.2:
            self._rail((piece.left - 0.04, piece.right + 0.04), z + 0.05, relief.balcony)
            return
        self.slab((a, b, z - 0.16, z), relief.balcony, TRIM, TRIM_TINT)
        self._rail((a, b), z, relief.balcony - 0.04)
        for s in (a + 0.02, b - 0.02):
            for out in np.linspace(0.08, relief.balcony - 0.12, 7):
                p = self.point
                self.patches.quad(
                    [p(s, z, out), p(s, z, out + 0.02), p(s, z + 0.95, out + 0.02), p(s, z + 0.95, out)], PAINT, IRON
                )
            self.slab((s - 0.02, s + 0.02, z + 0.95, z + 1.0), relief.balcony, PAINT, IRON)

    def _rail(self, span: tuple[float, float], z: float, out: float) -> None:
        a, b = span
        count = max(int((b - a) / 0.115), 2)
        for s in np.linspace(a + 0.02, b - 0.02, count):
            self.face((s - 0.009, s + 0.009, z, z + 0.95), out - 0.008, PAINT, IRON)
        self.face((a, b, z + 0.95, z + 1.0), out, PAINT, IRON)
        self.face((a, b, z + 0.06, z + 0.09), out - 0.004, PAINT, IRON)
        p = self.point
        top = z + 1.0
        self.patches.quad([p(a, top, out), p(b, top, out), p(b, top, out - 0.03), p(a, top, out - 0.03)], PAINT, IRON)

    def entrance(self, piece: Piece) -> None:
        """Add the door of a house: panels, a light over it, a step."""
        relief = self.relief
        self.recess(piece, relief.pane, TRIM, TRIM_TINT)
        self._surround_door(piece)
        a, b, low = piece.left, piece.right, piece.low
        over = piece.high - 0.42
        self.face((a, b, low, over), -relief.pane, PAINT, self.door)
        self.face((a, b, over, piece.high), -relief.pane, ROOM, (1.0, 1.0, 1.0), room_uv(int(self.rng.random() * ROOMS), True))
        self.bars((a, b, over, piece.high), -relief.pane + 0.02, 3, 1, 0.05)
        dark, light = 0.55 * np.array(self.door), np.minimum(1.5 * np.array(self.door) + 0.01, 1.0)
        middle, out = 0.5 * (a + b), -relief.pane + 0.008
        self.face((middle - 0.006, middle + 0.006, low, over), out, PAINT, (0.01, 0.01, 0.01))
        for left, right in ((a + 0.09, middle - 0.09), (middle + 0.09, b - 0.09)):
            for z0, z1 in ((low + 0.14, low + 0.75), (low + 0.9, over - 0.15)):
                self.face((left, right, z0, z1), out, PAINT, dark)
                self.face((left + 0.035, right - 0.035, z0 + 0.035, z1 - 0.035), out + 0.006, PAINT, light)
        self.face((middle + 0.04, middle + 0.07, low + 0.95, low + 1.15), out + 0.012, PAINT, (0.55, 0.40, 0.15))
        self._door_lamp(middle, piece.high + 0.36)

    def _door_lamp(self, s: float, z: float) -> None:
        """Hang a flat lamp over a door."""
        out = min(self.relief.sill, 0.09)
        self.slab((s - 0.13, s + 0.13, z - 0.07, z + 0.07), out - 0.008, PAINT, IRON)
        self.face((s - 0.10, s + 0.10, z - 0.045, z + 0.045), out, LAMP, (1.0, 1.0, 1.0))
        self.lamps.append(self.point(s, z, out + 0.06))

    def _streaks(self, piece: Piece) -> None:
        """Let dirt run down the wall from both ends of a sill."""
        for s in (piece.left - 0.03, piece.right + 0.03):
            if self.rng.random() < 0.55:
                continue
            long, wide = 0.25 + 0.5 * self.rng.random(), 0.03 + 0.05 * self.rng.random()
            top, p, out = piece.low - 0.07, self.point, 0.003
            corners = [
                p(s - 0.4 * wide, top - long, out),
                p(s + 0.4 * wide, top - long, out),
                p(s + wide, top, out),
                p(s - wide, top, out),
            ]
            tint = np.array(self.tint)
            self.patches.quad(corners, WALL, np.array([0.98, 0.98, 0.68, 0.68])[:, None] * tint * _splashed(top))

    def rain_pipe(self, width: float, high: float) -> None:
        """Lead the roof's water down at the left end."""
        if width > 4.0 and high > 3.0:
            out = min(self.relief.sill, 0.09)
            tone = (0.05, 0.05, 0.055) if self.rng.random() < 0.6 else (0.30, 0.30, 0.30)
            self.slab((0.14, 0.23, 0.0, high), out, PAINT, tone)
            for z in np.arange(1.0, high, 2.1):
                self.slab((0.11, 0.26, z, z + 0.05), out + 0.004, PAINT, tone)

    def _surround_door(self, piece: Piece) -> None:
        a, b, high, out = piece.left, piece.right, piece.high, self.relief.surround
        for left, right in ((a - 0.16, a), (b, b + 0.16)):
            self.slab((left, right, piece.low, high + 0.02), out, TRIM, TRIM_TINT)
        self.slab((a - 0.2, b + 0.2, high, high + 0.2), 1.6 * out, TRIM, TRIM_TINT)

    def glass(self, piece: Piece) -> None:
        """Add a pane of a curtain wall between posts."""
        out = -0.4 * self.relief.pane
        uv = room_uv(int(self.rng.random() * ROOMS), bool(self.rng.random() < _LIT), bool(self.rng.random() < 0.5))
        self.face((piece.left, piece.right, piece.low, piece.high), out, ROOM, (0.75, 0.85, 0.88), uv)
        self._posts(piece, out)

    def panel(self, piece: Piece) -> None:
        """Add a dark panel of a curtain wall, at the height of a floor."""
        out = -0.4 * self.relief.pane
        self.face(
            (piece.left, piece.right, piece.low, piece.high),
            out,
            GLASS,
            0.35 * np.array(self.tint) * np.array([0.25, 0.32, 0.36]),
        )
        self._posts(piece, out)

    def _posts(self, piece: Piece, out: float) -> None:
        post, proud = 0.03, 0.5 * self.relief.sill
        for s in (piece.left, piece.right):
            self.slab((s - post, s + post, piece.low, piece.high), proud, PAINT, self.frame, out)
        self.slab((piece.left, piece.right, piece.high - 0.04, piece.high), 0.6 * proud, PAINT, self.frame, out)

    def cornice(self, piece: Piece) -> None:
        """Add what ends a façade: two steps of trim, blocks under them."""
        relief, span = self.relief, (piece.left, piece.right, piece.low, piece.high)
        self.wall(
            piece,
            TRIM if self.style.surround > 0.0 or self.style.lintel > 0.0 else WALL,
            0.0,
            None if self.style.surround == 0.0 and self.style.lintel == 0.0 else TRIM_TINT,
        )
        a, b, low, high = span
        level = low + 0.55 * piece.height
        if self.style.pitched > 0.0 or self.style.name == "grand":
            self.slab((a, b, low + 0.25 * piece.height, level), 0.35 * relief.cornice, TRIM, TRIM_TINT)
            self.slab((a, b, level, high), relief.cornice, TRIM, TRIM_TINT)
            if relief.cornice > 0.2 and self.style.surround > 0.0:
                for s in np.arange(a + 0.2, b - 0.2, 0.45):
                    self.slab((s, s + 0.14, level - 0.16, level), 0.8 * relief.cornice, TRIM, TRIM_TINT)
        else:
            self.slab((a, b, high - 0.12, high), 0.25 * relief.cornice, TRIM, TRIM_TINT)

    def band(self, piece: Piece) -> None:
        """Add the band over a ground floor."""
        self.wall(piece, TRIM, 0.0, TRIM_TINT)
        self.slab((piece.left, piece.right, piece.high - 0.6 * piece.height, piece.high), self.relief.band, TRIM, TRIM_TINT)

    def plinth(self, piece: Piece) -> None:
        """Add the foot of a wall."""
        dark = 0.72 * np.array(self.tint)
        self.wall(
            Piece("", piece.left, piece.right, piece.low, piece.high), BASE, 0.6 * self.relief.band, (dark[0], dark[1], dark[2])
        )
        p, out = self.point, 0.6 * self.relief.band
        a, b, z = piece.left, piece.right, piece.high
        self.patches.quad([p(a, z, out), p(b, z, out), p(b, z, 0.0), p(a, z, 0.0)], BASE, dark)

    def blank(self, piece: Piece) -> None:
        """Add a wall without openings, with a pipe down its side."""
        self.wall(piece)
        if piece.width > 3.0 and self.rng.random() < 0.8:
            at = piece.left + 0.35
            self.slab((at, at + 0.1, piece.low, piece.high), min(self.relief.sill, 0.09), PAINT, (0.16, 0.16, 0.16))


def _splashed(z: float) -> float:
    """Return the share of a wall's colour that splashes and soot leave at a height [m]."""
    return float(0.74 + 0.26 * min(max(z, 0.0) / 1.1, 1.0))


def _muted_dark(rng: np.random.Generator) -> Rgb:
    """Return a dark colour of a shop's woodwork."""
    tone = 0.03 + 0.20 * rng.random(3) ** 2
    # Paints of shops are rarely pure: half way to their grey.
    r, g, b = (0.45 * tone + 0.55 * tone.mean()).tolist()
    return (r, g, b)


_BUILDERS: dict[str, Callable[[Facade, Piece], None]] = {
    "wall": lambda side, piece: side.wall(piece),
    "base": lambda side, piece: side.wall(piece, BASE),
    "blank": Facade.blank,
    "plinth": Facade.plinth,
    "band": Facade.band,
    "cornice": Facade.cornice,
    "window": Facade.window,
    "balcony door": Facade.balcony_door,
    "door": Facade.entrance,
    "glass": Facade.glass,
    "panel": Facade.panel,
    "shop window": shop_window,
    "shop door": shop_door,
    "stall riser": painted_slab,
    "pier": painted_slab,
    "board": name_board,
}
"""How each piece is built."""
