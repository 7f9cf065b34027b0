"""The kernel of boxes and cylinders in motion: one task, one body."""

from __future__ import annotations

from functools import cache
from typing import Any

from airworthy.core.native_kernel import native_kernel
from airworthy.geometry.native_text import BATCH_SIGNATURE, native_source

_BODY = """
const Batch batch = BATCH_OF_ARGUMENTS;
const double* m = motion.data + 26 * (long long)task;
const Core core = {m[0] > 1.5 ? KIND_CYLINDER : KIND_BOX, {m[1], m[2], m[3]}, {m[4], m[5], m[6]}, m[7], m[8]};
Convex::Meet hit = {(double)Convex::NONE, {FAR_AWAY, {0.0, 0.0, 0.0}, {0.0, 0.0, 0.0}}, {0.0, 0.0, 0.0}, -1, -1};
double sum = 0.0;
for (int i = 0; i < 26; ++i) sum += m[i];
Attitude turn = Attitude::of(m + 12);
if (sum - sum == 0.0) {
  const Way way = Way::of(m + 9, m + 12, m + 16, m + 19);
  Convex::earliest(batch, closed.data, env.data[task], ignore.data[task], {&core, &way, m[23], m[24], m[25]}, hit);
  if (hit.instance >= 0) {
    turn = Way::attitude(way, hit.fraction);
    hit.apart.point = turn.back(hit.apart.point - way.way * hit.fraction);
  }
}
double* out = result.data + 11 * (long long)task;
out[0] = hit.fraction;
out[1] = hit.apart.distance;
const V parts[3] = {hit.point, hit.apart.normal, hit.apart.point};
for (int i = 0; i < 3; ++i) {
  out[2 + 3 * i] = parts[i].x;
  out[3 + 3 * i] = parts[i].y;
  out[4 + 3 * i] = parts[i].z;
}
which.data[2 * (long long)task] = hit.instance;
which.data[2 * (long long)task + 1] = hit.face;
"""


def convex_source() -> str:
    """Complete native source of the kernel."""
    return native_source("distance.h", "clearance.h", "convex.h") + _BODY


_ARGUMENTS = """
    closed: int32[]
    motion: float64[]  # core, start, end, gap, leaving, shallow, (n, 26)
    env: int32[]  # (n,)
    ignore: int32[]  # instance not seen, (n,)
    # output
    result: float64[]  # fraction, distance, point, normal, arm, (n, 11)
    which: int32[]  # instance or -1, face, (n, 2)
"""


@cache
def convex_kernel() -> Any:
    """First contacts of boxes and cylinders, as a Warp kernel; compiled at first launch, then cached on disk."""
    return native_kernel("convex", convex_source(), BATCH_SIGNATURE + _ARGUMENTS)
