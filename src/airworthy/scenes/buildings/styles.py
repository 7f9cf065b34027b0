"""Styles of buildings: a table of numbers each, and the grammar that follows from them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from typing import Any

import numpy as np

from airworthy.core.errors import unknown_name
from airworthy.core.files import packaged_toml
from airworthy.scenes.buildings.grammar import FacadeSplit, Part, Rules, fixed, repeated, share

__all__ = ["BuildingStyle", "building_style", "building_styles", "facade_rules"]

Rgb = tuple[float, float, float]
_MARGIN = 0.45
"""Of wall at both ends of a façade [m]."""
_STOREYS_LEAST = 2.3
"""Height that is left for upper floors below which there is a ground floor alone [m]."""


@dataclass(frozen=True)
class BuildingStyle:
    """What buildings of a style have in common. Lengths in metres, shares are chances."""

    name: str
    summary: str
    wall: tuple[str, ...]
    """Surfaces among which a house's is drawn."""
    base: str
    trim: str
    roof: str
    pitched: float
    """Share of roofs that are pitched where there is room."""
    tints: tuple[Rgb, ...]
    frames: tuple[Rgb, ...]
    """Colours of window frames."""
    ground: float
    """Height of the ground floor."""
    floor: float
    bay: float
    window: tuple[float, float]
    """Width and height."""
    sill: float
    """Of windows over their floor."""
    cornice: float
    surround: float
    """Width of what frames a window; 0: nothing."""
    lintel: float
    """Height of the stone over a window; 0: none."""
    panes: tuple[int, int]
    """Into which bars divide a window, across and up."""
    shop: float
    balcony: float
    shutters: float


@cache
def _table() -> dict[str, BuildingStyle]:
    return {name: _style(name, row) for name, row in packaged_toml("airworthy.scenes.buildings", "styles.toml").items()}


def _style(name: str, row: dict[str, Any]) -> BuildingStyle:
    def held(value: Any) -> Any:
        return tuple(held(one) for one in value) if isinstance(value, list) else value

    return BuildingStyle(name, **{item.name: held(row[item.name]) for item in fields(BuildingStyle) if item.name != "name"})


def building_styles() -> list[str]:
    """Return the names of all styles."""
    return list(_table())


def building_style(name: str) -> BuildingStyle:
    """Return a style.

    Raises:
        UnknownNameError: There is none of this name.
    """
    if name not in _table():
        raise unknown_name("style of building", name, _table())
    return _table()[name]


def facade_rules(style: BuildingStyle, width: float, height: float, ground: str, balconies: bool = False) -> Rules:
    """Return the grammar of one façade, beginning with "facade".

    Args:
        style: Of the building.
        width: Of the façade [m].
        height: Up to and with its cornice [m].
        ground: What stands on the ground: "shop", "door", "windows", or "blank", a wall without openings all the way up.
        balconies: Whether every second window of the upper floors is a door to a balcony.
    """
    rules: dict[str, FacadeSplit] = {}
    if ground == "blank":
        body: tuple[Part, ...] = (share("blank", 1.0),)
    else:
        has_floors = height - style.ground - style.cornice >= _STOREYS_LEAST
        first = style.ground if has_floors else max(height - style.cornice, 0.5)
        body = (fixed("ground", first), repeated("floor", style.floor)) if has_floors else (share("ground", 1.0),)
    rules["facade"] = FacadeSplit("up", (*body, fixed("cornice", style.cornice)))
    _ground_rules(rules, style, width, ground)
    if style.name == "curtain":
        rules["floor"] = FacadeSplit(
            "up", (share("spandrel", style.floor - style.window[1]), share("glazing", style.window[1]))
        )
        rules["spandrel"] = FacadeSplit("across", (repeated("panel", style.bay),))
        rules["glazing"] = FacadeSplit("across", (repeated("glass", style.bay),))
        return rules
    rules["floor"] = FacadeSplit("across", (fixed("wall", _MARGIN), repeated("bay", style.bay), fixed("wall", _MARGIN)))
    _bay_rules(rules, style, "bay", "row", "window", style.floor)
    if balconies:
        rules["floor"] = FacadeSplit(
            "across",
            (fixed("wall", _MARGIN), repeated("bay", style.bay), repeated("french", style.bay), fixed("wall", _MARGIN)),
        )
        high = min(style.sill + style.window[1], style.floor - 0.45)
        rules["french"] = FacadeSplit(
            "up", (share("sill wall", 0.06), share("french row", high), share("wall", max(style.floor - high - 0.06, 0.2)))
        )
        rules["sill wall"] = FacadeSplit("up", (share("wall", 1.0),))
        rules["french row"] = _between(style.window[0], style.bay, "balcony door")
    return rules


def _bay_rules(rules: dict[str, FacadeSplit], style: BuildingStyle, bay: str, row: str, opening: str, floor: float) -> None:
    """Cut a bay into the wall below, beside and over an opening."""
    top = max(floor - style.sill - style.window[1], 0.18)
    rules[bay] = FacadeSplit("up", (share("wall", style.sill), share(row, style.window[1]), share("wall", top)))
    rules[row] = _between(style.window[0], style.bay, opening)


def _between(opening: float, bay: float, symbol: str) -> FacadeSplit:
    side = max(0.5 * (bay - opening), 0.12)
    return FacadeSplit("across", (share("wall", side), share(symbol, opening), share("wall", side)))


def _ground_rules(rules: dict[str, FacadeSplit], style: BuildingStyle, width: float, ground: str) -> None:
    """Cut the ground floor: a plinth and windows, a door among them, or shops under a board."""
    if ground == "shop" and width > 4.5:
        rules["ground"] = FacadeSplit("up", (share("front", style.ground - 0.95), fixed("board", 0.62), fixed("band", 0.33)))
        door = fixed("shop door", 1.25)
        pier = fixed("pier", 0.38)
        rules["front"] = FacadeSplit("across", (pier, repeated("shop", 2.5), door, repeated("shop", 2.5), pier))
        rules["shop"] = FacadeSplit("up", (fixed("stall riser", 0.45), share("shop window", 1.0)))
        return
    rules["ground"] = FacadeSplit("up", (fixed("plinth", 0.55), share("ground row", 1.0), fixed("band", 0.3)))
    bays = repeated("low bay", style.bay)
    margin = fixed("base", _MARGIN)
    doors = (repeated("low bay", style.bay), fixed("entrance", 1.7), repeated("low bay", style.bay))
    rules["ground row"] = FacadeSplit("across", (margin, *(doors if ground == "door" else (bays,)), margin))
    high = style.ground - 0.85
    sill = 0.5
    window = min(style.window[1], high - sill - 0.35)
    rules["low bay"] = FacadeSplit(
        "up", (share("base", sill), share("low row", window), share("base", max(high - sill - window, 0.2)))
    )
    wide = style.window[0]
    side = max(0.5 * (style.bay - wide), 0.12)
    rules["low row"] = FacadeSplit("across", (share("base", side), share("window", wide), share("base", side)))
    rules["entrance"] = FacadeSplit("across", (fixed("base", 0.25), share("door bay", 1.0), fixed("base", 0.25)))
    rules["door bay"] = FacadeSplit("up", (share("door", 2.35), share("base", max(high - 2.35, 0.15))))


def drawn_style(rng: np.random.Generator, height: float) -> BuildingStyle:
    """Return a style by chance: no glass and no slabs on what is low."""
    names = (
        ["terrace", "stucco", "grand", "terrace", "stucco"]
        if height < 7.5
        else ["terrace", "stucco", "grand", "slab", "curtain", "stucco", "terrace"]
    )
    return building_style(names[int(rng.random() * len(names))])
