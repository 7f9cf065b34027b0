"""The pilot's maps fed from a mounted depth camera: rate, latency, estimated poses, and flights that want no images."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.geometry import Box
from airworthy.pilots.pilot import observe
from airworthy.planners.common.interface import MapSettings, Mission
from airworthy.planners.common.tracking import PlannerPilot, TakeOff
from airworthy.planners.mapping import LocalMaps
from airworthy.planners.mapping.boxes import CAMERA_OFFSET, mapping_camera, read_pixels
from airworthy.planners.straight import StraightFlight
from airworthy.scenes import Instance, Scene
from airworthy.scenes.batch import SceneBatch
from airworthy.sensors.devices import Device
from airworthy.sensors.mounting import Mount
from airworthy.sensors.noise import RangeLimits
from airworthy.simulation import MountedSensors, Simulator, SimulatorConfig
from airworthy.vehicles import vehicle

SETTINGS = MapSettings()


class Looking(StraightFlight):
    """Straight flight that would have maps, and counts its images."""

    settings = SETTINGS


class Counting(LocalMaps):
    images = 0

    def update(self, flights: Any, depth: Any, position: Any, attitude: Any) -> None:
        self.images += len(np.atleast_1d(flights))
        super().update(flights, depth, position, attitude)


def flown(seconds: float, rate: float = 20.0, latency: float = 0.0, shift: float = 0.0, **options: Any) -> tuple[Any, Any]:
    """Hover before a wall whose near side is at x = 3 m; the maps, and the pilot."""
    start = np.array([[0.0, 0.0, 1.5]])
    box = np.array([[-5.0, -5.0, 0.0]]), np.array([[8.0, 5.0, 3.0]])
    mission = Mission(start, np.add(start, (1e-3, 0.0, 0.0)), np.full(1, 4.0), np.full(1, 6.0), *box, np.arange(1))
    wall = Scene("wall", shapes={"wall": Box((0.5, 4.0, 1.5))}, instances=(Instance("wall", position=(3.5, 0.0, 1.5)),))
    batch, maps = SceneBatch([wall]), Counting(SETTINGS, mission)
    pilot = PlannerPilot(Looking(), mission, vehicle("virt_05"), maps, **options)
    pilot._errors.at = lambda time: (np.full((1, 3), shift), np.zeros((1, 3)))  # type: ignore[method-assign]
    simulator = Simulator(vehicle("virt_05"), pilot.configured(SimulatorConfig(physics_rate=480.0)), env_count=1)
    simulator.reset(position=start - shift)
    camera = Device(
        "depth",
        "depth_camera",
        read_pixels(mapping_camera(), SETTINGS),
        limits=RangeLimits(maximum=5.0, near=0.0, far=0.0),
        mount=Mount(CAMERA_OFFSET),
        rate=rate,
        latency=latency,
    )
    mounted = MountedSensors(simulator, batch, {"depth": camera})
    pilot.attach(simulator, mounted)
    for _ in range(round(seconds * 100)):
        simulator.step(pilot.command(observe(simulator, pilot.observes)))
    return maps, pilot


def wall_begins(maps: Any) -> float:
    """Where the map's wall begins ahead [m]."""
    points = np.stack([np.arange(0.0, 5.0, 0.02), np.zeros(250), np.full(250, 1.5)], axis=1)[None]
    taken = maps.state(np.zeros(1, np.int64), points)[0] == 1
    return float(points[0, taken.argmax(), 0])


def test_maps_are_filled_at_their_rate() -> None:
    maps, _ = flown(0.5)
    assert maps.images == 10
    assert wall_begins(maps) == pytest.approx(3.0, abs=0.101)  # a cell
    # From a faster camera the newest image at each tick of 20 Hz: at 0, 50, 100 ms, ...
    assert flown(0.5, rate=30.0)[0].images == 10
    assert flown(0.5, rate=10.0)[0].images == 5


def test_late_images_are_put_where_they_were_taken() -> None:
    maps, _ = flown(0.5, latency=0.12)
    assert maps.images == 7  # those of 0 to 0.3 s have arrived by the tick of 0.45 s
    assert wall_begins(maps) == pytest.approx(3.0, abs=0.101)


def test_maps_are_drawn_where_odometry_says() -> None:
    maps, _ = flown(0.5, shift=0.4)
    assert wall_begins(maps) == pytest.approx(3.4, abs=0.11)


def test_who_is_over_or_still_climbing_sees_nothing() -> None:
    maps, _ = flown(0.2, takeoff=replace(TakeOff(), settle_distance=0.0))
    assert maps.images == 0
    _, pilot = flown(0.01)
    blind = Simulator(vehicle("virt_05"), pilot.configured(SimulatorConfig(physics_rate=480.0)), env_count=1)
    with pytest.raises(AirworthyError, match="depth camera named 'depth', but mounted is no sensor"):
        pilot.attach(blind)
