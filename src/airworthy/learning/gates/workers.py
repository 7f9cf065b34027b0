"""Who searches shards: this process or several; the same function everywhere."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import thread_limit
from airworthy.learning.gates.config import GatesConfig

__all__ = ["Task", "made_by_processes", "made_here"]

_WATCH = 0.5
"""How often a worker looks for its run [s]."""


@dataclass(frozen=True)
class Task:
    """What a worker needs to know."""

    config: GatesConfig
    folder: Path
    device: str


def made_here(task: Task, shards: Sequence[int]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Shards made by this process, as they are finished."""
    from airworthy.learning.gates.job import make_shard

    for shard in shards:
        yield shard, make_shard(task, shard)


def made_by_processes(task: Task, shards: Sequence[int], workers: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Shards made by worker processes, as they are finished.

    Raises:
        AirworthyError: A worker could not write, or was killed.
    """
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool

    threads = max(1, thread_limit() // workers)
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _begin, (os.getpid(), threads))
    try:
        futures = {pool.submit(_make, task, shard): shard for shard in shards}
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BrokenProcessPool:
        raise AirworthyError(
            "A worker process was killed, perhaps for want of memory: finished shards are kept; run the same command again,"
            " with fewer --workers."
        ) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _begin(parent: int, threads: int) -> None:
    """A worker process starts: Ctrl-C and SIGTERM are its run's to judge, and it ends soon after its run was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["AIRWORTHY_THREADS"] = str(threads)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_WATCH)
    os._exit(1)


def _make(task: Task, shard: int) -> dict[str, Any]:
    from airworthy.learning.gates.job import make_shard

    return make_shard(task, shard)
