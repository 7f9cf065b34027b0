"""Seconds of a training's steps, stage by stage: what they took, broken-off tries included, and what the next will take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["STAGES", "earlier_seconds", "guessed_times", "stage_seconds", "summed_seconds"]

Spent = Mapping[str, Mapping[str, float]]
"""Kind (`seconds`, `cpu_seconds`) -> stage -> [s]."""
STAGES = ("data", "features", "history", "flights", "heads")
"""Of a step, each of which takes its time or is none of it."""
_LABELLED = 1.2
"""Time of a decision in flight over that of a pair of the expert's data: the policy decides, and the expert says what it would
have done; measured in the hall: 2.57 s of a flight against 2.15."""


def stage_seconds(log: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return seconds by stage, by the clock, as stages take turns, and of all processor cores.

    Args:
        log: A row per step; tries at it that were broken off count, too.
    """
    found: dict[str, float] = {}
    for row in log:
        for kind, unit in (("seconds", "s"), ("cpu_seconds", "cpu_s")):
            for name, value in row.get(kind, {}).items():
                spent = value + earlier_seconds(row, name, kind)
                found[f"{name}_{unit}"] = found.get(f"{name}_{unit}", 0.0) + spent
    return found


def earlier_seconds(row: Mapping[str, Any], stage: str = "", kind: str = "seconds") -> float:
    """Return what tries at a step took that were broken off [s].

    Args:
        row: Of the log.
        stage: One of `STAGES`; empty: all of them.
        kind: "seconds" by the clock, or "cpu_seconds".
    """
    spent = row.get("earlier", {}).get(kind, {})
    return float(spent.get(stage, 0.0) if stage else sum(spent.values()))


def summed_seconds(one: Spent, other: Spent) -> dict[str, dict[str, float]]:
    """Return seconds of both."""
    return {
        kind: {name: one.get(kind, {}).get(name, 0.0) + other.get(kind, {}).get(name, 0.0) for name in STAGES}
        for kind in ("seconds", "cpu_seconds")
    }


def guessed_times(imitation: Mapping[str, Any], flights: int, decisions: float) -> tuple[float, float]:
    """Return seconds of a flight and of a round, before one was flown: an image costs what it did in the expert's data.

    Args:
        imitation: Row of the step that imitated: seconds by stage, those of tries that were broken off, and pairs.
        flights: Of a round.
        decisions: Of a flight.
    """
    pairs, seconds = imitation["pairs"], imitation["seconds"]
    # What tries that were broken off had made of the data was not made again.
    each = _LABELLED * decisions * (seconds["data"] + earlier_seconds(imitation, "data")) / pairs
    return each, flights * (each + decisions * seconds["features"] / pairs) + 0.5 * seconds["heads"]
