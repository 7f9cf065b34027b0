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
from airworthy.benchmarks.navigation.start_room import start_room
from airworthy.core.arrays import ArrayBool
from airworthy.core.errors import AssetWarning
from airworthy.pilots.containment import PilotFailure, contained
from airworthy.planners.common.interface import Mission, StartRoom
from airworthy.planners.common.tracking_faults import made
from airworthy.scenes import SceneBatch

__all__ = ["warn_of_doubts", "warn_of_doubts_in_benchmark"]


def warn_of_doubts(name: str, planner: Any, mission: Mission, room: StartRoom) -> None:
    """Warn of what a planner doubts of flights, a sentence for each reason, counted; of one of a user's own also that it cannot
    say so."""
    try:
        found = contained(_doubts_of, planner, mission, room)
    except PilotFailure as failure:
        warnings.warn(f"{name}: what it doubts cannot be asked: {failure}.", AssetWarning, stacklevel=3)
        return
    for which, why in found:
        told = f"in {which.sum()} of {len(which)} flights " if len(which) > 1 else ""
        warnings.warn(f"{name}: {told}{why}.", AssetWarning, stacklevel=3)


def _doubts_of(planner: Any, mission: Mission, room: StartRoom) -> list[tuple[ArrayBool, str]]:
    """Return what a planner doubts; nothing where it has no such method.

    Raises:
        ValueError: It says something else than which flights.
    """
    found = []
    for given, why in planner.doubts(mission, room) if hasattr(planner, "doubts") else ():
        which = np.asarray(given, bool)
        if which.shape != mission.flight.shape:
            raise ValueError(f"doubts gave flights of shape {which.shape}, expected {mission.flight.shape}")
        if which.any():
            found.append((which, str(why)))
    return found


def warn_of_doubts_in_benchmark(methods: Iterable[NavigationMethod], flights: list[Flight], config: NavigationConfig) -> None:
    """Warn of what planners doubt of a benchmark's flights; its own scenarios have room at their starts."""
    # A user's class that cannot be made fails its flights, one by one, and doubts nothing.
    doubting = [(item.name, made(item.make)) for item in methods if item.kind == "planner"]
    doubting = [(name, planner) for name, planner in doubting if hasattr(planner, "doubts")]
    if not doubting or not flights:
        return
    draws = draws_of(flights, config.seed, config.perturb)
    mission = mission_of(flights, config, draws)
    nearest = np.full(len(flights), np.inf)
    room = StartRoom(nearest, nearest.copy())
    for scenario in sorted({flight.scenario for flight in flights if is_own(flight.scenario)}):
        which = np.flatnonzero([flight.scenario == scenario for flight in flights])
        batch, where = SceneBatch(scene_of(flights[which[0]], config)), np.zeros(len(which), np.int64)
        box = mission.lower[which], mission.upper[which]
        found = start_room(batch, mission.start[which], draws.yaw[which], where, *box)
        room.nearest[which], room.unseen[which] = found.nearest, found.unseen
    for name, planner in doubting:
        warn_of_doubts(name, planner, mission, room)
