"""One sample of a ray sensor: rays out, true values back, then what the device makes of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayF32
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import camera_attitude, rotate
from airworthy.geometry import GeometryBatch, RayTable, cast
from airworthy.sensors.devices import Device
from airworthy.sensors.noise import Draw, measure, sensor_number

if TYPE_CHECKING:
    from airworthy.rendering.images import FlowMotion
    from airworthy.rendering.shading import ShadingOptions

Channels = dict[str, ArrayAny]

GEOMETRIC = (
    "instance",
    "instance_id",
    "semantic_id",
    "face",
    "barycentric",
    "normal_world",
    "normal_sensor",
    "point_world",
    "point_sensor",
    "local_point",
)
"""Channels of `geometry.cast` that a sensor passes on as they are; "depth" and "range" it measures."""
MEASURED = ("depth", "range")
DERIVED = ("true_depth", "true_range", "points", "valid", "disparity")
APPEARANCE = ("rgb", "albedo", "normal", "flow", "splat_depth", "splat_alpha")
# Source: spec/aerial_gym 7.2: the miss distance is 1000 m internally.
SIGHT = 1000.0
"""How far colour is seen [m]."""
# Source: spec/aerial_gym 7.1, 7.2: -2 means no hit, face index -1 on a miss.
_NOTHING = {"instance": -1, "face": -1, "instance_id": -2, "semantic_id": -2, "splat_depth": np.inf}


@dataclass(frozen=True, eq=False)
class Before:
    """Where sensors and everything that moves were at the sample before."""

    position: ArrayAny
    """Of the mount, world [m], (camera, 3)."""
    attitude: ArrayAny
    """Mount to world, (camera, 4)."""
    dynamic_instances: tuple[ArrayAny, ArrayAny]
    """Of the geometry, each camera's at its own sample: positions (camera, count, 3), attitudes (camera, count, 4)."""


@dataclass(frozen=True, eq=False)
class SensorView:
    """Where a batch of equal sensors is at one instant.

    Attitudes are of the mount (x where the sensor looks, y left, z its top), also for cameras.
    """

    position: ArrayAny
    """World [m], (camera, 3)."""
    attitude: ArrayAny
    """Mount to world, (camera, 4)."""
    env: ArrayAny | None = None
    """Environment of each, (camera,); None: 0, 1, 2, ..."""
    draw: Draw | None = None
    """Random numbers; None: no noise."""
    ignore: ArrayAny | None = None
    """Instance each does not see (its own body), (camera,); -1 or None: it sees all."""
    column_position: ArrayAny | None = None
    """Of a rolling scan: position at each column's instant, (camera, width, 3)."""
    column_attitude: ArrayAny | None = None
    """Of a rolling scan: mount to world at each column's instant, (camera, width, 4)."""
    before: Before | None = None
    """The sensors' sample before, for `flow`."""
    velocity: ArrayAny | None = None
    """Of the vehicle's centre of mass, world [m/s], (camera, 3); None: nobody says."""


def geometry_of(scene: Any) -> GeometryBatch:
    """Return the geometry of a `SceneBatch`, or a `GeometryBatch` itself."""
    geometry: GeometryBatch = getattr(scene, "geometry", scene)
    return geometry


class RaySensor:
    """A device that casts one table of rays.

    Args:
        device: What it is.
        name: Its name on the vehicle, by which its random numbers are told from others'; default: the device's.

    Raises:
        AirworthyError: If the device asks for a channel that there is not.
    """

    def __init__(self, device: Device, name: str = ""):
        self.device, self.name = device, name or device.name
        self.number = sensor_number(self.name)
        known = (*MEASURED, *DERIVED, *GEOMETRIC, *APPEARANCE)
        for channel in device.channels:
            if channel not in known:
                raise AirworthyError(f"Sensor {self.name!r} asks for channel {channel!r}; there are {', '.join(known)}.")

    @cached_property
    def table(self) -> RayTable:
        """Its rays."""
        return self.device.projection.rays()

    @property
    def measures(self) -> str:
        """The quantity it measures: "depth" or "range"."""
        return "depth" if self.device.projection.optical else "range"

    def optical_attitude(self, attitude: ArrayAny) -> Array:
        """Return the attitude of the frame that the rays are in, from the mount's."""
        return camera_attitude(attitude) if self.device.projection.optical else np.asarray(attitude, np.float64)

    def capture(self, scene: Any, view: SensorView, channels: Sequence[str] = ()) -> Channels:
        """Take one sample per view.

        Args:
            scene: A `SceneBatch`; a `GeometryBatch` is enough where no colour is asked for.
            view: Where.
            channels: What to give; default: the device's channels.

        Returns:
            Arrays (camera, height, width, ...) by channel.
        """
        wanted = tuple(channels) or self.device.channels
        true = self._true(scene, view, wanted)
        if self.device.sub_rays > 1:
            true = nearest_of_zones(true, self.device.sub_rays, self.measures)
        return self._products(geometry_of(scene), view, true, wanted)

    # ---- true values ------------------------------------------------------------------------------------------------

    def _needed(self, wanted: Sequence[str]) -> list[str]:
        """Channels to cast."""
        names = [c for c in wanted if c in (*GEOMETRIC, *APPEARANCE)]
        names += [c.removeprefix("true_") for c in wanted if c in (*MEASURED, "true_depth", "true_range")]
        if self.device.sub_rays > 1 or any(c in wanted for c in ("points", "valid", "disparity")):
            names.append(self.measures)
        return list(dict.fromkeys(names))

    def _true(self, scene: Any, view: SensorView, wanted: Sequence[str]) -> Channels:
        names = self._needed(wanted)
        attitude = self.optical_attitude(view.attitude)
        columns: dict[str, Any] = {}
        if view.column_attitude is not None:
            columns = {
                "column_position": view.column_position,
                "column_attitude": self.optical_attitude(view.column_attitude),
            }
        return self._masked(self._traced(scene, view, self.table, view.position, attitude, names, columns))

    def _traced(
        self,
        scene: Any,
        view: SensorView,
        table: RayTable,
        position: Any,
        attitude: Any,
        names: Sequence[str],
        columns: dict[str, Any],
    ) -> Channels:
        """Channels of one table of rays, from poses of the frame that the rays are in."""
        where = (table, position, attitude, view.env)
        if any(name in APPEARANCE for name in names):
            from airworthy.rendering.images import render

            if view.ignore is not None:
                columns = {**columns, "ignore": view.ignore}
            lens = self.device.projection
            motion = self._motion(scene, view) if "flow" in names else None
            true = render(scene, *where, tuple(names), self._shading(), projection=lens, motion=motion, **columns)
            if "flow" in true:  # to the image before; what moved here came from there
                true["flow"] = 0.0 - true["flow"]
        else:
            reach = self._reach(names)
            true = cast(geometry_of(scene), *where, tuple(names), max_range=reach, ignore=_ignored(view), **columns)
        return dict(true)

    def _motion(self, scene: Any, view: SensorView) -> FlowMotion:
        """From this image to the one before."""
        from airworthy.rendering.images import FlowMotion

        if view.before is None:
            raise AirworthyError(
                f"Sensor {self.name!r} gives 'flow', the motion since the image before; mount it, or give View(before=...)."
            )
        geometry, envs = geometry_of(scene), view.env
        now = geometry.dynamic_poses()
        past = tuple(array.copy() for array in now)
        for array, before in zip(past, view.before.dynamic_instances, strict=True):
            array[np.arange(len(before)) if envs is None else np.asarray(envs)] = before
        attitude = self.optical_attitude(view.before.attitude)
        return FlowMotion(self.device.projection, view.before.position, attitude, now, (past[0], past[1]))

    def _shading(self) -> ShadingOptions:
        """Return how colours are found."""
        from airworthy.rendering.shading import ShadingOptions

        return ShadingOptions()

    def _reach(self, names: Sequence[str]) -> float:
        """Return how long a ray must be so that noise at the far limit is right [m]."""
        far = self.device.limits.maximum
        if not math.isfinite(far):
            return SIGHT
        slant = float((self.table.directions @ np.asarray(self.table.axis, np.float32)).min()) if "depth" in names else 1.0
        noise = self.device.effective_noise
        margin = 6.0 * float(noise.sigma(far)) + abs(noise.offset)
        return min(SIGHT, (far + margin) / max(slant, 0.05) * 1.001) if far < SIGHT else far * 1.1

    def _masked(self, true: Channels) -> Channels:
        mask = self.device.projection.mask()
        if mask is None:
            return true
        for name, array in true.items():
            missing: Any = _NOTHING.get(name, 0 if name in APPEARANCE else np.inf if name in MEASURED else np.nan)
            array[:, ~mask] = missing
        return true

    # ---- what the device makes of them ------------------------------------------------------------------------------

    def _products(self, batch: GeometryBatch, view: SensorView, true: Channels, wanted: Sequence[str]) -> Channels:
        out: Channels = {}
        measured: Channels = {}
        for name in MEASURED:
            if name in true:
                measured[name] = self._measured(batch, view, true, name)
        for name in wanted:
            if name in measured:
                out[name] = measured[name]
            elif name in ("true_depth", "true_range"):
                out[name] = true[name.removeprefix("true_")]
            elif name in true:
                out[name] = true[name]
            else:
                out[name] = self._derived(name, view, measured[self.measures])
        return out

    def _measured(self, batch: GeometryBatch, view: SensorView, true: Channels, name: str) -> ArrayF32:
        """Return readings of one quantity."""
        values = np.array(true[name], np.float32, order="C")
        device = self.device
        return measure(values, device.effective_noise, device.limits, view.draw)

    def _derived(self, name: str, view: SensorView, reading: ArrayF32) -> ArrayAny:
        metres = self.device.limits.metres(reading)
        if name == "valid":
            return np.isfinite(metres)
        if name == "points":
            return self._points(view, metres)
        raise AirworthyError(f"Sensor {self.name!r} cannot give {name!r}; only a stereo camera has a disparity.")

    def _points(self, view: SensorView, metres: Array) -> ArrayF32:
        """Measured points (camera, height, width, 3), NaN where there is none; in the ray table's frame, or the world's."""
        rays = self.centre_rays
        if self.measures == "depth":
            rays = rays / (rays @ np.asarray(self.table.axis, np.float64))[..., None]
        with np.errstate(invalid="ignore"):
            points = np.where(np.isfinite(metres)[..., None], metres[..., None] * rays, np.nan)
        if self.device.points_in_world:
            points = self._placed(view, points)
        return points.astype(np.float32)

    @cached_property
    def centre_rays(self) -> Array:
        """Direction of each pixel, of zones their middle, (height, width, 3)."""
        rays = np.asarray(self.table.directions, np.float64)
        n = self.device.sub_rays
        if n == 1:
            return rays
        means = rays.reshape(self.device.height, n, self.device.width, n, 3).mean(axis=(1, 3))
        return np.asarray(means / np.linalg.norm(means, axis=-1, keepdims=True))

    def _placed(self, view: SensorView, points: Array) -> Array:
        if view.column_attitude is not None and view.column_position is not None:
            attitude = self.optical_attitude(view.column_attitude)[:, None]
            return rotate(attitude, points) + np.asarray(view.column_position)[:, None]
        attitude = self.optical_attitude(view.attitude)[:, None, None]
        return rotate(attitude, points) + np.asarray(view.position, np.float64)[:, None, None]


STRIPS = 64
"""Most parts of a scan or image that is taken while things move: within a part they stand still, at its middle instant. Ours:
at 10 m/s and 10 Hz a thing is met at most 8 mm from where it was, less than the range noise of the devices in the catalogue."""


def moves(scene: Any) -> bool:
    """Tell whether a scene has actors, which `scene_before` can put where they were."""
    return any(one.actors for one in getattr(scene, "scenes", ()))


@contextmanager
def scene_before(scene: Any, seconds: float) -> Iterator[None]:
    """Put a scene's actors where they were some seconds ago; before a flight began they stood where they began."""
    if seconds == 0.0 or not moves(scene):
        yield
        return
    now = scene.time.copy()
    scene.advance(np.maximum(now - seconds, 0.0))
    try:
        yield
    finally:
        scene.advance(now)


def strips(count: int, most: int = STRIPS) -> list[slice]:
    """Return parts of `count` columns or rows, at most so many, of nearly equal size."""
    edges = np.linspace(0, count, min(count, most) + 1).round().astype(int)
    return [slice(first, last) for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)]


def strip_of(table: RayTable, part: slice) -> RayTable:
    """Return some columns of a table of rays."""
    origins = None if table.origins is None else table.origins[:, part]
    return RayTable(table.directions[:, part], origins, table.axis)


def nearest_of_zones(true: Channels, rays: int, by: str) -> Channels:
    """Return, of each zone of rays x rays, everything that belongs to its nearest return.

    Args:
        true: Channels (c, rays * H, rays * W, ...) of all rays.
        rays: Along each side of a zone.
        by: Channel that says what is nearest, such as "range" [m].
    """
    values = true[by]
    cameras, height, width = values.shape
    blocks = values.reshape(cameras, height // rays, rays, width // rays, rays).transpose(0, 1, 3, 2, 4)
    flat = blocks.reshape(cameras, height // rays, width // rays, rays * rays)
    best = flat.argmin(axis=-1)
    i, j = np.divmod(best, rays)
    rows = np.arange(height // rays)[None, :, None] * rays + i
    columns = np.arange(width // rays)[None, None, :] * rays + j
    camera = np.arange(cameras)[:, None, None]
    return {name: np.ascontiguousarray(array[camera, rows, columns]) for name, array in true.items()}


def _ignored(view: SensorView) -> Any:
    return -1 if view.ignore is None else np.asarray(view.ignore, np.int32)
