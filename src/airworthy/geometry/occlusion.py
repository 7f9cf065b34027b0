"""Vertex channels at the points that rays met."""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import ArrayAny, ArrayBool, ArrayF32, ArrayLike, NDArray
from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import CPU_LANES
from airworthy.geometry.batch import GeometryBatch
from airworthy.geometry.cast import CHANNELS, INPUTS, SEGMENTS, camera_rows, cast_kernel, sensor_environments, whole_numbers
from airworthy.geometry.hierarchy import as_warp
from airworthy.geometry.placement import POSITION_LIMIT, Mesh
from airworthy.geometry.query_arguments import Repeated, nothing, recorded

# ---- Whether one point sees another -----------------------------------------------------------------------------------------

SEGMENT_MARGIN = 1e-4
"""What `occluded` leaves out at either end of a segment [m], so that the surface it ends on does not count; at most a tenth."""


def occluded(
    batch: GeometryBatch,
    start: ArrayLike,
    end: ArrayLike,
    env: ArrayLike | None = None,
    ignore: ArrayLike = -1,
    through: ArrayLike = 0,
) -> ArrayBool:
    """Tell whether anything stands between two points.

    The outermost `SEGMENT_MARGIN` of both ends does not count, so that a point may lie on a surface.

    Args:
        batch: What there is.
        start: (n, 3) world [m].
        end: (n, 3) world [m].
        env: (n,) environment of each; None: pair k is in environment k, or all are in the only one.
        ignore: (n,) or one instance number that is not seen; -1: none.
        through: (n,) or one group of instances (`Placement.group`) that is not seen; 0: none.

    Returns:
        (n,)

    Raises:
        AirworthyError: If a shape does not fit or a value is not finite.
    """
    first, last = np.asarray(start, np.float64), np.asarray(end, np.float64)
    if first.ndim != 2 or first.shape[1] != 3 or last.shape != first.shape:
        raise AirworthyError(f"`start` has shape {first.shape} and `end` {last.shape}; expected (n, 3) both, world, in metres.")
    if not ((np.abs(first) <= POSITION_LIMIT) & (np.abs(last) <= POSITION_LIMIT)).all():
        raise AirworthyError(f"A segment's end is not finite or beyond {POSITION_LIMIT:g} m.")
    count = len(first)
    envs, ignored = sensor_environments(env, count, batch.env_count), whole_numbers("ignore", ignore, count)
    if not count:
        return np.zeros(0, bool)
    step = last - first
    length = np.sqrt(np.sum(step * step, axis=1))
    skip = np.minimum(SEGMENT_MARGIN / np.maximum(length, 1e-12), 0.1)
    turned = np.concatenate([step, skip[:, None]], 1)
    rows = camera_rows(first[:, None], turned[:, None], envs, ignored)
    found = np.zeros(count, np.int32)
    _launch_segments(batch, rows, whole_numbers("through", through, count), found)
    return found.astype(bool)


def _launch_segments(batch: GeometryBatch, rows: NDArray[np.void], groups: NDArray[np.int32], found: NDArray[np.int32]) -> None:
    device, arrays = batch.device, batch.arguments()
    on_cpu, count = device == "cpu", len(rows)
    cameras, through, answer = as_warp(rows), as_warp(groups), as_warp(found)
    if not on_cpu:
        cameras, through, answer = cameras.to(device), through.to(device), answer.to(device)
    floats, ints = nothing(False, device), nothing(True, device)
    outputs = [ints if whole else floats for _, _, whole in CHANNELS.values()]
    outputs[list(CHANNELS).index("instance")] = answer
    # In the place of the pixels, which segments have none of: the group that each passes through.
    inputs = [*arrays, floats, through, cameras, ints, *outputs, count, 0, 0, SEGMENTS, 0.0]
    tasks = -(-count // CPU_LANES) if on_cpu else count
    key = ("segments", count, batch.version)
    launch = recorded(batch, key, lambda: Repeated(cast_kernel(), tasks, inputs, device, batch.threads))
    for index, array in enumerate(inputs[: len(INPUTS) + len(CHANNELS)]):
        launch.exchange(index, array)
    launch.launch()
    if not on_cpu:
        found[:] = answer.numpy()


# -----------------------------------------------------------------------------------------------------------------------------


def interpolate(batch: GeometryBatch, hits: dict[str, ArrayAny], channel: str | ArrayAny) -> ArrayF32:
    """Return a user's vertex channel at the points that rays met.

    Args:
        batch: The batch that was cast into.
        hits: What `cast` gave, with `instance`, `face` and `barycentric`; add `env` (c,) where sensor k is not in
            environment k.
        channel: Name of a channel of the meshes, or an array (V,) or (V, k) that belongs to every mesh met.

    Returns:
        (c, H, W) or (c, H, W, k); NaN where nothing, a solid, or a mesh without that channel was met.

    Raises:
        AirworthyError: If a channel of the hits is missing or the meshes' channels differ in width.
    """
    for name in ("instance", "face", "barycentric"):
        if name not in hits:
            raise AirworthyError(f"`hits` has no {name!r}; cast with the channels instance, face and barycentric.")
    instance, face, weights = hits["instance"], hits["face"], hits["barycentric"]
    envs = sensor_environments(hits.get("env"), len(instance), batch.env_count)
    shape_of = _shapes_met(batch, instance, envs)
    result: ArrayF32 | None = None
    for index in np.unique(shape_of[shape_of >= 0]):
        mesh = batch.shapes[index]
        values = mesh.channels.get(channel) if isinstance(mesh, Mesh) and isinstance(channel, str) else channel
        if not isinstance(mesh, Mesh) or values is None or isinstance(values, str):
            continue
        values = np.asarray(values, np.float32)
        if len(values) != len(mesh.vertices):
            raise AirworthyError(f"A vertex channel has {len(values)} rows; expected {len(mesh.vertices)}, one per vertex.")
        if result is None:
            result = np.full((*instance.shape, *values.shape[1:]), np.nan, np.float32)
        if result.shape[instance.ndim :] != values.shape[1:]:
            raise AirworthyError(f"Vertex channels differ in width: {values.shape[1:]} and {result.shape[instance.ndim :]}.")
        met = shape_of == index
        # Grouped by mesh: each mesh's channel is indexed once for all of its rays.
        corners = values[mesh.faces[face[met]]]
        v, w = weights[met][:, 0], weights[met][:, 1]
        # The first corner's weight is what the other two leave, as `cast` gives only these.
        share = np.stack([1.0 - v - w, v, w], 1).reshape(-1, 3, *[1] * (values.ndim - 1))
        result[met] = (corners * share).sum(1)
    return np.full(instance.shape, np.nan, np.float32) if result is None else result


def _shapes_met(batch: GeometryBatch, instance: NDArray[np.int32], env: NDArray[np.int32]) -> NDArray[np.int32]:
    """Index of the shape that each ray met; -1: none."""
    result = np.full(instance.shape, -1, np.int32)
    for k, number in enumerate(instance):
        shapes = batch.instance_shapes(int(env[k]))
        result[k] = np.where(number >= 0, shapes[np.maximum(number, 0)], -1)
    return result
