"""What a course shows the vehicle's camera of a captured place: how much of each image was never captured.

Gaussians fill only what photographs have seen. A camera that looks past them sees black where the real place has something, and
a policy learns that black. A pixel is empty where gaussians cover less than half of it and no visible surface stands behind:
above the horizon this may be sky, below it is a hole.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayBool
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import BODY_FROM_CAMERA, multiply, rotate
from airworthy.rendering import render
from airworthy.scenes import Scene, SceneBatch
from airworthy.sensors.carried import vehicle_camera
from airworthy.sensors.mounting import mounted_pose
from airworthy.trajectories import Trajectory, kinematic_state
from airworthy.vehicles import Vehicle

__all__ = ["CourseView", "course_view"]

SIDE = 48
"""Of the images [px]; a hole that matters to a policy is larger than a pixel of these."""
COUNT = 40
"""Images along a course."""
COVER = 0.5
"""Less of a pixel covered by gaussians is empty."""
HOLE, EMPTY = 0.1, 0.5
"""Ours: more of an image that is hole below the horizon, or empty altogether, is told."""


@dataclass(frozen=True, eq=False)
class CourseView:
    """What is empty in images along a course."""

    time: Array
    """(n,) [s of the course]."""
    position: Array
    """(n, 3) of the camera, world [m]."""
    hole: Array
    """(n,) share of the image that is empty below the horizon."""
    empty: Array
    """(n,) share of the image that is empty, above the horizon or below."""

    @property
    def poor(self) -> ArrayBool:
        """(n,) where more than a tenth of the image is a hole, or more than half of it is empty."""
        return (self.hole > HOLE) | (self.empty > EMPTY)

    def text(self) -> str:
        """Return what is empty, as one sentence without its full stop."""
        k = int(np.argmax(np.maximum(self.hole / HOLE, self.empty / EMPTY)))
        x, y, z = (f"{value + 0.0:.3g}" for value in np.round(self.position[k], 3))
        worst = (
            f"{100 * self.hole[k]:.0f} % of the image below the horizon, and {100 * self.empty[k]:.0f} % in all, at"
            f" {self.time[k]:.1f} s, at ({x}, {y}, {z}) m"
        )
        if not self.poor.any():
            return f"the camera sees what was captured: at most {worst}, is empty"
        share = 100.0 * float(self.poor.mean())
        spans = ", ".join(f"{a:.1f} to {b:.1f} s" for a, b in self._spans())
        return f"the camera looks into what was not captured for {share:.0f} % of the course ({spans}): {worst}, is empty"

    def _spans(self) -> list[tuple[float, float]]:
        poor = np.concatenate([[False], self.poor, [False]])
        begins, ends = np.flatnonzero(~poor[:-1] & poor[1:]), np.flatnonzero(poor[:-1] & ~poor[1:]) - 1
        return [(float(self.time[a]), float(self.time[b])) for a, b in zip(begins, ends, strict=True)]


def course_view(
    path: Trajectory, scene: Scene, vehicle: Vehicle, *, camera: str | None = None, side: int = SIDE, count: int = COUNT
) -> CourseView | None:
    """Return how much of what a vehicle's camera sees along a course is empty.

    Args:
        path: The course as it is flown.
        scene: The place.
        vehicle: With its camera.
        camera: Name of the camera in the vehicle's record; None: its first.
        side: Of the images [px].
        count: Images, evenly in time.

    Returns:
        The shares; None where the scene has no gaussians, so that nothing of it was captured.

    Raises:
        AirworthyError: The vehicle carries no camera, or a number is out of range.
    """
    if count < 1 or side < 8:
        raise AirworthyError(f"A view of a course needs 1 image of 8 px or more, but got {count} of {side} px.")
    if not scene.splats:
        return None
    device = vehicle_camera(vehicle, camera, side)
    time = np.linspace(0.0, path.duration, count)
    sample = path.sample(time)
    body = kinematic_state(sample, vehicle.gravity).attitude
    origin, _ = mounted_pose(sample.position, body, -np.asarray(vehicle.center_of_mass), (0.0, 0.0, 0.0, 1.0))
    mount = device.effective_mount
    position, attitude = mounted_pose(origin, body, mount.position, mount.attitude)
    if device.projection.optical:
        attitude = multiply(attitude, BODY_FROM_CAMERA)
    batch, table = SceneBatch(scene, 1), device.projection.rays()
    visible = np.array([item.visible for item in scene.instances] or [False])
    hole, empty = np.zeros(count), np.zeros(count)
    for k in range(count):  # one after the other: the memory of one image
        one = slice(k, k + 1)
        seen = render(
            batch,
            table,
            position[one],
            attitude[one],
            np.zeros(1, np.int32),
            ("splat_alpha", "instance"),
            projection=device.projection,
        )
        hit = seen["instance"][0].astype(np.int64)
        filled = (seen["splat_alpha"][0] >= COVER) | ((hit >= 0) & visible[np.clip(hit, 0, len(visible) - 1)])
        down = rotate(attitude[k], table.directions.reshape(-1, 3))[:, 2].reshape(filled.shape) < 0.0
        hole[k], empty[k] = (~filled & down).mean(), (~filled).mean()
    return CourseView(time, position, hole, empty)
