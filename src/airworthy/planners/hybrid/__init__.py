"""A learnt policy proposes, the planner of known free space certifies: flown is a proposal if it is certified, else a plan."""

from airworthy.planners.hybrid.planner import HybridPlanner, HybridSettings
from airworthy.planners.hybrid.proposers import AvoidProposer, Proposer, StudentProposer, read_proposer
from airworthy.planners.hybrid.sight import MapsAndImages

__all__ = [
    "AvoidProposer",
    "HybridPlanner",
    "HybridSettings",
    "MapsAndImages",
    "Proposer",
    "StudentProposer",
    "read_proposer",
]
