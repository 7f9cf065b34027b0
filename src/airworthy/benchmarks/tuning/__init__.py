"""Tuning of the geometric law for a vehicle: a batched sweep of gains, step responses, loop margins, a choice with evidence."""

from airworthy.benchmarks.tuning.run import TuneConfig, Tuned, tune
from airworthy.benchmarks.tuning.sweep import GainCandidate, candidates_for, fly_candidates

__all__ = ["GainCandidate", "TuneConfig", "Tuned", "candidates_for", "fly_candidates", "tune"]
