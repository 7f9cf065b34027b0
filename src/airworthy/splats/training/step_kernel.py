"""Builds the kernel that moves Gaussians by one step of Adam where the renderer reads them."""

from __future__ import annotations

from functools import cache
from typing import Any

from airworthy.core.native_kernel import native_kernel, shared_source
from airworthy.splats.native_text import native_source
from airworthy.splats.training.fields import step_numbers

_ARGUMENTS = """
    geometry: float32[]  # read and written: (block, GEOMETRY_ROWS, 16)
    harmonics: float32[]  # read and written: (block, k, 3, 16)
    chunks: float32[]  # read and written: ChunkRow
    order: int32[]  # of tasks
    raw: float32[]  # read and written: (block, RAW_ROWS, 16)
    moments: float32[]  # read and written: (block, 2 * MOVED, 16)
    shade_moments: float32[]  # read and written: (block, 2, k, 3, 16)
    slopes: float32[]  # read, then set to 0: (block, SLOPE_ROWS, 16)
    colour_slopes: float32[]  # read, then set to 0: as harmonics
    settings: float32[]  # SETTINGS
    draw: int32[]  # seed (2), step
    stage: int  # 0: all on a CPU, Gaussians on a GPU; 1: bounds of chunks on a GPU
"""


@cache
def train_step_kernel(prefix: str = "") -> Any:
    """Return the Warp kernel; `prefix` is put before its native text (`#define SCALAR_PATH` makes a CPU run the form of a
    GPU).
    """
    text = native_source("train_step.h", "train_step_task.h").replace(
        "// One step of Adam", shared_source("random.h") + step_numbers() + "\n// One step of Adam", 1
    )
    return native_kernel("splats_train_step", prefix + text, _ARGUMENTS)
