"""Who makes shards: this process, several, or the machines of a Ray cluster; the same function everywhere."""

from __future__ import annotations

import importlib
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import thread_limit
from airworthy.learning.datasets.making import ShardMaker, ShardTask
from airworthy.learning.datasets.shard_files import ShardFacts
from airworthy.learning.synthesis.stages import Stages

__all__ = ["Finished", "Group", "made_by_processes", "made_here", "made_on_cluster"]

Group = Sequence[int]
"""Shards that are made together."""
Seconds = dict[str, float]
Finished = Iterator[tuple[int, ShardFacts]]


class WorkerStopped(AirworthyError):
    """The run that a worker belonged to does not want its shard any more."""


def made_here(maker: ShardMaker, groups: Sequence[Group]) -> Finished:
    """Shards made by this process, as they are finished."""
    for group in groups:
        yield from zip(group, maker.make(group), strict=True)


def made_by_processes(task: ShardTask, groups: Sequence[Group], workers: int, stages: Stages) -> Finished:
    """Shards made by worker processes, as they are finished.

    Raises:
        AirworthyError: A worker could not write, or was killed.
    """
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool

    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    threads = max(1, thread_limit() // workers)
    pool = ProcessPoolExecutor(workers, context, _begin, (task, os.getpid(), stop, threads))
    try:
        futures = {pool.submit(_make, group): group for group in groups}
        for future in as_completed(futures):
            facts, seconds = future.result()
            stages.add(seconds)
            yield from zip(futures[future], facts, strict=True)
    except BrokenProcessPool:
        raise AirworthyError(
            "A worker process was killed, perhaps for want of memory: finished shards are kept; run the same command again,"
            " with fewer --workers."
        ) from None
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


def made_on_cluster(task: ShardTask, groups: Sequence[Group], address: str, stages: Stages) -> Finished:
    """Shards made by the machines of a Ray cluster, as they are finished; all must see the folder under the same path.

    Raises:
        ModuleNotFoundError: Ray is not installed (extra `cluster`).
        AirworthyError: There is no cluster at the address, or a machine could not write.
    """
    ray: Any = importlib.import_module("ray")
    try:
        ray.init(None if address == "local" else address, include_dashboard=False, log_to_driver=False, configure_logging=False)
    except (OSError, RuntimeError, ValueError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200].rstrip(".")
        raise AirworthyError(f"There is no Ray cluster at {address!r}: {reason}. Give auto, local, or HOST:PORT.") from error
    try:
        remote = ray.remote(num_cpus=1, max_retries=3)(_make_for)
        waiting = {remote.remote(task, list(group)): group for group in groups}
        while waiting:
            ready, _ = ray.wait(list(waiting), num_returns=1)
            facts, seconds = _result(ray, ready[0])
            stages.add(seconds)
            yield from zip(waiting.pop(ready[0]), facts, strict=True)
    finally:
        ray.shutdown()


def _result(ray: Any, reference: Any) -> tuple[list[ShardFacts], Seconds]:
    try:
        found: tuple[list[ShardFacts], Seconds] = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, AirworthyError):
            raise AirworthyError(str(error.cause)) from None
        raise
    return found


# ---- in the workers -------------------------------------------------------------------------------------------------

_WATCH = 0.5
"""How often a worker looks for its run [s]."""
_STATE: dict[str, Any] = {}
"""Of this worker: its maker, and what the maker is for."""


def _begin(task: ShardTask, parent: int, stop: Any, threads: int) -> None:
    """A worker process starts."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the run tells its workers itself
    os.environ["AIRWORTHY_THREADS"] = str(threads)

    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()

    def alive() -> None:
        if stop.is_set():
            raise WorkerStopped("The run that this worker belonged to has ended.")

    _STATE.update(task=task, alive=alive)


def _end_with(parent: int) -> None:
    """End this process soon after its run was killed: a worker that waits for its next task would never be told."""
    while os.getppid() == parent:
        time.sleep(_WATCH)
    os._exit(1)


def _make(group: Group) -> tuple[list[ShardFacts], Seconds]:
    _STATE["alive"]()
    return _made(_STATE["task"], group, _STATE["alive"])


def _make_for(task: ShardTask, group: Group) -> tuple[list[ShardFacts], Seconds]:
    """As a cluster's machine is asked; one processor each."""
    os.environ["AIRWORTHY_THREADS"] = "1"
    return _made(task, group, lambda: None)


def _made(task: ShardTask, group: Group, alive: Any) -> tuple[list[ShardFacts], Seconds]:
    if _STATE.get("made_for") != task:
        _STATE.update(maker=ShardMaker(task, alive=alive), made_for=task)
    maker: ShardMaker = _STATE["maker"]
    facts = list(maker.make(group))
    seconds, maker.stages.seconds = maker.stages.seconds, {}
    return facts, seconds
