"""EGO-Planner: replanning by gradients from collision-free ways, without a distance field."""

from airworthy.planners.ego.config import EgoConfig, EgoOutcome, EgoState
from airworthy.planners.ego.planner import EgoPlanner

__all__ = ["EgoConfig", "EgoOutcome", "EgoPlanner", "EgoState"]
