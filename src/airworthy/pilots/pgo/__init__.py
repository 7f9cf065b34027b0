"""PGO: a topological roadmap in a distance field, and optimisation guided by its paths."""

from airworthy.pilots.pgo.planner import PgoPlanner, Stage
from airworthy.pilots.pgo.settings import PgoSettings, RoadmapSettings

__all__ = ["PgoPlanner", "PgoSettings", "RoadmapSettings", "Stage"]
