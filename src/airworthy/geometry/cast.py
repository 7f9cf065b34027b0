"""Rays: one query that delivers whatever is asked for of what they meet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.native_kernel import CPU_LANES, quiet_warp
from airworthy.geometry.batch import GeometryBatch
from airworthy.geometry.cast_kernel import CHANNELS, COLUMNS, INPUTS, OWN_ORIGINS, PACKETS_PER_TASK, SEGMENTS, cast_kernel
from airworthy.geometry.hierarchy import as_warp
from airworthy.geometry.launching import Repeated, striped
from airworthy.geometry.placement import POSITION_LIMIT, unit_quaternions
from airworthy.geometry.rays import RayTable
from airworthy.geometry.shapes import Mesh

NO_HIT = -2
"""Instance and semantic number of a ray that meets nothing."""
SEGMENT_MARGIN = 1e-4
"""What `occluded` leaves out at either end of a segment [m], so that the surface it ends on does not count; at most a tenth."""
CAMERA = np.dtype(
    [("position", "<f4", 3), ("rest", "<f4", 3), ("attitude", "<f4", 4), ("env", "<i4"), ("ignore", "<i4")]
)  # of native/cast.h

_LAUNCHES_KEPT = 16
_launches: WeakKeyDictionary[GeometryBatch, dict[Any, Repeated]] = WeakKeyDictionary()


def cast(
    batch: GeometryBatch,
    table: RayTable,
    position: ArrayLike,
    attitude: ArrayLike,
    env: ArrayLike | None = None,
    channels: Sequence[str] = ("depth",),
    *,
    max_range: float = 1000.0,
    ignore: ArrayLike = -1,
    column_position: ArrayLike | None = None,
    column_attitude: ArrayLike | None = None,
    out: dict[str, NDArray[Any]] | None = None,
) -> dict[str, NDArray[Any]]:
    """Cast a table of rays from each of c sensors.

    Channels, each (c, H, W) or (c, H, W, k):

    * `range`: along the ray, `depth`: along the table's axis [m]; +inf where nothing is met.
    * `point_world`, `point_sensor`: where it is met [m]; `local_point`: in the instance's frame, its scale taken out; NaN.
    * `normal_world`, `normal_sensor`: geometric, unit, towards the ray's origin; NaN.
    * `instance`: its number (-1); `instance_id`, `semantic_id` (-2).
    * `face`: of a mesh the triangle, of a box 0..5 for -x +x -y +y -z +z, of a cylinder 0 side, 1 bottom, 2 top, else 0 (-1).
    * `barycentric`: weights of the face's second and third vertex; 0 on solids.

    A ray that starts inside a solid meets its far side. Of two things equally near, the smaller (instance, face) is met.

    Args:
        batch: What there is.
        table: The rays in the sensor frame.
        position: (c, 3) of the sensors, world [m].
        attitude: (c, 4) quaternion x, y, z, w, sensor to world.
        env: (c,) environment of each sensor; None: sensor k is in environment k, or all are in the only one.
        channels: What to deliver.
        max_range: Nothing is met at or beyond this distance along the ray [m].
        ignore: (c,) or one instance number that is not seen; -1: none.
        column_position: (c, W, 3), with `column_attitude`: a pose per column instead (a scan that rolls); None: none.
        column_attitude: (c, W, 4)
        out: Arrays to write into, by channel: C-contiguous, of the right shape, float32 or int32.

    Returns:
        An array per channel.

    Raises:
        AirworthyError: If a name is unknown, a shape does not fit or a value is not finite.
    """
    flags, where, turned = _poses(table, position, attitude, column_position, column_attitude)
    count = len(where)
    envs = sensor_environments(env, count, batch.env_count)
    if not (max_range > 0.0):
        raise AirworthyError(f"The longest range is {max_range}; expected metres, more than 0.")
    for name in channels:
        if name not in CHANNELS:
            raise unknown_name("channel", name, CHANNELS)
        flags |= CHANNELS[name][0]
    results = {name: _output(name, (count, table.height, table.width), out) for name in channels}
    if count and channels:
        ignored = _numbers("ignore", ignore, count)
        _launch(batch, table, camera_rows(where, turned, envs, ignored), flags, float(min(max_range, 3e38)), results)
    return results


def _poses(
    table: RayTable,
    position: ArrayLike,
    attitude: ArrayLike,
    column_position: ArrayLike | None,
    column_attitude: ArrayLike | None,
) -> tuple[int, NDArray[np.float64], NDArray[np.float64]]:
    """Flags, positions (c, 1 or W, 3) and attitudes (c, 1 or W, 4), checked."""
    flags = OWN_ORIGINS if table.origins is not None else 0
    if (column_position is None) != (column_attitude is None):
        raise AirworthyError("Only one of `column_position` and `column_attitude` was given; a scan that rolls needs both.")
    if column_position is not None and column_attitude is not None:
        where, turned = np.asarray(column_position, np.float64), np.asarray(column_attitude, np.float64)
        width, flags = table.width, flags | COLUMNS
    else:
        where, turned = np.asarray(position, np.float64), np.asarray(attitude, np.float64)
        where, turned = where.reshape(-1, 1, 3) if where.shape[-1:] == (3,) else where, turned[..., None, :]
        width = 1
    if where.ndim != 3 or where.shape[1:] != (width, 3) or turned.shape != (*where.shape[:2], 4):
        raise AirworthyError(
            f"Sensors got positions {where.shape} and attitudes {turned.shape}; expected (c, 3) and (c, 4), "
            f"or per column (c, {table.width}, 3) and (c, {table.width}, 4)."
        )
    if not (np.abs(where) <= POSITION_LIMIT).all():
        raise AirworthyError(f"A sensor's position is not finite or beyond {POSITION_LIMIT:g} m.")
    return flags, where, unit_quaternions(turned, "A sensor's attitude")


def sensor_environments(env: ArrayLike | None, count: int, env_count: int) -> NDArray[np.int32]:
    """Environment of each of `count` sensors or rays (count,), checked.

    Raises:
        AirworthyError: If there is not one valid number each.
    """
    if env is None:
        if env_count == 1:
            return np.zeros(count, np.int32)
        if count != env_count:
            raise AirworthyError(f"{count} sensors or rays arrived for {env_count} environments; give `env`, one number each.")
        return np.arange(count, dtype=np.int32)
    numbers = _numbers("env", env, count)
    if count and not (numbers.min() >= 0 and numbers.max() < env_count):
        raise AirworthyError(f"`env` names environments {numbers.min()} to {numbers.max()}; expected 0 to {env_count - 1}.")
    return numbers


def _numbers(name: str, value: ArrayLike, count: int) -> NDArray[np.int32]:
    array = np.asarray(value)
    if array.ndim == 0:
        array = np.broadcast_to(array, (count,))
    if array.shape != (count,) or (count and not np.issubdtype(array.dtype, np.integer)):
        raise AirworthyError(f"`{name}` is an array of {array.dtype}, shape {array.shape}; expected whole numbers, ({count},).")
    return np.ascontiguousarray(array, np.int32)


def camera_rows(
    position: NDArray[np.float64], attitude: NDArray[np.float64], env: NDArray[np.int32], ignore: NDArray[np.int32]
) -> NDArray[np.void]:
    """Rows of native/cast.h for poses (c, n, 3) and (c, n, 4)."""
    rows = np.empty(position.shape[:2], CAMERA)
    high = position.astype(np.float32)
    rows["position"], rows["rest"], rows["attitude"] = high, position - high, attitude
    rows["env"], rows["ignore"] = env[:, None], ignore[:, None]
    return rows


def _output(name: str, shape: tuple[int, ...], out: dict[str, NDArray[Any]] | None) -> NDArray[Any]:
    _, width, whole = CHANNELS[name]
    kind = np.int32 if whole else np.float32
    full = shape if width == 1 else (*shape, width)
    if out is None or name not in out:
        return np.empty(full, kind)
    array = out[name]
    if array.shape != full or array.dtype != kind or not array.flags.c_contiguous:
        raise AirworthyError(
            f"`out[{name!r}]` is {array.dtype}, shape {array.shape}; expected {np.dtype(kind)}, {full}, C-contiguous."
        )
    return array


def _launch(
    batch: GeometryBatch, table: RayTable, cameras: NDArray[np.void], flags: int, max_range: float, out: dict[str, NDArray[Any]]
) -> None:
    wp = quiet_warp()
    arrays = batch.arguments()
    on_cpu = batch.device == "cpu"
    count, packets = len(cameras), table.packet_count
    sent: list[Any] = [*table.arrays(batch.device), as_warp(cameras)]
    outputs: list[Any] = []
    for name, (_, _, whole) in CHANNELS.items():
        if name in out:
            outputs.append(as_warp(out[name]) if on_cpu else wp.empty(out[name].size, dtype=_kind(whole), device=batch.device))
        else:
            outputs.append(_nothing(whole, batch.device))
    tasks = count * -(-packets // PACKETS_PER_TASK) if on_cpu else count * packets * CPU_LANES
    key = (table, count, flags, max_range, batch.version)
    kept = _launches.setdefault(batch, {})
    launch = kept.get(key)
    if launch is None:
        order = as_warp(striped(tasks, batch.threads)) if on_cpu else _nothing(True, batch.device)
        inputs = [*arrays, *sent, order, *outputs]
        scalars = [packets, table.height * table.width, table.width, flags, max_range]
        launch = Repeated(cast_kernel(), tasks, [*inputs, *scalars], batch.device, batch.threads)
        while len(kept) >= _LAUNCHES_KEPT:
            kept.pop(next(iter(kept)))
        kept[key] = launch
    first_sent = len(INPUTS) - 4
    for index, array in (*enumerate([*arrays, *sent]), *enumerate(outputs, len(INPUTS))):
        launch.exchange(index, array if on_cpu or index != first_sent + 2 else array.to(batch.device))
    launch.launch()
    if not on_cpu:
        for (name, _), array in zip(CHANNELS.items(), outputs, strict=True):
            if name in out:
                out[name][...] = array.numpy().reshape(out[name].shape)


_NOTHING: dict[tuple[bool, str], Any] = {}


def _kind(whole: bool) -> Any:
    wp = quiet_warp()
    return wp.int32 if whole else wp.float32


def _nothing(whole: bool, device: str) -> Any:
    """A place for a channel that nobody asked for."""
    if (whole, device) not in _NOTHING:
        _NOTHING[whole, device] = quiet_warp().zeros(1, dtype=_kind(whole), device=device)
    return _NOTHING[whole, device]


def occluded(
    batch: GeometryBatch, start: ArrayLike, end: ArrayLike, env: ArrayLike | None = None, ignore: ArrayLike = -1
) -> NDArray[np.bool_]:
    """Whether anything stands between two points.

    The outermost `SEGMENT_MARGIN` of both ends does not count, so that a point may lie on a surface.

    Args:
        batch: What there is.
        start: (n, 3) world [m].
        end: (n, 3) world [m].
        env: (n,) environment of each; None: pair k is in environment k, or all are in the only one.
        ignore: (n,) or one instance number that is not seen; -1: none.

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
    envs, ignored = sensor_environments(env, count, batch.env_count), _numbers("ignore", ignore, count)
    if not count:
        return np.zeros(0, bool)
    step = last - first
    length = np.sqrt(np.sum(step * step, axis=1))
    skip = np.minimum(SEGMENT_MARGIN / np.maximum(length, 1e-12), 0.1)
    turned = np.concatenate([step, skip[:, None]], 1)
    rows = camera_rows(first[:, None], turned[:, None], envs, ignored)
    found = np.zeros(count, np.int32)
    _launch_segments(batch, rows, found)
    return found.astype(bool)


def _launch_segments(batch: GeometryBatch, rows: NDArray[np.void], found: NDArray[np.int32]) -> None:
    device, arrays = batch.device, batch.arguments()
    on_cpu, count = device == "cpu", len(rows)
    cameras, answer = as_warp(rows), as_warp(found)
    if not on_cpu:
        cameras, answer = cameras.to(device), answer.to(device)
    floats, ints = _nothing(False, device), _nothing(True, device)
    outputs = [ints if whole else floats for _, _, whole in CHANNELS.values()]
    outputs[list(CHANNELS).index("instance")] = answer
    inputs = [*arrays, floats, ints, cameras, ints, *outputs, count, 0, 0, SEGMENTS, 0.0]
    key = ("segments", count, batch.version)
    kept = _launches.setdefault(batch, {})
    if key not in kept:
        tasks = -(-count // CPU_LANES) if on_cpu else count
        while len(kept) >= _LAUNCHES_KEPT:
            kept.pop(next(iter(kept)))
        kept[key] = Repeated(cast_kernel(), tasks, inputs, device, batch.threads)
    for index, array in enumerate(inputs[: len(INPUTS) + len(CHANNELS)]):
        kept[key].exchange(index, array)
    kept[key].launch()
    if not on_cpu:
        found[:] = answer.numpy()


def interpolate(batch: GeometryBatch, hits: dict[str, NDArray[Any]], channel: str | NDArray[Any]) -> NDArray[np.float32]:
    """A user's vertex channel at the points that rays met.

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
    result: NDArray[np.float32] | None = None
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
        corners = values[mesh.faces[face[met]]]
        v, w = weights[met][:, 0], weights[met][:, 1]
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
