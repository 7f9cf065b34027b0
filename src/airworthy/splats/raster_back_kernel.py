"""Builds the kernel that carries derivatives of pixels back to the Gaussians in an image, on a CPU and on a GPU."""

from __future__ import annotations

from functools import cache
from typing import Any

from airworthy.core.native_kernel import native_kernel
from airworthy.splats.native_text import native_source

_ARGUMENTS = """
    cameras: float32[]  # CameraRow
    order: int32[]  # of tasks; on a CPU
    records: float32[]  # Record (camera, chunk_stride, CHUNK)
    counts: int32[]  # seen and rows (camera, chunk_stride, 2); or ends of the records' places in the list
    tiles: int32[]  # begin and end of each tile's list (camera, rows, columns, 2)
    lists: int32[]  # places of records (camera, band, capacity); or all in one
    owners: int32[]  # output of the first stage: of each place in the one list, number of the record
    places: int32[]  # likewise the place; later in the order of the owners
    limits: float32[]  # depth beyond which nothing was blended (camera, height, width)
    seen_rgb: float32[]  # images (camera, height, width, 3)
    seen_depth: float32[]  # (camera, height, width)
    seen_alpha: float32[]
    rgb: float32[]  # derivatives of the loss, as the images
    depth: float32[]
    alpha: float32[]
    used: int32[]  # work: how much of each tile's list was walked (camera, rows, columns)
    partials: float32[]  # work: of each place in the lists, 16 numbers
    record_slopes: float32[]  # output: of each record, 16 numbers
    chunk_stride: int
    width: int
    height: int
    band_rows: int  # of tiles; 0: one list for all
    capacity: int
    flags: int
    stage: int  # BACK_TILES, BACK_CAMERAS or BACK_RECORDS
"""


@cache
def raster_back_kernel() -> Any:
    """Return the Warp kernel."""
    text = native_source("raster.h", "group.h", "raster_back.h", "raster_back_task.h")
    return native_kernel("splats_raster_back", text, _ARGUMENTS)
