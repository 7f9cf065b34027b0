"""Counts over labels: what the limit left, how often simulation changed the choice, what was saturated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.learning.gates.candidates import candidates
from airworthy.learning.gates.labels import Labels
from airworthy.learning.gates.options import SearchOptions

__all__ = ["added", "counts_of", "shares_of"]

Array = NDArray[np.float64]


def counts_of(situations: Array, labels: Labels, options: SearchOptions) -> dict[str, Any]:
    """Whole numbers that add up over shards."""
    some = labels.admissible
    found = candidates(situations, options.choices)
    analytic = np.take_along_axis(found.t0, np.maximum(labels.analytic, 0)[:, None], axis=1)[:, 0]
    speeds, ratios = options.choices.speeds, options.choices.ratios
    chosen, first = (np.bincount(x[some] // ratios, minlength=speeds) for x in (labels.candidate, labels.analytic))
    return {
        "situations": len(labels),
        "candidates": len(labels) * options.choices.count,
        "admissible": int(labels.passing.sum()),
        "without_candidate": int((~some).sum()),
        "feasible": int(labels.feasible.sum()),
        "crashed": int(labels.crashed.sum()),
        "skipped": int(labels.skipped.sum()),
        "saturated_analytic": int((some & (analytic > options.t_max)).sum()),
        "saturated": int(labels.saturated.sum()),
        "changed": int((some & labels.changed).sum()),
        "within_reach": int(labels.reach.sum()),
        "alone_in_reach": int((labels.reach == 1).sum()),
        "rollouts": int(labels.tried.sum()) * options.draws,
        "steps": int(labels.steps.sum()),
        "by_speed": [int(n) for n in chosen],
        "by_speed_analytic": [int(n) for n in first],
    }


def added(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Counts of several shards together."""
    total: dict[str, Any] = {}
    for part in parts:
        for name, value in part.items():
            known = total.get(name)
            if isinstance(value, list):
                total[name] = value if known is None else [a + b for a, b in zip(known, value, strict=True)]
            else:
                total[name] = value + (known or 0)
    return total


def shares_of(counts: dict[str, Any]) -> dict[str, float]:
    """Shares of the situations that have a candidate."""
    some = max(counts["situations"] - counts["without_candidate"], 1)
    return {
        "changed": counts["changed"] / some,
        "within_reach_mean": counts["within_reach"] / some,
        "alone_in_reach": counts["alone_in_reach"] / some,
        "saturated": counts["saturated"] / some,
        "crashed": counts["crashed"] / some,
        "skipped": counts["skipped"] / some,
    }
