"""A split grammar: a façade becomes floors, floors become bays, bays become walls, windows and doors.

After Müller and others, Procedural modeling of buildings (2006): a rule cuts a rectangle along one axis into parts of fixed
size, of shares of what is left, or repeated as often as fits. What no rule names is a piece to be built. Neighbours share their
edges to the bit, so that pieces cover the façade without gap or overlap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from airworthy.core.errors import AirworthyError

__all__ = ["FacadeSplit", "Part", "Piece", "Rules", "derived", "divided", "fixed", "repeated", "share"]

DEPTH_MAX = 32
"""Rules within rules beyond which a grammar is taken for one that does not end."""


@dataclass(frozen=True)
class Part:
    """One part of a cut."""

    symbol: str
    size: float
    """fixed: length [m]; share: weight among the shares; repeat: wanted length of one [m]."""
    kind: Literal["fixed", "share", "repeat"] = "share"


def fixed(symbol: str, size: float) -> Part:
    """Return a part of so many metres."""
    return Part(symbol, size, "fixed")


def share(symbol: str, size: float) -> Part:
    """Return a part that takes its share of what fixed ones leave."""
    return Part(symbol, size, "share")


def repeated(symbol: str, size: float) -> Part:
    """Return a part that is repeated as often as suits its wanted length [m]; neighbours that repeat take turns."""
    return Part(symbol, size, "repeat")


@dataclass(frozen=True)
class FacadeSplit:
    """A rule's right side: along which axis a rectangle is cut, and into what, from the left or from below."""

    axis: Literal["across", "up"]
    parts: tuple[Part, ...]


Rules = Mapping[str, FacadeSplit]
"""Symbol -> how it is cut."""


@dataclass(frozen=True)
class Piece:
    """A rectangle of a façade."""

    symbol: str
    left: float
    right: float
    """Along the façade, seen from outside from left to right [m]."""
    low: float
    high: float
    """Above its foot [m]."""

    @property
    def width(self) -> float:
        """Along the façade [m]."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """[m]"""
        return self.high - self.low


def divided(start: float, end: float, parts: Sequence[Part]) -> list[tuple[str, float, float]]:
    """Return symbols with where they begin and end; the last ends at `end` to the bit.

    Fixed parts that do not fit shrink by one factor, and what would fill the rest has no length and is left out.

    Args:
        start: [m]
        end: [m]
        parts: At least one that is a share or repeated, unless the fixed ones are to be stretched.

    Raises:
        AirworthyError: A size is not above 0, or both shares and repeats are asked for.
    """
    kinds = {part.kind for part in parts}
    if not parts or any(not part.size > 0.0 for part in parts) or {"share", "repeat"} <= kinds:
        raise AirworthyError(
            f"A façade cannot be cut into {[(p.symbol, p.size, p.kind) for p in parts]}; expected sizes above 0, and shares or"
            " repeats but not both."
        )
    length = end - start
    stiff = sum(part.size for part in parts if part.kind == "fixed")
    loose = sum(part.size for part in parts if part.kind != "fixed")
    rest = max(length - stiff, 0.0)
    # Without anything loose the fixed parts fill the length; where they do not fit they shrink.
    factor = length / stiff if stiff > length or (loose == 0.0 and stiff > 0.0) else 1.0
    times = max(round(rest / loose), 1) if "repeat" in kinds else 1
    lengths: list[tuple[str, float]] = []
    for kind, run in groupby(parts, key=lambda part: part.kind):
        if kind == "fixed":
            lengths += [(part.symbol, part.size * factor) for part in run]
        elif rest > 0.0:
            count = times if kind == "repeat" else 1
            lengths += [(part.symbol, rest * part.size / loose / count) for part in run] * count
    found, at = [], start
    for k, (symbol, size) in enumerate(lengths):
        upto = end if k == len(lengths) - 1 else at + size
        if upto > at:
            found.append((symbol, at, upto))
            at = upto
    return found


def derived(rules: Rules, whole: Piece) -> list[Piece]:
    """Return the pieces of a façade, from below and from the left, none of which a rule names.

    Args:
        rules: The grammar.
        whole: The façade, its symbol the one to begin with.

    Raises:
        AirworthyError: A rule leads back to itself without end, or cuts what cannot be cut.
    """
    found: list[Piece] = []
    todo = [(whole, 0)]
    while todo:
        piece, depth = todo.pop()
        rule = rules.get(piece.symbol)
        if rule is None:
            found.append(piece)
            continue
        if depth >= DEPTH_MAX:
            raise AirworthyError(f"The rule {piece.symbol!r} leads back to itself; a grammar has to end.")
        if rule.axis == "across":
            cut = [Piece(s, a, b, piece.low, piece.high) for s, a, b in divided(piece.left, piece.right, rule.parts)]
        else:
            cut = [Piece(s, piece.left, piece.right, a, b) for s, a, b in divided(piece.low, piece.high, rule.parts)]
        todo += [(part, depth + 1) for part in reversed(cut)]
    return found
