"""One line on every generator, for lists: a scene itself is only made when it is asked for."""

from __future__ import annotations

import inspect
from typing import Any

from airworthy.scenes.catalogue import scene_generators

__all__ = ["description"]

_LINES: dict[str, str] = {
    "forest": "49 trees; 1 to 10, harder to get through",
    "urban": "buildings and street furniture; 1 to 10",
    "random_cylinder": "cylinders leaning every way; 1 to 10",
    "narrow_gap": "walls with one slit each; 1 to 10",
    "sudden_drop": "hanging slabs to dive under; 1 to 10",
    "sudden_drop_plus": "the same, with low walls between; 1 to 10",
    "maze": "a maze with loops; 1 to 10",
    "perlin": "thresholded noise in three dimensions; 1 to 10",
    "mid_gate": "furnished flight hall: gate, ladder, monitor (course robustness)",
    "flightroom": "furnished flight hall: pillars, gate, ladder (course extended)",
    "backroom": "cluttered workshop around a row of benches (course cluttered)",
    "hall": "the same hall as mid_gate, photoreal: Gaussian splats (course robustness)",
    "hall_statues": "hall, with captured statues and a sign as a gate (needs AIRWORTHY_DATA)",
    "alphapilot": "race hall with the eleven gates of the AlphaPilot qualifier",
    "empty_room": "a floor, nothing else",
    "obstacle_room": "panels, walls and objects between start and goal",
    "thin_room": "thin rods and wires",
    "gym_forest": "a tree and objects on a plain",
    "lidar_room": "a walled room full of panels and objects",
    "dynamic_room": "objects that move",
    "empty_env": "as empty_room, by its published name",
    "env_with_obstacles": "as obstacle_room, by its published name",
    "forest_env": "as gym_forest, by its published name",
    "env_with_lidar_nav_obstacles": "as lidar_room, by its published name",
    "dynamic_environment": "as dynamic_room, by its published name",
}


def description(name: str) -> str:
    """One line on a generator; of one that was registered, the first line of its docstring.

    Raises:
        KeyError: There is no such generator.
    """
    make: Any = scene_generators()[name]
    if name in _LINES:
        return _LINES[name]
    while hasattr(make, "func"):  # a partial's own docstring is that of partial
        make = make.func
    return (inspect.getdoc(make) or "no description").split("\n")[0].rstrip(".")
