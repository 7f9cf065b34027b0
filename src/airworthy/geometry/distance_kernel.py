"""The kernel of the clearance: one task, one point."""

# No postponed annotations here: Warp reads them.

from functools import cache
from typing import Any

from airworthy.core.native_kernel import MODULE_OPTIONS, quiet_warp
from airworthy.geometry.native_text import native_source

_BODY = """
const Batch batch = BATCH_OF_ARGUMENTS;
const double *p = points.data + 3 * (long long)task, most = limit.data[task];
Found found = {most < FAR_AWAY ? most : FAR_AWAY, {0.0, 0.0, 0.0}, {0.0, 0.0, 0.0}, -1, -1};
const double sum = p[0] + p[1] + p[2];
if (sum - sum == 0.0) Clearance::nearest(batch, closed.data, env.data[task], ignore.data[task], {p[0], p[1], p[2]}, found);
double* out = result.data + 7 * (long long)task;
out[0] = found.distance;
out[1] = found.point.x;
out[2] = found.point.y;
out[3] = found.point.z;
out[4] = found.normal.x;
out[5] = found.normal.y;
out[6] = found.normal.z;
which.data[2 * (long long)task] = found.instance;
which.data[2 * (long long)task + 1] = found.face;
"""


def clearance_source() -> str:
    """Complete native source of the kernel."""
    return native_source("distance.h", "clearance.h") + _BODY


@cache
def clearance_kernel() -> Any:
    """Return the nearest surface to each point, as a Warp kernel; compiled at first launch, then cached on disk."""
    wp = quiet_warp()

    @wp.func_native(clearance_source())
    def native_clearance(
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
        closed: wp.array[wp.int32],
        points: wp.array[wp.float64],
        env: wp.array[wp.int32],
        limit: wp.array[wp.float64],
        ignore: wp.array[wp.int32],
        result: wp.array[wp.float64],
        which: wp.array[wp.int32],
        task: int,
    ): ...

    def airworthy_clearance(
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
        closed: wp.array[wp.int32],
        points: wp.array[wp.float64],  # world [m], (n, 3)
        env: wp.array[wp.int32],  # (n,)
        limit: wp.array[wp.float64],  # nothing beyond this distance matters [m], (n,)
        ignore: wp.array[wp.int32],  # instance not seen, (n,)
        # output
        result: wp.array[wp.float64],  # distance, point, normal, (n, 7)
        which: wp.array[wp.int32],  # instance or -1, face, (n, 2)
        first: int,
    ):
        native_clearance(
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
            closed,
            points,
            env,
            limit,
            ignore,
            result,
            which,
            first + wp.tid(),
        )

    return wp.kernel(airworthy_clearance, module="unique", module_options=MODULE_OPTIONS)
