"""Threads that share work: pools that a fork makes anew, and calls that never leave a thread behind.

A forked child has none of its parent's threads, but all of its memory: a pool whose threads are gone waits for ever, and so
does a lock that another thread held. Whatever is kept for a whole process is therefore kept here, or is registered here.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

__all__ = ["after_fork", "building", "run_at_once", "share"]

Item = TypeVar("Item")

_BUILD_WAIT = 120.0
"""Longest time that a fork waits for kernels that other threads are building [s]; one takes 3 to 30."""

_POOLS: dict[tuple[str, int], ThreadPoolExecutor] = {}
_BUILDING = threading.RLock()


class _Part:
    """Work handed to a thread, which is either waited for or never done.

    Both sides write before they read, so at least one of them sees the other; no step of the waiting side may be lost when an
    interrupt cuts it short and it starts again.
    """

    def __init__(self, work: Callable[[], object]):
        self.error: BaseException | None = None
        self._work = work  # holds what the work uses: memory is not given back under a thread that still runs
        self._begun = self._given_up = False
        self._done = threading.Event()

    def run(self) -> None:
        """On a thread of the pool."""
        self._begun = True
        try:
            if not self._given_up:
                self._work()
        except BaseException as error:
            self.error = error
        finally:
            self._done.set()

    def end(self) -> None:
        """Wait for the work where it has begun, and see to it that it never begins where it has not."""
        self._given_up = True
        if self._begun:
            self._done.wait()

    def finish(self) -> None:
        """Wait for the work, which a thread has or will have."""
        self._done.wait()


def run_at_once(works: Sequence[Callable[[], object]], name: str = "airworthy") -> None:
    """Do several things at once, the first on the calling thread, and return when the last has ended.

    However it is left, by an error or by Ctrl-C, no thread goes on behind it.

    Args:
        works: Called without arguments; what they return is dropped.
        name: Of the pool. Works that themselves call this need a pool of another name.

    Raises:
        BaseException: Whatever a work raised; of several, the first in their order.
    """
    parts = [_Part(work) for work in works[1:]]
    pool = _pool(name, len(parts)) if parts else None
    stopped: BaseException | None = None
    try:
        for part in parts:
            pool.submit(part.run)  # type: ignore[union-attr]
        works[0]()
        for part in parts:
            part.finish()
    finally:
        while True:  # in place, not in a function: an interrupt would find a gap between its call and its `try`
            try:
                for part in parts:
                    part.end()
                break
            except KeyboardInterrupt as again:
                stopped = again
    for error in (stopped, *(part.error for part in parts)):
        if error is not None:
            raise error


def share(function: Callable[[Item], object], items: Iterable[Item], threads: int, name: str = "airworthy") -> None:
    """Call a function for every item on several threads, each taking the next as it gets free; as `run_at_once`.

    Args:
        function: Called with each item, in no order.
        items: Taken from one thread at a time.
        threads: The calling one among them.
        name: Of the pool.
    """
    source, turn = iter(items), threading.Lock()
    failed: list[BaseException] = []

    def work() -> None:
        for item in _turns(source, turn):
            if failed:
                return
            try:
                function(item)
            except BaseException as error:
                failed.append(error)
                raise

    run_at_once([work] * max(1, threads), name)


def _turns(source: Iterator[Item], turn: threading.Lock) -> Iterator[Item]:
    while True:
        with turn:
            try:
                item = next(source)
            except StopIteration:
                return
        yield item


def _pool(name: str, threads: int) -> ThreadPoolExecutor:
    """Return a pool that stays; made by one thread alone, since two of one name would double the threads."""
    found = _POOLS.get((name, threads))
    if found is None:
        found = _POOLS.setdefault((name, threads), ThreadPoolExecutor(threads, thread_name_prefix=name))
    return found


# ---- forks -----------------------------------------------------------------------------------------------------------


def after_fork(function: Callable[[], object]) -> None:
    """Call a function in every forked child before its program goes on; nothing where processes do not fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)


@contextmanager
def building() -> Iterator[None]:
    """Hold a lock while a kernel is built: forks of other threads wait, or the child would inherit half of it."""
    with _BUILDING:
        yield


def _warp_lock() -> Any:
    """Warp's own lock over its modules, which each launch takes; None where Warp is not loaded or has none."""
    return getattr(sys.modules.get("warp._src.codegen"), "_codegen_lock", None)


_TAKEN: list[Any] = []
"""Locks that the thread which forks now has taken for it."""


def _before_fork() -> None:
    for lock in (_BUILDING, _warp_lock()):
        if lock is not None and lock.acquire(timeout=_BUILD_WAIT):
            _TAKEN.append(lock)


def _release() -> None:
    while _TAKEN:
        _TAKEN.pop().release()


def _in_child() -> None:
    _POOLS.clear()
    _release()
    if sys.version_info < (3, 12):
        _renew_property_locks()


def _renew_property_locks() -> None:
    """`functools.cached_property` has one lock for all objects until Python 3.12; another thread may have held it."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "airworthy":
            for kind in [item for item in vars(module).values() if isinstance(item, type)]:
                for made in vars(kind).values():
                    if isinstance(made, functools.cached_property) and hasattr(made, "lock"):
                        made.lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_release, after_in_child=_in_child)
