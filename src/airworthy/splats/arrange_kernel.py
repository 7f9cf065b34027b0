"""Builds the kernel that lists the Gaussians of each tile, front to back."""

# No postponed annotations here: Warp reads them.

from functools import cache
from typing import Any

from airworthy.core.native_kernel import MODULE_OPTIONS, quiet_warp
from airworthy.splats.native_text import native_source


@cache
def arrange_kernel(prefix: str = "") -> Any:
    """Return the Warp kernel; `prefix` is put before its native text (`#define SCALAR_PATH` makes a CPU run the form of a
    GPU).
    """
    wp = quiet_warp()

    @wp.func_native(prefix + native_source("span.h", "arrange.h", "arrange_task.h"))
    def native_arrange(
        cameras: wp.array[wp.float32],
        order: wp.array[wp.int32],
        records: wp.array[wp.float32],
        tags: wp.array[wp.int32],
        counts: wp.array[wp.int32],
        scratch: wp.array[wp.int32],
        heads: wp.array[wp.int32],
        keys: wp.array[wp.int64],
        tiles: wp.array[wp.int32],
        lists: wp.array[wp.int32],
        needed: wp.array[wp.int32],
        chunk_stride: int,
        columns: int,
        rows: int,
        band_rows: int,
        entry_capacity: int,
        capacity: int,
        stage: int,
        task: int,
    ): ...

    def airworthy_splats_arrange(
        cameras: wp.array[wp.float32],  # CameraRow
        order: wp.array[wp.int32],  # of tasks
        records: wp.array[wp.float32],  # Record (camera, chunk_stride, CHUNK)
        tags: wp.array[wp.int32],  # (camera, chunk_stride, 4, CHUNK)
        counts: wp.array[wp.int32],  # CPU: seen and rows (camera, chunk_stride, 2); GPU: running sum of tiles
        scratch: wp.array[wp.int32],  # CPU: work, Entry (camera, band, 2, entry_capacity)
        heads: wp.array[wp.int32],  # CPU: work (camera, rows, columns)
        keys: wp.array[wp.int64],  # GPU: camera and tile, depth
        # output
        tiles: wp.array[wp.int32],  # begin and end of each tile's list (camera, rows, columns, 2)
        lists: wp.array[wp.int32],  # places of records; CPU: (camera, band, capacity)
        needed: wp.array[wp.int32],  # CPU: length of the lists of each band
        chunk_stride: int,
        columns: int,
        rows: int,
        band_rows: int,
        entry_capacity: int,
        capacity: int,
        stage: int,
        first: int,
    ):
        native_arrange(
            cameras,
            order,
            records,
            tags,
            counts,
            scratch,
            heads,
            keys,
            tiles,
            lists,
            needed,
            chunk_stride,
            columns,
            rows,
            band_rows,
            entry_capacity,
            capacity,
            stage,
            first + wp.tid(),
        )

    return wp.kernel(airworthy_splats_arrange, module="unique", module_options=MODULE_OPTIONS)
