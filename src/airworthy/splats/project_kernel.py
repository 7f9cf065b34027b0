"""Builds the kernel that projects Gaussians: 16 at a time on a CPU, one per thread on a GPU, from one text."""

# No postponed annotations here: Warp reads them.

from functools import cache
from typing import Any

from airworthy.core.native_kernel import MODULE_OPTIONS, quiet_warp
from airworthy.splats.native_text import native_source


@cache
def project_kernel(prefix: str = "") -> Any:
    """Return the Warp kernel; `prefix` is put before its native text (`#define SCALAR_PATH` makes a CPU run the form of a
    GPU).
    """
    wp = quiet_warp()

    @wp.func_native(prefix + native_source("project.h", "span.h", "project_task.h"))
    def native_project(
        geometry: wp.array[wp.float32],
        harmonics: wp.array[wp.float32],
        chunks: wp.array[wp.float32],
        cameras: wp.array[wp.float32],
        order: wp.array[wp.int32],
        records: wp.array[wp.float32],
        tags: wp.array[wp.int32],
        counts: wp.array[wp.int32],
        chunk_stride: int,
        width: int,
        height: int,
        flags: int,
        near: float,
        dilation: float,
        task: int,
    ): ...

    def airworthy_splats_project(
        geometry: wp.array[wp.float32],  # (block, GEOMETRY_ROWS, 16)
        harmonics: wp.array[wp.float32],  # (block, k, 3, 16)
        chunks: wp.array[wp.float32],  # ChunkRow
        cameras: wp.array[wp.float32],  # CameraRow
        order: wp.array[wp.int32],  # of tasks
        # output
        records: wp.array[wp.float32],  # Record (camera, chunk_stride, CHUNK)
        tags: wp.array[wp.int32],  # (camera, chunk_stride, 4, CHUNK)
        counts: wp.array[wp.int32],  # CPU: seen and rows (camera, chunk_stride, 2); GPU: tiles of each Gaussian
        chunk_stride: int,
        width: int,
        height: int,
        flags: int,
        near: float,
        dilation: float,
        first: int,
    ):
        native_project(
            geometry,
            harmonics,
            chunks,
            cameras,
            order,
            records,
            tags,
            counts,
            chunk_stride,
            width,
            height,
            flags,
            near,
            dilation,
            first + wp.tid(),
        )

    return wp.kernel(airworthy_splats_project, module="unique", module_options=MODULE_OPTIONS)
