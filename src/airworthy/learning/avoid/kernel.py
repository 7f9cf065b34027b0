"""What cameras see and how near things are, in the places of `avoid`, as one kernel: a task is an environment."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayAny, ArrayF32, NDArray
from airworthy.core.native_kernel import Launcher, native_kernel, quiet_warp, shared_source
from airworthy.learning.avoid.places import Places

__all__ = ["Looks", "avoid_kernel"]

_ARGUMENTS = """
    trunks: float32[]    # x, y, radius [m], (place, trunk_room, 3)
    balls: float32[]     # x, y, z, radius [m], (place, ball_room, 4)
    boxes: float32[]     # middle, half edges [m], (place, box_room, 6)
    rays: float32[]      # left, then up, per metre of depth, (2, ray)
    layout: int32[]      # place of each environment, (env,)
    offset: float32[]    # by which it is moved [m], (env, 2)
    counts: int32[]      # trunks, balls, boxes that are there, (env, 3)
    position: float32[]  # of the camera, world [m], (env, 3)
    camera: float32[]    # its forward, left and up axes, world, (env, 3, 3)
    points: float32[]    # whose clearance is wanted, world [m], (env, point, 3)
    # output
    depth: float32[]     # along the optical axis [m], (env, ray)
    nearest: float32[]   # signed distance [m], its gradient, (env, point, 4)
    trunk_room: int
    ball_room: int
    box_room: int
    ray_count: int
    point_count: int
    side: float          # of the square that repeats itself [m]
    range: float         # farther returns are at this depth [m]
    near_range: float    # trunks beyond it do not matter to the clearance [m]
    spread: float        # half a pixel, per metre of depth; 0: a ray is a line
"""


@cache
def avoid_kernel() -> Any:
    """Return the kernel; compiled at first launch, then cached on disk."""
    text = files("airworthy.learning.avoid").joinpath("native", "avoid_world.h").read_text()
    return native_kernel("avoid_world", "\n".join([shared_source("prelude.h"), text]), _ARGUMENTS)


class Looks:
    """Images and clearances of `count` environments, into arrays that stay.

    Args:
        places: Obstacles that environments choose from.
        rays: Left and up of each ray per metre of depth, (2, ray); a multiple of 16 of them.
        count: Environments.
        points: Points per environment whose clearance is asked for.
        reach: Farthest depth [m].
        spread: Half a pixel per metre of depth; 0: rays are lines.
        threads: Most threads; None: all.
    """

    NEAR = 5.0
    """Trunks farther than this from a vehicle do not matter to its clearance [m]; a vehicle covers 1.2 m in a step at most."""

    def __init__(
        self, places: Places, rays: ArrayF32, count: int, points: int, reach: float, spread: float, threads: int | None = None
    ):
        self.layout: NDArray[np.int32] = np.zeros(count, np.int32)
        self.offset: ArrayF32 = np.zeros((count, 2), np.float32)
        self.counts: NDArray[np.int32] = np.zeros((count, 3), np.int32)
        self.position: ArrayF32 = np.zeros((count, 3), np.float32)
        self.camera: ArrayF32 = np.zeros((count, 3, 3), np.float32)
        self.points: ArrayF32 = np.zeros((count, points, 3), np.float32)
        self.depth: ArrayF32 = np.zeros((count, rays.shape[1]), np.float32)
        self.nearest: ArrayF32 = np.zeros((count, points, 4), np.float32)
        wp = quiet_warp()
        held: list[ArrayAny] = [places.trunks, places.balls, places.boxes, np.ascontiguousarray(rays, np.float32)]
        held += [self.layout, self.offset, self.counts, self.position, self.camera, self.points, self.depth, self.nearest]
        self._held = held  # Warp's views do not keep them
        # No copies: what Python writes into the arrays is what the kernel reads.
        views = [wp.array(a.reshape(-1), dtype=wp.dtype_from_numpy(a.dtype), device="cpu", copy=False) for a in held]
        rooms = [places.trunks.shape[1], places.balls.shape[1], places.boxes.shape[1]]
        numbers = [*rooms, rays.shape[1], points, places.side, reach, self.NEAR, spread]
        self._launch = Launcher(avoid_kernel(), count, [*views, *numbers], "cpu", threads)

    def look(self) -> None:
        """Fill `depth` and `nearest` from what stands in the other arrays."""
        self._launch.launch()
