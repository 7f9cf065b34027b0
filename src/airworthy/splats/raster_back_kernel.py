"""Builds the kernel that carries derivatives of pixels back to the Gaussians in an image, on a CPU and on a GPU."""


# No postponed annotations here: Warp reads them.

from functools import cache
from typing import Any

from airworthy.core.native_kernel import MODULE_OPTIONS, quiet_warp
from airworthy.splats.native_text import native_source


@cache
def raster_back_kernel() -> Any:
    """Return the Warp kernel."""
    wp = quiet_warp()

    @wp.func_native(native_source("raster.h", "group.h", "raster_back.h", "raster_back_task.h"))
    def native_raster_back(
        cameras: wp.array[wp.float32],
        order: wp.array[wp.int32],
        records: wp.array[wp.float32],
        counts: wp.array[wp.int32],
        tiles: wp.array[wp.int32],
        lists: wp.array[wp.int32],
        owners: wp.array[wp.int32],
        places: wp.array[wp.int32],
        limits: wp.array[wp.float32],
        seen_rgb: wp.array[wp.float32],
        seen_depth: wp.array[wp.float32],
        seen_alpha: wp.array[wp.float32],
        rgb: wp.array[wp.float32],
        depth: wp.array[wp.float32],
        alpha: wp.array[wp.float32],
        used: wp.array[wp.int32],
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
        order: wp.array[wp.int32],  # of tasks; on a CPU
        records: wp.array[wp.float32],  # Record (camera, chunk_stride, CHUNK)
        counts: wp.array[wp.int32],  # seen and rows (camera, chunk_stride, 2); or ends of the records' places in the list
        tiles: wp.array[wp.int32],  # begin and end of each tile's list (camera, rows, columns, 2)
        lists: wp.array[wp.int32],  # places of records (camera, band, capacity); or all in one
        owners: wp.array[wp.int32],  # output of the first stage: of each place in the one list, number of the record
        places: wp.array[wp.int32],  # likewise the place; later in the order of the owners
        limits: wp.array[wp.float32],  # depth beyond which nothing was blended (camera, height, width)
        seen_rgb: wp.array[wp.float32],  # images (camera, height, width, 3)
        seen_depth: wp.array[wp.float32],  # (camera, height, width)
        seen_alpha: wp.array[wp.float32],
        rgb: wp.array[wp.float32],  # derivatives of the loss, as the images
        depth: wp.array[wp.float32],
        alpha: wp.array[wp.float32],
        used: wp.array[wp.int32],  # work: how much of each tile's list was walked (camera, rows, columns)
        partials: wp.array[wp.float32],  # work: of each place in the lists, 16 numbers
        record_slopes: wp.array[wp.float32],  # output: of each record, 16 numbers
        chunk_stride: int,
        width: int,
        height: int,
        band_rows: int,  # of tiles; 0: one list for all
        capacity: int,
        flags: int,
        stage: int,  # BACK_TILES, BACK_CAMERAS or BACK_RECORDS
        first: int,
    ):
        native_raster_back(
            cameras,
            order,
            records,
            counts,
            tiles,
            lists,
            owners,
            places,
            limits,
            seen_rgb,
            seen_depth,
            seen_alpha,
            rgb,
            depth,
            alpha,
            used,
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
