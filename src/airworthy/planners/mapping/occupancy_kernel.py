"""Builds the kernel that puts images into maps: one task takes flights through all stages, or one stage of a part of one."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from airworthy.core.native_kernel import CPU_LANES, native_kernel, shared_source
from airworthy.planners.mapping.boxes import SHELL
from airworthy.planners.mapping.lookup import FAR

_TEXTS = ("lanes.h", "frame.h", "slide.h", "trace.h", "apply.h", "inflate.h", "field.h", "cloud.h", "update.cpp")


def update_source(prefix: str = "") -> str:
    """Complete native source of the update; `#define SCALAR_PATH` as prefix gives a CPU the form of a GPU."""
    folder = files("airworthy.planners.mapping").joinpath("native")
    root = next(d for d in range(FAR) if d * d > FAR)
    names = f"enum {{ CPU_LANES = {CPU_LANES}, SHELL = {SHELL}, FAR = {FAR}, ROOT = {root} }};"
    return "\n".join([prefix, shared_source("prelude.h"), names, *(folder.joinpath(name).read_text() for name in _TEXTS)])


_ARGUMENTS = """
    words: int32[]  # frames, tasks, parts, stages, pixels, numbers per image, sizes, settings
    sizes: int64[]  # work memory of a task
    numbers: float64[]  # cell, longest and least ray, least and most depth, reach x, y, z [m]
    frame_numbers: float64[]  # (k, 18) camera's rotation (9) and place (3), corners of the box (6)
    frame_words: int32[]  # (k, 12) cells, side, window before, window now
    frame_base: int64[]  # (k,) first element of the flight's layers
    rays: float64[]  # (pixels, 2) x and y of the rays at depth 1
    pixel: int32[]  # (pixels,) where in the image they are
    depth: float32[]  # (k, H, W) [m]
    cloud: float64[]  # (k, m, 3) [m]
    # output
    odds: int16[]  # log-odds [1 / 4096]
    inflated: uint8[]
    squared: int16[]  # signed squared distance [cells^2]
    bounds: int32[]  # (k, 6) local bound
    counts: int32[]  # (tasks, size) zero between images
    work: int16[]
"""


@cache
def update_kernel(prefix: str = "") -> Any:
    """Return the update as a Warp kernel; compiled at first launch, then cached on disk."""
    return native_kernel("map_update", update_source(prefix), _ARGUMENTS)
