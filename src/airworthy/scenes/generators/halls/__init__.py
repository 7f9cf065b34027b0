"""Halls: furnished rooms to fly in, and the race hall."""

from airworthy.scenes.generators.halls.alphapilot import alphapilot
from airworthy.scenes.generators.halls.layouts import backroom, flightroom, mid_gate

HALLS = {"mid_gate": mid_gate, "flightroom": flightroom, "backroom": backroom, "alphapilot": alphapilot}
"""Name -> generator from (index, seed)."""

__all__ = ["HALLS", "alphapilot", "backroom", "flightroom", "mid_gate"]
