"""An avoiding policy in the navigation benchmark: `--pilots avoid:FOLDER`, behind the benchmark's own depth camera."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from airworthy.benchmarks.navigation.sensing import DEPTH
from airworthy.core.arrays import Array, ArrayBool, ArrayF32
from airworthy.core.errors import AirworthyError
from airworthy.optics.projections import Pinhole
from airworthy.pilots.avoid_policy.fleet import KnownVehicles, feature_rows
from airworthy.pilots.avoid_policy.pilot import AvoidPilot, AvoidPolicy, read_avoid_policy
from airworthy.pilots.avoid_policy.sight import RATE
from airworthy.pilots.avoid_policy.wide_view import WideView
from airworthy.pilots.pilot import SENSOR, Observation
from airworthy.planners.common.interface import Airframes, Mission
from airworthy.planners.mapping.boxes import MODES
from airworthy.simulation.sensor_state import Sample

__all__ = ["AvoidNavigationPilot", "known_vehicles"]

_EARLY = 0.05
"""Ours: share of a period by which a decision may come early, because physics steps fall between ticks."""


def known_vehicles(vehicles: Airframes | None) -> KnownVehicles | None:
    """Return what a policy of a fleet may be told of a mission's vehicles; None where nobody said what is flown."""
    if vehicles is None:
        return None
    return KnownVehicles(feature_rows(vehicles.thrust_to_weight, vehicles.alpha_xy, vehicles.alpha_z))


class AvoidNavigationPilot:
    """An avoiding policy, asked as the benchmark asks pilots: all flights at once.

    Args:
        policy: Flies, or its folder.
    """

    name = "avoid"
    level = "acceleration"
    observes = ("position", "velocity", "attitude", SENSOR + DEPTH)
    batched = True

    def __init__(self, policy: AvoidPolicy | str | Path):
        self.policy = policy if isinstance(policy, AvoidPolicy) else read_avoid_policy(policy)
        self._pilot: _BehindWideCamera | None = None

    def reset(self, mission: Mission) -> None:
        """Begin n flights; none is flown faster than the policy learnt."""
        speed = np.minimum(np.asarray(mission.speed, np.float64), self.policy.contract.speed)
        self._pilot = _BehindWideCamera(self.policy, np.asarray(mission.goal), speed, known_vehicles(mission.vehicle))

    def command(self, observation: Observation) -> Array:
        """Return accelerations and yaw rates, (n, 4); before the first image it holds its place.

        Raises:
            AirworthyError: No flights were begun.
        """
        if self._pilot is None:
            raise AirworthyError("An avoiding policy was asked for commands before `reset(mission)`.")
        return self._pilot.command(observation)


class _BehindWideCamera(AvoidPilot):
    """Decides 15 times a second by the newest image of a camera that is quicker."""

    observes = AvoidNavigationPilot.observes

    def __init__(self, policy: AvoidPolicy, goal: Array, speed: Array, vehicles: KnownVehicles | None):
        super().__init__(policy, goal, speed, vehicles)
        self._views: dict[tuple[int, ...], WideView] = {}
        self._ticks = np.full(len(speed), -1, np.int64)

    def _sample(self, observation: Observation) -> Sample:
        return observation.sample(DEPTH)

    def _due(self, observation: Observation, sample: Sample) -> ArrayBool:
        tick = np.floor(np.asarray(observation.time) * RATE + _EARLY).astype(np.int64)
        due = tick != self._ticks
        self._ticks = tick
        return np.asarray(due)

    def _seen(self, depth: Array) -> ArrayF32:
        shape = np.shape(depth)[1:]
        if shape not in self._views:
            self._views[shape] = WideView(_camera_of(shape))
        return self._views[shape](depth)


def _camera_of(shape: tuple[int, ...]) -> Pinhole:
    for camera in MODES.values():
        if (camera.height, camera.width) == shape:
            return camera
    raise AirworthyError(f"Depth images are of {shape}; expected those of the benchmark's camera.")
