"""Launches of compiled code whose workers take flights one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayAny
from airworthy.core.native_kernel import quiet_launch, quiet_warp, thread_limit
from airworthy.core.threads import run_at_once
from airworthy.planners.fast.kernel import PlanTask, planning_kernel
from airworthy.planners.fast.records import SEARCH_SETTINGS, as_bytes
from airworthy.planners.fast.windows import MapWindows

__all__ = ["PlannerWork", "launch_workers", "workers_for"]


def workers_for(count: int) -> int:
    """Workers for so many flights: one per thread that may be used, at most one per flight."""
    return max(1, min(thread_limit(), count))


class PlannerWork:
    """Launches of the planning kernel, and the memory that its workers need.

    Args:
        size: Bytes of work memory of a worker.
        slots: Entries of the hash table of a worker.
        settings: `records.SEARCH_SETTINGS`, (1,); None for tasks that do not read them.
    """

    def __init__(self, size: int, slots: int = 1, settings: ArrayAny | None = None):
        self._size, self._slots = -(-size // 8) * 8, slots
        self._settings = as_bytes(np.zeros(1, SEARCH_SETTINGS) if settings is None else settings)
        self._memory = np.zeros(0, np.uint8)
        self._tables = np.zeros(0, np.int32)

    def launch(self, task: PlanTask, windows: MapWindows, asked: ArrayAny, found: ArrayAny | None = None) -> None:
        """Do a task for all records (k,), each worker on a thread of its own.

        Which worker has a flight changes nothing of its result: work memory is as new for each.

        Args:
            task: What to do.
            windows: Occupancy that the records name by number.
            asked: Records (k,), read, and of some tasks filled in place.
            found: Records (k,) to be filled; None: the task fills `asked`.
        """
        count = len(asked)
        if count == 0:
            return
        workers = workers_for(count)
        if workers * self._size > len(self._memory):
            self._memory = np.empty(workers * self._size, np.uint8)
            self._tables = np.full(workers * self._slots, -1, np.int32)
        out = np.zeros(1, np.uint8) if found is None else as_bytes(found)
        arrays = [self._settings, as_bytes(windows.records), as_bytes(asked), out, self._memory, self._tables]
        numbers = [self._size, self._slots, count, workers, int(task)]
        launch_workers(planning_kernel(), workers, [*arrays, *numbers])


def launch_workers(kernel: Any, workers: int, arguments: list[Any]) -> None:
    """Run a kernel of `workers` tasks, each on a thread of its own; its last argument is the first task.

    Which worker has a flight changes nothing of its result: work memory is as new for each.

    Args:
        kernel: Compiled, for a CPU.
        workers: Tasks of the launch.
        arguments: All but the number of the task.
    """
    wp = quiet_warp()
    inputs = [wp.array(a, device="cpu", copy=False) if isinstance(a, np.ndarray) else a for a in arguments]
    if workers == 1:
        quiet_launch(kernel, 1, [*inputs, 0], "cpu")
        return
    parts = [quiet_launch(kernel, 1, [*inputs, w], "cpu", record=True) for w in range(workers)]
    run_at_once([part.launch for part in parts], "airworthy-planning")
