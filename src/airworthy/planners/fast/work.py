"""Launches of compiled code whose workers take flights one after the other.

Builds the kernel of the planners' compiled work: searches, optimisation of splines, watching plans. One task, one worker.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayAny
from airworthy.core.native_kernel import native_kernel, quiet_launch, quiet_warp, shared_source, thread_limit
from airworthy.core.threads import run_at_once
from airworthy.planners.common.lbfgs import lbfgs_source
from airworthy.planners.fast import records
from airworthy.planners.fast.records import SEARCH_SETTINGS, as_bytes
from airworthy.planners.fast.windows import MapWindows

__all__ = [
    "BEFORE",
    "STRUCTS",
    "TEXTS",
    "PlanTask",
    "PlannerWork",
    "launch_workers",
    "planning_kernel",
    "planning_source",
    "workers_for",
]


BEFORE = ("window.h", "boundary.h", "kino_search.h", "spline_costs.h", "time_adjustment.h")
STRUCTS = {
    "Window": records.WINDOW,
    "Settings": records.SEARCH_SETTINGS,
    "Problem": records.PROBLEM,
    "Found": records.FOUND,
    "Descent": records.DESCENT,
    "Watch": records.WATCH,
    "Probe": records.PROBE,
}


class PlanTask(IntEnum):
    """What a launch does."""

    SEARCH = 0
    DESCEND = 1
    WATCH = 2
    PROBE = 3


TEXTS = {
    PlanTask.SEARCH: "kino_task.h",
    PlanTask.DESCEND: "descent_task.h",
    PlanTask.WATCH: "watch_task.h",
    PlanTask.PROBE: "probe_task.h",
}


def planning_source() -> str:
    """Complete native source."""
    folder = files("airworthy.planners.fast").joinpath("native")
    outcomes = ", ".join(f"{o.name} = {o.value}" for o in records.Outcome)
    numbers = f"CLOSED = -2, MOST_STEPS = {records.MOST_STEPS}, MOST_POINTS = {records.MOST_POINTS}"
    text = [shared_source("prelude.h"), f"enum {{ {numbers}, {outcomes} }};", f"enum {{ FAR = {int(records.FAR)} }};"]
    text += [records.struct_text(name, record) for name, record in STRUCTS.items()]
    text += [folder.joinpath(name).read_text() for name in BEFORE]
    text += [lbfgs_source("SplineCosts"), files("airworthy.planners.common").joinpath("native", "bspline.h").read_text()]
    for task, name in TEXTS.items():
        text.append(f"if (task == {task.value}) {{\n{folder.joinpath(name).read_text()}\n}}")
    return "\n".join(text)


_ARGUMENTS = """
    settings: uint8[]  # SEARCH_SETTINGS
    windows: uint8[]  # WINDOW, (windows)
    asked: uint8[]  # PROBLEM, DESCENT or WATCH, (count)
    # output
    found: uint8[]  # FOUND, (count)
    # work memory
    work: uint8[]  # (workers, work_size)
    tables: int32[]  # (workers, slots), -1 before and after
    work_size: int
    slots: int
    count: int
    workers: int
    task: int
"""


@cache
def planning_kernel() -> Any:
    """Return the Warp kernel; compiled at first launch, then cached on disk."""
    return native_kernel("planning", planning_source(), _ARGUMENTS, "worker")


def workers_for(count: int) -> int:
    """Return workers for so many flights: one per thread that may be used, at most one per flight."""
    return max(1, min(thread_limit(), count))


class PlannerWork:
    """Launches of the planning kernel, and the memory that its workers need.

    Args:
        size: Bytes of work memory of a worker.
        slots: Entries of the hash table of a worker.
        settings: `records.SEARCH_SETTINGS`, (1,); None for tasks that do not read them.
    """

    def __init__(self, size: int, slots: int = 1, settings: ArrayAny | None = None):
        # Whole doubles: each worker's share begins where a double may lie.
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
            # Tasks leave their table as they found it, so that it is filled once and not for each flight.
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
    # Warp runs a CPU launch on one thread: as many launches of one task each, at once, are as many threads.
    parts = [quiet_launch(kernel, 1, [*inputs, w], "cpu", record=True) for w in range(workers)]
    run_at_once([part.launch for part in parts], "airworthy-planning")
