"""The kernel of the sweeps: one task, one moving sphere or capsule."""

# No postponed annotations here: Warp reads them.

from functools import cache
from typing import Any

from airworthy.core.native_kernel import MODULE_OPTIONS, quiet_warp
from airworthy.geometry.native_text import native_source

_BODY = """
const Batch batch = BATCH_OF_ARGUMENTS;
const double* m = motion.data + 10 * (long long)task;
const Moving body = {{m[0], m[1], m[2]}, {m[3], m[4], m[5]}, {m[6], m[7], m[8]}, m[9]};
Hit hit = {1.0, FAR_AWAY, {0.0, 0.0, 0.0}, {0.0, 0.0, 0.0}, -1, -1};
double sum = 0.0;
for (int i = 0; i < 10; ++i) sum += m[i];
if (sum - sum == 0.0) Sweep::earliest(batch, closed.data, env.data[task], ignore.data[task], body, hit);
double* out = result.data + 7 * (long long)task;
out[0] = hit.fraction;
out[1] = hit.point.x;
out[2] = hit.point.y;
out[3] = hit.point.z;
out[4] = hit.normal.x;
out[5] = hit.normal.y;
out[6] = hit.normal.z;
which.data[2 * (long long)task] = hit.instance;
which.data[2 * (long long)task + 1] = hit.face;
"""


def sweep_source() -> str:
    """Complete native source of the kernel."""
    return native_source("distance.h", "clearance.h", "sweep.h") + _BODY


@cache
def sweep_kernel() -> Any:
    """First contacts of moving spheres and capsules, as a Warp kernel; compiled at first launch, then cached on disk."""
    wp = quiet_warp()

    @wp.func_native(sweep_source())
    def native_sweep(
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
        motion: wp.array[wp.float64],
        env: wp.array[wp.int32],
        ignore: wp.array[wp.int32],
        result: wp.array[wp.float64],
        which: wp.array[wp.int32],
        task: int,
    ): ...

    def airworthy_sweep(
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
        motion: wp.array[wp.float64],  # start, way, half axis [m], radius [m], (n, 10)
        env: wp.array[wp.int32],  # (n,)
        ignore: wp.array[wp.int32],  # instance not seen, (n,)
        # output
        result: wp.array[wp.float64],  # fraction, point, normal, (n, 7)
        which: wp.array[wp.int32],  # instance or -1, face, (n, 2)
        first: int,
    ):
        native_sweep(
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
            motion,
            env,
            ignore,
            result,
            which,
            first + wp.tid(),
        )

    return wp.kernel(airworthy_sweep, module="unique", module_options=MODULE_OPTIONS)
