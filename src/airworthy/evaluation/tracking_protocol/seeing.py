"""What a camera on a flight sees: some images of it side by side, rendered where it was."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.evaluation.tracking_protocol.people import Walkers
from airworthy.scenes import SceneBatch
from airworthy.sensors.build import make_sensor
from airworthy.sensors.devices import Device
from airworthy.sensors.mounting import mounted_pose
from airworthy.sensors.sampling import View
from airworthy.sensors.tone import to_8bit
from airworthy.simulation import FlightTable
from airworthy.vehicles import Vehicle

__all__ = ["IMAGES", "Image", "seen_by"]

Image = NDArray[np.uint8]
IMAGES = 6
"""Of a flight."""
_GAP = 4


def seen_by(
    batch: SceneBatch, walkers: Walkers | None, vehicle: Vehicle, camera: Device, table: FlightTable, env: int = 0
) -> Image:
    """Images of one flight, evenly in time from its first row to its last, side by side, (H, IMAGES W + gaps, 3).

    Args:
        batch: The scenes; its actors are moved.
        walkers: Its people.
        vehicle: Carries the camera.
        camera: A device that gives colours, mounted.
        table: The flights.
        env: Index of the flight, in the table and in the batch.
    """
    rows = np.arange(table.starts[env], table.starts[env + 1])
    chosen = rows[np.round(np.linspace(0, len(rows) - 1, IMAGES)).astype(int)]
    tiles: list[Any] = []
    for row in chosen:
        image = _image(batch, walkers, vehicle, camera, table, int(row), env)
        if tiles:
            tiles.append(np.full((image.shape[0], _GAP, 3), 255, np.uint8))
        tiles.append(image)
    return np.concatenate(tiles, axis=1)


def _image(
    batch: SceneBatch, walkers: Walkers | None, vehicle: Vehicle, camera: Device, table: FlightTable, row: int, env: int
) -> Image:
    if walkers is not None:
        walkers.pose(batch, np.full(batch.env_count, float(table.t[row])))
    attitude = table.vector("attitude")[row : row + 1].astype(np.float64)
    place = table.vector("position")[row : row + 1].astype(np.float64)
    attitude = attitude / np.linalg.norm(attitude, axis=1, keepdims=True)
    center = -np.asarray(vehicle.center_of_mass, np.float64)
    carrier, _ = mounted_pose(place, attitude, center, (0.0, 0.0, 0.0, 1.0))
    mount = camera.effective_mount
    position, turned = mounted_pose(carrier, attitude, mount.position, mount.attitude)
    linear = make_sensor(camera).capture(batch, View(position, turned, np.array([env], np.int32)), ("rgb",))["rgb"]
    found: Image = to_8bit(linear, np.ones(1))[0]
    return found
