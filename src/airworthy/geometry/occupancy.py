"""Occupancy grids: which cells of a box hold a surface, or the inside of a solid."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayLike, NDArray
from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import native_kernel, quiet_launch, quiet_warp
from airworthy.geometry.batch import GeometryBatch
from airworthy.geometry.native_text import BATCH_SIGNATURE, native_source
from airworthy.geometry.query_arguments import closed_flags, environments

# ---- The kernel of the occupancy: one task, one block of cells ------------------------------------------------------------

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
    """Return occupied cells of grids, as a Warp kernel; compiled at first launch, then cached on disk."""
    return native_kernel("occupancy", occupancy_source(), BATCH_SIGNATURE + _ARGUMENTS)


# ---------------------------------------------------------------------------------------------------------------------------

MAX_CELLS = 1 << 27
"""Most cells of one call, all grids together: one byte each."""


def voxelize(
    batch: GeometryBatch,
    env: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    resolution: float,
    radius: float = 0.0,
    *,
    ignore: int = -1,
) -> ArrayBool:
    """Return occupied cells of a box.

    A cell is occupied where a surface or solid reaches more than a thousandth of an edge into it, where its centre is inside
    a solid or closed mesh, or where its centre is no farther than `radius` from anything. A sheet (a mesh that is not closed)
    that lies just between two cells occupies the upper one.

    Args:
        batch: Environments.
        env: Environment, or (k,) environments.
        lower: Lower corner of the box, world [m], (3,).
        upper: Upper corner, world [m], (3,); the last cells may reach beyond it.
        resolution: Edge of a cell [m].
        radius: Grows everything by this exact distance, at the centres of cells [m].
        ignore: Instance number that is left out; -1: none.

    Returns:
        (nx, ny, nz), or (k, nx, ny, nz) for several environments.

    Raises:
        AirworthyError: If the box is empty or has too many cells, a length is out of range, or an environment does not exist.
    """
    corners = np.array([lower, upper], np.float64)
    shape = grid_shape(corners[0], corners[1], resolution)
    if not (radius >= 0.0 and math.isfinite(radius)):
        raise AirworthyError(f"`radius` is {radius}; expected metres, 0 or more.")
    envs = np.atleast_1d(np.asarray(env))
    envs = environments(envs, len(envs), batch.env_count)
    if len(envs) * math.prod(shape) > MAX_CELLS:
        raise AirworthyError(f"{len(envs)} grids of {shape} cells exceed {MAX_CELLS}; use larger cells or a smaller box.")
    cells = _fill(batch, envs, shape, np.array([*corners[0], resolution, radius]), ignore)
    return cells if np.ndim(env) else cells[0]


def grid_shape(lower: Array, upper: Array, resolution: float) -> tuple[int, int, int]:
    """Return cells along x, y, z that cover a box; a remainder below a millionth of a cell counts as rounding.

    Args:
        lower: Lower corner, world [m], (3,).
        upper: Upper corner, world [m], (3,).
        resolution: Edge of a cell [m].

    Raises:
        AirworthyError: If the box is empty, not finite, or has too many cells.
    """
    if not (resolution > 0.0 and math.isfinite(resolution)):
        raise AirworthyError(f"`resolution` is {resolution}; expected the edge of a cell in metres, above 0.")
    # Written so that NaN fails: comparisons with it are false.
    if lower.shape != (3,) or not np.isfinite([lower, upper]).all() or not (lower < upper).all():
        raise AirworthyError(f"The box {lower.tolist()} to {upper.tolist()} is empty or not finite; give lower < upper.")
    # A box of ten cells must not get eleven because 0.1 is no binary number.
    sides = np.maximum(np.ceil((upper - lower) / resolution - 1e-6), 1.0)
    # As floats, before any integer product could wrap round.
    if sides.prod() > MAX_CELLS:
        raise AirworthyError(
            f"A grid of {' x '.join(f'{s:.0f}' for s in sides)} cells exceed {MAX_CELLS}; use larger cells or a smaller box."
        )
    return int(sides[0]), int(sides[1]), int(sides[2])


def _fill(batch: GeometryBatch, envs: NDArray[np.int32], shape: tuple[int, int, int], numbers: Array, ignore: int) -> ArrayBool:
    wp = quiet_warp()
    device = batch.device
    cells = wp.zeros(len(envs) * math.prod(shape), dtype=wp.uint8, device=device)
    integers = np.array([*shape, ignore], np.int32)
    arrays = [wp.array(a, device=device) for a in (envs, integers, numbers)]
    tasks = len(envs) * math.prod(-(-side // BLOCK) for side in shape)
    quiet_launch(occupancy_kernel(), tasks, [*batch.arguments(), closed_flags(batch), *arrays, cells, 0], device)
    return cells.numpy().reshape(len(envs), *shape).view(bool)
