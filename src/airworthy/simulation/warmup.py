"""Compiles the kernels that flying and seeing need into Warp's cache: `python -m airworthy.simulation.warmup`."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import numpy as np

from airworthy.core.native_kernel import quiet_warp
from airworthy.dynamics.state import ROTOR_COUNTS
from airworthy.simulation.family import semi_kinematic_kernel, step_kernel

if TYPE_CHECKING:
    from airworthy.geometry import GeometryBatch


def warm_up(device: str = "cpu") -> float:
    """Compile what is not in the cache yet; returns the seconds it took."""
    wp = quiet_warp()
    start = time.perf_counter()
    with wp.ScopedLogLevel(wp.LOG_ERROR):
        for count in ROTOR_COUNTS:
            wp.load_module(step_kernel(count).module, device=device)
        wp.load_module(semi_kinematic_kernel(ROTOR_COUNTS[0]).module, device=device)
        _look_around(device)
    return time.perf_counter() - start


def _look_around(device: str) -> None:
    """Ask every question about a scene of one wall and one splat."""
    from airworthy.geometry import Box
    from airworthy.geometry.distance import clearance, distance_field
    from airworthy.geometry.grid_path import shortest_path
    from airworthy.geometry.occupancy import voxelize
    from airworthy.geometry.sweep import sweep_capsule, sweep_sphere
    from airworthy.optics.projections import Pinhole
    from airworthy.rendering.images import render
    from airworthy.scenes import Instance, Scene, SceneBatch
    from airworthy.scenes.splats import Splats
    from airworthy.scenes.splats.placing import add_splats, with_surface
    from airworthy.sensors import Draw, RangeLimits, RangeNoise
    from airworthy.sensors.noise import measure

    scene = Scene("wall", {"wall": Box((0.1, 1.0, 1.0))}, instances=(Instance("wall", (2.0, 0.0, 0.0)),))
    upright = np.array([[0.0, 0.0, 0.0, 1.0]])
    splat = Splats(np.zeros((1, 3)), upright, np.full((1, 3), 0.2), np.ones(1), np.zeros((1, 1, 3)))
    scene = with_surface(add_splats(scene, splat, "splat", (1.0, 0.5, 0.5)), 0.1)
    batch = SceneBatch(scene, device=device)
    here, ahead, level = np.zeros((1, 3)), np.array([[3.0, 0.0, 0.0]]), np.array([[0.0, 0.0, 0.0, 1.0]])
    depth = render(batch, Pinhole.from_fov(16, 16, horizontal=1.0).rays(), here, level, channels=("rgb", "depth"))["depth"]
    measure(np.ascontiguousarray(depth), RangeNoise(c=0.01), RangeLimits(), Draw.of(1))
    clearance(batch.geometry, here)
    sweep_sphere(batch.geometry, here, ahead, 0.1)
    sweep_capsule(batch.geometry, here, ahead, np.array([[0.0, 0.0, 0.1]]), 0.1)
    occupied = voxelize(batch.geometry, 0, (0.0, -1.0, -1.0), (3.0, 1.0, 1.0), 0.25)
    distance_field(occupied, 0.25)
    shortest_path(occupied, 0.25, (0.1, 0.1, 0.1), (0.9, 0.1, 0.1))
    _bump(batch.geometry, device)


def _bump(geometry: GeometryBatch, device: str) -> None:
    """Fly into it."""
    from airworthy.simulation.config import Contact, SimulatorConfig
    from airworthy.simulation.simulator import Simulator
    from airworthy.vehicles import vehicle

    simulator = Simulator(vehicle("carl"), SimulatorConfig(contact=Contact()), 1, geometry=geometry, device=device)
    # Fast enough to be at the wall within five steps.
    simulator.reset(position=(1.5, 0.0, 0.0), velocity=(20.0, 0.0, 0.0))
    for _ in range(5):
        simulator.step()


if __name__ == "__main__":
    print(f"Kernels ready after {warm_up(*sys.argv[1:2]):.1f} s.")
