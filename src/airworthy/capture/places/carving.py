"""Free space carved by the rays of training cameras: which cells of a place were seen through, and where surfaces are.

Every training camera looks once more, at the trained splats: where they are opaque, how deep, and how surely. Three things
follow for each cell of a grid:

* `passes`: cameras that see through the whole of it. The ray through its middle ends behind it, and no ray through its image
  ends before its middle. Rays end early where depth is uncertain.
* `through`: cameras of which the ray through its middle ends behind it for certain, be there fog before or not.
* `hits`: cameras of which some pixel, where depth is certain, ends in it.
* `distance`: how far before (positive) or behind (negative) the surface its middle lies, the mean of the cameras that see it
  near their surface (Curless and Levoy 1996: A volumetric method for building complex models from range images).

A cell is free where `LEAST_PASSES` cameras or more see through it, or `LEAST_THROUGH` see what is behind its middle, and hits
are few beside; occupied where hits are not; and unknown where neither is so: behind surfaces, and where nobody looked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from airworthy.capture.places.depth_views import DepthViews
from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayBool, ArrayF32, ArrayFloat, ArrayInt, ArrayU8
from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import native_kernel, quiet_launch, quiet_warp
from airworthy.geometry.occupancy import grid_shape
from airworthy.scenes.carved import FREE, OCCUPIED, UNKNOWN

__all__ = [
    "Carving",
    "carve",
    "carve_twin",
    "grid_box",
    "grid_resolution",
    "known_states",
]

NEAREST = 0.05
"""Cells nearer to a camera than this along its axis are not looked at [m]."""
LEAST_PASSES = 3
"""Cameras that must see through a cell."""
LEAST_THROUGH = 6
"""Cameras that must see what is behind its middle, where too few see through all of it: next to surfaces, in the fog that a
training left before them."""
LEAST_HITS = 3
"""Cameras that must see a surface in a cell: what two see may be the same mistake."""
HIT_SHARE = 0.25
"""A cell that more cameras see through than hits over this is free: its hits are noise of depth."""
REACH = 2.0
"""Distances to the surface are taken to this many cells before and behind it."""
CELLS = (0.05, 0.1)
"""Finest and coarsest edge of a cell that is chosen for a place [m]."""
CELLS_MAX, CELLS_MOST = 4_000_000, 16_000_000
"""Of a grid whose cells nobody chose: beyond the first number coarser cells are taken, up to the coarsest; beyond the second
they grow further, since a cell takes 14 bytes while it is carved."""
STRAY = 0.002
"""Share of the ends of rays that is left outside of the grid at each of its six sides."""
FAR = 4.0
"""Ends farther from their camera than this over the median distance are outside, seen through a window, and belong to no grid
(ours: walls of a hall that is filmed from its middle are within twice of it)."""
CAMERA = 16
"""Numbers of a camera: world to camera by rows (9), optical centre (3) [m], fx, fy, cx, cy [px]."""
FIRST = 4
"""Whole numbers of a camera: width, height, first pixel of its image among all, first of its reduced images."""


@dataclass(frozen=True, eq=False)
class Carving:
    """What rays tell of the cells of a grid."""

    lower: Array
    """Lower corner of the grid, world [m], (3,)."""
    resolution: float
    """Edge of a cell [m]."""
    passes: ArrayInt
    """(nx, ny, nz) cameras that see through the whole cell."""
    through: ArrayInt
    """(nx, ny, nz) cameras of which the ray through its middle ends behind it for certain."""
    hits: ArrayInt
    """(nx, ny, nz) cameras that see a surface in it."""
    distance: ArrayF32
    """(nx, ny, nz) of its middle before the surface [m]; NaN where no camera sees it near its surface."""

    def part(self, cells: tuple[slice, slice, slice]) -> Carving:
        """Return a block of the cells."""
        lower = self.lower + self.resolution * np.array([one.start for one in cells])
        return Carving(lower, self.resolution, self.passes[cells], self.through[cells], self.hits[cells], self.distance[cells])


# ---- The grid -----------------------------------------------------------------------------------------------------------


def grid_box(views: DepthViews, margin: float) -> tuple[Array, Array]:
    """Return lower and upper corner [m] of a box around all cameras and where their rays end, strays left out.

    Args:
        views: Depths.
        margin: Put around [m].

    Raises:
        AirworthyError: No ray ends for certain: the splats are not opaque anywhere.
    """
    # Every seventh: of millions of ends, quantiles need some thousands.
    found = [views.points(k)[::7] for k in range(len(views))]
    away = np.concatenate([np.linalg.norm(part - eye, axis=1) for part, eye in zip(found, views.position, strict=True)])
    ends = np.concatenate(found)[away <= FAR * np.median(away)] if len(away) else np.zeros((0, 3))
    if not len(ends):
        raise AirworthyError("The splats are opaque to no training camera, so that no space can be carved; train them longer.")
    low, high = np.quantile(ends, [STRAY, 1.0 - STRAY], axis=0)
    return np.minimum(low, views.position.min(axis=0)) - margin, np.maximum(high, views.position.max(axis=0)) + margin


def grid_resolution(lower: Array, upper: Array) -> float:
    """Return the edge of the cells that suit a box [m]: the finest of `CELLS` that keeps to `CELLS_MAX`, whole centimetres."""
    size = float(np.prod(upper - lower))
    fit = max(float(np.clip(np.cbrt(size / CELLS_MAX), *CELLS)), float(np.cbrt(size / CELLS_MOST)))
    return float(np.ceil(100.0 * fit - 1e-6) / 100.0)


# ---- The kernel: one task, a column of cells along z --------------------------------------------------------------------

_BODY = """
const int x = task / ny, y = task % ny;
const float h = resolution, half = 0.5f * h;
const float px = lower_x + h * (x + 0.5f), py = lower_y + h * (y + 0.5f);
for (int k = 0; k < views; ++k) {
  const float* c = cameras.data + CAMERA * (long long)k;
  const int *n = sizes.data + FIRST * (long long)k, width = n[0], height = n[1];
  const float extent = half * (fabsf(c[6]) + fabsf(c[7]) + fabsf(c[8]));
  for (int i = 0; i < nz; ++i) {
    const float dx = px - c[9], dy = py - c[10], dz = lower_z + h * (i + 0.5f) - c[11];
    const float z = c[6] * dx + c[7] * dy + c[8] * dz;
    if (!(z > nearest)) continue;
    const float u = c[12] * (c[0] * dx + c[1] * dy + c[2] * dz) / z + c[14];
    const float v = c[13] * (c[3] * dx + c[4] * dy + c[5] * dz) / z + c[15];
    if (!(u >= 0.0f && u < (float)width && v >= 0.0f && v < (float)height)) continue;
    const long long at = ((long long)x * ny + y) * nz + i, pixel = n[2] + (long long)(int)v * width + (int)u;
    const float d = depth.data[pixel];
    if (d > 0.0f && d - z > -reach && d - z < reach) {
      // What lies far behind is not seen by this camera: the weight falls to nothing there.
      const float s = d - z, w = s > -h ? 1.0f : (reach + s) / (reach - h);
      sum.data[at] += w * s;
      weight.data[at] += w;
    }
    if (d > z + extent) through.data[at] += 1;
    if (freed.data[pixel] < z + extent) continue;
    // Reduced images hold the least of 2^m x 2^m pixels: of those as wide as half the cell or less, a few cover all of it.
    const float r = half * (c[12] > c[13] ? c[12] : c[13]) / z;  // [px]
    int m = 0, w = width, t = height;
    long long first = n[2];
    const float* image = freed.data;
    while (m < levels && (float)(2 << m) <= r) {
      if (m > 0) first += (long long)w * t;
      else { first = n[3]; image = least.data; }
      ++m;
      w = (w + 1) / 2;
      t = (t + 1) / 2;
    }
    const float scale = 1.0f / (float)(1 << m);
    const float left = (u - r) * scale, right = (u + r) * scale, top = (v - r) * scale, bottom = (v + r) * scale;
    const int u0 = left > 0.0f ? (int)left : 0, u1 = right < (float)(w - 1) ? (int)right : w - 1;
    const int v0 = top > 0.0f ? (int)top : 0, v1 = bottom < (float)(t - 1) ? (int)bottom : t - 1;
    bool clear = true;
    for (int b = v0; clear && b <= v1; ++b)
      for (int a = u0; a <= u1; ++a)
        if (image[first + (long long)b * w + a] < z) { clear = false; break; }
    if (clear) passes.data[at] += 1;
  }
}
"""
LEVELS = 6
"""Reduced images of each: the widest pixels are 64 of the image's."""

_ARGUMENTS = """
    cameras: float32[]  # (views, CAMERA)
    sizes: int32[]  # (views, FIRST)
    depth: float32[]  # certain depth of all images, 0 where there is none [m]
    freed: float32[]  # free depth of all images [m]
    least: float32[]  # least of it over blocks of pixels, all reduced images of all images [m]
    # output
    passes: int32[]  # (nx, ny, nz), zeros before
    through: int32[]  # (nx, ny, nz), zeros before
    sum: float32[]  # (nx, ny, nz), zeros before [m]
    weight: float32[]  # (nx, ny, nz), zeros before
    views: int
    ny: int
    nz: int
    lower_x: float
    lower_y: float
    lower_z: float
    resolution: float
    nearest: float
    reach: float
    levels: int
"""


def carving_source() -> str:
    """Complete native source of the kernel."""
    return f"enum {{ CAMERA = {CAMERA}, FIRST = {FIRST} }};\n" + _BODY


@cache
def carving_kernel() -> Any:
    """Return what cameras see of cells, as a Warp kernel; compiled at first launch, then cached on disk."""
    return native_kernel("carving", carving_source(), _ARGUMENTS)


def carve(views: DepthViews, lower: ArrayFloat, upper: ArrayFloat, resolution: float) -> Carving:
    """Return what the rays of cameras tell of the cells of a box.

    Every cell asks every camera, in their order, so that equal inputs give equal bytes whatever the threads.

    Args:
        views: Depths that cameras see.
        lower: Lower corner of the box, world [m], (3,).
        upper: Upper corner [m], (3,).
        resolution: Edge of a cell [m].

    Raises:
        AirworthyError: The box is empty or has too many cells.
    """
    corner = np.asarray(lower, np.float64)
    shape = grid_shape(corner, np.asarray(upper, np.float64), resolution)
    cameras, sizes = camera_rows(views)
    least = [_blocks(image) for image in views.freed]
    sizes[:, 3] = np.cumsum([0, *(len(part) for part in least[:-1])])
    inputs = [cameras, sizes, *(np.concatenate([x.reshape(-1) for x in part]) for part in (views.depth, views.freed, least))]
    outputs: list[Any] = [np.zeros(shape, kind) for kind in (np.int32, np.int32, np.float32, np.float32)]
    wp = quiet_warp()
    arrays = [wp.array(np.ascontiguousarray(a).reshape(-1), device="cpu", copy=False) for a in (*inputs, *outputs)]
    place = [float(np.float32(value)) for value in (*corner, resolution, NEAREST, REACH * resolution)]
    quiet_launch(carving_kernel(), shape[0] * shape[1], [*arrays, len(views), *shape[1:], *place, LEVELS, 0], "cpu")
    passes, through, total, weight = outputs
    with np.errstate(invalid="ignore", divide="ignore"):
        distance = np.where(weight > 0.5, total / weight, np.nan).astype(np.float32)
    hits = _hits(views, corner, resolution, shape)
    return Carving(corner, float(resolution), passes.astype(np.int64), through.astype(np.int64), hits, distance)


def camera_rows(views: DepthViews) -> tuple[ArrayF32, ArrayInt]:
    """Return cameras as the kernel reads them, (n, `CAMERA`) and (n, `FIRST`)."""
    turn = frames.to_matrix(views.attitude).swapaxes(-1, -2).reshape(-1, 9)
    rows = np.hstack([turn, views.position, views.intrinsics]).astype(np.float32)
    shapes = np.array([image.shape for image in views.depth], np.int64)
    first = np.concatenate([[0], np.cumsum(shapes.prod(axis=1))[:-1]])
    return rows, np.column_stack([shapes[:, ::-1], first, 0 * first]).astype(np.int32)


def _blocks(image: ArrayF32) -> ArrayF32:
    """Return the least over blocks of 2, 4, ... pixels a side, one reduced image after the other."""
    parts = []
    for _ in range(LEVELS):
        # An odd row or column stands for itself.
        image = np.pad(image, [(0, n % 2) for n in image.shape], mode="edge")
        image = np.minimum(np.minimum(image[::2, ::2], image[1::2, ::2]), np.minimum(image[::2, 1::2], image[1::2, 1::2]))
        parts.append(image.reshape(-1))
    return np.concatenate(parts)


def _hits(views: DepthViews, lower: Array, resolution: float, shape: tuple[int, int, int]) -> ArrayInt:
    """Return how many cameras have a certain pixel that ends in each cell, (nx, ny, nz)."""
    hits = np.zeros(int(np.prod(shape)), np.int64)
    for k in range(len(views)):
        hits[cells_of(views.points(k), lower, resolution, shape)] += 1
    return hits.reshape(shape)


def cells_of(points: Array, lower: Array, resolution: float, shape: Sequence[int]) -> ArrayInt:
    """Return the numbers of the cells that hold some of the points (n, 3), each once, in order."""
    share = (points - lower) / resolution
    inside = ((share >= 0.0) & (share < np.array(shape))).all(axis=1)
    x, y, z = share[inside].astype(np.int64).T
    return np.unique((x * shape[1] + y) * shape[2] + z)


# ---- What follows -------------------------------------------------------------------------------------------------------


def known_states(carving: Carving, view_count: int, points: ArrayFloat | None = None) -> ArrayU8:
    """Return what is known of each cell, (nx, ny, nz) of UNKNOWN, FREE, OCCUPIED.

    Args:
        carving: What rays tell.
        view_count: Cameras; where there are few, half of them are enough.
        points: Sparse points of the capture (n, 3), world [m], as a further check: a cell that seems free and holds two of them
            or more is unknown, since something with texture was triangulated there. None: there are none.
    """
    least = min(LEAST_PASSES, max(1, view_count // 2))
    seen = np.maximum(carving.passes, carving.through)
    occupied = (carving.hits >= min(LEAST_HITS, least)) & (carving.hits >= HIT_SHARE * seen)
    free = (carving.passes >= least) | (carving.through >= max(LEAST_THROUGH, 2 * least))
    states = np.where(occupied, OCCUPIED, np.where(free, FREE, UNKNOWN)).astype(np.uint8)
    if points is not None and len(points):
        states[(states == FREE) & (point_counts(carving, points) >= 2)] = UNKNOWN
    return states


def point_counts(carving: Carving, points: ArrayFloat) -> ArrayInt:
    """Return how many of some points (n, 3) each cell holds, (nx, ny, nz)."""
    shape = np.array(carving.passes.shape)
    share = (np.asarray(points, np.float64) - carving.lower) / carving.resolution
    inside = (np.isfinite(share) & (share >= 0.0) & (share < shape)).all(axis=1)
    x, y, z = share[inside].astype(np.int64).T
    number = (x * shape[1] + y) * shape[2] + z
    return np.bincount(number, minlength=int(shape.prod())).reshape(carving.passes.shape)


def carve_twin(
    views: DepthViews, lower: ArrayFloat, upper: ArrayFloat, resolution: float
) -> tuple[ArrayInt, ArrayInt, Array, Array]:
    """Return `passes`, `through`, summed distances and weights as `carve` has them, in NumPy float64: every pixel of a cell's
    image is looked at.

    Args:
        views: Depths that cameras see.
        lower: Lower corner of the box, world [m], (3,).
        upper: Upper corner [m], (3,).
        resolution: Edge of a cell [m].
    """
    corner = np.asarray(lower, np.float64)
    shape = grid_shape(corner, np.asarray(upper, np.float64), resolution)
    middle = corner + resolution * (np.moveaxis(np.indices(shape), 0, -1).reshape(-1, 3) + 0.5)
    passes, through = np.zeros((2, len(middle)), np.int64)
    total, weight = np.zeros((2, len(middle)))
    half, reach = 0.5 * resolution, REACH * resolution
    for k in range(len(views)):
        height, width = views.depth[k].shape
        turn = frames.to_matrix(views.attitude[k])
        inside = (middle - views.position[k]) @ turn
        z = np.where(inside[:, 2] > NEAREST, inside[:, 2], 1.0)
        fx, fy, cx, cy = views.intrinsics[k]
        u, v = fx * inside[:, 0] / z + cx, fy * inside[:, 1] / z + cy
        seen = np.flatnonzero((inside[:, 2] > NEAREST) & (u >= 0.0) & (u < width) & (v >= 0.0) & (v < height))
        u, v, z = u[seen], v[seen], z[seen]
        pixel = v.astype(int), u.astype(int)
        s = views.depth[k][pixel].astype(np.float64) - z
        w = np.where(s > -resolution, 1.0, (reach + s) / (reach - resolution))
        w = np.where((views.depth[k][pixel] > 0.0) & (np.abs(s) < reach), w, 0.0)
        total[seen] += w * s
        weight[seen] += w
        extent = half * np.abs(turn[:, 2]).sum()
        through[seen] += views.depth[k][pixel] > z + extent
        behind = views.freed[k][pixel] >= z + extent
        passes[seen] += behind & _window_free(views.freed[k], u, v, z, half * max(fx, fy) / z)
    return passes.reshape(shape), through.reshape(shape), total.reshape(shape), weight.reshape(shape)


def _window_free(freed: ArrayF32, u: Array, v: Array, z: Array, radius: Array) -> ArrayBool:
    """Tell whether no pixel within `radius` (n,) [px] of places (n,), in blocks as the kernel's, ends before depths `z`."""
    height, width = freed.shape
    level = np.clip(np.floor(np.log2(np.maximum(radius, 1.0))), 0, LEVELS).astype(int)
    free = np.ones(len(u), bool)
    for k, (x, y, depth, r, m) in enumerate(zip(u, v, z, radius, level, strict=True)):
        block = 1 << m
        u0, v0 = (int(max(c - r, 0.0) / block) * block for c in (x, y))
        u1 = (int(min((x + r) / block, -(-width // block) - 1)) + 1) * block
        v1 = (int(min((y + r) / block, -(-height // block) - 1)) + 1) * block
        free[k] = not (freed[v0:v1, u0:u1] < depth).any()
    return free
