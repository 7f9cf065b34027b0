"""Whether a vehicle fits along the courses of an evaluation: said before it flies, not by its collisions."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from airworthy.benchmarks.tracking.block import Setting
from airworthy.benchmarks.tracking.conditions import Condition
from airworthy.core.errors import AssetWarning
from airworthy.geometry.distance import clearance
from airworthy.scenes import Scene, SceneBatch
from airworthy.vehicles import Vehicle

__all__ = ["tight_things", "warn_where_tight"]


def tight_things(setting: Setting, reach: float) -> dict[str, float]:
    """Return the classes of things that a course passes nearer than a distance, and how near [m].

    Args:
        setting: Course and scene.
        reach: The distance [m].
    """
    points = setting.points.position
    found = clearance(SceneBatch(setting.scene, 1).geometry, points, env=np.zeros(len(points), np.int32), max_distance=reach)
    nearest: dict[str, float] = {}
    for instance, distance in zip(found.instance.tolist(), found.distance.tolist(), strict=True):
        if 0 <= instance < len(setting.scene.instances) and distance < reach:
            name = setting.scene.instances[instance].semantic.replace("_", " ")
            nearest[name] = min(distance, nearest.get(name, np.inf))
    return dict(sorted(nearest.items(), key=lambda item: item[1]))


def warn_where_tight(
    vehicle: Vehicle, conditions: Sequence[Condition], course: str, scene: str, scenes: dict[str, Scene]
) -> None:
    """Warn once of all conditions whose course leaves a vehicle less room than it takes up.

    Args:
        vehicle: That flies.
        conditions: Of the run.
        course: Of conditions without their own.
        scene: The same.
        scenes: By name.
    """
    # Along the body's own axes, not to its corners: who is warned here touches however it is turned about its heading.
    reach = float(np.max(np.abs(vehicle.body.center) + np.asarray(vehicle.body.size)))
    bare = {name: replace(item, clouds={}, splats=()) for name, item in scenes.items()}
    told: dict[str, list[str]] = {}
    known: dict[tuple[Any, ...], tuple[str, dict[str, float]]] = {}
    for item in conditions:
        place = (item.course or course, item.scene or scene, item.clear, item.covered, item.removed)
        if place not in known:
            # People walk where they keep their distance; light has no extent.
            setting = Setting(replace(item, light=1.0, people=0), course, scene, bare)
            known[place] = setting.course.name, tight_things(setting, reach)
        flown, near = known[place]
        if near:
            passed = ", ".join(f"the {name} at {distance:.2f} m" for name, distance in near.items())
            words = f"the course {flown!r} in {item.scene or scene!r} passes {passed}"
            told.setdefault(words, []).append(item.name)
    if told:
        count = sum(map(len, told.values()))
        warnings.warn(
            f"{vehicle.name!r} reaches {reach:.2f} m from its centre, and {'; '.join(told)}: it touches them where it follows"
            f" the path exactly ({count} of {len(conditions)} condition{'s' if len(conditions) > 1 else ''}).",
            AssetWarning,
            stacklevel=3,
        )
