"""Builds the kernel that carries derivatives of Gaussians in images back to those in space, on a CPU and on a GPU."""

from __future__ import annotations

from functools import cache
from typing import Any

from airworthy.core.native_kernel import native_kernel
from airworthy.splats.native_text import native_source

_ARGUMENTS = """
    geometry: float32[]  # (block, GEOMETRY_ROWS, 16)
    harmonics: float32[]  # (block, k, 3, 16)
    chunks: float32[]  # ChunkRow
    cameras: float32[]  # CameraRow
    order: int32[]  # of tasks; on a CPU
    tags: int32[]  # (camera, chunk_stride, 4, CHUNK)
    counts: int32[]  # seen and rows (camera, chunk_stride, 2); or ends of the records' places in the list
    record_slopes: float32[]  # of each record, 16 numbers
    slopes: float32[]  # output, added to: (block, SLOPE_ROWS, 16)
    colour_slopes: float32[]  # output, added to: as harmonics
    pose_slopes: float32[]
    touched: bool[]  # output: chunks that were seen
    chunk_stride: int
    image_count: int
    width: int
    height: int
    flags: int
    packed: int  # whether what was seen of a chunk lies at its beginning
    near: float
    dilation: float
"""


@cache
def project_back_kernel() -> Any:
    """Return the Warp kernel."""
    text = native_source("project.h", "group.h", "lens_back.h", "project_back.h", "project_back_task.h")
    return native_kernel("splats_project_back", text, _ARGUMENTS)
