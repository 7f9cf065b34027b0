"""The kernel that casts rays: tables of rays from cameras, or single segments."""

from __future__ import annotations

from functools import cache
from typing import Any

from airworthy.core.native_kernel import native_kernel
from airworthy.geometry.native_text import BATCH_ARGUMENTS, BATCH_SIGNATURE, native_source

PACKETS_PER_TASK = 16
"""Packets of 16 rays that one CPU task covers; as in `native/cast.h`."""
RAY_ROWS = 7
"""Numbers per ray of a table: direction, its part along the axis, origin."""

CHANNELS: dict[str, tuple[int, int, bool]] = {
    "range": (1, 1, False),
    "depth": (2, 1, False),
    "point_world": (4, 3, False),
    "point_sensor": (8, 3, False),
    "instance": (16, 1, True),
    "instance_id": (32, 1, True),
    "semantic_id": (64, 1, True),
    "face": (128, 1, True),
    "barycentric": (256, 2, False),
    "normal_world": (512, 3, False),
    "normal_sensor": (1024, 3, False),
    "local_point": (2048, 3, False),
}
"""Name -> flag, numbers per ray, whether whole; in the order of the kernel's outputs."""
OWN_ORIGINS, COLUMNS, SEGMENTS = 4096, 8192, 16384

INPUTS = (*BATCH_ARGUMENTS, "rays", "pixels", "cameras", "task_order")
"""Arrays before the outputs; after these come packets, pixels, width, flags, longest range and the first task."""


_ARGUMENTS = """
    rays: float32[]
    pixels: int32[]
    cameras: float32[]
    task_order: int32[]
    out_range: float32[]
    out_depth: float32[]
    out_point_world: float32[]
    out_point_sensor: float32[]
    out_instance: int32[]
    out_instance_id: int32[]
    out_semantic_id: int32[]
    out_face: int32[]
    out_barycentric: float32[]
    out_normal_world: float32[]
    out_normal_sensor: float32[]
    out_local_point: float32[]
    packets: int
    pixel_count: int
    width: int
    flags: int
    max_range: float
"""


@cache
def cast_kernel(prefix: str = "") -> Any:
    """Return the Warp kernel; `prefix` is put before its native text (`#define SCALAR_PATH` makes a CPU run the form of a
    GPU).
    """
    return native_kernel("cast", prefix + native_source("rays.h", "cast.h"), BATCH_SIGNATURE + _ARGUMENTS)
