"""Making shards: each a pure function of the configuration and its number, in whatever process."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from airworthy.core.arrays import ArrayAny, ArrayInt, ArrayU8
from airworthy.core.errors import AssetError
from airworthy.core.random import Stream, flight_key, words
from airworthy.learning.datasets.config import (
    COMMAND_COLUMNS,
    IMAGES_FILE,
    PAIR_FIELDS,
    PAIRS_FILE,
    ROLLOUT_FIELDS,
    ROLLOUTS_FILE,
    STATE_COLUMNS,
    DatasetConfig,
    scene_of,
    shard_name,
)
from airworthy.learning.datasets.shard_files import ShardFacts, write_images, write_shard
from airworthy.learning.synthesis.config import RATE, Stages, cleared_for, flight_camera
from airworthy.learning.synthesis.plan import Pictures, RolloutPlan
from airworthy.learning.synthesis.rollouts import Rollouts, roll_out
from airworthy.scenes import Scene

__all__ = ["Columns", "ShardMaker", "ShardTask", "Sharding", "read_columns", "write_columns"]

# ---- Which roll-outs lie in which shard -------------------------------------------------------------------------------------

_ORDER = 3
"""Step of the stream of synthesis from which the order is drawn."""


class Sharding:
    """Roll-outs of each course in shuffled order, cut into shards.

    Args:
        plan: Of the roll-outs.
        size: Roll-outs per shard; the last one of a course may have fewer.
    """

    def __init__(self, plan: RolloutPlan, size: int):
        self._plan, self._size = plan, size
        # Courses are never mixed in a shard: the last of each is held out whole.
        counts = [-(-int(count) // size) for count in plan.counts]
        self.course = np.repeat(np.arange(len(counts)), counts)
        """(shards,) index of the configuration's courses."""
        self._first = np.concatenate([[0], np.cumsum(counts)])
        self._orders: dict[int, ArrayInt] = {}

    def __len__(self) -> int:
        return len(self.course)

    @property
    def held_out(self) -> ArrayInt:
        """(courses,) the last shard of each."""
        return self._first[1:] - 1

    def numbers(self, shard: int) -> ArrayInt:
        """Return roll-outs of a shard, in the order of its files."""
        course = int(self.course[shard])
        begin = (shard - int(self._first[course])) * self._size
        return self._order(course)[begin : begin + self._size]

    def _order(self, course: int) -> ArrayInt:
        """Return a course's roll-outs, by a word drawn for each."""
        if course not in self._orders:
            number = np.arange(self._plan.first[course], self._plan.first[course + 1])
            drawn = words(flight_key(self._plan.config.seed, number), _ORDER, Stream.SYNTHESIS, 4)
            self._orders[course] = number[np.lexsort((drawn[:, 1], drawn[:, 0]))]
        return self._orders[course]


# ---- Tables of a shard as Parquet, the same bytes for the same values -------------------------------------------------------

# Ours: bounds what a damaged file can make a reader allocate; shards have some thousand rows.
ROWS_MAX = 1 << 26
Columns = dict[str, ArrayAny]


def write_columns(path: Path, fields: Mapping[str, type], columns: Mapping[str, ArrayAny]) -> None:
    """Write equally long columns.

    Args:
        path: Of the Parquet file.
        fields: Names and types, in order.
        columns: Arrays by these names.
    """
    import pyarrow as pa
    from pyarrow import parquet

    schema = pa.schema([pa.field(name, pa.from_numpy_dtype(np.dtype(kind)), nullable=False) for name, kind in fields.items()])
    arrays = [pa.array(np.ascontiguousarray(columns[name], kind)) for name, kind in fields.items()]
    table = pa.Table.from_arrays(arrays, schema=schema)
    # States and commands differ from row to row: a dictionary would only cost time.
    parquet.write_table(
        table, path, compression="zstd", compression_level=3, use_dictionary=["rollout", "tick"], write_page_checksum=True
    )


def read_columns(path: Path, fields: Mapping[str, type]) -> Columns:
    """Read them back.

    Raises:
        AssetError: It is not a Parquet file with these columns.
    """
    import pyarrow as pa
    from pyarrow import parquet

    # A stranger's file may claim metadata of any size before a row is read.
    limits = {"thrift_string_size_limit": 1 << 20, "thrift_container_size_limit": 1 << 20}
    try:
        with parquet.ParquetFile(path, page_checksum_verification=True, memory_map=False, **limits) as file:
            found = {field.name: field.type for field in file.schema_arrow}
            wanted = {name: pa.from_numpy_dtype(np.dtype(kind)) for name, kind in fields.items()}
            # Exact names and types: a column that changed its meaning must not be read as the old one.
            if found != wanted or file.metadata.num_rows > ROWS_MAX:
                raise AssetError(f"{str(path)!r} has other columns than this version of Airworthy writes.")
            table = file.read()
        return {name: np.asarray(table.column(name).to_numpy(), dtype=kind) for name, kind in fields.items()}
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, MemoryError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200].rstrip(".")
        raise AssetError(f"{str(path)!r} is not a Parquet file that can be read: {reason}.") from error


# -----------------------------------------------------------------------------------------------------------------------------


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
        scene: The scene, where it is loaded already.
        alive: Called between ticks of roll-outs and blocks of images; raises where the work is not wanted any more.
    """

    def __init__(self, task: ShardTask, scene: Scene | None = None, alive: Callable[[], None] = lambda: None):
        self._task, self._alive, self.stages = task, alive, Stages()
        config = task.config
        with self.stages("planning"):
            self.plan = RolloutPlan(config)
            self.sharding = Sharding(self.plan, config.shard)
        self._scene: Scene | None = None
        self._pictures: tuple[int, Pictures] | None = None
        if config.pictured:
            with self.stages("rendering"):
                self._scene = scene or scene_of(config)
            self._pictures_of(0)

    def _pictures_of(self, course: int) -> Pictures | None:
        """Return those of a course of the configuration; only the last ones are kept, since shards come course by course."""
        config, vehicle = self._task.config, self.plan.vehicle
        if self._scene is None:
            return None
        if self._pictures is None or (config.clear and self._pictures[0] != course):
            self._pictures = None  # its memory, before more is asked for
            with self.stages("rendering"):
                camera = flight_camera(vehicle, config.camera, config.view)
                scene = cleared_for(self._scene, config.courses[course], config.clear)
                drawn = (config.light, config.image_noise, config.seed)
                self._pictures = (course, Pictures(scene, vehicle, camera, *drawn, self._task.device))
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
        flown = roll_out(self.plan, np.concatenate(numbers), self._task.device, stages=self.stages, alive=self._alive)
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

    def _rendered(self, kept: Rollouts, pairs: Columns, pictures: Pictures) -> Iterator[ArrayU8]:
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
    """Return columns of `pairs.parquet`, roll-out by roll-out, tick by tick."""
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
    """Return columns of `rollouts.parquet`."""
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


def _split(kind: str, names: Sequence[str], values: ArrayAny) -> Columns:
    flat = values.reshape(-1, values.shape[-1])
    return {f"{kind}_{name}": flat[:, index] for index, name in enumerate(names)}
