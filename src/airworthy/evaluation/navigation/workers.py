"""Who flies blocks: this process, several, or the machines of a Ray cluster; the same function everywhere."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any

from airworthy.core.workers import WorkerStopped, check_wanted, in_processes, on_cluster
from airworthy.evaluation.navigation.config import NavigationConfig
from airworthy.evaluation.navigation.plan import Block
from airworthy.evaluation.navigation.rows import Row
from airworthy.evaluation.navigation.work import fly_block

__all__ = ["Finished", "WorkerStopped", "flown_by_processes", "flown_here", "flown_on_cluster"]

Result = tuple[list[Row], dict[str, float]]
Finished = Generator[tuple[Block, Result], None, None]
Words = Mapping[str, str]
"""What each pilot is called on the command line, by its name in results."""


def flown_here(blocks: Sequence[Block], words: Words, config: NavigationConfig, told: Callable[[int], None]) -> Finished:
    """Blocks flown by this process, as they are finished."""
    for block in blocks:
        yield block, fly_block(block, words[block.pilot], config, told)


def flown_by_processes(
    blocks: Sequence[Block], words: Words, config: NavigationConfig, told: Callable[[int], None]
) -> Finished:
    """Blocks flown by worker processes, as they are finished.

    Raises:
        AirworthyError: A worker was killed, or could not fly.
    """
    workers = min(config.workers, len(blocks))
    yield from _told_of(in_processes(partial(_fly, words, config), blocks, workers, "finished flights"), told)


def flown_on_cluster(blocks: Sequence[Block], words: Words, config: NavigationConfig, told: Callable[[int], None]) -> Finished:
    """Blocks flown by the machines of a Ray cluster, as they are finished.

    Files of users' own pilots must lie under the same path everywhere.

    Raises:
        ModuleNotFoundError: Ray is not installed (extra `cluster`).
        AirworthyError: There is no cluster at the address, or a machine could not fly.
    """
    yield from _told_of(on_cluster(partial(_fly, words, config), blocks, config.cluster), told)


def _told_of(finished: Generator[Any, None, None], told: Callable[[int], None]) -> Finished:
    with closing(finished):
        for block, result in finished:
            told(len(block.flights))
            yield block, result


def _fly(words: Words, config: NavigationConfig, block: Block) -> Result:
    """In a worker, which looks between flights whether its run still wants it."""
    return fly_block(block, words[block.pilot], config, lambda _flights: check_wanted())
