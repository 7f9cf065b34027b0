"""The kernel of the clearance: one task, one point."""

from __future__ import annotations

from functools import cache
from typing import Any

from airworthy.core.native_kernel import native_kernel
from airworthy.geometry.native_text import BATCH_SIGNATURE, native_source

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


_ARGUMENTS = """
    closed: int32[]
    points: float64[]  # world [m], (n, 3)
    env: int32[]  # (n,)
    limit: float64[]  # nothing beyond this distance matters [m], (n,)
    ignore: int32[]  # instance not seen, (n,)
    # output
    result: float64[]  # distance, point, normal, (n, 7)
    which: int32[]  # instance or -1, face, (n, 2)
"""


@cache
def clearance_kernel() -> Any:
    """Return the nearest surface to each point, as a Warp kernel; compiled at first launch, then cached on disk."""
    return native_kernel("clearance", clearance_source(), BATCH_SIGNATURE + _ARGUMENTS)
