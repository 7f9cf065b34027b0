"""Ways around things: `Roadmaps(settings).run(...)`, many flights in one launch.

A visibility roadmap of guards and connectors is drawn at random between two points, its paths are enumerated, shortened, and of
those that can be deformed into each other in sight one is kept. After Zhou, Gao, Pan and Shen, "Robust Real-time UAV Replanning
Using Guided Gradient-based Optimization and Topological Paths", ICRA 2020. Source: spec/planners section 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayU32
from airworthy.core.native_kernel import native_kernel, shared_source
from airworthy.core.random import Stream, uniforms
from airworthy.planners.fast.records import FAR, WINDOW, as_bytes, struct_text
from airworthy.planners.fast.windows import MapWindows
from airworthy.planners.fast.work import launch_workers, workers_for
from airworthy.planners.pgo import records
from airworthy.planners.pgo.records import (
    ASKED,
    FOUND,
    MOST_CORNERS,
    MOST_DEPTH,
    MOST_ENDS,
    MOST_PATHS,
    MOST_REGION,
    RoadmapSettings,
)

__all__ = ["Question", "RoadmapPaths", "Roadmaps", "roadmap_kernel", "roadmap_source", "sample_numbers"]


# ---- Builds the kernel of the roadmap: a worker takes flights one after the other -----------------------------------------


def roadmap_source() -> str:
    """Complete native source."""
    fast, here = (files(f"airworthy.planners.{room}").joinpath("native") for room in ("fast", "pgo"))
    limits = {name: getattr(records, name) for name in ("MOST_CORNERS", "MOST_DEPTH", "MOST_ENDS", "MOST_PATHS", "MOST_REGION")}
    numbers = ", ".join(f"{name} = {value}" for name, value in {"FAR": int(FAR), **limits}.items())
    text = [shared_source("prelude.h"), f"enum {{ {numbers} }};", struct_text("Window", WINDOW)]
    text += [struct_text("RoadmapAsked", records.ASKED), struct_text("RoadmapFound", records.FOUND)]
    text.append(fast.joinpath("window.h").read_text())
    text += [here.joinpath(name).read_text() for name in ("threefry.h", "sight.h", "roadmap.h", "roadmap_task.h")]
    return "\n".join(text)


_ARGUMENTS = """
    windows: uint8[]  # WINDOW, (windows)
    asked: uint8[]  # ASKED, (count)
    # output
    found: uint8[]  # FOUND, (count)
    # work memory
    work: uint8[]  # (workers, work_size)
    work_size: int
    count: int
    workers: int
"""


@cache
def roadmap_kernel() -> Any:
    """Return the Warp kernel; compiled at first launch, then cached on disk."""
    return native_kernel("roadmap", roadmap_source(), _ARGUMENTS, "worker")


# ---------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Question:
    """Between which points one flight looks for ways."""

    window: int
    """Number of its window."""
    start: Array
    """(3,) [m]"""
    end: Array
    """(3,) [m]"""
    head: Array
    """Flown before the start, (h, 3)."""
    tail: Array
    """Flown after the end, (t, 3)."""
    key: ArrayU32
    """Of its random numbers, (4,): `core.random.flight_key`."""
    attempt: int
    """Which of the flight's roadmaps it is."""


@dataclass(frozen=True, eq=False)
class RoadmapPaths:
    """What was found."""

    paths: list[Array]
    """Corners of each (k, 3) [m], head and tail included."""
    nodes: int
    raw: int
    distinct: int


def sample_numbers(key: ArrayU32, attempt: int, count: int) -> Array:
    """Return the numbers in (0, 1) of one roadmap, (count, 3): a function of the flight's key (4,) and of the attempt's number.

    The twin of what the compiled text draws.

    Args:
        key: Of the flight, (4,) words.
        attempt: Which roadmap of it.
        count: Numbers wanted.
    """
    step = (np.arange(count, dtype=np.uint64) + np.uint64(attempt) * np.uint64(count)).astype(np.uint32)
    return np.ascontiguousarray(uniforms(np.broadcast_to(key, (count, 4)), step, Stream.COURSE, 4)[:, :3])


class Roadmaps:
    """Roadmaps of many flights; owns the work memory.

    Args:
        settings: See `RoadmapSettings`.
    """

    def __init__(self, settings: RoadmapSettings):
        self.settings = s = settings
        assert s.reserve <= MOST_PATHS
        floats = (s.most_paths + 1) * 3 * MOST_CORNERS
        graph = 40 * (s.samples + 2) + 8 * 4 * s.samples
        graph += MOST_REGION + 8
        self._size = -(-(graph + 4 * (s.most_raw * MOST_DEPTH + s.most_raw + s.most_paths + 2) + 8 * floats) // 8) * 8
        self._memory = np.zeros(0, np.uint8)

    def run(self, questions: list[Question], windows: MapWindows) -> list[RoadmapPaths]:
        """Find ways for every question."""
        if not questions:
            return []
        asked, found = np.zeros(len(questions), ASKED), np.zeros(len(questions), FOUND)
        for record, question in zip(asked, questions, strict=True):
            self._fill(record, question)
        workers = workers_for(len(questions))
        if workers * self._size > len(self._memory):
            self._memory = np.empty(workers * self._size, np.uint8)
        arrays = [as_bytes(windows.records), as_bytes(asked), as_bytes(found), self._memory]
        launch_workers(roadmap_kernel(), workers, [*arrays, self._size, len(questions), workers])
        return [_paths(row) for row in found]

    def _fill(self, record: Any, question: Question) -> None:
        s = self.settings
        for name in ("samples", "most_raw", "most_paths", "reserve", "effort", "clearance", "ratio"):
            record[name] = getattr(s, name)
        record["wider"] = s.beyond, s.sideways, s.upright
        record["window"], record["start"], record["end"] = question.window, question.start, question.end
        for name, count, points in (("head", "heads", question.head), ("tail", "tails", question.tail)):
            part = points[:MOST_ENDS]
            record[count] = len(part)
            record[name][: part.size] = part.reshape(-1)
        record["key"], record["attempt"] = question.key.view(np.int32), question.attempt
        record["stream"] = int(Stream.COURSE)


def _paths(row: Any) -> RoadmapPaths:
    points = row["points"].reshape(MOST_PATHS, MOST_CORNERS, 3)
    paths = [points[k, : row["sizes"][k]].copy() for k in range(int(row["paths"]))]
    return RoadmapPaths(paths, int(row["nodes"]), int(row["raw"]), int(row["distinct"]))
