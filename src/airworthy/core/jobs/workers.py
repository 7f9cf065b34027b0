"""Work that processes, or the machines of a Ray cluster, share: results as they come, and an end without stragglers."""

from __future__ import annotations

import importlib
import os
import signal
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import Any, TypeVar

from airworthy.core.errors import AirworthyError
from airworthy.core.jobs.parent_watch import watch_parent
from airworthy.core.native_kernel import thread_limit

__all__ = ["WorkerStopped", "check_wanted", "in_processes", "on_cluster", "shared"]

Item = TypeVar("Item")
Result = TypeVar("Result")

_STATE: dict[str, Any] = {}
"""Of this process where it is a worker: the event that its run sets when it ends."""


class WorkerStopped(AirworthyError):
    """The run that a worker belonged to does not want its work any more."""


def in_processes(
    function: Callable[[Item], Result], items: Sequence[Item], workers: int, kept: str
) -> Generator[tuple[Item, Result], None, None]:
    """Yield items and what came of them in worker processes, as they are finished. Close the iterator to end early.

    Args:
        function: Called in a worker, which imports it: of a module, or a `functools.partial` of such a one.
        items: What is to be done.
        workers: Processes; they share the processors.
        kept: What a run keeps when a worker was killed ("finished shards"), for the message.

    Raises:
        AirworthyError: A worker was killed, or whatever the function raised.
    """
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool

    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    threads = max(1, thread_limit() // workers)
    pool = ProcessPoolExecutor(workers, context, _begin, (os.getpid(), stop, threads))
    try:
        futures = {pool.submit(_called, function, item): item for item in items}
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BrokenProcessPool:
        raise AirworthyError(
            f"A worker process was killed, perhaps for want of memory: {kept} are kept; run the same command again,"
            " with fewer --workers."
        ) from None
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


def on_cluster(
    function: Callable[[Item], Result], items: Sequence[Item], address: str | None
) -> Generator[tuple[Item, Result], None, None]:
    """Yield items and what came of them on the machines of a Ray cluster, as they are finished; one processor each.

    Args:
        function: Called there; files that it names must lie under the same path everywhere.
        items: What is to be done.
        address: Of the cluster: "auto", "local" or HOST:PORT.

    Raises:
        ModuleNotFoundError: Ray is not installed (extra `cluster`).
        AirworthyError: There is no cluster at the address, or whatever the function raised.
    """
    ray: Any = importlib.import_module("ray")
    try:
        ray.init(None if address == "local" else address, include_dashboard=False, log_to_driver=False, configure_logging=False)
    except (OSError, RuntimeError, ValueError) as error:
        # Ray's messages run over pages; their first line says what happened.
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200].rstrip(".")
        raise AirworthyError(f"There is no Ray cluster at {address!r}: {reason}. Give auto, local, or HOST:PORT.") from error
    try:
        # Machines of a cluster come and go: an item whose machine went is done again elsewhere.
        remote = ray.remote(num_cpus=1, max_retries=3)(_called_alone)
        waiting = {remote.remote(function, item): item for item in items}
        while waiting:
            ready, _ = ray.wait(list(waiting), num_returns=1)
            yield waiting.pop(ready[0]), _result(ray, ready[0])
    finally:
        ray.shutdown()


def shared(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    workers: int,
    kept: str,
    cluster: str | None = None,
    here: Callable[[Item], Result] | None = None,
    came: Callable[[Item], None] = lambda item: None,
) -> Generator[tuple[Item, Result], None, None]:
    """Yield items and what came of them, as they are finished: here, in worker processes, or on the machines of a Ray cluster.

    Args:
        function: See `in_processes` and `on_cluster`; the same wherever it is done.
        items: What is to be done.
        workers: Processes, of which there are never more than items; with one, it is done by this process, in order.
        kept: What a run keeps when a worker was killed ("finished shards"), for the message.
        cluster: Address of a Ray cluster; where there is one, `workers` does not count.
        here: Called instead of the function by this process, for which it may tell of progress inside an item.
        came: Told of each item that was done elsewhere, before it is given on.

    Raises:
        ModuleNotFoundError: Ray is not installed (extra `cluster`).
        AirworthyError: There is no cluster at the address, a worker was killed, or whatever the function raised.
    """
    if not cluster and (workers <= 1 or len(items) <= 1):
        for item in items:
            yield item, (here or function)(item)
        return
    many = on_cluster(function, items, cluster) if cluster else in_processes(function, items, min(workers, len(items)), kept)
    # A run that stops in the middle must end its workers, which a generator's own end would do at some later time.
    with closing(many):
        for item, result in many:
            came(item)
            yield item, result


def check_wanted() -> None:
    """Raise WorkerStopped in a worker whose run has ended; to be called now and then by long work, wherever it is done."""
    stop = _STATE.get("stop")
    if stop is not None and stop.is_set():
        raise WorkerStopped("The run that this worker belonged to has ended.")


def _result(ray: Any, reference: Any) -> Any:
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, AirworthyError):
            raise AirworthyError(str(error.cause)) from None
        raise


# ---- in the workers -------------------------------------------------------------------------------------------------


def _begin(parent: int, stop: Any, threads: int) -> None:
    """Start a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the run tells its workers itself
    os.environ["AIRWORTHY_THREADS"] = str(threads)
    watch_parent(parent)  # one that waits for its next item would never be told that its run was killed
    _STATE["stop"] = stop


def _called(function: Callable[[Item], Result], item: Item) -> Result:
    check_wanted()
    return function(item)


def _called_alone(function: Callable[[Item], Result], item: Item) -> Result:
    """As a cluster's machine is asked; one processor each."""
    os.environ["AIRWORTHY_THREADS"] = "1"
    return function(item)
