"""The kernel of the sweeps: one task, one moving sphere or capsule."""

from __future__ import annotations

from functools import cache
from typing import Any

from airworthy.core.native_kernel import native_kernel
from airworthy.geometry.native_text import BATCH_SIGNATURE, native_source

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


_ARGUMENTS = """
    closed: int32[]
    motion: float64[]  # start, way, half axis [m], radius [m], (n, 10)
    env: int32[]  # (n,)
    ignore: int32[]  # instance not seen, (n,)
    # output
    result: float64[]  # fraction, point, normal, (n, 7)
    which: int32[]  # instance or -1, face, (n, 2)
"""


@cache
def sweep_kernel() -> Any:
    """First contacts of moving spheres and capsules, as a Warp kernel; compiled at first launch, then cached on disk."""
    return native_kernel("sweep", sweep_source(), BATCH_SIGNATURE + _ARGUMENTS)
