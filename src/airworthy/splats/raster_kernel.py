"""Builds the kernel that composites pixels: 16 at a time on a CPU, one per thread on a GPU, from one text."""

# No postponed annotations here: Warp reads them.

from functools import cache
from typing import Any

from airworthy.core.native_kernel import MODULE_OPTIONS, quiet_warp
from airworthy.splats.native_text import native_source


@cache
def raster_kernel(prefix: str = "") -> Any:
    """Return the Warp kernel; `prefix` is put before its native text (`#define SCALAR_PATH` makes a CPU run the form of a
    GPU).
    """
    wp = quiet_warp()

    @wp.func_native(prefix + native_source("raster.h", "raster_task.h"))
    def native_raster(
        cameras: wp.array[wp.float32],
        order: wp.array[wp.int32],
        records: wp.array[wp.float32],
        tiles: wp.array[wp.int32],
        lists: wp.array[wp.int32],
        limits: wp.array[wp.float32],
        rgb: wp.array[wp.float32],
        depth: wp.array[wp.float32],
        alpha: wp.array[wp.float32],
        chunk_stride: int,
        width: int,
        height: int,
        band_rows: int,
        capacity: int,
        flags: int,
        task: int,
    ): ...

    def airworthy_splats_raster(
        cameras: wp.array[wp.float32],  # CameraRow
        order: wp.array[wp.int32],  # of tasks
        records: wp.array[wp.float32],  # Record (camera, chunk_stride, CHUNK)
        tiles: wp.array[wp.int32],  # begin and end of each tile's list (camera, rows, columns, 2)
        lists: wp.array[wp.int32],  # places of records; CPU: (camera, band, capacity)
        limits: wp.array[wp.float32],  # depth beyond which nothing is blended (camera, height, width)
        # output
        rgb: wp.array[wp.float32],  # (camera, height, width, 3)
        depth: wp.array[wp.float32],  # (camera, height, width)
        alpha: wp.array[wp.float32],  # (camera, height, width)
        chunk_stride: int,
        width: int,
        height: int,
        band_rows: int,
        capacity: int,
        flags: int,
        first: int,
    ):
        native_raster(
            cameras,
            order,
            records,
            tiles,
            lists,
            limits,
            rgb,
            depth,
            alpha,
            chunk_stride,
            width,
            height,
            band_rows,
            capacity,
            flags,
            first + wp.tid(),
        )

    return wp.kernel(airworthy_splats_raster, module="unique", module_options=MODULE_OPTIONS)
