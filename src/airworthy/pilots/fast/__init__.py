"""Fast-Planner: kinodynamic search, B-spline optimisation in a distance field, time adjustment."""

from airworthy.pilots.fast.planner import FastPlanner, Stage
from airworthy.pilots.fast.settings import FastSettings, KinoSettings

__all__ = ["FastPlanner", "FastSettings", "KinoSettings", "Stage"]
