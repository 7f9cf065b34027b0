"""Rangers: single rays in any directions of the body (spec/flightgoggles 3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from airworthy.core.errors import AirworthyError
from airworthy.geometry import GeometryBatch
from airworthy.sensors.devices import Device, device
from airworthy.sensors.limits import RangeLimits
from airworthy.sensors.noise import measure
from airworthy.sensors.projections import UserRays
from airworthy.sensors.sampling import Channels, RaySensor, View

_UNLIMITED = RangeLimits(minimum=-1e30)
"""Noise may carry a reading below zero; it is left there."""


class Ranger(RaySensor):
    """Distances along a few rays, with noise and no limits after it; where nothing returns within the device's limits, the
    device's no-return value counts as the true one (FlightGoggles: 21 m).

    `capture` gives "range" (camera, rays) [m] and "valid" (camera, rays): whether something returned.
    """

    def _needed(self, wanted: Sequence[str]) -> list[str]:
        return [*dict.fromkeys([*super()._needed(wanted), "range"])]

    def _products(self, batch: GeometryBatch, view: View, true: Channels, wanted: Sequence[str]) -> Channels:
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
    """A named ranger with rays of your own.

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
