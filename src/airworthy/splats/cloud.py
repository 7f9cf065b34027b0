"""Clouds as the kernels read them: near ones together, in chunks, 16 side by side.

Clouds that stand or move rigidly before the cameras of one call.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayF32, ArrayFloat, ArrayIndex, ArrayInt, ArrayLike, NDArray
from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import CPU_LANES, quiet_warp
from airworthy.scenes.splats.record import Splats
from airworthy.splats.native_text import CHUNK, CHUNK_ROW, GEOMETRY_ROWS, LEAST_ALPHA

# ---- Work memory that grows and stays ---------------------------------------------------------------------------------------

_KINDS = {np.dtype(np.float32): "float32", np.dtype(np.int32): "int32", np.dtype(np.int64): "int64"}
_CONSTANTS_KEPT = 16


def as_warp(array: ArrayAny, device: str = "cpu") -> Any:
    """Return an array as a flat Warp array, on the CPU sharing its memory; rows of a record as 32-bit words."""
    wp = quiet_warp()
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.dtype.names:
        flat = flat.view(np.float32)
    shared = wp.array(flat, dtype=getattr(wp, _KINDS[flat.dtype]), device="cpu", copy=False)
    return shared if device == "cpu" else shared.to(device)


class Buffers:
    """Arrays by name; one that is asked for larger than it was is made anew, its content lost."""

    def __init__(self, device: str):
        self._device = device
        self._arrays: dict[str, Any] = {}
        self._hosts: dict[str, ArrayAny] = {}
        self._constants: dict[Hashable, Any] = {}

    def take(self, name: str, size: int, kind: type[np.generic]) -> Any:
        """Return a Warp array of at least `size` numbers, its content arbitrary.

        Args:
            name: Of the array; the same name gets the same memory.
            size: Numbers wanted.
            kind: Their type.
        """
        held = self._arrays.get(name)
        if held is None or held.size < size:
            # Warp gives empty arrays no memory, and kernels take pointers of all.
            size = max(size, 1)
            if self._device == "cpu":
                self._hosts[name] = np.empty(size, kind)
                self._arrays[name] = as_warp(self._hosts[name])
            else:
                wp = quiet_warp()
                self._arrays[name] = wp.empty(size, dtype=getattr(wp, _KINDS[np.dtype(kind)]), device=self._device)
        return self._arrays[name]

    def host(self, name: str) -> ArrayAny:
        """Return the memory of an array that was taken, as NumPy sees it; on a GPU a copy."""
        return self._hosts[name] if self._device == "cpu" else self._arrays[name].numpy()

    def constant(self, key: Hashable, make: Callable[[], ArrayAny]) -> Any:
        """Return an array that never changes, made once."""
        if key not in self._constants:
            while len(self._constants) >= _CONSTANTS_KEPT:
                self._constants.pop(next(iter(self._constants)))
            self._constants[key] = as_warp(make(), self._device)
        return self._constants[key]


# -----------------------------------------------------------------------------------------------------------------------------

_MORTON_BITS = 20
_LIMITS = {"position": 1e6, "scale": 1e5, "harmonics": 1e4}


@dataclass(frozen=True, eq=False)
class Cloud:
    """Scenes, one after the other, each padded to whole chunks with Gaussians that nobody sees."""

    geometry: ArrayF32
    """(block, GEOMETRY_ROWS, 16)"""
    harmonics: ArrayF32
    """Flat: per block (k, 3, 16), k that of the scene."""
    chunks: NDArray[np.void]
    """Rows of `CHUNK_ROW`."""
    spans: NDArray[np.int32]
    """First chunk and chunks of each scene, (scene, 2)."""
    order: tuple[ArrayInt, ...]
    """Per scene: which of the user's Gaussians stands at each place, (n,)."""

    @property
    def chunk_stride(self) -> int:
        """Most chunks of a scene."""
        return int(self.spans[:, 1].max())


def make_cloud(scenes: Sequence[Splats], orders: Sequence[ArrayInt | None] | None = None) -> Cloud:
    """Pack scenes; `orders` says how those are to lie whose places are kept.

    Raises:
        AirworthyError: If a value is not finite or beyond what float32 arithmetic carries.
    """
    if not scenes:
        raise AirworthyError("A splat renderer got no scenes; expected at least one.")
    geometry, harmonics, chunks, spans, used = [], [], [], [], []
    first, numbers = 0, 0
    for index, splats in enumerate(scenes):
        _check(splats, index)
        kept = orders[index] if orders is not None else None
        # Neighbours in space are neighbours in memory: a chunk is small, and is culled as one.
        order = morton_order(splats.position) if kept is None else kept
        count = max(1, -(-len(splats) // CHUNK))
        rows = _padded(_geometry(splats)[order], count * CHUNK)
        colours = _padded(splats.harmonics[order].reshape(len(splats), 3 * splats.harmonics.shape[1]), count * CHUNK)
        geometry.append(_blocks(rows))
        harmonics.append(_blocks(colours).reshape(-1))
        table = _chunk_rows(rows, _padded(splats.scale[order].max(axis=1, initial=0.0)[:, None], count * CHUNK)[:, 0])
        table["harmonics"] = (numbers + np.arange(count, dtype=np.int64) * CHUNK * colours.shape[1]) // CPU_LANES
        table["coefficients"] = splats.harmonics.shape[1]
        chunks.append(table)
        spans.append((first, count))
        used.append(order)
        first, numbers = first + count, numbers + colours.size
    return Cloud(
        np.concatenate(geometry), np.concatenate(harmonics), np.concatenate(chunks), np.array(spans, np.int32), tuple(used)
    )


def morton_order(position: ArrayFloat) -> ArrayInt:
    """Return indices (n,) of points (n, 3) along a curve that keeps near ones together; equal ones in their own order."""
    if not len(position):
        return np.zeros(0, np.int64)
    points = position.astype(np.float64)
    low = points.min(axis=0)
    side = max(float((points.max(axis=0) - low).max()), 1e-12)
    # The largest coordinate would lie in a cell of its own, one beyond.
    cells = np.minimum((points - low) / side * 2**_MORTON_BITS, 2**_MORTON_BITS - 1).astype(np.uint64)
    code = np.zeros(len(points), np.uint64)
    for axis in range(3):
        code |= _spread(cells[:, axis]) << np.uint64(axis)
    return np.argsort(code, kind="stable")


def _spread(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Bits of x with two zeros between each."""
    for shift, mask in (
        (32, 0x1F00000000FFFF),
        (16, 0x1F0000FF0000FF),
        (8, 0x100F00F00F00F00F),
        (4, 0x10C30C30C30C30C3),
        (2, 0x1249249249249249),
    ):
        x = (x | x << np.uint64(shift)) & np.uint64(mask)
    return x


def rotation_matrices(quaternion: ArrayFloat) -> Array:
    """Return rotations (n, 3, 3) of unit quaternions x, y, z, w (n, 4)."""
    x, y, z, w = np.asarray(quaternion, np.float64).T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), -1, 0)


def _geometry(splats: Splats) -> ArrayF32:
    """(n, GEOMETRY_ROWS)"""
    axes = rotation_matrices(splats.rotation) * splats.scale[:, None, :]
    rows = [splats.position, axes.reshape(-1, 9), splats.opacity[:, None]]
    return np.concatenate(rows, axis=1).astype(np.float32)


def _padded(rows: ArrayF32, count: int) -> ArrayF32:
    """Rows, the last repeated up to `count`, but without opacity where there is one."""
    missing = count - len(rows)
    if not missing:
        return rows
    more = np.repeat(rows[-1:] if len(rows) else np.zeros_like(rows, shape=(1, rows.shape[1])), missing, axis=0)
    if rows.shape[1] == GEOMETRY_ROWS:
        more[:, -1] = 0.0
    return np.concatenate([rows, more])


def _blocks(rows: ArrayF32) -> ArrayF32:
    """(n, k) -> (n / 16, k, 16)"""
    return np.ascontiguousarray(rows.reshape(-1, CPU_LANES, rows.shape[1]).swapaxes(1, 2))


def _chunk_rows(rows: ArrayF32, sigma: ArrayF32) -> NDArray[np.void]:
    table = np.zeros(len(rows) // CHUNK, CHUNK_ROW)
    points = rows[:, :3].astype(np.float64).reshape(-1, CHUNK, 3)
    centre = 0.5 * (points.min(axis=1) + points.max(axis=1))
    table["centre"] = centre
    table["radius"] = np.sqrt(((points - table["centre"][:, None]) ** 2).sum(axis=-1).max(axis=1)) * 1.000001
    # Seen as far as its opacity is above the least.
    reach = np.sqrt(2.0 * np.log(np.maximum(rows[:, -1].astype(np.float64) / LEAST_ALPHA, 1.0)))
    table["extent"] = (reach * sigma).reshape(-1, CHUNK).max(axis=1) * 1.000001
    table["reach"] = reach.reshape(-1, CHUNK).max(axis=1)
    return table


def _check(splats: Splats, index: int) -> None:
    for name in ("position", "rotation", "scale", "opacity", "harmonics"):
        values = getattr(splats, name)
        if not np.isfinite(values).all():
            raise AirworthyError(f"Scene {index} of a splat renderer has {name} that is not finite; drop such Gaussians first.")
        if name in _LIMITS and len(values) and float(np.abs(values).max()) > _LIMITS[name]:
            raise AirworthyError(
                f"Scene {index} of a splat renderer has {name} beyond {_LIMITS[name]:g}; drop such Gaussians first."
            )
    if len(splats) and (
        float(splats.opacity.min()) < 0.0 or float(splats.opacity.max()) > 1.0 or float(splats.scale.min()) < 0.0
    ):
        raise AirworthyError(f"Scene {index} of a splat renderer has opacities outside [0, 1] or negative scales.")
    if len(splats) and float(np.abs(np.square(splats.rotation.astype(np.float64)).sum(axis=1) - 1.0).max()) > 1e-3:
        raise AirworthyError(
            f"Scene {index} of a splat renderer has rotations that are not unit quaternions; normalise them first."
        )


MOST_DYNAMIC_INSTANCES = 4096
"""Before one camera."""
_POSITION_LIMIT = 1e6


@dataclass(frozen=True, eq=False)
class DynamicSplats:
    """m clouds before each of c cameras, each in a pose of its own: rigid actors, furniture, many copies of one thing.

    Each is a camera of its own in the frame of its cloud, so colours turn with it and a cloud that stands at many places is in
    memory once. All Gaussians of a camera are sorted together.

    Raises:
        AirworthyError: If shapes do not fit each other or a value cannot be used.
    """

    cloud: ArrayLike
    """(m,) or (c, m) index among the renderer's clouds."""
    position: ArrayLike
    """(c, m, 3) origins of the clouds, world [m]."""
    attitude: ArrayLike
    """(c, m, 4) quaternion x, y, z, w, cloud to world."""
    active: ArrayLike | None = None
    """(c, m) which are there at all; None: all."""

    def __post_init__(self) -> None:
        where, turned = np.asarray(self.position, np.float64), np.asarray(self.attitude, np.float64)
        shape = where.shape[:2]
        if where.ndim != 3 or where.shape[2] != 3 or turned.shape != (*shape, 4):
            raise AirworthyError(
                f"Dynamic instances have positions of shape {where.shape} and attitudes of shape {turned.shape}; expected"
                " (c, m, 3) and (c, m, 4)."
            )
        if shape[1] > MOST_DYNAMIC_INSTANCES:
            raise AirworthyError(
                f"{shape[1]} dynamic instances stand before each camera; expected at most {MOST_DYNAMIC_INSTANCES}."
            )
        cloud = np.asarray(self.cloud)
        if cloud.shape not in ((shape[1],), shape) or not (np.issubdtype(cloud.dtype, np.integer) or not cloud.size):
            raise AirworthyError(
                f"Dynamic instances have cloud numbers of {cloud.dtype}, shape {cloud.shape}; expected whole numbers, one per"
                f" dynamic instance ({shape[1]},)."
            )
        there = np.ones(shape, bool) if self.active is None else np.asarray(self.active)
        if there.shape != shape or there.dtype != np.bool_:
            raise AirworthyError(
                f"`active` of dynamic instances is of {there.dtype}, shape {there.shape}; expected truth values {shape}, one"
                " per camera and dynamic instance."
            )
        norm = np.linalg.norm(turned, axis=-1, keepdims=True)
        usable = np.isfinite(where).all(-1) & (np.abs(where) <= _POSITION_LIMIT).all(-1) & (norm[..., 0] > 1e-9)
        if not (usable | ~there).all():
            raise AirworthyError(
                f"A dynamic instance's position is not finite or beyond {_POSITION_LIMIT:g} m, or its attitude is not a"
                " quaternion; mark dynamic instances that are not there in `active`."
            )
        with np.errstate(all="ignore"):
            turned = np.where(usable[..., None], turned / norm, (0.0, 0.0, 0.0, 1.0))
        for name, value in (
            ("cloud", np.broadcast_to(cloud.astype(np.int64), shape)),
            ("position", np.where(usable[..., None], where, 0.0)),
            ("attitude", turned),
            ("active", there),
        ):
            object.__setattr__(self, name, value)

    @property
    def camera_count(self) -> int:
        """Cameras that these are for."""
        return int(np.shape(self.position)[0])

    def part(self, some: slice | ArrayIndex) -> DynamicSplats:
        """Return those of some of the cameras."""
        return DynamicSplats(*(np.asarray(getattr(self, name))[some] for name in ("cloud", "position", "attitude", "active")))

    def views(self, position: Array, rotation: Array) -> tuple[ArrayAny, ...]:
        """Return every camera in the frame of every dynamic instance that is there.

        Args:
            position: (c, 3) of the cameras, world [m].
            rotation: (c, 3, 3) world to camera.

        Returns:
            Camera (n,) rising, cloud (n,), position (n, 3) in the cloud's frame, rotation (n, 3, 3) of the cloud to the camera.
        """
        camera, dynamic_instance = np.nonzero(np.asarray(self.active))
        turned = rotation_matrices(np.asarray(self.attitude)[camera, dynamic_instance])
        away = position[camera] - np.asarray(self.position)[camera, dynamic_instance]
        inside = np.einsum("nji,nj->ni", turned, away)
        return camera, np.asarray(self.cloud)[camera, dynamic_instance], inside, rotation[camera] @ turned
