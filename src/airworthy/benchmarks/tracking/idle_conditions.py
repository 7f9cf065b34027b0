"""Conditions of an evaluation that change nothing, or less than they say: told before anything flies, with their number."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

from airworthy.benchmarks.tracking.conditions import Condition, noise_level
from airworthy.benchmarks.tracking.methods import TrackingMethod
from airworthy.benchmarks.tracking.trial import GUST_AT, GUST_LASTS
from airworthy.core.errors import AssetWarning
from airworthy.scenes import Scene
from airworthy.trajectories import course
from airworthy.vehicles import Vehicle

__all__ = ["idle_reasons", "warn_where_idle"]


def idle_reasons(
    conditions: Sequence[Condition],
    flown: str,
    place: str,
    scenes: Mapping[str, Scene],
    methods: Sequence[TrackingMethod],
    vehicle: Vehicle,
) -> dict[str, list[str]]:
    """Return why conditions change nothing, or less than they say, and the names of those of which each holds.

    Args:
        conditions: Of the run.
        flown: Course of conditions without their own.
        place: Scene of conditions without their own.
        scenes: By name.
        methods: Who flies.
        vehicle: What they fly.
    """
    found: dict[str, list[str]] = {}
    for item in conditions:
        for reason in _reasons(item, item.course or flown, methods, vehicle):
            found.setdefault(reason, []).append(item.name)
    return found


def _reasons(item: Condition, flown: str, methods: Sequence[TrackingMethod], vehicle: Vehicle) -> list[str]:
    lasts = course(flown).trajectory().duration
    said = []
    left = lasts - GUST_AT * lasts
    if item.gust and left < GUST_LASTS:
        said.append(
            f"the push lasts {GUST_LASTS:g} s from {100 * GUST_AT:.0f} % of the course {flown!r}, which ends {left:.2f} s"
            " later; choose a longer --course"
        )
    if item.delay >= lasts:
        said.append(f"commands that act {item.delay:g} s late never act on the course {flown!r}, which lasts {lasts:.3g} s")
    blind = [one.name for one in methods if not (one.sensors and one.sensors(vehicle))]
    # The image of what a flight sees is darker all the same: the flights are those of the baseline.
    if item.light != 1.0 and len(blind) == len(methods):
        said.append(f"light is nothing to {_named(blind)}, without a camera")
    if item.sees_otherwise and len(blind) == len(methods):
        said.append(f"images are nothing to {_named(blind)}, without a camera")
    told = [one.name for one in methods if not one.senses]
    level = noise_level(item.noise)
    if item.noise != "baseline" and len(told) == len(methods) and not any(level.model):
        said.append(f"noise of what is sensed is nothing to {_named(told)}, told the true state")
    return said


def _named(names: Sequence[str]) -> str:
    return " and ".join(names) if len(names) < 3 else f"all {len(names)} pilots"


def warn_where_idle(
    conditions: Sequence[Condition],
    flown: str,
    place: str,
    scenes: Mapping[str, Scene],
    methods: Sequence[TrackingMethod],
    vehicle: Vehicle,
) -> None:
    """Warn once of all conditions of which something does nothing.

    Args:
        conditions: Of the run.
        flown: Course of conditions without their own.
        place: Scene of conditions without their own.
        scenes: By name.
        methods: Who flies.
        vehicle: What they fly.
    """
    found = idle_reasons(conditions, flown, place, scenes, methods, vehicle)
    if not found:
        return
    idle = dict.fromkeys(name for names in found.values() for name in names)
    told = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in found.items())
    verb = "changes" if len(idle) == 1 else "change"
    warnings.warn(
        f"{len(idle)} of {len(conditions)} condition{'s' if len(conditions) > 1 else ''} {verb} less than said: {told}.",
        AssetWarning,
        stacklevel=3,
    )
