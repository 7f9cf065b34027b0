"""Builds the kernel of the roadmap: a worker takes flights one after the other."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from airworthy.core.native_kernel import native_kernel, shared_source
from airworthy.planners.fast.records import FAR, WINDOW, struct_text
from airworthy.planners.pgo import records


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
