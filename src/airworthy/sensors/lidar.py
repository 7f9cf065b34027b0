"""LiDARs: the whole scan at once, or column by column while the vehicle moves; and their points."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayF32, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import slerp
from airworthy.geometry import GeometryBatch, RayTable
from airworthy.optics.projections import Spherical, UserRays
from airworthy.sensors.devices import Device, device
from airworthy.sensors.noise import RangeLimits, measure
from airworthy.sensors.sampling import Channels, RaySensor, SensorView, moves, scene_before, strip_of, strips

# ---- Rangers: single rays in any directions of the body (spec/flightgoggles 3.2) --------------------------------------------

_UNLIMITED = RangeLimits(minimum=-1e30)
"""Noise may carry a reading below zero; it is left there."""


class Ranger(RaySensor):
    """Distances along a few rays, with noise and no limits after it; where nothing returns within the device's limits, the
    device's no-return value counts as the true one (FlightGoggles: 21 m).

    `capture` gives "range" (camera, rays) [m] and "valid" (camera, rays): whether something returned.
    """

    def _needed(self, wanted: Sequence[str]) -> list[str]:
        return [*dict.fromkeys([*super()._needed(wanted), "range"])]

    def _products(self, batch: GeometryBatch, view: SensorView, true: Channels, wanted: Sequence[str]) -> Channels:
        limits, device = self.device.limits, self.device
        distance = np.ascontiguousarray(true["range"][:, 0], np.float32)
        valid = (distance >= limits.minimum) & (distance <= limits.maximum)
        out: Channels = {name: array[:, 0] for name, array in true.items() if name in wanted}
        reading = measure(
            np.where(valid, distance, np.inf).astype(np.float32),
            device.effective_noise,
            _UNLIMITED,
            view.draw,
            device.no_return,
        )
        if "true_range" in wanted:
            out["true_range"] = distance
        return {**out, "range": -reading if device.signed else reading, "valid": valid}


def ranger(directions: ArrayLike = ((0.0, 0.0, -1.0),), base: str = "lightware_sf11b", **changes: Any) -> Device:
    """Return a named ranger with rays of your own.

    Args:
        directions: In the mount's frame, (n, 3).
        base: Device whose limits, noise and rate it has.
        changes: Other fields of `Device`.

    Raises:
        AirworthyError: If the directions are none.
    """
    rays = np.asarray(directions, np.float64)
    if rays.ndim != 2 or rays.shape[-1] != 3:
        raise AirworthyError(f"A ranger's directions have shape {rays.shape}; expected (n, 3).")
    return device(base).variant(projection=UserRays(rays[None]), **changes)


# -----------------------------------------------------------------------------------------------------------------------------


class Lidar(RaySensor):
    """A spinning LiDAR, dome or radar.

    Raises:
        AirworthyError: If a rolling scan is asked of a projection that has no columns in time.
    """

    def __init__(self, device: Any, name: str = ""):
        super().__init__(device, name)
        if device.rolling and not isinstance(device.projection, Spherical):
            raise AirworthyError(f"LiDAR {self.name!r} scans column by column; that needs a spherical projection.")

    def _true(self, scene: Any, view: SensorView, wanted: Sequence[str]) -> Channels:
        """Return a rolling scan among things that move is taken in strips of columns, each with the scene of its middle
        instant.
        """
        # Among things that stand still one cast serves: every ray has its column's own pose.
        if view.column_position is None or view.column_attitude is None or not moves(scene):
            return super()._true(scene, view, wanted)
        names, age = self._needed(wanted), self.column_age()
        attitude, turned = self.optical_attitude(view.attitude), self.optical_attitude(view.column_attitude)
        taken = []
        for part, table in self._strips:
            columns = {"column_position": view.column_position[:, part], "column_attitude": turned[:, part]}
            with scene_before(scene, float(age[part].mean())):
                taken.append(self._traced(scene, view, table, view.position, attitude, names, columns))
        return self._masked({name: np.concatenate([one[name] for one in taken], axis=2) for name in names})

    @cached_property
    def _strips(self) -> list[tuple[slice, RayTable]]:
        return [(part, strip_of(self.table, part)) for part in strips(self.table.width)]

    def column_age(self) -> Array:
        """Return how long before the stamp each column fired [s], (width,): the last one fires at the stamp."""
        assert isinstance(self.device.projection, Spherical)
        fraction = self.device.projection.column_fraction()
        return (fraction[-1] - fraction) / self.device.rate


def column_poses(age: ArrayLike, past: ArrayLike, position: ArrayAny, attitude: ArrayAny) -> tuple[Array, Array]:
    """Return poses at each column's instant, from poses at known instants: linear, and spherical-linear in attitude.

    Args:
        age: How long before the stamp each column fired [s], (width,).
        past: How long before the stamp each known pose was [s], falling to 0, (camera, k); before the first, it holds.
        position: World [m], (camera, k, 3).
        attitude: (camera, k, 4).

    Returns:
        Positions (camera, width, 3), attitudes (camera, width, 4).
    """
    when, known = -np.asarray(age, np.float64), -np.asarray(past, np.float64)
    count = known.shape[1]
    after = (
        np.clip((known[:, None, :] < when[None, :, None]).sum(-1), 1, count - 1)
        if count > 1
        else np.zeros((len(known), len(when)), int)
    )
    before = np.maximum(after - 1, 0)
    row = np.arange(len(known))[:, None]
    start, end = known[row, before], known[row, after]
    with np.errstate(divide="ignore", invalid="ignore"):
        # Two known poses may be of one instant: then the first of them counts, and nothing is divided by zero.
        share = np.where(end > start, np.clip((when[None] - start) / (end - start), 0.0, 1.0), 0.0)
    a, b = np.asarray(position, np.float64)[row, before], np.asarray(position, np.float64)[row, after]
    qa, qb = np.asarray(attitude, np.float64)[row, before], np.asarray(attitude, np.float64)[row, after]
    return a + (b - a) * share[..., None], slerp(qa, qb, share)


def packed_points(points: ArrayAny) -> list[ArrayF32]:
    """Return point clouds without the rays that returned nothing: one array (n, 3) per camera, in scan order."""
    flat = np.asarray(points, np.float32).reshape(len(points), -1, 3)
    # A list: clouds of several cameras have different lengths.
    return [cloud[np.isfinite(cloud).all(-1)] for cloud in flat]
