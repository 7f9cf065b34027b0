"""Kinds of trees: what `kinds.toml` says of each, checked."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, get_args

from airworthy.core.errors import unknown_name
from airworthy.scenes.record import Color

__all__ = ["SEASONS", "LeafForm", "Season", "StemLevel", "TreeKind", "tree_kind", "tree_kinds"]

CrownShape = Literal["conical", "spherical", "hemispherical", "cylindrical", "flame", "tend_flame"]
"""How long branches are by their height in the crown, after Weber and Penn 1995, table of ShapeRatio."""
Season = Literal["spring", "summer", "autumn", "winter"]
SEASONS: tuple[Season, ...] = get_args(Season)


@dataclass(frozen=True)
class StemLevel:
    """Branches of one order: on the trunk, on those, and so on."""

    count: int
    """On the longest bearer; shorter ones have fewer."""
    length: float
    """Over that of the bearer."""
    angle: float
    """To the bearer at the lowest place [deg]."""
    angle_top: float
    """To the bearer at its tip [deg]."""
    rise: float
    """How far the stem turns upwards over its length, as a share of its direction; below 0 it hangs."""
    crook: float
    """Share of chance in the direction."""
    first: float
    """Where on the bearer they begin."""


@dataclass(frozen=True)
class LeafForm:
    """A leaf, or a tuft of needles: a kite folded along its rib."""

    length: float
    """[m]"""
    width: float
    """[m]"""
    count: int
    """On a grown tree at full detail."""
    angle: float
    """To the twig [deg]."""


@dataclass(frozen=True)
class TreeKind:
    """A kind of tree as `kinds.toml` has it."""

    name: str
    summary: str
    height: float
    """Of a grown tree [m]."""
    spread: float
    """Width of its crown [m]."""
    girth: float
    """Radius of the trunk at its foot over the height."""
    trunk: float
    """Length of the trunk over the height: less than 1 where boughs take over."""
    crown: CrownShape
    bare: float
    """Share of the height below the crown."""
    bark: str
    """Recipe of the library of materials."""
    crook: float
    """Share of chance in the direction of the trunk."""
    stems: tuple[StemLevel, ...]
    leaf: LeafForm
    spring: Color
    """Linear reflectance of leaves."""
    summer: Color
    autumn: Color
    evergreen: bool = False
    taper: float = 0.9
    """What the trunk loses of its radius up to its tip."""

    def leaf_color(self, season: Season) -> Color | None:
        """Return the reflectance of its leaves; None where it is bare."""
        if season == "winter":
            return self.autumn if self.evergreen else None
        found: Color = getattr(self, season)
        return found


@cache
def tree_kinds() -> dict[str, TreeKind]:
    """Return every kind by its name."""
    table = tomllib.loads(files("airworthy.scenes.vegetation").joinpath("kinds.toml").read_text())
    return {name: _kind(name, body) for name, body in table.items()}


def _kind(name: str, body: dict[str, Any]) -> TreeKind:
    colors = {season: tuple(body[season]) for season in ("spring", "summer", "autumn")}
    stems = tuple(StemLevel(int(row[0]), *row[1:]) for row in body["stems"])
    return TreeKind(name, **{**body, **colors, "stems": stems, "leaf": LeafForm(**body["leaf"])})


def tree_kind(name: str) -> TreeKind:
    """Return a kind by its name.

    Raises:
        UnknownNameError: There is none; the message names the closest.
    """
    if name not in tree_kinds():
        raise unknown_name("kind of tree", name, tree_kinds(), "`airworthy scenes vegetation` draws all of them.")
    return tree_kinds()[name]
