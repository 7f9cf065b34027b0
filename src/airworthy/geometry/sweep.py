"""First contacts of moving spheres and capsules: exact, however fast the body and however thin what it meets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayLike, NDArray
from airworthy.core.native_kernel import native_kernel
from airworthy.geometry.batch import GeometryBatch
from airworthy.geometry.native_text import BATCH_SIGNATURE, native_source
from airworthy.geometry.query_arguments import environments, instance_numbers, lengths, run_queries, vectors

# ---- The kernel of boxes and cylinders in motion: one task, one body ------------------------------------------------------

_CONVEX_BODY = """
const Batch batch = BATCH_OF_ARGUMENTS;
const double* m = motion.data + 26 * (long long)task;
const Core core = {m[0] > 1.5 ? KIND_CYLINDER : KIND_BOX, {m[1], m[2], m[3]}, {m[4], m[5], m[6]}, m[7], m[8]};
Convex::Meet hit = {(double)Convex::NONE, {FAR_AWAY, {0.0, 0.0, 0.0}, {0.0, 0.0, 0.0}}, {0.0, 0.0, 0.0}, -1, -1};
double sum = 0.0;
for (int i = 0; i < 26; ++i) sum += m[i];
Attitude turn = Attitude::of(m + 12);
if (sum - sum == 0.0) {
  const Motion motion = Motion::of(m + 9, m + 12, m + 16, m + 19);
  Convex::earliest(batch, closed.data, env.data[task], ignore.data[task], {&core, &motion, m[23], m[24], m[25]}, hit);
  if (hit.instance >= 0) {
    turn = Motion::attitude(motion, hit.fraction);
    hit.apart.point = turn.back(hit.apart.point - motion.displacement * hit.fraction);
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
    return native_source("distance.h", "clearance.h", "convex.h") + _CONVEX_BODY


_CONVEX_ARGUMENTS = """
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
    """Return the first contacts of boxes and cylinders, as a Warp kernel; compiled at first launch, then cached on disk."""
    return native_kernel("convex", convex_source(), BATCH_SIGNATURE + _CONVEX_ARGUMENTS)


# ---- The kernel of the sweeps: one task, one moving sphere or capsule -----------------------------------------------------

_SWEEP_BODY = """
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
    return native_source("distance.h", "clearance.h", "sweep.h") + _SWEEP_BODY


_SWEEP_ARGUMENTS = """
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
    """Return the first contacts of moving spheres and capsules, as a Warp kernel; compiled at first launch, then cached on
    disk."""
    return native_kernel("sweep", sweep_source(), BATCH_SIGNATURE + _SWEEP_ARGUMENTS)


# ---------------------------------------------------------------------------------------------------------------------------

# -----------------------------------------------------------------------------------------------------------------------------
# Boxes and cylinders that move and turn among what can be hit: first contacts and distances, exact but for rounded edges.

Pose = tuple[ArrayLike, ArrayLike]

CORE = 9
"""Numbers of a core: kind (1: box, 2: cylinder about z), half lengths (3; cylinder: radius, radius, half height), centre (3,
from the origin of the body), margin: radius of the ball that goes around the core, reach: farthest point from the origin,
margin included [m]."""


@dataclass(frozen=True, eq=False)
class BodyContact:
    """The first contact, or the nearest surface, of each of n bodies."""

    fraction: Array
    """Of the motion until contact, (n,) in [0, 1]; 1 where there is none."""
    distance: Array
    """Of the core from the surface there [m], (n,): the margin more than the body's; negative inside; inf where none."""
    normal: Array
    """Unit, from the surface to the body, (n, 3); 0 where there is none."""
    point: Array
    """On the surface, world [m], (n, 3); NaN where there is none."""
    arm: Array
    """The nearest point of the core, body frame [m], (n, 3)."""
    instance: NDArray[np.int32]
    """What is met, (n,); -1: nothing."""


def sweep_body(
    batch: GeometryBatch,
    core: ArrayLike,
    start: Pose,
    end: Pose,
    env: ArrayLike | None = None,
    *,
    gap: float = 0.0,
    leaving: float = 0.0,
    shallow: float = math.inf,
    ignore: ArrayLike | None = None,
) -> BodyContact:
    """Return the first contact of boxes and cylinders with everything that collides.

    Origins go straight, attitudes by linear interpolation between the quaternions, brought to unit length.

    Args:
        batch: Environments.
        core: Numbers of each body as `CORE` says, (n, 9).
        start: Position, world [m], (n, 3), and attitude x, y, z, w, (n, 4).
        end: The same at fraction 1.
        env: Environment of each, (n,) or one number; None: environment k for body k, or the only one.
        gap: Distance of the body at which it touches [m].
        leaving: A body that touches at its start and does not go further in than this [m] is led as if it did not touch.
        shallow: A deeper overlap [m] is a contact whatever the body does.
        ignore: Instance that each body passes through, (n,) or one number; -1: none.
    """
    rows = np.atleast_2d(np.asarray(core, float))
    count = len(rows)
    parts = zip((*start, *end), (3, 4, 3, 4), strict=True)
    # One pose may serve all bodies.
    poses = [np.broadcast_to(np.asarray(part, float), (count, width)) for part, width in parts]
    # A finite number for infinity: the kernel subtracts it.
    numbers = np.broadcast_to([gap, leaving, shallow if math.isfinite(shallow) else 1e9], (count, 3))
    motion = np.ascontiguousarray(np.concatenate([rows, *poses, numbers], axis=1))
    inputs: Any = (motion, environments(env, count, batch.env_count), instance_numbers(ignore, count))
    result, which = run_queries(batch, convex_kernel(), inputs, ((np.float64, 11), (np.int32, 2)), count)
    none = which[:, 0] < 0
    # Nothing met: the whole motion is free, and there is no point that could be taken for one.
    result[none, 0], result[none, 1], result[none, 2:5] = 1.0, math.inf, math.nan
    return BodyContact(result[:, 0], result[:, 1], result[:, 5:8], result[:, 2:5], result[:, 8:11], which[:, 0])


def body_clearance(
    batch: GeometryBatch, core: ArrayLike, pose: Pose, env: ArrayLike | None = None, max_distance: float = math.inf
) -> BodyContact:
    """Return the nearest surface to boxes and cylinders, within a distance.

    Args:
        batch: Environments.
        core: As for `sweep_body`, (n, 9).
        pose: Where each body is, world.
        env: Environment of each, (n,); None as for `sweep_body`.
        max_distance: How far to look [m].
    """
    # A sweep that goes nowhere, whose gap is the distance looked for; with a negative `shallow` any overlap is found at once.
    return sweep_body(batch, core, pose, pose, env, gap=min(max_distance, 1e6), shallow=-1.0)


# -----------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Impact:
    """The first contact of each of n moving bodies."""

    fraction: Array
    """Of the motion until contact, (n,) in [0, 1]; 1 where there is none; NaN for a motion that is not finite."""
    normal: Array
    """Unit, from the surface to the body, (n, 3); 0 where there is no contact."""
    point: Array
    """Of the surface that is touched, world [m], (n, 3); NaN where there is no contact."""
    instance: NDArray[np.int32]
    """Number of the instance hit as in a ray's hits, (n,); -1 where there is no contact."""
    face: NDArray[np.int32]
    """Face of a mesh, (n,); 0 for solids, -1 where there is no contact."""


def sweep_sphere(
    batch: GeometryBatch,
    start: ArrayLike,
    end: ArrayLike,
    radius: ArrayLike,
    env: ArrayLike | None = None,
    *,
    ignore: ArrayLike | None = None,
) -> Impact:
    """Return the first contact of spheres that move straight from `start` to `end`.

    A sphere that touches something at its start, or whose centre is inside a solid or closed mesh, has contact at fraction 0,
    with what it is deepest in. Equal contacts: the lowest instance number, then the lowest face.

    Args:
        batch: Environments.
        start: Centre, world [m], (n, 3).
        end: Centre, world [m], (n, 3).
        radius: [m], (n,) or one number; 0 moves a point.
        env: Environment of each sphere, (n,) or one number; None: environment k for sphere k, or the only one.
        ignore: Instance that each sphere passes through (the vehicle's own), (n,) or one number; -1: none.

    Raises:
        AirworthyError: If shapes do not fit, a radius is negative or an environment is out of range.
    """
    return sweep_capsule(batch, start, end, (0.0, 0.0, 0.0), radius, env, ignore=ignore)


def sweep_capsule(
    batch: GeometryBatch,
    start: ArrayLike,
    end: ArrayLike,
    axis: ArrayLike,
    radius: ArrayLike,
    env: ArrayLike | None = None,
    *,
    ignore: ArrayLike | None = None,
) -> Impact:
    """Return the first contact of capsules that move straight, without turning, from `start` to `end`.

    The core of a capsule is the segment centre - axis ... centre + axis. For the rest see `sweep_sphere`.

    Args:
        batch: Environments.
        start: Centre, world [m], (n, 3).
        end: Centre, world [m], (n, 3).
        axis: Half of the core, world [m], (n, 3) or (3,).
        radius: [m], (n,) or one number.
        env: Environment of each capsule, (n,) or one number; None: environment k for capsule k, or the only one.
        ignore: Instance that each capsule passes through, (n,) or one number; -1: none.

    Raises:
        AirworthyError: If shapes do not fit, a radius is negative or an environment is out of range.
    """
    begin = vectors("start", start)
    count = len(begin)
    path = vectors("end", end, count) - begin
    motion = np.concatenate([begin, path, vectors("axis", axis, count), lengths("radius", radius, count)[:, None]], 1)
    inputs = (motion, environments(env, count, batch.env_count), instance_numbers(ignore, count))
    result, which = run_queries(batch, sweep_kernel(), inputs, ((np.float64, 7), (np.int32, 2)), count)
    result[which[:, 0] < 0, 1:4] = math.nan
    result[~np.isfinite(motion).all(1), 0] = math.nan
    return Impact(result[:, 0], result[:, 4:7], result[:, 1:4], which[:, 0], which[:, 1])
