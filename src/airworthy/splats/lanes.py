"""Rendering on a CPU: three launches of tasks that each take 16 Gaussians or pixels at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayF32
from airworthy.core.native_kernel import CPU_LANES, quiet_warp, thread_limit
from airworthy.geometry.query_arguments import Repeated, striped
from airworthy.splats.cameras import CameraView
from airworthy.splats.cloud import Buffers, Cloud, as_warp
from airworthy.splats.kernels import arrange_kernel, project_back_kernel, project_kernel, raster_back_kernel, raster_kernel
from airworthy.splats.native_text import CHUNK, FLAGS, PLANE_SIZE, RECORD_SIZE, SLOPE_ROWS, STAGES, TILE

Arrays = dict[str, ArrayF32]
_LAUNCHES_KEPT = 24
IMAGE_NAMES = ("rgb", "depth", "alpha", "normal")
"""Channels in the order in which kernels take their images."""
_BAND_TASKS = 16
"""Bands of all cameras together, at least, where images are high enough: work to share between threads."""


class CpuLanes:
    """One cloud on the CPU; renders shots of as many cameras as its memory holds at once."""

    def __init__(self, cloud: Cloud, threads: int | None):
        self._threads = threads or thread_limit()
        self.capacity, self._entries = 0, 0
        self.band_rows = 1
        self.buffers = Buffers("cpu")
        self._launches: dict[tuple[Any, ...], Repeated] = {}
        self.take(cloud)

    def take(self, cloud: Cloud) -> None:
        """Render this cloud from now on."""
        self.chunk_stride = cloud.chunk_stride
        # Shared memory on a CPU: a cloud that training moves is rendered where it now is, without a copy.
        self.sent = [as_warp(array) for array in (cloud.geometry, cloud.harmonics, cloud.chunks)]

    def render(self, view: CameraView, out: Arrays) -> None:
        """Fill the arrays of `out`, one per channel."""
        self.project(view)
        self.arrange(view)
        self.raster(view, out)

    def project(self, view: CameraView) -> None:
        """Project every Gaussian into every image."""
        count, stride = view.count, view.stride
        take, tasks = self.buffers.take, count * stride
        self.cameras = as_warp(view.cameras)
        self.records = take("records", tasks * CHUNK * RECORD_SIZE, np.float32)
        self.planes = take("planes", tasks * CHUNK * PLANE_SIZE if has_planes(view) else 1, np.float32)
        self.tags = take("tags", tasks * 4 * CHUNK, np.int32)
        self.counts = take("counts", tasks * 2, np.int32)
        arrays = [*self.sent, self.cameras, self.order(tasks), self.records, self.planes, self.tags, self.counts]
        self.launch(project_kernel, tasks, arrays, [stride, view.width, view.height, view.flags, view.near, view.dilation])

    def arrange(self, view: CameraView, stage: str = "lists") -> None:
        """Arrange lists per tile; where they turn out longer than what is reserved, more is reserved and they are made
        again.
        """
        count, stride = view.count, view.stride
        columns, rows = -(-view.width // TILE), -(-view.height // TILE)
        # Bands of rows are the tasks of sorting: enough of them for all threads, few enough that each is worth starting.
        self.band_rows = max(1, rows * count // _BAND_TASKS)
        tasks = count * -(-rows // self.band_rows)
        take = self.buffers.take
        visible = self.buffers.host("counts")[: count * stride * 2].reshape(count, stride, 2)[..., 0].sum(axis=1)
        # Never less than before: launches are recorded per set of numbers, and a new one runs on one thread at first.
        self._entries = entries = max(self._entries, _round_up(int(visible.max(initial=0))))
        scratch, heads = take("scratch", tasks * 4 * entries, np.int32), take("heads", count * rows * columns, np.int32)
        self.tiles, needed = take("tiles", 2 * count * rows * columns, np.int32), take("needed", tasks, np.int32)
        self.capacity = max(self.capacity, _round_up(entries // max(1, tasks // count) * 2))
        while True:
            self.lists = take("lists", tasks * self.capacity, np.int32)
            arrays = [self.cameras, self.order(tasks), self.records, self.tags, self.counts, scratch, heads]
            arrays += [take("keys", 1, np.int64), self.tiles, self.lists, needed]
            numbers = [stride, columns, rows, self.band_rows, entries, self.capacity, STAGES[stage]]
            self.launch(arrange_kernel, tasks, arrays, numbers)
            longest = int(self.buffers.host("needed")[:tasks].max(initial=0)) if stage == "lists" else 0
            # Lists that were cut short say how long they would be: once more with that room, and from then on at once.
            if longest <= self.capacity:
                return
            self.capacity = _round_up(longest)

    def raster(self, view: CameraView, out: Arrays) -> None:
        """Render pixels from the lists."""
        tasks = view.count * -(-view.width // TILE) * -(-view.height // TILE)
        nothing = self.buffers.take("nothing", 1, np.float32)
        images = [as_warp(out[name]) if name in out else nothing for name in IMAGE_NAMES]
        arrays = [self.cameras, self.order(tasks), self.records, self.planes, self.tiles, self.lists]
        arrays += [nothing if view.limit is None else as_warp(view.limit), *images]
        numbers = [view.stride, view.width, view.height, self.band_rows, self.capacity, view.flags]
        self.launch(raster_kernel, tasks, arrays, numbers)

    def order(self, tasks: int) -> Any:
        """Return an order of tasks in which each thread's share is spread over all."""
        return self.buffers.constant(("order", tasks), lambda: striped(tasks, self._threads))

    def launch(self, kernel: Callable[[], Any], tasks: int, arrays: list[Any], numbers: list[Any]) -> None:
        """Run a kernel over tasks, split over threads where that gains time.

        Args:
            kernel: Makes the kernel.
            tasks: Of the launch.
            arrays: Its first arguments.
            numbers: The others.
        """
        key = (kernel, tasks, *numbers)
        launch = self._launches.pop(key, None)
        if launch is None:
            launch = Repeated(kernel(), tasks, [*arrays, *numbers], "cpu", self._threads)
        self._launches[key] = launch
        while len(self._launches) > _LAUNCHES_KEPT:
            self._launches.pop(next(iter(self._launches)))
        for index, array in enumerate(arrays):
            launch.exchange(index, array)
        launch.launch()


def _round_up(count: int) -> int:
    """To one of few sizes, so that launches and memory stay when counts change a little: a quarter of a power of two."""
    # At most a quarter too large, where many are counted.
    step = max(1024, 1 << max(count.bit_length() - 3, 0))
    return max(1, -(-count // step)) * step


# ---- Derivatives on a CPU: from pixels to Gaussians in the image, and on to Gaussians in space and cameras ------------------

PART_SIZE = 16
"""Numbers between rows of sums: of a place in a list, a record, a camera's pose."""
BACK_STAGES = {"tiles": 0, "cameras": 1, "records": 2}
POSE_PLACES = [int(f"{k:04b}"[::-1], 2) for k in range(12)]
"""Where a row of sums holds position (3) and rotation matrix (9): lanes tell their sums apart bit by bit, from the top."""


class Slopes:
    """Derivatives of a loss, summed over the groups of cameras of one call.

    Where `touched` is false nothing was seen: there all is zero, and there is nothing to read.
    """

    def __init__(self, cloud: Cloud):
        wp = quiet_warp()
        self._cloud = cloud
        self.gaussians = np.zeros((len(cloud.geometry), SLOPE_ROWS, CPU_LANES), np.float32)
        """(block, SLOPE_ROWS, 16), as `Cloud.geometry`."""
        self.harmonics = np.zeros_like(cloud.harmonics)
        """As `Cloud.harmonics`."""
        self.touched = np.zeros(len(cloud.chunks), np.bool_)
        """(chunks,) whether a Gaussian of the chunk was in an image."""
        self.poses: list[Array] = []
        """Per group: position (3) and rotation matrix (9) of each camera, (c, 12)."""
        self._sent = [as_warp(self.gaussians), as_warp(self.harmonics)]
        self._touched = wp.array(self.touched, dtype=wp.bool, device="cpu", copy=False)

    def clear(self) -> None:
        """Forget everything, at the cost of what was touched."""
        # An image touches a small part of a large scene; clearing all would cost more than the image.
        for chunk in np.flatnonzero(self.touched):
            self.gaussians[chunk * CHUNK // CPU_LANES : (chunk + 1) * CHUNK // CPU_LANES] = 0.0
            row = self._cloud.chunks[chunk]
            first = int(row["harmonics"]) * CPU_LANES
            self.harmonics[first : first + CHUNK * 3 * int(row["coefficients"])] = 0.0
        self.touched[:] = False
        self.poses.clear()

    def add(self, engine: CpuLanes, view: CameraView, images: Arrays, slopes: Arrays) -> None:
        """Carry back what a loss says of the images that the engine has just rendered.

        Args:
            engine: What rendered them, its cloud still the one that these are of.
            view: What was rendered; depth `expected`.
            images: As they were rendered: the channels that the loss depends on, and for its `depth` also `alpha`.
            slopes: Derivatives with respect to some of the channels, in their shapes; of a fisheye with respect to distances.
        """
        found = self._to_records(engine, view, images, slopes)
        chunks = len(self.touched)
        pose = np.zeros((view.count, view.stride, PART_SIZE), np.float32)
        arrays = [*engine.sent, engine.cameras, engine.order(chunks), engine.tags, engine.counts, found]
        arrays += [*self._sent, as_warp(pose), self._touched]
        numbers = [view.stride, view.count, view.width, view.height, view.flags, 1, view.near, view.dilation]
        engine.launch(project_back_kernel, chunks, arrays, numbers)
        self.poses.append(pose_sums(view, pose[..., POSE_PLACES].astype(np.float64)))

    def _to_records(self, engine: CpuLanes, view: CameraView, images: Arrays, slopes: Arrays) -> Any:
        take, tiles = engine.buffers.take, view.count * -(-view.width // TILE) * -(-view.height // TILE)
        partials = take("partials", engine.lists.size * PART_SIZE, np.float32)
        found = take("record slopes", view.count * view.stride * CHUNK * PART_SIZE, np.float32)
        nothing, owners = take("nothing", 1, np.float32), take("owners", 1, np.int32)
        given = [as_warp(array) if array is not None else nothing for array in back_arrays(view, images, slopes)]
        work = [owners, owners, *given, take("used", tiles, np.int32), partials, found]
        flags = back_flags(view, slopes)
        numbers = [view.stride, view.width, view.height, engine.band_rows, engine.capacity, flags]
        # Two stages: pixels to places in lists, then places to Gaussians in a fixed order, so that no sum depends on threads.
        for stage, tasks in (("tiles", tiles), ("cameras", view.count)):
            arrays = [
                engine.cameras,
                engine.order(tasks),
                engine.records,
                engine.planes,
                engine.counts,
                engine.tiles,
                engine.lists,
            ]
            engine.launch(raster_back_kernel, tasks, [*arrays, *work], [*numbers, BACK_STAGES[stage]])
        return found


def has_planes(view: CameraView) -> bool:
    """Return whether planes of Gaussians are asked for."""
    return bool(view.flags & (FLAGS["plane"] | FLAGS["normal"]))


def back_flags(view: CameraView, slopes: Arrays) -> int:
    """Return what `raster_back` is to read: the channels that a loss depends on, and whether there is a limit."""
    # Only what the loss depends on: each channel takes its part of the time.
    flags = sum(FLAGS[name] for name in slopes) | view.flags & FLAGS["limit"]
    return flags | (view.flags & FLAGS["plane"] if "depth" in slopes else 0)


def back_arrays(view: CameraView, images: Arrays, slopes: Arrays) -> list[ArrayF32 | None]:
    """Return limits, images and derivatives, where there are any, as `raster_back` takes them.

    Args:
        view: What was rendered.
        images: By channel.
        slopes: Derivatives of the loss with respect to them.
    """
    arrays = [view.limit, *(images.get(name) for name in IMAGE_NAMES), *(slopes.get(name) for name in IMAGE_NAMES)]
    return [None if array is None else np.ascontiguousarray(array, np.float32) for array in arrays]


def pose_sums(view: CameraView, parts: Array) -> Array:
    """Return derivatives with respect to the cameras' positions and rotation matrices (c, 12) from those of each slot (c,
    stride, 12).

    A dynamic instance is seen by a camera of its own, in the frame of its cloud: position A^T (p - q), rotation R A where A is
    its attitude and q its position. So derivatives g with respect to these are A g and G A^T with respect to p and R.
    """
    images = view.cameras[: view.count]
    if not images["more_count"].any():
        return parts.sum(axis=1)
    # Prefix sums: a dynamic instance's slots are a span of its image's.
    sums = np.concatenate([np.zeros((view.count, 1, 12)), np.cumsum(parts, axis=1)], axis=1)
    own = np.arange(view.count)
    owner = np.concatenate([own, np.repeat(own, images["more_count"])])
    begin = view.cameras["slot"].astype(np.int64)
    rows = sums[owner, begin + view.cameras["chunk_count"]] - sums[owner, begin]
    turn = view.cameras["rotation"].reshape(-1, 3, 3).astype(np.float64)
    attitude = turn[owner].swapaxes(1, 2) @ turn  # of the dynamic instance; of the scene itself none
    position = np.einsum("nij,nj->ni", attitude, rows[:, :3])
    matrix = (rows[:, 3:].reshape(-1, 3, 3) @ attitude.swapaxes(1, 2)).reshape(-1, 9)
    found = np.zeros((view.count, 12))
    # `add.at`, since several dynamic instances have one owner.
    np.add.at(found, owner, np.concatenate([position, matrix], axis=1))
    return found
