"""The geometry of splats: occupied cells from opacity, a closed mesh to collide with, and distances."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayBool, ArrayF32, ArrayInt, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import native_kernel, quiet_launch, quiet_warp
from airworthy.geometry import Mesh
from airworthy.geometry.distance import DistanceField, distance_field
from airworthy.geometry.occupancy import grid_shape
from airworthy.scenes.splats.record import Splats

# ---------------------------------------------------------------------------------------------------------------------------
# The kernel that adds up how much light gaussians stop in the cells of a grid: one task, one band of cells along x

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
    """Return light that passes cells, as a Warp kernel; compiled at first launch, then cached on disk."""
    return native_kernel("splat_occupancy", splat_occupancy_source(), _ARGUMENTS)


# ---------------------------------------------------------------------------------------------------------------------------

THRESHOLD = 0.5
"""A cell counts as occupied where its gaussians together stop this share of the light."""
_FAINT = 1.0 / 255.0
"""Renderers leave out what is fainter."""
_MOST = 0.99
"""Renderers let no gaussian stop more."""
_BANDS = 16
_BLOCK = 1 << 17


def occupancy(
    splats: Splats,
    lower: ArrayLike,
    upper: ArrayLike,
    resolution: float,
    threshold: float = THRESHOLD,
    *,
    support: int = 1,
    filled: bool = False,
) -> ArrayBool:
    """Return occupied cells of a box, from opacity.

    A cell is occupied where 1 - product of (1 - opacity_i exp(-d_i^2 / 2)) reaches the threshold, d_i being the distance in
    standard deviations of gaussian i from the nearest part of the cell, taken along each of its axes by itself; gaussians
    farther than 2 do not count. So a thin opaque sheet occupies every cell that it crosses, whichever way it is turned, and
    hardly any other: thin things are kept, and surfaces lie within one cell of where they are seen. Gaussians much larger than
    a cell count in full in each: haze that hides what is behind it is an obstacle.

    Args:
        splats: Gaussians in the frame of the box.
        lower: Lower corner, [m], (3,).
        upper: Upper corner, [m], (3,); the last cells may reach beyond it.
        resolution: Edge of a cell [m].
        threshold: Share of the light, above 0 and at most 0.99.
        support: Groups of touching occupied cells (by faces, edges or corners) with fewer cells than this are floaters and
            left out; 1: none. A group that the box cuts counts what is inside.
        filled: Occupy also what is enclosed on all sides: the inside of objects, but of a room with its ceiling, too.

    Returns:
        (nx, ny, nz).

    Raises:
        AirworthyError: If the box is empty or has too many cells, or a number is out of range.
    """
    corners = np.array([lower, upper], np.float64)
    shape = grid_shape(corners[0], corners[1], resolution)
    if not 0.0 < threshold <= _MOST:
        raise AirworthyError(f"`threshold` is {threshold}; expected a share of the light above 0 and at most {_MOST}.")
    if int(support) != support or support < 1:
        raise AirworthyError(f"`support` is {support}; expected a whole number of cells, 1 or more.")
    cells = _passing(splats, corners[0], shape, float(resolution), 1.0 - threshold) <= np.float32(1.0 - threshold)
    if support > 1:
        cells = _without_small_groups(cells, int(support))
    if filled:
        from scipy.ndimage import binary_fill_holes

        cells = np.asarray(binary_fill_holes(cells), bool)
    return cells


def _passing(splats: Splats, lower: Array, shape: tuple[int, int, int], resolution: float, enough: float) -> ArrayF32:
    """Share of the light that passes each cell, (nx, ny, nz); correct where it is above `enough`, else some value below."""
    rows = _rows(splats, lower, shape, resolution)
    passing = np.ones(math.prod(shape), np.float32)
    wp = quiet_warp()
    arrays = [wp.array(a.reshape(-1), device="cpu", copy=False) for a in (rows, passing)] if len(rows) else []
    if arrays:
        # Slices of the grid, one per task: no two tasks write to a cell.
        band = -(-shape[0] // _BANDS)
        numbers = [len(rows), *shape, band, enough, 0]
        quiet_launch(splat_occupancy_kernel(), -(-shape[0] // band), [*arrays, *numbers], "cpu")
    return passing.reshape(shape)


def _rows(splats: Splats, lower: Array, shape: tuple[int, int, int], resolution: float) -> ArrayF32:
    """Gaussians that can reach the grid, in cells from its corner, (n, 16), in their order."""
    parts = [np.zeros((0, 16), np.float32)]
    for start in range(0, len(splats), _BLOCK):
        here = slice(start, start + _BLOCK)
        mean = (splats.position[here].astype(np.float64) - lower) / resolution
        sigma = splats.scale[here].astype(np.float64) / resolution
        # A cell more: what ends just outside still reaches into the first cell.
        reach = REACH * sigma.max(-1, keepdims=True) + 1.0
        opaque = splats.opacity[here] >= _FAINT
        opaque &= np.isfinite(sigma).all(-1) & ((mean > -reach) & (mean < np.array(shape) + reach)).all(-1)
        turn = frames.to_matrix(splats.rotation[here][opaque].astype(np.float64)).reshape(-1, 9)
        # Below 1, whose logarithm of what passes has no value.
        opacity = np.minimum(splats.opacity[here][opaque], _MOST)[:, None]
        parts.append(np.hstack([mean[opaque], turn, np.maximum(sigma[opaque], 1e-6), opacity]).astype(np.float32))
    return np.ascontiguousarray(np.concatenate(parts))


def _without_small_groups(cells: ArrayBool, support: int) -> ArrayBool:
    from scipy.ndimage import label

    # Corners connect: a thin sheet aslant is a chain of cells that touch there alone.
    group, _ = label(cells, np.ones((3, 3, 3), bool))
    large = np.bincount(group.reshape(-1)) >= support
    # Group 0 is what is free.
    large[0] = False
    return np.asarray(large[group], bool)


def collision_mesh(occupied: ArrayLike, lower: ArrayLike, resolution: float) -> Mesh:
    """Return the surface of occupied cells: two triangles for every face between an occupied and a free cell.

    It is closed and counter-clockwise seen from outside, so that distances to it are signed. What lies beyond the grid is free.

    Args:
        occupied: (nx, ny, nz) bool.
        lower: Lower corner of the grid [m], (3,).
        resolution: Edge of a cell [m].

    Raises:
        AirworthyError: If the grid is no grid of bools, or the resolution is not above 0.
    """
    grid = np.asarray(occupied)
    if grid.ndim != 3 or grid.dtype != bool:
        raise AirworthyError(f"`occupied` is an array of {grid.dtype}, shape {grid.shape}; expected bool, (nx, ny, nz).")
    if not (resolution > 0.0 and math.isfinite(resolution)):
        raise AirworthyError(f"`resolution` is {resolution}; expected the edge of a cell in metres, above 0.")
    quads = np.concatenate([_sides(np.pad(grid, 1), axis) for axis in range(3)])  # (m, 4, 3) corners, in cells
    size = np.array(grid.shape, np.int64) + 1
    # Corners by number, so that faces share vertices and the mesh is closed.
    number = (quads[..., 0] * size[1] + quads[..., 1]) * size[2] + quads[..., 2]
    used, corner = np.unique(number, return_inverse=True)
    corner = corner.reshape(-1, 4)
    cell = np.stack([used // (size[1] * size[2]), used // size[2] % size[1], used % size[2]], -1)
    vertices = np.asarray(lower, np.float64) + resolution * cell
    return Mesh(vertices, corner[:, [[0, 1, 2], [0, 2, 3]]].reshape(-1, 3))


def _sides(padded: ArrayBool, axis: int) -> ArrayInt:
    """Corners (m, 4, 3) of the faces across an axis, in cells from the corner, counter-clockwise seen from free cells."""
    ends = [slice(None)] * 3
    starts = list(ends)
    starts[axis], ends[axis] = slice(None, -1), slice(1, None)
    before, after = padded[tuple(starts)], padded[tuple(ends)]
    u, v = np.eye(3, dtype=np.int64)[[(axis + 1) % 3, (axis + 2) % 3]]
    parts = []
    for face, steps in ((before & ~after, (0 * u, u, u + v, v)), (after & ~before, (0 * u, v, u + v, u))):
        corner = np.argwhere(face) - 1  # the padding shifts cells by one; the face lies at the upper side of `before`
        corner[:, axis] += 1
        parts.append(corner[:, None] + np.array(steps))
    return np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class SplatGeometry:
    """Occupied cells of splats, and what follows from them."""

    occupied: ArrayBool
    """(nx, ny, nz)."""
    lower: Array
    """Lower corner [m], (3,)."""
    resolution: float
    """Edge of a cell [m]."""

    @cached_property
    def mesh(self) -> Mesh:
        """The closed surface of the occupied cells."""
        return collision_mesh(self.occupied, self.lower, self.resolution)

    @cached_property
    def field(self) -> DistanceField:
        """Signed distance: zero on the faces between occupied and free cells, negative inside; one free cell is put around."""
        return distance_field(np.pad(self.occupied, 1), self.resolution, self.lower - self.resolution, signed=True)

    def clearance(self, points: ArrayLike) -> Array:
        """Return the signed distance from points (n, 3) to the nearest occupied cell [m], (n,); +inf where nothing is occupied.

        Trilinear between centres of cells. Since every cell that a surface touches is occupied, the answer is on the safe side:
        at most about a cell and a third less than the distance of the surface itself, and no more than it by rounding. Outside
        the grid it is a lower bound: from the distance d of the nearest place in it and the way w to there follows at least
        sqrt(d^2 + w^2), since the grid is convex.

        Raises:
            AirworthyError: If the points have another shape.
        """
        at = np.asarray(points, np.float64)
        if at.ndim != 2 or at.shape[1] != 3:
            raise AirworthyError(f"`points` has shape {at.shape}; expected (n, 3).")
        half = 0.5 * self.resolution
        first = self.lower + half
        # Outside the grid the field holds no distances; a bound follows from its nearest point.
        within = np.clip(at, first, first + self.resolution * (np.array(self.occupied.shape) - 1.0))
        value, _ = self.field.sample(within)
        outside = np.linalg.norm(at - within, axis=-1)
        return np.where(outside > 0.0, np.hypot(np.maximum(value + half, 0.0), outside) - half, value)


def splat_geometry(
    splats: Splats, resolution: float, lower: ArrayLike | None = None, upper: ArrayLike | None = None, **options: Any
) -> SplatGeometry:
    """Return the geometry of splats in a box; without one, around everything that is not faint.

    Args:
        splats: Gaussians.
        resolution: Edge of a cell [m].
        lower: Lower corner of the box [m], (3,).
        upper: Upper corner [m], (3,).
        **options: Of `occupancy`: `threshold`, `support`, `filled`.

    Raises:
        AirworthyError: As `occupancy`; or no box was given and there is nothing to put one around.
    """
    low, high = splat_box(splats) if lower is None or upper is None else (None, None)
    first = np.asarray(low if lower is None else lower, np.float64)
    cells = occupancy(splats, first, high if upper is None else upper, resolution, **options)  # type: ignore[arg-type]
    return SplatGeometry(cells, first, float(resolution))


def splat_box(splats: Splats, faint: float = 0.1) -> tuple[Array, Array]:
    """Lower and upper corner [m] of a box around the gaussians of at least this opacity, two standard deviations included.

    Raises:
        AirworthyError: If there are none.
    """
    opaque = splats.opacity >= faint
    if not opaque.any():
        raise AirworthyError(f"None of {len(splats)} gaussians has an opacity of {faint} or more: nothing to put a box around.")
    turn = frames.to_matrix(splats.rotation[opaque].astype(np.float64))
    reach = REACH * np.linalg.norm(turn * splats.scale[opaque][:, None], axis=-1)
    return (splats.position[opaque] - reach).min(0), (splats.position[opaque] + reach).max(0)


def splat_clearance(splats: Splats, points: ArrayLike, resolution: float, **options: Any) -> Array:
    """Return the signed distance from points to splats [m], (n,): `SplatGeometry.clearance` of `splat_geometry`, for one
    question.

    Args:
        splats: Gaussians.
        points: In their frame [m], (n, 3).
        resolution: Edge of a cell [m].
        **options: Of `splat_geometry`.

    Raises:
        AirworthyError: As these.
    """
    return splat_geometry(splats, resolution, **options).clearance(points)
