"""Builds the kernel that projects Gaussians: 16 at a time on a CPU, one per thread on a GPU, from one text."""

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
    order: int32[]  # of tasks
    # output
    records: float32[]  # Record (camera, chunk_stride, CHUNK)
    tags: int32[]  # (camera, chunk_stride, 4, CHUNK)
    counts: int32[]  # CPU: seen and rows (camera, chunk_stride, 2); GPU: tiles of each Gaussian
    chunk_stride: int
    width: int
    height: int
    flags: int
    near: float
    dilation: float
"""


@cache
def project_kernel(prefix: str = "") -> Any:
    """Return the Warp kernel; `prefix` is put before its native text (`#define SCALAR_PATH` makes a CPU run the form of a
    GPU).
    """
    return native_kernel("splats_project", prefix + native_source("project.h", "span.h", "project_task.h"), _ARGUMENTS)
