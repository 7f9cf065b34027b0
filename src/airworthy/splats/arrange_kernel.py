"""Builds the kernel that lists the Gaussians of each tile, front to back."""

from __future__ import annotations

from functools import cache
from typing import Any

from airworthy.core.native_kernel import native_kernel
from airworthy.splats.native_text import native_source

_ARGUMENTS = """
    cameras: float32[]  # CameraRow
    order: int32[]  # of tasks
    records: float32[]  # Record (camera, chunk_stride, CHUNK)
    tags: int32[]  # (camera, chunk_stride, 4, CHUNK)
    counts: int32[]  # CPU: seen and rows (camera, chunk_stride, 2); GPU: running sum of tiles
    scratch: int32[]  # CPU: work, Entry (camera, band, 2, entry_capacity)
    heads: int32[]  # CPU: work (camera, rows, columns)
    keys: int64[]  # GPU: camera and tile, depth
    # output
    tiles: int32[]  # begin and end of each tile's list (camera, rows, columns, 2)
    lists: int32[]  # places of records; CPU: (camera, band, capacity)
    needed: int32[]  # CPU: length of the lists of each band
    chunk_stride: int
    columns: int
    rows: int
    band_rows: int
    entry_capacity: int
    capacity: int
    stage: int
"""


@cache
def arrange_kernel(prefix: str = "") -> Any:
    """Return the Warp kernel; `prefix` is put before its native text (`#define SCALAR_PATH` makes a CPU run the form of a
    GPU).
    """
    return native_kernel("splats_arrange", prefix + native_source("span.h", "arrange.h", "arrange_task.h"), _ARGUMENTS)
