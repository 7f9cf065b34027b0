"""Builds the kernel that carries derivatives of pixels back to the Gaussians in an image (on a CPU)."""

# No postponed annotations here: Warp reads them.

from functools import cache
from typing import Any

from airworthy.core.native_kernel import MODULE_OPTIONS, quiet_warp
from airworthy.sensors.splats.native_text import native_source


@cache
def raster_back_kernel() -> Any:
    """The Warp kernel."""
    wp = quiet_warp()

    @wp.func_native(native_source("raster.h", "raster_back.h", "raster_back_task.h"))
    def native_raster_back(
        cameras: wp.array[wp.float32],
        order: wp.array[wp.int32],
        records: wp.array[wp.float32],
        counts: wp.array[wp.int32],
        tiles: wp.array[wp.int32],
        lists: wp.array[wp.int32],
        rgb: wp.array[wp.float32],
        depth: wp.array[wp.float32],
        alpha: wp.array[wp.float32],
        partials: wp.array[wp.float32],
        record_slopes: wp.array[wp.float32],
        chunk_stride: int,
        width: int,
        height: int,
        band_rows: int,
        capacity: int,
        flags: int,
        stage: int,
        task: int,
    ): ...

    def airworthy_splats_raster_back(
        cameras: wp.array[wp.float32],  # CameraRow
        order: wp.array[wp.int32],  # of tasks
        records: wp.array[wp.float32],  # Record (camera, chunk_stride, CHUNK)
        counts: wp.array[wp.int32],  # seen and rows (camera, chunk_stride, 2)
        tiles: wp.array[wp.int32],  # begin and end of each tile's list (camera, rows, columns, 2)
        lists: wp.array[wp.int32],  # places of records (camera, band, capacity)
        rgb: wp.array[wp.float32],  # derivatives (camera, height, width, 3)
        depth: wp.array[wp.float32],  # of the sum of weights times depths (camera, height, width)
        alpha: wp.array[wp.float32],  # derivatives (camera, height, width)
        partials: wp.array[wp.float32],  # work: of each place in the lists, BACK_WORDS
        record_slopes: wp.array[wp.float32],  # output: of each record, BACK_WORDS
        chunk_stride: int,
        width: int,
        height: int,
        band_rows: int,
        capacity: int,
        flags: int,
        stage: int,  # BACK_TILES, then 1: sums
        first: int,
    ):
        native_raster_back(
            cameras,
            order,
            records,
            counts,
            tiles,
            lists,
            rgb,
            depth,
            alpha,
            partials,
            record_slopes,
            chunk_stride,
            width,
            height,
            band_rows,
            capacity,
            flags,
            stage,
            first + wp.tid(),
        )

    return wp.kernel(airworthy_splats_raster_back, module="unique", module_options=MODULE_OPTIONS)
