"""The kernel that adds up how much light gaussians stop in the cells of a grid: one task, one band of cells along x."""

from __future__ import annotations

from functools import cache
from typing import Any

from airworthy.core.native_kernel import native_kernel

REACH = 2.0
"""A gaussian counts in cells within this many standard deviations."""
ROW = 16
"""Words of a gaussian: mean (3), rotation matrix by rows (9), standard deviations (3) [cells], opacity."""

_BODY = """
const int begin = task * band, end = begin + band < nx ? begin + band : nx;
for (int g = 0; g < count; ++g) {
  const float* row = gaussians.data + ROW * (long long)g;
  const float* turn = row + 3;
  const float* sigma = row + 12;
  int low[3], high[3];
  const int first_cell[3] = {begin, 0, 0}, last_cell[3] = {end - 1, ny - 1, nz - 1};
  bool outside = false;
  // The cells that the upright box around the ellipsoid of REACH deviations touches.
  for (int a = 0; a < 3; ++a) {
    const float p = turn[3 * a] * sigma[0], q = turn[3 * a + 1] * sigma[1], r = turn[3 * a + 2] * sigma[2];
    const float reach = REACH * sqrtf(p * p + q * q + r * r);
    const float from = floorf(row[a] - reach), to = floorf(row[a] + reach);
    if (!(to >= (float)first_cell[a]) || !(from <= (float)last_cell[a])) { outside = true; break; }
    low[a] = from > (float)first_cell[a] ? (int)from : first_cell[a];
    high[a] = to < (float)last_cell[a] ? (int)to : last_cell[a];
  }
  if (outside) continue;
  float inverse[3], half[3];
  for (int i = 0; i < 3; ++i) {
    inverse[i] = 1.0f / sigma[i];
    half[i] = 0.5f * (fabsf(turn[i]) + fabsf(turn[3 + i]) + fabsf(turn[6 + i]));
  }
  for (int x = low[0]; x <= high[0]; ++x)
    for (int y = low[1]; y <= high[1]; ++y) {
      float* line = passing.data + ((long long)x * ny + y) * nz;
      const float dx = x + 0.5f - row[0], dy = y + 0.5f - row[1];
      for (int z = low[2]; z <= high[2]; ++z) {
        if (line[z] <= enough) continue;
        const float dz = z + 0.5f - row[2];
        float square = 0.0f;
        // Along each axis of the gaussian: how far off the nearest part of the cell is.
        for (int i = 0; i < 3; ++i) {
          const float off = fabsf(turn[i] * dx + turn[3 + i] * dy + turn[6 + i] * dz) - half[i];
          const float step = off > 0.0f ? off * inverse[i] : 0.0f;
          square += step * step;
        }
        if (square <= REACH * REACH) line[z] *= 1.0f - row[15] * expf(-0.5f * square);
      }
    }
}
"""


def splat_occupancy_source() -> str:
    """Complete native source of the kernel."""
    return f"const float REACH = {REACH}f;\nenum {{ ROW = {ROW} }};\n" + _BODY


_ARGUMENTS = """
    gaussians: float32[]  # (count, ROW)
    # output
    passing: float32[]  # share of the light that passes, (nx, ny, nz), ones before
    count: int
    nx: int
    ny: int
    nz: int
    band: int  # cells along x of one task
    enough: float  # a cell that lets no more than this pass is not looked at again
"""


@cache
def splat_occupancy_kernel() -> Any:
    """Light that passes cells, as a Warp kernel; compiled at first launch, then cached on disk."""
    return native_kernel("splat_occupancy", splat_occupancy_source(), _ARGUMENTS)
