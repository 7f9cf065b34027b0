"""Builds the kernel of the planners' compiled work: searches, optimisation of splines, watching plans. One task, one worker."""

from __future__ import annotations

from enum import IntEnum
from functools import cache
from importlib.resources import files
from typing import Any

from airworthy.core.native_kernel import native_kernel, shared_source
from airworthy.planners.common.lbfgs import lbfgs_source
from airworthy.planners.fast import records

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
