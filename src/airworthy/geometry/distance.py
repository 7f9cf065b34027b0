"""Clearance: how far points are from everything that can be hit, over many environments at once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayF32, ArrayInt, ArrayLike, NDArray
from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import CPU_LANES, native_kernel, quiet_launch, quiet_warp, shared_source
from airworthy.geometry.batch import GeometryBatch
from airworthy.geometry.native_text import BATCH_SIGNATURE, native_source
from airworthy.geometry.query_arguments import environments, instance_numbers, lengths, run_queries, vectors

# ---- The kernel of the clearance: one task, one point ---------------------------------------------------------------------

_CLEARANCE_BODY = """
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
    return native_source("distance.h", "clearance.h") + _CLEARANCE_BODY


_CLEARANCE_ARGUMENTS = """
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
    return native_kernel("clearance", clearance_source(), BATCH_SIGNATURE + _CLEARANCE_ARGUMENTS)


# ---- Builds the kernel of the exact distance transform: a task is one line of planes --------------------------------------

MAX_SIDE = 8192
"""Cells along one axis: the squares of three such distances stay below NOWHERE."""

_FAR = 1 << 14
_NOWHERE = _FAR * _FAR
_REACH = 96


def scratch_size(ny: int, stride: int) -> int:
    """Return the whole numbers of work memory that one task needs."""
    return max(ny * (CPU_LANES + 3), 6 * stride)


def distance_field_source() -> str:
    """Complete native source of the transform."""
    text = files("airworthy.geometry").joinpath("native", "distance_field.h").read_text()
    names = f"enum {{ FAR = {_FAR}, NOWHERE = {_NOWHERE}, REACH = {_REACH} }};"
    return "\n".join([shared_source("prelude.h"), names, text])


_FIELD_ARGUMENTS = """
    occupied: uint8[]  # (grid, nx, ny, stride)
    squared: int32[]  # work: squared distance so far [cells^2], (grid, nx, ny, stride)
    scratch: int32[]  # work: (grid * nx, scratch_size)
    # output
    distance: float32[]  # [m], (grid, nx, ny, stride)
    nx: int
    ny: int
    nz: int
    stride: int  # nz rounded up to whole lanes
    scratch_size: int
    resolution: float  # [m]
    far_value: float  # what a grid without an occupied cell gets [m]
    along_x: int  # 1: the x sweeps, a task per (grid, y); 0: y and z, a task per (grid, x)
"""


@cache
def distance_field_kernel() -> Any:
    """Return the transform as a Warp kernel; compiled at first launch, then cached on disk."""
    return native_kernel("distance_field", distance_field_source(), _FIELD_ARGUMENTS)


# ---------------------------------------------------------------------------------------------------------------------------

# ---- Exact Euclidean distance fields of occupancy grids, batched, and their interpolation -----------------------------------

MAX_CELLS = 1 << 28
"""Most cells in one call, all grids together: 13 bytes of memory per cell."""


@dataclass(frozen=True, eq=False)
class DistanceField:
    """Distances at the centres of cells, and their trilinear interpolation."""

    values: ArrayF32
    """Distance [m], (..., nx, ny, nz): from a cell's centre to the nearest occupied cell's centre; +inf in an empty grid."""
    resolution: float
    """Edge of a cell [m]."""
    lower: Array
    """Lower corner of the grid [m], (..., 3) or (3,): cell (0, 0, 0) begins here."""

    def sample(self, points: ArrayLike, env: ArrayLike | None = None) -> tuple[Array, Array]:
        """Return distance and its gradient at points, trilinear between centres of cells.

        Beyond the outermost centres the field continues constant, with zero gradient in that direction.

        Args:
            points: World [m], (n, 3).
            env: Which grid each point asks, (n,), counted over the leading axes; None: grid 0 where there is one grid, else
                grid k for point k.

        Returns:
            Distance [m], (n,), and gradient, (n, 3). The gradient is zero where the distance is infinite.

        Raises:
            AirworthyError: If shapes do not fit or a grid number is out of range.
        """
        at = np.asarray(points, np.float64)
        if at.ndim != 2 or at.shape[1] != 3:
            raise AirworthyError(f"`points` has shape {at.shape}; expected (n, 3).")
        # Leading axes as one: a point names its grid by number.
        grids = self.values.reshape(-1, *self.values.shape[-3:])
        grid = _grid_numbers(env, len(at), len(grids))
        lower = np.broadcast_to(self.lower, (*self.values.shape[:-3], 3)).reshape(-1, 3)[grid]
        return _trilinear(grids, grid, (at - lower) / self.resolution - 0.5, self.resolution)


def distance_field(
    occupied: ArrayLike, resolution: float, lower: ArrayLike = (0.0, 0.0, 0.0), *, signed: bool = False
) -> DistanceField:
    """Return the exact Euclidean distance of every cell's centre to the nearest occupied cell's centre.

    Args:
        occupied: True where something is, (..., nx, ny, nz); leading axes count grids.
        resolution: Edge of a cell [m].
        lower: Lower corner of the grids [m], (3,) or (..., 3).
        signed: Occupied cells get minus the distance to the nearest free centre, and half a cell is taken off on both sides, so
            that zero lies on the faces between free and occupied cells. Otherwise occupied cells get 0.

    Raises:
        AirworthyError: If the shape, the number of cells or the resolution is out of range.
    """
    grid = np.ascontiguousarray(occupied, bool)
    _check(grid.shape, resolution)
    values = _transform(grid, resolution)
    if signed:
        inside = _transform(~grid, resolution)
        # Centres of neighbours are a whole cell apart, and the face lies in the middle.
        half = np.float32(0.5 * resolution)
        values = np.where(grid, half - inside, values - half)
    return DistanceField(values, float(resolution), np.asarray(lower, np.float64))


def _check(shape: tuple[int, ...], resolution: float) -> None:
    if len(shape) < 3 or min(shape) < 1 or max(shape[-3:]) > MAX_SIDE or math.prod(shape) > MAX_CELLS:
        raise AirworthyError(
            f"`occupied` has shape {shape}; expected (..., nx, ny, nz) sides of 1 to {MAX_SIDE}, at most {MAX_CELLS} cells."
        )
    if not (resolution > 0.0 and math.isfinite(resolution)):
        raise AirworthyError(f"`resolution` is {resolution}; expected the edge of a cell in metres, above 0.")


def _transform(grid: ArrayBool, resolution: float) -> ArrayF32:
    wp = quiet_warp()
    nx, ny, nz = grid.shape[-3:]
    count = math.prod(grid.shape[:-3])
    # z is padded to whole vectors, so that no lane has an end of its own.
    stride = -(-nz // CPU_LANES) * CPU_LANES
    padded = np.zeros((count, nx, ny, stride), np.uint8)
    padded[..., :nz] = grid.reshape(count, nx, ny, nz)
    distance = np.empty((count, nx, ny, stride), np.float32)
    size = scratch_size(ny, stride)
    work = [padded, np.empty(padded.shape, np.int32), np.empty(count * nx * size, np.int32), distance]
    arrays = [wp.array(a.reshape(-1), device="cpu", copy=False) for a in work]
    numbers = [nx, ny, nz, stride, size, float(resolution), math.inf]
    # Separable: squared distances along some axes are the heights of the next one's parabolas (native/distance_field.h).
    for along_x, tasks in ((1, count * ny), (0, count * nx)):
        quiet_launch(distance_field_kernel(), tasks, [*arrays, *numbers, along_x, 0], "cpu")
    return np.ascontiguousarray(distance[..., :nz]).reshape(grid.shape)


def _grid_numbers(env: ArrayLike | None, points: int, grids: int) -> ArrayInt:
    own = np.arange(points) if grids > 1 else np.zeros(points, np.int64)
    number = own if env is None else np.asarray(env)
    if number.shape != (points,) or (points and (number.min() < 0 or number.max() >= grids)):
        raise AirworthyError(f"{points} points over {grids} grids: `env` must name one of grids 0..{grids - 1} for each point.")
    return number.astype(np.int64)


def _trilinear(grids: ArrayF32, grid: ArrayInt, at: Array, resolution: float) -> tuple[Array, Array]:
    """Interpolate at positions counted in cells from the first centre."""
    size = np.array(grids.shape[1:])
    held = np.clip(at, 0.0, size - 1.0)
    base = np.minimum(held.astype(np.int64), np.maximum(size - 2, 0))
    t = held - base
    corner = np.empty((len(at), 2, 2, 2))
    for i, j, k in np.ndindex(2, 2, 2):
        x, y, z = np.minimum(base + np.array([i, j, k]), size - 1).T
        corner[:, i, j, k] = grids[grid, x, y, z]
    empty = ~np.isfinite(corner).all((1, 2, 3))
    corner[empty] = 0.0
    pair = np.stack([1.0 - t, t], -1)
    slope = np.where((at == held)[..., None], np.array([-1.0, 1.0]) / resolution, 0.0)
    weights: list[tuple[Array, ...]] = [(pair[:, 0], pair[:, 1], pair[:, 2])]
    weights += [tuple(slope[:, b] if a == b else pair[:, b] for b in range(3)) for a in range(3)]
    value, *gradient = (np.einsum("nijk,ni,nj,nk->n", corner, *w) for w in weights)
    value[empty] = np.inf
    return value, np.stack(gradient, -1)


# -----------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Distance:
    """The nearest surface to each of n points."""

    distance: Array
    """[m], (n,): negative inside solids and closed meshes; +inf: nothing within reach; NaN: the point is not finite."""
    point: Array
    """Nearest surface point, world [m], (n, 3); NaN where there is none."""
    normal: Array
    """Gradient of the distance, (n, 3): unit, from the surface to the point, outwards inside; 0 where there is none."""
    instance: NDArray[np.int32]
    """Number of the nearest instance as in a ray's hits, (n,); -1 where there is none."""
    face: NDArray[np.int32]
    """Nearest face of a mesh, (n,); 0 for solids, -1 where there is none."""


def clearance(
    batch: GeometryBatch,
    points: ArrayLike,
    env: ArrayLike | None = None,
    max_distance: ArrayLike = math.inf,
    *,
    ignore: ArrayLike | None = None,
) -> Distance:
    """Return the distance from points to the nearest instance that collides.

    Signed for boxes, spheres, cylinders and capsules, and for meshes whose triangles bound a volume counter-clockwise seen from
    outside; the distance to other meshes is never negative, and triangles without area do not count. Where several instances
    overlap, the least of their distances counts. Of equally near instances the lowest number is reported, then the lowest face.

    Args:
        batch: Environments.
        points: World [m], (n, 3).
        env: Environment of each point, (n,) or one number; None: environment k for point k, or the only one.
        max_distance: What is farther does not matter [m], (n,) or one number. Small ones are found faster.
        ignore: Instance that each point does not see (the vehicle's own), (n,) or one number; -1: none.

    Raises:
        AirworthyError: If shapes do not fit or an environment is out of range.
    """
    at = vectors("points", points)
    count = len(at)
    where, limit = environments(env, count, batch.env_count), lengths("max_distance", max_distance, count)
    inputs = (at, where, limit, instance_numbers(ignore, count))
    result, which = run_queries(batch, clearance_kernel(), inputs, ((np.float64, 7), (np.int32, 2)), count)
    none = which[:, 0] < 0
    result[none, 0], result[none, 1:4] = math.inf, math.nan
    result[~np.isfinite(at).all(1), 0] = math.nan
    return Distance(result[:, 0], result[:, 1:4], result[:, 4:7], which[:, 0], which[:, 1])
