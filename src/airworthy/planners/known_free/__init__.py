"""A planner that flies only where it has seen free space, with limits from its vehicle's own numbers."""

from airworthy.planners.known_free.config import KnownFreeSettings, KnownFreeState, RouteSettings
from airworthy.planners.known_free.planner import KnownFreePlanner

__all__ = ["KnownFreePlanner", "KnownFreeSettings", "KnownFreeState", "RouteSettings"]
