"""Builds the kernel that carries derivatives of Gaussians in images back to those in space, on a CPU and on a GPU."""


# No postponed annotations here: Warp reads them.

from functools import cache
from typing import Any

from airworthy.core.native_kernel import MODULE_OPTIONS, quiet_warp
from airworthy.splats.native_text import native_source


@cache
def project_back_kernel() -> Any:
    """Return the Warp kernel."""
    wp = quiet_warp()

    @wp.func_native(native_source("project.h", "group.h", "lens_back.h", "project_back.h", "project_back_task.h"))
    def native_project_back(
        geometry: wp.array[wp.float32],
        harmonics: wp.array[wp.float32],
        chunks: wp.array[wp.float32],
        cameras: wp.array[wp.float32],
        order: wp.array[wp.int32],
        tags: wp.array[wp.int32],
        counts: wp.array[wp.int32],
        record_slopes: wp.array[wp.float32],
        slopes: wp.array[wp.float32],
        colour_slopes: wp.array[wp.float32],
        pose_slopes: wp.array[wp.float32],
        touched: wp.array[wp.bool],
        chunk_stride: int,
        image_count: int,
        width: int,
        height: int,
        flags: int,
        packed: int,
        near: float,
        dilation: float,
        task: int,
    ): ...

    def airworthy_splats_project_back(
        geometry: wp.array[wp.float32],  # (block, GEOMETRY_ROWS, 16)
        harmonics: wp.array[wp.float32],  # (block, k, 3, 16)
        chunks: wp.array[wp.float32],  # ChunkRow
        cameras: wp.array[wp.float32],  # CameraRow
        order: wp.array[wp.int32],  # of tasks; on a CPU
        tags: wp.array[wp.int32],  # (camera, chunk_stride, 4, CHUNK)
        counts: wp.array[wp.int32],  # seen and rows (camera, chunk_stride, 2); or ends of the records' places in the list
        record_slopes: wp.array[wp.float32],  # of each record, 16 numbers
        slopes: wp.array[wp.float32],  # output, added to: (block, SLOPE_ROWS, 16)
        colour_slopes: wp.array[wp.float32],  # output, added to: as harmonics
        pose_slopes: wp.array[
            wp.float32
        ],  # output, of what was seen: position and rotation matrix (camera, chunk or block, 16)
        touched: wp.array[wp.bool],  # output: chunks that were seen
        chunk_stride: int,
        image_count: int,
        width: int,
        height: int,
        flags: int,
        packed: int,  # whether what was seen of a chunk lies at its beginning
        near: float,
        dilation: float,
        first: int,
    ):
        native_project_back(
            geometry,
            harmonics,
            chunks,
            cameras,
            order,
            tags,
            counts,
            record_slopes,
            slopes,
            colour_slopes,
            pose_slopes,
            touched,
            chunk_stride,
            image_count,
            width,
            height,
            flags,
            packed,
            near,
            dilation,
            first + wp.tid(),
        )

    return wp.kernel(airworthy_splats_project_back, module="unique", module_options=MODULE_OPTIONS)
