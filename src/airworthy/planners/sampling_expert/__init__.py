"""The sampling expert of Agile-Autonomy: knows the whole scene, samples around a global reference, flies the best."""

from airworthy.planners.sampling_expert.planner import MAP_SETTINGS, SamplingExpert, SamplingSettings

__all__ = ["MAP_SETTINGS", "SamplingExpert", "SamplingSettings"]
