"""Who makes shards: this process, several, or the machines of a Ray cluster; the same function everywhere."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Any

from airworthy.core.workers import check_wanted, in_processes, on_cluster
from airworthy.learning.datasets.making import ShardMaker, ShardTask
from airworthy.learning.datasets.shard_files import ShardFacts
from airworthy.learning.synthesis.stages import Stages

__all__ = ["Finished", "Group", "made_by_processes", "made_here", "made_on_cluster"]

Group = Sequence[int]
"""Shards that are made together."""
Seconds = dict[str, float]
Finished = Iterator[tuple[int, ShardFacts]]


def made_here(maker: ShardMaker, groups: Sequence[Group]) -> Finished:
    """Shards made by this process, as they are finished."""
    for group in groups:
        yield from zip(group, maker.make(group), strict=True)


def made_by_processes(task: ShardTask, groups: Sequence[Group], workers: int, stages: Stages) -> Finished:
    """Shards made by worker processes, as they are finished.

    Raises:
        AirworthyError: A worker could not write, or was killed.
    """
    return _told(in_processes(partial(_made, task), groups, workers, "finished shards"), stages)


def made_on_cluster(task: ShardTask, groups: Sequence[Group], address: str, stages: Stages) -> Finished:
    """Shards made by the machines of a Ray cluster, as they are finished; all must see the folder under the same path.

    Raises:
        ModuleNotFoundError: Ray is not installed (extra `cluster`).
        AirworthyError: There is no cluster at the address, or a machine could not write.
    """
    return _told(on_cluster(partial(_made, task), [list(group) for group in groups], address), stages)


def _told(finished: Generator[tuple[Any, tuple[list[ShardFacts], Seconds]], None, None], stages: Stages) -> Finished:
    """Shards of groups, one after the other; what they took is added up."""
    with closing(finished):
        for group, (facts, seconds) in finished:
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
