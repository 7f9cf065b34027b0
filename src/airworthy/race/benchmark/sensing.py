"""What race pilots sense, taken from the world on its own steps: beacon frames and ranger samples, delivered late or at once.

Frame k falls on physics step ceil(k physics / frames), shows the pose of that step and is stamped with it; before arming the
vehicle stands still and is looked at frame by frame, back from step 0. Each flight's noise depends on its own number, the
frame's and the sensor's, so that a batch gives each flight the bits that it has alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayIndex, ArrayInt, ArrayU32
from airworthy.core.errors import AirworthyError
from airworthy.optics.projections import Pinhole
from airworthy.race.briefing import MARKERS, BeaconFrame
from airworthy.race.classes import FRAME_HZ, RaceClass
from airworthy.race.onboard import RangerSample
from airworthy.race.record import Race
from airworthy.scenes.batch import SceneBatch
from airworthy.sensors import BeaconCamera, Draw, Ranger, SensorView, device
from airworthy.simulation.events import Schedule

BEACONS, RANGER = "left", "downward_laser_rangefinder"
"""Names of the sensors, as the original's; their noise depends on them."""
_LOOKED = 1 << 20
"""Frames before arming are numbered from here: their noise must not be that of frames in flight."""


@dataclass(frozen=True)
class Poses:
    """Where the vehicles are at one step."""

    position: Array
    """World [m], (flights, 3)."""
    attitude: Array
    """Quaternion x, y, z, w, (flights, 4)."""


class RaceSensors:
    """Beacon camera and ranger of a batch of flights.

    Args:
        race: Whose passages order the beacons.
        scenes: One environment per flight.
        conditions: Noise, drop-out, exchange of identities, delay.
        flight_ids: Of each flight, (flights,).
        seed: Of the run.
        physics_rate: Steps per second [Hz].
    """

    def __init__(
        self,
        race: Race,
        scenes: SceneBatch,
        conditions: RaceClass,
        flight_ids: ArrayU32,
        seed: int,
        physics_rate: float,
    ):
        self._scenes, self._ids, self._seed, self._rate = scenes, flight_ids, seed, physics_rate
        self._camera = BeaconCamera(device("flightgoggles_beacons"), BEACONS, conditions.beacons())
        self._ranger = Ranger(device("lightware_sf11b"), RANGER) if "ranger" in race.information.sensors else None
        self._delay = conditions.frame_delay
        self.schedule = Schedule(physics_rate, FRAME_HZ)
        self._passages, self._decoys, self._place = _places(race, scenes)
        self._waiting: list[BeaconFrame] = []

    @property
    def projection(self) -> Pinhole:
        """The camera's."""
        projection = self._camera.device.projection
        assert isinstance(projection, Pinhole)
        return projection

    def look(self, poses: Poses, seconds: float, flying: ArrayIndex) -> list[BeaconFrame]:
        """Return frames that were taken before arming, oldest first; those that are still under way come later.

        Args:
            poses: Of the start.
            seconds: How long it looks.
            flying: Flights that are looked for.
        """
        count = math.floor(seconds * FRAME_HZ + 1e-9)
        frames = [self._frame(poses, -back / FRAME_HZ, _LOOKED + back, flying) for back in range(count, 0, -1)]
        return self._delayed(frames)

    def sample(self, poses: Poses, step: int, flying: ArrayIndex) -> tuple[list[BeaconFrame], list[RangerSample]]:
        """Return what arrives at a step; nothing between two frames.

        Args:
            poses: Of the step.
            step: Physics steps since arming.
            flying: Flights that go on; others see nothing.
        """
        if not self.schedule.is_due(step):
            return [], []
        number = int(self.schedule.latest(step))
        frames = self._delayed([self._frame(poses, step / self._rate, number, flying)])
        return frames, self._ranged(poses, step / self._rate, number, flying)

    def _delayed(self, taken: Sequence[BeaconFrame]) -> list[BeaconFrame]:
        self._waiting += taken
        ready = max(0, len(self._waiting) - self._delay)
        arrived, self._waiting = self._waiting[:ready], self._waiting[ready:]
        return arrived

    def _view(self, poses: Poses, number: int, sensor: str, flying: ArrayIndex) -> SensorView:
        draw = Draw.of(len(flying), self._seed, self._ids[flying], sample=number, sensor=sensor)
        return SensorView(poses.position[flying], poses.attitude[flying], flying, draw)

    def _frame(self, poses: Poses, stamp: float, number: int, flying: ArrayIndex) -> BeaconFrame:
        seen = self._camera.capture(self._scenes, self._view(poses, number, BEACONS, flying))
        pixel = np.full((len(poses.position), (self._passages + self._decoys) * MARKERS, 2), np.nan)
        rows, reports = np.nonzero(seen["beacon"] >= 0)
        pixel[flying[rows], self._place[seen["beacon"][rows, reports]]] = seen["pixel"][rows, reports]
        gates = pixel.reshape(len(pixel), -1, MARKERS, 2)
        raced, decoys = gates[:, : self._passages], gates[:, self._passages :]
        return BeaconFrame(stamp, raced.copy(), decoys.copy() if self._decoys else None)

    def _ranged(self, poses: Poses, stamp: float, number: int, flying: ArrayIndex) -> list[RangerSample]:
        if self._ranger is None:
            return []
        read = self._ranger.capture(self._scenes, self._view(poses, number, RANGER, flying))["range"][:, 0]
        distance = np.full(len(poses.position), np.nan)
        distance[flying] = read
        return [RangerSample(stamp, distance)]


def _places(race: Race, scenes: SceneBatch) -> tuple[int, int, ArrayInt]:
    """Return how many passages and how many lit decoys there are, and for each beacon of the scene its gate among both
    (passages first) and its marker, as one number.
    """
    order = {name: k for k, (name, _) in enumerate(race.passes)}
    if len(order) < len(race.passes):
        raise AirworthyError(f"The race {race.name!r} flies a gate twice; beacons are told apart by their gates.")
    beacons = scenes.scenes[0].beacons
    # In the order of the scene, which is that of `airworthy.scenes.generators.halls.race_hall.decoy_frames`.
    decoys = dict.fromkeys(item.landmark for item in beacons if item.landmark not in order)
    order |= {name: len(race.passes) + k for k, name in enumerate(decoys)}
    # Markers count from 1, in the order of the corners.
    place = [MARKERS * order[item.landmark] + int(item.marker) - 1 for item in beacons]
    return len(race.passes), len(decoys), np.array(place, np.int64)
