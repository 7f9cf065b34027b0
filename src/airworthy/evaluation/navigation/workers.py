"""Who flies blocks: this process, several, or the machines of a Ray cluster; the same function everywhere."""

from __future__ import annotations

import importlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import thread_limit
from airworthy.evaluation.navigation.config import NavigationConfig
from airworthy.evaluation.navigation.plan import Block
from airworthy.evaluation.navigation.rows import Row
from airworthy.evaluation.navigation.work import fly_block

__all__ = ["Finished", "WorkerStopped", "flown_by_processes", "flown_here", "flown_on_cluster"]

Result = tuple[list[Row], dict[str, float]]
Finished = Iterator[tuple[Block, Result]]
Words = Mapping[str, str]
"""What each pilot is called on the command line, by its name in results."""


class WorkerStopped(AirworthyError):
    """The run that a worker belonged to does not want its block any more."""


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
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool

    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    workers = min(config.workers, len(blocks))
    threads = max(1, thread_limit() // workers)
    pool = ProcessPoolExecutor(workers, context, _begin, (os.getpid(), stop, threads))
    try:
        futures = {pool.submit(_fly, block, words[block.pilot], config): block for block in blocks}
        for future in as_completed(futures):
            block = futures[future]
            result = future.result()
            told(len(block.flights))
            yield block, result
    except BrokenProcessPool:
        raise AirworthyError(
            "A worker process was killed, perhaps for want of memory: finished flights are kept; run the same command again,"
            " with fewer --workers."
        ) from None
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


def flown_on_cluster(blocks: Sequence[Block], words: Words, config: NavigationConfig, told: Callable[[int], None]) -> Finished:
    """Blocks flown by the machines of a Ray cluster, as they are finished.

    Files of users' own pilots must lie under the same path everywhere.

    Raises:
        ModuleNotFoundError: Ray is not installed (extra `cluster`).
        AirworthyError: There is no cluster at the address, or a machine could not fly.
    """
    ray: Any = importlib.import_module("ray")
    address = config.cluster
    try:
        ray.init(None if address == "local" else address, include_dashboard=False, log_to_driver=False, configure_logging=False)
    except (OSError, RuntimeError, ValueError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200].rstrip(".")
        raise AirworthyError(f"There is no Ray cluster at {address!r}: {reason}. Give auto, local, or HOST:PORT.") from error
    try:
        remote = ray.remote(num_cpus=1, max_retries=3)(_fly_alone)
        waiting = {remote.remote(block, words[block.pilot], config): block for block in blocks}
        while waiting:
            ready, _ = ray.wait(list(waiting), num_returns=1)
            block = waiting.pop(ready[0])
            result = _result(ray, ready[0])
            told(len(block.flights))
            yield block, result
    finally:
        ray.shutdown()


def _result(ray: Any, reference: Any) -> Result:
    try:
        found: Result = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, AirworthyError):
            raise AirworthyError(str(error.cause)) from None
        raise
    return found


# ---- in the workers -------------------------------------------------------------------------------------------------

_WATCH = 0.5
"""How often a worker looks for its run [s]."""
_STATE: dict[str, Any] = {}


def _begin(parent: int, stop: Any, threads: int) -> None:
    """A worker process starts."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the run tells its workers itself
    os.environ["AIRWORTHY_THREADS"] = str(threads)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    _STATE["stop"] = stop


def _end_with(parent: int) -> None:
    """End this process soon after its run was killed: a worker that waits for its next block would never be told."""
    while os.getppid() == parent:
        time.sleep(_WATCH)
    os._exit(1)


def _alive(flights: int) -> None:
    if _STATE["stop"].is_set():
        raise WorkerStopped("The run that this worker belonged to has ended.")


def _fly(block: Block, word: str, config: NavigationConfig) -> Result:
    _alive(0)
    return fly_block(block, word, config, _alive)


def _fly_alone(block: Block, word: str, config: NavigationConfig) -> Result:
    """As a cluster's machine is asked; one processor each."""
    os.environ["AIRWORTHY_THREADS"] = "1"
    return fly_block(block, word, config)
