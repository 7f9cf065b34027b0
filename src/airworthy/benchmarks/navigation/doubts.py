"""What planners doubt before anything flies: they are told how much room there is where flights begin."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from airworthy.benchmarks.navigation.config import Flight, NavigationConfig
from airworthy.benchmarks.navigation.methods import NavigationMethod
from airworthy.benchmarks.navigation.missions import draws_of, mission_of, scene_of
from airworthy.benchmarks.navigation.own_scenes import is_own
from airworthy.core.arrays import Array, ArrayInt
from airworthy.core.errors import AssetWarning
from airworthy.geometry import RayTable, cast
from airworthy.geometry.distance import clearance
from airworthy.planners.common.interface import Mission, StartRoom
from airworthy.scenes import SceneBatch

__all__ = ["start_room", "warn_of_doubts", "warn_of_doubts_in_benchmark"]

REACH = 3.0
"""What is farther is no matter [m]: three radii of a body of one metre."""
SEEN = 0.7
"""Half of the angle that a camera looks ahead over, a little less than that of the benchmark's (90 degrees) [rad]."""


def start_room(batch: SceneBatch, start: Array, heading: Array, env: ArrayInt) -> StartRoom:
    """Return how near things are to starts.

    Args:
        batch: Scenes.
        start: (n, 3) [m], world.
        heading: Where cameras look at first, about +z from +x, (n,) [rad].
        env: Environment of each, (n,).
    """
    azimuth = np.linspace(-np.pi, np.pi, 48, endpoint=False)
    # Level, and a little up and down: what is under a vehicle is the ground on which it began.
    pitch = np.array([-0.3, 0.0, 0.3])[:, None]
    directions = np.stack(
        [np.cos(azimuth) * np.cos(pitch), np.sin(azimuth) * np.cos(pitch), np.sin(pitch) + 0.0 * azimuth], axis=-1
    )
    level = np.tile([0.0, 0.0, 0.0, 1.0], (len(start), 1))
    ranges = cast(batch.geometry, RayTable(directions), start, level, env, ("range",), max_range=REACH)["range"]
    ranges = np.where(ranges < 0.0, np.inf, ranges.astype(np.float64))
    turned = (azimuth - heading[:, None] + np.pi) % (2.0 * np.pi) - np.pi
    unseen = np.where(np.abs(turned)[:, None] > SEEN, ranges, np.inf)
    nearest = clearance(batch.geometry, start, env=env, max_distance=REACH).distance
    return StartRoom(nearest, unseen.min(axis=(1, 2)))


def warn_of_doubts(name: str, planner: Any, mission: Mission, room: StartRoom) -> None:
    """Warn of what a planner doubts of flights, a sentence for each reason, counted."""
    for which, why in planner.doubts(mission, room) if hasattr(planner, "doubts") else ():
        told = f"in {which.sum()} of {len(which)} flights " if len(which) > 1 else ""
        warnings.warn(f"{name}: {told}{why}.", AssetWarning, stacklevel=3)


def warn_of_doubts_in_benchmark(methods: Iterable[NavigationMethod], flights: list[Flight], config: NavigationConfig) -> None:
    """Warn of what planners that are ours doubt of a benchmark's flights; its own scenarios have room at their starts."""
    doubting = [(item.name, item.make()) for item in methods if item.kind == "planner" and not item.own]
    doubting = [(name, planner) for name, planner in doubting if hasattr(planner, "doubts")]
    if not doubting or not flights:
        return
    mission = mission_of(flights, config, draws_of(flights, config.seed, config.perturb))
    nearest = np.full(len(flights), np.inf)
    room = StartRoom(nearest, nearest.copy())
    for scenario in sorted({flight.scenario for flight in flights if is_own(flight.scenario)}):
        which = np.flatnonzero([flight.scenario == scenario for flight in flights])
        batch = SceneBatch(scene_of(flights[which[0]], config))
        # Vehicles take off with the heading 0.
        found = start_room(batch, mission.start[which], np.zeros(len(which)), np.zeros(len(which), np.int64))
        room.nearest[which], room.unseen[which] = found.nearest, found.unseen
    for name, planner in doubting:
        warn_of_doubts(name, planner, mission, room)
