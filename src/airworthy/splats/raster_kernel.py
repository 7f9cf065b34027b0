"""Builds the kernel that composites pixels: 16 at a time on a CPU, one per thread on a GPU, from one text."""

from __future__ import annotations

from functools import cache
from typing import Any

from airworthy.core.native_kernel import native_kernel
from airworthy.splats.native_text import native_source

_ARGUMENTS = """
    cameras: float32[]  # CameraRow
    order: int32[]  # of tasks
    records: float32[]  # Record (camera, chunk_stride, CHUNK)
    tiles: int32[]  # begin and end of each tile's list (camera, rows, columns, 2)
    lists: int32[]  # places of records; CPU: (camera, band, capacity)
    limits: float32[]  # depth beyond which nothing is blended (camera, height, width)
    # output
    rgb: float32[]  # (camera, height, width, 3)
    depth: float32[]  # (camera, height, width)
    alpha: float32[]  # (camera, height, width)
    chunk_stride: int
    width: int
    height: int
    band_rows: int
    capacity: int
    flags: int
"""


@cache
def raster_kernel(prefix: str = "") -> Any:
    """Return the Warp kernel; `prefix` is put before its native text (`#define SCALAR_PATH` makes a CPU run the form of a
    GPU).
    """
    return native_kernel("splats_raster", prefix + native_source("raster.h", "raster_task.h"), _ARGUMENTS)
