"""Making shards: each a pure function of the configuration and its number, in whatever process."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.learning.datasets.columns import write_columns
from airworthy.learning.datasets.config import DatasetConfig
from airworthy.learning.datasets.identity import scene_of
from airworthy.learning.datasets.layout import (
    COMMAND_COLUMNS,
    IMAGES_FILE,
    PAIR_FIELDS,
    PAIRS_FILE,
    ROLLOUT_FIELDS,
    ROLLOUTS_FILE,
    STATE_COLUMNS,
    shard_name,
)
from airworthy.learning.datasets.shard_files import ShardFacts, write_images, write_shard
from airworthy.learning.datasets.sharding import Sharding
from airworthy.learning.synthesis.cameras import flight_camera
from airworthy.learning.synthesis.clearing import cleared_for
from airworthy.learning.synthesis.config import RATE
from airworthy.learning.synthesis.pictures import Pictures
from airworthy.learning.synthesis.plan import RolloutPlan
from airworthy.learning.synthesis.rolling import Rollouts, roll_out
from airworthy.learning.synthesis.stages import Stages
from airworthy.scenes import Scene

__all__ = ["ShardMaker", "ShardTask"]

Columns = dict[str, NDArray[Any]]
Images = NDArray[np.uint8]


@dataclass(frozen=True)
class ShardTask:
    """What a worker is told."""

    config: DatasetConfig
    folder: Path
    digest: str
    """Of the data set's identity."""
    device: str = "cpu"


class ShardMaker:
    """Makes shards of one data set; paths and the scene are prepared once, a cleared scene once per course.

    Args:
        task: What to make.
        place: The scene, where it is loaded already.
        alive: Called between blocks of images; raises where the work is not wanted any more.
    """

    def __init__(self, task: ShardTask, place: Scene | None = None, alive: Callable[[], None] = lambda: None):
        self._task, self._alive, self.stages = task, alive, Stages()
        config = task.config
        with self.stages("planning"):
            self.plan = RolloutPlan(config)
            self.sharding = Sharding(self.plan, config.shard)
        self._place: Scene | None = None
        self._pictures: tuple[int, Pictures] | None = None
        if config.pictured:
            with self.stages("rendering"):
                self._place = place or scene_of(config)
            self._pictures_of(0)

    def _pictures_of(self, course: int) -> Pictures | None:
        """Those of a course of the configuration; only the last ones are kept, since shards come course by course."""
        config, vehicle = self._task.config, self.plan.vehicle
        if self._place is None:
            return None
        if self._pictures is None or (config.clear and self._pictures[0] != course):
            self._pictures = None  # its memory, before more is asked for
            with self.stages("rendering"):
                camera = flight_camera(vehicle, config.camera, config.view)
                place = cleared_for(self._place, config.courses[course], config.clear)
                drawn = (config.light, config.image_noise, config.seed)
                self._pictures = (course, Pictures(place, vehicle, camera, *drawn, self._task.device))
        return self._pictures[1]

    @property
    def image_bytes(self) -> int:
        """Of one image."""
        return 0 if self._pictures is None else math.prod(self._pictures[1].shape)

    def make(self, shards: Sequence[int]) -> Iterator[ShardFacts]:
        """Fly the roll-outs of some shards together, then write one after the other.

        Raises:
            AirworthyError: The file system refused.
        """
        numbers = [self.sharding.numbers(shard) for shard in shards]
        flown = roll_out(self.plan, np.concatenate(numbers), self._task.device, stages=self.stages)
        ends = np.cumsum([len(item) for item in numbers])
        for shard, end, count in zip(shards, ends, map(len, numbers), strict=True):
            which = np.zeros(len(flown.number), bool)
            which[end - count : end] = True
            yield self._written(shard, flown.selected(which))

    def _written(self, shard: int, flown: Rollouts) -> ShardFacts:
        kept = flown.selected(flown.kept)
        index = int(self.sharding.course[shard])
        course, pictures = self._task.config.courses[index], self._pictures_of(index)
        counts = (len(flown.number), len(kept.number), kept.command.shape[0] * kept.command.shape[1])

        def facts(files: dict[str, tuple[int, str]]) -> ShardFacts:
            return ShardFacts(shard_name(shard), self._task.digest, course, *counts, files)

        return write_shard(
            self._task.folder / shard_name(shard), lambda folder: self._filled(folder, flown, kept, pictures), facts
        )

    def _filled(self, folder: Path, flown: Rollouts, kept: Rollouts, pictures: Pictures | None) -> dict[str, str]:
        pairs = pair_columns(kept)
        with self.stages("writing"):
            write_columns(folder / ROLLOUTS_FILE, ROLLOUT_FIELDS, rollout_columns(flown))
            write_columns(folder / PAIRS_FILE, PAIR_FIELDS, pairs)
            if pictures is None:
                return {}
            shape = (len(pairs["tick"]), *pictures.shape)
            return {IMAGES_FILE: write_images(folder, shape, self._rendered(kept, pairs, pictures))}

    def _rendered(self, kept: Rollouts, pairs: Columns, pictures: Pictures) -> Iterator[Images]:
        """Blocks of images; their time is rendering's, not writing's."""
        state = kept.state[:, :-1].reshape(-1, kept.state.shape[-1])
        blocks = pictures.images(pairs["rollout"], pairs["tick"], pairs["t_s"], state)
        while True:
            self._alive()
            before = self.stages.seconds.get("rendering", 0.0)
            with self.stages("rendering"):
                block = next(blocks, None)
            self.stages.add({"writing": before - self.stages.seconds["rendering"]})
            if block is None:
                return
            yield block


def pair_columns(flown: Rollouts) -> Columns:
    """Columns of `pairs.parquet`, roll-out by roll-out, tick by tick."""
    count, ticks = flown.command.shape[:2]
    tick = np.tile(np.arange(ticks), count)
    found: Columns = {
        "rollout": np.repeat(flown.number, ticks),
        "tick": tick,
        "t_s": np.repeat(flown.start, ticks) + tick / RATE,
    }
    for kind, values in (("sensed", flown.sensed), ("true", flown.state[:, :-1])):
        found |= _split(kind, STATE_COLUMNS, values)
    return found | _split("command", COMMAND_COLUMNS, flown.command)


def rollout_columns(flown: Rollouts) -> Columns:
    """Columns of `rollouts.parquet`."""
    return {
        "rollout": flown.number,
        "course": flown.course,
        "start_s": flown.start,
        "mass_kg": flown.mass,
        "rotor_force_N": flown.force,
        "end_error_m": flown.end_error,
        "failed_ticks": flown.failures,
        "kept": flown.kept,
    }


def _split(kind: str, names: Sequence[str], values: NDArray[Any]) -> Columns:
    flat = values.reshape(-1, values.shape[-1])
    return {f"{kind}_{name}": flat[:, index] for index, name in enumerate(names)}
