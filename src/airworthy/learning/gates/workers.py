"""Who searches shards: this process or several; the same function everywhere."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from airworthy.core.workers import in_processes
from airworthy.learning.gates.config import GatesConfig

__all__ = ["Task", "made_by_processes", "made_here"]

Made = Generator[tuple[int, dict[str, Any]], None, None]
"""Shards that are finished, and what `gates.json` tells of them."""


@dataclass(frozen=True)
class Task:
    """What a worker needs to know."""

    config: GatesConfig
    folder: Path
    device: str


def made_here(task: Task, shards: Sequence[int]) -> Made:
    """Shards made by this process, as they are finished."""
    from airworthy.learning.gates.job import make_shard

    for shard in shards:
        yield shard, make_shard(task, shard)


def made_by_processes(task: Task, shards: Sequence[int], workers: int) -> Made:
    """Shards made by worker processes, as they are finished.

    Raises:
        AirworthyError: A worker could not write, or was killed.
    """
    from airworthy.learning.gates.job import make_shard

    return in_processes(partial(make_shard, task), shards, workers, "finished shards")
