"""The kernel that casts rays: tables of rays from cameras, or single segments."""

# No postponed annotations here: Warp reads them.

from functools import cache
from typing import Any

from airworthy.core.native_kernel import MODULE_OPTIONS, quiet_warp
from airworthy.geometry.native_text import BATCH_ARGUMENTS, native_source

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


@cache
def cast_kernel(prefix: str = "") -> Any:
    """Return the Warp kernel; `prefix` is put before its native text (`#define SCALAR_PATH` makes a CPU run the form of a
    GPU).
    """
    wp = quiet_warp()

    @wp.func_native(prefix + native_source("rays.h", "cast.h"))
    def native_cast(
        shape_rows: wp.array[wp.float32],
        mesh_nodes: wp.array[wp.float32],
        mesh_triangles: wp.array[wp.float32],
        mesh_vertices: wp.array[wp.float32],
        mesh_faces: wp.array[wp.int32],
        layout_rows: wp.array[wp.int32],
        layout_nodes: wp.array[wp.float32],
        layout_instances: wp.array[wp.float32],
        env_layout: wp.array[wp.int32],
        mover_nodes: wp.array[wp.float32],
        mover_instances: wp.array[wp.float32],
        batch_numbers: wp.array[wp.int32],
        rays: wp.array[wp.float32],
        pixels: wp.array[wp.int32],
        cameras: wp.array[wp.float32],
        task_order: wp.array[wp.int32],
        out_range: wp.array[wp.float32],
        out_depth: wp.array[wp.float32],
        out_point_world: wp.array[wp.float32],
        out_point_sensor: wp.array[wp.float32],
        out_instance: wp.array[wp.int32],
        out_instance_id: wp.array[wp.int32],
        out_semantic_id: wp.array[wp.int32],
        out_face: wp.array[wp.int32],
        out_barycentric: wp.array[wp.float32],
        out_normal_world: wp.array[wp.float32],
        out_normal_sensor: wp.array[wp.float32],
        out_local_point: wp.array[wp.float32],
        packets: int,
        pixel_count: int,
        width: int,
        flags: int,
        max_range: float,
        task: int,
    ): ...

    def airworthy_cast(
        shape_rows: wp.array[wp.float32],
        mesh_nodes: wp.array[wp.float32],
        mesh_triangles: wp.array[wp.float32],
        mesh_vertices: wp.array[wp.float32],
        mesh_faces: wp.array[wp.int32],
        layout_rows: wp.array[wp.int32],
        layout_nodes: wp.array[wp.float32],
        layout_instances: wp.array[wp.float32],
        env_layout: wp.array[wp.int32],
        mover_nodes: wp.array[wp.float32],
        mover_instances: wp.array[wp.float32],
        batch_numbers: wp.array[wp.int32],
        rays: wp.array[wp.float32],
        pixels: wp.array[wp.int32],
        cameras: wp.array[wp.float32],
        task_order: wp.array[wp.int32],
        out_range: wp.array[wp.float32],
        out_depth: wp.array[wp.float32],
        out_point_world: wp.array[wp.float32],
        out_point_sensor: wp.array[wp.float32],
        out_instance: wp.array[wp.int32],
        out_instance_id: wp.array[wp.int32],
        out_semantic_id: wp.array[wp.int32],
        out_face: wp.array[wp.int32],
        out_barycentric: wp.array[wp.float32],
        out_normal_world: wp.array[wp.float32],
        out_normal_sensor: wp.array[wp.float32],
        out_local_point: wp.array[wp.float32],
        packets: int,
        pixel_count: int,
        width: int,
        flags: int,
        max_range: float,
        first: int,
    ):
        native_cast(
            shape_rows,
            mesh_nodes,
            mesh_triangles,
            mesh_vertices,
            mesh_faces,
            layout_rows,
            layout_nodes,
            layout_instances,
            env_layout,
            mover_nodes,
            mover_instances,
            batch_numbers,
            rays,
            pixels,
            cameras,
            task_order,
            out_range,
            out_depth,
            out_point_world,
            out_point_sensor,
            out_instance,
            out_instance_id,
            out_semantic_id,
            out_face,
            out_barycentric,
            out_normal_world,
            out_normal_sensor,
            out_local_point,
            packets,
            pixel_count,
            width,
            flags,
            max_range,
            first + wp.tid(),
        )

    return wp.kernel(airworthy_cast, module="unique", module_options=MODULE_OPTIONS)
