"""EGO-Planner: replanning by gradients from collision-free ways, without a distance field."""

from airworthy.pilots.ego.config import EgoConfig, EgoOutcome, EgoState
from airworthy.pilots.ego.planner import EgoPlanner

__all__ = ["EgoConfig", "EgoOutcome", "EgoPlanner", "EgoState"]
