"""Fronts of shops: windows with goods, doors, awnings, boards with words and the lamps that light them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from airworthy.scenes.buildings.grammar import Piece
from airworthy.scenes.buildings.panes import shop_uv, word_uv
from airworthy.scenes.buildings.relief import LAMP, PAINT, SHOP, WHITE, WORD

if TYPE_CHECKING:  # it is what calls these
    from airworthy.scenes.buildings.facade import Facade

__all__ = ["name_board", "painted_slab", "shop_door", "shop_window"]


def shop_window(side: Facade, piece: Piece) -> None:
    """Add a shop's window, an awning over it where it has one."""
    relief = side.relief
    side.recess(piece, relief.pane, PAINT, side.board)
    span = (piece.left, piece.right, piece.low, piece.high)
    side.shop += 1
    side.face(span, -relief.pane, SHOP, (1.0, 1.0, 1.0), shop_uv(side.shop, bool(side.rng.random() < 0.75)))
    keep, side.frame = side.frame, side.board
    side.bars(span, -relief.pane + relief.frame, 2 if piece.width > 2.6 else 1, 1, 0.08)
    side.frame = keep
    if side.awning is not None and relief.balcony > 0.2:
        _awning(side, piece)


def _awning(side: Facade, piece: Piece) -> None:
    out, drop, stripes = 1.15, 0.55, max(round(piece.width / 0.32), 2)
    edges = np.linspace(piece.left - 0.05, piece.right + 0.05, stripes + 1)
    high = piece.high + 0.02
    p = side.point
    for k in range(stripes):
        color = np.array(side.awning if k % 2 == 0 else (0.62, 0.60, 0.55))
        a, b = edges[k], edges[k + 1]
        rim = high - drop
        side.patches.quad([p(a, rim, out), p(b, rim, out), p(b, high, 0.02), p(a, high, 0.02)], PAINT, color)
        side.patches.quad([p(a, rim - 0.16, out), p(b, rim - 0.16, out), p(b, rim, out), p(a, rim, out)], PAINT, 0.9 * color)


def shop_door(side: Facade, piece: Piece) -> None:
    """Add a glazed door, a light over it."""
    relief = side.relief
    side.recess(piece, relief.pane, PAINT, side.board)
    a, b, low, high = piece.left, piece.right, piece.low, piece.high
    over = min(low + 2.2, high - 0.3)
    uv = shop_uv(side.shop, True, 0.36, 0.64)
    side.face((a, b, low, over), -relief.pane, SHOP, (1.0, 1.0, 1.0), uv)
    side.face(
        (a, b, over, high),
        -relief.pane,
        SHOP,
        (1.0, 1.0, 1.0),
        shop_uv(side.shop, True, 0.36, 0.64) * [1.0, 0.0] + [[0.0, uv[2, 1] + 0.02]],
    )
    keep, side.frame = side.frame, side.board
    side.bars((a, b, low, over), -relief.pane + relief.frame, 1, 1, 0.11)
    side.bars((a, b, over, high), -relief.pane + relief.frame, 1, 1, 0.06)
    side.frame = keep
    side.face((b - 0.15, b - 0.12, low + 0.9, low + 1.3), -relief.pane + relief.frame + 0.01, PAINT, (0.5, 0.5, 0.48))


def name_board(side: Facade, piece: Piece) -> None:
    """Add the board over a shop, with its word once."""
    span = (piece.left, piece.right, piece.low, piece.high)
    out = side.relief.board
    side.slab(span, out, PAINT, side.board)
    high = min(0.82 * piece.height, piece.width / 8.4)
    _board_lamp(side, piece, out)
    middle, level = 0.5 * (piece.left + piece.right), 0.5 * (piece.low + piece.high)
    side.face(
        (middle - 4.0 * high, middle + 4.0 * high, level - 0.5 * high, level + 0.5 * high),
        out + 0.004,
        WORD,
        (1.0, 1.0, 1.0),
        word_uv(side.word),
    )


def painted_slab(side: Facade, piece: Piece) -> None:
    """Add a wooden panel under a shop's window, or beside it."""
    span = (piece.left, piece.right, piece.low, piece.high)
    side.slab(span, 0.4 * side.relief.band, PAINT, side.board)
    a, b, low, high = span
    if b - a > 0.5 and high - low > 0.3:
        side.face((a + 0.1, b - 0.1, low + 0.1, high - 0.08), 0.4 * side.relief.band + 0.003, PAINT, 0.7 * np.array(side.board))


def _board_lamp(side: Facade, piece: Piece, out: float) -> None:
    """Light a board and the pavement before it by a strip under it."""
    middle, half = 0.5 * (piece.left + piece.right), 0.3 * piece.width
    side.face((middle - half, middle + half, piece.low + 0.015, piece.low + 0.05), out + 0.006, LAMP, WHITE)
    side.lamps.append(side.point(middle, piece.low, out + 0.06))
