"""Parameters of PGO, with the values of its public configuration."""

from __future__ import annotations

from dataclasses import dataclass, field

from airworthy.pilots.fast.timed import TimedSettings
from airworthy.pilots.planning.interface import MapSettings

__all__ = ["PgoSettings", "RoadmapSettings"]


@dataclass(frozen=True)
class RoadmapSettings:
    """Of the topological roadmap."""

    samples: int = 2000
    beyond: float = 1.0
    """How far the box of samples reaches beyond the ends [m]."""
    sideways: float = 3.5
    """Its half width [m]."""
    upright: float = 1.0
    """Its half height, across the line between the ends [m]."""
    clearance: float = 0.3
    """Of samples from everything [m]."""
    most_raw: int = 300
    """Paths enumerated."""
    most_paths: int = 25
    """Of which those of the fewest nodes are looked at."""
    reserve: int = 6
    """Of which the shortest are optimised."""
    ratio: float = 5.5
    """Longest over shortest path."""
    effort: int = 200_000
    """Steps of the enumeration: with many dead ends it could go on for very long."""


@dataclass(frozen=True)
class PgoSettings(TimedSettings):
    """Of the whole planner. The public configuration switches the limits term off (`feasible`, its lambda3)."""

    maps: MapSettings = field(
        default_factory=lambda: MapSettings(
            margin=50, ground=-1.0, border=2, skip=3, depth_max=4.5, ray_min=0.5, field=True, field_margin=0.5
        )
    )
    spacing: float = 0.3
    yaw_points: float = 20.0
    roadmap: RoadmapSettings = field(default_factory=RoadmapSettings)
    local_length: float = 7.0
    """How far the local segment reaches [m]."""
    guide: float = 1.5
    """Weight of the distance from the guiding path."""
    slower: float = 1.01
    """The refinement stretches time by at most so much."""
    replan_after: float = 0.5
    """Age of a plan before the next [s]."""
    replan_distance: float = 0.5
    """With the goal in the plan, it is replaced only where its end is farther than this [m]."""
    safety_stop: float = 0.5
    """What is met nearer than this stops the vehicle [m]."""
    resume: bool = False
    """After a stop, or at the end of a plan, set out for the goal again. The published planner drops its goal."""
    failed_pause: float = 0.02
    """Between attempts that found no path [s]: about what one takes on one core."""
