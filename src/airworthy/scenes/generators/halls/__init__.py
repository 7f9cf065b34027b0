"""Halls: furnished rooms to fly in, of meshes and of splats, and the race hall."""

from airworthy.scenes.generators.halls.alphapilot import alphapilot
from airworthy.scenes.generators.halls.layouts import backroom, flightroom, mid_gate
from airworthy.scenes.generators.halls.splat_hall import hall, hall_statues, hall_with_statues

HALLS = {"mid_gate": mid_gate, "flightroom": flightroom, "backroom": backroom, "alphapilot": alphapilot}
"""Name -> generator from (index, seed)."""
SPLAT_HALLS = {"hall": hall, "hall_statues": hall_statues}
"""Name -> place of splats; each is one configuration."""

__all__ = [
    "HALLS",
    "SPLAT_HALLS",
    "alphapilot",
    "backroom",
    "flightroom",
    "hall",
    "hall_statues",
    "hall_with_statues",
    "mid_gate",
]
