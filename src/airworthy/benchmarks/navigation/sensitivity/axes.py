"""Axes of the sensitivity study: what is made worse, by how much, and how a point on an axis is spelled.

A word of `--axes` is an axis with its declared levels (`latency`), or with levels of one's own (`latency:0.05,0.2`). A point
differs from the benchmark's ideal flight in one thing alone, so that whatever changes is its doing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from airworthy.benchmarks.navigation.config import NavigationConfig, Perturbation
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.schema import check_fields
from airworthy.planners.common.tracking_backends import backend_names

__all__ = ["AXES", "IDEAL", "MOVERS", "Axis", "StudyPoint", "points_of", "spelled"]

IDEAL = "ideal"
"""Name of the point in which nothing is worse: what the others are compared with."""
MOVERS = 8
"""Pillars along the axis of their speed."""


@dataclass(frozen=True)
class Axis:
    """Something that is made worse by degrees."""

    name: str
    """Of a field of `Perturbation`, or "controller"."""
    title: str
    unit: str
    """Of its levels, as shown; "" for shares, counts and names."""
    levels: tuple[float | str, ...]
    """Declared ones, in order."""


AXES: dict[str, Axis] = {
    item.name: item
    for item in (
        Axis("gain_scale", "control gains", "times", (0.5, 0.75, 1.25, 1.5)),
        Axis("controller", "controller", "", ("dfbc_indi", "nmpc")),
        Axis("motor_degradation", "thrust lost per rotor", "of full at most", (0.1, 0.3)),
        Axis("depth_noise", "noise of depth", "of range", (0.02, 0.05)),
        Axis("depth_dropout", "depth pixels without a return", "of all", (0.3, 0.7)),
        Axis("latency", "delay of depth images", "s", (0.05, 0.2)),
        Axis("drift", "drift of the estimated position", "m/\N{SQUARE ROOT}s", (0.02, 0.1)),
        Axis("moving_obstacles", "pillars that cross the area at 1 m/s", "", (4, 12)),
        Axis("moving_speed", f"speed of {MOVERS} pillars that cross the area", "m/s", (0.5, 2.0)),
        Axis("gain_error", "error of each flight's gains", "of each at most", (0.3,)),
    )
}
_COUNTS = ("moving_obstacles",)


@dataclass(frozen=True)
class StudyPoint:
    """A level of an axis; or the ideal, without either."""

    axis: str = ""
    level: float | str = ""

    def __post_init__(self) -> None:
        check_fields(self, "StudyPoint.")

    @property
    def name(self) -> str:
        """Unique in a study, and good for a folder's name."""
        return f"{self.axis}_{spelled(self.level)}" if self.axis else IDEAL

    @property
    def words(self) -> str:
        """For people: "0.05 s"."""
        unit = AXES[self.axis].unit if self.axis else ""
        return f"{spelled(self.level)} {unit}".strip() if self.axis else IDEAL

    def applied(self, config: NavigationConfig) -> NavigationConfig:
        """Return a configuration with this one thing worse."""
        if not self.axis:
            return config
        if self.axis == "controller":
            return replace(config, controller=str(self.level))
        changed: dict[str, Any] = {self.axis: int(self.level) if self.axis in _COUNTS else self.level}
        if self.axis == "moving_speed":
            changed["moving_obstacles"] = MOVERS
        return replace(config, perturb=replace(config.perturb, **changed))


def spelled(level: float | str) -> str:
    """Return a level as it is typed."""
    return level if isinstance(level, str) else f"{level:g}"


def points_of(words: Sequence[str]) -> tuple[StudyPoint, ...]:
    """Return the ideal and every point of some axes, in order; "all" is every axis with its declared levels.

    Raises:
        UnknownNameError: There is no such axis, or no such controller.
        AirworthyError: A level is no number, is the ideal itself, or is named twice.
    """
    found = [StudyPoint()]
    for word in dict.fromkeys(name for item in words for name in (AXES if item == "all" else (item,))):
        name, colon, text = word.partition(":")
        if name not in AXES:
            raise unknown_name("axis", name, ["all", *AXES], "Levels of your own are AXIS:LEVEL,LEVEL.")
        levels = tuple(_level(name, part) for part in text.split(",")) if colon else AXES[name].levels
        found += [StudyPoint(name, level) for level in levels]
    if len(found) == 1:
        raise AirworthyError("A sensitivity study needs at least one of --axes.")
    names = [point.name for point in found]
    twice = next((name for name in names if names.count(name) > 1), "")
    if twice:
        raise AirworthyError(f"--axes names the point {twice!r} twice: leave one out.")
    return tuple(found)


def _level(name: str, text: str) -> float | str:
    """Read a level; one that is the ideal itself would compare flights with themselves."""
    if name == "controller":
        if text not in backend_names():
            raise unknown_name("controller", text, backend_names())
        if text == NavigationConfig().controller:
            raise AirworthyError(f"--axes {name}:{text} is the ideal itself, which is flown in any case: leave it out.")
        return text
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not isfinite(value) or (name in _COUNTS and value != int(value)):
        kind = "whole numbers" if name in _COUNTS else "numbers"
        raise AirworthyError(f"--axes {name} has the level {text!r}; expected {kind}, as in {name}:{_example(name)}.")
    # Pillars at the usual speed are still pillars, which the ideal has none of.
    if name != "moving_speed" and value == getattr(Perturbation(), name):
        raise AirworthyError(f"--axes {name}:{text} is the ideal itself, which is flown in any case: leave it out.")
    return value


def _example(name: str) -> str:
    return ",".join(spelled(level) for level in AXES[name].levels)
