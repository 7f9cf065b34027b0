"""Stated numbers of the seven scenarios of FLYINGTRUST (arXiv 2510.26588); where the paper is silent, the project's choice.

[P] marks what the paper states. World: x along the line from start to goal, y left, z up; the origin is the centre of the
floor.
"""

from __future__ import annotations

from dataclasses import dataclass

Range = tuple[float, float]

CONFIGURATIONS = 10
"""Per scenario [P]."""
GOAL_RADIUS = 2.0
"""[m] [P]"""
COLLISION_RADIUS = 0.3
"""Of every vehicle, and the clearance with which a way must exist [m]."""
MARGIN = 2.0
"""Start and goal lie this far inside the short edges, on the centre line [m]."""
CLEAR_RADIUS = 2.0
"""Of the upright cylinders around start and goal that are kept clear [m]."""
RESOLUTION = 0.1
"""Of the grid on which a way is proved to exist [m]."""
WALL_THICKNESS = 0.3
"""Of the outer walls [m]."""


@dataclass(frozen=True)
class Scenario:
    """What all configurations of a scenario share."""

    length: float
    """Along x [m] [P]."""
    width: float
    """Along y [m] [P]."""
    ceiling: float
    """[m] [P]"""
    altitude: float
    """Of start and goal [m]."""
    height: float
    """Of the outer walls [m]."""
    search: float
    """Cell of the grid on which difficulty is measured [m]."""
    free: tuple[int, int]
    """Fewest and most of the ten configurations in which the straight line is free."""
    corridor: float = float("inf")
    """Difficulty is measured on ways that stay this near to the line, sideways [m]."""


SCENARIOS: dict[str, Scenario] = {
    "forest": Scenario(60.0, 40.0, 3.0, 1.0, 3.5, 0.2, (1, 2)),
    "urban": Scenario(60.0, 60.0, 10.0, 1.5, 10.5, 0.3, (1, 2)),
    "random_cylinder": Scenario(60.0, 40.0, 3.0, 1.0, 3.5, 0.2, (0, 0)),
    "narrow_gap": Scenario(50.0, 50.0, 4.0, 1.0, 4.5, 0.2, (1, 1)),
    "sudden_drop": Scenario(50.0, 50.0, 4.0, 2.5, 14.0, 0.2, (0, 0)),
    "maze": Scenario(40.0, 25.0, 2.0, 1.0, 2.5, 0.2, (0, 0)),
    "perlin": Scenario(50.0, 40.0, 4.0, 1.5, 4.0, 0.2, (0, 0), 6.0),
}
SCENARIOS["sudden_drop_plus"] = SCENARIOS["sudden_drop"]

TREE_COUNT = 49
"""Density 1/49 per square metre [P] on 60 m x 40 m."""
TRUNK_RADIUS: Range = (0.3, 0.6)
TRUNK_HEIGHT: Range = (3.5, 8.0)
TRUNK_SPACING = 2.0
"""Least distance of two trunks' centres [m]."""

URBAN_COUNT = (18, 45)
"""Objects of the first and the last configuration; in between linear."""
BLOCK: Range = (12.0, 18.0)
STREET: Range = (4.0, 8.0)
FOOTPRINT: Range = (4.0, 12.0)
BUILDING_HEIGHT: Range = (4.0, 20.0)
COVERAGE: Range = (0.20, 0.35)
"""Share of the area under buildings."""
STREET_WALL = (0.3, (2.0, 8.0), (2.0, 4.0))
"""Thickness, length, height [m]."""
POLE_RADIUS: Range = (0.1, 0.2)
POLE_HEIGHT: Range = (5.0, 9.0)
PARKED = (1.8, 4.0, 1.6)
"""Width, length, height [m]."""

CYLINDER_COUNT = 67
"""Density 1/36 per square metre [P] on 60 m x 40 m."""
CYLINDER_RADIUS: Range = (0.25, 0.5)
"""[m] [P]"""
CYLINDER_TILT: Range = (0.0, 180.0)
"""[deg] [P]"""
CYLINDER_LENGTH: Range = (4.0, 8.0)
CYLINDER_CENTRE: Range = (0.0, 3.0)
"""Height of the centre [m]."""

GAP_WIDTH: Range = (0.85, 0.90)
"""[m] [P]"""
GAP_OFFSET = 8.0
"""Largest sideways distance of a slit's centre from the line [m]."""
GAP_SHIFT = 3.0
"""Least sideways distance of two successive slits' centres [m]."""
GAP_WALL = 0.3
"""Thickness [m]."""
GAP_WALL_HEIGHT = 4.5
GAP_ROOM = 4.0
"""Least free distance between two walls [m]."""

SLAB_BOTTOM = 1.5
"""Lowest point of what hangs [m] [P]."""
SLAB_TOP = 14.0
"""[m] [P]"""
SLAB_THICKNESS: Range = (0.5, 2.0)
LOW_WALL: Range = (1.0, 1.6)
"""Height of the walls between slabs of `sudden_drop_plus` [m]."""

MAZE_CELL = 2.5
MAZE_CELLS = (16, 10)
MAZE_WALL = (0.2, 2.5)
"""Thickness and height [m]."""
MAZE_BRAID: Range = (0.3, 0.0)
"""Share of dead ends opened, of the first and the last configuration."""

NOISE_FREQUENCY = 0.05
"""[P]; the noise is sampled at twice this times the voxel's index."""
NOISE_FILL = 0.03
"""Share of voxels occupied [P]."""
VOXEL = 0.1
"""Edge of a voxel [m]."""
