"""`race:camera` and `race:stereo`: as `race`, by IMU and images instead of IMU and beacons (spec/race 10).

Estimator, plans, tracker and rate loop are those of `race`. Frames of beacons are made from images (`airworthy.race.vision`):
openings that are found in the picture, named by what the filter expects, and taken as exact as they are found, whatever the
class says of beacons. `race:camera` sees with one camera, the left one of the pair, and has depth from the known sizes of
openings; `race:stereo` sees with both, and its filter is told from where each corner is seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from airworthy.race.briefing import BeaconFrame, RaceBriefing
from airworthy.race.estimation.estimator import Belief
from airworthy.race.onboard import ImageFrame, Onboard, OnboardFacts
from airworthy.race.pilots.racing import RacingPilot
from airworthy.race.vision.naming import PIXEL_SIGMA, seen_gates

__all__ = ["CameraRacingPilot", "StereoRacingPilot"]


class CameraRacingPilot(RacingPilot):
    """Flies by the left camera; see the module; one flight."""

    sensors = ("imu", "camera")

    def _told(self, facts: OnboardFacts) -> RaceBriefing:
        # Noise and exchanged names are those of beacons.
        return replace(facts.briefing(), pixel_noise=PIXEL_SIGMA, identified=True)

    def _arrived(self, onboard: Onboard) -> Sequence[ImageFrame]:
        return onboard.images

    def _frame(self, arrived: ImageFrame) -> BeaconFrame:
        known = self._filter.briefing
        right = None if arrived.right is None else arrived.right[0]
        return seen_gates(known, self._belief_at(arrived.stamp), self._filter.gates_at, arrived.stamp, arrived.pixels[0], right)

    def _belief_at(self, stamp: float) -> Belief:
        """Return what was believed at an image's moment [s]."""
        step = round(max(stamp, 0.0) / self._filter.dt)
        # Images come at frames' moments, and late ones within the ring: a belief of that moment is kept.
        return max((item for item in self._state.past if item.step <= step), key=lambda item: item.step)


class StereoRacingPilot(CameraRacingPilot):
    """Flies by both cameras of the pair; see the module; one flight."""

    sensors = ("imu", "stereo")

    def _told(self, facts: OnboardFacts) -> RaceBriefing:
        return replace(super()._told(facts), right_position=np.array(facts.right_position))
