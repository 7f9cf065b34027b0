"""PGO: a topological roadmap in a distance field, and optimisation guided by its paths."""

from airworthy.planners.pgo.planner import PgoPlanner, PlannerStage
from airworthy.planners.pgo.records import PgoSettings, RoadmapSettings

__all__ = ["PgoPlanner", "PgoSettings", "PlannerStage", "RoadmapSettings"]
