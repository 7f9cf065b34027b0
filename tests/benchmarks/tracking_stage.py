"""A tiny place and pilots for tests of the tracking protocol: flights of a second in a room with little in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airworthy.benchmarks.tracking.config import EvaluateConfig
from airworthy.benchmarks.tracking.methods import TrackingMethod, expert_method
from airworthy.geometry import Box
from airworthy.pilots.expert import expert_for, expert_reference
from airworthy.scenes import Instance, Region, Scene, register_generator, scene_names

PLACE = "tracking_stage"


def stage(index: int, seed: int) -> Scene:
    """A floor of 8 m, a gate's post beside the origin, a wall."""
    shapes = {"floor": Box((4.0, 4.0, 0.1)), "post": Box((0.05, 0.05, 0.5)), "wall": Box((0.05, 4.0, 1.5))}
    things = (
        Instance("floor", (0.0, 0.0, -0.1), semantic="ground", name="floor"),
        Instance("post", (0.0, 0.8, 0.5), semantic="gate", name="post"),
        Instance("wall", (3.5, 0.0, 1.5), semantic="wall", name="wall"),
    )
    return Scene(PLACE, shapes=shapes, instances=things, bounds=Region((-4.0, -4.0, 0.0), (4.0, 4.0, 3.0)))


def on_stage(out: Path, **changes: Any) -> EvaluateConfig:
    """A small evaluation in it: the hovering course of one second."""
    if PLACE not in scene_names():
        register_generator(PLACE, stage)
    given: dict[str, Any] = {"course": "hover", "scene": PLACE, "flights": 3, "batch": 2, "conditions": ("baseline", "payload")}
    return EvaluateConfig(**{**given, "out": out, **changes})


class Inner:
    """The expert with its decisions changed by a function; its attributes are the expert's."""

    name, level = "changed", "rate_thrust"

    def __init__(self, expert: Any, change: Any):
        self._expert, self._change, self._tick = expert, change, 0
        self.observes = expert.observes

    def command(self, observation: Any) -> Any:
        """The changed command."""
        self._tick += 1
        return self._change(self._tick, self._expert.command(observation))


def changed_expert(name: str, change: Any) -> TrackingMethod:
    """A method whose commands are those of the expert, changed by `change(tick, command)`."""

    def make(simulator: Any, course: Any, mounted: Any) -> Any:
        return Inner(expert_for(simulator, expert_reference(course)), change)

    return TrackingMethod(name, make, identity={"pilot": name})


EXPERT = expert_method()
