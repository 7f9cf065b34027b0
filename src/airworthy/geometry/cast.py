"""Rays: one query that delivers whatever is asked for of what they meet."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayF32, ArrayLike, NDArray
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.native_kernel import CPU_LANES, native_kernel, quiet_warp
from airworthy.geometry.batch import GeometryBatch
from airworthy.geometry.hierarchy import as_warp
from airworthy.geometry.native_text import BATCH_ARGUMENTS, BATCH_SIGNATURE, native_source
from airworthy.geometry.placement import POSITION_LIMIT, unit_quaternions
from airworthy.geometry.query_arguments import Repeated, element_kind, nothing, recorded, striped

# ---- The kernel that casts rays: tables of rays from cameras, or single segments ------------------------------------------

PACKETS_PER_TASK = 16
"""Packets of 16 rays that one CPU task covers; as in `native/cast.h`."""
RAY_ROWS = 7
"""Numbers per ray of a table: direction, its part along the axis, origin."""

CHANNELS: dict[str, tuple[int, int, bool]] = {
    "range": (1, 1, False),
    "depth": (2, 1, False),
    "point_world": (4, 3, False),
    "point_sensor": (8, 3, False),
    "instance": (16, 1, True),
    "instance_id": (32, 1, True),
    "semantic_id": (64, 1, True),
    "face": (128, 1, True),
    "barycentric": (256, 2, False),
    "normal_world": (512, 3, False),
    "normal_sensor": (1024, 3, False),
    "local_point": (2048, 3, False),
}
"""Name -> flag, numbers per ray, whether whole; in the order of the kernel's outputs."""
OWN_ORIGINS, COLUMNS, SEGMENTS = 4096, 8192, 16384

INPUTS = (*BATCH_ARGUMENTS, "rays", "pixels", "cameras", "task_order")
"""Arrays before the outputs; after these come packets, pixels, width, flags, longest range and the first task."""


_ARGUMENTS = """
    rays: float32[]
    pixels: int32[]
    cameras: float32[]
    task_order: int32[]
    out_range: float32[]
    out_depth: float32[]
    out_point_world: float32[]
    out_point_sensor: float32[]
    out_instance: int32[]
    out_instance_id: int32[]
    out_semantic_id: int32[]
    out_face: int32[]
    out_barycentric: float32[]
    out_normal_world: float32[]
    out_normal_sensor: float32[]
    out_local_point: float32[]
    packets: int
    pixel_count: int
    width: int
    flags: int
    max_range: float
"""


@cache
def cast_kernel(prefix: str = "") -> Any:
    """Return the Warp kernel; `prefix` is put before its native text (`#define SCALAR_PATH` makes a CPU run the form of a
    GPU).
    """
    return native_kernel("cast", prefix + native_source("rays.h", "cast.h"), BATCH_SIGNATURE + _ARGUMENTS)


# ---------------------------------------------------------------------------------------------------------------------------

# ---- Tables of rays: what a sensor looks along, in its own frame ------------------------------------------------------------

CAMERA_AXIS = (0.0, 0.0, 1.0)
"""Optical axis of a camera; a LiDAR's is (1, 0, 0)."""


class RayTable:
    """The rays of an image, in the sensor frame, sorted into packets of neighbours.

    Args:
        directions: (H, W, 3), normalised here.
        origins: (H, W, 3) where rays start [m], or None: all in the sensor's origin.
        axis: (3,) direction along which depth is measured.

    Raises:
        AirworthyError: If a shape does not fit or a direction is zero or not finite.
    """

    def __init__(self, directions: ArrayLike, origins: ArrayLike | None = None, axis: ArrayLike = CAMERA_AXIS):
        self.directions = _unit(directions)
        """(H, W, 3) float64, of length one."""
        self.height, self.width = self.directions.shape[:2]
        self.origins = None if origins is None else np.array(origins, np.float64)
        """(H, W, 3) [m], or None."""
        if self.origins is not None and (self.origins.shape != self.directions.shape or not np.isfinite(self.origins).all()):
            raise AirworthyError(
                f"Ray origins have shape {self.origins.shape} or are not finite; expected {self.directions.shape}."
            )
        self.axis = np.array(axis, np.float64)
        """(3,)"""
        if self.axis.shape != (3,):
            raise AirworthyError(f"A ray table's axis has shape {self.axis.shape}; expected (3,).")
        # Fixed with the table, so that results do not depend on how many sensors share a cast.
        self.pixels = packet_pixels(self.height, self.width)
        self._arrays: dict[str, tuple[Any, Any]] = {}

    @property
    def packet_count(self) -> int:
        """Packets of 16 rays."""
        return len(self.pixels)

    def arrays(self, device: str) -> tuple[Any, Any]:
        """Return Warp arrays on a device: rays by packet (packets, 7, 16), and the pixel of each (packets, 16), -1 for
        padding."""
        if device not in self._arrays:
            sent = (as_warp(self._rows()), as_warp(self.pixels))
            self._arrays[device] = sent if device == "cpu" else (sent[0].to(device), sent[1].to(device))
        return self._arrays[device]

    def _rows(self) -> ArrayF32:
        # Padding repeats the ray of pixel 0; what it meets is dropped.
        chosen = np.maximum(self.pixels, 0)
        flat = self.directions.reshape(-1, 3)
        rows = np.zeros((len(chosen), RAY_ROWS, CPU_LANES), np.float32)
        rows[:, 0:3] = flat[chosen].transpose(0, 2, 1)
        # Depth is range times this cosine: taken once per table, not once per ray and cast.
        rows[:, 3] = (flat @ self.axis)[chosen]
        if self.origins is not None:
            rows[:, 4:7] = self.origins.reshape(-1, 3)[chosen].transpose(0, 2, 1)
        return rows


def _unit(directions: ArrayLike) -> Array:
    array = np.array(directions, np.float64)
    if array.ndim != 3 or array.shape[2] != 3 or not array.size:
        raise AirworthyError(f"Ray directions have shape {array.shape}; expected (height, width, 3), at least one ray.")
    length = np.sqrt(np.sum(array * array, axis=2, keepdims=True))
    if not (np.isfinite(length) & (length > 1e-12)).all():
        raise AirworthyError("A ray direction is zero or not finite; expected vectors of length one.")
    return array / length


def packet_pixels(height: int, width: int) -> NDArray[np.int32]:
    """Return pixels (row * width + column) in packets of neighbours (packets, 16); -1 for padding.

    A packet is a tile, as square as the image allows; neighbours in memory are neighbours in the image.
    """
    # 4 by 4 pixels where the image allows: rays of a packet that stay together walk the tree together.
    rows = 4 if height >= 3 else (2 if height == 2 else 1)
    columns = CPU_LANES // rows
    tall, wide = -(-height // rows), -(-width // columns)
    number = np.full((tall * rows, wide * columns), -1, np.int32)
    number[:height, :width] = np.arange(height * width, dtype=np.int32).reshape(height, width)
    tiles = number.reshape(tall, rows, wide, columns).transpose(0, 2, 1, 3).reshape(tall * wide, CPU_LANES)
    # Along Morton's curve: what one packet has read of trees and textures serves its neighbours above and below as well.
    y, x = np.divmod(np.arange(tall * wide), wide)
    return np.ascontiguousarray(tiles[np.argsort(_interleaved(x) | (_interleaved(y) << 1), kind="stable")])


def _interleaved(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return whole numbers below 2^16 with a zero between any two of their bits."""
    for shift, mask in ((8, 0x00FF00FF), (4, 0x0F0F0F0F), (2, 0x33333333), (1, 0x55555555)):
        numbers = (numbers | (numbers << shift)) & mask
    return numbers


# -----------------------------------------------------------------------------------------------------------------------------

NO_HIT = -2
"""Instance and semantic number of a ray that meets nothing."""
CAMERA = np.dtype(
    [("position", "<f4", 3), ("rest", "<f4", 3), ("attitude", "<f4", 4), ("env", "<i4"), ("ignore", "<i4")]
)  # of native/cast.h


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
    out: dict[str, ArrayAny] | None = None,
) -> dict[str, ArrayAny]:
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
    # NaN fails, too.
    if not (max_range > 0.0):
        raise AirworthyError(f"The longest range is {max_range}; expected metres, more than 0.")
    for name in channels:
        if name not in CHANNELS:
            raise unknown_name("channel", name, CHANNELS)
        flags |= CHANNELS[name][0]
    results = {name: _output(name, (count, table.height, table.width), out) for name in channels}
    if count and channels:
        ignored = whole_numbers("ignore", ignore, count)
        _launch(batch, table, camera_rows(where, turned, envs, ignored), flags, float(min(max_range, 3e38)), results)
    return results


def _poses(
    table: RayTable,
    position: ArrayLike,
    attitude: ArrayLike,
    column_position: ArrayLike | None,
    column_attitude: ArrayLike | None,
) -> tuple[int, Array, Array]:
    """Return flags, positions (c, 1 or W, 3) and attitudes (c, 1 or W, 4), checked."""
    flags = OWN_ORIGINS if table.origins is not None else 0
    if (column_position is None) != (column_attitude is None):
        raise AirworthyError("Only one of `column_position` and `column_attitude` was given; a scan that rolls needs both.")
    if column_position is not None and column_attitude is not None:
        where, turned = np.asarray(column_position, np.float64), np.asarray(column_attitude, np.float64)
        # One pose for each column, as a scan that takes time is made.
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
    """Return the environment of each of `count` sensors or rays (count,), checked.

    Args:
        env: Environment of each, (count,), or one for all; None: the only one, or one sensor per environment in order.
        count: Sensors or rays.
        env_count: Environments that there are.

    Raises:
        AirworthyError: If there is not one valid number each.
    """
    if env is None:
        if env_count == 1:
            return np.zeros(count, np.int32)
        if count != env_count:
            raise AirworthyError(f"{count} sensors or rays arrived for {env_count} environments; give `env`, one number each.")
        return np.arange(count, dtype=np.int32)
    numbers = whole_numbers("env", env, count)
    if count and not (numbers.min() >= 0 and numbers.max() < env_count):
        raise AirworthyError(f"`env` names environments {numbers.min()} to {numbers.max()}; expected 0 to {env_count - 1}.")
    return numbers


def whole_numbers(name: str, value: ArrayLike, count: int) -> NDArray[np.int32]:
    """Return one whole number for each of `count` sensors or rays (count,), from as many or from one.

    Args:
        name: Of the argument, for the error's sentence.
        value: One whole number, or (count,).
        count: Sensors or rays.

    Raises:
        AirworthyError: If it is neither.
    """
    array = np.asarray(value)
    if array.ndim == 0:
        array = np.broadcast_to(array, (count,))
    if array.shape != (count,) or (count and not np.issubdtype(array.dtype, np.integer)):
        raise AirworthyError(f"`{name}` is an array of {array.dtype}, shape {array.shape}; expected whole numbers, ({count},).")
    return np.ascontiguousarray(array, np.int32)


def camera_rows(position: Array, attitude: Array, env: NDArray[np.int32], ignore: NDArray[np.int32]) -> NDArray[np.void]:
    """Return rows of native/cast.h for poses (c, n, 3) and (c, n, 4).

    Args:
        position: World [m], (c, n, 3).
        attitude: Quaternions x, y, z, w, sensor to world, (c, n, 4).
        env: Environment of each of c cameras, (c,).
        ignore: Instance that each does not render, (c,); negative: none.
    """
    rows = np.empty(position.shape[:2], CAMERA)
    high = position.astype(np.float32)
    rows["position"], rows["rest"], rows["attitude"] = high, position - high, attitude
    rows["env"], rows["ignore"] = env[:, None], ignore[:, None]
    return rows


def _output(name: str, shape: tuple[int, ...], out: dict[str, ArrayAny] | None) -> ArrayAny:
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
    batch: GeometryBatch, table: RayTable, cameras: NDArray[np.void], flags: int, max_range: float, out: dict[str, ArrayAny]
) -> None:
    wp = quiet_warp()
    arrays = batch.arguments()
    on_cpu = batch.device == "cpu"
    count, packets = len(cameras), table.packet_count
    rows = as_warp(cameras)
    sent: list[Any] = [*table.arrays(batch.device), rows if on_cpu else rows.to(batch.device)]
    outputs: list[Any] = []
    for name, (_, _, whole) in CHANNELS.items():
        if name in out:
            outputs.append(
                as_warp(out[name]) if on_cpu else wp.empty(out[name].size, dtype=element_kind(whole), device=batch.device)
            )
        else:
            outputs.append(nothing(whole, batch.device))
    tasks = count * -(-packets // PACKETS_PER_TASK) if on_cpu else count * packets * CPU_LANES
    scalars = [packets, table.height * table.width, table.width, flags, max_range]

    def make() -> Repeated:
        order = as_warp(striped(tasks, batch.threads)) if on_cpu else nothing(True, batch.device)
        inputs = [*arrays, *sent, order, *outputs, *scalars]
        return Repeated(cast_kernel(), tasks, inputs, batch.device, batch.threads)

    launch = recorded(batch, (table, count, flags, max_range, batch.version), make)
    for index, array in (*enumerate([*arrays, *sent]), *enumerate(outputs, len(INPUTS))):
        launch.exchange(index, array)
    launch.launch()
    if not on_cpu:
        for (name, _), array in zip(CHANNELS.items(), outputs, strict=True):
            if name in out:
                out[name][...] = array.numpy().reshape(out[name].shape)
