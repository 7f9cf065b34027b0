"""Parameters of Fast-Planner, with the values of its public configuration."""

from __future__ import annotations

from dataclasses import dataclass, field

from airworthy.core.schema import check_fields
from airworthy.planners.common.interface import MapSettings
from airworthy.planners.fast.timed import TimedSettings

__all__ = ["FastSettings", "KinoSettings"]


@dataclass(frozen=True)
class KinoSettings:
    """Of the kinodynamic search."""

    step_time: float = 0.6
    """How long an acceleration is held [s]."""
    first_time: float = 0.8
    """Longest time for which the present acceleration is held on at the start [s]."""
    weight: float = 10.0
    """Cost of a second, beside the integral of squared acceleration."""
    horizon: float = 7.0
    """A state so far from the start ends the search [m]."""
    greed: float = 5.0 * 2.0001
    """Factor on the heuristic; far above 1: the first way to the horizon is taken, not the best. Source: lambda_heu 5 times
    (1 + 1.0001), its tie breaker."""
    checks: int = 5
    """Points of a step that are looked up in the map."""
    capacity: int = 100_000
    """Nodes; a search that needs more has found no path."""

    def __post_init__(self) -> None:
        check_fields(self, "KinoSettings.")


@dataclass(frozen=True)
class FastSettings(TimedSettings):
    """Of the whole planner."""

    maps: MapSettings = field(
        default_factory=lambda: MapSettings(margin=50, ground=-1.0, border=2, ray_min=0.5, field=True, field_margin=0.0)
    )
    feasible: float = 1e-5
    search: KinoSettings = field(default_factory=KinoSettings)
    end: float = 0.01
    """Weight of the end point where it may move."""
    sweeps: int = 3
    """Of the time adjustment, at most."""
    replan_after: float = 1.5
    """Distance flown on a plan before the next [m]."""
    no_replan_within: float = 2.0
    """Of the goal [m]."""
    failed_pause: float = 2.5e-5
    """A search that found nothing is repeated no sooner than after so much for each of its expansions [s]: what it takes one
    core, so that planners whose compute costs no time do not search the same maps a hundred times a second."""
    goal_distance: float = 0.3
    """A goal nearer than this to something is moved [m]."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, "FastSettings.")
