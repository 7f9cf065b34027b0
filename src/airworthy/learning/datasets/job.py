"""The job behind `airworthy synthesize`: every shard that is not there yet, by one process, several, or several machines."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from airworthy import __version__
from airworthy.core.errors import AirworthyError, AssetError, unknown_name
from airworthy.core.files import lock_folder, make_folder, write_json
from airworthy.core.idle_options import IdleRule, refuse_idle
from airworthy.core.jobs.block_job import describe_machine, refuse_foreign
from airworthy.core.jobs.block_store import digest_of
from airworthy.core.jobs.progress import progress
from airworthy.core.jobs.workers import check_wanted, shared
from airworthy.core.native_kernel import quiet_warp
from airworthy.learning.datasets.config import (
    DATASET_FILE,
    IDLE_RULES,
    RUN_FILE,
    VEHICLE_FILE,
    DatasetConfig,
    changed_field,
    described_identity,
    is_vehicle_file,
    scene_of,
    shard_name,
)
from airworthy.learning.datasets.place_check import check_place
from airworthy.learning.datasets.shard_files import (
    ShardFacts,
    clear_unfinished,
    read_facts,
    read_manifest,
    remove_shard,
    verify_shard,
    write_manifest,
)
from airworthy.learning.datasets.shard_maker import ShardMaker, ShardTask
from airworthy.learning.synthesis.config import STAGES, Stages
from airworthy.tasks.course_fit import CourseCheck
from airworthy.vehicles import named_vehicle, write_vehicle

__all__ = ["Finished", "Group", "Made", "made_elsewhere", "made_here", "synthesize_dataset", "write_run"]

# -----------------------------------------------------------------------------------------------------------------------------
# Who makes shards: this process, several, or the machines of a Ray cluster; the same function everywhere.

Group = Sequence[int]
"""Shards that are made together."""
Seconds = dict[str, float]
Finished = Iterator[tuple[int, ShardFacts]]


def made_here(maker: ShardMaker, groups: Sequence[Group]) -> Finished:
    """Return shards made by this process, as they are finished."""
    for group in groups:
        yield from zip(group, maker.make(group), strict=True)


def made_elsewhere(task: ShardTask, groups: Sequence[Group], workers: int, cluster: str | None, stages: Stages) -> Finished:
    """Yield shards made by worker processes, or by machines of a Ray cluster, which see the folder under the same path.

    Args:
        task: What every worker does.
        groups: Shards that are made together.
        workers: Processes; where there is a cluster, they do not count.
        cluster: Address of its head; None: processes of this machine.
        stages: Counts the time.

    Raises:
        ModuleNotFoundError: Ray is not installed (extra `cluster`).
        AirworthyError: There is no cluster at the address, a worker could not write, or was killed.
    """
    with closing(shared(partial(_made, task), [list(group) for group in groups], workers, "finished shards", cluster)) as made:
        for group, (facts, seconds) in made:
            stages.add(seconds)
            yield from zip(group, facts, strict=True)


# ---- in the workers -------------------------------------------------------------------------------------------------

_MAKERS: dict[str, Any] = {}
"""Of this worker: its maker, and what the maker is for."""


def _made(task: ShardTask, group: Group) -> tuple[list[ShardFacts], Seconds]:
    if _MAKERS.get("task") != task:
        _MAKERS.update(maker=ShardMaker(task, alive=check_wanted), task=task)
    maker: ShardMaker = _MAKERS["maker"]
    facts = list(maker.make(group))
    seconds, maker.stages.seconds = maker.stages.seconds, {}
    return facts, seconds


# -----------------------------------------------------------------------------------------------------------------------------

CLUSTER_WORKS = IdleRule(
    ("workers",), lambda config: config.cluster is not None, "with --cluster, whose machines make the shards instead"
)
GROUP_ROLLOUTS = 500
"""Roll-outs that are flown together where there are no images: the solver's launches are then long enough."""
# Ours: each process holds a solver and a scene of its own, so that memory ends before cores do.
WORKERS_MAX = 256
_PAIR_BYTES = 110
"""Of a row of `pairs.parquet`, about."""


@dataclass(frozen=True)
class Made:
    """What a run left."""

    folder: Path
    shards: tuple[ShardFacts, ...]
    """Those that are finished, in order."""
    shard_count: int
    new: Mapping[str, int]
    """Shards, rollouts, kept and pairs that this run made."""
    seconds: float
    """Of this run, by the wall's clock."""
    stages: Mapping[str, float] = field(default_factory=dict)
    """Where this run's time went, summed over processes [s]."""
    interrupted: bool = False

    @property
    def complete(self) -> bool:
        """Whether every shard is there."""
        return len(self.shards) == self.shard_count

    def total(self, name: str) -> int:
        """Return the total of all finished shards: rollouts, kept or pairs."""
        return sum(getattr(item, name) for item in self.shards)


def synthesize_dataset(
    config: DatasetConfig,
    out: str | Path,
    *,
    workers: int = 1,
    device: str = "cpu",
    cluster: str | None = None,
    repair: bool = False,
    course_check: CourseCheck = "refuse",
    quiet: bool = True,
    alive: Callable[[], None] = lambda: None,
) -> Made:
    """Make a data set, or go on with one.

    Shards that are there and whole are never made again. Interrupted (KeyboardInterrupt), it keeps them and says so.

    Args:
        config: What to make.
        out: Its folder.
        workers: Processes, which share the processors.
        device: Where roll-outs and images are computed.
        cluster: Address of a Ray cluster ("auto", "local" or HOST:PORT) whose machines see the folder; None: this one alone.
        repair: Make damaged shards again instead of refusing them.
        course_check: What becomes of a course on which the vehicle would meet something in the scene: "refuse", "warn", or
            "none", which does not look.
        quiet: Show no progress.
        alive: Called between ticks of roll-outs and blocks of images that this process makes; what it raises ends the run, as
            a KeyboardInterrupt does, and is raised on.

    Raises:
        AirworthyError: Something cannot be used, a course leads into something, the folder holds another data set, a shard is
            damaged, or the file system refused.
    """
    _check(workers, device)
    refuse_idle(config, IDLE_RULES)
    if cluster is not None and workers != 1:
        raise AirworthyError(CLUSTER_WORKS.sentence(f"--workers {workers}"))
    refuse_foreign(out, DATASET_FILE)
    begun = time.perf_counter()
    scene = scene_of(config)
    identity = described_identity(config, device, scene)
    if scene is not None and not os.path.lexists(Path(out) / DATASET_FILE):  # looked at when the folder was begun
        check_place(config, scene, course_check)
    with lock_folder(make_folder(out)) as folder:
        _check_folder(folder, identity)
        clear_unfinished(folder)
        # Workers, and machines of a cluster, read the copy: the user's file may be gone, or not be there.
        task = ShardTask(_with_copy(config, folder.resolve()), folder.resolve(), digest_of(identity), device)
        maker = ShardMaker(task, scene, alive)
        run = _Run(folder, identity, maker, quiet)
        run.find(repair)
        interrupted = run.make(_source(task, maker, run.missing, workers, cluster))
    shards = tuple(run.done[k] for k in sorted(run.done))
    seconds = time.perf_counter() - begun
    return Made(folder, shards, run.count, run.new, seconds, dict(maker.stages.seconds), interrupted)


def _with_copy(config: DatasetConfig, folder: Path) -> DatasetConfig:
    """Return the configuration with the copy of a vehicle's file, which is written into the folder."""
    if not is_vehicle_file(config):
        return config
    write_vehicle(named_vehicle(config.vehicle), folder / VEHICLE_FILE)
    return replace(config, vehicle=str(folder / VEHICLE_FILE))


class _Run:
    """A run over the shards of a folder."""

    def __init__(self, folder: Path, identity: Mapping[str, Any], maker: ShardMaker, quiet: bool):
        self._folder, self._identity, self._maker, self._quiet = folder, identity, maker, quiet
        self._digest = digest_of(identity)
        self.count = len(maker.sharding)
        self.done: dict[int, ShardFacts] = {}
        self.new = dict.fromkeys(("shards", "rollouts", "kept", "pairs"), 0)

    @property
    def missing(self) -> list[int]:
        return [shard for shard in range(self.count) if shard not in self.done]

    def find(self, repair: bool) -> None:
        """Take what is there and whole."""
        there = [shard for shard in range(self.count) if os.path.lexists(self._folder / shard_name(shard))]
        for shard in progress(there, "Checking", quiet=self._quiet):
            folder = self._folder / shard_name(shard)
            try:
                self.done[shard] = _whole(folder, self._digest)
            except AssetError as error:
                if not repair:
                    raise AssetError(f"{error} Run the same command with --repair to make it again.") from error
                remove_shard(folder)

    def make(self, source: Finished) -> bool:
        """Make what is missing; returns whether somebody interrupted it."""
        _check_space(self._folder, self._maker, self.missing)
        self._write()
        try:
            for shard, facts in progress(source, "Synthesising", len(self.missing), quiet=self._quiet):
                self._count(shard, facts)
        except KeyboardInterrupt:
            return True
        finally:
            close = getattr(source, "close", None)
            if close is not None:
                close()
            clear_unfinished(self._folder)
            self._adopt()
            with contextlib.suppress(AirworthyError):  # on a full disk, what was there before stays
                self._write()
        return False

    def _adopt(self) -> None:
        """Count shards that were finished and not told of any more, when the run was stopped."""
        for shard in self.missing:
            folder = self._folder / shard_name(shard)
            if folder.exists():
                with contextlib.suppress(AssetError):
                    self._count(shard, _whole(folder, self._digest))

    def _count(self, shard: int, facts: ShardFacts) -> None:
        self.done[shard] = facts
        self.new["shards"] += 1
        for name in ("rollouts", "kept", "pairs"):
            self.new[name] += getattr(facts, name)

    def _write(self) -> None:
        plan = self._maker.plan
        objectives = {name: (np.round(plan.objectives[k], 9) + 0.0).tolist() for k, name in enumerate(plan.config.courses)}
        write_manifest(self._folder, self._identity, objectives, [self.done[k] for k in sorted(self.done)], self.count)


def _source(task: ShardTask, maker: ShardMaker, missing: Sequence[int], workers: int, cluster: str | None) -> Finished:
    hands = 1 if not (workers > 1 or cluster) else 4 * workers
    together = 1 if task.config.pictured else max(1, GROUP_ROLLOUTS // task.config.shard)
    size = max(1, min(together, -(-len(missing) // hands)))
    groups: list[Group] = [missing[k : k + size] for k in range(0, len(missing), size)]
    if cluster or (workers > 1 and len(groups) > 1):
        return made_elsewhere(task, groups, workers, cluster, maker.stages)
    return made_here(maker, groups)


def _whole(folder: Path, digest: str) -> ShardFacts:
    facts = read_facts(folder)
    if facts.digest != digest or facts.name != folder.name:
        raise AssetError(f"{str(folder)!r} belongs to another data set.")
    verify_shard(folder, facts)
    return facts


def _check(workers: int, device: str) -> None:
    if not 1 <= workers <= WORKERS_MAX:
        raise AirworthyError(f"Synthesis got {workers} workers; expected 1 to {WORKERS_MAX}.")
    if device == "cpu":
        return
    wp = quiet_warp()
    known = [found.alias for found in wp.get_devices()]
    if device not in known:
        raise unknown_name("device", device, known, "Devices are the processor and the NVIDIA GPUs of this machine.")


def _check_folder(folder: Path, identity: Mapping[str, Any]) -> None:
    """Refuse a folder that holds something else."""
    path = folder / DATASET_FILE
    if not os.path.lexists(path):
        return
    try:
        manifest, _ = read_manifest(folder)
    except AssetError as error:
        raise AssetError(f"{error} Remove the file and run the same command: shards that are whole are kept.") from error
    if manifest.digest != digest_of(identity):
        raise changed_field(dict(manifest.identity), dict(identity), str(folder))


def _check_space(folder: Path, maker: ShardMaker, missing: Sequence[int]) -> None:
    """Refuse what would not fit on the disk, before anything is made."""
    rollouts = sum(len(maker.sharding.numbers(shard)) for shard in missing)
    needed = rollouts * maker.plan.config.ticks * (_PAIR_BYTES + maker.image_bytes)
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise AirworthyError(
            f"The expert's data would take {needed / 1e6:,.1f} MB more and {str(folder)!r} has {free / 1e6:,.1f} MB left: ask"
            " for fewer or smaller images (`airworthy synthesize --view`, `--repetitions`; `airworthy train visuomotor"
            " --minutes`), or take another disk."
        )


# ---- `run.json`: how the last run went --------------------------------------------------------------------------------------


def write_run(made: Made, command: str, workers: int) -> dict[str, Any]:
    """Write it, and return what it holds.

    Args:
        made: What the run left.
        command: By which it was started.
        workers: Processes.
    """
    flown = made.total("rollouts")
    content = {
        "airworthy": __version__,
        "command": command,
        "hardware": describe_machine(),
        "workers": workers,
        "interrupted": made.interrupted,
        "complete": made.complete,
        **{name: made.total(name) for name in ("rollouts", "kept", "pairs")},
        "keep_rate": made.total("kept") / flown if flown else None,
        "new": dict(made.new),
        "seconds": made.seconds,
        "pairs_per_second": made.new["pairs"] / made.seconds if made.seconds > 0.0 else None,
        "stages_s": {name: made.stages[name] for name in STAGES if name in made.stages},
    }
    write_json(made.folder / RUN_FILE, content)
    return content
