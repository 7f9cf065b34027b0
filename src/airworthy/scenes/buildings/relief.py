"""What façades have in common: the materials of their faces, and how far their parts stand out or back."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEEP", "FLAT", "SLOTS", "FacadeRelief"]

Rgb = tuple[float, float, float]
SLOTS = ("wall", "base", "trim", "rooms", "shops", "words", "painted", "roof", "window glass", "lamp glass")
"""Materials of a building's faces, in the order of their numbers; the first three and the roof are the house's own."""
WALL, BASE, TRIM, ROOM, SHOP, WORD, PAINT, ROOF, GLASS, LAMP = range(len(SLOTS))
TRIM_TINT: Rgb = (0.96, 0.95, 0.92)
IRON: Rgb = (0.025, 0.027, 0.03)
WHITE: Rgb = (1.0, 1.0, 1.0)


@dataclass(frozen=True)
class FacadeRelief:
    """How far parts of a façade stand out of its wall, or back [m]."""

    pane: float
    """Panes lie this far behind the wall."""
    frame: float
    """Frames stand this far before the pane."""
    sill: float
    band: float
    cornice: float
    surround: float
    board: float
    balcony: float
    """Depth of balconies; below 0.2 they are rails before a door."""
    shutter: float


FLAT = FacadeRelief(0.052, 0.022, 0.026, 0.016, 0.026, 0.012, 0.026, 0.026, 0.022)
"""For what may lie no farther than 5 cm from a box."""
DEEP = FacadeRelief(0.17, 0.05, 0.09, 0.07, 0.36, 0.045, 0.14, 0.95, 0.05)
