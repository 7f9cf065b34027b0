"""The kernel of the occupancy: one task, one block of cells."""

from __future__ import annotations

from functools import cache
from typing import Any

from airworthy.core.native_kernel import native_kernel
from airworthy.geometry.native_text import BATCH_SIGNATURE, native_source

_BODY = """
const Batch batch = BATCH_OF_ARGUMENTS;
const int nx = shape.data[0], ny = shape.data[1], nz = shape.data[2], ignore = shape.data[3];
const int by = (ny + BLOCK - 1) / BLOCK, bz = (nz + BLOCK - 1) / BLOCK, blocks = (nx + BLOCK - 1) / BLOCK * by * bz;
const int grid = task / blocks, block = task % blocks, where = env.data[grid];
const double h = numbers.data[3], radius = numbers.data[4];
unsigned char* cells = occupied.data + (long long)grid * nx * ny * nz;
// A part of the block whose distance to everything is known at its centre is decided as a whole, or cut into eight.
struct Part {
  int x, y, z, size;
} stack[32];
int top = 0;
stack[top++] = {block / (by * bz) * BLOCK, block / bz % by * BLOCK, block % bz * BLOCK, BLOCK};
while (top) {
  const Part part = stack[--top];
  if (part.x >= nx || part.y >= ny || part.z >= nz) continue;
  const double half = 0.5 * part.size * h, corner = half * 1.7320508075688774;
  const V first = {numbers.data[0], numbers.data[1], numbers.data[2]};
  const V centre = first + V{part.x * h + half, part.y * h + half, part.z * h + half};
  Found found = {1.01 * corner + radius, {0.0, 0.0, 0.0}, {0.0, 0.0, 0.0}, -1, -1};
  Clearance::nearest(batch, closed.data, where, ignore, centre, found);
  if (found.instance < 0) continue;
  const bool full = found.distance + (part.size > 1 ? corner : 0.0) <= radius;
  if (part.size > 1 && !full) {
    const int s = part.size / 2;
    for (int i = 0; i < 8; ++i) stack[top++] = {part.x + s * (i >> 2), part.y + s * (i >> 1 & 1), part.z + s * (i & 1), s};
    continue;
  }
  // A surface nearer than almost half a cell certainly lies in the cell.
  if (!full && found.distance > 0.998 * half && !Overlap::cell(batch, closed.data, where, ignore, centre, half)) continue;
  for (int x = part.x; x < part.x + part.size && x < nx; ++x)
    for (int y = part.y; y < part.y + part.size && y < ny; ++y)
      for (int z = part.z; z < part.z + part.size && z < nz; ++z) cells[((long long)x * ny + y) * nz + z] = 1;
}
"""


BLOCK = 8
"""Cells along an edge of the block that one task covers."""


def occupancy_source() -> str:
    """Complete native source of the kernel."""
    return native_source("distance.h", "clearance.h", "overlap.h") + f"enum {{ BLOCK = {BLOCK} }};" + _BODY


_ARGUMENTS = """
    closed: int32[]
    env: int32[]  # (grid,)
    shape: int32[]  # nx, ny, nz, instance not seen
    numbers: float64[]  # lower corner, resolution, radius [m]
    # output
    occupied: uint8[]  # 1 where occupied, (grid, nx, ny, nz), zeros before
"""


@cache
def occupancy_kernel() -> Any:
    """Occupied cells of grids, as a Warp kernel; compiled at first launch, then cached on disk."""
    return native_kernel("occupancy", occupancy_source(), BATCH_SIGNATURE + _ARGUMENTS)
