"""Fast-Planner: kinodynamic search, B-spline optimisation in a distance field, time adjustment."""

from airworthy.planners.fast.planner import FastPlanner, PlannerStage
from airworthy.planners.fast.settings import FastSettings, KinoSettings

__all__ = ["FastPlanner", "FastSettings", "KinoSettings", "PlannerStage"]
